"""Looking up what was measured, and tables of it."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks.process import Row
from benchmarks.streams import Size
from benchmarks.timing import spread

NOTHING = "–"


def find(rows: Sequence[Row], **wanted: Any) -> Row | None:
    """The first row that has these values, and a measurement."""
    size: Size | None = wanted.pop("size", None)
    if size is not None:
        wanted |= {"M": size.M, "T": size.T, "D": size.D}
    there = (row for row in rows if "failed" not in row)
    return next((row for row in there if all(row.get(key) == value for key, value in wanted.items())), None)


def times(rows: Sequence[Row], **wanted: Any) -> list[float] | None:
    """Microseconds of the first row that has these values."""
    row = find(rows, **wanted)
    return row.get("microseconds") if row else None


def best(rows: Sequence[Row], group: str, name: str, size: Size) -> list[float] | None:
    """Microseconds of a limit: of its C++ programs, the one that is faster at this size."""
    found = [times(rows, group=group, name=name, how=how, size=size) for how in ("C++ loops", "C++ BLAS")]
    there = [values for values in found if values]
    return min(there, key=lambda values: spread(values).median) if there else None


def power(points: Sequence[tuple[float, float]]) -> float:
    """Slope of a line through points, both axes logarithmic.

    >>> round(power([(1, 3), (10, 30), (100, 300)]), 6)
    1.0
    """
    if len(points) < 2:
        return float("nan")
    x, y = np.log(np.asarray(points, float)).T
    return float(np.polyfit(x, y, 1)[0])


def along(rows: Sequence[Row], letter: str, name: str) -> list[tuple[float, float]]:
    """How the time of a step grows with M, T or D."""
    there = [
        row for row in rows if row.get("group") == "scaling" and row.get("along") == letter and row.get("name") == name
    ]
    return sorted((row[letter], spread(row["microseconds"]).median) for row in there)


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


def inputs_in_words(count: int) -> str:
    """So many inputs.

    >>> inputs_in_words(1), inputs_in_words(8)
    ('1 input', '8 inputs')
    """
    return f"{count} input{'s' * (count != 1)}"
