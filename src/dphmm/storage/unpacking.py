"""Unpack gzip, tar and zip in place, within limits: never onto the disk, never more than a bomb's worth."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from dphmm.errors import InvalidInput

if TYPE_CHECKING:
    from typing_extensions import Buffer

#: Most bytes that one source may unpack to, and most per packed byte once it is past the free allowance.
MOST_BYTES = 1 << 36
MOST_RATIO = 200
FREE_BYTES = 1 << 26


class Bounded(io.RawIOBase):
    """A reader that refuses to give more than ``MOST_BYTES``, or ``MOST_RATIO`` times the packed size."""

    def __init__(self, inner: IO[bytes], name: str, packed: int) -> None:
        super().__init__()
        self._inner = inner
        self._name = name
        self._most = min(MOST_BYTES, max(FREE_BYTES, MOST_RATIO * packed))
        self._given = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Buffer) -> int:
        """Fill the buffer; InvalidInput for a damaged stream or past the limit."""
        view = memoryview(buffer).cast("B")
        try:
            data = self._inner.read(len(view))
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise InvalidInput(self._name, "a damaged or truncated gzip stream", "a whole file") from None
        self._given += len(data)
        if self._given > self._most:
            raise InvalidInput(self._name, f"more than {self._most} bytes unpacked", "no decompression bomb")
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the inner stream too."""
        if not self.closed:
            self._inner.close()
        super().close()


def open_bytes(path: Path) -> io.BufferedReader:
    """The bytes of a file, unpacked within limits if its name ends in .gz."""
    return unpacked(path.open("rb"), path)


def unpacked(raw: io.BufferedReader, path: Path) -> io.BufferedReader:
    """The same of a file that is open already; closing the result closes it."""
    if path.suffix.lower() not in (".gz", ".tgz"):
        return raw
    packed = path.stat().st_size
    inner = _OwningGzip(raw)
    return io.BufferedReader(Bounded(cast("IO[bytes]", inner), str(path), packed), 1 << 20)


class _OwningGzip(gzip.GzipFile):
    """A gzip reader that closes the file it was given."""

    def __init__(self, raw: IO[bytes]) -> None:
        super().__init__(fileobj=raw, mode="rb")
        self._raw = raw

    def close(self) -> None:
        super().close()
        self._raw.close()


class Tapped(io.RawIOBase):
    """A reader that shows every block it gives to ``look``, which may raise."""

    def __init__(self, inner: IO[bytes], look: Callable[[bytes], None]) -> None:
        super().__init__()
        self._inner = inner
        self._look = look

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Buffer) -> int:
        """Fill the buffer after showing what goes into it."""
        view = memoryview(buffer).cast("B")
        data = self._inner.read(len(view))
        self._look(data)
        view[: len(data)] = data
        return len(data)


class Legible(io.RawIOBase):
    """A reader of UTF-8 text that gives each byte which is none as U+001A.

    No name, number or time has that character in it, so that such a byte spoils its own cell and nothing else.
    """

    def __init__(self, inner: IO[bytes]) -> None:
        super().__init__()
        self._inner = inner
        self._decoder = codecs.getincrementaldecoder("utf-8")(_SUBSTITUTE)
        self._ready = b""
        self._ended = False

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Buffer) -> int:
        """Fill the buffer with legible text."""
        view = memoryview(buffer).cast("B")
        while not self._ready and not self._ended:
            data = self._inner.read(len(view))
            self._ended = not data
            self._ready = self._decoder.decode(data, final=self._ended).encode()
        given, self._ready = self._ready[: len(view)], self._ready[len(view) :]
        view[: len(given)] = given
        return len(given)


def legible(data: bytes) -> bytes:
    """The same of bytes in memory."""
    return data.decode("utf-8", errors=_SUBSTITUTE).encode()


def _substituted(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "\x1a" * (error.end - error.start), error.end


_SUBSTITUTE = "dphmm.legible"
codecs.register_error(_SUBSTITUTE, _substituted)
