"""Weights of members by the errors of the forecasts that they issued.

Leads form blocks whose lengths grow: 1, 2–3, 4–6, 7–12, 13–24, 25–48, … In each block, S is the mean of e eᵀ over
recent targets, with e the errors of the J members. The weights minimise

    wᵀ S w + κ τ |w − p|²     with w ≥ 0 and Σ w = 1,

p ∝ MSE⁻², τ the least MSE. The mean covers a quarter of all targets so far, at most `MEMORY`. Large errors count
less, since forecasts are judged by absolute errors: a row in which the mixture itself is off by more than r = √τ
counts r/|wᵀe| (Huber's weights).
"""

import numpy as np

from driftgp.forecasting.part import Part, constant

MEMORY = 1500.0
SHARE = 0.25
RIDGE = 0.05
FIRST = 10.0  # targets for which the ridge counts in full
FARTHEST = 1.0  # usual errors of the best member: rows in which the mixture is farther off count less
BLOCKS = (1, 3, 6, 12, 24, 48, 96, 192, 384, 768, 1536, 3072)
TRACKED = 6  # leads of a block, at most, whose errors are followed


def tracked(horizon: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Leads that are followed, where each block begins among them, and the block of each lead 1 … H.

    >>> leads, starts, block = tracked(8)
    >>> leads.tolist(), starts.tolist(), block.tolist()
    ([1, 2, 3, 4, 5, 6, 7, 8], [0, 1, 3, 6], [0, 1, 1, 2, 2, 2, 3, 3])
    """
    leads: list[int] = []
    starts: list[int] = []
    block = np.searchsorted(BLOCKS, np.arange(1, horizon + 1))
    last = 0
    for end in BLOCKS[: int(block[-1]) + 1]:
        apart = -(-(end - last) // TRACKED)
        starts.append(len(leads))
        some = [lead for lead in range(last + 1, end + 1) if (end - lead) % apart == 0 and lead <= horizon]
        leads += some or [last + 1]
        last = end
    return np.array(leads), np.array(starts), block


class Mixture(Part):
    """Weights of J members for each block of leads."""

    def __init__(self, horizon: int, prior: np.ndarray) -> None:
        """Start without errors.

        Args:
            horizon: H.
            prior: squared errors of each member that are assumed before there are any, J.
        """
        leads, starts, block = tracked(horizon)
        self.leads, self.starts, self.block = constant(leads), constant(starts), constant(block)
        B = len(starts)
        self.S = np.tile(np.diag(prior), (B, 1, 1))
        self.n = np.ones(B)
        self.w = np.tile(preference(prior), (B, 1))

    def learn(self, errors: np.ndarray) -> None:
        """Take in the errors of all members at the leads that are followed, L×J; NaN where there was no forecast."""
        there = errors[:, 0] == errors[:, 0]
        e = np.where(there[:, None], errors, 0.0)
        block = np.searchsorted(self.starts, np.arange(len(e)), "right") - 1  # of each lead that is followed
        usual = np.sqrt(np.einsum("bjj->bj", self.S).min(1))[block]
        count = np.add.reduceat(there.astype(np.float64), self.starts)
        known = self.n > FIRST
        limit = np.where(known, FARTHEST, np.inf)[block] * usual
        mixed = np.abs(np.einsum("lj,lj->l", e, self.w[block]))
        e *= np.sqrt(np.minimum(1.0, limit / np.maximum(mixed, 1e-300)))[:, None]
        products = np.add.reduceat(e[:, :, None] * e[:, None, :], self.starts)
        here = count > 0.0
        self.n += here
        rate = here / np.minimum(np.maximum(SHARE * self.n, np.minimum(self.n, 50.0)), MEMORY)
        self.S += rate[:, None, None] * (products / np.maximum(count, 1.0)[:, None, None] - self.S)

    def solve(self, b: int) -> None:
        """Choose the weights of a block."""
        S = self.S[b]
        mse = np.maximum(np.diag(S), 1e-300)
        p = preference(mse)
        kappa = (RIDGE + FIRST / self.n[b]) * float(mse.min())
        # |w − p|² = wᵀ (I − p 1ᵀ − 1 pᵀ + |p|² 1 1ᵀ) w where Σ w = 1
        A = S + kappa * (np.eye(len(p)) - p[:, None] - p + p @ p)
        self.w[b] = simplex(A)

    def of_leads(self) -> np.ndarray:
        """Weights of each lead, H×J."""
        return self.w[self.block]


def preference(mse: np.ndarray) -> np.ndarray:
    """Weights in proportion to the inverse squared MSE."""
    w = (mse.min() / mse) ** 2
    return w / w.sum()


def simplex(A: np.ndarray) -> np.ndarray:
    """The w that minimises wᵀ A w with w ≥ 0 and Σ w = 1, by active sets; A is positive definite.

    >>> simplex(np.diag([1.0, 1.0, 2.0])).tolist()
    [0.4, 0.4, 0.2]
    >>> simplex(np.array([[1.0, 2.0], [2.0, 9.0]])).tolist()
    [1.0, 0.0]
    """
    J = len(A)
    inside = np.zeros(J, bool)
    inside[np.argmin(np.diag(A))] = True
    w = inside.astype(np.float64)
    for _ in range(4 * J):
        gradient = A @ w
        size = float(w @ gradient)
        candidate = int(np.argmin(np.where(inside, np.inf, gradient)))
        if inside[candidate] or not gradient[candidate] < size * (1.0 - 1e-9):
            break
        inside[candidate] = True
        while True:  # Lawson and Hanson: go towards the minimum over the inner weights, as long as all stay positive
            chosen = np.flatnonzero(inside)
            target = np.zeros(J)
            try:
                u = np.linalg.solve(A[np.ix_(chosen, chosen)], np.ones(len(chosen)))
            except np.linalg.LinAlgError:
                return w
            target[chosen] = u / u.sum()
            if target[chosen].min() > 0.0:
                w = target
                break
            falling = inside & (target <= 0.0)
            step = float(np.min(w[falling] / np.maximum(w[falling] - target[falling], 1e-300)))
            w = w + step * (target - w)
            inside &= w > 1e-12
            w = np.where(inside, w, 0.0)
            w /= w.sum()
    return w
