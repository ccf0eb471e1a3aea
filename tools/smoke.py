"""What an installed driftgp must do with numpy and scipy alone: python smoke.py native|reference.

Prints the engine and the toy stream's mean squared error; any failure is an exception.
"""

import sys
import warnings

import numpy as np


def main(kind: str) -> None:
    """Warm up, predict and update the default model, sample by sample."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        import driftgp
        from driftgp.data import toy_stream

        stream = toy_stream(seed=0)
        X, y, warmup = stream.X, stream.y, stream.warmup
        model = driftgp.recommended(X[:warmup], y[:warmup])
        online = driftgp.Online(model, model.init(X[:warmup], y[:warmup]))
        errors, inside = [], []
        for x, target in zip(X[warmup:], y[warmup:], strict=True):
            forecast = online.predict(x)
            low, high = forecast.interval(0.95)
            errors.append(target - forecast.mean[0])
            inside.append(low[0] <= target <= high[0])
            online.update(x, target)
        found = driftgp.describe(model)
    if not found.startswith(kind):
        raise SystemExit(f"the engine is not {kind}: {found}")
    if len(said) != (kind == "reference"):  # the slower engine says so, once
        raise SystemExit(f"{len(said)} warnings: {[str(warning.message) for warning in said]}")
    if "jax" in sys.modules or not 0.9 <= np.mean(inside) <= 1.0:
        raise SystemExit(f"coverage {np.mean(inside)}, or JAX was imported")
    print(f"{found} | toy MSE {np.mean(np.square(errors)):.6f}, inside 95 %: {np.mean(inside):.3f}")


if __name__ == "__main__":
    main(sys.argv[1])
