"""Other methods for the next steps, each from the rows up to an origin to forecasts of the steps after it."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

NEAR = 24  # last values that LightGBM sees
_MOST = 2000  # rows that the models of statsforecast are fitted to: their cost grows fast, and old rows help little


class Rows(NamedTuple):
    """What a method is given: N rows up to an origin."""

    y: np.ndarray  # N, gaps filled with the value a season before
    wall: np.ndarray  # N, times by the clock on the wall in microseconds; NaN without dates
    known: np.ndarray  # N×K, columns known ahead
    ahead: np.ndarray  # h×K, the same of the steps to come
    ahead_wall: np.ndarray  # h
    seasons: tuple[int, ...]  # rows of each, the shortest first

    @property
    def h(self) -> int:
        """Steps."""
        return len(self.ahead_wall)

    @property
    def season(self) -> int:
        """Rows of the shortest season that fits twice; 1 without any."""
        return next((season for season in self.seasons if 2 * season <= len(self.y)), 1)


class Said(NamedTuple):
    """Forecasts of h steps, and 95 % intervals where the method has them."""

    mean: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None


class Method(NamedTuple):
    """What runs a method, and the module of another library that it needs."""

    run: Callable[[Rows], Said]
    module: str | None = None

    @property
    def missing(self) -> str | None:
        """The library that is not installed, None if all is there."""
        return self.module if self.module is not None and find_spec(self.module) is None else None


def seasonal_naive(rows: Rows) -> Said:
    """The value at the same place of the last season."""
    last = rows.y[-rows.season :]
    mean = last[np.arange(rows.h) % rows.season]
    before = rows.season * (np.arange(1, rows.h + 1) // rows.season + (np.arange(1, rows.h + 1) % rows.season > 0))
    spread = np.array([_spread(rows.y, int(lag)) for lag in before])
    return Said(mean, mean - 1.96 * spread, mean + 1.96 * spread)


def _spread(y: np.ndarray, lag: int) -> float:
    errors = y[lag:] - y[: max(len(y) - lag, 0)]
    return float(np.sqrt(np.mean(errors**2))) if len(errors) else 0.0


def lightgbm(rows: Rows) -> Said:
    """Gradient-boosted trees with default settings: one model for all leads, with the usual inputs.

    The inputs of a step are the lead, the last values and the mean of the last season at the origin, and the values one
    and two seasons before. Its place in the day, the week and the year, and its known columns, are inputs too.
    """
    import lightgbm as trees

    N, h = len(rows.y), rows.h
    reach = max(NEAR, 2 * max([1, *rows.seasons[-1:]]))
    origins = np.arange(min(reach, N // 2), N - 1)
    leads = np.arange(1, h + 1)
    origin, lead = (part.reshape(-1) for part in np.meshgrid(origins, leads, indexing="ij"))
    there = origin + lead < N
    origin, lead = origin[there], lead[there]
    if len(origin) > 200_000:  # as many as it takes; the newest
        origin, lead = origin[-200_000:], lead[-200_000:]
    wall, known = np.concatenate([rows.wall, rows.ahead_wall]), np.concatenate([rows.known, rows.ahead])
    # differences from the last value, so that new levels can be forecast
    level = rows.y[origin]
    data = trees.Dataset(_inputs(rows, wall, known, origin, lead), rows.y[origin + lead] - level)
    model = trees.train({"verbosity": -1, "num_threads": 1, "seed": 0}, data)  # 100 trees, as by default
    now = np.full(h, N - 1)
    return Said(rows.y[-1] + np.asarray(model.predict(_inputs(rows, wall, known, now, leads)), np.float64))


def _inputs(rows: Rows, wall: np.ndarray, known: np.ndarray, origin: np.ndarray, lead: np.ndarray) -> np.ndarray:
    y, target, level = rows.y, origin + lead, rows.y[origin]
    columns = [lead.astype(np.float64), level]
    columns += [y[np.maximum(origin - lag, 0)] - level for lag in range(1, NEAR)]
    for season in rows.seasons:
        back = season * -(-lead // season)
        columns += [y[np.maximum(target - back - more, 0)] - level for more in (0, season)]
        sums = np.concatenate([[0.0], np.cumsum(y)])
        first = np.maximum(origin + 1 - season, 0)
        columns.append((sums[origin + 1] - sums[first]) / (origin + 1 - first) - level)
    day = wall[target] / 8.64e10
    if np.isfinite(day).all():
        columns += [day % 1.0, np.floor(day + 3.0) % 7.0, day % 365.25]
    return np.column_stack([*columns, *known[target].T])


def _of_statsforecast(name: str, *, several: bool = False) -> Callable[[Rows], Said]:
    """A model of statsforecast with its own settings, with the known columns where it takes any."""

    def run(rows: Rows) -> Said:
        from statsforecast import models

        season: Any = rows.season
        if several:
            season = [each for each in rows.seasons if 2 * each < len(rows.y)] or 1
        y = rows.y[-max(_MOST, 4 * max([1, *rows.seasons])) :]
        theirs = getattr(models, name)(season_length=season)
        beside = {}
        if theirs.uses_exog and rows.known.shape[1]:
            beside = {"X": rows.known[-len(y) :], "X_future": rows.ahead}
        told = theirs.forecast(y=y, h=rows.h, level=[95], **beside)
        return Said(*(np.asarray(told[part], np.float64) for part in ("mean", "lo-95", "hi-95")))

    return run


METHODS: dict[str, Method] = {
    "seasonal naive": Method(seasonal_naive),
    "AutoETS": Method(_of_statsforecast("AutoETS"), "statsforecast"),
    "AutoARIMA": Method(_of_statsforecast("AutoARIMA"), "statsforecast"),
    "MSTL": Method(_of_statsforecast("MSTL", several=True), "statsforecast"),
    "LightGBM": Method(lightgbm, "lightgbm"),
}
