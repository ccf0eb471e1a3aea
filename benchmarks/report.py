"""docs/benchmarks.md, written from the results alone: ratios first, absolute figures second."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import plots
from benchmarks.figures import best, figures, find, times
from benchmarks.process import Row
from benchmarks.sizes import GRID, LENGTHS, MODELS, TOY, Size
from benchmarks.timing import ratio, spread

TEXTS = Path(__file__).with_name("texts")  # what is said around the tables
NOTHING = "–"


def write(kept: dict[str, Any], page: Path) -> None:
    """Write the page and its pictures."""
    images = page.parent / "images"
    images.mkdir(parents=True, exist_ok=True)
    plots.draw(kept["rows"], images)
    page.write_text(markdown(kept), encoding="utf-8")


def markdown(kept: dict[str, Any]) -> str:
    """The page."""
    rows: list[Row] = kept["rows"]
    sections = [
        _text("head"),
        "Made by (in brackets the load of the machine at the start; figures of a busy machine are rough):\n",
        *(f"- `{command}`" for command in kept.get("made", [])),
        "\n" + _table(["", ""], [[name, value] for name, value in kept["machine"].items()]),
        "## What must be shown\n",
        _figures(rows),
        "## Ratios\n\n" + _text("ratios"),
        _ratios(rows),
        "## Against other models\n\n" + _text("others"),
        *(_others(rows, size) for size in GRID),
        "## Many models at once\n\n" + _text("fleet"),
        _fleet(rows),
        "## How the cost grows\n\n" + _text("growth"),
        _lengths(rows),
        "## Where the time goes\n\n" + _text("parts"),
        *(_parts(rows, size) for size in GRID),
        "## Absolute figures",
        _absolute(rows),
        _failures(rows),
        _text("limit"),
        _text("remarks"),
    ]
    return "\n".join(section for section in sections if section)


# ---- pieces ----------------------------------------------------------------------------------------------------------


def _text(name: str) -> str:
    path = TEXTS / f"{name}.md"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    lines = list(lines)
    if not lines:
        return ""
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *lines)) + "\n"


def number(value: float) -> str:
    """Three digits, without powers of ten.

    >>> number(0.01234), number(12.345), number(123456.0), number(float("nan"))
    ('0.0123', '12.3', '123456', '–')
    """
    if value != value:
        return NOTHING
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def measured(values: Sequence[float] | None) -> str:
    """Median and quartiles.

    >>> measured([1.0, 2.0, 3.0]), measured(None)
    ('2 (1.5–2.5)', '–')
    """
    if not values:
        return NOTHING
    middle = spread(values)
    if len(values) == 1:
        return number(middle.median)
    return f"{number(middle.median)} ({number(middle.low)}–{number(middle.high)})"


def _against(above: Sequence[float] | None, below: Sequence[float] | None) -> str:
    if not above or not below:
        return NOTHING
    found = ratio(above, below)
    return f"{number(found.median)} ({number(found.low)}–{number(found.high)})"


def _bytes(value: float | None) -> str:
    return NOTHING if value is None else f"{value / 1e6:.3g}"


def _figures(rows: Sequence[Row]) -> str:
    def target(figure: Any) -> str:
        return NOTHING if figure.target is None else f"{'≥' if figure.least else '≤'} {figure.target:g}"

    lines = [
        [f"`{f.name}`", number(f.value), target(f), NOTHING if f.target is None else "ok" if f.ok else "**short**"]
        for f in figures(rows)
    ]
    return _table(["figure", "value", "target", ""], lines)


def _ratios(rows: Sequence[Row]) -> str:
    def of(name: str, how: str) -> Callable[[Size], list[float] | None]:
        return lambda size: times(rows, group="grid", name=name, how=how, size=size)

    def least(name: str) -> Callable[[Size], list[float] | None]:
        return lambda size: best(rows, "grid", name, size)

    pairs = {
        "AGP in the scan / limit in C++": (of("AGP", "scan"), least("limit")),
        "AGP in the scan / whole step by hand in C++": (of("AGP", "scan"), least("step")),
        "AGP in the scan / limit in NumPy": (of("AGP", "scan"), of("limit", "NumPy")),
        "fast-AGP in the scan / step without exchange in C++": (of("fast-AGP", "scan"), least("fast step")),
        "AGP / fast-AGP in the scan": (of("AGP", "scan"), of("fast-AGP", "scan")),
        "AGP / hybrid in the scan": (of("AGP", "scan"), of("hybrid", "scan")),
        "AGP sample by sample / in the scan": (of("AGP", "calls"), of("AGP", "scan")),
        "hybrid sample by sample / in the scan": (of("hybrid", "calls"), of("hybrid", "scan")),
        "fast-AGP sample by sample / in the scan": (of("fast-AGP", "calls"), of("fast-AGP", "scan")),
    }
    lines = [[name, *(_against(above(size), below(size)) for size in GRID)] for name, (above, below) in pairs.items()]
    return _table(["M, T, D", *map(str, GRID)], lines)


def _others(rows: Sequence[Row], size: Size) -> str:
    """Every model at one size: how many times AGP's time, its time, error and memory."""
    agp = times(rows, group="grid", name="AGP", how="scan", size=size)
    there = [
        row
        for row in rows
        if row.get("group") in ("grid", "outside", "rivals")
        and (row.get("M"), row.get("T"), row.get("D")) == size
        and row.get("name") not in ("limit", "step", "fast step")
        and row.get("microseconds")
        and not (row["group"] == "rivals" and row["name"] == "AGP")
    ]
    if not agp or not there:
        return ""
    toy = {row["name"]: row["mse"] for row in rows if row.get("group") == "accuracy"} if size == TOY else {}

    def line(row: Row) -> list[str]:
        error: float = row.get("mse", float("nan"))
        error = toy.get(row["name"], error) if row["group"] == "grid" else error
        way = {"scan": "in the scan", "calls": "sample by sample"}[row["how"]]
        compared = _against(row["microseconds"], agp)
        memory = [_bytes(row.get("bytes")), _bytes(row["peak"])]
        return [row["name"], way, compared, measured(row["microseconds"]), number(error), *memory]

    there.sort(key=lambda row: spread(row["microseconds"]).median)
    head = ["", "", "times AGP in the scan", "µs a sample", "MSE", "state, MB", "process, MB"]
    return f"### (M, T, D) = ({size})\n\n" + _table(head, map(line, there))


