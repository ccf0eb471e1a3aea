"""The state of AGP as a record."""

import numpy as np

from driftgp.contract.records import ABOVE_0, View, floats, number, part, whole
from driftgp.gp.bound import Posterior, Statistics
from driftgp.gp.objective import Samples
from driftgp.gp.window import WindowState


class AGPState(View):
    """The state of AGP. Points in use come first; the other rows are zeros."""

    window: WindowState = part(WindowState)
    w: np.ndarray = floats("T", low=0.0, high=1.0)  # weights of the samples
    U: np.ndarray = floats("M", "D")
    points: int = whole(high="M")  # in use
    theta: np.ndarray = floats("H", low=ABOVE_0)  # kernel parameters
    noise: np.ndarray = floats("P", low=ABOVE_0)
    Kux: np.ndarray = floats("M", "T", checked=False)  # what is not checked follows from the rest
    n: float = number(checked=False)
    yy: np.ndarray = floats("P", checked=False)
    b: np.ndarray = floats("M", "P", checked=False)
    Phi: np.ndarray = floats("M", "M", checked=False)
    kappa: float = number(checked=False)
    inverse_L: np.ndarray = floats("M", "M", checked=False)
    C: np.ndarray = floats("P", "M", "M", checked=False)
    alpha: np.ndarray = floats("M", "P", checked=False)
    adam_mean: np.ndarray = floats("A", checked=False)
    adam_square: np.ndarray = floats("A", checked=False)
    adam_steps: int = whole()
    samples: int = whole()  # learned from since the warm-up
    skipped: int = whole()  # steps left out because something in them was not finite
    repaired: int = whole()  # factorisations that needed more jitter

    @property
    def samples_in_window(self) -> Samples:
        """The samples and their weights."""
        return Samples(self.window.X, self.window.y, self.w)

    @property
    def statistics(self) -> Statistics:
        """The five statistics, of the points in use."""
        m = self.points
        return Statistics(self.n, self.yy, self.b[:m], self.Phi[:m, :m], self.kappa)

    @statistics.setter
    def statistics(self, s: Statistics) -> None:
        self.n, self.kappa = s.n, s.kappa
        for field, value in ((self.yy, s.yy), (self.b, s.b), (self.Phi, s.Phi)):
            put(field, value)

    @property
    def posterior(self) -> Posterior:
        """The posterior of the points in use."""
        m = self.points
        return Posterior(self.inverse_L[:m, :m], self.C[:, :m, :m], self.alpha[:m])

    @posterior.setter
    def posterior(self, q: Posterior) -> None:
        for field, value in ((self.inverse_L, q.inverse_L), (self.C, q.C), (self.alpha, q.alpha)):
            put(field, value)

    def place(self, U: np.ndarray, Kux: np.ndarray) -> None:
        """Set other inducing points, and their covariances with the samples."""
        self.points = len(U)
        put(self.U, U)
        put(self.Kux, Kux)


def put(field: np.ndarray, value: np.ndarray) -> None:
    """Write the values in use, and zeros behind them."""
    value = value.copy()  # it may be a part of the field itself
    field[...] = 0.0
    field[tuple(map(slice, value.shape))] = value
