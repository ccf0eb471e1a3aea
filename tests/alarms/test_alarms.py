"""Alarms: no more false ones than stated, for scores of any distribution; soon after a change; of the right kind."""

import json

import numpy as np
import pytest

from driftgp.alarms import KINDS, Alarm, Alarms, find_alarms
from driftgp.predictions import Gaussian

ROWS = 600


def alarms_of(z, X=None, **settings):
    return Alarms(**settings).update_all(z, X)


def one_by_one(z, X, widths, **settings):
    watch = Alarms(**settings)
    return [alarm for row in zip(z, X, widths, strict=True) for alarm in watch.update(*row)], watch.to_json()


# Scores that are exchangeable; all but the last two are calibrated too.
SCORES = {
    "normal": lambda rng, n: rng.normal(size=n),
    "of one of a few values": lambda rng, n: rng.choice([-1.2, -0.4, 0.1, 1.5], size=n),
    "with a level of their own": lambda rng, n: rng.normal() + 0.5 * rng.normal(size=n),
    "drawn without return": lambda rng, n: rng.permutation(np.linspace(-1.9, 1.9, n)),
}


@pytest.mark.parametrize("name", SCORES)
def test_false_alarms_are_at_most_as_frequent_as_stated(name):
    """40 streams of 600 rows, patience 500: at most 48 are expected, whatever the distribution of the scores."""
    rng = np.random.default_rng(0)
    patience, streams = 500, 40
    found = []
    for _ in range(streams):
        X = rng.exponential(size=(ROWS, 2))
        found += alarms_of(SCORES[name](rng, ROWS), X, inputs=("a", "b"), patience=patience)
    if name == "with a level of their own":  # intervals that are wrong all along break their promise
        found = [alarm for alarm in found if alarm.kind != "error"]
    expected = streams * ROWS / patience
    assert len(found) <= expected + 3 * np.sqrt(expected)


def test_ranks_are_uniform_and_independent_for_exchangeable_scores():
    from driftgp.alarms.detectors import Counts

    rng = np.random.default_rng(1)
    counts, track = Counts(np.zeros((1, 161), np.int64)), np.zeros(100, np.int64)
    z = 3.0 + rng.standard_cauchy(size=(50, 100))
    p = np.concatenate([counts.ranks_of_scores(track, some, rng.uniform(size=100))[0] for some in z])
    assert abs(p.mean() - 0.5) < 0.02
    assert np.abs(np.histogram(p, 10, (0, 1))[0] / 500.0 - 1.0).max() < 0.2
    assert abs(np.corrcoef(p[1:], p[:-1])[0, 1]) < 0.05


@pytest.mark.parametrize("n", [1, 30, 1000, 100_000])
def test_evidence_has_a_mean_of_one_if_ranks_are_uniform(n):
    from driftgp.alarms.detectors import log_evidence

    p = (np.arange(20_000) + 0.5) / 20_000
    total = np.full(len(p), n)
    means = sum(
        share * np.exp(log_evidence(p, total, np.full(len(p), outside), p)).mean(0)
        for outside, share in ((True, 0.05), (False, 0.95))  # targets outside their 95 % interval, and inside
    )
    assert np.all(means < 1.0 + 2e-3)
    assert np.all(means > 0.6)  # sums over heavy tails come to 1 slowly


CHANGES = {
    "level up": (lambda z: z + 2.0, "level", "up", 20),
    "level down": (lambda z: z - 2.0, "level", "down", 20),
    "more noise": (lambda z: 3.0 * z, "noise", "up", 30),
    "less noise": (lambda z: 0.2 * z, "noise", "down", 60),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_found_soon_and_named(name):
    change, kind, direction, most = CHANGES[name]
    rng = np.random.default_rng(2)
    first = []
    for _ in range(15):
        z = rng.normal(size=ROWS)
        z[400:] = change(z[400:])
        first.append(next(alarm for alarm in alarms_of(z) if alarm.row >= 400))
    assert np.median([alarm.row - 399 for alarm in first]) <= most
    assert sum((alarm.kind, alarm.direction) == (kind, direction) for alarm in first) >= 10
    assert np.median([abs(alarm.since - 400) for alarm in first]) <= 5


def test_intervals_that_hold_less_than_they_promise_raise_an_alarm_from_the_first_row_on():
    rng = np.random.default_rng(3)
    found = alarms_of(1.8 * rng.normal(size=ROWS))  # ranks cannot tell: it was so all along
    assert found[0].kind == "error"


def test_an_input_that_leaves_its_range_is_named():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(ROWS, 3))
    X[450:, 1] += 8.0
    found = alarms_of(rng.normal(size=ROWS), X, inputs=("a", "b", "c"))
    assert [(alarm.kind, alarm.inputs) for alarm in found] == [("input", ("b",))]
    assert 450 <= found[0].row < 460


