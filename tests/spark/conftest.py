"""What the tests of the Spark jobs share: one Spark for all of them."""

from collections.abc import Iterator

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
def spark(java_in_a_hurry: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Spark on two cores."""
    scratch = tmp_path_factory.mktemp("scratch")
    spark = session("tests", cores=2, spark_local_dir=scratch, spark_driver_memory="1g")
    spark.sparkContext.setLogLevel("OFF")
    yield spark
    spark.stop()
