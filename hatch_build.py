"""Put the C++ engine into a wheel, if a compiler is there; without one the package is pure Python."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import platform_tags

sys.path.insert(0, str(Path(__file__).parent))  # hatchling loads this file by its path alone

from build_engine import ENGINE, build, checksum_of, here, in_place, library_name


class CustomBuildHook(BuildHookInterface[Any]):
    """Compile the library into a wheel, or beside its sources for an editable install."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; where that fails, say so and go on. DRIFTGP_WHEEL, of tools/wheels.py, has "tag=library" instead."""
        if "DRIFTGP_WHEEL" in os.environ:
            tag, _, made = os.environ["DRIFTGP_WHEEL"].partition("=")
            self._put(build_data, tag, Path(made) if made else None)
            return
        try:
            library = self._compiled(editable=version == "editable")
        except (OSError, subprocess.CalledProcessError) as error:
            detail = getattr(error, "stderr", None) or error
            self.app.display_warning(f"driftgp without its C++ engine (models run in NumPy, more slowly): {detail}")
        else:
            tag = next(tag for tag in platform_tags() if not tag.startswith(("manylinux", "musllinux")))
            self._put(build_data, tag, library)

    def _compiled(self, *, editable: bool) -> Path | None:
        """The library that a wheel takes along; that of an editable install stays beside its sources."""
        if editable:
            in_place(Path(self.root))
            return None
        self._folder = tempfile.TemporaryDirectory()
        library = Path(self._folder.name) / library_name(sys.platform)
        build(Path(self.root) / ENGINE / "cpp", library, here())
        return library

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove what was compiled: the wheel has it."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()

    def _put(self, build_data: dict[str, Any], tag: str, library: Path | None) -> None:
        build_data["tag"] = f"py3-none-{tag}"
        build_data["pure_python"] = tag == "any"
        if library is not None:
            for file in (library, checksum_of(library)):
                build_data["force_include"][str(file)] = f"driftgp/engine/{file.name}"
