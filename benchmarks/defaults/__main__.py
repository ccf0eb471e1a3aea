"""Measure the default model on ten streams, and write the tables of README.md here and of docs/defaults.md.

Without options: the default at all efforts, all parts, then the tables. The figures of the rivals are kept in
`results/` and need not be measured again. Data are looked for where DRIFTGP_DATA says.
"""

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.defaults import score, store
from benchmarks.defaults.score import EFFORTS, Followed
from benchmarks.defaults.streams import TEN, stream
from driftgp.defaults import Effort

PART_NAMES = (
    *("fried", "onehot", "wild", "jump", "late", "long", "toy", "zones"),
    *("cost", "fresh", "bytes", "ablation", "scale", "roots"),
)
BY_EFFORT = ("cost", "fresh", "bytes", "ablation")  # parts that measure all efforts at once


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.defaults", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scores", nargs="*", choices=EFFORTS, metavar="EFFORT", help="the default on the ten streams")
    parser.add_argument("--rivals", nargs="*", metavar="RIVAL", help="the rivals on the ten streams, an hour of CPU")
    parser.add_argument("--part", nargs="+", choices=PART_NAMES, metavar="PART", help=", ".join(PART_NAMES))
    parser.add_argument("--effort", default="medium", choices=EFFORTS, help="effort of the parts that measure one")
    parser.add_argument("--streams", nargs="+", choices=TEN, default=TEN, metavar="STREAM", help=", ".join(TEN))
    parser.add_argument("--tables", action="store_true", help="measure nothing: write the tables")
    parser.add_argument("--page", type=Path, default=Path(__file__).with_name("README.md"))
    chosen = parser.parse_args()
    everything = not (chosen.tables or chosen.part) and chosen.scores is chosen.rivals is None
    if everything or chosen.scores is not None:
        efforts: dict[str, Effort] = {effort: effort for effort in chosen.scores or EFFORTS}
        measure("default", efforts, chosen.streams, lambda name, at: score.follow(stream(at), efforts[name]))
    if chosen.rivals is not None:
        from benchmarks.defaults.rivals import RIVALS, follow

        measure("rivals", chosen.rivals or RIVALS, chosen.streams, lambda rival, name: follow(rival, stream(name)))
    for name in PART_NAMES if everything else chosen.part or ():
        part(name, chosen.effort, chosen.streams)
    if everything or chosen.tables:
        from benchmarks.defaults import ratios, tables

        print(tables.write(chosen.page))
        tables.write_summary()
        ratios.write()


def measure(source: str, methods: Iterable[str], names: Iterable[str], follow: Callable[[str, str], Followed]) -> None:
    """Score methods on streams, one after another, and keep each figure when it is there."""
    for method in methods:
        for name in names:
            followed = follow(method, name)
            found = score.scores(followed) | score.by_group(followed, stream(name))
            store.add(source, method, {name: found})
            print(f"{method}, {name}: {_said(found)}", flush=True)


def part(name: str, effort: Effort, names: Iterable[str]) -> None:
    """Measure and keep one part; efforts other than medium under a name of their own."""
    from benchmarks.defaults import ablation, cases, cost, disturbed

    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "fried": lambda: cases.fried(effort),
        "onehot": lambda: cases.one_hot(effort),
        "wild": lambda: disturbed.wild(effort, list(names)),
        "jump": lambda: disturbed.jump(effort, list(names)),
        "late": lambda: cases.late(effort),
        "long": lambda: cases.long(effort),
        "toy": lambda: cases.toy(effort),
        "zones": lambda: cases.load(effort),
        "cost": cost.cost,
        "fresh": cost.fresh,
        "bytes": cost.size,
        "ablation": lambda: ablation.ablation(names),
        "scale": lambda: ablation.scale(effort, names),
        "roots": lambda: ablation.roots(effort, names),
    }
    found = parts[name]()
    store.add("parts", name if effort == "medium" or name in BY_EFFORT else f"{name}, {effort}", found)
    for key, figures in found.items():
        print(f"{name}, {key}: {_said(figures)}", flush=True)


def _said(figures: Any) -> str:
    """Figures as one line."""
    if not isinstance(figures, dict):
        return f"{figures:.4g}" if isinstance(figures, float) else str(figures)
    return ", ".join(f"{key} {_said(value)}" for key, value in figures.items())


if __name__ == "__main__":
    main()
