"""`driftgp inspect`: a page about a saved file: what it is, what it has learned, its errors, and what to look at."""

from __future__ import annotations

import json
import math
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftgp.base.wording import figure
from driftgp.cli import console
from driftgp.cli.options import Picture

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from driftgp.fleet import Fleet
    from driftgp.forecasting import Forecaster
    from driftgp.models.model import State
    from driftgp.online import Online
    from driftgp.runs import Saved
    from driftgp.stream.settings import Settings

Note = tuple[str, str]
INPUTS_SHOWN = 8
ALARMS_SHOWN = GAPS_SHOWN = 5
_NEAR = 0.7  # evidence of a change above which it is shown; an alarm comes at 1


def inspect(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="File of --checkpoint, or of save of Online, Fleet or Forecaster."),
    ],
    key: Annotated[str | None, typer.Option(help="Key of the series to show.", show_default="most alarms")] = None,
    plot: Picture = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")] = False,
) -> None:
    """Show what a saved run, stream, fleet or forecaster is, what it has learned, its errors, and what to look at."""
    from driftgp.base.files import read_whole

    data = read_whole(file)
    try:
        page = _page(data, key)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error
    if plot is not None and page.targets is None:
        raise ValueError(f"{file} is not the checkpoint of a run: it has no picture to show")
    if as_json:
        print(json.dumps(console.finite(page.facts), indent=2, allow_nan=False))
    else:
        page.print(str(file))
    if plot is not None:
        _draw(page, plot)


class Page:
    """Facts for programs, and sections of notes for people."""

    def __init__(self, title: str) -> None:
        """Begin with a title."""
        self.title = title
        self.facts: dict[str, Any] = {}
        self.sections: dict[str, list[Note]] = {
            name: [] for name in ("What it is", "What it has learned", "How it does", "What to look at")
        }
        self.targets: list[float] | None = None  # the last ones, for a picture
        self.name = ""

    def add(self, section: str, *notes: Note) -> None:
        """Put notes into a section."""
        self.sections[section] += notes

    def print(self, file: str) -> None:
        """Print it for people."""
        print(f"{file}: {self.title}")
        for name, notes in self.sections.items():
            if notes:
                print(f"\n{name}")
                console.print_notes((f"  {what}", text) for what, text in notes)


def _page(data: bytes, key: str | None) -> Page:
    from driftgp import Forecaster
    from driftgp.base import sealed
    from driftgp.fleet import Fleet
    from driftgp.runs import read_checkpoint

    kind = sealed.kind_of(data)
    if kind == "run":
        return _of_run(read_checkpoint(data), key)
    if kind == "forecaster":
        return _of_forecaster(Forecaster.from_bytes(data), key)
    if kind == "fleet":
        return _of_fleet(Fleet.from_bytes(data), key)
    return _of_stream(data)


# ---- a run -----------------------------------------------------------------------------------------------------------


def _of_run(saved: Saved, asked: str | None) -> Page:
    from driftgp.fleet import Fleet
    from driftgp.runs import words
    from driftgp.runs.warnings import warnings_of

    stream, settings = saved.stream, saved.settings
    keys = list(stream.keys) if isinstance(stream, Fleet) else []
    key = _with_most_alarms(saved, keys) if asked is None else _asked(keys, asked)
    online = stream[key] if isinstance(stream, Fleet) and key is not None else stream
    page = Page(f"a run of {saved.rows} rows, {settings.target} {words.ahead(settings.horizon)} ahead")
    page.facts |= {"rows_read": saved.rows, "series": max(len(keys), 1), "target": settings.target}
    page.add("What it is", ("Model", words.model(saved)))
    if keys:
        shown = f"{len(keys)}, one for each {settings.key}; this page is on {key!r} (--key for another)"
        page.add("What it is", ("Series", shown))
    page.add("What it is", *words.inputs(saved))
    read = words.read(saved)
    if read:
        page.add("What it is", ("Read", "; ".join(read)))
    if not online.begun:  # type: ignore[union-attr]
        raise ValueError("the checkpoint holds no row yet: there is nothing to inspect")
    _learned(page, online.state, list(online.inputs))  # type: ignore[union-attr,arg-type]
    _scores(page, saved, key if keys else None)
    found = warnings_of(saved)
    page.facts["warnings"] = found
    page.add("What to look at", *(("Warning", text) for text in found))
    if not page.sections["What to look at"]:
        page.add("What to look at", ("", "nothing stands out"))
    series = stream.streams.series[key if keys else None]
    page.targets, page.name = series.past.y.tolist(), str(key) if keys else settings.target
    return page


