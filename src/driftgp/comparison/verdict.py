"""What a comparison says: one sentence with a test of the difference, and a table."""

from collections.abc import Iterable, Sequence

from driftgp.base.wording import figure

OURS = "driftgp"
LEVEL = 0.05  # a difference is more than noise if chance makes one as large less often than this


def verdict(measure: str, ours: float, method: str, best: float, p: float) -> str:
    """How driftgp did against the best of the others, by `measure`; p is NaN where there is too little for a test.

    >>> verdict("MAE", 1.0, "seasonal naive", 2.0, 0.0001)
    'driftgp has the lowest error: MAE 1 against 2 for seasonal naive, the best of the others; 50% lower, and more than noise (p < 0.001).'
    """  # noqa: E501
    figures = f"{measure} {figure(ours)} against {figure(best)}"
    chance = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    if p != p:
        place = "has the lowest error" if ours < best else "loses"
        return f"driftgp {place} on these rows: {figures} for {method}; there are too few rows for a test."
    if not p < LEVEL:
        return (
            f"The difference between driftgp and {method}, the best of the others, may be chance: {figures} ({chance})."
        )
    if ours < best:
        return (
            f"driftgp has the lowest error: {figures} for {method}, the best of the others; "
            f"{1.0 - ours / best:.0%} lower, and more than noise ({chance})."
        )
    return (
        f"driftgp loses on these rows: {figures} for {method}; {ours / best - 1.0:.0%} higher, "
        f"and more than noise ({chance})."
    )


def as_text(heads: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]) -> str:
    """A table of methods for the terminal: a name, then columns that end together.

    >>> print(as_text(["MAE"], [("driftgp", ["1.5"]), ("seasonal naive", ["20"])]))
                          MAE
    driftgp               1.5
    seasonal naive         20
    """
    rows = list(rows)
    first = max(14, *(len(name) for name, _ in rows))
    lines = [("", heads), *rows]
    return "\n".join(f"{name:<{first}}" + "".join(f"{cell:>11}" for cell in cells) for name, cells in lines)
