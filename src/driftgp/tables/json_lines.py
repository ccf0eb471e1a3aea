"""JSON lines, one object per line, as the rows of a table; also a file that is one list of objects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from driftgp.tables.lines import Item, Lines, gathered
from driftgp.tables.text import Text

Object = tuple[int, str, Any]  # its line, its place in words, and what it is


def json_lines(text: Text, count: int) -> tuple[tuple[str, ...], Iterator[Lines]]:
    """The header, which has the keys of the first objects, and the rows; a key that is missing is a blank cell."""
    place, lines = text.place, text.look(count)[:count]
    first = next((line for line in lines if line.strip()), "")
    if first.lstrip().startswith("["):
        values = _parsed(b"".join(text), f"{place} cannot be read as JSON")
        if isinstance(values, ValueError):
            raise values
        blocks: Iterable[Iterable[Object]] = ([(i, f"object {i}", value) for i, value in enumerate(values, 1)],)
        parsed = values[:count]
    else:
        blocks, parsed = _lined(text), [_parsed(line, "") for line in lines]
    header = tuple(dict.fromkeys(chain.from_iterable(value for value in parsed if isinstance(value, dict))))
    if not header:
        found = "has no object in its first lines" if first else "is empty"
        raise ValueError(
            f'{place} {found}: expected one JSON object per line, such as {{"t": 0, "y": 1.5}}, or one list of them'
        )
    return header, chain.from_iterable(gathered(_rows(place, header, block), len(header)) for block in blocks)


def _rows(place: str, header: tuple[str, ...], objects: Iterable[Object]) -> Iterator[Item]:
    return ((line, _row(f"{place}, {where}", header, value)) for line, where, value in objects)


def _lined(text: Text) -> Iterator[list[Object]]:
    """The objects of each block of lines; an error for any other line."""
    for first, data in text.blocks():
        if isinstance(data, ValueError):
            yield [(first, "", data)]
            continue
        lines = ((line, f"line {line}", cells) for line, cells in enumerate(data.split(b"\n"), first) if cells.strip())
        yield [
            (line, where, _parsed(cells, f"{text.place}, {where} cannot be read as a JSON object"))
            for line, where, cells in lines
        ]


def _parsed(text: str | bytes, otherwise: str) -> Any:
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
