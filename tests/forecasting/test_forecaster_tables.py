"""Tables in and out of a forecaster: names, keys, times with zones, gaps, and what is refused with a remedy."""

import warnings
from datetime import datetime, timedelta

import numpy as np
import pytest

from driftgp import Forecaster

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

H = 5


def values(rows, season=24, seed=0):
    noise = np.random.default_rng(seed).normal(size=rows)
    return 100.0 + 20.0 * np.sin(2 * np.pi * np.arange(rows) / season) + noise


def polars_of(frame):
    """A frame of polars with the columns of one of pandas, time zones included; without pyarrow."""
    columns = {
        name: frame[name].dt.tz_convert("UTC").dt.tz_localize(None) if _zone(frame[name]) else frame[name]
        for name in frame
    }
    made = pl.DataFrame(
        {
            name: column.to_numpy() if column.dtype.kind in "Mfib" else column.tolist()
            for name, column in columns.items()
        }
    )
    for name in frame:
        if _zone(frame[name]):
            made = made.with_columns(pl.col(name).dt.replace_time_zone("UTC").dt.convert_time_zone(_zone(frame[name])))
    return made


def _zone(column):
    zone = getattr(column.dt, "tz", None) if column.dtype.kind == "M" else None
    return None if zone is None else str(zone)


def low(**given):
    return Forecaster(given.pop("horizon", H), effort="low", **given)


def long(rows=90, keys=("a", "b")):
    days = pd.date_range("2024-01-01", periods=rows, freq="D")
    parts = [pd.DataFrame({"unique_id": key, "ds": days, "y": values(rows, 7, seed)}) for seed, key in enumerate(keys)]
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def shop():
    """A shop with promotions, its history and what is known of the next days."""
    rng, rows = np.random.default_rng(0), 120
    days = pd.date_range("2024-01-01", periods=rows + H, freq="D")
    promo = (rng.uniform(size=rows + H) < 0.3).astype(float)
    promo[rows] = 1.0
    frame = pd.DataFrame({"day": days, "promo": promo, "sold": 50.0 + 30.0 * promo + rng.normal(size=rows + H)})
    forecaster = low(target="sold", time="day", known=["promo"])
    forecaster.update(frame[:rows])
    return forecaster, frame[rows:].drop(columns="sold")


# ---- the same rows in other clothes ----------------------------------------------------------------------------------


def test_frames_of_each_library_dicts_and_arrays_give_the_same_numbers():
    at = [datetime(2024, 1, 1) + timedelta(hours=i) for i in range(120)]
    y = values(120)
    pandas = pd.DataFrame({"when": at, "mw": y})
    rows = [{"when": time, "mw": value} for time, value in zip(at, y.tolist(), strict=True)]
    series = pd.Series(y, index=pd.DatetimeIndex(at))
    one_by_one = low(target="mw", time="when")
    for row in rows:
        one_by_one.update(row)
    means = [one_by_one.forecast().mean]
    for given in (pandas, pl.DataFrame(rows), rows, pandas.sample(frac=1.0, random_state=0), pandas.set_index("when")):
        forecaster = low(target="mw", time="when" if "when" in getattr(given, "columns", ["when"]) else None)
        forecaster.update(given)
        means.append(forecaster.forecast().mean)
    for given in ((series,), (y, np.array(at, "datetime64[us]")), (y.tolist(), at)):
        forecaster = low()
        forecaster.update(*given)
        means.append(forecaster.forecast().mean)
    for mean in means[1:]:
        np.testing.assert_array_equal(mean, means[0])


def test_each_key_is_forecast_as_if_it_were_alone():
    frame = long()
    together = low()
    together.update(frame.sample(frac=1.0, random_state=1))
    fans = together.forecast()
    for key, own in frame.groupby("unique_id"):
        alone = low(target="y", time="ds")
        alone.update(own)
        np.testing.assert_array_equal(fans[key].mean, alone.forecast().mean)
    assert together.rows == 180
    assert together.forecast(2, keys=["b"]).mean.shape == (1, 2)


