"""The paper's tables as data: every cell, with the methods under the names that this project uses.

What the paper's tables call w-SVGP is its text's w-VSGP, the windowed variational sparse GP.
"""

from typing import NamedTuple


class Cell(NamedTuple):
    """What a table says of a method on a series; None where it has a dash."""

    mse: float | None
    coverage: float | None = None  # per cent of samples within ± 2 standard deviations
    seconds: float | None = None  # training time on the authors' machine


Table = dict[str, dict[str, Cell]]  # series → method → cell


def _table(methods: tuple[str, ...], series: dict[str, tuple[tuple[float | None, ...], ...]]) -> Table:
    """Cells from three lines (MSE, coverage, time) for each series, as the paper prints them."""
    return {
        name: {method: Cell(*column) for method, *column in zip(methods, *lines, strict=True)}
        for name, lines in series.items()
    }


TOY = _table(
    ("w-VSGP", "OSGP", "WISKI", "AGP-VSI", "fast-AGP", "AGP"),
    {
        "toy": (
            (1.0989, 0.1333, 0.4507, 0.5211, 0.1960, 0.0630),
            (93.10, 94.21, 75.28, 93.71, 71.68, 95.02),
            (3266.2, 299.5, 120.4, 3022.0, 23.1, 108.6),
        )
    },
)

LOAD = _table(
    ("persistence", "w-VSGP", "WISKI", "AGP-VSI", "fast-AGP", "AGP"),
    {
        "CT": (
            (0.1282, 0.0982, 0.1202, 0.0876, 0.0876, 0.0933),
            (None, 89.91, 90.22, 89.82, 90.70, 96.16),
            (None, 5262.4, 280.4, 5459.9, 36.6, 196.0),
        ),
        "ME": (
            (0.0092, 0.0062, 0.0090, 0.0112, 0.0058, 0.0066),
            (None, 91.96, 91.44, 92.78, 93.88, 96.70),
            (None, 5535.3, 278.8, 5519.2, 60.5, 198.5),
        ),
        "NEMA": (
            (0.0802, 0.0593, 0.0706, 0.0535, 0.0490, 0.0533),
            (None, 89.74, 89.14, 90.01, 89.73, 96.20),
            (None, 5178.2, 280.2, 5162.3, 38.7, 197.7),
        ),
        "NH": (
            (0.0160, 0.0107, 0.0148, 0.0121, 0.0097, 0.0107),
            (None, 91.50, 90.46, 91.21, 92.38, 96.63),
            (None, 5209.2, 284.9, 5107.9, 54.6, 196.8),
        ),
        "RI": (
            (0.0088, 0.0099, 0.0100, 0.0134, 0.0061, 0.0069),
            (None, 90.75, 89.42, 92.26, 88.00, 96.35),
            (None, 5180.2, 289.9, 5154.2, 65.1, 196.3),
        ),
        "SEMA": (
            (0.0347, 0.0280, 0.0375, 0.0281, 0.0247, 0.0263),
            (None, 90.19, 91.33, 89.65, 89.15, 95.84),
            (None, 5240.5, 286.6, 5105.7, 45.6, 196.2),
        ),
        "VT": (
            (0.0056, 0.0042, 0.0049, 0.0044, 0.0038, 0.0040),
            (None, 92.58, 92.58, 93.77, 97.14, 97.34),
            (None, 5128.1, 284.7, 5186.4, 54.2, 196.1),
        ),
        "WCMA": (
            (0.0360, 0.0255, 0.0309, 0.0240, 0.0237, 0.0248),
            (None, 89.84, 92.00, 89.90, 93.15, 96.84),
            (None, 5042.0, 287.6, 5290.0, 37.9, 194.4),
        ),
        "average": (
            (0.0398, 0.0303, 0.0372, 0.0293, 0.0263, 0.0282),
            (None, 90.81, 90.82, 91.17, 91.77, 96.51),
            (None, 5222.0, 284.1, 5248.2, 49.2, 196.5),
        ),
    },
)

SALES = _table(
    ("persistence", "w-VSGP", "OSGP", "WISKI", "AGP-VSI", "fast-AGP", "AGP"),
    {
        "SS": (
            (0.4106, 0.1744, None, 0.3877, 0.1966, 0.1868, 0.2180),
            (None, 87.63, None, 83.21, 90.47, 84.28, 95.45),
            (None, 1911.6, None, 226.7, 1833.5, 39.6, 297.7),
        ),
        "OR": (
            (3.9486, 2.4789, 2.5190, 2.0593, 2.2916, 2.1920, 2.2394),
            (None, 84.39, 89.76, 89.27, 87.32, 93.17, 94.15),
            (None, 240.6, 30.5, 29.3, 232.0, 3.0, 20.7),
        ),
    },
)

TABLES: dict[str, Table] = {"toy": TOY, "load": LOAD, "sales": SALES}


def cell(experiment: str, series: str, method: str) -> Cell:
    """What the paper has in a cell, or an empty one.

    >>> cell("load", "CT", "AGP").mse
    0.0933
    """
    return TABLES.get(experiment, {}).get(series, {}).get(method, Cell(None))
