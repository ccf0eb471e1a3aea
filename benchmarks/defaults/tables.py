"""The tables of README.md in this folder and of docs/defaults.md, from the figures that are kept."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.defaults import store
from benchmarks.defaults.cases import SOKNL
from benchmarks.defaults.cost import INPUTS, KEY
from benchmarks.defaults.kept import LIGHTGBM, Kept, kept, mean_rank, names_of
from benchmarks.defaults.score import EFFORTS
from benchmarks.defaults.streams import TEN
from benchmarks.measured import number, table

BEGIN, END = "<!-- figures: python -m benchmarks.defaults -->", "<!-- end of figures -->"
SUMMARY_BEGIN, SUMMARY_END = "<!-- summary: python -m benchmarks.defaults --tables -->", "<!-- end of summary -->"
SUMMARY_PAGE = Path("docs/defaults.md")
NOTHING = "–"


def write(page: Path) -> str:
    """Put all tables between the marks of a page; a page without marks stays as it is."""
    text = markdown()
    between(page, BEGIN, END, text)
    return text


def write_summary(page: Path = SUMMARY_PAGE) -> None:
    """Put the tables for users between the marks of their page."""
    between(page, SUMMARY_BEGIN, SUMMARY_END, summary())


def between(page: Path, begin: str, end: str, text: str) -> None:
    """Put a text between two marks of a page."""
    before = page.read_text(encoding="utf-8")
    if begin not in before or end not in before:
        raise ValueError(f"{page} has no lines {begin!r} and {end!r}: put them where the tables belong")
    head, _, rest = before.partition(begin)
    page.write_text(f"{head}{begin}\n\n{text}\n{end}{rest.partition(end)[2]}", encoding="utf-8")


def markdown() -> str:
    """All tables that there are figures for."""
    found = kept()
    sections = [
        _commands(),
        *_by_stream(found),
        *(section for name, part in PARTS.items() if (section := _part(name, part))),
        _fried(),
        _costs(),
    ]
    return "\n\n".join(filter(None, sections)) + "\n"


def summary() -> str:
    """The tables for users: errors beside LightGBM's, coverage, cost, and what each part is worth."""
    found = kept()
    efforts = [effort for effort in EFFORTS if set(found.get(effort, {})) >= set(TEN)]
    errors = []
    for name, score, power in (("RMSE", "mse", 0.5), ("CRPS", "crps", 1.0)):
        for effort in efforts:
            ratios = [(found[effort][at][score] / found[LIGHTGBM][at][score]) ** power for at in TEN]
            cells = (f"{value:.2f}" for value in (*ratios, _geometric(ratios)))
            errors.append([f"{name}, {effort} effort", *cells])
    coverage = [[f"{effort} effort", *(_coverage(found[effort][at]) for at in TEN)] for effort in efforts]
    time = [[called(name), *(f"{found[name][at]['microseconds']:.0f}" for at in TEN)] for name in (*efforts, LIGHTGBM)]
    sections = [
        "### Errors divided by LightGBM's\n\n" + table(["", *TEN, "mean"], errors),
        "### Coverage of the 95 % interval, % (least of any 500 rows)\n\n" + table(["", *TEN], coverage),
        "### Cost: µs of CPU per row\n\n" + table(["", *TEN], time),
        "### Start and memory\n\n" + table(["", *EFFORTS], _sizes()),
        _part("ablation", PARTS["ablation"]),
    ]
    return "\n\n".join(filter(None, sections)) + "\n"


def _commands() -> str:
    lines = dict.fromkeys(command for source in store.SOURCES for command in store.commands(source))
    return "```sh\n" + "\n".join(lines) + "\n```"


def signed(value: float) -> str:
    """Three decimals, with a true minus and no minus zero.

    >>> signed(-0.25), signed(-0.0001), signed(1.5)
    ('−0.250', '0.000', '1.500')
    """
    return f"{value:z.3f}".replace("-", "−")


def called(method: str) -> str:
    """What a line of a table is called."""
    return f"default, {method} effort" if method in EFFORTS else method


# ---- all methods, all streams ----------------------------------------------------------------------------------------


