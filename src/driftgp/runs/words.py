"""A run described for people: its model, its inputs, its intervals."""

from collections.abc import Sequence

from driftgp.runs.run import Run, Saved
from driftgp.runs.settings import DEFAULT

_NAMED = 12  # columns that are named one by one
CYCLES = {"day": "hour of day", "week": "day of week", "year": "day of year"}


def model(run: Run | Saved) -> str:
    """The model, with its effort where it has one."""
    settings = run.settings
    if settings.model == DEFAULT:
        return f"the default model ({run.stream.settings.effort} effort)"
    return str(settings.model)


def ahead(horizon: int) -> str:
    """How far ahead.

    >>> ahead(1), ahead(24)
    ('one row', '24 rows')
    """
    return "one row" if horizon == 1 else f"{horizon} rows"


def inputs(run: Run | Saved) -> list[tuple[str, str]]:
    """The inputs of the forecasts: names and sentences."""
    settings, plan = run.stream.settings, run.stream.streams.planned
    lines: list[tuple[str, str]] = []
    if settings.base is not None:
        lines.append(("Base", f"{settings.base}: a forecast from elsewhere, which is corrected"))
    known = () if plan is None else tuple(name for name in plan.names[: plan.known] if name != settings.base)
    if known:
        lines.append(("Known", f"with their row: {_some(known)}"))
    if plan is not None and plan.late:
        late = f"{_some(plan.names[plan.known :])}: values of {ahead(settings.horizon)} before"
        lines.append(("Late", f"{late} (--features names columns that are known with their row)"))
    if settings.lags:
        how = "" if run.settings.lags is not None else _how(run)
        lines.append(("Lags", f"the target {_some([str(lag) for lag in settings.lags])} rows before{how}"))
    cycles = [*(CYCLES[cycle] for cycle in settings.calendar), *(["holidays"] if settings.holidays else [])]
    if cycles:
        how = "" if run.settings.calendar is not None else " (chosen from the times; --calendar sets it)"
        lines.append(("Calendar", ", ".join(cycles) + how))
    return lines


def read(run: Run | Saved) -> list[str]:
    """How the file was read."""
    written, back = run.facts.written, run.facts.sorted
    found = list(written.notes)
    if back:
        rows = "1 row was" if back == 1 else f"{back} rows were"
        found.append(f"sorted by {','.join(written.time)}, as {rows} older than the row before")
    return found


def _how(run: Run | Saved) -> str:
    """How lags were chosen. A live stream is answered row by row, so nobody knows its seasons beforehand."""
    if run.facts.live:
        return " (the rows come one by one: --lags 1,24,168 adds a day and a week of hours)"
    return " (chosen from the first rows; --lags sets them)"


def _some(names: Sequence[str]) -> str:
    more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
    return ", ".join([*names[:_NAMED], *more])
