"""When the C++ engine of a clone is compiled, and by which Pythons a release is tested."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import build_engine
from driftgp.engine import library
from tools import interpreters

REAL = Path(library.__file__).parent / library.NAME
pytestmark = pytest.mark.skipif(not REAL.exists(), reason="there is no compiled library here")


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A clone with a library that was just compiled, and a list of the compilations from then on."""
    engine = tmp_path / build_engine.ENGINE
    (engine / "cpp").mkdir(parents=True)
    for source in (tmp_path / "build_engine.py", engine / "cpp/level.cpp"):
        source.touch()
        os.utime(source, (1e9, 1e9))
    shutil.copy(REAL, engine)
    target = engine / REAL.name
    build_engine.checksum_of(target).write_bytes(build_engine._checksum(target))
    compiled = []
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(build_engine, "build", lambda sources, target, compiler: compiled.append(target))
    return tmp_path, target, compiled


def test_a_library_that_is_newer_than_its_sources_is_not_compiled_again(clone):
    root, target, compiled = clone
    assert build_engine.in_place(root) == target
    assert compiled == []


def touched(root, target):
    os.utime(root / build_engine.ENGINE / "cpp/level.cpp")
    os.utime(target, (1e9, 1e9))


def cut_off(root, target):
    target.write_bytes(target.read_bytes()[:-10])


def without_its_checksum(root, target):
    build_engine.checksum_of(target).unlink()


def no_library(root, target):
    target.write_text("of another system")
    build_engine.checksum_of(target).write_bytes(build_engine._checksum(target))


@pytest.mark.parametrize("change", [touched, cut_off, without_its_checksum, no_library])
def test_a_library_that_is_stale_or_damaged_is_compiled_again(clone, change):
    root, target, compiled = clone
    change(root, target)
    build_engine.in_place(root)
    assert compiled == [target]


def test_another_compiler_is_not_ignored(clone, monkeypatch):
    root, target, compiled = clone
    monkeypatch.setenv("CXX", "clang++")
    build_engine.in_place(root)
    assert compiled == [target]


def test_a_stale_library_goes_where_it_cannot_be_compiled(clone, monkeypatch):
    root, target, _ = clone
    touched(root, target)

    def fails(*_):
        raise subprocess.CalledProcessError(1, "c++", stderr="no compiler")

    monkeypatch.setattr(build_engine, "build", fails)
    with pytest.raises(subprocess.CalledProcessError):
        build_engine.in_place(root)
    assert not target.exists()


def test_every_declared_version_of_python_that_is_here_is_found(tmp_path, monkeypatch):
    versions = interpreters.declared()
    assert versions == sorted(versions, key=lambda version: int(version.partition(".")[2]))
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    other = next(version for version in versions if version != own)
    works, fails = tmp_path / f"versions/{other}.7/bin/python{other}", tmp_path / f"shims/python{other}"
    for path, text in ((works, f"echo Python {other}.7"), (fails, "exit 1")):
        path.parent.mkdir(parents=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", str(fails.parent))
    assert interpreters.found() == {own: Path(sys.executable), other: works}
