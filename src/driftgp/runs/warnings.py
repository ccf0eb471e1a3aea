"""Warnings about a run: the same in the summary, in `inspect` and on the picture."""

from collections.abc import Iterator, Sequence
from datetime import timedelta, timezone

from driftgp.base.wording import figure
from driftgp.runs.oddities import Oddities
from driftgp.runs.run import Run, Saved
from driftgp.stream.base_column import TOO_GOOD
from driftgp.stream.plan import never_there
from driftgp.stream.running_scores import RunningScores, means

_FEW = 50  # with fewer scored rows, figures are uncertain
_ENOUGH = 200  # least scored rows for a judgement of the coverage
_CLEARLY = 1.005  # an error this many times another one is worse, and not only rounded
_SHORT = 0.05  # intervals whose coverage is lower than the level by this are too narrow
_LARGE = 0.25  # share of the squared error in one row
_MOST = 0.5  # share of the rows: if more are odd, the whole file is


def warnings_of(run: Run | Saved) -> list[str]:
    """Sentences, each with a remedy; empty if all is well."""
    found: list[str] = [*_leaks(run)]
    if run.monitor is not None:
        found += [*_worse(run, run.monitor), *_doubtful(run, run.monitor)]
    return [*found, *_rows(run)]


def name_of(label: str) -> str:
    """What a naive forecast is called.

    >>> name_of("persistence"), name_of("a day before")
    ('persistence (the last value)', 'seasonal naive (a day before)')
    """
    return "persistence (the last value)" if label == "persistence" else f"seasonal naive ({label})"


def best_naive(monitor: RunningScores, sums: dict[str, float]) -> tuple[str, float]:
    """The naive forecast with the smallest RMSE, and that RMSE."""
    labels = monitor.labels
    errors = [means(sums, labels)[f"rmse_{number}"] for number in range(len(labels))]
    least = min(range(len(labels)), key=errors.__getitem__)
    return name_of(labels[least]), errors[least]


# ---- the target ------------------------------------------------------------------------------------------------------


def _leaks(run: Run | Saved) -> Iterator[str]:
    target, leaks = run.settings.target, run.facts.leaks
    if leaks:
        one = len(leaks) == 1
        yield (
            f"{_listed(leaks)} {'gives' if one else 'give'} {target} almost exactly. If "
            f"{'it is' if one else 'they are'} known only together with {target}, the forecasts are worthless: leave "
            f"{'it' if one else 'them'} out of {'--base' if leaks == (run.settings.base,) else '--features'}"
        )
    elif run.monitor is not None and run.monitor.labels:
        sums = run.monitor.in_all()
        own = means(sums, ())["rmse"]
        if sums["scored"] >= _FEW and own < TOO_GOOD * best_naive(run.monitor, sums)[1]:
            yield (
                f"The error is less than {TOO_GOOD:.0%} of the error of naive forecasts. Check that every input is "
                f"known before {target} is"
            )


def _worse(run: Run | Saved, monitor: RunningScores) -> Iterator[str]:
    sums = monitor.in_all()
    if sums["scored"] < _FEW or not monitor.labels:
        return
    label, naive = best_naive(monitor, sums)
    own = means(sums, ())["rmse"]
    if own > _CLEARLY * naive:
        errors = f"RMSE {figure(own)} against {figure(naive)}"
        yield f"The forecasts are worse than {label}: {errors}. Other --lags, --calendar or --features may help"
    elif run.settings.key is not None:
        worse = [key for key in monitor.places if _is_worse(monitor, monitor.of(key))]
        if worse:
            count = f"{len(worse)} of {len(monitor.places)} series {'is' if len(worse) == 1 else 'are'}"
            yield f"{count} worse than a naive forecast by RMSE, such as {worse[0]!r}"


def _is_worse(monitor: RunningScores, sums: dict[str, float]) -> bool:
    return sums["scored"] >= _FEW and means(sums, ())["rmse"] > _CLEARLY * best_naive(monitor, sums)[1]


