"""A model's settings as JSON, to be written down, compared, and turned into the model again.

    {"is": "AGP", "kernel": {"is": "SE", "lengthscale": 0.5, "variance": 1.0}, "noise": [1.0], "inducing": 20, …}

Reading uses a fixed table of the library's own classes, each of which checks its settings. So nothing is imported or
executed because a file names it. Other classes (a user's own kernel, a rival) are described by their full names, and
can only be compared with a given model.
"""

import functools
import hashlib
import json
import types
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from inspect import isabstract
from typing import Any

import numpy as np

from driftgp import kernels, members, wrappers
from driftgp.gp.agp import AGP
from driftgp.kernels import Kernel
from driftgp.kernels.check import Numerical
from driftgp.models.model import Model
from driftgp.models.monitor import Monitor
from driftgp.wrappers import Bank, Calibrated, Standardize

# Arrays of more entries than this, in settings of classes outside the table, are known by a digest.
_WRITTEN_OUT = 64
# Limits for reading: number of values, and depth of nesting.
_MOST, _DEEPEST = 1_000_000, 40


class Unlisted(ValueError):
    """A part of a model that is not in the table: only the code that made it can make it again."""


# ---- to JSON ---------------------------------------------------------------------------------------------------------


def described(value: Any) -> Any:
    """Describe a model, a kernel or any other setting as nested dicts, lists, strings and numbers.

    >>> described(kernels.SE(lengthscale=2.0))
    {'is': 'SE', 'lengthscale': 2.0, 'variance': 1.0}
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic) or hasattr(value, "__array__"):
        return _array(np.asarray(value))
    if is_dataclass(value) and not isinstance(value, type):
        named = {field.name: described(getattr(value, field.name)) for field in fields(value)}
        return {"is": _class_name(type(value)), **named}
    if isinstance(value, dict):
        return {str(key): described(value[key]) for key in value}
    if isinstance(value, (tuple, list)):
        return [described(entry) for entry in value]
    return _function(value)


def plain(model: Model) -> Any:
    """A model's description as it is when it comes back from a file: JSON's own types and nothing else."""
    return json.loads(json.dumps(described(model)))


def _array(array: np.ndarray) -> Any:
    if array.size <= _WRITTEN_OUT:
        return array.tolist()
    digest = hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=16).hexdigest()
    return {"is": str(array.dtype), "shape": list(array.shape), "digest": digest}


def _function(value: Any) -> Any:
    """A function, known by its name and by what it has closed over."""
    if isinstance(value, functools.partial):
        return {"is": "partial", "of": described(value.func), "args": described([value.args, value.keywords])}
    if isinstance(value, types.FunctionType):
        closure = [described(cell.cell_contents) for cell in value.__closure__ or ()]
        return {"is": _full_name(value), "closure": closure} if closure else _full_name(value)
    return _full_name(value if callable(value) and hasattr(value, "__qualname__") else type(value))


def _class_name(kind: type) -> str:
    """The name alone for a class of the table; others have their module before it, and so a dot."""
    return kind.__name__ if _TABLE.get(kind.__name__) is kind else _full_name(kind)


def _full_name(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"


# ---- and back --------------------------------------------------------------------------------------------------------


def rebuilt(stored: Any) -> Model:
    """The model of a description from JSON; refuses anything else.

    >>> rebuilt(json.loads(json.dumps(described(wrappers.Within(AGP(inducing=3), margin=0.5))))).margin
    0.5
    """
    _limit(stored)
    model = _built(stored)
    if not isinstance(model, Model):
        raise ValueError(f"settings must describe a model; they describe {_short(stored)}")
    difference = first_difference(stored, plain(model))
    if difference is not None:  # a value that a class takes for another one
        raise ValueError(f"settings are damaged: {difference}")
    return model


def kernel_of(stored: Any) -> Any:
    """A kernel from its description; anything else as it is."""
    if not isinstance(stored, dict):
        return stored
    _limit(stored)
    kernel = _built(stored)
    if not isinstance(kernel, Kernel):
        raise ValueError(f"settings must describe a kernel; they describe {_short(stored)}")
    return kernel


def model_of(what: str, stored: Any, given: Model | None) -> Model:
    """The model of a checkpoint or a fleet (`what`): the given one, if the description is its own, or else rebuilt."""
    if given is not None:
        difference = first_difference(stored, plain(given))
        if difference is not None:
            raise ValueError(f"{what} is of another model: {difference}")
        return given
    try:
        return rebuilt(stored)
    except Unlisted as error:
        raise ValueError(f"{what} cannot be read without its model: {error}") from error
    except ValueError as error:
        raise ValueError(f"{what} is damaged: {error}") from error


def _limit(stored: Any) -> None:
    """Refuse a description that is nested too deep, or too large, before any object is made."""
    level, count = [stored], 0
    for _ in range(_DEEPEST):
        level = [inner for value in level for inner in _inside(value)]
        count += len(level)
        if count > _MOST:
            raise ValueError(f"settings must hold at most {_MOST} values")
    if level:
        raise ValueError(f"settings must be nested at most {_DEEPEST} deep")


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _built(stored: Any) -> Any:
    if isinstance(stored, list):
        return [_built(entry) for entry in stored]
    if not isinstance(stored, dict):
        return stored
    name = stored.get("is")
    kind = _TABLE.get(name) if isinstance(name, str) else None
    if kind is None:
        raise Unlisted(f"{_short(stored)} is not a part of driftgp itself: give the model that it is a setting of")
    settings = {key: _built(value) for key, value in stored.items() if key != "is"}
    try:
        return _made(kind, settings)
    except Unlisted:
        raise
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ValueError(f"settings of {name} are damaged: {error}") from error


def _made(kind: Any, settings: dict[str, Any]) -> Any:
    """One part, by its own constructor."""
    names = {field.name for field in fields(kind)}
    if set(settings) != names:
        found = ", ".join(sorted(settings))
        raise ValueError(f"they must be {', '.join(sorted(names))}; got {found}, which may be of another release")
    for name, value in settings.items():
        if name in _KINDS and not isinstance(value, _KINDS[name]):
            raise ValueError(f"{name} must be a {_KINDS[name].__name__}; got {_short(value)}")
    build = _BUILDERS.get(kind)
    return kind(**settings) if build is None else build(settings)


def _standardize(settings: dict[str, Any]) -> Standardize:
    forgetting = settings["forgetting"]
    return Standardize(settings["model"], adapt=False if forgetting is None else forgetting)


def _calibrated(settings: dict[str, Any]) -> Calibrated:
    """Made from the stored logarithms of the weights, so that they are the same to the last bit."""
    log_prior = tuple(map(float, settings.pop("log_prior")))
    with np.errstate(over="ignore"):
        made = Calibrated(**settings, prior=np.exp(log_prior).tolist())
    if not np.allclose(made.log_prior, log_prior, rtol=0.0, atol=1e-9):
        raise ValueError(f"log_prior must be logarithms of weights that sum to 1; got {log_prior}")
    object.__setattr__(made, "log_prior", log_prior)
    return made


def _bank(settings: dict[str, Any]) -> Bank:
    """Made from the stored weights, so that they are the same to the last bit."""
    prior = tuple(map(float, settings.pop("prior")))
    made = Bank(**settings)
    if len(made.prior) != len(prior) or not (np.isclose(sum(prior), 1.0) and min(prior) >= 0.0):
        raise ValueError(f"prior must be weights of {len(made.prior)} voices that sum to 1; got {prior}")
    object.__setattr__(made, "prior", prior)
    return made


# All that a file can describe: every kernel, member and wrapper of the library, and three parts of other rooms.
_TABLE: dict[str, Any] = {
    name: part
    for room in (kernels, members, wrappers)
    for name, part in vars(room).items()
    if name in room.__all__ and is_dataclass(part) and not isabstract(part)
} | {part.__name__: part for part in (AGP, Monitor, Numerical)}
# The type of each setting, by its name, for all parts.
_KINDS: dict[str, type] = {
    "model": Model,
    "monitor": Monitor,
    **dict.fromkeys(("kernel", "first", "second", "formula"), Kernel),
}
# Constructors whose arguments are not the fields.
_BUILDERS: dict[Any, Callable[[dict[str, Any]], Any]] = {
    Standardize: _standardize,
    Bank: _bank,
    Calibrated: _calibrated,
}


# ---- comparison ------------------------------------------------------------------------------------------------------


def first_difference(stored: Any, given: Any, where: str = "model") -> str | None:
    """Name the first place where two descriptions differ, or None.

    >>> first_difference({"window": 90}, {"window": 100})
    'model.window is 90 there and 100 here'
    """
    if isinstance(stored, dict) and isinstance(given, dict):
        return _first(
            first_difference(stored.get(name), given.get(name), where if name == "is" else f"{where}.{name}")
            for name in [*given, *(name for name in stored if name not in given)]
        )
    if isinstance(stored, list) and isinstance(given, list) and len(stored) == len(given):
        pairs = enumerate(zip(stored, given, strict=True))
        return _first(first_difference(one, other, f"{where}[{i}]") for i, (one, other) in pairs)
    both_missing = stored != stored and given != given  # NaN
    same = type(stored) is type(given) or {type(stored), type(given)} == {int, float}
    return None if both_missing or (same and stored == given) else _differ(where, stored, given)


def _differ(where: str, stored: Any, given: Any) -> str:
    return f"{where} is {_short(stored)} there and {_short(given)} here"


def _first(differences: Iterable[str | None]) -> str | None:
    return next((difference for difference in differences if difference is not None), None)


def _short(value: Any) -> str:
    if isinstance(value, dict) and isinstance(value.get("is"), str):
        value = value["is"]
    text = value if isinstance(value, str) and "." in value else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
