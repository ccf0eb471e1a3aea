"""Forecasts of the next steps of one series or many: a distribution per step, and paths through all of them."""

from driftgp.forecasting.fan import Fan, Fans
from driftgp.forecasting.forecaster import Forecaster

__all__ = ["Fan", "Fans", "Forecaster"]
