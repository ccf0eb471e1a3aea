"""A bucket by itself: order, late rows, gaps and bytes, without Spark."""

import numpy as np
import pandas as pd
import pytest
from driftgp.essence import Essence
from pyspark import cloudpickle

from driftgp import AGP, FastAGP
from driftgp.fleet import Fleet
from driftgp.spark import Job
from driftgp.spark.bucket import Bucket, Kept, Stored
from driftgp.wrappers import CarryForward

MODEL = FastAGP(inducing=4, window=10)
COLUMNS = {"key": "k", "time": "t", "features": ["a", "b"], "target": "y"}
JOB = Job(MODEL, **COLUMNS)


def rows(count: int = 40, keys: int = 3, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 2))
    names = [f"k{i % keys}" for i in range(count)]
    return pd.DataFrame({"key": names, "time": np.arange(count), "x": list(X), "y": np.sin(X[:, 0])})


def test_order_of_arrival_changes_nothing_even_between_rows_of_one_time():
    table = rows()
    table["time"] //= 6  # two rows of each key at a time
    ways = [Bucket.open(JOB, None) for _ in range(2)]
    first = ways[0].follow(table)
    second = ways[1].follow(table.sample(frac=1, random_state=1))
    pd.testing.assert_frame_equal(first, second)
    assert ways[0].stored() == ways[1].stored()


def test_answers_are_those_of_the_fleet():
    table = rows()
    answers = Bucket.open(JOB, None).follow(table)
    expected = Fleet(MODEL).evaluate(table["key"], np.stack(table["x"]), table["y"])
    np.testing.assert_array_equal(answers["mean"], expected.mean)
    np.testing.assert_allclose(answers[["lower", "upper"]].T, expected.interval(0.95), rtol=1e-12)
    assert answers["learnt"].all()


def test_a_late_row_is_predicted_flagged_and_not_learnt_from():
    table = rows()
    bucket = Bucket.open(JOB, None)
    bucket.follow(table)
    before = bucket.stored()
    late = table.iloc[[3, 4]].assign(time=[3, 4])
    answers = bucket.follow(late)
    assert answers["late"].all()
    assert not answers["learnt"].any()
    assert np.isfinite(answers["mean"]).all()
    assert bucket.stored() == before


def test_a_row_as_old_as_the_last_of_its_key_is_not_late():
    bucket = Bucket.open(JOB, None)
    bucket.follow(rows())
    assert bucket.follow(rows().tail(1))["learnt"].all()


def test_a_key_is_late_by_its_own_clock_alone():
    bucket = Bucket.open(JOB, None)
    bucket.follow(rows().assign(time=1000))
    assert not bucket.follow(rows(2).assign(key="new", time=[1, 2]))["late"].any()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_missing_input_gives_no_prediction_and_does_no_harm(bad):
    table = rows()
    table.at[10, "x"] = np.array([0.0, bad])
    answers = Bucket.open(JOB, None).follow(table)
    assert answers["missing"].sum() == 1
    assert np.isnan(answers["mean"][10])
    assert not answers["learnt"][10]
    assert np.isfinite(answers["mean"].drop(index=10)).all()


def test_a_model_that_fills_gaps_gets_them():
    table = rows()
    table.at[10, "x"] = np.array([0.0, np.nan])
    answers = Bucket.open(Job(CarryForward(MODEL), **COLUMNS), None).follow(table)
    assert not answers["missing"].any()
    assert np.isfinite(answers["mean"]).all()


def test_a_missing_or_infinite_target_is_predicted_and_not_learnt_from():
    table = rows()
    table.loc[[5, 6], "y"] = [np.nan, np.inf]
    answers = Bucket.open(JOB, None).follow(table)
    assert list(np.flatnonzero(~answers["learnt"])) == [5, 6]
    assert np.isfinite(answers["mean"]).all()


def test_forgetting_by_the_clock_is_that_of_the_fleet():
    table = rows()
    table["time"] **= 2
    answers = Bucket.open(Job(MODEL, **COLUMNS, step=50.0), None).follow(table)
    expected = Fleet(MODEL).evaluate(table["key"], np.stack(table["x"]), table["y"], table["time"] / 50.0)
    np.testing.assert_array_equal(answers["mean"], expected.mean)


