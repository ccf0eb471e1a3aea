"""A model for a stream about which nothing is known but its first samples.

Everything that a user would otherwise choose follows from those samples or needs no choice: see `docs/defaults.md` for
the reason behind each default.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from driftgp.agp import AGP
from driftgp.kernels import SE, Kernel, Linear
from driftgp.model import Model, checked_batch
from driftgp.wrappers import Bank, Calibrated, CarryForward, Guarded, Standardize, Within

# Memories 1/(1 − λ) of the bank's members, as shares of the window.
SHARES = (0.2, 0.6, 10.0)
# How a member starts and learns.
LEARNING: dict[str, Any] = {"noise": 0.1, "prior": 3.0, "step": "natural"}
SHORTEST, LONGEST = 100, 400  # T
FEWEST, MOST = 10, 20  # M
# Samples of the window for each one that the target remembers itself: an autocorrelation is a fifth of the memory.
_WINDOW_PER_TIME = 5.0
# Samples of the window for each input: every one of them has a slope to be found.
_WINDOW_PER_INPUT = 40.0
# Windows until a sample hardly counts for the units in which the model sees the stream.
_UNITS = 10
# Stretches of that length in the window above which the larger M is taken.
_STRETCHES = 10.0


class Sizes(NamedTuple):
    """How many samples and inducing points a stream needs."""

    window: int  # T
    inducing: int  # M


def recommended(X: ArrayLike, y: ArrayLike, *, horizon: int = 1) -> CarryForward:
    """Model for a stream that begins with the batch X (N×D), y (N, or N×P); start it with `init(X, y)` as any other.

    The batch may be empty, N = 0. Linear + squared exponential on standardised inputs and targets in units that follow
    the stream, lone wild inputs and targets limited, gaps in the inputs filled, T and M by the autocorrelation of the
    targets and the number of inputs, natural gradient steps, a bank of forgetting rates, calibrated intervals.
    `horizon` is the number of rows from a forecast to its label.

    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> y = 5000 + 100 * np.sin(6 * X[:, 0])
    >>> model = recommended(X[:50], y[:50])
    >>> state = model.init(X[:50], y[:50])
    >>> bool(abs(model.predict(state, X[50:51]).mean[0] - y[50]) < 10)
    True
    """
    X, y = checked_batch(X, y, gaps=True)
    T, M = sizes(y, X.shape[1])
    rates = (1.0 - 1.0 / (T * share) for share in SHARES)
    members = [AGP(kernel(X.shape[1]), inducing=M, window=T, forgetting=rate, **LEARNING) for rate in rates]
    return wrapped(Bank(members), T, horizon=horizon)


def wrapped(model: Model, window: int, *, horizon: int = 1) -> CarryForward:
    """A model in all the wrappers of the default: units, limits to what is wild, calibration, gaps filled.

    Args:
        model: any model that can change its units.
        window: T of the model.
        horizon: rows from a forecast to its label. With more than one, an error counts that often before it is known,
            and a tracker of the spread would follow it that much too far: intervals are then calibrated without one.
    """
    held = sheltered(model, window)
    return CarryForward(Guarded(Calibrated(held) if horizon == 1 else Calibrated(held, gains=(0.0,))))


def sheltered(model: Model, window: int) -> Standardize:
    """A model that sees standardised inputs and targets, and no input much farther out than those before it.

    The units follow the stream: a sample has a tenth of its weight left for them after ten windows.
    """
    return Standardize(Within(model), adapt=0.1 ** (1.0 / (_UNITS * window)))


def kernel(inputs: int) -> Kernel:
    """Linear + squared exponential for D standardised inputs, with variances near 0.1 and 1 at a usual input.

    >>> import numpy as np
    >>> round(float(kernel(4)(np.ones((1, 4)))[0]), 2)
    1.1
    """
    return Linear(variance=0.1 / inputs) + SE(lengthscale=inputs**0.5)


def sizes(y: ArrayLike, inputs: int = 1) -> Sizes:
    """T, at least 5 τ for the targets' correlation time τ and 40 samples per input; M, more points the more τ in T.

    A linear function of D inputs needs more than D points to be told apart from what is not linear.

    Both double rather than creep: streams that are much alike then have models of one size.

    >>> import numpy as np
    >>> sizes(np.random.default_rng(0).normal(size=500))
    Sizes(window=100, inducing=20)
    >>> sizes(np.random.default_rng(0).normal(size=500), inputs=24)
    Sizes(window=400, inducing=34)
    >>> sizes(np.sin(np.arange(2000) / 100.0))
    Sizes(window=400, inducing=10)
    """
    tau = correlation_time(np.asarray(y, np.float64))
    T = SHORTEST
    while T < min(max(_WINDOW_PER_TIME * tau, _WINDOW_PER_INPUT * inputs), LONGEST):
        T *= 2
    M = MOST if T > _STRETCHES * tau else FEWEST
    return Sizes(T, max(M, inputs + FEWEST) if inputs > FEWEST else M)


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


__all__ = ["Sizes", "correlation_time", "kernel", "recommended", "sheltered", "sizes", "wrapped"]
