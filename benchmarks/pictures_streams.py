"""The pictures of the tutorials whose data do not come with driftgp: load by zone, and a gas sensor that drifts.

`DRIFTGP_DATA=FOLDER make pictures` draws them anew into docs/images, and prints the tables of the two pages.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.linear_model import LinearRegression

from driftgp import Fleet, Online
from driftgp.plots.base import BLACK, BLUE, GREEN, GREY, LINES, ORANGE, SKY, VERMILION, short_dates

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARGIN = 0.04  # of the forecast: a reserve that is the same for all zones


def draw(data: Path, save: Callable[[Figure, str], object]) -> None:
    """Draw all of them, and print the figures of the two pages."""
    zones = Zones(data)
    for name, figure in zones.figures().items():
        save(figure, f"load-{name}")
    print(zones.rmse().round(0), zones.inside().round(3).to_dict(), zones.short().round(4), sep="\n\n")
    gas = Gas(data)
    for name, figure in gas.figures().items():
        save(figure, f"gas-{name}")
    print(gas.rmse().round(2), gas.fault_errors(), gas.rare(), sep="\n\n")


# ---- load by zone ----------------------------------------------------------------------------------------------------


class Zones:
    """Two years of eight zones, and the predictions of a fleet."""

    def __init__(self, data: Path) -> None:
        wide = pd.read_csv(data / "isone_zonal_hourly_wide_2011_2023.csv.gz")
        days, hours = pd.to_datetime(wide.pop("date")), wide.pop("hour_ending")
        wide = wide.set_axis(days + pd.to_timedelta(hours - 1, unit="h"), axis=0)
        self.wide = wide.loc["2019":"2020"].rename_axis(index="time", columns="zone")
        load = self.wide.stack().rename("mw").reset_index()
        before = {f"{h} h before": self.wide.shift(h).stack(future_stack=True) for h in (1, 2, 24, 168)}
        X = pd.DataFrame(before).reset_index(drop=True)
        hour, weekday = load["time"].dt.hour, load["time"].dt.dayofweek
        for name, turn in {"day": hour / 24, "week": (24 * weekday + hour) / 168}.items():
            X[f"{name}, sine"], X[f"{name}, cosine"] = np.sin(2 * np.pi * turn), np.cos(2 * np.pi * turn)
        self.load, self.X, self.first = load, X, load["time"] < "2020"
        self.prediction = Fleet().evaluate(load["zone"], X, load["mw"], time=load["time"])
        self.frame = self.prediction.to_frame(level=0.95)

    def rmse(self) -> pd.DataFrame:
        """RMSE of 2020 by zone."""
        rules = pd.DataFrame({"driftgp": self.frame["mean"], "linear, of 2019": np.nan})
        for zone in self.wide.columns:
            own = self.load["zone"] == zone
            fit = own & self.first & self.X.notna().all(axis=1)
            linear = LinearRegression().fit(self.X[fit], self.load["mw"][fit])
            rules.loc[own & ~self.first, "linear, of 2019"] = linear.predict(self.X[own & ~self.first])
        for name in ("hour", "day", "week"):
            rules[f"{name} before"] = self.X[f"{ {'hour': 1, 'day': 24, 'week': 168}[name] } h before"]
        errors = rules.sub(self.load["mw"], axis=0)[~self.first]
        return np.sqrt((errors**2).groupby(self.load["zone"]).mean())

    def inside(self) -> pd.Series[Any]:
        """Share of the loads of 2020 in their 95 % interval, by zone."""
        inside = self.load["mw"].between(self.frame["low"], self.frame["high"])[~self.first]
        return inside.groupby(self.load["zone"]).mean()

    def reserves(self) -> pd.DataFrame:
        """Reserve of each rule, MW."""
        mean = self.frame["mean"]
        return pd.DataFrame({"quantile 0.99": self.prediction.quantile(0.99) - mean, "4 % for all": MARGIN * mean})

    def short(self) -> pd.DataFrame:
        """Share of the hours of 2020 in which the reserve of a rule is too small, by zone."""
        short = self.reserves().add(self.frame["mean"], axis=0).lt(self.load["mw"], axis=0)[~self.first]
        return short.groupby(self.load["zone"]).mean()

    def figures(self) -> dict[str, Figure]:
        """All pictures by name."""
        return {"look": self._look(), "week": self._week(), "errors": self._errors(), "reserve": self._reserve()}

    def _look(self) -> Figure:
        figure = Figure(figsize=(9.0, 3.2), layout="constrained")
        for axes, (zone, name) in zip(figure.subplots(1, 2), (("CT", "Connecticut"), ("VT", "Vermont")), strict=True):
            for year, color in ((2019, GREY), (2020, BLUE)):
                april = self.wide.loc[f"{year}-04", zone]
                april = april[april.index.dayofweek < 5]
                axes.plot(april.groupby(april.index.hour).mean(), color=color, label=f"April {year}")
            axes.set_title(f"{name}: mean load on weekdays, MW")
            axes.set_xlabel("hour")
        figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper")
        return figure

    def _week(self) -> Figure:
        figure = Figure(figsize=(9.0, 5.0), layout="constrained")
        for axes, (zone, name) in zip(figure.subplots(2, 1), (("CT", "Connecticut"), ("VT", "Vermont")), strict=True):
            own = self.load["zone"] == zone
            some = self.frame[own].set_axis(self.load["time"][own], axis=0).loc["2020-04-06":"2020-04-09"]
            _band(axes, some, self.wide[zone][some.index], "forecast, one hour ahead", "load")
            axes.set_title(f"{name}, MW")
            short_dates(axes, some.index)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=3)
        return figure

    def _errors(self) -> Figure:
        rmse = self.rmse()[["driftgp", "linear, of 2019", "hour before"]]
        mean = self.load["mw"][~self.first].groupby(self.load["zone"]).mean()
        return _bars(100 * rmse.div(mean, axis=0), "RMSE of 2020, % of the mean load", (BLUE, ORANGE, GREY))

    def _reserve(self) -> Figure:
        figure = Figure(figsize=(9.0, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        reserve = self.reserves()[~self.first].groupby(self.load["zone"]).mean()
        mean = self.frame["mean"][~self.first].groupby(self.load["zone"]).mean()
        _grouped(left, 100 * self.short(), (GREEN, GREY))
        left.axhline(1.0, color=BLACK, linewidth=1)
        left.set_title("hours in which the reserve was too small, %")
        _grouped(right, 100 * reserve.div(mean, axis=0), (GREEN, GREY))
        right.set_title("mean reserve, % of the forecast")
        figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=2)
        return figure


# ---- a gas sensor that drifts ----------------------------------------------------------------------------------------

SENSORS = ["pt08_s1_co", "pt08_s2_nmhc", "pt08_s3_nox", "pt08_s4_no2", "pt08_s5_o3"]
FAULT, WEEK = "2004-06-14", "2004-06-20"  # when a sensor is made to read too high, and a week later


class Gas:
    """A year of five sensors beside a reference, and the default model's predictions."""

    def __init__(self, data: Path) -> None:
        path = data / "streams" / "air_quality_hourly.csv.gz"
        self.air = pd.read_csv(path, index_col="time", parse_dates=True)
        self.co, self.X = self.air["co_gt"], self.air[[*SENSORS, "t", "rh", "ah"]]
        self.start = self.air.index[0] + pd.Timedelta(days=28)
        self.known = self.X.notna().all(axis=1) & self.co.notna()
        self.once = self._linear(self.known & (self.air.index < self.start))
        self.frame = Online().evaluate(self.X, self.co).to_frame(level=0.95)
        self.broken = self.X.copy()
        self.broken.loc[FAULT:, "pt08_s2_nmhc"] *= 1.3
        self.after = Online().evaluate(self.broken, self.co).to_frame(level=0.95)

    def _linear(self, rows: pd.Series[Any]) -> LinearRegression:
        return LinearRegression().fit(self.X[rows], self.co[rows])

    def errors(self) -> pd.DataFrame:
        """Errors of each calibration after the first four weeks."""
        index = self.air.index
        weekly = pd.Series(np.nan, index=index)
        for week in pd.date_range(self.start.normalize(), index[-1], freq="7D"):
            now = (index >= week) & (index < week + pd.Timedelta(days=7))
            weekly[now] = self._linear(self.known & (index < week)).predict(self.X.ffill()[now])
        rules = pd.DataFrame({"driftgp": self.frame["mean"], "linear, fitted again every week": weekly})
        rules["hour before"] = self.co.shift(1).ffill()
        rules["linear, fitted once"] = self.once.predict(self.X.ffill())
        return rules.sub(self.co, axis=0)[self.start :]

    def rmse(self) -> pd.DataFrame:
        """RMSE in all, and its range over the months."""
        errors = self.errors()
        monthly = np.sqrt((errors**2).resample("MS").mean())
        return pd.DataFrame(
            {"RMSE": np.sqrt((errors**2).mean()), "best month": monthly.min(), "worst month": monthly.max()}
        )

    def fault_errors(self) -> dict[str, float]:
        """RMSE of the week after the fault, with and without it, and of the first day."""
        fixed = pd.Series(self.once.predict(self.broken.ffill()), index=self.air.index)
        healthy = pd.Series(self.once.predict(self.X.ffill()), index=self.air.index)
        means = (("healthy", self.frame["mean"]), ("broken", self.after["mean"]), ("once, healthy", healthy))
        found = {}
        for span, week in (("day", slice(FAULT, FAULT)), ("week", slice(FAULT, WEEK))):
            for name, mean in (*means, ("once, broken", fixed)):
                found[f"{name}, first {span}"] = round(float(np.sqrt(((mean - self.co)[week] ** 2).mean())), 2)
        inside = self.co.between(self.after["low"], self.after["high"])[self.co.notna()]
        found["inside, first week"] = round(float(inside[FAULT:WEEK].mean()), 3)
        return found

    def rare(self) -> dict[str, float]:
        """RMSE and coverage between the visits of a reference that comes on Mondays."""
        index = self.air.index
        visits = self.co.where((index < self.start) | (index.dayofweek == 0))
        rare = Online().evaluate(self.X, visits).to_frame(level=0.95)
        between = self.co.notna() & (index >= self.start) & (index.dayofweek != 0)
        weekly = pd.Series(np.nan, index=index)
        for week in pd.date_range(self.start.normalize(), index[-1], freq="7D"):
            now = (index >= week) & (index < week + pd.Timedelta(days=7))
            past = self.known & visits.notna() & (index < week)
            weekly[now] = self._linear(past).predict(self.X.ffill()[now])
        means = {"driftgp": rare["mean"], "linear, again every week": weekly, "once": self.once.predict(self.X.ffill())}
        found = {
            name: round(float(np.sqrt(((mean - self.co)[between] ** 2).mean())), 3) for name, mean in means.items()
        }
        return {**found, "inside": round(float(self.co.between(rare["low"], rare["high"])[between].mean()), 3)}

    def figures(self) -> dict[str, Figure]:
        """All pictures by name."""
        return {"look": self._look(), "errors": self._errors(), "fault": self._fault()}

    def _look(self) -> Figure:
        figure = Figure(figsize=(9.0, 3.4), layout="constrained")
        sensors = (("pt08_s1_co", "CO sensor"), ("pt08_s4_no2", "NO₂ sensor"))
        for axes, (sensor, title) in zip(figure.subplots(1, 2), sensors, strict=True):
            for (month, label), color in zip(
                (("2004-04", "April 2004"), ("2004-10", "October 2004"), ("2005-02", "February 2005")),
                (BLUE, GREEN, VERMILION),
                strict=True,
            ):
                some = self.air.loc[month]
                axes.plot(some["co_gt"], some[sensor], ".", color=color, markersize=3, label=label)
            axes.set_title(f"{title}: reading")
            axes.set_xlabel("CO by the reference, mg/m³")
        figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper", markerscale=3)
        return figure

    def _errors(self) -> Figure:
        figure = Figure(figsize=(9.0, 4.8), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True)
        monthly = np.sqrt((self.errors() ** 2).resample("MS").mean())
        for (name, rmse), (color, style) in zip(monthly.items(), LINES, strict=False):
            above.plot(rmse.index, rmse, style, color=color, marker=".", label=str(name))
        above.set_ylim(bottom=0)
        above.set_title("error per month (RMSE), mg/m³")
        inside = self.co.between(self.frame["low"], self.frame["high"])[self.co.notna()][self.start :]
        share = 100 * inside.resample("MS").mean()
        below.axhline(95, color=GREY, linewidth=1)
        below.plot(share.index, share, color=BLUE, marker=".")
        below.set_ylim(85, 100)
        below.set_title("reference inside the 95 % interval of driftgp, % per month")
        figure.legend(*above.get_legend_handles_labels(), loc="outside right upper")
        return figure

    def _fault(self) -> Figure:
        figure = Figure(figsize=(9.0, 3.8), layout="constrained")
        axes = figure.subplots()
        some = self.after.loc["2004-06-12":"2004-06-17"]
        fixed = pd.Series(self.once.predict(self.broken.ffill()), index=self.air.index)[some.index]
        _band(axes, some, self.co[some.index], "driftgp", "reference")
        axes.plot(fixed.index, fixed, "--", color=VERMILION, linewidth=1.2, label="linear, fitted once")
        axes.axvline(pd.Timestamp(FAULT), color=BLACK, linewidth=1)
        at = (pd.Timestamp(FAULT), 0.97)
        axes.annotate("the NMHC sensor reads 30 % too high", at, (6, 0), xycoords=("data", "axes fraction"),
                      textcoords="offset points", va="top")  # fmt: skip
        axes.set_ylabel("CO, mg/m³")
        axes.set_ylim(top=1.15 * axes.get_ylim()[1])
        short_dates(axes, some.index)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=4)
        return figure