def test_an_input_whose_effect_changes_is_named():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(ROWS, 3))
    z = rng.normal(size=ROWS)
    z[450:] += 3.0 * X[450:, 2]
    found = alarms_of(z, X, inputs=("a", "b", "c"))
    assert found[0].row >= 450
    assert found[0].inputs[0] == "c"


def test_one_wild_row_raises_no_alarm():
    rng = np.random.default_rng(6)
    z, X = rng.normal(size=ROWS), rng.normal(size=(ROWS, 2))
    z[300], X[400, 0] = 1e9, -1e12
    assert alarms_of(z, X, inputs=("a", "b")) == []


def test_a_model_that_widens_its_forecasts_at_once_does_not_hide_a_change():
    z, width = np.random.default_rng(14).normal(size=ROWS), np.ones(ROWS)
    z[400:406], width[400:406] = [3.5, 1.6, 1.4, 1.2, 1.1, 1.0], [1.0, 4.0, 5.0, 5.0, 5.0, 5.0]  # 5 or more off
    found = Alarms().update_all(z, None, width)
    assert found[0].kind == "level"
    assert 400 <= found[0].since <= found[0].row < 406
    assert alarms_of(z) == []


def test_forecasts_as_wide_as_usual_are_judged_by_their_normal_scores():
    from driftgp.alarms.usual import UsualWidth

    rng = np.random.default_rng(15)
    by_hour = np.exp(np.sin(2 * np.pi * np.arange(2000) / 24))  # seven times as wide by day as by night
    for width in (np.full(2000, 3.0), by_hour, 1e9 * by_hour):
        z = rng.normal(size=2000)
        assert UsualWidth().scores(z, width)[100:].tolist() == z[100:].tolist()


def test_forecasts_that_stay_wide_become_the_usual_ones():
    from driftgp.alarms.usual import UsualWidth

    scores = UsualWidth().scores(np.ones(2300), np.repeat([1.0, 5.0], [300, 2000]))
    assert scores[300] == pytest.approx(5.0 / np.exp(0.1))
    assert scores[-1] == 1.0


