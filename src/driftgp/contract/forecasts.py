"""Forecasts as records: every one begins with mean, variance and noise, P each; a wrapper adds fields behind them."""

from typing import Any

import numpy as np

from driftgp.predictions import Gaussian


def layout(outputs: int, *more: Any) -> np.dtype:
    """Layout of a forecast: mean, variance, noise, and the fields that a wrapper adds."""
    return np.dtype([(name, np.float64, (outputs,)) for name in ("mean", "variance", "noise")] + list(more))


def records(dtype: np.dtype, mean: np.ndarray, variance: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """N forecasts with mean, variance and noise (N×P, or what broadcasts to that); other fields are zeros so far."""
    made = np.zeros(len(mean), dtype)
    made["mean"], made["variance"], made["noise"] = mean, variance, noise
    return made


def normal(mean: np.ndarray, variance: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """N forecasts that are normal distributions."""
    return records(layout(mean.shape[1]), mean, variance, noise)


def normal_law(forecasts: np.ndarray) -> Gaussian:
    """The normal distributions that N forecasts describe."""
    return Gaussian(forecasts["mean"], forecasts["variance"], forecasts["noise"])


# ---- several voices --------------------------------------------------------------------------------------------------


def more_voices(voices: int, outputs: int) -> list[Any]:
    """The field of a forecast in which the voices after the first are: mean, variance and noise of each."""
    return [("others", np.float64, (voices - 1, 3, outputs))]


def with_voices(dtype: np.dtype, said: np.ndarray) -> np.ndarray:
    """N forecasts of K voices, N×K×3×P: the first voice leads."""
    return put_voices(np.zeros(len(said), dtype), said)


def voices(made: np.ndarray) -> np.ndarray:
    """Mean, variance and noise of every voice of N forecasts, N×K×3×P."""
    first = np.stack([made["mean"], made["variance"], made["noise"]], 1)[:, None]
    return np.concatenate([first, made["others"]], 1) if "others" in (made.dtype.names or ()) else first


def put_voices(made: np.ndarray, said: np.ndarray) -> np.ndarray:
    """N forecasts with other voices, N×K×3×P."""
    made["mean"], made["variance"], made["noise"] = np.moveaxis(said[:, 0], 1, 0)
    if said.shape[1] > 1:
        made["others"] = said[:, 1:]
    return made
