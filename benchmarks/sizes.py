"""The sizes that are measured, and how many samples a timed run of each takes."""

from typing import NamedTuple


class Size(NamedTuple):
    """Inducing points, window, inputs."""

    M: int
    T: int
    D: int

    def __str__(self) -> str:
        return f"{self.M}, {self.T}, {self.D}"


TOY = Size(10, 100, 1)
LOAD = Size(20, 90, 24)
MIDDLE = Size(50, 500, 8)
LARGE = Size(100, 1000, 24)
LARGEST = Size(200, 2000, 24)
GRID = (TOY, LOAD, MIDDLE, LARGE, LARGEST)
MODELS = (1, 100, 1000, 10_000)
LENGTHS = (10**3, 10**4, 10**5, 10**6)


def steps(size: Size, seconds: float) -> int:
    """How many samples to follow so that AGP takes about so long: its cost is that of a few products of M×M by M×T."""
    microseconds = 20.0 + size.M * size.T * (3.0 * size.M + 2.0 * size.D + 30.0) / 20e3
    return max(20, min(20_000, int(1e6 * seconds / microseconds)))
