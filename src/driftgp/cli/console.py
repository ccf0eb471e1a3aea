"""Output to the screen: results on standard output; progress, remarks and errors on standard error."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class ShownColumn:
    """A column of a table: key of the row, heading, format; `screen_only` keeps it out of the JSON."""

    key: str
    heading: str
    form: str | Callable[[Any], str] = "{}"
    screen_only: bool = False

    def show(self, value: Any) -> str:
        """Write a value, or a dash for a missing one."""
        missing = value is None or (isinstance(value, float) and math.isnan(value))
        if missing:
            return "–"
        return self.form.format(value) if isinstance(self.form, str) else self.form(value)


def chance(p: float) -> str:
    """A probability by which a difference is one of chance."""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


class Report(Protocol):
    """Called after each step, or after several, with a word for the current task."""

    def __call__(self, doing: str, steps: int = 1) -> None:
        """Advance the progress bar."""


def print_table(columns: Sequence[ShownColumn], rows: Iterable[Mapping[str, Any]], title: str, caption: str) -> None:
    """Print rows as a table for people."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # as text, for brackets in the name of a column are no markup: load [MW]
    table = Table(title=Text(title), caption=Text(caption), title_justify="left", caption_justify="left")
    for column in columns:
        table.add_column(column.heading, justify="left" if column.form == "{}" else "right")
    for row in rows:
        table.add_row(*(Text(column.show(row[column.key])) for column in columns))
    Console().print(table)


def print_notes(notes: Iterable[tuple[str, str]]) -> None:
    """Print names and sentences side by side; those named Warning stand out."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for name, text in notes:
        style = "bold yellow" if name == "Warning" else ""
        table.add_row(Text(name, style), Text(text))
    Console().print(table)


def print_text(text: str) -> None:
    """Print a sentence, in lines of whole words."""
    from rich.console import Console
    from rich.text import Text

    Console().print(Text(text))


def print_json(columns: Sequence[ShownColumn], rows: Iterable[Mapping[str, Any]]) -> None:
    """Print rows as a JSON list of objects for programs; what is not a finite number is null."""
    print(json.dumps(plain_rows(columns, rows), indent=2, allow_nan=False))


def plain_rows(columns: Sequence[ShownColumn], rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows as JSON has them."""
    keys = [column.key for column in columns if not column.screen_only]
    return [finite({key: row[key] for key in keys}) for row in rows]


def finite(value: Any) -> Any:
    """A value, and all values in it, as JSON can hold them."""
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def progress(steps: int, doing: str) -> Iterator[Report]:
    """Show a progress bar with the time left while the block runs."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description:<12}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=_standard_error()) as bar:
        task = bar.add_task(doing, total=steps)
        yield lambda doing, steps=1: bar.update(task, advance=steps, description=doing)
        bar.update(task, completed=steps)


def remark(text: str) -> None:
    """Print a remark."""
    _to_standard_error(text)


def complain(text: str) -> None:
    """Print an error."""
    _to_standard_error(f"Error: {text}", style="red")


def _to_standard_error(text: str, style: str | None = None) -> None:
    console = _standard_error()  # a screen gets whole words on each line, a file one line for each remark
    console.print(text, style=style, highlight=False, markup=False, soft_wrap=not console.is_terminal)


def _standard_error() -> Console:
    from rich.console import Console

    return Console(stderr=True)
