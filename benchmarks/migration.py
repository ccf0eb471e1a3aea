"""GPyTorch's `get_fantasy_model` beside AGP, sample by sample on the toy stream: the figures of docs/migration.md.

python -m benchmarks.migration
"""

import time
import warnings
from collections.abc import Callable

import numpy as np

from benchmarks.outside import GPyTorchExact
from driftgp import AGP, Online
from driftgp.data import Stream, toy_stream

Follower = tuple[Callable[[np.ndarray], float], Callable[[np.ndarray, float], None]]  # predict, learn


def fantasy(X: np.ndarray, y: np.ndarray) -> Follower:
    """Fit an exact process to the warm-up, then condition it on sample after sample."""
    process = GPyTorchExact(X, y, 0)

    def learn(x: np.ndarray, target: float) -> None:
        torch = process.torch
        with torch.no_grad():
            process.model = process.model.get_fantasy_model(torch.tensor(x[None]), torch.tensor([target]))

    return process.predict, learn


def adaptive(X: np.ndarray, y: np.ndarray) -> Follower:
    """AGP with its defaults."""
    model = AGP()
    online = Online(model, model.init(X, y))
    return lambda x: float(online.predict(x).mean[0]), online.update


def follow(stream: Stream, start: Callable[[np.ndarray, np.ndarray], Follower]) -> tuple[np.ndarray, np.ndarray]:
    """Errors, and seconds of CPU of a prediction and an update, for each sample after the warm-up."""
    begin = stream.warmup
    predict, learn = start(stream.X[:begin], stream.y[:begin])
    errors, seconds = [], []
    for x, target in zip(stream.X[begin:], stream.y[begin:], strict=True):
        began = time.process_time()
        errors.append(predict(x) - target)
        learn(x, float(target))
        seconds.append(time.process_time() - began)
    return np.array(errors), np.array(seconds)


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    stream = toy_stream(seed=0)
    print("| | MSE | µs per row, first hundred | µs per row, last hundred |\n|---|---:|---:|---:|")
    for name, start in (("GPyTorch, `get_fantasy_model`", fantasy), ("AGP", adaptive)):
        errors, seconds = follow(stream, start)
        first, last = (1e6 * float(np.median(part)) for part in (seconds[:100], seconds[-100:]))
        print(f"| {name} | {np.mean(errors**2):.4f} | {first:,.0f} | {last:,.0f} |")


if __name__ == "__main__":
    main()
