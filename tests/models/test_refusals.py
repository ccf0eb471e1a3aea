"""Bad input gets a ValueError that names the argument, what was given and what is expected, at the earliest moment."""

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from driftgp.base import checks
from driftgp.gp.agp import AGP, FastAGP
from driftgp.kernels import SE

X = np.random.default_rng(0).uniform(size=(12, 2))
Y = X[:, 0]
SMALL: dict[str, Any] = {"inducing": 4, "window": 12, "warmup_iterations": 0}


# ---- settings ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"forgetting": 0.0}, r"forgetting must lie in \(0, 1\]; got 0.0"),
        ({"forgetting": 1.01}, r"forgetting must lie in \(0, 1\]; got 1.01"),
        ({"forgetting": -0.5}, r"forgetting must lie in \(0, 1\]; got -0.5"),
        ({"forgetting": np.nan}, r"forgetting must lie in \(0, 1\]; got nan"),
        ({"forgetting": "0.9"}, r"forgetting must hold real numbers; got dtype <U3"),
        ({"forgetting": 0.9j}, r"forgetting must hold real numbers; got dtype complex128"),
        ({"forgetting": {}}, r"forgetting must hold real numbers; got dtype object"),
        ({"forgetting": [0.9, 1.0]}, r"forgetting must be one number; got \[0.9, 1.0\]"),
        ({"attenuation": 0.0}, r"attenuation must lie in \(0, 1\]; got 0.0"),
        ({"attenuation": 2.0}, r"attenuation must lie in \(0, 1\]; got 2.0"),
        ({"attenuation": 0.1, "forgetting": 0.9}, "give forgetting or attenuation, not both; got 0.9 and 0.1"),
        ({"noise": 0.0}, r"noise must lie in \(0, inf\); got 0.0"),
        ({"noise": -1.0}, r"noise must lie in \(0, inf\); got -1.0"),
        ({"noise": np.inf}, r"noise must lie in \(0, inf\); got inf"),
        ({"noise": None}, r"noise must hold real numbers; got dtype object"),
        ({"inducing": 0}, "inducing must be a whole number of at least 1; got 0"),
        ({"inducing": 2.5}, "inducing must be a whole number of at least 1; got 2.5"),
        ({"inducing": True}, "inducing must be a whole number of at least 1; got True"),
        ({"inducing": 13, "window": 12}, r"inducing must be at most window \(12\); got 13"),
        ({"window": 0}, "window must be a whole number of at least 1; got 0"),
        ({"window": "100"}, "window must be a whole number of at least 1; got '100'"),
        ({"window": None}, "window must be a number when learn_every is 1"),
        ({"window": None, "learn_every": 0}, "forgetting must be given when window is None"),
        ({"learn_every": -1}, "learn_every must be a whole number of at least 0; got -1"),
        ({"iterations": 0}, "iterations must be a whole number of at least 1; got 0"),
        ({"warmup_iterations": -3}, "warmup_iterations must be a whole number of at least 0; got -3"),
        ({"rate": -0.05}, r"rate must lie in \(0, inf\); got -0.05"),
        ({"rate": np.inf}, r"rate must lie in \(0, inf\); got inf"),
        ({"warmup_rate": -0.05}, r"warmup_rate must lie in \(0, inf\); got -0.05"),
        ({"step": "adam"}, "step must be one of 'fresh', 'carried', 'scaled'; got 'adam'"),
        ({"threshold": -1e-4}, r"threshold must lie in \[0, 1\]; got -0.0001"),
        ({"threshold": 1.5}, r"threshold must lie in \[0, 1\]; got 1.5"),
        ({"jitter": -1.0}, r"jitter must lie in \[0, 1\]; got -1.0"),
        ({"absolute_jitter": -1.0}, r"absolute_jitter must lie in \[0, inf\); got -1.0"),
        ({"relevance": "loo"}, "relevance must be one of 'leave-one-out', 'cholesky', 'diagonal'; got 'loo'"),
        ({"placement": "random"}, "placement must be one of 'greedy', 'recent'; got 'random'"),
        ({"admission": "never"}, "admission must be one of 'algorithm', 'published'; got 'never'"),
        ({"inducing_inputs": np.zeros(3)}, r"inducing_inputs must have shape N×D.*; got shape \(3,\)"),
        ({"inducing_inputs": [[np.inf]]}, r"inducing_inputs must be finite.*; got inf at index \(0, 0\)"),
        (
            {"inducing_inputs": np.zeros((5, 1)), "inducing": 4},
            r"inducing_inputs must have at most inducing \(4\) rows; got 5",
        ),
        ({"kernel": 3}, "kernel must be .*; got 3"),
        ({"kernel": "SE"}, "kernel must be .*; got 'SE'"),
    ],
)
def test_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        AGP(**settings)


