"""Random streams from a grammar, by seed: what a default model meets in months of use, composed from small parts.

A stream is built in five steps, each of which draws from a list of named parts, and `Stream.description` says which:

    inputs       noise, walks, heavy tails, counts, constants, flags that return, seasons, sums of others, lags, text
    function     what the target is of the inputs or of its own past, exact or not
    regimes      stretches of rows with their own level, scale, ramp, constant or other function; on and off in turn
    observation  noise, heavy tails, counts, rounding, limits
    damage       missing stretches, other units, wild cells, fill values, irregular times

A case runs the default model over such a stream and judges every row (`tests.fuzz.judge`).
"""

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from driftgp import Online
from driftgp.defaults import Effort
from driftgp.predictions import Prediction
from tests.fuzz.judge import Forecasts, judged

Rng = np.random.Generator
Floats = np.ndarray
SHORTEST, LONGEST = 300, 3000
ONCE = 400  # rows that choose the model
FILL = 9.969209968386869e36  # the fill value of netCDF
JUMPS = (3.0, 10.0, 50.0, 1000.0)  # standard deviations
DAY = 24


class Stream(NamedTuple):
    """Rows to be predicted one after another, and how they came about."""

    X: Floats  # N×D, NaN where an input is missing
    y: Floats  # N, NaN where a target is missing
    elapsed: Floats | None  # time between rows, in usual steps; None where every row is one step
    labels: list[str] | None  # a column of text beside the numbers
    description: tuple[str, ...]


class Draft:
    """A stream while it is made."""

    def __init__(self, rng: Rng, rows: int) -> None:
        """Start with no column and no target."""
        self.rng, self.rows = rng, rows
        self.columns: list[Floats] = []
        self.lags: list[int] = []  # of the target, as inputs
        self.y = np.zeros(rows)
        self.usual = 1.0  # spread of the target before anything changes
        self.on: Floats | None = None  # 1 while a machine is on
        self.elapsed: Floats | None = None
        self.labels: list[str] | None = None
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def one_of(self, things: Any) -> Any:
        return things[self.rng.integers(len(things))]

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def stretch(self, shortest: int = 20, longest: float = 0.4) -> slice:
        """Some rows, one after another."""
        length = int(self.rng.integers(shortest, max(int(longest * self.rows), shortest + 1)))
        begin = int(self.rng.integers(0, self.rows - length))
        return slice(begin, begin + length)

    def size(self) -> float:
        """A size anywhere between 10⁻³ and 10⁵."""
        return float(10.0 ** self.rng.uniform(-3.0, 5.0))

    def noise(self) -> Floats:
        return self.rng.normal(size=self.rows)

    @property
    def X(self) -> Floats:
        return np.stack(self.columns, axis=1) if self.columns else np.zeros((self.rows, 0))


Part = Callable[[Draft], str]

# ---- inputs ----------------------------------------------------------------------------------------------------------


def _add(draft: Draft, column: Floats, name: str) -> str:
    draft.columns.append(np.asarray(column, np.float64))
    return name


