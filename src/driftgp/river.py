"""driftgp's model as a river regressor."""

from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from river import base, proba, utils

from driftgp.adapters import Configured, Settings, Stream
from driftgp.prediction import Prediction


class AGPRegressor(Configured, base.MiniBatchRegressor):
    """Sparse Gaussian process regression that follows a drifting stream, for river.

    Features may appear and vanish. One that is absent, None or NaN keeps the value it had last, and counts as 0 before
    it was ever seen. Where more appear than there is room for, the model starts anew, with more room, from the samples
    that the window holds. Features and targets are seen in units of their own spread, which follow the stream, so that
    no scaler is needed before it.

    >>> model = AGPRegressor()
    >>> for i in range(40):
    ...     model.learn_one({"day": i, "warm": i % 2}, 20.0 + i % 2)
    >>> abs(model.predict_one({"day": 40, "warm": 1}) - 21.0) < 0.3
    True
    >>> distribution = model.predict_one({"day": 40, "warm": 1}, with_dist=True)
    >>> distribution.cdf(18.0) < 0.01
    True
    """

    def _prepare(self) -> None:
        Settings.of(self).model(1)  # refuses what is wrong
        self._slots: dict[Hashable, int] = {}  # column of each feature
        self._row = np.zeros(0)  # the last value of each
        self._recent: deque[tuple[np.ndarray, float]] = deque(maxlen=self.window)
        self._stream: Stream | None = None

    # ---- one sample

    def learn_one(self, x: Mapping[Hashable, Any], y: float) -> None:
        """Learn from one sample; a target of NaN means that only time has passed."""
        stream = self._with_room_for(x)
        _put(self._row, self._slots, x)
        stream.online.update(self._row, np.array((y,), np.float64))
        self._recent.append((self._row.copy(), y))

    def predict_one(self, x: Mapping[Hashable, Any], with_dist: bool = False) -> Any:
        """Mean of the target at x, or its distribution; features not learned from yet are passed over."""
        if self._stream is None:
            fresh = self.clone()
            fresh.learn_one(x, np.nan)
            return fresh.predict_one(x, with_dist)
        row = self._row.copy()
        _put(row, self._slots, x)
        prediction = self._stream.online.predict(row)
        mean = prediction.mean.item()
        if not with_dist:
            return mean
        gaussian: Any = proba.Gaussian
        return gaussian._from_state(n=1, m=mean, var=prediction.variance.item(), ddof=0)  # noqa: SLF001

    # ---- frames of samples

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn from the rows of a frame (pandas, polars, …), one after another."""
        frame = utils.dataframe.into_frame(X)
        stream = self._with_room_for(frame.columns)
        rows = self._rows(frame)
        targets = np.asarray(utils.dataframe.into_series(y).to_numpy(), np.float64)
        stream.learn(rows, targets)
        self._recent.extend(zip(rows[-self.window :], targets[-self.window :].tolist(), strict=True))
        if rows.shape[0]:
            self._row = rows[-1].copy()

    def predict_many(self, X: Any) -> Any:
        """Mean of the target at the rows of a frame, as a series of the same library."""
        frame = utils.dataframe.into_frame(X)
        means = self._means(frame) if len(frame) else np.zeros(0)
        return utils.dataframe.to_native_series(means, name=None, like=frame)

    def _means(self, frame: Any) -> np.ndarray:
        if self._stream is None:
            return np.array([self.predict_one(row) for row in frame.iter_rows(named=True)])
        prediction: Prediction = self._stream.predict(self._rows(frame, carry=False))
        return np.asarray(prediction.mean)

    def _rows(self, frame: Any, *, carry: bool = True) -> np.ndarray:
        """A frame's values in the columns of their features; what is absent keeps the value that it had last.

        Args:
            frame: its columns that have no place yet are passed over.
            carry: whether a value lasts from row to row.
        """
        rows = np.tile(self._row, (len(frame), 1))
        columns = [name for name in frame.columns if name in self._slots]
        values = utils.dataframe.to_numpy(frame.select(columns)).astype(np.float64)
        for slot, column in zip((self._slots[name] for name in columns), values.T, strict=True):
            if carry and np.isnan(column).any():
                last = np.maximum.accumulate(np.where(np.isnan(column), -1, np.arange(len(column))))
                column = np.where(last < 0, np.nan, column[last])  # noqa: PLW2901
            rows[:, slot] = np.where(np.isnan(column), rows[:, slot], column)
        return rows

    # ---- features that appear

    def _with_room_for(self, features: Iterable[Hashable]) -> Stream:
        """The model at work, with a column for each of these features."""
        new = [feature for feature in features if feature not in self._slots]
        if new or self._stream is None:
            for feature in sorted(new, key=str):  # whichever order they come in
                self._slots[feature] = len(self._slots)
            if self._stream is None or len(self._slots) > self._stream.room:
                self._stream = self._start_anew()
        return self._stream

    def _start_anew(self) -> Stream:
        """Start with room for all features, from the samples at hand."""
        settings = Settings.of(self)
        room = settings.room(max(len(self._slots), 1))
        X = np.zeros((len(self._recent), room))
        for row, (x, _) in zip(X, self._recent, strict=True):
            row[: x.size] = x
        self._row = np.append(self._row, np.zeros(room - self._row.size))
        return Stream(settings, X, np.array([y for _, y in self._recent]), inputs=max(len(self._slots), 1))


def _put(row: np.ndarray, slots: Mapping[Hashable, int], x: Mapping[Hashable, Any]) -> None:
    """Write the values that are there into their places."""
    for feature, value in x.items():
        slot = slots.get(feature)
        if slot is not None and value is not None and value == value:
            row[slot] = value
