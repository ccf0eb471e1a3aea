"""Without Java or PySpark: an error that says what to install."""

import subprocess
import sys

import pytest

from driftgp.spark import needs


def test_says_what_to_install_without_pyspark(monkeypatch):
    monkeypatch.setattr(needs, "_there", lambda module: module != "pyspark")
    with pytest.raises(ModuleNotFoundError, match=r'needs pyspark.*pip install "driftgp\[spark\]"'):
        needs.need_pyspark()


@pytest.mark.parametrize(
    ("version", "refused"), [("4.0.5", True), ("3.5.0", True), ("4.1.0", False), ("5.0.0.dev1", False)]
)
def test_an_old_pyspark_is_refused_before_a_stream_fails_with_it(monkeypatch, version, refused):
    monkeypatch.setattr("pyspark.__version__", version)
    if not refused:
        needs.need_pyspark()
        return
    with pytest.raises(ImportError, match=rf"needs PySpark 4\.1 or newer, but {version} is installed: pip install"):
        needs.need_pyspark()


@pytest.mark.parametrize("home", ["/nowhere", None])
def test_says_what_to_install_without_java(monkeypatch, home, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    if home:
        monkeypatch.setenv("JAVA_HOME", home)
    with pytest.raises(RuntimeError, match=r"Spark needs Java, and there is none .*install Java 17 or 21"):
        needs.need_java()


def test_says_what_to_install_for_an_old_java(monkeypatch, tmp_path):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"needs Java 17 or 21, but .* says: openjdk version .1\.8"):
        needs.need_java()


def test_importing_driftgp_imports_no_spark():
    program = "import driftgp, driftgp.fleet, sys; assert not {'pyspark', 'pandas', 'pyarrow'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)
