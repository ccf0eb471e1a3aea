"""What tests of several rooms share."""

from collections.abc import Iterator

import jax
import pytest

from driftgp import native


@pytest.fixture(scope="module", autouse=True)
def compiled_in_a_hurry(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compile without optimising, and forget what was compiled when a module is through.

    Most programs of the tests run once or twice: making them quick takes longer than they do. A module whose programs
    run long, or whose numbers must be those of a program as users have it, says `OPTIMISED = True`. And a process may
    map only so many pieces of memory (65 530 on Linux), of which every compiled program takes some.
    """
    jax.config.update("jax_disable_most_optimizations", not getattr(request.module, "OPTIMISED", False))
    yield
    jax.config.update("jax_disable_most_optimizations", False)
    jax.clear_caches()


@pytest.fixture
def by_jax(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """AGP as it runs where there is no C++ library."""
    monkeypatch.setattr(native, "library", lambda: None)
    jax.clear_caches()
    yield
    jax.clear_caches()


@pytest.fixture(scope="module")
def x64() -> Iterator[None]:
    """Double precision for tests that call the mathematics without a model's shell around it.

    Modules ask for it with a `usefixtures` mark; it is left again with the module, so that no other test can depend on
    it.
    """
    with jax.enable_x64(True):
        yield
