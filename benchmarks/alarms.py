"""How often an alarm is false, and how soon a true one comes.

python -m benchmarks.alarms scores     # of scores as a model that does not learn would have them (a minute of CPU)
python -m benchmarks.alarms default    # of the default model, which follows changes by itself (six minutes of CPU)
    python -m benchmarks.alarms cost       # microseconds per row
"""

import argparse
import time
from collections.abc import Callable

import numpy as np

from driftgp import prequential, recommended
from driftgp.alarms import PATIENCE, Alarms, find_alarms
from driftgp.predictions import Prediction

Change = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
STREAMS, ROWS = 1000, 1000
CHANGED, BEFORE, AFTER = 200, 500, 200  # streams with a change, and rows before and after it
FIRST, SOON = 200, 50  # rows of the default's warm-up, and rows within which it should be heard of
NOISE = 0.3
NAMES = ("a", "b")

OF_SCORES: dict[str, Change] = {
    "level + 1": lambda z, X: (z + 1.0, X),
    "level + 2": lambda z, X: (z + 2.0, X),
    "noise × 2": lambda z, X: (2.0 * z, X),
    "noise × 3": lambda z, X: (3.0 * z, X),
    "an input + 5": lambda z, X: (z, X + np.array([0.0, 5.0])),
}
# Of inputs and noise, both as they would have been: new targets, and the inputs that are seen.
OF_STREAMS: dict[str, Change] = {
    "level + 3 of the noise's standard deviations": lambda X, e: (truth(X) + e + 3.0 * NOISE, X),
    "level + 6": lambda X, e: (truth(X) + e + 6.0 * NOISE, X),
    "level + 10": lambda X, e: (truth(X) + e + 10.0 * NOISE, X),
    "noise × 3": lambda X, e: (truth(X) + 3.0 * e, X),
    "an input reads 8 too high": lambda X, e: (truth(X) + e, X + np.array([0.0, 8.0])),
    "the effect of an input is turned": lambda X, e: (truth(X * np.array([1.0, -1.0])) + e, X),
    "one target 30 off (no change)": lambda X, e: (truth(X) + e + 30.0 * NOISE * (np.arange(len(e)) == 0), X),
}


def truth(X: np.ndarray) -> np.ndarray:
    """What the targets are without noise."""
    return np.sin(X[:, 0]) + X[:, 1]


def scores() -> None:
    """Print the number of false alarms, and a table of delays, for standard normal scores."""
    rng = np.random.default_rng(1)
    false = 0
    for _ in range(STREAMS):
        watch = Alarms(NAMES)
        z, X = rng.normal(size=ROWS), rng.normal(size=(ROWS, 2))
        false += len(watch.update_all(z, X))
    promised = STREAMS * ROWS / PATIENCE
    print(f"{false} false alarms in {STREAMS} streams of {ROWS} rows; at most {promised:.0f} are promised\n")
    print("| change, in standard deviations | median delay | 90 % within | missed |\n|---|---:|---:|---:|")
    for name, change in OF_SCORES.items():
        delays = np.array([_delay(rng, change) for _ in range(CHANGED)])
        print(f"| {name} | {np.median(delays):.0f} | {np.quantile(delays, 0.9):.0f} | {np.isinf(delays).sum()} |")


def _delay(rng: np.random.Generator, change: Change) -> float:
    """Rows from a change to the first alarm; infinite without an alarm within 200 rows."""
    z, X = rng.normal(size=BEFORE + AFTER), rng.normal(size=(BEFORE + AFTER, 2))
    z[BEFORE:], X[BEFORE:] = change(z[BEFORE:], X[BEFORE:])
    watch = Alarms(NAMES)
    late = [alarm.row - BEFORE + 1.0 for alarm in watch.update_all(z, X) if alarm.row >= BEFORE]
    return min(late, default=np.inf)


def default() -> None:
    """Print the same for the default model; one stream goes on in all ways that it may change."""
    rng = np.random.default_rng(2)
    false = 0
    delays: dict[str, list[float]] = {name: [] for name in OF_STREAMS}
    for stream in range(STREAMS):
        X, e = rng.normal(size=(FIRST + BEFORE + SOON, 2)), NOISE * rng.normal(size=FIRST + BEFORE + SOON)
        y, until = truth(X) + e, slice(FIRST, FIRST + BEFORE)
        model = recommended(X[:FIRST], y[:FIRST])
        before = prequential(model, model.init(X[:FIRST], y[:FIRST]), X[until], y[until])
        false += len(find_alarms(before.prediction, y[until], X[until], inputs=NAMES))
        for name, change in OF_STREAMS.items() if stream < CHANGED else ():
            y_after, X_after = change(X[until.stop :], e[until.stop :])
            after = prequential(model, before.state, X_after, y_after)
            watch = Alarms(NAMES)
            _watch(watch, before.prediction, y[until], X[until])
            delays[name].append(_watch(watch, after.prediction, y_after, X_after))
    promised = STREAMS * BEFORE / PATIENCE
    print(f"{false} false alarms in {STREAMS} streams of {BEFORE} rows; at most {promised:.0f} are promised\n")
    print(f"| change | found within {SOON} rows | median delay |\n|---|---:|---:|")
    for name, found in delays.items():
        median = np.median(found)
        said = "–" if np.isinf(median) else f"{median:.0f}"
        print(f"| {name} | {100 * np.mean(np.isfinite(found)):.1f} % | {said} |")


def cost() -> None:
    """Print how long a row takes, without inputs and with eight, in blocks and one by one."""
    rng = np.random.default_rng(3)
    z, X, widths = rng.normal(size=20_000), rng.normal(size=(20_000, 8)), np.ones(20_000)
    for names, inputs in (((), None), (tuple("abcdefgh"), X)):
        found = []
        for rows in (1000, 1):
            watch, began = Alarms(names), time.process_time()
            for some in (slice(begin, begin + rows) for begin in range(0, len(z), rows)):
                watch.update_all(z[some], None if inputs is None else inputs[some], widths[some])
            found.append(1e6 * (time.process_time() - began) / len(z))
        print(f"{len(names)} inputs: {found[0]:.1f} µs per row in blocks, {found[1]:.0f} µs one by one.")


def _watch(watch: Alarms, prediction: Prediction, y: np.ndarray, X: np.ndarray) -> float:
    """The number of the first row that raises an alarm, from 1; infinite if none does."""
    begun = watch.rows
    found = watch.update_all(prediction.to_normal(y), X, prediction.std)
    return found[0].row - begun + 1.0 if found else np.inf


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("scores", "default", "cost"))
    {"scores": scores, "default": default, "cost": cost}[parser.parse_args().what]()
