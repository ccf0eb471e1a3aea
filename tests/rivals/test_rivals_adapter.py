"""What makes a function of JAX a model: records, the engine that takes many rows, kernels in both worlds."""

import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="the rivals need JAX: pip install 'driftgp[rivals]'")

import jax
import jax.numpy as jnp

from driftgp import AGP, prequential
from driftgp.contract.records import entries
from driftgp.engine import Batch, describe, engine
from driftgp.kernels import SE, Kernel, Linear, Matern32, library
from driftgp.kernels.check import check_kernel
from driftgp.rivals import KRLST, OSGP, SVGP, WISKI, ExactWindow, JaxKernel, programs, scan
from driftgp.wrappers import Standardize
from tests import without_jax
from tests.rival_tools import double_precision

__all__ = ["double_precision"]  # a fixture

RNG = np.random.default_rng(3)
X = RNG.uniform(size=(24, 2))
Y = np.sin(5.0 * X[:, 0]) + 0.1 * RNG.normal(size=24)
Y2 = np.stack([Y, 3.0 - Y**2], 1)
SMALL: dict[str, Any] = {"inducing": 3, "noise": 0.1, "warmup_iterations": 2}
MODEL = OSGP(SE(0.5), **SMALL)
ROWS = (X[12:], Y[12:, None], np.ones(12))
FIRST = np.array([0])


@pytest.fixture(scope="module")
def state(double_precision):
    return MODEL.init(X[:12], Y[:12])


# ---- records -----------------------------------------------------------------------------------------------


def test_a_record_has_a_field_for_each_leaf():
    model = SVGP(SE([0.5, 0.8]), window=12, batch=4, **SMALL)
    layout = {entry.path: (entry.kind, entry.numbers) for entry in entries(model.record_dtype(2, 3))}
    assert layout["window_X"] == ("f8", 24)
    assert layout["window_cursor"] == ("i8", 1)
    assert layout["fit_hyperparameters_kernel_lengthscale"] == ("f8", 2)
    assert layout["fit_hyperparameters_noise"] == ("f8", 3)
    assert layout["fit_rest_0"] == ("i8", 3)  # which slots are in use
    assert layout["fit_rest_3"] == ("i8", 2)  # the words of the random key


def test_a_state_is_the_pytree_that_it_was_made_from(state):
    tree = state.view.tree
    assert tree.samples.dtype == np.int32
    assert tree.points.used.dtype == bool
    np.testing.assert_array_equal(tree.posterior.C, state.posterior_C)
    other = state.copy()
    other.view.put(jax.tree.map(np.zeros_like, tree))
    other.view.put(tree)
    assert other.record.tobytes() == state.record.tobytes()


def test_fields_and_branches_of_the_pytree_are_attributes(state):
    assert state.samples == 0
    assert state.hyperparameters.noise.shape == (1,)
    assert state.points.U.shape == (3, 2)
    with pytest.raises(AttributeError, match="nothing"):
        _ = state.nothing


@pytest.mark.parametrize(("field", "value"), [("points_U", np.nan), ("points_used", 2), ("samples", 1 << 40)])
def test_a_state_that_no_step_could_have_left_is_refused(state, field, value):
    MODEL.check(state.view)
    damaged = state.copy()
    damaged.record[field] = value
    with pytest.raises(ValueError, match=f"{field} must hold"):
        MODEL.check(damaged.view)


def test_a_cursor_outside_the_window_is_refused():
    model = ExactWindow(SE(0.5), window=8, warmup_iterations=0)
    damaged = model.init(X[:0], Y[:0])
    damaged.record["window_cursor"] = 8
    with pytest.raises(ValueError, match=r"window_cursor must lie in \[0, 8\)"):
        model.check(damaged.view)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (OSGP(SE([0.5, 0.5, 0.5])), "lengthscale must have one entry or one for each of the 2 inputs"),
        (OSGP(noise=[0.1, 0.2, 0.3]), "noise must be one number or one for each of the 1 outputs"),
        (OSGP(inducing_inputs=np.zeros((2, 3))), "inducing_inputs must have 2 columns"),
    ],
)
def test_settings_that_do_not_fit_the_data_are_refused(model, message):
    with pytest.raises(ValueError, match=message):
        model.init(X[:12], Y[:12])


