"""Forecasts of a series that changes: near its data at every row, soon at the new level, and whole whatever happens."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

from driftgp import Forecaster
from driftgp.forecasting.units import envelope

H, CUT = 24, 300
FILL = 9.97e36  # of netCDF


def changed(kind: str, seed: int, rows: int = 600) -> np.ndarray:
    """A series whose level changes in row `CUT` and stays."""
    rng, late = np.random.default_rng(seed), np.arange(rows) >= CUT
    if kind == "level":
        return 100.0 + 50.0 * late + rng.normal(size=rows)
    if kind == "counts":
        return rng.poisson(np.where(late, 500.0, 50.0)).astype(float)
    curve = 100.0 + 30.0 * np.sin(2 * np.pi * np.arange(rows) / 24) + rng.normal(size=rows)
    return curve * np.where(late, 10.0, 1.0)


def followed(y: np.ndarray, begin: int, season: int | None = 24, horizon: int = H) -> np.ndarray:
    """Means, ends and medians of the forecasts from each row on, N×4×H; in the envelope and in order."""
    forecaster = Forecaster(horizon, season=season)
    forecaster.update(y[:begin])
    said = []
    for row in range(begin, len(y)):
        forecaster.update(y[row])
        fan = forecaster.forecast()
        low, high = fan.interval(0.99)
        median = fan.quantile(0.5)
        values = np.array([fan.mean, low, median, high])
        least, greatest = envelope(np.nanmin(y[: row + 1]), np.nanmax(y[: row + 1]))
        assert np.isfinite(values).all(), row
        assert np.all((low <= median) & (median <= high) & (fan.variance > 0.0)), row
        assert values.min() >= least, row
        assert values.max() <= greatest, row
        said.append(values)
    return np.array(said)


@pytest.mark.parametrize("kind", ["level", "counts", "curve"])
@pytest.mark.parametrize(("season", "seed"), [(24, 0), (1, 1), (24, 2)])
def test_a_level_that_changes_and_stays_does_not_drive_forecasts_away(kind, season, seed):
    y = changed(kind, seed)
    means = followed(y, CUT - 50, season)[:, 0]
    errors = np.abs(means[:-1, 0] - y[CUT - 49 :])
    scale = {"level": 1.0, "counts": np.sqrt(10.0), "curve": 10.0}[kind]
    assert np.mean(errors[-100:]) < 1.5 * scale * np.mean(errors[:40])


@pytest.mark.parametrize("horizon", [1, H])
@pytest.mark.parametrize(
    "change",
    [lambda y: y + 50.0, lambda y: y + 1000.0, lambda y: y - 1000.0, lambda y: 100.0 * y, lambda y: 0.01 * y],
    ids=["50 sd", "1000 sd", "-1000 sd", "unit x 100", "unit / 100"],
)
def test_another_level_or_unit_is_followed_within_three_rows(change, horizon):
    y = 100.0 + 5.0 * np.sin(2 * np.pi * np.arange(CUT + 40) / 24) + np.random.default_rng(0).normal(size=CUT + 40)
    y[CUT:] = change(y[CUT:])
    size = np.std(y[CUT:])
    means = followed(y, CUT + 2, horizon=horizon)[:, 0, 0]
    assert np.all(np.abs(means[:-1] - y[CUT + 3 :]) < 3.0 * size)


def test_a_new_level_is_followed_though_every_other_row_is_missing():
    y = changed("level", 0)
    y[1::2] = np.nan
    means = followed(y, CUT + 5, season=1, horizon=1)[:, 0, 0]
    assert np.abs(means - 150.0).max() < 10.0


def test_a_machine_that_is_on_and_off_in_turn_costs_a_row_at_each_switch():
    t = np.arange(900)
    y = np.random.default_rng(0).normal(size=900) + np.where(t // 50 % 2 == 1, 1000.0, 0.0) * (t >= CUT)
    means = followed(y, CUT, season=None)[:, 0, 0]
    far = np.flatnonzero(np.abs(means[:-1] - y[CUT + 1 :]) > 100.0)
    assert len(far) <= 3 + 12 + 3  # three rows at first, then one for each switch


@pytest.mark.parametrize("row", [3, 20, 300])
def test_one_fill_value_leaves_no_trace(row):
    y = 100.0 + np.random.default_rng(1).normal(size=700)
    filled = y.copy()
    filled[row] = FILL
    forecaster, other = Forecaster(6, season=24), Forecaster(6, season=24)
    forecaster.update(filled)
    other.update(np.where(np.arange(700) == row, np.nan, y))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fan, expected = forecaster.forecast(), other.forecast()
    np.testing.assert_allclose(fan.mean, expected.mean, atol=0.2)
    np.testing.assert_allclose(fan.interval(), expected.interval(), atol=0.5)


def test_a_stretch_of_fill_values_is_over_when_it_ends():
    y = 100.0 + np.random.default_rng(1).normal(size=600)
    y[400:420] = FILL
    forecaster = Forecaster(6, season=24)
    forecaster.update(y[:422])
    for value in y[422:]:
        assert np.abs(forecaster.forecast().mean - 100.0).max() < 10.0
        forecaster.update(value)


def test_errors_that_grow_are_learned_though_each_is_wild_at_first():
    rng = np.random.default_rng(0)
    y = 100.0 + rng.normal(size=900) * np.where(np.arange(900) < 500, 1.0, 100.0)
    said = followed(y, 700)
    inside = (said[:-1, 1, 0] <= y[701:]) & (y[701:] <= said[:-1, 3, 0])
    assert inside.mean() > 0.9


def test_a_known_column_of_any_size_leaves_forecasts_finite():
    y, known = 100.0 + np.random.default_rng(0).normal(size=300), np.zeros(300)
    known[200:210] = 1e200
    forecaster = Forecaster(4, season=1, known=("column",))
    forecaster.update(y, known=known)
    assert np.abs(forecaster.forecast(4, np.zeros(4)).mean - 100.0).max() < 20.0


# ---- calls that do not happen ----------------------------------------------------------------------------------------


def hours(count: int, step: int = 1) -> np.ndarray:
    return np.datetime64("2024-01-01", "us") + step * np.arange(count) * np.timedelta64(1, "h")


@pytest.mark.parametrize("rows", [0, 30, 200])
def test_a_refused_call_changes_nothing(rows):
    y = 100.0 + np.random.default_rng(0).normal(size=300)
    forecaster = Forecaster(4, season=24, known=["flag"])
    if rows:
        forecaster.update(y[:rows], hours(rows), known=np.zeros(rows))
    before = forecaster.to_bytes()
    later = hours(rows + 60)[rows:]
    for bad in (
        {"times": later[:50:5], "known": np.zeros(3)},  # known is too short; its times are five hours apart
        {"times": later[[0, 0, 0, 0, 0, 1, 1, 1, 1, 1]], "known": np.zeros(10)},
        {"times": later[:3], "known": np.zeros(10)},
        {"times": later[:10], "known": np.full(10, np.inf)},
        {"times": later[:10]},
    ):
        with pytest.raises(ValueError, match=r"known must|times must|must be finite|have the time of another"):
            forecaster.update(y[:10], **bad)
        assert forecaster.to_bytes() == before
    forecaster.update(y[:10], later[:10], known=np.zeros(10))
    assert forecaster.rows == rows + 10
    assert forecaster.forecast(4, np.zeros(4)).index[0] == hours(rows + 11)[-1]


# Interrupts by a timer in a process of its own: each call has happened, or it has not, to the last bit.
INTERRUPTS = """
import signal, sys
import numpy as np
from driftgp import Forecaster

