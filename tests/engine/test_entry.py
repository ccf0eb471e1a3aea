"""The functions of driftgp.h, called as a C program might: what is missing or negative is an error, never a crash."""

import ctypes
from typing import Any

import numpy as np
import pytest

from driftgp import AGP
from driftgp.engine import engine
from driftgp.engine.library import Rows, library
from driftgp.engine.native import NativeEngine

pytestmark = pytest.mark.skipif(engine(AGP(), 2, 1).kind != "native", reason="the compiled engine is not there")

INVALID = 2
MODEL = AGP(inducing=3, window=8)


@pytest.fixture(scope="module")
def native() -> NativeEngine:
    return NativeEngine(MODEL, 2, 1)


@pytest.fixture(scope="module")
def functions() -> ctypes.CDLL:
    """The library without the types that Python's own binding gives its functions."""
    loaded = ctypes.CDLL(str(library().path))
    for name in ("driftgp_state_bytes", "driftgp_forecast_bytes", "driftgp_fields"):
        getattr(loaded, name).restype = ctypes.c_size_t
    loaded.driftgp_reason.restype = ctypes.c_char_p
    return loaded


def state(native: NativeEngine) -> np.ndarray:
    record = np.zeros((), native.record_dtype)
    native.start(record, np.zeros((0, 2)), np.zeros((0, 1)))
    return record.reshape(1)


def test_sizes_of_no_model_are_0(functions):
    assert functions.driftgp_state_bytes(None) == 0
    assert functions.driftgp_forecast_bytes(None) == 0
    room = (ctypes.c_char * 4096)()
    for of_forecast in (0, 1):
        assert functions.driftgp_fields(None, of_forecast, room, ctypes.c_size_t(2)) == 0
    functions.driftgp_free(None)


def test_room_for_no_fields_is_none_written(native, functions):
    count = functions.driftgp_fields(native.address, 0, None, ctypes.c_size_t(1000))
    assert count > 0
    assert functions.driftgp_state_bytes(native.address) == native.record_dtype.itemsize


@pytest.mark.parametrize(
    "call",
    [
        lambda f, m, s: f.driftgp_make(None, ctypes.c_size_t(3), *_pair(2, 1), 0, ctypes.byref(ctypes.c_void_p())),
        lambda f, m, s: f.driftgp_make((ctypes.c_double * 3)(), ctypes.c_size_t(3), *_pair(2, 1), 0, None),
        lambda f, m, s: f.driftgp_start(None, s, None, None, ctypes.c_int64(0)),
        lambda f, m, s: f.driftgp_start(m, None, None, None, ctypes.c_int64(0)),
        lambda f, m, s: f.driftgp_start(m, s, None, None, ctypes.c_int64(5)),
        lambda f, m, s: f.driftgp_start(m, s, s, s, ctypes.c_int64(-1)),
        lambda f, m, s: f.driftgp_complete(None, s),
        lambda f, m, s: f.driftgp_complete(m, None),
        lambda f, m, s: f.driftgp_run(None, ctypes.byref(Rows())),
        lambda f, m, s: f.driftgp_run(m, None),
        lambda f, m, s: f.driftgp_run_all(None, ctypes.byref(Rows()), ctypes.c_int64(1)),
        lambda f, m, s: f.driftgp_run_all(m, None, ctypes.c_int64(2)),
        lambda f, m, s: f.driftgp_run_all(m, ctypes.byref(Rows()), ctypes.c_int64(-1)),
        lambda f, m, s: f.driftgp_run_all(m, ctypes.byref(Rows()), ctypes.c_int64(1 << 40)),
        lambda f, m, s: f.driftgp_from_normal(None, s, *_pair(1, 0), ctypes.c_int64(0), 0, s),
        lambda f, m, s: f.driftgp_from_normal(m, None, ctypes.c_int64(1), s, ctypes.c_int64(1), 0, s),
        lambda f, m, s: f.driftgp_from_normal(m, s, ctypes.c_int64(1), None, ctypes.c_int64(1), 0, s),
        lambda f, m, s: f.driftgp_from_normal(m, s, ctypes.c_int64(1), s, ctypes.c_int64(1), 0, None),
        lambda f, m, s: f.driftgp_from_normal(m, s, ctypes.c_int64(-1), s, ctypes.c_int64(1), 0, s),
    ],
)
def test_what_is_missing_or_negative_is_refused_with_a_reason(native, functions, call):
    room = ctypes.create_string_buffer(native.record_dtype.itemsize)
    assert call(functions, native.address, ctypes.cast(room, ctypes.c_void_p)) != 0
    assert functions.driftgp_reason()


def _pair(one: int, other: int) -> tuple[Any, Any]:
    return ctypes.c_int64(one), ctypes.c_int64(other)


@pytest.mark.parametrize("missing", ["states", "slots", "ends", "x", "y", "elapsed"])
@pytest.mark.parametrize("entry", ["driftgp_run", "driftgp_run_all"])
def test_rows_with_an_array_missing_are_refused_and_nothing_is_learned(native, functions, missing, entry):
    states = state(native)
    before = states.tobytes()
    arrays = {
        "states": states,
        "slots": np.zeros(1, np.int64),
        "ends": np.ones(1, np.int64),
        "x": np.zeros(2),
        "y": np.zeros(1),
        "elapsed": np.ones(1),
    }
    rows = Rows(count=1, **{name: array.ctypes.data for name, array in arrays.items() if name != missing})
    count = () if entry == "driftgp_run" else (ctypes.c_int64(1),)
    assert getattr(functions, entry)(native.address, ctypes.byref(rows), *count) == INVALID
    assert states.tobytes() == before


def test_one_share_that_fails_is_told_and_the_others_are_done(native):
    """The reason comes from the thread that failed, and every thread has ended by then."""
    states = np.repeat(state(native), 4)
    slots, ends = np.arange(4), np.full(4, 30)
    X, y, elapsed = np.zeros((30, 2)), np.zeros((30, 1)), np.ones(30)
    rows = (Rows * 4)()
    for i, share in enumerate(rows):
        share.states, share.slots, share.ends = states.ctypes.data, slots.ctypes.data + 8 * i, ends.ctypes.data
        share.count, share.x, share.elapsed = 1, X.ctypes.data, elapsed.ctypes.data
        share.y = None if i == 2 else y.ctypes.data
    with pytest.raises(ValueError, match="must have both y and elapsed"):
        native.library.check(native.library.run_all(native.address, rows, 4))
    assert [share.done for share in rows] == [30, 30, 0, 30]
    assert states["samples"].tolist() == [30, 30, 0, 30]