def _by_stream(found: Kept) -> list[str]:
    """A table for each score: the first line absolute, the others against it."""
    return [
        _against(found, "mse", f"MSE / that of {LIGHTGBM}", _ratio, _geometric),
        _against(found, "nlpd", f"NLPD − that of {LIGHTGBM}", _difference, _arithmetic),
        _against(found, "crps", f"CRPS / that of {LIGHTGBM}", _ratio, _geometric),
        _plain(found, "Coverage of the 95 % interval, % (least of any 500 rows)", _coverage),
        _plain(found, "Coverage of the 50 % and the 80 % interval, %", _inner),
        _plain(found, "Winkler score of the 95 % interval: width, and 40 times what a target is outside", _winkler),
        _plain(
            found, "Coverage of the 95 % interval, %: least hour of day, tenth of forecasts, leaf of a tree", _groups
        ),
        _plain(found, "µs of CPU per row, refits included", lambda scores: number(scores["microseconds"])),
    ]


def _ratio(value: float, base: float) -> float:
    return value / base


def _difference(value: float, base: float) -> float:
    return value - base


def _geometric(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def _arithmetic(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _against(
    found: Kept,
    score: str,
    title: str,
    compare: Callable[[float, float], float],
    average: Callable[[Sequence[float]], float],
) -> str:
    base = found[LIGHTGBM]
    lines = [[f"{LIGHTGBM}, absolute", *(number(base[name][score]) for name in TEN), "", ""]]
    for method in names_of(found):
        values = [compare(found[method][name][score], base[name][score]) for name in TEN if name in found[method]]
        whole = len(values) == len(TEN)
        cells = [_cell(found, method, name, lambda s, n: signed(compare(s[score], base[n][score]))) for name in TEN]
        mean = signed(average(values)) if whole else NOTHING
        lines.append([called(method), *cells, mean, f"{mean_rank(found, method, score):.1f}" if whole else NOTHING])
    return f"### {title}\n\n" + table(["", *TEN, "mean", "mean rank"], lines)


def _plain(found: Kept, title: str, show: Callable[[dict[str, float]], str]) -> str:
    lines = [
        [called(method), *(_cell(found, method, name, lambda scores, _: show(scores)) for name in TEN)]
        for method in names_of(found)
    ]
    there = [line for line in lines if set(line[1:]) != {NOTHING}]
    return f"### {title}\n\n" + table(["", *TEN], there) if there else ""


def _cell(found: Kept, method: str, name: str, show: Callable[[dict[str, float], str], str]) -> str:
    return show(found[method][name], name) if name in found[method] else NOTHING


def _coverage(scores: dict[str, float]) -> str:
    return f"{100 * scores['coverage_95']:.1f} ({100 * scores['worst_window']:.0f})"


def _winkler(scores: dict[str, float]) -> str:
    return number(scores["winkler_95"]) if "winkler_95" in scores else NOTHING


def _groups(scores: dict[str, float]) -> str:
    """Least coverage of groups, where it was measured; streams without times have no hours."""
    if "worst_leaf" not in scores:
        return NOTHING
    shares = [scores.get(name) for name in ("worst_hour", "worst_decile", "worst_leaf")]
    return ", ".join(NOTHING if share is None else f"{100 * share:.0f}" for share in shares)


def _inner(scores: dict[str, float]) -> str:
    return f"{100 * scores['coverage_50']:.1f}, {100 * scores['coverage_80']:.1f}"


# ---- parts -----------------------------------------------------------------------------------------------------------


class Part:
    """How the figures of a part are shown: its title, its columns, and a function from a key and figures to cells."""

    def __init__(self, title: str, head: Sequence[str], cells: Callable[[Any], list[str]]) -> None:
        self.title, self.head, self.cells = title, head, cells


def _numbers(*keys: str) -> Callable[[Any], list[str]]:
    return lambda figures: [number(figures[key]) if key in figures else NOTHING for key in keys]


def _percent(value: float) -> str:
    return f"{100 * value:.2f}"


def _gain(figures: dict[str, float]) -> list[str]:
    """Ratios of RMSE, CRPS and Winkler score, difference of NLPD, and coverage by hour with and without a part."""
    ratios = [figures["mse"] ** 0.5, figures["crps"], figures["winkler_95"]]
    hours = [[figures.get(f"{end}_hour{which}") for end in ("worst", "best")] for which in ("", "_without")]
    shown = (NOTHING if low is None or high is None else f"{100 * low:.0f}–{100 * high:.0f}" for low, high in hours)
    return [*(f"{ratio:.3f}" for ratio in ratios), signed(figures["nlpd"]), *shown]


_GAIN = ["", "RMSE", "CRPS", "Winkler 95", "NLPD, difference", "95 % interval by hour, %", "without"]
PARTS: dict[str, Part] = {
    "wild": Part(
        "One wild cell (50 standard deviations): MSE of the next 50 rows / undisturbed",
        ["", "target", "worst place", "and its lags", "worst place", "input", "worst place", "row of the wild input"],
        _numbers("target", "target_worst", "lags", "lags_worst", "input", "input_worst", "row"),
    ),
    "jump": Part(
        "A level that jumps by 10 standard deviations: rows until the error is back within 20 %",
        ["", "median", "most", "at each place"],
        lambda row: [*_numbers("median", "most")(row), ", ".join(map(str, row["rows"]))],
    ),
    "onehot": Part(
        "CT load from three lags and 24 one-hot hours", ["", "MSE", "NLPD", "CRPS"], _numbers("mse", "nlpd", "crps")
    ),
    "late": Part(
        "Labels that come 24 rows late",
        ["", "MSE / persistence with the same delay", "95 % interval, %"],
        lambda row: [number(row["mse"] / row["persistence"]), _percent(row["coverage_95"])],
    ),
    "long": Part(
        "CT load of all years",
        ["", "MSE", "MSE / linear regression", "95 % interval, %", "µs per row", "most memory, MB"],
        lambda row: [
            number(row["mse"]),
            number(row["mse"] / row["linear"]),
            _percent(row["coverage_95"]),
            number(row["microseconds"]),
            number(row["bytes"] / 1e6),
        ],
    ),
    "toy": Part("The paper's toy stream", ["", "MSE", "95 % interval, %"], lambda row: [
        f"{row['mse']:.4f}", _percent(row["coverage_95"])
    ]),
    "zones": Part(
        "Load of the eight zones with the paper's inputs",
        ["", "MSE", "/ the better of AGP and fast-AGP", "95 % interval, %"],
        lambda row: [number(row["mse"]), number(row["mse"] / row["beyond"]), _percent(row["coverage_95"])],
    ),
    "scale": Part("A scale that depends on the row: medium effort with it / without", _GAIN, _gain),
    "scale, low": Part("A scale that depends on the row: low effort with it / without", _GAIN, _gain),
    "roots": Part("Roots of counts and amounts: medium effort with them / without", _GAIN, _gain),
    "roots, low": Part("Roots of counts and amounts: low effort with them / without", _GAIN, _gain),
    "ablation": Part(
        "What each part is worth: ten streams, against the default",
        ["", "MSE, geometric mean", "MSE, worst stream", "NLPD, mean difference"],
        lambda row: [f"{row['mse']:.3f}", f"{row['worst']:.3f}", signed(row["nlpd"])],
    ),
}  # fmt: skip


def _part(name: str, part: Part) -> str:
    figures = store.read("parts").get(name, {})
    if not figures:
        return ""
    return f"### {part.title}\n\n" + table(part.head, [[key, *part.cells(row)] for key, row in figures.items()])


def _fried() -> str:
    """Errors on Fried's rows, beside what is published of SOKNL."""
    part = store.read("parts").get("fried", {})
    if not part:
        return ""
    head = ["", "after row 1000", "first 1000 rows, without a warm-up"]
    lines = [["default", *_numbers("after_1000", "first_1000")(part)], ["SOKNL, as published", NOTHING, number(SOKNL)]]
    return "### Fried: RMSE\n\n" + table(head, lines)


def _costs() -> str:
    """What each effort costs: one line for each figure."""
    cost = store.read("parts").get("cost", {})
    lines = []
    for name, row in cost.items():
        lines.append([f"{name}: cost per row / {KEY}", *(f"{row[effort]['ratio']:.2f}" for effort in EFFORTS)])
        slow = (row[effort]["slowest_row"] / row[effort]["median_row"] for effort in EFFORTS)
        lines.append([f"{name}: slowest row / median", *map(number, slow)])
    lines += _sizes()
    return "### Cost\n\n" + table(["", *EFFORTS], lines) if lines else ""


def _sizes() -> list[list[str]]:
    """Seconds of a fresh process and memory per key, at each effort."""
    fresh, size = (store.read("parts").get(name, {}) for name in ("fresh", "bytes"))
    lines = []
    if fresh:
        seconds = (number(fresh[effort]["seconds"]) for effort in EFFORTS)
        lines.append(["CPU s of a fresh process until its first prediction, D = 8", *seconds])
    for D in map(str, INPUTS) if size else ():
        cells = (f"{size[effort][D]['memory'] / 1e3:.0f} ({size[effort][D]['stored'] / 1e3:.0f})" for effort in EFFORTS)
        lines.append([f"KB per key in memory (stored), D = {D}", *cells])
    return lines
