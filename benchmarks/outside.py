"""What a user would pick instead: Gaussian processes refitted on the window, and river's regressors.

Each is used as its authors would: double precision, the parameters that were found kept from sample to sample, the
optimiser too, compiled where the library compiles. They all start from the window's first samples; those that learn
hyperparameters take 200 iterations of Adam on them at rate 0.05, as AGP does.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np

from benchmarks.streams import Size

RATE = 0.05


def warmup(samples: int) -> int:
    """Iterations on the first window; where they would take minutes, and no error is reported, a few."""
    return 200 if samples < 1000 else 10


class Contender(Protocol):
    """A model that meets its samples one at a time."""

    def predict(self, x: np.ndarray) -> float:
        """Mean of the target at x; the variance too is computed where the model has one."""

    def learn(self, x: np.ndarray, y: float) -> None:
        """Learn from one sample."""


class Window:
    """The last T samples, as arrays in the order of their coming."""

    def __init__(self, X: np.ndarray, y: np.ndarray) -> None:
        self.X, self.y = X.copy(), y.copy()

    def push(self, x: np.ndarray, y: float) -> None:
        """The oldest goes, the newest comes last."""
        self.X[:-1], self.y[:-1] = self.X[1:], self.y[1:]
        self.X[-1], self.y[-1] = x, y


# ---- GPyTorch --------------------------------------------------------------------------------------------------------


class _GPyTorch:
    """A process of GPyTorch on the window, and what it learns by: Adam on an objective."""

    model: Any
    likelihood: Any
    objective: Any
    optimizer: Any

    def __init__(self, X: np.ndarray, y: np.ndarray) -> None:
        import gpytorch
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(0)
        self.torch, self.gpytorch = torch, gpytorch
        self.X, self.y = (torch.as_tensor(np.array(part), dtype=torch.float64) for part in (X, y))

    def climb(self, iterations: int) -> None:
        """Steps of Adam."""
        self.model.train()
        self.likelihood.train()
        for _ in range(iterations):
            self.optimizer.zero_grad()
            loss = -self.objective(self.model(self.X), self.y)
            loss.backward()
            self.optimizer.step()
        self.model.eval()
        self.likelihood.eval()

    def law(self, x: np.ndarray) -> tuple[float, float]:
        """Mean and variance of a new target at x."""
        with self.torch.no_grad(), self.gpytorch.settings.fast_pred_var():
            answer = self.likelihood(self.model(self.torch.tensor(x[None])))
            return float(answer.mean[0]), float(answer.variance[0])

    def predict(self, x: np.ndarray) -> float:
        return self.law(x)[0]

    def push(self, x: np.ndarray, y: float) -> None:
        """The oldest sample goes, the newest comes last."""
        torch = self.torch
        self.X = torch.cat([self.X[1:], torch.tensor(x[None])])
        self.y = torch.cat([self.y[1:], torch.as_tensor([y], dtype=torch.float64)])


class GPyTorchExact(_GPyTorch):
    """Exact process on the window, a lengthscale per input; steps of Adam on its evidence at each sample or some."""

    def __init__(
        self, X: np.ndarray, y: np.ndarray, iterations: int, *, climb: int | None = None, every: int = 1
    ) -> None:
        import gpytorch

        super().__init__(X, y)
        inputs = X.shape[1]
        self.iterations, self.every, self.samples = iterations, every, 0

        class Exact(gpytorch.models.ExactGP):
            def __init__(self, X: Any, y: Any, likelihood: Any) -> None:
                super().__init__(X, y, likelihood)
                self.mean_module = gpytorch.means.ZeroMean()
                self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=inputs))

            def forward(self, X: Any) -> Any:
                return gpytorch.distributions.MultivariateNormal(self.mean_module(X), self.covar_module(X))

        self.likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
        self.model = Exact(self.X, self.y, self.likelihood).double()
        self.objective = gpytorch.mlls.ExactMarginalLogLikelihood(self.likelihood, self.model)
        self.optimizer = self.torch.optim.Adam(self.model.parameters(), lr=RATE)
        self.climb(warmup(len(y)) if climb is None else climb)

    def learn(self, x: np.ndarray, y: float) -> None:
        self.push(x, y)
        self.model.set_train_data(self.X, self.y, strict=False)
        self.samples += 1
        if self.samples % self.every == 0:
            self.climb(self.iterations)


class GPyTorchSVGP(_GPyTorch):
    """Stochastic variational process with M inducing points; one step of Adam on the window's bound per sample."""

    def __init__(self, size: Size, X: np.ndarray, y: np.ndarray) -> None:
        import gpytorch

        super().__init__(X, y)
        inputs = X.shape[1]

        class Sparse(gpytorch.models.ApproximateGP):
            def __init__(self, U: Any) -> None:
                q = gpytorch.variational.CholeskyVariationalDistribution(U.size(0))
                strategy = gpytorch.variational.VariationalStrategy(self, U, q, learn_inducing_locations=True)
                super().__init__(strategy)
                self.mean_module = gpytorch.means.ZeroMean()
                self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=inputs))

            def forward(self, X: Any) -> Any:
                return gpytorch.distributions.MultivariateNormal(self.mean_module(X), self.covar_module(X))

        spaced = np.linspace(0, len(X) - 1, size.M).round().astype(int)
        self.likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
        self.model = Sparse(self.X[spaced].clone()).double()
        self.objective = gpytorch.mlls.VariationalELBO(self.likelihood, self.model, num_data=len(X))
        parameters = [*self.model.parameters(), *self.likelihood.parameters()]
        self.optimizer = self.torch.optim.Adam(parameters, lr=RATE)
        self.climb(warmup(len(y)))

    def learn(self, x: np.ndarray, y: float) -> None:
        self.push(x, y)
        self.climb(1)


