"""Results on disk: Parquet files that are whole or not there, and rows that are known by what they came from.

A row is the run of one model on one output of one stream. Its key is a digest of the model's settings, the engine, the
data and the version of driftgp, so that a changed setting never meets an old result (nor one engine the times of
another), and an interrupted run goes on where it stopped: whatever has its key on disk is done.
"""

import hashlib
import io
import json
import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from driftgp.base import files
from driftgp.engine import engine
from driftgp.models.model import Model
from driftgp.stream.model_json import described
from experiments import environment
from experiments.summary import MEANS
from experiments.tasks import Task

SCHEMA: dict[str, Any] = {
    "key": pl.String,
    "series": pl.String,
    "output": pl.Int64,
    "seconds": pl.Float64,
    "mse": pl.Float64,
    **dict.fromkeys(MEANS, pl.Float64),
    "warmup_seconds": pl.Float64,
    "points": pl.Float64,
    "failed": pl.Int64,
    **dict.fromkeys(("y", "mean", "std"), pl.List(pl.Float32)),
}


# Columns that results of earlier days lack; there they are empty.
LATER = (*(name for name in MEANS if name not in ("coverage", "mape", "nlpd")), "warmup_seconds", "points", "failed")


def keys(model: Model) -> Callable[[Task], str]:
    """What the results of a model are known by, as a function of the task."""
    known = json.dumps([environment.versions()["driftgp"], described(model)], sort_keys=True).removesuffix("]")

    def key(task: Task) -> str:  # of a list of four: version, model, engine, data
        kind = engine(model, *task.sizes).kind
        return hashlib.blake2b(f'{known}, "{kind}", "{task.digest}"]'.encode(), digest_size=16).hexdigest()

    return key


def folder(output: Path, experiment: str, method: str) -> Path:
    """Where the chunks of a method are kept.

    >>> folder(Path("results"), "load", "AGP (24 outputs shared)").as_posix()
    'results/load/AGP-24-outputs-shared'
    """
    return output / experiment / re.sub(r"[^\w.=]+", "-", method).strip("-")


def write(place: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Keep one chunk of rows, in a file named after what is in it."""
    place.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    pl.DataFrame(rows, schema=SCHEMA).write_parquet(buffer)
    name = hashlib.blake2b("".join(row["key"] for row in rows).encode(), digest_size=8).hexdigest()
    files.write_atomically(place / f"{name}.parquet", buffer.getvalue())


def read(place: Path, keys: Collection[str]) -> pl.DataFrame:
    """Rows that are kept under one of these keys, in the order of the keys."""
    chunks = [_rows(path, keys) for path in sorted(place.glob("*.parquet"))]
    found = pl.concat([pl.DataFrame(schema=SCHEMA), *chunks]).unique(["key", "output"], keep="first")
    order = pl.DataFrame({"key": list(keys), "order": range(len(keys))}, schema={"key": pl.String, "order": pl.Int64})
    return found.join(order, on="key").sort("order", "output").drop("order")


def _rows(path: Path, keys: Collection[str]) -> pl.DataFrame:
    try:
        rows = pl.read_parquet(path).filter(pl.col("key").is_in(list(keys)))
        later = [pl.lit(None, SCHEMA[name]).alias(name) for name in LATER if name not in rows.columns]
        return rows.with_columns(later).select(list(SCHEMA))
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{path} holds no results that can be read ({error}): remove it and run again") from error
