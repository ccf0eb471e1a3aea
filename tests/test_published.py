"""The toy stream of the paper: the published runs step by step, and the published figures over twenty seeds."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from driftgp import evaluate
from driftgp.agp import AGP
from driftgp.data import toy_streams
from tests.data_files import published_run

OPTIMISED = True  # see conftest.py

WARM = 100
# As in the published runs; the jitter is 1e-3 as it stands, and not a share of the kernel's variance.
PUBLISHED: dict[str, Any] = {"jitter": 0.0, "absolute_jitter": 1e-3, "relevance": "cholesky", "admission": "published"}


def first_points(count):
    return np.linspace(0.0, 1.0, count)[:, None]


# ---- step by step ------------------------------------------------------------------------------------------


def what_the_reference_kept(state):
    h = state.hyperparameters
    return state.points.count, h.noise[0], h.kernel.lengthscale, h.kernel.variance


@pytest.fixture(scope="module", params=range(5))
def reference(request):
    return published_run(request.param)


@pytest.mark.parametrize(("name", "learn_every"), [("agp", 1), ("fast", 0)])
def test_every_step_is_the_published_one(reference, name, learn_every):
    """Means, deviations, hyperparameters and numbers of inducing points, at all 401 steps."""
    X, y = reference["X"][:, None], reference["y"]
    model = AGP(
        **PUBLISHED,
        inducing=int(reference["M"]),
        window=int(reference["T"]),
        forgetting=float(reference["lam"]),
        threshold=float(reference["perc_th"]),
        rate=float(reference["lr"]),
        inducing_inputs=first_points(10),
        learn_every=learn_every,
    )
    run = evaluate.prequential(model, model.init(X[:WARM], y[:WARM]), X[WARM:], y[WARM:], watch=what_the_reference_kept)
    np.testing.assert_allclose(run.prediction.mean, reference[f"{name}_mean"], atol=1e-6)
    np.testing.assert_allclose(run.prediction.std, reference[f"{name}_std"], atol=1e-6)
    count, *hyperparameters = run.trace
    np.testing.assert_array_equal(count, reference[f"{name}_n_ind"])
    for ours, published in zip(hyperparameters, ("noise", "lengthscale", "variance"), strict=True):
        np.testing.assert_allclose(ours, reference[f"{name}_{published}"][:-1], rtol=1e-5)
    theirs = np.mean((reference[f"{name}_mean"] - y[WARM:]) ** 2)
    assert evaluate.mse(run.prediction, y[WARM:]) == pytest.approx(theirs, rel=0.05)
    assert (int(run.state.skipped), int(run.state.repaired)) == (0, 0)


# ---- twenty seeds ------------------------------------------------------------------------------------------


@cache
def scores(inducing=10, **settings):
    """MSE and two-sigma coverage over twenty seeds, one compiled program."""
    model = AGP(**PUBLISHED | settings, inducing=inducing, inducing_inputs=first_points(inducing))
    X, Y = toy_streams(range(20))

    def one(y):
        state = model.init(jnp.asarray(X[:WARM]), y[:WARM])
        return evaluate.scan(model, state, jnp.asarray(X[WARM:]), y[WARM:], jnp.ones(len(X) - WARM)).prediction

    with jax.enable_x64(True):
        prediction = jax.tree.map(np.asarray, jax.jit(lambda Y: jax.lax.map(one, Y))(Y))
    return evaluate.mse(prediction, Y[:, WARM:]), evaluate.coverage(prediction, Y[:, WARM:], evaluate.TWO_SIGMA)


def test_agp_has_the_published_error_and_coverage():
    mse, coverage = scores()
    assert mse <= 0.062
    assert 0.945 <= coverage <= 0.965


def test_fast_agp_has_the_published_error_and_coverage():
    mse, coverage = scores(learn_every=0)
    assert 0.19 <= mse <= 0.23
    assert 0.69 <= coverage <= 0.75


@pytest.mark.parametrize("inducing", [10, 6])
def test_leave_one_out_is_no_worse_than_the_published_relevance(inducing):
    assert scores(inducing, relevance="leave-one-out")[0] <= scores(inducing)[0]
