"""What a model answers: a distribution of the next target, never just a number."""

from driftgp.predictions.base import Prediction
from driftgp.predictions.forecast import Forecast
from driftgp.predictions.gaussian import Gaussian
from driftgp.predictions.joined import Joined, joined
from driftgp.predictions.limited import Limited
from driftgp.predictions.mixture import Mixture
from driftgp.predictions.normal import nominal_reach
from driftgp.predictions.recalibrated import Recalibrated
from driftgp.predictions.restricted import Restricted
from driftgp.predictions.rooted import Root, Rooted
from driftgp.predictions.stretched import Stretched

__all__ = [
    "Forecast",
    "Gaussian",
    "Joined",
    "Limited",
    "Mixture",
    "Prediction",
    "Recalibrated",
    "Restricted",
    "Root",
    "Rooted",
    "Stretched",
    "joined",
    "nominal_reach",
]