def _asked(keys: Sequence[Any], asked: str) -> Any:
    """The key that was asked for."""
    for key in keys:
        if str(key) == asked:
            return key
    known = ", ".join(map(repr, keys[:20])) or "none, since the file has one series"
    raise ValueError(f"key must be one of {known}; got {asked!r}")


def _with_most_alarms(saved: Saved, keys: Sequence[Any]) -> Any:
    """The key with the most alarms, or the first one; None without keys."""
    monitor = saved.monitor
    if not keys or monitor is None:
        return (*keys, None)[0]
    return max(keys, key=lambda name: monitor.of(name)["alarms"] if name in monitor.places else -1)


def _scores(page: Page, saved: Saved, key: Any) -> None:
    """How the forecasts of a series have done."""
    from driftgp.runs.warnings import name_of
    from driftgp.stream.running_scores import means
    from driftgp.stream.scores import given_the_row

    monitor = saved.monitor
    if monitor is None or key not in monitor.places:
        page.add("How it does", ("Scores", "none: the run kept no scores"))
        return
    sums = monitor.of(key)
    found = means(sums, monitor.labels)
    counts = {name: int(sums[name]) for name in ("missing", "gaps", "late", "jump", "alarms")}
    page.facts |= {f"run_{name}": value for name, value in (found | counts).items()}
    page.facts["naive"] = list(monitor.labels)
    base = saved.settings.base
    if base is not None:
        page.add("How it does", ("Base", f"RMSE {figure(found['rmse_base'])} of {base} by itself"))
    naive = [f"{name_of(label)} {figure(found[f'rmse_{n}'])}" for n, label in enumerate(monitor.labels)]
    page.add("How it does", ("RMSE", f"{figure(found['rmse'])}; on the same rows: {', '.join(naive)}"))
    inside = f"{found['coverage']:.1%} of {found['scored']} targets lie in their {saved.settings.level:.0%} interval"
    page.add("How it does", ("Intervals", f"{inside}; mean width {figure(found['width'])} without the first 10 rows"))
    every = "" if key is None else "; all series together"
    page.add(
        "How it does",
        *((name, f"{text}{every}") for name, text in given_the_row(monitor.by_hour(), monitor.by_tenth())),
    )
    page.facts["coverage_by_hour"], page.facts["coverage_by_tenth_of_forecast"] = monitor.shares()
    if monitor.watch is not None:
        _alarms(page, saved, key, counts["alarms"])


def _alarms(page: Page, saved: Saved, key: Any, count: int) -> None:
    monitor = saved.monitor
    assert monitor is not None  # noqa: S101
    alarms = monitor.alarms[monitor.places[key]]
    since = None if alarms.last is None else alarms.rows - alarms.last
    page.facts |= {"evidence": dict(alarms.evidence), "since_alarm": since}
    own = [alarm for alarm in monitor.raised if alarm.key == key]
    page.facts["raised"] = [str(alarm) for alarm in own]
    last = "" if since is None else f"; the last one {since} rows ago"
    page.add("How it does", ("Alarms", f"{count or 'none'}{last}"))
    page.add("How it does", *(("", str(alarm)) for alarm in own[-ALARMS_SHOWN:]))
    near = [f"{kind} {share:.0%}" for kind, share in alarms.evidence.items() if share >= _NEAR]
    if near:
        page.add("What to look at", ("Change", f"evidence of a change is near an alarm: {', '.join(near)}"))


# ---- what a model has learned ----------------------------------------------------------------------------------------


