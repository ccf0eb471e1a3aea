"""Rows with names: frames, dicts and rows of other libraries mean what arrays mean; nothing is mixed up silently."""

import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pytest

from driftgp import AGP, Fleet, Online, prequential
from driftgp.base import frames
from driftgp.stream.begin import Choice
from driftgp.stream.clock import Clock
from driftgp.stream.plan import MOST, Plan
from driftgp.stream.settings import Settings
from driftgp.wrappers import Gaps, Standardize

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pytest.importorskip("narwhals")

N = 40
RNG = np.random.default_rng(0)
HOURS = pd.date_range("2024-03-01", periods=N, freq="h")
TABLE = pd.DataFrame(
    {
        "temp": RNG.normal(15.0, 5.0, N),
        "holiday": RNG.uniform(size=N) < 0.2,
        "sky": RNG.choice(["clear", "rain", "snow"], N),
    },
    index=HOURS,
)
Y = pd.Series(100.0 + TABLE["temp"] + 5.0 * (TABLE["sky"] == "rain") + RNG.normal(size=N), index=HOURS, name="rides")
MODEL = Gaps(Standardize(AGP(inducing=4, window=12, step="scaled", prior=3.0), adapt=0.99))


class Small:
    """A model that is quick, chosen by 25 rows."""

    first, gaps = 25, True

    def choose(self, X, y):
        return Choice(MODEL)


def online(**options) -> Online:
    return Online(Small(), **options)


def encoded(table=TABLE) -> np.ndarray:
    """The same by hand; categories in the order of their coming."""
    skies = list(dict.fromkeys(TABLE["sky"]))
    one_hot = [(table["sky"] == sky).to_numpy(float) for sky in skies]
    return np.column_stack([table["temp"], table["holiday"].astype(float), *one_hot])


def polars(table):
    """Without pyarrow."""
    return pl.DataFrame({name: table[name].tolist() for name in table.columns})


def read(rows) -> tuple[np.ndarray, Plan]:
    """Rows by codes, and the plan once they have come."""
    table = frames.table(rows)
    assert table is not None
    return Plan.of(table, Settings()).read(table)


def means(rows, targets, form=None) -> np.ndarray:
    return (online() if form is None else form).evaluate(rows, targets).mean


# ---- the same numbers, whatever the form -----------------------------------------------------------------------------


def test_a_frame_means_what_its_numbers_mean():
    known = int((~TABLE["sky"].duplicated()).to_numpy().nonzero()[0][-1]) + 1  # rows until every category has come
    np.testing.assert_array_equal(means(TABLE, Y)[known:], means(encoded(), Y.to_numpy())[known:])


def test_pandas_polars_dicts_and_rows_agree():
    expected = means(TABLE, Y)
    np.testing.assert_array_equal(means(polars(TABLE), pl.Series(Y.tolist())), expected)
    np.testing.assert_array_equal(means(TABLE.to_dict("records"), Y.tolist()), expected)
    for rows in (
        TABLE.to_dict("records"),
        [row for _, row in TABLE.iterrows()],
        list(TABLE.itertuples()),
        list(polars(TABLE).iter_rows(named=True)),
    ):
        one_by_one, made = online(), []
        for row, y in zip(rows, Y.tolist(), strict=True):
            made.append(one_by_one.predict(row).mean.item())
            one_by_one.update(row, y)
        np.testing.assert_array_equal(made, expected)
        assert one_by_one.inputs == ("temp", "holiday", *(f"sky = {sky}" for sky in dict.fromkeys(TABLE["sky"])))


