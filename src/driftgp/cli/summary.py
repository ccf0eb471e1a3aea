"""The summary of a run: its error beside naive forecasts, its intervals, how the file was read, and warnings."""

from __future__ import annotations

import json
import math
import statistics
from typing import TYPE_CHECKING, Any

from driftgp.base.wording import figure
from driftgp.cli import console
from driftgp.cli.console import ShownColumn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from driftgp.runs import Run

NAIVE = ("persistence", "season", "season_2")  # in the JSON
IN_JSON = ("series", "rows", "scored", "rmse", "mse", "relative", "mae", "coverage", "width", "nlpd")
COUNTS = ("missing", "gaps", "late", "jump", "alarms")
OF_ONE = (
    ShownColumn("name", "forecast"),
    *(ShownColumn(key, key, "{:>}") for key in ("RMSE", "MAE")),
    ShownColumn("better", "driftgp's RMSE is", "{:>}"),
)
OF_SEVERAL = (
    ShownColumn("series", "series"),
    ShownColumn("scored", "scored", "{:d}"),
    ShownColumn("relative", "rel. MSE", "{:.3f}"),
    ShownColumn("rmse", "RMSE", "{:>}"),
    ShownColumn("naive", "naive", "{:>}"),
    ShownColumn("better", "better", "{:>}"),
    ShownColumn("coverage", "coverage", "{:.1%}"),
    ShownColumn("alarms", "alarms", "{:d}"),
)
SERIES_SHOWN = 20
ALARMS_SHOWN = 5


