"""Release the rows of a Spark frame into a release table: executors draw, the driver commits once.

All rows of a user come to one task by a hash of the user's key, so that spellings of one name meet. A task draws with
words that are a function of the key of the job and of all that its draws depend on, so attempts that are repeated or
race each other draw the same. Nothing is shown before the one commit, and `SparkRelease.table` reads what was
committed: no frame that draws is ever handed out.

Proof: docs/proofs/table-commit.md, docs/proofs/keyed-words.md. Decision: docs/adr/0027.
"""

from __future__ import annotations

import platform
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack

import msgspec

from dphmm import errors
from dphmm._checks import one_of, whole
from dphmm.accounting.ledger import MemoryLedger
from dphmm.accounting.person import SPELLINGS, UNICODE, version_of
from dphmm.errors import DphmmError, InvalidInput, LedgerBusy
from dphmm.markov.model import MarkovModel
from dphmm.policy.graph import PolicyGraph
from dphmm.release.batch import Batch, BatchChoices, BatchReport
from dphmm.samplers.entropy import JobKey
from dphmm.spark.bucket import BucketJob, Outcome, Refusal, ReleaseBuckets, StoredFile, versions
from dphmm.spark.counting import INTEGERS, MOMENTS, NUMBERS, TEXT, checked_type, named_columns, types_of
from dphmm.spark.settings import require_fixed, require_safe
from dphmm.spark.tasks import PlaceUsers, WithoutValues, hash_of_key
from dphmm.statement.origin import Whom
from dphmm.statement.parts import document, typed
from dphmm.statement.release import ReleaseStatement
from dphmm.states.space import StateSpace
from dphmm.storage.cells import explained
from dphmm.storage.commit_log import Committed, Entry
from dphmm.storage.inputs import PathLike
from dphmm.storage.release_table import ReleaseTable, Turn
from dphmm.storage.released import FileSums
from dphmm.storage.table_ledger import PREFIX
from dphmm.types import Exact

#: Buckets of a new table, where nobody says how many: enough for some 10^7 rows.
BUCKETS = 16
#: Seconds that a turn lasts without renewal; a thread renews it.
LEASE = 300.0
_MOST_BUCKETS = 10**5
#: The hash of a key, for tables to recognise the function by.
_HASH = hash_of_key(b"dphmm")
#: How often a commit whose outcome is not known is asked for again.
_COMMITS = 5
_NAMES = (*INTEGERS, *TEXT)
_TYPES = {
    "user": _NAMES,
    "t": MOMENTS,
    "step": INTEGERS,
    "lat": NUMBERS,
    "lon": NUMBERS,
    "state": _NAMES,
}
_ELSEWHERE = {
    "ledger": "none: the release table is the ledger; dphmm.release_many takes one",
    "bits": "none: words are those of a job key",
    "progress": "none: Spark shows the progress of its own tasks",
    **dict.fromkeys(("check", "although", "min_people"), "none: tables are not checked on Spark"),
}


@dataclass(frozen=True)
class SparkRelease:
    """The result of a job: ``entry`` is its number in the log, ``statement`` the privacy statement of its rows.

    ``report.outside`` and ``report.drifted`` are for the data owner alone: rows whose place or name is in no state, and
    where the belief had excluded the truth. They are not shown by ``repr``, and nowhere in the table.

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

    Raises InvalidInput where there is no table, and where nothing of the query was committed.

    Examples
    --------
    ``dphmm.spark.released(spark, "walks").groupBy("z").count()``

    Source: docs/proofs/table-commit.md.
    """
    table = _existing(into)
    files = [file.name for entry in _committed(table, query) for file in entry.files]
    if not files:
        raise InvalidInput("query", query, "a query with committed rows in this table")
    frame = spark.read.parquet(*(_literal(table.data / name) for name in files))
    return frame.drop(*(name for name in frame.columns if name.startswith(PREFIX)))


def statements(into: ReleaseTable | PathLike, query: str = "state") -> list[ReleaseStatement]:
    """The privacy statements of the jobs that committed rows of a query, in order.

    Raises InvalidInput where there is no table.

    Examples
    --------
    ``dphmm.spark.statements("walks")[-1].totals``

    Source: docs/proofs/table-commit.md.
    """
    documents = (entry.document.get("statement") for entry in _committed(_existing(into), query))
    return [typed(statement, ReleaseStatement) for statement in documents if statement is not None]


