"""Forecasts from origins of the past against other methods: errors by how far ahead, coverage, and a verdict."""

import time as clock
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from driftgp.base import checks
from driftgp.base.wording import figure
from driftgp.comparison.significance import difference
from driftgp.comparison.verdict import OURS, as_text, verdict
from driftgp.forecasting.placed import Placed, Steps
from driftgp.forecasting.reading import Reader
from driftgp.forecasting.record import blocks
from driftgp.forecasting.rivals import METHODS, Said
from driftgp.forecasting.rivals import Rows as Given
from driftgp.stream.keys import Key

if TYPE_CHECKING:
    from driftgp.forecasting.forecaster import Forecaster

NAIVE = "seasonal naive"
FEWEST = 20  # rows before the first origin


class Line(NamedTuple):
    """A method's line of the table; NaN where there is no figure."""

    method: str
    mae: float
    ratio: float  # of the mean absolute error to that of driftgp
    coverage: float  # of 95 % intervals
    p: float  # how often chance alone would make the errors differ as much from driftgp's
    seconds: float  # of CPU for each origin of each series


class Backtest(NamedTuple):
    """What a backtest found: lowest error first.

    Attributes:
        lines: one per method.
        errors: absolute errors of each method, origins×H, with several series one after another; NaN without a target.
        steps: H.
        left_out: methods that did not run, and why.
    """

    lines: tuple[Line, ...]
    errors: dict[str, np.ndarray]
    origins: int
    steps: int
    left_out: dict[str, str]

    def of(self, method: str) -> Line:
        """A method's line."""
        return next(line for line in self.lines if line.method == method)

    def leads(self, method: str) -> np.ndarray:
        """Mean absolute error of each lead, H."""
        errors = self.errors[method]
        count = np.maximum(np.isfinite(errors).sum(0), 1)
        return np.asarray(np.nansum(errors, 0) / count)

    def by_lead(self) -> list[dict[str, Any]]:
        """Mean absolute errors in a few blocks of leads."""
        found = []
        for first, end in blocks(self.steps):
            name = f"{end}" if end == first + 1 else f"{first + 1} to {end}"
            found.append({"lead": name} | {m: float(np.nanmean(e[:, first:end])) for m, e in self.errors.items()})
        return found

    @property
    def verdict(self) -> str:
        """One sentence: how driftgp did against the best of the others."""
        best = next(line for line in self.lines if line.method != OURS)
        return verdict("MAE", self.of(OURS).mae, best.method, best.mae, best.p)

    def __repr__(self) -> str:
        """The table, lowest error first, and the verdict."""
        cells = [
            (line.method, [figure(line.mae), figure(line.ratio), figure(100.0 * line.coverage), figure(line.seconds)])
            for line in self.lines
        ]
        table = as_text(["MAE", "ratio", "inside, %", "CPU s"], cells)
        return f"{table}\n{self.verdict}"

    def to_json(self) -> dict[str, Any]:
        """The tables and the verdict, as JSON holds them."""
        plain = [
            {name: value if value == value else None for name, value in line._asdict().items()} for line in self.lines
        ]
        leads = {method: self.leads(method).tolist() for method in self.errors}
        return {
            "verdict": self.verdict,
            "origins": self.origins,
            "steps": self.steps,
            "methods": plain,
            "mae_by_lead": leads,
            "left_out": self.left_out,
        }


def backtest(
    forecaster: "Forecaster", rows: Any, *, origins: int, h: int | None, methods: Iterable[str] | None
) -> Backtest:
    """See `Forecaster.backtest`."""
    steps = forecaster.horizon if h is None else checks.whole("h", h, 1, forecaster.horizon)
    checks.whole("origins", origins, 1)
    names, left_out = _chosen(methods)
    errors: dict[str, list[np.ndarray]] = {name: [] for name in names}
    inside: dict[str, list[np.ndarray]] = {name: [] for name in names}
    seconds = dict.fromkeys(names, 0.0)
    most = 0
    for key, placed, reader, all_rows in forecaster.steps(rows):
        at = _origins(all_rows, origins, steps, key)
        most = max(most, len(at))
        own = _forecasts(forecaster, placed, reader, all_rows, at, steps, names, seconds)
        for name, (wrong, held) in own.items():
            errors[name].append(wrong)
            inside[name].append(held)
    if not errors[OURS]:
        raise ValueError("there are no rows for a backtest: give some to update first, or to backtest(rows)")
    whole = {name: np.concatenate(parts) for name, parts in errors.items()}
    kept = {name: np.concatenate(parts) for name, parts in inside.items()}
    ours = whole[OURS]
    lines = []
    for name in names:
        mae = float(np.nanmean(whole[name]))
        test = difference(np.nanmean(whole[name], 1), np.nanmean(ours, 1)).p if name != OURS else np.nan
        share = float(np.nanmean(kept[name])) if np.isfinite(kept[name]).any() else np.nan
        lines.append(
            Line(name, mae, mae / float(np.nanmean(ours)), share, test, seconds[name] / max(len(whole[name]), 1))
        )
    lines.sort(key=lambda line: line.mae)
    return Backtest(tuple(lines), whole, most, steps, left_out)