class Summary:
    """The summary at the end of a run."""

    def __init__(self, run: Run, seconds: float) -> None:
        """Take the run, and its duration."""
        from driftgp.runs.warnings import warnings_of

        assert run.monitor is not None  # noqa: S101
        self.run, self.settings, self.monitor, self.seconds = run, run.settings, run.monitor, seconds
        self.labels = run.monitor.labels
        self.warnings = warnings_of(run)
        self.total = self._scores("all", run.monitor.in_all())
        keys = list(run.monitor.places) if self.settings.key else []
        self.series = [self._scores(str(key), run.monitor.of(key)) for key in keys]
        self.series.sort(key=lambda own: math.inf if math.isnan(own["relative"]) else -own["relative"])  # worst first
        if self.series:  # of all together it would be a share of the differences between series too
            self.total["relative"] = statistics.median(own["relative"] for own in self.series)

    def _scores(self, name: str, sums: dict[str, float]) -> dict[str, Any]:
        from driftgp.stream.running_scores import means

        return {"series": name, **means(sums, self.labels), **{count: int(sums[count]) for count in COUNTS}}

    @property
    def pace(self) -> str:
        """Rows that were read now, and those before."""
        new = self.run.rows - self.run.before
        now = f"{new} rows in {self.seconds:.1f} s" if new else "no new rows"
        return f"{now}, after {self.run.before} before" if self.run.before else now

    # ---- for programs ------------------------------------------------------------------------------------------------

    def print_json(self) -> None:
        """Print a list of objects, one for each series and one for all, which has the warnings too."""
        from driftgp.runs import words

        rows = [self._plain(own) for own in (*self.series, self.total)]
        stream = self.run.stream.settings
        hours, tenths = self.monitor.shares()
        rows[-1] |= {
            "naive": dict(zip(NAIVE, self.labels, strict=False)),
            "effort": stream.effort if self.settings.model == "default" else None,
            "level": self.settings.level,
            "lags": list(stream.lags),
            "calendar": list(stream.calendar),
            "inputs": dict(words.inputs(self.run)),
            "coverage_by_hour": hours,
            "coverage_by_tenth_of_forecast": tenths,
            "raised": [str(alarm) for alarm in self.monitor.raised],
            "left_out_rows": self.run.left_out,
            "rows_before": self.run.before,
            "read": words.read(self.run),
            "left_out": list(self.run.facts.written.left_out),
            "warnings": self.warnings,
        }
        print(json.dumps(rows, indent=2, allow_nan=False))

    def _plain(self, own: Mapping[str, Any]) -> dict[str, Any]:
        found = {key: console.finite(own[key]) for key in (*IN_JSON, *COUNTS)}
        for number, name in enumerate(NAIVE):
            for kind in ("rmse", "mae"):
                found[f"{kind}_{name}"] = console.finite(own.get(f"{kind}_{number}"))
        if self.settings.base is not None:
            found |= {f"{kind}_base": console.finite(own[f"{kind}_base"]) for kind in ("rmse", "mae")}
        return found

    # ---- for people --------------------------------------------------------------------------------------------------

    def remark(self) -> None:
        """Print one line and the warnings on standard error, where predictions go to standard output."""
        console.remark(f"RMSE {figure(self.total['rmse'])}, coverage {self.total['coverage']:.1%}; {self.pace}")
        for warning in self.warnings:
            console.remark(f"Warning: {warning}")

    def print(self) -> None:
        """Print tables."""
        from driftgp.runs import words

        title = f"{self.settings.target} by {words.model(self.run)}, {words.ahead(self.settings.horizon)} ahead"
        if self.series:
            shown = [self._of_several(own) for own in (*self.series[:SERIES_SHOWN], self.total)]
            console.print_table(OF_SEVERAL, shown, title=title, caption=self._caption())
        else:
            console.print_table(OF_ONE, self._of_one(), title=title, caption="")
        console.print_notes([*self._notes(), *(("Warning", warning) for warning in self.warnings)])

    def _of_one(self) -> list[dict[str, str]]:
        from driftgp.runs.warnings import name_of

        total = self.total
        name = "driftgp" if self.settings.model == "default" else f"driftgp, --model {self.settings.model}"
        rows = [{"name": name, "RMSE": figure(total["rmse"]), "MAE": figure(total["mae"]), "better": ""}]
        if self.settings.base is not None:
            base = {"name": f"{self.settings.base} (--base)", "better": _better(total["rmse"], total["rmse_base"])}
            rows.append(base | {"RMSE": figure(total["rmse_base"]), "MAE": figure(total["mae_base"])})
        for number, label in enumerate(self.labels):
            rmse, mae = total[f"rmse_{number}"], total[f"mae_{number}"]
            better = _better(total["rmse"], rmse)
            rows.append({"name": name_of(label), "RMSE": figure(rmse), "MAE": figure(mae), "better": better})
        return rows

    def _of_several(self, own: Mapping[str, Any]) -> dict[str, Any]:
        naive = min((own[f"rmse_{number}"] for number in range(len(self.labels))), default=math.nan)
        errors = {"rmse": figure(own["rmse"]), "naive": figure(naive)}
        name = own["series"] if len(own["series"]) <= 16 else f"{own['series'][:15]}…"
        return {**own, **errors, "series": name, "better": _better(own["rmse"], naive, "{:+.0%}")}

    def _caption(self) -> str:
        from driftgp.runs.warnings import name_of

        more = len(self.series) > SERIES_SHOWN
        shown = f"; worst {SERIES_SHOWN} of {len(self.series)} series shown" if more else ""
        naive = " or ".join(map(name_of, self.labels))
        return (
            f"rel. MSE: share of the targets' variance, worst series first (all: the median){shown}\n"
            f"naive: the lower RMSE of {naive}; better: how much lower driftgp's RMSE is"
        )

    def _notes(self) -> list[tuple[str, str]]:
        from driftgp.runs import words
        from driftgp.stream.scores import given_the_row

        total, unit = self.total, f" {self.run.facts.written.unit}" if self.run.facts.written.unit else ""
        intervals = f"{total['coverage']:.1%} of the targets lie in their {self.settings.level:.0%} interval"
        if not math.isnan(total["width"]):
            intervals += f"; mean width {figure(total['width'])}{unit} without the first 10 rows"
        notes = [
            ("Intervals", intervals if total["scored"] else "–"),
            *given_the_row(self.monitor.by_hour(), self.monitor.by_tenth()),
        ]
        notes += [("Rows", self._rows()), *words.inputs(self.run)]
        lists = (("Read", words.read(self.run)), ("Left out", self.run.facts.written.left_out))
        notes += [(name, "; ".join(found)) for name, found in lists if found]
        return notes + ([("Alarms", self._alarms())] if self.monitor.watch is not None else [])

    def _rows(self) -> str:
        total = self.total
        gaps = {
            "predicted before any target was known": total["rows"] - total["scored"] - total["missing"] - total["late"],
            "without a target": total["missing"],
            "late": total["late"],
            "with a gap in an input": total["gaps"],
            "left out as malformed": self.run.left_out,
        }
        counts = [f"{self.pace}: {total['scored']} scored", *(f"{n} {what}" for what, n in gaps.items() if n > 0)]
        return ", ".join(counts)

    def _alarms(self) -> str:
        raised, count = self.monitor.raised, self.total["alarms"]
        if not count:
            return "none"
        shown = [str(alarm) for alarm in raised[:ALARMS_SHOWN]]
        rest = f"\n… and {count - len(shown)} more: column flags of --output has them" if count > len(shown) else ""
        return "\n".join(shown) + rest


def _better(own: float, naive: float, form: str = "") -> str:
    """How much less an error is than another one, in words, or in a form."""
    if math.isnan(own) or math.isnan(naive) or naive == 0.0:
        return ""
    share = 1.0 - own / naive
    if form:
        return form.format(share)
    return f"{abs(share):.0%} {'less' if share >= 0.0 else 'more'}"
