"""docs/benchmarks.md, written from the results alone: ratios first, absolute figures second."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import plots
from benchmarks.figures import Figure, best, figures, find, times
from benchmarks.process import Row
from benchmarks.streams import DEFAULTS, GRID, MODELS, TOY, Size
from benchmarks.timing import ratio, spread

TEXTS = Path(__file__).with_name("texts")  # what is said around the tables
NOTHING = "–"
OURS = ("default", "AGP", "hybrid", "fast-AGP")


def write(kept: dict[str, Any], page: Path) -> None:
    """Write the page and its pictures."""
    images = page.parent / "images"
    images.mkdir(parents=True, exist_ok=True)
    plots.draw(kept["rows"], images)
    page.write_text(markdown(kept), encoding="utf-8")


def markdown(kept: dict[str, Any]) -> str:
    """The page."""
    rows: list[Row] = kept["rows"]
    made = "\n".join(f"- `{command}`" for command in kept.get("made", []))
    sections = [
        _text("head"),
        "Made by (in brackets the load of the machine at the start):\n\n" + made,
        table(["", ""], [[name, value] for name, value in kept["machine"].items()]),
        "## Figures beside their limits",
        _figures(rows),
        "## The default model\n\n" + _text("default"),
        _default(rows),
        _calls(rows),
        "## AGP's step\n\n" + _text("steps"),
        _ratios(rows),
        _engines(rows),
        "## Many models at once\n\n" + _text("fleets"),
        _fleet(rows),
        _stored(rows),
        "## How the cost grows\n\n" + _text("growth"),
        _lengths(rows),
        "## Against other models\n\n" + _text("others"),
        *(_others(rows, size) for size in GRID),
        "## Absolute figures",
        _absolute(rows),
        _failures(rows),
        _text("limit"),
        _text("remarks"),
    ]
    return "\n\n".join(section.strip("\n") for section in sections if section) + "\n"


# ---- pieces ----------------------------------------------------------------------------------------------------------


def _text(name: str) -> str:
    return (TEXTS / f"{name}.md").read_text(encoding="utf-8")


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Markdown, numbers to the right of the first column."""
    lines = list(lines)
    if not lines:
        return ""
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *lines))


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
    found = spread(values)
    if len(values) == 1:
        return number(found.median)
    return f"{number(found.median)} ({number(found.low)}–{number(found.high)})"


def _against(above: Sequence[float] | None, below: Sequence[float] | None) -> str:
    if not above or not below:
        return NOTHING
    found = ratio(above, below)
    return f"{number(found.median)} ({number(found.low)}–{number(found.high)})"


def _mega(value: float | None) -> str:
    return NOTHING if value is None else f"{value / 1e6:.3g}"


def _figures(rows: Sequence[Row]) -> str:
    def line(figure: Figure) -> list[str]:
        found, target = figure.found, figure.target
        plain = found.low == found.high or figure.value != figure.value
        value = number(figure.value) + ("" if plain else f" ({number(found.low)}–{number(found.high)})")
        if target is None:
            return [f"`{figure.name}`", value, NOTHING, NOTHING]
        return [f"`{figure.name}`", value, f"{'≥' if figure.least else '≤'} {target:g}", _verdict(figure)]

    return table(["figure", "value", "target", "reached"], map(line, figures(rows)))


def _verdict(figure: Figure) -> str:
    if figure.value != figure.value:
        return "not measured"
    return "yes" if figure.ok else "**no**"


