"""What a model's state holds, in plain numbers, and what a report of a problem should say.

`contents` walks through the wrappers to what they hold, and of a bank to each of its members. See `Monitor` for what
happens while the stream runs.
"""

import math
import platform
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from typing import Any, NamedTuple

import numpy as np

from driftgp.defaults import recommended
from driftgp.engine import describe as engine_of
from driftgp.gp.agp import AGP
from driftgp.gp.bound import NoFactor
from driftgp.gp.inducing import unexplained
from driftgp.models.model import Model, State
from driftgp.models.monitor import Monitor, MonitorState
from driftgp.stream.model_json import described
from driftgp.wrappers import Bank, Watched
from driftgp.wrappers.holding import Holding

__all__ = ["Monitor", "MonitorState", "Trace", "contents", "importance", "show_versions", "trace"]

# Counters that models and wrappers keep, by the name of the field.
COUNTERS = ("samples", "skipped", "repaired", "renewals", "filled", "limited", "guarded")
_OURS = re.compile(r"extra == .(dev|docs|test|all)\b")  # what only the developers of driftgp need, or is named already


def contents(model: Model, state: State) -> dict[str, Any]:
    """The contents of a state: numbers and lists of numbers by name, ready for JSON.

    The report on a bank has the `weights` of its members and, in `members`, a report on each of them.

    Args:
        model: the model.
        state: a state of it.

    >>> from driftgp import AGP
    >>> model = AGP(inducing=3, window=8, forgetting=0.5)
    >>> state = model.init(np.zeros((0, 1)), np.zeros(0))
    >>> report = contents(model, model.update(state, [0.0], 1.0))
    >>> report["effective_samples"], report["inducing_in_use"], report["half_life"]
    (1.0, 1, 1.0)
    """
    return _report(model, state.view)


def importance(state: Any) -> np.ndarray:
    """How much each input matters to the model now: D shares that sum to 1 (all 0 where no input matters).

    The mean Σ w_k r_kd of the members' relevances (`model.summary(state)`), weighted by their weights in the mixture,
    divided by its sum over the inputs d. A relevance says how much a prediction changes with an input, by its
    lengthscale and its linear part. If the model standardises inputs, all have the same spread. Members without one,
    such as persistence, do not count. All shares are NaN if no member has a relevance.

    Args:
        state: a state of any model, or an `Online`.

    As `watch` of `prequential` it gives the importance over time:

    >>> from driftgp import AGP, prequential
    >>> from driftgp.kernels import SE
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> y = X[:, 0]  # the second input does not matter
    >>> model = AGP(SE(lengthscale=[1.0, 1.0]), inducing=20, window=60)
    >>> state = model.init(X[:60], y[:60])
    >>> run = prequential(model, state, X[60:], y[60:], watch=importance, every=100)
    >>> run.trace.shape, bool((run.trace[:, 0] > 0.9).all())
    ((4, 2), True)
    """
    if not isinstance(state, State):
        state = getattr(state, "state", state)
    if not isinstance(state, State):
        raise TypeError(f"state must be a state of a model, or an Online; got {type(state).__name__}")
    summary = state.model.summary(state)
    with_relevance = [member for member in summary.get("members", [summary]) if "relevance" in member]
    if not with_relevance:
        return np.full(state.layout.inputs, np.nan)
    r = np.array([member["relevance"] for member in with_relevance])  # K×D
    w = np.array([member.get("weight", 1.0) for member in with_relevance])
    total = (w if np.sum(w) > 0.0 else np.ones_like(w)) @ r
    return np.array(total / (np.sum(total) or 1.0))


class Trace(NamedTuple):
    """What an AGP has learned, in numbers of fixed shapes, so that `prequential` can stack them over time."""

    bound: float  # F, NaN where it has no factor
    theta: np.ndarray  # H, kernel parameters
    noise: np.ndarray  # P
    U: np.ndarray  # M×D, the points in use first
    points: int  # in use
    R_tot: float  # variance of the samples that the points do not explain, Σ w k_ii − tr(Kuu⁻¹Φ)
    R_threshold: float  # κ/T, above which fast-AGP admits a point; with the published rule that of R_tot/σ²
    n: float  # effective samples, Σ w


def trace(state: State) -> Trace:
    """The bound, the hyperparameters and the inducing points of an AGP, alone or in wrappers.

    As `watch` of `prequential` it gives them over time, each an array with a row for each sample:

    >>> from driftgp import AGP, prequential
    >>> X = np.linspace(0, 3, 90)[:, None]
    >>> model = AGP(inducing=5, window=30)
    >>> run = prequential(model, model.init(X[:30], np.sin(X[:30, 0])), X[30:], np.sin(X[30:, 0]), watch=trace)
    >>> run.trace.theta.shape, run.trace.bound.shape, run.trace.U.shape
    ((60, 2), (60,), (60, 5, 1))

    Args:
        state: of an AGP, or of wrappers around one; a bank has several: give `state.members[k]` of one of them.
    """
    *_, (model, view) = _nest(state.model, state.view)
    if not isinstance(model, AGP):
        raise ValueError(f"state must be that of an AGP, alone or in wrappers; got one of {state.model.outline}")
    m, known = view.points, view.statistics
    left = unexplained(view.inverse_L[:m, :m], known)
    try:
        with np.errstate(all="ignore"):
            F = float(model.evidence_bound(view)) if view.n > 0.0 else math.nan
    except NoFactor:
        F = math.nan
    size = view.n if model.admission == "published" else float(model.window or 1)
    threshold = view.kappa / max(size, np.finfo(float).tiny)
    return Trace(F, view.theta.copy(), view.noise.copy(), view.U.copy(), m, left, threshold, view.n)


