"""What must be shown: every figure with its target, from the rows that were measured."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.process import Row
from benchmarks.sizes import GRID, LOAD, TOY, Size
from benchmarks.timing import Spread, ratio, spread

EXACT = Size(50, 1000, 8)  # where AGP is held against the exact window
GPYTORCH = "GPyTorch exact, 1 step"
RIVER = "driftgp's AGPRegressor for river"
FLAT = 1.1  # what may be added by noise to a cost that is flat, or to the power of one that is linear


@dataclass(frozen=True)
class Figure:
    """A number and its target; a target of None says that the number is for information."""

    name: str
    value: float
    target: float | None = None
    least: bool = False  # whether the target is the least that the value may be, rather than the most

    @property
    def ok(self) -> bool:
        """Whether the target is met; a number that could not be measured meets none."""
        if self.target is None:
            return True
        return bool(self.value >= self.target if self.least else self.value <= self.target)

    def line(self) -> str:
        """`name value target ok|short`.

        >>> Figure("import_driftgp_s", 0.7312, 1.0).line()
        'import_driftgp_s 0.731 <=1 ok'
        >>> Figure("agp_over_fast", 2.5, 3.0, least=True).line()
        'agp_over_fast 2.5 >=3 short'
        """
        if self.target is None:
            return f"{self.name} {self.value:.3g} - info"
        sign = ">=" if self.least else "<="
        return f"{self.name} {self.value:.3g} {sign}{self.target:g} {'ok' if self.ok else 'short'}"


# ---- looking rows up -------------------------------------------------------------------------------------------------


def find(rows: Sequence[Row], **wanted: Any) -> Row | None:
    """The first row that has these values."""
    size: Size | None = wanted.pop("size", None)
    if size is not None:
        wanted |= {"M": size.M, "T": size.T, "D": size.D}
    return next((row for row in rows if all(row.get(key) == value for key, value in wanted.items())), None)


def times(rows: Sequence[Row], **wanted: Any) -> list[float] | None:
    """Microseconds of the first row that has these values."""
    row = find(rows, **wanted)
    return row.get("microseconds") if row else None


def best(rows: Sequence[Row], group: str, name: str, size: Size) -> list[float] | None:
    """Microseconds of a limit: of its C++ programs, the one that is faster at this size."""
    found = [times(rows, group=group, name=name, how=how, size=size) for how in ("C++ loops", "C++ BLAS")]
    there = [values for values in found if values]
    return min(there, key=lambda values: spread(values).median) if there else None


def over(above: Sequence[float] | None, below: Sequence[float] | None) -> float:
    """Median ratio, NaN where one of the two is missing."""
    return ratio(above, below).median if above and below else float("nan")


def power(points: Sequence[tuple[float, float]]) -> float:
    """Slope of a line through points on double logarithmic paper.

    >>> round(power([(1, 3), (10, 30), (100, 300)]), 6)
    1.0
    """
    if len(points) < 2:
        return float("nan")
    x, y = np.log(np.asarray(points, float)).T
    return float(np.polyfit(x, y, 1)[0])


# ---- the figures -----------------------------------------------------------------------------------------------------


def figures(rows: Sequence[Row]) -> list[Figure]:
    """All of them, in the order of the issue."""
    return [*_limit(rows), *_calls(rows), *_gpytorch(rows), *_exact(rows), *_fleet(rows), *_growth(rows), *_fresh(rows)]


def _at(size: Size) -> str:
    return f"({size.M},{size.T},{size.D})"


def _limit(rows: Sequence[Row]) -> Iterator[Figure]:
    for i, size in enumerate(GRID):
        agp = times(rows, group="grid", name="AGP", how="scan", size=size)
        yield Figure(
            f"agp_scan_over_cpp_limit_{_at(size)}", over(agp, best(rows, "grid", "limit", size)), 1.5 if i < 3 else 1.2
        )
    for size in GRID:
        agp = times(rows, group="grid", name="AGP", how="scan", size=size)
        yield Figure(f"agp_scan_over_whole_step_by_hand_{_at(size)}", over(agp, best(rows, "grid", "step", size)))
    for size in GRID:
        agp = times(rows, group="grid", name="AGP", how="scan", size=size)
        fast = times(rows, group="grid", name="fast-AGP", how="scan", size=size)
        yield Figure(f"agp_over_fast_agp_scan_{_at(size)}", over(agp, fast), 3.0, least=True)


def _calls(rows: Sequence[Row]) -> Iterator[Figure]:
    for size, target in ((TOY, 3.0), (LOAD, 2.0)):
        calls, scan = (times(rows, group="grid", name="AGP", how=how, size=size) for how in ("calls", "scan"))
        yield Figure(f"agp_calls_over_scan_{_at(size)}", over(calls, scan), target)


def _gpytorch(rows: Sequence[Row]) -> Iterator[Figure]:
    theirs = find(rows, group="outside", name=GPYTORCH, size=TOY) or {}
    for name, label, targets in (("AGP", "agp", (50.0, 130.0)), ("fast-AGP", "fast_agp", (100.0, 300.0))):
        for how, target in zip(("calls", "scan"), targets, strict=True):
            ours = times(rows, group="grid", name=name, how=how, size=TOY)
            yield Figure(
                f"gpytorch_over_{label}_{how}_{_at(TOY)}", over(theirs.get("microseconds"), ours), target, least=True
            )
    accurate = find(rows, group="accuracy", name="AGP", size=TOY) or {}
    yield Figure("agp_mse_over_gpytorch_mse_toy", accurate.get("mse", np.nan) / theirs.get("mse", np.nan), 1.0)


def _exact(rows: Sequence[Row]) -> Iterator[Figure]:
    for size, target in ((TOY, 2.0), (EXACT, 50.0)):
        exact, agp = (times(rows, group="rivals", name=name, size=size) for name in ("exact window", "AGP"))
        yield Figure(f"exact_window_over_agp_scan_{_at(size)}", over(exact, agp), target, least=True)


LABELS = {"AGP": "agp", "fast-AGP": "fast_agp"}


def _measured(rows: Sequence[Row], group: str) -> dict[str, str]:
    """The models of a group and their labels: AGP always, fast-AGP if it was measured, which a quick run leaves out."""
    return {name: label for name, label in LABELS.items() if name == "AGP" or find(rows, group=group, name=name)}


def _fleet(rows: Sequence[Row]) -> Iterator[Figure]:
    for name, label in _measured(rows, "fleet").items():
        every, one, scan = (
            times(rows, group="fleet", name=name, how=how, models=1000) for how in ("all cores", "one core", "scan")
        )
        yield Figure(f"fleet_1000_{label}_over_scan_of_one", over(every, scan), 1.0)
        yield Figure(f"fleet_1000_{label}_on_one_core_over_scan_of_one", over(one, scan))
        yield Figure(f"fleet_1000_{label}_gain_of_all_cores", over(one, every), 1.7, least=True)
    largest = find(rows, group="fleet", models=10_000) or {}
    yield Figure("fleet_10000_peak_GB", largest.get("peak", np.nan) / 1e9, 1.0)


def _growth(rows: Sequence[Row]) -> Iterator[Figure]:
    for name, label in _measured(rows, "length").items():
        there = [row for row in rows if row.get("group") == "length" and row.get("name") == name and "samples" in row]
        there.sort(key=lambda row: row["samples"])
        longest = there[-1]["samples"] if there else 0
        value = _medians(there[-1], there[0]) if there else float("nan")
        yield Figure(f"{label}_step_after_{longest}_samples_over_first_1000", value, FLAT)
    for name, target in (("AGP", 1.0), ("fast-AGP", 0.0)):
        yield Figure(f"{LABELS[name]}_power_of_T", power(along(rows, "T", name)), target + FLAT - 1.0)
    bursts = [times(rows, group="repairs", how=how) for how in ("no jitter", "stuck")]
    plain = times(rows, group="repairs", how="plain")
    yield Figure("burst_of_repairs_over_plain_step", max(over(burst, plain) for burst in bursts), 3.0)


def _medians(above: Row, below: Row) -> float:
    return spread(above["microseconds"]).median / spread(below["microseconds"]).median


def along(rows: Sequence[Row], letter: str, name: str) -> list[tuple[float, float]]:
    """How the time of a step grows with M, T or D."""
    there = [
        row for row in rows if row.get("group") == "scaling" and row.get("along") == letter and row.get("name") == name
    ]
    return sorted((row[letter], spread(row["microseconds"]).median) for row in there)


def _fresh(rows: Sequence[Row]) -> Iterator[Figure]:
    for how, label, target in (("compiled", "compile", 3.0), ("from disk", "from_disk", 0.6)):
        for call in ("init", "prequential", "Online"):
            row = find(rows, group="fresh", name=f"first {call}", how=how)
            yield Figure(f"first_{call.lower()}_{label}_s", _seconds(row), target)
    yield Figure("import_driftgp_s", _seconds(find(rows, group="fresh", name="import driftgp")), 1.0)
    yield Figure("from_driftgp_import_AGP_s", _seconds(find(rows, group="fresh", name="from driftgp import AGP")))
    river = times(rows, group="outside", name=RIVER, size=TOY)
    yield Figure("river_learn_one_and_predict_one_us", spread(river).median if river else float("nan"), 250.0)


def _seconds(row: Row | None) -> float:
    values: Spread | None = spread(row["seconds"]) if row else None
    return values.median if values else float("nan")
