"""Exponential smoothing with seasons at fixed rates: simple and robust members.

Smoother j models a target as level + trend + a transient part + seasonal parts. With e the error of its one-step
forecast,

    e = y − (l + φ b + ρ u + Σ_s c_s[slot_s]),
    l ← l + φ b + α e,   b ← φ b + α β e,   u ← ρ u + κ e,   c_s[slot_s] ← c_s[slot_s] + γ_s e,

and forecasts l + b Σ_{i≤h} φⁱ + u ρʰ + Σ_s c_s[slot_s(t + h)]. A rate α or γ is at least one over the number of targets
of the level or the slot, so that all parts begin as plain means. A missing target lets time pass: e = 0.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from driftgp.forecasting.part import Part, constant


class Rates(NamedTuple):
    """Of one smoother."""

    level: float  # α
    season: int | None = None  # which season begins with means; None for none
    seasonal: float = 0.0  # γ of it
    others: float = 0.0  # γ of all other seasons
    passing: float = 0.0  # κ
    keep: float = 0.0  # ρ
    trend: float = 0.0  # β
    damping: float = 0.0  # φ


def usual(seasons: int, effort: str) -> list[Rates]:
    """The smoothers for a number of seasons, the shortest first."""
    chosen = [Rates(0.2), Rates(0.7, trend=0.1, damping=0.9), Rates(0.5, trend=0.1, damping=0.99)]
    if effort == "low":
        chosen = chosen[::2]
    for season in range(seasons):
        chosen += [
            Rates(0.05, season, 0.1, passing=0.5, keep=0.8),
            Rates(0.4, season, 0.3),
        ]
        if effort != "low":
            chosen += [Rates(0.01, season, 0.3, passing=0.8, keep=0.95)]
    if seasons > 1:
        chosen += [Rates(0.02, seasons - 1, 0.1, others=0.05, passing=0.7, keep=0.9)]
    return chosen


class Smoothers(Part):
    """J smoothers of one series."""

    def __init__(self, rates: Sequence[Rates], lengths: Sequence[int], horizon: int) -> None:
        """Start without rows.

        Args:
            rates: of each smoother.
            lengths: slots of each season.
            horizon: H.
        """
        J, S = len(rates), len(lengths)
        self.offsets = constant(
            np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64) if S else np.zeros(0, int)
        )
        self.alpha = constant([each.level for each in rates])
        self.alpha_beta = constant([each.level * each.trend for each in rates])
        self.kappa, self.rho = constant([each.passing for each in rates]), constant([each.keep for each in rates])
        self.phi = constant([each.damping for each in rates])
        gamma, begins = np.zeros((J, S)), np.zeros((J, S))
        for j, each in enumerate(rates):
            if each.season is not None:
                gamma[j], gamma[j, each.season] = each.others, each.seasonal
                begins[j, each.season] = 1.0
        self.gamma, self.begins = constant(gamma), constant(begins)
        steps = np.arange(1, horizon + 1)
        self.kept = constant(self.rho[:, None] ** steps)  # J×H
        self.trended = constant(np.cumsum(self.phi[:, None] ** steps, 1))
        self.state = np.zeros((3, J))  # l, b, u
        self.c = np.zeros((J, int(sum(lengths))))
        self.seen = np.zeros(1 + int(sum(lengths)))  # targets so far, and by slot

    def learn(self, y: float, slots: np.ndarray) -> None:
        """Take in a target, or NaN, at these slots (S)."""
        l, b, u = self.state
        at = self.offsets + slots
        l += self.phi * b
        b *= self.phi
        u *= self.rho
        if y != y:
            return
        e = y - (l + u + self.c[:, at].sum(1))
        self.seen[0] += 1.0
        self.seen[1 + at] += 1.0
        l += np.maximum(self.alpha, 1.0 / self.seen[0]) * e
        b += self.alpha_beta * e
        u += self.kappa * e
        if len(at):
            self.c[:, at] += np.maximum(self.gamma, self.begins / (self.seen[1 + at] + 1.0)) * e[:, None]

    def season(self, j: int, slots: np.ndarray) -> float:
        """Seasonal part of smoother j at these slots (S)."""
        return float(self.c[j, self.offsets + slots].sum())

    def forecasts(self, ahead: np.ndarray) -> np.ndarray:
        """Forecasts of all leads, J×H, where `ahead` (S×H) has their slots."""
        l, b, u = self.state
        means: np.ndarray = l[:, None] + b[:, None] * self.trended + u[:, None] * self.kept
        for offset, slots in zip(self.offsets, ahead, strict=True):
            means += self.c[:, offset + slots]
        return means
