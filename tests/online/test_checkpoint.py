"""Checkpoints: bit for bit, small, and anything else refused with a clear error.

That every model of the library resumes bit for bit is part of the contract (`test_contract.py`).
"""

import contextlib
import copy
import hashlib
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftgp import AGP, FastAGP, checkpoint, kernels, recommended
from driftgp.base import files, sealed
from driftgp.contract.records import entries
from driftgp.engine.reference import ReferenceEngine
from driftgp.kernels import SE, Linear, Matern32, Periodic
from driftgp.kernels.check import Numerical
from driftgp.members import LastKMean, Persistence
from driftgp.models.model import Layout, Model, State
from driftgp.models.monitor import Monitor
from driftgp.stream.model_json import Unlisted, described, first_difference, plain, rebuilt
from driftgp.wrappers import Bank, Calibrated, Gaps, Standardize, Watched, Within

RNG = np.random.default_rng(11)
ROWS = 20
X, Y = RNG.normal(size=(ROWS, 2)), RNG.normal(size=ROWS)


def bits(state: State) -> bytes:
    return state.record.tobytes()


def learned(model: Model, X: np.ndarray = X, y: np.ndarray = Y) -> State:
    return model.update(model.init(X[:0], y[:0]), X, y)


# ---- settings as JSON ------------------------------------------------------------------------------------------------


class Cosine(SE):
    """A kernel of the user's own."""


MODELS = {
    "AGP": AGP(SE(0.5) + Linear([1.0, 2.0]) * Periodic(3.0), noise=[0.1, 0.2], inducing=4, outliers=4.0, prior=3.0),
    "first points given": FastAGP(inducing=30, window=None, forgetting=0.9, inducing_inputs=RNG.normal(size=(30, 5))),
    "all kernels": AGP(
        kernels.Matern12() + Matern32(0.1) * kernels.Matern52() + kernels.RationalQuadratic() + kernels.Constant(1e-3)
    ),
    "derivative by differences": AGP(Numerical(SE(0.3))),
    "carried": AGP(step="carried", learn_every=3, relevance="diagonal", admission="published", placement="recent"),
    "bank": Bank([AGP(), FastAGP(inducing=2)], corrected=(1,), prior=[0.2, 1.7]),
    "wrappers": Watched(Gaps(Calibrated(Standardize(Within(AGP()), 0.99), prior=[3, 2, 1])), Monitor(lags=3)),
    "fixed units": Standardize(AGP()),
    "members": Bank([LastKMean(k=3, forgetting=0.9), Persistence(column=[1, 0]), Persistence(noise=0.5)]),
    "default": recommended(np.zeros((0, 3)), np.zeros((0, 2))),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_comes_back_from_its_json_with_every_setting_to_the_last_bit(name):
    model = MODELS[name]
    text = json.dumps(described(model), allow_nan=False)
    again = rebuilt(json.loads(text))
    assert again == model
    assert json.dumps(described(again)) == text


def test_settings_are_readable():
    found = described(Within(FastAGP(kernel=SE([0.5, 2.0]), inducing=2, window=3)))
    assert found["is"] == "Within"
    assert found["model"]["kernel"] == {"is": "SE", "lengthscale": [0.5, 2.0], "variance": 1.0}
    assert (found["model"]["inducing"], found["model"]["window"]) == (2, 3)


def test_a_class_of_the_users_own_is_described_but_never_made():
    described = plain(AGP(Cosine(0.5)))
    assert described["kernel"]["is"].endswith(".Cosine")
    assert first_difference(described, plain(AGP(Cosine(0.5)))) is None
    assert first_difference(described, plain(AGP(SE(0.5)))) is not None
    with pytest.raises(Unlisted, match=r"\.Cosine is not a part of driftgp itself: give the model"):
        rebuilt(described)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update({"is": "os.system"}), r"os\.system is not a part of driftgp itself"),
        (lambda d: d.update({"is": "print"}), "'print' is not a part of driftgp itself"),
        (lambda d: d.update({"is": ["AGP"]}), "is not a part of driftgp"),
        (
            lambda d: d.update({"is": "SE"}),
            "settings of SE are damaged: they must be lengthscale, variance; got absolute_jitter",
        ),
        (lambda d: d.pop("window"), "settings of AGP are damaged: they must be"),
        (lambda d: d.update(extra=1), "settings of AGP are damaged: they must be"),
        (lambda d: d.update(window=-3), "settings of AGP are damaged: window must be a whole number of at least 1"),
        (lambda d: d.update(window=1e400), "settings of AGP are damaged"),
        (lambda d: d.update(rate=10**400), "settings of AGP are damaged"),
        (lambda d: d.update(noise={"is": "SE", "lengthscale": 1.0, "variance": 1.0}), "settings of AGP are damaged"),
        (lambda d: d.update(kernel=1.0), "kernel must be a Kernel; got 1.0"),
        (lambda d: d.update(kernel={"is": "Sum", "first": 1.0, "second": 2.0}), "first must be a Kernel; got 1.0"),
        (lambda d: d.update(learn_inducing="yes"), "learn_inducing is 'yes' there and True here"),
        (lambda d: d.update(learn_inducing=0), "learn_inducing is 0 there and False here"),
    ],
)
def test_forged_settings_are_refused(change, message):
    described = plain(AGP())
    change(described)
    with pytest.raises(ValueError, match=message):
        rebuilt(described)


