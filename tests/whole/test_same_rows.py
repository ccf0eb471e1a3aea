"""The same rows give the same numbers behind every entry point, to the last bit.

Bikes with text, blank cells and missing hours. What is expected comes from `Online.evaluate` on one frame; each entry
point gets the same rows in its own form.
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driftgp import Fleet, Online
from driftgp.data import load_bikes
from driftgp.engine.native import NativeEngine
from driftgp.engine.reference import ReferenceEngine

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pytest.importorskip("narwhals")

ROWS = 520  # more than choose a model, with the longest horizon
STRETCHES = (1620, 5200, 9000)  # rows at which a stretch begins; in the first one winter becomes spring
TARGET, TIME = "count", "time"
KNOWN = ("temperature", "sky", "season", "holiday", "workingday")

CASES: dict[str, Callable[[int], dict[str, Any]]] = {
    "columns": lambda horizon: {"features": KNOWN, "others": "ignored"},
    "derived": lambda horizon: {
        "features": ("holiday",),
        "known": ("workingday",),
        "lags": [horizon, horizon + 1, 24 + horizon],
        "calendar": True,
        "holidays": ["2011-04-15", "2011-09-05"],
    },
}
EFFORTS = ("low", pytest.param("medium", marks=pytest.mark.slow), pytest.param("high", marks=pytest.mark.slow))


@lru_cache
def bikes(stretch: int = 0) -> Any:
    """A stretch of hours: some are not there, some cells are blank, some targets are unknown."""
    begin = STRETCHES[stretch]
    table = load_bikes().drop(columns=["casual", "registered"]).iloc[begin : begin + ROWS + 30].reset_index()
    rng = np.random.default_rng(stretch)
    table = table.drop(index=rng.choice(np.arange(1, len(table)), 30, replace=False)).reset_index(drop=True)
    table[TARGET] = table[TARGET].astype(float).mask(rng.uniform(size=ROWS) < 0.02)
    for name in ("temperature", "sky"):
        table[name] = table[name].astype(object).mask(rng.uniform(size=ROWS) < 0.03, None)
    table["temperature"] = table["temperature"].astype(float)
    return table


def dicts(table: Any) -> list[dict[str, Any]]:
    """Rows as a service has them: plain values, None where there is none."""
    plain = {"Timestamp": lambda value: value.to_pydatetime(), "bool": bool, "float": float}
    rows = table.to_dict("records")
    return [
        {
            name: None if value is None or value != value else plain.get(type(value).__name__, lambda v: v)(value)
            for name, value in row.items()
        }
        for row in rows
    ]


def settings(case: str, horizon: int, effort: str) -> dict[str, Any]:
    return {"target": TARGET, "time": TIME, "horizon": horizon, "effort": effort, **CASES[case](horizon)}


Numbers = tuple[np.ndarray, np.ndarray, np.ndarray]  # mean, and the ends of the interval


def numbers(prediction: Any) -> Numbers:
    return (np.asarray(prediction.mean), *map(np.asarray, prediction.interval(0.95)))


@lru_cache
def expected(case: str, horizon: int, effort: str, stretch: int = 0) -> Numbers:
    return numbers(Online(**settings(case, horizon, effort)).evaluate(bikes(stretch)))


def assert_same(found: Numbers, wanted: Numbers) -> None:
    for name, one, other in zip(("mean", "low", "high"), found, wanted, strict=True):
        differ = np.flatnonzero(~((one == other) | (np.isnan(one) & np.isnan(other))))
        assert differ.size == 0, (name, differ[:5].tolist(), one[differ[:1]], other[differ[:1]])


# ---- entry points ----------------------------------------------------------------------------------------------------


def together(made: list[Any]) -> Numbers:
    return tuple(np.concatenate(parts) for parts in zip(*map(numbers, made), strict=True))  # type: ignore[return-value]


def row_by_row(given: dict[str, Any]) -> Numbers:
    """A row's label comes just before the row `horizon` rows later, with the forecast that was issued for it."""
    online, h, made = Online(**given), given["horizon"], []
    rows = dicts(bikes())
    for i, row in enumerate(rows):
        if i >= h:
            online.update(rows[i - h], issued=made[i - h])
        made.append(online.predict(row))
    return together(made)


def row_by_row_with_ids(given: dict[str, Any]) -> Numbers:
    online, h, made = Online(**given), given["horizon"], []
    rows = dicts(bikes())
    for i, row in enumerate(rows):
        if i >= h:
            target = rows[i - h][TARGET]
            online.update(y=np.nan if target is None else target, id=i - h)
        made.append(online.predict(row, id=i))
    return together(made)


