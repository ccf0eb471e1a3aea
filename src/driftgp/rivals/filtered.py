"""What the rivals that go through a stream sample by sample have in common: hyperparameters that the warm-up leaves."""

import abc
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from driftgp.rivals import jax_learning as learning
from driftgp.rivals import settings
from driftgp.rivals.base import Rival
from driftgp.rivals.exact_window import maximised
from driftgp.rivals.jax_learning import Hyperparameters


class FilteredModel(Rival):
    """A model whose hyperparameters maximise the evidence of the exact GP on the warm-up batch, and stay.

    Args:
        kernel: covariance with its starting parameters; squared exponential by default.
        noise: starting variance of the noise, one number or one per output.
        warmup_iterations: Adam iterations on the evidence of the warm-up batch.
        warmup_rate: their rate.
        warmup_samples: most samples, the last ones of the batch, whose evidence is maximised.
    """

    warmup_iterations: int = settings.whole(200, 0)
    warmup_rate: float = settings.number(0.05)
    warmup_samples: int = settings.whole(500, 1)

    @abc.abstractmethod
    def before(self, h: Hyperparameters, skipped: Array, X: Array, y: Array) -> Any:
        """State with these hyperparameters before any sample; of X and y, the shapes and the first row count."""

    def of_kernel(self, X: Array) -> Array:
        """The inputs that the kernel sees: all of them."""
        return X

    def learned(self, h: Hyperparameters, X: Array, y: Array) -> tuple[Hyperparameters, Array]:
        """Hyperparameters after the warm-up on these samples, and the gradient steps that were left out."""
        return maximised(h, X, y, self.warmup_rate, self.warmup_iterations)

    def begin(self, X: Array, y: Array) -> Any:
        """Learn the hyperparameters from the batch, then go through it sample by sample."""
        seen, last = self.of_kernel(X), slice(-self.warmup_samples, None)
        h, skipped = learning.initial(self.kernel, self.noise, seen.shape[1], y.shape[1]), jnp.zeros((), jnp.int32)
        if X.shape[0] > 0 and self.warmup_iterations > 0:
            h, skipped = self.learned(h, seen[last], y[last])
        state = self.before(h, skipped, X, y)
        if X.shape[0] == 0:
            return state
        return lax.scan(lambda state, row: (self.step(state, *row, jnp.ones(())), None), state, (X, y))[0]
