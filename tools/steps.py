"""Files for the C example, to compare one platform's library with another's.

    python steps.py write FOLDER
    python steps.py compare FOLDER OTHER     # after the example has run in both

`steps`: 100 states of the default model along the toy stream, and two rows for each: the one that comes next, and the
one after it without its target, so that the second forecast is that of a state after a single step.
`toy0` and so on: toy streams by their seeds, warm-up and rows, for a state that C starts by itself.
"""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples/c"))

STATES, STREAMS = 100, 5
# Coefficients in a basis that is nearly dependent: rounding changes them by far more than the forecasts they make.
COEFFICIENTS = {"alpha", "C"}


def write(folder: Path) -> None:
    """Write both, by the driftgp that is installed here."""
    from files import write_model, write_rows

    from driftgp import Online, recommended

    for seed in range(STREAMS):
        X, y, warmup = _toy(seed)
        model, place = recommended(X[:warmup], y[:warmup]), folder / f"toy{seed}"
        place.mkdir(parents=True)
        write_model(place / "model.bin", model, X.shape[1])
        write_rows(place / "warmup.bin", X[:warmup], y[:warmup])
        write_rows(place / "rows.bin", X[warmup:], y[warmup:])
    X, y, warmup = _toy(0)
    model = recommended(X[:warmup], y[:warmup])
    online = Online(model, model.init(X[:warmup], y[:warmup]))
    records: list[bytes] = []
    rows: list[list[float]] = []
    for i in range(warmup, len(X)):
        if (i - warmup) % 4 == 0 and len(records) < STATES:
            records.append(online.state.record.tobytes())
            rows += [[*X[i], y[i], 1.0], [*X[i + 1], np.nan, 0.0]]
        online.update(X[i], y[i])
    (folder / "steps").mkdir()
    write_model(folder / "steps/model.bin", model, X.shape[1])
    (folder / "steps/state.bin").write_bytes(b"".join(records))
    (folder / "steps/rows.bin").write_bytes(np.array(rows).tobytes())
    np.save(folder / "dtype.npy", np.zeros((), model.record_dtype(X.shape[1], 1)))


def _toy(seed: int) -> tuple[np.ndarray, np.ndarray, int]:
    from driftgp.data import toy_stream

    stream = toy_stream(seed)
    return stream.X, stream.y, stream.warmup


def compare(folder: Path, other: Path) -> None:
    """Print the largest relative difference of single steps, of forecasts and of states, and of the toy stream's error.

    Forecasts of the stored states are compared number by number. A field of a state after the step is an array, and an
    entry that is nearly 0 among large ones is a sum that cancels: its difference is taken relative to the largest entry
    of its field; so is that of the forecasts after the step, relative to the largest of all 100. What that leaves out,
    each of these forecasts by itself and the coefficients, is printed too. Along a stream rounding grows, and decides
    now and then which point goes: the mean of the streams' errors is compared, and the largest difference printed.
    """
    ours, theirs = (np.fromfile(place / "steps/forecasts.bin").reshape(STATES, 2, 4) for place in (folder, other))
    dtype = np.load(folder / "dtype.npy").dtype
    records = [np.fromfile(place / "steps/state.bin", dtype) for place in (folder, other)]
    apart, fields = np.abs(ours - theirs), list(_of_fields("", *records))
    errors = np.array([[_toy_error(place / f"toy{seed}") for seed in range(STREAMS)] for place in (folder, other)])
    means = errors.mean(1)
    found = {
        "forecasts": float(np.max(apart[:, 0] / np.abs(ours)[:, 0])),
        "states after a step": float(np.max([apart for name, apart in fields if name not in COEFFICIENTS])),
        "forecasts after a step": float(np.max(apart[:, 1] / np.max(np.abs(ours)[:, 1], axis=0))),
        "each by itself": float(np.max(apart[:, 1] / np.abs(ours)[:, 1])),
        "coefficients": float(np.max([apart for name, apart in fields if name in COEFFICIENTS])),
        "toy MSE": float(means[1]),
        "toy MSE, relative": float(abs(means[1] / means[0] - 1.0)),
        "of one stream": float(np.max(np.abs(errors[1] / errors[0] - 1.0))),
    }
    print(json.dumps(found))


def _toy_error(folder: Path) -> float:
    """Mean squared error of a toy stream's forecasts."""
    rows = np.fromfile(folder / "rows.bin").reshape(-1, 3)
    return float(np.mean((np.fromfile(folder / "forecasts.bin").reshape(-1, 4)[:, 0] - rows[:, 1]) ** 2))


def _of_fields(name: str, ours: np.ndarray, theirs: np.ndarray) -> Iterator[tuple[str, float]]:
    """Each field's name and its largest relative difference, of all states; whole numbers are equal or not."""
    if ours.dtype.names is not None:
        for inner in ours.dtype.names:
            yield from _of_fields(inner, ours[inner], theirs[inner])
    elif ours.size and ours.dtype.kind == "i":
        yield name, float(np.any(ours != theirs))
    elif ours.size:
        ours, theirs = (each.reshape(len(each), -1) for each in (ours, theirs))
        same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
        scale = np.nanmax(np.abs(ours), axis=1, keepdims=True, initial=0.0)
        yield name, float(np.max(np.where(same, 0.0, np.abs(ours - theirs) / np.where(scale > 0, scale, 1.0))))


if __name__ == "__main__":
    tasks: dict[str, Callable[..., None]] = {"write": write, "compare": compare}
    tasks[sys.argv[1]](*map(Path, sys.argv[2:]))
