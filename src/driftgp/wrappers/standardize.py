"""Inputs and targets in units of their own spread, for any model."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from driftgp.base import checks
from driftgp.contract.protocol import LARGEST
from driftgp.contract.records import View, floats, part, whole
from driftgp.models.model import Model, Units
from driftgp.wrappers.holding import Moved, inner

# A column varies if its spread is more than rounding: this many units in the last place of its mean.
ROUNDING = 32.0 * float(np.finfo(float).eps)
# The first samples, this many, count in full even if they are far off.
_FIRST = 10.0
# No scale is smaller than this.
_SMALLEST = 1.0 / LARGEST
# Largest number in a state from outside, and inverse of the least scale: with larger ones, shares overflow.
_FAR = 1e290
# Largest distance of an input from its centre in a forecast, in scales. A first value near 0 is a poor scale for later
# values, and so is the spread of a category that was absent for thousands of samples.
_FARTHEST = 10.0


class StandardizeState(View):
    """The units of each column, inputs first and then targets, and the running means and spreads of samples."""

    centre: np.ndarray = floats("columns", low=-_FAR, high=_FAR)
    scale: np.ndarray = floats("columns", low=1.0 / _FAR, high=_FAR)
    weight: np.ndarray = floats("columns", low=0.0, high=_FAR)  # running weight, mean and variance
    mean: np.ndarray = floats("columns", low=-_FAR, high=_FAR)
    variance: np.ndarray = floats("columns", low=0.0)
    renewals: int = whole()  # how often the units changed
    inner: Any = part()


class Moments(NamedTuple):
    """Running weight, mean and variance of each column."""

    weight: np.ndarray
    mean: np.ndarray
    variance: np.ndarray


@dataclass(frozen=True)
class Standardize(Moved):
    """Hold a model and let it see (x − centre) / scale and (y − centre) / scale; it answers in the user's units.

    Without `adapt` the centre and scale of each column are the mean and standard deviation of the warm-up batch, for
    good.

    With `adapt` = λ they follow the stream, and no warm-up batch is needed. Each sample counts λ times as much as the
    one after it; with λ = 1 all count alike. The held model stays consistent because its units do not change sample by
    sample. They are kept until the running mean of any column has moved by one scale, or its running scale by a factor
    of two. Then everything that the held model remembers is expressed in the new units, in one step (`Model.rescale`).
    So at every moment the held model is in one set of units, as if it had seen all samples in these units. Its
    hyperparameters are in these units too and stay the same: when the spread of the targets doubles, so do signal and
    noise. A λ closer to 1 than the model's own is usually better: a scale changes more slowly than a function, and an
    estimate from few samples wavers.

    The scale of a column that has not varied yet is the size of its values, or 1 if they are 0. So a stream in other
    units (metres for millimetres) gives the same predictions in those units, from the first sample on. A sample that is
    far off moves the scale by a factor of two at most. So a single outlier changes no units, and a lasting change is
    followed within a few samples. In a forecast an input counts as at most ten scales from the centre, since a slope
    was never observed farther out. A category that comes back after thousands of samples is such an input. A sample
    without a target does not count.

    >>> from driftgp import AGP
    >>> X = np.linspace(0, 86_400, 60)[:, None] + 1.7e9
    >>> y = 5e4 + 100 * np.sin(X[:, 0] / 1e4)
    >>> model = Standardize(AGP(inducing=6, window=40))
    >>> state = model.init(X[:40], y[:40])
    >>> bool(abs(model.predict(state, X[40:41]).mean[0] - y[40]) < 5)
    True

    Args:
        model: any model; one that can `rescale` if the units are to adapt.
        adapt: False for the units of the warm-up batch, λ in (0, 1] for units that follow, True for the model's λ.
    """

    forgetting: float | None
    State: ClassVar[type[View]] = StandardizeState

    def __init__(self, model: Model, adapt: bool | float = False) -> None:
        """Take the settings: see the class."""
        forgetting = getattr(model, "forgetting", None) if adapt is True else adapt
        if forgetting is None:
            raise ValueError(f"adapt must be a number for {type(model).__name__}, which has no forgetting of its own")
        object.__setattr__(self, "model", model)
        object.__setattr__(
            self, "forgetting", None if adapt is False else checks.between("adapt", forgetting, 0.0, 1.0)
        )

    def sizes(self, inputs: int, outputs: int) -> dict[str, int]:
        """Inputs and targets have units alike."""
        return {"columns": inputs + outputs}

    @property
    def sees_raw_numbers(self) -> bool:
        """The held model always sees numbers near unit scale."""
        return False

    def accept(self, inputs: int, outputs: int, rows: int) -> None:
        """Refuse a cold start if the units are to be those of the batch."""
        if rows == 0 and self.forgetting is None:
            raise ValueError("X must hold a warm-up batch to take the units from; without one, give adapt a number")
        self.model.accept(inputs, outputs, rows)

    def start(self, state: StandardizeState, X: np.ndarray, y: np.ndarray) -> None:
        """Measure the batch, then start the held model on it."""
        Z = _bounded(np.concatenate([X, y], 1))  # N×(D+P)
        recent = _moments(Z, np.isfinite(y).all(1), 1.0 if self.forgetting is None else self.forgetting)
        state.weight[...], state.mean[...], state.variance[...] = recent
        state.centre[...], state.scale[...] = recent.mean, _spread(recent, _size(recent))
        units = _units(state, X.shape[1])
        self.model.expect_units(state.inner, units)
        self.model.start(state.inner, units.inputs(Z[:, : X.shape[1]]), units.targets(Z[:, X.shape[1] :]))

    def forecast(self, state: StandardizeState, X: np.ndarray) -> np.ndarray:
        """Forecast of the held model, in the user's units."""
        units = _units(state, X.shape[1])
        held = self.model.forecast(state.inner, self._seen(state, X))
        return self._moved(held, units.y_scale, units.y_centre)

    def joint(self, state: StandardizeState, X: np.ndarray) -> np.ndarray:
        """Joint covariance of the held model, in the user's units."""
        y_scale = _units(state, X.shape[1]).y_scale
        return y_scale[:, None, None] ** 2 * self.model.joint(state.inner, self._seen(state, X))

    def learn(
        self, state: StandardizeState, x: np.ndarray, y: np.ndarray, elapsed: float, forecast: np.ndarray | None = None
    ) -> None:
        """Follow the stream's units if they adapt, then let the held model learn."""
        x, y = _bounded(x), _bounded(y)
        clipped = not np.array_equal(self._seen(state, x[None])[0], _units(state, len(x)).inputs(x), equal_nan=True)
        renewed = False
        if self.forgetting is not None and np.isfinite(y).all():
            renewed = self._follow(state, np.concatenate([x, y]), len(x))
        units = _units(state, len(x))
        # a forecast at another input, or in units that were renewed since, does not belong to this sample
        known = None if clipped or renewed or not _made_in(forecast, units) else inner(forecast)
        self.model.learn(state.inner, units.inputs(x), units.targets(y), elapsed, known)

    def rescale(self, state: StandardizeState, units: Units) -> None:
        """Only the numbers in the user's units change: the held model sees the same numbers as before."""
        centre = np.concatenate([units.x_centre, units.y_centre])
        scale = np.concatenate([units.x_scale, units.y_scale])
        state.mean[...], state.variance[...] = (state.mean - centre) / scale, state.variance / scale**2
        state.centre[...], state.scale[...] = (state.centre - centre) / scale, state.scale / scale

    def move_level(self, state: StandardizeState, step: np.ndarray) -> None:
        """Move the centre of the targets: the held model then sees the same numbers as before."""
        targets = slice(len(state.centre) - len(step), None)
        state.centre[targets] += step
        state.mean[targets] += step

    # ---- units that follow the stream --------------------------------------------------------------------------------

    def _seen(self, state: StandardizeState, X: np.ndarray) -> np.ndarray:
        """Inputs to predict for, as the held model sees them."""
        Z = _units(state, X.shape[1]).inputs(_bounded(X))
        if self.forgetting is None or self.model.follows_inputs(state.inner):
            return Z
        return np.clip(Z, -_FARTHEST, _FARTHEST)

    def _follow(self, state: StandardizeState, z: np.ndarray, inputs: int) -> bool:
        """Count a sample that has its target; return whether the units have changed."""
        first = state.weight == 0.0  # D+P
        recent = count(Moments(state.weight, state.mean, state.variance), z, self.forgetting, state.scale)
        state.weight[...], state.mean[...], state.variance[...] = recent
        scale = _spread(recent, np.where(first, _size(recent), state.scale))
        ratio = scale / state.scale
        moved = (ratio > 2.0) | (ratio < 0.5) | (np.abs(recent.mean - state.centre) > state.scale)
        if not np.any(moved | (first & (recent.weight > 0.0))):
            return False
        # express the memory of the held model in the new units, given as units of the present ones
        centre = (recent.mean - state.centre) / state.scale
        self.model.rescale(state.inner, Units(centre[:inputs], ratio[:inputs], centre[inputs:], ratio[inputs:]))
        state.centre[...], state.scale[...] = recent.mean, scale
        state.renewals += 1
        return True


