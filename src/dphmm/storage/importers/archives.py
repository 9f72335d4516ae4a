"""Files of a folder, tar or zip, read in place one after another: nothing is extracted, nothing is followed."""

from __future__ import annotations

import errno
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from dphmm.errors import InvalidInput
from dphmm.storage.inputs import FREE_BYTES, MOST_BYTES, MOST_RATIO, checked_input, steady, unpacked

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
    found = [(f"{source.name}/{p.relative_to(source).as_posix()}", p) for p in sorted(source.rglob("*"))]
    chosen = [(name, path) for name, path in found if wanted.search(name)]
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
        except (tarfile.TarError, ValueError, OverflowError):
            raise InvalidInput("source", f"{file}, a damaged archive", "a whole .tar or .tar.gz") from None


def _zip(file: Path, wanted: re.Pattern[str]) -> Iterator[Member]:
    total = file.stat().st_size
    try:
        with zipfile.ZipFile(file) as archive:
            infos = archive.infolist()
            _check_zip(file, infos, total)
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


def _check_zip(file: Path, infos: list[zipfile.ZipInfo], packed: int) -> None:
    for count, info in enumerate(infos):
        _check_member(info.filename, info.file_size, count)
        if info.flag_bits & 1:
            raise InvalidInput("source", f"{file}, which is encrypted", "a plain archive")
        # The upper half of the attributes is the Unix mode: 0o120000 marks a symbolic link.
        if (info.external_attr >> 16) & 0o170000 == 0o120000:
            raise InvalidInput("source", f"{info.filename}, a link", "plain files")
    # zipfile never gives more than the sizes that are written, so their sum bounds what will be read.
    most = min(MOST_BYTES, max(FREE_BYTES, MOST_RATIO * packed))
    if sum(info.file_size for info in infos) > most:
        raise InvalidInput(str(file), f"more than {most} bytes unpacked", "no decompression bomb")


def _check_member(name: str, size: int, count: int) -> None:
    parts = PurePosixPath(name).parts
    if not name or name.startswith("/") or ".." in parts or "\\" in name or "\0" in name or _DRIVE.match(name):
        raise InvalidInput("source", ascii(name), "members inside the archive, no path that leaves it")
    if size > MOST_MEMBER:
        raise InvalidInput("source", f"{name} of {size} bytes", f"at most {MOST_MEMBER}")
    if count >= MOST_MEMBERS:
        raise InvalidInput("source", f"more than {MOST_MEMBERS} members", "a smaller archive")
