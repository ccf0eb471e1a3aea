"""A model's settings in a form that can be written down and compared: what a checkpoint knows its model by."""

import functools
import hashlib
import types
from dataclasses import Field, fields, is_dataclass
from typing import Any

import jax
import numpy as np

# Arrays of more entries than this (given inducing inputs) are known by a digest.
_WRITTEN_OUT = 64


def portrait(value: Any) -> Any:
    """Describe a model, a kernel or any other setting as nested dicts, lists, strings and numbers.

    >>> from driftgp.kernels import SE
    >>> portrait(SE(lengthscale=2.0))["lengthscale"]
    2.0
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (np.ndarray, np.generic, jax.Array)):
        return _array(np.asarray(value))
    if is_dataclass(value) and not isinstance(value, type):
        named = {field.name: getattr(value, field.name) for field in fields(value) if not _absent(field, value)}
        return {"is": _name(type(value)), **{name: portrait(setting) for name, setting in named.items()}}
    if isinstance(value, dict):
        return {str(key): portrait(value[key]) for key in value}
    if isinstance(value, (tuple, list)):
        names = getattr(value, "_fields", None)
        entries = [portrait(entry) for entry in value]
        return entries if names is None else {"is": _name(type(value)), **dict(zip(names, entries, strict=True))}
    return _function(value)


def _absent(field: Field[Any], value: Any) -> bool:
    """A setting that came later and is off: what was known without it stays known."""
    return bool(field.metadata.get("later")) and getattr(value, field.name) is None


def _array(array: np.ndarray) -> Any:
    if array.size <= _WRITTEN_OUT:
        return array.tolist()
    digest = hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=16).hexdigest()
    return {"is": str(array.dtype), "shape": list(array.shape), "digest": digest}


def _function(value: Any) -> Any:
    """A function, known by its name and by what it has closed over: an optimiser holds its rate there."""
    if isinstance(value, functools.partial):
        return {"is": "partial", "of": portrait(value.func), "args": portrait([value.args, value.keywords])}
    if isinstance(value, types.FunctionType):
        closure = [portrait(cell.cell_contents) for cell in value.__closure__ or ()]
        return {"is": _name(value), "closure": closure} if closure else _name(value)
    return _name(value if callable(value) and hasattr(value, "__qualname__") else type(value))


def _name(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"


def first_difference(stored: Any, given: Any, where: str = "model") -> str | None:
    """Name the first place where two portraits differ, or None.

    >>> first_difference({"window": 90}, {"window": 100})
    'model.window is 90 there and 100 here'
    """
    if isinstance(stored, dict) and isinstance(given, dict):
        return _first(
            first_difference(stored.get(name), given.get(name), where if name == "is" else f"{where}.{name}")
            for name in [*given, *(set(stored) - set(given))]
        )
    if isinstance(stored, list) and isinstance(given, list) and len(stored) == len(given):
        pairs = enumerate(zip(stored, given, strict=True))
        return _first(first_difference(one, other, f"{where}[{i}]") for i, (one, other) in pairs)
    return None if stored == given else f"{where} is {_short(stored)} there and {_short(given)} here"


def _first(differences: Any) -> str | None:
    return next((difference for difference in differences if difference is not None), None)


def _short(value: Any) -> str:
    if isinstance(value, dict) and isinstance(value.get("is"), str):
        return str(value["is"])
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
