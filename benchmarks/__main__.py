"""`python -m benchmarks`: measure on one core, keep the JSON, write docs/benchmarks.md.

    python -m benchmarks                    # all parts, about an hour
    python -m benchmarks errors fleets      # these parts; the others stay as they are kept
    python -m benchmarks --quick            # a little of everything, five minutes: .cache/bench/benchmarks.md
    python -m benchmarks --full             # longer streams, larger sizes, 100 000 keys: some hours
    python -m benchmarks page               # measure nothing: write the page from what is kept

The machine has to be quiet: with other work on it the command stops, unless --busy says to go on.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks import machine, report
from benchmarks.plan import PARTS, Level, plan
from benchmarks.process import CACHE, Row
from benchmarks.timing import spread
from driftgp.base.files import write_atomically

Keep = Callable[[list[Row]], None]
RESULTS, PAGE = Path("benchmarks/results.json"), Path("docs/benchmarks.md")
BUSY, LOOK = 0.2, 3.0  # cores in use by others from which the machine is busy, and seconds to find out
SIZED = ("grid", "engines", "outside", "rivals")  # groups that --size picks from
NAMES = [*PARTS, *dict.fromkeys(group for groups in PARTS.values() for group in groups if group not in PARTS)]


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=[*NAMES, "page", []], metavar="PART", help=", ".join(NAMES))
    parser.add_argument("--quick", action="store_const", const="quick", dest="level", default="usual")
    parser.add_argument("--full", action="store_const", const="full", dest="level")
    parser.add_argument("--size", type=int, nargs=3, metavar=("M", "T", "D"), help="of several sizes, this one alone")
    parser.add_argument("--busy", action="store_true", help="measure although other work is going on")
    chosen = parser.parse_args()
    level: Level = chosen.level
    path, page = (CACHE / RESULTS.name, CACHE / PAGE.name) if level == "quick" else (RESULTS, PAGE)
    if chosen.parts != ["page"]:
        if not _quiet() and not (chosen.busy or level == "quick"):
            sys.exit("measure when the machine is quiet, or add --busy: the page then says how busy it was")
        kept = json.loads(path.read_text(encoding="utf-8")) if chosen.parts and path.exists() else {}
        made = [*kept.get("made", []), f"{date.today()}: {' '.join(['python -m benchmarks', *sys.argv[1:]])}"]
        run(level, _groups(chosen.parts), chosen.size, lambda new: save(path, made, kept.get("rows", []), new))
    found = json.loads(path.read_text(encoding="utf-8"))
    report.write(found, page)
    print(f"{page} is written from {len(found['rows'])} rows in {path}", file=sys.stderr)


def _quiet() -> bool:
    """Whether other work leaves the machine alone; says what it uses."""
    used = machine.others()
    time.sleep(LOOK)
    cores = used()
    load = os.getloadavg()[0]
    print(f"other work uses {cores:.2f} of {os.cpu_count()} cores; load average {load:.1f}", file=sys.stderr)
    return cores <= BUSY


def _groups(parts: list[str]) -> set[str] | None:
    """The groups of measurements that parts have; a group is a part too."""
    return {group for part in parts for group in PARTS.get(part, (part,))} if parts else None


def save(path: Path, made: list[str], old: list[Row], new: list[Row]) -> None:
    """Keep rows that were measured now, and those that were not; what failed is forgotten when it is tried again."""
    there, tried = {what(row) for row in new}, {row["group"] for row in new}
    kept = [row for row in old if what(row) not in there and not ("failed" in row and row["group"] in tried)]
    rows = kept + new
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(_rounded(row)) for row in rows)
    text = f'{{"machine": {json.dumps(machine.describe())},\n"made": {json.dumps(made)},\n"rows": [\n{lines}\n]}}\n'
    write_atomically(path, text.encode())


def _rounded(row: Row) -> Row:
    """A row whose numbers have five digits."""
    rounded = {key: float(f"{row[key]:.5g}") for key in ("mse", "crps", "coverage_95") if key in row}
    times = {key: [float(f"{value:.5g}") for value in row[key]] for key in ("microseconds", "seconds") if key in row}
    return row | rounded | times


def what(row: Row) -> tuple[Any, ...]:
    """What a row says something about."""
    keys = ("group", "name", "how", "M", "T", "D", "models", "samples", "rows", "along")
    return tuple(row.get(key) for key in keys)


def run(level: Level, groups: set[str] | None, size: list[int] | None, keep: Keep) -> list[Row]:
    """Measure part after part, keep what was found and say it."""
    rows: list[Row] = []
    began = time.monotonic()
    for group, title, part in plan(level):
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
