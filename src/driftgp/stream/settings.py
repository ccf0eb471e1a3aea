"""Settings of a stream, under one name everywhere: in Python, on the command line, in the header of a file."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypedDict

from driftgp.base import checks
from driftgp.defaults import Effort, Support, check_effort, check_support
from driftgp.stream.base_column import Base
from driftgp.stream.calendar import CYCLES, check_holidays

Missing = Literal["carry", "skip", "refuse"]
Others = Literal["late", "ignored"]
_LARGEST = 1_000_000  # rows that a lag or a horizon may span


class GivenSettings(TypedDict, total=False):
    """Settings as users give them to whatever hands them on: see `driftgp.Online`, whose arguments they are."""

    features: Iterable[str] | None
    known: Iterable[str]
    others: Others
    lags: int | Iterable[int]
    calendar: bool | str | Iterable[str]
    holidays: str | Iterable[Any]
    horizon: int
    effort: Effort
    support: Support
    base: Base
    level: float
    missing: Missing
    half_life: Any


@dataclass(frozen=True)
class Settings:
    """The settings of a stream, checked; `settings` makes them from user input.

    Attributes:
        target: column to predict, in frames and files; None where targets come by themselves.
        time: column of the times; None for those of a DatetimeIndex, or for rows that are one step apart.
        key: column that says which series a row belongs to.
        features: columns that are known when their row is predicted. None: all of them where targets come by
            themselves, and none in a table with a target.
        known: columns that are known ahead of time; they are features too.
        others: the other columns of a table with a target: "late" (their values of `horizon` rows before) or
            "ignored".
        lags: steps back to each past target that is an input.
        calendar: cycles of the calendar that are inputs: "day", "week", "year".
        holidays: dates, or the code of a country, for an input that is 1 on holidays.
        horizon: rows from a forecast to the row whose target is the last one known.
        effort: of the default model.
        support: where targets can lie.
        base: column that holds a forecast of the target from elsewhere, known with the row; its index in arrays.
        level: of the intervals that commands print.
        missing: what to do with a blank input: fill it in ("carry"), "skip" or "refuse" the row.
    """

    target: str | None = None
    time: str | None = None
    key: str | None = None
    features: tuple[str, ...] | None = None
    known: tuple[str, ...] = ()
    others: Others = "late"
    lags: tuple[int, ...] = ()
    calendar: tuple[str, ...] = ()
    holidays: tuple[str, ...] | str = ()
    horizon: int = 1
    effort: Effort = "medium"
    support: Support = "auto"
    base: Base = None
    level: float = 0.95
    missing: Missing = "carry"

    @property
    def derives(self) -> bool:
        """Whether any input follows from the past or from the calendar."""
        return bool(self.lags or self.calendar or self.holidays)

    @property
    def needs_dates(self) -> bool:
        """Whether any input comes from the calendar."""
        return bool(self.calendar or self.holidays)

    def to_json(self) -> dict[str, Any]:
        """The settings as JSON holds them."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    def changed(self, **given: Any) -> "Settings":
        """The same with some of them given anew."""
        return settings(**{**{field.name: getattr(self, field.name) for field in fields(self)}, **given})