def test_columns_in_another_order_are_put_right():
    stream = online()
    stream.update(TABLE[:30], Y[:30])
    turned = TABLE[["sky", "temp", "holiday"]]
    np.testing.assert_array_equal(stream.predict(turned[30:]).mean, stream.predict(TABLE[30:]).mean)
    stream.update(dict(reversed(TABLE.iloc[30].to_dict().items())), Y.iloc[30])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop(columns="temp"), "'temp' missing"),
        (lambda t: t.assign(rides=1.0), "'rides' is new"),
        (lambda t: t.assign(temp="warm"), "column 'temp' must hold numbers.*'warm'"),
        (lambda t: t.assign(temp=HOURS[30:]), "column 'temp' must hold numbers.*it holds times.*name it as the time"),
        (lambda t: t.assign(temp=timedelta(hours=1)), "column 'temp' .*it holds spans.*hours"),
        (lambda t: t.assign(temp=[[1, 2]] * len(t)), "column 'temp' .*it holds other"),
        (lambda t: t.assign(temp=[1.0, "x"] * (len(t) // 2)), "column 'temp' must hold values of one kind"),
        (lambda t: t[["temp", "holiday"]].to_numpy(float), "X must be a dict or a frame with the columns 'temp'"),
        (lambda t: t[["temp", "temp", "sky", "holiday"]], "'temp' comes twice"),
        (lambda t: polars(t).lazy(), "collect it first"),
    ],
)
def test_columns_that_do_not_fit_are_named_and_nothing_is_learned(change, message):
    stream = online()
    stream.update(TABLE[:30], Y[:30])
    before, wrong = stream.to_bytes(), change(TABLE[30:])
    with pytest.raises(ValueError, match=message):
        stream.predict(wrong)
    with pytest.raises(ValueError, match=message):
        stream.update(wrong, Y[30:].to_numpy())
    assert stream.to_bytes() == before


@pytest.mark.parametrize("text", [None, object, "string", "category"])  # object: text of pandas before 3
def test_missing_values_and_other_kinds_of_numbers_are_read(text):
    rows = pd.DataFrame(
        {
            "whole": pd.array([1, None, 3], dtype="Int64"),
            "flag": pd.array([True, None, False], dtype="boolean"),
            "price": [Decimal("1.5"), None, Decimal("2.5")],
            "sky": pd.Series(["rain", None, "snow"], dtype=text),
        }
    )
    codes, plan = read(rows)
    gap = np.nan
    np.testing.assert_array_equal(codes, [[1.0, 1.0, 1.5, 0.0], [gap, gap, gap, gap], [3.0, 0.0, 2.5, 1.0]])
    expanded = plan.encoder(((), (), (), (0, 1)), ()).expanded(codes)
    np.testing.assert_array_equal(expanded[:, 3:], [[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])  # a blank is no category


def test_a_frame_without_names_is_an_array():
    plain = pd.DataFrame(encoded())
    np.testing.assert_array_equal(means(plain, Y.to_numpy()), means(encoded(), Y.to_numpy()))


def test_rows_that_pandas_would_pair_otherwise_are_refused():
    with pytest.raises(ValueError, match="y must have the index of X; at row 0 they differ: align"):
        online().update(TABLE, Y.sort_index(ascending=False))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("2024-03-01 00:00:00", r"column 'x' holds times as text, such as '2024-03-01 00:00:00'.*Online\(time='x'\)"),
        ("2024-03-01", "column 'x' holds times as text"),
        ("7,4", "column 'x' holds numbers as text, such as '7,4'.*decimal=','"),
        ("-12.50", "column 'x' holds numbers as text"),
    ],
)
def test_numbers_and_times_that_nobody_has_parsed_are_refused(value, message):
    """As categories they would say nothing, and fill twenty inputs."""
    with pytest.raises(ValueError, match=message):
        online().update({"x": value}, 1.0)
    online().update([{"x": "12"}, {"x": "A-7"}], [1.0, 2.0])  # numbers of shops and the like are categories


def test_text_as_target_is_refused_and_named():
    with pytest.raises(ValueError, match="y must hold real numbers; column 'rides' holds text: 'many'"):
        online().update(TABLE[:2], pd.Series(["many", "few"], index=HOURS[:2], name="rides"))


# ---- nothing is known before it comes --------------------------------------------------------------------------------


