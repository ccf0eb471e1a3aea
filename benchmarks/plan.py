"""What is measured, in which order; the quick run takes the part that the figures need."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from benchmarks.outside import CONTENDERS
from benchmarks.process import Row, measure
from benchmarks.streams import GRID, LARGE, LARGEST, LOAD, MIDDLE, TOY, Size

Part = tuple[str, str, Callable[[], Sequence[Row]]]  # group, what is measured, and how

# What `--parts` takes, and the groups of measurements that each has.
PARTS = {
    "entry-points": ("default", "adapters", "command", "call"),
    "steps": ("grid", "exchange", "engines", "repairs"),
    "growth": ("length", "scaling"),
    "fleets": ("fleet", "stored"),
    "fresh": ("fresh",),
    "others": ("outside", "rivals", "accuracy"),
}
INPUTS = (1, 8, 24)
KEYS = (10, 100, 1000, 10_000)
MOST_KEYS = 100_000  # at low effort, in a whole run
EXACT = Size(50, 1000, 8)  # where AGP is held against the exact window
ENGINES = (TOY, Size(20, 400, 24))  # where the two engines are
GPYTORCH = "GPyTorch exact, 1 step"
RIVALS = ("AGP", "exact window", "OSGP", "WISKI", "KRLS-T", "w-VSGP", "AGP-VSI")
SCALING = {
    "M": [Size(M, 500, 8) for M in (10, 20, 50, 100, 200)],
    "T": [Size(20, T, 8) for T in (100, 200, 400, 800, 1600, 3200)],
    "D": [Size(20, 100, D) for D in (1, 2, 4, 8, 16, 32, 64)],
}


def plan(quick: bool) -> Iterator[Part]:
    """Every part of a run."""
    yield from _entry_points(quick)
    yield from _steps(quick)
    yield from _growth(quick)
    yield from _fleets(quick)
    inputs = [INPUTS[0], INPUTS[-1]]
    yield "fresh", "imports and the first prediction", _part("fresh", rounds=3 if quick else 15, inputs=inputs)
    yield from _others(quick)


def _entry_points(quick: bool) -> Iterator[Part]:
    rounds = 5 if quick else 15
    for inputs in INPUTS:
        yield "default", f"D = {inputs}", _part("default", inputs=inputs, rounds=rounds, rows=500 if quick else 2000)
    for inputs in INPUTS:
        for name in ("river", "scikit-learn"):
            arguments = {"inputs": inputs, "rounds": 3 if quick else 11, "rows": 300}
            yield "adapters", f"{name}, D = {inputs}", _part("adapters", names=[name], **arguments)
    rows = 10_000 if quick else 100_000
    yield "command", f"driftgp run, {rows} rows", _part("command", rows=rows, rounds=3 if quick else 1)
    yield "call", f"({TOY})", _part("call", size=TOY, rounds=rounds, rows=500)


def _steps(quick: bool) -> Iterator[Part]:
    names = ["AGP", "fast-AGP"] if quick else ["AGP", "hybrid", "fast-AGP"]
    for size in GRID:
        calls = not quick or size in (TOY, LOAD)
        rounds, seconds = (9, 0.05) if quick else (15, 0.2)
        yield "grid", f"({size})", _part("grid", size=size, rounds=rounds, seconds=seconds, names=names, calls=calls)
    rounds = 5 if quick else 11
    yield "exchange", f"({LARGE})", _part("exchange", size=LARGE, rounds=rounds, samples=200)
    for size in ENGINES:
        yield "engines", f"({size})", _part("engines", size=size, rounds=rounds, samples=100)
    yield "repairs", f"({TOY})", _part("repairs", size=TOY, rounds=rounds)


def _growth(quick: bool) -> Iterator[Part]:
    long = 100_000 if quick else 1_000_000
    models: dict[str, tuple[Size, int]] = {"AGP": (TOY, long), "medium": (Size(0, 0, 8), long // 10)}
    if not quick:
        models["fast-AGP"] = (TOY, long)
    for name, (size, samples) in models.items():
        yield "length", f"{name}, {samples} rows", _part("length", size=size, name=name, samples=samples)
    for along, sizes in ({"T": [SCALING["T"][0], SCALING["T"][-1]]} if quick else SCALING).items():
        for size in sizes:
            yield "scaling", f"{along}: ({size})", _part("scaling", size=size, along=along, rounds=5, seconds=0.05)


def _fleets(quick: bool) -> Iterator[Part]:
    inputs = 8
    sizes = [("low", keys) for keys in (KEYS[:3] if quick else (*KEYS, MOST_KEYS))]
    for effort, keys in [*sizes, ("medium", 100)]:
        arguments = {"inputs": inputs, "keys": keys, "rounds": 3 if quick else 7, "calls": max(1, 2000 // keys)}
        yield "fleet", f"{keys} × {effort} effort", _part("fleet", effort=effort, **arguments)
    for effort in ("low", "medium", "high"):
        for D in INPUTS:
            yield "stored", f"{effort}, D = {D}", _part("stored", effort=effort, inputs=D, keys=5)


def _others(quick: bool) -> Iterator[Part]:
    yield (
        "accuracy",
        "AGP on the toy",
        _part("accuracy", names=["AGP"] if quick else ["AGP", "hybrid", "fast-AGP"], seeds=_streams(quick)),
    )
    names = [GPYTORCH] if quick else list(CONTENDERS)
    rounds = {TOY: 2} if quick else {TOY: 3, LOAD: 2, MIDDLE: 1, LARGE: 1, LARGEST: 1}
    for size, times in rounds.items():
        seconds = 40.0 if size.T < LARGE.T else 5.0
        for name in names:
            runs = _streams(quick) if (name, size) == (GPYTORCH, TOY) else times
            arguments = {"name": name, "size": size, "rounds": runs, "seconds": seconds}
            yield "outside", f"{name} ({size})", _part("outside", timeout=240.0, **arguments)
    pair = list(RIVALS[:2])
    for size in (TOY,) if quick else (TOY, LOAD):
        arguments = {"names": pair if quick else list(RIVALS), "samples": 401, "rounds": 3 if quick else 5}
        yield "rivals", f"({size})", _part("rivals", size=size, **arguments)
    few = {"samples": 12, "warmup": 5} if quick else {"samples": 40}
    yield "rivals", f"({EXACT})", _part("rivals", size=EXACT, names=pair, rounds=3, **few)


def _streams(quick: bool) -> int:
    """On how many streams AGP's error is held against GPyTorch's: on a few, chance decides."""
    return 5 if quick else 10


def _part(kind: str, **arguments: Any) -> Callable[[], Sequence[Row]]:
    return lambda: measure(kind, **arguments)
