"""Kernels: formulas with their derivatives, sums and products of them, and kernels written as text.

formulas      each kernel with its gradient
check         is the derivative of a kernel of your own right, and what to do without one
expressions   `"linear + se(lengthscale=2)"`
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
