"""Records: one declaration gives layout and view, and C++ binds the same fields at the same places."""

import numpy as np
import pytest

from driftgp import AGP, recommended
from driftgp.contract.records import Entry, View, entries, floats, number, part, whole, wholes
from driftgp.engine import Batch, describe, native
from driftgp.engine.library import NoLibrary
from driftgp.members import LastKMean, Persistence
from driftgp.wrappers import Bank, Standardize, Watched
from tests.catalogue import CATALOGUE


class Inner(View):
    values: np.ndarray = floats("N", "P")
    cursor: int = whole()


class Outer(View):
    level: float = number()
    counts: np.ndarray = wholes("P")
    inner: Inner = part(Inner)


def test_one_declaration_gives_the_layout():
    dtype = Outer.dtype(N=3, P=2)
    assert list(entries(dtype)) == [
        Entry("level", "f8", 0, 1),
        Entry("counts", "i8", 8, 2),
        Entry("inner.values", "f8", 24, 6),
        Entry("inner.cursor", "i8", 72, 1),
    ]
    assert dtype.itemsize == 80
    assert list(Outer.dtype(N=3, P=2, inner=None).names or ()) == ["level", "counts"], "it lies elsewhere"


def test_attributes_are_the_record_s_own_memory():
    view = Outer.empty(N=3, P=2)
    view.level, view.inner.cursor = 2.5, 7
    view.counts += 4
    view.inner.values[1] = [5.0, 6.0]
    record = view.record
    assert (record["level"], record["inner"]["cursor"]) == (2.5, 7)
    assert record["counts"].tolist() == [4, 4]
    assert record["inner"]["values"][1].tolist() == [5.0, 6.0]
    assert (type(view.level), type(view.inner.cursor)) == (float, int)


def test_a_state_shows_its_fields_and_refuses_a_record_of_another_layout():
    model = AGP(inducing=4, window=12, warmup_iterations=2)
    state = model.init(np.linspace(0, 1, 12)[:, None], np.zeros(12))
    assert state.U.shape == (4, 1)
    with pytest.raises(AttributeError):
        _ = state.colour
    with pytest.raises(ValueError, match="state must be one of AGP for 1 inputs and 1 outputs; its layout is another"):
        AGP(inducing=5, window=12).predict(state, [[0.5]])


RIVALS = ("exact window", "w-VSGP", "AGP-VSI", "SVGP", "FITC", "DTC", "OSGP", "OSGP, the paper's", "basis ensemble")
OURS = [name for name in CATALOGUE if name not in RIVALS and not name.startswith("state-space GP")]
needs_library = pytest.mark.skipif(not describe(AGP()).startswith("native"), reason="there is no compiled engine here")


@needs_library
@pytest.mark.parametrize("name", [name for name in OURS if name not in ("WISKI", "KRLS-T")])
def test_cpp_binds_every_field_where_the_record_has_it(name):
    model = CATALOGUE[name].make()
    outputs = 3 if CATALOGUE[name].outputs else 1
    engine = native.NativeEngine(model, 2, outputs)
    bound = engine.library.entries(engine.address.value, of_forecast=False)
    assert bound == list(entries(model.record_dtype(2, outputs)))
    told = engine.library.entries(engine.address.value, of_forecast=True)
    assert told == list(entries(model.forecast_dtype(outputs)))


class Swapped(LastKMean):
    """Two fields of the same size, exchanged: a check of sizes alone would not find it."""

    def record_dtype(self, inputs, outputs):
        right = super().record_dtype(inputs, outputs)
        names = ["count" if name == "cursor" else "cursor" if name == "count" else name for name in right.names]
        return np.dtype([(new, right[old]) for new, old in zip(names, right.names, strict=True)])


@needs_library
def test_a_library_that_binds_other_fields_is_refused(monkeypatch):
    monkeypatch.setitem(native.description.PARTS, f"{__name__}.Swapped", native.description.PARTS[_name(LastKMean)])
    with pytest.raises(NoLibrary, match=r"it takes .*cursor.* where the record has .*count"):
        native.NativeEngine(Swapped(), 1, 1)


def _name(kind):
    return f"{kind.__module__}.{kind.__qualname__}"


@needs_library
def test_every_field_holds_its_own_value_through_cpp():
    """Each field gets a number of its own; C++ lets time pass, and changes those that time changes and no others."""
    model = Watched(Standardize(Bank([Persistence(), LastKMean(k=3)]), adapt=0.9))
    record = np.zeros((), model.record_dtype(2, 1))
    paths = [entry for entry in entries(record.dtype) if entry.kind == "f8"]
    raw = np.frombuffer(record, np.float64).copy()
    for i, entry in enumerate(paths):
        raw[entry.offset // 8 : entry.offset // 8 + entry.numbers] = (1.0 + i / 64) * (
            0.1 if "harm" in entry.path else 1
        )
    filled = np.frombuffer(raw.tobytes(), record.dtype).copy()
    engine = native.NativeEngine(model, 2, 1)
    before = filled.copy()
    engine.run(filled, np.array([0]), np.array([1]), Batch(np.zeros((1, 2)), np.full((1, 1), np.nan), np.array([2.0])))
    changed = {
        entry.path
        for entry in entries(record.dtype)
        if not np.array_equal(_field(before, entry), _field(filled, entry), equal_nan=True)
    }
    assert changed == {"inner.inner.member_0.errors", "inner.inner.member_1.errors"}


def _field(record: np.ndarray, entry: Entry) -> np.ndarray:
    numbers = np.frombuffer(record.tobytes(), np.dtype(entry.kind))
    return numbers[entry.offset // 8 : entry.offset // 8 + entry.numbers]


def test_the_default_at_rest_is_all_finite():
    model = recommended(np.zeros((0, 3)), np.zeros(0))
    state = model.init(np.zeros((0, 3)), np.zeros(0))
    assert all(np.isfinite(_field(state.record.reshape(1), entry)).all() for entry in entries(state.record.dtype))
