"""Stores: documents of one folder by name, made whole or not at all.

`Store` is what the commit log of a release table needs, so that an object store or HDFS may stand in for the POSIX
folder that there is. All rests on ``put_if_absent``.

Proof: docs/proofs/table-commit.md.
"""

from __future__ import annotations

import errno
import io
import os
import secrets
import stat
from pathlib import Path
from typing import Protocol

from dphmm.errors import InvalidInput

#: Most bytes of a document.
MOST_BYTES = 1 << 28


class Store(Protocol):
    """What the proof asks of an object store, of HDFS or of a POSIX folder."""

    def put_if_absent(self, name: str, content: bytes) -> bool:
        """Make a whole document, durably, unless the name is taken; True where it has this content afterwards."""

    def put(self, name: str, content: bytes) -> None:
        """Make a whole document or replace it; the last one wins."""

    def read(self, name: str) -> bytes | None:
        """The content, None where there is no such document."""

    def list(self) -> list[str]:
        """All names."""

    def delete(self, name: str) -> None:
        """Delete a document, if it is there."""


class PosixStore:
    """A `Store` in a folder of a POSIX file system with hard links (not FAT, nor some network drives)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put_if_absent(self, name: str, content: bytes) -> bool:
        """A temporary file becomes the document by a hard link, which fails where the name is taken."""
        temporary = self._write(name, content)
        try:
            self._link(temporary, name)
        except (FileExistsError, FileNotFoundError):
            # Equal content is ours: network file systems repeat a call whose answer was lost. A temporary file is
            # cleared away only where its name is taken.
            found = self.read(name)
            if found is None:
                raise
            return found == content
        finally:
            temporary.unlink(missing_ok=True)
            self._sync()
        return True

    def put(self, name: str, content: bytes) -> None:
        """A temporary file replaces the document."""
        self._write(name, content).replace(self.folder / name)

    def read(self, name: str) -> bytes | None:
        """The content; InvalidInput for a link, a folder, a pipe or a document that is too large."""
        try:
            with opened_plain(self.folder / name, name) as file:
                if os.fstat(file.fileno()).st_size > MOST_BYTES:
                    raise InvalidInput("table", name, f"a document of at most {MOST_BYTES} bytes")
                return file.read()
        except FileNotFoundError:
            return None

    def list(self) -> list[str]:
        """All names; synced first, so that nothing is shown that a power cut could still take back."""
        names = sorted(entry.name for entry in os.scandir(self.folder))
        self._sync()
        return names

    def delete(self, name: str) -> None:
        """Delete a document, if it is there."""
        (self.folder / name).unlink(missing_ok=True)

    def _write(self, name: str, content: bytes) -> Path:
        temporary = self.folder / f".{name.removeprefix('.')}.{secrets.token_hex(16)}.part"
        try:
            with temporary.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        return temporary

    def _link(self, temporary: Path, name: str) -> None:
        os.link(temporary, self.folder / name)

    def _sync(self) -> None:
        sync_folder(self.folder)


def opened_plain(path: Path, name: str) -> io.BufferedReader:
    """A plain file, open for reading. Raises FileNotFoundError, and InvalidInput for a link, a folder or a pipe."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO):
            raise
        raise InvalidInput("table", name, "a plain file, no link or socket") from None
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise InvalidInput("table", name, "a plain file")
    return os.fdopen(opened, "rb")


def sync_folder(folder: Path) -> None:
    """Have the names in a folder survive a power cut."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
