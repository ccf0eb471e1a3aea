"""Online GP regression by Woodbury's identity and structured kernel interpolation (WISKI).

S. Stanton, W. J. Maddox, I. Delbridge, A. G. Wilson, "Kernel Interpolation for Scalable Online Gaussian
Processes", AISTATS 2021.

The function is interpolated from a fixed grid of m points. Statistics of fixed size summarise what the data say of the
grid's values (module `woodbury`). The paper truncates the root of WᵀW. Here the root of the grid's Gram matrix is
truncated: F are its leading eigenvectors, `rank` of them. The Kronecker product gives them cheaply, and for a smooth
kernel they leave almost nothing out.

One gradient step per sample, as the authors take it: at the statistics before the sample, from the factorisation that
also gave the prediction. More than two inputs go through a learned map to two (module `input_map`). The map climbs the
log predictive density of the newest sample: all of the evidence that depends on its interpolation weights. Nothing is
ever forgotten. Cost of a sample: O(m² rank), of a mean O(m rank).
"""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree
from numpy.typing import ArrayLike

from driftgp.base import checks
from driftgp.rivals import jax_learning as learning
from driftgp.rivals import jax_window as window
from driftgp.rivals import settings, ski, woodbury
from driftgp.rivals.base import Normal, Rival
from driftgp.rivals.exact_window import evidence
from driftgp.rivals.input_map import AXES, Projection, first_projection, mapped, with_input, with_weights
from driftgp.rivals.jax_learning import Hyperparameters
from driftgp.rivals.jax_window import Units, Window
from driftgp.rivals.loops import only_if
from driftgp.rivals.ski import Grid
from driftgp.rivals.woodbury import GridPosterior, Woodbury


class WISKIState(eqx.Module):
    """What WISKI remembers."""

    grid: Grid
    projection: Projection | None
    hyperparameters: Hyperparameters
    woodbury: Woodbury
    posterior: GridPosterior
    gradient: Hyperparameters  # of the evidence, at the present statistics
    optimizer: Any
    projection_optimizer: Any
    skipped: Array  # gradient steps left out because something in them was not finite
    repaired: Array  # factorisations that needed more jitter


def _checked_bounds(name: str, bounds: ArrayLike) -> np.ndarray:
    array = checks.real(name, bounds)
    if array.shape not in ((2,), (1, 2), (2, 2)) or not np.all(np.isfinite(array)):
        raise ValueError(f"bounds must be (lower, upper), or such a pair for each input; got {bounds!r}")
    if not np.all(array[..., 0] < array[..., 1]):
        raise ValueError(f"bounds must have the lower end first; got {bounds!r}")
    return array


