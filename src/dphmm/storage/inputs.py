"""Open what users name: plain files, the same at the end as at the start; write at once or not at all.

gzip, tar and zip are unpacked in memory and in place: nothing is extracted onto the disk, links are refused, and the
limits below bound how much a file may expand to.
"""

from __future__ import annotations

import codecs
import errno
import gzip
import hashlib
import io
import lzma
import os
import re
import secrets
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, NamedTuple, TypeVar

from dphmm.errors import InvalidInput

if TYPE_CHECKING:
    from typing_extensions import Buffer


PathLike = str | os.PathLike[str]
T = TypeVar("T")
# What pickle, joblib and NumPy's object arrays come in: loading them runs code.
_PICKLES = (".pkl", ".pickle", ".joblib", ".p", ".npy", ".npz", ".dill")


def plain_file(path: PathLike, field: str = "path") -> Path:
    """The path of an existing file. Raises InvalidInput for a folder, a device, a FIFO or socket."""
    file = Path(path)
    if "\0" in str(file):
        raise InvalidInput(field, ascii(str(file)), "a path without NUL")
    try:
        mode = file.stat().st_mode
    except OSError as error:
        raise InvalidInput(field, str(file), f"a file that exists ({error.strerror})") from None
    if stat.S_ISDIR(mode):
        if (file / "log").is_dir() and (file / "data").is_dir():
            expected = "a file; docs/spark.md shows how the folder of a release table becomes one"
            raise InvalidInput(field, str(file), expected)
        raise InvalidInput(field, str(file), "a file, not a folder")
    if not stat.S_ISREG(mode):
        raise InvalidInput(field, str(file), "a plain file, not a device or a pipe")
    return file


def checked_input(path: PathLike, field: str = "path") -> Path:
    """The path of an existing plain file that may be read.

    Raises InvalidInput as `plain_file`, and for formats that carry code.
    """
    file = plain_file(path, field)
    if file.suffix.lower() in _PICKLES:
        raise InvalidInput(field, str(file), "a table; pickles are never loaded")
    if not os.access(file, os.R_OK):
        raise InvalidInput(field, str(file), "a file that may be read")
    return file


def checked_output(path: PathLike, inputs: Iterable[PathLike] = (), field: str = "output") -> Path:
    """A path that may be written: its folder exists and it is none of the inputs.

    Raises InvalidInput; call it before any work.
    """
    file = Path(path)
    if not file.parent.is_dir():
        raise InvalidInput(field, str(file), "a file in a folder that exists")
    if file.exists() and not file.is_file():
        raise InvalidInput(field, str(file), "a plain file")
    if not os.access(file.parent, os.W_OK):
        raise InvalidInput(field, str(file), "a file in a folder that may be written")
    for source in inputs:
        if file.exists() and Path(source).exists() and file.samefile(source):
            raise InvalidInput(field, str(file), "another file than the input")
    return file


@contextmanager
def steady(path: PathLike) -> Iterator[str]:
    """Hex SHA-256 of a file that must not change inside the block; InvalidInput if it did."""
    before = file_digest(path)
    yield before
    if file_digest(path) != before:
        raise InvalidInput(str(path), "a file that changed while it was read", "a file nobody is writing to")


def file_digest(path: PathLike) -> str:
    """Hex SHA-256 of a file's bytes."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def replacing(path: PathLike, *, private: bool = False) -> Iterator[Path]:
    """A temporary file that becomes ``path`` when the block ends well, else disappears.

    It lies beside the owner's files where the folder has an owner's folder on the same disk (a kill leaves nothing
    among what is published), else in the same folder. ``private``: readable by its owner alone.
    """
    final = checked_output(path)
    folder = final.parent.with_name(f"{final.parent.name}.owner") if final.parent.name else final.parent
    is_writable = folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)
    if not is_writable or folder.stat().st_dev != final.parent.stat().st_dev:
        folder = final.parent
    # Named before it is made, so that a signal at any moment leaves no file behind.
    temporary = folder / f".{final.name}.{secrets.token_hex(8)}.part"
    try:
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666))
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(final)
    except OSError as error:
        # What fails while it is written to does not say what it is.
        if error.errno is not None and error.filename in (None, str(temporary)):
            error.filename = str(final)
        raise
    finally:
        temporary.unlink(missing_ok=True)


#: Most bytes that one source may unpack to, and most per packed byte once it is past the free allowance.
MOST_BYTES = 1 << 36
MOST_RATIO = 200
FREE_BYTES = 1 << 26


def _check_expansion(name: str, size: int, packed: int) -> None:
    """Raises InvalidInput where so many packed bytes give more than they may."""
    most = min(MOST_BYTES, max(FREE_BYTES, MOST_RATIO * packed))
    if size > most:
        expected = "a smaller file, or unpack it yourself"
        raise InvalidInput(name, f"a file that expands to more than {most} bytes", expected)


class Bounded(io.RawIOBase):
    """The content of a gzip stream of ``size`` bytes, within the limits above; closing it closes the stream."""

    def __init__(self, packed: IO[bytes], name: str, size: int) -> None:
        super().__init__()
        self._packed, self._name, self._size = packed, name, size
        self._inner = gzip.GzipFile(fileobj=packed, mode="rb")
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
        _check_expansion(self._name, self._given, self._size)
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the packed stream too."""
        if not self.closed:
            self._inner.close()
            self._packed.close()
        super().close()


def open_bytes(path: Path) -> io.BufferedReader:
    """The bytes of a file, unpacked within limits if its name ends in .gz."""
    return unpacked(path.open("rb"), path)


def unpacked(raw: io.BufferedReader, path: Path) -> io.BufferedReader:
    """The same of a file that is open already; closing the result closes it."""
    if path.suffix.lower() not in (".gz", ".tgz"):
        return raw
    return io.BufferedReader(Bounded(raw, str(path), path.stat().st_size), 1 << 20)


