"""What `import driftgp` brings, and what a user without JAX never meets."""

import subprocess
import sys

import pytest

import driftgp

PROGRAM = """
import sys, numpy as np, driftgp
from driftgp.defaults import recommended
X = np.linspace(0, 1, 40)[:, None]
model = recommended(X, np.sin(6 * X[:, 0]))
online = driftgp.Online(model, model.init(X, np.sin(6 * X[:, 0])))
online.predict(X[0]).interval(0.95)
online.update(X[0], 0.0)
heavy = {"jax", "equinox", "optax", "pandas", "polars", "matplotlib", "scipy.stats", "sklearn"}
print(sorted(heavy & set(sys.modules)))
"""


def test_the_default_model_needs_numpy_and_scipy_alone():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_name_is_listed_and_found():
    assert set(driftgp.__all__) <= set(dir(driftgp))
    assert all(name in driftgp.__all__ for name in dir(driftgp) if not name.startswith("_"))
    for name in driftgp.__all__:
        assert getattr(driftgp, name) is not None


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(AttributeError, match=r"no attribute 'GP'; it has .*AGP"):
        _ = driftgp.GP  # type: ignore[attr-defined]
