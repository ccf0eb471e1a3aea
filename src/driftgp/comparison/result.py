"""What a comparison found: a table, a verdict in one sentence, and the losses behind them."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from driftgp.base.wording import figure
from driftgp.predictions import Prediction

OURS = "driftgp"
LEVEL = 0.05  # a difference is more than noise if chance makes one as large less often than this


class Line(NamedTuple):
    """A method's line of the table.

    Attributes:
        method: its name.
        rmse: root of the mean squared error, in units of the target.
        mae: mean absolute error, in units of the target.
        crps: mean continuous ranked probability score; NaN where the method has no distribution.
        coverage: share of the targets in their 95 % interval; NaN likewise.
        microseconds: of CPU per row, to predict, learn and refit.
        ratio: RMSE divided by that of driftgp.
        p: how often chance alone would make the squared errors differ as much from driftgp's.

    >>> Line("Ridge", 2.0, 1.5, 1.1, 0.94, 20.0, 1.6, 0.001).ratio
    1.6
    """

    method: str
    rmse: float
    mae: float
    crps: float
    coverage: float
    microseconds: float
    ratio: float
    p: float


@dataclass(frozen=True, eq=False)
class Backtest:
    """The lines of the table, lowest error first, and every method's error at each row.

    Attributes:
        lines: one per method.
        errors: forecast errors of each method, N each; NaN at rows without a target.
        rows: number of rows scored.
        horizon: rows from a forecast to its label.
        left_out: methods that did not run, and why.
        laws: predictive distributions of the methods that have them.
        inputs: names of the inputs that every method has.
        warmup: number of the first rows, which are not scored.
        by_hour: of methods with distributions, rows and coverage at each hour of the day, 24×2; empty without dates.
        by_decile: the same for each tenth of the method's own forecasts, 10×2.

    >>> from driftgp import backtest
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> found = backtest(X, np.sin(2 * X[:, 0]), methods=["persistence"], warmup=100)
    >>> found["persistence"].ratio > 1.0
    True
    >>> found.verdict.split(":")[0]
    'driftgp has the lowest error'
    """

    lines: tuple[Line, ...]
    errors: dict[str, np.ndarray]
    rows: int
    horizon: int
    left_out: dict[str, str]
    laws: dict[str, Prediction]
    inputs: tuple[str, ...] = ()
    warmup: int = 0
    by_hour: dict[str, np.ndarray] = field(default_factory=dict)
    by_decile: dict[str, np.ndarray] = field(default_factory=dict)

    def __getitem__(self, method: str) -> Line:
        """A method's line."""
        return next(line for line in self.lines if line.method == method)

    @property
    def verdict(self) -> str:
        """One sentence: how driftgp did against the best of the others."""
        ours, others = self[OURS], [line for line in self.lines if line.method != OURS]
        best = others[0]
        chance = "p < 0.001" if best.p < 0.001 else f"p = {best.p:.3f}"
        figures = f"RMSE {figure(ours.rmse)} against {figure(best.rmse)}"
        if not best.p < LEVEL:
            return (
                f"The difference between driftgp and {best.method}, the best of the others, may be chance: {figures} "
                f"({chance})."
            )
        if ours.rmse < best.rmse:
            less = 1.0 - ours.rmse / best.rmse
            return (
                f"driftgp has the lowest error: {figures} for {best.method}, the best of the others; "
                f"{less:.0%} lower, and more than noise ({chance})."
            )
        return (
            f"driftgp loses on these rows: {figures} for {best.method}; {ours.rmse / best.rmse - 1.0:.0%} higher, "
            f"and more than noise ({chance})."
        )

    @property
    def gains(self) -> dict[str, np.ndarray]:
        """Squared error of each other method minus driftgp's, summed up to each row: rising where driftgp is better."""
        ours = np.square(self.errors[OURS])
        others = {method: np.square(e) for method, e in self.errors.items() if method != OURS}
        return {method: np.nancumsum(squares - ours) for method, squares in others.items()}

    @staticmethod
    def _shares(found: np.ndarray | None) -> list[float | None] | None:
        return None if found is None else [share if rows else None for rows, share in found.tolist()]

    def to_json(self) -> dict[str, Any]:
        """The table and the verdict, as JSON holds them."""
        return {
            "verdict": self.verdict,
            "rows": self.rows,
            "horizon": self.horizon,
            "warmup": self.warmup,
            "inputs": list(self.inputs),
            "methods": [
                {name: value if value == value else None for name, value in line._asdict().items()}
                | {kind: self._shares(getattr(self, kind).get(line.method)) for kind in ("by_hour", "by_decile")}
                for line in self.lines
            ],
            "left_out": self.left_out,
        }
