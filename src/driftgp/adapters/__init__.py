"""Common parts of the adapters, which are `driftgp.sklearn`, `driftgp.river` and so on."""

from driftgp.adapters import files
from driftgp.adapters.agp_start import AGPStart
from driftgp.adapters.configured import Configured

__all__ = ["AGPStart", "Configured", "files"]