def release(
    frame: Any,
    model: MarkovModel,
    policy: PolicyGraph,
    space: StateSpace,
    epsilon: Exact | None = None,
    *,
    into: ReleaseTable | PathLike,
    columns: Mapping[str, str] | None = None,
    buckets: int | None = None,
    spelling: str | None = None,
    resume: bool = False,
    model_people: str = "unknown",
    holder: str | None = None,
    key: JobKey | None = None,
    **choices: Unpack[BatchChoices],
) -> SparkRelease:
    """Release the rows of a Spark frame into a release table, on its executors.

    Parameters
    ----------
    frame : rows with columns user, t (a timestamp) or step (whole numbers), and state (a name or a number), or lat and
        lon on a map. It must give the same rows whenever it is evaluated: read it from files or a table.
    model, policy, space, epsilon and other choices : as `dphmm.release_many`, without ledger, bits and
        progress.
    into : a release table, or a folder for one that all machines reach under this name. It is the ledger.
    columns : names of columns by role ("user", "t", "step", "lat", "lon", "state") where they differ.
    buckets : the number of a new table's parts for its users, each of which one task holds in memory; it stays.
    spelling : "same" if different spellings of a name are one person (the default), "exact" if they are several; it
        stays with the table. A user is called as the table has it, and a new one as the least of the spellings.
    resume : continue users that the table already holds; their stored rows stay as they are.
    model_people : "others" where the model was made without data of the people released; see the privacy statement.
    holder : a public name of who runs the job, for others who want the table meanwhile.
    key : a replayed key for tests and simulation, whose rows are marked; None for a new one.

    Returns
    -------
    SparkRelease : the committed job. Of several rows of a user in one step at the same time, those count that come last
    (or first) by the values of their columns.

    Raises
    ------
    InvalidInput : public options, unsafe settings (`dphmm.spark.check`), rows that cannot be read, or users that the
        table holds without ``resume``; a frame that Spark knows to give other rows each time. Nothing was committed.
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
    world = model, policy, space, epsilon
    _check_public(frame, model, policy, space, model_people, choices)
    spark, rows = frame.sparkSession, _columns(frame, columns)
    require_safe(spark)
    batch = Batch(*world, **choices)
    if batch.setting.model.step is not None and not {"t", "step"} & set(rows.columns):
        raise InvalidInput("columns", ", ".join(frame.columns), "a column t or step, or columns={'t': NAME}")
    require_fixed(rows)
    table = _table(into)
    rule = _placing(table.entries(), buckets, spelling).spelling
    batch = batch.over(MemoryLedger(rule), None)
    key = JobKey.new() if key is None else key
    turn = table.begin(_begun(batch), holder=holder or platform.node() or "driver", seconds=LEASE)
    try:
        with turn.renewing():
            # Another job may have committed before this turn began.
            before = table.entries()[: turn.position]
            placing = _placing(before, buckets, rule)
            history, path = _history(before), str(table.path)
            job = BucketJob(turn.job, path, world, choices, rule, resume, history, versions())
            outcomes = _drawn(spark, rows, job, key, placing.buckets)
            _require_one_context(turn, outcomes)
            _require_no_refusal(outcomes)
            committed, statement = _commit(turn, batch, outcomes, placing, model_people)
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
    report = BatchReport(**_total(outcome.counts for outcome in outcomes), plans=plans)
    return SparkRelease(spark, table, batch.setting.query, committed.number, report, statement)


def _check_public(frame: Any, model: Any, policy: Any, space: Any, model_people: str, choices: BatchChoices) -> None:
    """InvalidInput for arguments of another kind, and for choices that there are not on Spark."""
    if not hasattr(frame, "sparkSession"):
        raise InvalidInput("frame", type(frame).__name__, "a Spark frame; dphmm.release_many takes tables in memory")
    for name, argument, kind in (
        ("model", model, MarkovModel), ("policy", policy, PolicyGraph), ("space", space, StateSpace)
    ):  # fmt: skip
        if not isinstance(argument, kind):
            raise InvalidInput(name, type(argument).__name__, f"a {kind.__name__}")
    # The statement is made when all is drawn, which is late to find that it cannot be.
    Whom.of(model_people)
    known = BatchChoices.__optional_keys__ - _ELSEWHERE.keys()
    for name, argument in choices.items():
        if name in _ELSEWHERE:
            raise InvalidInput(name, type(argument).__name__, _ELSEWHERE[name])
        if name not in known:
            raise InvalidInput(name, "an unknown choice", f"one of {', '.join(sorted(known))}")


def _table(into: ReleaseTable | PathLike) -> ReleaseTable:
    """The release table, a new one where there is none. Raises InvalidInput for a place where no folder can be."""
    if isinstance(into, ReleaseTable):
        return into
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", str(into)):
        expected = (
            "a path of a folder, without file://; an object store or HDFS needs a Store (docs/proofs/table-commit.md)"
        )
        raise InvalidInput("into", str(into), expected)
    folder = Path(into)
    if not folder.absolute().parent.is_dir():
        raise InvalidInput("into", str(into), f"a folder whose parent exists: {folder.absolute().parent} does not")
    if folder.exists() and not folder.is_dir():
        raise InvalidInput("into", f"{into}, a file", "a folder of a release table, or a new name")
    return ReleaseTable.open(folder)


def _existing(into: ReleaseTable | PathLike) -> ReleaseTable:
    """An existing table: a reader makes none."""
    if not isinstance(into, ReleaseTable) and not (Path(into) / "log").is_dir():
        raise InvalidInput("into", str(into), "the folder of a table that dphmm.spark.release made")
    return _table(into)


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
    if "state" not in named and not {"lat", "lon"} <= set(named):
        raise InvalidInput("columns", ", ".join(types), "both lat and lon, or state; columns={'lon': NAME} names one")
    columns = []
    for role, name in named.items():
        column = frame[f"`{name}`"]
        if role == "user" or types[name] in TEXT:
            # Bytes that are no text are a missing cell, which is refused by its reason.
            column = functions.try_validate_utf8(column.cast("string"))
        columns.append(column.alias(role))
    return frame.select(*columns)


class Placing(msgspec.Struct, frozen=True):
    """The rule of a table for telling users apart and placing them in buckets: the same for all of its jobs.

    ``hash`` : that of one key. A user whose hash changed would be in another bucket, where nothing of it is known.
    ``unicode`` : the version by which a job read names; a table goes on with the same or a later one.
    """

    buckets: int
    spelling: str
    hash: int
    unicode: str


def _placing(entries: Sequence[Entry], buckets: int | None, spelling: str | None) -> Placing:
    """The placing that a table with these entries has for the users of one more job.

    Raises InvalidInput for another number of buckets, another rule of spelling or another hash than it has, and where
    an earlier job read names by a later version of Unicode.
    """
    committed = [entry.document for entry in entries if isinstance(entry, Committed)]
    if not committed:
        number = BUCKETS if buckets is None else whole(buckets, "buckets", 1, _MOST_BUCKETS)
        return Placing(number, one_of(spelling or "same", SPELLINGS, "spelling"), _HASH, UNICODE)
    try:
        jobs = [msgspec.convert(document, Placing) for document in committed]
        latest = max((job.unicode for job in jobs), key=version_of)
    except (msgspec.ValidationError, ValueError):
        jobs = []
    # What all of them have in common, as this job has it.
    placing = Placing(jobs[0].buckets, jobs[0].spelling, _HASH, UNICODE) if jobs else None
    if placing is None or any(msgspec.structs.replace(job, unicode=UNICODE) != placing for job in jobs):
        raise InvalidInput("table", "users in buckets of another kind", "a table that dphmm.spark.release made")
    for name, asked, fixed in (("buckets", buckets, placing.buckets), ("spelling", spelling, placing.spelling)):
        if asked is not None and asked != fixed:
            raise InvalidInput(name, asked, f"{fixed}, as the table has")
    if version_of(latest) > version_of(UNICODE):
        expected = f"Unicode {latest} or later, by which an earlier job read names: a later version of Python"
        raise InvalidInput("table", f"Unicode {UNICODE} of this Python", expected)
    return placing


def _begun(batch: Batch) -> dict[str, Any]:
    """The log's facts of a job that begins: public options and versions, nothing of its rows."""
    options = dict(batch.setting.header("", "").options)
    return {"query": batch.setting.query, "options": options, "versions": versions()}


