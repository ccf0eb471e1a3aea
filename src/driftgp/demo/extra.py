"""The rivals, imported when one of them is built: most need JAX, which is in the extra `rivals`."""

from collections.abc import Callable
from typing import Any

from driftgp import rivals
from driftgp.models.model import Model


def rival(name: str) -> Callable[..., Model]:
    """The class of this name in `driftgp.rivals`, as a function of its settings."""

    def build(**settings: Any) -> Model:
        model: Model = _found(name)(**settings)
        return model

    return build


def _found(name: str) -> Any:
    try:
        return getattr(rivals, name)
    except ImportError as missing:
        if not isinstance(missing.__cause__, ModuleNotFoundError):  # a mistake of ours
            raise
        # a sentence that says what to install, for people who asked for a table
        raise ValueError(f"{missing}, or name methods that do not need it") from missing
