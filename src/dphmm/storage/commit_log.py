"""The commit log of a release table: its entries, their order, and the store that keeps it.

`Store` is what the log needs of a folder, so that an object store or HDFS may take the place of `PosixStore`. All
guarantees rest on ``put_if_absent``: a document is made whole or not at all.

Proof: docs/proofs/table-commit.md.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import re
import secrets
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Protocol

import msgspec
from msgspec import Meta, Struct

from dphmm.errors import InvalidInput

FORMAT = 1
#: Names of entries, the first of which is 1; of data files: job, partition, random.
ENTRY_NAME = re.compile(r"(?!0{8})([0-9]{8})\.json")
DATA_NAME = re.compile(r"([0-9a-f]{32})-([0-9]{5,9})-[0-9a-f]{32}\.parquet")
_FIRST = "0" * 64
#: Deepest document; a reader deep in its own calls must read it, too.
_DEEPEST = 64
_WHOLE = "a log as dphmm wrote it; restore the folder from a copy"

Job = Annotated[str, Meta(pattern=r"^[0-9a-f]{32}\Z")]
Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
Count = Annotated[int, Meta(ge=0)]


class TableFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A data file as an entry names it: its name in ``data/``, hex SHA-256 of its bytes, its rows and its bytes."""

    name: Annotated[str, Meta(pattern=rf"^{DATA_NAME.pattern}\Z")]
    sha256: Sha256
    rows: Count
    bytes: Count

    @property
    def job(self) -> str:
        """The job that wrote it."""
        return self.name[:32]

    @property
    def partition(self) -> int:
        """The partition whose rows it has."""
        return int(self.name.split("-")[1])


class _Entry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    format: Annotated[int, Meta(ge=1)] = FORMAT
    number: Annotated[int, Meta(ge=1, le=99_999_999)]
    job: Job
    previous: Sha256
    """Of the bytes of the entry before."""


class Begun(_Entry, frozen=True, kw_only=True, tag="begun"):
    """A job has its turn. ``began`` is wall time in seconds since 1970, ``seconds`` how long a renewal lasts."""

    holder: str
    began: float
    seconds: float
    document: dict[str, Any]


class Committed(_Entry, frozen=True, kw_only=True, tag="committed"):
    """The job of the entry before is part of the table, with these files."""

    files: list[TableFile]
    document: dict[str, Any]


class Abandoned(_Entry, frozen=True, kw_only=True, tag="abandoned"):
    """The job of the entry before is not part of the table and never will be."""


Entry = Begun | Committed | Abandoned


def read_log(store: Store) -> tuple[list[Entry], str]:
    """All entries, and the digest that the next one names. Raises InvalidInput where the log is not whole.

    The listing says which entries there are at least. The last one is asked for by name, as a listing may be late.
    """
    listed = max((int(match[1]) for name in store.list() if (match := ENTRY_NAME.fullmatch(name))), default=0)
    entries: list[Entry] = []
    previous = _FIRST
    while (content := store.read(entry_file(len(entries) + 1))) is not None:
        entry = _parsed(content, len(entries) + 1)
        if not _follows(entry, entries, previous):
            raise InvalidInput("log", f"{entry_file(entry.number)}, which does not follow the entry before", _WHOLE)
        entries.append(entry)
        previous = hashlib.sha256(content).hexdigest()
    if listed > len(entries):
        raise InvalidInput("log", f"{entry_file(listed)} without {entry_file(len(entries) + 1)}", _WHOLE)
    return entries, previous


def append(store: Store, entry: Entry) -> bool:
    """Make an entry the next one; False where its number is taken by another."""
    return store.put_if_absent(entry_file(entry.number), _written(entry))


def entry_file(number: int) -> str:
    """The name of an entry's document."""
    return f"{number:08d}.json"


def _written(entry: Entry) -> bytes:
    """The one way in which an entry is written."""
    text = json.dumps(msgspec.to_builtins(entry), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return f"{text}\n".encode()


def digest(entry: Entry) -> str:
    """Hex SHA-256 of an entry's bytes."""
    return hashlib.sha256(_written(entry)).hexdigest()


def _parsed(content: bytes, number: int) -> Entry:
    """An entry from its bytes; InvalidInput where it is torn, or foreign, or of a newer format."""
    try:
        document = json.loads(content)
        newer = document["format"] > FORMAT
        entry: Entry | None = None if newer else msgspec.convert(document, Entry)
        sound = entry is not None and _written(entry) == content and entry.number == number
    except (ValueError, KeyError, TypeError, RecursionError, msgspec.ValidationError):
        newer = sound = False
    if newer:
        raise InvalidInput("log", f"{entry_file(number)} of a newer format", f"format {FORMAT}; update dphmm")
    if not sound or entry is None:
        raise InvalidInput("log", f"{entry_file(number)}, which is torn or foreign", _WHOLE)
    return entry


def _follows(entry: Entry, before: list[Entry], previous: str) -> bool:
    """True if an entry may follow others: begun and ended in turn, and the end is of the job that began."""
    begun = before[-1] if before and isinstance(before[-1], Begun) else None
    if entry.previous != previous or isinstance(entry, Begun) != (begun is None):
        return False
    return begun is None or (entry.job == begun.job and (isinstance(entry, Abandoned) or of_one_job(entry)))


def of_one_job(entry: Entry) -> bool:
    """True if all files are of the entry's job, and no two are of one partition."""
    files = committed_files([entry])
    matches = [DATA_NAME.fullmatch(file.name) for file in files]
    of_job = all(match is not None and match[1] == entry.job for match in matches)
    return of_job and len({file.partition for file in files}) == len(files)


def committed_files(entries: Iterable[Entry]) -> list[TableFile]:
    """The files of committed entries, in order."""
    return [file for entry in entries if isinstance(entry, Committed) for file in entry.files]


def public_json(document: Mapping[str, Any], field: str) -> dict[str, Any]:
    """A document as JSON has it. Raises InvalidInput, without the values."""
    wanted = "plain JSON: an object of texts, finite numbers, lists and objects"
    try:
        text = json.dumps(dict(document), allow_nan=False)
        plain: dict[str, Any] = json.loads(text)
        deep = _depth(plain)
    except (ValueError, TypeError, RecursionError):
        raise InvalidInput(field, "a document that is not JSON", wanted) from None
    if len(text) > MOST_BYTES // 2 or deep > _DEEPEST:
        raise InvalidInput(
            field, "a document that is too large", f"at most {MOST_BYTES // 2} characters, {_DEEPEST} deep"
        )
    return plain


def _depth(value: Any) -> int:
    """The depth of lists and objects in each other."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(_depth, inner), default=0)


#: Most bytes of a document.
MOST_BYTES = 1 << 28


class Store(Protocol):
    """The operations that the proof needs of an object store, of HDFS or of a POSIX folder."""

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
            stored = self.read(name)
            if stored is None:
                raise
            return stored == content
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
