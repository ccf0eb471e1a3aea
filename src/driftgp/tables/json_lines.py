"""JSON lines, one object per line, as the rows of a table; also a file that is one list of objects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from typing import Any

from driftgp.tables.text import Item, Text


def json_items(text: Text, count: int) -> tuple[tuple[str, ...], Iterator[Item]]:
    """The header, which has the keys of the first objects, and the rows; a key that is missing is a blank cell."""
    place, lines = text.place, text.look(count)
    first = next((line for line in lines if line.strip()), "")
    if first.lstrip().startswith("["):
        values = _parsed("".join(text.lines()), f"{place} cannot be read as JSON")
        if isinstance(values, ValueError):
            raise values
        objects: Iterator[tuple[int, str, Any]] = ((i, f"object {i}", value) for i, value in enumerate(values, 1))
        parsed = values[:count]
    else:
        objects, parsed = _lined(text), [_parsed(line, "") for line in lines]
    header = tuple(dict.fromkeys(chain.from_iterable(value for value in parsed if isinstance(value, dict))))
    if not header:
        found = "has no object in its first lines" if first else "is empty"
        raise ValueError(
            f'{place} {found}: expected one JSON object per line, such as {{"t": 0, "y": 1.5}}, or one list of them'
        )
    return header, ((line, _row(f"{place}, {where}", header, value)) for line, where, value in objects)


def _lined(text: Text) -> Iterator[tuple[int, str, Any]]:
    """The object of each line, with its number and its place; an error for any other line."""
    while True:
        try:
            for line in text.lines():
                text.line += 1
                if line.strip():
                    where = f"line {text.line}"
                    yield text.line, where, _parsed(line, f"{text.place}, {where} cannot be read as a JSON object")
            return
        except ValueError as error:
            text.line = text.there
            yield text.line, "", error


def _parsed(text: str, otherwise: str) -> Any:
    """The value of a JSON text, with numbers as they are written; an error for any other text."""
    try:
        return json.loads(text, parse_float=str, parse_int=str)
    except (ValueError, RecursionError) as error:
        return ValueError(f"{otherwise}: {error}")


def _row(where: str, header: tuple[str, ...], value: Any) -> list[str] | ValueError:
    """The cells of an object, or its error."""
    if isinstance(value, ValueError):
        return value
    if not isinstance(value, dict):
        return ValueError(f"{where} is no JSON object: expected one per line, with the columns as keys")
    new = [key for key in value if key not in header]
    if new:
        return ValueError(
            f"{where} has the key {new[0]!r}, which the first objects have not: they have {', '.join(header)}"
        )
    nested = [key for key in header if isinstance(value.get(key), (dict, list))]
    if nested:
        return ValueError(f"{where}, column {nested[0]!r} holds a list or an object: expected a plain value")
    return [_cell(value.get(key)) for key in header]


def _cell(value: Any) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
