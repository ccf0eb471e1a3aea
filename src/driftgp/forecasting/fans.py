"""Forecasts of several series."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from driftgp.forecasting import tables
from driftgp.forecasting.fan import Fan
from driftgp.forecasting.tables import Level
from driftgp.stream.keys import Key


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
