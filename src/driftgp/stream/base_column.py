"""A forecast from elsewhere among the columns: its place, and reasons to doubt it."""

from collections.abc import Iterator

import numpy as np

from driftgp.base.wording import figure

TOO_GOOD = 0.02  # share of the error of persistence: a column with a smaller error is too good to be honest
LEAST = 50  # rows, on which it can be judged
_RARE = 0.5  # of the rows

Base = str | int | None


def place_of(base: Base) -> int | None:
    """Place of its column among all columns, and of its input among all inputs: a column by name is the first.

    >>> place_of("vendor"), place_of(3), place_of(None)
    (0, 3, None)
    """
    return 0 if isinstance(base, str) else base


def doubts(base: Base, forecast: np.ndarray, y: np.ndarray) -> Iterator[str]:
    """Reasons to doubt a forecast (N) of the targets (N), each a sentence with a remedy.

    >>> y = np.sin(np.arange(60.0))
    >>> [text.split(":")[0] for b in (y, 0.0 * y, 1e3 * y) for text in doubts("vendor", b, y)][1]
    "base 'vendor' has had one value so far, 0"
    """
    there = np.isfinite(forecast) & np.isfinite(y)
    if len(forecast) < LEAST or not np.isfinite(forecast).any():  # a column without any value is named elsewhere
        return
    if np.isfinite(forecast).mean() < _RARE:
        gaps = 1.0 - np.isfinite(forecast).mean()
        yield f"base {base!r} has no value in {gaps:.0%} of the first rows: check the column"
    b, y = forecast[there], y[there]
    if len(b) < LEAST:
        return
    with np.errstate(over="ignore", invalid="ignore"):
        error, spread = float(np.median(np.abs(y - b))), float(np.median(np.abs(y - np.median(y))))
        moves, length = float(np.median(np.abs(np.diff(y)))), np.ptp(y)
        far = int(np.sum((b < y.min() - length) | (b > y.max() + length)))
    if np.ptp(b) == 0.0:
        yield f"base {base!r} has had one value so far, {b[0]:g}: it says nothing; check the column"
    elif error <= TOO_GOOD * moves:
        yield (
            f"base {base!r} is the target almost exactly. If it is known only together with the target, the forecasts "
            "are worthless: leave it out"
        )
    elif not error <= spread:
        yield (
            f"base {base!r} is farther from the target (median {figure(error)}) than the target's own median "
            f"({figure(spread)}): check its units, and that each row has the forecast of its own target"
        )
    elif far:
        yield f"base {base!r} is far outside the targets in {far} of the first {len(b)} rows: check these values"