# ---- a batch -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (X[:, 0], Y, r"X must have shape N×D, one row per sample; got shape \(12,\)"),
        (X[None], Y, r"X must have shape N×D, one row per sample; got shape \(1, 12, 2\)"),
        ([], [], r"X must have shape N×D, one row per sample; got shape \(0,\)"),
        (X[:, :0], Y, r"X must have at least one input; got shape \(12, 0\)"),
        (X, Y[:-1], r"y must have shape \(12,\) or \(12, P\), one row for each of X; got shape \(11,\)"),
        (X, Y[:, None, None], r"y must have shape \(12,\) or \(12, P\).*; got shape \(12, 1, 1\)"),
        (X, np.zeros((12, 0)), r"y must have shape \(12,\) or \(12, P\).*; got shape \(12, 0\)"),
        (np.where(X == X[3, 1], np.nan, X), Y, r"X must be finite .*; got nan at index \(3, 1\)"),
        (np.where(X == X[3, 1], np.inf, X), Y, r"X must be finite .*; got inf at index \(3, 1\)"),
        (
            X,
            np.where(Y == Y[5], -np.inf, Y),
            "y must be finite, or NaN where nothing was observed; got -inf at index 5",
        ),
        (X.astype(str), Y, r"X must hold real numbers; got dtype <U"),
        (X.astype(complex), Y, "X must hold real numbers; got dtype complex128"),
        (np.where(X == X[3, 1], "a", X.astype(object)), Y, "X must hold real numbers; got dtype object with 'a' in it"),
        (X, Y.astype(str), "y must hold real numbers; got dtype <U"),
        (X, np.arange(12).astype("datetime64[s]"), "y must hold real numbers; got dtype datetime64"),
        ([[1.0, 2.0], [3.0]], [1.0, 2.0], r"X must be a rectangular array of numbers; got \[\[1.0, 2.0\], \[3.0\]\]"),
        (None, Y, "X must hold real numbers; got dtype object"),
    ],
)
def test_a_batch(X, y, message):
    with pytest.raises(ValueError, match=message):
        AGP(**SMALL).init(X, y)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (AGP(SE([0.5, 0.5, 0.5]), **SMALL), "lengthscale must have one entry or one for each of the 2 inputs; got 3"),
        (
            AGP(noise=[0.1, 0.2], **SMALL),
            "noise must be one number or one for each of the 1 outputs; got 2 numbers",
        ),
        (AGP(inducing_inputs=np.zeros((3, 1)), **SMALL), "inducing_inputs must have 2 columns, as many as X; got 1"),
    ],
    ids=["lengthscale", "noise", "inducing_inputs"],
)
def test_a_setting_that_does_not_fit_the_batch(model, message):
    with pytest.raises(ValueError, match=message):
        model.init(X, Y)


def test_a_cold_start_with_nowhere_to_put_what_is_learned():
    """Without a window the inducing points of the start are all there will ever be."""
    model = FastAGP(**SMALL | {"window": None}, forgetting=0.9)
    with pytest.raises(
        ValueError, match=r"X must not be empty when window is None.*inducing_inputs.*; got shape \(0, 2\)"
    ):
        model.init(X[:0], Y[:0])


# ---- samples and rows to predict for -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    return FastAGP(**SMALL)


@pytest.fixture(scope="module")
def state(model):
    return model.init(X, Y)


