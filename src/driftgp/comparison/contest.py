"""Every method on the same rows with the same inputs, one after the other."""

import time
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import ArrayLike

from driftgp import checks
from driftgp.comparison.methods import METHODS
from driftgp.comparison.result import OURS, Backtest, Line
from driftgp.comparison.significance import difference
from driftgp.comparison.trial import Forecasts, Trial
from driftgp.evaluate import coverage, crps
from driftgp.model import checked_batch

WARMUP, REFIT = 500, 168
FEWEST = 50  # rows to score

Report = Callable[[str], None]


def backtest(
    X: ArrayLike,
    y: ArrayLike,
    *,
    methods: Iterable[str] | None = None,
    warmup: int = WARMUP,
    horizon: int = 1,
    season: int | None = None,
    refit: int = REFIT,
    report: Report | None = None,
) -> Backtest:
    """Compare the default model with what people use now, each row predicted before its label is known.

    All methods have the same inputs and predict the same rows, in the order of time. Methods whose library is not
    installed are left out, and named.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> y = X @ [1.0, -2.0] + 0.1 * rng.normal(size=400)
    >>> found = backtest(X, y, methods=["persistence", "RLS"], warmup=100)
    >>> [line.method for line in found.lines][-1], found["persistence"].p < 0.001
    ('persistence', True)

    Args:
        X: inputs, N×D, as they are known when the row is predicted; NaN where one is missing.
        y: targets, N; rows where one is NaN are not scored.
        methods: names from `METHODS`; all of them by default.
        warmup: rows before the first that is predicted; at most half of them.
        horizon: rows from a forecast to its label.
        season: rows of a season, for the seasonal naive forecast; it is left out without one.
        refit: rows from one fit to the next, for methods that learn in batches.
        report: called with the name of each method that is done.
    """
    X, y = checked_batch(X, y, gaps=True)
    if y.ndim != 1:
        raise ValueError(f"y must have one number per row; got shape {y.shape}: compare one output at a time")
    warmup = min(checks.whole("warmup", warmup, 1), len(y) // 2)
    horizon = checks.whole("horizon", horizon, 1)
    if len(y) - warmup < max(FEWEST, 2 * horizon) or np.isfinite(y[warmup:]).sum() < FEWEST:
        raise ValueError(
            f"y must have {FEWEST} targets to score after the warm-up, and more than two horizons; "
            f"got {np.isfinite(y[warmup:]).sum()} of {len(y) - warmup} rows"
        )
    if season is not None:
        checks.whole("season", season, 1)
    trial = Trial(X, y, warmup, horizon, season, checks.whole("refit", refit, 1))
    names, left_out = _chosen(methods, season)
    said, lines = {}, []
    for name in names:
        METHODS[name].prepare()
        began = time.process_time()
        said[name] = METHODS[name].run(trial)
        lines.append(_line(trial, name, said[name], said[OURS], time.process_time() - began))
        if report is not None:
            report(name)
    errors = {name: trial.scored - forecasts.mean for name, forecasts in said.items()}
    lines.sort(key=lambda line: line.rmse)
    laws = {name: forecasts.law for name, forecasts in said.items() if forecasts.law is not None}
    return Backtest(tuple(lines), errors, int(np.isfinite(trial.scored).sum()), horizon, left_out, laws)


def _chosen(methods: Iterable[str] | None, season: int | None) -> tuple[list[str], dict[str, str]]:
    """The methods that can run, driftgp first, and why the others of them cannot."""
    wanted = list(METHODS if methods is None else dict.fromkeys([OURS, *methods]))
    left_out = {}
    for name in wanted:
        if name not in METHODS:
            raise ValueError(f"methods must be among {', '.join(map(repr, METHODS))}; got {name!r}")
        if METHODS[name].missing:
            left_out[name] = f'{METHODS[name].missing} is not installed: pip install "driftgp[compare]"'
        elif name == "seasonal naive" and season is None:
            left_out[name] = "no season is known: give its number of rows"
    if methods is not None and left_out:
        name, reason = next(iter(left_out.items()))
        raise ValueError(f"methods has {name!r}, which cannot run: {reason}")
    names = [name for name in wanted if name not in left_out]
    if len(names) < 2:
        raise ValueError(f"methods must name at least one other than {OURS!r}")
    return names, left_out


def _line(trial: Trial, name: str, forecasts: Forecasts, ours: Forecasts, seconds: float) -> Line:
    y = trial.scored
    squares, our_squares = np.square(y - forecasts.mean), np.square(y - ours.mean)
    law = forecasts.law
    return Line(
        method=name,
        rmse=float(np.sqrt(np.nanmean(squares))),
        mae=float(np.nanmean(np.abs(y - forecasts.mean))),
        crps=np.nan if law is None else crps(law, y),
        coverage=np.nan if law is None else coverage(law, y),
        microseconds=1e6 * seconds / len(y),
        ratio=float(np.sqrt(np.nanmean(squares) / np.nanmean(our_squares))),
        p=np.nan if name == OURS else difference(squares, our_squares).p,
    )