# ---- moments ---------------------------------------------------------------------------------------------------------


def _moments(Z: np.ndarray, observed: np.ndarray, forgetting: float) -> Moments:
    """Weighted moments of a batch, column by column, over the values that are there."""
    here = observed[:, None] & np.isfinite(Z)  # N×(D+P)
    age = np.cumsum(here[::-1], 0)[::-1] - 1.0  # samples that came later
    w = np.where(here, forgetting ** np.maximum(age, 0.0), 0.0)
    weight = np.sum(w, 0)
    share = w / np.where(weight > 0.0, weight, 1.0)
    Z = np.where(here, Z, 0.0)
    mean = np.sum(share * Z, 0)
    return Moments(weight, mean, np.sum(share * (Z - mean) ** 2, 0))


def count(m: Moments, z: np.ndarray, forgetting: float | None, scale: np.ndarray) -> Moments:
    """Moments with one more sample, whose distance from the mean is limited so that the scale at most doubles."""
    here = np.isfinite(z)
    weight = np.where(here, (forgetting or 1.0) * m.weight + 1.0, m.weight)
    gain = np.where(here, 1.0 / np.where(here, weight, 1.0), 0.0)
    # the variance gains (1 − gain) · gain · step², which is to stay below (2² − 1) · scale²
    limit = np.where(weight > _FIRST, np.sqrt(3.0 * weight) * scale, np.inf)
    step = np.clip(np.where(here, z - m.mean, 0.0), -limit, limit)
    return Moments(weight, m.mean + gain * step, (1.0 - gain) * (m.variance + gain * step**2))


def _size(m: Moments) -> np.ndarray:
    """The scale of a column without a spread: the size of its values."""
    return np.where(m.mean == 0.0, 1.0, np.maximum(np.abs(m.mean), _SMALLEST))


def _spread(m: Moments, otherwise: np.ndarray) -> np.ndarray:
    """Standard deviation of every column that varies."""
    std = np.sqrt(m.variance)
    return np.where(std > ROUNDING * np.abs(m.mean), np.maximum(std, _SMALLEST), otherwise)


def _bounded(z: np.ndarray) -> np.ndarray:
    """Values whose squares are finite."""
    return np.clip(z, -LARGEST, LARGEST)


def _made_in(forecast: np.ndarray | None, units: Units) -> bool:
    """Whether a forecast was made in these units of the targets."""
    return forecast is not None and bool(
        np.array_equal(forecast["scale"][0], units.y_scale) and np.array_equal(forecast["shift"][0], units.y_centre)
    )


def _units(state: StandardizeState, inputs: int) -> Units:
    centre, scale = state.centre, state.scale
    return Units(centre[:inputs], scale[:inputs], centre[inputs:], scale[inputs:])