def unpacked_bytes(data: bytes, name: str) -> bytes:
    """The content of a packed file in memory, within limits. Raises InvalidInput as `Bounded`."""
    with io.BufferedReader(Bounded(io.BytesIO(data), ascii(name), len(data)), 1 << 20) as file:
        return file.read()


def legible(data: bytes) -> bytes:
    """Bytes as UTF-8 text, in which U+001A stands for each that is none.

    No name, number or time has that character in it, so such a byte makes its own cell unreadable and no other.
    """
    return data.decode("utf-8", errors=SUBSTITUTE).encode()


def _substituted(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "\x1a" * (error.end - error.start), error.end


#: What a codec does with bytes that are not of its encoding.
SUBSTITUTE = "dphmm.legible"
codecs.register_error(SUBSTITUTE, _substituted)


#: Largest single member, bytes, and most members.
MOST_MEMBER = 1 << 30
MOST_MEMBERS = 10**6
_BROKEN = (zlib.error, lzma.LZMAError, EOFError, OSError, NotImplementedError, UnicodeDecodeError)
_DRIVE = re.compile(r"[A-Za-z]:")


class Member(NamedTuple):
    """A file's name inside its source, its bytes, and how far the source has been read."""

    name: str
    data: bytes
    done: int
    total: int


def members(source: Path, wanted: re.Pattern[str]) -> Iterator[Member]:
    """Files whose name (with "/") the pattern finds, from a folder, .tar, .tar.gz, .tgz or .zip.

    Raises InvalidInput for names that leave the source, links and devices, archives that unpack to too much,
    that are encrypted or damaged, or that change while they are read.
    """
    if source.is_dir():
        yield from _folder(source, wanted)
        return
    file = checked_input(source)
    name = file.name.lower()
    with steady(file):
        if name.endswith(".zip"):
            yield from _zip(file, wanted)
        elif name.endswith((".tar", ".tar.gz", ".tgz")):
            yield from _tar(file, wanted)
        else:
            raise InvalidInput("source", str(source), "a folder, .tar, .tar.gz or .zip")


def _folder(source: Path, wanted: re.Pattern[str]) -> Iterator[Member]:
    # The folder's own name belongs to what the pattern sees: users may give Data or what it lies in.
    entries = [(f"{source.name}/{p.relative_to(source).as_posix()}", p) for p in sorted(source.rglob("*"))]
    chosen = [(name, path) for name, path in entries if wanted.search(name)]
    for done, (name, path) in enumerate(chosen, start=1):
        if path.is_symlink() or not path.is_file():
            raise InvalidInput("source", name, "plain files, no links")
        if path.stat().st_size > MOST_MEMBER:
            raise InvalidInput("source", f"{name} of {path.stat().st_size} bytes", f"at most {MOST_MEMBER}")
        yield Member(name, path.read_bytes(), done, len(chosen))


def _tar(file: Path, wanted: re.Pattern[str]) -> Iterator[Member]:
    total = file.stat().st_size
    with file.open("rb") as raw, unpacked(raw, file) as stream:
        try:
            with tarfile.open(fileobj=stream, mode="r|") as archive:
                for count, info in enumerate(archive):
                    _check_member(info.name, info.size, count)
                    if not (info.isfile() or info.isdir()):
                        raise InvalidInput("source", f"{info.name}, a link or device", "plain files")
                    if info.isfile() and wanted.search(info.name):
                        opened = archive.extractfile(info)
                        data = b"" if opened is None else opened.read()
                        yield Member(info.name, data, min(raw.tell(), total), total)
        except InvalidInput:
            raise
        except (tarfile.TarError, ValueError, OverflowError, RecursionError):
            raise InvalidInput("source", f"{file}, a damaged archive", "a whole .tar or .tar.gz") from None


def _zip(file: Path, wanted: re.Pattern[str]) -> Iterator[Member]:
    total = file.stat().st_size
    try:
        with zipfile.ZipFile(file) as archive:
            infos = archive.infolist()
            for count, info in enumerate(infos):
                _check_member(info.filename, info.file_size, count)
                if info.flag_bits & 1:
                    raise InvalidInput("source", f"{file}, which is encrypted", "a plain archive")
                # The upper half of the attributes is the Unix mode: 0o120000 marks a symbolic link.
                if (info.external_attr >> 16) & 0o170000 == 0o120000:
                    raise InvalidInput("source", f"{info.filename}, a link", "plain files")
            # zipfile never gives more than the sizes that are written, so their sum bounds what will be read.
            _check_expansion(str(file), sum(info.file_size for info in infos), total)
            done = 0
            for info in infos:
                done += info.compress_size
                if not info.is_dir() and wanted.search(info.filename):
                    yield Member(info.filename, archive.read(info), min(done, total), total)
    except (zipfile.BadZipFile, *_BROKEN) as error:
        # Offsets outside the file and broken streams are the file's fault, other failures of reading the disk's.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        raise InvalidInput("source", f"{file}, a damaged archive", "a whole .zip") from None


def _check_member(name: str, size: int, count: int) -> None:
    parts = PurePosixPath(name).parts
    if not name or name.startswith("/") or ".." in parts or "\\" in name or "\0" in name or _DRIVE.match(name):
        raise InvalidInput("source", ascii(name), "members inside the archive, no path that leaves it")
    if size > MOST_MEMBER:
        raise InvalidInput("source", f"{name} of {size} bytes", f"at most {MOST_MEMBER}")
    if count >= MOST_MEMBERS:
        raise InvalidInput("source", f"more than {MOST_MEMBERS} members", "a smaller archive")
