"""Rows a second of a fleet on Spark, against one state a key and a model call a row.

    python -m examples.spark_throughput

Both run in one Spark, on the same files and with the same model: a small file has the workers start and compile, and
the others count. The plain way is what one would write first: group by key, a checkpoint in each key's state, and for
every row a prediction and an update.
"""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from driftgp import Online, checkpoint
from driftgp.spark import Job, predict_stream, session
from examples.spark_stream import FEATURES, MODEL, SCHEMA, table

WARM_UP = 200  # keys in the file that does not count


class OneByOne(StatefulProcessor):
    """A state a key, a model call a row."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state."""
        self.state = handle.getValueState("state", "checkpoint binary")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: ARG002
        """Predict and learn."""
        stored = self.state.get()
        if stored is None:
            state = MODEL.init(np.zeros((0, len(FEATURES))), np.zeros(0))
        else:
            state = checkpoint.from_bytes(MODEL, bytes(stored[0]))
        online = Online(MODEL, state)
        answers = []
        for row in pd.concat(rows).sort_values("time").itertuples():
            x = np.array([row.before, row.sine, row.cosine])
            prediction = online.predict(x)
            low, high = prediction.interval()
            answers.append((key[0], row.time, prediction.mean[0], low[0], high[0]))
            online.update(x, row.load)
        self.state.update((checkpoint.to_bytes(MODEL, online.state),))
        yield pd.DataFrame(answers, columns=["meter", "time", "mean", "low", "high"])


def one_by_one(rows: DataFrame) -> DataFrame:
    """The plain way."""
    answers = "meter string, time timestamp, mean double, low double, high double"
    return rows.groupBy("meter").transformWithStateInPandas(OneByOne(), answers, "Append", "None")


def by_fleet(rows: DataFrame) -> DataFrame:
    """The job."""
    return predict_stream(rows, Job(MODEL, key="meter", time="time", features=FEATURES, target="load", buckets=8))


def rows_a_second(answers: DataFrame, folder: Path) -> float:
    """Of all micro-batches but the first."""
    writer = answers.writeStream.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
    query = writer.start(str(folder / "predictions"))
    query.awaitTermination()
    batches = [progress for progress in query.recentProgress if progress.batchId > 0 and progress.numInputRows]
    seconds = sum(progress.durationMs["triggerExecution"] for progress in batches) / 1000
    return sum(progress.numInputRows for progress in batches) / seconds


def measure(spark: SparkSession, folder: Path, keys: int, files: int, hours: int) -> dict[str, float]:
    """Rows a second either way; a file, and so a micro-batch, has so many hours, each a row of every key."""
    incoming = folder / "incoming"
    incoming.mkdir()
    for file in range(files + 1):
        tables = [table(file * hours + hour, keys if file else WARM_UP) for hour in range(hours)]
        pd.concat(tables).to_parquet(incoming / f"{file:03d}.parquet", coerce_timestamps="us")
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(incoming))
    ways = {"one state a key": one_by_one, "fleet": by_fleet}
    return {name: rows_a_second(way(rows), folder / name.replace(" ", "-")) for name, way in ways.items()}


def report(speed: dict[str, float]) -> str:
    """The figures in a line."""
    plain, fleet = speed["one state a key"], speed["fleet"]
    return f"one state a key: {plain:.0f} rows/s; fleet: {fleet:.0f} rows/s; {fleet / plain:.1f} times"


def main() -> None:
    """Run it from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--keys", type=int, default=2000)
    parser.add_argument("--files", type=int, default=2)
    parser.add_argument("--hours", type=int, default=2, help="rows of a key in a file (default 2)")
    parser.add_argument("--cores", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        spark = session("driftgp throughput", cores=options.cores)
        spark.sparkContext.setLogLevel("ERROR")
        print(report(measure(spark, Path(name), options.keys, options.files, options.hours)))
        spark.stop()


if __name__ == "__main__":
    main()