def test_nixtlas_frame_comes_back_under_nixtlas_names():
    forecaster = low()
    forecaster.update(long())
    frame = forecaster.forecast(3).to_frame(level=[80, 95])
    ends = [f"driftgp-{end}-{level}" for level in (80, 95) for end in ("lo", "hi")]
    assert list(frame.columns) == ["unique_id", "ds", "driftgp", *ends]
    assert frame["ds"].iloc[0] == pd.Timestamp("2024-03-31")
    assert (frame["driftgp-lo-95"] < frame["driftgp-lo-80"]).all()


def test_frames_come_back_in_the_library_and_under_the_names_they_came_in():
    frame = (
        polars_of(long())
        .rename({"unique_id": "shop", "ds": "day", "y": "sold"})
        .with_columns(pl.col("day").cast(pl.Date))
    )
    forecaster = low(target="sold", key="shop")
    forecaster.update(frame)
    made = forecaster.forecast(2).to_frame(level=0.9)
    assert isinstance(made, pl.DataFrame)
    assert made.columns == ["shop", "day", "mean", "low", "high"]
    assert made["day"].dtype == pl.Date


def test_forecasts_do_not_change_with_the_number_of_steps_asked_for():
    forecaster = low()
    forecaster.update(values(150))
    whole = forecaster.forecast()
    for h in range(1, H + 1):
        fan = forecaster.forecast(h)
        np.testing.assert_array_equal(fan.mean, whole.mean[:h])
        np.testing.assert_array_equal(fan.interval(0.9)[0], whole.interval(0.9)[0][:h])


def test_new_rows_go_on_where_the_history_ended():
    frame = long()
    whole, parts = low(), low()
    whole.update(frame)
    parts.update(frame[frame["ds"] < "2024-03-10"])
    for _, day in frame[frame["ds"] >= "2024-03-10"].groupby("ds"):
        parts.update(day)
    np.testing.assert_array_equal(whole.forecast().mean, parts.forecast().mean)


# ---- known columns: by name and by time ------------------------------------------------------------------------------


def test_future_is_read_by_name_and_time_whatever_its_order(shop):
    forecaster, future = shop
    fan = forecaster.forecast(H, future=future)
    assert np.abs(fan.mean - 50.0 - 30.0 * future["promo"].to_numpy()).max() < 6.0
    more = pd.concat([future, pd.DataFrame({"day": [pd.Timestamp("2024-01-05")], "promo": [9.0]})]).assign(other="x")
    for given in (
        more.sample(frac=1.0, random_state=0)[["other", "promo", "day"]],
        polars_of(future),
        future.to_dict("records"),
    ):
        np.testing.assert_array_equal(forecaster.forecast(H, future=given).mean, fan.mean)
    np.testing.assert_array_equal(forecaster.forecast(future=future[:2]).mean, fan.mean[:2])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: None, r"future must give promo for the next 5 steps, from 2024-04-30 to 2024-05-04"),
        (lambda f: f.rename(columns={"promo": "Promo"}), "known column 'promo'; .* Did you mean 'Promo'"),
        (lambda f: f.drop(columns="day"), "future must have the column 'day', since rows are paired by their times"),
        (lambda f: f[:3], "future has no row for 2 of the 5 steps: 2024-05-03, 2024-05-04"),
        (lambda f: f.assign(promo=[1.0, np.nan, 0, 0, 0]), "no value of 'promo' in 1 of 5 steps: 2024-05-01"),
        (
            lambda f: f.assign(day=f["day"] + pd.Timedelta(hours=9)),
            "5 times that are not on the grid of one row every 1 day",
        ),
        (lambda f: pd.concat([f, f[:1]]), "future has two rows for 2024-04-30"),
        (lambda f: f.assign(day=f["day"].dt.tz_localize("UTC")), "time must come without a time zone"),
        (lambda f: f["promo"].to_numpy(), "future must be a frame with names, as the rows were"),
    ],
)
def test_a_future_that_does_not_fit_is_named_with_the_remedy(shop, change, message):
    forecaster, future = shop
    with pytest.raises(ValueError, match=message):
        forecaster.forecast(H, future=change(future))


