"""States cut in two: what must be stored, and what follows from it.

Much of a record can be computed from the rest: `Model.derived` names those fields, `Model.complete` computes them. So
only the essential fields are stored, and of the others the bits in which they differ from what `complete` makes of
the essential ones (their exclusive or). Where a step ends with the same computation, as one with a gradient step does,
there is no difference; where numbers were added up sample by sample, few of the last bits differ.
"""

import hashlib
import zlib
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from driftgp import gate
from driftgp.model import Layout, Model, State

WORD = np.dtype("<u8")  # in files; every field of a record is one or more of these


class Cut(NamedTuple):
    """One state in two parts, of words."""

    essential: np.ndarray
    difference: np.ndarray  # of the derived words from what `complete` makes of the essential ones


class Joined(NamedTuple):
    """One state put together."""

    words: np.ndarray
    exact: bool  # whether they are those that were cut, to the last bit


class Essence:
    """The states of one model and one layout, to be cut and put together."""

    def __init__(self, model: Model, layout: Layout) -> None:
        """Find out which words of a record are essential."""
        self.model, self.layout = model, layout
        self.dtype, self.essential = _essential(model, layout)
        self.size = int(np.count_nonzero(self.essential))
        self.rest = self.essential.size - self.size
        self._derived = gate.derived_fields(model, self.dtype)
        self._scratch = State.zeros(model, layout)
        self._words = words_of(self._scratch.record.reshape(1))[0]
        self._engine = self._scratch.engine()

    def cut(self, record: np.ndarray) -> Cut:
        """Take one record (of shape ()) apart."""
        words = words_of(record.reshape(1))[0]
        essential = words[self.essential]
        self._take(essential)
        self._complete(essential)
        return Cut(essential, words[~self.essential] ^ self._words[~self.essential])

    def join(self, essential: np.ndarray, difference: np.ndarray | None, digest: str | None) -> Joined:
        """Put one record from outside together, once it is through the gate.

        Where the digest shows that this machine rounds differently, or where the derived fields do not follow from the
        others, they are what this machine computes. Without a digest nobody asks.
        """
        self._take(essential)
        gate.check(self.model, self._scratch.record)
        computed = self._complete(essential)
        made = self._words.copy()
        if difference is not None:
            made[~self.essential] ^= difference
        exact = digest is None or digest_of(made) == digest
        if not exact and not computed:
            raise ValueError("state cannot be completed on this machine: its matrices have no factor here")
        if exact and computed and difference is not None and difference.any():
            exact = gate.follows(self._derived, self._record(made), self._scratch.record)
        taken = made if exact else self._words.copy()
        gate.try_out(self._engine, self._record(taken), self.layout)
        return Joined(taken, exact)

    def state(self, words: np.ndarray) -> State:
        """The state that has these words, a copy; they are those of `join`, and so through the gate."""
        return State.own(self.model, self.layout, self._record(words.copy()))

    def _record(self, words: np.ndarray) -> np.ndarray:
        return words.view(self.dtype).reshape(())

    def _take(self, essential: np.ndarray) -> None:
        self._words[self.essential] = essential
        self._words[~self.essential] = 0

    def _complete(self, essential: np.ndarray) -> bool:
        """Compute the derived fields; they are zeros where that is impossible, as it is in every later attempt."""
        if self.rest == 0:
            return True
        try:
            with np.errstate(all="ignore"):  # what is not finite is stored as it is
                self._engine.complete(self._scratch.record)
        except (ArithmeticError, ValueError):  # of NumPy, of C++
            self._take(essential)
            return False
        self._words[self.essential] = essential  # whatever else it may have touched
        return True


@lru_cache(maxsize=64)
def _essential(model: Model, layout: Layout) -> tuple[np.dtype, np.ndarray]:
    """Layout of the records, and which of their words are essential."""
    dtype = gate.record_dtype(model, layout)
    essential = np.ones(dtype.itemsize // WORD.itemsize, bool)
    for field in gate.derived_fields(model, dtype):
        start = field.offset // WORD.itemsize
        essential[start : start + field.numbers] = False
    essential.flags.writeable = False
    return dtype, essential


def words_of(records: np.ndarray) -> np.ndarray:
    """An array of records as rows of words, the same memory."""
    return records.view(np.uint64).reshape(len(records), -1)


def digest_of(words: np.ndarray) -> str:
    """What a state is known by, to the last bit."""
    return hashlib.sha256(to_bytes(words)).hexdigest()[:32]


def to_bytes(words: np.ndarray) -> bytes:
    """Words as a file has them."""
    return np.ascontiguousarray(words).astype(WORD, copy=False).tobytes()


def from_bytes(data: bytes | memoryview, columns: int) -> np.ndarray:
    """Rows of words, on this machine."""
    return np.frombuffer(data, WORD).astype(np.uint64, copy=False).reshape(-1, columns)


def inflated(block: bytes | memoryview, size: int) -> bytes:
    """A compressed block of a known size; never more than that is unpacked."""
    inflator = zlib.decompressobj()
    try:
        data = inflator.decompress(block, size + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if len(data) != size or not inflator.eof or inflator.unused_data:
        raise ValueError("a part of it has the wrong size")
    return data