def _learned(page: Page, state: State, names: list[str]) -> None:
    from driftgp import engine
    from driftgp.diagnostics import contents, importance

    about, learned = contents(state.model, state), _named(state.model.summary(state), names)
    members = [before | now for before, now in zip(about.pop("members", []), learned.pop("members", []), strict=True)]
    for counts in {"filled", "limited"} & set(about):
        about[counts] = {name: count for name, count in zip(names, about[counts], strict=True) if count}
    shares = dict(zip(names, importance(state).tolist(), strict=True))
    page.facts |= {"engine": engine.describe(state.model), "inputs": names}
    if not any(map(math.isnan, shares.values())):
        ordered = dict(sorted(shares.items(), key=lambda item: -item[1]))
        page.facts["importance"] = ordered
        page.add("What it has learned", ("Inputs", _importance(ordered)))
    page.facts |= about | learned | ({"members": members} if members else {})
    page.add("What it has learned", *_of_members(members, about))
    if learned.get("calibration"):
        levels = learned["calibration"].items()
        factors = ", ".join(f"{factor:.2f} ({level.replace(' %', '%')})" for level, factor in levels)
        page.add("What it has learned", ("Intervals", f"the model's own widths, times {factors}"))
    # waves of the calendar are limited in the first rows only, before their whole range is known
    wild = {name: count for name, count in about.get("limited", {}).items() if count and _shown(name) == name}
    if wild:
        page.add(
            "What to look at",
            ("Inputs", f"values far outside their earlier range were limited; rows: {_counts(wild)}"),
        )
    for gap in learned.get("gaps", []):
        gap["input"] = names[gap["input"]]
    gaps = [gap for gap in learned.get("gaps", []) if gap["rows"] > _first_rows_without(gap["input"])]
    for gap in sorted(gaps, key=lambda each: -each["rows"])[:GAPS_SHOWN]:
        count = f"{gap['rows']} row{'s' if gap['rows'] != 1 else ''}"
        text = f"{gap['input']} was missing in {count}, where intervals were {gap['wider']:.2f} times as wide"
        page.add("What to look at", ("Gaps", text))
    if len(gaps) > GAPS_SHOWN:
        page.add("What to look at", ("Gaps", f"and {len(gaps) - GAPS_SHOWN} more inputs: --json has all"))


def _first_rows_without(name: str) -> int:
    """Number of first rows of a stream without a value of an input, since its value comes from an earlier row.

    >>> [_first_rows_without(name) for name in ("lag 24", "wind (3 before)", "temperature")]
    [24, 3, 0]
    """
    found = re.fullmatch(r"lag (\d+)|.* \((\d+) before\)", name)
    return int(found[1] or found[2]) if found else 0


def _importance(shares: dict[str, float]) -> str:
    together: dict[str, float] = {}
    for name, share in shares.items():
        together[_shown(name)] = together.get(_shown(name), 0.0) + share
    ordered = sorted(together.items(), key=lambda item: -item[1])
    shown = [f"{name} {share:.0%}" for name, share in ordered[:INPUTS_SHOWN]]
    more = len(ordered) - len(shown)
    return "what matters most: " + ", ".join(shown) + (f", {more} more" if more > 0 else "")


def _shown(name: str) -> str:
    """The name of an input for people: the waves of a cycle are one.

    >>> [_shown(name) for name in ("sin day", "cos 2 week", "lag 1")]
    ['hour of day', 'day of week', 'lag 1']
    """
    from driftgp.runs.words import CYCLES

    wave = re.fullmatch(r"(?:sin|cos) (?:\d+ )?(day|week|year)", name)
    return CYCLES[wave[1]] if wave else name


def _of_members(members: list[dict[str, Any]], about: dict[str, Any]) -> Iterator[Note]:
    """Each member of a bank with its share, or what a single model remembers."""
    small = [member for member in members if member.get("weight", 0.0) < _SMALL]
    for member in sorted(members, key=lambda each: -each.get("weight", 0.0)):
        if member not in small:
            yield "Forecast", f"{member.get('weight', 0.0):.0%} from {_model_name(member)}{_memory(member)}"
    if small:
        yield "Forecast", f"less than 1% from {' and '.join(map(_model_name, small))}"
    if not members:
        yield "Forecast", f"from {_model_name(about)}{_memory(about)}"


_SMALL = 0.01  # members with a smaller share of the forecast are not shown one by one
_MEMBERS = {
    "AGP": "a Gaussian process on points that move (AGP)",
    "Anchored": "a regression on {points} points (Anchored)",
    "Lagged": "a linear regression (Lagged)",
    "Persistence": "the last value (Persistence)",
}


def _model_name(about: dict[str, Any]) -> str:
    model = about.get("model", "model")
    name = str(model.get("is", "model")) if isinstance(model, dict) else str(model)
    return _MEMBERS.get(name, name).format(points=about.get("points", "fixed"))


def _memory(about: dict[str, Any]) -> str:
    memory = about.get("memory")
    if memory is None:
        return ""
    values = memory if isinstance(memory, list) else [memory]
    rows = ["all" if value is None else figure(value) for value in values]
    return f", which remembers about {' or '.join([', '.join(rows[:-1]), rows[-1]] if rows[1:] else rows)} rows"


