"""Common parts of the adapters, which are `driftgp.sklearn`, `driftgp.river` and so on."""

from driftgp.adapters import files
from driftgp.adapters.configured import Configured
from driftgp.adapters.settings import Settings

__all__ = ["Configured", "Settings", "files"]
