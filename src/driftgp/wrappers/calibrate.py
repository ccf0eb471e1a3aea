"""Intervals that hold their share of the targets, on any stream."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import softmax

from driftgp.base import checks
from driftgp.contract import forecasts
from driftgp.contract.records import View, floats, part
from driftgp.models.model import Model, Units
from driftgp.predictions import Recalibrated, nominal_reach
from driftgp.predictions.normal import pdf
from driftgp.predictions.recalibrated import moments
from driftgp.wrappers.holding import Holding
from driftgp.wrappers.rowscale import FEWEST, MOST, RowScale, RowScaleState

LEVELS = (0.5, 0.8, 0.95, 0.99)
# Two neighbouring reaches keep at least this share of their nominal ratio, so that quantiles stay in order.
_LEAST_RATIO = 0.2
# The least log s, and the least offset. Without a limit they would fall as long as every forecast is exact, and after
# the first inexact target intervals would have no width for as long again.
_LEAST_LOG = -7.0
# A score counts as at most three standard deviations. A normal one is larger once in 370.
_CAP = 9.0


class CalibratedState(View):
    """How far the held model's intervals have to reach, and its state.

    With a scale model there are two calibrations, K = 2: one for g = 1, and one for the law with g.
    """

    log_s2: np.ndarray = floats("K", "J", "P")  # spread of the normal scores as each gain sees it
    log_weights: np.ndarray = floats("K", "J", "P")  # how likely the scores were under each of them
    offset: np.ndarray = floats("K", "L", "S", "P")  # d_ℓ of each level (and side), in log units
    scale: Any = part()  # of the scale model, if any
    inner: Any = part()


@dataclass(frozen=True)
class Calibrated(Holding):
    """Hold a model and stretch its predictive distribution so that its intervals hold their share of the targets.

    The normal score z of a target, Φ(z) = cdf(y), has a standard normal law if the model is right. The interval of a
    level ℓ, nominally |z| ≤ z_ℓ, reaches to

        c_ℓ = z_ℓ · g(x) · s · exp(d_ℓ)

    g is a factor for this row, between 1/10 and 10. It follows from the inputs and the model's own law
    (`wrappers.rowscale`). Errors are larger at some hours, inputs and levels of the target than at others. s is the
    recent spread of the scores z/g. Several trackers of different speed, mixed by likelihood, follow it, so that it
    answers a jump of the noise within a few samples. d_ℓ is an integral controller (adaptive conformal inference: Gibbs
    and Candès 2021; Angelopoulos, Candès and Tibshirani 2023 call it the I of PID):

        d_ℓ ← d_ℓ + γ_ℓ ([|z| > c_ℓ] − (1 − ℓ))

    The sum over n samples gives: share outside − (1 − ℓ) = (change of d_ℓ) / (γ_ℓ n). A target is never outside once
    c_ℓ exceeds every score, so d_ℓ stays bounded while the scores do. The share outside therefore tends to 1 − ℓ at the
    rate 1/n. This assumes nothing about the stream or the model, only that g and s are bounded away from 0. If all
    scores are 0, as on a constant, s and exp(d_ℓ) stay above 1/1100, and no target is outside. The gain γ_ℓ = rate /
    (z_ℓ · 2φ(z_ℓ)) gives all levels one time constant, 1/rate samples.

    Predictions are `Recalibrated`: their intervals, quantiles and density are calibrated. Those of the held model are
    in `law.model`.

    >>> from driftgp import AGP
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> model = Calibrated(AGP(inducing=6, window=40))
    >>> prediction = model.predict(model.init(X[:40], y[:40]), X[40:41])
    >>> bool(np.allclose(prediction.interval(0.95), prediction.law.model.interval(0.95)))  # nothing to correct yet
    True

    Args:
        model: any model.
        levels: of the intervals that are controlled, in increasing order; others are interpolated.
        symmetric: control central intervals, or each of their two ends by itself, so that a one-sided bound holds
            too.
        rate: of the controllers, one over their time constant in samples.
        gains: of the trackers of the spread; a tracker with gain 0 keeps the spread of the model.
        prior: weights of the trackers at the start. By default each has a tenth of the weight of the
            one before: quick trackers waver, and gain weight fast when the noise jumps.
        memory: factor by which the past counts less with each unit of time in the trackers' weights.
        features: of the scale model that g comes from, at most; 0 for none, g = 1. A state has half their square in
            numbers.
    """

    levels: tuple[float, ...]
    symmetric: bool
    rate: float
    gains: tuple[float, ...]
    log_prior: tuple[float, ...]  # J
    memory: float
    features: int
    State: ClassVar[type[View]] = CalibratedState

    def __init__(
        self,
        model: Model,
        *,
        levels: Sequence[float] = LEVELS,
        symmetric: bool = True,
        rate: float = 0.007,
        gains: Sequence[float] = (0.0, 0.02, 0.1),
        prior: Sequence[float] | None = None,
        memory: float = 0.98,
        features: int = 128,
    ) -> None:
        """Take the settings: see the class."""
        features = checks.whole("features", features, 0, MOST)
        gains = checks.all_between("gains", gains, 0.0, 1.0, open_low=False)
        given = 0.1 ** np.arange(len(gains)) if prior is None else prior
        shares = np.array(checks.all_between("prior", given, 0.0, np.inf))
        if len(shares) != len(gains):
            raise ValueError(f"prior must have one weight for each of {len(gains)} gains; got {len(shares)}")
        settings = {
            "model": model,
            "levels": _checked_levels(levels),
            "symmetric": bool(symmetric),
            "rate": checks.between("rate", rate, 0.0, 1.0),
            "gains": gains,
            "log_prior": tuple(np.log(shares / np.sum(shares)).tolist()),
            "memory": checks.between("memory", memory, 0.0, 1.0),
            "features": features,
        }
        if 0 < features < FEWEST:
            raise ValueError(f"features must be 0 for no scale model, or at least {FEWEST}; got {features}")
        for name, value in settings.items():
            object.__setattr__(self, name, value)

    @property
    def normal(self) -> bool:  # type: ignore[override]
        """Not a normal distribution."""
        return False

    # ---- records -----------------------------------------------------------------------------------------------------

    @property
    def sides(self) -> int:
        """1 if both sides of an interval are controlled together, else 2: below and above."""
        return 1 if self.symmetric else 2

    @property
    def row_scale(self) -> RowScale | None:
        """The scale model, or None."""
        return RowScale(self.features) if self.features else None

    def record_dtype(self, inputs: int, outputs: int) -> np.dtype:
        """Layout of a state."""
        sizes = {
            "J": len(self.gains),
            "L": len(self.levels),
            "S": self.sides,
            "P": outputs,
            "K": 1 + bool(self.features),
        }
        scale = self.row_scale.dtype(inputs, outputs) if self.row_scale else None
        return CalibratedState.dtype(**sizes, scale=scale, inner=self.model.record_dtype(inputs, outputs))

    def view(self, record: np.ndarray) -> CalibratedState:
        """The wrapper's fields, and those of the held model and of the scale model."""
        scale = RowScaleState(record["scale"]) if self.row_scale else None
        return CalibratedState(record, scale=scale, inner=self.model.view(record["inner"]))

    def forecast_dtype(self, outputs: int) -> np.dtype:
        """Layout of a forecast: reaches of each level and side with g and without, what g needs, the held part."""
        fields: list[Any] = [("reach", np.float64, (len(self.levels), self.sides, outputs))]
        if self.row_scale:
            fields += [
                ("plain", *fields[0][1:]),
                ("log_g", np.float64, (outputs,)),
                ("recent", np.float64, (2, outputs)),
            ]
        return forecasts.layout(outputs, *fields, ("inner", self.model.forecast_dtype(outputs)))

    def law(self, made: np.ndarray) -> Recalibrated:
        """The held model's law, stretched."""
        reach = np.moveaxis(made["reach"], 0, 2)  # L×S×N×P
        lower = None if self.symmetric else reach[:, 0]
        return Recalibrated(self.model.law(made["inner"]), reach[:, -1], lower, self.levels)

    def check(self, state: CalibratedState) -> None:
        """Refuse fields out of range, also of the scale model."""
        super().check(state)
        if self.row_scale:
            state.scale.check("scale.")

    def facts(self, state: CalibratedState) -> dict[str, Any]:
        """How much wider each interval is than that of the held model for g = 1, averaged over outputs and sides."""
        factors = np.mean(self._reach(state)[-1] / self._nominal(), (1, 2))
        named = {f"{100.0 * level:g} %": float(factor) for level, factor in zip(self.levels, factors, strict=True)}
        return self.model.facts(state.inner) | {"calibration": named}

    # ---- the contract ------------------------------------------------------------------------------------------------

    def start(self, state: CalibratedState, X: np.ndarray, y: np.ndarray) -> None:
        """Start the held model; its intervals count as right."""
        state.log_weights[...] = np.array(self.log_prior)[:, None]
        if self.row_scale:
            self.row_scale.start(state.scale, X, y)
        self.model.start(state.inner, X, y)

    def forecast(self, state: CalibratedState, X: np.ndarray) -> np.ndarray:
        """Forecast of the held model, stretched."""
        held = self.model.forecast(state.inner, X)
        log_g = self._log_g(state, X, held)
        plain, reach = self._reach(state)[0], self._reach_at(state, log_g)
        first, second = moments(reach, self.levels)  # N×P
        spread_of_h = second - first**2
        made = forecasts.records(
            self.forecast_dtype(plain.shape[-1]),
            held["mean"] + np.sqrt(held["variance"]) * first,
            held["variance"] * spread_of_h,
            held["noise"] * spread_of_h,
        )
        made["reach"], made["inner"] = np.moveaxis(reach, 2, 0), held
        if self.row_scale:
            made["plain"], made["log_g"], made["recent"] = plain, log_g, state.scale.recent
        return made

    def usual_std(self, made: np.ndarray) -> np.ndarray:
        """Standard deviations without g, so that the scale model does not change what is learned."""
        if not self.row_scale:
            return super().usual_std(made)
        first, second = moments(np.moveaxis(made["plain"], 0, 2), self.levels)  # N×P
        return np.sqrt(made["inner"]["variance"] * (second - first**2))

    def median_reach(self, made: np.ndarray) -> np.ndarray:
        """That of the held model, since medians stay the same."""
        held = made["inner"]
        return np.abs(made["mean"] - held["mean"]) + self.model.median_reach(held)

    def joint(self, state: CalibratedState, X: np.ndarray) -> np.ndarray:
        """Joint covariance of the held model, stretched as its variances are: the correlations stay."""
        log_g = self._log_g(state, X, self.model.forecast(state.inner, X))
        first, second = moments(self._reach_at(state, log_g), self.levels)  # N×P
        factor = np.sqrt(second - first**2).T
        return factor[:, :, None] * self.model.joint(state.inner, X) * factor[:, None, :]

    def learn(
        self, state: CalibratedState, x: np.ndarray, y: np.ndarray, elapsed: float, forecast: np.ndarray | None = None
    ) -> None:
        """See how far out the target was, then let the held model learn."""
        issued = self.forecast(state, x[None]) if forecast is None else forecast
        known, law = issued["inner"], self.law(issued)  # as they were issued
        log_g = issued["log_g"][0] if self.row_scale else np.zeros(len(y))
        reach = np.stack(
            [issued[name][0] for name in (("plain", "reach") if self.row_scale else ("reach",))]
        )  # K×L×S×P
        observed = np.isfinite(y) & (self.fills_gaps or np.isfinite(x).all())  # P
        z = np.where(observed, law.model.to_normal(np.where(observed, y, 0.0))[0], 0.0)  # P
        observed &= ~np.isnan(z)  # a forecast that is not finite
        z = np.where(observed, z, 0.0)
        scores = np.stack([z, z * np.exp(-log_g)])[-len(reach) :, None]  # K×1×P
        memory = self.memory**elapsed
        returned = memory * state.log_weights + (1.0 - memory) * np.array(self.log_prior)[:, None]
        log_weights = returned + np.where(observed, _log_likelihood(state.log_s2, scores), 0.0)  # K×J×P
        excess = self._steps() * self._excess(reach, z)  # K×L×S×P
        followed = np.maximum(_follow(state.log_s2, scores, np.array(self.gains)[:, None]), 2.0 * _LEAST_LOG)
        state.log_weights[...] = log_weights - np.max(log_weights, 1, keepdims=True)
        state.log_s2[...] = np.where(observed, followed, state.log_s2)
        state.offset[...] = np.where(observed, np.maximum(state.offset + excess, _LEAST_LOG), state.offset)
        if self.row_scale:
            u = np.abs(law.nominal(z[None])[0])
            self.row_scale.learn(state.scale, x, known, issued["recent"][0], u, log_g, observed, elapsed)
        self.model.learn(state.inner, x, y, elapsed, known)

    def rescale(self, state: CalibratedState, units: Units) -> None:
        """Rescale the held model's state, and what the scale model knows of the inputs and laws."""
        if self.row_scale:
            self.row_scale.rescale(state.scale, units)
        super().rescale(state, units)

    def move_level(self, state: CalibratedState, step: np.ndarray) -> None:
        """Move the held model's past targets, and the laws that the scale model remembers."""
        if self.row_scale:
            self.row_scale.move_level(state.scale, step)
        super().move_level(state, step)

    # ---- reaches and controllers -------------------------------------------------------------------------------------

    def _log_g(self, state: CalibratedState, X: np.ndarray, held: np.ndarray) -> np.ndarray:
        """Logarithm of g for forecasts of the held model at the rows of X, N×P."""
        if not self.row_scale:
            return np.zeros(held["mean"].shape)
        return self.row_scale.log_factor(state.scale, X, held)

    def _reach(self, state: CalibratedState) -> np.ndarray:
        """c with g = 1, in increasing order of the levels, K×L×S×P."""
        log_s = 0.5 * np.sum(softmax(state.log_weights, 1) * state.log_s2, 1)  # K×P
        nominal = np.log(self._nominal())  # L×1×1
        in_order = np.maximum.accumulate(log_s[:, None, None] + state.offset + (1.0 - _LEAST_RATIO) * nominal, 1)
        return np.exp(in_order + _LEAST_RATIO * nominal)

    def _reach_at(self, state: CalibratedState, log_g: np.ndarray) -> np.ndarray:
        """c of rows with factors g (N×P), L×S×N×P."""
        return self._reach(state)[-1][:, :, None] * np.exp(log_g)

    def _excess(self, reach: np.ndarray, z: np.ndarray) -> np.ndarray:
        """[outside] − nominal share outside, of each level and side, K×L×S×P."""
        share = 1.0 - np.array(self.levels)[:, None, None]
        if self.symmetric:
            return (np.abs(z) > reach) - share
        return (np.stack([-z, z]) > reach) - 0.5 * share

    def _steps(self) -> np.ndarray:
        """γ of each level, L×1×1: the rate over the change of the share outside with log c."""
        nominal = self._nominal()
        return self.rate / ((2.0 if self.symmetric else 1.0) * nominal * pdf(nominal))

    def _nominal(self) -> np.ndarray:
        return nominal_reach(self.levels)[:, None, None]


def _follow(log_s2: np.ndarray, z: np.ndarray, gain: np.ndarray) -> np.ndarray:
    """log s² after one more score: log s² + g (min(z²/s², c) − 1), a step up the log-likelihood of z ~ N(0, s²)."""
    return log_s2 + gain * (np.minimum(z**2 * np.exp(-log_s2), _CAP) - 1.0)


def _log_likelihood(log_s2: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Log density of z ~ N(0, s²), up to a constant, with the same limit on z."""
    return -0.5 * (log_s2 + np.minimum(z**2 * np.exp(-log_s2), _CAP))


def _checked_levels(levels: Sequence[float]) -> tuple[float, ...]:
    values = tuple(float(level) for level in np.atleast_1d(levels))
    if not values or not all(
        0.0 < low < high < 1.0 for low, high in zip(values, (*values[1:], 1.0 - 1e-12), strict=True)
    ):
        raise ValueError(f"levels must increase and lie strictly between 0 and 1; got {levels!r}")
    return values
