"""Units that move with a series whose level or unit has changed, so that its model stays valid."""

from dataclasses import replace

import numpy as np

from driftgp.forecasting.units import Units

FINEST = 1e-12  # least scale, as a share of the size of the values: below it rounding would count as noise
ABSURD = 1000.0  # a first value is absurd at this many usual distances from the median


def moved(
    units: Units, earlier: np.ndarray, y: np.ndarray, expected: np.ndarray, usual: float, most: float
) -> Units | None:
    """Units in which the values agree with their expectations; None if no units do.

    Let f be the values, or their roots, and g their expected values. Three changes are tried: of the level, f = g + δ;
    of the unit, f = b g; and back to the earlier units. The one with the greatest likelihood

        Σ −½ (error / (b · usual))² − log b,    b = scale / scale before,

    is taken if all its errors are at most `most` usual ones. A single value can only bring back the earlier units.

    >>> units, earlier = Units(100.0, 2.0, False), np.array([100.0, 2.0])
    >>> moved(units, earlier, np.array([151.0, 150.0, 149.0]), np.zeros(3), 1.0, 8.0).centre
    150.0
    >>> moved(units, earlier, np.array([1e4, 1.1e4, 0.9e4]), np.array([0.0, 5.0, -5.0]), 0.1, 8.0).scale
    200.0
    >>> moved(units, earlier, np.array([1e4, 1e9, 1e6]), np.zeros(3), 1.0, 8.0) is None
    True

    Args:
        units: at present.
        earlier: centre and scale of the units before these.
        y: values far from their expectations, N.
        expected: of them, in the present units, N.
        usual: size of an error, in the present units.
        most: largest error of values that agree, in usual errors.
    """
    f, g = np.sqrt(np.maximum(y, 0.0)) if units.roots else y, units.centre + units.scale * expected
    ratio = f / np.where(g == 0.0, np.nan, g)
    b = float(np.median(ratio)) if np.all(ratio > 0.0) else np.nan
    changes = (
        (units.centre + float(np.median(f - g)), units.scale),
        (b * units.centre, b * units.scale),
        (float(earlier[0]), float(earlier[1])),
    )
    best, found = -np.inf, None
    for centre, fine in changes if len(f) > 1 else changes[-1:]:
        scale = max(fine, FINEST * float(np.abs(f).max()), FINEST * abs(centre))
        error = ((f - centre) / scale - expected) / usual
        likelihood = -0.5 * float(error @ error) - len(f) * np.log(scale / units.scale)
        if np.all(np.abs(error) <= most) and likelihood > best and np.isfinite(centre):
            best, found = likelihood, replace(units, centre=centre, scale=scale)
    return found


def sane(y: np.ndarray) -> np.ndarray:
    """First values of a series, NaN instead of those that are absurdly far from the others, such as fill values.

    >>> sane(np.array([3.0, 4.0, 9.97e36, 5.0, 4.0, 3.0, 5.0, 4.0, 4.0, 3.0, 5.0, 6.0]))[1:4]
    array([ 4., nan,  5.])
    """
    if np.isnan(y).all():
        return y
    middle = np.nanmedian(y)
    far = np.abs(y - middle)
    most = np.nanquantile(far, 0.9, method="lower")
    return np.where(far > ABSURD * (most if most > 0.0 else ABSURD * max(abs(middle), 1.0)), np.nan, y)
