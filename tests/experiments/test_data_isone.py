"""ISO New England load: workbooks, tidy files, and the days when the clocks change."""

import datetime as dt

import numpy as np
import pytest

from experiments.data import ZONES, load_streams, read_isone
from tests.data_files import (
    NEW_HEADER,
    OLD_HEADER,
    Row,
    day_rows,
    real_data,
    write_xls,
    write_xlsx,
    year_rows,
)

LOADS = [100.0 + hour for hour in range(1, 25)]
NOTES: dict[str, list[Row]] = {
    "Notes": [("Hourly values are subject to resettlement",)],
    "ISO NE CA": [("Date", "System_Load")],
}
# Persistence MSE of each zone on these files, in GW², to four digits.
PERSISTENCE = {"CT": 0.1282, "ME": 0.0088, "NEMA": 0.0802, "NH": 0.0159}
PERSISTENCE |= {"RI": 0.0088, "SEMA": 0.0337, "VT": 0.0056, "WCMA": 0.0358}


def read_days(tmp_path, rows, header=NEW_HEADER):
    path = write_xlsx(tmp_path / "2020_smd_hourly.xlsx", {**NOTES, "CT": [header, *rows]})
    return read_isone(path, ["CT"])["CT"]


def without_hour(hour, loads=LOADS):
    kept = [h for h in range(1, 25) if h != hour]
    return [loads[h - 1] for h in kept], [f"{h:02d}" for h in kept]


# ---- layouts


def test_a_workbook_has_a_sheet_a_zone_and_other_sheets_are_left_alone(tmp_path):
    sheets = {zone: [NEW_HEADER, *day_rows("2020-01-01", [n + load for load in LOADS])] for n, zone in enumerate(ZONES)}
    path = write_xlsx(tmp_path / "2020_smd_hourly.xlsx", {**NOTES, **sheets})
    records = read_isone(path)
    assert list(records) == list(ZONES)
    for n, zone in enumerate(ZONES):
        np.testing.assert_array_equal(records[zone].values, [[n + load for load in LOADS]])
        assert records[zone].unit == "MW"
        assert str(records[zone].days[0]) == "2020-01-01"


def test_the_old_binary_workbooks_with_their_own_sheet_and_column_names(tmp_path):
    rows = [
        (date, hour, da, load, lmp) for hour, (date, _, da, load, lmp) in enumerate(day_rows("2012-07-01", LOADS), 1)
    ]
    names = ["NEMASSBOST", "SEMASS", "WCMASS", "CT"]
    path = write_xls(tmp_path / "2012_smd_hourly.xls", {name: [OLD_HEADER, *rows] for name in names})
    records = read_isone(path, ["NEMA", "SEMA", "WCMA", "CT"])
    for record in records.values():
        np.testing.assert_array_equal(record.values, [LOADS])


def test_dates_as_text_or_as_serial_numbers(tmp_path):
    for text in ("2020-01-02", "01/02/2020", 43832):
        rows = [(text, *row[1:]) for row in day_rows("2020-01-02", LOADS)]
        assert str(read_days(tmp_path, rows).days[0]) == "2020-01-02"


def test_rows_out_of_order_and_blank_rows_change_nothing(tmp_path):
    rows = [*day_rows("2020-01-02", LOADS), (None,) * 5, *day_rows("2020-01-01", LOADS[::-1])]
    record = read_days(tmp_path, rows)
    np.testing.assert_array_equal(record.values, [LOADS[::-1], LOADS])


def test_years_in_several_workbooks_are_joined_and_others_not_read(tmp_path):
    for year in (2020, 2021):
        rows = day_rows(f"{year}-01-01", LOADS)
        write_xlsx(tmp_path / f"{year}_smd_hourly.xlsx", {"CT": [NEW_HEADER, *rows]})
    (tmp_path / "2019_smd_hourly.xlsx").write_bytes(b"never opened")
    record = read_isone(tmp_path, ["CT"], years=(2020, 2021))["CT"]
    assert [str(day) for day in record.days] == ["2020-01-01", "2021-01-01"]


def test_tidy_files_long_and_wide_and_parquet_agree(tmp_path):
    pl = pytest.importorskip("polars", reason="polars writes the Parquet file of this test")
    hours = list(range(1, 25))
    wide = pl.DataFrame({"date": ["2020-05-01"] * 24, "hour_ending": hours, "CT": LOADS, "VT": LOADS[::-1]})
    long = wide.unpivot(index=["date", "hour_ending"], variable_name="zone", value_name="load_mw")
    long.write_csv(tmp_path / "long.csv")
    wide.write_csv(tmp_path / "wide.csv")
    wide.with_columns(pl.col("date").str.to_date()).write_parquet(tmp_path / "wide.parquet")
    for name in ("long.csv", "wide.csv", "wide.parquet"):
        records = read_isone(tmp_path / name, ["CT", "VT"])
        np.testing.assert_array_equal(records["CT"].values, [LOADS])
        np.testing.assert_array_equal(records["VT"].values, [LOADS[::-1]])


# ---- the days when the clocks change


