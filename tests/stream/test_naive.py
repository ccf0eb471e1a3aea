"""Naive forecasts: by the clock, never younger than the horizon, and the same however rows are cut into blocks."""

import math

import numpy as np
import pytest

from driftgp.stream.naive import FIRST, Naive, Season, find_seasons, naive

HOUR = 3.6e9  # microseconds


def by_hand(y: np.ndarray, at: np.ndarray, seasons: tuple[Season, ...], horizon: int) -> np.ndarray:
    """The same, row by row, from the words of the docstring."""
    made = np.full((len(y), 1 + len(seasons)), np.nan)
    for i in range(len(y)):
        known = range(i - horizon + 1)
        last = [y[j] for j in known if not math.isnan(y[j])]
        made[i] = last[-1] if last else np.nan
        for s, season in enumerate(seasons, start=1):
            if season.by_rows:
                before = [y[i - season.rows]] if i >= season.rows else []
            else:
                same = [j for j in known if at[j] == at[i] - season.length * 1e6 and not math.isnan(y[j])]
                before = [y[j] for j in same if i - j <= season.depth(horizon)][-1:]
            if before and not math.isnan(before[0]):
                made[i, s] = before[0]
    return made


@pytest.mark.parametrize("horizon", [1, 5, 30])
@pytest.mark.parametrize("seed", range(4))
def test_is_what_its_words_say_whatever_the_blocks(horizon: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    N = 600
    at = HOUR * np.cumsum(rng.choice([0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0], N))
    swapped = rng.integers(FIRST, N - 1, 20)
    at[swapped], at[swapped + 1] = at[swapped + 1], at[swapped].copy()  # some rows out of order
    y = np.where(rng.random(N) < 0.1, np.nan, rng.normal(size=N))
    seasons = find_seasons(at[:FIRST], dated=True, horizon=horizon)
    assert len(seasons) == 2
    expected = by_hand(y, at, seasons, horizon)
    expected[:FIRST, 1:] = expected[:FIRST, :1]
    series, made, begin = Naive(horizon), [], 0
    while begin < N:
        end = begin + int(rng.integers(1, 60))
        made.append(series.take(y[begin:end], at[begin:end], dated=True))
        stored, series = series.to_json(), Naive(horizon)
        series.restore(stored)
        begin = end
    np.testing.assert_array_equal(np.concatenate(made), expected)
    whole = naive(y, at, dated=True, horizon=horizon)
    np.testing.assert_array_equal(np.stack(list(whole.values()), 1), expected)


def test_a_week_of_six_days_is_a_week_by_the_clock() -> None:
    days = np.array([day for day in range(140) if day % 7 != 6])
    y = (days % 7).astype(float)
    found = naive(y, days * 24 * HOUR, dated=True)
    assert list(found) == ["persistence", "a week before"]
    np.testing.assert_array_equal(found["a week before"][FIRST:], y[FIRST:])


def test_months_and_rows_without_dates_are_counted_in_rows() -> None:
    months = np.arange("2000-01", "2010-01", dtype="datetime64[M]").astype("datetime64[us]").astype(np.int64)
    assert [s.label for s in find_seasons(months.astype(float), dated=True)] == ["12 rows before"]
    assert [s.label for s in find_seasons(None, dated=False, lags=[1, 2, 24, 168])] == [
        "24 rows before",
        "168 rows before",
    ]


def test_refuses_a_stored_past_that_is_none() -> None:
    series = Naive(1)
    series.take(np.arange(30.0), HOUR * np.arange(30.0), dated=True)
    for wrong in ({"rows": -1}, {"y": np.array([np.inf])}, {"seasons": [[-1.0, 24, False]]}, {"at": np.zeros((2, 2))}):
        with pytest.raises(ValueError, match=r"no|other|another"):
            Naive(1).restore(series.to_json() | wrong)
