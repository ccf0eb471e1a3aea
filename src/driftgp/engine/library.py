"""The compiled library: `cpp/driftgp.h` by ctypes."""

import ctypes
import sys
import zlib
from functools import cache
from importlib import metadata
from pathlib import Path

from driftgp.contract.records import Entry

INTERFACE = 11  # DRIFTGP_INTERFACE
NAME = {"darwin": "libdriftgp.dylib", "win32": "driftgp.dll"}.get(sys.platform, "libdriftgp.so")
# Builds for one kind of processor each, in the order of driftgp.h; the first is the one that suits this processor.
LEVELS = ("best", "plain", "x86_v3", "x86_v4")
_UNKNOWN, _NO_MEMORY = 1, 3
_KINDS = ("f8", "i8")
OTHER_VERSION = "is of another version of driftgp"
REMEDY = (
    "pip install --force-reinstall --no-deps {driftgp} (with --no-binary driftgp where there is no wheel for "
    "this platform, which needs a C++ compiler)"
)


class NoLibrary(Exception):
    """There is no compiled library, or it cannot be used: the file, what is wrong with it, and the remedy."""

    def __init__(self, path: Path, wrong: str, *details: str) -> None:
        """Take the file and what is wrong with it; details that depend on the model become notes of the error."""
        super().__init__(f"{path} {wrong}. To repair it: {REMEDY.format(driftgp=_this_version())}")
        for detail in details:
            self.add_note(detail)


class CallRows(ctypes.Structure):
    """driftgp_rows."""

    _fields_ = (
        ("states", ctypes.c_void_p),
        ("slots", ctypes.c_void_p),
        ("ends", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("x", ctypes.c_void_p),
        ("y", ctypes.c_void_p),
        ("elapsed", ctypes.c_void_p),
        ("next", ctypes.c_void_p),
        ("forecasts", ctypes.c_void_p),
        ("known", ctypes.c_void_p),
        ("known_at", ctypes.c_void_p),
        ("room", ctypes.c_int64),
        ("first", ctypes.c_int64),
        ("seconds", ctypes.c_double),
        ("done", ctypes.c_int64),
    )


class _Field(ctypes.Structure):
    """driftgp_field."""

    _fields_ = (
        ("path", ctypes.c_char * 256),
        ("kind", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("count", ctypes.c_int64),
    )


class Library:
    """The functions of the header; those that fail raise an error with the library's reason."""

    def __init__(self, path: Path) -> None:
        """Load a library, or say by `NoLibrary` why it cannot be used."""
        self.path = path
        if not path.is_file():
            raise NoLibrary(path, "is not there")
        try:
            if damaged(path):
                raise NoLibrary(path, "is damaged")
            loaded = ctypes.CDLL(str(path))
            interface = loaded.driftgp_interface()
            if interface != INTERFACE:
                raise NoLibrary(path, OTHER_VERSION, f"its interface is {interface}, not {INTERFACE}")
            self._bind(loaded)
        # the message of a damaged library may not be text
        except (OSError, AttributeError, UnicodeDecodeError) as error:
            raise NoLibrary(path, f"cannot be loaded; it may be for another system or processor ({error})") from error

    def _bind(self, loaded: ctypes.CDLL) -> None:
        """Take the functions with the types of their arguments."""
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        self._make = loaded.driftgp_make
        self._make.argtypes = (pointer, size, ctypes.c_int64, ctypes.c_int64, ctypes.c_int32, pointer)
        self._level = loaded.driftgp_level
        self._fields = loaded.driftgp_fields
        self._fields.argtypes, self._fields.restype = (pointer, ctypes.c_int32, pointer, size), size
        self._reason = loaded.driftgp_reason
        self._reason.restype = ctypes.c_char_p
        self.free = loaded.driftgp_free
        self.free.argtypes, self.free.restype = (pointer,), None
        self.start = loaded.driftgp_start
        self.start.argtypes = (pointer, pointer, pointer, pointer, ctypes.c_int64)
        self.run = loaded.driftgp_run  # without argtypes, which take half as long again as a call
        self.run_all = loaded.driftgp_run_all
        self.run_all.argtypes = (pointer, pointer, ctypes.c_int64)
        self.complete = loaded.driftgp_complete
        self.complete.argtypes = (pointer, pointer)
        self._follow = loaded.driftgp_follow
        self._follow.argtypes = (pointer, ctypes.c_int32)
        loaded.driftgp_follow_sizes.restype = ctypes.c_int64
        self.follow_sizes = tuple(loaded.driftgp_follow_sizes(kind) for kind in range(4))
        self.from_normal = loaded.driftgp_from_normal
        self.from_normal.argtypes = (pointer, pointer, ctypes.c_int64, pointer, ctypes.c_int64, ctypes.c_int32, pointer)

    def make(self, description: list[float], inputs: int, outputs: int, level: str) -> int:
        """The address of a new model, to be given back by `free`."""
        numbers, made = (ctypes.c_double * len(description))(*description), ctypes.c_void_p()
        self.check(self._make(numbers, len(description), inputs, outputs, LEVELS.index(level), ctypes.byref(made)))
        return made.value or 0

    def follow(self, series: ctypes.Structure) -> None:
        """Take rows of a forecaster in: driftgp_series."""
        self.check(self._follow(ctypes.byref(series), 0))

    def level(self, wanted: str = "best") -> str | None:
        """The build that would be used, or None where there is no such build for this processor."""
        found = self._level(LEVELS.index(wanted))
        return None if found < 0 else LEVELS[found]

    def entries(self, model: int, *, of_forecast: bool) -> list[Entry]:
        """All fields of a state, or of a forecast, as C++ binds them."""
        fields = (_Field * self._fields(model, int(of_forecast), None, 0))()
        self._fields(model, int(of_forecast), fields, len(fields))
        return [Entry(field.path.decode(), _KINDS[field.kind], field.offset, field.count) for field in fields]

    def check(self, code: int) -> None:
        """Raise what a code means."""
        if code == 0:
            return
        reason = (self._reason() or b"").decode()
        if code == _UNKNOWN:
            raise NoLibrary(self.path, OTHER_VERSION, reason)  # Python's table of parts has it
        if code == _NO_MEMORY:
            raise MemoryError(reason)
        raise ValueError(reason)


def damaged(path: Path) -> bool:
    """Whether a library has changed since it was built, such as half written. Loading it could end the process.

    The checksum of its build lies beside it; without one the library counts as undamaged.

    >>> damaged(Path(__file__))
    False
    """
    checksum = path.with_name(f"{path.name}.crc32")
    return checksum.exists() and checksum.read_bytes().strip() != b"%08x" % zlib.crc32(path.read_bytes())


def _this_version() -> str:
    """What pip should install: this version, unless driftgp runs from its source."""
    try:
        return f"driftgp=={metadata.version('driftgp')}"
    except metadata.PackageNotFoundError:
        return "driftgp"


@cache
def library() -> Library:
    """The library that was built with this package."""
    return Library(Path(__file__).parent / NAME)
