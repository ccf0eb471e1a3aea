"""Forecasts of the next H steps of one stream: a distribution per step, and paths through all of them."""

from driftgp.forecasting.fan import Fan
from driftgp.forecasting.forecaster import Forecaster

__all__ = ["Fan", "Forecaster"]