# ---- what they share -------------------------------------------------------------------------------------------------


def _band(axes: Axes, some: pd.DataFrame, targets: pd.Series[Any], mean: str, target: str) -> None:
    """Forecasts with their intervals, and the targets."""
    axes.fill_between(some.index, some["low"], some["high"], color=SKY, alpha=0.45, linewidth=0, label="95 % interval")
    axes.plot(some.index, some["mean"], color=BLUE, label=mean)
    axes.plot(some.index, targets, ".", color=BLACK, markersize=4, label=target)


def _bars(table: pd.DataFrame, title: str, colors: tuple[str, ...]) -> Figure:
    figure = Figure(figsize=(9.0, 3.4), layout="constrained")
    axes = figure.subplots()
    _grouped(axes, table, colors)
    axes.set_title(title)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper")
    return figure


def _grouped(axes: Axes, table: pd.DataFrame, colors: tuple[str, ...]) -> None:
    """A bar per column beside each other, for each row."""
    width = 0.8 / table.shape[1]
    for i, (name, color) in enumerate(zip(table.columns, colors, strict=True)):
        axes.bar(
            np.arange(len(table)) + (i - (table.shape[1] - 1) / 2) * width, table[name], width, color=color, label=name
        )
    axes.set_xticks(range(len(table)), table.index)
    axes.grid(visible=False, axis="x")