def _fleet(rows: Sequence[Row]) -> str:
    lines = []
    for name in ("AGP", "hybrid", "fast-AGP"):
        for models in MODELS:
            every, one, scan = (
                times(rows, group="fleet", name=name, models=models, how=how)
                for how in ("all cores", "one core", "scan")
            )
            row = find(rows, group="fleet", name=name, models=models, how="all cores")
            if row is not None:
                cells = [_against(every, scan), _against(one, every), measured(every), _bytes(row["peak"])]
                lines.append([f"{models} × {name}", *cells])
    head = ["", "per model and step / scan of one", "one core / all cores", "µs per model and step", "process, MB"]
    return _table(head, lines)


def _lengths(rows: Sequence[Row]) -> str:
    lines = [
        [name, *(measured(times(rows, group="length", name=name, samples=length)) for length in LENGTHS)]
        for name in ("AGP", "fast-AGP")
    ]
    return "µs a step by the length of the stream:\n\n" + _table(
        ["", *(f"{n:,}".replace(",", " ") for n in LENGTHS)], lines
    )


def _parts(rows: Sequence[Row], size: Size) -> str:
    there = [row for row in rows if row.get("group") == "parts" and (row.get("M"), row.get("T"), row.get("D")) == size]
    if not there:
        return ""
    ways = {"scan": "in the scan", "calls": "sample by sample", "C++ loops": "C++, loops", "C++ BLAS": "C++, BLAS"}
    lines = [[f"{ways[row['how']]}: {row['name']}", measured(row["microseconds"])] for row in there]
    return f"### Parts at ({size})\n\n" + _table(["part", "µs"], lines)


def _absolute(rows: Sequence[Row]) -> str:
    pairs = dict.fromkeys((row["name"], row["how"]) for row in rows if row.get("group") == "grid" and "name" in row)
    lines = [
        [f"{name}, {how}", *(measured(times(rows, group="grid", name=name, how=how, size=size)) for size in GRID)]
        for name, how in pairs
    ]
    return _table(["µs a step; M, T, D:", *map(str, GRID)], lines)


def _failures(rows: Sequence[Row]) -> str:
    failed = [row for row in rows if "failed" in row]
    if not failed:
        return ""
    lines = [f"- {row['group']} {row.get('name', '')} {row.get('size', '')}: {row['failed']}" for row in failed]
    return "## Not measured\n\n" + "\n".join(lines) + "\n"
