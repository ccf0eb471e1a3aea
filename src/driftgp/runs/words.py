"""What a run is, in words for people: its model, its inputs, its intervals."""

from collections.abc import Sequence

import numpy as np

from driftgp.runs.run import Run, Saved
from driftgp.runs.settings import DEFAULT
from driftgp.stream.monitor import Monitor

_NAMED = 12  # columns that are named one by one
_CYCLES = {"day": "hour of day", "week": "day of week", "year": "day of year"}
_ROWS = 30  # rows scored, from which on a share of them says something


def model(run: Run | Saved) -> str:
    """The model, with its effort where it has one."""
    settings = run.settings
    if settings.model == DEFAULT:
        return f"the default model ({run.stream.settings.effort} effort)"
    return str(settings.model)


def ahead(run: Run | Saved) -> str:
    """How far ahead."""
    horizon = run.settings.horizon
    return "one row" if horizon == 1 else f"{horizon} rows"


def inputs(run: Run | Saved) -> list[tuple[str, str]]:
    """Where forecasts come from: names and sentences."""
    settings, plan = run.stream.settings, run.stream.streams.planned
    lines: list[tuple[str, str]] = []
    if plan is not None and plan.known:
        lines.append(("Known", f"with their row: {_some(plan.names[: plan.known])}"))
    if plan is not None and plan.late:
        before = "one row" if settings.horizon == 1 else f"{settings.horizon} rows"
        lines.append(
            ("Late", f"{_some(plan.names[plan.known :])}: values of {before} before (--features: known with their row)")
        )
    if settings.lags:
        how = "" if run.settings.lags is not None else " (chosen by the first rows; --lags)"
        lines.append(("Lags", f"targets {_some([str(lag) for lag in settings.lags])} steps before{how}"))
    cycles = [*(_CYCLES[cycle] for cycle in settings.calendar), *(["holidays"] if settings.holidays else [])]
    if cycles:
        how = "" if run.settings.calendar is not None else " (chosen by the times of the rows; --calendar)"
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


def coverage(monitor: Monitor) -> list[tuple[str, str]]:
    """Coverage by hour of the day and by the size of the forecast: where it is least and most."""
    lines = []
    hours = monitor.by_hour()
    if (hours[:, 0] >= _ROWS).sum() > 1:
        lines.append(("By hour", _extremes(hours, [f"{hour:02d}:00" for hour in range(len(hours))])))
    tenths = monitor.by_tenth()
    if len(tenths) and (tenths[:, 0] >= _ROWS).sum() > 1:
        names = ["the lowest tenth of forecasts", *(f"tenth {n}" for n in range(2, 10)), "the highest tenth"]
        lines.append(("By forecast", _extremes(tenths, names)))
    return lines


def _extremes(shares: np.ndarray, names: Sequence[str]) -> str:
    enough = np.flatnonzero(shares[:, 0] >= _ROWS)
    order = enough[np.argsort(shares[enough, 1], kind="stable")]
    least = ", ".join(f"{shares[place, 1]:.1%} in {names[place]}" for place in order[:2].tolist())
    most = order[-1]
    return f"least {least}; most {shares[most, 1]:.1%} in {names[most]}"


def _some(names: Sequence[str]) -> str:
    more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
    return ", ".join([*names[:_NAMED], *more])
