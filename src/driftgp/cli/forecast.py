"""`driftgp forecast`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftgp.cli import console
from driftgp.cli.console import Column
from driftgp.cli.options import (
    FILES,
    MODEL,
    TIME,
    AsJSON,
    Known,
    Malformed,
    Picture,
    Season,
    Table,
    Target,
    Time,
)
from driftgp.wording import figure

if TYPE_CHECKING:
    from driftgp.forecasting import Fan
    from driftgp.runs.inputs import Inputs

COLUMNS = (
    Column("time", "time"),
    Column("mean", "mean", figure),
    Column("lower", "lower", figure),
    Column("upper", "upper", figure),
)
SHOWN = 4  # horizons of the past in the picture, and a week of hours at least


def _csv(path: Path | None) -> Path | None:
    if path is None:
        return None
    if path.suffix.lower() != ".csv":
        raise typer.BadParameter(f"{path} must end in .csv")
    if not path.absolute().parent.is_dir():
        raise typer.BadParameter(f"there is no folder {path.absolute().parent} to write {path.name} to")
    return path


def forecast(
    file: Table,
    target: Target = None,
    steps: Annotated[
        str, typer.Option("--next", help="How far ahead: rows, or a time such as 24h or 28d.", rich_help_panel=TIME)
    ] = "24",
    known: Known = None,
    malformed: Malformed = None,
    time: Time = None,
    season: Season = None,
    level: Annotated[float, typer.Option(min=0.01, max=0.999, help="Of the intervals.", rich_help_panel=MODEL)] = 0.95,
    output: Annotated[
        Path | None,
        typer.Option(help="Forecast: .csv with time, mean, lower, upper.", callback=_csv, rich_help_panel=FILES),
    ] = None,
    plot: Picture = None,
    as_json: AsJSON = False,
) -> None:
    """Forecast the rows after the end of a table, with intervals.

    Columns that are known ahead (--known) need rows below the last target, with the target blank.
    """
    from driftgp.data.rows import open_rows
    from driftgp.runs import settings_from
    from driftgp.runs.inputs import read_inputs

    given = {"target": target, "known": known, "malformed": malformed, "time": time, "lags": 1, "calendar": False}
    settings = settings_from(
        {name: value for name, value in given.items() if value is not None} | {"others": "ignored"}
    )
    with open_rows(file) as rows:
        read = read_inputs(settings, rows, complain=console.remark)
    fan, past = _forecast(read, steps, season, len(settings.known))
    low, high = fan.interval(level)
    lines = [
        {"time": _text(at), "mean": float(m), "lower": float(a), "upper": float(b)}
        for at, m, a, b in zip(fan.index, fan.mean, low, high, strict=True)
    ]
    if output is not None:
        _write(output, lines)
    if as_json:
        console.print_json(COLUMNS, lines)
    elif output is None:
        total, least, most = fan.total(level)
        console.print_table(
            COLUMNS,
            lines,
            title=f"{settings.target}: the next {len(fan)} steps",
            caption=f"lower, upper: {level:.0%} interval\n"
            f"sum of all steps: {figure(total)}, {figure(least)} to {figure(most)}",
        )
    if plot is not None:
        _draw(fan, past, settings.target, level, plot)


def _forecast(read: Inputs, steps: str, season: int | None, known: int) -> tuple[Fan, tuple[Any, Any]]:
    """The forecast after the last target, and the rows before it."""
    import numpy as np

    from driftgp.forecasting import Forecaster

    last = int(np.max(np.flatnonzero(np.isfinite(read.y)), initial=-1)) + 1
    if last == 0:
        raise ValueError("target has no numbers: there is nothing to forecast from")
    times = read.wall[:last].astype("datetime64[us]") if read.dated else None
    horizon = _horizon(steps, times)
    K = slice(0, known)  # the known columns are the first inputs
    forecaster = Forecaster(horizon, season=season, known=read.names[K])
    ahead = None
    if known:
        ahead = read.X[: last + horizon, K]
        if len(ahead) < last + horizon:
            raise ValueError(
                f"known columns {', '.join(read.names[K])} need {horizon} rows below the last target, with the target "
                f"blank; the file has {len(read.y) - last}"
            )
    forecaster.update(read.y[:last], times, ahead)
    at = np.arange(last) if times is None else times
    shown = slice(max(last - max(SHOWN * horizon, 7 * 24), 0), last)
    return forecaster.forecast(), (at[shown], read.y[shown])


def _horizon(text: str, times: Any) -> int:
    """Rows from a number of them, or from a time."""
    import numpy as np

    from driftgp.runs.settings import SECONDS
    from driftgp.season import usual_step

    number, unit = (text[:-1], text[-1]) if text[-1:] in SECONDS else (text, "")
    try:
        length = float(number)
    except ValueError:
        length = 0.0
    if not 0.0 < length < 1e6:
        raise ValueError(f"next must be a number of rows, or a time such as 24h or 28d; got {text!r}")
    if not unit:
        return round(length)
    if times is None:
        raise ValueError(f"next is {text!r}, and the rows have no dates: give a number of rows, or name --time")
    step = usual_step((times - times[0]) / np.timedelta64(1, "s"))
    if step is None:
        raise ValueError(f"next is {text!r}, and the rows have no usual time between them: give a number of rows")
    rows = round(length * SECONDS[unit] / step)
    if rows < 1:
        raise ValueError(f"next is {text!r}, which is less than the {step:g} s between rows")
    return rows


def _text(at: Any) -> str:
    import numpy as np

    return str(at.astype("datetime64[s]")).replace("T", " ") if isinstance(at, np.datetime64) else str(at)


def _write(path: Path, lines: list[dict[str, Any]]) -> None:
    import csv
    import io

    from driftgp.files import write_atomically

    text = io.StringIO()
    writer = csv.DictWriter(text, ["time", "mean", "lower", "upper"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    write_atomically(path, text.getvalue().encode())
    console.remark(f"wrote {path}")


def _draw(fan: Fan, past: tuple[Any, Any], target: str, level: float, path: Path) -> None:
    from driftgp import plots
    from driftgp.plots_forecast import fan_figure

    plots.save(fan_figure(*past, fan, target, level), path)
    console.remark(f"wrote {path}")
