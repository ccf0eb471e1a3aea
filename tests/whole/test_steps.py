"""The default model in every entry point: a refused call changes nothing; a sample is learned once or not at all."""

import sys
from collections.abc import Callable
from copy import deepcopy
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from driftgp import Fleet, Forecaster, Online, cli, prequential, recommended
from tests.whole.test_hardening import interrupted

RNG = np.random.default_rng(3)
ROWS = 640
X = RNG.normal(size=(ROWS, 2))
Y = 50.0 + 3.0 * X[:, 0] + np.sin(2.0 * X[:, 1]) + 0.1 * RNG.normal(size=ROWS)
DAYS = np.datetime64("2024-01-01", "D") + np.arange(ROWS)
linux = pytest.mark.skipif(sys.platform != "linux", reason="sends signals")


class Entry:
    """An entry point at work: rows go in, and forecasts of the next ones show whether two are the same."""

    after = 12  # rows until they are compared

    def take(self, begin: int, end: int) -> None:
        raise NotImplementedError

    def said(self, at: int) -> bytes:
        raise NotImplementedError


class ByArrays(Entry):
    def __init__(self) -> None:
        self.online = Online(effort="low")

    def take(self, begin: int, end: int) -> None:
        self.online.update(X[begin:end], Y[begin:end])

    def said(self, at: int) -> bytes:
        return self.online.predict(X[at : at + 3]).records.tobytes()


class ByDicts(ByArrays):
    @staticmethod
    def row(i: int) -> dict[str, Any]:
        return {"x": X[i, 0], "v": X[i, 1], "sky": ("clear", "rain")[i % 2], "when": DAYS[i].item()}

    def __init__(self) -> None:
        self.online = Online(effort="low", time="when")

    def take(self, begin: int, end: int) -> None:
        for i in range(begin, end):
            self.online.update(self.row(i), Y[i])

    def said(self, at: int) -> bytes:
        return self.online.predict(self.row(at)).records.tobytes()


class ByKeys(Entry):
    def __init__(self) -> None:
        self.fleet = Fleet()

    def take(self, begin: int, end: int) -> None:
        self.fleet.update(np.arange(begin, end) % 2, X[begin:end], Y[begin:end], np.arange(float(begin), float(end)))

    def said(self, at: int) -> bytes:
        return self.fleet.predict([0, 1], X[at : at + 2]).records.tobytes()


class Late(Entry):
    def __init__(self) -> None:
        self.online = Online(effort="low")

    def take(self, begin: int, end: int) -> None:
        for i in range(begin, end):
            self.online.predict(X[i], id=i)
            self.online.update(y=Y[i], id=i)

    def said(self, at: int) -> bytes:
        return self.online.predict(X[at]).records.tobytes()


class Ahead(Entry):
    after = 60

    def __init__(self) -> None:
        self.forecaster = Forecaster(horizon=3, season=7, known=["open"])

    def take(self, begin: int, end: int) -> None:
        self.forecaster.update(Y[begin:end], DAYS[begin:end], known=np.ones(end - begin))

    def said(self, at: int) -> bytes:
        fan = self.forecaster.forecast(3, np.ones(3))
        return np.stack([fan.mean, *fan.interval(0.9)]).tobytes()


@cache
def grown(kind: type[Entry], rows: int) -> Entry:
    entry = kind()
    if rows:
        entry.take(0, rows)
    return entry


NaN, INF = np.nan, np.inf
Call = Callable[[Any], Any]
BAD: dict[type[Entry], dict[str, Call]] = {
    ByArrays: {
        "no numbers": lambda e: e.online.update("x", 1.0),
        "an infinite target": lambda e: e.online.update(X[0], INF),
        "an infinite input": lambda e: e.online.update([INF, 1.0], 1.0),
        "a block whose last target is infinite": lambda e: e.online.update(X[:9], [*Y[:8], INF]),
        "more rows than targets": lambda e: e.online.evaluate(X[:9], Y[:8]),
        "time that runs back": lambda e: e.online.update(X[0], 1.0, -1.0),
        "three axes": lambda e: e.online.predict(np.zeros((2, 2, 2))),
    },
    ByDicts: {
        "an infinite target of a new category": lambda e: e.online.update(e.row(0) | {"sky": "snow"}, INF),
        "a target that is text": lambda e: e.online.update(e.row(0), "many"),
        "time that runs back": lambda e: e.online.update(e.row(0), 1.0, -1.0),
        "an infinite input": lambda e: e.online.update(e.row(ROWS - 1) | {"x": INF}, 1.0),
    },
    ByKeys: {
        "an infinite target": lambda e: e.fleet.update([0, 7], X[:2], [1.0, INF]),
        "no key": lambda e: e.fleet.update([None], X[:1], Y[:1]),
        "keys of two kinds": lambda e: e.fleet.update([0, "b"], X[:2], Y[:2]),
        "more rows than keys": lambda e: e.fleet.evaluate([0, 1], X[:3], Y[:3]),
        "no numbers": lambda e: e.fleet.update([0], [["x", "y"]], [1.0]),
    },
    Late: {
        "an infinite input": lambda e: e.online.predict([INF, 0.0], id="odd"),
        "an id that is none": lambda e: e.online.predict(X[0], id=1.5),
        "a label of nothing": lambda e: e.online.update(y=1.0, id="odd"),
    },
    Ahead: {
        "an infinite target": lambda e: e.forecaster.update([1.0, INF], DAYS[:2], known=np.ones(2)),
        "a time that comes twice": lambda e: e.forecaster.update([1.0, 2.0], DAYS[[-1, -1]], known=np.ones(2)),
        "no column that is known ahead": lambda e: e.forecaster.update(Y[:2], DAYS[-2:]),
        "a column that is not finite": lambda e: e.forecaster.update(Y[:2], DAYS[-2:], known=np.full(2, INF)),
        "no numbers": lambda e: e.forecaster.update(["x"], DAYS[-1:], known=np.ones(1)),
    },
}