def _report(model: Any, view: Any) -> dict[str, Any]:
    nest = list(_nest(model, view))
    report: dict[str, Any] = {"model": " of ".join(type(model).__name__ for model, _ in nest)}
    for model, view in nest:
        report |= _time(model) | _memory(model, view) | _counters(view) | _watch(model, view) | _members(model, view)
    return report


def _nest(model: Any, view: Any) -> Iterator[tuple[Any, Any]]:
    """Pairs of a model and its own state, from the outermost wrapper inwards."""
    yield model, view
    if isinstance(model, Holding):
        yield from _nest(model.model, view.inner)


def _members(model: Any, view: Any) -> dict[str, Any]:
    if not isinstance(model, Bank):
        return {}
    members = [_report(member, own) for member, own in zip(model.models, view.members, strict=True)]
    return {"weights": _plain(view.weights), "members": members}


def _plain(value: Any) -> Any:
    """Numbers as JSON has them; None for those that are not finite."""
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _time(model: Any) -> dict[str, Any]:
    """Time after which a sample's weight is 1/e, and ½, in the units of `elapsed`; None where nothing is forgotten."""
    forgetting = getattr(model, "forgetting", None)
    if isinstance(model, Holding) or not isinstance(forgetting, float):
        return {}
    constant = math.inf if forgetting == 1.0 else -1.0 / math.log(forgetting)
    half_life = round(constant * math.log(2.0), 12)
    return {"forgetting": forgetting, "time_constant": _plain(constant), "half_life": _plain(half_life)}


def _memory(model: Any, view: Any) -> dict[str, Any]:
    """What an AGP remembers, and how well it explains it: the bound F for each sample's worth of weight."""
    if not isinstance(model, AGP):
        return {}
    report: dict[str, Any] = {"effective_samples": view.n}
    if model.window is not None:
        in_use = int(np.count_nonzero(view.w > 0.0))
        report |= {"window": model.window, "window_in_use": in_use, "effective_samples": _plain(np.sum(view.w))}
    report |= {"inducing": model.inducing, "inducing_in_use": view.points}
    report |= {"noise": _plain(view.noise), "kernel": described(model.kernel.at(view.theta))}
    if view.n > 0.0:
        report["bound_per_sample"] = _bound(model, view)
    return report


def _bound(model: AGP, view: Any) -> float | None:
    try:
        with np.errstate(all="ignore"):  # numbers beyond all bounds are reported as None
            return _plain(model.evidence_bound(view) / view.n)
    except NoFactor:
        return None


def _counters(view: Any) -> dict[str, Any]:
    return {name: _plain(getattr(view, name)) for name in COUNTERS if hasattr(view, name)}


def _watch(model: Any, view: Any) -> dict[str, Any]:
    if not isinstance(model, Watched):
        return {}
    return {name: _plain(value) for name, value in model.monitor.report(view.monitor).items()}


# ---- a report of a problem -------------------------------------------------------------------------------------------


def show_versions() -> None:
    """Print what a report of a problem should say.

    >>> show_versions()  # doctest: +ELLIPSIS
    driftgp ...
    engine ...
    Python ...
    platform ...
    numpy ...
    scipy ...
    """
    for name, version in versions().items():
        print(f"{name} {version}")  # noqa: T201


def versions() -> dict[str, str]:
    """The same as a dict; of the extras only what is installed.

    >>> versions()["engine"].partition(":")[0] in ("native", "reference")
    True
    """
    ours = version_of("driftgp") or "(not installed: run from its source)"
    found = {
        "driftgp": ours,
        "engine": engine_of(recommended(np.empty((0, 1)), np.empty(0))),
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
        "platform": f"{platform.platform()}, {sys.byteorder}-endian",
    }
    libraries = {name: version_of(name) for name in _dependencies()}
    return found | {name: version for name, version in libraries.items() if version is not None}


def _dependencies() -> list[str]:
    """The libraries of the core, then those of the extras, as the installed package states them."""
    try:
        stated = metadata.requires("driftgp") or []
    except metadata.PackageNotFoundError:
        return ["numpy", "scipy"]
    names = (re.match(r"[\w.-]+", line) for line in stated if not _OURS.search(line))
    return list(dict.fromkeys(found[0] for found in names if found))


def version_of(package: str) -> str | None:
    """The version of an installed package."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
