"""Files as people have them: read right, value by value, or refused with a message that says what to do."""

import csv
import datetime as dt
import io
import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftgp.runs import Run, settings_from
from driftgp.tables.blocks import Block, time_texts
from driftgp.tables.dates import ORDERS, Dates, as_times
from driftgp.tables.deciding import Orders
from driftgp.tables.layout import find_delimiter, find_encoding
from driftgp.tables.numbers import as_numbers, marks_of
from driftgp.tables.rows import csv_rows
from tests.messy_files import MESSY


def read(expected, **more):
    """The rows that a run would take from a file, with the run."""
    given = {"target": expected.target, "model": "persistence", "lags": 1} | expected.options | more
    settings = settings_from(given)
    with settings.open(str(expected.path)) as rows:
        run = Run(settings, rows)
        return run, Block.joined(list(run.blocks()))


@pytest.mark.parametrize("name", MESSY)
def test_a_messy_file_is_read_right_or_refused_with_what_to_do(name, tmp_path):
    expected = MESSY[name](tmp_path)
    if expected.refusal:
        with pytest.raises(ValueError, match=r".") as refused:
            read(expected)
        assert expected.refusal in str(refused.value)
        assert expected.path.name in str(refused.value)
    if expected.remedy or not expected.refusal:
        check(expected, *read(expected, **expected.remedy))


def check(expected, run, block):
    written, columns = run.facts.written, block.table.columns
    np.testing.assert_array_equal(columns[expected.target].values, expected.targets)
    if expected.times is not None:
        assert time_texts(block, written) == expected.times
    for name, values in (expected.columns or {}).items():
        np.testing.assert_array_equal(columns[name].values, values)
    assert expected.columns is None or {*columns} == {*expected.columns, expected.target, *written.time[:1]}
    assert expected.note == "" or any(expected.note in note for note in written.notes)
    assert expected.left_out == "" or any(expected.left_out in column for column in written.left_out)


def test_an_hour_that_the_clocks_leave_out_is_no_gap_in_times_with_offsets(tmp_path):
    _, block = read(MESSY["clocks_that_go_forward"](tmp_path))
    assert set(np.diff(block.table.columns["time"].values)) == {3.6e9}


# ---- numbers ---------------------------------------------------------------------------------------------------------

NUMBERS = st.floats(-1e9, 1e9, allow_nan=False).map(lambda value: round(value, 2))


APART = [",", "'", " ", "\u202f", ""]


def turned(cells):
    """Numbers with their points as commas, and their commas as points."""
    return [cell.translate(str.maketrans(",.", ".,")) for cell in cells]


@settings(deadline=None)
@given(st.lists(st.tuples(NUMBERS, st.sampled_from(APART)), min_size=1))
def test_a_number_is_read_as_it_was_written(made):
    values = [value for value, _ in made]
    cells = [f"{value:,.2f}".replace(",", apart) for value, apart in made]
    for decimal, written in (("point", cells), ("comma", turned(cells))):
        read, bad = as_numbers(pl.Series(written), decimal)
        assert read.tolist() == values
        assert not bad.any()


@settings(deadline=None)
@given(st.lists(NUMBERS, min_size=1))
def test_what_decides_a_decimal_mark_is_read_in_no_other_way(values):
    cells = [f"{value:,.2f}" for value in values]
    assert marks_of(pl.Series(cells)).point.all()
    assert marks_of(pl.Series(turned(cells))).comma.all()
    assert as_numbers(pl.Series(cells), "comma")[1].all()


def test_what_is_nearly_a_number_is_none():
    cells = ["1,23,456", "1.2.3", "1,234,56", "12 34", "0,123,456", "--5", "5 MW", "1e", "inf", "1_000", "1e999"]
    assert as_numbers(pl.Series(cells))[1].all()


# ---- dates -----------------------------------------------------------------------------------------------------------

TIMES = st.datetimes(dt.datetime(1971, 1, 1), dt.datetime(2068, 1, 1)).map(lambda time: time.replace(microsecond=0))
FORMS = {"day-first": "%d{0}%m{0}%Y", "month-first": "%m{0}%d{0}%Y"}