def without_target(given: dict[str, Any]) -> Numbers:
    """Rows and targets apart; the columns that are inputs, and no others."""
    given = dict(given)
    given.pop("target")
    given.pop("others", None)
    online, made = Online(**given), []
    for row in dicts(bikes()):
        x = {name: row[name] for name in (TIME, *given["features"])}
        made.append(online.predict(x))
        online.update(x, np.nan if row[TARGET] is None else row[TARGET])
    return together(made)


def pandas_frame(given: dict[str, Any]) -> Numbers:
    """In pieces of any size."""
    online, table = Online(**given), bikes()
    cuts = [0, 1, 2, 30, 31, 399, 400, 424, 450, ROWS]
    return together([online.evaluate(table[a:b]) for a, b in pairwise(cuts)])


def pandas_index(given: dict[str, Any]) -> Numbers:
    return numbers(Online(**given | {"time": None}).evaluate(bikes().set_index(TIME)))


def polars_frame(given: dict[str, Any]) -> Numbers:
    rows = dicts(bikes())
    return numbers(Online(**given).evaluate(pl.DataFrame({name: [row[name] for row in rows] for name in rows[0]})))


def list_of_dicts(given: dict[str, Any]) -> Numbers:
    return numbers(Online(**given).evaluate(dicts(bikes())))


def fleet_of_one(given: dict[str, Any]) -> Numbers:
    return numbers(Fleet(key="city", **given).evaluate(bikes().assign(city="Washington")))


def fleet_in_pieces(given: dict[str, Any]) -> Numbers:
    fleet, table = Fleet(key="city", **given), bikes().assign(city="Washington")
    cuts = [0, 1, 5, 200, 401, 430, ROWS]
    return together([fleet.evaluate(table[a:b]) for a, b in pairwise(cuts)])


@contextmanager
def written(table: Any, folder: Path) -> Iterator[Path]:
    path = folder / "bikes.csv"
    table.to_csv(path, index=False)
    yield path


def command(given: dict[str, Any], folder: Path) -> Numbers:
    """`driftgp run` on the file."""
    from typer.testing import CliRunner

    from driftgp.cli import app

    out = folder / "out.csv"
    options = {"lags": "0", "calendar": "none"} | {name: value for name, value in given.items() if value}
    words: list[str] = []
    for name, value in options.items():
        if value is True:
            words.append(f"--{name}")
        else:
            words += [f"--{name}", ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)]
    with written(bikes(), folder) as path:
        done = CliRunner().invoke(app, ["run", str(path), *words, "--output", str(out)])
    assert done.exit_code == 0, done.output
    table = pd.read_csv(out, float_precision="round_trip")
    return table["mean"].to_numpy(), table["low"].to_numpy(), table["high"].to_numpy()


def compared(given: dict[str, Any], folder: Path) -> Numbers:
    from driftgp.comparison import backtest

    found = backtest(bikes(), **given, methods=["persistence"], warmup=0)
    return numbers(found.laws["driftgp"])


def scikit_learn(given: dict[str, Any], folder: Path) -> Numbers:
    """It has no forecast before its first row."""
    pytest.importorskip("sklearn")
    from driftgp.sklearn import AGPRegressor

    model: Any = AGPRegressor(time=TIME, effort=given["effort"])
    made, table = [], bikes()
    for i in range(len(table)):
        x, y = table.loc[i:i, [TIME, *given["features"]]], table.loc[i:i, TARGET]
        if i:
            made.append(model.online_.predict(x))
            np.testing.assert_array_equal(model.predict(x), made[-1].mean)
        model.partial_fit(x, y)
    return tuple(np.append(one[0], rest) for one, rest in zip(_wanted(given), together(made), strict=True))  # type: ignore[return-value]


def river(given: dict[str, Any], folder: Path) -> Numbers:
    """It has no intervals."""
    pytest.importorskip("river")
    from driftgp.river import AGPRegressor

    model: Any = AGPRegressor(time=TIME, features=given["features"], effort=given["effort"])
    made = []
    for row in dicts(bikes()):
        x = {name: row[name] for name in (TIME, *given["features"])}
        made.append(model.predict_one(x))
        model.learn_one(x, np.nan if row[TARGET] is None else row[TARGET])
    return np.array(made), *_wanted(given)[1:]


def _wanted(given: dict[str, Any]) -> Numbers:
    return expected("columns", given["horizon"], given["effort"])


def bucket(given: dict[str, Any], folder: Path) -> Numbers:
    """What a worker of Spark does with the rows of its keys, without Spark."""
    pytest.importorskip("pyspark")
    from driftgp.spark.bucket import Bucket
    from driftgp.spark.job import Job

    job: Any = Job(key="city", **given)
    made = Bucket.open(job, None).follow(bikes().assign(city="Washington"))
    return made["mean"].to_numpy(), made["low"].to_numpy(), made["high"].to_numpy()


