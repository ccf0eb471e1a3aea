"""Checks of the settings of AGP."""

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from driftgp.base import checks
from driftgp.gp.inducing import RULES
from driftgp.gp.learning import STEPS
from driftgp.kernels import SE, Kernel

# Largest number of gradient steps: more are a mistake, or a forged setting that would keep a step from ending.
_MOST_STEPS, _MOST_WARMUP = 10_000, 1_000_000
JITTER = 10.0 * float(np.finfo(float).eps) ** 0.5  # relative to the kernel's diagonal


def checked(given: Any, attenuation: float | None) -> dict[str, Any]:
    """The settings of an AGP, each checked, those that follow from others found."""
    window, learn_every = given.window, checks.whole("learn_every", given.learn_every, 0)
    if window is None and learn_every > 0:
        raise ValueError(f"window must be a number when learn_every is {learn_every}: a gradient needs samples")
    inducing = checks.whole("inducing", given.inducing, 1)
    usual_rate = 0.2 if given.step == "scaled" else 0.05
    settings = {
        "kernel": SE() if given.kernel is None else checked_kernel(given.kernel),
        "noise": checks.all_between("noise", given.noise, 0.0, np.inf),
        "inducing": inducing,
        "window": None if window is None else checks.whole("window", window, 1),
        "forgetting": forgetting_factor(given.forgetting, attenuation, window),
        "relevance": checks.choice("relevance", given.relevance, RULES),
        "learn_every": learn_every,
        "iterations": checks.whole("iterations", given.iterations, 1, _MOST_STEPS),
        "step": checks.choice("step", given.step, STEPS),
        "rate": checks.between("rate", usual_rate if given.rate is None else given.rate, 0.0, np.inf),
        "threshold": checks.between("threshold", given.threshold, 0.0, 1.0, open_low=False),
        "jitter": checks.between("jitter", given.jitter, 0.0, 1.0, open_low=False),
        "absolute_jitter": checks.between("absolute_jitter", given.absolute_jitter, 0.0, np.inf, open_low=False),
        "prior": None if given.prior is None else checks.between("prior", given.prior, 0.0, np.inf),
        "outliers": None if given.outliers is None else checks.between("outliers", given.outliers, 0.0, np.inf),
        "warmup_iterations": checks.whole("warmup_iterations", given.warmup_iterations, 0, _MOST_WARMUP),
        "warmup_rate": checks.between("warmup_rate", given.warmup_rate, 0.0, np.inf),
        "learn_inducing": bool(given.learn_inducing),
        "placement": checks.choice("placement", given.placement, ("greedy", "recent")),
        "inducing_inputs": checked_inducing_inputs(given.inducing_inputs, inducing),
        "admission": checks.choice("admission", given.admission, ("algorithm", "published")),
    }
    if window is not None and inducing > window:
        raise ValueError(f"inducing must be at most window ({window}); got {inducing}")
    return settings


def settings_shown(model: Any) -> dict[str, Any]:
    """The settings shown by `repr`: kernel, sizes, and settings that differ from the default."""
    usual = {field.name: field.default for field in fields(model)}
    usual["noise"] = (1.0,)
    usual["rate"] = 0.2 if model.step == "scaled" else 0.05
    if model.window is not None:
        usual["forgetting"] = forgetting_factor(None, None, model.window)
    always = ("kernel", "inducing", "window")
    values = {name: getattr(model, name) for name in usual}
    return {name: value for name, value in values.items() if name in always or value != usual[name]}


def first_noise(noise: tuple[float, ...], outputs: int) -> np.ndarray:
    """Noise to start from, P."""
    if len(noise) not in (1, outputs):
        raise ValueError(f"noise must be one number or one for each of the {outputs} outputs; got {len(noise)} numbers")
    return np.broadcast_to(np.array(noise), (outputs,))


def forgetting_factor(forgetting: float | None, attenuation: float | None, window: int | None) -> float:
    """λ, given as it is or as the attenuation λ^T at the window's far end (0.1 by default).

    >>> round(forgetting_factor(None, None, 100), 5)
    0.97724
    """
    if forgetting is not None:
        if attenuation is not None:
            raise ValueError(f"give forgetting or attenuation, not both; got {forgetting!r} and {attenuation!r}")
        return checks.between("forgetting", forgetting, 0.0, 1.0)
    if window is None:
        raise ValueError(
            "forgetting must be given when window is None: attenuation is the weight at the window's far end"
        )
    attenuation = checks.between("attenuation", 0.1 if attenuation is None else attenuation, 0.0, 1.0)
    return float(attenuation ** (1.0 / checks.whole("window", window, 1)))


def checked_kernel(kernel: Any) -> Kernel:
    """Return the kernel; refuse anything else."""
    if not isinstance(kernel, Kernel):
        raise ValueError(f"kernel must be one of driftgp.kernels, or a driftgp.kernels.Kernel of yours; got {kernel!r}")
    return kernel


def checked_inducing_inputs(value: ArrayLike | None, most: int) -> tuple[tuple[float, ...], ...] | None:
    """First inducing inputs as the user gives them, at most M rows, or None to have them placed."""
    if value is None:
        return None
    U = checks.inputs("inducing_inputs", value)
    if len(U) > most:
        raise ValueError(f"inducing_inputs must have at most inducing ({most}) rows; got {len(U)}")
    return tuple(map(tuple, U.tolist()))
