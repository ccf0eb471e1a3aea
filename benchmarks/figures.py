"""Every figure with its target, from the rows that were measured."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.process import Row
from benchmarks.streams import DEFAULTS, GRID, LARGE, LOAD, TOY, Size
from benchmarks.timing import Spread, ratio, spread

EXACT = Size(50, 1000, 8)  # where AGP is held against the exact window
NUMPY = {TOY: 1.0, Size(20, 400, 24): 2.0}  # where the reference engine is measured, and how many ms it may take
STORED = {DEFAULTS[0]: 25.0, DEFAULTS[2]: 120.0}  # kB per key of a fleet
GPYTORCH = "GPyTorch exact, 1 step"
FLAT = 0.1  # what noise may add to the power of a cost
NOTHING = Spread(*[float("nan")] * 3)


@dataclass(frozen=True)
class Figure:
    """A number with its quartiles, and its target; a target of None says that the number is for information."""

    name: str
    found: Spread
    target: float | None = None
    least: bool = False  # whether the target is the least that the value may be, rather than the most

    @property
    def value(self) -> float:
        """The median."""
        return self.found.median

    @property
    def ok(self) -> bool:
        """Whether the target is met; a number that could not be measured meets none."""
        if self.target is None:
            return True
        return bool(self.value >= self.target if self.least else self.value <= self.target)

    def line(self) -> str:
        """`name value target ok|short (lower quartile to upper quartile)`.

        >>> Figure("import_s", Spread(0.7312, 0.72, 0.75), 1.0).line()
        'import_s 0.731 <=1 ok (0.72 to 0.75)'
        >>> Figure("agp_over_fast", exactly(2.5), 3.0, least=True).line()
        'agp_over_fast 2.5 >=3 short'
        """
        said = f"{self.name} {self.value:.3g}"
        said += " - info" if self.target is None else f" {self.sign}{self.target:g} {'ok' if self.ok else 'short'}"
        return said if self.found.low == self.found.high or self.value != self.value else f"{said} {self.quartiles}"

    @property
    def sign(self) -> str:
        """How the value is compared with its target."""
        return ">=" if self.least else "<="

    @property
    def quartiles(self) -> str:
        """The spread around the median."""
        return f"({self.found.low:.3g} to {self.found.high:.3g})"


def exactly(value: float) -> Spread:
    """A number without a spread."""
    return Spread(value, value, value)


# ---- looking rows up -------------------------------------------------------------------------------------------------


def find(rows: Sequence[Row], **wanted: Any) -> Row | None:
    """The first row that has these values, and a measurement."""
    size: Size | None = wanted.pop("size", None)
    if size is not None:
        wanted |= {"M": size.M, "T": size.T, "D": size.D}
    there = (row for row in rows if "failed" not in row)
    return next((row for row in there if all(row.get(key) == value for key, value in wanted.items())), None)


def times(rows: Sequence[Row], **wanted: Any) -> list[float] | None:
    """Microseconds of the first row that has these values."""
    row = find(rows, **wanted)
    return row.get("microseconds") if row else None


def best(rows: Sequence[Row], group: str, name: str, size: Size) -> list[float] | None:
    """Microseconds of a limit: of its C++ programs, the one that is faster at this size."""
    found = [times(rows, group=group, name=name, how=how, size=size) for how in ("C++ loops", "C++ BLAS")]
    there = [values for values in found if values]
    return min(there, key=lambda values: spread(values).median) if there else None


def over(above: Sequence[float] | None, below: Sequence[float] | None) -> Spread:
    """Ratio, NaN where one of the two is missing."""
    return ratio(above, below) if above and below else NOTHING


def middle(values: Sequence[float] | None) -> Spread:
    """Median and quartiles, NaN where nothing was measured."""
    return spread(values) if values else NOTHING


def power(points: Sequence[tuple[float, float]]) -> float:
    """Slope of a line through points, both axes logarithmic.

    >>> round(power([(1, 3), (10, 30), (100, 300)]), 6)
    1.0
    """
    if len(points) < 2:
        return float("nan")
    x, y = np.log(np.asarray(points, float)).T
    return float(np.polyfit(x, y, 1)[0])


def along(rows: Sequence[Row], letter: str, name: str) -> list[tuple[float, float]]:
    """How the time of a step grows with M, T or D."""
    there = [
        row for row in rows if row.get("group") == "scaling" and row.get("along") == letter and row.get("name") == name
    ]
    return sorted((row[letter], spread(row["microseconds"]).median) for row in there)


# ---- the figures -----------------------------------------------------------------------------------------------------


def figures(rows: Sequence[Row]) -> list[Figure]:
    """All of them: the default model, AGP's step, many models, a fresh process; then comparisons."""
    parts = (_default, _limit, _calls, _adapters, _command, _fresh, _fleet, _growth, _engines, _others)
    return [figure for part in parts for figure in part(rows)]


