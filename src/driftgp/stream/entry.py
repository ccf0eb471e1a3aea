"""What `Online` and `Fleet` have in common: the runtime inside, turns of threads, settings, and files."""

import os
from typing import ClassVar, Self

from driftgp.base.files import loaded, write_atomically
from driftgp.base.locks import turns
from driftgp.models.model import Model
from driftgp.stream import store
from driftgp.stream.runtime import Streams
from driftgp.stream.settings import Settings


class Entry:
    """An object of the user's around a runtime. Several threads may share it: their calls take turns."""

    _kind: ClassVar[str]  # what its files are of

    def _adopt(self, streams: Streams) -> None:
        self._streams = streams
        self.lock = turns(self)

    @property
    def streams(self) -> Streams:
        """The runtime inside, for entry points that store more in one file."""
        return self._streams

    @property
    def settings(self) -> Settings:
        """The settings of its rows."""
        return self._streams.settings

    @classmethod
    def of(cls, streams: Streams) -> Self:
        """The object around a runtime, `streams`."""
        entry = cls.__new__(cls)
        entry._adopt(streams)  # noqa: SLF001
        return entry

    # ---- files -------------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """All of it as bytes, with the start of new series."""
        with self.lock:
            return store.to_bytes(self._kind, self._streams)

    @classmethod
    def from_bytes(cls, data: bytes, model: Model | None = None) -> Self:
        """Take back what `to_bytes` gave as `data`. A model with a part that is not in the library has to be given."""
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of it to the file at `path`. The file is replaced in one step."""
        write_atomically(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str], model: Model | None = None) -> Self:
        """Read what `save` wrote. It then continues with the same bits, in any process.

        Args:
            path: the file.
            model: only for a model with a part that is not in the library (a kernel of your own, a rival): the file
                cannot describe it.
        """
        entry: Self = loaded(path, lambda data: cls.from_bytes(data, model))
        return entry
