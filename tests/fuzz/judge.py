"""What every forecast of a stream must be, and how its errors compare with those of two simple methods.

Of each row after the first target: mean, variance and ends are finite, low ≤ median ≤ high, and mean and median lie
within the envelope (`distances`). Of each 200 rows that have targets, the RMSE is divided by the smaller one of two
rivals on the same rows: persistence, and recursive linear regression with a memory of 500 rows. A rival that leaves
the envelope is brought back to its end, as the default model is: where an input far beyond all others takes the target
with it, no forecast can both follow and keep that promise. Errors below 10⁻³ of the targets' standard deviation so far
count as that much.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.signal import lfilter

Floats = np.ndarray
BLOCK = 200  # rows of one error
FLOOR = 1e-3  # standard deviations of the targets below which errors count as equal
FORGETTING = 0.998
ABSURD = 1e30  # a target beyond this is a fill value, which no method is judged by
# Times the error of the better rival over 200 rows, at most. With errors floored at 10⁻³, this is an error of about a
# standard deviation where linear regression is exact: over 17 423 times 200 rows at low effort (3036 streams) half of
# the ratios are below 1, 99 % below 76 and 99.9 % below 645. One is larger than 1000, where an exact sum meets an input
# 74 standard deviations out, farther than the model follows any; four, if rivals may leave the envelope.
MOST = 1000.0
FIRST = 10  # targets from which their range says what is far


class Forecasts(NamedTuple):
    """What was said of each row before its target came, N each."""

    mean: Floats
    variance: Floats
    low: Floats
    median: Floats
    high: Floats


class Verdict(NamedTuple):
    """Rows that break a rule, and the errors per 200 rows against the better rival."""

    not_finite: list[int]
    crossed: list[int]
    beyond: list[int]
    ratios: list[float]
    farthest: float  # largest distance of a mean or median from the targets so far, in lengths of their range


def judged(said: Forecasts, X: Floats, y: Floats) -> Verdict:
    """Judge what was said of the rows of a stream."""
    known = np.isfinite(y)
    before = np.concatenate([[0], np.cumsum(known)[:-1]])  # targets before each row
    finite = np.isfinite(np.stack([said.mean, said.variance, said.low, said.median, said.high])).all(0)
    begun = before > 0
    with np.errstate(all="ignore"):
        crossed = finite & ((said.low > said.median) | (said.median > said.high) | (said.variance <= 0.0))
        distance = np.maximum(*(distances(each, y) for each in (said.mean, said.median)))
    beyond = begun & finite & (before >= FIRST) & (distance > 1.0 + 1e-6)
    return Verdict(
        _rows(begun & ~finite),
        _rows(begun & crossed),
        _rows(beyond),
        ratios(said.mean, X, y),
        float(distance[begun & finite & (before >= FIRST)].max(initial=0.0)),
    )


def _rows(wrong: Floats) -> list[int]:
    return [int(row) for row in np.flatnonzero(wrong)]


def distances(value: Floats, y: Floats) -> Floats:
    """How far a forecast lies outside the range of all targets before it, in lengths of that range; 0 within.

    A range of no length counts as 10⁻³ of the level.
    """
    low, high = reach_so_far(y)
    with np.errstate(all="ignore"):  # before the first target there is no range
        length = np.maximum(high - low, 1e-3 * np.maximum(np.abs(high), np.abs(low)) + 1e-12)
        return np.maximum(np.maximum(value - high, low - value), 0.0) / length


def within_reach(value: Floats, y: Floats) -> Floats:
    """Forecasts brought to within the range of all targets before each, widened by its own length on both sides."""
    low, high = reach_so_far(y)
    known = np.concatenate([[0], np.cumsum(np.isfinite(y))[:-1]]) >= FIRST
    low, high = np.where(known, low, 0.0), np.where(known, high, 0.0)
    return np.where(known, np.clip(value, low - (high - low), high + (high - low)), value)


def reach_so_far(y: Floats) -> tuple[Floats, Floats]:
    """Smallest and largest target before each row."""
    low, high = np.where(np.isnan(y), np.inf, y), np.where(np.isnan(y), -np.inf, y)
    lowest, highest = np.minimum.accumulate(low), np.maximum.accumulate(high)
    return np.concatenate([[np.inf], lowest[:-1]]), np.concatenate([[-np.inf], highest[:-1]])


# ---- rivals ----------------------------------------------------------------------------------------------------------


def persistence(y: Floats) -> Floats:
    """The last target before each row; 0 before the first."""
    return np.concatenate([[0.0], carried(y)[:-1]])


def carried(values: Floats) -> Floats:
    """Each value, or the last one before it where it is missing; 0 where there is none."""
    last = np.maximum.accumulate(np.where(np.isnan(values), -1, np.arange(len(values))))
    return np.where(last < 0, 0.0, np.nan_to_num(values[last]))


def linear_regression(X: Floats, y: Floats, forgetting: float = FORGETTING) -> Floats:
    """Forecasts of weighted least squares on all rows before, whose weights shrink by a factor per target.

    Inputs that are missing are carried forward. The sums of products are followed in units of the whole stream, which
    changes nothing but rounding, and solved with a ridge of 10⁻⁹ of each of them.
    """
    X = np.stack([carried(column) for column in X.T], axis=1) if X.shape[1] else np.zeros((len(y), 0))
    Z = np.column_stack([np.ones(len(y)), (X - np.median(X, 0)) / _spread(X)])
    known = np.isfinite(y)
    centre, scale = float(np.median(y[known])), float(_spread(y[known][:, None])[0])
    targets = (y[known] - centre) / scale
    seen = Z[known]
    products = np.concatenate([seen[:, :, None] * seen[:, None, :], (seen * targets[:, None])[:, :, None]], axis=2)
    sums = lfilter([1.0], [1.0, -forgetting], products, axis=0)
    S, b = sums[:, :, :-1], sums[:, :, -1]
    ridge = 1e-9 * np.einsum("nii->ni", S) + 1e-9
    w = np.linalg.solve(S + ridge[:, :, None] * np.eye(Z.shape[1]), b[:, :, None])[:, :, 0]
    count = np.concatenate([[0], np.cumsum(known)[:-1]])
    w = np.concatenate([np.zeros((1, Z.shape[1])), w])[count]
    return np.einsum("ni,ni->n", Z, w) * scale + centre


def _spread(X: Floats) -> Floats:
    low, high = np.quantile(X, [0.1, 0.9], axis=0) if len(X) else np.zeros((2, X.shape[1]))
    size = np.where(high > low, high - low, np.abs(X).max(axis=0, initial=0.0))
    return np.where(size > 0.0, size, 1.0)


def ratios(mean: Floats, X: Floats, y: Floats) -> list[float]:
    """RMSE per 200 targets / the smaller one of the rivals; rows before the first 20 targets are not judged."""
    known = np.flatnonzero(np.isfinite(y) & (np.abs(y) < ABSURD))[20:]
    if not known.size:
        return []
    believed = np.where(np.abs(y) < ABSURD, y, np.nan)
    rivals = [within_reach(each, believed) for each in (persistence(believed), linear_regression(X, y))]
    found = []
    for rows in np.split(known, range(BLOCK, len(known), BLOCK)):
        if len(rows) < BLOCK // 4:
            break
        seen = y[: rows[-1] + 1]
        floor = FLOOR * float(np.std(seen[np.isfinite(seen) & (np.abs(seen) < ABSURD)]))
        errors = [_rmse(each[rows] - y[rows]) for each in (mean, *rivals)]
        if floor == 0.0:  # of a constant, the range counts as 10⁻³ of the value
            floor = FLOOR * 1e-3 * float(np.abs(y[rows]).max())
        floor = max(floor, 1e-300)
        own, *others = (max(error, floor) for error in errors)
        found.append(own / min(others))
    return found


def _rmse(errors: Floats) -> float:
    size = float(np.abs(errors).max(initial=0.0))
    if not np.isfinite(size):
        return np.inf
    return size * float(np.sqrt(np.mean((errors / (size or 1.0)) ** 2)))


# ---- what came of many streams ---------------------------------------------------------------------------------------

RULES = {"not_finite": "not finite", "crossed": "low > median or median > high", "beyond": "beyond the envelope"}


def breaches(found: Mapping[str, Any]) -> list[str]:
    """What is wrong with a stream, in a sentence each."""
    said = [f"{rule} in {len(found[key])} rows from {found[key][0]} on" for key, rule in RULES.items() if found[key]]
    worst = max(found["ratios"], default=1.0)
    if worst > MOST:
        said.append(f"{worst:.3g} times the error of the better rival, over {BLOCK} rows")
    return [f"{each} ({found['description']})" for each in said]


def summary(found: Mapping[int, Mapping[str, Any]]) -> str:
    """Rows and streams that break a rule, and the distribution of the errors against the better rival."""
    rows, seconds = (sum(each[key] for each in found.values()) for key in ("rows", "seconds"))
    lines = [f"  {rows} rows, {1e6 * seconds / max(rows, 1):.0f} µs each"]
    for key, rule in RULES.items():
        wrong = [len(each[key]) for each in found.values() if each[key]]
        lines.append(f"  {rule}: {sum(wrong)} rows of {len(wrong)} streams")
    farthest = max(found, key=lambda number: found[number]["farthest"])
    lines.append(f"  farthest from all targets before: {found[farthest]['farthest']:.3g} of their range, in {farthest}")
    every = [(ratio, number) for number, each in found.items() for ratio in each["ratios"]]
    if every:
        middle, high, higher = np.quantile([ratio for ratio, _ in every], [0.5, 0.99, 0.999])
        lines.append(
            f"  error / better rival, {len(every)} times {BLOCK} rows: median {middle:.3g}, 99 % {high:.3g}, "
            f"99.9 % {higher:.3g}, worst {max(every)[0]:.3g} in {max(every)[1]}"
        )
    return "\n".join(lines)
