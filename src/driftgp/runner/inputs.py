"""All rows of a table as the inputs and targets of one series: what a run would give its model, at once."""

from datetime import datetime
from typing import NamedTuple

import numpy as np

from driftgp.data.rows import Rows
from driftgp.features import History
from driftgp.runner.observed import Observed
from driftgp.runner.run import Complain, Runner
from driftgp.runner.settings import Settings
from driftgp.runner.warnings import remarks_on, warnings_on_rows


class Inputs(NamedTuple):
    """Rows whose past reaches back far enough, N of them."""

    names: tuple[str, ...]  # of the inputs, D
    X: np.ndarray  # N×D, NaN where a cell is blank
    y: np.ndarray  # N
    time: list[str]  # N, as the file has them; empty strings without a column of times
    clock: list[datetime | None]  # N, the same as dates, where they are dates
    at: np.ndarray  # N, the same in seconds or in the column's own numbers; NaN without
    remarks: tuple[str, ...] = ()  # how the file was read, what was left out, and what is odd about its rows


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
    columns = np.array([sample.columns for sample in samples], np.float64).reshape(len(samples), -1)
    known = np.array([sample.known for sample in samples], np.float64).reshape(len(samples), -1)
    y = np.array([sample.target for sample in samples], np.float64)
    X = History(features).extend(columns, known, y, [sample.clock for sample in samples])
    observed = Observed((*features.columns, *features.known, settings.target))
    if samples:
        at = np.array([sample.at for sample in samples], np.float64)
        observed.see(samples, at, np.concatenate([columns, known, y[:, None]], 1))
    ready = samples[len(samples) - len(X) :]
    return Inputs(
        features.names,
        X,
        y[len(samples) - len(X) :],
        [sample.time for sample in ready],
        [sample.clock for sample in ready],
        np.array([sample.at for sample in ready], np.float64),
        (*remarks_on(settings, runner.schema), *warnings_on_rows(settings, runner.schema, [observed], len(samples))),
    )