def _default(rows: Sequence[Row]) -> str:
    """The default model by every way to run it, µs per row."""

    def of(name: str, how: str) -> list[str]:
        return [measured(times(rows, group="default", name=name, how=how, size=size)) for size in DEFAULTS]

    def adapter(name: str, how: str) -> list[str]:
        return [measured(times(rows, group="adapters", name=name, how=how, D=size.D)) for size in DEFAULTS]

    lines = [
        ["`Online`: predict and update", *of("default", "calls")],
        ["the same with a 95 % interval", *of("default", "calls with an interval")],
        ["the same calls of three bare AGPs", *of("three AGPs", "calls")],
        ["`prequential`", *of("default", "prequential")],
        ["`prequential` of three bare AGPs", *of("three AGPs", "prequential")],
        ["river: predict_one and learn_one", *adapter("river", "adapter")],
        ["the same model through `Online`", *adapter("river", "direct")],
        ["scikit-learn: partial_fit of 1000 rows", *adapter("scikit-learn", "adapter")],
        ["the same model by `prequential`", *adapter("scikit-learn", "direct")],
    ]
    return table(["µs of CPU per row; M, T, D:", *map(str, DEFAULTS)], lines)


def _calls(rows: Sequence[Row]) -> str:
    there = [row for row in rows if row.get("group") == "call" and "microseconds" in row]
    lines = [[row["name"], measured(row["microseconds"])] for row in there]
    return (
        f"Where the time of a call goes, for a bare AGP at ({TOY}):\n\n" + table(["", "µs per row"], lines)
        if lines
        else ""
    )


def _ratios(rows: Sequence[Row]) -> str:
    def of(name: str, how: str) -> Callable[[Size], list[float] | None]:
        return lambda size: times(rows, group="grid", name=name, how=how, size=size)

    def least(name: str) -> Callable[[Size], list[float] | None]:
        return lambda size: best(rows, "grid", name, size)

    pairs = {
        "AGP in `prequential` / limit in C++": (of("AGP", "prequential"), least("limit")),
        "AGP in `prequential` / whole step by hand in C++": (of("AGP", "prequential"), least("step")),
        "AGP in `prequential` / limit in NumPy": (of("AGP", "prequential"), of("limit", "NumPy")),
        "fast-AGP in `prequential` / step without exchange in C++": (of("fast-AGP", "prequential"), least("fast step")),
        "AGP / fast-AGP in `prequential`": (of("AGP", "prequential"), of("fast-AGP", "prequential")),
        "AGP / hybrid in `prequential`": (of("AGP", "prequential"), of("hybrid", "prequential")),
        **{f"{name} by calls / in `prequential`": (of(name, "calls"), of(name, "prequential")) for name in OURS[1:]},
    }
    lines = [[name, *(_against(above(size), below(size)) for size in GRID)] for name, (above, below) in pairs.items()]
    return table(["M, T, D", *map(str, GRID)], [line for line in lines if set(line[1:]) != {NOTHING}])


def _engines(rows: Sequence[Row]) -> str:
    there = [row for row in rows if row.get("group") == "engines" and row.get("how") == "reference" and "D" in row]
    lines = []
    for row in there:
        size = Size(row["M"], row["T"], row["D"])
        native = times(rows, group="engines", how="native", size=size)
        lines.append(
            [f"{size}", measured(row["microseconds"]), measured(native), _against(row["microseconds"], native)]
        )
    return table(["M, T, D", "NumPy engine, µs per row", "C++ engine, µs per row", "ratio"], lines)


def _fleet(rows: Sequence[Row]) -> str:
    def of(name: str, keys: int, how: str) -> list[float] | None:
        return times(rows, group="fleet", name=name, models=keys, how=how)

    lines = []
    for name in OURS:
        for keys in MODELS:
            row = find(rows, group="fleet", name=name, models=keys, how="all cores")
            if row is None:
                continue
            every, one, single = (of(name, keys, how) for how in ("all cores", "one core", "one model"))
            ways = ("one model", "one core", "eight rows per key", "a tenth of the keys")
            cpu = [of(name, keys, f"{how}, CPU") for how in ways]
            stored = (find(rows, group="fleet", name=name, models=keys, how="to bytes") or {}).get(
                "stored", float("nan")
            )
            lines.append([
                f"{keys} × {name} ({row['M']}, {row['T']}, {row['D']})", _against(every, single), _against(one, every),
                _against(cpu[1], cpu[0]), *map(measured, cpu), number(row["bytes"] / 1e3), number(stored / 1e3),
                _mega(row["peak"]),
            ])  # fmt: skip
    head = [
        "", "all cores / one model", "one core / all cores", "CPU / that of one model", "one model, µs per row",
        "fleet, one row per key", "eight rows per key", "a tenth of the keys", "kB per key", "kB stored", "process, MB",
    ]  # fmt: skip
    return table(head, lines)


