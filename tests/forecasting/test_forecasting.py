"""Forecasts of the next steps: honest per step and in the sum, learned late, and never from what is not known yet."""

import pickle
import subprocess
import sys
from datetime import datetime, timedelta

import numpy as np
import pytest

from driftgp import Forecaster

H = 6


def daily(rows, seed=0, noise=1.0, rho=0.8):
    """A day of twelve rows, with errors that last."""
    rng = np.random.default_rng(seed)
    e = np.zeros(rows)
    for t in range(1, rows):
        e[t] = rho * e[t - 1] + noise * rng.normal()
    return 50.0 + 10.0 * np.sin(2 * np.pi * np.arange(rows) / 12) + e


@pytest.fixture(scope="module")
def followed():
    """A stream followed to its end, with the fan of every row of its second half."""
    y = daily(2400)
    forecaster = Forecaster(H, season=12)
    forecaster.update(y[:1200])
    fans = []
    for value in y[1200:]:
        forecaster.update(value)
        fans.append(forecaster.forecast())
    truth = np.array([y[1201 + i : 1201 + i + H] for i in range(len(fans) - H)])
    return fans[: len(truth)], truth


def test_intervals_hold_their_share_at_every_step(followed):
    fans, truth = followed
    ends = np.array([fan.interval(0.9) for fan in fans])  # N×2×H
    inside = ((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean(0)
    assert np.all(np.abs(inside - 0.9) < 0.035), inside


def test_the_sum_of_all_steps_has_an_honest_interval_too(followed):
    fans, truth = followed
    some = range(0, len(fans), 3)
    ends = np.array([fans[i].total(0.9, size=400)[1:] for i in some])
    sums = truth.sum(1)[::3]
    assert abs(np.mean((ends[:, 0] <= sums) & (sums <= ends[:, 1])) - 0.9) < 0.05
    # steps as if they knew nothing of each other would not do
    apart = np.array([np.std([fans[i].sample(200, seed=0)[:, h] for h in range(H)], axis=1) for i in list(some)[:20]])
    together = np.array([fans[i].sample(200, seed=0).sum(1).std() for i in list(some)[:20]])
    assert np.all(together > 1.3 * np.sqrt((apart**2).sum(1)))


def test_errors_grow_with_the_lead_and_stay_below_the_seasonal_naive(followed):
    fans, truth = followed
    errors = np.abs(np.array([fan.mean for fan in fans]) - truth).mean(0)
    assert errors[0] < 0.75 * errors[-1]
    y = daily(2400)
    naive = np.mean([np.abs(y[1201 + i : 1201 + i + H] - y[1189 + i : 1189 + i + H]) for i in range(len(fans))])
    assert errors.mean() < 0.85 * naive


def test_paths_have_the_distribution_of_each_step(followed):
    fan = followed[0][-1]
    paths = fan.sample(4000, seed=1)
    low, high = fan.interval(0.8)
    assert np.all(np.abs(((low <= paths) & (paths <= high)).mean(0) - 0.8) < 0.03)
    np.testing.assert_allclose(fan.to_normal(fan.quantile(0.9)), 1.2816, atol=1e-3)
    assert np.all(fan.quantile(0.1) < fan.quantile(0.9))


def test_how_rows_are_cut_into_calls_changes_nothing():
    y = daily(300)
    whole, parts = Forecaster(H, season=12), Forecaster(H, season=12)
    whole.update(y)
    for piece in np.split(y, [1, 30, 31, 200]):
        parts.update(piece)
    np.testing.assert_array_equal(whole.forecast().mean, parts.forecast().mean)
    np.testing.assert_array_equal(whole.forecast().interval(0.95), parts.forecast().interval(0.95))


def test_asking_for_a_forecast_changes_nothing():
    y = daily(200)
    asked, silent = Forecaster(H, season=12), Forecaster(H, season=12)
    for value in y:
        asked.update(value)
        silent.update(value)
        if asked.rows > H:
            asked.forecast()
    np.testing.assert_array_equal(asked.forecast().mean, silent.forecast().mean)


@pytest.mark.parametrize("duplicate", [Forecaster.copy, lambda f: pickle.loads(pickle.dumps(f))])
def test_a_copy_goes_on_by_itself(duplicate):
    y = daily(320)
    first = Forecaster(H, season=12)
    first.update(y[:250])
    second = duplicate(first)
    before = first.forecast().interval(0.9)
    second.update(y[250:])
    np.testing.assert_array_equal(first.forecast().interval(0.9), before)
    first.update(y[250:])
    np.testing.assert_array_equal(first.forecast().interval(0.9), second.forecast().interval(0.9))


# ---- times -----------------------------------------------------------------------------------------------------------

START = datetime(2024, 1, 1)


def hours(count):
    return np.array([START + timedelta(hours=i) for i in range(count)], "datetime64[us]")


def hourly(count, seed=0):
    rng = np.random.default_rng(seed)
    return 100.0 + 20.0 * np.sin(2 * np.pi * np.arange(count) / 24) + rng.normal(size=count)


def test_the_index_goes_on_where_the_times_end():
    forecaster = Forecaster(24)
    forecaster.update(hourly(400), hours(400))
    fan = forecaster.forecast()
    np.testing.assert_array_equal(fan.index, hours(424)[400:])
    assert np.abs(fan.mean - (100.0 + 20.0 * np.sin(2 * np.pi * np.arange(400, 424) / 24))).max() < 5.0


def test_a_frame_goes_in_and_a_frame_comes_out():
    pd = pytest.importorskip("pandas")
    series = pd.Series(hourly(300), index=pd.date_range("2024-01-01", periods=300, freq="h"))
    forecaster = Forecaster(12)
    forecaster.update(series)
    frame = forecaster.forecast().to_frame()
    assert list(frame.columns) == ["mean", "low", "high"]
    assert frame.index[0] == series.index[-1] + pd.Timedelta(hours=1)
    assert (frame["low"] < frame["mean"]).all()


def test_hours_that_are_missing_are_the_same_as_targets_that_are():
    y, at = hourly(500), hours(500)
    holes = y.copy()
    holes[[100, 101, 102, 400]] = np.nan
    with_nan, without = Forecaster(24), Forecaster(24)
    with_nan.update(holes, at)
    there = np.isfinite(holes)
    without.update(holes[there], at[there])
    np.testing.assert_array_equal(with_nan.forecast().mean, without.forecast().mean)
    assert np.isfinite(with_nan.forecast().mean).all()


def test_one_wild_value_leaves_the_forecast_nearly_as_it_was():
    y = hourly(900)
    wild = y.copy()
    wild[850] = 1e7
    fans = []
    for values in (y, wild):
        forecaster = Forecaster(24, season=24)
        forecaster.update(values)
        fans.append(forecaster.forecast())
    assert np.abs(fans[0].mean - fans[1].mean).max() < 10.0


def test_a_new_level_is_followed():
    y = hourly(1200)
    y[900:] += 60.0
    forecaster = Forecaster(24, season=24)
    forecaster.update(y)
    expected = 160.0 + 20.0 * np.sin(2 * np.pi * np.arange(1200, 1224) / 24)
    assert np.abs(forecaster.forecast().mean - expected).mean() < 10.0


def test_counts_have_no_negative_interval():
    rng = np.random.default_rng(0)
    y = rng.poisson(3.0 + 3.0 * np.sin(2 * np.pi * np.arange(600) / 24)).astype(float)
    forecaster = Forecaster(24, season=24)
    forecaster.update(y)
    fan = forecaster.forecast()
    assert fan.interval(0.95)[0].min() >= 0.0
    assert fan.sample(100, seed=0).min() >= 0.0
    assert np.all(fan.mean > 0.0)


def test_a_column_that_is_known_ahead_is_used():
    rng = np.random.default_rng(0)
    event = (rng.uniform(size=600) < 0.2).astype(float)
    y = 10.0 + 5.0 * event + 0.3 * rng.normal(size=600)
    forecaster = Forecaster(4, season=1, known=("event",))
    forecaster.update(y[:590], known=event[:590])
    blind = Forecaster(4, season=1)
    blind.update(y[:590])
    truth = 10.0 + 5.0 * event[590:594]
    assert np.abs(forecaster.forecast(future=event[590:594]).mean - truth).max() < 1.0
    assert np.abs(blind.forecast().mean - truth).max() > 0.5
    parts = Forecaster(4, season=1, known=("event",))
    for i in range(0, 590, 10):
        parts.update(y[i : i + 10], known=event[i : i + 10])
    future = event[590:594]
    np.testing.assert_array_equal(parts.forecast(future=future).mean, forecaster.forecast(future=future).mean)


# ---- bad input -------------------------------------------------------------------------------------------------------


def test_a_horizon_longer_than_the_stream_is_refused_with_what_is_needed():
    forecaster = Forecaster(24)
    forecaster.update(np.arange(20.0))
    with pytest.raises(ValueError, match="horizon is 24, and there are 20 rows: a forecast needs more rows"):
        forecaster.forecast()


def test_a_frequency_that_cannot_be_inferred_is_asked_for():
    times = np.datetime64("2024-01-01", "us") + np.cumsum(4 ** np.arange(12)).astype("timedelta64[s]")
    with pytest.raises(ValueError, match=r"frequency cannot be inferred from 12 times: give frequency=timedelta"):
        Forecaster(2).update(np.arange(12.0), times)
    few = Forecaster(2)
    few.update(np.arange(5.0), times[:5])
    with pytest.raises(ValueError, match="frequency cannot be inferred from 5 times"):
        few.forecast()
    forecaster = Forecaster(2, frequency=timedelta(hours=1))
    forecaster.update(1.0, [START])
    assert forecaster.rows == 1


def test_future_inputs_that_are_not_given_are_named():
    forecaster = Forecaster(4, known=("holiday",))
    with pytest.raises(ValueError, match=r"known must have the columns holiday of the 10 rows.*forecast\(h, future"):
        forecaster.update(np.arange(10.0), known=np.zeros(14))
    forecaster.update(np.arange(10.0), known=np.zeros(10))
    with pytest.raises(ValueError, match="future must give holiday for the next 4 steps"):
        forecaster.forecast()


@pytest.mark.parametrize(
    ("y", "times", "message"),
    [
        (np.arange(3.0), [START, START, START], "2 of 3 rows have the time of another row"),
        (np.arange(2.0), [START], "times must be one time per row"),
        ([1.0, np.inf], None, "y must be one finite number"),
    ],
)
def test_rows_that_make_no_series_are_refused(y, times, message):
    with pytest.raises(ValueError, match=message):
        Forecaster(2, frequency=timedelta(hours=1)).update(y, times)


# ---- months, and files -----------------------------------------------------------------------------------------------


def months(count: int, step: int = 1, *, ends: bool = False) -> np.ndarray:
    """First or last days of months from January 2010 on."""
    first = np.datetime64("2010-01") + step * np.arange(count)
    return (first + 1).astype("datetime64[D]") - 1 if ends else first.astype("datetime64[D]")


@pytest.mark.parametrize(("step", "season"), [(1, 12), (3, 4), (12, 1)])
@pytest.mark.parametrize("ends", [True, False])
def test_months_are_steps_though_they_differ_in_length(step, season, ends):
    times = months(78, step, ends=ends)
    forecaster = Forecaster(6)
    forecaster.update(np.sin(np.arange(72.0) * 2 * np.pi / max(season, 3)), times[:72])
    assert forecaster.rows == 72
    assert season == 1 or forecaster.seasons[None] == (season,)
    np.testing.assert_array_equal(forecaster.forecast().index, times[72:])


def test_a_missing_month_is_a_missing_target():
    forecaster = Forecaster(3)
    forecaster.update(np.arange(59.0), np.delete(months(60, ends=True), 30))
    assert forecaster.rows == 60


def saved(begun: bool, known: bool = False) -> tuple[Forecaster, np.ndarray]:
    y = hourly(300 if begun else 40)
    forecaster = Forecaster(6, season=24, known=["flag"] if known else [])
    ahead = (np.arange(len(y) + 6) % 5 == 0.0).astype(float) if known else None
    forecaster.update(y, known=None if ahead is None else ahead[: len(y)])
    return forecaster, y


@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize("known", [True, False])
def test_goes_on_from_a_file_in_another_process_to_the_last_bit(tmp_path, begun, known):
    forecaster, y = saved(begun, known)
    forecaster.save(tmp_path / "forecaster.gp")
    more = hourly(60)
    program = (
        "import sys, numpy as np; from driftgp import Forecaster; f = Forecaster.load(sys.argv[1]);"
        "more = np.load(sys.argv[2]); f.update(more, known=np.ones(60) if f.known else None);"
        "fan = f.forecast(6, np.ones(6) if f.known else None);"
        "np.save(sys.argv[3], [fan.mean, *fan.interval(), fan.sample(1, 0)[0], fan.index])"
    )
    np.save(tmp_path / "more.npy", more)
    paths = [str(tmp_path / name) for name in ("forecaster.gp", "more.npy", "fan.npy")]
    subprocess.run([sys.executable, "-c", program, *paths], check=True)
    forecaster.update(more, known=np.ones(60) if known else None)
    fan = forecaster.forecast(6, np.ones(6) if known else None)
    expected = np.array([fan.mean, *fan.interval(), fan.sample(1, 0)[0], fan.index])
    assert np.load(tmp_path / "fan.npy").tobytes() == expected.tobytes()
    assert Forecaster.load(tmp_path / "forecaster.gp").rows == len(y)


def test_times_are_kept_in_a_file():
    forecaster = Forecaster(3)
    forecaster.update(np.sin(np.arange(80.0)), months(80, ends=True))
    back = Forecaster.from_bytes(forecaster.to_bytes())
    np.testing.assert_array_equal(back.forecast().index, forecaster.forecast().index)
    with pytest.raises(ValueError, match="times must be given, as they were before"):
        back.update(1.0)


def test_a_damaged_or_strange_file_is_refused(tmp_path):
    path = tmp_path / "forecaster.gp"
    forecaster, _ = saved(begun=True)
    forecaster.save(path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(ValueError, match=r"forecaster\.gp: .* is damaged: its checksum"):
        Forecaster.load(path)
    with pytest.raises(ValueError, match="not a stream saved by driftgp"):
        Forecaster.from_bytes(b"nothing of the kind")


@pytest.mark.parametrize(
    "change",
    [
        lambda placed: placed.series.core.sums.fill(np.inf),
        lambda placed: placed._replace(length=-5),
        lambda placed: placed._replace(latest=1e300),
        lambda placed: placed._replace(grid=placed.grid._replace(step=-1.0)),
        lambda placed: placed._replace(last=None),
        lambda placed: placed._replace(last=placed.last._replace(y=placed.last.y[1:])),
    ],
)
def test_numbers_that_no_row_could_have_left_are_refused(change):
    forecaster, _ = saved(begun=True)
    forecaster._series[None] = change(forecaster._series[None]) or forecaster._series[None]
    with pytest.raises(ValueError, match="is damaged"):
        Forecaster.from_bytes(forecaster.to_bytes())