def test_models_are_equal_by_their_settings():
    same = OSGP(SE(0.5), **SMALL)
    assert same == MODEL
    assert hash(same) == hash(MODEL)
    for other in (OSGP(SE(0.6), **SMALL), OSGP(Matern32(0.5), **SMALL), OSGP(SE(0.5), **SMALL, restart=False), AGP()):
        assert other != MODEL


def test_a_pickled_model_and_its_state_go_on(state):
    model, restored = pickle.loads(pickle.dumps((MODEL, state)))
    one, other = model.update(restored, X[12], Y[12]), MODEL.update(state, X[12], Y[12])
    assert one.record.tobytes() == other.record.tobytes()


# ---- the engine --------------------------------------------------------------------------------------------


def test_a_rival_brings_its_engine():
    assert describe(MODEL).startswith("scan")
    assert describe(WISKI(bounds=[[0.0, 1.0], [0.0, 1.0]])).startswith("scan")
    assert engine(MODEL, 2, 1).kind == "scan"


def test_many_rows_in_one_call_are_one_after_another(state):
    """Bit for bit, whether a row is predicted before it is learned from or after the one before it."""
    at_once, one_by_one, ahead = (state.copy() for _ in range(3))
    work = MODEL.engine(2, 1)
    made = work.run(at_once.record.reshape(1), FIRST, np.array([12]), Batch(*ROWS))
    single = work.single(one_by_one.record)
    for i, (x, y, elapsed) in enumerate(zip(*ROWS, strict=True)):
        assert single.predict(x).tobytes() == made[i : i + 1].tobytes()
        single.learn(x, y, elapsed)
    assert at_once.record.tobytes() == one_by_one.record.tobytes()
    following = work.run(
        ahead.record.reshape(1), FIRST, np.array([11]), Batch(*(array[:11] for array in ROWS), ROWS[0][1:])
    )
    assert following.tobytes() == made[1:].tobytes()


def test_rows_without_targets_are_predicted_and_change_nothing(state):
    before = state.record.tobytes()
    made = MODEL.engine(2, 1).run(state.record.reshape(1), FIRST, np.array([12]), Batch(ROWS[0]))
    assert state.record.tobytes() == before
    np.testing.assert_array_equal(made["mean"][:, 0], MODEL.predict(state, ROWS[0]).mean)


def test_each_state_of_a_stack_has_its_own_rows(state):
    alone = [state.copy(), state.copy()]
    stack = np.stack([state.record, state.record, state.record])
    work = MODEL.engine(2, 1)
    made = work.run(stack, np.array([2, 0]), np.array([5, 12]), Batch(*ROWS))
    for one, slot, rows in zip(alone, (2, 0), (slice(0, 5), slice(5, 12)), strict=True):
        count = np.array([rows.stop - rows.start])
        expected = work.run(one.record.reshape(1), FIRST, count, Batch(*(array[rows] for array in ROWS)))
        assert made[rows].tobytes() == expected.tobytes()
        assert stack[slot].tobytes() == one.record.tobytes()
    assert stack[1].tobytes() == state.record.tobytes()


def test_a_long_run_is_made_in_pieces_that_change_nothing(state, monkeypatch):
    whole = prequential(MODEL, state, X[12:], Y[12:])
    monkeypatch.setattr(scan, "_ROWS", 5)
    pieces = prequential(MODEL, state, X[12:], Y[12:])
    assert whole.prediction.records.tobytes() == pieces.prediction.records.tobytes()
    assert whole.state.record.tobytes() == pieces.state.record.tobytes()


def test_quantiles_are_those_of_the_law(state):
    prediction = MODEL.predict(state, X[:3])
    for q in (0.1, 0.5, 0.99):
        np.testing.assert_allclose(prediction.quantile(q), prediction.law.quantile(q), rtol=1e-12)


