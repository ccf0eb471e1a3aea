"""Rows until the default is itself again after a stream changes: jumps, ramps, units, a machine that goes off.

    python -m benchmarks.recovery                            every effort
    python -m benchmarks.recovery --effort low --streams 10
    python -m benchmarks.recovery --beside <checkout>        today, and another checkout with its .venv on the same rows

A cold `Online` follows a stream for 1000 rows and then two copies of it go on: one with the rows as they were, one with
the change. Printed is the first row from which the RMSE of 30 rows is within 20 % of that of the same rows unchanged,
in the units of each row: the median over streams, and the most; 500 stands for not within 500 rows. Where targets are
inputs too, those are changed alike.
"""

import argparse
import json
import os
import subprocess
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np

from driftgp import Online
from driftgp.defaults import Effort

BEFORE, AFTER, SMOOTH = 1000, 930, 30
WITHIN = 1.2  # how close an error has to come to the usual one
MOST = 500  # rows that a model has
OFF = 50  # rows for which a machine is off, or on

Floats = np.ndarray
Found = dict[str, dict[str, list[int]]]  # rows until back, by change and by kind of stream


class Rows(NamedTuple):
    """Rows of a stream; `unit` says by what their errors are divided."""

    X: Floats
    y: Floats
    unit: Floats
    judged: int = 0  # the row from which errors are compared, counted from the change


def smooth(rng: np.random.Generator) -> Rows:
    """A smooth function of three inputs, and noise; the last input says that the machine is on."""
    X = rng.normal(size=(BEFORE + AFTER, 3))
    y = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=len(X))
    return _rows(X, y)


def linear(rng: np.random.Generator) -> Rows:
    """An all but exactly linear function."""
    X = rng.normal(size=(BEFORE + AFTER, 4))
    return _rows(X, X @ [1.0, -0.5, 0.3, 0.0] + 0.001 * rng.normal(size=len(X)))


def daily(rng: np.random.Generator) -> Rows:
    """A daily curve with errors that go on for a while; its phase as inputs."""
    angle = 2 * np.pi * np.arange(BEFORE + AFTER) / 24
    errors = rng.normal(size=len(angle)) * 0.1
    for i in range(1, len(errors)):
        errors[i] += 0.7 * errors[i - 1]
    return _rows(np.stack([np.sin(angle), np.cos(angle)], 1), 3.0 + np.sin(angle) + 0.3 * np.cos(2 * angle) + errors)


def _rows(X: Floats, y: Floats) -> Rows:
    return Rows(np.column_stack([X, np.ones(len(X))]), y, np.ones(len(y)))


STREAMS = {"smooth": smooth, "linear": linear, "daily": daily, "daily, lagged": daily}

# ---- changes ---------------------------------------------------------------------------------------------------------


def jump(size: float) -> Callable[[Rows], Rows]:
    """The level moves by a number of standard deviations."""
    return lambda given: given._replace(y=given.y + size * given.y[:BEFORE].std() * _after())


def ramp(slope: float) -> Callable[[Rows], Rows]:
    """The level moves by so many standard deviations per row, for 100 rows, and stays; the rows of the ramp count."""
    rise = np.clip(np.arange(BEFORE + AFTER) - BEFORE, 0, 100)
    return lambda given: given._replace(y=given.y + slope * given.y[:BEFORE].std() * rise)


def targets_times(factor: float) -> Callable[[Rows], Rows]:
    """Another unit of the targets."""
    unit = np.where(_after(), factor, 1.0)
    return lambda given: given._replace(y=given.y * unit, unit=unit)


def inputs_times(factor: float) -> Callable[[Rows], Rows]:
    """Another unit of the inputs; the targets are as they were."""
    unit = np.where(_after(), factor, 1.0)[:, None]
    return lambda given: given._replace(X=given.X * unit)


