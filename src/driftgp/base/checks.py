"""Checks of the user's arguments. Each error names the argument, the given value and the expected one."""

import math
from typing import Any

import numpy as np

_FLOAT = np.dtype(np.float64)  # in the byte order of this machine
_LONGEST_TEXT = 200  # characters of a value in a sentence
_LONG = 10**60  # a whole number from here on is told by the count of its digits


def real(name: str, value: Any) -> np.ndarray:
    """Return the value as an array of float64, in this machine's byte order."""
    if type(value) is np.ndarray and value.dtype == _FLOAT:
        return value
    if isinstance(value, np.ma.MaskedArray):  # what is masked was not observed
        return _numbers(name, np.ma.filled(value.astype(object), np.nan))
    try:
        array = np.asarray(value)
    except ValueError as error:  # a ragged nest of lists
        raise ValueError(f"{name} must be a rectangular array of numbers; got {value!r}") from error
    if array.dtype.kind in "fiub":
        return array.astype(_FLOAT)
    if array.dtype.kind == "O":
        return _numbers(name, array)
    raise ValueError(f"{name} must hold real numbers; got dtype {array.dtype}")


def _numbers(name: str, array: np.ndarray) -> np.ndarray:
    """An array of Python objects (decimals, fractions, booleans among numbers) as floats, if each is a number."""
    wrong = [entry for entry in array.flat if entry is None or isinstance(entry, (str, bytes, complex))]
    if wrong:
        raise ValueError(f"{name} must hold real numbers; got dtype object with {wrong[0]!r} in it")
    try:
        return array.astype(_FLOAT)
    except OverflowError:
        return np.array([number(name, entry) for entry in array.flat]).reshape(array.shape)  # refuses what is too large
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold real numbers; got dtype object ({error})") from error


def number(name: str, value: Any) -> float:
    """Return a number of any kind as a float.

    >>> number("y", 10**400)
    Traceback (most recent call last):
    ValueError: y must hold numbers of at most 1.8e308 in size; got a whole number of 401 digits
    """
    try:
        return float(value)
    except OverflowError as error:
        raise ValueError(f"{name} must hold numbers of at most 1.8e308 in size; got {shown(value)}") from error
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold real numbers; got {shown(value)}") from error


def shown(value: Any) -> str:
    """A value for a sentence: as Python writes it, unless that is very long."""
    if isinstance(value, int) and abs(value) >= _LONG:
        return f"a whole number of {int(math.log10(abs(value))) + 1} digits"
    try:
        text = repr(value)
    except ValueError:  # Python writes no whole number of more than 4300 digits
        return f"a {type(value).__name__} of thousands of digits"
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"


def surely_finite(array: np.ndarray) -> bool:
    """Whether all numbers are finite, in a microsecond or two: both extremes are (a sum might overflow)."""
    if array.size < 2:
        return array.size == 0 or math.isfinite(array.item())
    ends = np.maximum.reduce(array, axis=None), np.minimum.reduce(array, axis=None)
    return math.isfinite(ends[0]) and math.isfinite(ends[1])


def _refuse(name: str, array: np.ndarray, bad: np.ndarray, what: str) -> None:
    if bad.any():
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        where = f" at index {first if len(first) > 1 else first[0]}" if first else ""
        raise ValueError(f"{name} must {what}; got {array[first]}{where}")


def inputs(name: str, value: Any, width: int | None = None, ndim: int = 2, *, gaps: bool = False) -> np.ndarray:
    """Return inputs as N×D (or D): finite (or NaN, where gaps are allowed) and of the width of the model's start."""
    array = real(name, value)
    if array.ndim != ndim:
        shape = "N×D, one row per sample" if ndim == 2 else "D, one number per input"
        raise ValueError(f"{name} must have shape {shape}; got shape {array.shape}")
    if array.shape[-1] == 0:
        raise ValueError(f"{name} must have at least one input; got shape {array.shape}")
    if width is not None and array.shape[-1] != width:
        raise ValueError(f"{name} must have {width} inputs, as the model was started with; got {array.shape[-1]}")
    if surely_finite(array):
        return array
    if gaps:
        _refuse(name, array, np.isinf(array), "be finite, or NaN where nothing was observed")
    else:
        _refuse(name, array, ~np.isfinite(array), "be finite (fill gaps first, or let the Gaps wrapper do it)")
    return array


def targets(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return targets of the expected shape; NaN stands for "not observed"."""
    array = real(name, value)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}; got shape {array.shape}")
    if not surely_finite(array):
        _refuse(name, array, np.isinf(array), "be finite, or NaN where nothing was observed")
    return array


def elapsed(value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return elapsed times, one number or one per row, none negative."""
    array = real("elapsed", value)
    if array.shape not in ((), shape):
        raise ValueError(f"elapsed must be one number or have shape {shape}; got shape {array.shape}")
    if array.size != 1 or not 0.0 <= array.item() < math.inf:
        _refuse("elapsed", array, ~(np.isfinite(array) & (array >= 0)), "be finite and not negative")
    return array if array.shape == shape else np.full(shape, array)


def whole(name: str, value: Any, at_least: int, at_most: float = math.inf) -> int:
    """Return a whole number that is large enough, and not too large."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < at_least:
        raise ValueError(f"{name} must be a whole number of at least {at_least}; got {shown(value)}")
    if value > at_most:
        raise ValueError(f"{name} must be at most {at_most}; got {shown(value)}")
    return int(value)


def between(name: str, value: Any, low: float, high: float, *, open_low: bool = True) -> float:
    """Return a number within (low, high], or [low, high]."""
    array = real(name, value)
    if array.ndim != 0:
        raise ValueError(f"{name} must be one number; got {value!r}")
    _inside(name, array, value, low, high, open_low=open_low)
    return float(array)


def all_between(name: str, value: Any, low: float, high: float, *, open_low: bool = True) -> tuple[float, ...]:
    """Return several numbers within (low, high], or [low, high]."""
    array = np.atleast_1d(real(name, value))
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} must be a list of numbers; got {value!r}")
    _inside(name, array, value, low, high, open_low=open_low)
    return tuple(array.tolist())


def _inside(name: str, array: np.ndarray, value: Any, low: float, high: float, *, open_low: bool) -> None:
    inside = (array > low) if open_low else (array >= low)
    if not np.all(inside & (array <= high) & np.isfinite(array)):
        interval = f"{'(' if open_low else '['}{low:g}, {high:g}{']' if np.isfinite(high) else ')'}"
        raise ValueError(f"{name} must lie in {interval}; got {value!r}")


def choice(name: str, value: str, options: tuple[str, ...]) -> str:
    """Return one of the options."""
    if value not in options:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}; got {value!r}")
    return value