def test_weights_that_are_none_are_refused():
    described = plain(Bank([AGP(), AGP()]))
    described["prior"] = [0.5, 0.2]
    with pytest.raises(ValueError, match="prior must be weights of 2 voices that sum to 1"):
        rebuilt(described)
    described = plain(Calibrated(AGP()))
    described["log_prior"] = [0.0] * len(described["log_prior"])
    with pytest.raises(ValueError, match="log_prior must be logarithms of weights that sum to 1"):
        rebuilt(described)


@pytest.mark.parametrize("stored", [None, 3, "AGP", [], {}, {"is": None}, plain(AGP())["kernel"], [plain(AGP())]])
def test_what_describes_no_model_is_refused(stored):
    with pytest.raises(ValueError, match=r"must describe a model|not a part of driftgp"):
        rebuilt(stored)


def test_settings_that_are_too_deep_or_too_large_are_refused():
    deep: Any = plain(AGP())
    for _ in range(2000):
        deep = {"is": "Within", "model": deep, "margin": 0.25}
    with pytest.raises(ValueError, match="nested at most 40 deep"):
        rebuilt(deep)
    with pytest.raises(ValueError, match="at most 1000000 values"):
        rebuilt(plain(AGP()) | {"noise": [[0.1] * 1000] * 1001})


# ---- what comes back -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("outputs", [None, 1, 2])
def test_keeps_shapes_and_outputs(outputs):
    model = FastAGP(kernel=SE(0.5), inducing=3, window=5, warmup_iterations=0)
    y = Y if outputs is None else np.stack([Y, Y**2], 1)[:, :outputs]
    state = model.init(X, y)
    restored = checkpoint.from_bytes(model, checkpoint.to_bytes(model, state))
    assert bits(restored) == bits(state)
    assert restored.layout == state.layout == Layout(2, outputs)


def test_the_model_comes_back_with_its_state():
    """Nobody has to remember settings to go on."""
    model = recommended(X[:5], Y[:5])
    state = model.update(model.init(X[:5], Y[:5]), X[5:], Y[5:])
    restored = checkpoint.restore(None, checkpoint.to_bytes(model, state))
    assert restored.exact
    assert restored.state.model == model
    assert bits(restored.state) == bits(state)
    gone_on = restored.state.model.update(restored.state, X[0], 1.0)
    assert bits(gone_on) == bits(model.update(state, X[0], 1.0))


def test_a_model_with_a_part_outside_the_library_has_to_be_given():
    model = AGP(Cosine(0.5), inducing=2, window=3)
    state = learned(model)
    data = checkpoint.to_bytes(model, state)
    assert bits(checkpoint.from_bytes(AGP(Cosine(0.5), inducing=2, window=3), data)) == bits(state)
    with pytest.raises(
        ValueError, match=r"cannot be read without its model: .*\.Cosine is not a part of driftgp itself"
    ):
        checkpoint.from_bytes(None, data)