def late_table() -> "pd.DataFrame":
    """Categories, flags and numbers that come late, at times that are uneven: the typical step is found slowly."""
    table = TABLE.assign(
        sky=["clear"] * 9 + ["rain"] * 5 + ["clear"] * 6 + ["snow"] + ["rain"] * 12 + ["hail"] + ["clear"] * 6,
        road=[None] * 12 + ["wet", "dry"] * 14,
        gauge=[np.nan] * 7 + RNG.normal(3.0, 1.0, N - 7).tolist(),
    )
    hours = np.cumsum(np.r_[3.0, 1.0, 7.0, 2.0, 2.0, 0.0, 5.0, RNG.integers(1, 6, N - 7)])
    return table.set_axis(HOURS[0] + pd.to_timedelta(hours, unit="h"))


@pytest.mark.parametrize("start", [Small(), MODEL], ids=["by the first rows", "given"])
@pytest.mark.parametrize("form", ["rows", "frames of one row"])
def test_a_frame_at_once_is_predicted_as_row_by_row(start, form):
    table = late_table()
    at_once, one_by_one = Online(start), Online(start)
    expected = at_once.evaluate(table, Y.to_numpy())
    made = []
    for i in range(N):
        row = table.iloc[i] if form == "rows" else table.iloc[i : i + 1]
        made.append(one_by_one.predict(row))
        one_by_one.update(row, Y.iloc[i] if form == "rows" else Y.iloc[i : i + 1].to_numpy())
    np.testing.assert_array_equal(expected.mean, [each.mean[0] for each in made])
    np.testing.assert_array_equal(expected.variance, [each.variance[0] for each in made])
    ends = np.array([each.interval(0.9) for each in made])[..., 0].T  # of one row at a time NumPy may round otherwise
    np.testing.assert_allclose(expected.interval(0.9), ends, rtol=1e-14)
    assert one_by_one.inputs == at_once.inputs
    assert one_by_one.state.record.tobytes() == at_once.state.record.tobytes()


def test_the_default_at_once_is_the_default_row_by_row():
    table, y = pd.concat([late_table()] * 11, ignore_index=True), np.tile(Y.to_numpy(), 11)
    table.loc[300:, "sky"] = np.where(np.arange(300, len(table)) % 7 == 0, "fog", "clear")
    table.loc[420:, "sky"] = "storm"  # after the first 400 rows
    at_once, one_by_one = Online(effort="low"), Online(effort="low")
    expected, made = at_once.evaluate(table, y).mean, []
    for row, target in zip(table.to_dict("records"), y.tolist(), strict=True):
        made.append(one_by_one.predict(row).mean.item())
        one_by_one.update(row, target)
    np.testing.assert_array_equal(expected, made)
    assert "sky = fog" in at_once.inputs
    assert "sky = storm" not in at_once.inputs
    assert one_by_one.state.record.tobytes() == at_once.state.record.tobytes()


def test_pieces_of_any_size_are_predicted_alike():
    table, y = late_table(), Y.to_numpy()
    expected, stream, made = online().evaluate(table, y).mean, online(), []
    for begin, end in ((0, 3), (3, 11), (11, 12), (12, 30), (30, N)):
        made += stream.evaluate(table[begin:end], y[begin:end]).mean.tolist()
    np.testing.assert_array_equal(expected, made)


def test_a_column_without_values_becomes_what_its_first_value_is():
    stream = online()
    stream.update({"gauge": None, "road": None, "temp": 1.0}, 1.0)
    assert stream.inputs == ("gauge", "road", "temp")
    stream.update({"gauge": 3.0, "road": "wet", "temp": 1.0}, 1.0)
    assert stream.inputs == ("gauge", "road = wet", "temp")
    with pytest.raises(ValueError, match="column 'gauge' must hold numbers, as at the start; got 'low'"):
        stream.predict({"gauge": "low", "road": "wet", "temp": 1.0})


def test_a_column_without_any_value_is_named_and_costs_nothing():
    table = TABLE[["temp"]].assign(gauge=np.nan, road=pd.Series([None] * N, dtype=object, index=HOURS))
    with pytest.warns(UserWarning, match="columns 'gauge', 'road' have had no value in 25 rows.*leave them out"):
        made = means(table, Y)
    np.testing.assert_array_equal(made, means(TABLE[["temp"]].assign(gauge=0.0, road=0.0), Y))
    with pytest.warns(UserWarning, match="column '1' has had no value in 25 rows"):
        means(table[["temp", "gauge"]].to_numpy(), Y.to_numpy())


