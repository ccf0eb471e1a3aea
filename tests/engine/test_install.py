"""What happens where the compiled library or an extra is missing, and what a report of a problem says."""

import re
import shutil
import subprocess
import sys
import warnings
import zlib
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import driftgp
from driftgp import AGP, diagnostics, engine
from driftgp.engine import description, library, native
from driftgp.engine.library import Library, NoLibrary
from driftgp.kernels import SE
from driftgp.wrappers import Standardize

ROOT = Path(__file__).parents[2]
REAL = Path(library.__file__).parent / library.NAME
CHECKSUM = REAL.with_name(f"{REAL.name}.crc32")
MODEL = AGP(inducing=3, window=8)
needs_library = pytest.mark.skipif(not REAL.exists(), reason="there is no compiled library here")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="the file is made for Linux's loader")


# ---- libraries that cannot be used


def sealed(path):
    """Put the right checksum beside it: it is just as it was built."""
    path.with_name(CHECKSUM.name).write_text(f"{zlib.crc32(path.read_bytes()):08x}\n")


def missing(path):
    pass


def no_library(path):
    path.write_text("this is no library")


def a_folder(path):
    path.mkdir()


def a_head_of_nonsense(path):
    path.write_bytes(b"\x7fELF\x02\x01" + b"\xff" * 4000)


def a_head_and_zeros(path):
    """What a crash may leave of a file that was just written."""
    path.write_bytes(REAL.read_bytes()[:4096].ljust(REAL.stat().st_size, b"\0"))


def without_our_functions(path):
    shutil.copy(np.linalg._umath_linalg.__file__, path)
    sealed(path)


def truncated(path):
    data = REAL.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def for_another_processor(path):
    data = bytearray(REAL.read_bytes())
    data[18:20] = (8).to_bytes(2, "little")  # the machine in an ELF header: MIPS
    path.write_bytes(data)
    sealed(path)


BAD = [
    missing,
    no_library,
    a_folder,
    a_head_of_nonsense,
    pytest.param(a_head_and_zeros, marks=needs_library),
    pytest.param(without_our_functions, marks=on_linux),
    pytest.param(truncated, marks=needs_library),
    pytest.param(for_another_processor, marks=(on_linux, needs_library)),
]


@pytest.fixture
def instead(tmp_path, monkeypatch):
    """Have another file in place of the library."""

    def put(make):
        path = tmp_path / library.NAME
        if CHECKSUM.exists():
            shutil.copy(CHECKSUM, tmp_path)
        make(path)
        monkeypatch.setattr(native, "library", lambda: Library(path))
        return path

    engine._engine.cache_clear()
    engine._say_once.cache_clear()
    monkeypatch.delenv("DRIFTGP_ENGINE", raising=False)
    yield put
    engine._engine.cache_clear()


@pytest.mark.parametrize("make", BAD)
def test_a_bad_library_leaves_numpy_and_a_warning_with_the_file_and_the_remedy(instead, make):
    path = instead(make)
    with pytest.warns(UserWarning, match="runs by NumPy") as said:
        found = engine.engine(MODEL, 2, 1)
    assert found.kind == "reference"
    assert str(path) in str(said[0].message)
    assert "pip install --force-reinstall --no-deps driftgp" in str(said[0].message)
    assert driftgp.describe(MODEL).startswith("reference: ")


@pytest.mark.parametrize("make", BAD)
def test_a_bad_library_is_refused_where_the_native_engine_is_asked_for(instead, make, monkeypatch):
    path = instead(make)
    monkeypatch.setenv("DRIFTGP_ENGINE", "native")
    with pytest.raises(ValueError, match="DRIFTGP_ENGINE is 'native'") as refused:
        engine.engine(MODEL, 2, 1)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize("make", BAD)
def test_a_bad_library_is_told_where_the_user_called(instead, make):
    instead(make)
    X = np.zeros((4, 2))
    with pytest.warns(UserWarning, match="runs by NumPy") as said:
        driftgp.Online().update(X, X[:, 0])
    assert said[0].filename == __file__


