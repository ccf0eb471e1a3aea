"""Warnings about tables whose rows are of several series, or out of order."""

import numpy as np

from driftgp.base.frames import Column, Table
from driftgp.stream.keys import key_column
from driftgp.stream.settings import Settings

_FEWEST = 20  # rows of a table that is judged
_MOST = 0.5  # share of the rows above which not a few rows are odd, but the table
MIXED, LATE = "have the time of another row", "are older than a row before"


def mixed(table: Table, times: Column | None, settings: Settings) -> str | None:
    """A sentence if most rows of a table without keys share their time with another row; None otherwise.

    >>> from driftgp.base.frames import table
    >>> rows = table([{"t": t, "shop": shop, "y": 1.0} for t in range(20) for shop in ("a", "b")])
    >>> mixed(rows, rows.columns["t"], Settings(target="y", time="t"))
    "20 of 40 rows have the time of another row. 'shop' tells them apart: use Fleet(key='shop')"
    """
    if settings.key is not None or times is None or len(table) < _FEWEST:
        return None
    at = np.asarray(times.values, np.float64)
    repeated = len(at) - len(np.unique(at))
    if repeated < _MOST * len(at):
        return None
    key = key_column(table.columns, at, {settings.target, settings.time})
    remedy = (
        "If there are several series, use Fleet(key=…); else remove repeated rows"
        if key is None
        else f"{key!r} tells them apart: use Fleet(key={key!r})"
    )
    return f"{repeated} of {len(at)} rows {MIXED}. {remedy}"


def unsorted(late: np.ndarray) -> str | None:
    """A sentence if most rows of a table are older than a row before them; None otherwise.

    >>> unsorted(np.arange(100) > 0)
    '99 of 100 rows are older than a row before them. Late rows are predicted, not learned or scored: sort by time'
    """
    if len(late) < _FEWEST or np.sum(late) < _MOST * len(late):
        return None
    return (
        f"{np.sum(late)} of {len(late)} rows {LATE} them. Late rows are predicted, not learned or scored: sort by time"
    )
