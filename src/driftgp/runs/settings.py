"""The settings of a run, the same from the command line, from a TOML file, or from Python."""

import codecs
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_type_hints

from driftgp.base import checks
from driftgp.stream.calendar import CYCLES, check_holidays
from driftgp.stream.settings import Settings as StreamSettings
from driftgp.stream.settings import settings as stream_settings
from driftgp.tables.dates import EPOCHS, ORDERS
from driftgp.tables.layout import DELIMITER_NAMES
from driftgp.tables.numbers import Decimal
from driftgp.tables.rows import FileRows, open_rows

DEFAULT = "default"  # the model that driftgp.defaults recommends for the first rows of a series
MODELS = (DEFAULT, "agp", "fast", "hybrid", "exact", "fitc", "svgp", "w-vsgp", "agp-vsi", "persistence", "mean")
KERNEL, INDUCING, WINDOW = "linear + se", 40, 300  # of the other models, by default
MISSING = ("carry", "skip", "refuse")
OTHERS = ("late", "ignored")
EFFORTS = ("low", "medium", "high")
MALFORMED = ("stop", "skip")
SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
WARMUP = 100  # rows, by default
LARGEST_CONFIG = 1 << 20  # bytes
_DURATION = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([smhdw]?)\s*")

Malformed = Literal["stop", "skip"]


class Named(NamedTuple):
    """The settings of a model by name, besides its half-life."""

    kernel: str
    inducing: int  # at most
    window: int


# ---- how each setting is read ----------------------------------------------------------------------------------------

Reader = Callable[[str, Any], Any]


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{name} must be text; got {value!r}")
    return value.strip()


