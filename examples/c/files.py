"""The Python side of the C example: models, states and rows as files that C reads, and back.

    python files.py write FOLDER     # a model, a state warmed up by Python, and rows of a stream
    ./online run FOLDER/model.bin FOLDER/rows.bin FOLDER/state.bin FOLDER/forecasts.bin
    python files.py go-on FOLDER     # Python goes on from the state that C left, and compares

`make demo` beside this file does all of it, and the other way round: C warms up, Python goes on.
"""

import sys
from pathlib import Path

import numpy as np

from driftgp import recommended
from driftgp.engine.description import encoded
from driftgp.models.model import Layout, Model, State

WARMUP, ROWS = 100, 200


def stream() -> tuple[np.ndarray, np.ndarray]:
    """Three inputs, and a target that follows them less and less."""
    random = np.random.default_rng(0)
    X = random.normal(size=(WARMUP + ROWS, 3))
    drift = np.linspace(1.0, 0.2, len(X))
    return X, 20.0 + drift * np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * random.normal(size=len(X))


def write_model(path: Path, model: Model, inputs: int, outputs: int = 1) -> None:
    """The model as the library takes it."""
    description = encoded(model)
    path.write_bytes(
        np.array([inputs, outputs, len(description)], "<i8").tobytes() + np.array(description, "<f8").tobytes()
    )


def write_rows(path: Path, X: np.ndarray, y: np.ndarray) -> None:
    """Rows that come one unit of time apart."""
    path.write_bytes(np.column_stack([X, y, np.ones(len(X))]).astype("<f8").tobytes())


def read_state(path: Path, model: Model, inputs: int) -> State:
    """A state out of C's hands: the record is the same memory in both languages."""
    state = State.zeros(model, Layout(inputs, None, model.fills_gaps))
    state.record[...] = np.fromfile(path, state.record.dtype)[0]
    return state


def write(place: Path, model: Model, X: np.ndarray, y: np.ndarray) -> None:
    """What C begins with."""
    place.mkdir(parents=True, exist_ok=True)
    write_model(place / "model.bin", model, X.shape[1])
    write_rows(place / "warmup.bin", X[:WARMUP], y[:WARMUP])
    write_rows(place / "rows.bin", X[WARMUP:-1], y[WARMUP:-1])
    (place / "state.bin").write_bytes(model.init(X[:WARMUP], y[:WARMUP]).record.tobytes())


def go_on(place: Path, model: Model, X: np.ndarray, y: np.ndarray) -> None:
    """Predict the last row from the state that C left, and from one that Python learned alone."""
    mean, _, low, high = np.fromfile(place / "forecasts.bin").reshape(-1, 4).T
    targets = y[WARMUP:-1]
    inside = np.mean((low <= targets) & (targets <= high))
    print(f"C: root mean squared error {np.sqrt(np.mean((mean - targets) ** 2)):.3f}, {inside:.0%} inside 95 %")
    theirs = model.predict(read_state(place / "state.bin", model, X.shape[1]), X[-1:]).mean[0]
    ours = model.predict(model.update(model.init(X[:WARMUP], y[:WARMUP]), X[WARMUP:-1], targets), X[-1:]).mean[0]
    print(f"the next mean after C {theirs:.9f}, after Python alone {ours:.9f}")
    if not np.isclose(theirs, ours, rtol=1e-6, atol=0):
        sys.exit("they differ")


if __name__ == "__main__":
    (task, folder), (X, y) = sys.argv[1:], stream()
    {"write": write, "go-on": go_on}[task](Path(folder), recommended(X[:WARMUP], y[:WARMUP]), X, y)
