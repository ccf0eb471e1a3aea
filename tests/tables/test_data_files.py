"""Where files are looked for, what an unreadable one says, and what importing costs."""

import gzip
import subprocess
import sys

import numpy as np
import pytest

from driftgp import data
from experiments import data as records

READERS = {
    records.load_streams: ("ISO New England", "SMD Hourly Data"),
    records.read_isone: ("ISO New England", "smd_hourly.xls"),
    records.online_retail_stream: ("UCI Machine Learning Repository", "Online Retail.xlsx"),
    records.store_sales_stream: ("Kaggle", "train.csv"),
    data.bike_sharing_stream: ("UCI Machine Learning Repository", "hour.csv"),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_missing_file_says_where_to_get_it_and_where_to_put_it(reader, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        reader(tmp_path)
    message = str(caught.value)
    assert all(part in message for part in (*READERS[reader], str(tmp_path), "does not hold it", "DRIFTGP_DATA"))


def test_a_directory_that_does_not_exist_is_said_so(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        records.store_sales_stream(tmp_path / "nowhere")


def test_without_any_place_the_variable_is_named(monkeypatch):
    monkeypatch.delenv("DRIFTGP_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=r"no place to look in was given.*DRIFTGP_DATA"):
        records.read_store_sales()


def test_the_variable_is_used_and_the_argument_goes_before_it(monkeypatch, tmp_path):
    for name, value in (("variable", 1), ("argument", 2)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "store_sales_daily.csv").write_text(f"date,mean_sales\n2013-01-01,{value}\n")
    monkeypatch.setenv("DRIFTGP_DATA", str(tmp_path / "variable"))
    assert records.read_store_sales().values[0] == 1
    assert records.read_store_sales(tmp_path / "argument").values[0] == 2
    assert records.read_store_sales(str(tmp_path / "argument" / "store_sales_daily.csv")).values[0] == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot be read as .csv data: empty CSV"),
        (b"date,mean_sales\n", "has no rows"),
        (b"date,mean_sales\n2013-01-01,1\n2013-01-02,1,9\n", "row 3 has more cells than the header"),
        (b"date,mean_sales\n2013-01-01\n", "row 2, column 'mean_sales' is blank"),
        (b"date,mean_sales\n\n2013-01-01,x\n", "row 3, column 'mean_sales' is 'x'"),
        (b"date,mean_sales\n2013-02-30,1\n", "row 2, column 'date' is '2013-02-30'"),
        (b"date,mean_sales\n2013-01-01,nan\n", "row 2, column 'mean_sales' is 'nan': expected a number"),
        (b"date,mean_sales\n\xff\xfe,1\n", "cannot be read as .csv data: invalid utf-8"),
    ],
)
def test_a_malformed_csv_is_named_with_its_place(content, message, tmp_path):
    path = tmp_path / "store_sales_daily.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        records.read_store_sales(path)
    assert "store_sales_daily.csv" in str(caught.value)


def test_a_truncated_archive_and_a_false_parquet_file_are_named(tmp_path):
    cut = tmp_path / "store_sales_daily.csv.gz"
    cut.write_bytes(gzip.compress(b"date,mean_sales\n2013-01-01,1\n" * 99)[:-9])
    false = tmp_path / "store_sales_daily.parquet"
    false.write_bytes(b"PAR1 not really")
    for path in (cut, false):
        with pytest.raises(ValueError, match=f"{path.name} cannot be read as"):
            records.read_store_sales(path)


def test_spaces_and_capitals_in_a_header_do_not_matter(tmp_path):
    path = tmp_path / "store_sales_daily.csv"
    path.write_text(" Date ,MEAN_SALES\n 2013-01-01 , 2.5 \n")
    np.testing.assert_array_equal(records.read_store_sales(path).values, [2.5])


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)


def test_importing_the_room_imports_no_file_library():
    heavy = "print({'polars', 'fastexcel'} & set(sys.modules))"
    assert run(f"import sys, driftgp.data as data; data.toy_stream(0); {heavy}").stdout.strip() == "set()"


@pytest.mark.parametrize("absent", ["polars", "fastexcel"])
def test_a_missing_library_is_named_with_its_extra(absent, tmp_path):
    (tmp_path / "train.csv").write_text("date,sales\n2013-01-01,1\n")
    hide = f"import sys; sys.modules[{absent!r}] = None"
    error = run(f"{hide}; import experiments.data as records; records.read_store_sales({str(tmp_path)!r})").stderr
    assert f"ModuleNotFoundError: reading tables needs {absent}" in error
    assert "driftgp[cli]" in error
