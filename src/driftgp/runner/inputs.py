"""All rows of a table as the inputs and targets of one series: what a run would give its model, at once."""

from datetime import datetime
from typing import NamedTuple

import numpy as np

from driftgp.data.rows import Rows
from driftgp.features import History
from driftgp.runner.run import Complain, Runner
from driftgp.runner.settings import Settings
from driftgp.runner.warnings import remarks_on


class Inputs(NamedTuple):
    """Rows whose past reaches back far enough, N of them."""

    names: tuple[str, ...]  # of the inputs, D
    X: np.ndarray  # N×D, NaN where a cell is blank
    y: np.ndarray  # N
    time: list[str]  # N, as the file has them; empty strings without a column of times
    clock: list[datetime | None]  # N, the same as dates, where they are dates
    at: np.ndarray  # N, the same in seconds or in the column's own numbers; NaN without
    remarks: tuple[str, ...] = ()  # how the file was read, and what was left out


def read_inputs(settings: Settings, rows: Rows, *, most: int | None = None, complain: Complain | None = None) -> Inputs:
    """Read rows, all of them or the first so many.

    Args:
        settings: which columns, lags and calendar; a `group` is refused, since this is one series.
        rows: from the beginning.
        most: rows to read at most.
        complain: called with a line about each malformed row that is left out.
    """
    if settings.group is not None:
        raise ValueError(f"group is {settings.group!r}, but this reads one series: give a file with its rows alone")
    runner = Runner(settings, rows, complain=complain)
    samples, features = runner.samples(most), runner.features
    X = History(features).extend(
        np.array([sample.columns for sample in samples], np.float64).reshape(len(samples), -1),
        np.array([sample.known for sample in samples], np.float64).reshape(len(samples), -1),
        np.array([sample.target for sample in samples], np.float64),
        [sample.clock for sample in samples],
    )
    ready = samples[len(samples) - len(X) :]
    return Inputs(
        features.names,
        X,
        np.array([sample.target for sample in ready], np.float64),
        [sample.time for sample in ready],
        [sample.clock for sample in ready],
        np.array([sample.at for sample in ready], np.float64),
        remarks_on(settings, runner.schema),
    )