def test_each_key_has_a_future_of_its_own():
    days = pd.date_range("2024-01-01", periods=100 + H, freq="D")
    parts = []
    for seed, key in enumerate("ab"):
        rng = np.random.default_rng(seed)
        promo = (rng.uniform(size=len(days)) < 0.3).astype(float)
        promo[-H:] = [1, 0, 0, 0, 0] if key == "a" else [0, 0, 0, 0, 1]
        parts.append(
            pd.DataFrame(
                {"ds": days, "unique_id": key, "promo": promo, "y": 50 + 30 * promo + rng.normal(size=len(days))}
            )
        )
    frame = pd.concat(parts)
    new = frame["ds"] >= days[100]
    forecaster = low(known=["promo"])
    forecaster.update(frame[~new])
    fans = forecaster.forecast(H, future=frame[new].drop(columns="y"))
    assert fans["a"].mean[0] > 70 > fans["a"].mean[-1]
    assert fans["b"].mean[-1] > 70 > fans["b"].mean[0]
    with pytest.raises(ValueError, match="future has no rows of 'b'"):
        forecaster.forecast(H, future=frame[new & (frame["unique_id"] == "a")])


def test_text_that_is_known_ahead_becomes_one_column_per_category():
    rng = np.random.default_rng(0)
    kind = rng.choice(["none", "half", "third"], 160, p=[0.6, 0.2, 0.2])
    y = 50.0 + 30.0 * (kind == "half") + 12.0 * (kind == "third") + rng.normal(size=160)
    rows = pd.DataFrame({"kind": kind, "y": y})
    forecaster = low(target="y", known=["kind"], horizon=3)
    forecaster.update(rows)
    fan = forecaster.forecast(3, future=pd.DataFrame({"kind": ["third", "none", "half"]}))
    assert np.abs(fan.mean - [62.0, 50.0, 80.0]).max() < 6.0


def test_known_frames_beside_an_array_are_paired_by_their_index():
    at = pd.date_range("2024-01-01", periods=100, freq="D")
    promo = (np.random.default_rng(0).uniform(size=100) < 0.3).astype(float)
    y = pd.Series(50.0 + 30.0 * promo, index=at)
    known = pd.DataFrame({"promo": promo}, index=at)
    one, other = low(known=["promo"]), low(known=["promo"])
    one.update(y, known=known)
    other.update(y, known=known.sample(frac=1.0, random_state=0).assign(more=1.0)[["more", "promo"]])
    future = pd.DataFrame({"promo": np.ones(H)}, index=pd.date_range("2024-04-10", periods=H, freq="D"))
    np.testing.assert_array_equal(one.forecast(future=future).mean, other.forecast(future=future[::-1]).mean)
    with pytest.raises(ValueError, match="known has no row for 10 of the 100 times of y, the first 2024-03-31"):
        low(known=["promo"]).update(y, known=known[:90])
    with pytest.raises(ValueError, match="known must have the column 'promo'; there are 'Promo'"):
        low(known=["promo"]).update(y, known=known.rename(columns={"promo": "Promo"}))


def test_a_column_of_the_past_is_not_needed_for_the_future():
    rng = np.random.default_rng(0)
    hint = rng.normal(size=200)
    y = np.roll(hint, 1) * 10.0 + 100.0 + 0.1 * rng.normal(size=200)
    frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=200, freq="D"), "y": y, "hint": hint})
    forecaster = low(past=["hint"], horizon=1)
    forecaster.update(frame)
    assert forecaster.forecast().to_frame().shape == (1, 4)


def test_holidays_are_known_ahead():
    days = pd.date_range("2024-01-01", periods=200, freq="D")
    off = [str(day.date()) for day in days[::9]]
    y = pd.Series(50.0 + np.random.default_rng(0).normal(size=200) - 30.0 * (np.arange(200) % 9 == 0), index=days)
    forecaster = low(holidays=off, horizon=9)
    forecaster.update(y[:190])
    np.testing.assert_array_equal(forecaster.forecast(9).mean.argmin(), 8)