def on_and_off(draft: Draft, rows: int) -> Floats:
    """0 and 1 in turn, each for so many rows, or for so many in the mean."""
    if draft.chance(0.5):
        return ((np.arange(draft.rows) // rows) % 2).astype(np.float64)
    return np.cumsum(draft.rng.random(draft.rows) < 1.0 / rows) % 2.0


def returning_flag(draft: Draft) -> str:
    """A flag that is set for a while, then for most of the stream not, and then again."""
    flag, rows = np.zeros(draft.rows), draft.rows
    first, again = int(rows * draft.rng.uniform(0.02, 0.15)), int(rows * draft.rng.uniform(0.75, 0.95))
    flag[first : first + draft.rng.integers(1, 15)] = 1.0
    flag[again : again + draft.rng.integers(1, 30)] = 1.0
    return _add(draft, flag, "a flag that returns")


def copied(draft: Draft) -> str:
    """A sum of other columns, exactly, or all but exactly."""
    if not draft.columns:
        return _add(draft, draft.noise(), "noise")
    off = draft.one_of((0.0, 1e-12, 1e-6, 1e-3))
    sums = draft.X @ draft.rng.integers(-2, 3, len(draft.columns)).astype(np.float64)
    return _add(draft, sums + off * draft.noise(), f"a sum of other inputs ± {off:g}")


def lagged(draft: Draft) -> str:
    lag = int(draft.one_of((1, 1, 2, DAY)))
    draft.lags.append(lag)
    return f"target {lag} rows ago"


def labelled(draft: Draft) -> str:
    """Text: a few categories, of which some come late, or go."""
    codes = draft.rng.integers(0, 3, draft.rows)
    codes[draft.stretch()] = 3
    codes[draft.stretch(1, 0.02)] = 4
    draft.labels = [f"kind {code}" for code in codes]
    draft.y += draft.rng.normal(size=5)[codes]
    return "text"


def switched(draft: Draft) -> str:
    draft.on = on_and_off(draft, int(draft.rng.integers(10, 120)))
    return _add(draft, draft.on, "on or off") if draft.chance(0.7) else "on or off, which no input says"


INPUTS: tuple[tuple[float, Part], ...] = (
    (3.0, lambda d: _add(d, d.noise(), "noise")),
    (1.0, lambda d: _add(d, d.rng.uniform(0.0, 1.0, d.rows), "uniform")),
    (1.0, lambda d: _add(d, np.cumsum(d.noise()), "a walk")),
    (1.0, lambda d: _add(d, np.arange(d.rows) / 100.0, "row number")),
    (1.0, lambda d: _add(d, d.rng.standard_t(1.5, d.rows), "heavy tails")),
    (1.0, lambda d: _add(d, np.exp(1.5 * d.noise()), "lognormal")),
    (1.0, lambda d: _add(d, d.rng.poisson(d.one_of((0.3, 3.0, 50.0)), d.rows), "counts")),
    (0.5, lambda d: _add(d, np.full(d.rows, d.one_of((0.0, 1.0, -7.5, 1e6))), "constant")),
    (1.0, lambda d: _add(d, d.rng.integers(0, 2, d.rows), "flag")),
    (1.0, lambda d: _add(d, np.sin(2 * np.pi * np.arange(d.rows) / DAY), "hour as a sine")),
    (1.0, lambda d: _add(d, np.arange(d.rows) % DAY, "hour")),
    (0.5, lambda d: _add(d, d.noise() + d.size(), "far from 0")),
    (1.0, returning_flag),
    (1.0, copied),
    (1.0, lagged),
    (1.0, switched),
    (0.4, labelled),
)

# ---- the function ----------------------------------------------------------------------------------------------------


def weights(draft: Draft) -> Floats:
    D = len(draft.columns)
    return draft.rng.normal(size=D) * (draft.rng.random(D) < 0.7)


def seasonal(draft: Draft) -> Floats:
    angle = 2 * np.pi * np.arange(draft.rows) / DAY
    return 3.0 + np.sin(angle) + 0.5 * np.cos(2.0 * angle + draft.rng.uniform(0.0, 6.0))


def autoregressive(draft: Draft) -> Floats:
    found, keep = draft.noise(), draft.one_of((0.5, 0.9, 0.99))
    for i in range(1, draft.rows):
        found[i] += keep * found[i - 1]
    return found


FUNCTIONS: tuple[tuple[float, str, Callable[[Draft], Floats]], ...] = (
    (4.0, "linear", lambda d: d.X @ weights(d)),
    (2.0, "a sum", lambda d: d.X[:, :2].sum(1)),
    (2.0, "sine and linear", lambda d: np.sin(2.0 * d.X[:, :1]).sum(1) + d.X @ weights(d)),
    (1.0, "a product", lambda d: d.X[:, :2].prod(1)),
    (1.0, "a threshold", lambda d: np.where(d.X[:, :1].sum(1) > 0.0, 2.0, -1.0)),
    (1.0, "a season", seasonal),
    (1.0, "a walk", lambda d: np.cumsum(d.noise())),
    (1.0, "its own past", autoregressive),
    (0.5, "constant", lambda d: np.full(d.rows, d.one_of((0.0, 1.0, 100.0)))),
    (1.0, "a trend", lambda d: np.arange(d.rows) * d.one_of((0.003, -0.03, 0.3))),
    (1.0, "a limited walk", lambda d: 1.0 / (1.0 + np.exp(-2.0 - 0.5 * np.cumsum(d.noise())))),
)

# ---- regimes ---------------------------------------------------------------------------------------------------------


def _level(draft: Draft, at: slice) -> str:
    jump = float(draft.one_of(JUMPS)) * draft.one_of((1.0, -1.0))
    draft.y[at] += jump * draft.usual
    return f"level {jump:+g} sd"


def _scale(draft: Draft, at: slice) -> str:
    factor = float(draft.one_of((0.01, 0.1, 10.0, 100.0, 1000.0)))
    draft.y[at] *= factor
    return f"targets × {factor:g}"


def _ramp(draft: Draft, at: slice) -> str:
    slope = float(draft.one_of((0.01, 0.1, 1.0))) * draft.one_of((1.0, -1.0))
    rise = slope * draft.usual * np.arange(at.stop - at.start)
    draft.y[at] += rise
    if draft.chance(0.5) and rise.size:  # and stays there
        draft.y[at.stop :] += rise[-1]
    return f"a ramp of {slope:+g} sd per row"


def _still(draft: Draft, at: slice) -> str:
    value = float(draft.one_of((0.0, draft.y[at.start])))
    draft.y[at] = value
    return f"constant at {value:.4g}"


def _other_function(draft: Draft, at: slice) -> str:
    _, name, function = draft.one_of(FUNCTIONS)
    draft.y[at] = function(draft)[at]
    return name


def _inputs_scale(draft: Draft, at: slice) -> str:
    """The unit of some inputs or of all of them changes; the target stays as it was."""
    factor = float(draft.one_of((0.01, 0.1, 10.0, 100.0)))
    share = draft.one_of((0.3, 1.0))
    for column in draft.columns:
        column[at] *= factor if draft.chance(share) else 1.0
    return f"inputs × {factor:g}"


def _inputs_still(draft: Draft, at: slice) -> str:
    for column in draft.columns:
        column[at] = column[at.start]
    return "all inputs constant"


def _inputs_alike(draft: Draft, at: slice) -> str:
    for column in draft.columns[1:]:
        column[at] = draft.columns[0][at]
    return "all inputs alike"


REGIMES: tuple[tuple[float, Callable[[Draft, slice], str]], ...] = (
    (3.0, _level),
    (2.0, _scale),
    (1.0, _ramp),
    (1.0, _still),
    (1.0, _other_function),
    (1.5, _inputs_scale),
    (0.5, _inputs_still),
    (0.5, _inputs_alike),
)

# ---- observation -----------------------------------------------------------------------------------------------------


def _poisson(draft: Draft) -> None:
    rate = np.abs(draft.y) / draft.usual * draft.one_of((1.0, 10.0, 50.0))
    draft.y = draft.rng.poisson(np.minimum(rate, 1e9)).astype(np.float64)


def _noisy(size: float) -> Callable[[Draft], None]:
    def observe(draft: Draft) -> None:
        draft.y = draft.y + size * draft.usual * draft.noise()

    return observe


def _heavy(draft: Draft) -> None:
    draft.y = draft.y + 0.3 * draft.usual * draft.rng.standard_t(1.5, draft.rows)


def _lognormal(draft: Draft) -> None:
    draft.y = np.exp(np.clip(draft.y / draft.usual, -20.0, 20.0) + draft.one_of((0.5, 1.5)) * draft.noise())


def _rounded(draft: Draft) -> None:
    draft.y = np.round(draft.y / draft.usual, 1) * draft.usual


def _limited(draft: Draft) -> None:
    low, high = np.quantile(draft.y, [0.1, 0.8])
    draft.y = np.clip(draft.y + 0.05 * draft.usual * draft.noise(), low, high)


OBSERVATIONS: tuple[tuple[float, str, Callable[[Draft], None]], ...] = (
    (3.0, "exact", lambda draft: None),
    (3.0, "noise .1", _noisy(0.1)),
    (1.0, "noise .001", _noisy(0.001)),
    (1.0, "noise 1", _noisy(1.0)),
    (1.0, "heavy tails", _heavy),
    (1.0, "lognormal", _lognormal),
    (2.0, "counts", _poisson),
    (1.0, "rounded", _rounded),
    (1.0, "limited", _limited),
)

# ---- damage ----------------------------------------------------------------------------------------------------------


def _no_targets(draft: Draft) -> str:
    if draft.chance(0.5):
        at = draft.stretch()
        draft.y[at] = np.nan
        return f"no targets in rows {at.start}–{at.stop}"
    share = float(draft.one_of((0.05, 0.5, 0.9)))
    draft.y[draft.rng.random(draft.rows) < share] = np.nan
    return f"{share:.0%} of the targets missing"


def _no_inputs(draft: Draft) -> str:
    at, share = draft.stretch(), float(draft.one_of((0.02, 0.3)))
    for column in draft.columns:
        if draft.chance(0.5):
            column[at] = np.nan
        else:
            column[draft.rng.random(draft.rows) < share] = np.nan
    return f"inputs missing in rows {at.start}–{at.stop}, or {share:.0%} of them"


def _wild(size: float) -> Part:
    def spoil(draft: Draft) -> str:
        """A few cells, targets or inputs, are far off."""
        cells = draft.y if draft.chance(0.5) or not draft.columns else draft.one_of(draft.columns)
        at = draft.rng.choice(draft.rows, draft.rng.integers(1, 4), replace=False)
        cells[at] = size if size > 1e30 else size * (np.nanstd(cells) + 1.0) * draft.one_of((1.0, -1.0))
        return f"{'targets' if cells is draft.y else 'inputs'} of {size:.3g} in rows {sorted(at.tolist())}"

    return spoil


def _irregular(draft: Draft) -> str:
    kind = draft.rng.integers(3)
    usual = np.ones(draft.rows)
    spans = (draft.rng.exponential(size=draft.rows), np.exp(2.0 * draft.noise()), usual)[kind]
    spans[draft.rng.random(draft.rows) < 0.01] *= 1000.0
    draft.elapsed = spans
    return ("times by chance", "times of all sizes", "gaps of 1000 steps")[kind]


DAMAGES: tuple[tuple[float, Part], ...] = (
    (0.15, _no_targets),
    (0.15, _no_inputs),
    (0.10, _wild(50.0)),
    (0.05, _wild(1e6)),
    (0.03, _wild(FILL)),
    (0.15, _irregular),
)

# ---- a stream --------------------------------------------------------------------------------------------------------


def _drawn(draft: Draft, parts: Any) -> Any:
    """One of the parts, by its weight."""
    sizes = np.array([part[0] for part in parts])
    return parts[draft.rng.choice(len(parts), p=sizes / sizes.sum())][1:]


def stream(rng: Rng, longest: int = LONGEST) -> Stream:
    """A stream that the generator determines, of 300 rows up to the longest."""
    rows = int(np.exp(rng.uniform(np.log(SHORTEST), np.log(longest))))
    draft = Draft(rng, rows)
    draft.note(f"{rows} rows")
    names = [_drawn(draft, INPUTS)[0](draft) for _ in range(rng.integers(1, 7))]
    if not draft.columns and not draft.lags:
        names.append(_add(draft, draft.noise(), "noise"))
    draft.note("inputs: " + ", ".join(names))
    _target(draft)
    if draft.chance(0.6):
        _regimes(draft)
    observation, observe = _drawn(draft, OBSERVATIONS)
    observe(draft)
    draft.note(f"observed: {observation}")
    if draft.chance(0.5):
        scale, shift = draft.size(), draft.one_of((0.0, 0.0, draft.size(), -draft.size()))
        if observation not in ("counts", "exact"):
            draft.y = draft.y * scale + shift
            draft.note(f"in units of {scale:.3g}, moved by {shift:.3g}")
    for share, damage in DAMAGES:
        if draft.chance(share):
            draft.note(damage(draft))
    for lag in draft.lags:
        draft.columns.append(np.concatenate([np.full(lag, np.nan), draft.y[:-lag]]))
    return Stream(draft.X, draft.y, draft.elapsed, draft.labels, tuple(draft.notes))


def _target(draft: Draft) -> None:
    """What the target is, before anything changes."""
    name, function = _drawn(draft, FUNCTIONS)
    draft.y = draft.y + function(draft)
    draft.note(f"target: {name}")
    spread = float(np.subtract(*np.quantile(draft.y, [0.84, 0.16]))) / 2.0
    draft.usual = spread or 1.0
    if draft.on is not None:
        level = float(draft.one_of((0.0, 10.0, 1000.0))) * draft.usual
        draft.y = draft.on * (level + draft.y)
        draft.y += float(draft.one_of((0.0, 0.001, 0.1))) * draft.usual * draft.noise()
        draft.note(f"0 while off, by {level:.3g} more while on")
    if draft.columns and draft.columns[-1].any() and draft.chance(0.3):
        draft.y = draft.y + draft.usual * float(draft.one_of((0.0, 3.0))) * (draft.columns[-1] > 0.5)


def _regimes(draft: Draft) -> None:
    """Stretches with a change each, some of which last to the end."""
    for _ in range(draft.rng.integers(1, 5)):
        at = draft.stretch(10, 0.5)
        if draft.chance(0.5):
            at = slice(at.start, draft.rows)
        draft.note(f"rows {at.start}–{at.stop}: {_drawn(draft, REGIMES)[0](draft, at)}")


# ---- a case ----------------------------------------------------------------------------------------------------------


def followed(given: Stream, effort: Effort) -> tuple[Forecasts, list[int]]:
    """What the default model says of each row before it learns from it, and the size of its state on the way."""
    online, sizes, parts = Online(effort=effort), [], []
    for rows in np.array_split(np.arange(len(given.y)), 4):
        at = slice(rows[0], rows[-1] + 1)
        if given.labels is None:
            spans = None if given.elapsed is None else given.elapsed[at]
            parts.append(_read(online.evaluate(given.X[at], given.y[at], spans)))
        else:
            parts.extend(_row_by_row(online, given, at))
        sizes.append(online.state.record.nbytes)
    return Forecasts(*map(np.concatenate, zip(*parts, strict=True))), sizes


def _row_by_row(online: Online, given: Stream, at: slice) -> Iterator[Forecasts]:
    """The same by dicts with text."""
    for i in range(at.start, at.stop):
        row = {f"x{d}": float(v) for d, v in enumerate(given.X[i])} | {"label": given.labels[i]}
        target = float(given.y[i])
        if online.begun:
            yield _read(online.predict(row))
        else:
            yield Forecasts(*np.zeros((5, 1)))
        online.update(row, target, None if given.elapsed is None else float(given.elapsed[i]))


def _read(forecast: Prediction) -> Forecasts:
    low, high = forecast.interval(0.95)
    return Forecasts(forecast.mean, forecast.variance, low, forecast.quantile(0.5), high)


def case(rng: Rng, effort: Effort = "low", longest: int = LONGEST) -> dict[str, Any]:
    """A stream, and what became of it."""
    given = stream(rng, longest)
    began = time.perf_counter()
    said, sizes = followed(given, effort)
    seconds = time.perf_counter() - began
    verdict = judged(said, given.X, given.y)
    if len(given.y) >= 4 * ONCE:
        assert len(set(sizes[1:])) == 1, f"the state grew: {sizes} bytes"
    return verdict._asdict() | {"description": "; ".join(given.description), "rows": len(given.y), "seconds": seconds}
