"""Sequences of calls with arguments of every kind: a forecast that is finite, or a refusal that changes nothing."""

import copy
import pickle
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from driftgp import Online, checkpoint, prequential, recommended
from driftgp.fleet import Fleet
from driftgp.models.model import Model
from tests.catalogue import CATALOGUE
from tests.fuzz.states import EFFORTS, MODELS

D = 2
CALLS = 40
WILD = (0.0, -0.0, 1.0, -1.0, 5e-324, 1e-300, 1e20, -1e20, 1e150, 1e154, -1e200, 1.7e308, -1.7e308, 3.5)
ODD: tuple[Any, ...] = (None, "x", object(), [], [[]], {}, 1j, [1, "2"], np.zeros((3, 3, 3)), np.zeros(0), b"\0" * 16)


def number(rng: np.random.Generator, *, sane: bool) -> float:
    return float(rng.normal()) if sane or rng.random() < 0.6 else WILD[rng.integers(len(WILD))]


def form(rng: np.random.Generator, array: np.ndarray) -> Any:
    """The same numbers in another form."""
    forms: list[Callable[[np.ndarray], Any]] = [
        lambda a: a,
        lambda a: a.astype(">f8"),
        lambda a: a.astype(object),
        lambda a: np.flip(np.flip(a).copy()),
        lambda a: np.repeat(a, 2, -1)[..., ::2],
        lambda a: a.tolist(),
        np.asfortranarray,
        lambda a: np.frombuffer(a.tobytes()).reshape(a.shape),  # read-only
        lambda a: np.array([Decimal(v) for v in a.ravel()], object).reshape(a.shape),
    ]
    return forms[rng.integers(len(forms))](array)


class Session:
    """An `Online`, a `Fleet` and late labels at work, and a generator of calls."""

    def __init__(self, rng: np.random.Generator) -> None:
        """Choose a model. Only the default promises to be finite whatever comes; the others get sane numbers."""
        self.rng = rng
        self.default = rng.random() < 0.15
        name, effort = MODELS[rng.integers(len(MODELS))], EFFORTS[rng.integers(len(EFFORTS))]
        empty = np.zeros((0, D)), np.zeros(0)
        self.model: Model = recommended(*empty, effort=effort) if self.default else CATALOGUE[name].make()
        X = rng.normal(size=(15, D))
        self.online = Online(self.model, self.model.init(X, X[:, 0]))
        self.fleet = Fleet(self.model)
        self.fleet.update(["a", "b"], X[:2], X[:2, 0])
        self.ids = 0

    def x(self, *rows: int) -> Any:
        sane = not self.default
        values = [number(self.rng, sane=sane) for _ in range(int(np.prod((*rows, D))))]
        return form(self.rng, np.array(values).reshape(*rows, D))

    def y(self, *rows: int) -> Any:
        values = [number(self.rng, sane=not self.default) for _ in range(int(np.prod(rows)))]
        if self.rng.random() < 0.1:
            values = [float("nan")] * len(values)
        return values[0] if not rows else form(self.rng, np.array(values).reshape(rows))

    def odd(self) -> Any:
        return ODD[self.rng.integers(len(ODD))]

    # ---- calls that must succeed

    def predict(self) -> None:
        sound(self.online.predict(self.x()))

    def predict_rows(self) -> None:
        sound(self.online.predict(self.x(3)))

    def update(self) -> None:
        before = self.online.state
        self.online.update(self.x(), self.y(), float(self.rng.choice([0.0, 1.0, 2.5, 1e6])))
        assert before.record.dtype == self.online.state.record.dtype

    def update_rows(self) -> None:
        self.online.update(self.x(4), self.y(4), np.ones(4))

    def copies(self) -> None:
        twins = (copy.deepcopy(self.online), pickle.loads(pickle.dumps(self.online)))
        data = checkpoint.to_bytes(self.model, self.online.state)
        self.online = twins[self.rng.integers(2)]
        again = checkpoint.from_bytes(None, data)
        assert again.record.tobytes() == self.online.state.record.tobytes(), "a copy differs"

    def fleet_update(self) -> None:
        self.fleet.update(["a", "b", "a"], self.x(3), self.y(3))
        sound(self.fleet.predict(["b"], self.x(1)))

    def fleet_comes_and_goes(self) -> None:
        self.fleet.admit(self.fleet.evict(["a"]))
        self.fleet = Fleet.from_bytes(self.fleet.to_bytes(), self.model)

    def late_labels(self) -> None:
        self.ids += 1
        sound(self.online.predict(self.x(), id=self.ids))
        if self.rng.random() < 0.7:
            self.online.update(y=self.y(), id=self.ids)

    def whole_stream(self) -> None:
        state = self.online.state
        run = prequential(self.model, state, self.x(5), self.y(5))
        sound(run.prediction)
        assert state.record.tobytes() == self.online.state.record.tobytes(), "a pass over a stream changed its state"

    # ---- calls that must be refused

    def refused(self) -> None:
        before = self.online.state.record.tobytes(), self.fleet.to_bytes()
        calls: list[Callable[[], Any]] = [
            lambda: self.online.predict(self.odd()),
            lambda: self.online.update(self.odd(), 1.0),
            lambda: self.online.update(np.zeros(D), self.odd()),
            lambda: self.online.update(np.zeros(D), 1.0, -1.0),
            lambda: self.online.update(np.zeros(D), np.inf),
            lambda: self.online.update(np.zeros(D + 1), 1.0),
            lambda: self.fleet.update(["a"], self.odd(), [1.0]),
            lambda: self.fleet.update([None], np.zeros((1, D)), [1.0]),
            lambda: self.fleet.admit(b"\x89drfleet" + self.rng.bytes(60)),
            lambda: checkpoint.from_bytes(self.model, self.rng.bytes(80)),
        ]
        try:
            calls[self.rng.integers(len(calls))]()
        except (ValueError, TypeError):
            pass
        else:
            raise AssertionError("what makes no sense was taken")
        assert before == (self.online.state.record.tobytes(), self.fleet.to_bytes()), "a refusal changed a state"


def sound(forecast: Any) -> None:
    numbers = forecast.mean, forecast.variance, *forecast.interval(0.9)
    assert all(np.isfinite(each).all() for each in numbers), f"not finite: {numbers}"
    assert (forecast.variance > 0.0).all(), f"variance {forecast.variance}"


NAMES = [
    "predict", "predict_rows", "update", "update", "update_rows", "copies", "fleet_update", "fleet_comes_and_goes",
    "late_labels", "whole_stream", "refused", "refused",
]  # fmt: skip


def case(rng: np.random.Generator) -> str:
    """A sequence of calls."""
    session = Session(rng)
    for _ in range(CALLS):
        getattr(session, NAMES[rng.integers(len(NAMES))])()
    return "the default" if session.default else type(session.model).__name__
