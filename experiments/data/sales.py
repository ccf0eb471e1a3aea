"""Daily sales: UCI Online Retail and Kaggle Store Sales, as published or summed by day."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from driftgp.data.locate import Location, Source, find
from driftgp.data.stream import Floats, Times
from experiments.data.daily import Daily

if TYPE_CHECKING:  # polars is imported when a file is read, not before
    from driftgp.tables.tables import TextTable

ONLINE_RETAIL = Source(
    "Online Retail",
    "the UCI Machine Learning Repository, data set 'Online Retail' (file 'Online Retail.xlsx')",
    ("online_retail_daily.*", "Online Retail.xlsx"),
)
STORE_SALES = Source(
    "Store Sales",
    "Kaggle, competition 'Store Sales - Time Series Forecasting' (file 'train.csv')",
    ("store_sales_daily.*", "train.csv", "store-sales*/train.csv"),
)
INVOICE_COLUMNS = ("InvoiceDate", "Quantity", "UnitPrice")
Revenue = Literal["revenue", "revenue_pos"]


def read_online_retail(data: Location = None, revenue: Revenue = "revenue") -> Daily:
    """Revenue of each trading day in pounds: the sum of Quantity × UnitPrice over its lines.

    "revenue" sums every line, so that cancellations and written-off debts, whose quantity or price is
    negative, count against the day they were booked; "revenue_pos" sums the lines in which both are
    positive.
    """
    if revenue not in ("revenue", "revenue_pos"):
        raise ValueError(f"revenue is {revenue!r}: choose 'revenue' (net of cancellations) or 'revenue_pos'")
    from driftgp.tables.tables import read_table

    table = read_table(find(ONLINE_RETAIL, data)[0], columns={*INVOICE_COLUMNS, "date", revenue})
    if not (table.has("InvoiceDate") or table.has("InvoiceNo")):
        return _tidy(ONLINE_RETAIL.title, table, revenue, unit="GBP")
    days = table.days(table.column("InvoiceDate"))
    quantity, price = table.numbers(table.column("Quantity")), table.numbers(table.column("UnitPrice"))
    amount = quantity * price
    if revenue == "revenue_pos":
        amount[(quantity <= 0) | (price <= 0)] = 0.0
    dates, total, _ = _by_day(days, amount)
    return Daily(ONLINE_RETAIL.title, dates, total, unit="GBP")


def read_store_sales(data: Location = None) -> Daily:
    """Mean sales of each day over all stores and families, in units sold."""
    from driftgp.tables.tables import read_table

    table = read_table(find(STORE_SALES, data)[0], columns={"date", "sales", "mean_sales"})
    column = table.column("sales", "mean_sales")
    if column == "mean_sales":
        return _tidy(STORE_SALES.title, table, column, unit="units sold")
    dates, total, lines = _by_day(table.days(table.column("date")), table.numbers(column))
    return Daily(STORE_SALES.title, dates, total / lines, unit="units sold")


def _tidy(name: str, table: TextTable, column: str, unit: str) -> Daily:
    """A file with one row a day."""
    days, values = table.days(table.column("date")), table.numbers(table.column(column))
    late = np.flatnonzero(np.diff(days) <= np.timedelta64(0, "D"))
    if late.size:
        raise table.fault(int(late[0]) + 1, table.column("date"), f"a day after {days[late[0]]}, one row a day")
    return Daily(name, days, values, unit)


def _by_day(days: Times, amounts: Floats) -> tuple[Times, Floats, NDArray[np.int64]]:
    """The days that occur, and the sum and the number of the amounts of each."""
    offset = (days - days.min()).astype(np.int64)
    lines = np.bincount(offset).astype(np.int64)
    total = np.bincount(offset, weights=amounts).astype(np.float64)
    held = np.flatnonzero(lines)
    dates: Times = days.min() + held.astype("timedelta64[D]")
    return dates, total[held], lines[held]
