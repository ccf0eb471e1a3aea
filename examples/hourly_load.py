"""Hourly load from a pandas frame with a DatetimeIndex: predictions with intervals in a frame, and a plot."""

import sys

import pandas as pd

from driftgp import Online

load = pd.read_csv(sys.argv[1], index_col="time", parse_dates=True)["load"]
X = pd.DataFrame({f"{lag} h before": load.shift(lag) for lag in (1, 2, 24, 168)}).assign(hour=load.index.hour)
predicted = Online().evaluate(X, load).to_frame(level=0.95).assign(load=load)
axes = predicted[["load", "mean"]].tail(240).plot(figsize=(9, 4), ylabel="MW", style=["k.", "-"])
axes.fill_between(predicted.index[-240:], predicted["low"][-240:], predicted["high"][-240:], alpha=0.3)
predicted.to_csv("predicted.csv")
axes.figure.savefig("predicted.png", bbox_inches="tight")
