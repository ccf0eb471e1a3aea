"""JSON lines, one object per line, as the rows of a table; also a file that is one list of objects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from typing import Any

from driftgp.data.ahead import Ahead

Cells = tuple[int, tuple[str, ...]]  # of a row, with its line


def json_rows(place: str, lines: Ahead[str], count: int) -> tuple[tuple[str, ...], Iterator[Cells]]:
    """The header, which has the keys of the first objects, and the rows; a key that is missing is a blank cell."""
    first = next((line for line in lines.look(count) if line.strip()), "")
    source = _Listed(place, lines) if first.lstrip().startswith("[") else _Lined(place, lines)
    keys = dict.fromkeys(chain.from_iterable(source.peek(count)))
    if not keys:
        found = "has no object in its first lines" if first else "is empty"
        raise ValueError(
            f'{place} {found}: expected one JSON object per line, such as {{"t": 0, "y": 1.5}}, or one list of them'
        )
    source.header = tuple(keys)
    return source.header, source


class _Lined(Iterator[Cells]):
    """Rows of a stream of lines, each of which is an object."""

    def __init__(self, place: str, lines: Ahead[str]) -> None:
        self.place, self.lines = place, lines
        self.header: tuple[str, ...] = ()

    def peek(self, count: int) -> list[dict[str, Any]]:
        """The first objects, which stay where they are; those that are none are refused when it is their turn."""
        parsed = []
        for line in self.lines.look(count):
            try:
                value = json.loads(line)
            except ValueError:
                continue
            if isinstance(value, dict):
                parsed.append(value)
        return parsed

    def __next__(self) -> Cells:
        while not (line := next(self.lines)).strip():
            pass
        number = self.lines.given
        try:  # numbers stay as they are written
            value = json.loads(line, parse_float=str, parse_int=str)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{self.place}, line {number} cannot be read as a JSON object: {error}") from error
        return self._row(f"line {number}", number, value)

    def _row(self, where: str, number: int, value: Any) -> Cells:
        if not isinstance(value, dict):
            raise ValueError(
                f"{self.place}, {where} is no JSON object: expected one per line, with the columns as keys"
            )
        new = [key for key in value if key not in self.header]
        if new:
            raise ValueError(
                f"{self.place}, {where} has the key {new[0]!r}, which the first objects have not: they have "
                f"{', '.join(self.header)}"
            )
        return number, tuple(self._cell(where, key, value.get(key)) for key in self.header)

    def _cell(self, where: str, key: str, value: Any) -> str:
        if isinstance(value, (dict, list)):
            raise ValueError(f"{self.place}, {where}, column {key!r} holds a list or an object: expected a plain value")
        return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


class _Listed(_Lined):
    """Rows of one list of objects, which is read as a whole."""

    def __init__(self, place: str, lines: Ahead[str]) -> None:
        super().__init__(place, lines)
        try:
            values = json.loads("".join(lines), parse_float=str, parse_int=str)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{place} cannot be read as JSON: {error}") from error
        self.values, self.number = values, 0

    def peek(self, count: int) -> list[dict[str, Any]]:
        """The first objects."""
        return [value for value in self.values[:count] if isinstance(value, dict)]

    def __next__(self) -> Cells:
        if self.number == len(self.values):
            raise StopIteration
        self.number += 1
        return self._row(f"object {self.number}", self.number, self.values[self.number - 1])