def test_stored_and_opened_again_goes_on_to_the_same_bits():
    table = rows()
    whole, halves = Bucket.open(JOB, None), Bucket.open(JOB, None)
    answers = whole.follow(table)
    first = halves.follow(table.head(20))
    second = Bucket.open(JOB, halves.stored()).follow(table.tail(20))
    pd.testing.assert_frame_equal(answers, pd.concat((first, second), ignore_index=True))


def test_a_bucket_that_comes_back_unchanged_is_not_read_again(monkeypatch):
    """At a few rows per second, reading and writing all keys of a bucket is what costs time."""
    table, kept = rows(), Kept()
    stored, expected = None, Bucket.open(JOB, None)
    read, cut = [], []
    monkeypatch.setattr(Essence, "join", lambda self, *given, old=Essence.join: (read.append(1), old(self, *given))[1])
    monkeypatch.setattr(Essence, "cut", lambda self, given, old=Essence.cut: (cut.append(1), old(self, given))[1])
    for i in range(len(table)):
        bucket = kept.open(JOB, 5, stored)
        bucket.follow(table[i : i + 1])
        stored = kept.store(5, bucket)
    assert not read
    assert len(cut) == len(table)
    expected.follow(table)
    assert stored == expected.stored()


def test_a_bucket_that_a_failed_task_has_changed_is_read_again():
    table, kept = rows(), Kept()
    bucket = kept.open(JOB, 5, None)
    bucket.follow(table.head(20))
    stored = kept.store(5, bucket)
    kept.open(JOB, 5, stored).follow(table.tail(20))  # and then the task fails: nothing is stored
    again = kept.open(JOB, 5, stored)
    assert again.stored() == stored


def test_no_more_buckets_are_kept_than_there_is_room_for():
    kept = Kept(most=1)
    for number in range(3):
        bucket = kept.open(JOB, number, None)
        bucket.follow(rows())
        kept.store(number, bucket)
    assert len(kept) == 1


def test_a_job_starts_new_keys_from_a_shared_warm_up():
    table = rows()
    X, y = np.stack(table["x"]), table["y"].to_numpy()
    start = Fleet(MODEL)
    start.warm(X, y)
    answers = Bucket.open(Job(MODEL, **COLUMNS, start=start), None).follow(table)
    np.testing.assert_array_equal(answers["mean"], start.evaluate(table["key"], X, y).mean)


@pytest.mark.parametrize(
    ("other", "name"),
    [
        (Job(FastAGP(inducing=5, window=10), **COLUMNS), "model.inducing is 4 there and 5 here"),
        (Job(MODEL, **COLUMNS | {"features": ["b", "a"]}), "job.features"),
        (Job(MODEL, **COLUMNS, buckets=7), "job.buckets is 64 there and 7 here"),
        (Job(MODEL, **COLUMNS, step=2.0), "job.step"),
    ],
)
def test_refuses_the_state_of_another_model_or_job(other, name):
    bucket = Bucket.open(JOB, None)
    bucket.follow(rows())
    with pytest.raises(ValueError, match=name.replace("[", r"\[")):
        Bucket.open(other, bucket.stored())


def test_refuses_a_damaged_state():
    bucket = Bucket.open(JOB, None)
    bucket.follow(rows())
    job, fleet, times = bucket.stored()
    with pytest.raises(ValueError, match="damaged"):
        Bucket.open(JOB, Stored(job, fleet[:-50] + b"!" + fleet[-49:], times))


def test_a_worker_makes_one_job_of_what_several_tasks_bring():
    sent = cloudpickle.dumps(Job(AGP(), **COLUMNS))
    assert cloudpickle.loads(sent) is cloudpickle.loads(sent)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": []}, "features must be a list"),
        ({"features": "a"}, "features must be a list"),
        ({"target": "k"}, "'k' has several"),
        ({"level": 1.0}, "level must lie"),
        ({"buckets": 0}, "buckets must be a whole number"),
        ({"step": 0.0}, "step must be a positive time"),
        ({"start": b"nonsense"}, "must be a driftgp fleet"),
    ],
)
def test_refuses_a_job_that_cannot_be(change, message):
    with pytest.raises(ValueError, match=message):
        Job(**{"model": MODEL, **COLUMNS, **change})