def test_spring_hour_without_a_row_is_the_mean_of_its_neighbours(tmp_path):
    loads, labels = without_hour(2)
    record = read_days(tmp_path, day_rows("2020-03-08", loads, labels))
    np.testing.assert_array_equal(record.values, [LOADS])  # 102 is the mean of 101 and 103


@pytest.mark.parametrize("nothing", [None, 0.0])
def test_spring_hour_blank_or_zero_is_no_reading(tmp_path, nothing):
    loads = [LOADS[0], nothing, *LOADS[2:]]
    np.testing.assert_array_equal(read_days(tmp_path, day_rows("2021-03-14", loads)).values, [LOADS])


def test_spring_hour_as_the_publisher_fills_it_is_kept(tmp_path):
    loads = [LOADS[0], 999.0, *LOADS[2:]]
    assert read_days(tmp_path, day_rows("2021-03-14", loads)).values[0, 1] == 999.0


@pytest.mark.parametrize("label", ["02X", "2x", "02"])
def test_autumn_hour_read_twice_is_the_mean_of_both(tmp_path, label):
    labels = ["01", "02", label, *(f"{hour:02d}" for hour in range(3, 25))]
    loads = [*LOADS[:2], LOADS[1] + 7, *LOADS[2:]]
    record = read_days(tmp_path, day_rows("2020-11-01", loads, labels))
    np.testing.assert_array_equal(record.values, [[LOADS[0], LOADS[1] + 3.5, *LOADS[2:]]])


def test_autumn_hour_as_the_publisher_averages_it_is_kept(tmp_path):
    np.testing.assert_array_equal(read_days(tmp_path, day_rows("2020-11-01", LOADS)).values, [LOADS])


# ---- malformed files: named by file, sheet, row and column


@pytest.mark.parametrize(
    ("day", "hour", "message"),
    [
        ("2020-03-08", 3, r"rows 2 to 24, column 'RT_Demand': 2020-03-08 has no hour 3"),
        ("2020-03-15", 2, r"2020-03-15 has no hour 2; expected 24 hours a day"),
        ("2020-11-01", 2, r"2020-11-01 has no hour 2"),
    ],
)
def test_an_hour_absent_for_any_other_reason_is_an_error(tmp_path, day, hour, message):
    with pytest.raises(ValueError, match=message) as caught:
        read_days(tmp_path, day_rows(day, *without_hour(hour)))
    assert "2020_smd_hourly.xlsx, sheet 'CT'" in str(caught.value)


def test_an_hour_doubled_on_an_ordinary_day_is_an_error(tmp_path):
    rows = [*day_rows("2020-05-01", LOADS), *day_rows("2020-05-01", LOADS)[6:7]]
    with pytest.raises(ValueError, match=r"row 26, column 'RT_Demand' is '107'.*hour 7 of 2020-05-01 once, but row 8"):
        read_days(tmp_path, rows)


@pytest.mark.parametrize(
    ("column", "cell", "message"),
    [
        (0, "31 May", r"row 5, column 'Date' is '31 May': expected a date"),
        (0, None, r"row 5, column 'Date' is blank: expected a date"),
        (0, 7, r"row 5, column 'Date' is '7': expected a date"),
        (1, "25", r"row 5, column 'Hr_End' is '25': expected an hour ending"),
        (1, "00", r"row 5, column 'Hr_End' is '00'"),
        (1, "03X", r"row 5, column 'Hr_End' is '03X'"),
        (1, None, r"row 5, column 'Hr_End' is blank"),
        (3, "n/a", r"row 5, column 'RT_Demand' is 'n/a': expected a number"),
        (3, "inf", r"row 5, column 'RT_Demand' is 'inf': expected a number"),
        (3, None, r"row 5, column 'RT_Demand' is blank: expected a load in MW"),
    ],
)
def test_a_bad_cell_is_named(tmp_path, column, cell, message):
    rows = [list(row) for row in day_rows("2020-05-01", LOADS)]
    rows[3][column] = cell
    with pytest.raises(ValueError, match=message) as caught:
        read_days(tmp_path, rows)
    assert "2020_smd_hourly.xlsx, sheet 'CT'" in str(caught.value)


def test_a_missing_column_is_named_with_those_that_are_there(tmp_path):
    header = ("Date", "Hr_End", "DA_Demand", "Load", "DA_LMP")
    with pytest.raises(ValueError, match=r"row 1: no column 'RT_Demand' or 'DEMAND'; the columns are Date, .*Load"):
        read_days(tmp_path, day_rows("2020-05-01", LOADS), header)


def test_a_missing_sheet_and_an_empty_one_are_named(tmp_path):
    path = write_xlsx(tmp_path / "book.xlsx", {**NOTES, "CT": []})
    with pytest.raises(ValueError, match=r"no sheet 'VT'; the sheets are Notes, ISO NE CA, CT"):
        read_isone(path, ["VT"])
    with pytest.raises(ValueError, match=r"sheet 'CT' has no rows"):
        read_isone(path, ["CT"])


def test_a_file_that_is_no_workbook_is_named(tmp_path):
    path = tmp_path / "2020_smd_hourly.xlsx"
    path.write_bytes(b"PK but not a workbook")
    with pytest.raises(ValueError, match=r"2020_smd_hourly.xlsx cannot be read as a workbook"):
        read_isone(path)


