"""The settings of an adapter as arguments: written once, since each library reads them off `__init__`."""

from driftgp.kernels import Covariance


class Configured:
    """An estimator with the settings of `Settings`; stands before the library's own base class."""

    def __init__(
        self,
        kernel: str | Covariance = "se",
        *,
        noise: float = 0.1,
        inducing: int = 10,
        window: int = 100,
        forgetting: float | None = None,
        learn_every: int = 1,
        prior: float | None = 3.0,
        warmup_iterations: int = 200,
        standardize: bool = True,
    ) -> None:
        """Keep the settings; they are checked when a model is made of them.

        Args:
            kernel: an expression such as "linear + matern32", or a kernel with its starting parameters. One that
                has a lengthscale for each feature fixes their number.
            noise: starting variance of the noise, as a share of the targets' if these are standardised.
            inducing: most inducing points M.
            window: samples kept T.
            forgetting: λ, the weight of a sample relative to the one after it; by default λ^T = 0.1.
            learn_every: samples from one gradient step to the next: 1 is AGP, 0 fast-AGP, others the hybrid.
            prior: standard deviation of each log parameter around its starting value, or None for no prior.
            warmup_iterations: gradient steps on the batch that the model starts from.
            standardize: see features and targets in units of their own spread, which follow the stream.
        """
        self.kernel = kernel
        self.noise = noise
        self.inducing = inducing
        self.window = window
        self.forgetting = forgetting
        self.learn_every = learn_every
        self.prior = prior
        self.warmup_iterations = warmup_iterations
        self.standardize = standardize
        super().__init__()
        self._prepare()

    def _prepare(self) -> None:
        """What else an adapter has to set up."""