def test_an_empty_choice_of_engine_is_none_and_a_wrong_one_is_refused_everywhere(monkeypatch):
    monkeypatch.setenv("DRIFTGP_ENGINE", "")
    assert engine.engine(MODEL, 2, 1).kind == driftgp.describe(MODEL).partition(":")[0]
    monkeypatch.setenv("DRIFTGP_ENGINE", "nonsense")
    for ask in (lambda: engine.engine(MODEL, 2, 1), lambda: driftgp.describe(MODEL)):
        with pytest.raises(ValueError, match="DRIFTGP_ENGINE must be one of 'auto', 'native', 'reference'"):
            ask()


def test_the_version_says_where_an_engine_that_is_asked_for_cannot_be_had(instead, monkeypatch):
    instead(missing)
    monkeypatch.setenv("DRIFTGP_ENGINE", "native")
    assert driftgp.describe(MODEL).startswith("none: DRIFTGP_ENGINE asks for the native one")


def test_what_is_no_model_has_no_engine():
    with pytest.raises(TypeError, match="model must be a model, such as AGP"):
        driftgp.describe(driftgp.Online())


def with_another_interface(monkeypatch):
    monkeypatch.setattr(library, "INTERFACE", 999)


def with_other_records(monkeypatch):
    monkeypatch.setattr(native, "entries", lambda dtype: [])


def without_this_model(monkeypatch):
    name = "driftgp.gp.agp.AGP"
    monkeypatch.setitem(description.PARTS, name, description.PARTS[name]._replace(kind=99))


OTHERS = [with_another_interface, with_other_records, without_this_model]


@needs_library
@pytest.mark.parametrize("change", OTHERS)
def test_a_library_of_another_version_leaves_numpy_and_one_warning(instead, change, monkeypatch):
    path = instead(lambda path: shutil.copy(REAL, path))
    change(monkeypatch)
    models = MODEL, Standardize(MODEL)
    with pytest.warns(
        UserWarning, match="is of another version of driftgp. To repair it: pip install --force-reinstall"
    ) as said:
        kinds = [engine.engine(model, 2, 1).kind for model in models]
    assert kinds == ["reference", "reference"]
    assert all(driftgp.describe(model).startswith("reference: ") for model in models)
    assert len(said) == 1
    assert str(path) in str(said[0].message)
    assert diagnostics.versions()["engine"].startswith("reference: ")


@needs_library
@pytest.mark.parametrize("change", OTHERS)
def test_a_library_of_another_version_is_refused_where_the_native_engine_is_asked_for(instead, change, monkeypatch):
    path = instead(lambda path: shutil.copy(REAL, path))
    change(monkeypatch)
    monkeypatch.setenv("DRIFTGP_ENGINE", "native")
    with pytest.raises(ValueError, match=r"DRIFTGP_ENGINE is 'native', but .* of another version") as refused:
        engine.engine(MODEL, 2, 1)
    assert str(path) in str(refused.value)
    assert refused.value.__cause__.__notes__  # what differs


class Own(SE):
    """A kernel that C++ cannot know."""