# ---- scikit-learn ----------------------------------------------------------------------------------------------------


class ScikitLearn:
    """GaussianProcessRegressor fitted anew to the window at every sample, from the parameters found before."""

    def __init__(self, X: np.ndarray, y: np.ndarray) -> None:
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

        wide = (1e-5, 1e5)
        kernel = ConstantKernel(1.0, wide) * RBF(1.0, wide) + WhiteKernel(1.0, wide)
        self.window = Window(X, y)
        self.model = GaussianProcessRegressor(kernel).fit(X, y)

    def predict(self, x: np.ndarray) -> float:
        mean, _ = self.model.predict(x[None], return_std=True)
        return float(mean[0])

    def learn(self, x: np.ndarray, y: float) -> None:
        self.window.push(x, y)
        self.model.kernel = self.model.kernel_
        self.model.fit(self.window.X, self.window.y)


# ---- tinygp ----------------------------------------------------------------------------------------------------------


class TinyGP:
    """Exact process on the window, one step of Adam on its evidence per sample: predicting and learning compiled."""

    def __init__(self, X: np.ndarray, y: np.ndarray) -> None:
        import jax
        import jax.numpy as jnp
        import optax
        import tinygp

        compiled = partial(jax.jit, compiler_options={"xla_cpu_multi_thread_eigen": False})  # one thread, as for us
        optimizer = optax.adam(RATE)

        def process(parameters: dict[str, Any], X: Any) -> Any:
            lengthscale, variance, noise = (jnp.exp(parameters[name]) for name in ("lengthscale", "variance", "noise"))
            scaled = tinygp.transforms.Linear(1.0 / lengthscale, tinygp.kernels.ExpSquared())
            return tinygp.GaussianProcess(variance * scaled, X, diag=noise)

        def loss(parameters: dict[str, Any], X: Any, y: Any) -> Any:
            return -process(parameters, X).log_probability(y)

        def climb(parameters: Any, memory: Any, X: Any, y: Any) -> Any:
            move, memory = optimizer.update(jax.grad(loss)(parameters, X, y), memory)
            return optax.apply_updates(parameters, move), memory

        @compiled
        def warm_up(parameters: Any, memory: Any, X: Any, y: Any) -> Any:
            def turn(_: Any, carry: Any) -> Any:
                parameters, memory = carry
                return climb(parameters, memory, X, y)

            return jax.lax.fori_loop(0, warmup(len(y)), turn, (parameters, memory))

        @compiled
        def predict(parameters: Any, X: Any, y: Any, x: Any) -> Any:
            posterior = process(parameters, X).condition(y, x[None]).gp
            return jnp.stack([posterior.loc[0], posterior.variance[0] + jnp.exp(parameters["noise"])])

        @compiled
        def learn(parameters: Any, memory: Any, X: Any, y: Any, x: Any, target: Any) -> Any:
            X, y = jnp.concatenate([X[1:], x[None]]), jnp.append(y[1:], target)
            return (*climb(parameters, memory, X, y), X, y)

        self.jax, self._predict, self._learn = jax, predict, learn
        with jax.enable_x64(True):
            parameters = {name: jnp.zeros(()) for name in ("lengthscale", "variance", "noise")}
            self.state = (*warm_up(parameters, optimizer.init(parameters), X, y), jnp.asarray(X), jnp.asarray(y))

    def predict(self, x: np.ndarray) -> float:
        parameters, _, X, y = self.state
        with self.jax.enable_x64(True):
            mean, _ = np.asarray(self._predict(parameters, X, y, x))
        return float(mean)

    def learn(self, x: np.ndarray, y: float) -> None:
        with self.jax.enable_x64(True):
            self.state = self._learn(*self.state, x, y)


