"""Online GP regression by Woodbury's identity and structured kernel interpolation (WISKI).

S. Stanton, W. J. Maddox, I. Delbridge, A. G. Wilson, "Kernel Interpolation for Scalable Online Gaussian
Processes", AISTATS 2021.

The covariance of the targets is W K Wᵀ + σ²I, with K the Gram matrix of a fixed grid of m points and a row of
cubic interpolation weights w for each sample (module `ski`). By Woodbury's identity the data enter only through

    n    yᵀy    Wᵀy (m)    WᵀW (m×m)

whose size does not grow. With K = F Fᵀ, Φ = Fᵀ WᵀW F, b = Fᵀ Wᵀy, B = I + Φ/σ²:

    evidence  −½ [n log 2πσ² + log |B| + yᵀy/σ² − bᵀB⁻¹b/σ⁴]
    mean      w*ᵀ F α, α = B⁻¹b/σ²          variance  w*ᵀ F B⁻¹ Fᵀ w*

The paper truncates the root of WᵀW, here K's is: F are its leading eigenvectors, `rank` of them, which the
Kronecker product gives for nothing, and which for a smooth kernel leave next to nothing out. The evidence's
derivative is written out, so that nothing is differentiated through a factorisation: with u the grid's values, v =
Wᵀ(y − W E[u])/σ² and D = WᵀW/σ² − WᵀW Cov[u] WᵀW/σ⁴,

    ∂evidence/∂K = ½ (v vᵀ − D)          ∂evidence/∂σ⁻² = ½ (nσ² − E |y − W u|²)

One gradient step a sample, as the authors take it: at the statistics before the sample, from the factorisation
that also gave the prediction. More than two inputs go through a learned map to two, h = tanh(½ (A x −
mean)/deviation), batch normalisation over all the inputs seen; A climbs the log predictive density of the newest
sample, all of the evidence that depends on its interpolation weights. Nothing is ever forgotten. Cost of a sample:
O(m² rank), of a mean O(m rank).
"""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree
from jax.typing import ArrayLike

from driftgp import bound, checks, learning, window
from driftgp.kernels import SE, Covariance
from driftgp.learning import Hyperparameters
from driftgp.loops import only_if
from driftgp.model import Layout, Model, State, Units
from driftgp.prediction import Gaussian
from driftgp.rivals import ski
from driftgp.rivals.exact_window import evidence
from driftgp.rivals.ski import Grid
from driftgp.window import Window

_AXES = 2  # of the largest grid


class Woodbury(eqx.Module):
    """Everything that the evidence and the posterior know of the data."""

    n: Array
    yy: Array  # P
    Wy: Array  # m×P
    WW: Array  # m×m


class Projection(eqx.Module):
    """The learned map of more than two inputs to two, and the moments of the inputs that normalise it."""

    A: Array  # 2×D
    n: Array
    mean: Array  # D
    covariance: Array  # D×D


class GridPosterior(eqx.Module):
    """The distribution of the grid's values, u = F z."""

    F: Array  # m×r
    C: Array  # P×r×r, Cᵀ C = B⁻¹
    alpha: Array  # r×P, E[z]


class WISKIState(State):
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
    layout: Layout = eqx.field(static=True)