def test_settings_do_not_compile_anew(state):
    def use(model):
        model.init(X[:12], Y[:12])
        model.predict(state, X[:3])
        model.update(state, X[12], Y[12])
        prequential(model, state, X[12:20], Y[12:20])

    use(MODEL)

    def compiled():
        jitted = (programs.begin, programs.look.small, programs.follow.small)
        return [program._cache_size() for program in jitted]

    before = compiled()
    use(OSGP(SE(0.7, 1.3), **SMALL | {"noise": 0.3}, rate=0.01, novelty=0.1))
    assert compiled() == before


def test_wrappers_hold_a_rival():
    model = Standardize(ExactWindow(SE(1.0), window=8, warmup_iterations=0), adapt=0.9)
    run = prequential(model, model.init(X[:12], 100.0 + 50.0 * Y[:12]), X[12:], 100.0 + 50.0 * Y[12:])
    assert np.all(np.isfinite(run.prediction.mean) & (run.prediction.variance > 0.0))
    assert np.mean((run.prediction.mean - 100.0 - 50.0 * Y[12:]) ** 2) < np.var(50.0 * Y)


# ---- without JAX -------------------------------------------------------------------------------------------


def test_without_jax_one_sentence_says_what_to_install(monkeypatch):
    without_jax.hide(monkeypatch)
    from driftgp import rivals

    with pytest.raises(ImportError, match=r'^OSGP needs \w+: pip install "driftgp\[rivals\]"$'):
        _ = rivals.OSGP


def test_a_name_that_is_not_there_is_no_question_of_what_is_installed():
    from driftgp import rivals

    with pytest.raises(AttributeError, match="Nonsense"):
        _ = rivals.Nonsense
    assert "OSGP" in dir(rivals)


# ---- kernels in both worlds --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Cosine(Kernel):
    """A kernel of the user's own: variance · Π cos(x_d − z_d)."""

    variance: Any = 1.0

    def gram(self, X, Z):
        xp = library(X, Z)
        return self.variance * xp.prod(xp.cos(X[:, None, :] - Z[None, :, :]), axis=-1)

    def diagonal(self, X):
        return self.variance * library(X, self.variance).ones(X.shape[0])

    def pull(self, A, X, Z):
        return np.array([np.sum(A * self.gram(X, Z))])

    def pull_inputs(self, A, X, Z):
        raise NotImplementedError

    def pull_diagonal(self, a, X):
        return np.array([np.sum(a) * self.variance])


def test_a_kernel_of_ones_own_works_in_a_rival():
    model = ExactWindow(Linear() + Cosine(), window=12, noise=0.1, warmup_iterations=3)
    state = model.update(model.init(X[:12], Y[:12]), X[12:], Y[12:])
    parameters = state.hyperparameters.kernel
    assert parameters.second.variance != 1.0
    Kxx, Kxs = parameters(state.window.X, state.window.X), parameters(state.window.X, X[:3])
    W = np.diag(1.0 / state.window.w)
    expected = Kxs.T @ np.linalg.solve(Kxx + state.hyperparameters.noise * W, state.window.y)[:, 0]
    np.testing.assert_allclose(model.predict(state, X[:3]).mean, expected, rtol=1e-6, atol=1e-9)


def tinygps():
    kernels = pytest.importorskip("tinygp", reason="tinygp is not installed").kernels
    return [
        kernels.ExpSquared(0.5),
        2.0 * kernels.ExpSquared(0.5) + 1.5 * kernels.RationalQuadratic(scale=2.0, alpha=0.7),
        kernels.ExpSineSquared(scale=1.5, gamma=0.6) * kernels.Matern52(scale=0.8),
    ]


@pytest.mark.parametrize("i", range(3))
def test_the_derivative_of_a_jax_kernel_is_that_of_differences(i):
    kernel = JaxKernel(tinygps()[i])
    check_kernel(kernel, X[:4], X[4:9])
    check_kernel(kernel + SE(0.3), X[:4], X[4:9])
    np.testing.assert_array_equal(kernel.at(2.0 * kernel.theta).theta, 2.0 * kernel.theta)
    assert kernel == JaxKernel(tinygps()[i])
    assert kernel != kernel.at(2.0 * kernel.theta)


