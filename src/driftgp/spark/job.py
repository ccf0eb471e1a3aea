"""A job: the settings of a fleet, and the spread of its keys."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from functools import cached_property, lru_cache
from typing import Any

from pyspark import cloudpickle

from driftgp.base import checks
from driftgp.defaults import Effort, Support
from driftgp.fleet import Fleet
from driftgp.models.model import Model
from driftgp.stream.settings import Missing, Others
from driftgp.stream.settings_json import first_difference, plain

BUCKETS = 64
# What a fleet is told under the same names.
_OF_THE_FLEET = (
    *("key", "time", "target", "features", "known", "others", "lags", "calendar", "holidays"),
    *("horizon", "effort", "support", "base", "level", "missing"),
)


@dataclass(frozen=True)
class Job:
    """One model per key, on the columns of a DataFrame: a `Fleet` with these settings, spread over buckets.

    >>> Job(key="meter", time="time", features=["temperature"], target="load", lags=24, effort="low").buckets
    64

    Attributes:
        model: any model with one output; None: the default model, which each key chooses by its first rows.
        key: column of the keys, strings or whole numbers.
        time: column of the times, timestamps or whole numbers.
        target: column to predict; null where nothing was observed.
        features: columns that are known with their row: numbers, booleans or strings.
        known: columns that are known ahead of time; features too.
        others: the other columns enter with their values of `horizon` rows before ("late"), or not at all ("ignored").
        lags: past targets that are inputs.
        calendar: cycles of the calendar that are inputs; timestamps are seen in Spark's time zone.
        holidays: dates, or the code of a country.
        horizon: rows of a key from a forecast to the last row whose target is known.
        effort: cost and accuracy of the default model; "low" for thousands of keys.
        support: range of the targets.
        base: column that holds a forecast of the target from elsewhere.
        level: probability that the interval holds the target.
        missing: what becomes of rows with a blank input.
        buckets: fleets that the keys are spread over. A bucket is what one core works on and what is read and written
            at once: it should hold hundreds of keys, and there should be a few for each core.
        start: a fleet with a shared warm-up, from which new keys start: `job.fleet()` after `warm`. None: they start
            cold.
        inputs: columns that go to the fleet, in this order; `predict_stream` and `backfill` find them in the DataFrame.
        zone: of the times, which these find too: None for numbers, "" for dates without a zone, or its name.
    """

    model: Model | None = None
    _: KW_ONLY
    key: str
    time: str
    target: str
    features: Sequence[str] | None = None
    known: Sequence[str] = ()
    others: Others = "late"
    lags: int | Sequence[int] = ()
    calendar: bool | str | Sequence[str] = ()
    holidays: str | Sequence[Any] = ()
    horizon: int = 1
    effort: Effort = "medium"
    support: Support = "auto"
    base: str | None = None
    level: float = 0.95
    missing: Missing = "carry"
    buckets: int = BUCKETS
    start: Fleet | bytes | None = None
    inputs: Sequence[str] | None = None
    zone: str | None = None

    def __post_init__(self) -> None:
        """Check the settings, and bring them into the form that a worker reads back."""
        for name in ("features", "known", "inputs"):
            value = getattr(self, name)
            if isinstance(value, str):
                raise ValueError(f"{name} must be a list of names of columns; got {value!r}: write [{value!r}]")
            if value is not None:
                object.__setattr__(self, name, tuple(value))
        names = [self.key, self.time, self.target]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"a column must have one part in a job; {twice[0]!r} has several")
        put = object.__setattr__
        put(self, "buckets", checks.whole("buckets", self.buckets, at_least=1))
        if self.inputs is None:
            own = () if self.base is None else (self.base,)
            put(self, "inputs", tuple(dict.fromkeys((*own, *(self.features or ()), *self.known))))
        if isinstance(self.start, Fleet):
            put(self, "start", self.start.fresh().to_bytes())
        self.fleet()  # refuses settings that no fleet has, and the start of another model

    def fleet(self) -> Fleet:
        """A fleet without keys, ready to admit those of a bucket."""
        return self._template.fresh()

    @cached_property
    def _template(self) -> Fleet:
        fleet = Fleet(self.model, **{name: getattr(self, name) for name in _OF_THE_FLEET})
        if self.start is None:
            return fleet
        assert isinstance(self.start, bytes)  # noqa: S101
        started = Fleet.from_bytes(self.start, self.model)
        difference = first_difference(started.settings.to_json(), fleet.settings.to_json(), "start")
        if difference is not None:
            raise ValueError(f"start must be a fleet with the settings of the job, such as job.fleet(): {difference}")
        return started

    # ---- what must stay the same while states are used

    @cached_property
    def written(self) -> str:
        """The settings that must be the same when states are opened again, as JSON."""
        start = hashlib.sha256(self.start).hexdigest() if isinstance(self.start, bytes) else None
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

    def __reduce__(self) -> tuple[Callable[[bytes], "Job"], tuple[bytes]]:
        """Travel as bytes for which a worker makes one job, however many tasks bring them."""
        return _arrived, (cloudpickle.dumps({field.name: getattr(self, field.name) for field in fields(self)}),)


@lru_cache(maxsize=16)
def _arrived(sent: bytes) -> Job:
    return Job(**cloudpickle.loads(sent))
