"""SVGP: stochastic variational inference with mini-batches, on a window.

Hensman, Fusi and Lawrence 2013. The bound of an explicit q(v) = N(m, Λ⁻¹) over the whitened inducing values u = L v is
a sum over samples. So a random mini-batch of b of the n samples in the window, scaled by n/b, estimates it without
bias:

    F(q) ≈ n/b Σ_batch w_i E_q[log N(y_i | f_i, σ²)] − KL(q ‖ N(0, I))

q takes natural-gradient steps, which for Gaussian noise are a convex combination of natural parameters

    Λ ← (1 − ρ) Λ + ρ (I + β n/b A_b W_b A_bᵀ)        Λm ← (1 − ρ) Λm + ρ β n/b A_b W_b y_b

so that Λ is positive definite by construction; inducing inputs, kernel and noise take an Adam step on the same batch.
With the whole window as the batch and ρ = 1, q is the collapsed optimum at every step. The method has no forgetting of
its own: λ = 1 by default, the window alone forgets. Inducing points are renewed (see `SparseModel`), and q is kept for
the points that stay. With small batches and few iterations the gradient alone moves the points too slowly.

Cost of a sample: O(k (M² b + M³)) for k iterations; of a forecast O(M²).
"""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from driftgp.rivals import jax_bound as bound
from driftgp.rivals import settings, variational
from driftgp.rivals.jax_bound import Posterior
from driftgp.rivals.jax_inducing import Inducing
from driftgp.rivals.jax_learning import Hyperparameters
from driftgp.rivals.jax_window import Units, Window
from driftgp.rivals.sparse import SparseModel
from driftgp.rivals.variational import Natural
from driftgp.rivals.windowed import Fit, points_of


class Batch(NamedTuple):
    """Samples of the window with weights that estimate sums over all of it."""

    X: Array  # b×D
    y: Array  # b×P
    w: Array  # b


class SVGP(SparseModel):
    """Sparse GP learned from random mini-batches of the window; the random key is part of the state.

    >>> import numpy as np
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> model = SVGP(window=50, inducing=8, batch=16)
    >>> state = model.init(X, np.sin(6 * X[:, 0]))
    >>> bool(abs(model.predict(state, X[:1]).mean[0]) < 0.3)
    True

    Args:
        kernel: covariance with its starting parameters; squared exponential by default.
        batch: samples in a mini-batch b.
        natural_rate: ρ, the size of the natural-gradient step.
        seed: of the random mini-batches, a whole number.
        iterations: mini-batches per sample.
        rate: Adam's rate.
        restart: start Adam afresh at every sample, or carry its averages along, which mini-batches need.
    """

    batch: int = settings.whole(32, 1)
    natural_rate: float = settings.share(0.3, open_low=True)
    seed: Any = settings.seed()
    iterations: int = settings.whole(10, 1)
    rate: float = settings.number(0.01)
    restart: bool = settings.flag(False)

    def __post_init__(self, attenuation: float | None) -> None:
        """λ = 1 unless the settings say something else; a batch is at most the window."""
        if self.forgetting is None and attenuation is None:
            self.forgetting = 1.0
        super().__post_init__(attenuation)
        self.batch = min(self.batch, self.window)

    def first(self, h: Hyperparameters, memory: Window, filled: int) -> tuple[Any, Any]:
        """Begin with q at the prior."""
        points, M, P = self.place(h, memory, filled), self.inducing, h.noise.shape[0]
        precision = jnp.broadcast_to(jnp.eye(M), (P, M, M))
        q = Natural(precision, jnp.zeros((M, P)))
        return (points.U,), (*self.beginning(points), q, jax.random.PRNGKey(self.seed))

    def move(self, fit: Fit, U: Array) -> Fit:
        """Carry q over to the points that stay."""
        moved = replace(fit, free=(U,))
        used, age, q, key = fit.rest
        L, inverse_L = bound.cholesky(self.gram(fit))[0], self.root(moved)[0]
        q = variational.to_natural(*variational.carry_over(variational.from_natural(q), L, inverse_L))
        return replace(moved, rest=(used, age, q, key))

    def revalue(self, fit: Fit, moved: Fit, units: Units) -> Fit:
        """The mean of the inducing values in the new units; their covariance is a share of a unit and stays."""
        L, inverse_L = bound.cholesky(self.gram(fit))[0], self.root(moved)[0]
        used, age, natural, key = fit.rest
        m = inverse_L @ units.targets(L @ variational.from_natural(natural).m)
        natural = Natural(natural.precision, jnp.einsum("pij,jp->ip", natural.precision, m))
        return replace(moved, rest=(used, age, natural, key))

    def climb(self, fit: Fit, memory: Window, rate: float, iterations: int) -> Fit:
        """One mini-batch after another."""

        def iteration(fit: Fit, _: None) -> tuple[Fit, None]:
            used, age, q, key = fit.rest
            key, now = jax.random.split(key)
            batch = draw(now, memory, self.batch)
            q = self._natural_step(fit, q, batch)
            fit = replace(fit, rest=(used, age, q, key))
            return self.ascend(self._objective(fit, batch), fit, memory, rate, 1), None

        return lax.scan(iteration, fit, length=iterations)[0]

    def _natural_step(self, fit: Fit, q: Natural, batch: Batch) -> Natural:
        h = fit.hyperparameters
        Kuu, Kux = self.grams(h, points_of(fit), batch.X)
        A = variational.inverse_root(Kuu) @ Kux  # M×b
        target = variational.optimum(A, batch.w, batch.y, h.noise)
        rho = self.natural_rate
        stepped = jax.tree.map(lambda old, new: (1.0 - rho) * old + rho * new, q, target)
        finite = jnp.all(jnp.isfinite(stepped.precision)) & jnp.all(jnp.isfinite(stepped.shift))
        kept: Natural = jax.tree.map(lambda new, old: jnp.where(finite, new, old), stepped, q)
        return kept

    def _objective(self, fit: Fit, batch: Batch) -> Any:
        used, _, natural, _ = fit.rest
        q = variational.from_natural(natural)

        def objective(h: Hyperparameters, free: tuple[Array]) -> Array:
            Kuu, Kux = self.grams(h, Inducing(free[0], used), batch.X)
            A = variational.inverse_root(Kuu) @ Kux  # M×b
            return variational.elbo(q, A, h.kernel(batch.X), batch.w, batch.y, h.noise)

        return objective

    def condition(self, fit: Fit, memory: Window) -> tuple[Posterior, Array]:  # noqa: ARG002
        """Predictions follow from q alone."""
        inverse_L, repairs = self.root(fit)
        q = variational.from_natural(fit.rest[2])
        return variational.posterior(q, inverse_L), repairs


def draw(key: Array, memory: Window, size: int) -> Batch:
    """Samples of the window at random, each at most once; with as many as there are, all of them.

    The largest of independent uniform numbers, one a slot, are a sample without replacement.
    """
    filled = memory.w > 0.0
    lots = jnp.where(filled, jax.random.uniform(key, filled.shape), -1.0)
    chosen = lax.top_k(lots, size)[1]  # an empty slot, if it comes to that, has weight 0
    n = jnp.sum(filled)
    scale = n / jnp.maximum(jnp.minimum(n, size), 1)
    return Batch(memory.X[chosen], memory.y[chosen], memory.w[chosen] * scale)
