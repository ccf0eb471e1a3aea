"""A forecaster as bytes, and back: all numbers to the last bit, checked when they are read; no pickle."""

import math
from typing import Any, NamedTuple

import numpy as np

from driftgp.base import sealed
from driftgp.forecasting.asked import Asked, asked
from driftgp.forecasting.grid import Grid
from driftgp.forecasting.placed import HORIZONS, KEPT, Placed, Steps
from driftgp.forecasting.reading import Look, Names, Reader, Rows
from driftgp.forecasting.series import Series
from driftgp.forecasting.zones import zone_of
from driftgp.stream.clock import Clock
from driftgp.stream.keys import Key
from driftgp.stream.plan import Plan

KIND = "forecaster"
_WRONG = (KeyError, TypeError, AttributeError, OverflowError, IndexError, MemoryError)
_PLACES = ("index", "column", "rows")
_LATEST = 1 << 60


class Stored(NamedTuple):
    """What a file holds."""

    settings: Asked
    reader: Reader
    series: dict[Key | None, Placed]
    outspoken: bool = True
    extra: Any = None


def to_bytes(held: Stored) -> bytes:
    """A forecaster as bytes."""
    reader = held.reader
    tree = {
        "settings": held.settings.to_json(),
        "names": reader.names,
        "plan": None if reader.plan is None else reader.plan.to_json(),
        "clock": reader.clock,
        "look": reader.look,
        "begun": reader.begun,
        "blanks": reader.blanks,
        "outspoken": held.outspoken,
        "extra": held.extra,
        "series": [_series_to_json(key, placed) for key, placed in held.series.items()],
    }
    return sealed.seal(KIND, tree)


def _series_to_json(key: Key | None, placed: Placed) -> list[Any]:
    last = placed.last
    return [
        key,
        {
            "waiting": list(placed.waiting),
            "grid": placed.grid,
            "count": placed.length,
            "last": None if last is None else list(last),
            "latest": placed.latest,
            "categories": placed.categories,
            "learned": None if placed.series is None else placed.series.arrays(),
        },
    ]


def from_bytes(data: bytes) -> Stored:
    """What `to_bytes` was given; refuses impossible data."""
    tree = sealed.opened(KIND, data)
    try:
        chosen = asked(**tree["settings"])
        reader = _reader(chosen, tree)
        series: dict[Key | None, Placed] = {}
        for key, held in tree["series"]:
            if key in series or not isinstance(key, (str, int, type(None))) or isinstance(key, bool):
                raise ValueError(f"{str(key)[:60]!r} is no key, or is there twice")
            if (key is None) != (reader.names is None or reader.names.key is None):
                raise ValueError("its series have keys, or none, and its columns say otherwise")
            series[key] = _placed(chosen, reader, held)
        return Stored(chosen, reader, series, tree["outspoken"] is True, tree["extra"])
    except (ValueError, ImportError) as error:
        text = str(error)
        raise ValueError(text if text.startswith(f"{KIND} is ") else f"{KIND} is damaged: {text}") from error
    except _WRONG as error:
        raise ValueError(f"{KIND} is damaged: its header is not complete ({error})") from error


def _reader(chosen: Asked, tree: dict[str, Any]) -> Reader:
    names = None if tree["names"] is None else Names(*map(_text_or_none, tree["names"]))
    plan = None if tree["plan"] is None else Plan.restored(tree["plan"])
    if plan is not None and (plan.names, plan.known) != (chosen.columns, len(chosen.known)):
        raise ValueError("its columns are not those of its settings")
    if names is not None and names.target is None:
        raise ValueError("its target has no name")
    look = Look(*map(_text_or_none, tree["look"]))
    if look.place not in _PLACES or look.title is None:
        raise ValueError("the place of its times is unknown")
    if look.zone is not None:
        zone_of(look.zone)
    blanks = tuple(str(name) for name in tree["blanks"])
    return Reader(names, plan, Clock.restored(tree["clock"]), look, tree["begun"] is True, blanks)


def _placed(chosen: Asked, reader: Reader, held: dict[str, Any]) -> Placed:
    columns = 0 if reader.plan is None else len(reader.plan.names)
    waiting = Rows(*_arrays(held["waiting"], 4, columns))
    last = None if held["last"] is None else Steps(*_arrays(held["last"], 3, columns))
    grid = None if held["grid"] is None else _grid(held["grid"])
    count, latest = held["count"], float(held["latest"])
    if type(count) is not int or not 0 <= count < _LATEST or abs(latest) > _LATEST:
        raise ValueError(f"its number of rows is {str(count)[:60]}, and its last time {latest}")
    if (grid is None) != (last is None) or (last is None) != (held["learned"] is None):
        raise ValueError("a series has only some of its parts")
    if last is not None and len(last.y) > min(count, max(KEPT, HORIZONS * chosen.horizon)):
        raise ValueError("a series has more rows than it keeps")
    categories = () if reader.plan is None or grid is None else reader.plan.checked_categories(held["categories"])
    placed = Placed(waiting, grid, count, last, latest, None, categories)
    if held["learned"] is None:
        return placed
    return placed._replace(series=Series.of(placed.task(chosen, reader), dict(held["learned"])))


def _arrays(stored: Any, parts: int, columns: int) -> list[np.ndarray]:
    """Arrays of one length, the last of them with this number of columns."""
    arrays = [np.asarray(array, np.float64) for array in stored]
    rows = len(arrays[0])
    if len(arrays) != parts or any(array.shape != (rows,) for array in arrays[:-1]):
        raise ValueError("its rows have parts of several lengths")
    if arrays[-1].shape != (rows, columns) or any(np.isinf(array).any() for array in arrays):
        raise ValueError("its rows have other columns than its settings, or numbers that are not finite")
    if any(np.any(np.abs(array) > _LATEST) for array in arrays[:2] if parts == 4):
        raise ValueError("its times are out of range")
    return arrays


def _grid(stored: Any) -> Grid:
    first, step, months, days, dated, on_wall = stored
    sound = all(isinstance(number, (int, float)) and math.isfinite(number) for number in (first, step))
    if (
        not sound
        or not 0.0 < step < _LATEST
        or abs(first) > _LATEST
        or type(months) is not int
        or not 0 <= months < 1200
    ):
        raise ValueError(f"the time between rows cannot be {str(step)[:60]}, or {str(months)[:60]} months")
    if len(days) != 7 or not any(days) or not all(type(flag) is bool for flag in (*days, dated, on_wall)):
        raise ValueError("its days of the week are not seven flags")
    return Grid(float(first), float(step), months, tuple(days), dated, on_wall)


def _text_or_none(value: Any) -> Any:
    if value is not None and not isinstance(value, str):
        raise ValueError(f"a name must be text; got {str(value)[:60]!r}")
    return value
