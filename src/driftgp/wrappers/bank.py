"""Several models at once, mixed by how well each has predicted of late."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from driftgp import checks, forecasts
from driftgp.model import Model, Units
from driftgp.predictions import Mixture
from driftgp.predictions.normal import log_pdf
from driftgp.window import Leaving, Windowed, WindowState, observed

# A member's weight never falls below e^−12 of the best one's, so that it can come back within a few samples.
_LOWEST = -12.0


class BankState:
    """How the members have fared, the windows that they share, and the members' states."""

    def __init__(self, record: np.ndarray, models: tuple[Model, ...], shared: dict[int, int]) -> None:
        """Look at a record; `shared` says which windows there are: the size of each, and its number."""
        self.record = record
        self.log_weights = record["log_weights"]  # K
        self.windows = {size: WindowState(record[f"window_{i}"]) for size, i in shared.items()}
        self.members = [self._member(record[f"member_{k}"], model) for k, model in enumerate(models)]

    def _member(self, record: np.ndarray, model: Model) -> Any:
        window = shared_window(model)
        if window is None:
            return model.view(record)
        assert isinstance(model, Windowed)  # noqa: S101 (only these share)
        return model.view_on(record, self.windows[window])

    @property
    def weights(self) -> np.ndarray:
        """The members' shares in the mixture, K."""
        shares: np.ndarray = softmax(self.log_weights)
        return shares


def shared_window(model: Model) -> int | None:
    """Size of the window that a member shares with others of that size; None if it shares none."""
    return model.window if isinstance(model, Windowed) else None


