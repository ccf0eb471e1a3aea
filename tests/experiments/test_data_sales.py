"""Daily sales: UCI Online Retail and Kaggle Store Sales, raw and tidy, and the sets made of them."""

import datetime as dt
import gzip

import numpy as np
import pytest

from experiments.data import online_retail_stream, read_online_retail, read_store_sales, store_sales_stream
from tests.data_files import real_data, write_xlsx

INVOICES = (
    "InvoiceNo",
    "StockCode",
    "Description",
    "Quantity",
    "InvoiceDate",
    "UnitPrice",
    "CustomerID",
    "Country",
)


def invoice(time, quantity, price, number=536365):
    return (
        number,
        "85123A",
        "LANTERN",
        quantity,
        dt.datetime.fromisoformat(time),
        price,
        17850,
        "United Kingdom",
    )


LINES = [
    invoice("2010-12-01 08:26", 6, 2.5),
    invoice("2010-12-01 17:00", 4, 1.25),
    invoice("2010-12-01 18:01", -2, 2.5, "C536379"),  # a cancellation
    invoice("2010-12-01 18:30", 5, 0.0),  # a gift
    invoice("2010-12-03 09:00", 1, 7.0),
    invoice("2010-12-03 10:00", 1, -3.0, "A563186"),  # a debt written off
]


def tidy(path, column, values, start="2020-01-01"):
    days = np.datetime64(start) + np.arange(len(values))
    lines = [f"{day},{value!r}" for day, value in zip(days, np.asarray(values).tolist(), strict=True)]
    path.write_bytes(gzip.compress("\n".join([f"date,{column}", *lines]).encode()))
    return path


# ---- Online Retail


def test_revenue_is_net_of_cancellations_and_write_offs(tmp_path):
    write_xlsx(tmp_path / "Online Retail.xlsx", {"Online Retail": [INVOICES, *LINES]})
    record = read_online_retail(tmp_path)
    assert [str(day) for day in record.days] == ["2010-12-01", "2010-12-03"]  # trading days alone
    np.testing.assert_allclose(record.values, [15 + 5 - 5, 7 - 3])
    np.testing.assert_allclose(read_online_retail(tmp_path, "revenue_pos").values, [20, 7])


def test_tidy_retail_has_both_definitions(tmp_path):
    path = tmp_path / "online_retail_daily.csv"
    path.write_text("date,revenue,revenue_pos,quantity\n2010-12-01,15.5,20.25,8\n2010-12-03,4,7,1\n")
    np.testing.assert_array_equal(read_online_retail(path).values, [15.5, 4])
    np.testing.assert_array_equal(read_online_retail(path, "revenue_pos").values, [20.25, 7])


def test_an_unknown_definition_is_refused(tmp_path):
    with pytest.raises(ValueError, match="revenue is 'gross'"):
        read_online_retail(tmp_path, "gross")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("column", "cell", "message"),
    [
        (3, "six", r"row 4, column 'Quantity' is 'six': expected a number"),
        (3, None, r"row 4, column 'Quantity' is blank: expected a number"),
        (4, "yesterday", r"row 4, column 'InvoiceDate' is 'yesterday': expected a date"),
        (5, "£2", r"row 4, column 'UnitPrice' is '£2'"),
    ],
)
def test_a_bad_invoice_line_is_named(tmp_path, column, cell, message):
    lines = [list(line) for line in LINES]
    lines[2][column] = cell
    path = write_xlsx(tmp_path / "Online Retail.xlsx", {"Online Retail": [INVOICES, *lines]})
    with pytest.raises(ValueError, match=message) as caught:
        read_online_retail(path)
    assert "Online Retail.xlsx, sheet 'Online Retail'" in str(caught.value)


def test_a_retail_file_of_another_layout_is_named(tmp_path):
    path = write_xlsx(tmp_path / "Online Retail.xlsx", {"Year": [("Invoice", "InvoiceDate", "Price"), ("1", "2", "3")]})
    with pytest.raises(ValueError, match=r"sheet 'Year', row 1: no column 'Quantity'|column 'InvoiceDate' is '2'"):
        read_online_retail(path)


