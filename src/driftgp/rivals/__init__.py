"""The methods that the paper compares with, and some that it left out: each obeys the model contract.

They are written in JAX, which `pip install "driftgp[rivals]"` brings; each is imported when it is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from driftgp.rivals.basis_ensemble import BasisEnsemble
    from driftgp.rivals.exact_window import ExactWindow
    from driftgp.rivals.fitc import DTC, FITC
    from driftgp.rivals.jax_kernel import JaxKernel
    from driftgp.rivals.krlst import KRLST
    from driftgp.rivals.osgp import OSGP
    from driftgp.rivals.osgp_reference import ReferenceOSGP
    from driftgp.rivals.state_space import StateSpaceGP
    from driftgp.rivals.svgp import SVGP
    from driftgp.rivals.vsi import AGPVSI, VSI, WVSGP
    from driftgp.rivals.wiski import WISKI

__all__ = [
    "AGPVSI",
    "DTC",
    "FITC",
    "KRLST",
    "OSGP",
    "SVGP",
    "VSI",
    "WISKI",
    "WVSGP",
    "BasisEnsemble",
    "ExactWindow",
    "JaxKernel",
    "ReferenceOSGP",
    "StateSpaceGP",
]

_MODULES = {
    "AGPVSI": "vsi",
    "BasisEnsemble": "basis_ensemble",
    "DTC": "fitc",
    "ExactWindow": "exact_window",
    "FITC": "fitc",
    "JaxKernel": "jax_kernel",
    "KRLST": "krlst",
    "OSGP": "osgp",
    "ReferenceOSGP": "osgp_reference",
    "SVGP": "svgp",
    "StateSpaceGP": "state_space",
    "VSI": "vsi",
    "WISKI": "wiski",
    "WVSGP": "vsi",
}
_EXTRA = {"jax", "jaxlib", "equinox", "optax"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'driftgp.rivals' has no attribute {name!r}; it has {', '.join(__all__)}")
    try:
        module = import_module(f"driftgp.rivals.{_MODULES[name]}")
    except ModuleNotFoundError as error:
        if error.name in _EXTRA:
            raise ImportError(f'{name} needs {error.name}: pip install "driftgp[rivals]"') from error
        raise
    return getattr(module, name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
