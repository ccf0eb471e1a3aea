"""Kernels: formulas with their derivatives, sums and products of them, and kernels written as text.

- `formulas`: each kernel with its gradient.
- `check`: a check of the derivative of your own kernel, and a way to do without it.
- `expressions`: kernels as text, such as `"linear + se(lengthscale=2)"`.
"""

from driftgp.kernels.formulas import (
    SE,
    Array,
    Constant,
    Kernel,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Product,
    RationalQuadratic,
    Stationary,
    Sum,
    library,
    positive,
    squared_distance,
)

__all__ = [
    "SE",
    "Array",
    "Constant",
    "Kernel",
    "Linear",
    "Matern12",
    "Matern32",
    "Matern52",
    "Periodic",
    "Product",
    "RationalQuadratic",
    "Stationary",
    "Sum",
    "library",
    "positive",
    "squared_distance",
]
