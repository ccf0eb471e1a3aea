"""The next H steps of one series or several: a distribution per step, and paths with the usual dependence of steps."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import ndtri

from driftgp.base import checks
from driftgp.forecasting import tables
from driftgp.forecasting.tables import About, Level
from driftgp.forecasting.units import Units
from driftgp.predictions import Prediction
from driftgp.stream.keys import Key


@dataclass(frozen=True, eq=False)
class Fan:
    """Forecasts of the steps 1 … H after the last row.

    Attributes:
        index: the times of the steps, or the numbers of their rows.
        mean: of each step, H.
        law: the steps' distributions of (z − m)/s, in the units that the forecaster works in.
        correlation: of the steps' normal scores, H×H.
        units: of the forecaster, in which z is measured.
        m: centre of each step in these units, H.
        s: scale of each step in these units, H.
        limits: the least and the greatest value of a forecast, from the values of the series.
        about: the form of the rows, and the last of them, for tables and pictures.

    >>> from driftgp import Forecaster
    >>> forecaster = Forecaster(horizon=3)
    >>> forecaster.update(100 + 10 * np.sin(np.arange(60.0)))
    >>> fan = forecaster.forecast()
    >>> fan.mean.shape, fan.sample(5).shape
    ((3,), (5, 3))
    >>> mean, low, high = fan.total(level=0.9)  # of the sum of the three steps
    >>> bool(low < mean < high)
    True
    """

    index: np.ndarray
    mean: np.ndarray = field(repr=False)
    law: Prediction = field(repr=False)
    correlation: np.ndarray = field(repr=False)
    units: Units = field(repr=False)
    m: np.ndarray = field(repr=False)
    s: np.ndarray = field(repr=False)
    limits: tuple[float, float] = field(default=(-np.inf, np.inf), repr=False)
    about: About | None = field(default=None, repr=False)

    def __len__(self) -> int:
        """H."""
        return len(self.mean)

    @property
    def variance(self) -> np.ndarray:
        """Variance of each step, H; at most that of values between the limits."""
        variance = self.units.variance(self.m + self.s * self.law.mean, self.s**2 * self.law.variance)
        low, high = self.limits
        return np.minimum(variance, 0.25 * (high - low) ** 2)

    def quantile(self, q: float) -> np.ndarray:
        """The value below which each step's target lies with probability q, H."""
        return self._values(np.full(len(self), ndtri(checks.between("q", q, 0.0, 1.0))))

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Ends of each step's central interval at a level in (0, 1), H each."""
        checks.between("level", level, 0.0, 1.0)
        return self.quantile(0.5 - 0.5 * level), self.quantile(0.5 + 0.5 * level)

    def to_normal(self, y: np.ndarray) -> np.ndarray:
        """Normal scores of targets y, H."""
        return self.law.to_normal((self.units.inwards(np.asarray(y, np.float64)) - self.m) / self.s)

    def sample(self, size: int = 1000, seed: int | np.random.Generator | None = None) -> np.ndarray:
        """Paths by a seed, size×H: each step has its own distribution, and the steps their usual dependence."""
        rng = np.random.default_rng(seed)
        scores = (
            rng.standard_normal((checks.whole("size", size, 1), len(self))) @ np.linalg.cholesky(self.correlation).T
        )
        return self._values(scores)

    def total(self, level: float = 0.95, size: int = 2000, seed: int = 0) -> tuple[float, float, float]:
        """Mean of the sum of all steps, and the ends of its central interval at a level, by `size` paths of a seed."""
        sums = self.sample(size, seed).sum(1)
        low, high = np.quantile(sums, [0.5 - 0.5 * level, 0.5 + 0.5 * level])
        return float(sums.mean()), float(low), float(high)

    def to_frame(self, level: Level = 0.95) -> Any:
        """A frame of the library that the rows came in, with their times: `mean`, and `low` and `high` at a level.

        Of several levels, such as [80, 95], there are `low-80`, `high-80` and so on. Rows that came in the long
        format of Nixtla's libraries (`unique_id`, `ds`, `y`) get its names: `driftgp`, `driftgp-lo-95`,
        `driftgp-hi-95`.

        Args:
            level: in percent or as a share, or several of them.
        """
        return tables.frame([self], level)

    def plot(self, path: Any = None, level: float = 0.95) -> Any:
        """The last rows and the steps, with intervals at a level: a figure of Matplotlib, also written to a path."""
        return tables.picture([self], path, level)

    def _values(self, scores: np.ndarray) -> np.ndarray:
        """Targets that have these normal scores, …×H."""
        return np.clip(self.units.outwards(self.m + self.s * self.law.from_normal(scores)), *self.limits)


class Fans(Mapping[Key, Fan]):
    """A forecast for each key: `fans["north"]` is a `Fan`.

    Args:
        fans: the forecast of each key.

    >>> from driftgp import Forecaster
    >>> forecaster = Forecaster(horizon=3, target="sold", key="shop")
    >>> rows = [{"shop": shop, "sold": 10.0 + day % 7} for day in range(60) for shop in ("east", "west")]
    >>> forecaster.update(rows)
    >>> fans = forecaster.forecast()
    >>> list(fans), fans["west"].mean.shape, fans.sample(5).shape
    (['east', 'west'], (3,), (5, 2, 3))
    """

    def __init__(self, fans: dict[Key, Fan]) -> None:
        """Take the forecasts."""
        self._fans = fans

    def __getitem__(self, key: Key) -> Fan:
        return self._fans[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._fans)

    def __len__(self) -> int:
        return len(self._fans)

    def __repr__(self) -> str:
        """The keys, a few of them."""
        some = ", ".join(map(repr, list(self._fans)[:5]))
        return f"Fans({some}{f', … {len(self)} in all' if len(self) > 5 else ''})"

    @property
    def mean(self) -> np.ndarray:
        """Means of all series, S×H."""
        return np.array([fan.mean for fan in self._fans.values()])

    def quantile(self, q: float) -> np.ndarray:
        """The value below which each target lies with probability q, S×H."""
        return np.array([fan.quantile(q) for fan in self._fans.values()])

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Ends of central intervals at a level in (0, 1), S×H each."""
        ends = [fan.interval(level) for fan in self._fans.values()]
        return np.array([low for low, _ in ends]), np.array([high for _, high in ends])

    def sample(self, size: int = 1000, seed: int | np.random.Generator | None = None) -> np.ndarray:
        """Paths by a seed, size×S×H; the series are independent of each other."""
        rng = np.random.default_rng(seed)
        return np.stack([fan.sample(size, rng) for fan in self._fans.values()], axis=1)

    def to_frame(self, level: Level = 0.95) -> Any:
        """One frame for all keys, with intervals at a level or several; see `Fan.to_frame`."""
        return tables.frame(list(self._fans.values()), level)

    def plot(self, path: Any = None, level: float = 0.95) -> Any:
        """A picture of the first few series with intervals at a level, written to a path; see `Fan.plot`."""
        return tables.picture(list(self._fans.values()), path, level)