# ---- categories ------------------------------------------------------------------------------------------------------


def test_a_category_that_comes_late_has_no_input_and_does_no_harm():
    stream = online()
    stream.update(TABLE[:30], Y[:30])
    new = stream.predict(TABLE.iloc[31].to_dict() | {"sky": "hail"})
    none = encoded(TABLE[31:32])
    none[:, 2:] = 0.0
    plain = Online(stream.model, stream.state)
    np.testing.assert_array_equal(new.mean, plain.predict(none).mean)


def test_a_category_that_comes_among_the_first_rows_gets_an_input():
    first = TABLE.assign(sky="clear")
    stream = online()
    stream.update(first[:10], Y[:10])
    assert stream.inputs == ("temp", "holiday", "sky = clear")
    stream.update(first[10:15].assign(sky="rain"), Y[10:15])
    assert stream.inputs == ("temp", "holiday", "sky = clear", "sky = rain")
    together = online()
    together.update(pd.concat([first[:10], first[10:15].assign(sky="rain")]), Y[:15])
    np.testing.assert_array_equal(stream.predict(first[15:]).mean, together.predict(first[15:]).mean)


def test_text_with_very_many_values_is_said_aloud():
    names = pd.DataFrame({"user": [f"user {i}" for i in range(MOST + 5)]})
    stream = online()
    with pytest.warns(UserWarning, match="column 'user' holds text with more than 20 different values"):
        stream.update(names, np.arange(MOST + 5.0))
    assert stream.inputs == tuple(f"user = user {i}" for i in range(MOST))


def test_numbers_in_a_column_of_text_are_its_categories():
    _, plan = read([{"zone": "1"}, {"zone": "2"}])
    table = frames.table({"zone": 2})
    assert table is not None
    assert plan.read(table)[0].tolist() == [[1.0]]


@pytest.mark.parametrize(("yes", "no"), [("yes", "no"), ("True", "FALSE"), ("on", "Off")])
def test_yes_and_no_are_one_input_and_a_blank_is_missing(yes, no):
    rows = [{"open": [yes, no, yes, None][i % 4], "x": float(i)} for i in range(30)]
    flags = [{"open": [1.0, 0.0, 1.0, np.nan][i % 4], "x": float(i)} for i in range(30)]
    stream = online()
    made = means(rows, np.arange(30.0), stream)
    assert stream.inputs == ("open", "x")
    np.testing.assert_array_equal(made[2:], means(flags, np.arange(30.0))[2:])  # both words have come by then


@pytest.mark.parametrize("mark", ["", "NA", "n/a", "NaN", "null", "None", "-", "--", "#N/A", " "])
def test_a_mark_for_what_is_missing_is_missing(mark):
    numbers = [{"gauge": None if i % 3 == 1 else float(i), "sky": None if i % 4 == 2 else "rain"} for i in range(30)]
    marked = [{name: mark if value is None else value for name, value in row.items()} for row in numbers]
    one_by_one, made = online(), []
    for row, y in zip(marked, np.arange(30.0).tolist(), strict=True):
        made.append(one_by_one.predict(row).mean.item())
        one_by_one.update(row, y)
    np.testing.assert_array_equal(made, means(numbers, np.arange(30.0)))
    assert one_by_one.inputs == ("gauge", "sky = rain")


# ---- times -----------------------------------------------------------------------------------------------------------

GAPS = np.array([1.0, 1.0, 1.0, 5.0, 1.0, 0.0, 1.0, 2.0])
IRREGULAR = TABLE.iloc[:8].set_axis(HOURS[0] + pd.to_timedelta(np.cumsum(GAPS), unit="h"))


def timed(stream, rows, **options):
    stream.update(rows, Y.to_numpy()[:8], **options)
    return stream.state.record.tobytes()


