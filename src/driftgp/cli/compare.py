"""`driftgp compare`."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Annotated, Any

from driftgp.base.wording import figure
from driftgp.cli import console, options
from driftgp.cli.console import ShownColumn, chance
from driftgp.cli.options import MODEL, option

if TYPE_CHECKING:
    from driftgp.comparison import Backtest
    from driftgp.runs.inputs import FullTable

COLUMNS = (
    ShownColumn("method", "method"),
    ShownColumn("rmse", "RMSE", figure),
    ShownColumn("ratio", "/ driftgp", "{:.2f}"),
    ShownColumn("p", "p", chance),
    ShownColumn("mae", "MAE", figure),
    ShownColumn("crps", "CRPS", figure),
    ShownColumn("coverage", "in 95%", "{:.1%}"),
    ShownColumn("microseconds", "µs/row", "{:.0f}"),
)


@options.with_settings(
    *("target", "features", "known", "others", "lags", "calendar", "holidays", "effort", "base", "time", "horizon"),
    *options.READING,
)
def compare(
    file: options.Table,
    given: dict[str, Any],
    season: options.Season = None,
    methods: Annotated[
        str | None,
        option(
            MODEL,
            "Names, with commas: 'persistence, seasonal naive, RLS, Ridge, LightGBM, "
            "river linear, river tree, river forest, river kNN'.",
            default="all that are installed",
        ),
    ] = None,
    rows: Annotated[int | None, option(MODEL, "Read only this many rows.", default="all", min=1)] = None,
    warmup: Annotated[int | None, option(MODEL, "First rows, which are not scored.", min=1)] = 500,
    refit: Annotated[int, option(MODEL, "Rows after which batch methods are fitted again.", min=1)] = 168,
    plot: options.Picture = None,
    as_json: options.AsJSON = False,
) -> None:
    """Compare the default model with persistence, Ridge, LightGBM and others on a table of your own.

    Every method has the same inputs and predicts each row before its target is known.

    The methods of other libraries need the extra `compare`.
    """
    from driftgp.comparison import METHODS, backtest
    from driftgp.runs import settings_from
    from driftgp.runs.inputs import read_full_table

    settings = settings_from(given)
    with settings.open(file) as table:
        read = read_full_table(settings, table, most=rows, complain=console.remark)
    for remark in read.remarks:
        console.remark(remark)
    names = None if methods is None else [name.strip() for name in methods.split(",") if name.strip()]
    stream = {name: value for name, value in vars(read.settings).items() if name not in ("key", "level", "missing")}
    with (
        console.progress(len(METHODS if names is None else names) + 1 + ("base" in given), "comparing") as report,
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always", UserWarning)
        found = backtest(
            read.table, methods=names, warmup=warmup or 1, season=season, refit=refit, report=report, **stream
        )
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        console.remark(text)
    if as_json:
        print(json.dumps(found.to_json(), indent=2, allow_nan=False))
    else:
        _show(found, settings.target, read.settings.effort, refit)
    if plot is not None:
        from driftgp.plots import base as plots
        from driftgp.plots.comparison import backtest_figure

        plots.save(backtest_figure(found, _axis(read)[found.warmup :], settings.target), plot)
        console.remark(f"wrote {plot}")


def _show(found: Backtest, target: str, effort: str, refit: int) -> None:
    from driftgp.runs import words
    from driftgp.stream.scores import given_the_row

    batch = [line.method for line in found.lines if line.method in ("Ridge", "LightGBM")]
    again = f"; {' and '.join(batch)} fitted again every {refit} rows" if batch else ""
    console.print_table(
        COLUMNS,
        [line._asdict() for line in found.lines],
        title=f"{target}, {words.ahead(found.horizon)} ahead: {found.rows} rows, {len(found.inputs)} inputs, "
        f"{effort} effort",
        caption="p: probability of a difference this large from driftgp by chance alone\n"
        f"µs/row: CPU time to predict and learn{again}",
    )
    shown = [method for method in ("driftgp", "base") if method in found.by_decile]
    console.print_notes(
        (f"{method} {name.lower()}", f"95% intervals: {text}")
        for method in shown
        for name, text in given_the_row(found.by_hour.get(method), found.by_decile[method])
    )
    for method, reason in found.left_out.items():
        console.remark(f"left out: {method} ({reason})")
    console.print_text(found.verdict)


def _axis(read: FullTable) -> Any:
    """Times for the picture, where there are dates; else the numbers of the rows."""
    import numpy as np

    column = None if read.settings.time is None else read.table.columns[read.settings.time]
    if column is None or column.kind != "times":
        return np.arange(len(read.table))
    return column.clock.astype("datetime64[us]").astype("datetime64[s]")
