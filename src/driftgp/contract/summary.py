"""What a model has learned, for people: `model.summary(state)`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from driftgp.base.wording import figure
from driftgp.kernels import Kernel


class Summary(dict[str, Any]):
    """Numbers by name, ready for JSON; printed as a table.

    `members` has one entry for each member of a bank. It holds the `weight` in the mixture, the `memory` in samples
    (one per voice), and the `relevance` of each input as a share of the largest. `calibration` has the factor by which
    each interval is wider than the model's own. `gaps` has one entry for each input with missing values. It holds the
    number of the input, the number of rows, the recent share of rows, and the factor by which intervals were wider
    there.
    """

    def __str__(self) -> str:
        lines = []
        for member in self.get("members", [self]):
            weight = f"{100.0 * member['weight']:5.1f} %  " if "weight" in member else ""
            lines.append(f"{weight}{member.get('member', self.get('model', 'model'))}{_memories(member.get('memory'))}")
            if "relevance" in member:
                lines.append(f"         relevance of inputs: {_numbers(member['relevance'])}")
        if "calibration" in self:
            factors = ", ".join(f"{level} × {factor:.2f}" for level, factor in self["calibration"].items())
            lines.append(f"intervals against the model's own: {factors}")
        lines += [
            f"input {gap['input']} was missing in {gap['rows']} rows, {100.0 * gap['share']:.0f} % of recent rows: "
            f"intervals × {gap['wider']:.2f} there"
            for gap in self.get("gaps", [])
        ]
        return "\n".join(lines)


def _memories(memory: Any) -> str:
    if memory is None:
        return ""
    values = memory if isinstance(memory, list) else [memory]
    return f", memory {', '.join('all' if value is None else figure(value) for value in values)} samples"


def _numbers(values: Sequence[float]) -> str:
    return " ".join(f"{value:.2f}" for value in values)


def memory(rates: float | Sequence[float]) -> Any:
    """Samples that count at rates of forgetting, 1/(1 − λ); None for all of them."""
    if isinstance(rates, float):
        return None if rates == 1.0 else 1.0 / (1.0 - rates)
    return [memory(rate) for rate in rates]


def relevance(kernel: Kernel, inputs: int) -> list[float]:
    """How much a function changes with each input, as a share of the largest.

    The square root of Var[f(δ e_d) − f(0)] for a small step δ along input d.

    >>> from driftgp.kernels import SE
    >>> [round(share, 2) for share in relevance(SE(lengthscale=[1.0, 10.0]), 2)]
    [1.0, 0.1]
    """
    X = np.concatenate([np.zeros((1, inputs)), 0.1 * np.eye(inputs)])
    k = kernel.gram(X, X)
    change = np.sqrt(np.maximum(k[0, 0] + np.diag(k)[1:] - 2.0 * k[0, 1:], 0.0))
    return shares(change)


def shares(values: np.ndarray) -> list[float]:
    """Numbers as shares of the largest."""
    largest = float(np.max(values, initial=0.0))
    return [float(value) / largest if largest > 0.0 else 0.0 for value in values]
