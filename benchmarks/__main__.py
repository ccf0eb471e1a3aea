"""`python -m benchmarks`: measure, keep the JSON, write docs/benchmarks.md. The machine should be quiet."""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.machine import describe
from benchmarks.plan import PARTS, plan
from benchmarks.process import CACHE, Row
from benchmarks.timing import spread
from driftgp.base.files import write_atomically

Keep = Callable[[list[Row]], None]
RESULTS = Path("benchmarks/results.json")
BUSY = 0.3  # load per core from which times by the wall clock say little
SIZED = ("grid", "engines", "outside", "rivals")  # groups that --size picks from
NAMES = [*PARTS, *dict.fromkeys(group for groups in PARTS.values() for group in groups if group not in PARTS)]


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less of everything, in about five minutes")
    parser.add_argument("--parts", nargs="+", choices=NAMES, metavar="PART", help=", ".join(NAMES))
    parser.add_argument(
        "--size", type=int, nargs=3, metavar=("M", "T", "D"), help="this size alone, where there are several"
    )
    parser.add_argument("--update", action="store_true", help="with --parts: the others stay as they are kept")
    parser.add_argument("--from-json", action="store_true", help="measure nothing: write the page anew")
    parser.add_argument("--json", type=Path, help="where results are kept")
    parser.add_argument("--page", type=Path, default=Path("docs/benchmarks.md"))
    chosen = parser.parse_args()
    partial = bool(chosen.quick or chosen.parts or chosen.size) and not chosen.update
    path = chosen.json or (CACHE / "part.json" if partial and not chosen.from_json else RESULTS)
    again = chosen.from_json or (chosen.update and path.exists())
    before = json.loads(path.read_text(encoding="utf-8")) if again else {}
    old = before.get("rows", [])
    busy = os.getloadavg()[0] / (os.cpu_count() or 1)
    if busy > BUSY and not chosen.from_json:
        print(f"the machine is busy (load {busy:.1f} per core): measure again when it is quiet", file=sys.stderr)
    command = f"{' '.join(['python -m benchmarks', *sys.argv[1:]])} (load {os.getloadavg()[0]:.1f})"
    made = before.get("made", []) if chosen.from_json else [*before.get("made", []), command]
    if not chosen.from_json:
        run(chosen.quick, _groups(chosen.parts), chosen.size, lambda new: save(path, made, old, new))
    kept = json.loads(path.read_text(encoding="utf-8"))
    if not partial:
        report.write(kept, chosen.page)
    print(f"{len(kept['rows'])} rows in {path}", file=sys.stderr)


def _groups(parts: list[str] | None) -> set[str] | None:
    """The groups of measurements that parts have; a group is a part too."""
    return None if parts is None else {group for part in parts for group in PARTS.get(part, (part,))}


def save(path: Path, made: list[str], old: list[Row], new: list[Row]) -> None:
    """Keep rows that were measured now, and those that were not."""
    there = {what(row) for row in new}
    rows = [row for row in old if what(row) not in there] + new
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(_rounded(row)) for row in rows)
    text = f'{{"machine": {json.dumps(describe())},\n"made": {json.dumps(made)},\n"rows": [\n{lines}\n]}}\n'
    write_atomically(path, text.encode())


def _rounded(row: Row) -> Row:
    """A row whose times have five digits."""
    times = {key: [float(f"{value:.5g}") for value in row[key]] for key in ("microseconds", "seconds") if key in row}
    return row | times


def what(row: Row) -> tuple[Any, ...]:
    """What a row says something about."""
    keys = ("group", "name", "how", "M", "T", "D", "models", "samples", "rows", "along")
    return tuple(row.get(key) for key in keys)


def run(quick: bool, groups: set[str] | None, size: list[int] | None, keep: Keep) -> list[Row]:
    """Measure part after part, keep what was found and say it."""
    rows: list[Row] = []
    began = time.monotonic()
    for group, title, part in plan(quick):
        if groups is not None and group not in groups:
            continue
        if size and group in SIZED and not title.endswith(f"({', '.join(map(str, size))})"):
            continue
        found = part()
        rows += found
        keep(rows)
        print(f"[{time.monotonic() - began:5.0f} s] {group}: {title}", file=sys.stderr)
        for row in found:
            print("   ", summary(row), file=sys.stderr, flush=True)
    keep(rows)
    return rows


def summary(row: Row) -> str:
    """One line for a row."""
    if "failed" in row:
        return f"failed: {row['failed']}"
    said = f"{row.get('name', '')} {row.get('how', '')}".strip()
    values, unit = (row["seconds"], "s") if "seconds" in row else (row.get("microseconds"), "µs")
    if values:
        found = spread(values)
        said += f": {found.median:.4g} {unit} ({found.low:.4g} to {found.high:.4g})"
    stored = f", {row['stored']:.0f} bytes per key stored" if "stored" in row else ""
    return said + stored + (f", mse {row['mse']:.4f}" if "mse" in row else "")


if __name__ == "__main__":
    main()
