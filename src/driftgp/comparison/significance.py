"""Is one method's error lower than another's, or is the difference noise? The test of Diebold and Mariano (1995).

With d_t the difference of two losses at row t, n rows and d̄ their mean, the statistic is d̄ / √(Ω/n). Losses follow one
another, so Ω must be their long-run variance. It is estimated by the first B cosines of the series (equally weighted
cosine transform: Lazarus, Lewis, Stock and Watson 2018),

    Λ_j = √(2/n) Σ_t d_t cos(π j (t − ½)/n),   Ω = (1/B) Σ_j Λ_j²,   B = ⌊0.4 n^⅔⌋

under which the statistic has Student's t distribution with B degrees of freedom. Their choice of B keeps the size of
the test near its level where the losses are autocorrelated.
"""

from typing import NamedTuple

import numpy as np
from scipy.fft import dct
from scipy.special import stdtr

FEWEST = 20  # rows below which nothing is said


class Difference(NamedTuple):
    """The mean of a difference of losses, its standard error, and how often chance alone would make one as large."""

    mean: float
    error: float
    p: float


def difference(first: np.ndarray, second: np.ndarray) -> Difference:
    """First losses minus second ones, N each; rows where either is NaN do not count.

    >>> rng = np.random.default_rng(0)
    >>> noise = rng.normal(size=(2, 500)) ** 2
    >>> difference(noise[0], noise[1]).p > 0.05, difference(noise[0], noise[1] + 1.0).p < 1e-6
    (True, True)
    """
    d = (first - second)[np.isfinite(first - second)]
    if len(d) < FEWEST:
        return Difference(float(np.mean(d)) if len(d) else np.nan, np.nan, np.nan)
    n, mean = len(d), float(np.mean(d))
    B = int(0.4 * n ** (2.0 / 3.0))
    # SciPy's cosine transform is twice the sum
    cosines = np.sqrt(2.0 / n) * dct(d - mean, type=2)[1 : B + 1] / 2.0
    error = float(np.sqrt(np.mean(cosines**2) / n))
    if error == 0.0:
        return Difference(mean, 0.0, 1.0 if mean == 0.0 else 0.0)
    return Difference(mean, error, float(2.0 * stdtr(B, -abs(mean) / error)))
