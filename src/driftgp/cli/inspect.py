"""`driftgp inspect`."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftgp.cli import console
from driftgp.cli.console import Column
from driftgp.cli.options import Picture

if TYPE_CHECKING:
    from driftgp.model import State
    from driftgp.runner.lane import Lane
    from driftgp.runner.run import Saved

LABELS = {  # where a name alone does not say what a person on call should make of it
    "rows_read": "rows read, of all series",
    "run_rmse": "RMSE",
    "run_mse": "MSE",
    "run_relative": "MSE / variance of the targets (1: no better than their mean)",
    "run_mae": "MAE",
    "run_nlpd": "NLPD",
    "run_coverage": "coverage of the intervals",
    "run_width": "mean width of the intervals",
    "run_rmse_compared": "RMSE on the rows on which naive forecasts are compared",
    "run_rmse_persistence": "RMSE of persistence",
    "run_mae_persistence": "MAE of persistence",
    "run_rmse_season": "RMSE of the seasonal naive forecast",
    "run_mae_season": "MAE of the seasonal naive forecast",
    "run_rmse_season_2": "RMSE of the seasonal naive forecast, longer season",
    "run_mae_season_2": "MAE of the seasonal naive forecast, longer season",
    "run_missing": "rows without a target",
    "run_carried": "rows with a gap in an input",
    "run_alarms": "alarms",
    "unit_of_time": "unit of time (the usual time between rows)",
    "residual": "last residual, in standard deviations",
    "residual_mean": "mean residual of late (right: 0)",
    "residual_square": "mean squared residual of late (right: 1)",
    "autocorrelation": "autocorrelation of residuals (right: 0)",
    "log_score": "log score of late",
    "evidence": "evidence of a change, by kind (an alarm comes at 1)",
    "since_alarm": "rows since the last alarm",
    "time_constant": "time constant, in units of time",
    "half_life": "half-life, in units of time",
    "renewals": "changes of the model's units",
    "filled": "gaps filled, by input",
    "limited": "wild values limited, by input",
    "guarded": "wild targets limited",
    "weights": "weights of the members",
    "importance": "importance of the inputs, largest first",
    "calibration": "intervals against the model's own, by level",
    "memory": "memory in samples",
    "samples": "samples learned from",
    "skipped": "gradient steps skipped",
    "repaired": "factorisations repaired",
}


OF_A_MEMBER = (  # on screen
    "weight",
    "memory",
    "effective_samples",
    "window",
    "inducing_in_use",
    "points",
    "noise",
    "skipped",
)


def inspect(
    file: Annotated[Path, typer.Argument(metavar="CHECKPOINT", help="File that --checkpoint or Online.save wrote.")],
    group: Annotated[str | None, typer.Option(help="Series to look at.", show_default="most alarms")] = None,
    plot: Picture = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")] = False,
) -> None:
    """Say what is in a checkpoint: what the model remembers, how it has done of late, whether something is wrong."""
    from driftgp.files import read_whole
    from driftgp.runner import read_checkpoint
    from driftgp.runner.bundle import MAGIC
    from driftgp.runner.warnings import warnings_of

    data = read_whole(file)
    try:
        if not data.startswith(MAGIC):
            _model_checkpoint(data, plot, as_json=as_json)
            return
        saved = read_checkpoint(data)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error
    key = _chosen(saved, group)
    facts = _facts(saved, key) | {"warnings": warnings_of(saved.settings, saved.schema, saved.lanes)}
    if as_json:
        print(json.dumps(_without_nan(facts), indent=2, allow_nan=False))
    else:
        _print(facts, title=f"{file}, series {key!r}" if key else f"{file}")
    if plot is not None:
        _draw(saved, key, facts, plot)


def _chosen(saved: Saved, group: str | None) -> str:
    if not saved.lanes:
        raise ValueError("the checkpoint holds no series yet: nothing to inspect")
    if group is None:
        return max(saved.lanes, key=lambda key: saved.lanes[key].scores.alarms)
    if group not in saved.lanes:
        raise ValueError(f"group must be one of {', '.join(map(repr, list(saved.lanes)[:20]))}; got {group!r}")
    return group


def _facts(saved: Saved, key: str) -> dict[str, Any]:
    from driftgp.runner.naive import NAMES, labels_of

    lane = saved.lanes[key]
    facts: dict[str, Any] = {"rows_read": saved.rows, "series": len(saved.lanes)}
    named = labels_of([lane.naive.seasons or ()])
    unknown = {f"{kind}_{name}" for kind in ("rmse", "mae") for name in NAMES if name not in named}
    summary = lane.scores.summary().items()
    facts |= {f"run_{name}": value for name, value in summary if name not in unknown}
    if lane.model is None or lane.state is None:
        return facts | {"model": "not started", "warmup_rows": len(lane.batch)}
    last = lane.alarms.last
    facts |= {"evidence": lane.alarms.evidence, "since_alarm": None if last is None else lane.alarms.rows - last}
    facts |= {"unit_of_time": _unit(saved, lane)}
    return facts | _of_state(lane.state, list(lane.features.names))


def _of_state(state: State, names: list[str]) -> dict[str, Any]:
    """What a model has learned, with its inputs by their names."""
    from driftgp.diagnostics import describe, importance

    about = describe(state.model, state)
    for counts in {"filled", "limited"} & set(about):
        about[counts] = {name: count for name, count in zip(names, about[counts], strict=True) if count}
    shares = dict(zip(names, importance(state).tolist(), strict=True))
    known = not any(map(math.isnan, shares.values()))
    learned = _named(state.model.summary(state), names)
    members = [before | now for before, now in zip(about.pop("members", []), learned.pop("members", []), strict=True)]
    facts: dict[str, Any] = {"inputs": names}
    facts |= {"importance": dict(sorted(shares.items(), key=lambda item: -item[1]))} if known else {}
    return facts | about | learned | ({"members": members} if members else {})


def _named(learned: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """What a model or its members have learned, with the relevance of each input by its name."""
    named = {name: value for name, value in learned.items() if name not in ("model", "member")}
    if "relevance" in named:
        named["relevance"] = dict(zip(names, named["relevance"], strict=True))
    if "members" in named:
        named["members"] = [_named(member, names) for member in named["members"]]
    return named


def _unit(saved: Saved, lane: Lane) -> str:
    """What one unit of time is in this series."""
    half_life = saved.settings.half_life_of
    if half_life is None or not saved.schema.time:
        return "one row"
    return f"{lane.unit / 3600.0:g} h" if half_life[1] else f"{lane.unit:g}, as the times count"


def _model_checkpoint(data: bytes, plot: Path | None, *, as_json: bool) -> None:
    """What a model has learned; of one with a part of somebody's own, the settings are all that can be told."""
    from driftgp.checkpoint import peek

    if plot is not None:
        raise ValueError("this is the checkpoint of a model, not of a run: it has no picture to show")
    stored, learned = peek(data), _learned(data)
    if as_json:
        print(json.dumps(_without_nan(stored | {"learned": learned}), indent=2, allow_nan=False))
    else:
        _print(learned or stored, title="checkpoint of a model")