def gap(model: Model) -> State:
    """Last came a row without a target: the statistics were aged, not summed anew."""
    return model.update(learned(model), X[0], np.nan)


@pytest.mark.parametrize("make", [learned, gap])
@pytest.mark.parametrize("learn_every", [0, 1, 3])
def test_resumes_bit_for_bit_whatever_the_last_row_was(make, learn_every):
    model = AGP(SE(1.0), inducing=4, window=8, learn_every=learn_every)
    state = make(model)
    restored = checkpoint.restore(model, checkpoint.to_bytes(model, state))
    assert restored.exact
    assert bits(restored.state) == bits(state)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 1.7e308, 17.0])
@pytest.mark.parametrize("name", ["alpha", "inverse_L", "Phi", "n"])
def test_what_does_not_follow_from_points_and_samples_is_computed_anew(name, value):
    """A factor of other points, a checksum that is right: by file, by pickle, by a record of the user's."""
    state = learned(SMALL)
    forged = state.copy()
    forged.record[name][...] = value
    restored = checkpoint.restore(SMALL, checkpoint.to_bytes(SMALL, forged))
    assert not restored.exact
    for found in (restored.state, copy.deepcopy(forged), State(SMALL, forged.layout, forged.record)):
        np.testing.assert_allclose(found.record[name], state.record[name], rtol=1e-9)


def test_a_state_whose_matrices_have_no_factor_comes_back_too(monkeypatch):
    def fail(self: Any, record: np.ndarray) -> None:
        record["alpha"] = 17.0  # half done
        raise ArithmeticError

    state = learned(SMALL)
    monkeypatch.setattr(ReferenceEngine, "complete", fail)
    monkeypatch.setenv("DRIFTGP_ENGINE", "reference")
    restored = checkpoint.restore(SMALL, checkpoint.to_bytes(SMALL, state))
    assert restored.exact
    assert bits(restored.state) == bits(state)


def test_a_checkpoint_is_the_record_and_a_short_header():
    model = AGP(SE(5.0), inducing=20, window=90)
    state = learned(model, RNG.normal(size=(200, 24)), RNG.normal(size=200))
    assert len(checkpoint.to_bytes(model, state)) < state.record.nbytes + 1000


def test_a_machine_that_rounds_differently_gets_the_same_state(monkeypatch):
    state = learned(SMALL)
    data = checkpoint.to_bytes(SMALL, state)
    monkeypatch.setenv("DRIFTGP_ENGINE", "reference")
    complete = ReferenceEngine.complete

    def elsewhere(engine: Any, record: np.ndarray) -> None:
        complete(engine, record)
        for name in SMALL.derived():
            record[name] *= 1.0 + 4.0 * np.finfo(float).eps

    monkeypatch.setattr(ReferenceEngine, "complete", elsewhere)
    restored = checkpoint.restore(SMALL, data)
    assert restored.exact
    assert bits(restored.state) == bits(state)


