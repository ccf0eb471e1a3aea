"""Checkpoints: bit for bit, small, and anything else refused with a clear error.

That every model of the library resumes bit for bit is part of the contract (`test_contract.py`).
"""

import contextlib
import hashlib
import json
import zlib
from typing import Any

import jax
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftgp import AGP, FastAGP, checkpoint, files
from driftgp.fingerprint import portrait
from driftgp.kernels import SE, Matern32, Periodic
from driftgp.model import Layout
from driftgp.wrappers import CarryForward, Standardize, Watched

RNG = np.random.default_rng(11)
ROWS = 20
X, Y = RNG.normal(size=(ROWS, 2)), RNG.normal(size=ROWS)


def bits(tree: Any) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(tree)]


def learned(model: Any, X: np.ndarray = X, y: np.ndarray = Y) -> Any:
    return model.update(model.init(X[:0], y[:0]), X, y)


# ---- what comes back -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("outputs", [None, 2])
def test_keeps_precision_and_outputs(outputs):
    model = FastAGP(kernel=SE(0.5), inducing=3, window=5, warmup_iterations=0)
    y = Y if outputs is None else np.stack([Y, Y**2], 1)
    state = model.init(X.astype(np.float32), y.astype(np.float32))
    restored = checkpoint.from_bytes(model, checkpoint.to_bytes(model, state))
    assert bits(restored) == bits(state)
    assert restored.layout == state.layout == Layout(2, outputs, "float32")


def test_signed_zeros_and_extremes_survive():
    values = np.array([0.0, -0.0, 5e-324, -5e-324, 1.0, -1.0, np.inf, -np.inf, np.nan, 1.7e308, -1.7e308])
    for guess in (values, values[::-1].copy(), np.zeros_like(values)):
        moved = checkpoint._moved(guess, checkpoint._distance(values, guess))
        assert moved.tobytes() == values.tobytes()
    flags = np.array([True, False, True])
    assert checkpoint._moved(~flags, checkpoint._distance(flags, ~flags)).tolist() == flags.tolist()


@pytest.mark.parametrize("learn_every", [0, 1])
def test_under_25_kB_at_20_points_90_samples_24_inputs(learn_every):
    """On white noise, which does not compress: the worst case."""
    model = AGP(SE(5.0), inducing=20, window=90, learn_every=learn_every)
    X, y = RNG.normal(size=(200, 24)), RNG.normal(size=200)
    state = learned(model, X, y)
    data = checkpoint.to_bytes(model, state)
    assert int(state.points.count) == 20
    assert len(data) < 25_000
    assert bits(checkpoint.from_bytes(model, data)) == bits(state)


def test_a_machine_that_rounds_differently_gets_the_state_up_to_rounding(monkeypatch):
    state = learned(SMALL)
    complete = checkpoint._complete

    def elsewhere(*args):
        return tuple(
            vector * (1.0 + 4.0 * np.finfo(vector.dtype).eps) if vector.dtype.kind == "f" else vector
            for vector in complete(*args)
        )

    data = checkpoint.to_bytes(SMALL, state)
    monkeypatch.setattr(checkpoint, "_complete", elsewhere)
    restored = checkpoint.restore(SMALL, data)
    assert not restored.exact
    for one, other in zip(jax.tree.leaves(restored.state), jax.tree.leaves(state), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


# ---- a small checkpoint to attack ------------------------------------------------------------------------------------

SMALL = FastAGP(kernel=SE(0.5), inducing=2, window=3)
EXTRA = {"row": 17, "name": "µ", "nested": [1.5, None, {"a": True}]}


@pytest.fixture(scope="module")
def data() -> bytes:
    return checkpoint.to_bytes(SMALL, learned(SMALL), EXTRA)


def test_what_was_stored_beside_comes_back(data):
    assert checkpoint.restore(SMALL, data).extra == EXTRA


def test_can_be_looked_into_without_a_model(data):
    header = checkpoint.peek(data)
    assert header["extra"] == EXTRA
    assert header["layout"] == {"inputs": 2, "outputs": None, "dtype": "float64", "gaps": False}
    assert (header["model"]["inducing"], header["model"]["window"]) == (2, 3)


@pytest.mark.parametrize("extra", [{1, 2}, object(), {"a": b"bytes"}])
def test_refuses_an_extra_that_json_cannot_hold(extra):
    with pytest.raises(ValueError, match="extra must be something that JSON can hold"):
        checkpoint.to_bytes(SMALL, learned(SMALL), extra)


def test_refuses_a_state_of_another_model():
    with pytest.raises(ValueError, match="state must be one that this AGP was started with"):
        checkpoint.to_bytes(FastAGP(kernel=SE(0.5), inducing=3, window=4), learned(SMALL))


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (FastAGP(kernel=SE(0.5), inducing=2, window=4), "model.forgetting is .* there and .* here"),
        (
            FastAGP(kernel=SE(0.5), inducing=2, window=3, forgetting=0.9),
            "model.forgetting is 0.46.* there and 0.9 here",
        ),
        (FastAGP(kernel=SE(0.25), inducing=2, window=3), "model.kernel.lengthscale is 0.5 there and 0.25 here"),
        (
            FastAGP(kernel=SE([0.5, 0.5]), inducing=2, window=3),
            r"kernel.lengthscale is 0.5 there and \[0.5, 0.5\] here",
        ),
        (
            FastAGP(kernel=Matern32(0.5), inducing=2, window=3),
            "model.kernel is .*SE' there and .*Matern32' here",
        ),
        (FastAGP(kernel=Periodic(), inducing=2, window=3), "model.kernel is 'driftgp.kernels.SE' there"),
        (AGP(SE(0.5), inducing=2, window=3), "model.learn_every is 0 there and 1 here"),
        (Watched(SMALL), "model is 'driftgp.agp.AGP' there and .*Watched' here"),
    ],
)
def test_another_model_is_refused_and_the_difference_named(data, other, difference):
    with pytest.raises(ValueError, match=f"checkpoint is of another model: .*{difference}"):
        checkpoint.from_bytes(other, data)