def test_the_retail_set_stops_three_samples_early_in_units_of_ten_thousand(tmp_path):
    values = np.random.default_rng(0).normal(3e4, 1e4, 120)
    tidy(tmp_path / "online_retail_daily.csv.gz", "revenue", values)
    stream = online_retail_stream(tmp_path)
    assert stream.X.shape == (110, 7)
    for row in (0, 50, 109):
        np.testing.assert_allclose(stream.X[row], values[row : row + 7] / 1e4)
        np.testing.assert_allclose(stream.y[row], values[row + 7] / 1e4)
    np.testing.assert_array_equal(stream.persistence(), stream.X[:, 6])
    assert stream.times is not None
    assert str(stream.times[0]) == "2020-01-08"


# ---- Store Sales


def test_store_sales_are_means_over_stores_and_families(tmp_path):
    lines = ["id,date,store_nbr,family,sales,onpromotion"]
    lines += ["0,2013-01-01,1,AUTOMOTIVE,0.0,0", '1,2013-01-01,2,"BREAD/BAKERY, FRESH",3.0,1']
    lines += ["2,2013-01-02,1,AUTOMOTIVE,4.5,0"]
    (tmp_path / "train.csv").write_text("\n".join(lines))
    record = read_store_sales(tmp_path)
    np.testing.assert_array_equal(record.values, [1.5, 4.5])
    assert str(record.days[1]) == "2013-01-02"


def test_a_bad_line_of_the_store_file_is_named(tmp_path):
    path = tmp_path / "train.csv"
    path.write_text("id,date,store_nbr,family,sales,onpromotion\n0,2013-01-01,1,A,0.0,0\n1,2013-01-01,1,B,many,0\n")
    with pytest.raises(ValueError, match=r"train.csv, row 3, column 'sales' is 'many': expected a number"):
        read_store_sales(path)
    path.write_text("id,date\n0,2013-01-01\n")
    with pytest.raises(ValueError, match=r"no column 'sales' or 'mean_sales'; the columns are id, date"):
        read_store_sales(path)


def test_tidy_days_that_do_not_increase_are_named(tmp_path):
    path = tmp_path / "store_sales_daily.csv"
    path.write_text("date,mean_sales\n2013-01-02,1\n2013-01-02,2\n")
    with pytest.raises(ValueError, match=r"row 3, column 'date' is '2013-01-02': expected a day after 2013-01-02"):
        read_store_sales(path)


def test_new_years_days_are_replaced_the_first_by_the_last_value(tmp_path):
    values = np.random.default_rng(1).normal(300, 50, 400)
    path = tidy(tmp_path / "store_sales_daily.csv.gz", "mean_sales", values, start="2013-01-01")
    stream = store_sales_stream(path)
    scale = float(stream.unit.split()[0])
    np.testing.assert_allclose(stream.X[0, 0] * scale, values[-1], rtol=1e-3)
    np.testing.assert_allclose(stream.X[365, 0], stream.X[364, 0], rtol=1e-12)
    np.testing.assert_allclose(stream.X[1, 0] * scale, values[1], rtol=1e-3)
    assert stream.X.std() == pytest.approx(1.0, rel=1e-12)
    assert len(stream) == 400 - 7 - 3


def test_a_series_too_short_to_learn_from_is_refused(tmp_path):
    path = tidy(tmp_path / "store_sales_daily.csv.gz", "mean_sales", np.ones(100))
    with pytest.raises(ValueError, match="SS has 100 days: more than 100 are needed"):
        store_sales_stream(path)


# ---- the real files


def test_real_retail_set_has_205_online_samples_and_the_published_persistence_error():
    stream = online_retail_stream(real_data("online_retail_daily.csv.gz"))
    assert stream.online == 205
    assert np.mean((stream.y - stream.persistence())[90:] ** 2) == pytest.approx(3.9486, abs=5e-5)


def test_real_store_set_has_the_published_persistence_error():
    stream = store_sales_stream(real_data("store_sales_daily.csv.gz"))
    assert stream.online == 1584
    assert np.mean((stream.y - stream.persistence())[90:] ** 2) == pytest.approx(0.4106, abs=5e-5)


def test_real_retail_revenue_sums_to_that_of_all_invoice_lines():
    directory = real_data("online_retail_daily.csv.gz")
    assert read_online_retail(directory).values.sum() == pytest.approx(9_747_747.93, abs=1)
    assert read_online_retail(directory, "revenue_pos").values.sum() == pytest.approx(10_666_684.54, abs=1)