def _at(size: Size) -> str:
    return f"({size.M},{size.T},{size.D})"


def _default(rows: Sequence[Row]) -> Iterator[Figure]:
    def of(name: str, how: str, size: Size) -> list[float] | None:
        return times(rows, group="default", name=name, how=how, size=size)

    for how, target in (("calls", 1.25), ("prequential", 1.10)):
        for size in DEFAULTS:
            value = over(of("default", how, size), of("three AGPs", how, size))
            yield Figure(f"default_over_three_agps_{how}_D{size.D}", value, target)
    for size in DEFAULTS:
        value = over(of("default", "calls with an interval", size), of("default", "calls", size))
        yield Figure(f"default_with_interval_over_without_D{size.D}", value, 1.2)


def _limit(rows: Sequence[Row]) -> Iterator[Figure]:
    for size in GRID:
        agp = times(rows, group="grid", name="AGP", how="prequential", size=size)
        yield Figure(f"agp_prequential_over_cpp_limit_{_at(size)}", over(agp, best(rows, "grid", "limit", size)), 1.2)


def _calls(rows: Sequence[Row]) -> Iterator[Figure]:
    for size, target in ((TOY, 1.5), (LOAD, None)):
        calls, stream = (times(rows, group="grid", name="AGP", how=how, size=size) for how in ("calls", "prequential"))
        yield Figure(f"agp_calls_over_prequential_{_at(size)}", over(calls, stream), target)


def _adapters(rows: Sequence[Row]) -> Iterator[Figure]:
    bars = (
        ("river", "river_one_by_one_over_online", 2.0),
        ("scikit-learn", "sklearn_partial_fit_over_prequential", 1.3),
    )
    for name, label, target in bars:
        for size in DEFAULTS:
            pair = (times(rows, group="adapters", name=name, how=how, D=size.D) for how in ("adapter", "direct"))
            yield Figure(f"{label}_D{size.D}", over(*pair), target)


def _command(rows: Sequence[Row]) -> Iterator[Figure]:
    run, stream = (find(rows, group="command", name=name) or {} for name in ("driftgp run", "Online"))
    label = f"_{run['rows']}_rows" if run else ""
    yield Figure(f"driftgp_run_over_prequential{label}", over(run.get("seconds"), stream.get("seconds")), 1.5)


def _fresh(rows: Sequence[Row]) -> Iterator[Figure]:
    for size in (DEFAULTS[0], DEFAULTS[2]):
        row = find(rows, group="fresh", how="first prediction", size=size) or {}
        yield Figure(f"first_prediction_cpu_s_D{size.D}", middle(row.get("seconds")), 0.8)
        yield Figure(f"first_prediction_peak_MB_D{size.D}", exactly(row.get("bytes", np.nan) / 1e6), 110.0)
    ours, theirs, alone = (
        (find(rows, group="fresh", how="import", name=name) or {}).get("seconds")
        for name in ("driftgp", "numpy and scipy", "driftgp alone")
    )
    yield Figure("import_driftgp_over_numpy_and_scipy", over(ours, theirs), 1.3)
    yield Figure("import_driftgp_without_its_names_s", middle(alone))


