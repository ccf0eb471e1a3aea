"""Lines of text from a stream of bytes, read in blocks of the lines that are there, and the rows of CSV in them."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import IO, Any

LONGEST_LINE = 1 << 24  # bytes: a longer line is not a row of a table
_AT_ONCE = 1 << 18  # bytes

Item = tuple[int, "Sequence[str] | ValueError"]  # a row with its first line, or the reason why it cannot be read


class Text(Iterator[io.StringIO]):
    """Text in blocks of whole lines. A block that cannot be read raises; the next one can still be asked for.

    Attributes:
        line: lines that were used so far.
        there: lines that were read so far.
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
        self.line = self.there = 0
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
        self._lines: Iterator[str] = chain.from_iterable(self)
        self._held: list[str] = []

    def look(self, count: int) -> list[str]:
        """The next lines, up to a number or an error, without taking them."""
        try:
            self._held.extend(islice(self._lines, max(count - len(self._held), 0)))
        except ValueError as error:
            self._fault, self._lines = error, chain.from_iterable(self)
        return self._held

    def lines(self) -> Iterator[str]:
        """The lines from here on; after an error, those that follow it."""
        held, self._held = self._held, []
        self._lines = chain(held, self._lines) if held else self._lines
        return self._lines

    def __next__(self) -> io.StringIO:
        while self._fault is None and not self._ended:
            data = self._whole_lines()
            data = data.removeprefix(codecs.BOM_UTF8) if not self.there else data
            text = self._decoded(data)
            if text:
                self.there += text.count("\n") + (not text.endswith("\n"))
                return io.StringIO(text, newline="\n")
        if self._fault is None:
            raise StopIteration
        fault, self._fault = self._fault, None
        self.there, self._bad = self.there + self._bad, 0
        self._lines = chain.from_iterable(self)  # this generator cannot continue after an error
        raise fault

    # ---- bytes -------------------------------------------------------------------------------------------------------

    def _whole_lines(self) -> bytes:
        """Bytes up to the end of a line, as UTF-8."""
        new = b"" if b"\n" in self._rest else self._bytes()
        if not new and b"\n" not in self._rest:
            return self._last()
        data = self._rest + new
        end = data.rfind(b"\n") + 1
        self._rest = data[end:]
        if len(self._rest) > LONGEST_LINE:
            line = self.there + data.count(b"\n") + 1
            self._end(
                f"{self.place}, line {line} is longer than {LONGEST_LINE >> 20} MiB, the most that a row "
                "may have: check that the file is CSV text with one row per line"
            )
        return data[:end]

    def _bytes(self) -> bytes:
        """The next bytes; empty at the end."""
        try:
            while data := self._read(_AT_ONCE):
                if self._decoder is None:
                    return data
                if text := self._decoder.decode(data):
                    return text.encode("utf-8", "surrogatepass")
            return b"" if self._decoder is None else self._decoder.decode(b"", final=True).encode()
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            self._end(f"{self.place} is damaged after line {self.there}: {error}", error)
        except UnicodeDecodeError as error:
            read = error.object[: error.start].decode(self.encoding, "ignore").encode()
            self._end(
                f"{self.place} is not text in {self.encoding} after line {self.there + read.count(10)}: name the right "
                "encoding with --encoding",
                error,
            )
            return read
        return b""

    def _end(self, message: str, error: Exception | None = None) -> None:
        """Stop with an error, since the text after it would begin in the middle of a line."""
        self._ended, self._fault = True, ValueError(message)
        self._fault.__cause__ = error

    def _last(self) -> bytes:
        """The text after the last newline."""
        self._ended, last = True, self._rest
        if not last.strip() or self._fault is not None:
            return b"" if self._fault is not None else last
        place = f"{self.place}, line {self.there + 1}: the last line has no newline"
        self.left = self._growing
        if self._growing:
            self._remark(f"{place} and may be half a row: it was left for the next run")
            return b""
        self._remark(f"{place}: it was read as it is")
        return last

    def _decoded(self, data: bytes) -> str:
        """Text, up to a line that cannot be decoded, which is then skipped."""
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            begin = data.rfind(b"\n", 0, error.start) + 1
            end = data.find(b"\n", error.start) + 1 or len(data)
            before = data[:begin]
            line = self.there + before.count(b"\n") + 1
            self._fault = ValueError(
                f"{self.place}, line {line} is not UTF-8 text: byte {error.start - begin + 1} of it. Name the encoding "
                "with --encoding, such as cp1252"
            )
            self._rest, self._bad = (b"" if self._ended else data[end:] + self._rest), 1
            return before.decode()


def csv_items(text: Text, delimiter: str) -> Iterator[Item]:
    """Rows of CSV, and errors for lines that are not rows; a blank row has no cells."""
    lines = text.lines()
    while True:
        begin = text.line
        given = map(str.strip, lines) if delimiter == " " else lines
        reader = csv.reader(given, strict=True, delimiter=delimiter, skipinitialspace=delimiter == " ")
        try:
            for cells in reader:
                first, text.line = text.line + 1, begin + reader.line_num
                yield first, cells if any(map(str.strip, cells)) else []
            return
        except csv.Error as error:
            first, text.line = text.line + 1, begin + reader.line_num
            if text.left:  # the cell ends with the line that was left for later
                return
            unread = ValueError(f"{text.place}, line {first} cannot be read as CSV: {error}")
            unread.__cause__ = error
            yield first, unread
        except ValueError as error:
            text.line, lines = text.there, text.lines()
            yield text.line, error


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