class WISKI(Model[WISKIState]):
    """GP on a fixed grid, by statistics of fixed size, with one gradient step a sample.

    >>> import numpy as np
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> model = WISKI(grid=20, bounds=(0, 1))
    >>> state = model.init(X[:40], np.sin(6 * X[:40, 0]))
    >>> state = model.update(state, X[40], np.sin(6 * X[40, 0]))
    >>> bool(abs(model.predict(state, X[41:42]).mean[0] - np.sin(6 * X[41, 0])) < 0.05)
    True
    """

    kernel: Covariance
    noise: Array
    bounds: Array | None
    rate: Array
    projection_rate: Array
    warmup_rate: Array
    seed: Any
    grid: int | None = eqx.field(static=True)
    rank: int = eqx.field(static=True)
    warmup_iterations: int = eqx.field(static=True)
    warmup_samples: int = eqx.field(static=True)

    def __init__(
        self,
        kernel: Covariance | None = None,
        *,
        noise: ArrayLike = 1.0,
        grid: int | None = None,
        bounds: ArrayLike | None = None,
        rank: int = 100,
        rate: ArrayLike = 0.02,
        projection_rate: ArrayLike = 0.005,
        warmup_iterations: int = 200,
        warmup_rate: ArrayLike = 0.05,
        warmup_samples: int = 500,
        seed: int = 0,
    ) -> None:
        """Take the settings; those that are arrays may differ between the models of a batch.

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
            warmup_iterations: Adam iterations on the evidence of the warm-up batch.
            warmup_rate: their rate.
            warmup_samples: most samples, the last ones of the batch, whose evidence is maximised.
            seed: for the first weights of the map.
        """
        self.kernel = learning.float_leaves(SE() if kernel is None else kernel)
        self.noise = checks.between("noise", noise, 0.0, np.inf)
        self.grid = None if grid is None else checks.whole("grid", grid, 4)
        self.bounds = None if bounds is None else _checked_bounds(bounds)
        self.rank = checks.whole("rank", rank, 1)
        self.rate = checks.between("rate", rate, 0.0, np.inf, open_low=False)
        self.projection_rate = checks.between("projection_rate", projection_rate, 0.0, np.inf, open_low=False)
        self.warmup_iterations = checks.whole("warmup_iterations", warmup_iterations, 0)
        self.warmup_rate = checks.between("warmup_rate", warmup_rate, 0.0, np.inf)
        self.warmup_samples = checks.whole("warmup_samples", warmup_samples, 1)
        self.seed = np.asarray(checks.whole("seed", seed, 0), np.uint32)

    # ---- the contract ------------------------------------------------------------------------------------------------

    def start(self, layout: Layout, X: Array, y: Array) -> WISKIState:
        """Maximise the evidence of the batch, then sum it up."""
        h = learning.initial(self.kernel, self.noise, layout.columns, layout.dtype)
        memory = window.fill(X, y, jnp.ones((), X.dtype), X.shape[0])  # gaps have weight 0
        grid, projection = self._grid(memory, layout), self._projection(memory, layout)
        skipped = jnp.zeros((), jnp.int32)
        if X.shape[0] > 0 and self.warmup_iterations > 0:
            recent = jax.tree.map(lambda rows: rows[-self.warmup_samples :] if rows.ndim else rows, memory)
            h, projection, skipped = self._warm_up(h, grid, projection, recent)
        W = ski.interpolation(grid, _mapped(projection, memory.X)) * memory.w[:, None]  # N×m
        s = Woodbury(jnp.sum(memory.w), memory.w @ memory.y**2, W.T @ memory.y, W.T @ W)
        q, gradient, repairs = self._condition(grid, h, s)
        return WISKIState(
            grid=grid,
            projection=projection,
            hyperparameters=h,
            woodbury=s,
            posterior=q,
            gradient=gradient,
            optimizer=learning.begin(learning.adam(self.rate), h),
            projection_optimizer=_begin(projection),
            skipped=skipped,
            repaired=repairs,
            layout=layout,
        )

    def forecast(self, state: WISKIState, X: Array) -> Gaussian:
        """Mean and variance of the interpolated values."""
        noise = state.hyperparameters.noise
        mean, latent = _interpolated(state.grid, state.posterior, _mapped(state.projection, X))
        return Gaussian(mean, latent + noise, jnp.broadcast_to(noise, mean.shape))

    def learn(self, state: WISKIState, x: Array, y: Array, elapsed: Array) -> WISKIState:  # noqa: ARG002
        """One gradient step, then the sample joins the statistics; time means nothing to this model."""
        observed = jnp.all(jnp.isfinite(y)) & jnp.all(jnp.isfinite(x))
        return only_if(observed, lambda state: self._absorb(state, x, y), state)

    def rescale(self, state: WISKIState, units: Units) -> WISKIState:
        """Grid or map, and targets, in other units: interpolation weights stay, and those of a sample add up to 1."""
        s, y0, y1 = state.woodbury, units.y_centre, units.y_scale
        Wy = (s.Wy - jnp.sum(s.WW, 1)[:, None] * y0) / y1
        yy = (s.yy - 2.0 * y0 * jnp.sum(s.Wy, 0) + s.n * y0**2) / y1**2
        s = replace(s, Wy=Wy, yy=yy)
        grid, projection = state.grid, state.projection
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
        q, gradient, repairs = self._condition(grid, state.hyperparameters, s)
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
        # The gradient is known already: the objective that has it everywhere is linear.
        climb = learning.ascend(
            lambda h, _: _inner(state.gradient, h),
            state.hyperparameters,
            (),
            learning.adam(self.rate),
            state.optimizer,
            1,
        )
        w = ski.interpolation(state.grid, _mapped(state.projection, x[None]))[0]  # m
        s = state.woodbury
        s = Woodbury(s.n + 1.0, s.yy + y**2, s.Wy + w[:, None] * y, s.WW + w[:, None] * w)
        q, gradient, repairs = self._condition(state.grid, climb.positive, s)
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

    def _climb_map(self, state: WISKIState, x: Array, y: Array) -> WISKIState:
        """Let the map climb the log predictive density of the sample."""
        if state.projection is None:
            return state
        projection = _with_input(state.projection, x)

        def objective(_: tuple[()], A: Array) -> Array:
            mean, latent = _interpolated(state.grid, state.posterior, _mapped(replace(projection, A=A), x[None]))
            noise = state.hyperparameters.noise
            return jnp.sum(Gaussian(mean[0], latent[0] + noise, noise).log_prob(y))

        optimizer = learning.adam(self.projection_rate)
        climb = learning.ascend(objective, (), projection.A, optimizer, state.projection_optimizer, 1)
        return replace(
            state,
            projection=replace(projection, A=climb.free),
            projection_optimizer=climb.optimizer,
            skipped=state.skipped + climb.skipped,
        )

    def _condition(self, grid: Grid, h: Hyperparameters, s: Woodbury) -> tuple[GridPosterior, Hyperparameters, Array]:
        """Posterior of the grid's values, the evidence's derivative, and the repairs that its factorisation needed."""
        F = ski.root(ski.axis_grams(grid, h.kernel), min(self.rank, grid.points))  # m×r
        beta = 1.0 / h.noise
        WWF = s.WW @ F  # m×r
        Phi, b = F.T @ WWF, F.T @ s.Wy
        identity = jnp.eye(Phi.shape[0], dtype=Phi.dtype)
        L_B, repairs = bound.cholesky(identity + beta[:, None, None] * Phi)  # P×r×r
        C = bound.solve_lower(L_B, jnp.broadcast_to(identity, L_B.shape))
        alpha = beta * jnp.einsum("pij,pi->jp", C, jnp.einsum("pij,jp->pi", C, b))  # r×P
        v = beta * (s.Wy - WWF @ alpha)  # m×P
        V = jnp.einsum("p,mj,pij->mpi", beta, WWF, C).reshape(s.WW.shape[0], -1)  # m×Pr, V Vᵀ = Σ_p WᵀW Cov[u] WᵀW/σ⁴
        residual = s.yy - jnp.sum((2.0 * b - Phi @ alpha) * alpha, 0) + jnp.einsum("pij,jk,pik->p", C, Phi, C)

        def slope(h: Hyperparameters) -> Array:
            """A function with the derivative of the evidence: K's is ½ (v vᵀ − D), the noise's that of a likelihood."""
            grams = ski.axis_grams(grid, h.kernel)
            Y = jnp.concatenate([v, V], 1)
            by_kernel = jnp.sum(Y * ski.times(grams, Y)) - jnp.sum(beta) * ski.trace_with(grams, s.WW)
            return 0.5 * (by_kernel - jnp.sum(s.n * jnp.log(h.noise) + residual / h.noise))

        return GridPosterior(F, C, alpha), jax.grad(slope)(h), repairs

    # ---- settings put to use -----------------------------------------------------------------------------------------

    def _grid(self, memory: Window, layout: Layout) -> Grid:
        """The grid of the settings, or one that the batch lies in the middle of."""
        dimensions = min(layout.inputs, _AXES)
        size = self.grid if self.grid is not None else (40 if dimensions == 1 else 20)
        ones = jnp.ones(dimensions, layout.dtype)
        if layout.inputs > _AXES:
            return Grid(-ones, ones, size)
        if self.bounds is not None:
            lower, upper = jnp.broadcast_to(jnp.asarray(self.bounds, layout.dtype), (dimensions, 2)).T
            return Grid(lower, upper, size)
        seen = (memory.w > 0.0)[:, None]
        lower = jnp.min(jnp.where(seen, memory.X, jnp.inf), 0, initial=jnp.inf)
        upper = jnp.max(jnp.where(seen, memory.X, -jnp.inf), 0, initial=-jnp.inf)
        width = upper - lower
        wide = jnp.isfinite(width) & (width > 0.0)
        return Grid(jnp.where(wide, lower - width, -ones), jnp.where(wide, upper + width, ones), size)

    def _projection(self, memory: Window, layout: Layout) -> Projection | None:
        if layout.inputs <= _AXES:
            return None
        D = layout.inputs
        A = jax.random.normal(jax.random.key(self.seed), (_AXES, D), layout.dtype) / D**0.5
        n = jnp.sum(memory.w)
        mean = memory.w @ memory.X / jnp.maximum(n, 1.0)
        centred = memory.w[:, None] * (memory.X - mean)
        return Projection(A, n, mean, centred.T @ centred / jnp.maximum(n, 1.0))

    def _warm_up(
        self, h: Hyperparameters, grid: Grid, projection: Projection | None, memory: Window
    ) -> tuple[Hyperparameters, Projection | None, Array]:
        """Hyperparameters and map by the evidence of the batch, from its N×N covariance W K Wᵀ + σ²I."""
        w, n = memory.w[:, None], jnp.sum(memory.w)

        def objective(h: Hyperparameters, A: Array | None) -> Array:
            features = _mapped(_with_weights(projection, A), memory.X)
            return evidence(w * ski.gram(grid, h.kernel, features) * w.T, w * memory.y, n, h.noise)

        optimizer = learning.adam(self.warmup_rate)
        free = None if projection is None else projection.A
        begun = learning.begin(optimizer, h, free)
        climb = learning.ascend(objective, h, free, optimizer, begun, self.warmup_iterations)
        return climb.positive, _with_weights(projection, climb.free), climb.skipped


