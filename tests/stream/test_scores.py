"""Scores of an evaluation: those of a run of the same rows, and of a computation by hand."""

import numpy as np
import pytest

from driftgp import Fleet, Online
from driftgp.predictions import Gaussian
from driftgp.stream import running_scores
from driftgp.stream.scores import given_the_row

HOURS = np.datetime64("2024-01-01T00", "us") + np.arange(300) * np.timedelta64(1, "h")


def rows(keys=1, seed=0):
    rng = np.random.default_rng(seed)
    y = 100.0 + 10.0 * np.sin(np.arange(300) * np.pi / 12) + rng.normal(size=300)
    return [
        {"when": time.astype(object), "zone": f"z{k}", "mw": float(value) + 50.0 * k}
        for time, value in zip(HOURS, y, strict=True)
        for k in range(keys)
    ]


def test_scores_are_those_of_the_rows_by_hand():
    prediction = Online(target="mw", time="when", lags=2, effort="low", others="ignored").evaluate(rows())
    found, y = prediction.scores(), np.array([row["mw"] for row in rows()])
    low, high = prediction.interval(0.95)
    error, inside = (y - prediction.mean)[1:], ((low <= y) & (y <= high))[1:]
    assert found.rows == 299
    assert found.rmse == pytest.approx(np.sqrt(np.mean(error**2)))
    assert found.crps == pytest.approx(np.mean(prediction.crps(y)[1:]))
    assert found.coverage == pytest.approx(inside.mean())
    assert list(found.naive) == ["persistence", "a day before", "a week before"]
    assert found.naive["persistence"][1] == pytest.approx(np.mean(np.abs(np.diff(y))))
    assert found.by_hour[5] == pytest.approx([len(inside[4::24]), inside[4::24].mean()])
    assert found.by_decile[:, 0].sum() == 299
    assert "a day before" in str(found)


def test_scores_of_a_fleet_are_over_all_keys_each_with_its_own_past():
    fleet = Fleet(key="zone", target="mw", time="when", lags=2, effort="low")
    found, alone = (
        fleet.evaluate(rows(3)).scores(),
        Online(target="mw", time="when", lags=2, effort="low", others="ignored"),
    )
    assert found.rows == 3 * 299
    assert found.naive["a day before"] == pytest.approx(alone.evaluate(rows()).scores().naive["a day before"])


def test_a_forecast_without_its_targets_has_no_scores():
    online = Online(effort="low")
    online.update(np.arange(20.0)[:, None], np.arange(20.0))
    with pytest.raises(ValueError, match="scores need targets: use the result of evaluate"):
        online.predict([[20.0], [21.0]]).scores()


def test_tenths_are_those_of_the_last_rows_however_they_come(monkeypatch):
    monkeypatch.setattr(running_scores, "LAST", 400)
    rng = np.random.default_rng(1)
    mean, y = rng.normal(size=1000), rng.normal(size=1000)
    law, nothing = Gaussian(mean, np.ones(1000), np.ones(1000)), np.full(1000, np.nan)
    found = []
    for block in (1000, 70):
        watching = running_scores.RunningScores(densities=(), naive=False)
        for begin in range(0, 1000, block):
            some = slice(begin, begin + block)
            part = law.rows(some)
            low, high = part.interval(0.95)
            N = len(low)
            rows = running_scores.PredictedRows(
                part, low, high, y[some], nothing[some], False, [None] * N, {}, np.arange(N)
            )
            watching.see(rows)
        found.append(watching.by_tenth())
    inside, order = (np.abs(y - mean) <= 1.96)[-400:], np.argsort(mean[-400:])
    expected = [[40, inside[order[40 * n : 40 * n + 40]].mean()] for n in range(10)]
    for each in found:
        np.testing.assert_allclose(each, expected)


def test_groups_of_few_rows_are_not_named():
    hours = np.column_stack([np.full(24, 29.0), np.linspace(0.5, 1.0, 24)])
    assert given_the_row(hours, np.zeros((0, 2))) == []
    hours[[3, 17], 0] = 30.0
    assert given_the_row(hours, np.zeros((0, 2))) == [
        ("By hour", "fewest inside at 03:00 (56.5%), most at 17:00 (87.0%)")
    ]


def test_scores_say_where_coverage_is_least_and_most():
    prediction = Online(target="mw", time="when", lags=2, effort="low", others="ignored").evaluate(rows())
    said, shares = str(prediction.scores()), prediction.scores().by_decile
    assert "By hour" not in said  # 12 or 13 rows each
    line = next(line for line in said.splitlines() if line.startswith("By forecast: fewest inside in the "))
    assert f"({np.nanmin(shares[shares[:, 0] >= 30, 1]):.1%}), most in the " in line
