"""Numbers as people write them."""


def figure(value: float) -> str:
    """A number for people: four significant digits, and rarely an exponent.

    >>> figure(10312.4), figure(0.012345), figure(-3.0), figure(1e-9)
    ('10312', '0.01235', '-3', '1e-09')
    """
    if value != value:
        return "–"
    if value == 0.0 or not 1e-4 <= abs(value) < 1e15:
        return f"{value:.3g}"
    if abs(value) >= 1000.0:
        return f"{value:.0f}"
    return f"{float(f'{value:.4g}'):.8f}".rstrip("0").rstrip(".")