def test_a_datetime_index_a_time_column_and_elapsed_agree():
    plain = IRREGULAR.reset_index(drop=True)
    expected = timed(Online(MODEL), plain, elapsed=GAPS)
    assert timed(Online(MODEL), IRREGULAR) == expected
    assert timed(Online(MODEL), IRREGULAR.tz_localize("Europe/Berlin")) == expected
    named = IRREGULAR.reset_index(names="at")
    assert timed(Online(MODEL, time="at"), named) == expected
    assert timed(Online(MODEL, time="at"), polars(named)) == expected
    assert timed(Online(MODEL, time="at"), named.to_dict("records")) == expected
    assert timed(Online(MODEL), plain, elapsed=IRREGULAR.index.diff()) == expected
    assert timed(Online(MODEL), plain, elapsed=np.diff(IRREGULAR.index, prepend=np.datetime64("NaT"))) == expected
    assert timed(Online(MODEL), plain) != expected


def test_times_tell_row_by_row_what_they_tell_at_once():
    numbers = IRREGULAR[["temp", "holiday"]]
    at_once, one_by_one = Online(MODEL), Online(MODEL)
    at_once.update(numbers, Y.to_numpy()[:8])
    for (_, row), y in zip(numbers.iterrows(), Y.tolist(), strict=False):
        one_by_one.update(row, y)
    assert one_by_one.state.record.tobytes() == at_once.state.record.tobytes()


def test_prequential_takes_the_times_of_a_frame():
    state = MODEL.init(encoded()[:0], np.zeros(0))
    rows = pd.DataFrame(encoded()[:8], index=IRREGULAR.index).add_prefix("x")
    expected = prequential(MODEL, state, rows.to_numpy(), Y.to_numpy()[:8], GAPS)
    for run in (
        prequential(MODEL, state, rows, Y.to_numpy()[:8]),
        prequential(MODEL, state, rows.to_numpy(), Y.to_numpy()[:8], elapsed=rows.index.diff()),
    ):
        assert run.state.record.tobytes() == expected.state.record.tobytes()
    assert prequential(MODEL, state, rows, Y.to_numpy()[:8]).prediction.to_frame().index.equals(rows.index)


def test_a_time_that_is_missing_is_refused():
    rows = IRREGULAR.set_axis([pd.NaT, *IRREGULAR.index[1:]])
    with pytest.raises(ValueError, match="time must not be missing; the index has none in row 0"):
        Online(MODEL).update(rows, Y.to_numpy()[:8])


def test_times_with_and_without_a_zone_do_not_mix():
    stream = Online(MODEL)
    stream.update(IRREGULAR, Y.to_numpy()[:8])
    with pytest.raises(ValueError, match=r"time must come without a time zone, as in the rows before.*tz_localize"):
        stream.update(IRREGULAR.tz_localize("UTC"), Y.to_numpy()[:8])


def test_text_in_the_column_of_the_time_is_refused_with_the_remedy():
    with pytest.raises(ValueError, match=r"column 'at' must hold times or numbers.*'1\.3\.2024'.*to_datetime"):
        Online(MODEL, time="at").update({"at": "1.3.2024", "x": 1.0}, 2.0)
    with pytest.raises(ValueError, match="X must have the column 'at' for the time; it has 'x'"):
        Online(MODEL, time="at").update({"x": 1.0}, 2.0)


def test_a_prediction_needs_no_time():
    stream = Online(MODEL, time="at")
    stream.update({"at": HOURS[0], "x": 1.0}, 2.0)
    expected = stream.predict({"at": HOURS[1], "x": 1.0}).mean
    np.testing.assert_array_equal(stream.predict({"x": 1.0}).mean, expected)
    with pytest.raises(ValueError, match="X must have the column 'at' for the time"):
        stream.update({"x": 1.0}, 2.0)


def test_moments_of_every_kind_are_the_same_moment():
    moment = 1704067200e6
    for value in (
        datetime(2024, 1, 1),
        datetime(2024, 1, 1, tzinfo=UTC),
        date(2024, 1, 1),
        np.datetime64("2024-01-01"),
        pd.Timestamp("2024-01-01"),
    ):
        column = frames.times("time", [value])
        assert column is not None
        assert column.values.tolist() == [moment]


