"""What is measured, in which order; the quick run takes the part that the figures need."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from benchmarks import fresh
from benchmarks.figures import EXACT, GPYTORCH, RIVER
from benchmarks.outside import CONTENDERS
from benchmarks.process import Row, measure
from benchmarks.sizes import GRID, LARGE, LARGEST, LENGTHS, LOAD, MIDDLE, MODELS, TOY, Size

Part = tuple[str, str, Callable[[], Sequence[Row]]]  # group, what is measured, and how

RIVALS = ("AGP", "exact window", "OSGP", "WISKI", "KRLS-T", "w-VSGP", "AGP-VSI")
SCALING = {
    "M": [Size(M, 500, 8) for M in (10, 20, 50, 100, 200)],
    "T": [Size(20, T, 8) for T in (100, 200, 400, 800, 1600, 3200)],
    "D": [Size(20, 100, D) for D in (1, 2, 4, 8, 16, 32, 64)],
}


def plan(quick: bool) -> Iterator[Part]:
    """Every part of a run."""
    yield from _grid(quick)
    yield from _outside(quick)
    yield from _rivals(quick)
    yield from _fleet(quick)
    yield from _growth(quick)
    yield "fresh", "import and first calls", lambda: fresh.fresh(1 if quick else 3)


def _grid(quick: bool) -> Iterator[Part]:
    names = ["AGP", "fast-AGP"] if quick else ["AGP", "hybrid", "fast-AGP"]
    for size in GRID:
        calls = not quick or size in (TOY, LOAD)
        rounds, seconds = (7, 0.05) if quick else (9, 0.2)
        yield "grid", f"({size})", _part("grid", size=size, rounds=rounds, seconds=seconds, names=names, calls=calls)
    yield "accuracy", "AGP on the toy", _part("accuracy", names=names, seeds=_streams(quick))


def _outside(quick: bool) -> Iterator[Part]:
    names = [GPYTORCH, RIVER] if quick else list(CONTENDERS)
    rounds = {TOY: 2} if quick else {TOY: 3, LOAD: 2, MIDDLE: 1, LARGE: 1, LARGEST: 1}
    for size, times in rounds.items():
        seconds = 40.0 if size.T < LARGE.T else 5.0
        for name in names:
            what = f"{name} ({size})"
            runs = _streams(quick) if (name, size) == (GPYTORCH, TOY) else times
            yield "outside", what, _part("outside", timeout=240.0, name=name, size=size, rounds=runs, seconds=seconds)


def _streams(quick: bool) -> int:
    """On how many streams AGP's error is held against GPyTorch's: on a few, chance decides."""
    return 5 if quick else 10


def _rivals(quick: bool) -> Iterator[Part]:
    pair = list(RIVALS[:2])
    rounds = 3 if quick else 5
    for size in (TOY,) if quick else (TOY, LOAD):
        names = pair if quick else list(RIVALS)
        yield "rivals", f"({size})", _part("rivals", size=size, names=names, samples=401, rounds=rounds)
    few = {"samples": 5, "warmup": 5} if quick else {"samples": 40}
    yield "rivals", f"({EXACT})", _part("rivals", size=EXACT, names=pair, rounds=rounds, **few)


def _fleet(quick: bool) -> Iterator[Part]:
    for name in ("AGP",) if quick else ("AGP", "fast-AGP", "hybrid"):
        for models in (1000,) if quick or name == "hybrid" else MODELS[:-1]:
            calls = max(1, 2000 // models)
            arguments = {"name": name, "size": LOAD, "models": models, "rounds": 5, "calls": calls}
            yield "fleet", f"{models} × {name}", _part("fleet", cores=models == 1000, **arguments)
    arguments = {"name": "AGP", "size": LOAD, "models": MODELS[-1], "rounds": 1 if quick else 3, "calls": 1}
    yield "fleet", f"{MODELS[-1]} × AGP", _part("fleet", **arguments)


def _growth(quick: bool) -> Iterator[Part]:
    for name in ("AGP",) if quick else ("AGP", "fast-AGP"):
        longest = LENGTHS[-2 if quick else -1]
        yield "length", f"{name}, {longest} samples", _part("length", size=TOY, name=name, longest=longest)
    for along, sizes in ({"T": [SCALING["T"][0], SCALING["T"][-1]]} if quick else SCALING).items():
        for size in sizes:
            yield "scaling", f"{along}: ({size})", _part("scaling", size=size, along=along, rounds=5, seconds=0.05)
    yield "repairs", f"({TOY})", _part("repairs", size=TOY, rounds=5)
    for size in () if quick else GRID:
        yield "parts", f"({size})", _part("parts", size=size, rounds=5)


def _part(kind: str, **arguments: Any) -> Callable[[], Sequence[Row]]:
    return lambda: measure(kind, **arguments)
