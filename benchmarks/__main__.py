"""`python -m benchmarks`: measure, print every figure with its target, keep the JSON, write the page."""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.figures import figures
from benchmarks.machine import describe
from benchmarks.plan import plan
from benchmarks.process import CACHE, Row
from benchmarks.timing import spread
from driftgp.files import write_atomically

Keep = Callable[[list[Row]], None]
RESULTS = Path("benchmarks/results.json")
SIZED = ("grid", "outside", "rivals", "parts")  # groups that --size picks from


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="what the figures need, in under five minutes")
    parser.add_argument("--only", nargs="+", metavar="GROUP", help="grid, outside, rivals, fleet, length, …")
    parser.add_argument(
        "--size", type=int, nargs=3, metavar=("M", "T", "D"), help="this size alone, where there are several"
    )
    parser.add_argument("--update", action="store_true", help="with --only: the other groups stay as they are kept")
    parser.add_argument("--from-json", action="store_true", help="measure nothing: write the page anew")
    parser.add_argument("--json", type=Path, help="where results are kept")
    parser.add_argument("--page", type=Path, default=Path("docs/benchmarks.md"))
    chosen = parser.parse_args()
    partial = bool(chosen.quick or chosen.only or chosen.size) and not chosen.update
    path = chosen.json or (CACHE / "part.json" if partial and not chosen.from_json else RESULTS)
    before = json.loads(path.read_text(encoding="utf-8")) if chosen.from_json or chosen.update else {}
    old = before.get("rows", [])
    made = [
        *before.get("made", []),
        f"{' '.join(['python -m benchmarks', *sys.argv[1:]])} (load {os.getloadavg()[0]:.1f})",
    ]
    rows = (
        old if chosen.from_json else run(chosen.quick, chosen.only, chosen.size, lambda new: save(path, made, old, new))
    )
    kept = json.loads(path.read_text(encoding="utf-8"))
    if not partial:
        report.write(kept, chosen.page)
    print()
    for figure in figures(kept["rows"]):
        if figure.value == figure.value or not (chosen.only or chosen.size):
            print(figure.line())
    print(f"\n{len(rows)} rows in {path}", file=sys.stderr)


def save(path: Path, made: list[str], old: list[Row], new: list[Row]) -> None:
    """Keep rows that were measured now, and those that were not."""
    there = {what(row) for row in new}
    rows = [row for row in old if what(row) not in there] + new
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"machine": describe(), "made": made, "rows": rows}, indent=1) + "\n"
    write_atomically(path, text.encode())


def what(row: Row) -> tuple[Any, ...]:
    """What a row says something about."""
    return tuple(row.get(key) for key in ("group", "name", "how", "M", "T", "D", "models", "samples", "along"))


def run(quick: bool, only: list[str] | None, size: list[int] | None, keep: Keep) -> list[Row]:
    """Measure part after part, keep what was found and say it."""
    rows: list[Row] = []
    began = time.monotonic()
    for group, title, part in plan(quick):
        if only and group not in only:
            continue
        if size and group in SIZED and not title.endswith(f"({', '.join(map(str, size))})"):
            continue
        found = part()
        rows += found
        keep(rows)
        print(f"[{time.monotonic() - began:5.0f} s] {group}: {title}", file=sys.stderr)
        for row in found:
            print("   ", summary(row), file=sys.stderr, flush=True)
    return rows


def summary(row: Row) -> str:
    """One line for a row."""
    if "failed" in row:
        return f"failed: {row['failed']}"
    said = f"{row.get('name', '')} {row.get('how', '')}".strip()
    values, unit = (row["seconds"], "s") if "seconds" in row else (row.get("microseconds"), "µs")
    if values:
        middle = spread(values)
        said += f": {middle.median:.4g} {unit} ({middle.low:.4g} to {middle.high:.4g})"
    return said + (f", mse {row['mse']:.4f}" if "mse" in row else "")


if __name__ == "__main__":
    main()