def off(times: int) -> Callable[[Rows], Rows]:
    """The machine goes off for 50 rows and on again, several times; errors are compared from the last return on."""

    def change(given: Rows) -> Rows:
        since = np.arange(BEFORE + AFTER) - BEFORE
        gone = (since >= 0) & (since < 2 * OFF * times) & (since // OFF % 2 == 0)
        X = given.X.copy()
        X[gone, -1] = 0.0
        # an offset of 1000 sd, as of a machine whose load is far above 0; before the change it is there as well
        y = np.where(gone, 0.0, given.y + 1000.0 * given.y[:BEFORE].std())
        return given._replace(X=X, y=y, judged=(2 * times - 1) * OFF)

    return change


def _after() -> Floats:
    return np.arange(BEFORE + AFTER) >= BEFORE


CHANGES: dict[str, Callable[[Rows], Rows]] = {
    **{f"level + {size:g} sd": jump(size) for size in (3.0, 10.0, 50.0, 1000.0)},
    **{f"ramp of {slope:g} sd per row, 100 rows": ramp(slope) for slope in (0.1, 1.0)},
    "targets × 100": targets_times(100.0),
    "targets ÷ 100": targets_times(0.01),
    "inputs × 100": inputs_times(100.0),
    "inputs ÷ 100": inputs_times(0.01),
    "off for 50 rows": off(1),
    "off for 50 rows, fourth time": off(4),
}

# ---- the measurement -------------------------------------------------------------------------------------------------


def recovery(disturbed: Floats, usual: Floats, rows: int) -> int:
    """First row from which the RMSE of this number of rows is within 20 % of the usual one; all rows if there is no
    such row.

    >>> recovery(np.array([9.0, 9.0, 9.0, 1.0, 1.0, 1.0]), np.ones(6), rows=2)
    3
    """
    above, below = (np.convolve(values, np.ones(rows), "valid") for values in (disturbed, usual))
    back = np.flatnonzero(above <= WITHIN**2 * below)
    return int(back[0]) if back.size else len(above)


def with_lag(given: Rows) -> Rows:
    """The target of the row before as one more input."""
    return given._replace(X=np.column_stack([np.concatenate([given.y[:1], given.y[:-1]]), given.X]))


def squares(online: Online, given: Rows) -> Floats:
    """Squared errors from the change on, in the units of each row."""
    errors = (deepcopy(online).evaluate(given.X[BEFORE:], given.y[BEFORE:]).mean - given.y[BEFORE:]) / given.unit[
        BEFORE:
    ]
    return np.minimum(errors**2, 1e100)


def measured(effort: Effort, streams: int) -> Found:
    """Rows until the error is back, by change and by kind of stream."""
    found: Found = {change: {name: [] for name in STREAMS} for change in CHANGES}
    for name, make in STREAMS.items():
        form = with_lag if name.endswith("lagged") else lambda rows: rows
        for seed in range(streams):
            given = make(np.random.default_rng(seed))
            offset = off(0)(given)  # the same, far above 0
            bases = [(each, Online(effort=effort)) for each in (form(given), form(offset))]
            for rows, online in bases:
                online.update(rows.X[:BEFORE], rows.y[:BEFORE])
            usual = [squares(online, rows) for rows, online in bases]
            for change, changed in CHANGES.items():
                far = change.startswith("off")
                other = form(changed(given))
                judged = slice(other.judged, other.judged + MOST + SMOOTH - 1)
                found[change][name].append(recovery(squares(bases[far][1], other)[judged], usual[far][judged], SMOOTH))
    return found


def elsewhere(checkout: Path, effort: Effort, streams: int) -> Found:
    """The same, measured with the sources of another checkout."""
    command = [str(checkout / ".venv/bin/python"), "-m", "benchmarks.recovery", "--raw"]
    command += ["--effort", effort, "--streams", str(streams)]
    environment = os.environ | {"PYTHONPATH": str(checkout / "src")}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    found: Found = json.loads(done.stdout)
    return found


def table(effort: str, found: Found, beside: Found | None) -> str:
    """Median and most over streams, as Markdown; those of another checkout come first, with an arrow."""
    lines = [f"| {effort}: rows until back | " + " | ".join(STREAMS) + " |", "|---" * (1 + len(STREAMS)) + "|"]
    for change, by_stream in found.items():
        cells = [_cell(rows) for rows in by_stream.values()]
        if beside is not None:
            cells = [f"{_cell(rows)} → {cell}" for rows, cell in zip(beside[change].values(), cells, strict=True)]
        lines.append(f"| {change} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(rows: list[int]) -> str:
    return f"{np.median(rows):.0f} ({max(rows)})"


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recovery", description=__doc__.splitlines()[0])
    parser.add_argument("--effort", choices=get_args(Effort), nargs="*", default=list(get_args(Effort)))
    parser.add_argument("--streams", type=int, default=5, help="of each kind")
    parser.add_argument("--beside", type=Path, help="another checkout, to be measured too")
    parser.add_argument("--raw", action="store_true", help=argparse.SUPPRESS)
    given: Any = parser.parse_args()
    for effort in given.effort:
        found = measured(effort, given.streams)
        if given.raw:
            print(json.dumps(found))
            continue
        beside = None if given.beside is None else elsewhere(given.beside.resolve(), effort, given.streams)
        print(table(effort, found, beside), flush=True)


if __name__ == "__main__":
    main()
