"""Progress of long calls: shown where it is asked for, and no number depends on it."""

import numpy as np
import pytest

from driftgp import Fleet, Online, backtest

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1200, 2))
Y = X @ [1.0, -2.0] + 0.1 * RNG.normal(size=1200)
TIME = np.datetime64("2024-01-01T00") + np.cumsum(RNG.integers(1, 3, 1200)).astype("timedelta64[h]")
ROWS = [
    {"when": when, "x": x, "y": y, "key": key} for when, (x, _), y, key in zip(TIME, X, Y, 400 * "abc", strict=True)
]


def shown(capsys):
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err


@pytest.mark.parametrize("settings", [{}, {"horizon": 3}, {"lags": 2, "target": "y", "time": "when"}])
def test_the_numbers_are_the_same_to_the_last_bit(settings, capsys):
    given = (ROWS,) if "target" in settings else (X, Y)
    one, other = (Online(effort="low", **settings) for _ in range(2))
    quiet = one.evaluate(*given)
    assert shown(capsys) == ""
    told = other.evaluate(*given, progress=True)
    assert "1200 of 1200 rows, 100%" in shown(capsys)
    for name in ("mean", "variance"):
        np.testing.assert_array_equal(getattr(told, name), getattr(quiet, name))
    assert str(told.scores()) == str(quiet.scores())
    assert one.state.record.tobytes() == other.state.record.tobytes()


def test_time_between_rows_is_cut_with_them(capsys):
    spans = np.concatenate([[np.timedelta64("NaT")], np.diff(TIME)])
    quiet, told = (Online(effort="low").evaluate(X, Y, spans, progress=progress).mean for progress in (False, True))
    np.testing.assert_array_equal(told, quiet)
    assert "rows" in shown(capsys)


def test_a_fleet_shows_its_rows_too(capsys):
    quiet, told = (
        Fleet(key="key", target="y", time="when", features=["x"], effort="low").evaluate(ROWS, progress=progress)
        for progress in (False, True)
    )
    np.testing.assert_array_equal(told.mean, quiet.mean)
    assert "1200 of 1200 rows, 100%" in shown(capsys)


def test_a_backtest_shows_its_methods(capsys):
    backtest(X[:300], Y[:300], methods=["persistence"], warmup=100, effort="low", progress=True)
    assert "2 of 2 methods, 100%" in shown(capsys)


def test_a_blank_input_that_is_refused_is_named_by_its_row_before_anything_is_learned(capsys):
    gap = X.copy()
    gap[900, 1] = np.nan
    online = Online(effort="low", missing="refuse")
    with pytest.raises(ValueError, match="row 900 has none"):
        online.evaluate(gap, Y, progress=True)
    assert not online.begun
