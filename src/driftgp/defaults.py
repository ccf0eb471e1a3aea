"""A model for a stream, chosen by its first rows.

All sizes and starting values follow from those rows, or are the same for all streams: see `docs/defaults.md` for
the reason behind each default, and what it gains.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from driftgp.base import checks
from driftgp.gp.agp import AGP
from driftgp.kernels import SE, Kernel, Linear
from driftgp.members import Anchored, Lagged, Persistence
from driftgp.models import plausible
from driftgp.models.model import Model, checked_batch
from driftgp.models.support import lagged, root_offset
from driftgp.models.support import support as find_support
from driftgp.wrappers import Around, Bank, Bounded, Calibrated, Credible, Gaps, Guarded, Standardize, Within

Effort = Literal["low", "medium", "high"]
Support = Literal["auto", "real", "positive"] | tuple[float | None, float | None]
_Bounds = tuple[float | None, ...]  # one per output
# Standard deviations of the targets by which a law may reach beyond a bound before its values are brought there. With
# less, the law would have to be bent: the mean of a good forecast near 0 would be moved away from 0.
_SLACK = 3.0
# Probability of targets outside bounds that "auto" has found, and outside bounds that the user has given.
_LEAK, _PROMISED = 0.01, 1e-12

# How an AGP starts and learns, and memories 1/(1 − λ) as shares of the window.
LEARNING: dict[str, Any] = {"noise": 0.1, "prior": 3.0, "step": "scaled"}
SHARES = (0.2, 0.6, 10.0)
# Rows from one gradient step of an AGP to the next, and the limit of such a step. A model that begins with fewer rows
# than the longest window has its hyperparameters still to find: it takes a step at every row.
_EVERY, _RATE = 4, 0.8
_FEW_INPUTS = 4  # up to which a bank has an AGP for each of them
_NONLINEAR = 5.0  # weight at first of a member that is not linear, divided by that of a linear one
_AROUND = 10.0  # the same of a member around a forecast from elsewhere
_BELIEVED = 10.0  # standard deviations of the targets up to which such a forecast is taken as it is
SHORTEST, LONGEST = 100, 400  # T
FEWEST, MOST = 10, 20  # M
# Samples of the window for each sample of the target's correlation time: the memory is five times that time.
_WINDOW_PER_TIME = 5.0
# Samples of the window for each input: every one of them has a slope to be found.
_WINDOW_PER_INPUT = 40.0
# Windows until a sample hardly counts for the units in which the model sees the stream.
_UNITS = 10
# Stretches of that length in the window above which the larger M is taken.
_STRETCHES = 10.0
# Inputs above which a low effort takes fewer points and rows.
_MANY_INPUTS = 16
_NEVER = 1 << 24  # rows
# Features of the scale model: with so few it costs a low effort little.
FEATURES = {"low": 40, "medium": 128, "high": 128}


class Sizes(NamedTuple):
    """How many samples and inducing points a stream needs."""

    window: int  # T
    inducing: int  # M


def recommended(
    X: ArrayLike,
    y: ArrayLike,
    *,
    horizon: int = 1,
    effort: Effort = "medium",
    support: Support = "auto",
    lags: Sequence[int] = (),
    base: int | None = None,
) -> Model:
    """The default model for a stream that begins with the batch X (N×D), y (N, or N×P). Start it with `init(X, y)`.

    The batch may be empty, N = 0. The model is a bank of different members: an AGP with one lengthscale per input,
    regressions on hundreds of fixed points, linear regressions with the last known targets, and persistence. The
    regressions have three rates of forgetting. AGP and regressions have twins, which add part of their last error.
    Wrappers around the bank scale inputs and targets, limit single wild values, fill gaps in the inputs, and calibrate
    the intervals.

    Args:
        X: the first rows.
        y: their targets.
        horizon: rows from a forecast to its label.
        effort: "low" has few fixed points and costs about a twentieth of "medium": for many models at once. "high" has
            twice as many points as "medium" and costs about five times as much.
        support: the range of targets: "real", "positive" (0 included), (low, high) with None for no bound, or "auto".
            "auto" takes 0 as a bound if the first targets look like counts or other amounts. A bound counts until a
            target lies beyond it. The model works on the roots of counts and amounts, and of their lags.
        lags: indices of inputs that are earlier targets; others are found by their values.
        base: index of an input that is a forecast of the target from elsewhere. The bank then has members that learn
            what is left of the target without it, and these have a head start.

    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> y = 5000 + 100 * np.sin(6 * X[:, 0])
    >>> model = recommended(X[:50], y[:50])
    >>> state = model.init(X[:50], y[:50])
    >>> bool(abs(model.predict(state, X[50:51]).mean[0] - y[50]) < 10)
    True
    """
    check_effort(effort)
    X, y = checked_batch(X, y, gaps=True)
    y = np.where(plausible.absurd(y), np.nan, y)
    D = X.shape[1]
    T, M = sizes(y, D)
    nonlinear: list[Model] = _agps(D, T, M, effort, len(y))
    if effort == "low":
        nonlinear += [small(D, low=True)]
    else:
        nonlinear += [anchored(D, effort), small(D)]
    rates = (0.9995, 0.99) if effort == "low" else (0.9995, 0.998, 0.99)
    linear: list[Model] = [Lagged(lags=2, forgetting=rates), *([exact()] if effort == "low" else []), Persistence()]
    around = [] if base is None else _around(D, checked_base(base, D, y), rates, effort)
    members = [*around, *nonlinear, *linear]
    prior = [_AROUND] * len(around) + [_NONLINEAR] * len(nonlinear) + [1.0] * len(linear)
    bank = Bank(members, corrected=range(len(around) + len(nonlinear)), prior=prior)
    like_targets = lags if base is None else (*lags, base)
    model = wrapped(bank, T, horizon=horizon, bounds=_bounds(X, y, support, like_targets), features=FEATURES[effort])
    return model if base is None else Credible(model, base)


def _bounds(X: np.ndarray, y: np.ndarray, support: Support, lags: Sequence[int]) -> dict[str, Any] | None:
    """Settings of `Bounded` for a stream that begins so; None where targets have no bounds."""
    support = check_support(support)
    if support == "real" or (support == "auto" and len(y) == 0):
        return None
    spread = np.nanstd(y, axis=0) if len(y) else np.ones(y.shape[1:])
    slack = np.where(spread > 0.0, _SLACK * spread, 1.0).tolist()
    if support == "auto":
        found = find_support(y)
        low, high, leak = found.low, found.high, _LEAK
    else:
        given = (0.0, None) if support == "positive" else support
        outputs = y.reshape(len(y), -1).shape[1] if y.size else 1
        low, high, leak = (given[0],) * outputs, (given[1],) * outputs, _PROMISED
    if not any(bound is not None for bound in (*low, *high)):
        return None
    return {"low": low, "high": high, "slack": slack, "leak": leak, **_roots(X, y, low, high, lags)}


def _roots(X: np.ndarray, y: np.ndarray, low: _Bounds, high: _Bounds, known: Sequence[int]) -> dict[str, Any]:
    """Settings of `Bounded` for outputs that look like amounts from their low bound on: the model sees their roots.

    Targets far from a given bound are not replaced by their roots, which would hardly change anything.
    """
    if not y.size:
        return {}
    columns = y.reshape(len(y), -1).T
    offsets = [
        root_offset(column - least) if least is not None and most is None and _amounts(column - least) else 0.0
        for column, least, most in zip(columns, low, high, strict=True)
    ]
    if not any(offsets):
        return {}
    found = {(x % X.shape[1], 0) for x in known} | set(lagged(X, columns.T))
    return {"root": tuple(offsets), "lags": tuple(sorted((x, of) for x, of in found if offsets[of] > 0.0))}


def _amounts(values: np.ndarray) -> bool:
    return find_support(values).low == (0.0,)


def _around(inputs: int, base: int, rates: tuple[float, ...], effort: Effort) -> list[Model]:
    """Members that learn what a forecast from elsewhere leaves: by fixed points, and by linear regressions."""
    nonlinear = [small(inputs, low=True)] if effort == "low" else [anchored(inputs, effort), small(inputs)]
    return [Around(model, base, _BELIEVED) for model in (*nonlinear, Lagged(lags=2, forgetting=rates))]


def checked_base(base: Any, inputs: int, y: np.ndarray) -> int:
    """The index of the input that is a forecast, checked."""
    if isinstance(base, bool) or not isinstance(base, (int, np.integer)) or not 0 <= base < inputs:
        raise ValueError(f"base must be the index of one of the {inputs} inputs; got {base!r}")
    if y.ndim == 2 and y.shape[1] != 1:
        raise ValueError(f"base is the forecast of one target; got {y.shape[1]} outputs: take a stream for each")
    return int(base)


def check_effort(effort: str) -> None:
    """Refuse an effort other than low, medium and high."""
    if effort not in get_args(Effort):
        raise ValueError(f'effort must be "low", "medium" or "high"; got {effort!r}')


def check_support(support: Any) -> Support:
    """Return the range of targets with its bounds as floats, or refuse it.

    >>> check_support([0, None])
    (0.0, None)
    """
    if isinstance(support, str) and support in ("auto", "real", "positive"):
        return support  # type: ignore[return-value]
    if not isinstance(support, (tuple, list)) or len(support) != 2:
        given = checks.shown(support)
        raise ValueError(f'support must be "auto", "real", "positive" or a pair (low, high); got {given}')
    low, high = (
        None if bound is None else checks.between("a bound in support", bound, -np.inf, np.inf) for bound in support
    )
    if low is not None and high is not None and not low < high:
        raise ValueError(f"support must have its low bound below the high one; got {support!r}")
    return low, high


def _agps(inputs: int, window: int, inducing: int, effort: Effort, rows: int) -> list[Model]:
    """AGPs that differ in memory: several where there are few inputs, and they cost little."""
    few = inputs <= _FEW_INPUTS
    shares = {"low": SHARES[:1] if few else (), "medium": SHARES if few else SHARES[:1], "high": SHARES}[effort]
    M = 2 * inducing if effort == "high" else inducing
    settings = LEARNING | {"inducing": M, "window": window}
    if rows >= LONGEST:
        settings |= {"learn_every": _EVERY, "rate": _RATE}
    return [AGP(kernel(inputs), forgetting=1.0 - 1.0 / (share * window), **settings) for share in shares]


def anchored(inputs: int, effort: Effort = "medium") -> Anchored:
    """Regression on many fixed points for D inputs: fewer of them the more inputs there are."""
    most = 200 if effort == "medium" else 400
    points = max(min(most, most + 50 - inputs), most // 4)
    return Anchored(points=points, sample=5 * most // 2)


def exact() -> Lagged:
    """Linear regression for targets that follow from the inputs exactly: no past targets, and all but no ridge.

    With a ridge of 1 a weight would be some parts in a thousand too small for hundreds of rows, and with past targets
    nobody could tell after one switch of a machine whether the flag or the target before says that it is on.
    """
    return Lagged(lags=0, forgetting=(0.99,), ridge=1e-6)


def small(inputs: int, *, low: bool = False) -> Anchored:
    """Regression on few fixed points, whose hyperparameters are learned from the last few hundred rows.

    With few points a replay gains nothing: it would only lose the rows that are older than the ring.
    """
    if not low:
        return Anchored(points=60, ring=500, sample=300, refresh=_NEVER)
    many = inputs > _MANY_INPUTS  # a state of a low effort is to stay below 175 KB
    points, ring = (24, 285) if many else (40, 500)
    return Anchored(points=points, ring=ring, sample=200, forgetting=(0.9995, 0.99), refresh=_NEVER)


def wrapped(
    model: Model,
    window: int,
    *,
    horizon: int = 1,
    bounds: dict[str, Any] | None = None,
    features: int = FEATURES["medium"],
) -> Guarded:
    """A model in all the wrappers of the default: units, limits to what is wild, calibration, gaps filled.

    Args:
        model: any model that can change its units.
        window: T of the model.
        horizon: rows from a forecast to its label. With more than one, an error counts that often before it is known,
            and a tracker of the spread would follow it that much too far: intervals are then calibrated without one.
        bounds: settings of `Bounded`, where targets have bounds.
        features: of the scale model, at most.
    """
    held: Model = in_own_units(model, window)
    if bounds is not None:
        held = Bounded(held, **bounds)
    trackers: dict[str, Any] = {} if horizon == 1 else {"gains": (0.0,)}
    return Guarded(Calibrated(held, features=features, **trackers), widen_first=True)


def in_own_units(model: Model, window: int) -> Standardize:
    """A model that sees standardised inputs and targets, gaps filled, and no input much farther out than those before.

    The units follow the stream: a sample has a tenth of its weight left for them after ten windows.
    """
    return Standardize(Gaps(Within(model)), adapt=0.1 ** (1.0 / (_UNITS * window)))


def kernel(inputs: int) -> Kernel:
    """Linear + squared exponential for D standardised inputs, with variances near 0.1 and 1 at a usual input.

    Each input has a lengthscale and a linear variance, so that the model can ignore an input without information.

    >>> import numpy as np
    >>> round(float(kernel(4)(np.ones((1, 4)))[0]), 2)
    1.1
    """
    return Linear(variance=[0.1 / inputs] * inputs) + SE(lengthscale=[inputs**0.5] * inputs)


def sizes(y: ArrayLike, inputs: int = 1) -> Sizes:
    """T, at least 5 τ for the targets' correlation time τ and 40 samples per input; M, more points the more τ in T.

    Both double rather than creep: streams that are much alike then have models of one size.

    >>> import numpy as np
    >>> sizes(np.random.default_rng(0).normal(size=500))
    Sizes(window=100, inducing=20)
    >>> sizes(np.random.default_rng(0).normal(size=500), inputs=24)
    Sizes(window=400, inducing=20)
    >>> sizes(np.sin(np.arange(2000) / 100.0))
    Sizes(window=400, inducing=10)
    """
    tau = correlation_time(np.asarray(y, np.float64))
    T = SHORTEST
    while T < min(max(_WINDOW_PER_TIME * tau, _WINDOW_PER_INPUT * inputs), LONGEST):
        T *= 2
    return Sizes(T, MOST if T > _STRETCHES * tau else FEWEST)


def correlation_time(y: Any) -> float:
    """Samples until the autocorrelation of a series (N, or the mean of N×P) has fallen to 1/e; at least 1."""
    y = y.reshape(len(y), -1) if y.size else np.zeros((0, 1))
    y = y[np.all(np.isfinite(y), axis=1)]
    if len(y) < 3:
        return 1.0
    y = y - y.mean(0)
    size = 2 * len(y)  # zeros behind the series, so that its end does not meet its beginning
    spectrum = np.abs(np.fft.rfft(y, size, axis=0)) ** 2
    correlation = np.fft.irfft(spectrum, size, axis=0)[: len(y)].mean(1)
    if not correlation[0] > 0.0:
        return 1.0
    below = np.flatnonzero(correlation < correlation[0] / np.e)
    return float(max(below[0] if below.size else len(y), 1))


__all__ = [
    "Effort",
    "Sizes",
    "Support",
    "anchored",
    "correlation_time",
    "exact",
    "in_own_units",
    "kernel",
    "recommended",
    "sizes",
    "wrapped",
]
