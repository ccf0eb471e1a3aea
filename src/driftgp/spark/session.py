"""A Spark session with the settings that a job wants."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

from driftgp.spark.needs import need_java

_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def settings() -> dict[str, str]:
    """Spark settings for a job: for `SparkSession.builder.config`, `--conf` of `spark-submit` or spark-defaults.conf.

    A stateful processor needs the RocksDB state store. Its changelog has a micro-batch write what has changed and not
    a whole snapshot. A Python worker, of which there is one per core, keeps to one thread.
    """
    state_store = "spark.sql.streaming.stateStore"
    environment = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return {
        f"{state_store}.providerClass": _ROCKSDB,
        f"{state_store}.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.python.worker.reuse": "true",
        "spark.python.authenticate.socketTimeout": "60s",  # on a busy machine a worker takes its time to start
        **{f"spark.executorEnv.{name}": value for name, value in environment.items()},
    }


def session(
    name: str = "driftgp",
    *,
    cores: int | str = "*",
    **options: Any,
) -> SparkSession:
    """Start Spark in this process, or say what to install.

    Args:
        name: of the application.
        cores: how many to use, "*" for all.
        options: further Spark settings, with underscores for dots.
    """
    need_java()
    # One partition per core: each is a task and a state store, whose commit costs more than the work of a small bucket.
    partitions = os.cpu_count() or 1 if cores == "*" else int(cores)
    chosen = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(partitions),
        **settings(),
        **{option.replace("_", "."): str(value) for option, value in options.items()},
    }
    builder = SparkSession.builder.master(f"local[{cores}]").appName(name)
    for option, value in chosen.items():
        builder = builder.config(option, value)
    with _this_python():
        spark: SparkSession = builder.getOrCreate()
    return spark


@contextmanager
def _this_python() -> Iterator[None]:
    """Make workers run this Python, unless the environment names another one, which Spark reads when it starts."""
    if "PYSPARK_PYTHON" in os.environ:
        yield
        return
    os.environ["PYSPARK_PYTHON"] = sys.executable
    try:
        yield
    finally:
        del os.environ["PYSPARK_PYTHON"]
