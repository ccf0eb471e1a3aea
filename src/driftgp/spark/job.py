"""What a job is: a model, the columns it learns from, and how the keys are spread."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from datetime import timedelta
from functools import cached_property, lru_cache

import numpy as np
from pyspark import cloudpickle

from driftgp import checks
from driftgp.defaults import recommended
from driftgp.fleet import Fleet
from driftgp.model import Model
from driftgp.settings_json import first_difference

BUCKETS = 64


@dataclass(frozen=True)
class Job:
    """One model per key, on the columns of a DataFrame.

    >>> Job(key="meter", time="time", features=["lag1", "temperature"], target="load").buckets
    64

    Attributes:
        model: any model with one output; None: the default model at low effort (`driftgp.defaults.recommended`).
        key: column of the keys, strings or whole numbers.
        time: column of the times, timestamps or whole numbers.
        features: columns of the inputs.
        target: column of what is predicted; null where nothing was observed.
        level: probability that the interval holds the target.
        step: time after which a sample counts λ times as much, for forgetting by the clock; in units of the time
            column where that is a number. None: each row of a key is a step.
        buckets: fleets that the keys are spread over. A bucket is what one core works on and what is read and written
            at once: it should hold hundreds of keys, and there should be a few for each core.
        start: a fleet with a shared warm-up, from which new keys start; None: they start cold.
    """

    model: Model = None  # type: ignore[assignment]  # the default, unless it is given
    _: KW_ONLY
    key: str
    time: str
    features: Sequence[str]
    target: str
    level: float = 0.95
    step: timedelta | float | None = None
    buckets: int = BUCKETS
    start: Fleet | bytes | None = None

    def __post_init__(self) -> None:
        """Check the settings, and make plain what a worker would read back otherwise."""
        if isinstance(self.features, str) or not self.features:
            raise ValueError(f"features must be a list of at least one column; got {self.features!r}")
        names = [self.key, self.time, *self.features, self.target]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"a column must have one part in a job; {twice[0]!r} has several")
        if not 0.0 < self.level < 1.0:
            raise ValueError(f"level must lie strictly between 0 and 1; got {self.level!r}")
        if self.step is not None and not self.ticks > 0.0:
            raise ValueError(f"step must be a positive time, or None; got {self.step!r}")
        put = object.__setattr__
        put(self, "buckets", checks.whole("buckets", self.buckets, at_least=1))
        put(self, "features", tuple(self.features))
        if self.model is None:
            put(self, "model", recommended(np.zeros((0, len(self.features))), np.zeros(0), effort="low"))
        if isinstance(self.start, Fleet):
            put(self, "start", self.start.fresh().to_bytes())
        self.fleet()  # refuses the start of another model

    @property
    def ticks(self) -> float:
        """The step as a number in units of the time column, which are microseconds for timestamps."""
        return self.step / timedelta(microseconds=1) if isinstance(self.step, timedelta) else float(self.step or 0.0)

    def fleet(self) -> Fleet:
        """A fleet without keys, ready to admit those of a bucket."""
        return self._template.fresh()

    @cached_property
    def _template(self) -> Fleet:
        return Fleet(self.model) if self.start is None else Fleet.from_bytes(self.model, self.start)  # type: ignore[arg-type]

    # ---- what must stay the same while states are used

    @cached_property
    def written(self) -> str:
        """All that the bytes of a fleet say nothing about and that must be as it was when they were stored, as JSON."""
        fixed = {name: getattr(self, name) for name in ("key", "time", "features", "target", "buckets")}
        start = None if self.start is None else hashlib.sha256(self.start).hexdigest()  # type: ignore[arg-type]
        return json.dumps(fixed | {"step": self.ticks or None, "start": start})

    def check_written(self, stored: str) -> None:
        """Refuse states of a job with other columns or buckets."""
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
