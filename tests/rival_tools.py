"""What the tests of the rivals in JAX share."""

from collections.abc import Iterator
from typing import Any

import jax
import pytest

from driftgp.models.model import Model, State, Units


@pytest.fixture(scope="module", autouse=True)
def double_precision(request: pytest.FixtureRequest) -> Iterator[None]:
    """Double precision for calls of the mathematics alone, and programs that are compiled without optimising.

    Most programs of the tests run once or twice: making them quick takes longer than they do. A module whose programs
    run long says `OPTIMISED = True`. Programs are forgotten when a module is through, since each of them maps memory,
    of which a process may map only so many pieces.
    """
    jax.config.update("jax_disable_most_optimizations", not getattr(request.module, "OPTIMISED", False))
    with jax.enable_x64(True):
        yield
    jax.config.update("jax_disable_most_optimizations", False)
    jax.clear_caches()


def with_tree(state: State, tree: Any) -> State:
    """A state that holds another pytree."""
    other = state.copy()
    other.view.put(tree)
    return other


def rescaled(model: Model, state: State, units: Units) -> State:
    """The state in other units."""
    other = state.copy()
    model.rescale(other.view, units)
    return other


def assert_no_failure(state: State) -> None:
    """No factorisation was repaired, no gradient left out."""
    tree: Any = getattr(state.view, "tree", state.view)
    skipped = tree.fit.skipped if hasattr(tree, "fit") else tree.skipped  # a windowed model's are in its fit
    assert int(tree.repaired) == 0
    assert int(skipped) == 0