def test_the_typical_step_is_the_median_of_the_first_ones():
    clock = Clock()
    hours = np.datetime64("2024-01-01T00") + np.array([0, 1, 2, 3, 10], "m8[h]")
    column = frames.times("time", hours)
    assert column is not None
    passed, after = clock.passed(column)
    assert passed.elapsed.tolist() == [1.0, 1.0, 1.0, 1.0, 7.0]
    assert after.size == 3600e6


# ---- frames out ------------------------------------------------------------------------------------------------------


def test_predictions_go_back_into_a_frame_with_the_index_of_the_rows():
    stream = online()
    prediction = stream.evaluate(TABLE, Y)
    table = prediction.to_frame()
    assert list(table.columns) == ["mean", "std", "low", "high"]
    assert table.index.equals(TABLE.index)
    np.testing.assert_array_equal(table["low"], prediction.interval(0.95)[0])
    assert prediction.rows(slice(3, 6)).to_frame().index.equals(TABLE.index[3:6])
    out = stream.predict(polars(TABLE)).to_frame(level=[0.5, 0.9])
    assert isinstance(out, pl.DataFrame)
    assert out.columns == ["mean", "std", "low-50", "high-50", "low-90", "high-90"]
    assert isinstance(stream.predict(TABLE.iloc[0]).to_frame(library="polars"), pl.DataFrame)


def test_several_outputs_have_columns_of_their_own():
    stream = online()
    stream.update(TABLE, np.column_stack([Y, -Y]))
    assert list(stream.predict(TABLE[:2]).to_frame().columns[:5]) == ["mean 0", "std 0", "low 0", "high 0", "mean 1"]


# ---- fleets ----------------------------------------------------------------------------------------------------------


def test_a_fleet_takes_frames_and_dates():
    keys = np.where(np.arange(N) % 2 == 0, "north", "south")
    plain, by_date, by_index = Fleet(MODEL), Fleet(MODEL), Fleet(MODEL)
    expected = plain.evaluate(keys, encoded(), Y.to_numpy(), np.arange(N) / 2.0)
    dated = by_date.evaluate(pd.Series(keys), TABLE.reset_index(drop=True), Y.to_numpy(), time=pd.Series(HOURS))
    indexed = by_index.evaluate(keys, TABLE, Y)
    first = ~pd.DataFrame(
        {"key": keys, "sky": TABLE["sky"].to_numpy()}
    ).duplicated()  # a category that is new to its key
    np.testing.assert_array_equal(dated.mean, indexed.mean)
    np.testing.assert_array_equal(indexed.mean[~first], expected.mean[~first])
    assert indexed.to_frame().index.equals(TABLE.index)
    assert by_date.times(["north"]) == np.datetime64(HOURS[-2])
    back = Fleet.from_bytes(by_index.to_bytes(), MODEL)
    np.testing.assert_array_equal(back.predict(["north"], TABLE[:1]).mean, by_index.predict(["north"], TABLE[:1]).mean)
    with pytest.raises(ValueError, match="'sky' missing"):
        back.predict(["north"], TABLE[:1].drop(columns="sky"))
    with pytest.raises(ValueError, match="time must hold dates, as in the rows before"):
        back.update(["north"], TABLE[:1].reset_index(drop=True), [1.0], time=[3.0])


# ---- without the extra -----------------------------------------------------------------------------------------------

WITHOUT = """
import sys
sys.modules["narwhals"] = None
import numpy as np, pandas as pd, driftgp
online = driftgp.Online()
online.update({"a": 1.0, "sky": "rain"}, 2.0)
online.update(pd.Series({"a": 2.0, "sky": "rain"}), 2.0)
driftgp.Online().update(np.zeros(2), 1.0)
try:
    online.predict(pd.DataFrame({"a": [1.0], "sky": ["rain"]}))
except ModuleNotFoundError as error:
    print(error)
"""


def test_without_narwhals_dicts_work_and_a_frame_is_answered_with_what_to_install():
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (
        'a frame as input or output needs narwhals, which is not installed: pip install "driftgp[frames]"'
    )
