"""A bucket by itself: order, late rows, gaps and bytes, without Spark."""

import numpy as np
import pandas as pd
import pytest
from pyspark import cloudpickle

from driftgp import AGP, FastAGP
from driftgp.fleet import Fleet
from driftgp.spark import Job
from driftgp.spark.bucket import Bucket, Kept, StoredBucket
from driftgp.wrappers import Gaps

MODEL = FastAGP(inducing=4, window=10)
COLUMNS = {"key": "k", "time": "t", "features": ["a", "b"], "target": "y"}
JOB = Job(MODEL, **COLUMNS)


def rows(count: int = 40, keys: int = 3, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 2))
    names = [f"k{i % keys}" for i in range(count)]
    return pd.DataFrame({"key": names, "time": np.arange(count), "x0": X[:, 0], "x1": X[:, 1], "y": np.sin(X[:, 0])})


def as_users_have_them(table: pd.DataFrame) -> pd.DataFrame:
    return table.rename(columns={"key": "k", "time": "t", "x0": "a", "x1": "b"})


def test_order_of_arrival_changes_nothing_even_between_rows_of_one_time():
    table = rows()
    table["time"] //= 6  # two rows of each key at a time
    ways = [Bucket.open(JOB, None) for _ in range(2)]
    first = ways[0].answers(table)
    second = ways[1].answers(table.sample(frac=1, random_state=1))
    pd.testing.assert_frame_equal(first, second)
    assert ways[0].stored() == ways[1].stored()


def test_answers_are_those_of_the_fleet():
    table = rows()
    answers = Bucket.open(JOB, None).answers(table)
    expected = Fleet(MODEL, **COLUMNS).evaluate(as_users_have_them(table))
    followed = Bucket.open(JOB, None).follow(as_users_have_them(table))
    assert followed.columns.tolist() == ["k", "t", "y", "mean", "low", "high", "flags"]
    np.testing.assert_array_equal(followed["mean"], answers["mean"])
    np.testing.assert_array_equal(answers["mean"], expected.mean)
    np.testing.assert_array_equal(answers[["low", "high"]].T, expected.interval(0.95))
    assert set(answers["flags"]) == {""}


@pytest.mark.parametrize("horizon", [1, 3])
@pytest.mark.parametrize("zone", ["", "Europe/Berlin"])
def test_answers_of_the_default_are_those_of_the_fleet_with_text_gaps_lags_and_calendar(zone, horizon):
    rng = np.random.default_rng(2)
    N = 450
    table = pd.DataFrame(
        {
            "key": rng.choice(["north", "south"], N),
            "time": 1_700_000_000_000_000 + 3_600_000_000 * np.arange(N),
            "y": np.where(rng.random(N) < 0.05, np.nan, 10.0 + np.sin(np.arange(N) / 4.0)),
            "x0": np.where(rng.random(N) < 0.1, np.nan, rng.normal(size=N)),
            "x1": rng.choice(["clear", "rain", None], N),
        }
    )
    settings = COLUMNS | {"lags": [3, 24], "calendar": True, "effort": "low", "horizon": horizon}
    bucket = Bucket.open(Job(**settings, zone=zone), None)
    answers = pd.concat([bucket.answers(table[:200]), bucket.answers(table[200:])])
    frame = as_users_have_them(table)
    times = pd.to_datetime(frame["t"], unit="us", utc=True)
    frame["t"] = times.dt.tz_convert(zone) if zone else times.dt.tz_localize(None)
    expected = Fleet(**settings).evaluate(frame)
    np.testing.assert_array_equal(answers["mean"], expected.mean)
    np.testing.assert_array_equal(answers[["low", "high"]].T, expected.interval(0.95))
    assert answers["flags"].tolist() == expected.to_frame()["flags"].tolist()


def test_a_late_row_is_predicted_flagged_and_not_learnt_from():
    table = rows()
    bucket, other = Bucket.open(JOB, None), Bucket.open(JOB, None)
    for each in (bucket, other):
        each.answers(table)
    answers = bucket.answers(table.iloc[[3, 4]])
    assert answers["flags"].tolist() == ["late", "late"]
    assert np.isfinite(answers["mean"]).all()
    for key in bucket.fleet.keys:
        assert bucket.fleet.state(key).record.tobytes() == other.fleet.state(key).record.tobytes()


def test_a_row_as_old_as_the_last_of_its_key_is_not_late():
    bucket = Bucket.open(JOB, None)
    bucket.answers(rows())
    assert bucket.answers(rows().tail(1))["flags"].tolist() == [""]


def test_a_key_is_late_by_its_own_clock_alone():
    bucket = Bucket.open(JOB, None)
    bucket.answers(rows().assign(time=1000))
    assert bucket.answers(rows(2).assign(key="new", time=[1, 2]))["flags"].tolist() == ["", ""]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_missing_input_gives_no_prediction_and_does_no_harm(bad):
    table = rows()
    table.loc[10, "x1"] = bad
    answers = Bucket.open(JOB, None).answers(table)
    assert list(np.flatnonzero(answers["flags"])) == [10]
    assert np.isnan(answers["mean"][10])
    assert np.isfinite(answers["mean"].drop(index=10)).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_model_that_fills_gaps_gets_them(bad):
    table = rows()
    table.loc[10, "x1"] = bad
    answers = Bucket.open(Job(Gaps(MODEL), **COLUMNS), None).answers(table)
    assert answers["flags"][10] == "carried"
    assert np.isfinite(answers["mean"]).all()