def _history(entries: Sequence[Entry]) -> dict[int, list[StoredFile]]:
    """The committed files of each bucket, in the order of the log."""
    files: dict[int, list[StoredFile]] = {}
    for entry in entries:
        if isinstance(entry, Committed):
            for file in entry.files:
                files.setdefault(file.partition, []).append(StoredFile(entry.document["query"], file))
    return files


def _placed(rows: Any, buckets: int, spelling: str) -> Any:
    """The rows with the number of their bucket, each bucket in a partition of its own."""
    from pyspark.sql.types import IntegerType, StructField, StructType

    columns = StructType([*rows.schema.fields, StructField("bucket", IntegerType())])
    placed = rows.mapInArrow(WithoutValues(PlaceUsers(buckets, spelling)), columns)
    return placed.repartitionById(buckets, "bucket")


def _drawn(spark: Any, rows: Any, job: BucketJob, key: JobKey, buckets: int) -> list[Outcome]:
    """Have the executors draw; the outcome of every bucket that has rows, in order.

    The job goes by itself, as it may be large and is public; the function that has the key is small, so that Spark
    sends it with the task and keeps it in no file. The frame that draws is evaluated here, once, and goes no further.
    """
    shared = spark.sparkContext.broadcast(job)
    try:
        drawing = _placed(rows, buckets, job.spelling).mapInArrow(
            ReleaseBuckets(shared, key), "bucket int, outcome string"
        )
        collected = drawing.collect()
    finally:
        shared.destroy()
    outcomes = [msgspec.json.decode(row["outcome"], type=Outcome) for row in collected]
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


