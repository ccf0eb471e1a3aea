"""Files as they are written and read: links, leftovers, pipes, full disks."""

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driftgp import Online, checkpoint
from driftgp.base.files import read_whole, remove_leftovers, write_atomically
from driftgp.fleet import Fleet
from driftgp.forecasting import Forecaster

posix = pytest.mark.skipif(os.name != "posix", reason="pipes, links and signals of POSIX")

X = np.arange(20.0)[:, None]


def online() -> Online:
    made = Online()
    made.update(X, X[:, 0])
    return made


def fleet() -> Fleet:
    made = Fleet()
    made.update(["a", "b"] * 10, X, X[:, 0])
    return made


def forecaster() -> Forecaster:
    made = Forecaster(horizon=3)
    made.update(X[:, 0])
    return made


KINDS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "Online": (online, Online.load),
    "Fleet": (fleet, Fleet.load),
    "Forecaster": (forecaster, Forecaster.load),
}


@posix
@pytest.mark.parametrize("kind", KINDS)
def test_a_save_through_a_link_writes_the_file_that_it_points_to(tmp_path, kind):
    make, load = KINDS[kind]
    (tmp_path / "store").mkdir()
    link = tmp_path / "now.gp"
    link.symlink_to(Path("store") / "model.gp")  # which is not there yet
    for _ in range(2):
        make().save(link)
        assert link.is_symlink()
        assert load(link).to_bytes() == load(tmp_path / "store" / "model.gp").to_bytes()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["model.gp", "now.gp", "store"]


@posix
@pytest.mark.parametrize("load", [Online.load, Fleet.load, Forecaster.load, checkpoint.load])
def test_what_is_no_plain_file_is_refused_and_never_waited_for(tmp_path, load):
    pipe = tmp_path / "pipe.gp"
    os.mkfifo(pipe)
    with pytest.raises(ValueError, match=r"pipe\.gp is a pipe: give the name of a plain file"):
        load(pipe)
    with pytest.raises(ValueError, match="is a folder: give the name of a plain file"):
        load(tmp_path)
    with pytest.raises(ValueError, match="is a device"):
        load("/dev/zero")


@posix
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_written_in_the_place_of_a_pipe_or_a_folder(tmp_path, kind):
    pipe = tmp_path / "pipe.gp"
    os.mkfifo(pipe)
    with pytest.raises(ValueError, match=r"pipe\.gp is a pipe"):
        KINDS[kind][0]().save(pipe)
    assert pipe.is_fifo()
    with pytest.raises(ValueError, match="is a folder"):
        write_atomically(tmp_path, b"")


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_disk_is_told_with_the_name_of_the_file_which_stays_as_it_was(tmp_path, monkeypatch, kind):
    path, made = tmp_path / "model.gp", KINDS[kind][0]()
    made.save(path)
    before = path.read_bytes()

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match=r"No space left on device; the file is as it was before: '.*model\.gp'") as told:
        made.save(path)
    assert told.value.errno == errno.ENOSPC
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


KILLED = """
import os, signal, sys
from driftgp.base import files
os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)
files.write_atomically(sys.argv[1], b"half")
"""


@posix
def test_leftovers_of_killed_saves_are_removed_by_the_next_one(tmp_path):
    path, other = tmp_path / "model.gp", tmp_path / "model.gp.old"
    write_atomically(path, b"old")
    for victim in (path, path, other):
        assert subprocess.run([sys.executable, "-c", KILLED, victim], check=False).returncode == -signal.SIGKILL
    assert len(list(tmp_path.glob(".*.part"))) == 2  # the second write has removed what the first one left
    assert path.read_bytes() == b"old"
    write_atomically(path, b"new")
    assert [part.name.startswith(".model.gp.old.") for part in tmp_path.glob(".*.part")] == [True]  # another file's
    remove_leftovers(other)
    assert sorted(tmp_path.iterdir()) == [path]


@posix
def test_the_temporary_file_of_a_writer_at_work_is_never_removed(tmp_path):
    """Writers of one file at once, in threads and in another process: each succeeds, and one of them is last."""
    path = tmp_path / "model.gp"
    text = "import sys; from driftgp.base import files; [files.write_atomically(sys.argv[1], b'x') for _ in range(200)]"
    with subprocess.Popen([sys.executable, "-c", text, path]) as other:
        failed: list[BaseException] = []

        def write(letter: bytes) -> None:
            try:
                for _ in range(100):
                    write_atomically(path, letter * 9)
            except BaseException as error:  # noqa: BLE001
                failed.append(error)

        threads = [threading.Thread(target=write, args=(letter,)) for letter in (b"a", b"b")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert other.wait() == 0
    assert not failed
    assert path.read_bytes() in (b"x" * 9, b"a" * 9, b"b" * 9)
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_of_any_size_is_read_whole(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(range(256)) * 5000)
    assert read_whole(path) == path.read_bytes()
    with pytest.raises(FileNotFoundError, match="nothing"):
        read_whole(tmp_path / "nothing")
