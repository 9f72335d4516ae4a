"""One task of a release on a cluster: the rows of a bucket of users in, one data file of the table out.

All of a user's rows are in one bucket, and all of a bucket in one task, which plans them from the whole committed
history. Its draws are a function of the job's key and of all that the draws depend on, so every attempt at a bucket
draws the same. Nothing of it is seen before the driver commits the file.

A refusal of a bucket before it draws refuses the job, and nothing of it is committed. A refusal of rows after others
were drawn may depend on these: the drawn ones are committed first, as `dphmm.release_many` does.

Proof: docs/proofs/keyed-words.md, docs/proofs/table-commit.md.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from dphmm._cached import cached_property
from dphmm.accounting.ledger import MemoryLedger
from dphmm.errors import DphmmError, InvalidInput
from dphmm.release.batch import Batch, BatchReport
from dphmm.samplers.entropy import JobKey, encoded
from dphmm.session.plan import ALGORITHM_VERSION
from dphmm.session.releases import Releases
from dphmm.spark.tasks import keep_loaded, without_values
from dphmm.states.visit_table import VisitTable
from dphmm.storage.commit_log import TableFile
from dphmm.storage.release_table import check_file, entry_name, say_attempt, write_rows
from dphmm.storage.released import Counted, FileSums, released_table
from dphmm.storage.table_ledger import OF_A_LEDGER, PREFIX, ledger_of, with_ledger
from dphmm.storage.trajectories import by_reason, load_visits
from dphmm.types import IntArray

if TYPE_CHECKING:
    import pyarrow as pa


@cache
def versions() -> Mapping[str, str]:
    """The versions that decide which integers are made of the same words: all machines of a job must have the same.

    Read once in a process, which goes on with what it has loaded.
    """
    packages = {name: version(name) for name in ("dphmm", "numpy", "numba", "pyarrow")}
    machine = {"algorithm": str(ALGORITHM_VERSION), "machine": platform.machine(), "python": platform.python_version()}
    return packages | machine


class StoredFile(msgspec.Struct, frozen=True):
    """A committed file with rows of a bucket, and the query that they are of."""

    query: str
    file: TableFile


class Refusal(msgspec.Struct, frozen=True):
    """An error of `dphmm.errors` as data: its class, its message, and the field that it names, if any."""

    kind: str
    message: str
    field: str = ""


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of a bucket: its file (None without rows), the sums over its rows, and its refusal.

    ``unreadable`` : the number of its rows that cannot be read, by reason; if there are any, nothing was drawn.
    """

    bucket: int
    tag: str = ""
    file: TableFile | None = None
    counts: dict[str, int] = {}
    counted: Counted | None = None
    refused: Refusal | None = None
    unreadable: dict[str, int] = {}

    @property
    def drew(self) -> bool:
        """True if the bucket came to the point where answers are drawn."""
        return bool(self.tag)


@dataclass(frozen=True)
class BucketJob:
    """The data and the setting of a job's release: the same for all of its buckets, and public.

    ``world`` : model, policy, space, epsilon; ``choices`` : all others of `dphmm.release.batch.Batch`.
    ``spelling`` : the rule by which names are of one person.
    ``history`` : {bucket: its committed files in the order of the log}.
    """

    job: str
    table: str
    world: tuple[Any, ...]
    choices: Mapping[str, Any]
    spelling: str
    resume: bool
    history: Mapping[int, Sequence[StoredFile]]
    versions: Mapping[str, str]

    @cached_property
    def batch(self) -> Batch:
        """The batch that answers rows; plans are kept with it."""
        return Batch(*self.world, ledger=MemoryLedger(self.spelling), **self.choices)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "batch"}

    def run(self, key: JobKey, bucket: int, rows: pa.Table) -> Outcome:
        """Release the rows of a bucket, and describe the file that they are in. Refusals are returned, not raised."""
        try:
            if (installed := versions()) != self.versions:
                name = next(name for name, wanted in self.versions.items() if installed.get(name) != wanted)
                fault = f"{name} {installed.get(name)} on an executor"
                raise InvalidInput("spark", fault, f"{name} {self.versions[name]} on all machines, as on the driver")
            visits, unreadable = self._rows(rows)
            if unreadable:
                return Outcome(bucket, unreadable=unreadable)
            history = ledger_of(list(self._parts(bucket)), visits.users, self.spelling)
            tag, batch = self._tagged(key, bucket, visits, history)
        except DphmmError as error:
            return Outcome(bucket, refused=_as_data(error))
        return self._draw(batch, bucket, tag, visits)

    def _rows(self, rows: pa.Table) -> tuple[VisitTable, dict[str, int]]:
        """The rows to answer, and the number that cannot be read, by reason."""
        batch = self.batch
        setting, answer = batch.setting, batch.answer
        loaded = load_visits(
            in_order(rows), setting.space, setting.model.step, answer, spelling=self.spelling, may_be_empty=True
        )
        return loaded.visits, by_reason(loaded.rejected)

    def _parts(self, bucket: int) -> Iterator[tuple[str, pa.Table]]:
        """The committed rows of a bucket, file by file, with the columns that a ledger is made of."""
        import pyarrow.parquet as pq

        data = Path(self.table) / "data"
        for stored in self.history.get(bucket, ()):
            check_file(data, stored.file, True)
            with pq.ParquetFile(data / stored.file.name) as file:
                names = [n for n in file.schema_arrow.names if n in OF_A_LEDGER or n.startswith(PREFIX)]
                yield stored.query, file.read(columns=names)

    def _tagged(self, key: JobKey, bucket: int, visits: VisitTable, ledger: MemoryLedger) -> tuple[str, Batch]:
        """Check all that can be refused ahead; returns the tag of the context of the draws, and the batch."""
        context = encoded(
            self.job,
            *(part for pair in sorted(self.versions.items()) for part in pair),
            self.batch.setting.query,
            bucket,
            *(stored.file.sha256 for stored in self.history.get(bucket, ())),
            digest_of(visits),
        )
        batch = self.batch.over(ledger, key.bits(context))
        batch.check(visits, resume=self.resume)
        attempts = Path(self.table) / "attempts"
        return say_attempt(attempts, self.job, bucket, key.tag(context)), batch

    def _draw(self, batch: Batch, bucket: int, tag: str, visits: VisitTable) -> Outcome:
        """Draw the answers and write them. Whatever was drawn is in the file, also where later rows are refused."""
        query, ledger = batch.setting.query, batch.ledger
        last = {user: ledger.entries(user, query)[-1].through for user, name in ledger.sessions() if name == query}
        promised = {user for user, _ in ledger.sessions() if ledger.caps(user).promise is not None}
        parts, refused = list[Releases](), None
        try:
            for part in batch.run(visits, resume=self.resume):
                if isinstance(part, Releases):
                    parts.append(part)
        except DphmmError as error:
            refused = _as_data(error)
        releases = Releases.joined(parts)
        fresh = None if releases is None else releases.taken(_behind(releases, last))
        file = None
        if fresh is not None and len(fresh):
            published = released_table(fresh, batch.setting.space)
            path = Path(self.table) / "data" / entry_name(self.job, bucket)
            file = write_rows(with_ledger(published, fresh, ledger, query, last, promised), path)
        counted = FileSums(() if fresh is None else fresh).counted()
        return Outcome(bucket, tag, file, _counts(batch.report), counted, refused)


