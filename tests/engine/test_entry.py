"""The functions of driftgp.h, called as a C program might: what is missing or negative is an error, never a crash."""

import ctypes
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driftgp import AGP
from driftgp.engine import engine
from driftgp.engine.library import CallRows, library
from driftgp.engine.native import NativeEngine
from driftgp.forecasting.native import _Series

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


def test_what_takes_nothing_that_could_be_missing(functions):
    assert functions.driftgp_interface() > 0
    assert functions.driftgp_level(0) > 0
    assert functions.driftgp_level(99) == functions.driftgp_level(-1) == -1


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
        lambda f, m, s: f.driftgp_run(None, ctypes.byref(CallRows())),
        lambda f, m, s: f.driftgp_run(m, None),
        lambda f, m, s: f.driftgp_run_all(None, ctypes.byref(CallRows()), ctypes.c_int64(1)),
        lambda f, m, s: f.driftgp_run_all(m, None, ctypes.c_int64(2)),
        lambda f, m, s: f.driftgp_run_all(m, ctypes.byref(CallRows()), ctypes.c_int64(-1)),
        lambda f, m, s: f.driftgp_run_all(m, ctypes.byref(CallRows()), ctypes.c_int64(1 << 40)),
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
    rows = CallRows(count=1, **{name: array.ctypes.data for name, array in arrays.items() if name != missing})
    count = () if entry == "driftgp_run" else (ctypes.c_int64(1),)
    assert getattr(functions, entry)(native.address, ctypes.byref(rows), *count) == INVALID
    assert states.tobytes() == before


def test_one_share_that_fails_is_told_and_the_others_are_done(native):
    """The reason comes from the thread that failed, and every thread has ended by then."""
    states = np.repeat(state(native), 4)
    slots, ends = np.arange(4), np.full(4, 30)
    X, y, elapsed = np.zeros((30, 2)), np.zeros((30, 1)), np.ones(30)
    rows = (CallRows * 4)()
    for i, share in enumerate(rows):
        share.states, share.slots, share.ends = states.ctypes.data, slots.ctypes.data + 8 * i, ends.ctypes.data
        share.count, share.x, share.elapsed = 1, X.ctypes.data, elapsed.ctypes.data
        share.y = None if i == 2 else y.ctypes.data
    with pytest.raises(ValueError, match="must have both y and elapsed"):
        native.library.check(native.library.run_all(native.address, rows, 4))
    assert [share.done for share in rows] == [30, 30, 0, 30]
    assert states["samples"].tolist() == [30, 30, 0, 30]


# ---- the forecaster's rows -------------------------------------------------------------------------------------------


def forecaster(**missing: Any) -> tuple[_Series, list[Any]]:
    """Two rows of a series whose sizes and numbers are all zeros, and the arrays that must outlive the call."""
    counts = library().follow_sizes
    sizes, zeros, wholes = np.zeros(counts[0], np.int64), np.zeros(256), np.zeros(256, np.int64)
    of_wholes = (ctypes.c_void_p * counts[1])(*[wholes.ctypes.data] * counts[1])
    arrays = (ctypes.c_void_p * counts[2])(*[zeros.ctypes.data] * counts[2])
    own = {"sizes": sizes.ctypes.data, "arrays": ctypes.addressof(arrays), "wholes": ctypes.addressof(of_wholes)}
    given = dict.fromkeys(("values", "years", "known", "past"), zeros.ctypes.data) | {"slots": wholes.ctypes.data}
    return _Series(**(own | given | {"rows": 2, "first": 0} | missing)), [sizes, zeros, wholes, of_wholes, arrays]


MISSING = ("sizes", "arrays", "wholes", "values", "slots", "years", "known", "past")


@pytest.mark.parametrize("wrong", [*({name: None} for name in MISSING), {"rows": -1}, {"first": -1}], ids=str)
def test_a_forecaster_with_an_array_missing_or_a_size_below_0_is_refused(functions, wrong):
    series, _alive = forecaster(**wrong)
    assert functions.driftgp_follow(ctypes.byref(series), 0) == INVALID
    assert functions.driftgp_reason()


@pytest.mark.parametrize("kind", ["arrays", "wholes"])
def test_a_forecaster_with_one_of_its_arrays_missing_is_refused(functions, kind):
    series, alive = forecaster()
    alive[4 if kind == "arrays" else 3][-1] = None
    assert functions.driftgp_follow(ctypes.byref(series), 0) == INVALID


def test_a_forecaster_of_a_size_below_0_or_a_level_that_is_not_there_is_refused(functions):
    assert functions.driftgp_follow(None, 0) == INVALID
    series, alive = forecaster()
    assert functions.driftgp_follow(ctypes.byref(series), 99) == INVALID
    alive[0][-1] = -1
    assert functions.driftgp_follow(ctypes.byref(series), 0) == INVALID
    assert functions.driftgp_follow_sizes(-1) == functions.driftgp_follow_sizes(4) == -1


def test_every_function_of_the_header_is_called_here():
    header = (library().path.parent / "cpp" / "driftgp.h").read_text(encoding="utf-8")
    exported = set(re.findall(r"^DRIFTGP_API [^;(]*?\b(driftgp_\w+)\(", header, re.MULTILINE))
    here = Path(__file__).read_text(encoding="utf-8")
    assert len(exported) >= 15
    assert [name for name in exported if f".{name}(" not in here] == []