# ---- the map ---------------------------------------------------------------------------------------------------------


def _mapped(projection: Projection | None, X: Array) -> Array:
    """Inputs as the grid has them: as they are, or through the linear map, batch normalisation and tanh."""
    if projection is None:
        return X
    A = projection.A
    variance = jnp.sum((A @ projection.covariance) * A, -1)  # 2
    # before there is anything to normalise by, inputs are taken for standardised ones
    variance = jnp.where(projection.n > _AXES, variance, jnp.sum(A**2, -1)) + jnp.finfo(A.dtype).tiny
    return jnp.tanh(0.5 * ((X - projection.mean) @ A.T) / jnp.sqrt(variance))  # N×2


def _with_weights(projection: Projection | None, A: Any) -> Projection | None:
    return None if projection is None else replace(projection, A=A)


def _with_input(projection: Projection, x: Array) -> Projection:
    """Projection whose moments know of one more input."""
    n = projection.n + 1.0
    ahead = (x - projection.mean) / n
    covariance = projection.covariance * (1.0 - 1.0 / n) + (n - 1.0) * ahead[:, None] * ahead
    return replace(projection, n=n, mean=projection.mean + ahead, covariance=covariance)


def _begin(projection: Projection | None) -> Any:
    if projection is None:
        return ()
    return learning.begin(learning.adam(jnp.ones(())), (), projection.A)


# ---- small pieces ----------------------------------------------------------------------------------------------------


def _interpolated(grid: Grid, q: GridPosterior, X: Array) -> tuple[Array, Array]:
    """Mean and latent variance at inputs of the grid, N×P each."""
    features = ski.interpolation(grid, X) @ q.F  # N×r
    return features @ q.alpha, jnp.sum((q.C @ features.T) ** 2, -2).T


def _inner(a: Any, b: Any) -> Array:
    return jnp.sum(ravel_pytree(a)[0] * ravel_pytree(b)[0])


def _checked_bounds(bounds: ArrayLike) -> Any:
    array = checks.real("bounds", bounds)
    if array.shape not in ((2,), (1, 2), (2, 2)) or not np.all(np.isfinite(array)):
        raise ValueError(f"bounds must be (lower, upper), or such a pair for each input; got {bounds!r}")
    if not np.all(array[..., 0] < array[..., 1]):
        raise ValueError(f"bounds must have the lower end first; got {bounds!r}")
    return array
