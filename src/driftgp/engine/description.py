"""How each part of a model is described to C++: the one table of kinds and of the order of their settings.

A description is a flat list of numbers, part by part,

    kind, count of settings, settings…, count of children, children…

and its twin in C++ is `parts.hpp`, whose kinds have the same numbers, with the constructors that read the settings.
A class that is not in the table has no twin. A subclass of a class in the table has none either, since it may compute
something else.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

RELEVANCES = ("leave-one-out", "cholesky", "diagonal")
STEPS = ("fresh", "carried", "scaled")
PLACEMENTS = ("greedy", "recent")
ADMISSIONS = ("algorithm", "published")


class Unknown(ValueError):
    """A part of a model that C++ does not have; `part` is its name."""

    def __init__(self, part: str) -> None:
        """Take the name of the part."""
        super().__init__(f"the compiled engine has no {part}")
        self.part = part


class Part(NamedTuple):
    """The description of one class for C++."""

    kind: int
    settings: Callable[[Any], Iterable[Any]]  # numbers, flags, None for 0, and arrays with their count before them
    children: Callable[[Any], Iterable[Any]] = lambda _: ()


def encoded(model: Any) -> list[float]:
    """A model as numbers; refuses with `Unknown` what C++ does not have.

    >>> from driftgp import kernels
    >>> encoded(kernels.SE(2.0) + kernels.Constant())
    [9.0, 0.0, 2.0, 1.0, 4.0, 1.0, 2.0, 1.0, 1.0, 0.0, 8.0, 2.0, 1.0, 1.0, 0.0]
    """
    part = PARTS.get(_name(model))
    if part is None:
        raise Unknown(type(model).__name__)
    settings = [number for setting in part.settings(model) for number in _numbers(setting)]
    children = [encoded(child) for child in part.children(model)]
    numbers = (number for child in children for number in child)
    return [float(part.kind), float(len(settings)), *settings, float(len(children)), *numbers]


def _name(model: Any) -> str:
    return f"{type(model).__module__}.{type(model).__qualname__}"


def _numbers(setting: Any) -> list[float]:
    """A number as it is, None as 0, and an array as its size and its entries."""
    if setting is None:
        return [0.0]
    if isinstance(setting, (np.ndarray, tuple, list)):
        values = np.asarray(setting, float).ravel().tolist()
        return [float(len(values)), *values]
    return [float(setting)]


def _parameters(*names: str) -> Callable[[Any], Iterable[Any]]:
    """Parameters of a kernel, each of them one number or one per input."""
    return lambda kernel: [np.asarray(getattr(kernel, name)) for name in names]


def _none(_: Any) -> Iterable[Any]:
    return ()


def _agp(model: Any) -> Iterable[Any]:
    """Settings in the order in which agp.hpp reads them; inducing inputs: their columns, then all of them."""
    return (
        model.inducing,
        model.window,
        model.forgetting,
        RELEVANCES.index(model.relevance),
        model.learn_every,
        model.iterations,
        STEPS.index(model.step),
        model.rate,
        model.threshold,
        model.jitter,
        model.absolute_jitter,
        model.prior,
        model.outliers,
        model.warmup_iterations,
        model.warmup_rate,
        model.learn_inducing,
        PLACEMENTS.index(model.placement),
        ADMISSIONS.index(model.admission),
        np.asarray(model.noise),
        0 if model.inducing_inputs is None else np.shape(model.inducing_inputs)[1],
        () if model.inducing_inputs is None else np.asarray(model.inducing_inputs),
    )


def _calibrated(model: Any) -> Iterable[Any]:
    return model.symmetric, model.rate, model.memory, model.levels, model.gains, model.log_prior, model.features


def _bounded(model: Any) -> Iterable[Any]:
    """Where there is no bound, infinity."""
    low = [-np.inf if bound is None else bound for bound in model.low]
    high = [np.inf if bound is None else bound for bound in model.high]
    return low, high, model.slack, model.leak, model.root, [x for x, _ in model.lags], [of for _, of in model.lags]


def _watched(model: Any) -> Iterable[Any]:
    monitor = model.monitor
    if _name(monitor) != "driftgp.models.monitor.Monitor":
        raise Unknown(type(monitor).__name__)
    return monitor.lags, monitor.forgetting


def _naive(model: Any) -> Iterable[Any]:
    return model.length, model.forgetting, (model.noise,)


def _anchored(model: Any) -> Iterable[Any]:
    return model.points, model.ring, model.sample, model.refresh, model.forgetting


def _held(model: Any) -> Iterable[Any]:
    return (model.model,)


# Kinds as in parts.hpp.
PARTS: dict[str, Part] = {
    "driftgp.kernels.formulas.SE": Part(1, _parameters("lengthscale", "variance")),
    "driftgp.kernels.formulas.Matern12": Part(2, _parameters("lengthscale", "variance")),
    "driftgp.kernels.formulas.Matern32": Part(3, _parameters("lengthscale", "variance")),
    "driftgp.kernels.formulas.Matern52": Part(4, _parameters("lengthscale", "variance")),
    "driftgp.kernels.formulas.RationalQuadratic": Part(5, _parameters("lengthscale", "variance", "mixture")),
    "driftgp.kernels.formulas.Periodic": Part(6, _parameters("period", "lengthscale", "variance")),
    "driftgp.kernels.formulas.Linear": Part(7, _parameters("variance")),
    "driftgp.kernels.formulas.Constant": Part(8, _parameters("variance")),
    "driftgp.kernels.formulas.Sum": Part(9, _none, lambda kernel: (kernel.first, kernel.second)),
    "driftgp.kernels.formulas.Product": Part(10, _none, lambda kernel: (kernel.first, kernel.second)),
    "driftgp.gp.agp.AGP": Part(20, _agp, lambda model: (model.kernel,)),
    "driftgp.wrappers.standardize.Standardize": Part(21, lambda model: (model.forgetting,), _held),
    "driftgp.wrappers.within.Within": Part(22, lambda model: (model.margin,), _held),
    "driftgp.wrappers.gaps.Gaps": Part(23, _none, _held),
    "driftgp.wrappers.calibrate.Calibrated": Part(24, _calibrated, _held),
    "driftgp.wrappers.watched.Watched": Part(25, _watched, _held),
    "driftgp.wrappers.bank.Bank": Part(26, lambda model: (model.corrected, model.prior), lambda model: model.models),
    "driftgp.wrappers.guarded.Guarded": Part(28, lambda model: (model.reach, model.widen_first), _held),
    "driftgp.members.naive.Persistence": Part(27, lambda model: (*_naive(model), model.column or ())),
    "driftgp.members.anchored.Anchored": Part(29, _anchored),
    "driftgp.members.lagged.Lagged": Part(30, lambda model: (model.lags, model.ridge, model.forgetting)),
    "driftgp.wrappers.bounded.Bounded": Part(31, _bounded, _held),
    "driftgp.wrappers.around.Around": Part(36, lambda model: (model.column, model.reach), _held),
    "driftgp.wrappers.credible.Credible": Part(37, lambda model: (model.column,), _held),
    "driftgp.members.naive.LastKMean": Part(27, lambda model: (*_naive(model), ())),
}
