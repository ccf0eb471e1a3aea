"""Pictures of a run: gaps are gaps, axes have units, legends hide nothing, alarms are marked, warnings are there."""

import numpy as np
import pytest

from driftgp.plots.run import CURVES, About, health_figure, importance_figure, keys_figure, run_figure, with_gaps
from driftgp.runs import Answers
from driftgp.tables.predictions import Header, Predictions, from_answers

ABOUT = About("load", 0.95, "MW", warnings=["The forecasts are worse than persistence", "Rows go back in time"])
GAP = slice(150, 170)


def predictions(rows=200, keys=("",)):
    """Hourly rows of which twenty are missing, with an alarm and a target that never came."""
    at = np.datetime64("2024-01-01", "us") + np.arange(rows) * np.timedelta64(1, "h")
    keep = np.r_[: GAP.start, GAP.stop : rows]
    y = np.sin(np.arange(rows) / 5.0)
    parts = []
    for key in keys:
        actual = y + 0.01 * len(parts)
        actual[120] = np.nan
        alarm = np.arange(rows) == 180
        arrays = (at, np.full(rows, key), y, y - 0.5, y + 0.5, actual, alarm)
        parts.append([array[keep] for array in arrays])
    return Predictions(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def lines(axes):
    return {line.get_label(): line for line in axes.get_lines()}


@pytest.fixture(scope="module")
def figure():
    return run_figure(predictions(), ABOUT)


def test_no_line_is_drawn_over_missing_rows(figure):
    for axes, label in zip(
        figure.axes, ("predicted mean", "driftgp", "share of targets in their interval"), strict=True
    ):
        x, y = lines(axes)[label].get_data()
        drawn = np.isfinite(y[1:]) & np.isfinite(y[:-1])
        assert np.diff(x)[drawn].max() == np.timedelta64(1, "h")
        assert np.diff(x).max() == np.timedelta64(21, "h")
    top = figure.axes[0]
    ends = [path.vertices[:, 0].max() for path in top.collections[0].get_paths()]
    assert len(ends) == 2  # the interval too


@pytest.mark.parametrize("at", [np.array([3.0, 2.0, 1.0]), np.array([1.0, 1.0, 1.0]), np.zeros(0), np.zeros(1)])
def test_odd_times_leave_every_value(at):
    _, values = with_gaps(at, np.arange(float(len(at))))
    assert values[np.isfinite(values)].tolist() == list(range(len(at)))


def test_axes_have_names_and_units(figure):
    assert [axes.get_ylabel() for axes in figure.axes] == ["load [MW]", "error [MW]", "coverage"]
    assert all(axes.get_title(loc="left") for axes in figure.axes)
    assert About("load [MW]", 0.95, "MW").axis == "load [MW]"
    assert About("load", 0.95).axis == "load"


def test_legends_are_beside_the_data(figure):
    figure.draw_without_rendering()
    for axes in figure.axes:
        assert axes.get_legend().get_window_extent().y0 >= axes.get_window_extent().y1 - 1.0


def test_alarms_are_marked_on_every_panel(figure):
    when = np.datetime64("2024-01-01", "us") + 180 * np.timedelta64(1, "h")
    for axes in figure.axes:
        assert lines(axes)["alarm"].get_xdata()[0] == when
        assert "alarm" in [text.get_text() for text in axes.get_legend().get_texts()]


def test_an_alarm_of_any_kind_is_found_in_the_flags():
    flags = ["", "cold", "wild alarm:level-up:temp", "alarm"]
    blank = [""] * 4
    answers = Answers(np.arange(4), blank, blank, *(np.ones(4) for _ in range(5)), flags)
    assert from_answers(Header(), [answers]).alarm.tolist() == [False, False, True, True]


def test_warnings_stand_on_every_picture(figure):
    several = keys_figure(predictions(keys=("a", "b")), ABOUT, {key: {"rmse": 1.0, "coverage": 0.9} for key in "ab"})
    health = health_figure({"warnings": ABOUT.warnings}, [1.0, 2.0], "load")
    for each in (figure, several, health):
        assert each.get_supxlabel().splitlines() == [f"Warning: {warning}" for warning in ABOUT.warnings]
    assert run_figure(predictions(), About("load", 0.95)).get_supxlabel() == ""


def test_a_picture_of_several_series_has_one_legend_and_a_unit():
    several = keys_figure(predictions(keys=("a", "b", "c")), ABOUT, {k: {"rmse": 1.0, "coverage": 0.9} for k in "abc"})
    several.draw_without_rendering()
    (legend,) = several.legends
    assert [text.get_text() for text in legend.get_texts()].count("alarm") == 1
    assert not any(legend.get_window_extent().overlaps(axes.get_tightbbox()) for axes in several.axes[:3])
    assert several.get_supylabel() == "load [MW]"


def test_importance_of_every_input_is_in_the_picture():
    shares = np.random.default_rng(0).dirichlet(np.ones(12), size=20)
    names = [f"input {d}" for d in range(12)]
    (axes,) = importance_figure(np.arange(20), shares, names, "load").axes
    drawn = lines(axes)
    assert len(drawn) == len(CURVES) + 1
    assert np.sum([line.get_ydata() for line in drawn.values()], 0) == pytest.approx(1.0)  # nothing is left out
    most = names[int(shares.mean(0).argmax())]
    assert drawn[most].get_ydata() == pytest.approx(shares[:, names.index(most)])
    with pytest.raises(ValueError, match="times × inputs"):
        importance_figure(np.arange(20), shares.T, names)


def test_the_gauges_are_those_of_the_member_that_weighs_most():
    members = [
        {"weight": 0.1, "inducing": 9, "inducing_in_use": 1},
        {"weight": 0.9, "inducing": 40, "inducing_in_use": 7},
    ]
    weights = [0.0, 0.1, 0.2, 0.7]  # of voices, of which there are more than members
    drawn = health_figure({"members": members, "weights": weights, "importance": {"temp": 1.0}}, [1.0, 2.0], "load")
    texts = [text.get_text() for axes in drawn.axes for text in axes.texts]
    assert texts == ["7 of 40", "100.0%"]
