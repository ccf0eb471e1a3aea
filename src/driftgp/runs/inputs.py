"""All rows of a table as inputs and targets of one series, as a stream gives them to its model."""

from typing import NamedTuple

import numpy as np

from driftgp.base.frames import Table
from driftgp.runs import words
from driftgp.runs.oddities import Oddities
from driftgp.runs.run import Run
from driftgp.runs.settings import Settings
from driftgp.stream.runtime import Streams
from driftgp.stream.settings import Settings as StreamSettings
from driftgp.tables.blocks import Block, time_texts
from driftgp.tables.rows import Complain, Rows
from driftgp.tables.written import Written


class Inputs(NamedTuple):
    """Rows whose past reaches back far enough, N of them."""

    names: tuple[str, ...]  # of the inputs, D
    X: np.ndarray  # N×D, NaN where a cell is blank
    y: np.ndarray  # N
    time: list[str]  # N, as the file has them; empty strings without a column of times
    at: np.ndarray  # N, the same in microseconds or in the column's own numbers; NaN without
    wall: np.ndarray  # N, the same by the clock on the wall; NaN without dates
    dated: bool
    remarks: tuple[str, ...] = ()  # how the file was read, what was left out, and what is odd about its rows


def read_inputs(settings: Settings, rows: Rows, *, most: int | None = None, complain: Complain | None = None) -> Inputs:
    """Read rows, all of them or the first ones.

    Args:
        settings: which columns, lags and calendar; a `key` is refused, since this is one series.
        rows: from the beginning.
        most: rows to read at most.
        complain: called with a line about each malformed row that is left out.
    """
    if settings.key is not None:
        raise ValueError(f"key is {settings.key!r}, but this reads one series: give a file with its rows alone")
    run = Run(settings, rows, complain=complain)
    whole = _whole(run, most)
    written, streams = run.facts.written, run.stream.streams
    names, X, y = matrix(streams, whole)
    first = min(max((*streams.settings.lags, 0)), len(y))  # rows before have no full past
    column = whole.table.columns[written.time[0]] if written.time else None
    at = np.full(len(y), np.nan) if column is None else np.asarray(column.values, np.float64)
    wall = np.full(len(y), np.nan) if column is None else column.clock
    return Inputs(
        names,
        X[first:],
        y[first:],
        time_texts(whole, written)[first:],
        at[first:],
        wall[first:],
        written.dated,
        _remarks(run, whole),
    )


class Whole(NamedTuple):
    """All rows of a table, and how a stream reads them."""

    table: Table
    settings: StreamSettings
    remarks: tuple[str, ...]  # how the file was read, what was left out, and what is odd about its rows
    written: Written
    offsets: np.ndarray  # N, seconds ahead of UTC where times say it, else NaN


def read_whole(
    settings: Settings, rows: Rows, *, most: int | None = None, complain: Complain | None = None, keyed: bool = False
) -> Whole:
    """Read rows, all of them or the first ones, as one table.

    Args:
        settings: which columns there are, and how they are written.
        rows: from the beginning.
        most: rows to read at most.
        complain: called with a line about each malformed row that is left out.
        keyed: whether there may be several series, which have inputs of their own.
    """
    if settings.key is not None and not keyed:
        raise ValueError(f"key is {settings.key!r}, but this reads one series: give a file with its rows alone")
    run = Run(settings, rows, complain=complain)
    whole = _whole(run, most)
    remarks = _remarks(run, whole, inputs=not keyed)
    return Whole(whole.table, run.stream.settings, remarks, run.facts.written, whole.offsets)


def _whole(run: Run, most: int | None) -> Block:
    blocks, count = [], 0
    for block in run.blocks():
        blocks.append(block)
        count += len(block)
        if most is not None and count >= most:
            break
    whole = Block.joined(blocks)
    return whole if most is None else whole.rows(np.arange(min(most, len(whole))))


def matrix(streams: Streams, block: Block) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """Names of the inputs, the inputs N×D, and the targets N of all rows, with every category."""
    read = streams.of_table(block.table, learn=True)
    y = streams.targets(read, None)
    names, X = streams.inputs(read, y)
    return names, X, y[:, 0]


def _remarks(run: Run, block: Block, *, inputs: bool = True) -> tuple[str, ...]:
    """Remarks on how a file was read, on columns left out, on leaks, and on odd rows."""
    from driftgp.runs.warnings import warnings_of

    table, watched = block.table, run.facts.watched
    keys = [""] * len(block) if run.settings.key is None else table.columns[run.settings.key].values
    values = [table.columns[name].values for name in (*watched, run.settings.target)]
    run.oddities = Oddities((*watched, run.settings.target))
    at = table.columns[run.facts.written.time[0]].values if run.facts.written.time else np.full(len(block), np.nan)
    texts = time_texts(block, run.facts.written)
    run.oddities.see(block.lines, keys, at, texts, block.offsets, np.array(values).T)
    run.monitor = None
    lists = (("read", words.read(run)), ("left out", run.facts.written.left_out))
    said = tuple(f"{what}: {'; '.join(found)}" for what, found in lists if found)
    own = words.inputs(run) if inputs else []
    return *said, *(f"{name.lower()}: {text}" for name, text in own), *warnings_of(run)
