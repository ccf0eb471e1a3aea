"""Every method on the same rows with the same inputs, one after the other."""

import time as clock
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from driftgp.base import checks
from driftgp.base.progress import Progress
from driftgp.base.season import DAY, usual_step
from driftgp.comparison.methods import ALL, BASE, METHODS
from driftgp.comparison.result import Backtest, Line
from driftgp.comparison.significance import difference
from driftgp.comparison.trial import Forecasts, Trial
from driftgp.comparison.verdict import OURS
from driftgp.defaults import Effort, Support
from driftgp.evaluate import coverage, crps
from driftgp.online import Online
from driftgp.predictions import Prediction
from driftgp.stream.base_column import Base
from driftgp.stream.naive import Season, find_seasons
from driftgp.stream.running_scores import PredictedRows, RunningScores
from driftgp.stream.settings import Others, settings_among

WARMUP, REFIT = 500, 168
FEWEST = 50  # rows to score

Report = Callable[[str], None]


def backtest(
    X: Any,
    y: Any = None,
    *,
    methods: Iterable[str] | None = None,
    warmup: int = WARMUP,
    season: int | None = None,
    refit: int = REFIT,
    report: Report | None = None,
    progress: bool = False,
    target: str | None = None,
    time: str | None = None,
    features: Iterable[str] | None = None,
    known: Iterable[str] = (),
    others: Others = "late",
    lags: int | Iterable[int] = (),
    calendar: bool | str | Iterable[str] = (),
    holidays: str | Iterable[Any] = (),
    horizon: int = 1,
    effort: Effort = "medium",
    support: Support = "auto",
    base: Base = None,
) -> Backtest:
    """Compare the default model with common methods; each row is predicted before its label is known.

    All methods have the same inputs, those that `Online` with these settings gives its model, and are scored on the
    same rows. The default model is `Online` from the first row on. Methods whose library is not installed are left out,
    and `left_out` names them.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> y = X @ [1.0, -2.0] + 0.1 * rng.normal(size=400)
    >>> found = backtest(X, y, methods=["persistence", "RLS"], warmup=100)
    >>> [line.method for line in found.lines][-1], found["persistence"].p < 0.001
    ('persistence', True)

    A table with a target gets its inputs by settings, as in `Online`:

    >>> rows = [{"day": day, "sales": 100.0 + 20.0 * (day % 7) + rng.normal()} for day in range(200)]
    >>> found = backtest(
    ...     rows, target="sales", time="day", lags=[1, 7], season=7, methods=["seasonal naive"], warmup=100
    ... )
    >>> found.inputs
    ('lag 1', 'lag 7')

    Args:
        X: the rows in the order of time: inputs, N×D, as they are known when the row is predicted, NaN where one is
            missing; or a frame.
        y: targets, N; rows where one is NaN are not scored. Left out where the rows have it in `target`.
        methods: names from `METHODS`; all of them by default.
        warmup: number of first rows, which are not scored; batch methods are first fitted on them. With few rows it is
            half of the rows, and a warning says so.
        season: rows of a season, for the seasonal naive forecast. By default it is a day of hours, a week of days and
            so on, by the dates of the rows; without dates that forecast is left out.
        refit: rows from one fit to the next, for methods that learn in batches.
        report: called with the name of each method that is done.
        progress: show on standard error how many methods are done.
        target: name of the column to predict; this argument and all below are those of `Online`.
        time: name of the column of times.
        features: columns that are known with their row.
        known: columns that are known ahead of time.
        others: how the other columns of a table with a target enter: "late" or "ignored".
        lags: past targets that are inputs.
        calendar: cycles of the calendar that are inputs.
        holidays: dates, or the code of a country.
        horizon: how many rows after the last known target the predicted row is.
        effort: of the default model.
        support: range of the targets.
        base: column, or index of the input, that holds a forecast of the target from elsewhere. All methods have it as
            an input, and the table has a line for it.
    """
    settings = {name: value for name, value in vars(settings_among(locals())).items() if name != "key"}
    inputs = Online(**settings).inputs_of(X, y)
    if inputs.y.ndim != 1:
        raise ValueError(f"y must have one number per row; got shape {inputs.y.shape}: compare one output at a time")
    first = _first_scored(warmup, inputs.y, horizon)
    dated = bool(np.isfinite(inputs.wall).any())
    trial = Trial(
        inputs.X,
        inputs.y,
        first,
        horizon,
        _season(season, inputs.wall if dated else None, horizon),
        checks.whole("refit", refit, 1),
        inputs.wall if dated else None,
        X,
        settings,
    )
    names, left_out = _chosen(methods, trial.season)
    if base is not None:
        names = [*names[:1], BASE, *names[1:]]
    forecasts_of, lines = {}, []
    with Progress(len(names), "methods", shown=progress) as shown:
        for name in names:
            ALL[name].prepare()
            began = clock.process_time()
            forecasts_of[name] = ALL[name].run(trial)
            lines.append(_line(trial, name, forecasts_of[name], forecasts_of[OURS], clock.process_time() - began))
            shown.to(len(lines))
            if report is not None:
                report(name)
    errors = {name: trial.scored - forecasts.mean for name, forecasts in forecasts_of.items()}
    lines.sort(key=lambda line: line.rmse)
    laws = {name: forecasts.law for name, forecasts in forecasts_of.items() if forecasts.law is not None}
    scored = int(np.isfinite(trial.scored).sum())
    monitors = {name: _watched(trial, law) for name, law in laws.items()}
    hours = {name: monitor.by_hour() for name, monitor in monitors.items()} if dated else {}
    tenths = {name: monitor.by_tenth() for name, monitor in monitors.items()}
    return Backtest(tuple(lines), errors, scored, horizon, left_out, laws, inputs.names, first, hours, tenths)