def test_a_part_of_the_users_own_runs_by_numpy_without_a_warning_and_is_named(monkeypatch):
    monkeypatch.delenv("DRIFTGP_ENGINE", raising=False)
    model = AGP(Own(), inducing=3, window=8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert engine.engine(model, 2, 1).kind == "reference"
    assert driftgp.describe(model) == "reference: the compiled engine has no Own" or not REAL.exists()
    monkeypatch.setenv("DRIFTGP_ENGINE", "native")
    with pytest.raises(ValueError, match="DRIFTGP_ENGINE is 'native', but"):
        engine.engine(model, 2, 1)


def test_the_warning_comes_once_whatever_is_computed(instead):
    instead(missing)
    X = np.zeros((4, 2))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for size in (2, 3):
            model = AGP(inducing=size, window=8)
            online = driftgp.Online(model, model.init(X, X[:, 0]))
            online.update(X[0], online.predict(X[0]).mean[0])
    assert len(said) == 1


@needs_library
def test_damage_anywhere_is_noticed_before_the_loader_reads_it(tmp_path):
    """A loader that reads a damaged library may end the process."""
    data, path = REAL.read_bytes(), tmp_path / library.NAME
    shutil.copy(CHECKSUM, tmp_path)
    assert not library.damaged(REAL)
    cut = [data[: int(share * len(data))] for share in (0.0, 0.0001, 0.3, 0.9999)]
    changed = [data[:place] + bytes([data[place] ^ 64]) + data[place + 1 :] for place in (209, 4505, 100_000)]
    for other in (*cut, *changed, data + b"more"):
        path.write_bytes(other)
        with pytest.raises(NoLibrary, match="is damaged"):
            Library(path)
    path.write_bytes(data)
    Library(path)
    (tmp_path / CHECKSUM.name).write_bytes(b"\0" * 9)  # a crash may leave this file half written too
    with pytest.raises(NoLibrary, match="is damaged"):
        Library(path)


@needs_library
def test_a_library_without_a_checksum_is_loaded(tmp_path):
    """Whoever changes the library on purpose, such as a distribution that strips it, leaves the checksum out."""
    Library(Path(shutil.copy(REAL, tmp_path)))


# ---- extras that are not installed

HIDE = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

HIDDEN = set(sys.argv.pop(1).split(","))
sys.meta_path.insert(0, Absent())
"""


def without(hidden, program, *arguments):
    """Run a program in a process that finds none of some libraries."""
    command = [sys.executable, "-c", HIDE + program, hidden, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


COMMAND = "from driftgp.__main__ import main; main()"


@pytest.mark.parametrize("missing", ["typer", "rich"])
@pytest.mark.parametrize("arguments", [(), ("demo",), ("run", "--help")])
def test_the_command_without_its_libraries_says_what_to_install_in_one_sentence(arguments, missing):
    done = without(missing, COMMAND, *arguments)
    assert done.returncode == 1
    assert done.stdout == ""
    sentence = r'the command driftgp needs (typer|rich), which is not installed: pip install "driftgp\[cli\]"\n'
    assert re.fullmatch(sentence, done.stderr)


def test_the_command_without_its_libraries_still_says_its_version():
    done = without("typer,rich", COMMAND, "--version")
    assert done.returncode == 0
    assert "\nengine " in done.stdout


def test_each_adapter_says_in_one_sentence_what_to_install():
    program = """
for room in ("sklearn", "river", "skpro", "sktime", "spark", "tables.tables"):
    try:
        __import__(f"driftgp.{room}")
    except ModuleNotFoundError as error:
        print(error)
"""
    done = without("sklearn,river,skpro,sktime,pyspark,pandas,pyarrow,polars,fastexcel", program)
    said = done.stdout.splitlines()
    assert len(said) == 6, done.stderr
    for extra, text in zip(("sklearn", "river", "skpro", "sktime", "spark", "cli"), said, strict=True):
        assert "needs " in text
        assert f'pip install "driftgp[{extra}]"' in text


def test_drawing_without_matplotlib_says_what_to_install():
    program = """
from driftgp.plots.run import health_figure
try:
    health_figure({}, [], "a series")
except ModuleNotFoundError as error:
    print(error)
"""
    done = without("matplotlib", program)
    assert done.stdout == 'drawing needs matplotlib, which is not installed: pip install "driftgp[cli]"\n', done.stderr


# ---- what a report of a problem says


def test_versions_say_what_a_report_needs(capsys):
    driftgp.show_versions()
    said = dict(line.split(" ", 1) for line in capsys.readouterr().out.splitlines())
    assert said["driftgp"] == metadata.version("driftgp")
    assert said["engine"] == driftgp.describe(driftgp.recommended(np.empty((0, 1)), []))
    assert said["Python"].startswith(sys.version.partition(" ")[0])
    assert said["numpy"] == np.__version__
    assert {"platform", "scipy"} <= set(said)
    assert "pytest" not in said  # which only the developers of driftgp need
    assert all(name in said for name in ("typer", "polars", "scikit-learn") if diagnostics.version_of(name))
    assert said == diagnostics.versions()


def test_a_library_that_is_not_installed_has_no_version():
    assert diagnostics.version_of("driftgp-of-nowhere") is None


# ---- from C


@needs_library
@pytest.mark.skipif(not (shutil.which("cc") and shutil.which("make")), reason="there is no C compiler here")
@pytest.mark.skipif(not (ROOT / "examples/c").exists(), reason="the examples are not here")
def test_the_c_example_learns_what_python_learns(tmp_path):
    shutil.copytree(ROOT / "examples/c", tmp_path / "c", ignore=shutil.ignore_patterns("online", "files"))
    command = ["make", "--directory", tmp_path / "c", "demo", f"PYTHON={sys.executable}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("the next mean after C") == 2
