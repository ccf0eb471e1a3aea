"""Columns that explain the target too well: probably they are known only together with it.

In the bike-sharing file `casual` and `registered` add up to `cnt`. Whoever predicts from them predicts nothing.
"""

from collections.abc import Sequence

import numpy as np

from driftgp.stream.base_column import TOO_GOOD

_LEAST = 50  # rows


def find_leaks(X: np.ndarray, y: np.ndarray, groups: Sequence[str] = ()) -> tuple[int, ...]:
    """The columns of X (N×C) that give y (N) away: alone, or as few columns of which y is a weighted sum.

    y counts as given away if the error is a small part of its steps from row to row. Columns that were found are left
    out, and the others are searched again, until nothing is found.

    >>> rng = np.random.default_rng(0)
    >>> casual, registered, temp = rng.poisson(20.0, (3, 200)).astype(float)
    >>> find_leaks(np.stack([temp, casual, registered], 1), casual + registered)
    (1, 2)
    >>> find_leaks(np.stack([temp, casual, 2.0 * casual], 1), casual)
    (1, 2)
    >>> find_leaks(np.stack([temp, casual, registered, casual + registered], 1), casual + registered)
    (1, 2, 3)
    """
    if len(y) < _LEAST:
        return ()
    found: set[int] = set()
    with np.errstate(all="ignore"):  # sums of the largest numbers are infinite
        moves = _moves(y, groups)
        while some := _found(np.where(np.isin(np.arange(X.shape[1]), [*found]), np.nan, X), y, moves):
            found |= {*some}
    return tuple(sorted(found))


def _found(X: np.ndarray, y: np.ndarray, moves: float) -> tuple[int, ...]:
    usable = [c for c in range(X.shape[1]) if np.isfinite(X[:, c]).mean() > 0.8 and np.nanstd(X[:, c]) > 0.0]
    rows = np.isfinite(X[:, usable]).all(1) & np.isfinite(y)
    if not usable or rows.sum() < max(_LEAST, 5 * len(usable)) or not 0.0 < moves < np.inf:
        return ()
    Z, y = X[np.ix_(rows, usable)], y[rows]
    Z = (Z - Z.mean(0)) / np.maximum(Z.std(0), np.finfo(float).tiny)
    y = y - y.mean()
    kept = list(range(len(usable)))
    if not np.isfinite(Z).all() or not _error(Z, y) <= TOO_GOOD * moves:
        return ()
    weight = np.abs(np.linalg.lstsq(Z, y)[0])
    for c in np.argsort(weight).tolist():  # do the others explain the target without it?
        others = [other for other in kept if other != c]
        if others and _error(Z[:, others], y) <= TOO_GOOD * moves:
            kept = others
    return tuple(usable[c] for c in kept)


def _moves(y: np.ndarray, groups: Sequence[str]) -> float:
    """Root mean square of the steps from row to row of a series."""
    steps = []
    names = np.array(groups if len(groups) else [""] * len(y))
    for name in dict.fromkeys(names.tolist()):
        own = y[names == name]
        steps.append(np.diff(own[np.isfinite(own)]))
    moved = np.concatenate(steps) if steps else np.zeros(0)
    return float(np.sqrt(np.mean(moved**2))) if len(moved) else 0.0


def _error(Z: np.ndarray, y: np.ndarray) -> float:
    return float(np.sqrt(np.mean((y - Z @ np.linalg.lstsq(Z, y)[0]) ** 2)))
