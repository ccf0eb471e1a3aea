"""The order of the methods by MSE: where it is clear in the paper, whether it is the same here, and if not, why."""

from collections.abc import Iterable, Mapping
from itertools import combinations

from experiments import published

CLEAR = 1.05  # one MSE this many times the other: closer ones have no order

# (experiment, series or "" for any, the method that is out of order) → what was found to be the reason.
PUBLISHED_RUN = (
    "In the paper these methods are behind even persistence there; with what is known of the published settings they "
    "are not, and why was not found. It is not single precision: five hours of w-VSGP in RI are within 4 % of double."
)
SMALL_LOADS = (
    "In the zones of small loads (ME, NH, RI, SEMA, VT) AGP-VSI has a lower MSE here than in the paper, in the others "
    "the same within 2 %; what made the published runs worse there was not found."
)
OVERFITS = (
    "The map of the seven inputs to two is learned from the 90 samples of the warm-up, and overfits them: with 20 "
    "iterations of warm-up instead of 200, WISKI has 2.4652 and a coverage of 90.7 %."
)
SLOWER_RATES = (
    "This OSGP has smaller rates (0.005, and 0.001 for the inducing inputs) and a larger nugget (0.02) than the "
    "published one: with the rates that the paper names, 0.1 and 0.2, it has 2.3243, behind both AGP and fast-AGP; "
    "with a nugget as small as a jitter, 0.0001, it has 2.2537."
)
REASONS: dict[tuple[str, str, str], str] = {
    ("load", "ME", "AGP-VSI"): PUBLISHED_RUN,
    ("load", "RI", "AGP-VSI"): PUBLISHED_RUN,
    ("load", "RI", "w-VSGP"): PUBLISHED_RUN,
    ("load", "", "AGP-VSI"): SMALL_LOADS,
    ("sales", "OR", "WISKI"): OVERFITS,
    ("sales", "OR", "OSGP"): SLOWER_RATES,
}


def clear_pairs(experiment: str, series: str, ours: Mapping[str, float]) -> list[tuple[str, str]]:
    """Pairs of methods, of those that we ran, of which the paper has the first clearly ahead.

    >>> clear_pairs("toy", "toy", {"AGP": 0.061, "OSGP": 0.18})
    [('AGP', 'OSGP')]
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
        if paper[worse] > CLEAR * paper[better]
    ]


def reversals(experiment: str, series: str, ours: Mapping[str, float]) -> list[tuple[str, str]]:
    """Pairs of methods of which the paper has the first clearly ahead, and we have the second ahead.

    >>> reversals("toy", "toy", {"AGP": 0.061, "OSGP": 0.18, "fast-AGP": 0.21})
    []
    >>> reversals("toy", "toy", {"OSGP": 0.4, "fast-AGP": 0.2})
    [('OSGP', 'fast-AGP')]
    """
    return [(better, worse) for better, worse in clear_pairs(experiment, series, ours) if ours[worse] < ours[better]]


def sentences(experiment: str, ours: Mapping[str, Mapping[str, float]], series: Iterable[str]) -> list[str]:
    """How many clear pairs there are, then those that are reversed, each in a sentence, those of one reason together.

    `ours` is series → method → MSE.

    >>> sentences("toy", {"toy": {"AGP": 0.061, "OSGP": 0.18}}, ["toy"])
    ['Pairs of methods that the paper has clearly apart, by 5 % or more of MSE: 1; in the same order here: 1.']
    """
    known = [name for name in series if name in ours]
    pairs = sum(len(clear_pairs(experiment, name, ours[name])) for name in known)
    found = [(name, better, worse) for name in known for better, worse in reversals(experiment, name, ours[name])]
    facts: dict[str, list[str]] = {}
    for name, better, worse in found:
        reason = _reason(experiment, name, better, worse)
        facts.setdefault(reason, []).append(_fact(experiment, name, better, worse, ours[name]))
    whole = (
        f"Pairs of methods that the paper has clearly apart, by 5 % or more of MSE: {pairs}; in the same order here: "
        f"{pairs - len(found)}."
    )
    return [whole, *(" ".join([*told, reason]) for reason, told in facts.items())] if pairs else []


def _fact(experiment: str, series: str, better: str, worse: str, ours: Mapping[str, float]) -> str:
    paper = published.TABLES[experiment][series]
    here = "behind it" if ours[better] > CLEAR * ours[worse] else "level with it"
    return (
        f"{series}: {better} is ahead of {worse} in the paper ({paper[better].mse:.4f}, {paper[worse].mse:.4f}), "
        f"{here} here ({ours[better]:.4f}, {ours[worse]:.4f})."
    )


def _reason(experiment: str, series: str, *methods: str) -> str:
    known = [REASONS.get((experiment, place, method)) for place in (series, "") for method in methods]
    return next((reason for reason in known if reason), "The reason is not known.")