def _learned(data: bytes) -> dict[str, Any] | None:
    """What a checkpoint of a model and its state tells, such as `Online.save` writes; None if it cannot be rebuilt."""
    from driftgp import Online, engine

    try:
        online = Online.from_bytes(data)
    except ValueError:
        return None
    state = online.state
    return {"engine": engine.describe(state.model)} | _of_state(state, [*online.inputs])


def _print(facts: dict[str, Any], title: str) -> None:
    apart = ("members", "warnings")
    rows = [{"name": _label(name), "value": _short(value)} for name, value in facts.items() if name not in apart]
    for k, member in enumerate(facts.get("members", ()), start=1):
        shown = {name: member[name] for name in OF_A_MEMBER if name in member}
        rows.append({"name": f"member {k}", "value": f"{member['model']}: {_short(shown)}"})
    console.print_table([Column("name", "what"), Column("value", "value")], rows, title=title, caption="")
    console.print_notes(("Warning", warning) for warning in facts.get("warnings", ()))


def _label(name: str) -> str:
    return LABELS.get(name, name.removeprefix("run_")).replace("_", " ")


def _short(value: Any) -> str:
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.5g}"
    if isinstance(value, dict):
        return _first_of([f"{name.replace('_', ' ')}: {_short(part)}" for name, part in value.items() if name != "is"])
    if isinstance(value, list):
        return _first_of([_short(part) for part in value])
    return "–" if value is None else str(value)


def _first_of(parts: list[str]) -> str:
    text = ", ".join(parts[:12])
    return f"{text}, … ({len(parts)})" if len(parts) > 12 else text or "–"


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nan(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_without_nan(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _draw(saved: Saved, key: str, facts: dict[str, Any], path: Path) -> None:
    from driftgp import plots, plots_run

    lane = saved.lanes[key]
    if lane.model is None:
        raise ValueError("the model has not started yet: there is nothing to draw")
    plots.save(plots_run.health_figure(facts, lane.history.targets.tolist(), key or saved.settings.target), path)
    console.remark(f"wrote {path}")
