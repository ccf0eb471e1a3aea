"""The Spark room where PySpark is not installed; with it, tests/spark has the tests."""

import importlib.util

import pytest


@pytest.mark.skipif(importlib.util.find_spec("pyspark") is not None, reason="PySpark is installed here")
def test_says_what_to_install_where_pyspark_is_missing():
    with pytest.raises(ModuleNotFoundError, match=r'needs pyspark.*pip install "driftgp\[spark\]"'):
        import driftgp.spark  # noqa: F401
