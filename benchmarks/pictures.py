"""The pictures of the concepts and of the tutorial: `make pictures` draws them anew into docs/images.

They need the command line's packages, pandas, and the data that come with driftgp; those of `pictures_streams.py` need
other data too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from driftgp import AGP, Forecaster, Online
from driftgp.data import load_bikes, toy_stream
from driftgp.plots.base import BLACK, BLUE, GREEN, GREY, LINES, SKY, STYLE, VERMILION, short_dates

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from driftgp.models.model import State

WINDOW = 60
FIRST = 500  # hours that are not scored: the model has to learn first
SHORT, OVER = 4.0, 1.0  # cost of a bike that is missing, and of one that stands idle


def forgetting() -> Figure:
    """Draw a function that moves, at three moments: old samples fade, and the model follows the new ones."""
    rng = np.random.default_rng(3)
    x = rng.uniform(0.0, 10.0, 300)
    y = np.sin(x) + np.arange(300) / 100.0 + 0.2 * rng.normal(size=300)
    grid = np.linspace(0.0, 10.0, 200)
    model = AGP(inducing=12, window=WINDOW)
    state = model.init(x[:WINDOW, None], y[:WINDOW])
    figure, panels = _panels(3)
    learned = WINDOW
    for axes, now in zip(panels, (60, 180, 300), strict=True):
        if now > learned:
            state = model.update(state, x[learned:now, None], y[learned:now])
        learned = now
        _faded(axes, x[:now], y[:now])
        _law(axes, model, state, grid)
        axes.set_title(f"after {now} samples")
        axes.set_xlabel("input x")
    panels[0].set_ylabel("target y")
    _legend(figure, panels[0])
    return figure


def inducing() -> Figure:
    """Draw the toy stream at three moments: the inducing points move along with the window."""
    stream = toy_stream(seed=0)
    x, y = stream.X[:, 0], stream.y
    model = AGP(inducing=10, window=100)
    state = model.init(stream.X[:100], y[:100])
    figure, panels = _panels(3)
    learned = 100
    for axes, now in zip(panels, (150, 300, 450), strict=True):
        state = model.update(state, stream.X[learned:now], y[learned:now])
        learned = now
        _faded(axes, x[:now], y[:now], window=100)
        _law(axes, model, state, np.linspace(x[max(now - 130, 0)], x[now - 1], 200))
        axes.set_xlim(x[0], x[-1])
        axes.set_title(f"after {now} samples")
        axes.set_xlabel("time")
    panels[0].set_ylabel("target y")
    _legend(figure, panels[0])
    return figure


def _panels(count: int) -> tuple[Figure, Any]:
    figure = Figure(figsize=(9.0, 3.3), layout="constrained")
    return figure, figure.subplots(1, count, sharey=True)


def _faded(axes: Axes, x: np.ndarray, y: np.ndarray, window: int = WINDOW) -> None:
    """Samples as dark as their weight λ^age; those that have left the window as open circles."""
    age = np.arange(len(x))[::-1]
    inside = age < window
    weight = 0.1 ** (age[inside] / window)
    axes.scatter(x[~inside], y[~inside], s=8, facecolors="none", edgecolors="#CCCCCC", label="forgotten")
    shades = np.column_stack([np.zeros((len(weight), 3)), weight])  # black, as opaque as the weight
    axes.scatter(x[inside], y[inside], s=12, c=shades, linewidths=0)
    axes.plot([], [], ".", color=BLACK, label="samples, as dark as their weight")


def _law(axes: Axes, model: AGP, state: State, grid: np.ndarray) -> None:
    prediction = model.predict(state, grid[:, None])
    axes.fill_between(grid, *prediction.interval(0.95), color=SKY, alpha=0.35, linewidth=0, label="95 % interval")
    axes.plot(grid, prediction.mean, color=BLUE, linewidth=1.6, label="mean")
    points = state.U[: state.points, 0]
    axes.plot(points, np.full(len(points), 0.03), "^", color=VERMILION, markersize=6, label="inducing points",
              transform=axes.get_xaxis_transform(), clip_on=False)  # fmt: skip


def _legend(figure: Figure, axes: Axes) -> None:
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=9)


# ---- the tutorial: bikes ---------------------------------------------------------------------------------------------


class Bikes:
    """The rows of the tutorial, and the default model's predictions."""

    def __init__(self) -> None:
        bikes = load_bikes()
        count = bikes["count"]
        X = bikes[["temperature", "humidity", "windspeed", "sky", "workingday"]].copy()
        for name, angle in (("day", bikes.index.hour / 24), ("week", bikes.index.dayofweek / 7)):
            X[f"{name}, sine"], X[f"{name}, cosine"] = np.sin(2 * np.pi * angle), np.cos(2 * np.pi * angle)
        for hours in (1, 2, 3, 24, 168):
            X[f"{hours} h before"] = count.shift(freq=f"{hours}h").reindex(bikes.index)
        self.count: pd.Series[Any] = count
        self.prediction = Online().evaluate(X, count)
        self.frame = self.prediction.to_frame(level=0.95)
        self.naive = X[["1 h before", "168 h before"]].ffill()

    def errors(self) -> pd.DataFrame:
        """Errors of each forecast, from row FIRST on."""
        means = pd.DataFrame(
            {
                "driftgp": self.frame["mean"],
                "the hour before": self.naive["1 h before"],
                "a week before": self.naive["168 h before"],
            }
        )
        return means.sub(self.count, axis=0).iloc[FIRST:]

    def orders(self) -> pd.DataFrame:
        """Bikes made ready by each rule, from row FIRST on."""
        share = SHORT / (SHORT + OVER)
        return pd.DataFrame(
            {
                "quantile 0.8": self.prediction.quantile(share),
                "mean": self.frame["mean"],
                "mean + 20 %": 1.2 * self.frame["mean"],
                "a week before": self.naive["168 h before"],
            },
            index=self.count.index,
        ).iloc[FIRST:]

    def costs(self) -> pd.Series[Any]:
        """Mean cost per hour of each rule."""
        missing = self.orders().rsub(self.count.iloc[FIRST:], axis=0)
        return (SHORT * missing.clip(lower=0) + OVER * (-missing).clip(lower=0)).mean()


