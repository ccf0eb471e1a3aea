"""A job: the settings of a fleet, and the spread of its keys."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cached_property, lru_cache
from typing import Any, Unpack

from pyspark import cloudpickle

from driftgp.base import checks
from driftgp.fleet import Fleet
from driftgp.models.model import Model
from driftgp.stream.model_json import first_difference, plain
from driftgp.stream.settings import GivenSettings, Settings, settings

BUCKETS = 64


class Job:
    """One model per key, on the columns of a DataFrame: a `Fleet` with these settings, spread over buckets.

    >>> Job(key="meter", time="time", features=["temperature"], target="load", lags=24, effort="low").buckets
    64
    """

    def __init__(
        self,
        model: Model | None = None,
        *,
        key: str,
        time: str,
        target: str,
        buckets: int = BUCKETS,
        start: Fleet | bytes | None = None,
        inputs: Sequence[str] | None = None,
        zone: str | None = None,
        **given: Unpack[GivenSettings],
    ) -> None:
        """Check the settings, and bring them into the form that a worker reads back.

        Args:
            model: any model with one output; None: the default model, which each key chooses by its first rows.
            key: column of the keys, strings or whole numbers.
            time: column of the times, timestamps or whole numbers; the calendar sees them in Spark's time zone.
            target: column to predict; null where nothing was observed.
            buckets: fleets that the keys are spread over. A bucket is what one core works on and what is read and
                written at once: it should hold hundreds of keys, and there should be a few for each core.
            start: a fleet with a shared warm-up, from which new keys start: `job.fleet()` after `warm`. None: they
                start cold.
            inputs: columns that go to the fleet, in this order; `predict_stream` and `backfill` find them in the
                DataFrame.
            zone: of the times, which these find too: None for numbers, "" for dates without a zone, or its name.
            given: the other settings of a `Fleet`, such as `features`, `known`, `lags`, `calendar`, `effort` ("low" for
                thousands of keys) or `level`; `base` is the name of a column.
        """
        self.model, self.settings = model, settings(key=key, time=time, target=target, **given)
        self.key, self.time, self.target = key, time, target
        names = [key, time, target]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"a column must have one part in a job; {twice[0]!r} has several")
        self.buckets, self.zone = checks.whole("buckets", buckets, at_least=1), zone
        self.inputs = self.known if inputs is None else tuple(inputs)
        self.start = start.fresh().to_bytes() if isinstance(start, Fleet) else start
        self._template = self._checked_start()

    @property
    def known(self) -> tuple[str, ...]:
        """Columns that are known with their row, by their names."""
        own = () if self.settings.base is None else (str(self.settings.base),)
        return tuple(dict.fromkeys((*own, *(self.settings.features or ()), *self.settings.known)))

    def changed(self, **given: Any) -> "Job":
        """The same job with some arguments `given` anew, such as its `start`."""
        return Job(self.model, **self._arguments | given)

    def fleet(self) -> Fleet:
        """A fleet without keys, ready to admit those of a bucket."""
        return self._template.fresh()

    def _checked_start(self) -> Fleet:
        """A fleet that is refused if its settings are those of no fleet, or of another one than the start."""
        fleet = Fleet(self.model, **_given(self.settings))
        if self.start is None:
            return fleet
        started = Fleet.from_bytes(self.start, self.model)
        difference = first_difference(started.settings.to_json(), fleet.settings.to_json(), "start")
        if difference is not None:
            raise ValueError(f"start must be a fleet with the settings of the job, such as job.fleet(): {difference}")
        return started

    # ---- what must stay the same while states are used

    @cached_property
    def written(self) -> str:
        """The settings that must be the same when states are opened again, as JSON."""
        start = None if self.start is None else hashlib.sha256(self.start).hexdigest()
        return json.dumps(
            {
                "model": None if self.model is None else plain(self.model),
                "settings": self._template.settings.to_json(),
                "buckets": self.buckets,
                "start": start,
                "inputs": self.inputs,
                "zone": self.zone,
            }
        )

    def check_written(self, stored: str) -> None:
        """Refuse states of a job with another model, other settings or buckets."""
        difference = first_difference(json.loads(stored), json.loads(self.written), "job")
        if difference is not None:
            raise ValueError(f"it is the state of another job: {difference}")

    # ---- the way to a worker

    @property
    def _arguments(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in ("buckets", "start", "inputs", "zone")}
        return _given(self.settings) | own

    def __reduce__(self) -> tuple[Callable[[bytes], "Job"], tuple[bytes]]:
        """Travel as bytes for which a worker makes one job, however many tasks bring them."""
        return _arrived, (cloudpickle.dumps((self.model, self._arguments)),)


def _given(chosen: Settings) -> dict[str, Any]:
    """Settings as arguments."""
    return {field.name: getattr(chosen, field.name) for field in fields(chosen)}


@lru_cache(maxsize=16)
def _arrived(sent: bytes) -> Job:
    model, arguments = cloudpickle.loads(sent)
    return Job(model, **arguments)
