"""What a new user tries first: each of these once gave a wrong number in silence, or an error that helped nobody."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

import driftgp
from driftgp import AGP, FastAGP, Fleet, Online, checkpoint, evaluate, prequential, recommended
from driftgp.base import sealed
from driftgp.kernels import SE
from driftgp.wrappers import Calibrated, Standardize

RNG = np.random.default_rng(4)
HOURS = np.arange(260)
LOAD = 3000.0 + 500.0 * np.sin(HOURS / 24 * 2 * np.pi) + 20.0 * RNG.normal(size=HOURS.size)  # MW
X, Y = np.column_stack([LOAD[1:-1], LOAD[:-2]]), LOAD[2:]
SMALL = AGP(inducing=4, window=12, noise=0.1, warmup_iterations=5)


# ---- units -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [SMALL, FastAGP(inducing=4, window=12, warmup_iterations=5), Calibrated(SMALL)])
def test_a_bare_agp_says_that_large_numbers_do_not_suit_it_and_what_does(model):
    remedy = r"are as large as 3.*Standardize\(AGP\(…\)\).*Online\(\)"
    with pytest.warns(UserWarning, match=f"inputs {remedy}"):
        model.init(X[:30], Y[:30])
    with pytest.warns(UserWarning, match=f"targets {remedy}"):
        model.init(np.zeros((30, 1)), Y[:30])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        state = model.init(X[:30], Y[:30])
    with pytest.warns(UserWarning, match=remedy):
        prequential(model, state, X[30:40], Y[30:40])
    with pytest.warns(UserWarning, match=remedy):
        Fleet(model).update([0, 1], X[:2], Y[:2])
    online = Online(model)
    with pytest.warns(UserWarning, match=remedy):
        online.update(X[0], Y[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        online.update(X[1], Y[1])  # it was said once


def test_a_bare_agp_says_that_tiny_numbers_do_not_suit_it():
    with pytest.warns(UserWarning, match=r"targets vary by 0\.00\d+ only"):
        SMALL.init(X[:30] / 3000.0, 1e-3 * np.sin(HOURS[:30]))


@pytest.mark.parametrize("model", [Standardize(SMALL), recommended(X[:50], Y[:50])])
def test_a_model_that_finds_its_units_itself_says_nothing(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        online = Online(model, model.init(X[:30], Y[:30]))
        online.update(X[30], Y[30])
        fleet = Fleet(model)
        fleet.warm(X[:30], Y[:30])
        fleet.update(["a"], X[30:31], Y[30:31])
    assert fleet.state("a").record.tobytes() == online.state.record.tobytes()


def test_units_of_a_warm_up_batch_cannot_begin_without_one():
    for update in (
        lambda: Online(Standardize(SMALL)).update(X[0], Y[0]),
        lambda: Fleet(Standardize(SMALL)).update(["a"], X[:1], Y[:1]),
    ):
        with pytest.raises(ValueError, match="X must hold a warm-up batch"):
            update()


def test_numbers_near_unit_scale_are_no_news():
    near, targets = X / 3000.0, Y / 3000.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Online(SMALL, SMALL.init(near[:30], targets[:30])).update(near[30], targets[30])


def test_the_default_beats_persistence_on_load_in_megawatts():
    prediction = Online().evaluate(X, Y).rows(slice(100, None))
    assert evaluate.mse(prediction, Y[100:]) < 0.3 * np.mean((X[100:, 0] - Y[100:]) ** 2)
    assert 0.85 < evaluate.coverage(prediction, Y[100:]) <= 1.0


def test_the_default_in_a_fleet_beats_persistence_too():
    fleet = Fleet()
    keys = np.repeat([["north", "south"]], len(X), axis=0).ravel()
    rows, targets = np.repeat(X, 2, axis=0), np.repeat(Y, 2)
    scale = np.where(keys == "north", 1.0, 0.01)
    prediction = fleet.evaluate(keys, rows * scale[:, None], targets * scale)
    error, naive = (prediction.mean - targets * scale) / scale, rows[:, 0] - targets
    assert np.mean(error[200:] ** 2) < 0.3 * np.mean(naive[200:] ** 2)


# ---- keys ------------------------------------------------------------------------------------------------------------


def test_an_unknown_key_is_refused_unless_new_keys_have_a_state_to_start_from():
    fleet = Fleet()
    fleet.update(["north"], X[:1], Y[:1])
    with pytest.raises(ValueError, match=r"it has had no row of 'sout' yet.*warm\(X, y\).*unknown='start'"):
        fleet.predict(["north", "sout"], X[:2])
    assert fleet.predict(["sout"], X[:1], unknown="start").mean.shape == (1,)
    assert "sout" not in fleet
    warm = Fleet()
    warm.warm(X[:50], Y[:50])
    assert abs(warm.predict(["sout"], X[50:51]).mean[0] - Y[50]) < 200.0
    with pytest.raises(ValueError, match="no row of 'sout'"):
        warm.predict(["sout"], X[:1], unknown="refuse")
    with pytest.raises(ValueError, match="unknown must be one of 'refuse', 'start'"):
        warm.predict(["sout"], X[:1], unknown="guess")  # type: ignore[arg-type]


# ---- files -----------------------------------------------------------------------------------------------------------

ELSEWHERE = """
import sys, numpy as np, driftgp
from driftgp import Fleet, Online
online, fleet = Online.load(sys.argv[1]), Fleet.load(sys.argv[2])
online.update([3000.0, 2990.0], 3010.0)
print(online.predict([3010.0, 3000.0]).mean[0].hex(), fleet.predict(["a"], [[3010.0, 3000.0]]).mean[0].hex())
"""


@pytest.mark.parametrize("rows", [3, 40])
def test_one_file_rebuilds_model_and_state_in_another_process(tmp_path, rows):
    online, fleet = Online(), Fleet()
    online.update(X[:rows], Y[:rows])
    fleet.update(["a"] * rows, X[:rows], Y[:rows])
    online.save(tmp_path / "online.gp")
    fleet.save(tmp_path / "fleet.gp")
    paths = [str(tmp_path / "online.gp"), str(tmp_path / "fleet.gp")]
    done = subprocess.run([sys.executable, "-c", ELSEWHERE, *paths], capture_output=True, text=True, check=True)
    online.update([3000.0, 2990.0], 3010.0)
    here = online.predict([3010.0, 3000.0]).mean[0], fleet.predict(["a"], [[3010.0, 3000.0]]).mean[0]
    assert done.stdout.split() == [float(value).hex() for value in here]
    assert {path.name for path in tmp_path.iterdir()} == {"online.gp", "fleet.gp"}


def test_a_stream_with_names_and_categories_goes_on_from_its_file(tmp_path):
    rows = [{"hour": i % 24, "sky": "rain" if i % 3 else "clear"} for i in range(60)]
    online = Online()
    for row, y in zip(rows[:30], Y, strict=False):
        online.update(row, y)
    online.save(tmp_path / "online.gp")
    back = Online.load(tmp_path / "online.gp")
    for row, y in zip(rows[30:], Y[30:60], strict=True):
        online.update(row, y)
        back.update(row, y)
    assert back.to_bytes() == online.to_bytes()
    assert back.inputs == ("hour", "sky = clear", "sky = rain")
    with pytest.raises(ValueError, match="'sky' missing"):
        back.predict({"hour": 3})


def test_a_file_of_a_model_and_its_state_makes_an_online_too(tmp_path):
    model = recommended(X[:50], Y[:50])
    state = model.init(X[:50], Y[:50])
    checkpoint.save(tmp_path / "state.ckpt", model, state)
    assert Online.load(tmp_path / "state.ckpt").state.record.tobytes() == state.record.tobytes()


def test_an_online_in_place_of_a_state_is_answered_with_what_to_do(tmp_path):
    online = Online()
    online.update(X[:3], Y[:3])
    with pytest.raises(ValueError, match=r"state must be a State of the model; got Online: write it with its own save"):
        checkpoint.save(tmp_path / "x.ckpt", online.model, online)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="there is no state yet: call update with a first row"):
        checkpoint.save(tmp_path / "x.ckpt", online.model, Online().state)


def test_an_online_is_saved_before_its_first_row_too(tmp_path):
    Online(horizon=3).save(tmp_path / "new.gp")
    new, back = Online(horizon=3), Online.load(tmp_path / "new.gp")
    for each in (new, back):
        each.update(X[:5], Y[:5])
    assert back.to_bytes() == new.to_bytes()


@pytest.mark.parametrize(
    ("part", "wrong"),
    [
        *(("clock", wrong) for wrong in (None, 7, [], [-1.0] * 10)),
        *(("categories", wrong) for wrong in (None, 7, [], [[0], []])),
        *(
            ("buffer", wrong)
            for wrong in (7, "x", [0], [400, np.zeros((0, 2)), np.zeros((0, 1)), np.ones(3), np.ones(3)])
        ),
        *(("warmup", wrong) for wrong in ("x", [], -1)),
    ],
)
def test_a_file_that_was_tampered_with_is_refused(part, wrong):
    online = Online()
    online.update(X[:3], Y[:3])
    tree = sealed.opened("online", online.to_bytes())
    assert Online.from_bytes(sealed.seal("online", tree)).to_bytes() == online.to_bytes()
    ((_, _, series),) = tree["series"]
    assert part in series
    series[part] = wrong
    with pytest.raises(
        ValueError, match=r"online is damaged: (the description of its rows is not valid|its header is not)"
    ):
        Online.from_bytes(sealed.seal("online", tree))


def test_a_kernel_of_ones_own_has_to_be_given(tmp_path):
    class Mine(SE):
        pass

    model = Standardize(AGP(Mine(), inducing=3, window=8), adapt=0.99)
    online = Online(model)
    online.update(X[:3], Y[:3])
    online.save(tmp_path / "mine.gp")
    with pytest.raises(ValueError, match=r"mine\.gp: online cannot be read without its model"):
        Online.load(tmp_path / "mine.gp")
    assert Online.load(tmp_path / "mine.gp", model).state.record.tobytes() == online.state.record.tobytes()


# ---- what one sees ---------------------------------------------------------------------------------------------------


def test_everything_says_what_it_is():
    assert repr(AGP()) == "AGP(kernel=SE(lengthscale=1.0, variance=1.0), inducing=10, window=100)"
    assert repr(FastAGP(window=50, noise=0.1)).endswith("noise=(0.1,), inducing=10, window=50, learn_every=0)")
    assert repr(Online()) == "<Online: its first rows will choose the model, no row yet>"
    assert repr(Online(Standardize(AGP()))) == "<Online: Standardize(AGP), no row yet>"
    online, fleet = Online(), Fleet()
    online.update(X[:2], Y[:2])
    fleet.update(["a"], X[:1], Y[:1])
    assert repr(online).startswith("<Online: Guarded(Calibrated(")
    assert repr(online).endswith("2 inputs, 398 rows until the model is chosen>")
    assert repr(fleet) == "<Fleet of 1 key: the default, medium effort>"
    assert repr(Fleet(Standardize(AGP()))) == "<Fleet of 0 keys: Standardize(AGP)>"
    assert repr(online.predict(X[2])).startswith("<Forecast of 1 row: mean (95% interval) 3")


def test_the_version_is_there_and_the_module_runs():
    assert driftgp.__version__.count(".") == 2
    done = subprocess.run([sys.executable, "-m", "driftgp", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"driftgp {driftgp.__version__}")
