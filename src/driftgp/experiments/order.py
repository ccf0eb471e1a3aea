"""Where the order of the methods by MSE is clear in the paper and another here, and why, so far as it was found out."""

from collections.abc import Iterable, Mapping
from itertools import combinations

from driftgp.experiments import published

CLEAR = 1.05  # one MSE this many times the other: closer ones have no order

# (experiment, series, better in the paper, worse in the paper) → what was found to be the reason.
REASONS: dict[tuple[str, str, str, str], str] = {}


def reversals(experiment: str, series: str, ours: Mapping[str, float]) -> list[tuple[str, str]]:
    """Pairs of methods of which the paper has the first clearly ahead, and we have the second ahead.

    >>> reversals("toy", "toy", {"AGP": 0.061, "OSGP": 0.18, "fast-AGP": 0.21})
    []
    >>> reversals("toy", "toy", {"OSGP": 0.4, "fast-AGP": 0.2})
    [('OSGP', 'fast-AGP')]
    """
    paper = {
        method: cell.mse
        for method, cell in published.TABLES[experiment].get(series, {}).items()
        if cell.mse is not None and method in ours
    }
    return [
        (better, worse)
        for one, other in combinations(paper, 2)
        for better, worse in [(one, other) if paper[one] < paper[other] else (other, one)]
        if paper[worse] > CLEAR * paper[better] and ours[worse] < ours[better]
    ]


def sentences(experiment: str, ours: Mapping[str, Mapping[str, float]], series: Iterable[str]) -> list[str]:
    """A plain sentence for each pair, with the reason; `ours` is series → method → MSE."""
    return [
        _sentence(experiment, name, better, worse, ours[name])
        for name in series
        if name in ours
        for better, worse in reversals(experiment, name, ours[name])
    ]


def _sentence(experiment: str, series: str, better: str, worse: str, ours: Mapping[str, float]) -> str:
    paper = published.TABLES[experiment][series]
    fact = (
        f"{series}: the paper has {better} ({paper[better].mse:.4f}) ahead of {worse} ({paper[worse].mse:.4f}); "
        f"here {worse} ({ours[worse]:.4f}) is ahead of {better} ({ours[better]:.4f})."
    )
    reason = REASONS.get((experiment, series, better, worse))
    return f"{fact} {reason or 'The reason is not known.'}"
