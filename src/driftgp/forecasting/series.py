"""One series: its rows go in, forecasts of its next steps come out.

The first rows choose its units and seasons (`_look`); from then on `core.Core` learns row by row. Seasons are looked
for again as rows come, and where others are found the rows so far are learned again with those.
"""

import numpy as np

from driftgp.forecasting import seasons
from driftgp.forecasting.core import Core
from driftgp.forecasting.fan import Fan
from driftgp.forecasting.part import Part
from driftgp.forecasting.record import Record
from driftgp.forecasting.seasons import Seasons
from driftgp.forecasting.settings import Settings

FIRST = 50  # rows, or two seasons, by which units are chosen
AGAIN = (*range(128, 1025, 128), 2048)  # rows after which seasons are looked for again
MOST_SEASONS = 4
FEWEST = 3  # targets, for a forecast


class Series(Part):
    """Rows in, forecasts out.

    >>> t = np.arange(300)
    >>> series = Series(Settings(horizon=24))
    >>> series.take(10.0 + np.sin(2 * np.pi * t / 12) + 0.1 * np.random.default_rng(0).normal(size=300))
    >>> series.seasons
    (12,)
    >>> fan = series.fan(np.arange(300, 306))
    >>> bool(np.abs(fan.mean - (10.0 + np.sin(2 * np.pi * fan.index / 12))).max() < 0.2)
    True
    """

    def __init__(self, settings: Settings) -> None:
        """Start without rows."""
        self.settings = settings
        self.counts = np.zeros(1, np.int64)  # rows taken in
        self.kept = np.zeros((0, 1 + settings.known + settings.past))  # rows so far, while seasons are still looked for
        self.kept_at = np.zeros(0, np.int64)
        self.last_row = np.zeros(settings.known + settings.past)  # known and past columns of the last row
        self.core: Core | None = None

    @property
    def rows(self) -> int:
        """Rows taken in, missing ones included."""
        return int(self.counts[0])

    @property
    def seasons(self) -> tuple[int, ...]:
        """Rows of each season in use; none before it has begun."""
        return () if self.core is None else self.core.seasons.lengths

    def words(self) -> str:
        """The seasons in words."""
        return Seasons((), None, False).words() if self.core is None else self.core.seasons.words()

    # ---- rows in -----------------------------------------------------------------------------------------------------

    def take(
        self,
        values: np.ndarray,
        at: np.ndarray | None = None,
        known: np.ndarray | None = None,
        past: np.ndarray | None = None,
    ) -> None:
        """Take rows in; see the class. An interrupted call leaves part of the rows: work on a copy, and swap.

        Args:
            values: targets, N; NaN where one is missing.
            at: their times by the wall clock, N.
            known: columns known ahead of these rows, N×K; where one is NaN, its last value counts.
            past: columns known up to now, N×P, the same.
        """
        values = np.asarray(values, np.float64)
        rows = self._filled(values, known, past)
        times = np.zeros(len(values), np.int64) if at is None else at.astype("datetime64[us]").astype(np.int64)
        done = 0
        while done < len(values):
            end = min([len(values), *(done + stop - self.rows for stop in self._stops() if stop > self.rows)])
            self._take(rows[done:end], None if at is None else times[done:end].view("datetime64[us]"))
            done = end

    def _stops(self) -> tuple[int, ...]:
        """Rows after which it begins, or looks for seasons again."""
        return (self._first, *AGAIN)

    @property
    def _first(self) -> int:
        lengths = self.settings.season or seasons.of_clock(self.settings.step).lengths
        return max(FIRST, 2 * lengths[0] if lengths else 0)

    def _filled(self, values: np.ndarray, known: np.ndarray | None, past: np.ndarray | None) -> np.ndarray:
        """Rows: target, known and past columns, N×(1 + K + P)."""
        N, K, P = len(values), self.settings.known, self.settings.past
        others = np.concatenate(
            [np.zeros((N, K)) if known is None else known, np.zeros((N, P)) if past is None else past], 1
        )
        for i in np.flatnonzero(~np.isfinite(others).all(1)):
            before = others[i - 1] if i else self.last_row
            others[i] = np.where(np.isfinite(others[i]), others[i], before)
        if N and K + P:
            self.last_row[...] = others[-1]
        return np.concatenate([values[:, None], others], 1)

    def _take(self, rows: np.ndarray, at: np.ndarray | None) -> None:
        """Rows up to the next stop."""
        looking = self.rows < AGAIN[-1]
        if looking:
            self.kept = np.concatenate([self.kept, rows])
            if at is not None:
                self.kept_at = np.concatenate([self.kept_at, at.astype(np.int64)])
        self.counts[0] += len(rows)
        if self.core is not None:
            self.core.take(rows, at)
        if looking and (self.core is None or self.rows in AGAIN):
            self._look()
        if self.rows >= AGAIN[-1] and len(self.kept):
            self.kept, self.kept_at = self.kept[:0], self.kept_at[:0]

    def _look(self) -> None:
        """Begin, if there is enough to begin with; begin again, if other seasons are found."""
        there = int(np.isfinite(self.kept[:, 0]).sum())
        if self.core is None and not (self.rows >= self._first and there >= FIRST // 2):
            return
        found = self._found()
        if self.core is None or found.lengths != self.core.seasons.lengths:
            self.core = self._begun(found)

    def _found(self) -> Seasons:
        given, step = self.settings.season, self.settings.step
        clock = seasons.of_clock(step)
        if clock.lengths and given in ((), clock.lengths[:1], clock.lengths):
            return clock
        return Seasons(seasons.found(self.kept[:, 0], given), step, False)

    def _begun(self, found: Seasons) -> "Core":
        core = Core(self.settings, found, self.kept)
        core.take(self.kept, self.kept_at.view("datetime64[us]") if len(self.kept_at) else None)
        return core

    # ---- forecasts out -----------------------------------------------------------------------------------------------

    def fan(self, index: np.ndarray, at: np.ndarray | None = None, known: np.ndarray | None = None) -> Fan:  # noqa: ARG002
        """Forecasts of the next steps, as many as the index is long.

        Args:
            index: of the steps, h.
            at: their times, h.
            known: columns known ahead of these steps, h×K.
        """
        core = self.core
        if core is None:
            if np.isfinite(self.kept[:, 0]).sum() < FEWEST:
                raise ValueError(
                    f"a forecast needs {FEWEST} targets or more; there are {np.isfinite(self.kept[:, 0]).sum()}"
                )
            core = self._begun(self._found())
        return core.fan(
            index, np.zeros((len(index), self.settings.known)) if known is None else np.asarray(known, np.float64)
        )

    def worth(self) -> Record:
        """Errors of the forecasts so far."""
        H = self.settings.horizon
        sums = np.zeros((4, H)) if self.core is None else self.core.sums
        count = sums[0]
        with np.errstate(invalid="ignore", divide="ignore"):
            return Record(count.copy(), *(sums[1:] / count))

    def weights(self) -> dict[str, np.ndarray]:
        """Weight of each member at each lead, H."""
        if self.core is None:
            return {}
        return dict(zip(self.core.names, self.core.mixture.of_leads().T, strict=True))

    # ---- state -------------------------------------------------------------------------------------------------------

    @classmethod
    def of(cls, settings: Settings, arrays: dict[str, np.ndarray]) -> "Series":
        """The series with these arrays; a ValueError for impossible arrays."""
        series = cls(settings)
        H, width = settings.horizon, series.kept.shape[1]
        series.kept = _checked("kept", arrays.get("kept"), width=width)
        series.kept_at = _checked("kept_at", arrays.get("kept_at")).astype(np.int64)
        if "core.m" in arrays:
            if arrays["core.m"].shape != (6, H, H):  # before memory is asked for
                raise ValueError("the forecaster is damaged: core.m has the wrong shape")
            found = _seasons(settings, arrays.get("core.lengths"), arrays.get("core.clock"))
            many = _checked("core.columns.many", arrays.get("core.columns.many"), (settings.known,))
            series.core = Core(settings, found, np.zeros((0, width)), (many != 0).astype(np.int64))
        own = series.arrays()
        if own.keys() != arrays.keys():
            raise ValueError(f"the forecaster is damaged: {sorted(own.keys() ^ arrays.keys())[:3]} cannot be")
        for name, array in own.items():
            if name not in ("kept", "kept_at"):
                array[...] = _checked(name, arrays[name], array.shape)
        if series.rows < 0 or len(series.kept) > AGAIN[-1] or len(series.kept_at) not in (0, len(series.kept)):
            raise ValueError("the forecaster is damaged: its number of rows is impossible")
        if series.core is not None:
            _check(series.core)
        return series


def _check(core: Core) -> None:
    try:
        core.check()
    except ValueError as error:
        raise ValueError(f"the forecaster is damaged: {error}") from error


def _seasons(settings: Settings, lengths: np.ndarray | None, clock: np.ndarray | None) -> Seasons:
    """The seasons of a state."""
    if lengths is None or clock is None or lengths.ndim != 1 or len(lengths) > MOST_SEASONS or clock.shape != (1,):
        raise ValueError("the forecaster is damaged: seasons are missing")
    if not np.all((lengths >= 2) & (lengths <= seasons.WEEK * seasons.LONGEST)):
        raise ValueError("the forecaster is damaged: a season is too long")
    return Seasons(tuple(int(length) for length in lengths), settings.step, bool(clock[0]))


def _checked(
    name: str, array: np.ndarray | None, shape: tuple[int, ...] | None = None, width: int | None = None
) -> np.ndarray:
    if (
        array is None
        or (shape is not None and array.shape != shape)
        or (width is not None and array.shape[1:] != (width,))
    ):
        raise ValueError(f"the forecaster is damaged: {name} has the wrong shape")
    if array.dtype.kind not in "fi" or np.isinf(array).any():
        raise ValueError(f"the forecaster is damaged: {name} is not finite")
    return array.copy()