# ---- times -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("start", ["2024-03-20", "2024-10-17"])
def test_time_zones_are_kept_through_the_change_of_the_clocks(library, start):
    at = pd.date_range(start, periods=24 * 9, freq="h", tz="Europe/Berlin")
    y = 100.0 + 20.0 * np.sin(2 * np.pi * at.hour / 24)
    frame = pd.DataFrame({"when": at, "mw": y})
    forecaster = low(target="mw", horizon=72)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        forecaster.update(frame if library == "pandas" else polars_of(frame))
        made = forecaster.forecast(72).to_frame()
    times = pd.DatetimeIndex(made["when"] if library == "pandas" else made["when"].to_list())
    expected = pd.date_range(at[-1] + pd.Timedelta(hours=1), periods=72, freq="h")
    assert str(times.tz) == "Europe/Berlin"
    assert list(times) == list(expected)
    assert forecaster.rows == len(at)


def test_days_stay_days_when_the_clocks_change():
    at = pd.date_range("2024-01-10", periods=90, freq="D", tz="Europe/Berlin")
    forecaster = low()
    forecaster.update(pd.Series(values(90, 7), index=at))
    assert forecaster.rows == 90
    frame = forecaster.forecast().to_frame()
    assert list(frame.index) == list(pd.date_range("2024-04-09", periods=H, freq="D", tz="Europe/Berlin"))


def test_the_hour_that_comes_twice_is_said_once_and_the_one_left_out_is_a_gap():
    at = pd.date_range("2023-10-20", "2023-10-31", freq="h", tz="Europe/Berlin").tz_localize(None)
    forecaster = low()
    with pytest.warns(UserWarning, match="1 row was left out, the first of 2023-10-29 02:00") as said:
        forecaster.update(values(len(at)), at)
    assert len(said) == 1
    assert forecaster.rows == len(at) - 1
    row_by_row = low()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for time, value in zip(at, values(len(at)), strict=True):
            row_by_row.update(value, [time])
    assert len(said) == 1
    np.testing.assert_array_equal(row_by_row.forecast().mean, forecaster.forecast().mean)
    spring = pd.date_range("2024-03-25", "2024-04-04", freq="h", tz="Europe/Berlin").tz_localize(None)
    gap = low()
    gap.update(values(len(spring)), spring)
    assert gap.rows == len(spring) + 1


def test_business_days_are_steps():
    at = pd.bdate_range("2024-01-01", periods=100)
    forecaster = low(horizon=10)
    forecaster.update(pd.Series(values(100, 5), index=at))
    assert forecaster.rows == 100
    np.testing.assert_array_equal(forecaster.forecast().index, pd.bdate_range("2024-05-20", periods=10).to_numpy())
    with pytest.warns(UserWarning, match="no rows on that day of the week otherwise"):
        forecaster.update(1.0, [pd.Timestamp("2024-05-25")])


def test_a_fixed_frequency_can_be_said():
    forecaster = low(frequency="15min", horizon=2)
    start = datetime(2024, 1, 1)
    for i in range(4):
        forecaster.update(float(i), [start + timedelta(minutes=15 * i)])
    assert forecaster.forecast().index[0] == np.datetime64(start + timedelta(hours=1))
    with pytest.raises(ValueError, match="frequency must be a time above 0, such as timedelta"):
        Forecaster(frequency="often")


# ---- bad input -------------------------------------------------------------------------------------------------------


def two_stores():
    frame = long()
    return frame.rename(columns={"unique_id": "store", "ds": "day", "y": "sold"})


def shifted(frame):
    late = frame["day"].where(frame.index != 60, frame["day"] + pd.Timedelta(hours=11))
    return frame.assign(day=late)[:90]


