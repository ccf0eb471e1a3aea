"""Check every file that `make wheels` left in dist/, and run what can be run on this machine: `make check-wheels`."""

import re
import sys
import zlib
from email.parser import Parser
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import lief

from build_engine import library_name
from tools import run_wheels
from tools.wheels import TARGETS, arguments, compiler

ROOT = Path(__file__).resolve().parent.parent
LARGEST = 2e6  # bytes of a wheel
GLIBC = (2, 17)
HEADER = "driftgp/engine/cpp/driftgp.h"
LEFT_OUT = {
    ".cpp",
    ".hpp",
    ".map",
    ".pyc",
    ".so",
    ".dylib",
    ".dll",
    ".crc32",
}  # of the sources, and what is made beside them
MADE_BY_LINKER = {"_mh_dylib_header", "__dso_handle"}  # names that Zig's linker gives every library for macOS
# Libraries of each system that ours may need; what C++ needs is linked into it.
GLIBC_LIBRARIES = r"lib(c|m|pthread|dl|rt)\.so\.\d|ld-linux-(x86-64\.so\.2|aarch64\.so\.1)"
NEEDED = {
    "manylinux": GLIBC_LIBRARIES,
    "musllinux": r"libc\.so|libc\.musl-\w+\.so\.1",
    "macosx": r"/usr/lib/libSystem\.B\.dylib|@rpath/libdriftgp\.dylib",  # the second is its own name
    "win": r"(?i:kernel32\.dll|ntdll\.dll|api-ms-win-crt-[\w-]+\.dll|ucrtbase\.dll)",
}
MACHINES = {
    "x86_64": {"X86_64", "AMD64"},
    "amd64": {"X86_64", "AMD64"},
    "aarch64": {"AARCH64", "ARM64"},
    "arm64": {"ARM64"},
}


class Wrong(Exception):
    """A wheel is not as it should be."""


def hold(condition: object, what: str) -> None:
    """Refuse the wheel unless the condition is true."""
    if not condition:
        raise Wrong(what)


def check_contents(path: Path, tag: str) -> bytes | None:
    """Tags, size and files of a wheel; returns its library."""
    library = None if tag == "any" else f"driftgp/engine/{_library_name(tag)}"
    with ZipFile(path) as wheel:
        names = [name for name in wheel.namelist() if not name.endswith("/")]
        stated = Parser().parsestr(wheel.read(next(name for name in names if name.endswith("/WHEEL"))).decode())
        hold(stated.get_all("Tag") == [f"py3-none-{tag}"], f"its tags are {stated.get_all('Tag')}")
        hold(stated["Root-Is-Purelib"] == str(tag == "any").lower(), "purelib is stated wrongly")
        sources = (file for file in (ROOT / "src/driftgp").rglob("*") if file.is_file() and file.suffix not in LEFT_OUT)
        files = {name for name in names if not name.partition("/")[0].endswith(".dist-info")}
        made = {library, f"{library}.crc32"} if library else set()
        expected = {str(file.relative_to(ROOT / "src")) for file in sources} | made
        hold(len(names) == len(set(names)), "a file is in it twice")
        hold(files == expected, f"its files differ from the sources in {sorted(files ^ expected)}")
        hold(path.stat().st_size < LARGEST, f"it has {path.stat().st_size / 1e6:.2f} MB")
        if library is None:
            return None
        checksum, data = wheel.read(f"{library}.crc32").decode().strip(), wheel.read(library)
        hold(checksum == f"{zlib.crc32(data):08x}", "the library's checksum is another one")
        return data


def check_library(tag: str, data: bytes) -> str:
    """What a library exports and needs; returns a word on it."""
    system = re.match("[a-z]+", tag)[0].removesuffix("_")  # type: ignore[index]
    binary: Any = lief.parse(list(data))
    header = (ROOT / "src" / HEADER).read_text()
    promised = set(re.findall(r"^DRIFTGP_API .*?\b(driftgp_\w+)\(", header, re.MULTILINE))
    shown = _exported(binary)
    if system == "macosx":
        shown = {name.removeprefix("_") for name in shown} - MADE_BY_LINKER
    hold(shown == promised, f"it exports other names than the header: {sorted(shown ^ promised)}")
    needed = [str(getattr(library, "name", library)) for library in binary.libraries]
    strange = [name for name in needed if not re.fullmatch(NEEDED[system], name)]
    hold(not strange, f"it needs {strange}")
    machine = _machine(binary)
    hold(
        machine in MACHINES[tag.rpartition("_")[2] if not tag.endswith("x86_64") else "x86_64"], f"it is for {machine}"
    )
    return {"manylinux": _glibc, "macosx": _mac}.get(system, lambda _, __: "")(binary, tag)


def _library_name(tag: str) -> str:
    return library_name(compiler(TARGETS[tag], 1).system)


def _exported(binary: Any) -> set[str]:
    if isinstance(binary, lief.PE.Binary):
        return {str(entry.name) for entry in binary.get_export().entries}
    return {str(symbol.name) for symbol in binary.exported_symbols}


def _machine(binary: Any) -> str:
    header = binary.header
    kind = header.machine_type if isinstance(binary, lief.ELF.Binary) else getattr(header, "machine", None)
    return str((kind if kind is not None else header.cpu_type).name)


def _glibc(binary: Any, _: str) -> str:
    """The newest version of glibc's symbols."""
    stated = [part.name for each in binary.symbols_version_requirement for part in each.get_auxiliary_symbols()]
    newest = max(tuple(map(int, name.removeprefix("GLIBC_").split("."))) for name in stated)
    hold(newest <= GLIBC, f"it needs glibc {newest}")
    return f"glibc {'.'.join(map(str, newest))}"


def _mac(binary: Any, tag: str) -> str:
    """The oldest system that it says it runs on, and the signature without which arm64 refuses to load it."""
    stated = binary.build_version.minos if binary.has_build_version else binary.version_min.version
    oldest = tuple(map(int, tag.split("_")[1:3]))
    hold(tuple(stated[:2]) == oldest, f"it says that it runs on macOS {stated}")
    hold(binary.has_code_signature or not tag.endswith("arm64"), "it has no signature")
    return f"macOS {oldest[0]}.{oldest[1]}"


def main() -> int:
    """Check all files, then run; the number of those that are wrong."""
    lief.logging.disable()
    wrong = 0
    wheels = {path.stem.rpartition("py3-none-")[2]: path for path in sorted((ROOT / "dist").glob("*.whl"))}
    missing = {"any", *arguments(__doc__).parse_args().tags} - set(wheels)
    if missing or len(list((ROOT / "dist").glob("*.tar.gz"))) != 1:
        print(f"dist/ lacks {', '.join(sorted(missing)) or 'the source archive'}: make wheels")
        return 1
    for tag, path in wheels.items():
        try:
            library = check_contents(path, tag)
            word = check_library(tag, library) if library else "no library"
            size = f"{path.stat().st_size / 1e6:.2f} MB, library {len(library or b'') / 1e6:.2f} MB"
            print(f"right    {tag}: {size}, {word}".rstrip(", "))
        except Wrong as error:
            wrong += 1
            print(f"WRONG    {tag}: {error}")
    return wrong + run_wheels.main(wheels)


if __name__ == "__main__":
    sys.exit(min(main(), 1))
