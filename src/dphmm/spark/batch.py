"""Release the rows of a Spark frame into a release table: executors draw, the driver commits once.

All rows of a user come to one task by a hash of the user. A task draws with words that are a function of the key of the
job and of all that its draws depend on, so attempts that are repeated or race each other draw the same. Nothing is
shown before the one commit, and `Released.table` reads what was committed: no frame that draws is ever handed out.

Proof: docs/proofs/table-commit.md, docs/proofs/keyed-words.md. Decision: docs/adr/0027.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from dphmm import errors
from dphmm._checks import whole
from dphmm.batch import Batch, BatchReport
from dphmm.errors import DphmmError, InvalidInput, LedgerBusy
from dphmm.samplers.keyed import JobKey
from dphmm.spark.bucket import BucketJob, Outcome, Refusal, ReleaseBuckets, StoredFile, versions
from dphmm.spark.counting import INTEGERS, NUMBERS, TEXT, checked_type, named_columns, types_of
from dphmm.spark.settings import require_safe
from dphmm.storage.commit_log import Committed, Entry
from dphmm.storage.inputs import PathLike
from dphmm.storage.learned import Whom
from dphmm.storage.release_table import ReleaseTable, Turn
from dphmm.storage.released import Published
from dphmm.storage.statement_types import KEYED_WORDS, ReleaseStatement, document, typed
from dphmm.storage.table_ledger import PREFIX
from dphmm.types import Exact

if TYPE_CHECKING:
    from dphmm.markov.model import MarkovModel
    from dphmm.policy.graph import PolicyGraph
    from dphmm.states.space import StateSpace

#: Buckets of a new table, where nobody says how many: enough for some 10^7 rows.
BUCKETS = 16
#: Seconds that a turn lasts without renewal; a thread renews it.
LEASE = 300.0
_MOST_BUCKETS = 10**5
#: How often a commit whose outcome is not known is asked for again.
_COMMITS = 5
_NAMES = (*INTEGERS, *TEXT)
_TYPES = {
    "user": _NAMES,
    "t": ("TimestampType",),
    "step": INTEGERS,
    "lat": NUMBERS,
    "lon": NUMBERS,
    "state": _NAMES,
}
_ELSEWHERE = {
    "ledger": "none: the release table is the ledger; dphmm.release_many takes one",
    "bits": "none: words are those of a job key",
    "groups": "none: members of a group are in several buckets; dphmm.release_many takes groups",
    "cap_group": "none: members of a group are in several buckets; dphmm.release_many takes groups",
}


@dataclass(frozen=True)
class Released:
    """What a job committed: ``entry`` is its number in the log, ``statement`` the privacy statement of its rows.

    ``statement`` is None where every row was stored before.
    """

    spark: Any = field(repr=False)
    into: ReleaseTable = field(repr=False)
    query: str
    entry: int
    report: BatchReport
    statement: ReleaseStatement | None = field(repr=False)

    def table(self) -> Any:
        """A Spark frame of all committed rows of the query, of this job and of others; it reads files."""
        return released(self.spark, self.into, self.query)


def released(spark: Any, into: ReleaseTable | PathLike, query: str = "state") -> Any:
    """A Spark frame of the committed rows of a query, in the columns of `dphmm.release_many`.

    Parameters
    ----------
    spark : a SparkSession.
    into : the release table, or its folder.
    query : the query whose rows are read.

    Raises InvalidInput where nothing of the query was committed.

    Examples
    --------
    ``dphmm.spark.released(spark, "walks").groupBy("estimate").count()``

    Source: docs/proofs/table-commit.md.
    """
    table = _table(into)
    files = [file.name for entry in _committed(table, query) for file in entry.files]
    if not files:
        raise InvalidInput("query", query, "a query with committed rows in this table")
    # Jobs with and without estimates have different columns.
    frame = spark.read.option("mergeSchema", "true").parquet(*(_literal(table.data / name) for name in files))
    return frame.drop(*(name for name in frame.columns if name.startswith(PREFIX)))


def statements(into: ReleaseTable | PathLike, query: str = "state") -> list[ReleaseStatement]:
    """The privacy statements of the jobs that committed rows of a query, in order.

    Examples
    --------
    ``dphmm.spark.statements("walks")[-1].totals``

    Source: docs/proofs/table-commit.md.
    """
    found = (entry.document.get("statement") for entry in _committed(_table(into), query))
    return [typed(told, ReleaseStatement) for told in found if told is not None]


def release(
    frame: Any,
    model: MarkovModel,
    policy: PolicyGraph,
    space: StateSpace,
    epsilon: Exact | None = None,
    *,
    into: ReleaseTable | PathLike,
    query: str = "state",
    columns: Mapping[str, str] | None = None,
    buckets: int | None = None,
    resume: bool = False,
    model_people: str = "unknown",
    holder: str | None = None,
    key: JobKey | None = None,
    **choices: Any,
) -> Released:
    """Release the rows of a Spark frame into a release table, on its executors.

    Parameters
    ----------
    frame : rows with columns user, t (a timestamp) or step (whole numbers), and state (a name or a number), or lat and
        lon on a map. It must give the same rows whenever it is evaluated: read it from files or a table.
    model, policy, space, epsilon, query and other choices : as `dphmm.release_many`, without ledger, bits and groups.
    into : a release table, or a folder for one that all machines reach under this name. It is the ledger.
    columns : names of columns by role ("user", "t", "step", "lat", "lon", "state") where they differ.
    buckets : in how many parts a new table keeps its users, each of which one task holds in memory; it stays.
    resume : continue users that the table already holds; their stored rows stay as they are.
    model_people : "others" where the model was made without data of the people released; see the privacy statement.
    holder : a public name of who runs the job, for others who want the table meanwhile.
    key : a replayed key for tests and simulation, whose rows are marked; None for a new one.

    Returns
    -------
    Released : what was committed. Of several rows of a user in one step at the same time, those count that come last
    (or first) by the values of their columns.

    Raises
    ------
    InvalidInput : public options, unsafe settings (`dphmm.spark.check`), rows that cannot be read, or users that the
        table holds without ``resume``. Nothing was committed.
    BudgetExceeded : all rows of a user together would pass a cap or break a promise. Nothing was committed.
    Refused : as `dphmm.release_many`; where it came after answers had been drawn, these were committed before it is
        raised, and its message says so.
    LedgerBusy : another job has its turn.

    Examples
    --------
    ``found = dphmm.spark.release(frame, model, policy, space, 1, into="walks", model_people="others")``
    ``found.table().show()``

    Source: docs/proofs/table-commit.md, docs/proofs/keyed-words.md.
    """
    spark = frame.sparkSession
    require_safe(spark)
    # The statement is made when all is drawn, which is late to find that it cannot be.
    Whom.of(model_people)
    for name in _ELSEWHERE:
        if name in choices:
            raise InvalidInput(name, type(choices[name]).__name__, _ELSEWHERE[name])
    rows = _columns(frame, columns)
    choices = {"query": query, **choices}
    batch = Batch(model, policy, space, epsilon, **choices)
    if batch.setting.model.step is not None and not {"t", "step"} & set(rows.columns):
        raise InvalidInput("columns", ", ".join(frame.columns), "a column t or step, or columns={'t': NAME}")
    table = _table(into)
    hashed = _hash_of_a_name(spark)
    _buckets(table.entries(), buckets, hashed)
    key = JobKey.new() if key is None else key
    turn = table.begin(_begun(batch), holder=holder or platform.node() or "driver", seconds=LEASE)
    try:
        with turn.renewing():
            # Another job may have committed before this turn began.
            before = table.entries()[: turn.position]
            parts = _buckets(before, buckets, hashed)
            job = BucketJob(
                job=turn.job,
                table=str(table.path),
                world=(model, policy, space, epsilon),
                choices=choices,
                resume=resume,
                history=_history(before),
                versions=versions(),
            )
            outcomes = _drawn(spark, rows, job, key, parts)
            _require_one_context(turn, outcomes)
            drew = any(outcome.file is not None for outcome in outcomes)
            for outcome in outcomes:
                if outcome.refused is not None and not (outcome.drew and drew):
                    raise _raised(outcome.refused)
            committed, statement = _commit(turn, batch, outcomes, {"buckets": parts, "hash": hashed}, model_people)
    except BaseException:
        # Where the job has committed all the same, nothing is abandoned; a dead disk leaves that to the next job.
        with suppress(LedgerBusy, OSError):
            turn.abandon()
        raise
    finally:
        key.overwrite()
        with suppress(OSError):
            table.clean()
    for outcome in outcomes:
        if outcome.refused is not None:
            raise _raised(outcome.refused, f"; {committed.document['rows']} rows were committed before it")
    plans = {plan for outcome in outcomes if outcome.counted is not None for plan in outcome.counted.plans}
    report = BatchReport(**_sums(outcomes), plans=plans)
    return Released(spark, table, query, committed.number, report, statement)


def _table(into: ReleaseTable | PathLike) -> ReleaseTable:
    return into if isinstance(into, ReleaseTable) else ReleaseTable.open(into)


def _literal(path: Path) -> str:
    """A path for Spark's readers, which take `[a]`, `{a,b}`, `*` and `?` in it for patterns of other paths."""
    return "file://" + re.sub(r"([\[\]{}*?\\])", r"\\\1", str(path))