# ---- river -----------------------------------------------------------------------------------------------------------


class River:
    """One of river's regressors behind a scaler, as its pages have it; or our default model, which scales by itself."""

    def __init__(self, size: Size, X: np.ndarray, y: np.ndarray, name: str) -> None:
        from river import forest, linear_model, neighbors, preprocessing, tree

        from driftgp.river import AGPRegressor

        regressors: dict[str, Callable[[], Any]] = {
            "AGPRegressor": AGPRegressor,
            "BayesianLinearRegression": lambda: linear_model.BayesianLinearRegression(smoothing=0.1 ** (1.0 / size.T)),
            "HoeffdingAdaptiveTreeRegressor": lambda: tree.HoeffdingAdaptiveTreeRegressor(seed=0),
            "AMFRegressor": lambda: forest.AMFRegressor(seed=0),
            "KNNRegressor": lambda: neighbors.KNNRegressor(engine=neighbors.LazySearch(window_size=size.T)),
        }
        chosen = regressors[name]()
        self.model = chosen if name == "AGPRegressor" else preprocessing.StandardScaler() | chosen
        self.names = [f"x{d}" for d in range(size.D)]
        for x, target in zip(X, y, strict=True):
            self.learn(x, target)

    def predict(self, x: np.ndarray) -> float:
        return float(self.model.predict_one(dict(zip(self.names, x.tolist(), strict=True))))

    def learn(self, x: np.ndarray, y: float) -> None:
        self.model.learn_one(dict(zip(self.names, x.tolist(), strict=True)), float(y))


Start = Callable[[Size, np.ndarray, np.ndarray], Contender]

CONTENDERS: dict[str, Start] = {
    "GPyTorch exact, 1 step": lambda _, X, y: GPyTorchExact(X, y, 1),
    "GPyTorch exact, 5 steps": lambda _, X, y: GPyTorchExact(X, y, 5),
    "GPyTorch SVGP": GPyTorchSVGP,
    "scikit-learn, refitted": lambda _, X, y: ScikitLearn(X, y),
    "tinygp exact, 1 step": lambda _, X, y: TinyGP(X, y),
    "river BayesianLinearRegression": lambda size, X, y: River(size, X, y, "BayesianLinearRegression"),
    "river HoeffdingAdaptiveTreeRegressor": lambda size, X, y: River(size, X, y, "HoeffdingAdaptiveTreeRegressor"),
    "river AMFRegressor": lambda size, X, y: River(size, X, y, "AMFRegressor"),
    "river KNNRegressor": lambda size, X, y: River(size, X, y, "KNNRegressor"),
    "driftgp's AGPRegressor for river": lambda size, X, y: River(size, X, y, "AGPRegressor"),
}
