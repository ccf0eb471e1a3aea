"""A bucket: the fleet of its keys, and its work on the rows of a micro-batch.

Nothing here knows Spark: rows come and go as pandas frames, the state as plain values.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from driftgp.fleet import Fleet
from driftgp.spark.job import Job


class StoredBucket(NamedTuple):
    """A bucket as a state store keeps it."""

    job: str  # `Job.written`
    fleet: bytes


@dataclass
class Bucket:
    """The keys of one bucket at work.

    Rows of a key are taken in the order of their times, and rows of one time in the order of target and inputs. So the
    order in which Spark delivers them does not matter. All else is as in a fleet. A row that is older than the last one
    of its key is flagged "late". It is predicted by the state before this batch, and not learned from.
    """

    job: Job
    fleet: Fleet

    @classmethod
    def open(cls, job: Job, stored: StoredBucket | None) -> "Bucket":
        """The bucket that was stored, or a new one; states of another model or job are refused."""
        if stored is None:
            return cls(job, job.fleet())
        job.check_written(stored.job)
        return cls(job, Fleet.from_bytes(stored.fleet, job.model))

    def stored(self) -> StoredBucket:
        """The stored form of the bucket, for `open`."""
        return StoredBucket(self.job.written, self.fleet.to_bytes())

    def follow(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Predict and then learn from rows in the order of their times.

        Args:
            frame: with the columns that the job names, as a fleet takes them.

        The answer has key, time and target of the rows in that order, with mean, interval and flags.
        """
        job = self.job
        frame = frame.iloc[_order(frame, job)].reset_index(drop=True)
        numbers = {name: _without_infinite(frame[name]) for name in frame if frame[name].dtype.kind == "f"}
        prediction = self.fleet.evaluate(frame.assign(**numbers))
        low, high = prediction.interval(job.settings.level)
        source: Any = prediction.source
        rows = frame[[job.key, job.time, job.target]]
        return rows.assign(mean=prediction.mean, low=low, high=high, flags=source.evaluated.remarks)

    def answers(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Do what `follow` does with rows as Spark brings them, and answer so.

        Args:
            rows: with `key`, `time` (whole numbers; microseconds since 1970 where the job has a zone), `y`, and `x0`,
                `x1` and so on for the job's inputs.
        """
        job, rows = self.job, rows.reset_index(drop=True)
        inputs = {name: rows[f"x{i}"] for i, name in enumerate(job.inputs or ())}
        given = {job.key: rows["key"], job.time: self._moments(rows["time"]), job.target: rows["y"].astype(np.float64)}
        found = self.follow(pd.DataFrame({**given, **inputs}))
        found.columns = pd.Index(["key", "time", "y", *found.columns[3:]])
        if job.zone is not None:
            found["time"] = found["time"].to_numpy("datetime64[us]").view(np.int64)
        return found

    def _moments(self, times: pd.Series) -> pd.Series:
        """Times as the fleet takes them: numbers, dates, or dates in a zone."""
        zone = self.job.zone
        if zone is None:
            return times
        moments = pd.Series(times.to_numpy(np.int64).view("datetime64[us]"))
        return moments.dt.tz_localize("UTC").dt.tz_convert(zone) if zone else moments


def _without_infinite(values: pd.Series) -> pd.Series:
    """Numbers of which those that are infinite are missing."""
    return values.where(np.isfinite(values))


class Kept:
    """Buckets in the memory of a worker. A bucket that comes back unchanged is not read again.

    So the cost of a small micro-batch depends on its rows, and not on the number of keys.
    """

    def __init__(self, most: int = 1 << 28) -> None:
        """Keep buckets whose states take at most this number of bytes of memory."""
        self.most = most
        self._buckets: dict[int, tuple[StoredBucket, Bucket]] = {}  # the one that was used last is the last

    def __len__(self) -> int:
        """How many there are."""
        return len(self._buckets)

    def open(self, job: Job, number: int, stored: StoredBucket | None) -> Bucket:
        """The bucket that was stored; it is out of here until it is stored again."""
        before, bucket = self._buckets.pop(number, (None, None))
        return bucket if bucket is not None and before == stored else Bucket.open(job, stored)

    def store(self, number: int, bucket: Bucket) -> StoredBucket:
        """The bytes of a bucket for the state store; the bucket is kept here too."""
        stored = bucket.stored()
        self._buckets[number] = stored, bucket
        while len(self._buckets) > 1 and sum(each.fleet.nbytes for _, each in self._buckets.values()) > self.most:
            del self._buckets[next(iter(self._buckets))]
        return stored


def _order(frame: pd.DataFrame, job: Job) -> np.ndarray:
    """Order of time; of rows of one time by key, and of rows of one key and time by content."""
    time, key = _ranks(frame[job.time]), _ranks(frame[job.key])
    order = np.lexsort((key, time))
    same = (np.diff(key[order]) == 0) & (np.diff(time[order]) == 0)
    if not same.any():
        return order
    others = [_ranks(frame[name]) for name in frame if name not in (job.key, job.time, job.target)]
    return np.lexsort((*others[::-1], _ranks(frame[job.target]), key, time))


def _ranks(values: pd.Series) -> np.ndarray:
    """Numbers in the order of the values; missing values come first."""
    return pd.factorize(values, sort=True)[0]