@pytest.fixture(scope="module")
def pair(model):
    return model.init(X, np.stack([Y, Y], 1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X[0, :1], 1.0), "x must have 2 inputs, as the model was started with; got 1"),
        ((0.5, 1.0), r"x must have shape \(2,\) for one sample or N×D for several; got \(\)"),
        ((X[None], 1.0), r"x must have shape \(2,\) for one sample or N×D for several; got \(1, 12, 2\)"),
        (([0.1, np.nan], 1.0), "x must be finite .*; got nan at index 1"),
        (([0.1, "b"], 1.0), "x must hold real numbers; got dtype <U"),
        (([0.1, [0.2]], 1.0), r"x must be a rectangular array of numbers; got \[0.1, \[0.2\]\]"),
        ((X[0], np.inf), "y must be finite, or NaN where nothing was observed; got inf"),
        ((X[0], [1.0]), r"y must have shape \(\); got shape \(1,\)"),
        ((X[0], "1.0"), "y must hold real numbers; got dtype <U3"),
        ((X[0], None), "y must hold real numbers; got dtype object"),
        ((X, Y[:3]), r"y must have shape \(12,\); got shape \(3,\)"),
        ((X, np.where(Y == Y[4], np.inf, Y)), "y must be finite, .*; got inf at index 4"),
        ((X[0], 1.0, -1.0), "elapsed must be finite and not negative; got -1.0"),
        ((X[0], 1.0, np.nan), "elapsed must be finite and not negative; got nan"),
        ((X[0], 1.0, np.inf), "elapsed must be finite and not negative; got inf"),
        ((X[0], 1.0, [1.0]), r"elapsed must be one number or have shape \(\); got shape \(1,\)"),
        ((X, Y, np.ones(3)), r"elapsed must be one number or have shape \(12,\); got shape \(3,\)"),
    ],
)
def test_a_sample(model, state, arguments, message):
    with pytest.raises(ValueError, match=message):
        model.update(state, *arguments)


@pytest.mark.parametrize("y", [1.0, [1.0], [1.0, 2.0, 3.0], [[1.0, 2.0]]])
def test_a_target_of_the_wrong_length(model, pair, y):
    with pytest.raises(ValueError, match=r"y must have shape \(2,\); got shape"):
        model.update(pair, X[0], y)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (X[0], r"X must have shape N×D, one row per sample; got shape \(2,\)"),
        (X[:0], r"X must have at least one row to predict for; got shape \(0, 2\)"),
        (np.zeros((2, 3)), "X must have 2 inputs, as the model was started with; got 3"),
        ([[0.1, np.inf]], r"X must be finite .*; got inf at index \(0, 1\)"),
        ([["a", "b"]], "X must hold real numbers; got dtype <U1"),
    ],
)
def test_rows_to_predict_for(model, state, rows, message):
    with pytest.raises(ValueError, match=message):
        model.predict(state, rows)


# ---- what is not refused -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        lambda X: X.astype(">f8"),
        np.asfortranarray,
        lambda X: np.flip(np.flip(X).copy()),
        lambda X: np.array([[Decimal(value) for value in row] for row in X.tolist()]),
        lambda X: X.tolist(),
        lambda X: np.lib.stride_tricks.as_strided(X, X.shape, X.strides, writeable=False),
    ],
    ids=["big-endian", "by columns", "backwards", "decimals", "lists", "read-only"],
)
@pytest.mark.usefixtures("each_engine")
def test_numbers_in_any_form_are_the_same_numbers(other):
    """Learned as what they are, whichever way they lie in memory."""
    model = AGP(**SMALL)
    state = model.update(model.init(X, Y), X, Y)
    same = model.update(model.init(other(X), other(Y[:, None])[:, 0] if hasattr(other(X), "shape") else Y), other(X), Y)
    assert same.record.tobytes() == state.record.tobytes()
    assert model.predict(state, other(X)).records.tobytes() == model.predict(state, X).records.tobytes()


def test_whole_numbers_and_edges_are_taken():
    assert checks.whole("inducing", np.int32(4), 1) == 4
    assert checks.between("forgetting", 1, 0.0, 1.0) == 1.0
    assert checks.between("threshold", 0, 0.0, 1.0, open_low=False) == 0.0
    AGP(forgetting=1, noise=2, rate=1, inducing=5, window=5)


def test_the_array_that_is_checked_is_not_changed():
    given = np.array([[1, 2], [3, 4]])
    checks.inputs("X", given)[0, 0] = 9.0
    assert given[0, 0] == 1