DIRECT = [
    row_by_row, row_by_row_with_ids, pandas_frame, pandas_index, polars_frame, list_of_dicts, fleet_of_one,
    fleet_in_pieces,
]  # fmt: skip
ELSEWHERE = [command, compared, bucket]
AT_ONCE = [scikit_learn, river]  # learn each row as soon as its label is there, and know all of its columns


@pytest.mark.parametrize("effort", EFFORTS)
@pytest.mark.parametrize("horizon", [1, 24])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("entry", DIRECT)
def test_an_entry_point_gives_the_numbers_of_online(entry, case, horizon, effort):
    assert_same(entry(settings(case, horizon, effort)), expected(case, horizon, effort))


@pytest.mark.parametrize("effort", EFFORTS)
@pytest.mark.parametrize("horizon", [1, 24])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("entry", ELSEWHERE)
def test_a_command_gives_the_numbers_of_online(entry, case, horizon, effort, tmp_path):
    assert_same(entry(settings(case, horizon, effort), tmp_path), expected(case, horizon, effort))


@pytest.mark.parametrize("effort", EFFORTS)
@pytest.mark.parametrize("entry", AT_ONCE)
def test_an_adapter_gives_the_numbers_of_online(entry, effort, tmp_path):
    assert_same(entry(settings("columns", 1, effort), tmp_path), expected("columns", 1, effort))


@pytest.mark.parametrize("effort", EFFORTS)
@pytest.mark.parametrize("case", CASES)
def test_rows_and_targets_that_come_apart_give_the_numbers_of_a_table(case, effort):
    given = settings(case, 1, effort)
    if case == "derived":
        given |= {"features": (*given["features"], *given.pop("known")), "others": "ignored"}
    wanted = numbers(Online(**given).evaluate(bikes()))
    assert_same(without_target(given), wanted)


@pytest.mark.parametrize("effort", EFFORTS)
@pytest.mark.parametrize("horizon", [1, 24])
@pytest.mark.parametrize("case", CASES)
def test_keys_of_a_fleet_give_what_each_gives_alone(case, horizon, effort):
    """Three keys with other categories, other models and times of their own, all mixed."""
    tables = [bikes(stretch).assign(city=f"city {stretch}", place=np.arange(ROWS)) for stretch in range(3)]
    order = np.random.default_rng(7).permutation(3 * ROWS)
    rows = pd.concat(tables, ignore_index=True).assign(order=order.argsort())
    rows = rows.iloc[order]
    rows = rows.assign(turn=rows.groupby("city")["order"].rank(method="first").astype(int) - 1)
    mixed = (
        pd.concat(
            [tables[int(city[-1])].iloc[turn : turn + 1] for city, turn in zip(rows["city"], rows["turn"], strict=True)]
        )
        .drop(columns="place")
        .reset_index(drop=True)
    )  # each city in its own order
    fleet = Fleet(key="city", **settings(case, horizon, effort))
    cuts = [0, 7, 100, 1250, 3 * ROWS]
    found = together([fleet.evaluate(mixed[a:b]) for a, b in pairwise(cuts)])
    for stretch in range(3):
        own = (mixed["city"] == f"city {stretch}").to_numpy()
        assert_same(tuple(part[own] for part in found), expected(case, horizon, effort, stretch))  # type: ignore[arg-type]


# ---- who calls the engine --------------------------------------------------------------------------------------------

ALLOWED = ("driftgp.stream.", "driftgp.models.model", "driftgp.models.admission", "driftgp.engine.")


@contextmanager
def callers(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """How often each module has called an engine to start or run a model."""
    seen: dict[str, int] = {}

    def counted(method: Any) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            module = sys._getframe(1).f_globals["__name__"]
            seen[module] = seen.get(module, 0) + 1
            return method(*args, **options)

        return call

    with monkeypatch.context() as patch:
        for engine in (NativeEngine, ReferenceEngine):
            for name in ("run", "single", "start"):
                patch.setattr(engine, name, counted(getattr(engine, name)))
        yield seen


@pytest.mark.parametrize("entry", [*DIRECT, *ELSEWHERE, *AT_ONCE])
def test_no_entry_point_calls_an_engine_by_itself(entry, monkeypatch, tmp_path):
    given = settings("columns", 1, "low")
    with callers(monkeypatch) as seen:
        entry(given) if entry in DIRECT else entry(given, tmp_path)
    assert seen, "the engine was not called at all"
    assert not [module for module in seen if not module.startswith(ALLOWED)], json.dumps(seen)
