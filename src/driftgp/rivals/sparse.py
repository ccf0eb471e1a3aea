"""What the rivals with inducing points have in common: M slots, their first filling, and the forecast.

Inducing inputs move by gradient, all of them, with the hyperparameters. Where inputs march on, as time does, a few
steps per sample may be too slow, and a point left far behind has no gradient any more. Every `renew` samples the oldest
point can therefore be put at the newest sample. A slot that is still free (cold start) is taken by the first samples
that the points in use do not explain.
"""

import abc
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from driftgp.rivals import jax_bound as bound
from driftgp.rivals import jax_inducing as inducing
from driftgp.rivals import settings
from driftgp.rivals.base import Normal
from driftgp.rivals.jax_inducing import PLACEMENTS, Inducing
from driftgp.rivals.jax_learning import Hyperparameters
from driftgp.rivals.jax_window import Units, Window
from driftgp.rivals.loops import only_if
from driftgp.rivals.windowed import Fit, WindowedModel, WindowedState, points_of


class SparseModel(WindowedModel):
    """A windowed model with M inducing points, whose posterior is a `bound.Posterior`.

    `fit.free` is a tuple that starts with the inducing inputs, `fit.rest` one that starts with the slots in use and the
    number of samples since the last renewal.

    Args:
        kernel: covariance with its starting parameters; squared exponential by default.
        inducing: inducing points M.
        inducing_inputs: first inducing inputs, in place of a placement, at most M rows.
        placement: "greedy" takes the samples of the warm-up least explained by those taken before, "recent" every
            second one of the last 2M.
        learn_inducing: learn the inducing inputs, or leave them where they are.
        renew: samples from one renewal to the next; a renewal moves the oldest inducing point to the newest sample.
            The default T/M spreads the points over the window. With 0, only the gradient moves them.
        novelty: a sample takes a slot that is still free if the points leave more than this share of its prior
            variance unexplained.
        absolute_jitter: added to Kuu as it is, as the published runs did.
    """

    inducing: int = settings.whole(10, 1)
    inducing_inputs: Any = settings.inputs()
    placement: str = settings.one_of("greedy", PLACEMENTS)
    learn_inducing: bool = settings.flag(True)
    renew: Any = settings.whole(None, 0)
    novelty: float = settings.share(0.01)
    absolute_jitter: float = settings.number(0.0, open_low=False)

    def __post_init__(self, attenuation: float | None) -> None:
        """Check the settings."""
        super().__post_init__(attenuation)
        if self.renew is None:
            self.renew = max(self.window // self.inducing, 1)

    def derived(self) -> tuple[str, ...]:
        """The posterior."""
        return "posterior_inverse_L", "posterior_C", "posterior_alpha"

    def place(self, h: Hyperparameters, memory: Window, filled: int) -> Inducing:
        """First inducing points."""
        return inducing.place(self.inducing_inputs, self.placement, h.kernel, memory, filled, self.inducing)

    def beginning(self, points: Inducing) -> tuple[Array, Array]:
        """The first entries of `fit.rest`."""
        return points.used, jnp.zeros((), jnp.int32)

    def grams(self, h: Hyperparameters, points: Inducing, X: Array) -> tuple[Array, Array]:
        """Kuu and Kux; the inducing inputs have a derivative only if they are learned."""
        if not self.learn_inducing:
            points = replace(points, U=lax.stop_gradient(points.U))
        return inducing.grams(h.kernel, points, X, self.jitter, self.absolute_jitter)

    def gram(self, fit: Fit) -> Array:
        """Kuu."""
        return inducing.gram(fit.hyperparameters.kernel, points_of(fit), self.jitter, self.absolute_jitter)

    def root(self, fit: Fit) -> tuple[Array, Array]:
        """L⁻¹ of Kuu, and the repairs that its factorisation needed."""
        return bound.inverse_root(self.gram(fit))

    @abc.abstractmethod
    def move(self, fit: Fit, U: Array) -> Fit:
        """Put the inducing points at U, where the first is gone and a new one has come last."""

    def welcome(self, fit: Fit, x: Array) -> Fit:
        """Let the sample take a free slot or, when it is time, the place of the oldest point."""
        fit = self._admit(fit, x)
        if self.renew == 0:
            return fit
        used, age, *others = fit.rest
        due = (age + 1 >= self.renew) & jnp.all(used)
        fit = replace(fit, rest=(used, jnp.where(due, 0, age + 1), *others))
        U = jnp.concatenate([fit.free[0][1:], x[None]])  # points stay in the order of their arrival
        return only_if(due, lambda fit: self.move(fit, U), fit)

    def _admit(self, fit: Fit, x: Array) -> Fit:
        """Give the sample a free slot, if any, unless the points in use explain the sample.

        Whitened values need no change: unused ones are at their prior N(0, 1), and so begins the new one.
        """
        kernel, points = fit.hyperparameters.kernel, points_of(fit)
        a = self.root(fit)[0] @ inducing.cross(kernel, points, x[None])[:, 0]  # M
        kxx = kernel(x[None])[0]
        admit = (kxx - a @ a > self.novelty * kxx) & (points.count < self.inducing)
        grown = inducing.append(points, x)
        U, used = jnp.where(admit, grown.U, points.U), jnp.where(admit, grown.used, points.used)
        return replace(fit, free=(U, *fit.free[1:]), rest=(used, *fit.rest[1:]))

    def fit_in_units(self, fit: Fit, units: Units) -> Fit:
        """Move the points to where they are in other units; what is known of their values comes from `revalue`."""
        U, *others = fit.free
        moved = replace(fit, free=(jnp.where(fit.rest[0][:, None], units.inputs(U), 0.0), *others))
        return self.revalue(fit, moved, units)

    @abc.abstractmethod
    def revalue(self, fit: Fit, moved: Fit, units: Units) -> Fit:
        """Express in other units what a fit knows of the inducing values; in `moved` the points have moved already."""

    def look(self, state: WindowedState, X: Array) -> Normal:
        """Mean and variance from the inducing values (eq. q_f*)."""
        h = state.hyperparameters
        Kus = inducing.cross(h.kernel, points_of(state.fit), X)  # M×N
        mean, latent = bound.predict(state.posterior, Kus, h.kernel(X))
        return Normal(mean, latent + h.noise, jnp.broadcast_to(h.noise, mean.shape))