def _committed(table: ReleaseTable, query: str) -> list[Committed]:
    return [entry for entry in table.entries() if isinstance(entry, Committed) and entry.document.get("query") == query]


def _columns(frame: Any, given: Mapping[str, str] | None) -> Any:
    """The columns that are released, under the names of their roles. Raises InvalidInput for those that will not do."""
    from pyspark.sql import functions

    types = types_of(frame)
    named = {role: role for role in _TYPES if role in types} | named_columns(types, given, tuple(_TYPES))
    for role, name in named.items():
        checked_type(types, name, _TYPES[role])
    for roles in (("user",), ("t", "step"), ("state", "lat")):
        if not set(roles) & set(named):
            raise InvalidInput("columns", ", ".join(types), f"a column {' or '.join(roles)}, or columns={{ROLE: NAME}}")
    kept = []
    for role, name in named.items():
        column = frame[f"`{name}`"]
        if role == "user" or types[name] in TEXT:
            # Bytes that are no text are a missing cell, which is refused by its reason.
            column = functions.try_validate_utf8(column.cast("string"))
        kept.append(column.alias(role))
    return frame.select(*kept).withColumn("hash", _hash(functions.col("user")))


def _hash(user: Any) -> Any:
    """What a user's bucket follows from: of the bytes of the name, so that no collation decides."""
    from pyspark.sql import functions

    return functions.xxhash64(user.cast("string").cast("binary"))


