"""What is measured, in which order, and how much of it: quick, usual or full."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeVar, get_args

from benchmarks.defaults.score import EFFORTS
from benchmarks.defaults.streams import TEN
from benchmarks.errors import METHODS
from benchmarks.outside import CONTENDERS
from benchmarks.process import Row, measure
from benchmarks.streams import GRID, LARGE, LARGEST, LOAD, MIDDLE, TOY, Size

Part = tuple[str, str, Callable[[], Sequence[Row]]]  # group, what is measured, and how
Level = Literal["quick", "usual", "full"]  # five minutes, about an hour, some hours
Value = TypeVar("Value")

# The parts that the command takes, and the groups of measurements that each has.
PARTS = {
    "errors": ("errors",),
    "entry-points": ("default", "adapters", "command", "call"),
    "growth": ("inputs", "length", "scaling"),
    "fleets": ("fleet", "stored"),
    "fresh": ("fresh",),
    "others": ("outside", "rivals", "accuracy"),
    "steps": ("grid", "exchange", "engines", "repairs"),
}
FEW = ("CT", "fried", "lea")
INPUTS = (1, 8, 24)
GROWING = (1, 2, 4, 8, 16, 32, 64)  # inputs of the picture
KEYS = (10, 100, 1000, 10_000, 100_000)
EXACT = Size(50, 1000, 8)  # where AGP is held against the exact window
ENGINES = (TOY, Size(20, 400, 24))  # where the two engines are
GPYTORCH = "GPyTorch exact, 1 step"
RIVALS = ("AGP", "exact window", "OSGP", "WISKI", "KRLS-T", "w-VSGP", "AGP-VSI")
SCALING = {
    "M": [Size(M, 500, 8) for M in (10, 20, 50, 100, 200)],
    "T": [Size(20, T, 8) for T in (100, 200, 400, 800, 1600, 3200)],
    "D": [Size(20, 100, D) for D in (1, 2, 4, 8, 16, 32, 64)],
}


def plan(level: Level) -> Iterator[Part]:
    """Every part of a run."""
    yield from _errors(level)
    yield from _entry_points(level)
    yield from _growth(level)
    yield from _fleets(level)
    rounds = _of(level, 3, 7, 15)
    yield "fresh", "imports and the first prediction", _part("fresh", rounds=rounds, inputs=[INPUTS[0], INPUTS[-1]])
    yield from _others(level)
    yield from _steps(level)


def _of(level: Level, *values: Value) -> Value:
    """The value for a level."""
    return values[get_args(Level).index(level)]


def _errors(level: Level) -> Iterator[Part]:
    """All methods on a stream before the next stream, so that a run that is stopped has whole streams."""
    together: list[list[str]] = _of(level, [list(FEW)], [[name] for name in TEN], [[name] for name in TEN])
    rows = _of(level, 800, 4000, 8000)
    for streams in together:
        for name in METHODS:
            arguments = {"name": name, "streams": streams, "rows": rows}
            yield "errors", f"{name} on {', '.join(streams)}", _part("errors", timeout=3600.0, **arguments)


def _entry_points(level: Level) -> Iterator[Part]:
    rounds, rows = _of(level, 5, 9, 15), _of(level, 500, 2000, 2000)
    for inputs in INPUTS:
        yield "default", f"D = {inputs}", _part("default", inputs=inputs, rounds=rounds, rows=rows)
    for inputs in INPUTS:
        for name in ("river", "scikit-learn"):
            arguments = {"inputs": inputs, "rounds": _of(level, 3, 7, 11), "rows": 300}
            yield "adapters", f"{name}, D = {inputs}", _part("adapters", names=[name], **arguments)
    rows = _of(level, 10_000, 100_000, 100_000)
    yield "command", f"driftgp run, {rows} rows", _part("command", rows=rows, rounds=_of(level, 3, 1, 3))
    yield "call", f"({TOY})", _part("call", size=TOY, rounds=rounds, rows=500)


def _growth(level: Level) -> Iterator[Part]:
    for inputs in GROWING if level != "quick" else (1, 64):
        yield "inputs", f"D = {inputs}", _part("inputs", inputs=inputs, rounds=_of(level, 1, 3, 7), rows=1000)
    wide, long = Size(0, 0, 8), _of(level, 20_000, 200_000, 1_000_000)
    models: dict[str, tuple[Size, int]] = {"low": (wide, long), "medium": (wide, long // 4), "AGP": (TOY, long)}
    if level == "full":
        models |= {"high": (wide, long // 10), "fast-AGP": (TOY, long)}
    for name, (size, samples) in models.items():
        yield "length", f"{name}, {samples} rows", _part("length", size=size, name=name, samples=samples)
    for along, sizes in ({"T": [SCALING["T"][0], SCALING["T"][-1]]} if level == "quick" else SCALING).items():
        for size in sizes:
            yield "scaling", f"{along}: ({size})", _part("scaling", size=size, along=along, rounds=5, seconds=0.05)


def _fleets(level: Level) -> Iterator[Part]:
    sizes = [("low", keys) for keys in KEYS[: _of(level, 3, 4, 5)]]
    for effort, keys in [*sizes, ("medium", 100)]:
        arguments = {"inputs": 8, "keys": keys, "rounds": _of(level, 2, 5, 7), "calls": max(1, 2000 // keys)}
        yield "fleet", f"{keys} × {effort} effort", _part("fleet", effort=effort, **arguments)
    for effort in EFFORTS:
        for D in INPUTS:
            yield "stored", f"{effort}, D = {D}", _part("stored", effort=effort, inputs=D, keys=_of(level, 1, 3, 5))


def _others(level: Level) -> Iterator[Part]:
    streams = _of(level, 2, 5, 10)  # over which errors are averaged: on a few, chance decides
    ours = ["AGP"] if level == "quick" else ["AGP", "hybrid", "fast-AGP"]
    yield "accuracy", "AGP on the toy", _part("accuracy", names=ours, seeds=streams)
    rounds: dict[Size, int] = _of(
        level, {TOY: 1}, {TOY: 2, LOAD: 1}, {TOY: 3, LOAD: 2, MIDDLE: 1, LARGE: 1, LARGEST: 1}
    )
    for size, times in rounds.items():
        seconds = 5.0 if level == "quick" or size.T >= LARGE.T else 40.0
        for name in [GPYTORCH] if level == "quick" else CONTENDERS:
            runs = streams if (name, size) == (GPYTORCH, TOY) else times
            arguments = {"name": name, "size": size, "rounds": runs, "seconds": seconds}
            yield "outside", f"{name} ({size})", _part("outside", timeout=400.0, **arguments)
    pair, all_rivals = list(RIVALS[:2]), list(RIVALS)
    for size in (TOY, LOAD) if level == "full" else (TOY,):
        arguments = {"names": pair if level == "quick" else all_rivals, "samples": 401, "rounds": _of(level, 2, 3, 5)}
        yield "rivals", f"({size})", _part("rivals", size=size, **arguments)
    few = {"samples": 12, "warmup": 5} if level == "quick" else {"samples": 40}
    yield "rivals", f"({EXACT})", _part("rivals", size=EXACT, names=pair, rounds=_of(level, 1, 2, 3), **few)


def _steps(level: Level) -> Iterator[Part]:
    names = ["AGP", "fast-AGP"] if level == "quick" else ["AGP", "hybrid", "fast-AGP"]
    rounds, seconds = _of(level, 5, 11, 15), _of(level, 0.02, 0.1, 0.2)
    for size in GRID:
        calls = level != "quick" or size in (TOY, LOAD)
        yield "grid", f"({size})", _part("grid", size=size, rounds=rounds, seconds=seconds, names=names, calls=calls)
    yield "exchange", f"({LARGE})", _part("exchange", size=LARGE, rounds=rounds, samples=200)
    for size in ENGINES:
        yield "engines", f"({size})", _part("engines", size=size, rounds=rounds, samples=100)
    yield "repairs", f"({TOY})", _part("repairs", size=TOY, rounds=rounds)


def _part(kind: str, **arguments: Any) -> Callable[[], Sequence[Row]]:
    return lambda: measure(kind, **arguments)