def _watched(trial: Trial, law: Prediction) -> RunningScores:
    """What the 95 % intervals of a method were worth, row by row."""
    y, monitor = trial.scored, RunningScores(densities=(), naive=False)
    wall = np.full(len(y), np.nan) if trial.wall is None else trial.wall[trial.warmup :]
    low, high = law.interval(0.95)
    rows = PredictedRows(law, low, high, y, wall, trial.wall is not None, [None] * len(y), {}, np.arange(len(y)))
    monitor.see(rows)
    return monitor


def _first_scored(warmup: int, y: np.ndarray, horizon: int) -> int:
    """The first row to score, which comes after the warm-up. A warning says so if the warm-up had to be shorter."""
    first = min(checks.whole("warmup", warmup, 0), len(y) // 2)
    scored = int(np.isfinite(y[first:]).sum())
    if len(y) - first < max(FEWEST, 2 * horizon) or scored < FEWEST:
        raise ValueError(
            f"y must have {FEWEST} targets to score after the warm-up, and more than two horizons; "
            f"got {scored} of {len(y) - first} rows"
        )
    if first < warmup:
        warnings.warn(
            f"warmup is {first} rows, not {warmup}: half of the {len(y)} rows are scored", UserWarning, stacklevel=3
        )
    return first


def _season(rows: int | None, wall: np.ndarray | None, horizon: int) -> Season | None:
    """The season of the seasonal naive forecast, times the whole number that makes its target known in time."""
    if rows is None:
        found = () if wall is None else find_seasons(wall, dated=True, horizon=horizon)
        return found[0] if found else None
    rows = checks.whole("season", rows, 1)
    back = rows * -(-horizon // rows)
    step = None if wall is None else usual_step(wall / 1e6)
    if step is None or step > 1.5 * DAY:  # weeks of a year and months are no fixed number of seconds
        return Season(float(back), back, by_rows=True)
    return Season(back * step, back)


def _chosen(methods: Iterable[str] | None, season: Season | None) -> tuple[list[str], dict[str, str]]:
    """The methods that can run, driftgp first, and for each of the others the reason why it cannot."""
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
