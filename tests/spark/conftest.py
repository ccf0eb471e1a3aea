"""What the tests of the Spark jobs share: one Spark for all of them."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from driftgp.spark import session


@pytest.fixture(scope="session", autouse=True)
def java_in_a_hurry() -> Iterator[None]:
    """Have Java compile without optimising much: it lives for a minute at most, and half its time would go there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        yield


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder for what workers compile: that of the other tests, where there is one."""
    return Path(os.environ.get("JAX_COMPILATION_CACHE_DIR") or tmp_path_factory.mktemp("compiled"))


@pytest.fixture(scope="session")
def spark(java_in_a_hurry: None, compiled: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Spark on two cores."""
    scratch = tmp_path_factory.mktemp("scratch")
    spark = session("tests", cores=2, cache=compiled, spark_local_dir=scratch, spark_driver_memory="1g")
    spark.sparkContext.setLogLevel("OFF")
    yield spark
    spark.stop()
