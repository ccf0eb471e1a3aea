"""Pictures: that they are there, whole, labelled, and to be told apart without seeing colours."""

import numpy as np
import pytest

from driftgp.plots import base as plots

N, WARMUP, M = 40, 10, 3


@pytest.fixture(scope="module")
def figure():
    times = np.linspace(0.0, 4.0, N)
    online = times[WARMUP:]
    inducing = online[:, None] - np.array([0.1, 0.5, np.nan])  # one slot is never in use
    return plots.tracking(
        times=times,
        y=np.sin(times),
        warmup=WARMUP,
        mean=np.sin(online),
        interval=(np.sin(online) - 1, np.sin(online) + 1),
        inducing=inducing,
        window=5,
        hyperparameters={"lengthscale": np.exp(online), "noise": np.exp(-online)},
        truth={"noise": 0.04},
        events={2.0: "something happens"},
    )


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_a_picture_is_written_whole_and_leaves_nothing_behind(figure, tmp_path, ending):
    path = tmp_path / f"picture.{ending}"
    plots.save(figure, path)
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending]
    assert path.read_bytes().startswith(start)
    assert path.stat().st_size > 5_000
    assert list(tmp_path.iterdir()) == [path]


def test_a_picture_that_cannot_be_drawn_leaves_the_old_one(figure, tmp_path):
    path = tmp_path / "picture.unknown"
    path.write_bytes(b"old")
    with pytest.raises(ValueError, match="unknown"):
        plots.save(figure, path)
    assert path.read_bytes() == b"old"


def test_every_panel_says_what_it_shows(figure):
    for axes in figure.axes:
        assert axes.get_ylabel()
        assert axes.get_title(loc="left")
        assert axes.get_legend() is not None
    assert figure.axes[-1].get_xlabel()
    legend = [text.get_text() for text in figure.axes[-1].get_legend().get_texts()]
    assert legend == ["lengthscale", "noise", "true noise"]


def test_curves_that_share_axes_differ_in_more_than_colour():
    colours, styles = zip(*plots.LINES, strict=True)
    assert len(set(colours)) == len(set(styles)) == len(plots.LINES)


def test_drawing_leaves_the_settings_of_matplotlib_alone(figure):
    import matplotlib as mpl

    assert mpl.rcParams["axes.grid"] == mpl.rcParamsDefault["axes.grid"]