@dataclass(frozen=True)
class ReleaseBuckets:
    """The function that Spark maps over the batches of a partition. The job comes by itself: it may be large."""

    job: Any
    key: JobKey

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        rows = [batch for batch in batches if len(batch)]
        if not rows:
            return
        table = pa.Table.from_batches(rows)
        del rows
        numbers = table.column("bucket").unique().to_pylist()
        if len(numbers) != 1:
            raise RuntimeError("a partition of Spark has rows of several buckets")
        outcome = self._outcome(numbers[0], table.drop_columns(["bucket"]))
        del table
        keep_loaded()
        text = msgspec.json.encode(outcome).decode()
        yield pa.record_batch({"bucket": pa.array(numbers, pa.int32()), "outcome": pa.array([text])})

    def _outcome(self, bucket: int, rows: pa.Table) -> Outcome:
        job: BucketJob = self.job.value
        try:
            return job.run(self.key, bucket, rows)
        except Exception as error:
            raise without_values(error) from None


def in_order(rows: pa.Table) -> pa.Table:
    """Rows in a total order of their own, by each column in turn: they come as the shuffle brings them.

    As `pyarrow.Table.sort_by`, which compares texts and rows: here numbers are sorted, those of the first two columns
    together where there is room.
    """
    rows = rows.combine_chunks()
    keys = [_ranks(column) for column in rows.columns]
    (first, second), (least, begin) = keys[:2], (int(key.min()) for key in keys[:2])
    span = int(second.max()) - begin + 1
    if (int(first.max()) - least + 1) * span < 2**62:
        joined = (first - least) * span + (second - begin)
        order = np.argsort(joined)
        placed = joined[order]
        if (placed[1:] != placed[:-1]).all():
            return rows.take(order)
    return rows.take(np.lexsort(keys[::-1]))


def _ranks(column: pa.ChunkedArray) -> IntArray:
    """Numbers (n,) in the order of the cells, nulls last; of whole numbers and moments without nulls, themselves."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count == 0 and (pa.types.is_integer(column.type) or pa.types.is_timestamp(column.type)):
        return np.asarray(column.cast(pa.int64()))
    encoded = column.combine_chunks().dictionary_encode()
    ranks = np.asarray(pc.rank(encoded.dictionary, tiebreaker="dense"), dtype=np.int64)
    numbers: IntArray = np.append(ranks, len(ranks) + 1)[np.asarray(encoded.indices.fill_null(len(ranks)))]
    return numbers


def digest_of(visits: VisitTable) -> bytes:
    """SHA-256 of the rows that are answered: users, steps, times and true states. Private: for a context alone."""
    digest = hashlib.sha256()
    names = [user.encode("utf-8", "surrogatepass") for user in visits.users]
    lengths = np.array([len(name) for name in names], dtype="<i8")
    for part in (lengths.tobytes(), b"".join(names), visits.first.astype("<i8").tobytes()):
        digest.update(len(part).to_bytes(8, "big") + part)
    for column in (visits.time, visits.step, visits.codes):
        content = b"" if column is None else np.ascontiguousarray(column, dtype="<i8").tobytes()
        digest.update(len(content).to_bytes(8, "big") + content)
    return digest.digest()


def _behind(rows: Releases, last: Mapping[str, int]) -> Any:
    """True where a row (n,) is after the last stored step of its user."""
    if not last:
        return np.ones(len(rows), dtype=np.bool_)
    return rows.t > np.array([last.get(user, 0) for user in rows.users], dtype=np.int64)


def _counts(report: BatchReport) -> dict[str, int]:
    """The figures of a report that are added up over buckets: all but the plans, which `Counted` has."""
    return {figure.name: int(getattr(report, figure.name)) for figure in fields(report) if figure.name != "plans"}


def _as_data(error: DphmmError) -> Refusal:
    return Refusal(type(error).__name__, str(error), getattr(error, "field", ""))