def test_derived_fields_are_fields_of_the_record():
    """A name that is misspelt would be stored for nothing."""
    for model in MODELS.values():
        assert set(model.derived()) <= {field.path for field in entries(model.record_dtype(5, 2))}


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
    assert header["version"] == sealed.VERSION
    assert header["extra"] == EXTRA
    assert header["layout"] == {"inputs": 2, "outputs": None, "gaps": False}
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
        (FastAGP(kernel=SE(0.5), inducing=2, window=4), "model.window is 3 there and 4 here"),
        (
            FastAGP(kernel=SE(0.5), inducing=2, window=3, forgetting=0.9),
            "model.forgetting is 0.46.* there and 0.9 here",
        ),
        (FastAGP(kernel=SE(0.25), inducing=2, window=3), "model.kernel.lengthscale is 0.5 there and 0.25 here"),
        (
            FastAGP(kernel=SE([0.5, 0.5]), inducing=2, window=3),
            r"kernel.lengthscale is 0.5 there and \[0.5, 0.5\] here",
        ),
        (FastAGP(kernel=Matern32(0.5), inducing=2, window=3), "model.kernel is 'SE' there and 'Matern32' here"),
        (FastAGP(kernel=Periodic(), inducing=2, window=3), "model.kernel is 'SE' there and 'Periodic' here"),
        (FastAGP(kernel=Cosine(0.5), inducing=2, window=3), r"model.kernel is 'SE' there and .*\.Cosine here"),
        (AGP(SE(0.5), inducing=2, window=3), "model.learn_every is 0 there and 1 here"),
        (Watched(SMALL), "model is 'AGP' there and 'Watched' here"),
    ],
)
def test_another_model_is_refused_and_the_difference_named(data, other, difference):
    with pytest.raises(ValueError, match=f"checkpoint is of another model: .*{difference}"):
        checkpoint.from_bytes(other, data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[:-1], "truncated or has grown"),
        (lambda data: data + b"\0", "truncated or has grown"),
        (lambda data: data[:10], "truncated"),
        (lambda data: b"", "not a stream saved by driftgp"),
        (lambda data: b"row,mean\n1,2\n", "not a stream saved by driftgp"),
        (lambda data: data[:8] + b"\x07\0" + data[10:], "version 7; this release of driftgp reads version 3"),
        (
            lambda data: data[:8] + b"\x01\0" + data[10:],
            r"version 1: it was written by driftgp 0\.1, whose states this",
        ),
        (lambda data: b"\x89driftgp\x02\0" + data[10:], "written by an earlier version of driftgp.*start anew"),
        (lambda data: data[:-40] + bytes([data[-40] ^ 1]) + data[-39:], "checksum"),
    ],
)
@pytest.mark.parametrize("model", [SMALL, None], ids=["given", "described"])
def test_damage_is_named(data, change, message, model):
    with pytest.raises(ValueError, match=message):
        checkpoint.from_bytes(model, change(data))


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
    _loads_or_refuses(bytes(body) + hashlib.sha256(body).digest(), draw.draw(st.sampled_from([SMALL, None])))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_not_even_a_forged_header_does_more_than_raise(data, draw):
    header, payload = sealed.unframed(data)
    name = draw.draw(st.sampled_from(sorted(header)))
    if name in ("layout", "model") and draw.draw(st.booleans()):
        header[name][draw.draw(st.sampled_from(sorted(header[name])))] = draw.draw(JSON)
    elif name == "records" and draw.draw(st.booleans()):
        header[name]["array"][draw.draw(st.integers(0, 2))] = draw.draw(JSON | st.integers(-3, 100))
    else:
        header[name] = draw.draw(JSON)
    forged = sealed.framed(header, [payload])
    _loads_or_refuses(forged, draw.draw(st.sampled_from([SMALL, None])))


def _loads_or_refuses(data: bytes, model: Model | None) -> None:
    with contextlib.suppress(ValueError):
        restored = checkpoint.restore(model, data)
        assert restored.state.record.dtype == learned(SMALL).record.dtype


# ---- admission ------------------------------------------------------------------------------------------------------


def watched() -> State:
    return learned(Watched(Gaps(Calibrated(Standardize(Within(Bank([SMALL, SMALL])), adapt=0.9)))))


