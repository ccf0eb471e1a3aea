"""What the adapters share."""

import subprocess
import sys

import numpy as np
import pytest

from driftgp.adapters import Settings, Stream
from driftgp.kernels import SE


def test_importing_driftgp_imports_no_other_library():
    others = "sklearn river skpro sktime pandas polars scipy matplotlib typer"
    program = f"import sys, driftgp; print(*(set(sys.modules) & set({others!r}.split())))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert set(found) <= {"scipy"}  # JAX itself brings SciPy


def test_a_kernel_with_a_lengthscale_for_each_feature_gets_just_as_many_columns():
    settings = Settings(kernel=SE([1.0, 2.0, 3.0]), inducing=4, window=12, warmup_iterations=2)
    X = np.random.default_rng(0).normal(size=(12, 3))
    stream = Stream(settings, X, X[:, 0])
    assert stream.room == 3
    assert stream.predict(X[:2]).mean.shape == (2,)


def test_settings_reach_the_model():
    model = Settings(inducing=7, window=30, learn_every=5, forgetting=0.9, standardize=False).model(2)
    assert (model.inducing, model.window, model.learn_every, float(model.forgetting)) == (7, 30, 5, 0.9)
    with pytest.raises(ValueError, match="kernel"):
        Settings(kernel="nonsense").model(2)