def test_a_missing_or_infinite_target_is_predicted_and_not_learnt_from():
    table = rows()
    table.loc[[5, 6], "y"] = [np.nan, np.inf]
    answers = Bucket.open(JOB, None).answers(table)
    assert answers["flags"][[5, 6]].tolist() == ["missing", "missing"]
    assert np.isfinite(answers["mean"]).all()


def test_stored_and_opened_again_goes_on_to_the_same_bits():
    table = rows()
    whole, halves = Bucket.open(JOB, None), Bucket.open(JOB, None)
    answers = whole.answers(table)
    first = halves.answers(table.head(20))
    again = Bucket.open(JOB, halves.stored())
    second = again.answers(table.tail(20))
    pd.testing.assert_frame_equal(answers, pd.concat((first, second), ignore_index=True))
    assert again.stored() == whole.stored()


def test_a_bucket_that_comes_back_unchanged_is_not_read_again(monkeypatch):
    """At a few rows per second, reading all keys of a bucket is what costs time."""
    table, kept, read = rows(), Kept(), []
    stored, expected = None, Bucket.open(JOB, None)
    real = Fleet.from_bytes
    monkeypatch.setattr(Fleet, "from_bytes", lambda *given: (read.append(1), real(*given))[1])
    for i in range(len(table)):
        bucket = kept.open(JOB, 5, stored)
        bucket.answers(table[i : i + 1])
        stored = kept.store(5, bucket)
    assert not read
    expected.answers(table)
    assert stored == expected.stored()


def test_a_bucket_that_a_failed_task_has_changed_is_read_again():
    table, kept = rows(), Kept()
    bucket = kept.open(JOB, 5, None)
    bucket.answers(table.head(20))
    stored = kept.store(5, bucket)
    kept.open(JOB, 5, stored).answers(table.tail(20))  # and then the task fails: nothing is stored
    again = kept.open(JOB, 5, stored)
    assert again.stored() == stored


def test_no_more_buckets_are_kept_than_there_is_room_for():
    kept = Kept(most=1)
    for number in range(3):
        bucket = kept.open(JOB, number, None)
        bucket.answers(rows())
        kept.store(number, bucket)
    assert len(kept) == 1


def test_a_job_starts_new_keys_from_a_shared_warm_up():
    table = rows()
    start = JOB.fleet()
    start.warm(as_users_have_them(table))
    answers = Bucket.open(Job(MODEL, **COLUMNS, start=start), None).answers(table)
    np.testing.assert_array_equal(answers["mean"], start.evaluate(as_users_have_them(table)).mean)
    cold = Bucket.open(JOB, None).answers(table)
    assert not np.array_equal(answers["mean"], cold["mean"])
    with pytest.raises(ValueError, match=r"start must be a fleet with the settings of the job.*start.level is 0.95"):
        Job(MODEL, **COLUMNS, level=0.9, start=start)


@pytest.mark.parametrize(
    ("other", "name"),
    [
        (Job(FastAGP(inducing=5, window=10), **COLUMNS), "model.inducing is 4 there and 5 here"),
        (Job(**COLUMNS), "job.model"),
        (Job(MODEL, **COLUMNS | {"features": ["b", "a"]}), "job.settings.features"),
        (Job(MODEL, **COLUMNS, buckets=7), "job.buckets is 64 there and 7 here"),
        (Job(MODEL, **COLUMNS, lags=2), "job.settings.lags"),
        (Job(MODEL, **COLUMNS, zone="UTC"), "job.zone"),
    ],
)
def test_refuses_the_state_of_another_model_or_job(other, name):
    bucket = Bucket.open(JOB, None)
    bucket.answers(rows())
    with pytest.raises(ValueError, match=name):
        Bucket.open(other, bucket.stored())


def test_refuses_a_damaged_state():
    bucket = Bucket.open(JOB, None)
    bucket.answers(rows())
    job, fleet = bucket.stored()
    with pytest.raises(ValueError, match="damaged"):
        Bucket.open(JOB, StoredBucket(job, fleet[:-50] + b"!" + fleet[-49:]))


def test_a_worker_makes_one_job_of_what_several_tasks_bring():
    sent = cloudpickle.dumps(Job(AGP(), **COLUMNS))
    assert cloudpickle.loads(sent) is cloudpickle.loads(sent)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": "a"}, "features must be a list"),
        ({"target": "k"}, "'k' has several"),
        ({"level": 1.0}, "level must lie"),
        ({"buckets": 0}, "buckets must be a whole number"),
        ({"effort": "low"}, "effort, support and base belong to the default model"),
        ({"start": b"nonsense"}, "not a stream saved by driftgp"),
    ],
)
def test_refuses_a_job_that_cannot_be(change, message):
    with pytest.raises(ValueError, match=message):
        Job(**{"model": MODEL, **COLUMNS, **change})
