"""Settings that several models take, and what they turn into."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from driftgp import checks, inducing
from driftgp.inducing import Inducing
from driftgp.kernels import Covariance
from driftgp.window import Window


def forgetting_factor(forgetting: ArrayLike | None, attenuation: ArrayLike | None, window: int | None) -> Any:
    """λ, given as it is or as the attenuation λ^T at the window's far end (0.1 by default).

    >>> round(float(forgetting_factor(None, None, 100)), 5)
    0.97724
    """
    if forgetting is not None:
        if attenuation is not None:
            raise ValueError(f"give forgetting or attenuation, not both; got {forgetting!r} and {attenuation!r}")
        return checks.between("forgetting", forgetting, 0.0, 1.0)
    if window is None:
        raise ValueError("forgetting must be given when window is None: there is no far end to attenuate")
    attenuation = checks.between("attenuation", 0.1 if attenuation is None else attenuation, 0.0, 1.0)
    return attenuation ** (1.0 / window)


def default_jitter(dtype: Any) -> float:
    """Jitter relative to a kernel's diagonal: ten times the square root of the dtype's eps."""
    return float(10.0 * np.finfo(dtype).eps ** 0.5)


def inducing_inputs(value: ArrayLike | None, most: int) -> Any:
    """First inducing inputs as the user gives them, at most M rows, or None to have them placed."""
    if value is None:
        return None
    U = checks.inputs("inducing_inputs", value)
    if U.shape[0] > most:
        raise ValueError(f"inducing_inputs must have at most inducing ({most}) rows; got {U.shape[0]}")
    return U


def place(given: Array | None, placement: str, kernel: Covariance, memory: Window, filled: int, size: int) -> Inducing:
    """First inducing points: those given, or some of the first `filled` samples of a window, or none yet."""
    X, w = memory.X[:filled], memory.w[:filled]
    if given is not None:
        if given.shape[1] != X.shape[1]:
            raise ValueError(f"inducing_inputs must have {X.shape[1]} columns, as many as X; got {given.shape[1]}")
        return inducing.given(jnp.asarray(given, X.dtype), size)
    if filled == 0:
        return inducing.given(X, size)
    return inducing.recent(X, w, size) if placement == "recent" else inducing.greedy(kernel, X, w, size)
