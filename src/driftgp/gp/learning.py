"""Gradient steps on the logarithms of positive parameters: Adam (Kingma and Ba 2015), and a scaled gradient."""

from typing import Literal, NamedTuple, get_args

import numpy as np

Step = Literal["fresh", "carried", "scaled"]
STEPS: tuple[str, ...] = get_args(Step)

# Positive parameters stay within exp(±60), about 1e±26: far beyond any use, far from overflow.
WIDEST = 60.0
_MEAN, _SQUARE, _EPSILON = 0.9, 0.999, 1e-8  # Adam's usual constants


class Adam(NamedTuple):
    """Running averages of Adam: of the gradient and of its square, over a number of steps."""

    mean: np.ndarray
    square: np.ndarray
    steps: int

    @classmethod
    def begin(cls, size: int) -> "Adam":
        """Before the first step."""
        return cls(np.zeros(size), np.zeros(size), 0)

    def step(self, gradient: np.ndarray, rate: float) -> tuple[np.ndarray, "Adam"]:
        """The step uphill, and the averages after it."""
        mean = _MEAN * self.mean + (1.0 - _MEAN) * gradient
        square = _SQUARE * self.square + (1.0 - _SQUARE) * gradient**2
        steps = self.steps + 1
        size = np.sqrt(square / (1.0 - _SQUARE**steps)) + _EPSILON
        return rate * mean / (1.0 - _MEAN**steps) / size, Adam(mean, square, steps)


def scaled_step(gradient: np.ndarray, information: float, largest: float) -> np.ndarray:
    """The gradient over one number for all entries, n/2 + prior⁻², none of them larger than `largest`.

    n samples hold at most n/2 of Fisher information on the logarithm of a variance, noise or signal. With this
    curvature the step is Newton's if the samples are informative, and shorter if they are not. So a parameter at its
    optimum does not move. It is not a natural gradient, which would take the information matrix.
    """
    return np.clip(gradient / information, -largest, largest)


def moved(positive: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Positive parameters after a step in their logarithms."""
    return np.exp(np.clip(np.log(positive) + step, -WIDEST, WIDEST))