def moments() -> list[Any]:
    return [(kind, what, before) for kind, calls in BAD.items() for what in calls for before in (0, 30, 450)]


@pytest.mark.parametrize(("kind", "what", "before"), moments())
def test_a_refused_call_changes_nothing_at_any_moment(kind, what, before):
    """Neither before the first row, nor while the model is not yet chosen, nor later: what comes after is the same."""
    one, other = deepcopy(grown(kind, before)), deepcopy(grown(kind, before))
    with pytest.raises((ValueError, TypeError)):
        BAD[kind][what](one)
    end = before + kind.after
    for entry in (one, other):
        entry.take(before, end)
    assert one.said(end) == other.said(end)


def test_an_input_whose_label_is_refused_still_waits():
    online = deepcopy(grown(Late, 30)).online
    online.predict(X[30], id="a")
    before = online.to_bytes()
    with pytest.raises(ValueError, match="y must"):
        online.update(y=INF, id="a")
    assert online.pending == 1
    assert online.to_bytes() == before
    online.update(y=Y[30], id="a")
    assert online.pending == 0


def test_a_refused_run_leaves_output_and_checkpoint_as_they_were(tmp_path: Path):
    table, output, stored = (tmp_path / name for name in ("table.csv", "said.csv", "stream.gp"))
    lines = [f"{X[i, 0]:.6f},{Y[i]:.6f}" for i in range(120)]
    table.write_text("\n".join(["x,y", *lines]) + "\n", encoding="utf-8")

    def run(*options: str) -> int:
        return CliRunner().invoke(cli.app, ["run", *options, "--checkpoint", str(stored)]).exit_code

    good = (str(table), "--target", "y", "--warmup", "40", "--output", str(output))
    assert run(*good) == 0
    before = output.read_bytes(), stored.read_bytes()
    other = tmp_path / "other.csv"
    other.write_text("x,z\n1,2\n", encoding="utf-8")
    for refused in (
        (str(other), *good[1:]),
        (*good[:2], "x", *good[3:]),
        (*good, "--lags", "3"),
        (*good[:-1], str(table)),
        (str(tmp_path / "no.csv"), *good[1:]),
    ):
        assert run(*refused) != 0, refused
        assert (output.read_bytes(), stored.read_bytes()) == before, refused


# ---- interrupts ------------------------------------------------------------------------------------------------------


def ways_of_the_default() -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """Each way to have the default learn all rows from the 450th on, and how to see how far it came."""
    begun = 450
    block, single, fleet = Online(effort="low"), Online(effort="low"), Fleet()
    for online in (block, single):
        online.update(X[:begun], Y[:begun])
    fleet.update(["a"] * begun, X[:begun], Y[:begun])

    def one_by_one() -> None:
        for x, y in zip(X[begun:], Y[begun:].tolist(), strict=True):
            single.predict(x)
            single.update(x, y)

    return {
        "update": (lambda: block.update(X[begun:], Y[begun:]), lambda: block.state),
        "predict and update": (one_by_one, lambda: single.state),
        "Fleet": (lambda: fleet.update(["a"] * (ROWS - begun), X[begun:], Y[begun:]), lambda: fleet.state("a")),
    }


@linux
def test_an_interrupt_leaves_the_default_after_some_whole_number_of_samples_and_it_says_how_many():
    """Whoever calls again with the rows after `state.samples` has what an undisturbed run has, to the last bit."""
    heard, rng = 0, np.random.default_rng(0)
    whole = {way: (work(), reached().record.tobytes())[1] for way, (work, reached) in ways_of_the_default().items()}
    for _ in range(4):
        for way, (work, reached) in ways_of_the_default().items():
            heard += interrupted(work, float(rng.uniform(1e-3, 0.02)))
            state = reached()
            assert 450 <= state.samples <= ROWS
            rest = state.model.update(state, X[state.samples :], Y[state.samples :])
            assert rest.record.tobytes() == whole[way], way
    assert heard >= 4


@pytest.mark.parametrize("effort", ["low", "medium", "high"])
def test_the_state_of_the_default_counts_its_targets(effort):
    online = Online(effort=effort)
    online.update(X[:420], np.where(np.arange(420) % 10 == 3, np.nan, Y[:420]))
    assert online.state.samples == 420 - 42
    model = recommended(X[:100], Y[:100], effort=effort)
    run = prequential(model, model.init(X[:100], Y[:100]), X[100:150], Y[100:150])
    assert run.state.samples == 150


def test_a_gap_between_days_is_no_refusal():
    """The twin of what is refused above: times that leave days out are taken."""
    forecaster = Forecaster(horizon=3, season=7, frequency=timedelta(days=1))
    forecaster.update(Y[:100], DAYS[[0, *range(4, 103)]])
    assert forecaster.rows == 103