def _hash_of_a_name(spark: Any) -> int:
    """The hash of one name. A user whose hash changed would be in another bucket, where nothing of it is known."""
    from pyspark.sql import functions

    return int(spark.range(1).select(_hash(functions.lit("dphmm"))).first()[0])


def _buckets(entries: Sequence[Entry], given: int | None, hashed: int) -> int:
    """In how many buckets a table keeps its users. Raises InvalidInput for another number, or another hash."""
    for entry in entries:
        if isinstance(entry, Committed):
            kept = entry.document.get("buckets")
            if type(kept) is not int or entry.document.get("hash") != hashed:
                raise InvalidInput("table", "users in buckets of another kind", "a table that dphmm.spark.release made")
            if given is not None and given != kept:
                raise InvalidInput("buckets", given, f"{kept}, as the table has")
            return kept
    return BUCKETS if given is None else whole(given, "buckets", 1, _MOST_BUCKETS)


def _begun(batch: Batch) -> dict[str, Any]:
    """What the log says of a job that begins: public options and versions, nothing of its rows."""
    options = dict(batch.setting.header("", "").options)
    return {"query": batch.setting.query, "options": options, "versions": versions()}


def _history(entries: Sequence[Entry]) -> dict[int, list[StoredFile]]:
    """The committed files of each bucket, in the order of the log."""
    found: dict[int, list[StoredFile]] = {}
    for entry in entries:
        if isinstance(entry, Committed):
            for file in entry.files:
                found.setdefault(file.partition, []).append(StoredFile(entry.document["query"], file))
    return found


