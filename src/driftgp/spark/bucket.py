"""A bucket: the fleet of the keys that fall into it, and what it does with the rows of a micro-batch.

Nothing here knows Spark: rows come and go as pandas frames, the state as plain values.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd

from driftgp.fleet import Fleet, Key
from driftgp.predictions import Prediction
from driftgp.spark.job import Job


class Stored(NamedTuple):
    """A bucket as a state store keeps it."""

    job: str  # `Job.written`
    fleet: bytes
    times: bytes  # of each key's last row, int64, in the order of the fleet's keys


@dataclass
class Bucket:
    """The keys of one bucket at work.

    Rows of a key are taken in the order of their times; rows of one time in the order of target and features, so that
    the order in which Spark delivers them does not matter. A row that is older than the last one of its key is late:
    it is predicted by the state as it is before this batch, and not learned from.
    """

    job: Job
    fleet: Fleet
    last: dict[Key, int] = field(default_factory=dict)  # time of each key's last row

    @classmethod
    def open(cls, job: Job, stored: Stored | None) -> "Bucket":
        """The bucket that was stored, or a new one; states of another model or job are refused."""
        if stored is None:
            return cls(job, job.fleet())
        job.check_written(stored.job)
        fleet = job.fleet()
        fleet.admit(stored.fleet)
        times = np.frombuffer(stored.times, "<i8").tolist()
        return cls(job, fleet, dict(zip(fleet.keys, times, strict=True)))

    def stored(self) -> Stored:
        """What `open` opens."""
        times = np.array([self.last[key] for key in self.fleet.keys], "<i8")
        return Stored(self.job.written, self.fleet.to_bytes(start=False, again=True), times.tobytes())

    def follow(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Predict and then learn from rows with `key`, `time`, `x` (a list) and `y`, in the order of their times.

        The answer has the rows in that order, with mean, interval and flags.
        """
        key, time = rows["key"].to_numpy(object), rows["time"].to_numpy(np.int64)
        X, y = np.stack(rows["x"].to_list()), rows["y"].to_numpy(np.float64)  # N×D, N
        order = _order(key, time, X, y)
        key, time, X, y = key[order], time[order], X[order], y[order]
        late = np.array([moment < self.last.get(name, moment) for name, moment in zip(key, time, strict=True)], bool)
        missing = np.isinf(X).any(1) | (not self.job.model.fills_gaps) & np.isnan(X).any(1)
        learnt = np.isfinite(y) & ~late & ~missing
        X, seen = np.where(missing[:, None], 0.0, X), np.where(learnt, y, np.nan)
        bounds = np.empty((3, len(order)))
        if late.any():
            bounds[:, late] = self._bounds(self.fleet.predict(key[late], X[late]))
        if not late.all():
            bounds[:, ~late] = self._bounds(self._evaluate(key[~late], time[~late], X[~late], seen[~late]))
        mean, lower, upper = np.where(missing, np.nan, bounds)
        flags = {"learnt": learnt, "late": late, "missing": missing}
        return pd.DataFrame({"key": key, "time": time, "y": y, "mean": mean, "lower": lower, "upper": upper, **flags})

    def _evaluate(self, key: np.ndarray, time: np.ndarray, X: np.ndarray, y: np.ndarray) -> Prediction:
        steps = time / self.job.ticks if self.job.step is not None else None
        prediction = self.fleet.evaluate(key, X, y, steps)
        self.last.update(zip(key, time.tolist(), strict=True))  # the last of several is the latest
        return prediction

    def _bounds(self, prediction: Prediction) -> np.ndarray:
        """Mean, lower and upper bound, 3×N."""
        return np.stack((prediction.mean, *prediction.interval(self.job.level)))


class Kept:
    """Buckets that a worker has at hand: one that comes back as it was stored here is not read again.

    A micro-batch of a few rows costs what its rows cost, and not what all keys of their buckets do.
    """

    def __init__(self, most: int = 1 << 28) -> None:
        """Keep buckets whose states take so many bytes of memory at most."""
        self.most = most
        self._buckets: dict[int, tuple[Stored, Bucket]] = {}  # the one that was used last is the last

    def __len__(self) -> int:
        """How many there are."""
        return len(self._buckets)

    def open(self, job: Job, number: int, stored: Stored | None) -> Bucket:
        """The bucket that was stored; it is out of here until it is stored again."""
        before, bucket = self._buckets.pop(number, (None, None))
        return bucket if bucket is not None and before == stored else Bucket.open(job, stored)

    def store(self, number: int, bucket: Bucket) -> Stored:
        """What a state store is to keep of a bucket, which is kept here too."""
        stored = bucket.stored()
        self._buckets[number] = stored, bucket
        while len(self._buckets) > 1 and sum(each.fleet.nbytes for _, each in self._buckets.values()) > self.most:
            del self._buckets[next(iter(self._buckets))]
        return stored


def _order(key: np.ndarray, time: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Order of time; of rows of one time by key, and of rows of one key and time by content."""
    code = np.unique(key.astype(str), return_inverse=True)[1]
    order = np.lexsort((code, time))
    same = (np.diff(code[order]) == 0) & (np.diff(time[order]) == 0)
    return np.lexsort((*X.T[::-1], y, code, time)) if same.any() else order
