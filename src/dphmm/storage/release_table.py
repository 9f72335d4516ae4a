"""A release table: Parquet files that a commit log names, one atomic commit for each job.

A table is a folder. ``log/`` has the entries ``00000001.json``, ``00000002.json``, ...: a job appends "begun" as entry
n, and entry n+1 is either "committed", with the list of its files, or "abandoned". Each entry is made by put-if-absent,
so n is a fencing token: one of two jobs that begin after the same entry loses, and a job that was abandoned cannot
commit. ``leases/`` says how long an open job may still be alive.

``data/`` has the files. Workers write them without the table: a name is made of the job, the partition and random
digits, so no two attempts have the same. A file that no committed entry names is not part of the table. ``attempts/``
says under which contexts tasks drew. A worker writes that before it draws, so that a job whose attempts saw different
rows is found, even where one attempt never ended. Nothing here is private but the rows that no entry has committed:
protect ``data/`` like the input.

Proof: docs/proofs/table-commit.md.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphmm._checks import finite_number, whole
from dphmm.errors import DphmmError, InvalidInput, LedgerBusy
from dphmm.storage.commit_log import (
    DATA_NAME,
    ENTRY_NAME,
    Abandoned,
    Begun,
    Committed,
    Entry,
    PosixStore,
    Store,
    TableFile,
    append,
    committed_files,
    digest,
    entry_file,
    of_one_job,
    opened_plain,
    public_json,
    read_log,
    sync_folder,
)
from dphmm.storage.inputs import PathLike

if TYPE_CHECKING:
    import pyarrow as pa


__all__ = ["ReleaseTable", "TableFile", "Turn", "entry_name", "say_attempt", "table_file", "write_rows"]

#: Seconds that clocks of two machines may differ before a live job is taken for dead. Costs work, never the promise.
GRACE = 10.0
FOLDERS = ("log", "data", "leases", "attempts")
_PART = re.compile(r"\.([0-9]{8})\.json\.[0-9a-f]{32}\.part|\.probe-[0-9a-f]{32}(\.[0-9a-f]{32}\.part)?")
_LEASE = re.compile(r"\.?([0-9a-f]{32})\.json(?:\.[0-9a-f]{32}\.part)?")


class ReleaseTable:
    """A table in a folder: read what is committed, begin a job. Made by `ReleaseTable.open`.

    >>> import tempfile
    >>> table = ReleaseTable.open(tempfile.mkdtemp())
    >>> table.entries(), table.read().num_rows
    ([], 0)

    A job. Its rows are invisible before its commit::

        turn = table.begin({"model": digest, "options": digest}, holder="driver 1", seconds=60)
        with turn.renewing():
            files = [write_rows(rows, turn.entry_path(partition)) for partition, rows in ...]
        turn.commit(files, {"epsilon": "1"}, rows=total)

    Proof: docs/proofs/table-commit.md.
    """

    def __init__(self, path: Path, store: Callable[[Path], Store], clock: Callable[[], float]) -> None:
        self.path = path
        #: Where executors write.
        self.data = path / "data"
        #: Where executors say that they are about to draw.
        self.attempts = path / "attempts"
        self._log, self._files, self._leases = store(path / "log"), store(self.data), store(path / "leases")
        self._attempts = store(self.attempts)
        self._clock = clock

    @classmethod
    def open(
        cls, path: PathLike, *, store: Callable[[Path], Store] = PosixStore, clock: Callable[[], float] = time.time
    ) -> ReleaseTable:
        """The table in a folder; an empty one where there is none.

        ``store`` makes a `Store` of a folder; ``clock`` gives wall time in seconds since 1970, for leases alone.
        Raises InvalidInput for a folder with other things in it, for a log with a gap or with an entry that dphmm did
        not write, and for a newer format.
        """
        folder = Path(path)
        _make_folders(folder)
        table = cls(folder.resolve(), store, clock)
        # Listed before the log is read: a job writes files only after it has begun.
        others = [name for name in table._log.list() if not ENTRY_NAME.fullmatch(name) and not _PART.fullmatch(name)]
        others += table._files.list()
        if not table.entries() and others:
            raise _not_a_table(folder)
        return table

    def entries(self) -> list[Entry]:
        """All entries of the log, the first one first. Raises InvalidInput where the log is not whole."""
        return read_log(self._log)[0]

    def begin(self, job: Mapping[str, Any], *, holder: str, seconds: float) -> Turn:
        """Begin a job as the next entry; no other job can begin until its turn has ended.

        Parameters
        ----------
        job : public JSON: digests of model, policy, space and options, versions, an opaque name of the input. Never
            a digest of rows: somebody who knows all but one could test guesses of it.
        holder : a public name of the job's runner, for messages.
        seconds : the length of the turn without `Turn.renew`.

        An open turn whose lease ran out is abandoned first. Raises LedgerBusy where another job has its turn, and
        InvalidInput for a store without put-if-absent.
        """
        document, lasts = public_json(job, "job"), finite_number(seconds, "seconds")
        if not (isinstance(holder, str) and 0 < len(holder) <= 200 and holder.isprintable()):
            raise InvalidInput("holder", holder, "a name of 1 to 200 printable characters")
        if lasts <= 0:
            raise InvalidInput("seconds", seconds, "a number greater than 0")
        self.probe()
        entries, previous = read_log(self._log)
        if (begun := _open_turn(entries)) and self._left(begun) < 0:
            with suppress(LedgerBusy):
                self._abandon(begun)
            entries, previous = read_log(self._log)
        if begun := _open_turn(entries):
            raise self._busy(begun)
        began = round(self._clock(), 3)
        entry = Begun(
            number=len(entries) + 1,
            job=secrets.token_hex(16),
            previous=previous,
            holder=holder,
            began=began,
            seconds=lasts,
            document=document,
        )
        if not append(self._log, entry):
            raise self._busy(self.entries()[-1])
        return Turn(self, entry)

    def open_turn(self) -> Begun | None:
        """The job that has begun and not ended, None where there is none."""
        return _open_turn(self.entries())

    def stale(self) -> bool:
        """True if a turn is open and its lease has run out, by this machine's clock."""
        begun = self.open_turn()
        return begun is not None and self._left(begun) < 0

    def abandon_open(self, force: bool = False) -> bool:
        """End the open turn without a commit; False where no turn is open.

        Its job cannot commit afterwards, however slow it was. Raises LedgerBusy where the lease has not run out,
        unless ``force``, and where the job has committed meanwhile.
        """
        begun = self.open_turn()
        if begun is None:
            return False
        if not force and self._left(begun) >= 0:
            raise self._busy(begun)
        self._abandon(begun)
        return True

    def clean(self) -> list[str]:
        """Delete what jobs that have ended left behind; the names of the data files that were deleted.

        Safe at any time: a job that has not ended in the log keeps its files, also one that begins meanwhile.
        """
        entries = self.entries()
        ended = {entry.job for entry in entries if not isinstance(entry, Begun)}
        named = {file.name for file in committed_files(entries)}
        dropped = [
            name
            for name in self._files.list()
            if (match := DATA_NAME.fullmatch(name)) and match[1] in ended and name not in named
        ]
        for name in dropped:
            self._files.delete(name)
        for store, pattern in ((self._leases, _LEASE), (self._attempts, ATTEMPT_NAME)):
            for name in store.list():
                if (match := pattern.fullmatch(name)) and match[1] in ended:
                    store.delete(name)
        for name in self._log.list():
            # A temporary file of a number that is taken can only lose.
            if (match := _PART.fullmatch(name)) and match[1] and int(match[1]) <= len(entries):
                self._log.delete(name)
        return dropped

    def committed(self) -> list[TableFile]:
        """The files of all committed entries, in the order of the log."""
        return committed_files(self.entries())

    def paths(self, *, verify: bool = False) -> list[Path]:
        """Paths of the committed files in order, each with the size in its entry; ``verify``: with its digest, too.

        Raises InvalidInput for a file that is missing or differs.
        """
        for file in (files := self.committed()):
            check_file(self.data, file, verify)
        return [self.data / file.name for file in files]

    def read(self, columns: Sequence[str] | None = None, *, verify: bool = False) -> pa.Table:
        """The committed rows, all columns or these; a column that only some files have is null in the others.

        Raises InvalidInput as `paths`, and for a column that no file has.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        paths = self.paths(verify=verify)
        names = [pq.read_schema(path).names for path in paths]
        unknown = [name for name in columns or () if not any(name in there for there in names)]
        if paths and unknown:
            raise InvalidInput("columns", unknown[0], "a column of the table")
        wanted = [there if columns is None else [name for name in columns if name in there] for there in names]
        parts = [pq.ParquetFile(path).read(columns=some) for path, some in zip(paths, wanted, strict=True)]
        if not parts:
            return pa.table({})
        try:
            rows = pa.concat_tables(parts, promote_options="default")
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            raise InvalidInput("table", "columns of two types", "one type for each; read paths() one by one") from None
        return rows if columns is None else rows.select(list(columns))

    def probe(self) -> None:
        """Raise InvalidInput where the store has no put-if-absent: with it a fence would be none."""
        name = f".probe-{secrets.token_hex(16)}"
        wanted = "a file system or store with put-if-absent (hard links on POSIX); put the table elsewhere"
        try:
            first, second = self._log.put_if_absent(name, b"first"), self._log.put_if_absent(name, b"second")
            content = self._log.read(name)
            self._log.delete(name)
        except OSError as error:
            raise InvalidInput("table", f"{self.path} ({error.strerror})", wanted) from None
        if (first, second, content) != (True, False, b"first"):
            raise InvalidInput("table", str(self.path), wanted)

    def _abandon(self, begun: Begun) -> None:
        """Append "abandoned" behind a begun entry. Raises LedgerBusy where its job has committed."""
        if not append(self._log, Abandoned(number=begun.number + 1, job=begun.job, previous=digest(begun))):
            raise self._ended(begun)

    def _ended(self, begun: Begun) -> LedgerBusy:
        end = self.entries()[begun.number]
        how = "committed" if isinstance(end, Committed) else "abandoned"
        return LedgerBusy(f"turn: got {begun.number}, which was {how} already; expected an open turn; begin a new one")

    def _busy(self, last: Entry) -> LedgerBusy:
        if not isinstance(last, Begun):
            return LedgerBusy("table: got a job that was faster; expected no other job; begin again")
        left = self._left(last)
        lasts = f"for {left:.0f} s more" if left >= 0 else "and whose lease ran out"
        return LedgerBusy(
            f"table: got turn {last.number}, which {last.holder!a} has {lasts}; expected no open turn; wait, or "
            "end it with abandon_open(force=True) where its job is dead"
        )

    def _left(self, begun: Begun) -> float:
        """Seconds until the lease of a turn runs out; negative afterwards."""
        return self._renewed(begun) + begun.seconds + GRACE - self._clock()

    def _renewed(self, begun: Begun) -> float:
        try:
            return max(begun.began, finite_number(json.loads(self._leases.read(f"{begun.job}.json") or b""), "lease"))
        except (ValueError, RecursionError):
            return begun.began


class Turn:
    """The turn of one job: ``number`` is its entry and its fencing token, ``job`` its random id (32 hex digits)."""

    def __init__(self, table: ReleaseTable, begun: Begun) -> None:
        self.table, self.number, self.job = table, begun.number, begun.job
        #: The entry that the job starts from: what was committed up to it is what the job sees.
        self.position = begun.number - 1
        self._begun = begun

    def entry_path(self, partition: int, attempt_random: str | None = None) -> Path:
        """The path of an attempt's rows of a partition: no other attempt has this name (`entry_name`)."""
        return self.table.data / entry_name(self.job, partition, attempt_random)

    def tags(self) -> dict[int, set[str]]:
        """The tags of the contexts under which attempts began to draw, by partition; see `say_attempt`."""
        tags: dict[int, set[str]] = {}
        for name in self.table._attempts.list():
            if (match := ATTEMPT_NAME.fullmatch(name)) and match[1] == self.job:
                tags.setdefault(int(match[2]), set()).add(match[3])
        return tags

    def renew(self) -> None:
        """Say that the job is alive, for another ``seconds``. Raises LedgerBusy where the turn has ended."""
        if self._has_ended():
            raise self.table._ended(self._begun)
        self.table._leases.put(f"{self.job}.json", json.dumps(round(self.table._clock(), 3)).encode())

    @contextmanager
    def renewing(self) -> Iterator[None]:
        """Renew from a thread until the block ends: a lease must not depend on how long a draw takes.

        The thread stops at the first error; the commit then finds out what became of the turn.
        """
        done = threading.Event()

        def renew() -> None:
            with suppress(OSError, DphmmError):
                while not done.wait(self._begun.seconds / 3):
                    self.renew()

        thread = threading.Thread(target=renew, name="dphmm lease", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def commit(self, files: Iterable[TableFile], document: Mapping[str, Any], *, rows: int | None = None) -> Committed:
        """Make the files part of the table, all at once, and end the turn.

        Parameters
        ----------
        files : one for each partition that has rows, as `table_file` or `write_rows` describes it.
        document : public JSON: the privacy statement, totals.
        rows : the number of rows in all files, if the caller knows it in another way.

        Raises LedgerBusy where the turn has ended otherwise, and InvalidInput where a file is not as described: then
        nothing is committed. After an OSError the same call may be repeated: it says what became of the first.
        """
        listed = sorted(files, key=lambda file: file.name)
        entry = Committed(
            number=self.number + 1,
            job=self.job,
            previous=digest(self._begun),
            files=listed,
            document=public_json(document, "document"),
        )
        try:
            check_files(self.table.data, entry, rows)
        except InvalidInput:
            if self._has_ended():
                # Its files may be cleaned away already; that they are missing is not what went wrong.
                raise self.table._ended(self._begun) from None
            raise
        if not append(self.table._log, entry):
            raise self.table._ended(self._begun)
        return entry

    def abandon(self) -> None:
        """End the turn without a commit; again is no error. Raises LedgerBusy where it has committed."""
        self.table._abandon(self._begun)

    def _has_ended(self) -> bool:
        return self.table._log.read(entry_file(self.number + 1)) is not None


def _open_turn(entries: Sequence[Entry]) -> Begun | None:
    return entries[-1] if entries and isinstance(entries[-1], Begun) else None


def _make_folders(folder: Path) -> None:
    """Make what is missing of the folders of a table. Raises InvalidInput for a folder of something else."""
    try:
        folder.mkdir(exist_ok=True)
        entries = {entry.name: entry.is_dir(follow_symlinks=False) for entry in os.scandir(folder)}
    except (OSError, ValueError):
        raise InvalidInput("table", str(folder), "a folder of an existing folder") from None
    if not set(entries) <= set(FOLDERS) or not all(entries.values()) or (entries and "log" not in entries):
        raise _not_a_table(folder)
    for name in FOLDERS:
        if name not in entries:
            (folder / name).mkdir(exist_ok=True)
    if len(entries) < len(FOLDERS):
        sync_folder(folder)
        sync_folder(folder.resolve().parent)


def _not_a_table(folder: Path) -> InvalidInput:
    return InvalidInput("table", str(folder), "a folder of a release table, an empty folder or a new name")


def entry_name(job: str, partition: int, attempt_random: str | None = None) -> str:
    """The name of a data file: job, partition (from 0) and 32 random hex digits, the system's where none are given.

    >>> entry_name("0" * 32, 7, "f" * 32)
    '00000000000000000000000000000000-00007-ffffffffffffffffffffffffffffffff.parquet'
    """
    number = whole(partition, "partition", 0, 999_999_999)
    name = f"{job}-{number:05d}-{secrets.token_hex(16) if attempt_random is None else attempt_random}.parquet"
    if not DATA_NAME.fullmatch(name):
        raise InvalidInput("attempt_random", name, "32 hex digits of the job and 32 random ones")
    return name


#: Job, partition, and the tag of the context.
ATTEMPT_NAME = re.compile(r"([0-9a-f]{32})-([0-9]{5,9})-([0-9a-f]{64})")


def say_attempt(folder: Path, job: str, partition: int, tag: bytes) -> str:
    """Leave the tag (32 bytes) of the context that an attempt is about to draw under; the tag as hex digits.

    The tag is an HMAC under the key of the job: without the key the name reveals nothing.
    """
    name = f"{job}-{whole(partition, 'partition', 0, 999_999_999):05d}-{tag.hex()}"
    if not ATTEMPT_NAME.fullmatch(name):
        raise InvalidInput("attempt", f"{len(tag)} bytes", "32 hex digits of the job and a tag of 32 bytes")
    (folder / name).touch()
    return tag.hex()


def write_rows(rows: pa.Table, path: Path) -> TableFile:
    """Write a data file that is not there yet, durably, and describe it. Raises FileExistsError."""
    import pyarrow.parquet as pq

    with path.open("xb") as file:
        pq.write_table(rows, file)
        file.flush()
        os.fsync(file.fileno())
    return table_file(path)


def table_file(path: Path) -> TableFile:
    """Describe a data file that is written. Raises InvalidInput where it is no whole Parquet file."""
    if not DATA_NAME.fullmatch(path.name):
        raise InvalidInput("files", path.name, "a name of entry_name")
    with opened_plain(path, path.name) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        size, rows = file.tell(), _parquet(file, path.name).num_rows
    return TableFile(name=path.name, sha256=digest, rows=rows, bytes=size)


def check_files(data: Path, entry: Committed, rows: int | None) -> None:
    """Raise InvalidInput unless the files of an entry are as it describes them; afterwards they are on the disk."""
    if not of_one_job(entry):
        raise InvalidInput("files", "a file of another job, or two of a partition", "one file of this job for each")
    total = sum(file.rows for file in entry.files)
    if rows is not None and total != rows:
        raise InvalidInput("files", f"{total} rows", f"{rows} rows")
    schemas = [check_file(data, file, True) for file in entry.files]
    if any(not schema.equals(schemas[0]) for schema in schemas):
        raise InvalidInput("files", "files with different columns", "the same columns in all files of a job")
    sync_folder(data)


def check_file(data: Path, told: TableFile, verify: bool) -> Any:
    """The Arrow schema of a file that is as its entry says, None unless ``verify``. Raises InvalidInput."""
    try:
        with opened_plain(data / told.name, told.name) as file:
            if os.fstat(file.fileno()).st_size != told.bytes:
                raise InvalidInput("files", f"{told.name} of another size", f"the {told.bytes} bytes of its entry")
            if not verify:
                return None
            if hashlib.file_digest(file, "sha256").hexdigest() != told.sha256:
                raise InvalidInput("files", f"{told.name} with other bytes", "the SHA-256 of its entry")
            os.fsync(file.fileno())
            parquet = _parquet(file, told.name)
            if parquet.num_rows != told.rows:
                raise InvalidInput("files", f"{told.name} of {parquet.num_rows} rows", f"the {told.rows} of its entry")
            return parquet.schema.to_arrow_schema()
    except FileNotFoundError:
        raise InvalidInput("files", told.name, "a file that exists in the table's data folder") from None


def _parquet(file: io.BufferedReader, name: str) -> Any:
    """The metadata of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(file).metadata
    except (pa.ArrowException, OSError):
        raise InvalidInput("files", name, "a whole Parquet file") from None
