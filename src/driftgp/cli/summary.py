"""The summary of a run: its error beside naive forecasts, its intervals, how the file was read, and warnings."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from typing import TYPE_CHECKING, Any

from driftgp.cli import console
from driftgp.cli.console import Column
from driftgp.wording import figure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from driftgp.runner import Runner

IN_JSON = (
    "series",
    "rows",
    "predicted",
    "rmse",
    "mse",
    "relative",
    "mae",
    "coverage",
    "width",
    "nlpd",
    "rmse_persistence",
    "rmse_season",
    "rmse_season_2",
    "missing",
    "carried",
    "alarms",
)
OF_ONE = (
    Column("name", "forecast"),
    *(Column(key, key, "{:>}") for key in ("RMSE", "MAE")),
    Column("better", "driftgp is", "{:>}"),
)
OF_SEVERAL = (
    Column("series", "series"),
    Column("predicted", "predicted", "{:d}"),
    Column("relative", "rel. MSE", "{:.3f}"),
    Column("rmse", "RMSE", "{:>}"),
    Column("naive", "naive", "{:>}"),
    Column("better", "better", "{:>}"),
    Column("coverage", "coverage", "{:.1%}"),
    Column("alarms", "alarms", "{:d}"),
)
SERIES_SHOWN = 20
NAMED = 12  # inputs that are named one by one
_CYCLES = {"day": "hour of day", "week": "day of week", "year": "day of year"}


class Summary:
    """What is said at the end of a run."""

    def __init__(self, runner: Runner, rows: int, seconds: float) -> None:
        """Take the run, and how many rows it read now and how long that took."""
        from driftgp.runner.naive import labels_of
        from driftgp.runner.warnings import warnings_of

        self.runner, self.settings, self.schema = runner, runner.settings, runner.schema
        self.labels = labels_of([lane.naive.seasons or () for lane in runner.lanes.values()])
        self.warnings = warnings_of(runner.settings, runner.schema, runner.lanes)
        self.pace = f"{rows} rows in {seconds:.1f} s" if rows else "no new rows"
        scores = runner.summary()
        self.total: dict[str, Any] = {"series": "all", **scores.pop("")}
        self.series = [{"series": group, **own} for group, own in scores.items()] if self.settings.group else []
        self.series.sort(key=lambda own: math.inf if math.isnan(own["relative"]) else -own["relative"])  # worst first
        if self.series:  # of all together it would be a share of the differences between series too
            self.total["relative"] = statistics.median(own["relative"] for own in self.series)

    # ---- for programs

    def print_json(self) -> None:
        """Print a list of objects, one for each series and one for all, which has the warnings too."""
        unknown = {f"rmse_{name}" for name in ("season", "season_2") if name not in self.labels}
        rows = [
            {key: None if key in unknown else console.finite(own[key]) for key in IN_JSON}
            for own in (*self.series, self.total)
        ]
        rows[-1] |= {
            "naive": self.labels,
            "read": list(self.schema.notes),
            "left_out": list(self.schema.left_out),
            "warnings": self.warnings,
        }
        print(json.dumps(rows, indent=2, allow_nan=False))

    # ---- for people

    def remark(self) -> None:
        """Say it in a line on standard error, where predictions are on standard output; and the warnings."""
        console.remark(f"RMSE {figure(self.total['rmse'])}, coverage {self.total['coverage']:.1%}; {self.pace}")
        for warning in self.warnings:
            console.remark(f"Warning: {warning}")

    def print(self) -> None:
        """Print tables."""
        title = f"{self.settings.target} by {self._model()}, {self._ahead()} ahead"
        if self.series:
            shown = [self._of_several(own) for own in (*self.series[:SERIES_SHOWN], self.total)]
            console.print_table(OF_SEVERAL, shown, title=title, caption=self._caption())
        else:
            console.print_table(OF_ONE, self._of_one(), title=title, caption="")
        console.print_notes([*self._notes(), *(("Warning", warning) for warning in self.warnings)])

    def _of_one(self) -> list[dict[str, str]]:
        total = self.total
        name = "driftgp" if self.settings.model == "default" else f"driftgp, --model {self.settings.model}"
        rows = [{"name": name, "RMSE": figure(total["rmse"]), "MAE": figure(total["mae"]), "better": ""}]
        for name, label in self.labels.items():
            rmse, mae = total[f"rmse_{name}"], total[f"mae_{name}"]
            better = _better(total["rmse_compared"], rmse)
            rows.append({"name": label, "RMSE": figure(rmse), "MAE": figure(mae), "better": better})
        return rows

    def _of_several(self, own: Mapping[str, Any]) -> dict[str, Any]:
        naive = min(own[f"rmse_{name}"] for name in self.labels)
        errors = {"rmse": figure(own["rmse"]), "naive": figure(naive)}
        name = own["series"] if len(own["series"]) <= 16 else f"{own['series'][:15]}…"
        return {**own, **errors, "series": name, "better": _better(own["rmse_compared"], naive, "{:+.0%}")}

    def _caption(self) -> str:
        more = len(self.series) > SERIES_SHOWN
        shown = f"; worst {SERIES_SHOWN} of {len(self.series)} series shown" if more else ""
        naive = " or ".join(self.labels.values())
        return (
            f"rel. MSE: share of the targets' variance, worst series first (all: the median){shown}\n"
            f"naive: the RMSE of {naive}, whichever is less; better: how much less that of driftgp is"
        )

    def _notes(self) -> list[tuple[str, str]]:
        total, unit = self.total, f" {self.schema.unit}" if self.schema.unit else ""
        gaps = {
            "not predicted (their flags say why)": total["rows"] - total["predicted"],
            "without a target": total["missing"],
            "with a gap in an input": total["carried"],
            "left out as malformed": self.runner.left_out,
        }
        counts = [f"{self.pace}: {total['predicted']} predicted", *(f"{n} {what}" for what, n in gaps.items() if n)]
        intervals = (
            f"{total['coverage']:.1%} of the targets lie in their {self.settings.level:.0%} interval; "
            f"mean width {figure(total['width'])}{unit}; alarms: {total['alarms']}"
        )
        notes = [("Intervals", intervals if total["predicted"] else "–"), ("Rows", ", ".join(counts))]
        notes.append(("Inputs", self._inputs()))
        lists = (("Read", self.schema.notes), ("Left out", self.schema.left_out))
        return notes + [(name, "; ".join(found)) for name, found in lists if found]

    def _inputs(self) -> str:
        values = Counter(each.column for each in self.schema.inputs)
        columns = [name if count == 1 else f"{name} ({count} values)" for name, count in values.items()]
        shown = [*columns[:NAMED], *([f"{len(columns) - NAMED} more columns"] if len(columns) > NAMED else [])]
        if self.settings.lags:
            shown.append(f"the last {self.settings.lags} targets" if self.settings.lags > 1 else "the last target")
        shown += [f"the target {lag} rows before" for lag in self.settings.seasonal_lags]
        shown += [_CYCLES[cycle] for cycle in self.settings.cycles]
        return ", ".join([*shown, *(["holidays"] if self.settings.holidays else [])])

    def _model(self) -> str:
        return "the default model" if self.settings.model == "default" else str(self.settings.model)

    def _ahead(self) -> str:
        return "one row" if self.settings.horizon == 1 else f"{self.settings.horizon} rows"


def _better(own: float, naive: float, form: str = "") -> str:
    """How much less an error is than another one, in words, or in a form."""
    if math.isnan(own) or math.isnan(naive) or naive == 0.0:
        return ""
    share = 1.0 - own / naive
    if form:
        return form.format(share)
    return f"{abs(share):.0%} {'better' if share >= 0.0 else 'worse'}"
