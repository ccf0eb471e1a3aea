"""An estimator as one file: its settings, its stream, and the attributes that its library needs; no pickle."""

import os
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from driftgp.base import sealed
from driftgp.base.files import loaded, write_atomically
from driftgp.stream.model_json import described, kernel_of

KIND = "estimator"
T = TypeVar("T")


class StoredEstimator(NamedTuple):
    """What a file holds."""

    settings: dict[str, Any]  # arguments of the estimator
    fitted: Any  # other attributes, for JSON
    stream: Any  # a tree with arrays, or None


def save(path: str | os.PathLike[str], estimator: type, stored: StoredEstimator) -> None:
    """Write an estimator of this class to a file. The file is replaced in one step."""
    tree = {"class": _name(estimator), **stored._asdict(), "settings": described(stored.settings)}
    write_atomically(path, sealed.seal(KIND, tree))


def load(path: str | os.PathLike[str], estimator: type[T], made: Callable[[StoredEstimator], T]) -> T:
    """What is made of what `save` wrote; any other file is refused."""

    def read(data: bytes) -> T:
        tree = sealed.opened(KIND, data)
        try:
            if tree["class"] != _name(estimator):
                raise ValueError(
                    f"estimator is a {tree['class']}, not a {_name(estimator)}: load it with its own class"
                )
            settings = {str(name): kernel_of(value) for name, value in tree["settings"].items()}
            return made(StoredEstimator(settings, tree["fitted"], tree["stream"]))
        except (KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
            raise ValueError(f"estimator is damaged: it holds what no estimator could ({error})") from error

    found: T = loaded(path, read)
    return found


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
