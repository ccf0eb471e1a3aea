"""What a person on call reads: what is in a model's state, in plain numbers.

`describe` looks for the parts it knows (a window, inducing points, hyperparameters, counters, a monitor) wherever they
are in a state, so that it serves every model and every wrapper. For what happens while the stream runs see `Monitor`.
"""

from collections.abc import Iterator
from typing import Any, TypeVar

import jax
import numpy as np
from jax.tree_util import GetAttrKey

from driftgp.agp import AGP
from driftgp.bound import Statistics
from driftgp.fingerprint import portrait
from driftgp.inducing import Inducing
from driftgp.learning import Hyperparameters
from driftgp.model import Model, State
from driftgp.monitor import Monitor, MonitorState
from driftgp.window import Window

__all__ = ["Monitor", "MonitorState", "describe"]

Part = TypeVar("Part")

# Counters that models and wrappers keep, by the name of the field.
COUNTERS = ("samples", "skipped", "repaired", "renewals", "filled")


def describe(model: Model[Any], state: State) -> dict[str, Any]:
    """What is in a state: numbers and lists of them by name, ready for JSON.

    >>> import numpy as np
    >>> from driftgp import AGP
    >>> model = AGP(inducing=3, window=8, forgetting=0.5)
    >>> state = model.init(np.zeros((0, 1)), np.zeros(0))
    >>> report = describe(model, model.update(state, [0.0], 1.0))
    >>> report["effective_samples"], report["inducing_in_use"], report["half_life"]
    (1.0, 1, 1.0)
    """
    nest = list(_nest(model, state))
    report: dict[str, Any] = {"model": " of ".join(type(model).__name__ for model, _ in nest)}
    for model, state in nest:
        report |= _time(model) | _memory(state) | _bound(model, state) | _counters(state) | _watch(model, state)
    return report


def _nest(model: Any, state: Any) -> Iterator[tuple[Any, Any]]:
    """Pairs of a model and its own state, from the outermost wrapper inwards."""
    held, inner = getattr(model, "model", None), getattr(state, "inner", None)
    yield model, state
    if held is not None and inner is not None:
        yield from _nest(held, inner)


def _parts(state: Any, kind: type[Part]) -> list[Part]:
    """The parts of one kind in a state, without those of a state held inside."""
    inner = getattr(state, "inner", None)
    nodes = jax.tree.leaves(state, is_leaf=lambda node: isinstance(node, kind) or node is inner)
    return [node for node in nodes if isinstance(node, kind)]


def _plain(array: Any) -> Any:
    return np.asarray(array).tolist()


def _time(model: Any) -> dict[str, Any]:
    """Time after which a sample's weight is 1/e, and ½, in the units of `elapsed`; None where nothing is forgotten."""
    if getattr(model, "forgetting", None) is None:
        return {}
    with np.errstate(divide="ignore"):
        constant = -1.0 / np.log(np.asarray(model.forgetting, float))
    finite = np.isfinite(constant)
    return {
        "forgetting": _plain(model.forgetting),
        "time_constant": _plain(np.where(finite, constant, None)),
        "half_life": _plain(np.where(finite, np.round(constant * np.log(2.0), 12), None)),
    }


def _memory(state: Any) -> dict[str, Any]:
    report: dict[str, Any] = {}
    for memory in _parts(state, Window):
        w = np.asarray(memory.w)
        report |= {"window": memory.size, "window_in_use": _plain(np.sum(w > 0.0, -1))}
        report["effective_samples"] = _plain(np.sum(w, -1))
    for statistics in _parts(state, Statistics):
        report["effective_samples"] = _plain(statistics.n)
    for points in _parts(state, Inducing):
        report |= {"inducing": points.used.shape[-1], "inducing_in_use": _plain(np.sum(np.asarray(points.used), -1))}
    for h in _parts(state, Hyperparameters):
        report |= {"noise": _plain(h.noise), "kernel": portrait(h.kernel)}
    return report


def _bound(model: Any, state: Any) -> dict[str, Any]:
    """The bound F for each sample's worth of weight: how well the model explains what it remembers."""
    if not isinstance(model, AGP) or np.ndim(state.statistics.n) > 0 or float(state.statistics.n) == 0.0:
        return {}
    with jax.enable_x64(True):
        return {"bound_per_sample": float(_evidence_bound(model, state)) / float(state.statistics.n)}


_evidence_bound = jax.jit(AGP.evidence_bound)


def _counters(state: Any) -> dict[str, Any]:
    inner = getattr(state, "inner", None)
    leaves, _ = jax.tree_util.tree_flatten_with_path(state, is_leaf=lambda node: node is inner)
    named = [(path[-1].name, leaf) for path, leaf in leaves if isinstance(path[-1], GetAttrKey)]
    return {name: _plain(leaf) for name, leaf in named if name in COUNTERS}


def _watch(model: Any, state: Any) -> dict[str, Any]:
    monitor = getattr(model, "monitor", None)
    if not isinstance(monitor, Monitor):
        return {}
    return {name: value for part in _parts(state, MonitorState) for name, value in monitor.report(part).items()}
