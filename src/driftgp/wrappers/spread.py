"""The size of errors compared with a model's own standard deviation, followed sample by sample.

A model that learns slowly has a good mean long before it has a good variance. Its errors z, in units of its own
standard deviation, have a recent mean square s², which is cheap to follow:

    log s² ← log s² + g (min(z²/s², c) − 1)

a step up the log-likelihood of z ~ N(0, s²), with the pull of one wild error limited by c.
"""

import numpy as np

# An error counts as at most three standard deviations. A normal one is larger once in 370.
_CAP = 9.0


def follow(log_s2: np.ndarray, z: np.ndarray, gain: np.ndarray) -> np.ndarray:
    """Log of s² after one more error z."""
    return log_s2 + gain * (np.minimum(z**2 * np.exp(-log_s2), _CAP) - 1.0)


def log_likelihood(log_s2: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Log density of z ~ N(0, s²), up to a constant, with the same limit on z."""
    return -0.5 * (log_s2 + np.minimum(z**2 * np.exp(-log_s2), _CAP))
