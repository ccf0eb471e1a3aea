"""The settings of a forecaster, checked once, and kept in its file."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from driftgp.base import checks
from driftgp.defaults import Effort, Support
from driftgp.forecasting.grid import Frequency
from driftgp.forecasting.settings import MOST_STEPS
from driftgp.stream.settings import promised
from driftgp.stream.settings import settings as of_stream

LONGEST = 14_000  # rows of a season
NIXTLA = ("y", "ds", "unique_id")  # target, time and key in their long frames


@dataclass(frozen=True)
class Asked:
    """The settings of a forecaster, checked; `asked` makes them from user input."""

    horizon: int = 24
    target: str | None = None
    time: str | None = None
    key: str | None = None
    known: tuple[str, ...] = ()
    past: tuple[str, ...] = ()
    holidays: tuple[str, ...] | str = ()
    effort: Effort = "medium"
    frequency: str | None = None
    season: int | None = None
    support: Support = "auto"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns beside target, time and key, those that are known ahead first."""
        return (*self.known, *self.past)

    @property
    def step(self) -> Frequency | None:
        """The time between rows, where it was given."""
        return Frequency.of(self.frequency)

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Least and greatest value of a target, as far as the user has given them."""
        return promised(self.support)

    def to_json(self) -> dict[str, Any]:
        """The settings as JSON holds them."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def asked(
    *,
    horizon: int,
    target: str | None = None,
    time: str | None = None,
    key: str | None = None,
    known: Iterable[str] = (),
    past: Iterable[str] = (),
    holidays: Any = (),
    effort: Effort = "medium",
    frequency: Any = None,
    season: int | None = None,
    support: Support = "auto",
) -> Asked:
    """Settings as users type them, checked.

    >>> asked(horizon=28, known=["promo"], frequency="1d").known
    ('promo',)
    """
    given = {"target": target, "time": time, "key": key, "holidays": holidays, "effort": effort, "support": support}
    read = of_stream(**given, known=_listed("known", known))
    late = of_stream(target=target, time=time, key=key, features=_listed("past", past)).features or ()
    both = [name for name in late if name in read.known]
    if both:
        raise ValueError(f"past must not hold {both[0]!r}, which is known ahead: leave it out of one of them")
    step = Frequency.of(frequency)
    return Asked(
        checks.whole("horizon", horizon, 1, MOST_STEPS),
        target,
        time,
        key,
        read.known,
        tuple(late),
        read.holidays,
        read.effort,
        None if step is None else f"{step.months}M" if step.months else frequency_text(step),
        None if season is None else checks.whole("season", season, 1, LONGEST),
        read.support,
    )


def frequency_text(step: Frequency) -> str:
    """A time between rows as text that `Frequency.of` reads.

    >>> frequency_text(Frequency(0.5)), frequency_text(Frequency(3600.0))
    ('500000us', '3600s')
    """
    return f"{step.seconds:.0f}s" if step.seconds == round(step.seconds) else f"{step.seconds * 1e6:.0f}us"


def _listed(argument: str, names: Any) -> Any:
    if isinstance(names, str):
        raise ValueError(f"{argument} must be a list of names of columns; got {names!r}: write [{names!r}]")
    return tuple(names)
