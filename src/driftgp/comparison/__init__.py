"""The default model against what people use now, on their own rows: error, distribution, time, and a verdict."""

from driftgp.comparison.contest import backtest
from driftgp.comparison.methods import METHODS
from driftgp.comparison.result import Backtest, Line
from driftgp.comparison.verdict import OURS

__all__ = ["METHODS", "OURS", "Backtest", "Line", "backtest"]
