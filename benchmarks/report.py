"""docs/benchmarks.md, written from the results alone."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import errors, plots
from benchmarks.defaults.score import EFFORTS
from benchmarks.measured import NOTHING, best, find, inputs_in_words, number, table, times
from benchmarks.plan import INPUTS
from benchmarks.process import Row
from benchmarks.streams import GRID, TOY, Size
from benchmarks.timing import ratio, spread
from driftgp.base.files import write_atomically

TEXTS = Path(__file__).with_name("texts")  # what is said around the tables
OURS = ("AGP", "hybrid", "fast-AGP")


def write(kept: dict[str, Any], page: Path) -> None:
    """Write the page and its pictures."""
    images = page.parent / "images"
    images.mkdir(parents=True, exist_ok=True)
    plots.draw(kept["rows"], images)
    errors.draw(kept["rows"], images / "bench-errors.png")
    write_atomically(page, markdown(kept).encode())


def markdown(kept: dict[str, Any]) -> str:
    """The page: a section is a text and what was measured for it, and is left out where nothing was."""
    rows: list[Row] = kept["rows"]
    sections = [
        _text("head"),
        _circumstances(kept),
        _section("errors", errors.markdown(rows)),
        _section("default", _default(rows)),
        _section("growth", _lengths(rows)),
        _section("fleets", _fleet(rows), _stored(rows)),
        _section("fresh", _fresh(rows)),
        _section("others", *(_others(rows, size) for size in GRID)),
        _section("steps", _absolute(rows), _long_steps(rows), _engines(rows), _calls(rows)),
        _section("limit", _ratios(rows)),
        _text("remarks"),
    ]
    return "\n\n".join(section.strip("\n") for section in sections if section) + "\n"


def _section(name: str, *tables: str) -> str:
    there = [found for found in tables if found]
    return "\n\n".join([_text(name).strip("\n"), *there]) if there else ""


def _circumstances(kept: dict[str, Any]) -> str:
    """The machine, the commands, and how much other work there was."""
    said = table(["", ""], [[name, value] for name, value in kept["machine"].items() if value != "absent"])
    said += "\n\nMade by:\n\n" + "\n".join(f"- `{command}`" for command in kept.get("made", []))
    by_group: dict[str, float] = {}
    for row in kept["rows"]:
        if "others" in row:
            by_group[row["group"]] = max(by_group.get(row["group"], 0.0), row["others"])
    if not by_group:
        return said
    every = [row["others"] for row in kept["rows"] if "others" in row]
    quiet = (
        f"Meanwhile other work used {spread(every).median:.2f} of the {kept['machine']['cores']} cores in the median"
    )
    busiest = max(by_group, key=lambda group: by_group[group])
    return f"{said}\n\n{quiet}, and {by_group[busiest]:.2f} at the most (in the group `{busiest}`)."


# ---- pieces ----------------------------------------------------------------------------------------------------------


def _text(name: str) -> str:
    return (TEXTS / f"{name}.md").read_text(encoding="utf-8")


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


def _default(rows: Sequence[Row]) -> str:
    """The default model by every way to run it, µs per row."""

    def of(effort: str, how: str) -> list[str]:
        return [measured(times(rows, group="default", name=effort, how=how, D=D)) for D in INPUTS]

    def adapter(name: str, how: str) -> list[str]:
        return [measured(times(rows, group="adapters", name=name, how=how, D=D)) for D in INPUTS]

    ways = {
        "prequential": "all rows in one call",
        "calls": "`predict` and `update`, row by row",
        "calls with an interval": "the same with a 95 % interval",
    }
    lines = [[f"{effort} effort, {said}", *of(effort, how)] for effort in EFFORTS for how, said in ways.items()]
    lines += [
        ["river adapter: `predict_one` and `learn_one`", *adapter("river", "adapter")],
        ["the same model through `Online`", *adapter("river", "direct")],
        ["scikit-learn adapter: `partial_fit` of 1000 rows", *adapter("scikit-learn", "adapter")],
        ["the same model and rows in one call", *adapter("scikit-learn", "direct")],
    ]
    run, direct = (find(rows, group="command", name=name) for name in ("driftgp run", "Online.evaluate"))
    said = table(["µs of CPU per row", *map(inputs_in_words, INPUTS)], _there(lines))
    if run and direct:
        pair = (1e6 * spread(row["seconds"]).median / row["rows"] for row in (run, direct))
        whole, inside = map(number, pair)
        said += f"\n\n`driftgp run` over a file of {run['rows']} rows takes {whole} µs per row, from the start of its "
        said += f"process on; `Online.evaluate` of the same rows in a frame takes {inside}."
    return said


def _there(lines: list[list[str]]) -> list[list[str]]:
    return [line for line in lines if set(line[1:]) != {NOTHING}]


def _fresh(rows: Sequence[Row]) -> str:
    """Start-up and memory of a fresh process."""
    lines = []
    for row in rows:
        if row.get("group") != "fresh" or "seconds" not in row:
            continue
        first = row["how"] == "first prediction"
        name = (
            f"{row['name']} effort, {inputs_in_words(row['D'])}: until the first forecast"
            if first
            else f"import {row['name']}"
        )
        lines.append([name, measured(row["seconds"]), _mega(row.get("bytes"))])
    return table(["a fresh process", "CPU, s", "peak of memory, MB"], lines)


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
        **{f"{name} by calls / in `prequential`": (of(name, "calls"), of(name, "prequential")) for name in OURS},
    }
    lines = [[name, *(_against(above(size), below(size)) for size in GRID)] for name, (above, below) in pairs.items()]
    return table(["M, T, D", *map(str, GRID)], _there(lines))


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
    def line(row: Row) -> list[str]:
        def of(how: str) -> list[float] | None:
            return times(rows, group="fleet", name=row["name"], models=row["models"], how=how)

        inputs = f"{row['models']} keys, {row['name']} effort, {inputs_in_words(row['D'])}"
        cpu = [of("one model, CPU"), of("one core, CPU"), of("a tenth of the keys, CPU")]
        gain = _against(of("fifty rows, one core"), of("fifty rows, all cores"))
        whole = _against(of("fifty rows, all cores"), of("one model"))
        return [inputs, *map(measured, cpu), whole, gain, number(row["bytes"] / 1e3), _mega(row["peak"])]

    there = [row for row in rows if row.get("group") == "fleet" and row.get("how") == "all cores"]
    head = [
        "", "one model, µs per row", "one row per key", "one row for a tenth of the keys",
        "fifty rows per key, all cores / one model", "one core / all cores", "kB per key", "process, MB",
    ]  # fmt: skip
    return table(head, map(line, sorted(there, key=lambda row: (row["name"], row["models"]))))


def _stored(rows: Sequence[Row]) -> str:
    there = [row for row in rows if row.get("group") == "stored" and "stored" in row]
    lines = [
        [f"{row['name']} effort, {inputs_in_words(row['D'])}", number(row["bytes"] / 1e3), number(row["stored"] / 1e3)]
        for row in there
    ]
    return table(["", "kB per key in memory", "kB per key stored"], lines)


def _lengths(rows: Sequence[Row]) -> str:
    last = [row for row in rows if row.get("group") == "length" and row.get("how") == "last tenth"]
    lines = []
    for row in last:
        first = times(rows, group="length", name=row["name"], how="first tenth", samples=row["samples"])
        cells = [measured(first), measured(row["microseconds"]), _against(row["microseconds"], first)]
        lines.append([f"{_named(row)}, {row['samples']} rows", *cells])
    return table(["", "first tenth, µs per row", "last tenth", "ratio"], lines)


def _long_steps(rows: Sequence[Row]) -> str:
    """What a step of fast-AGP costs that exchanges a point."""
    moved, stayed = (find(rows, group="exchange", how=how) or {} for how in ("exchanges", "stays"))
    if not moved or not stayed:
        return ""
    size = f"({moved['M']}, {moved['T']}, {moved['D']})"
    return (
        f"fast-AGP at {size}: {measured(moved['microseconds'])} µs for a step that exchanges a point "
        f"(at {moved['exchanged']:.0%} of the samples of that stream), {measured(stayed['microseconds'])} µs for "
        f"one that does not (an exchange at {stayed['exchanged']:.0%})."
    )


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


def _named(row: Row) -> str:
    return f"{row['name']} effort, {inputs_in_words(row['D'])}" if row["name"] in EFFORTS else str(row["name"])
