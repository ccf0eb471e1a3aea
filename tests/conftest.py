"""What tests of several rooms share."""

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture(scope="module")
def x64() -> Iterator[None]:
    """Double precision for tests that call the mathematics without a model's shell around it.

    Modules ask for it with a `usefixtures` mark; it is left again with the module, so that no other test can depend on
    it.
    """
    with jax.enable_x64(True):
        yield
