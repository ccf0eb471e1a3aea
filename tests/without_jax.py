"""A process in which JAX is not installed, for the tests of what is said then."""

import sys
from importlib.abc import MetaPathFinder

import pytest

EXTRA = {"jax", "jaxlib", "equinox", "optax"}


class _Absent(MetaPathFinder):
    """Finds none of the packages of the extra, whatever is installed."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname in EXTRA:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def hide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the packages of the extra, and what of the library was imported with their help, until the test is over."""
    for name in list(sys.modules):
        if name.partition(".")[0] in EXTRA or name.startswith("driftgp.rivals."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [_Absent(), *sys.meta_path])