def _chosen(methods: Iterable[str] | None) -> tuple[list[str], dict[str, str]]:
    wanted = list(METHODS if methods is None else dict.fromkeys(methods))
    left_out = {}
    for name in wanted:
        if name != OURS and name not in METHODS:
            raise ValueError(f"methods must be among {', '.join(map(repr, METHODS))}; got {name!r}")
        if name != OURS and METHODS[name].missing:
            left_out[name] = f"{METHODS[name].missing} is not installed: pip install {METHODS[name].missing}"
    if methods is not None and left_out:
        name, reason = next(iter(left_out.items()))
        raise ValueError(f"methods has {name!r}, which cannot run: {reason}")
    return [OURS, *(name for name in wanted if name != OURS and name not in left_out)], left_out


def _origins(steps: Steps, origins: int, h: int, key: Key | None) -> np.ndarray:
    """Rows before each origin: h apart if there is room for them in the last two thirds, closer together if not."""
    N = len(steps.y)
    first = max(FEWEST, N // 3)
    last = N - h
    if last < first:
        whose = "" if key is None else f" of {key!r}"
        raise ValueError(
            f"there are {N} rows{whose}, too few for a backtest of {h} steps: give more rows, or fewer steps with h="
        )
    apart = min(h, max((last - first) // max(origins - 1, 1), 1))
    count = min(origins, (last - first) // apart + 1)
    return last - apart * np.arange(count)[::-1]


def _forecasts(
    forecaster: "Forecaster",
    placed: Placed,
    reader: Reader,
    steps: Steps,
    at: np.ndarray,
    h: int,
    names: list[str],
    seconds: dict[str, float],
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Absolute errors of each method, and whether targets were in their intervals, origins×h each."""
    settings = forecaster.settings
    found: dict[str, tuple[list[np.ndarray], list[np.ndarray]]] = {name: ([], []) for name in names}
    anew, done = placed.anew(), 0
    inputs, _ = placed.inputs(settings, reader, steps)
    for origin in at.tolist():
        truth = steps.y[origin : origin + h]
        began = clock.process_time()
        anew = anew.learned(settings, reader, steps.some(slice(done, origin)))
        done = origin
        fan = anew.forecast(settings, reader, steps.codes[origin : origin + h], h)
        said = {OURS: Said(fan.mean, *fan.interval(0.95))}
        seconds[OURS] += clock.process_time() - began
        lengths = anew.seasons
        given = Given(
            filled(steps.y[:origin], lengths[0] if lengths else 1),
            steps.wall[:origin],
            inputs[:origin],
            inputs[origin : origin + h],
            steps.wall[origin : origin + h],
            lengths,
        )
        for name in names[1:]:
            began = clock.process_time()
            said[name] = METHODS[name].run(given)
            seconds[name] += clock.process_time() - began
        for name, (mean, low, high) in said.items():
            found[name][0].append(np.abs(mean - truth))
            held = np.full(h, np.nan)
            if low is not None and high is not None:
                held = np.where(np.isnan(truth), np.nan, (low <= truth) & (truth <= high))
            found[name][1].append(held)
    return {name: (np.array(errors), np.array(inside)) for name, (errors, inside) in found.items()}


def filled(y: np.ndarray, season: int) -> np.ndarray:
    """Targets with the value a season before where one is missing; the first one that there is before any.

    >>> filled(np.array([np.nan, 1.0, 2.0, np.nan, np.nan]), 2).tolist()
    [1.0, 1.0, 2.0, 1.0, 2.0]
    """
    made = y.copy()
    there = np.isfinite(y)
    first = float(y[there.argmax()]) if there.any() else 0.0
    for i in np.flatnonzero(~there).tolist():
        before = made[i - season] if i >= season else made[i - 1] if i else first
        made[i] = before
    return made