def _drawn(spark: Any, rows: Any, job: BucketJob, key: JobKey, buckets: int) -> list[Outcome]:
    """Have the executors draw; the outcome of every bucket that has rows, in order.

    The job goes by itself, as it may be large and is public; the function that has the key is small, so that Spark
    sends it with the task and keeps it in no file. The frame that draws is evaluated here, once, and goes no further.
    """
    from pyspark.sql import functions

    placed = rows.withColumn("bucket", functions.pmod("hash", functions.lit(buckets)).cast("int")).drop("hash")
    shared = spark.sparkContext.broadcast(job)
    try:
        drawing = placed.repartitionById(buckets, "bucket").mapInArrow(
            ReleaseBuckets(shared, key), "bucket int, outcome string"
        )
        told = drawing.collect()
    finally:
        shared.destroy()
    outcomes = [msgspec.json.decode(row["outcome"], type=Outcome) for row in told]
    if len({outcome.bucket for outcome in outcomes}) != len(outcomes):
        raise RuntimeError("Spark gave two results for one bucket; nothing was committed")
    return sorted(outcomes, key=lambda outcome: outcome.bucket)


def _require_one_context(turn: Turn, outcomes: Sequence[Outcome]) -> None:
    """Raises InvalidInput where attempts at a bucket saw different rows: whichever came first would be chosen."""
    drew = {outcome.bucket: {outcome.tag} for outcome in outcomes if outcome.drew}
    # A bucket that was drawn and gave no result in the end is one whose rows were gone at another attempt.
    if turn.tags() != drew:
        raise InvalidInput(
            "frame",
            "other rows at another attempt; nothing was committed",
            "the same rows whenever it is evaluated: write it to files first, and read these",
        )


def _commit(
    turn: Turn, batch: Batch, outcomes: Sequence[Outcome], placing: Mapping[str, int], model_people: str
) -> tuple[Committed, ReleaseStatement | None]:
    """Make the files part of the table, with the privacy statement of their rows."""
    published = Published.of_parts(outcome.counted for outcome in outcomes if outcome.counted is not None)
    statement = batch.statement(published, model_people, words=KEYED_WORDS) if published.rows else None
    told = {
        "query": batch.setting.query,
        **placing,
        "rows": published.rows,
        "subjects": published.subjects,
        "statement": None if statement is None else document(statement),
    }
    files = [outcome.file for outcome in outcomes if outcome.file is not None]
    for left in reversed(range(_COMMITS)):
        try:
            return turn.commit(files, told, rows=published.rows), statement
        except OSError:
            # Whether it was made is not known: the same call says.
            if not left:
                raise
    raise AssertionError


def _sums(outcomes: Sequence[Outcome]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for outcome in outcomes:
        for name, count in outcome.counts.items():
            sums[name] = sums.get(name, 0) + count
    return sums


def _raised(refusal: Refusal, more: str = "") -> DphmmError:
    """The error that a task returned."""
    kind = getattr(errors, refusal.kind)
    error: DphmmError = kind.__new__(kind)
    error.args = (refusal.message + more,)
    if refusal.field:
        vars(error)["field"] = refusal.field
    return error