def test_a_width_that_is_none_is_passed_over():
    rng = np.random.default_rng(16)
    z = rng.normal(size=ROWS)
    assert Alarms().update_all(z, None, np.tile([0.0, np.nan, np.inf, -1.0], ROWS // 4)) == []


def test_the_default_model_follows_a_jump_and_yet_it_is_heard():
    from driftgp import prequential, recommended

    rng, heard = np.random.default_rng(17), 0
    for _ in range(10):
        X = rng.normal(size=(550, 2))
        y = np.sin(X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=550)
        y[500:] += 6.0 * 0.3
        model = recommended(X[:200], y[:200])
        run = prequential(model, model.init(X[:200], y[:200]), X[200:], y[200:])
        found = find_alarms(run.prediction, y[200:], X[200:])
        heard += bool(found) and 300 <= found[0].row < 330
    assert heard >= 6


def test_missing_targets_and_inputs_are_no_evidence():
    rng = np.random.default_rng(7)
    z, X = rng.normal(size=ROWS), rng.normal(size=(ROWS, 2))
    z[100:200], X[150:400, 1] = np.nan, np.nan
    assert alarms_of(z, X, inputs=("a", "b")) == []


def test_an_input_that_comes_late_or_is_beyond_all_numbers_does_no_harm():
    """At first it has no range to be outside of; then an alarm may say that it has begun."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    X[:400, 1] = np.nan
    watch = Alarms(["a", "b"])
    found = watch.update_all(rng.normal(size=600), X)
    assert {(alarm.kind, alarm.inputs) for alarm in found} <= {("input", ("b",))}
    watch.update(0.0, [-1.7e308, 0.0])
    for _ in range(100):
        watch.update(0.0, [1.7e308, 0.0])


def test_errors_that_last_a_horizon_are_no_change():
    rng = np.random.default_rng(8)
    noise = rng.normal(size=3000 + 11)
    z = np.convolve(noise, np.ones(12) / np.sqrt(12.0), "valid")  # 12 rows ahead, all share 11 shocks
    assert len(alarms_of(z, horizon=12)) <= 2
    assert len(alarms_of(z)) > 5


def test_after_an_alarm_the_new_level_is_the_usual_one():
    rng = np.random.default_rng(9)
    z = rng.normal(size=3000)
    z[1000:] = 0.5 * z[1000:] + 1.0
    found = alarms_of(z)
    assert 1 <= len(found) <= 3


def test_a_program_is_called_with_each_alarm():
    heard: list[Alarm] = []
    rng = np.random.default_rng(10)
    z = rng.normal(size=ROWS) + np.repeat([0.0, 4.0], ROWS // 2)
    assert alarms_of(z, call=heard.append) == heard
    assert str(heard[0]).startswith(f"row {heard[0].row}: targets are higher than forecast")
    assert heard[0].flag == "alarm:level-up"


def test_alarms_go_on_from_json_as_if_they_had_never_stopped():
    rng = np.random.default_rng(11)
    z, X = 1.3 * rng.normal(size=ROWS), rng.normal(size=(ROWS, 2))
    z[350:] += 1.0
    whole = alarms_of(z, X, inputs=("a", "b"), patience=100, horizon=2)
    first = Alarms(("a", "b"), patience=100, horizon=2)
    found = first.update_all(z[:300], X[:300])
    second = Alarms(("a", "b"), patience=100, horizon=2)
    second.restore(json.loads(json.dumps(first.to_json())))
    found += second.update_all(z[300:], X[300:])
    assert found == whole
    assert {alarm.kind for alarm in whole} <= set(KINDS)


@pytest.mark.parametrize(
    ("path", "value"),
    [("rows", -1), ("last", "soon"), ("tracks", []), ("width", [1.0, 2.0]), ("width", [3, 0.0, -1.0])],
)
def test_what_was_never_stored_is_refused(path, value):
    watch = Alarms(("a",))
    with pytest.raises(ValueError, match=r"alarms|tracks"):
        watch.restore(watch.to_json() | {path: value})


@pytest.mark.parametrize(("path", "value"), [("recent", [[0.0]]), ("moments", "much"), ("range", None)])
def test_inputs_that_were_never_stored_are_refused(path, value):
    watch = Alarms(("a",))
    stored = watch.to_json()
    with pytest.raises(ValueError, match="alarms"):
        watch.restore(stored | {"inputs": stored["inputs"] | {path: value}})


@pytest.mark.parametrize("horizon", [1, 2, 50])
@pytest.mark.parametrize("cut", [7, 150, 2 * ROWS])
def test_rows_that_are_taken_in_together_are_the_same_as_row_by_row(horizon, cut):
    rng = np.random.default_rng(12)
    z, X, widths = rng.normal(size=ROWS), rng.normal(size=(ROWS, 2)), np.exp(0.3 * rng.normal(size=ROWS))
    z[200:] += 2.0
    X[400:, 1] += 9.0
    z[300], X[100, 0] = np.nan, np.nan
    settings = {"inputs": ("a", "b"), "patience": 300, "horizon": horizon}
    watch, found = Alarms(**settings), []
    for some in (slice(begin, begin + cut) for begin in range(0, ROWS, cut)):
        found += watch.update_all(z[some], X[some], widths[some])
    assert (found, watch.to_json()) == one_by_one(z, X, widths, **settings)
    assert len({alarm.row for alarm in found}) >= 2


def test_alarms_of_a_prediction_are_those_of_its_scores():
    y = 2.0 * np.random.default_rng(12).normal(size=ROWS)
    y[300] = np.nan
    standard = Gaussian(np.zeros(ROWS), np.ones(ROWS), np.ones(ROWS))
    assert find_alarms(standard, y) == alarms_of(y)
    assert find_alarms(standard, y, patience=1e300) == []


@pytest.mark.slow
def test_false_alarms_of_the_default_model_on_stationary_streams():
    """1000 streams of 1000 rows, 500 of them watched: at the stated rate at most 50 alarms are expected."""
    from driftgp import prequential, recommended

    rng = np.random.default_rng(13)
    count = 0
    for _ in range(1000):
        X = rng.normal(size=(700, 2))
        y = np.sin(X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=700)
        model = recommended(X[:200], y[:200])
        run = prequential(model, model.init(X[:200], y[:200]), X[200:], y[200:])
        count += len(find_alarms(run.prediction, y[200:], X[200:]))
    assert count <= 1000 * 500 / 10_000