@dataclass(frozen=True)
class Bank(Model):
    """Hold several models of any kind and predict their mixture.

    The weight of member k is its recent predictive likelihood (dynamic model averaging: Raftery, Kárný, Ettler 2010),

        log w_k ← a^Δt log w_k + (1 − a^Δt) log π_k + log N(y | m_k, s_k²)

    averaged over the outputs, which share the weights. With members that differ in λ no λ has to be chosen, and the λ
    in use may change: short memories lead where the stream has just turned, long ones where it is calm. Members that
    keep windows of the same size share one.

    >>> from driftgp import AGP
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> model = Bank([AGP(inducing=6, window=40, forgetting=rate) for rate in (0.9, 0.95, 0.99)])
    >>> state = model.update(model.init(X[:40], y[:40]), X[40:59], y[40:59])
    >>> state.weights.shape, bool(abs(model.predict(state, X[59:]).mean[0] - y[59]) < 0.1)
    ((3,), True)

    Args:
        models: the members, each with normal predictions.
        memory: a, the factor by which the past counts less in the weights with each unit of time; 1 never forgets.
        prior: π, the weights to start from and to return to; equal by default.
    """

    models: tuple[Model, ...]
    memory: float
    log_prior: tuple[float, ...]  # K

    def __init__(self, models: Sequence[Model], *, memory: float = 0.98, prior: Sequence[float] | None = None) -> None:
        """Take the settings: see the class."""
        models = tuple(models)
        if not models or not all(isinstance(model, Model) for model in models):
            raise ValueError(f"models must be a list of models, such as [AGP(), FastAGP()]; got {models!r}")
        wrong = [model for model in models if not model.normal]
        if wrong:
            name = type(wrong[0]).__name__
            raise ValueError(f"models must predict normal distributions to be mixed; {name} does not")
        shares = np.array(checks.all_between("prior", np.ones(len(models)) if prior is None else prior, 0.0, np.inf))
        if len(shares) != len(models):
            raise ValueError(f"prior must have one weight for each of the {len(models)} members; got {len(shares)}")
        object.__setattr__(self, "models", models)
        object.__setattr__(self, "memory", checks.between("memory", memory, 0.0, 1.0))
        object.__setattr__(self, "log_prior", tuple(np.log(shares / np.sum(shares)).tolist()))

    @property
    def normal(self) -> bool:  # type: ignore[override]
        """A mixture is not normal."""
        return False

    @property
    def fills_gaps(self) -> bool:
        """Whether all members can do with inputs that are NaN."""
        return all(model.fills_gaps for model in self.models)

    # ---- records -----------------------------------------------------------------------------------------------------

    @property
    def shared(self) -> dict[int, int]:
        """Sizes of the windows that members share, and the number of each."""
        sizes = (shared_window(model) for model in self.models)
        return {size: i for i, size in enumerate(dict.fromkeys(size for size in sizes if size is not None))}

    def record_dtype(self, inputs: int, outputs: int) -> np.dtype:
        """Layout of a state: weights, shared windows, members."""
        windows = [(f"window_{i}", WindowState.dtype(T=size, D=inputs, P=outputs)) for size, i in self.shared.items()]
        members = [(f"member_{k}", own_dtype(model, inputs, outputs)) for k, model in enumerate(self.models)]
        return np.dtype([("log_weights", np.float64, (len(self.models),)), *windows, *members])

    def view(self, record: np.ndarray) -> BankState:
        """Weights, windows and members."""
        return BankState(record, self.models, self.shared)

    def forecast_dtype(self, outputs: int) -> np.dtype:
        """Layout of a forecast: the weights, and every member's forecast."""
        members = [(f"member_{k}", model.forecast_dtype(outputs)) for k, model in enumerate(self.models)]
        return forecasts.layout(outputs, ("weights", np.float64, (len(self.models),)), *members)

    def law(self, made: np.ndarray) -> Mixture:
        """Mixture of the members' normal distributions."""
        weights = np.moveaxis(made["weights"], 1, 0)[:, :, None]  # K×N×1
        members = [made[f"member_{k}"] for k in range(len(self.models))]
        return Mixture(weights, *(np.stack([p[name] for p in members]) for name in ("mean", "variance", "noise")))

    def derived(self) -> tuple[str, ...]:
        """Fields of the members."""
        return tuple(f"member_{k}.{path}" for k, model in enumerate(self.models) for path in model.derived())

    def check(self, state: BankState) -> None:
        """Refuse weights that are not finite, and what a member refuses."""
        if not np.isfinite(state.log_weights).all():
            raise ValueError("log_weights must be finite")
        for model, member in self._each(state):
            model.check(member)

    def complete(self, state: BankState) -> None:
        """Complete every member."""
        for model, member in self._each(state):
            model.complete(member)

    # ---- the contract ------------------------------------------------------------------------------------------------

    def accept(self, inputs: int, outputs: int, rows: int) -> None:
        """Refuse what a member refuses."""
        for model in self.models:
            model.accept(inputs, outputs, rows)

    def start(self, state: BankState, X: np.ndarray, y: np.ndarray) -> None:
        """Start every member on the batch."""
        state.log_weights[...] = self.log_prior
        for model, member in self._each(state):
            model.start(member, X, y)

    def forecast(self, state: BankState, X: np.ndarray) -> np.ndarray:
        """Mixture of the members' forecasts: Σ w_k m_k, and Σ w_k (s_k² + (m_k − m)²)."""
        said = [model.forecast(member, X) for model, member in self._each(state)]
        weights = state.weights
        mean, noise = (_mixed(weights, [p[name] for p in said]) for name in ("mean", "noise"))
        variance = _mixed(weights, [p["variance"] + (p["mean"] - mean) ** 2 for p in said])
        made = forecasts.records(self.forecast_dtype(mean.shape[1]), mean, variance, noise)
        made["weights"] = weights
        for k, p in enumerate(said):
            made[f"member_{k}"] = p
        return made

    def joint(self, state: BankState, X: np.ndarray) -> np.ndarray:
        """Σ w_k (C_k + (m_k − m)(m_k − m)ᵀ): what the members expect, and how far they disagree together."""
        means = [model.forecast(member, X)["mean"].T for model, member in self._each(state)]  # K of P×N
        within = [model.joint(member, X) for model, member in self._each(state)]  # K of P×N×N
        weights = state.weights
        apart = [m - _mixed(weights, means) for m in means]
        return _mixed(weights, [C + d[:, :, None] * d[:, None, :] for C, d in zip(within, apart, strict=True)])

    def learn(
        self, state: BankState, x: np.ndarray, y: np.ndarray, elapsed: float, forecast: np.ndarray | None = None
    ) -> None:
        """Judge the members by the sample, then let each learn from it."""
        if forecast is None:
            forecast = self.forecast(state, x[None])
        said = [forecast[f"member_{k}"] for k in range(len(self.models))]
        keep = self.memory**elapsed
        log_w = keep * state.log_weights + (1.0 - keep) * np.array(self.log_prior)
        counts = np.isfinite(y) & (self.fills_gaps or np.isfinite(x).all())  # P
        if counts.any():
            scores = np.array([np.mean(_log_density(p, y)[counts]) for p in said])
            scores[np.isnan(scores)] = -np.inf
            if np.max(scores) > -np.inf:  # a target so far out that no member has a density there says nothing
                log_w += scores
        state.log_weights[...] = np.maximum(log_w - np.max(log_w), _LOWEST)
        leaving: dict[int, Leaving] = {}
        if observed(x, y):
            leaving = {size: window.push(x, y) for size, window in state.windows.items()}
        for (model, member), p in zip(self._each(state), said, strict=True):
            window = shared_window(model)
            if isinstance(model, Windowed) and window is not None:
                model.learn_on(member, leaving.get(window), x, y, elapsed, p)
            else:
                model.learn(member, x, y, elapsed, p)

    def rescale(self, state: BankState, units: Units) -> None:
        """Every window and every member in other units, which change no weight."""
        for size, window in state.windows.items():
            here = [member.w > 0.0 for model, member in self._each(state) if shared_window(model) == size]
            window.rescale(units, np.any(here, 0))
        for model, member in self._each(state):
            if isinstance(model, Windowed) and model.window is not None:
                model.rescale_on(member, units)
            else:
                model.rescale(member, units)

    def _each(self, state: BankState) -> Iterator[tuple[Model, Any]]:
        return zip(self.models, state.members, strict=True)


def own_dtype(model: Model, inputs: int, outputs: int) -> np.dtype:
    """Layout of a member's state, without the window that it shares."""
    if isinstance(model, Windowed) and model.window is not None:
        return model.own_dtype(inputs, outputs, window=False)
    return model.record_dtype(inputs, outputs)


def _mixed(weights: np.ndarray, values: list[np.ndarray]) -> np.ndarray:
    return np.sum([w * value for w, value in zip(weights, values, strict=True)], 0)


def _log_density(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    """log N(y | m, s²) of one forecast, P."""
    return log_pdf((y - p["mean"][0]) / np.sqrt(p["variance"][0])) - 0.5 * np.log(p["variance"][0])
