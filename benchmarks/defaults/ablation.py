"""What each part of the default is worth: the default without it, on the ten streams."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.defaults.score import by_group, follow_from, scores
from benchmarks.defaults.streams import WARMUP, Stream, stream
from driftgp import AGP
from driftgp.defaults import Effort, recommended
from driftgp.evaluate import mse, nlpd
from driftgp.members import Anchored, Lagged, Persistence
from driftgp.models.model import Model
from driftgp.wrappers import Bank, Bounded, Calibrated

_HOURS = ("worst_hour", "best_hour")
MANY = 100  # fixed points from which a member is the large one

Change = Callable[[Any], Model | None]


def ablation(names: Iterable[str]) -> dict[str, Any]:
    """MSE and NLPD without each part, against the default: geometric mean and worst stream, mean difference."""
    changes = {name: (kind, change) for kind, changes in CHANGES.items() for name, change in changes.items()}
    found: dict[str, list[tuple[float, float]]] = {change: [] for change in changes}
    for name in names:
        given = stream(name)
        X, y = given.X[:WARMUP], given.y[:WARMUP]
        model = recommended(X, y)
        before = None
        for change, (kind, changed) in changes.items():
            other = _within(model, kind, changed)
            run = follow_from(other, other.init(X, y), given, WARMUP)
            here = np.array([np.log(mse(run.prediction, run.y)), nlpd(run.prediction, run.y)])
            before = here if before is None else before
            found[change].append(tuple(here - before))
    return {change: _summary(np.array(values)) for change, values in found.items()}


def scale(effort: Effort, names: Iterable[str]) -> dict[str, Any]:
    """Scores of the default against those without a scale that depends on the row, stream by stream."""
    return {name: _beside(stream(name), effort, Calibrated, _one_scale) for name in names}


def roots(effort: Effort, names: Iterable[str]) -> dict[str, Any]:
    """The same for roots, on the streams where the default sees the roots of the targets."""
    found = {name: _beside(stream(name), effort, Bounded, _as_they_are) for name in names}
    return {name: figures for name, figures in found.items() if figures}


def _beside(given: Stream, effort: Effort, kind: type[Model], change: Change) -> dict[str, float]:
    """Ratios of scores with and without a part, and least and most coverage by hour; nothing if it is not there."""
    X, y = given.X[:WARMUP], given.y[:WARMUP]
    model = recommended(X, y, effort=effort)
    other = _within(model, kind, change)
    if other is None:
        return {}
    runs = [follow_from(each, each.init(X, y), given, WARMUP) for each in (model, other)]
    here, without = (scores(run) | by_group(run, given) for run in runs)
    ratios = {name: here[name] / without[name] for name in ("mse", "crps", "winkler_95")}
    hours = {name: here[name] for name in _HOURS if name in here}
    before = {f"{name}_without": without[name] for name in _HOURS if name in without}
    return ratios | {"nlpd": here["nlpd"] - without["nlpd"]} | hours | before


def _summary(values: np.ndarray) -> dict[str, float]:
    ratio, rise = np.exp(values[:, 0].mean()), values[:, 1].mean()
    return {"mse": float(ratio), "worst": float(np.exp(values[:, 0].max())), "nlpd": float(rise)}


def _within(model: Any, kind: type[Model], change: Change) -> Any:
    """The same wrappers around a part that is changed; None if it is not there."""
    if isinstance(model, kind):
        return change(model)
    held = getattr(model, "model", None)
    inner = None if held is None else _within(held, kind, change)
    return None if inner is None else _with(model, model=inner)


def _with(wrapper: Any, **settings: Any) -> Model:
    """A wrapper with other settings."""
    other: Model = object.__new__(type(wrapper))
    for name in wrapper.__dataclass_fields__:
        object.__setattr__(other, name, settings.get(name, getattr(wrapper, name)))
    return other


def _one_scale(model: Any) -> Model:
    return _with(model, features=0)


def _as_they_are(model: Any) -> Model | None:
    return _with(model, root=(0.0,) * len(model.root), lags=()) if any(model.root) else None


def _of(models: list[Model]) -> Bank:
    """The default's bank of these members."""
    curved = [k for k, model in enumerate(models) if isinstance(model, (AGP, Anchored))]
    prior = [5.0 if k in curved else 1.0 for k in range(len(models))]
    return Bank(models, corrected=curved, prior=prior)


def _without(kind: Callable[[Model], bool]) -> Change:
    return lambda bank: _of([model for model in bank.models if not kind(model)])


def _large_with(**settings: Any) -> Change:
    """The regression on many points with other settings."""
    return lambda bank: _of(
        [replace(m, **settings) if isinstance(m, Anchored) and _large(m) else m for m in bank.models]
    )


def _large(model: Model) -> bool:
    return isinstance(model, Anchored) and model.points >= MANY


def _small(model: Model) -> bool:
    return isinstance(model, Anchored) and model.points < MANY


_BANKS: dict[str, Change] = {
    "the default": lambda bank: bank,
    "without the AGP": _without(lambda model: isinstance(model, AGP)),
    "without the regression on many points": _without(_large),
    "without the regression on few points": _without(_small),
    "without linear regression": _without(lambda model: isinstance(model, Lagged)),
    "without persistence": _without(lambda model: isinstance(model, Persistence)),
    "without twins": lambda bank: Bank(bank.models),
    "half as many points": _large_with(points=100),
    "one memory of the many points": _large_with(forgetting=(0.9995,)),
    "hyperparameters from 1000 rows": _large_with(sample=1000),
    "all members alike at first": lambda bank: Bank(bank.models, corrected=bank.corrected),
}
CHANGES: dict[type[Model], dict[str, Change]] = {Bank: _BANKS, Calibrated: {"without a scale of the row": _one_scale}}