class WISKI(Rival):
    """GP on a fixed grid, by statistics of fixed size, with one gradient step per sample.

    >>> import numpy as np
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> model = WISKI(grid=20, bounds=(0, 1))
    >>> state = model.init(X[:40], np.sin(6 * X[:40, 0]))
    >>> state = model.update(state, X[40], np.sin(6 * X[40, 0]))
    >>> bool(abs(model.predict(state, X[41:42]).mean[0] - np.sin(6 * X[41, 0])) < 0.05)
    True

    Args:
        kernel: covariance with its starting parameters; squared exponential by default. For more than two inputs
            it is a kernel of the two that they are mapped to.
        noise: starting variance of the noise.
        grid: points along each axis; by default 40 on one, 20 on each of two.
        bounds: ends of the grid, (lower, upper) for both axes or a pair for each. Inputs beyond them count as on
            the edge. By default the range of the warm-up batch, widened by its width on both sides; a grid for
            mapped inputs always goes from −1 to 1.
        rank: most eigenvectors of the grid's kernel that are kept.
        rate: Adam's rate for the logarithms of the hyperparameters; its state is carried along.
        projection_rate: Adam's rate for the map.
        learns: the objective of the step per sample. "evidence" is the evidence in all hyperparameters. "noise" is
            the noise alone, as in the paper's notebooks: −½ (n log σ² + q/σ²) with q = σ² yᵀ(W K Wᵀ + σ²I)⁻¹y held
            fixed. Forecasts are then made without derivatives, and the step uses their cached values.
        warmup_iterations: Adam iterations on the evidence of the warm-up batch.
        warmup_rate: their rate.
        anneal: let it fall as half a cosine does, to 1e-4.
        warmup_samples: most samples, the last ones of the batch, whose evidence is maximised.
        seed: for the first weights of the map.
    """

    grid: int | None = settings.whole(None, 4)
    bounds: Any = settings.read(None, _checked_bounds)
    rank: int = settings.whole(100, 1)
    rate: float = settings.number(0.02, open_low=False)
    projection_rate: float = settings.number(0.005, open_low=False)
    learns: str = settings.one_of("evidence", ("evidence", "noise"))
    warmup_iterations: int = settings.whole(200, 0)
    warmup_rate: float = settings.number(0.05)
    anneal: bool = settings.flag(False)
    warmup_samples: int = settings.whole(500, 1)
    seed: Any = settings.seed()

    # ---- what a rival provides ---------------------------------------------------------------------------------------

    def begin(self, X: Array, y: Array) -> WISKIState:
        """Maximise the evidence of the batch, then sum it up."""
        h = learning.initial(self.kernel, self.noise, min(X.shape[1], AXES), y.shape[1])
        memory = window.fill(X, y, 1.0, X.shape[0])  # gaps have weight 0
        grid, projection = self._grid(memory), first_projection(memory, self.seed)
        skipped = jnp.zeros((), jnp.int32)
        if X.shape[0] > 0 and self.warmup_iterations > 0:
            recent = jax.tree.map(lambda rows: rows[-self.warmup_samples :] if rows.ndim else rows, memory)
            h, projection, skipped = self._warm_up(h, grid, projection, recent)
        s = woodbury.summed_up(ski.interpolation(grid, mapped(projection, memory.X)), memory.w, memory.y)
        q, gradient, repairs = woodbury.condition(grid, h, s, self.rank)
        return WISKIState(
            grid=grid,
            projection=projection,
            hyperparameters=h,
            woodbury=s,
            posterior=q,
            gradient=gradient,
            optimizer=learning.begun(learning.adam(self.rate), h),
            projection_optimizer=_begun(projection),
            skipped=skipped,
            repaired=repairs,
        )

    def look(self, state: WISKIState, X: Array) -> Normal:
        """Mean and variance of the interpolated values."""
        noise = state.hyperparameters.noise
        mean, latent = woodbury.interpolated(state.grid, state.posterior, mapped(state.projection, X))
        return Normal(mean, latent + noise, jnp.broadcast_to(noise, mean.shape))

    def step(self, state: WISKIState, x: Array, y: Array, elapsed: Array) -> WISKIState:  # noqa: ARG002
        """One gradient step, then the sample joins the statistics; time means nothing to this model."""
        return only_if(window.observed(x, y), lambda state: self._absorb(state, x, y), state)

    def in_units(self, state: WISKIState, units: Units) -> WISKIState:
        """Grid or map, and targets, in other units."""
        grid, projection, s = state.grid, state.projection, woodbury.in_units(state.woodbury, units)
        if projection is None:
            grid = replace(grid, lower=units.inputs(grid.lower), upper=units.inputs(grid.upper))
        else:
            scale = units.x_scale
            projection = replace(
                projection,
                A=projection.A * scale,
                mean=units.inputs(projection.mean),
                covariance=projection.covariance / (scale[:, None] * scale),
            )
        q, gradient, repairs = woodbury.condition(grid, state.hyperparameters, s, self.rank)
        return replace(
            state,
            grid=grid,
            projection=projection,
            woodbury=s,
            posterior=q,
            gradient=gradient,
            repaired=state.repaired + repairs,
        )

    # ---- a step ------------------------------------------------------------------------------------------------------

    def _absorb(self, state: WISKIState, x: Array, y: Array) -> WISKIState:
        state = self._climb_map(state, x, y)
        gradient = state.gradient if self.learns == "evidence" else self._cached_gradient(state)
        # The gradient is known already: the objective that has it everywhere is linear.
        climb = learning.ascend(
            lambda h, _: _inner(gradient, h),
            state.hyperparameters,
            (),
            learning.adam(self.rate),
            state.optimizer,
            1,
        )
        w = ski.interpolation(state.grid, mapped(state.projection, x[None]))[0]  # m
        s = woodbury.with_sample(state.woodbury, w, y)
        q, gradient, repairs = woodbury.condition(state.grid, climb.positive, s, self.rank)
        return replace(
            state,
            hyperparameters=climb.positive,
            woodbury=s,
            posterior=q,
            gradient=gradient,
            optimizer=climb.optimizer,
            skipped=state.skipped + climb.skipped,
            repaired=state.repaired + repairs,
        )

    def _cached_gradient(self, state: WISKIState) -> Hyperparameters:
        """The derivative that is left where all but the noise's own terms comes from a cache."""
        s, q, noise = state.woodbury, state.posterior, state.hyperparameters.noise
        fixed = s.yy - jnp.sum((q.F.T @ s.Wy) * q.alpha, 0)  # P, σ² yᵀ(W K Wᵀ + σ²I)⁻¹ y
        nothing: Hyperparameters = jax.tree.map(jnp.zeros_like, state.hyperparameters)
        return replace(nothing, noise=0.5 * (fixed / noise - s.n) / noise)

    def _climb_map(self, state: WISKIState, x: Array, y: Array) -> WISKIState:
        """Let the map climb the log predictive density of the sample."""
        if state.projection is None:
            return state
        projection = with_input(state.projection, x)

        def objective(_: tuple[()], A: Array) -> Array:
            features = mapped(with_weights(projection, A), x[None])
            mean, latent = woodbury.interpolated(state.grid, state.posterior, features)
            variance = latent[0] + state.hyperparameters.noise  # P
            return -0.5 * jnp.sum(jnp.log(variance) + (y - mean[0]) ** 2 / variance)

        optimizer = learning.adam(self.projection_rate)
        climb = learning.ascend(objective, (), projection.A, optimizer, state.projection_optimizer, 1)
        return replace(
            state,
            projection=replace(projection, A=climb.free),
            projection_optimizer=climb.optimizer,
            skipped=state.skipped + climb.skipped,
        )

    # ---- the warm-up -------------------------------------------------------------------------------------------------

    def _grid(self, memory: Window) -> Grid:
        """The grid of the settings, or one that the batch lies in the middle of."""
        inputs = memory.X.shape[1]
        dimensions = min(inputs, AXES)
        size = self.grid if self.grid is not None else (40 if dimensions == 1 else 20)
        ones = jnp.ones(dimensions)
        if inputs > AXES:
            return Grid(-ones, ones, size)
        if self.bounds is not None:
            lower, upper = jnp.broadcast_to(self.bounds, (dimensions, 2)).T
            return Grid(lower, upper, size)
        seen = (memory.w > 0.0)[:, None]
        lower = jnp.min(jnp.where(seen, memory.X, jnp.inf), 0, initial=jnp.inf)
        upper = jnp.max(jnp.where(seen, memory.X, -jnp.inf), 0, initial=-jnp.inf)
        width = upper - lower
        wide = jnp.isfinite(width) & (width > 0.0)
        return Grid(jnp.where(wide, lower - width, -ones), jnp.where(wide, upper + width, ones), size)

    def _warm_up(
        self, h: Hyperparameters, grid: Grid, projection: Projection | None, memory: Window
    ) -> tuple[Hyperparameters, Projection | None, Array]:
        """Hyperparameters and map by the evidence of the batch, from its N×N covariance W K Wᵀ + σ²I."""
        w, n = memory.w[:, None], jnp.sum(memory.w)

        def objective(h: Hyperparameters, A: Array | None) -> Array:
            features = mapped(with_weights(projection, A), memory.X)
            return evidence(w * ski.gram(grid, h.kernel, features) * w.T, w * memory.y, n, h.noise)

        rate = self.warmup_rate
        optimizer = learning.annealed(rate, self.warmup_iterations) if self.anneal else learning.adam(rate)
        free = None if projection is None else projection.A
        begun = learning.begun(optimizer, h, free)
        climb = learning.ascend(objective, h, free, optimizer, begun, self.warmup_iterations)
        return climb.positive, with_weights(projection, climb.free), climb.skipped


def _begun(projection: Projection | None) -> Any:
    if projection is None:
        return ()
    return learning.begun(learning.adam(1.0), (), projection.A)


def _inner(a: Any, b: Any) -> Array:
    return jnp.sum(ravel_pytree(a)[0] * ravel_pytree(b)[0])
