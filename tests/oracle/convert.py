"""From states of version 0.1, as the oracle holds them, to records.

A state is given as its leaves by their path (see write.py); those of a bank have a leading axis for its members.
"""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np

from driftgp import bound, kernels, members, wrappers
from driftgp.agp import AGP, FastAGP
from driftgp.contract import Contract
from driftgp.kernels import Kernel
from driftgp.monitor import Monitor
from driftgp.wrappers import Calibrated, CarryForward, Standardize, Watched, Within

Leaves = dict[str, np.ndarray]


# ---- models --------------------------------------------------------------------------------------------------------


class Gone(Exception):
    """A setting that version 0.2 does not have any more."""


def old_agp(*args: Any, natural: float | None = None, restart: bool = True, **options: Any) -> AGP:
    """AGP by the settings of 0.1: natural=1.0 is step="scaled" now; restart=False has no successor."""
    if not restart:
        raise Gone("restart=False, which carried the averages of the newest point's place along with the others")
    if natural is not None:
        options = {"rate": 0.05} | options | {"step": "scaled"}
    return AGP(*args, **options)


def old_carried(**_: Any) -> Any:
    """An AGP of 0.1 with Adam's averages of its warm-up, which moved the newest point as well."""
    raise Gone('step="carried" leaves the newest inducing point at its sample')


def old_monitor(*, slack: float, threshold: float, **options: Any) -> Monitor:
    """A monitor of 0.1, which also had a test for a fall of the log score."""
    return Monitor(**options)


def old_bank(*_: Any, **__: Any) -> Any:
    """A bank of 0.1, which mixed its members by dynamic model averaging."""
    raise Gone("a bank mixes by soft Bayes and stacking now, and the default is another bank")


NAMES: dict[str, Any] = {
    "np": np,
    "AGP": old_agp,
    "FastAGP": lambda **options: old_agp(**options, learn_every=0),
    "CarriedAGP": old_carried,
    "recommended": old_bank,
    "Bank": old_bank,
    "Monitor": old_monitor,
    **{name: getattr(kernels, name) for name in ("SE", "Matern12", "Matern32", "Matern52", "RationalQuadratic")},
    **{name: getattr(kernels, name) for name in ("Periodic", "Linear", "Constant")},
    **{name: getattr(wrappers, name) for name in ("Calibrated", "CarryForward", "Standardize", "Watched", "Within")},
    **{name: getattr(members, name) for name in ("Persistence", "LastKMean")},
}


def model_of(expression: str, X: np.ndarray, y: np.ndarray) -> Any:
    """The model of today for an expression of 0.1."""
    return eval(expression, {"__builtins__": {}}, NAMES | {"X": X, "y": y})


# ---- states --------------------------------------------------------------------------------------------------------


def fill(model: Contract, record: np.ndarray, leaves: Leaves) -> None:
    """Write a state of 0.1 into a record of zeros; what follows from the rest is computed."""
    for kind, convert in CONVERTERS.items():
        if isinstance(model, kind):
            convert(model, record, leaves)
            return
    raise NotImplementedError(type(model).__name__)


def below(leaves: Leaves, path: str) -> Leaves:
    """The leaves under a path."""
    start = f"{path}."
    return {name[len(start) :]: leaf for name, leaf in leaves.items() if name.startswith(start)}


def kernel_parameters(model: Kernel, leaves: Leaves) -> np.ndarray:
    """Parameters of a kernel in the order of its fields."""
    parts = []
    for field in fields(model):  # type: ignore[arg-type]
        value = getattr(model, field.name)
        if isinstance(value, Kernel):
            parts.append(kernel_parameters(value, below(leaves, field.name)))
        else:
            parts.append(np.ravel(leaves[field.name]))
    return np.concatenate(parts)


def _window(record: np.ndarray, leaves: Leaves) -> None:
    for name in ("X", "y", "cursor"):
        record[name][...] = leaves[name]


def _agp(model: AGP, record: np.ndarray, leaves: Leaves) -> None:
    _window(record["window"], below(leaves, "window"))
    _agp_without_window(model, model.view(record), leaves)


def _agp_without_window(model: AGP, state: Any, leaves: Leaves) -> None:
    used = leaves["points.used"].astype(bool)
    state.w[...] = leaves["window.w"]
    state.points = int(used.sum())
    state.U[: state.points] = leaves["points.U"][used]
    state.theta[...] = kernel_parameters(model.kernel, below(leaves, "hyperparameters.kernel"))
    state.noise[...] = leaves["hyperparameters.noise"]
    for name in ("samples", "skipped", "repaired"):
        setattr(state, name, int(leaves[name]))
    s = below(leaves, "statistics")
    inside = np.ix_(used, used)
    given = bound.Statistics(float(s["n"]), s["yy"], s["b"][used], s["Phi"][inside], float(s["kappa"]))
    state.statistics = given
    model.complete(state)
    state.statistics = given
    state.posterior, _ = bound.posterior(state.posterior.inverse_L.copy(), given, state.noise)


def _standardize(model: Standardize, record: np.ndarray, leaves: Leaves) -> None:
    for name in ("centre", "scale", "renewals"):
        record[name][...] = leaves[name]
    for name in ("weight", "mean", "variance"):
        record[name][...] = leaves[f"recent.{name}"]
    fill(model.model, record["inner"], below(leaves, "inner"))


def _renamed(**places: str) -> Callable[[Any, np.ndarray, Leaves], None]:
    """Fields that a wrapper has under a path of its own, and what it holds."""

    def convert(model: Any, record: np.ndarray, leaves: Leaves) -> None:
        for name, path in places.items():
            record[name][...] = leaves[path]
        fill(model.model, record["inner"], below(leaves, "inner"))

    return convert


def _watched(model: Watched, record: np.ndarray, leaves: Leaves) -> None:
    before = below(leaves, "monitor")
    for name in record["monitor"].dtype.names:
        record["monitor"][name][...] = before[name]
    fill(model.model, record["inner"], below(leaves, "inner"))


def _naive(model: Any, record: np.ndarray, leaves: Leaves) -> None:
    record["values"][...] = leaves["recent.y"]
    record["cursor"][...] = leaves["recent.cursor"]
    record["count"][...] = np.sum(leaves["recent.w"] > 0.0)
    record["variance"][...], record["errors"][...] = leaves["variance"], leaves["errors"]


CONVERTERS: dict[type, Callable[[Any, np.ndarray, Leaves], None]] = {
    AGP: _agp,
    Standardize: _standardize,
    Within: _renamed(low="range.low", high="range.high", last="range.last", count="range.count", limited="limited"),
    CarryForward: _renamed(last="carried.last", seen="carried.seen", filled="carried.filled"),
    Calibrated: _renamed(log_s2="log_s2", log_weights="log_weights", offset="offset"),
    Watched: _watched,
    members.Persistence: _naive,
    members.LastKMean: _naive,
}

__all__ = ["FastAGP", "Gone", "below", "fill", "model_of"]
