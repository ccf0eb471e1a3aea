"""`driftgp forecast`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from driftgp.base.wording import figure
from driftgp.cli import console, options
from driftgp.cli.console import ShownColumn, chance
from driftgp.cli.options import FILES, INPUTS, MODEL, TIME, in_a_folder, option, output_file

if TYPE_CHECKING:
    from driftgp.cli.forecasting import Answer
    from driftgp.forecasting.backtest import Backtest
    from driftgp.forecasting.record import Record

LINES = 60  # of a forecast, on the screen


@options.with_settings("target", "key", "known", "holidays", "time", "effort", "support", *options.READING)
def forecast(
    file: options.Table,
    given: dict[str, Any],
    steps: Annotated[str, option(TIME, "How far ahead: rows, or a time such as 24h or 28d.", "--next")] = "24",
    past: Annotated[str, option(INPUTS, "Columns known up to the last row only, such as a measurement.")] = "",
    season: options.Season = None,
    level: Annotated[str, option(MODEL, "Of the intervals: 0.95, or several in percent such as 80,95.")] = "0.95",
    backtest: Annotated[
        int | None,
        option(MODEL, "Number of past moments from which forecasts are compared with those of other methods.", min=1),
    ] = None,
    output: Annotated[Path | None, option(FILES, "Forecast: .csv or .parquet.", callback=output_file)] = None,
    plot: options.Picture = None,
    checkpoint: Annotated[
        Path | None,
        option(
            FILES,
            "Resume from this file if it is there, with new rows only, and keep it up to date.",
            callback=in_a_folder,
        ),
    ] = None,
    as_json: options.AsJSON = False,
) -> None:
    """Forecast the rows after the end of a table, of one series or of many, with intervals.

    Columns that are known ahead (--known) need rows below the last target, with the target blank.
    """
    from driftgp.base.files import apart
    from driftgp.base.locks import locked
    from driftgp.cli.forecasting import answered, reading

    apart({"the input": None if file == "-" else file, "--output": output, "--checkpoint": checkpoint, "--plot": plot})
    settings = reading(given, file)
    levels = _levels(level)
    written = [path for path in (output, checkpoint) if path is not None]
    with locked(*written):
        answer = answered(
            settings, file, steps, checkpoint=checkpoint, past=past, season=season, complain=console.remark
        )
        for remark in answer.remarks:
            console.remark(remark)
        lines = answer.lines(levels)
        if output is not None:
            answer.write(output, lines)
            console.remark(f"wrote {output}")
        found = None if backtest is None else answer.backtest(backtest)
    if as_json:
        _print_json(answer, lines, found)
    else:
        _print(answer, lines, levels, shown=output is None)
        if found is not None:
            _print_backtest(found)
    if plot is not None:
        answer.fan.plot(plot, levels[-1])
        console.remark(f"wrote {plot}")


def _levels(text: str) -> list[float]:
    from driftgp.forecasting.tables import levels

    try:
        return levels([float(part) for part in text.split(",") if part.strip()])
    except ValueError:
        raise ValueError(f"level must be a share such as 0.95, or percents such as 80,95; got {text!r}") from None


def _print_json(answer: Answer, lines: list[dict[str, Any]], found: Backtest | None) -> None:
    from driftgp.cli.forecasting import leads_of

    made: dict[str, Any] = {
        "forecast": lines,
        "past_forecasts": leads_of(answer.scores, every=True),
        "remarks": answer.remarks,
    }
    if found is not None:
        made["backtest"] = found.to_json()
    print(json.dumps(console.finite(made), indent=2, allow_nan=False))


def _print(answer: Answer, lines: list[dict[str, Any]], levels: list[float], *, shown: bool) -> None:
    from driftgp.cli.forecasting import leads_of

    if shown:
        names = list(lines[0])
        columns = [ShownColumn(n, n) if n in answer.labels else ShownColumn(n, n, figure) for n in names]
        count = f"the next {answer.steps} steps" if answer.steps > 1 else "the next step"
        console.print_table(columns, lines[:LINES], title=f"{answer.target}: {count}", caption=answer.caption(levels))
        if len(lines) > LINES:
            console.remark(f"… and {len(lines) - LINES} more lines: --output FILE has all of them")
    scores: Record = answer.scores
    if scores.forecasts:
        console.print_table(
            SCORES,
            leads_of(scores),
            title="Errors of past forecasts",
            caption="naive: the seasonal naive forecast; better: how much lower driftgp's MAE is",
        )
    else:
        console.remark("No past forecast could be judged: there are too few rows")
    console.print_notes([*answer.notes(levels[-1]), *(("Warning", text) for text in answer.warnings)])


SCORES = (
    ShownColumn("lead", "steps ahead"),
    ShownColumn("mae", "MAE", figure),
    ShownColumn("naive", "naive MAE", figure),
    ShownColumn("better", "better", "{:+.0%}"),
    ShownColumn("inside", "inside", "{:.1%}"),
)
LINE = (
    ShownColumn("method", "method"),
    ShownColumn("mae", "MAE", figure),
    ShownColumn("ratio", "of driftgp's", "{:.3f}"),
    ShownColumn("coverage", "95% coverage", "{:.1%}"),
    ShownColumn("p", "p", chance),
    ShownColumn("seconds", "s/origin", "{:.3g}"),
)


def _print_backtest(found: Backtest) -> None:
    console.print_table(
        LINE,
        [line._asdict() for line in found.lines],
        title=f"Backtest: {found.origins} origins, {found.steps} steps from each",
        caption="p: probability of a difference this large from driftgp by chance alone",
    )
    console.print_table(
        [ShownColumn("lead", "steps ahead"), *(ShownColumn(line.method, line.method, figure) for line in found.lines)],
        found.by_lead(),
        title="MAE by how far ahead",
        caption="",
    )
    for method, reason in found.left_out.items():
        console.remark(f"left out: {method} ({reason})")
    console.print_text(found.verdict)