def _stored(rows: Sequence[Row]) -> str:
    lines = [
        [f"{row['M']}, {row['T']}, {row['D']}", number(row["bytes"] / 1e3), number(row["stored"] / 1e3)]
        for row in rows
        if row.get("group") == "stored" and "stored" in row
    ]
    return table(["default model; M, T, D", "kB per key in memory", "kB per key stored"], lines)


def _lengths(rows: Sequence[Row]) -> str:
    last = [row for row in rows if row.get("group") == "length" and row.get("how") == "last tenth"]
    lines = []
    for row in last:
        first = times(rows, group="length", name=row["name"], how="first tenth", samples=row["samples"])
        cells = [measured(first), measured(row["microseconds"]), _against(row["microseconds"], first)]
        lines.append([f"{row['name']}, {row['samples']} samples", *cells])
    moved, stayed = (find(rows, group="exchange", how=how) or {} for how in ("exchanges", "stays"))
    text = table(["", "first tenth, µs per row", "last tenth", "ratio"], lines)
    if moved and stayed:
        size = f"({moved['M']}, {moved['T']}, {moved['D']})"
        text += (
            f"\n\nfast-AGP at {size}: {measured(moved['microseconds'])} µs for a step that exchanges a point "
            f"(at {moved['exchanged']:.0%} of the samples of that stream), {measured(stayed['microseconds'])} µs for "
            f"one that does not (an exchange at {stayed['exchanged']:.0%})."
        )
    return text


def _others(rows: Sequence[Row], size: Size) -> str:
    """Every model at one size: how many times AGP's time, its time, error and memory."""
    agp = times(rows, group="grid", name="AGP", how="prequential", size=size)
    there = [
        row
        for row in rows
        if row.get("group") in ("grid", "outside", "rivals")
        and (row.get("M"), row.get("T"), row.get("D")) == size
        and row.get("name") not in ("limit", "step", "fast step")
        and row.get("microseconds")
        and not (row["group"] == "rivals" and row["name"] == "AGP")
    ]
    if not agp or all(row["group"] == "grid" for row in there):
        return ""
    toy = {row["name"]: row["mse"] for row in rows if row.get("group") == "accuracy"} if size == TOY else {}

    def line(row: Row) -> list[str]:
        error: float = row.get("mse", float("nan"))
        error = toy.get(row["name"], error) if row["group"] == "grid" else error
        compared = _against(row["microseconds"], agp)
        memory = [_mega(row.get("bytes")), _mega(row["peak"])]
        return [row["name"], row["how"], compared, measured(row["microseconds"]), number(error), *memory]

    there.sort(key=lambda row: spread(row["microseconds"]).median)
    head = ["", "", "times AGP in `prequential`", "µs per row", "MSE", "state, MB", "process, MB"]
    return f"### (M, T, D) = ({size})\n\n" + table(head, map(line, there))


def _absolute(rows: Sequence[Row]) -> str:
    pairs = dict.fromkeys((row["name"], row["how"]) for row in rows if row.get("group") == "grid" and "name" in row)
    lines = [
        [f"{name}, {how}", *(measured(times(rows, group="grid", name=name, how=how, size=size)) for size in GRID)]
        for name, how in pairs
    ]
    return table(["µs of CPU per row; M, T, D:", *map(str, GRID)], lines)


def _failures(rows: Sequence[Row]) -> str:
    failed = [row for row in rows if "failed" in row]
    if not failed:
        return ""
    lines = [f"- {row['group']} {row.get('name', '')} {row.get('size', '')}: {row['failed']}" for row in failed]
    return "## Not measured\n\n" + "\n".join(lines)
