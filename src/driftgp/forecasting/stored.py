"""A forecaster as bytes, and back: all its numbers to the last bit, checked before they are believed; no pickle."""

import math
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from driftgp import gate
from driftgp.envelope import Envelope, affordable, inflated, packed_numbers
from driftgp.forecasting.calendar import MOST_STEPS, Calendar
from driftgp.forecasting.grid import Grid
from driftgp.forecasting.units import Units
from driftgp.forecasting.work import MODEL, Work
from driftgp.model import Layout
from driftgp.settings_json import model_of, plain

_ENVELOPE = Envelope("forecaster", b"\x89drfcast", 2)
_WORD = np.dtype("<u8")  # in files
_LAYOUT = Layout(1, None, MODEL.fills_gaps)
_ARRAYS = (
    "centre",
    "scale",
    "past",
    "held",
    "earlier",
    "ranges",
    "targets",
    "phi",
    "m",
    "s",
    "z",
    "v",
    "n",
    "R",
    "R_slot",
    "origins_slot",
    "issued",
    "records",
)
_MISSING = ("targets", "z", "held", "ranges")  # where NaN stands for what has not come
_POSITIVE = ("scale", "s", "v", "n", "origins_slot")
_WILD = 1e60  # in units of a usual value: what is larger overflows after a few rows
_LONGEST = 100_000  # rows until there are enough to begin, at most


class Stored(NamedTuple):
    """What a file holds: settings, times, and what has been learned, or else the rows until there are enough."""

    settings: dict[str, Any]  # horizon, season, known
    grid: Grid | None
    work: Work | None
    rows: list[tuple[float, np.ndarray]]


def to_bytes(stored: Stored) -> bytes:
    """A forecaster as bytes."""
    settings, grid, work, rows = stored
    values = np.array([value for value, _ in rows], np.float64)
    ahead = np.array([known for _, known in rows], np.float64).reshape(-1)
    arrays = [values, ahead] if work is None else _arrays(work)
    header = {
        "settings": settings,
        "grid": None if grid is None else [grid.first.isoformat(), grid.step, grid.months],
        "model": plain(MODEL),
        "rows": len(rows),
        "work": None if work is None else _scalars(work),
    }
    numbers = b"".join(_words(array).astype(_WORD, copy=False).tobytes() for array in arrays)
    return _ENVELOPE.seal(header, [packed_numbers(numbers)])


def from_bytes(data: bytes) -> Stored:
    """What `to_bytes` was given, or a refusal of what no forecaster could have left."""
    header, payload = _ENVELOPE.open(data)
    model_of("forecaster", header.get("model"), MODEL)
    try:
        settings, grid = header["settings"], None if header["grid"] is None else _grid(*header["grid"])
        season, known = settings["season"], tuple(map(str, settings["known"]))
        calendar = Calendar(None if grid is None else grid.step, season)
        horizon = settings["horizon"]
        if type(horizon) is not int or not 1 <= horizon <= MOST_STEPS:
            raise ValueError(f"it forecasts {horizon!r} steps, of at most {MOST_STEPS}")
        if header["work"] is None:
            rows = _rows(header["rows"], horizon * len(known), payload)
            return Stored(settings, grid, None, rows)
        first = None if grid is None else grid.first
        work = _work(calendar, horizon, first, horizon * len(known), header["work"], payload)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, MemoryError) as error:
        raise ValueError(f"forecaster is damaged: {error}") from error
    return Stored(settings, grid, work, [])


def _grid(first: Any, step: Any, months: Any) -> Grid:
    if not (isinstance(step, float) and 0.0 < step < math.inf and type(months) is int and 0 <= months < 1200):
        raise ValueError(f"the time between rows cannot be {step!r} seconds, or {months!r} months")
    return Grid(datetime.fromisoformat(first), step, months)


def _rows(count: Any, width: int, payload: memoryview) -> list[tuple[float, np.ndarray]]:
    if type(count) is not int or not 0 <= count <= _LONGEST:
        raise ValueError(f"it says that it has {count!r} rows")
    numbers = _unpacked(payload, count * (1 + width)).view(np.float64)
    values, ahead = numbers[:count], numbers[count:].reshape(count, width)
    if np.isinf(values).any() or not np.isfinite(ahead).all():
        raise ValueError("its rows are not finite")
    return list(zip(values.tolist(), ahead, strict=True))


# ---- what has been learned -------------------------------------------------------------------------------------------


def _arrays(work: Work) -> list[np.ndarray]:
    return [*(getattr(work, name) for name in _ARRAYS), work.sheet.P, work.sheet.w]


def _scalars(work: Work) -> dict[str, Any]:
    units = work.units
    return {"row": work.row, "origins": work.origins, "units": [units.centre, units.scale, units.roots]}


def _work(
    calendar: Calendar, horizon: int, first: datetime | None, others: int, scalars: dict[str, Any], payload: memoryview
) -> Work:
    """A forecaster's work, its numbers those of a file."""
    # most of it: what the steps have to do with each other, the forecasts issued, the regression on outside columns
    most = horizon**2 * (calendar.slots + MODEL.forecast_dtype(1).itemsize // 8) + others**2 + calendar.season
    affordable("what it has learned", 8 * most, len(payload))
    work = Work(calendar, horizon, first, np.zeros(calendar.season), np.zeros((1, others)))
    arrays = _arrays(work)
    sizes = [_words(array).size for array in arrays]
    parts = np.split(_unpacked(payload, sum(sizes)), np.cumsum(sizes)[:-1])
    for array, words in zip(arrays, parts, strict=True):
        array[...] = words.view(array.dtype).reshape(array.shape)
    work.row, work.origins = int(scalars["row"]), float(scalars["origins"])
    centre, scale, roots = scalars["units"]
    work.units = Units(float(centre), float(scale), bool(roots))
    _check(work)
    return work


def _check_array(name: str, array: np.ndarray) -> None:
    if np.isinf(array).any() if name in _MISSING else not np.isfinite(array).all():
        raise ValueError(f"{name} is not finite")
    if np.any(np.abs(array) > _WILD):
        raise ValueError(f"{name} must be at most {_WILD} in its own units")
    if name in _POSITIVE and not np.all(array > 0.0):
        raise ValueError(f"{name} must be above 0")


def _check(work: Work) -> None:
    """Refuse numbers that no row could have left."""
    for name in _ARRAYS[:-2]:
        _check_array(name, getattr(work, name))
    units, numbers = work.units, (work.sheet.P, work.sheet.w, work.issued.view(np.float64))
    if not all(np.all(np.abs(array) <= _WILD) for array in numbers) or np.any(work.issued["variance"] < 0.0):
        raise ValueError(f"the regression and its forecasts must be at most {_WILD}")
    if work.row < 0 or not 1.0 <= work.origins < math.inf or not 0.0 < units.scale < math.inf:
        raise ValueError(f"row {work.row}, {work.origins} origins and {units} cannot be")
    for h in range(work.horizon):
        work.records[h] = gate.admitted(MODEL, _LAYOUT, work.records[h : h + 1].reshape(()))
    R = np.array([work.R, *work.R_slot])
    if np.any(np.linalg.eigvalsh(R)[:, 0] < -1e-6 * np.trace(R, axis1=1, axis2=2)):
        raise ValueError("the dependence between steps is none: it has a negative variance")


# ---- words -----------------------------------------------------------------------------------------------------------


def _words(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint64)


def _unpacked(payload: memoryview, count: int) -> np.ndarray:
    affordable("its part", 8 * count, len(payload))
    return np.frombuffer(inflated(payload, 8 * count), _WORD).astype(np.uint64)