@settings(deadline=None)
@given(
    st.lists(TIMES, min_size=1, max_size=30),
    st.sampled_from(sorted(FORMS)),
    st.sampled_from("/-"),
    st.sampled_from(["%H:%M:%S", "%I:%M:%S %p"]),
)
def test_a_date_is_read_as_it_was_written(times, order, mark, clock):
    found = Dates(pl.Series([time.strftime(f"{FORMS[order].format(mark)} {clock}") for time in times]))
    expected = np.array(times, "M8[us]").astype(float)
    np.testing.assert_array_equal(found.read(order), expected)
    single = found.single()  # without an order: right, or not at all
    assert ((single == expected) | np.isnan(single)).all()


@settings(deadline=None)
@given(st.lists(TIMES, min_size=1, max_size=30), st.sampled_from(sorted(FORMS)))
def test_no_date_rules_out_the_order_in_which_it_was_written(times, order):
    orders = Orders()
    orders.see(np.arange(len(times)), pl.Series([time.strftime(FORMS[order].format("/")) for time in times]))
    assert order in orders.possible
    assert orders.matters == all(time.day <= 12 for time in times) * any(time.day != time.month for time in times)


ANY_TEXT = st.text(max_size=20) | st.text("0123456789/-.: apmAPMTZ+,", max_size=25)


@settings(deadline=None)
@given(st.lists(ANY_TEXT, min_size=1), st.sampled_from([None, *ORDERS]))
def test_any_text_is_a_time_or_none(cells, order):
    times = as_times(pl.Series(cells).str.strip_chars(), order)
    assert (np.isfinite(times.at) | times.bad).all()
    assert not (times.dated & times.bad).any()


# ---- layouts ---------------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.lists(st.tuples(TIMES, NUMBERS, NUMBERS), min_size=2, max_size=20), st.sampled_from([",", ";", "\t", "|"]))
def test_what_stands_between_cells_is_found(rows, mark):
    lines = ["time,a,b".replace(",", mark), *(f"{t}{mark}{a}{mark}{b}" for t, a, b in rows)]
    assert find_delimiter(lines) == mark
    if mark != ",":  # decimal commas change nothing
        assert find_delimiter([line.replace(".", ",") for line in lines]) == mark


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
def test_text_is_read_in_the_encoding_in_which_it_was_written(encoding, tmp_path):
    path = tmp_path / "text.csv"
    path.write_bytes("straße,y\nKöln,1\nÉvry,2\n".encode(encoding))
    assert find_encoding(path.read_bytes()) in (encoding, "utf-8")
    with settings_from({"target": "y"}).open(str(path)) as rows:
        assert rows.take(9).cells.rows() == [("Köln", "1"), ("Évry", "2")]
        assert rows.header == ("straße", "y")


CELLS = st.text('ab,;"\n #1é', max_size=4) | st.just("12.5")


@settings(deadline=None)
@given(
    st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=12),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.sampled_from(["\n", "\r\n"]),
    st.integers(1, 100),
)
def test_rows_that_are_read_by_columns_are_those_of_a_plain_reader(rows, quoting, ending, size):
    text = io.StringIO(newline="")
    csv.writer(text, quoting=quoting, lineterminator=ending).writerows([("x", "y"), *6 * [("1", "2")], *rows])
    data = text.getvalue().encode()
    stream = [data[begin : begin + size] for begin in range(0, len(data), size)]
    found = csv_rows("here", stream, delimiter=",").take(99)
    plain = csv.reader(io.StringIO(text.getvalue(), newline=""), strict=True)
    numbers, expected = [], []
    for cells in plain:
        if cells != ["x", "y"] and any(map(str.strip, cells)):
            numbers.append(plain.line_num - "".join(cells).count("\n"))
            expected.append(tuple(cells))
    assert found.cells.rows() == expected
    assert found.numbers.tolist() == numbers
    assert found.fault is None


@settings(deadline=None)
@given(
    st.lists(st.dictionaries(st.sampled_from("abc"), st.integers() | st.booleans() | st.none(), min_size=1), min_size=1)
)
def test_json_lines_are_a_table_whatever_keys_are_missing(objects):
    lines = [json.dumps(each).encode() + b"\n" for each in objects]
    rows = csv_rows("here", lines, json=True)
    named = [dict(zip(rows.header, cells, strict=True)) for cells in rows.take(999).cells.rows()]
    assert len(named) == len(objects)
    for cells, each in zip(named, objects, strict=True):
        assert {key: cell for key, cell in cells.items() if cell} == {
            key: str(value).lower() for key, value in each.items() if value is not None
        }