def _doubtful(run: Run | Saved, monitor: RunningScores) -> Iterator[str]:
    sums, level = monitor.in_all(), run.settings.level
    scored = int(sums["scored"])
    if 0 < scored < _FEW:
        yield f"Only {scored} row{'s were' if scored > 1 else ' was'} scored, on which the figures say little"
    if sums["rows"] and not scored:
        yield (
            f"No row was scored: none of {int(sums['rows'])} rows has a target after a row with one. Give more rows, "
            "or fill in the target"
        )
    if scored >= _ENOUGH and sums["inside"] / scored < level - _SHORT:
        share = sums["inside"] / scored
        yield f"Intervals are too narrow: {share:.1%} of the targets lie in their {level:.0%} interval"
    if scored >= _FEW and monitor.largest > _LARGE * sums["square"]:
        share = monitor.largest / sums["square"]
        yield f"One row makes up {share:.0%} of the squared error: line {monitor.largest_line}"


# ---- the rows --------------------------------------------------------------------------------------------------------


def _rows(run: Run | Saved) -> Iterator[str]:
    odd = run.oddities
    nothing = odd.never_there()
    if nothing and odd.rows:
        yield _capital(never_there(nothing, odd.rows))
    yield from (_capital(text) for text in run.remarks)
    yield from _wild(odd)
    yield from _order(run)
    yield from _zones(odd)


def _wild(odd: Oddities) -> Iterator[str]:
    values, forecasts = odd.found["wild"], odd.found["wild_forecast"]
    if values.count:
        yield (
            f"{_counted(values.count, 'value')} far outside all values before, the worst in line {values.line}: "
            f"{values.detail}. If that is an error, empty the cell"
        )
    if forecasts.count:
        yield (
            f"{_counted(forecasts.count, 'forecast')} far outside all targets before, the worst in line "
            f"{forecasts.line}: {forecasts.detail}"
        )


def _order(run: Run | Saved) -> Iterator[str]:
    late, same, time = run.oddities.found["late"], run.oddities.found["repeated"], ",".join(run.facts.written.time)
    if late.count:
        yield (
            f"{_counted(late.count, 'row')} older than a row before, the first in line {late.line}. Late rows are "
            f"predicted, and neither learned from nor scored. Sort the rows by {time}; without --checkpoint a file is "
            "sorted first"
        )
    if same.count:
        yield (
            f"{_have(same.count)} the same time as the row before, the first in line {same.line} "
            f"({same.detail}). {_why_same(run, same.count / max(run.oddities.rows, 1))}"
        )


def _why_same(run: Run | Saved, share: float) -> str:
    keys, written = run.facts.keys, run.facts.written
    hour = next((name for name in written.header if name.casefold().startswith(("hour", "hr"))), None)
    if hour is not None and share > _MOST and len(written.time) == 1 and run.settings.key is None:
        return f"{hour!r} seems to hold the hour of each row: say --time {written.time[0]},{hour}"
    if keys:
        return f"{keys[0]!r} looks like the key of several series: say --key {keys[0]}"
    if share <= _MOST:
        return "Remove repeated rows; if clocks went back in autumn, write times with their offset from UTC"
    hours = f"if a column holds the hours, say --time {written.time[0]},{hour or 'HOURS'}"
    several = "If the file has several series, name their column with --key; "
    return several + hours if run.settings.key is None else _capital(hours)


def _zones(odd: Oddities) -> Iterator[str]:
    offsets = sorted(odd.offsets)
    if len(offsets) > 2 or (len(offsets) == 2 and offsets[1] - offsets[0] > 3600.0):  # summer time is not another zone
        shown = ", ".join(f"{timezone(timedelta(seconds=offset))}" for offset in offsets)
        yield (
            f"Times are of several zones ({shown}): rows are ordered by UTC, and the calendar follows the clock as "
            "written"
        )


def _counted(count: int, what: str) -> str:
    return f"1 {what} is" if count == 1 else f"{count} {what}s are"


def _have(count: int) -> str:
    return "1 row has" if count == 1 else f"{count} rows have"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
