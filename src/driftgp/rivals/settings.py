"""The settings of the rivals: each is a field, declared once with its default and what checks it.

>>> import equinox as eqx
>>> class Example(eqx.Module):
...     rate: float = number(0.05)
...
...     def __post_init__(self):
...         check(self)
>>> Example(rate=-1)
Traceback (most recent call last):
ValueError: rate must lie in (0, inf); got -1
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import numpy as np

from driftgp.base import checks
from driftgp.gp.settings import JITTER, forgetting_factor
from driftgp.kernels import positive
from driftgp.rivals.jax_kernels import checked_kernel

__all__ = ["JITTER", "check", "forgetting_factor"]

Reader = Callable[[str, Any], Any]  # from a setting's name and what was given to its value


def read(default: Any, reader: Reader, *, static: bool = False) -> Any:
    """A setting; None, where it is the default, is not read. What is static is compiled into programs."""

    def unless_none(name: str, value: Any) -> Any:
        return None if value is None and default is None else reader(name, value)

    return eqx.field(default=default, static=static, kw_only=True, metadata={"reader": unless_none})


def kernel() -> Any:
    """The kernel, which alone may be given without its name; squared exponential by default."""
    return eqx.field(default=None, metadata={"reader": lambda _, value: checked_kernel(value)})


def check(module: Any) -> None:
    """Read every setting of a new module."""
    for field in dataclasses.fields(module):
        if "reader" in field.metadata:
            setattr(module, field.name, field.metadata["reader"](field.name, getattr(module, field.name)))
    U = getattr(module, "inducing_inputs", None)
    if U is not None and len(U) > module.inducing:
        raise ValueError(f"inducing_inputs must have at most inducing ({module.inducing}) rows; got {len(U)}")


# ---- kinds of settings -----------------------------------------------------------------------------------------------


def whole(default: int | None, least: int) -> Any:
    """A whole number of at least `least`."""
    return read(default, lambda name, value: checks.whole(name, value, least), static=True)


def flag(default: bool) -> Any:
    """Yes or no."""
    return read(default, lambda _, value: bool(value), static=True)


def one_of(default: str, options: tuple[str, ...]) -> Any:
    """One of these words."""
    return read(default, lambda name, value: checks.choice(name, value, options), static=True)


def number(default: float | None, high: float = np.inf, *, open_low: bool = True) -> Any:
    """A number from 0, which counts only where the interval is not open there, to `high`."""
    return read(default, lambda name, value: checks.between(name, value, 0.0, high, open_low=open_low))


def share(default: float | None, *, open_low: bool = False) -> Any:
    """A number from 0 to 1."""
    return number(default, 1.0, open_low=open_low)


def numbers(default: tuple[float, ...], *, open_low: bool = True) -> Any:
    """Several numbers from 0 on."""
    return read(default, lambda name, value: np.array(checks.all_between(name, value, 0.0, np.inf, open_low=open_low)))


def noise(default: float = 1.0) -> Any:
    """Variance of the noise: one number, or one for each output."""
    return read(default, positive)


def inputs() -> Any:
    """First inducing inputs as the user gives them, at most `inducing` rows, or None to have them placed."""
    return read(None, checks.inputs)


def seed() -> Any:
    """A seed as JAX takes it."""
    return read(0, _seed)


def _seed(name: str, value: int) -> np.ndarray:
    array = np.asarray(value)
    if array.ndim or array.dtype.kind not in "iu" or not 0 <= array < 2**32:
        raise ValueError(f"{name} must be a whole number from 0 to 2**32 − 1; got {value!r}")
    return array.astype(np.uint32)
