"""Settings that several rivals take, and what they turn into."""

import numpy as np
from numpy.typing import ArrayLike

from driftgp.base import checks
from driftgp.gp.settings import JITTER, forgetting_factor
from driftgp.kernels import positive

__all__ = ["JITTER", "first_inputs", "forgetting_factor", "noise_variance", "random_seed"]


def noise_variance(noise: ArrayLike) -> np.ndarray:
    """Variance of the noise: one number, or one for each output."""
    return positive("noise", noise)


def first_inputs(value: ArrayLike | None, most: int) -> np.ndarray | None:
    """First inducing inputs as the user gives them, at most M rows, or None to have them placed."""
    if value is None:
        return None
    U = checks.inputs("inducing_inputs", value)
    if U.shape[0] > most:
        raise ValueError(f"inducing_inputs must have at most inducing ({most}) rows; got {U.shape[0]}")
    return U


def random_seed(value: int) -> np.ndarray:
    """A seed as JAX takes it."""
    array = np.asarray(value)
    if array.ndim or array.dtype.kind not in "iu" or not 0 <= array < 2**32:
        raise ValueError(f"seed must be a whole number from 0 to 2**32 − 1; got {value!r}")
    return array.astype(np.uint32)