class Stop(Exception):
    pass

def stop(*_):
    raise Stop

def bits(forecaster):
    return hash(forecaster.to_bytes())

times, rng = int(sys.argv[1]), np.random.default_rng(0)
y = 100 + np.random.default_rng(1).normal(size=400)
y[200:] += 50
pieces = [y[:40], *y[40:60, None], y[60:196], *y[196:206, None]]
whole, states = Forecaster(6, season=24), [bits(Forecaster(6, season=24))]
for piece in pieces:
    whole.update(piece)
    states.append(bits(whole))
signal.signal(signal.SIGPROF, stop)
heard, torn = 0, 0
while heard < times:
    forecaster, done, tried = Forecaster(6, season=24), 0, 0
    while done < len(pieces):
        try:
            if tried < 2:  # then it may get on
                signal.setitimer(signal.ITIMER_PROF, rng.uniform(1e-5, 1.5e-3 * max(len(pieces[done]), 2)))
            forecaster.update(pieces[done])
            signal.setitimer(signal.ITIMER_PROF, 0)
        except Stop:
            heard += 1
        signal.setitimer(signal.ITIMER_PROF, 0)
        reached = bits(forecaster)
        if reached not in states[done : done + 2]:
            torn += 1
            break
        happened = reached == states[done + 1]
        done, tried = done + happened, 0 if happened else tried + 1
print(heard, torn)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="timers that send signals")
def test_an_interrupted_update_has_happened_or_has_not():
    done = subprocess.run([sys.executable, "-c", INTERRUPTS, "40"], capture_output=True, check=True, text=True)
    heard, torn = map(int, done.stdout.split())
    assert heard >= 40
    assert torn == 0
