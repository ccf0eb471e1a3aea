"""The C++ engine's own arithmetic, by a small program in C++: products, factors and laws, for each processor."""

import shutil
import subprocess
from pathlib import Path

import pytest

import build_engine
from driftgp.engine.library import NoLibrary, library

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / build_engine.ENGINE / "cpp"

try:
    LEVELS = [level for level in build_engine.LEVELS if library().level(level)]
except NoLibrary:
    LEVELS = []
pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler")


@pytest.mark.parametrize("level", LEVELS)
def test_products_factors_and_laws(tmp_path, level):
    compiler, program = build_engine.here(), tmp_path / "arithmetic"
    options = ["-O1", f"-I{SOURCES}"]
    command = [*compiler.options, *compiler.levels[level], *options, str(HERE / "arithmetic.cpp"), "-o", str(program)]
    subprocess.run(command, check=True)
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[:2000]