def look(bikes: Bikes) -> Figure:
    """Draw the file: two years of days, and two weeks of hours."""
    figure = Figure(figsize=(9.0, 4.6), layout="constrained")
    years, weeks = figure.subplots(2, 1)
    daily = bikes.count.resample("D").sum()
    years.plot(daily.index, daily, ".", color=GREY, markersize=3)
    years.plot(daily.index, daily.rolling(28).mean(), color=BLUE)
    years.set_title("bikes per day, and their mean over four weeks")
    some = bikes.count.loc["2011-05-02":"2011-05-15"]
    weeks.plot(some.index, some, color=BLACK, linewidth=1)
    weeks.set_title("bikes per hour, two weeks from Monday, 2 May 2011")
    for axes in (years, weeks):
        axes.set_ylim(bottom=0)
        axes.set_ylabel("bikes")
    short_dates(weeks, some.index)
    return figure


def forecasts(bikes: Bikes) -> Figure:
    """Draw ten days of forecasts, each made one hour ahead."""
    figure = Figure(figsize=(9.0, 3.4), layout="constrained")
    axes = figure.subplots()
    some = bikes.frame.loc["2012-09-03":"2012-09-12"]
    axes.fill_between(some.index, some["low"], some["high"], color=SKY, alpha=0.45, linewidth=0, label="95 % interval")
    axes.plot(some.index, some["mean"], color=BLUE, label="forecast, one hour ahead")
    axes.plot(some.index, bikes.count[some.index], ".", color=BLACK, markersize=4, label="bikes hired")
    axes.set_ylabel("bikes per hour")
    short_dates(axes, some.index)
    figure.legend(loc="outside upper center", ncols=3)
    return figure