def _fleet(rows: Sequence[Row]) -> Iterator[Figure]:
    def of(name: str, how: str) -> list[float] | None:
        return times(rows, group="fleet", name=name, how=how, models=1000)

    for name, label in (("default", "default"), ("AGP", "agp")):
        every, one, single = (of(name, how) for how in ("all cores", "one core", "one model"))
        yield Figure(f"fleet_1000_{label}_over_one_model", over(every, single), 1.0)
        on_one = over(of(name, "one core, CPU"), of(name, "one model, CPU"))
        yield Figure(f"fleet_1000_{label}_on_one_core_over_one_model", on_one)
        yield Figure(f"fleet_1000_{label}_gain_of_all_cores", over(one, every), 1.7, least=True)
    for size, target in STORED.items():
        row = find(rows, group="stored", size=size) or {}
        yield Figure(f"stored_kB_per_key_D{size.D}", exactly(row.get("stored", np.nan) / 1e3), target)


def _growth(rows: Sequence[Row]) -> Iterator[Figure]:
    pair = (times(rows, group="exchange", how=how, size=LARGE) for how in ("exchanges", "stays"))
    yield Figure(f"fast_agp_exchange_over_none_{_at(LARGE)}", over(*pair), 5.0)
    for row in [row for row in rows if row.get("group") == "length" and row.get("how") == "last tenth"]:
        first = times(rows, group="length", name=row["name"], how="first tenth", samples=row["samples"])
        label = f"{row['name'].lower().replace('-', '_')}_last_tenth_over_first_of_{row['samples']}"
        yield Figure(label, over(row["microseconds"], first), 1.05)
    for name, target in (("AGP", 1.0), ("fast-AGP", 0.0)):
        label = f"{name.lower().replace('-', '_')}_power_of_T"
        yield Figure(label, exactly(power(along(rows, "T", name))), target + FLAT)
    bursts = [times(rows, group="repairs", how=how) for how in ("no jitter", "stuck")]
    plain = times(rows, group="repairs", how="plain")
    worst = max((over(burst, plain) for burst in bursts), key=lambda found: found.median)
    yield Figure("burst_of_repairs_over_plain_step", worst, 3.0)


def _engines(rows: Sequence[Row]) -> Iterator[Figure]:
    for size, target in NUMPY.items():
        reference, native = (times(rows, group="engines", how=how, size=size) for how in ("reference", "native"))
        milliseconds = [value / 1e3 for value in reference] if reference else None
        yield Figure(f"numpy_engine_ms_{_at(size)}", middle(milliseconds), target)
        yield Figure(f"numpy_engine_over_native_{_at(size)}", over(reference, native))


def _others(rows: Sequence[Row]) -> Iterator[Figure]:
    theirs = find(rows, group="outside", name=GPYTORCH, size=TOY) or {}
    for name, label, targets in (("AGP", "agp", (50.0, 130.0)), ("fast-AGP", "fast_agp", (100.0, 300.0))):
        for how, target in zip(("calls", "prequential"), targets, strict=True):
            ours = times(rows, group="grid", name=name, how=how, size=TOY)
            found = over(theirs.get("microseconds"), ours)
            yield Figure(f"gpytorch_over_{label}_{how}_{_at(TOY)}", found, target, least=True)
    accurate = find(rows, group="accuracy", name="AGP", size=TOY) or {}
    error = accurate.get("mse", np.nan) / theirs.get("mse", np.nan)
    yield Figure("agp_mse_over_gpytorch_mse_toy", exactly(error), 1.0)
    for size, target in ((TOY, 2.0), (EXACT, 50.0)):
        exact, agp = (times(rows, group="rivals", name=name, size=size) for name in ("exact window", "AGP"))
        yield Figure(f"exact_window_over_agp_{_at(size)}", over(exact, agp), target, least=True)