def settings(**given: Any) -> Settings:
    """Settings as users type them, checked.

    >>> settings(target="mw", lags=3, horizon=2).lags
    (2, 3, 4)
    >>> settings(lags=[1, 24], calendar=True).calendar
    ('day', 'week')
    """
    names = [field.name for field in fields(Settings)]
    _refuse_half_life(given.pop("half_life", None))
    for name in given:
        if name not in names:
            raise ValueError(f"{name!r} is not a setting of a stream: choose from {', '.join(names)}")
    made = Settings(**given)
    horizon = _count("horizon", made.horizon, 1)
    for name in ("target", "time", "key"):
        _name(name, getattr(made, name))
    _check_base(made)
    check_effort(made.effort)
    checks.choice("missing", made.missing, ("carry", "skip", "refuse"))
    checks.choice("others", made.others, ("late", "ignored"))
    _check_level(made.level)
    known = _names("known", made.known)
    features = None if made.features is None else _names("features", made.features)
    for name in (*(features or ()), *known):
        if name in (made.target, made.time, made.key):
            role = "target" if name == made.target else "time" if name == made.time else "key"
            remedy = "ask for lags of it" if role == "target" else "leave it out"
            raise ValueError(f"features must not hold {name!r}, which is the {role}: {remedy}")
    return replace(
        made,
        features=features,
        known=known,
        lags=_lags(made.lags, horizon),
        calendar=_cycles(made.calendar),
        holidays=check_holidays(made.holidays),
        horizon=horizon,
        support=check_support(made.support),
        level=float(made.level),
    )


def settings_among(arguments: Mapping[str, Any]) -> Settings:
    """The settings among the arguments of a function, as `locals()` has them when it begins."""
    names = [*(field.name for field in fields(Settings)), "half_life"]
    return settings(**{name: arguments[name] for name in names if name in arguments})


def _refuse_half_life(value: Any) -> None:
    if value is not None:
        raise ValueError(
            f"half_life is no setting of the default, which weighs several rates of forgetting by how well each does; "
            f"got {value!r}: leave it out, or give a model with forgetting=…"
        )


def promised(support: Support) -> tuple[float, float] | None:
    """Least and largest target that a user has promised; None without a promise.

    >>> promised("positive"), promised((None, 5.0)), promised("auto")
    ((0.0, inf), (-inf, 5.0), None)
    """
    pair = (0.0, None) if support == "positive" else support
    if isinstance(pair, str) or len(pair) != 2:
        return None
    low, high = pair
    return -math.inf if low is None else low, math.inf if high is None else high


def _check_base(made: Settings) -> None:
    base = made.base
    if isinstance(base, str):
        _name("base", base)
        for role in ("target", "time", "key"):
            if base == getattr(made, role):
                raise ValueError(f"base must not be {base!r}, which is the {role}: name the column of the forecast")
    elif base is not None:
        checks.whole("base", base, 0)


def _check_level(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 < value < 1.0:
        raise ValueError(f"level must lie strictly between 0 and 1; got {value!r}")


def _count(name: str, value: Any, least: int) -> int:
    number = checks.whole(name, value, least)
    if number > _LARGEST:
        raise ValueError(f"{name} must be at most a million; got {value!r}")
    return number


def _name(argument: str, value: Any) -> None:
    if value is not None and (not isinstance(value, str) or not value):
        raise ValueError(f"{argument} must be the name of a column; got {value!r}")


def _names(argument: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ValueError(f"{argument} must be a list of names of columns; got {value!r}: write [{value!r}]")
    names = tuple(dict.fromkeys(value))
    for name in names:
        _name(argument, name)
    return names


def _lags(value: Any, horizon: int) -> tuple[int, ...]:
    """Steps back of each lag: those of the list, or the first ones that are known in time."""
    if isinstance(value, (str, bool)) or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(f"lags must be a number, or a list of steps back such as [1, 2, 24]; got {value!r}")
    if not isinstance(value, Iterable):
        return tuple(range(horizon, horizon + _count("lags", value, 0)))
    lags = tuple(dict.fromkeys(_count("lags", lag, 1) for lag in value))
    early = [lag for lag in lags if lag < horizon]
    if early:
        raise ValueError(f"lags must be at least the horizon ({horizon}), since nothing later is known; got {early[0]}")
    return lags


def _cycles(value: Any) -> tuple[str, ...]:
    if value is True:
        return ("day", "week")
    if value is False or value is None:
        return ()
    if isinstance(value, str):
        value = [value]
    return tuple(dict.fromkeys(checks.choice("calendar", cycle, tuple(CYCLES)) for cycle in value))
