"""What one should know before one believes a run: the same in the summary, in `inspect` and on the picture."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta, timezone

import numpy as np

from driftgp.columns import never_there
from driftgp.runner.lane import Lane
from driftgp.runner.leaks import TOO_GOOD
from driftgp.runner.naive import labels_of
from driftgp.runner.observed import Finding, Observed
from driftgp.runner.schema import Schema
from driftgp.runner.scores import Scores
from driftgp.runner.settings import Settings
from driftgp.wording import figure

_FEW = 50  # rows scored, on which figures say little
_ENOUGH = 200  # rows scored, on which a coverage says something
_CLEARLY = 1.005  # times an error: as much larger is worse, and no rounding
_SHORT = 0.05  # of the level: intervals that hold so much less are too narrow
_LARGE = 0.25  # of the squared error, in one row
_MOST = 0.5  # of the rows: not a few are odd, but the file is


def warnings_of(settings: Settings, schema: Schema, lanes: Mapping[str, Lane]) -> list[str]:
    """Sentences, each with what to do; none where all is well."""
    total = Scores()
    for lane in lanes.values():
        total = total.plus(lane.scores)
    labels = labels_of([lane.naive.seasons or () for lane in lanes.values()])
    return [
        *_leaks(settings, schema, total, labels),
        *_worse(settings, lanes, total, labels),
        *_doubtful(settings, total),
        *warnings_on_rows(settings, schema, [lane.observed for lane in lanes.values()], total.rows),
    ]


def warnings_on_rows(settings: Settings, schema: Schema, series: Sequence[Observed], rows: int) -> list[str]:
    """The same of the rows alone, whatever predicts them."""
    return [
        *_nothing(series, rows),
        *_wild(series),
        *_order(settings, schema, series, rows),
        *_zones(series),
        *_unknown(_all(series, "unknown")),
    ]


def remarks_on(settings: Settings, schema: Schema) -> tuple[str, ...]:
    """How a file was read, which columns were left out, and which give the target away."""
    lists = (("read", schema.notes), ("left out", schema.left_out))
    leaks = (_leak(settings.target, schema),) if schema.leaks else ()
    return *(f"{what}: {'; '.join(found)}" for what, found in lists if found), *leaks


def best_naive(scores: Scores, labels: Mapping[str, str]) -> tuple[str, float]:
    """The naive forecast with the smallest RMSE, and that RMSE."""
    errors = {name: scores.naive[f"rmse_{name}"] for name in labels}
    name = min(errors, key=lambda each: errors[each])
    return labels[name], errors[name]


# ---- the target ------------------------------------------------------------------------------------------------------


def _leaks(settings: Settings, schema: Schema, total: Scores, labels: Mapping[str, str]) -> Iterator[str]:
    if schema.leaks:
        yield _leak(settings.target, schema)
    elif total.compared >= _FEW and total.naive["rmse_compared"] < TOO_GOOD * best_naive(total, labels)[1]:
        yield (
            f"The error is less than {TOO_GOOD:.0%} of that of naive forecasts. Check that no input is known only "
            f"together with {settings.target}"
        )


def _leak(target: str, schema: Schema) -> str:
    one = len(schema.leaks) == 1
    why = f"{_listed(schema.leaks)} {'gives' if one else 'together give'} {target} almost exactly"
    they = "it is" if one else "they are"
    if schema.leaks_used:
        return f"{why}. If {they} known only together with {target}, the forecasts are worthless: leave out what is"
    left = "was left out" if one else "were left out"
    return f"{why}, and so {left}. If {they} known before {target} comes, name them in --features"


def _worse(settings: Settings, lanes: Mapping[str, Lane], total: Scores, labels: Mapping[str, str]) -> Iterator[str]:
    if total.compared < _FEW:
        return
    label, naive = best_naive(total, labels)
    own = total.naive["rmse_compared"]
    if own > _CLEARLY * naive:
        more = "More lags" if settings.lags else "Lags of the target (--lags 24)"
        errors = f"RMSE {figure(own)} against {figure(naive)}"
        yield f"The forecasts are worse than {label}: {errors}. {more}, --calendar or other columns may help"
    elif settings.group is not None:
        worse = [key for key, lane in lanes.items() if _is_worse(lane, labels)]
        if worse:
            yield f"{len(worse)} of {len(lanes)} series are worse than a naive forecast, such as {worse[0]!r}"


def _is_worse(lane: Lane, labels: Mapping[str, str]) -> bool:
    enough = lane.scores.compared >= _FEW
    return enough and lane.scores.naive["rmse_compared"] > _CLEARLY * best_naive(lane.scores, labels)[1]


def _doubtful(settings: Settings, total: Scores) -> Iterator[str]:
    if 0 < total.scored < _FEW:
        yield f"Only {total.scored} rows were scored, on which the figures say little"
    if total.rows and not total.scored:
        yield (
            f"No row was scored: {total.rows} rows are too few for the warm-up ({settings.rows_of_warmup} rows) and "
            "the lags, or the targets are missing. Give more rows, or a smaller --warmup"
        )
    if total.scored >= _ENOUGH:
        inside = total.inside / total.scored
        if inside < settings.level - _SHORT:
            yield f"Intervals are too narrow: {inside:.1%} of the targets lie in their {settings.level:.0%} interval"
    if total.scored >= _FEW and total.largest > _LARGE * total.square:
        yield f"One row makes up {total.largest / total.square:.0%} of the squared error: line {total.largest_line}"


# ---- the rows --------------------------------------------------------------------------------------------------------


def _nothing(series: Sequence[Observed], rows: int) -> Iterator[str]:
    """Inputs that never had a value; a target without one is another matter."""
    known = [~np.isnan(observed.low[:-1]) for observed in series]
    if known:
        names = series[0].columns
        nothing = [name for name, there in zip(names, np.any(known, axis=0), strict=False) if not there]
        if nothing:
            message = never_there(nothing, rows)
            yield message[0].upper() + message[1:]


def _wild(series: Sequence[Observed]) -> Iterator[str]:
    values, forecasts = _all(series, "wild"), _all(series, "wild_forecast")
    if values.count:
        yield (
            f"{_counted(values.count, 'value')} far outside all before, the worst in line {values.line}: "
            f"{values.detail}. If that is an error, blank the cell"
        )
    if forecasts.count:
        yield (
            f"{_counted(forecasts.count, 'forecast')} far outside all targets before, the worst in line "
            f"{forecasts.line}: {forecasts.detail}"
        )


def _order(settings: Settings, schema: Schema, series: Sequence[Observed], rows: int) -> Iterator[str]:
    back, same = _all(series, "unordered"), _all(series, "repeated")
    time = ",".join(schema.time)
    if back.count and back.count > 0.9 * (rows - len(series)):
        yield f"Rows go back in time, the newest first: the past is predicted from the future. Sort the file by {time}"
    elif back.count:
        count = _counted(back.count, "row")
        yield f"{count} earlier than the row before, the first in line {back.line}. Sort the file by {time}"
    if same.count:
        yield (
            f"{_counted(same.count, 'row')} of the same time as the row before, the first in line {same.line} "
            f"({same.detail}). {_why_same(settings, schema, same.count / rows)}"
        )


def _why_same(settings: Settings, schema: Schema, share: float) -> str:
    if share <= _MOST:
        return "Remove what is there twice; clocks that go back in autumn need times with their offset from UTC"
    hour = next((name for name in schema.header if name.casefold().startswith(("hour", "hr"))), "hour")
    hours = f"if hours stand apart, say --time {schema.time[0]},{hour}"
    several = "If the file has several series, name their column with --group; "
    return several + hours if settings.group is None else hours[0].upper() + hours[1:]


def _zones(series: Sequence[Observed]) -> Iterator[str]:
    offsets = sorted({offset for observed in series for offset in observed.offsets})
    if len(offsets) > 2 or (len(offsets) == 2 and offsets[1] - offsets[0] > 3600.0):  # summer time is no other zone
        shown = ", ".join(f"{timezone(timedelta(seconds=offset))}" for offset in offsets)
        yield f"Times are of several zones ({shown}): rows are placed by UTC, the calendar follows the clock as written"


def _unknown(found: Finding) -> Iterator[str]:
    if found.count:
        yield (
            f"{found.count} {'row has' if found.count == 1 else 'rows have'} a text that was not in the first rows, "
            f"the first in line {found.line}: {found.detail}. It counts as none of the categories"
        )


def _all(series: Sequence[Observed], kind: str) -> Finding:
    total = Finding()
    for observed in series:
        total = total.plus(observed.found[kind])
    return total


def _counted(count: int, what: str) -> str:
    return f"1 {what} is" if count == 1 else f"{count} {what}s are"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