def errors(bikes: Bikes) -> Figure:
    """Draw the error of each month beside naive forecasts, and the share of targets in the intervals."""
    figure = Figure(figsize=(9.0, 4.6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    monthly = (bikes.errors() ** 2).resample("MS").mean() ** 0.5
    for (name, rmse), (color, style) in zip(monthly.items(), LINES, strict=False):
        above.plot(rmse.index, rmse, style, color=color, marker=".", label=str(name))
    above.set_title("error per month (RMSE), bikes per hour")
    above.set_ylim(bottom=0)
    inside = bikes.count.between(bikes.frame["low"], bikes.frame["high"]).iloc[FIRST:]
    share = 100 * inside.resample("MS").mean()
    below.axhline(95, color=GREY, linewidth=1)
    below.plot(share.index, share, color=BLUE, marker=".")
    below.set_title("targets inside the 95 % interval, % per month")
    below.set_ylim(85, 100)
    figure.legend(*above.get_legend_handles_labels(), loc="outside right upper")
    return figure


def honest(bikes: Bikes) -> Figure:
    """Draw coverage by hour of the day and by tenth of the forecasts, with the band of chance around 95 %."""
    scores = bikes.prediction.scores()
    figure = Figure(figsize=(9.0, 3.2), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True, width_ratios=(24, 12))
    tenths = np.arange(1, 11)
    for axes, places, shares in zip(panels, (np.arange(24), tenths), (scores.by_hour, scores.by_decile), strict=True):
        _coverage(axes, places, shares)
    panels[0].set(xlabel="hour of day", xticks=range(0, 24, 3), title="targets inside the 95 % interval, % per hour")
    panels[1].set(xlabel="tenth of the forecasts, lowest first", xticks=tenths, title="% per tenth")
    return figure


def _coverage(axes: Axes, places: np.ndarray, shares: np.ndarray, color: str = BLUE, label: str = "") -> None:
    """Points of coverage in %, over the band in which exact intervals would be 19 times out of 20."""
    rows = shares[:, 0].mean()
    reach = 196 * np.sqrt(0.95 * 0.05 / rows)
    axes.axhspan(95 - reach, min(95 + reach, 100), color=GREY, alpha=0.2, linewidth=0)
    axes.axhline(95, color=GREY, linewidth=1)
    axes.plot(places, 100 * shares[:, 1], ".-", color=color, linewidth=0.8, markersize=7, label=label)


def decision(bikes: Bikes) -> Figure:
    """Draw what each rule makes ready on one day, and what it costs per hour over the two years."""
    figure = Figure(figsize=(9.0, 3.4), layout="constrained")
    day, bars = figure.subplots(1, 2, width_ratios=(3, 2))
    orders = bikes.orders().loc["2012-09-05"]
    hours = orders.index.hour
    day.plot(hours, bikes.count[orders.index], ".", color=BLACK, label="bikes hired")
    day.step(hours, orders["quantile 0.8"], where="mid", color=GREEN, label="made ready: quantile 0.8")
    day.step(hours, orders["mean"], "--", where="mid", color=BLUE, label="made ready: mean")
    day.set_title("Wednesday, 5 September 2012")
    day.set_xlabel("hour")
    day.set_ylabel("bikes")
    figure.legend(*day.get_legend_handles_labels(), loc="outside upper left", ncols=3)
    costs = bikes.costs()
    bars.barh(costs.index[::-1], costs[::-1], color=[GREY, GREY, BLUE, GREEN])
    bars.bar_label(bars.containers[0], fmt="%.0f", padding=3)
    bars.set_xlim(0, 1.15 * costs.max())
    bars.set_title("cost per hour")
    bars.grid(visible=False)
    return figure


def tomorrow(bikes: Bikes) -> Figure:
    """Draw the next 24 hours from the end of 3 September 2012 on."""
    past = bikes.count.loc[:"2012-09-03"]
    forecaster = Forecaster(horizon=24)
    forecaster.update(past)
    return forecaster.forecast().plot()


# ---- around somebody else's forecast ---------------------------------------------------------------------------------


def vendor(X: pd.DataFrame, y: pd.Series[Any]) -> np.ndarray:
    """LightGBM, fitted every week on all rows so far: somebody else's forecast. NaN in the first two weeks."""
    from lightgbm import LGBMRegressor

    made = np.full(len(y), np.nan)
    for start in range(336, len(y), 168):
        model = LGBMRegressor(n_estimators=200, n_jobs=1, verbose=-1).fit(X[:start], y[:start])
        made[start : start + 168] = model.predict(X[start : start + 168])
    return made


def base(rows: int = 8000) -> Figure:
    """Draw somebody else's forecast of bikes before and after: three days, and coverage by hour."""
    bikes = load_bikes()[:rows]
    count = bikes["count"].astype(float)
    X = bikes[["temperature", "humidity", "workingday"]].assign(hour=bikes.index.hour, day=bikes.index.dayofweek)
    for hours in (1, 2, 24, 168):
        X[f"{hours} h before"] = count.shift(freq=f"{hours}h").reindex(X.index)
    table = bikes[["count", "temperature", "humidity", "workingday"]].assign(vendor=vendor(X, count))[336:]
    known = ["temperature", "humidity", "workingday"]
    lags = [1, 2, 24, 168]
    prediction = Online(target="count", base="vendor", features=known, lags=lags, calendar=True).evaluate(table)
    after, count = prediction.to_frame(level=0.95), count[336:]
    error = table["vendor"] - count
    reach = 1.96 * (error**2).rolling(500, min_periods=50).mean().shift() ** 0.5  # what a point forecast would be given
    before = pd.DataFrame({"mean": table["vendor"], "low": table["vendor"] - reach, "high": table["vendor"] + reach})
    figure = Figure(figsize=(9.0, 5.6), layout="constrained")
    panels = figure.subplots(2, 2, width_ratios=(3, 2))
    for (days, hours), made, name, color in zip(
        panels, (before, after), ("the vendor's", "around the vendor's"), (VERMILION, BLUE), strict=True
    ):
        some = made.loc["2011-09-12":"2011-09-14"]
        rmse = ((made["mean"] - count)[FIRST:] ** 2).mean() ** 0.5
        days.fill_between(some.index, some["low"], some["high"], color=color, alpha=0.25, linewidth=0)
        days.plot(some.index, some["mean"], color=color)
        days.plot(some.index, count[some.index], ".", color=BLACK, markersize=4)
        days.set(title=f"{name}: RMSE {rmse:.1f}", ylabel="bikes per hour", ylim=(-80, 680))
        short_dates(days, some.index)
        inside = count.between(made["low"], made["high"])[FIRST:]
        groups = inside.groupby(inside.index.hour)
        _coverage(hours, np.arange(24), np.column_stack([groups.count(), groups.mean()]), color)
        hours.set(title="inside the 95 % interval, % per hour", ylim=(68, 101), xticks=range(0, 24, 6))
        print(name, rmse, inside.mean(), groups.mean().min(), groups.mean().max())
    return figure


CONCEPTS: tuple[Callable[[], Figure], ...] = (forgetting, inducing)
TUTORIAL: tuple[Callable[[Bikes], Figure], ...] = (look, forecasts, errors, honest, decision, tomorrow)


def main(folder: Path) -> None:
    """Draw all of them, and print the figures of the tutorial."""
    bikes = Bikes()
    with mpl.rc_context(STYLE):
        for draw in CONCEPTS:
            draw().savefig(folder / f"concepts-{draw.__name__}.png", dpi=90)
        base().savefig(folder / "howto-base.png", dpi=90)
        for draw_bikes in TUTORIAL:
            draw_bikes(bikes).savefig(folder / f"tutorial-{draw_bikes.__name__}.png", dpi=90)
        if "DRIFTGP_DATA" in os.environ:
            from benchmarks.pictures_streams import draw as draw_streams

            data = Path(os.environ["DRIFTGP_DATA"])
            draw_streams(data, lambda figure, name: figure.savefig(folder / f"{name}.png", dpi=90))
        else:
            print("DRIFTGP_DATA is not set: the pictures of load and of the gas sensor stay as they are")
    print((bikes.errors() ** 2).mean() ** 0.5)
    print(bikes.count.between(bikes.frame["low"], bikes.frame["high"]).iloc[FIRST:].mean())
    print(bikes.costs())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
