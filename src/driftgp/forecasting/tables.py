"""Forecasts as tables and pictures: the user's own times, keys and names, and a column for each end of an interval."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from driftgp.base import frames
from driftgp.forecasting.reading import Look, Names
from driftgp.stream.keys import Key

if TYPE_CHECKING:
    from driftgp.forecasting.fan import Fan

Level = float | Iterable[float]


class About(NamedTuple):
    """The rows behind a forecast."""

    names: Names | None
    look: Look
    key: Key | None
    at: np.ndarray  # times of the steps in microseconds, or numbers
    wall: np.ndarray  # for the axis of pictures: the same by the clock on the wall, or numbers of rows
    past: np.ndarray  # of the last rows likewise
    y: np.ndarray  # their targets

    @property
    def target(self) -> str:
        """The name of the target."""
        return "y" if self.names is None else self.names.target


def levels(given: Level) -> list[float]:
    """Levels as shares; those above 1 are in percent.

    >>> levels([80, 95]), levels(0.9)
    ([0.8, 0.95], [0.9])
    """
    listed = [given] if isinstance(given, (int, float)) else list(given)
    found = [float(level) / 100.0 if level >= 1 else float(level) for level in listed]
    if not found or not all(0.0 < level < 1.0 for level in found):
        raise ValueError(f"level must be between 0 and 1, or in percent between 1 and 100; got {given!r}")
    return found


def ends(shares: Sequence[float], *, nixtla: bool = False) -> list[tuple[str, str]]:
    """What the ends of intervals at these levels are called.

    >>> ends([0.95]), ends([0.8, 0.95])[0], ends([0.9], nixtla=True)
    ([('low', 'high')], ('low-80', 'high-80'), [('driftgp-lo-90', 'driftgp-hi-90')])
    """
    if nixtla:
        return [(f"driftgp-lo-{100 * share:g}", f"driftgp-hi-{100 * share:g}") for share in shares]
    return [("low", "high")] if len(shares) == 1 else [(f"low-{100 * s:g}", f"high-{100 * s:g}") for s in shares]


def columns(fans: Sequence["Fan"], level: Level, *, nixtla: bool = False) -> dict[str, np.ndarray]:
    """The numbers of forecasts, one series after another."""
    shares = levels(level)
    made = {"driftgp" if nixtla else "mean": np.concatenate([fan.mean for fan in fans])}
    for share, (low, high) in zip(shares, ends(shares, nixtla=nixtla), strict=True):
        pairs = [fan.interval(share) for fan in fans]
        made[low] = np.concatenate([pair[0] for pair in pairs])
        made[high] = np.concatenate([pair[1] for pair in pairs])
    return made


def frame(fans: Sequence["Fan"], level: Level) -> Any:
    """Forecasts as one frame, in the form of the rows before them."""
    about = _about(fans)
    names, look = about.names, about.look
    made: dict[str, Any] = {}
    if names is not None and names.key is not None:
        keys = [fan.about.key for fan in fans for _ in range(len(fan)) if fan.about is not None]
        made[names.key] = np.array(keys)
    title = look.title if look.place != "rows" else "row"
    at = np.concatenate([fan.about.at for fan in fans if fan.about is not None])
    made[title] = at.astype(np.int64) if np.all(at == np.round(at)) else at
    made |= columns(fans, level, nixtla=names is not None and names.nixtla)
    dated = bool(np.issubdtype(fans[0].index.dtype, np.datetime64))
    times = frames.When(title, look.unit, look.zone) if dated else None
    return frames.frame_of(made, look.backend, times, indexed=title if look.place != "column" else None)


def picture(fans: Sequence["Fan"], path: Any, level: float) -> Any:
    """Forecasts as a figure; written to a file where a path is given."""
    from driftgp.plots import base as plots
    from driftgp.plots import forecast as plots_forecast

    figure = plots_forecast.fans_figure([(_about([fan]), fan) for fan in fans], levels(level)[0])
    if path is not None:
        plots.save(figure, Path(path))
    return figure


def _about(fans: Sequence["Fan"]) -> About:
    about = fans[0].about if fans else None
    if about is None:
        raise ValueError("this forecast has no rows behind it: make it with Forecaster.forecast()")
    return about
