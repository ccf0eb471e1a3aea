"""A number with its quartiles, and a bar that it may have."""

from dataclasses import dataclass

from benchmarks.timing import Spread


@dataclass(frozen=True)
class Figure:
    """A number with its quartiles, and its target; a target of None says that the number is for information."""

    name: str
    found: Spread
    target: float | None = None
    least: bool = False  # whether the target is the least that the value may be, rather than the most

    @property
    def value(self) -> float:
        """The median."""
        return self.found.median

    @property
    def ok(self) -> bool:
        """Whether the target is met; a number that could not be measured meets none."""
        if self.target is None:
            return True
        return bool(self.value >= self.target if self.least else self.value <= self.target)

    def line(self) -> str:
        """`name value target ok|short (lower quartile to upper quartile)`.

        >>> Figure("import_s", Spread(0.7312, 0.72, 0.75), 1.0).line()
        'import_s 0.731 <=1 ok (0.72 to 0.75)'
        >>> Figure("agp_over_fast", exactly(2.5), 3.0, least=True).line()
        'agp_over_fast 2.5 >=3 short'
        """
        said = f"{self.name} {self.value:.3g}"
        said += " - info" if self.target is None else f" {self.sign}{self.target:g} {'ok' if self.ok else 'short'}"
        return said if self.found.low == self.found.high or self.value != self.value else f"{said} {self.quartiles}"

    @property
    def sign(self) -> str:
        """How the value is compared with its target."""
        return ">=" if self.least else "<="

    @property
    def quartiles(self) -> str:
        """The spread around the median."""
        return f"({self.found.low:.3g} to {self.found.high:.3g})"


def exactly(value: float) -> Spread:
    """A number without a spread."""
    return Spread(value, value, value)