def test_a_setting_that_came_later_counts_only_where_it_is_on():
    """What was stored before AGP could limit outliers is of the same model as long as the limit is off."""
    assert "outliers" not in portrait(AGP())
    assert "outliers" in portrait(AGP(outliers=4.0))
    assert portrait(AGP(outliers=4.0)) != portrait(AGP(outliers=5.0))


def test_optimisers_differ_by_what_they_were_made_with():
    make = lambda rate: AGP(SE(0.5), inducing=2, window=3, optimizer=optax.adam(rate))  # noqa: E731
    state = learned(make(0.1))
    data = checkpoint.to_bytes(make(0.1), state)
    assert bits(checkpoint.from_bytes(make(0.1), data)) == bits(state)
    with pytest.raises(ValueError, match=r"of another model: model\.optimizer"):
        checkpoint.from_bytes(make(0.2), data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[:-1], "truncated or has grown"),
        (lambda data: data + b"\0", "truncated or has grown"),
        (lambda data: data[:10], "truncated"),
        (lambda data: b"", "must be a driftgp checkpoint"),
        (lambda data: b"row,mean\n1,2\n", "must be a driftgp checkpoint"),
        (lambda data: data[:8] + b"\x07\0" + data[10:], "version 7; this release of driftgp reads version 1"),
        (lambda data: data[:-40] + bytes([data[-40] ^ 1]) + data[-39:], "checksum"),
    ],
)
def test_damage_is_named(data, change, message):
    with pytest.raises(ValueError, match=message):
        checkpoint.from_bytes(SMALL, change(data))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_byte_can_be_altered_unnoticed(data, draw):
    """Any bytes cut off, changed, put in or taken out: a ValueError and nothing else."""
    altered = bytearray(data)
    place = draw.draw(st.integers(0, len(data) - 1))
    kind = draw.draw(st.sampled_from(["flip", "cut", "insert", "delete"]))
    if kind == "flip":
        altered[place] ^= draw.draw(st.integers(1, 255))
    elif kind == "cut":
        del altered[place:]
    elif kind == "insert":
        altered[place:place] = draw.draw(st.binary(min_size=1, max_size=20))
    else:
        del altered[place : place + draw.draw(st.integers(1, 50))]
    with pytest.raises(ValueError):  # noqa: PT011
        checkpoint.from_bytes(SMALL, bytes(altered))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_not_even_a_forged_checksum_does_more_than_raise(data, draw):
    """What was altered and sealed anew is refused cleanly, or loads: no other error, and nothing is executed."""
    body = bytearray(data[:-32])
    for _ in range(draw.draw(st.integers(1, 4))):
        body[draw.draw(st.integers(0, len(body) - 1))] ^= draw.draw(st.integers(1, 255))
    _loads_or_refuses(bytes(body) + hashlib.sha256(body).digest())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_not_even_a_forged_header_does_more_than_raise(data, draw):
    header, payload = checkpoint._open(data)
    name = draw.draw(st.sampled_from(sorted(header)))
    if name == "layout" and draw.draw(st.booleans()):
        header[name][draw.draw(st.sampled_from(sorted(header[name])))] = draw.draw(JSON)
    elif name == "blocks" and draw.draw(st.booleans()):
        header[name][draw.draw(st.integers(0, len(header[name]) - 1))] = draw.draw(st.integers(-3, 100))
    else:
        header[name] = draw.draw(JSON)
    _loads_or_refuses(checkpoint._seal(zlib.compress(json.dumps(header).encode()), payload))


def _loads_or_refuses(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        restored = checkpoint.restore(SMALL, data)
        assert restored.state.layout == Layout(2, None, "float64")


# ---- files -----------------------------------------------------------------------------------------------------------


def test_a_file_resumes_through_all_the_wrappers(tmp_path):
    model = Watched(Standardize(CarryForward(FastAGP(kernel=SE(0.5), inducing=3, window=5)), adapt=0.9))
    state = learned(model, np.where(np.arange(ROWS)[:, None] == 7, np.nan, X))
    path = tmp_path / "model.ckpt"
    checkpoint.save(path, model, state, extra=EXTRA)
    restored = checkpoint.load(path, model)
    assert bits(restored.state) == bits(state)
    assert (restored.extra, restored.exact) == (EXTRA, True)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch, moment):
    path = tmp_path / "model.ckpt"
    files.write_atomically(path, b"old")

    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr(f"os.{moment}", fail)
    with pytest.raises(OSError, match="no space left"):
        files.write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