@pytest.mark.parametrize(
    ("frame", "given", "message"),
    [
        (
            two_stores(),
            {"target": "sold"},
            "90 of 180 rows have the time of another row.*'store' tells them apart: say key='store'",
        ),
        (
            shifted(two_stores()),
            {"target": "sold"},
            "1 of 90 times are not on the grid of one row every 1 day, the first is 2024-03-01 11:00",
        ),
        (
            two_stores(),
            {"target": "Sold", "key": "store"},
            "target is 'Sold', but there is no such column.*Did you mean 'sold'",
        ),
        (two_stores(), {"target": "sold", "key": "shop"}, "key is 'shop', but there is no such column"),
        (
            two_stores(),
            {"target": "sold", "key": "store", "known": ["promo"]},
            "known is 'promo', but there is no such column",
        ),
        (two_stores().assign(more=1.0), {"key": "store"}, "target is not given: name the column to forecast"),
        (
            two_stores().assign(day=two_stores()["day"].astype(str)),
            {"target": "sold", "key": "store"},
            "holds times as text.*pandas.to_datetime",
        ),
        (two_stores().assign(sold="many"), {"target": "sold", "key": "store"}, "the target must hold real numbers"),
    ],
)
def test_what_cannot_be_read_is_named_with_the_remedy(frame, given, message):
    forecaster = low(**given)
    with pytest.raises(ValueError, match=message):
        forecaster.update(frame)
    assert forecaster.rows == 0


def test_rows_that_were_there_before_are_refused():
    forecaster = low()
    frame = long()
    forecaster.update(frame)
    with pytest.raises(
        ValueError, match="'a': 90 of 90 rows are not later than the last row that was taken in, 2024-03-30"
    ):
        forecaster.update(frame)


def test_steps_beyond_the_horizon_and_beyond_the_rows_are_refused():
    forecaster = low()
    with pytest.raises(ValueError, match="no rows to forecast from"):
        forecaster.forecast()
    forecaster.update(values(4))
    with pytest.raises(ValueError, match="h must be at most the horizon, 5; got 9: begin with"):
        forecaster.forecast(9)
    with pytest.raises(ValueError, match="horizon is 5, and there are 4 rows"):
        forecaster.forecast()
    assert len(forecaster.forecast(3)) == 3


def test_a_series_too_short_for_a_forecast_is_left_out_and_said():
    frame = pd.concat([long(), pd.DataFrame({"unique_id": ["new"], "ds": [pd.Timestamp("2024-03-30")], "y": [1.0]})])
    forecaster = low()
    forecaster.update(frame)
    with pytest.warns(UserWarning, match=r"1 of 3 series has too few rows for a forecast, such as 'new' \(1 rows\)"):
        assert list(forecaster.forecast()) == ["a", "b"]


# ---- files and records -----------------------------------------------------------------------------------------------


def test_many_keys_go_on_from_one_file_to_the_last_bit(tmp_path):
    frame = long()
    forecaster = low(known=["promo"], holidays=["2024-02-01"])
    frame["promo"] = np.arange(len(frame)) % 3 == 0
    old = frame["ds"] < "2024-03-20"
    forecaster.update(frame[old])
    forecaster.save(tmp_path / "shops.gp")
    loaded = Forecaster.load(tmp_path / "shops.gp")
    future = pd.DataFrame({"ds": pd.date_range("2024-03-31", periods=H), "promo": True}).merge(
        pd.DataFrame({"unique_id": ["a", "b"]}), how="cross"
    )
    for each in (forecaster, loaded):
        each.update(frame[~old])
    one, other = (each.forecast(future=future).to_frame() for each in (forecaster, loaded))
    pd.testing.assert_frame_equal(one, other)
    assert loaded.to_bytes() == forecaster.to_bytes()
    assert loaded.settings == forecaster.settings


def test_scores_are_those_of_forecasts_made_before_their_rows_came():
    y = values(200)
    forecaster = low(horizon=3)
    forecaster.update(y[:140])
    before, errors = forecaster.scores(), np.zeros(3)
    for i in range(140, 200):
        fan = forecaster.forecast()
        truth = y[i : i + 3]
        errors[: len(truth)] += np.abs(fan.mean[: len(truth)] - truth)
        forecaster.update(y[i])
    after = forecaster.scores()
    assert after.forecasts > before.forecasts
    np.testing.assert_allclose((after.judged * after.error - before.judged * before.error)[0], errors[0], rtol=0.02)
