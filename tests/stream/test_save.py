"""A stream that is saved at any moment goes on to the last bit, whatever its settings and whatever it waits for."""

import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driftgp import Fleet, Online

Rows = list[dict[str, Any]]
QUICK, SLOW, ELSEWHERE = range(30), range(30, 500), 3  # cases; of the quick ones so many in a new process
START = datetime(2024, 1, 1)


class Case:
    """Random settings, random rows, and a moment among them."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = np.random.default_rng(seed)
        self.timed, self.table = bool(rng.random() < 0.6), bool(rng.random() < 0.5)
        self.horizon = int(rng.choice([1, 1, 2, 7]))
        given: dict[str, Any] = {"horizon": self.horizon, "effort": "low"}
        if self.timed:
            given["time"] = "at"
            given["calendar"] = [(), (), "day", True][rng.integers(4)]
            given["holidays"] = [(), ["2024-01-03"]][rng.integers(2)]
        given["lags"] = [(), (), int(rng.integers(1, 4)), [self.horizon, self.horizon + 9]][rng.integers(4)]
        given["missing"] = ["carry", "carry", "skip"][rng.integers(3)]
        if self.table:
            given |= {"target": "y", "features": ["x"], "others": ["late", "ignored"][rng.integers(2)]}
        self.given = given
        self.rows = self._rows(int(rng.choice([12, 60, 420, 440])))
        late = [0, 1, rng.integers(2, len(self.rows)), len(self.rows) - 12, len(self.rows) - 1]
        self.moment = int(late[rng.integers(5)])
        self.by_id = bool(rng.random() < 0.4)
        self.fleet = bool(rng.random() < 0.25)

    def _rows(self, count: int) -> Rows:
        rng, rows = self.rng, []
        hours = np.cumsum(rng.choice([1, 1, 1, 1, 2, 5], count))
        skies = ["clear", "rain", "snow", None, "NA"]
        for i, hour in enumerate(hours.tolist()):
            row = {
                "x": float(rng.normal()),
                "sky": skies[rng.integers(min(1 + i // 4, 5))],
                "open": ["yes", "no"][i % 2],
            }
            if rng.random() < 0.05:
                row["x"] = None
            if self.timed:
                row["at"] = START + timedelta(hours=int(hour))
            target = float(rng.normal() + hour % 24)
            row["y"] = None if rng.random() < 0.05 else target
            rows.append(row)
        if self.timed and count > 40:  # a stamp of 2099, a row that comes late
            rows[count // 2]["at"] = datetime(2099, 1, 1)
            rows[count // 3]["at"] = rows[count // 3 - 5]["at"]
        return rows

    # ---- what is done with the rows

    def stream(self) -> Online | Fleet:
        return Fleet(key="who", **self.given) if self.fleet else Online(**self.given)

    def follow(self, stream: Any, begin: int, end: int) -> list[np.ndarray]:
        """Rows from a place to another, in pieces or one at a time; what was said of them."""
        made: list[np.ndarray] = []
        if self.fleet:
            rows = [{**row, "who": ["a", "b", "c"][i % 3]} for i, row in enumerate(self.rows)][begin:end]
            some = [{name: value for name, value in row.items() if name != "y"} for row in rows]
            for i in range(0, len(rows), 37):
                part = slice(i, i + 37)
                y = [np.nan if row["y"] is None else row["y"] for row in rows[part]]
                found = stream.evaluate(rows[part]) if self.table else stream.evaluate(*self._keyed(some[part]), y)
                made += [found.mean, *found.interval(0.9)]
            return made
        for i in range(begin, end):
            row = dict(self.rows[i])
            y = row["y"] if self.table else row.pop("y")
            y = np.nan if y is None else y
            if self.by_id:
                if i >= 3:
                    stream.update(y=self._target(i - 3), id=f"row {i - 3}")
                prediction = stream.predict(row, id=f"row {i}")
            elif self.table:
                prediction = stream.evaluate([row])
            else:
                prediction = stream.predict(row)
                stream.update(row, y)
            made += [prediction.mean, *prediction.interval(0.9)]
        return made

    def _keyed(self, rows: Rows) -> tuple[list[str], Rows]:
        return [row["who"] for row in rows], rows

    def _target(self, i: int) -> float:
        y = self.rows[i]["y"]
        return np.nan if y is None else y

    def expected(self) -> tuple[Any, list[np.ndarray]]:
        """The stream at the moment, and what it says of the rows after it, without a stop."""
        stream = self.stream()
        self.follow(stream, 0, self.moment)
        return stream, self.follow(stream, self.moment, len(self.rows))

    def at_the_moment(self) -> Any:
        stream = self.stream()
        self.follow(stream, 0, self.moment)
        return stream


def check(seed: int, folder: Path | None = None) -> None:
    case = Case(seed)
    _, expected = case.expected()
    stream = case.at_the_moment()
    data = stream.to_bytes()
    if folder is None:
        other = type(stream).from_bytes(data)
        assert other.to_bytes() == data, "what was read is not what was written"
        found = case.follow(other, case.moment, len(case.rows))
    else:
        path = folder / "stream.bin"
        stream.save(path)
        program = f"from tests.stream.test_save import go_on; go_on({seed}, {str(path)!r})"
        root = Path(__file__).parents[2]
        subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, cwd=root, capture_output=True)
        found = [np.load(f"{path}.npy")]
        expected = [np.concatenate(expected)]
    for one, two in zip(found, expected, strict=True):
        assert one.tobytes() == two.tobytes(), (seed, case.given, case.moment, len(case.rows))


def go_on(seed: int, path: str) -> None:
    """In another process: read the file, go on, and write what was said."""
    case = Case(seed)
    stream: Any = (Fleet if case.fleet else Online).load(path)
    np.save(f"{path}.npy", np.concatenate(case.follow(stream, case.moment, len(case.rows))))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", QUICK)
def test_a_stream_that_was_saved_at_any_moment_goes_on_to_the_last_bit(seed):
    check(seed)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(ELSEWHERE))
def test_it_goes_on_in_a_new_process(seed, tmp_path):
    check(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(10))
def test_hundreds_of_streams_that_were_saved_at_any_moment(part, tmp_path):
    for seed in SLOW[part::10]:
        check(seed, tmp_path if seed % 25 == 0 else None)