def test_a_jax_kernel_is_the_same_model_as_the_cores_own(monkeypatch):
    monkeypatch.setenv("DRIFTGP_ENGINE", "reference")
    tinygp = pytest.importorskip("tinygp", reason="tinygp is not installed")
    theirs = JaxKernel(1.5 * tinygp.kernels.ExpSquared(0.5))
    for make in (
        lambda kernel: AGP(kernel, inducing=4, window=12, warmup_iterations=3),
        lambda kernel: KRLST(kernel, dictionary=4, jitter=1e-3, warmup_iterations=3),
        lambda kernel: OSGP(kernel, **SMALL),
    ):
        ours, other = (make(kernel) for kernel in (SE(0.5, 1.5), theirs))
        one, two = (
            prequential(model, model.init(X[:12], Y[:12]), X[12:], Y[12:]).prediction for model in (ours, other)
        )
        np.testing.assert_allclose(one.mean, two.mean, rtol=1e-6)
        np.testing.assert_allclose(one.variance, two.variance, rtol=1e-6)


def test_a_rival_takes_a_kernel_of_tinygp_as_it_is():
    tinygp = pytest.importorskip("tinygp", reason="tinygp is not installed")
    one, two = (
        OSGP(kernel, **SMALL) for kernel in (tinygp.kernels.ExpSquared(0.5), JaxKernel(tinygp.kernels.ExpSquared(0.5)))
    )
    means = [model.predict(model.init(X[:12], Y[:12]), X[:3]).mean for model in (one, two)]
    np.testing.assert_array_equal(*means)


def test_what_is_no_kernel_is_refused():
    tinygp = pytest.importorskip("tinygp", reason="tinygp is not installed")
    for make in (JaxKernel, OSGP):
        with pytest.raises(ValueError, match="kernel must be a kernel"):
            make(3.0)
        with pytest.raises(ValueError, match="kernel must have positive parameters"):
            make(tinygp.kernels.ExpSquared(-0.5))

    @jax.tree_util.register_dataclass
    @dataclass(frozen=True)
    class Wrong:
        scale: float = 1.0

        def __call__(self, X, Z=None):
            return jnp.ones(len(X))

    with pytest.raises(ValueError, match="kernel must return N×K for k"):
        AGP(JaxKernel(Wrong())).init(X, Y)
    with pytest.raises(ValueError, match="kernel must take 2 inputs"):
        AGP(JaxKernel(tinygp.kernels.ExpSquared(np.array([0.5, 0.5, 0.5])))).init(X, Y)


def test_kernels_without_rows_are_empty():
    kernel, none = JaxKernel(tinygps()[1]), np.zeros((0, 2))
    assert kernel.gram(none, X).shape == (0, 24)
    assert kernel.diagonal(none).shape == (0,)
    for pulled in (kernel.pull(np.zeros((0, 24)), none, X), kernel.pull_diagonal(np.zeros(0), none)):
        np.testing.assert_array_equal(pulled, np.zeros(kernel.size))
    assert kernel.pull_inputs(np.zeros((0, 24)), none, X).shape == (0, 2)


def test_all_kernels_of_the_core_have_the_derivative_of_jax():
    """The closed forms against automatic differentiation of the same formula."""
    from driftgp.rivals.jax_kernels import register

    for kernel in (SE([0.5, 0.8], 1.7), Matern32(0.6, 2.0) * Linear([0.3, 2.0])):
        register(kernel)
        A = RNG.normal(size=(4, 5))
        slopes = jax.grad(lambda kernel, A=A: jnp.sum(A * kernel(jnp.asarray(X[:4]), jnp.asarray(X[4:9]))))(kernel)
        by_log = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(slopes)]) * kernel.theta
        np.testing.assert_allclose(kernel.pull(A, X[:4], X[4:9]), by_log, rtol=1e-10)
