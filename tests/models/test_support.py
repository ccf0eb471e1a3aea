"""Bounds from the first rows: counts, rain and shares get them, temperatures and loads do not."""

import numpy as np
import pytest

from driftgp.models.support import lagged, support

N = 400
SEEDS = range(20)


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, 77])


def weather(seed: int, mean: float, std: float) -> np.ndarray:
    """Temperatures: slow waves, and a day's course."""
    noise, walk = rng(seed).normal(size=N), np.zeros(N)
    for t in range(1, N):
        walk[t] = 0.97 * walk[t - 1] + 0.243 * noise[t]
    return mean + std * (0.8 * walk + 0.6 * np.sin(np.arange(N) * 2.0 * np.pi / 24.0))


@pytest.mark.parametrize("seed", SEEDS)
def test_counts_begin_at_zero(seed):
    hours = np.arange(N)
    bikes = rng(seed).poisson(150.0 * np.exp(1.5 * np.sin(hours * 2.0 * np.pi / 24.0)) / 3.0)
    assert support(bikes).low == (0.0,)
    few = rng(seed).poisson(1.5, N)
    assert support(few) == ((0.0,), (None,), (0.5,))


@pytest.mark.parametrize("seed", SEEDS)
def test_rain_and_sales_with_zeros_begin_at_zero(seed):
    rain = np.round(np.where(rng(seed).random(N) < 0.85, 0.0, rng(seed + 1).gamma(1.0, 2.0, N)), 1)
    found = support(rain)
    assert (found.low, found.high) == ((0.0,), (None,))
    np.testing.assert_allclose(found.slack, 0.05)
    sales = np.where(np.arange(N) % 7 == 6, 0.0, 4000.0 + 500.0 * rng(seed).normal(size=N))
    assert support(sales).low == (0.0,)


@pytest.mark.parametrize("seed", SEEDS)
def test_concentrations_begin_at_zero_without_slack(seed):
    assert support(rng(seed).lognormal(0.0, 0.9, N)) == ((0.0,), (None,), (0.0,))


def bounded_share(digits: int) -> float:
    """Share of the streams of temperatures, positive so far, that get a bound."""
    streams = [np.round(weather(seed, 6.0, 2.5), digits) for seed in range(200)]
    return float(np.mean([support(degrees).bounded for degrees in streams if degrees.min() >= 0.0]))


def test_temperatures_that_happen_to_be_positive_are_not_bounded():
    assert bounded_share(digits=6) == bounded_share(digits=1) == 0.0


def test_hardly_any_temperatures_in_whole_degrees_are_taken_for_counts():
    """Some look like counts for a while; a leak is for these."""
    assert bounded_share(digits=0) < 0.06


@pytest.mark.parametrize("seed", SEEDS)
def test_loads_returns_and_constants_are_not_bounded(seed):
    load = np.round(1.2e4 + 2e3 * np.sin(np.arange(N) / 4.0) + 300.0 * rng(seed).normal(size=N))
    returns = 0.01 * rng(seed).standard_t(4, N)
    found = support(np.column_stack([load, returns, np.full(N, 3.0), np.zeros(N)]))
    assert not found.bounded
    assert found.slack == (0.0,) * 4


def test_shares_are_bounded_only_if_both_ends_were_met():
    percent = np.clip(np.round(rng(0).normal(50.0, 40.0, N)), 0.0, 100.0)
    assert support(percent) == ((0.0,), (100.0,), (0.5,))
    assert support(0.01 * percent).high == (1.0,)
    assert support(np.minimum(percent, 99.0)).high == (None,)
    assert support(percent + 100.0 * (np.arange(N) == 7)).high == (None,)
    humidity = np.clip(rng(1).normal(75.0, 12.0, N), 20.0, 100.0)
    assert not support(humidity).bounded


def test_each_output_has_its_own_bounds_and_gaps_are_left_out():
    counts = rng(3).poisson(1.0, N).astype(float)
    counts[::5] = np.nan
    found = support(np.column_stack([rng(3).normal(size=N), counts]))
    assert found == ((None, 0.0), (None, None), (0.0, 0.5))


def test_few_rows_say_nothing():
    assert not support(np.zeros(49)).bounded
    assert not support(np.arange(49.0) % 3).bounded
    assert not support(np.full(300, np.nan)).bounded


def test_the_slack_is_at_most_half_a_standard_deviation():
    y = np.where(np.arange(N) % 50 == 0, 7.0, 0.0)  # nothing else between them
    assert support(y).slack[0] == pytest.approx(0.5 * y.std())


def test_refuses_what_is_no_column():
    with pytest.raises(ValueError, match="y must have shape N, or N×P for several outputs"):
        support(np.zeros((2, 2, 2)))


@pytest.mark.parametrize("factor", [1.0, 1.0 + 1e-9, 1.0 - 1e-9])
def test_counts_and_lags_that_were_rounded_on_their_way_are_found(factor):
    counts = rng(0).poisson(2.0, N).astype(np.float64)
    assert support(counts[1:] * factor).low == (0.0,)
    load = rng(1).normal(3000.0, 500.0, N)
    for y in (counts, load):
        X = np.column_stack([y[:-1].astype(np.float32), rng(2).normal(y.mean(), y.std(), N - 1)])
        assert lagged(X, factor * y[1:, None]) == ((0, 0),)