def _yes_or_no(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be true or false; got {value!r}")
    return value


def _list(name: str, value: Any) -> tuple[Any, ...]:
    """A list of a config file, or text with commas."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"{name} must be a list, or text with commas; got {value!r}")
    return tuple(value)


def _texts(name: str, value: Any) -> tuple[str, ...]:
    return tuple(_text(name, part) for part in _list(name, value))


def _lags(name: str, value: Any) -> int | tuple[int, ...]:
    """How many of the last targets, or how many steps back each of them is."""
    parts = (value,) if isinstance(value, int) else _list(name, value)
    numbers = [int(part) if isinstance(part, str) and part.isdecimal() and len(part) < 10 else part for part in parts]
    if len(numbers) == 1 and not isinstance(value, (list, tuple)) and "," not in str(value):
        return _whole(0)(name, numbers[0])
    return tuple(checks.whole(name, number, 1) for number in numbers)


def _holidays(name: str, value: Any) -> tuple[str, ...] | str:
    if isinstance(value, str) and value.strip()[:2].isalpha():
        return check_holidays(value.strip())
    parts = [part.isoformat() if isinstance(part, date) else part for part in _list(name, value)]
    return check_holidays([_text(name, part) for part in parts])


def _support(name: str, value: Any) -> str | tuple[float, float]:
    """Where targets can lie: a word, or two numbers."""
    words = ("auto", "real", "positive")
    if isinstance(value, str) and value.strip() in words:
        return value.strip()
    try:
        low, high = (float(part) for part in _list(name, value))
    except (ValueError, TypeError):
        raise ValueError(f"{name} must be auto, real, positive, or two numbers such as 0,100; got {value!r}") from None
    return low, high


def _duration_text(name: str, value: Any) -> str:
    text = str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else _text(name, value)
    try:
        _duration(text)
    except ValueError as error:
        raise ValueError(f"{name} {error}") from error
    return text


def _duration(text: str) -> tuple[float, str]:
    match = _DURATION.fullmatch(text)
    number = float(match[1]) if match else 0.0
    if match is None or not 0.0 < number < 1e15:
        raise ValueError(f"must be a number of rows or a time such as 7d, 36h, 90m; got {text!r}")
    return number, match[2]


def _whole(at_least: int) -> Reader:
    def read(name: str, value: Any) -> int:
        number = checks.whole(name, value, at_least)
        if number > 1_000_000:
            raise ValueError(f"{name} must be at most a million; got {value!r}")
        return number

    return read


def _choice(options: tuple[str, ...]) -> Reader:
    return lambda name, value: checks.choice(name, value, options)


def _share(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 < value < 1.0:
        raise ValueError(f"{name} must lie strictly between 0 and 1; got {value!r}")
    return float(value)


def _delimiter(name: str, value: Any) -> str:
    """The delimiter between cells: a character, or its name."""
    text = DELIMITER_NAMES.get(str(value).strip(), value)
    if not isinstance(text, str) or len(text) != 1 or text in '\r\n"':
        raise ValueError(f"{name} must be one character, or one of {', '.join(DELIMITER_NAMES)}; got {value!r}")
    return text


def _encoding(name: str, value: Any) -> str:
    text = _text(name, value)
    try:
        return codecs.lookup(text).name
    except LookupError:
        raise ValueError(
            f"{name} must be one that Python knows, such as utf-8, cp1252 or utf-16; got {text!r}"
        ) from None


def _time_format(name: str, value: Any) -> str:
    """How dates are written: their order, what they count, or a format with % signs."""
    text = _text(name, value)
    if text not in (*ORDERS, *EPOCHS) and "%" not in text:
        words = ", ".join((*ORDERS, *EPOCHS))
        raise ValueError(f"{name} must be one of {words}, or a format such as '%d/%m/%Y %H:%M'; got {text!r}")
    if "%" in text:
        try:
            datetime.strptime("", text)
        except ValueError as error:
            if "does not match" not in str(error):
                raise ValueError(f"{name} {text!r} is not a time format: {error}") from error
        except re.error as error:
            raise ValueError(f"{name} {text!r} is not a time format: {error}") from error
    return text


def _calendar(name: str, value: Any) -> tuple[str, ...]:
    """Cycles of the calendar: yes for day and week, no for none, or their names."""
    if isinstance(value, bool):
        return ("day", "week") if value else ()
    if value in ("none", "no"):
        return ()
    return tuple(checks.choice(name, cycle, tuple(CYCLES)) for cycle in _list(name, value))


# ---- the settings ----------------------------------------------------------------------------------------------------

_REASONS = {
    "half-life": "weighs several rates of forgetting by how well each does",
    "warmup": "predicts from the first row on",
}
_GONE = {
    "group": "it is called key",
    "seasonal_lags": "name all lags in one list, such as lags 1,2,24",
    "cycles": "name the cycles in calendar, such as calendar day,week",
}


@dataclass(frozen=True)
class RunSettings:
    """Everything that predictions depend on, besides the rows. `docs/run.md` says what each setting means.

    Beside each type stands what reads it from a command line or a TOML file.
    """

    target: Annotated[str, _text]
    features: Annotated[tuple[str, ...] | None, _texts] = None
    known: Annotated[tuple[str, ...], _texts] = ()
    others: Annotated[str, _choice(OTHERS)] = "late"
    lags: Annotated[int | tuple[int, ...] | None, _lags] = (
        None  # None, here and for the calendar: chosen from the first rows
    )
    calendar: Annotated[tuple[str, ...] | None, _calendar] = None
    holidays: Annotated[tuple[str, ...] | str, _holidays] = ()
    time: Annotated[tuple[str, ...] | None, _texts] = None  # None: the first column of dates, if any
    horizon: Annotated[int, _whole(1)] = 1
    key: Annotated[str | None, _text] = None
    effort: Annotated[str | None, _choice(EFFORTS)] = None  # of the default model: None for medium
    support: Annotated[str | tuple[float, float] | None, _support] = None
    base: Annotated[str | None, _text] = None
    model: Annotated[str | None, _choice(MODELS)] = (
        None  # None: the default, or agp where it lacks a setting that is given
    )
    kernel: Annotated[str | None, _text] = None  # of the default model: None, as all up to warmup
    inducing: Annotated[int | None, _whole(1)] = None
    window: Annotated[int | None, _whole(1)] = None
    half_life: Annotated[str | None, _duration_text] = None
    warmup: Annotated[int | None, _whole(0)] = None
    standardise: Annotated[bool, _yes_or_no] = True
    calibrate: Annotated[bool, _yes_or_no] = True
    level: Annotated[float, _share] = 0.95
    missing: Annotated[str, _choice(MISSING)] = "carry"
    malformed: Annotated[Malformed, _choice(MALFORMED)] = "stop"
    alarms: Annotated[bool, _yes_or_no] = True
    delimiter: Annotated[str | None, _delimiter] = None  # None, here and below: found from the rows
    encoding: Annotated[str | None, _encoding] = None
    sheet: Annotated[str | None, _text] = None
    decimal: Annotated[Decimal | None, _choice(("point", "comma"))] = None
    time_format: Annotated[str | None, _time_format] = None

    def __post_init__(self) -> None:
        """Refuse what does not fit together."""
        if self.time is not None and len(self.time) > 2:
            raise ValueError(f"time must name one column, or a date and its hours; got {', '.join(self.time)}")
        given = self._only_of_named()
        if self.model == DEFAULT and given:
            raise ValueError(
                f"{given[0]} is no setting of the default model, which {_REASONS.get(given[0], 'chooses for itself')}: "
                "leave it out, or name a model, such as --model agp"
            )
        if self.model is None:
            object.__setattr__(self, "model", "agp" if given else DEFAULT)
        if self.model != DEFAULT:
            self._refuse_effort()
            for name, value in self.named._asdict().items():
                object.__setattr__(self, name, value)
        self.stream(self.time[0] if self.time else None, (), ())  # refuses settings that no stream has

    def _only_of_named(self) -> list[str]:
        """The given settings that the default model does not have."""
        values = {name: getattr(self, name) for name in ("kernel", "inducing", "window", "half_life", "warmup")}
        given = [name.replace("_", "-") for name, value in values.items() if value is not None]
        return given + [f"no-{name}" for name in ("standardise", "calibrate") if not getattr(self, name)]

    def _refuse_effort(self) -> None:
        for name in ("effort", "support", "base"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"{name} is a setting of the default model, and the model is {self.model}: leave out one of them"
                )

    def stream(self, time: str | None, lags: Any, calendar: Any) -> StreamSettings:
        """The settings of the stream, with the chosen lags and calendar."""
        given = {field.name: getattr(self, field.name) for field in fields(StreamSettings) if field.name != "time"}
        chosen = {"lags": lags, "calendar": calendar, "effort": "medium", "support": "auto"}
        for name, value in chosen.items():
            given[name] = value if given[name] is None else given[name]
        return stream_settings(time=time, **given)

    @property
    def with_their_row(self) -> tuple[str, ...]:
        """Columns that are known with their row."""
        return tuple(dict.fromkeys((*([self.base] if self.base else []), *(self.features or ()), *self.known)))

    def open(self, path: str, *, growing: bool = False) -> FileRows:
        """Open a table that is written as the settings say; `growing` is whether more rows are expected."""
        return open_rows(path, growing=growing, delimiter=self.delimiter, encoding=self.encoding, sheet=self.sheet)

    @property
    def named(self) -> Named:
        """The settings of a model by name."""
        window = self.window or WINDOW
        inducing = self.inducing or min(INDUCING, window)
        if inducing > window:
            raise ValueError(f"inducing must be at most window ({window}); got {inducing}")
        return Named(self.kernel or KERNEL, inducing, window)

    @property
    def rows_of_warmup(self) -> int:
        """Rows in the warm-up batch."""
        return min(self.window or WARMUP, WARMUP) if self.warmup is None else self.warmup

    @property
    def half_life_of(self) -> tuple[float, str] | None:
        """The half-life as a number and a unit: one of s, m, h, d, w, or nothing."""
        return None if self.half_life is None else _duration(self.half_life)

    def to_json(self) -> dict[str, Any]:
        """The settings as JSON holds them."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def settings_from(given: Mapping[str, Any], where: str = "") -> RunSettings:
    """Return settings from names and values such as a command line or a TOML file has them.

    >>> settings_from({"target": "mw", "lags": "1, 2, 24", "calendar": True}).lags
    (1, 2, 24)
    """
    kinds = get_type_hints(RunSettings, include_extras=True)
    readers: dict[str, Reader] = {field.name: kinds[field.name].__metadata__[0] for field in fields(RunSettings)}
    values: dict[str, Any] = {}
    for name, value in given.items():
        plain = str(name).replace("-", "_")
        if plain not in readers:
            known = ", ".join(reader.replace("_", "-") for reader in readers)
            now = _GONE.get(plain, f"choose from {known}")
            raise ValueError(f"{where}{name!r} is no setting: {now}")
        try:
            values[plain] = readers[plain](plain.replace("_", "-"), value)
        except ValueError as error:
            raise ValueError(f"{where}{error}") from error
    if "target" not in values:
        raise ValueError(f"{where}target is not given: name the column to predict")
    return RunSettings(**values)


def read_config(path: str | Path) -> dict[str, Any]:
    """The settings in a TOML file, not yet checked."""
    path = Path(path)
    with path.open("rb") as file:
        text = file.read(LARGEST_CONFIG + 1)
    if len(text) > LARGEST_CONFIG:
        raise ValueError(f"{path} is too large for a config file: it has more than {LARGEST_CONFIG} bytes")
    try:
        return tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read as TOML: {error}") from error
