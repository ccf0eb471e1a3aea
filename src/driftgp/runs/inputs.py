"""All rows of a table as inputs and targets of one series, as a stream gives them to its model."""

from typing import NamedTuple

import numpy as np

from driftgp.base.frames import Table
from driftgp.runs import words
from driftgp.runs.oddities import Oddities
from driftgp.runs.run import Run
from driftgp.runs.settings import RunSettings
from driftgp.stream.settings import Settings as StreamSettings
from driftgp.tables.blocks import Block, time_texts
from driftgp.tables.rows import Complain, FileRows
from driftgp.tables.written import Written


class FullTable(NamedTuple):
    """All rows of a table, and how a stream reads them."""

    table: Table
    settings: StreamSettings
    remarks: tuple[str, ...]  # how the file was read, what was left out, and what is odd about its rows
    written: Written
    offsets: np.ndarray  # N, seconds ahead of UTC where times say it, else NaN


def read_full_table(
    settings: RunSettings,
    rows: FileRows,
    *,
    most: int | None = None,
    complain: Complain | None = None,
    keyed: bool = False,
) -> FullTable:
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
    return FullTable(whole.table, run.stream.settings, remarks, run.facts.written, whole.offsets)


def _whole(run: Run, most: int | None) -> Block:
    blocks, count = [], 0
    for block in run.blocks():
        blocks.append(block)
        count += len(block)
        if most is not None and count >= most:
            break
    whole = Block.joined(blocks)
    return whole if most is None else whole.rows(np.arange(min(most, len(whole))))


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
    notes = tuple(f"{what}: {'; '.join(found)}" for what, found in lists if found)
    own = words.inputs(run) if inputs else []
    return *notes, *(f"{name.lower()}: {text}" for name, text in own), *warnings_of(run)
