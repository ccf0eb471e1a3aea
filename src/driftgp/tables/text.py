"""Text of a stream of bytes, in blocks of the whole lines that are there."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

LONGEST_LINE = 1 << 24  # bytes: a longer line is not a row of a table
_AT_ONCE = 1 << 18  # bytes


class Text(Iterator[bytes]):
    """Text in blocks of whole lines, in UTF-8. What cannot be read raises; the next block can still be asked for.

    Attributes:
        line: lines that were given out so far.
        left: whether a last line without a newline was left for later.
    """

    def __init__(
        self,
        place: str,
        stream: Iterable[bytes] | IO[bytes],
        *,
        growing: bool = False,
        remark: Callable[[str], None] = lambda _: None,
        encoding: str = "utf-8",
    ) -> None:
        """Begin; the arguments are those of `csv_rows`."""
        self.place, self.encoding = place, encoding
        self.line = 0
        self.left = False
        self._growing, self._remark = growing, remark
        utf8 = encoding.startswith("utf-8")
        self._decoder = None if utf8 else codecs.getincrementaldecoder(encoding)()
        parts = iter(stream)
        self._read: Callable[[int], bytes] = getattr(stream, "read1", lambda _most: next(parts, b""))
        self._rest = b""  # bytes that were read and not yet given out
        self._ended = False
        self._fault: ValueError | None = None
        self._bad = 0  # lines that it is about
        self._held: list[str] = []  # lines that were looked at

    def look(self, count: int) -> list[str]:
        """The next lines without taking them: this number or more, fewer before an error or at the end."""
        while len(self._held) < count and self._fault is None:
            block = self._block(self.line + len(self._held))
            if not block:
                break
            self._held += io.StringIO(block, newline="\n")
        return self._held

    def skip(self, count: int) -> None:
        """Take lines that were looked at."""
        self._held, self.line = self._held[count:], self.line + count

    def __next__(self) -> bytes:
        block = "".join(self._held) or self._block(self.line)
        self._held = []
        if block:
            self.line += block.count("\n") + (not block.endswith("\n"))
            return block.encode()
        if self._fault is None:
            raise StopIteration
        fault, self._fault = self._fault, None
        self.line, self._bad = self.line + self._bad, 0
        raise fault

    def blocks(self) -> Iterator[tuple[int, bytes | ValueError]]:
        """All blocks from here on, each with the number of its first line; an error with that of its line."""
        while True:
            first = self.line + 1
            try:
                block = next(self)
            except StopIteration:
                return
            except ValueError as error:
                yield self.line, error
            else:
                yield first, block

    # ---- bytes -------------------------------------------------------------------------------------------------------

    def _block(self, line: int) -> str:
        """Whole lines after this one; empty at the end, or before an error."""
        while self._fault is None and not self._ended:
            data = self._whole_lines(line)
            text = self._decoded(data if line else data.removeprefix(codecs.BOM_UTF8), line)
            if text:
                return text
        return ""

    def _whole_lines(self, line: int) -> bytes:
        """Bytes up to the end of a line, as UTF-8."""
        new = b"" if b"\n" in self._rest else self._bytes(line)
        if not new and b"\n" not in self._rest:
            return self._last(line)
        data = self._rest + new
        end = data.rfind(b"\n") + 1
        self._rest = data[end:]
        if len(self._rest) > LONGEST_LINE:
            self._end(
                f"{self.place}, line {line + data.count(10) + 1} is longer than {LONGEST_LINE >> 20} MiB, the most "
                "that a row may have: check that the file is CSV text with one row per line"
            )
        return data[:end]

    def _bytes(self, line: int) -> bytes:
        """The next bytes; empty at the end."""
        try:
            while data := self._read(_AT_ONCE):
                if self._decoder is None:
                    return data
                if text := self._decoder.decode(data):
                    return text.encode("utf-8", "surrogatepass")
            return b"" if self._decoder is None else self._decoder.decode(b"", final=True).encode()
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            self._end(f"{self.place} is damaged after line {line}: {error}", error)
        except UnicodeDecodeError as error:
            read = error.object[: error.start].decode(self.encoding, "ignore").encode()
            self._end(
                f"{self.place} is not text in {self.encoding} after line {line + read.count(10)}: name the right "
                "encoding with --encoding",
                error,
            )
            return read
        return b""

    def _end(self, message: str, error: Exception | None = None) -> None:
        """Stop with an error, since the text after it would begin in the middle of a line."""
        self._ended, self._fault = True, ValueError(message)
        self._fault.__cause__ = error

    def _last(self, line: int) -> bytes:
        """The text after the last newline."""
        self._ended, last = True, self._rest
        if not last.strip() or self._fault is not None:
            return b"" if self._fault is not None else last
        place = f"{self.place}, line {line + 1}: the last line has no newline"
        self.left = self._growing
        if self._growing:
            self._remark(f"{place} and may be half a row: it was left for the next run")
            return b""
        self._remark(f"{place}: it was read as it is")
        return last

    def _decoded(self, data: bytes, line: int) -> str:
        """Text, up to a line that cannot be decoded, which is then skipped."""
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            begin = data.rfind(b"\n", 0, error.start) + 1
            end = data.find(b"\n", error.start) + 1 or len(data)
            before = data[:begin]
            self._fault = ValueError(
                f"{self.place}, line {line + before.count(10) + 1} is not UTF-8 text: byte {error.start - begin + 1} "
                "of it. Name the encoding with --encoding, such as cp1252"
            )
            self._rest, self._bad = (b"" if self._ended else data[end:] + self._rest), 1
            return before.decode()


def start_of(stream: Any, most: int) -> bytes:
    """The first bytes of a stream, which are read again later; empty if that is impossible."""
    try:
        if hasattr(stream, "peek"):
            start: bytes = stream.peek(most)
            return start
        if hasattr(stream, "seek") and stream.seekable():
            start, _ = stream.read(most), stream.seek(0)
            return start
    except (EOFError, gzip.BadGzipFile, zlib.error):  # damaged: reading it will give the error
        pass
    return b""