def _named(learned: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """What a model or its members have learned, with the relevance of each input by its name."""
    named = {name: value for name, value in learned.items() if name not in ("model", "member")}
    if "relevance" in named:
        named["relevance"] = dict(zip(names, named["relevance"], strict=True))
    if "members" in named:
        named["members"] = [_named(member, names) for member in named["members"]]
    return named


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in counts.items())


# ---- streams and models ----------------------------------------------------------------------------------------------


def _of_stream(data: bytes) -> Page:
    """A stream, or a model and its state; for a model with user-defined parts, its settings."""
    from driftgp import Online
    from driftgp.checkpoint import peek

    try:
        online = Online.from_bytes(data)
    except ValueError as error:
        try:
            stored = peek(data)
        except ValueError:
            raise error from None
        page = Page("a model with a part that is not in the library")
        page.facts |= stored
        page.add("What it is", ("Settings", json.dumps(stored["model"])))
        return page
    if not online.begun:
        page = Page("a stream without a row")
        page.facts |= {"rows": 0}
        return page
    page = Page("a stream, saved by Online.save")
    with suppress(ValueError):  # what was saved beside a model and its state
        page.facts["extra"] = peek(data)["extra"]
    page.add("What it is", *_of_settings(online.settings), ("Model", online.model.outline))
    more = f", {len(online.inputs) - INPUTS_SHOWN} more" if len(online.inputs) > INPUTS_SHOWN else ""
    page.add("What it is", ("Inputs", ", ".join(map(str, online.inputs[:INPUTS_SHOWN])) + more))
    _learned(page, online.state, list(online.inputs))
    return page


def _of_fleet(fleet: Fleet, asked: str | None) -> Page:
    keys = fleet.keys
    page = Page(f"a fleet of {len(keys)} keys, saved by Fleet.save")
    page.facts |= {"keys": len(keys), "bytes": fleet.nbytes}
    if not keys:
        return page
    key = keys[0] if asked is None else _asked(keys, asked)
    online: Online = fleet[key]
    page.add("What it is", *_of_settings(online.settings), ("Memory", f"{fleet.nbytes / 1e6:.1f} MB"))
    page.add("What it is", ("Key", f"this page is on {key!r} (--key for another)"))
    page.facts["key"] = key
    _learned(page, online.state, list(online.inputs))
    return page


def _of_settings(settings: Settings) -> Iterator[Note]:
    """The target, the series and the times of a stream."""
    from driftgp.runs import words

    yield "Target", f"{settings.target or 'y'}, {words.ahead(settings.horizon)} ahead"
    if settings.key is not None:
        yield "Series", f"one for each {settings.key}"
    if settings.time is not None:
        yield "Time", settings.time


def _of_forecaster(forecaster: Forecaster, asked: str | None) -> Page:
    keys, settings = forecaster.keys, forecaster.settings
    key = None if asked is None else _asked(keys, asked)
    page = Page(f"forecasts of the next {forecaster.horizon} steps, from {forecaster.rows} rows")
    page.facts |= {"horizon": forecaster.horizon, "rows_read": forecaster.rows, "series": max(len(keys), 1)}
    page.add("What it is", ("Target", settings.target or "y"))
    if keys:
        shown = f"on {key!r}" if key is not None else "on all of them (--key for one)"
        page.add("What it is", ("Series", f"{len(keys)}, one for each {settings.key or 'key'}; this page is {shown}"))
    if settings.known:
        page.add("What it is", ("Known", f"ahead of time: {', '.join(settings.known)}"))
    words = forecaster.words(key)
    if words:
        page.add("What it has learned", ("Seasons", words.removeprefix("seasons: ")))
    worth = forecaster.scores(key)
    if worth.forecasts:
        whole = worth.over(slice(None))
        error, naive, inside = (float(part[0]) for part in (whole.error, whole.naive, whole.inside))
        page.facts |= {"forecasts": worth.forecasts, "mae": error, "mae_naive": naive, "coverage": inside}
        judged = f"MAE {figure(error)}; on the same rows: seasonal naive {figure(naive)}"
        page.add("How it does", ("Forecasts", f"{worth.forecasts}, each made before its row was known"))
        page.add("How it does", ("Error", judged))
        page.add("How it does", ("Intervals", f"{inside:.1%} of the targets lie in their 95% interval"))
    else:
        page.add("How it does", ("Forecasts", "none could be judged: there are too few rows"))
    return page


def _draw(page: Page, path: Path) -> None:
    from driftgp.plots import base as plots
    from driftgp.plots import run as plots_run

    plots.save(plots_run.health_figure(page.facts, page.targets or [], page.name), path)
    console.remark(f"wrote {path}")