def test_a_truncated_old_workbook_is_named_wherever_it_ends(tmp_path):
    path = write_xls(tmp_path / "2012_smd_hourly.xls", {"CT": [OLD_HEADER, *day_rows("2012-07-01", LOADS)]})
    whole = path.read_bytes()
    for size in range(0, len(whole) - 1024, 512):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"2012_smd_hourly.xls cannot be read as a workbook"):
            read_isone(path, ["CT"])


def test_the_same_day_in_two_files_is_an_error(tmp_path):
    for name in ("2020_smd_hourly.xlsx", "copy_of_2020_smd_hourly.xlsx"):
        write_xlsx(tmp_path / name, {"CT": [NEW_HEADER, *day_rows("2020-01-01", LOADS)]})
    with pytest.raises(ValueError, match=r"2020-01-01 is both in 2020_smd_hourly.xlsx and in copy_of_2020"):
        read_isone(tmp_path, ["CT"])


def test_a_zone_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"zones has 'NY': choose from CT, ME"):
        read_isone(tmp_path, ["NY"])


def test_a_zone_absent_from_a_tidy_file_is_named(tmp_path):
    (tmp_path / "long.csv").write_text("date,hour_ending,zone,load_mw\n2020-01-01,1,CT,5\n")
    with pytest.raises(ValueError, match=r"column 'zone': no 'VT'; the zones are CT"):
        read_isone(tmp_path / "long.csv", ["VT"])


# ---- the experiment's set


def test_the_load_set_from_two_years_of_workbooks(tmp_path):
    years = {year: year_rows(year) for year in (2020, 2021)}
    for year, (rows, _) in years.items():
        write_xlsx(tmp_path / f"{year}_smd_hourly.xlsx", {**NOTES, "CT": [NEW_HEADER, *rows]})
    stream = load_streams(tmp_path, ["CT"])["CT"]
    loads = np.concatenate([years[2020][1][:-1], years[2021][1]]) / 1000  # the published record lacks one day
    np.testing.assert_array_equal(stream.X, loads[6:-1])
    np.testing.assert_array_equal(stream.y, loads[7:])
    assert (stream.warmup, stream.online, stream.unit) == (90, 633, "GW")
    assert stream.times is not None
    assert str(stream.times[0]) == "2020-01-08"
    np.testing.assert_array_equal(stream.output(23).persistence(), stream.X[:, 23])


def test_a_year_that_is_not_there_is_asked_for(tmp_path):
    write_xlsx(tmp_path / "2020_smd_hourly.xlsx", {"CT": [NEW_HEADER, *day_rows("2020-01-01", LOADS)]})
    with pytest.raises(
        FileNotFoundError, match=r"no day of 2021 for CT; add '2021_smd_hourly.xlsx', from ISO New England"
    ):
        load_streams(tmp_path, ["CT"])


def test_too_few_days_are_refused(tmp_path):
    for year in (2020, 2021):
        rows = day_rows(f"{year}-01-01", LOADS)
        write_xlsx(tmp_path / f"{year}_smd_hourly.xlsx", {"CT": [NEW_HEADER, *rows]})
    with pytest.raises(ValueError, match=r"CT has 2 days: more than 97 are needed"):
        load_streams(tmp_path, ["CT"])


@pytest.fixture(scope="module")
def real_streams():
    return load_streams(real_data("isone_zonal_paper_2020_2021.csv.gz"))


@pytest.mark.parametrize("zone", ZONES)
def test_real_load_gives_the_published_counts_and_persistence_error(real_streams, zone):
    stream = real_streams[zone]
    assert stream.X.shape == stream.y.shape == (723, 24)
    assert stream.online == 633
    error = np.mean((stream.y - stream.persistence())[stream.warmup :] ** 2)
    assert abs(error - PERSISTENCE[zone]) < 6e-5


def test_the_long_record_agrees_with_the_paper_file(real_streams):
    directory = real_data("isone_zonal_hourly_wide_2011_2023.csv.gz")
    long = load_streams(directory / "isone_zonal_hourly_wide_2011_2023.csv.gz")
    for zone, stream in real_streams.items():
        np.testing.assert_array_equal(long[zone].X, stream.X)


def test_the_long_record_is_whole():
    record = read_isone(real_data("isone_zonal_hourly_wide_2011_2023.csv.gz"), ["CT"])["CT"]
    assert record.values.shape == (4747, 24)
    assert np.all(np.diff(record.days) == np.timedelta64(1, "D"))


def test_our_repair_of_the_clock_changes_is_that_of_the_real_file():
    """Take the spring hours out of the real record, and they come back as they were."""
    directory = real_data("isone_zonal_hourly_wide_2011_2023.csv.gz")
    record = read_isone(directory, ["ME"])["ME"]
    for day in (dt.date(2011, 3, 13), dt.date(2020, 3, 8), dt.date(2021, 3, 14)):
        values = record.values[record.days == np.datetime64(day)][0]
        assert values[1] == (values[0] + values[2]) / 2
