"""How often an alarm is false, and how soon a true one comes: `python -m benchmarks.alarms` (a minute of CPU)."""

from collections.abc import Callable

import numpy as np

from driftgp.alarms import PATIENCE, Alarms

Change = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
STREAMS, ROWS = 1000, 1000
CHANGED, BEFORE = 200, 500  # streams with a change, and rows before it
CHANGES: dict[str, Change] = {
    "level + 1": lambda z, X: (z + 1.0, X),
    "level + 2": lambda z, X: (z + 2.0, X),
    "noise × 2": lambda z, X: (2.0 * z, X),
    "noise × 3": lambda z, X: (3.0 * z, X),
    "an input + 5": lambda z, X: (z, X + np.array([0.0, 5.0])),
}


def main() -> None:
    """Print the number of false alarms, and a table of delays."""
    rng = np.random.default_rng(1)
    false = 0
    for _ in range(STREAMS):
        watch = Alarms(("a", "b"))
        z, X = rng.normal(size=ROWS), rng.normal(size=(ROWS, 2))
        false += sum(len(watch.update(score, x)) for score, x in zip(z, X, strict=True))
    promised = STREAMS * ROWS / PATIENCE
    print(f"{false} false alarms in {STREAMS} streams of {ROWS} rows; at most {promised:.0f} are promised\n")
    print("| change, in standard deviations | median delay | 90 % within | missed |\n|---|---:|---:|---:|")
    for name, change in CHANGES.items():
        delays = np.array([_delay(rng, change) for _ in range(CHANGED)])
        print(f"| {name} | {np.median(delays):.0f} | {np.quantile(delays, 0.9):.0f} | {np.isinf(delays).sum()} |")


def _delay(rng: np.random.Generator, change: Change) -> float:
    """Rows from a change to the first alarm, infinite if there is none within 200."""
    z, X = rng.normal(size=BEFORE + 200), rng.normal(size=(BEFORE + 200, 2))
    z[BEFORE:], X[BEFORE:] = change(z[BEFORE:], X[BEFORE:])
    watch = Alarms(("a", "b"))
    for row, (score, x) in enumerate(zip(z, X, strict=True)):
        if watch.update(score, x) and row >= BEFORE:
            return row - BEFORE + 1.0
    return np.inf


if __name__ == "__main__":
    main()