def _require_no_refusal(outcomes: Sequence[Outcome]) -> None:
    """Raise the refusal of the job: rows that cannot be read, or a bucket that was refused where no row was drawn."""
    unreadable = _total(outcome.unreadable for outcome in outcomes)
    if unreadable:
        reasons = ", ".join(f"{rows} {explained(reason)}" for reason, rows in sorted(unreadable.items()))
        raise InvalidInput(
            "frame",
            f"{sum(unreadable.values())} rows that cannot be read ({reasons})",
            "in every row a user (text of 1 to 200 printable characters), a time or step, and a place or state",
        )
    drew = any(outcome.file is not None for outcome in outcomes)
    for outcome in outcomes:
        if outcome.refused is not None and not (outcome.drew and drew):
            raise _raised(outcome.refused)


def _commit(
    turn: Turn, batch: Batch, outcomes: Sequence[Outcome], placing: Placing, model_people: str
) -> tuple[Committed, ReleaseStatement | None]:
    """Make the files part of the table, with the privacy statement of their rows."""
    published = FileSums.of_parts(outcome.counted for outcome in outcomes if outcome.counted is not None)
    statement = batch.statement(published, model_people, words="job key") if published.rows else None
    facts = {
        "query": batch.setting.query,
        **msgspec.structs.asdict(placing),
        "rows": published.rows,
        "subjects": published.subjects,
        "statement": None if statement is None else document(statement),
    }
    files = [outcome.file for outcome in outcomes if outcome.file is not None]
    for left in reversed(range(_COMMITS)):
        try:
            return turn.commit(files, facts, rows=published.rows), statement
        except OSError:
            # Whether it was made is not known: the same call says.
            if not left:
                raise
    raise AssertionError


def _total(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Counts by name, added up."""
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return dict(total)


def _raised(refusal: Refusal, more: str = "") -> DphmmError:
    """The error that a task returned."""
    kind = getattr(errors, refusal.kind)
    error: DphmmError = kind.__new__(kind)
    error.args = (refusal.message + more,)
    if refusal.field:
        vars(error)["field"] = refusal.field
    return error
