"""How large errors are against what a model says of them, followed sample by sample.

A model that learns slowly has a good mean long before it has a good variance. The factor s² by which its errors z (in
units of its own standard deviations) exceed 1 of late is cheap to follow:

    log s² ← (1 − r) log s² + g (min(z²/s², c) − 1)

a step up the log-likelihood of z ~ N(0, s²), with the pull of one wild error limited by c and a slow return (rate r)
to s² = 1, the model's own word.
"""

import jax.numpy as jnp
from jax import Array

# An error counts as at most three standard deviations. A normal one is larger once in 370.
_CAP = 9.0


def follow(log_s2: Array, z: Array, observed: Array, gain: Array, decay: Array) -> Array:
    """Log of s² after one more error z; where there was none, log s² only returns by the factor `decay`."""
    log_s2 = decay * log_s2
    surprise = jnp.minimum(z**2 * jnp.exp(-log_s2), _CAP) - 1.0
    return log_s2 + jnp.where(observed, gain * surprise, 0.0)


def log_likelihood(log_s2: Array, z: Array) -> Array:
    """Log density of z ~ N(0, s²), up to a constant, with the same limit on z."""
    return -0.5 * (log_s2 + jnp.minimum(z**2 * jnp.exp(-log_s2), _CAP))