INNER = "inner.inner.inner.inner.inner."


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (INNER + "member_1.points", 3, r"points must lie in \[0, 2\]; got 3"),
        (INNER + "member_0.points", -1, r"points must lie in \[0, 2\]; got -1"),
        (INNER + "window_0.cursor", 3, r"window\.cursor must lie in \[0, 3\); got 3"),
        (INNER + "window_0.X", np.nan, r"window\.X must be finite"),
        (INNER + "member_0.w", -1.0, r"w must lie in \[0, 1\]; got -1.0"),
        (INNER + "member_0.w", 1e300, r"w must lie in \[0, 1\]; got 1e\+300"),
        (INNER + "member_0.theta", 0.0, "theta must be finite and positive"),
        (INNER + "member_0.noise", np.inf, "noise must be finite and positive"),
        (INNER + "member_0.samples", -1, "samples must not be negative; got -1"),
        (INNER + "weights", np.nan, "weights must be finite"),
        ("inner.inner.inner.scale", 0.0, r"scale must lie in \[1e-290, 1e\+290\]; got 0.0"),
        ("inner.inner.offset", np.nan, "offset must be finite"),
        ("monitor.scored", -1, r"monitor\.scored must not be negative; got -1"),
    ],
)
def test_numbers_that_no_step_could_have_left_are_refused_by_name(path, value, message):
    """A whole file, a right checksum, and a cursor that would have C++ write beyond its array."""
    state = watched()
    field: Any = state.record
    *outer, last = path.split(".")
    for name in outer:
        field = field[name]
    field[last] = value
    data = checkpoint.to_bytes(state.model, state)
    for model in (state.model, None):
        with pytest.raises(
            ValueError, match=f"state is not one that Watched could have left: .*{message}.* start anew"
        ):
            checkpoint.from_bytes(model, data)


def test_a_record_of_another_layout_is_refused_before_anything_is_read_from_it():
    state = learned(SMALL)
    for layout in (Layout(3, None), Layout(2, 2)):
        with pytest.raises(ValueError, match=r"its layout is another\. Give the model that it was saved with"):
            State(SMALL, layout, state.record)
    two = FastAGP(kernel=SE([0.5, 0.5]), inducing=2, window=3)
    with pytest.raises(
        ValueError, match="layout is not one of AGP: lengthscale must have one entry or one for each of"
    ):
        State(two, Layout(3, None), learned(SMALL, np.zeros((4, 3)), np.zeros(4)).record)
    with pytest.raises(ValueError, match="one of them takes missing inputs"):
        State(SMALL, Layout(2, None, gaps=True), state.record)
    with pytest.raises(ValueError, match="its layout is another"):
        State(SMALL, state.layout, state.record.reshape(1))
    assert bits(State(SMALL, state.layout, state.record)) == bits(state)


@pytest.mark.parametrize("settings", [{"inducing": 10**5, "window": 10**6}, {"inducing": 10**4, "window": 10**4}])
def test_a_forged_size_is_refused_before_memory_is_asked_for(data, settings):
    header, payload = sealed.unframed(data)
    header["model"].update(settings)
    forged = sealed.framed(header, [payload])
    with pytest.raises(ValueError, match="too large"):
        checkpoint.from_bytes(None, forged)


@pytest.mark.parametrize("shape", [[1, 10**12], [10**6, 10**6], [2, 1], [-1, 5]])
def test_a_record_of_another_size_than_its_model_s_is_refused(data, shape):
    header, payload = sealed.unframed(data)
    header["records"]["array"][1:] = shape
    with pytest.raises(ValueError, match="checkpoint is damaged"):
        checkpoint.from_bytes(SMALL, sealed.framed(header, [payload]))


# ---- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [True, False])
def test_a_file_resumes_through_all_the_wrappers(tmp_path, given):
    model = Watched(Standardize(Gaps(FastAGP(kernel=SE(0.5), inducing=3, window=5)), adapt=0.9))
    state = learned(model, np.where(np.arange(ROWS)[:, None] == 7, np.nan, X))
    path = tmp_path / "model.ckpt"
    checkpoint.save(path, model, state, extra=EXTRA)
    restored = checkpoint.load(path, model) if given else checkpoint.load(path)
    assert bits(restored.state) == bits(state)
    assert (restored.extra, restored.exact) == (EXTRA, True)
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_refused_is_named(tmp_path):
    path = tmp_path / "model.ckpt"
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match=r"model\.ckpt: this is not a stream saved by driftgp"):
        checkpoint.load(path)


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


def test_a_monitor_of_an_earlier_release_is_refused_with_what_differs():
    described = plain(Watched(SMALL))
    described["monitor"] |= {"slack": 0.4, "threshold": 15.0}
    with pytest.raises(
        ValueError, match=r"Monitor.*must be forgetting, lags; got .*slack, threshold.* another release"
    ):
        rebuilt(described)
