"""The default model and `Forecaster` on random streams from a grammar, of which `make fuzz` has thousands."""

import numpy as np
import pytest

from tests.fuzz import forecasts, grammar, judge
from tests.fuzz.__main__ import generator

SEED = 99
SHORT = 500  # rows of a stream, at most, for most of them


@pytest.mark.parametrize("number", range(200))
def test_a_random_stream_is_forecast_without_a_wild_row(number):
    found = grammar.case(generator("grammar", SEED, number), "low", SHORT)
    assert not judge.breaches(found)


@pytest.mark.parametrize("number", range(1000, 1012))
def test_a_long_random_stream_is_forecast_without_a_wild_row(number):
    found = grammar.case(generator("grammar", SEED, number), "low")
    assert not judge.breaches(found)


@pytest.mark.parametrize("number", [*range(2000, 2012), *range(3000, 3006)])
def test_more_effort_is_no_wilder(number):
    effort = "medium" if number < 3000 else "high"
    found = grammar.case(generator("grammar", SEED, number), effort, SHORT)
    assert not judge.breaches(found)


@pytest.mark.parametrize("number", range(30))
def test_the_next_steps_of_a_random_series_stay_near_its_data(number):
    found = forecasts.case(generator("forecasts", SEED, number), SHORT)
    assert not judge.breaches(found)


@pytest.mark.parametrize("number", [197, 382, 605])
def test_values_from_before_a_constant_stretch_drive_no_forecast_away(number):
    """In the tiny unit of a constant stretch, they are billions: too large for a regression's covariance."""
    found = forecasts.case(generator("forecasts", 31, number))
    assert not judge.breaches(found)


# ---- the grammar -----------------------------------------------------------------------------------------------------


def test_every_part_of_the_grammar_is_in_some_stream():
    texts = "\n".join("; ".join(grammar.stream(generator("grammar", 1, k)).description) for k in range(600))
    names = [name for parts in (grammar.FUNCTIONS, grammar.OBSERVATIONS) for _, name, _ in parts]
    named = [
        *(f"target: {name}" for _, name, _ in grammar.FUNCTIONS),
        *(f"observed: {name}" for _, name, _ in grammar.OBSERVATIONS),
        *(f"level {sign}{jump:g} sd" for jump in grammar.JUMPS for sign in "+-"),
        *(f"{what} × {factor}" for what in ("targets", "inputs") for factor in ("0.01", "100")),
        *("a flag that returns", "a sum of other inputs ± 0", "target 24 rows ago", "text", "which no input says"),
        *("heavy tails", "lognormal", "counts", "row number", "a walk", "constant at 0", "a ramp of"),
        *("all inputs constant", "all inputs alike", "no targets in rows", "targets missing", "inputs missing"),
        *("of 9.97e+36", "of 1e+06", "of 50 in", "times by chance", "times of all sizes", "gaps of 1000 steps"),
    ]
    assert names
    assert [name for name in named if name not in texts] == []


def test_a_stream_is_determined_by_its_seed_and_holds_no_infinity():
    for number in range(50):
        one, other = (grammar.stream(generator("grammar", 2, number)) for _ in range(2))
        assert one.description == other.description
        np.testing.assert_array_equal(one.X, other.X)
        np.testing.assert_array_equal(one.y, other.y)
        assert not np.isinf(one.X).any()
        assert not np.isinf(one.y).any()
        assert grammar.SHORTEST <= len(one.y) <= grammar.LONGEST


# ---- the judge -------------------------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 2))
Y = X @ [1.0, -2.0] + 5.0


def said(**changed: float) -> judge.Forecasts:
    """Forecasts that are right, but for some numbers of row 300."""
    fields = {"mean": Y, "variance": np.ones(600), "low": Y - 2.0, "median": Y, "high": Y + 2.0}
    fields = {name: values.copy() for name, values in fields.items()}
    for name, value in changed.items():
        fields[name][300] = value
    return judge.Forecasts(**fields)


def test_the_judge_has_nothing_against_forecasts_that_are_right():
    verdict = judge.judged(said(), X, Y)
    assert (verdict.not_finite, verdict.crossed, verdict.beyond) == ([], [], [])
    assert max(verdict.ratios) <= 1.0


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"mean": np.nan}, "not_finite"),
        ({"high": np.inf}, "not_finite"),
        ({"variance": 0.0}, "crossed"),
        ({"low": Y[300] + 1.0}, "crossed"),
        ({"high": Y[300] - 1.0}, "crossed"),
        ({"mean": 1e3}, "beyond"),
        ({"median": -1e3, "low": -2e3}, "beyond"),
    ],
)
def test_one_wrong_row_is_noticed(changed, field):
    assert getattr(judge.judged(said(**changed), X, Y), field) == [300]


def test_a_rival_is_held_to_the_envelope_that_forecasts_are_held_to():
    X, y = np.append(np.linspace(0.0, 1.0, 40), 1e3)[:, None], np.append(np.linspace(0.0, 1.0, 40), 1e3)
    linear = judge.linear_regression(X, y)
    assert linear[-1] > 900.0
    held = judge.within_reach(linear, y)
    np.testing.assert_array_equal(held[:10], linear[:10])  # nobody knows yet how far targets go
    assert held[-1] == 2.0


def test_one_wild_mean_shows_in_the_errors_of_its_200_rows():
    found = judge.judged(said(mean=1e4), X, Y).ratios
    assert found[1] > judge.MOST
    assert found[0] == found[2] == 1.0


def test_the_rivals_are_what_they_are_called():
    linear = judge.linear_regression(X, Y)
    assert np.abs(linear - Y)[50:].max() < 1e-5
    held = judge.persistence(np.array([1.0, np.nan, 3.0, np.nan]))
    assert held.tolist() == [0.0, 1.0, 1.0, 3.0]


def test_no_rival_sees_a_target_before_its_row():
    changed = Y.copy()
    changed[400:] += 100.0
    for rival in (judge.linear_regression, lambda _, y: judge.persistence(y)):
        np.testing.assert_allclose(rival(X, Y)[20:401], rival(X, changed)[20:401], atol=1e-6)
