"""The known columns of the steps to come, paired with the steps by key and by time."""

from typing import Any, NamedTuple

import numpy as np

from driftgp.base import frames
from driftgp.base.frames import Column, Table
from driftgp.forecasting.asked import Asked
from driftgp.forecasting.placed import Placed, shown
from driftgp.forecasting.reading import Reader, Rows
from driftgp.stream.keys import Key, codes

_NAMED = 3  # times that a message names


class Future(NamedTuple):
    """Rows to come, by key."""

    rows: dict[Key | None, Rows]
    timed: bool

    @classmethod
    def of(cls, settings: Asked, reader: Reader, given: Any) -> "Future":
        """Rows to come, from a frame, dicts, or an array of the known columns."""
        table = frames.table(given)
        if table is None and hasattr(given, "to_frame"):
            table = frames.table(given.to_frame())
        named = table is not None
        if table is None:
            table = _table(settings, reader, given)
        rows, keys, timed = reader.future(settings, table, timed=named and reader.timed)
        if keys is None:
            return cls({None: rows}, timed)
        different, which = codes(keys)
        return cls({key: rows.some(which == place) for place, key in enumerate(different)}, timed)

    def steps(self, reader: Reader, placed: Placed, key: Key | None) -> int:
        """Number of steps up to the last of these rows."""
        rows = self.rows.get(key)
        if rows is None:
            return 0
        return int(self._places(reader, placed, rows).max(initial=-1)) + 1 if self.timed else len(rows)

    def known(self, settings: Asked, reader: Reader, placed: Placed, key: Key | None, h: int) -> np.ndarray:
        """The columns of the next h steps, h×C; refuses steps without a row, and rows without a value."""
        name = "" if key is None else f" of {key!r}"
        rows = self.rows.get(key)
        if rows is None:
            raise ValueError(f"future has no rows{name}: it must give {_listed(settings)} for each of the {h} steps")
        _, wall = placed.ahead(reader, h)
        if self.timed:
            places = self._places(reader, placed, rows)
            wanted = np.arange(h)
            inside = (places >= 0) & (places < h)
            self._refuse_twice(reader, rows.some(inside), places[inside], name)
            missing = np.setdiff1d(wanted, places[inside])
            if len(missing):
                raise ValueError(
                    f"future has no row for {len(missing)} of the {h} steps{name}: {_times(wall[missing], reader)}. "
                    f"Give {_listed(settings)} for each step from {shown(wall[0], reader)} to {shown(wall[-1], reader)}"
                )
            order = np.argsort(places[inside], kind="stable")
            rows = rows.some(np.flatnonzero(inside)[order])
        elif len(rows) != h:
            raise ValueError(f"future must have one row for each of the {h} steps{name}; it has {len(rows)}")
        made = rows.codes
        for place, column in enumerate(settings.known):
            blank = np.isnan(made[:, place])
            if blank.any():
                when = (
                    f": {_times(wall[blank], reader)}" if reader.timed else f", the first is step {blank.argmax() + 1}"
                )
                raise ValueError(f"future has no value of {column!r} in {int(blank.sum())} of {h} steps{name}{when}")
        return made

    def _places(self, reader: Reader, placed: Placed, rows: Rows) -> np.ndarray:
        """The steps of the rows, counted from 0 for the next one; earlier rows are below 0."""
        assert placed.grid is not None  # noqa: S101
        times = rows.wall if placed.grid.on_wall else rows.at
        places = placed.grid.places(times)
        off = placed.grid.off(times, places) & (places >= placed.length) & ~placed.grid.closed(times)
        if off.any():
            raise ValueError(
                f"future has {int(off.sum())} times that are not on the grid of one row every {placed.grid}, the first "
                f"is {shown(rows.wall[off][0], reader)}"
            )
        return np.where(placed.grid.closed(times), -1, places - placed.length)

    @staticmethod
    def _refuse_twice(reader: Reader, rows: Rows, places: np.ndarray, name: str) -> None:
        order = np.argsort(places, kind="stable")
        again = np.diff(places[order]) == 0
        if again.any():
            first = rows.wall[order][1:][again][0]
            raise ValueError(f"future has two rows for {shown(first, reader)}{name}: leave one of them out")


def none_given(settings: Asked, reader: Reader, placed: Placed, h: int) -> ValueError:
    """The message for missing known columns."""
    _, wall = placed.ahead(reader, h)
    when = f", from {shown(wall[0], reader)} to {shown(wall[-1], reader)}" if reader.timed else ""
    return ValueError(f"future must give {_listed(settings)} for the next {h} steps{when}: forecast({h}, future=frame)")


def _table(settings: Asked, reader: Reader, given: Any) -> Table:
    """An array of the known columns, in their order: only where rows come as arrays too."""
    array = np.asarray(given, np.float64)
    array = array.reshape(-1, 1) if array.ndim == 1 else array
    if array.ndim != 2 or array.shape[1] != len(settings.known):
        raise ValueError(f"future must have the known columns {_listed(settings)}; got an array of shape {array.shape}")
    if reader.names is not None:
        raise ValueError(f"future must be a frame with names, as the rows were: columns {_listed(settings)}, and times")
    columns = {name: Column(name, "numbers", array[:, place]) for place, name in enumerate(settings.known)}
    return Table(columns, single=False)


def _listed(settings: Asked) -> str:
    return ", ".join(settings.known)


def _times(wall: np.ndarray, reader: Reader) -> str:
    some = ", ".join(shown(time, reader) for time in wall[:_NAMED].tolist())
    return some + (", …" if len(wall) > _NAMED else "")
