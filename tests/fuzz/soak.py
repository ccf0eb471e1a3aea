"""A million hostile steps: forecasts stay finite, memory stays as it is.

    make soak                             a million steps, over several models
    make soak ARGS="--steps 100000"       fewer of them
    make soak ARGS="--only low"           all of them by the default of that effort (or medium, or high)

Every step predicts, takes the interval and learns, in one process. The stream changes its habits every few hundred
rows: calm, constants, alternating extremes, lone wild values, other units, gaps, duplicates, denormals.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from driftgp import AGP, FastAGP, Online, recommended
from driftgp.defaults import Effort
from driftgp.kernels import SE, Linear
from driftgp.models.model import Model
from driftgp.wrappers import Bank, Calibrated, Gaps, Guarded, Standardize, Watched, Within

D = 2
SPELL = 500  # rows of one habit
SMALL = {"inducing": 5, "window": 30}


def wrapped(model: Model) -> Model:
    """A model in all the wrappers."""
    return Watched(Guarded(Calibrated(Standardize(Gaps(Within(model)), adapt=0.99))))


# Shares of the steps that the defaults take; the other models share what is left.
SHARES: dict[Effort, float] = {"low": 0.2, "medium": 0.1, "high": 0.02}


def models(steps: int) -> dict[str, tuple[Model, int]]:
    """Models, and the steps of each."""
    fast = [FastAGP(kernel=Linear() + SE(), forgetting=rate, **SMALL) for rate in (0.9, 0.99)]
    light: dict[str, Model] = {
        "fast-AGP, wrapped": wrapped(fast[0]),
        "AGP, wrapped": wrapped(AGP(prior=10.0, **SMALL)),
        "a bank of both": wrapped(Bank([*fast, AGP(prior=10.0, **SMALL)])),
    }
    each = round(steps * (1.0 - sum(SHARES.values())) / len(light))
    return {name: (model, each) for name, model in light.items()} | {
        effort: (recommended(np.zeros((0, D)), np.zeros(0), effort=effort), round(share * steps))
        for effort, share in SHARES.items()
    }


Rows = tuple[np.ndarray, np.ndarray]
WILD = np.array([1e154, -1.7e308, 1e20, -1e9, 1e9])


def _some(rng: np.random.Generator, X: np.ndarray, share: float) -> np.ndarray:
    """X with a share of its numbers missing."""
    return np.where(rng.random(X.shape) < share, np.nan, X)


def _struck(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    """X with a few wild rows."""
    struck = X.copy()
    struck[rng.choice(len(X), len(WILD), replace=False)] = WILD.reshape(-1, *[1] * (X.ndim - 1))
    return struck


HABITS: list[Callable[[np.random.Generator, np.ndarray, np.ndarray], Rows]] = [
    lambda _, X, y: (X, y),
    lambda _, X, y: (X, np.full_like(y, 3.0)),
    lambda rng, X, y: (X, y * 10.0 ** rng.integers(-12, 13)),
    lambda _, X, y: (X, y + 1e6 * (np.arange(len(y)) % 2)),
    lambda rng, X, y: (X, _struck(rng, y)),
    lambda rng, X, y: (_struck(rng, X), y),
    lambda _, X, y: (np.full_like(X, 0.7), y),
    lambda rng, X, y: (X, _some(rng, y, 0.5)),
    lambda rng, X, y: (_some(rng, X, 0.3), y),
    lambda _, X, y: (X * 5e-324, y * 5e-324),
    lambda rng, X, y: (X * 10.0 ** rng.integers(-100, 101), y),
]


def stream(rng: np.random.Generator, steps: int) -> Iterator[Rows]:
    """Spells of rows, each of another habit."""
    for spell in range(-(-steps // SPELL)):
        X = rng.normal(size=(SPELL, D))
        y = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=SPELL)
        yield HABITS[spell % len(HABITS)](rng, X, y)


def resident() -> float:
    """Memory of this process that is in use, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def soak(model: Model, steps: int, seed: int) -> dict[str, float]:
    """Run a model; what it came to."""
    online = Online(model, model.init(np.zeros((0, D)), np.zeros(0)))
    seconds = np.zeros(steps)  # before the first look at the memory, so that it is in use
    seconds[:] = 1.0
    wrong, done, early = 0, 0, 0.0
    for X, y in stream(np.random.default_rng(seed), steps):
        for x, target in zip(X, y.tolist(), strict=True):
            if done == steps:
                break
            began = time.perf_counter()
            forecast = online.predict(x)
            low, high = forecast.interval(0.95)
            online.update(x, target)
            seconds[done] = time.perf_counter() - began
            numbers = (forecast.mean[0], forecast.variance[0], low[0], high[0])
            wrong += not (np.isfinite(numbers).all() and forecast.variance[0] > 0.0)
            done += 1
        if done <= max(steps // 10, SPELL):
            early = resident()
    return {
        "steps": done,
        "not finite": wrong,
        "growth, MB": resident() - early,
        "median, µs": float(np.median(seconds)) * 1e6,
        "99.99 %, µs": float(np.quantile(seconds, 0.9999)) * 1e6,
        "slowest / median": float(seconds.max() / np.median(seconds)),
    }


def main() -> None:
    """Parse the command line, run, and fail where a forecast was not finite or memory grew."""
    parser = argparse.ArgumentParser(prog="make soak", description="Hostile steps: memory, and the slowest of them.")
    parser.add_argument("--steps", type=int, default=1_000_000, help="of all models together")
    parser.add_argument("--only", choices=SHARES, help="all of them by the default of this effort")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    failed = False
    for name, (model, share) in models(given.steps).items():
        if given.only in (None, name):
            told = soak(model, given.steps if given.only else share, given.seed)
            print(f"{name}: " + ", ".join(f"{key} {value:.4g}" for key, value in told.items()), flush=True)
            failed |= bool(told["not finite"]) or told["growth, MB"] >= 1.0
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
