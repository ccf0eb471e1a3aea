"""Checks of Spark's requirements on this machine, with the remedy."""

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

_PACKAGES = {"pyspark": "pyspark", "pandas": "pandas", "pyarrow": "pyarrow", "google.protobuf": "protobuf"}
_PYSPARK = (4, 1)  # older ones fail to store the states of a stream
_JAVA = 17  # the oldest that Spark 4 runs on


def need_pyspark() -> None:
    """Refuse to go on without the Python packages of the extra `spark`."""
    missing = [package for module, package in _PACKAGES.items() if not _there(module)]
    if missing:
        raise ModuleNotFoundError(
            f"driftgp.spark needs {', '.join(missing)}, not installed here: "
            'pip install "driftgp[spark]" (and Java 17 or 21 to run)',
            name=missing[0],
        )
    import pyspark

    if tuple(map(int, re.findall(r"\d+", pyspark.__version__)[:2])) < _PYSPARK:
        least = ".".join(map(str, _PYSPARK))
        raise ImportError(
            f"driftgp.spark needs PySpark {least} or newer, but {pyspark.__version__} is installed: "
            'pip install "driftgp[spark]"'
        )


def _there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it is missing
        return False


def need_java() -> None:
    """Refuse to go on without a Java that Spark 4 runs on."""
    remedy = "install Java 17 or 21 (such as openjdk-17-jre-headless), or set JAVA_HOME to where one is"
    java = _java()
    if java is None:
        where = f"JAVA_HOME is {os.environ['JAVA_HOME']!r}" if "JAVA_HOME" in os.environ else "no java on the path"
        raise RuntimeError(f"Spark needs Java, and there is none ({where}): {remedy}")
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)  # noqa: S603
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    if version is None or int(version[1]) < _JAVA:
        found = answer.stderr.partition("\n")[0] or f"exit code {answer.returncode}"
        raise RuntimeError(f"Spark 4 needs Java 17 or 21, but {java} says: {found}: {remedy}")


def _java() -> str | None:
    """The program that PySpark would start."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=str(Path(home, "bin")) if home else None)
