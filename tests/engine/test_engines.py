"""One way to run a model: which engine is chosen, what it says of itself, and that every way in gives the same bits."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import driftgp
from driftgp import AGP, FastAGP, Fleet, Online, prequential, recommended
from driftgp.engine import describe, engine
from driftgp.kernels import SE, Constant, Linear, Matern12, Matern32, Matern52, Periodic, RationalQuadratic
from driftgp.kernels.check import Numerical
from driftgp.members import LastKMean, Persistence
from driftgp.wrappers import Bank, Bounded, Calibrated, Gaps, Guarded, Standardize, Watched, Within

SOURCE = Path(driftgp.__file__).parent
RNG = np.random.default_rng(8)
X = RNG.normal(size=(60, 2))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=60)
NATIVE = describe(AGP()).startswith("native")
needs_library = pytest.mark.skipif(not NATIVE, reason=f"there is no compiled engine here ({describe(AGP())})")

PARTS = [
    *(AGP(kernel) for kernel in (SE(), Matern12(), Matern32(), Matern52(), RationalQuadratic(), Periodic())),
    *(AGP(kernel) for kernel in (Linear(), Constant(), SE() + Linear(), SE() * Periodic(), (SE() + Linear()) * SE())),
    *(FastAGP(), AGP(learn_every=5), AGP(step="carried"), AGP(step="scaled"), AGP(iterations=3)),
    *(FastAGP(window=None, forgetting=0.9), AGP(learn_inducing=True), AGP(outliers=4.0), Persistence(), LastKMean()),
    *(wrapper(AGP()) for wrapper in (Bounded, Calibrated, Gaps, Guarded, Standardize, Watched, Within)),
    *(Bank([AGP(), Persistence()]), Standardize(AGP(), adapt=0.99), recommended(X, Y)),
]


# ---- the choice ------------------------------------------------------------------------------------------------------


@needs_library
@pytest.mark.parametrize("model", PARTS, ids=lambda model: repr(model)[:60])
def test_every_part_of_the_library_is_native(model):
    assert describe(model).startswith("native")
    assert engine(model, 2, 1).kind == "native"
    assert engine(model, 2, 30).kind == "native", "any number of outputs"


class Mine(SE):
    """A user's kernel: C++ does not know it, though it is a subclass of one that it knows."""


@needs_library
@pytest.mark.parametrize("kernel", [Mine(0.5), SE() + Mine(), Numerical(SE())])
def test_a_part_that_cpp_does_not_know_is_named_and_runs_by_numpy(kernel, monkeypatch):
    model = Standardize(AGP(kernel, inducing=4, window=12, warmup_iterations=2))
    name = "Numerical" if isinstance(kernel, Numerical) else "Mine"
    assert describe(model).startswith("reference:")
    assert name in describe(model)
    assert engine(model, 2, 1).kind == "reference"
    monkeypatch.setenv("DRIFTGP_ENGINE", "native")
    with pytest.raises(ValueError, match=f"DRIFTGP_ENGINE is 'native', but .*{name}"):
        engine(model, 2, 1)


def test_the_environment_chooses(monkeypatch):
    monkeypatch.setenv("DRIFTGP_ENGINE", "reference")
    assert engine(AGP(), 2, 1).kind == "reference"
    assert describe(AGP()) == "reference: DRIFTGP_ENGINE asks for it"
    monkeypatch.setenv("DRIFTGP_ENGINE", "fast")
    with pytest.raises(ValueError, match=r"DRIFTGP_ENGINE must be one of .*; got 'fast'"):
        engine(AGP(), 2, 1)


# ---- one loop --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [AGP(window=30), recommended(X[:30], Y[:30])], ids=["AGP", "the default"])
def test_every_way_in_gives_the_same_bits(model, each_engine):
    start = model.init(X[:30], Y[:30])
    run = prequential(model, start, X[30:], Y[30:])
    online, fleet = Online(model, start), Fleet(model)
    fleet.warm(X[:30], Y[:30])
    together = fleet.evaluate(["a"] * 30, X[30:], Y[30:])
    for i in range(30):
        assert online.predict(X[30 + i]).records.tobytes() == run.prediction.records[i : i + 1].tobytes()
        online.update(X[30 + i], Y[30 + i])
    assert together.records.tobytes() == run.prediction.records.tobytes()
    for state in (online.state, fleet.state("a"), model.update(start, X[30:], Y[30:])):
        assert state.record.tobytes() == run.state.record.tobytes()


def test_rows_in_any_number_of_calls_and_threads_give_the_same_bits(each_engine):
    """Many keys at once, however the rows are cut."""
    model, keys = AGP(inducing=4, window=12, warmup_iterations=2), np.arange(60) % 7
    at_once, in_parts = Fleet(model), Fleet(model)
    expected = at_once.evaluate(keys, X, Y).records
    parts = slice(0, 23), slice(23, 24), slice(24, 60)
    made = [in_parts.evaluate(keys[part], X[part], Y[part]).records for part in parts]
    assert np.concatenate(made).tobytes() == expected.tobytes()
    assert all(at_once.state(key).record.tobytes() == in_parts.state(key).record.tobytes() for key in range(7))


def calls(path: Path) -> list[str]:
    """Places in a file where something called a model is asked to forecast or to learn."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr in ("forecast", "learn"):
            receiver = ast.unparse(called.value)
            if receiver.split(".")[-1].strip("_") in ("model", "member", "held"):
                found.append(f"{path.relative_to(SOURCE)}:{called.lineno}")
    return found


def test_nothing_but_models_and_engines_asks_a_model_to_forecast_or_to_learn():
    """One loop turns samples into predictions: whatever users call goes through the engine's."""
    inside = ("wrappers/", "members/", "rivals/", "engine/", "window.py", "agp.py")
    files = [path for path in SOURCE.rglob("*.py") if not str(path.relative_to(SOURCE)).startswith(inside)]
    assert len(files) > 50
    assert [place for path in files for place in calls(path)] == []


def test_the_core_leaves_jax_alone():
    program = (
        "import sys, driftgp.engine, driftgp.fleet, driftgp.checkpoint, driftgp.wrappers; print('jax' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_files_that_comments_in_cpp_name_are_there():
    sources = [*(SOURCE / "engine/cpp").glob("*.[hc]pp"), SOURCE / "engine/cpp/driftgp.h"]
    named = {name for source in sources for name in re.findall(r"[a-z_/]+\.py\b", source.read_text())}
    places = {f"/{path.relative_to(SOURCE.parent)}" for path in SOURCE.rglob("*.py")}
    assert len(named) > 20
    assert sorted(name for name in named if not any(place.endswith(f"/{name}") for place in places)) == []
