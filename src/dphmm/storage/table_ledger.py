"""The ledger of a release table: columns beside the published ones, and a ledger made of them again.

A data file has one row for each released step, in order of user and step, with these columns beside the published ones:

ledger_z_0, ...   the answer in lattice steps; null in a row that was not asked
ledger_terms      JSON of what the release was made under, with the hash of its plan; null in a row that was not asked
ledger_plan       the plan as JSON, in the first row of a file that has it
ledger_session    the options of the session as JSON, in a user's first row of all
ledger_caps       the caps of the user's account as JSON, in a user's first row of a file, where there are any; with the
                  bounds of the blocks of local days that end after this row, of a promise that has such

Steps between the rows of a user are skipped ones. The moments of steps that are ranks of times are in the
published column t. All of it is public, as the ledger is.

Proof: docs/proofs/table-commit.md.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.accounting.budget import UNLIMITED, Caps, quoted
from dphmm.accounting.clock import Bounds
from dphmm.accounting.ledger import Ledger, MemoryLedger, PlanRecord, Request, Requests, SessionHeader
from dphmm.accounting.moments import has_moments
from dphmm.accounting.person import key_by
from dphmm.errors import DphmmError, InvalidInput
from dphmm.session.releases import NOT_ASKED, Releases
from dphmm.session.setting import HEADER_OPTIONS
from dphmm.storage.commit_log import Committed
from dphmm.storage.inputs import PathLike
from dphmm.storage.ledger import open_ledger
from dphmm.storage.ledger.schema import bounds_from, caps_from, number_of, number_text
from dphmm.storage.release_table import ReleaseTable, check_file
from dphmm.storage.released import run_starts
from dphmm.types import IntArray

if TYPE_CHECKING:
    import pyarrow as pa

#: What the names of these columns begin with.
PREFIX = "ledger_"
#: Published columns that a ledger is made of, too.
OF_A_LEDGER = ("user", "t", "step")
_WHOLE = "rows as dphmm wrote them; restore the table from a copy"


def ledger_columns(axes: int) -> list[str]:
    """The columns that a table keeps beside the published ones, of answers of so many axes."""
    return [f"{PREFIX}{name}" for name in (*(f"z_{axis}" for axis in range(axes)), "terms", "plan", "session", "caps")]


def with_ledger(
    published: pa.Table,
    rows: Releases,
    ledger: Ledger,
    query: str,
    known: Iterable[str],
    promised: Collection[str] = (),
) -> pa.Table:
    """The published rows (n,) with the columns of the ledger beside them.

    ``rows`` are those of ``published``, in order of user and step; ``ledger`` has stored them. Earlier files have the
    sessions of this query of the ``known`` users, and promises of those ``promised``.
    """
    import pyarrow as pa

    asked, before = rows.asked, set(known)
    columns = {
        f"z_{axis}": pa.array(rows.z_lattice[:, axis], pa.int64(), mask=~asked)
        for axis in range(rows.z_lattice.shape[1])
    }
    kinds = [_terms(rows, number, secure) for number in range(len(rows.terms)) for secure in (False, True)]
    term = pa.array((2 * rows.term + rows.secure).astype(np.int32), mask=~asked)
    columns["terms"] = pa.DictionaryArray.from_arrays(term, pa.array(kinds, pa.string()))
    plans, sessions, caps = (np.full(len(rows), None, dtype=np.object_) for _ in range(3))
    for number, first in zip(*np.unique(rows.term, return_index=True), strict=True):
        if rows.terms[number] != NOT_ASKED:
            plans[first] = _plan_text(ledger.plan(rows.terms[number].plan_hash))
    for first in run_starts(np.array(rows.users, dtype=np.object_)).tolist():
        user = rows.users[first]
        header = ledger.header(user, query)
        assert header is not None
        if user not in before:
            sessions[first] = header.options_text
        limits = ledger.caps(user)
        if limits != UNLIMITED:
            caps[first] = limits.written()
        if limits.by_local_days:
            begins = int(header.options["origin"]) + int(rows.t[first]) - 1
            # Blocks of answers before a promise are in no earlier file.
            blocks = [bounds for bounds in ledger.blocks(user) if bounds[1] > begins or user not in promised]
            caps[first] = json.dumps({**json.loads(caps[first]), "blocks": blocks}, sort_keys=True)
    columns |= {
        name: pa.array(cells, pa.string()) for name, cells in (("plan", plans), ("session", sessions), ("caps", caps))
    }
    for name, column in columns.items():
        published = published.append_column(f"{PREFIX}{name}", column)
    return published


def ledger_of(parts: Sequence[tuple[str, pa.Table]], users: Iterable[str], spelling: str = "same") -> MemoryLedger:
    """A ledger of what the table has of these users: (query, rows of a file) in the order of the log.

    ``users`` are found however they are spelt, where the rule of ``spelling`` says so.

    Raises InvalidInput for rows that dphmm did not write so.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    plans: dict[str, PlanRecord] = {}
    caps: dict[str, Caps] = {}
    blocks: dict[str, set[Bounds]] = {}
    headers: dict[tuple[str, str], SessionHeader] = {}
    rows_of: dict[str, list[pa.Table]] = {}
    with _as_written():
        ledger, key_of = MemoryLedger(spelling), key_by(spelling)
        keys = set(map(key_of, users))
        stored = sorted({name for _, rows in parts for name in rows.column("user").unique().to_pylist()})
        wanted = pa.array([name for name in stored if key_of(name) in keys], pa.string())
        for query, rows in parts:
            plans |= {plan.hash: plan for plan in map(_plan_from, rows.column(f"{PREFIX}plan").drop_null().to_pylist())}
            rows = rows.filter(pc.is_in(rows.column("user"), wanted))
            rows_of.setdefault(query, []).append(rows)
            for user, text in _by_user(rows, "caps"):
                caps[user], stored = _caps_of(text)
                blocks.setdefault(user, set()).update(stored)
            for user, text in _by_user(rows, "session"):
                headers[user, query] = SessionHeader(user, query, _only(HEADER_OPTIONS, text))
        with ledger.transaction(wanted.to_pylist()) as transaction:
            for header in headers.values():
                transaction.open_session(header)
            moments = {header.subject for header in headers.values() if has_moments(header.options.get("origin"))}
            for user, times in _moments_of([table for tables in rows_of.values() for table in tables], moments):
                transaction.put_moments(user, times)
            for query, tables in rows_of.items():
                requests, z = _requests(query, pa.concat_tables(tables, promote_options="default"), plans)
                admitted = transaction.admit_many(requests, UNLIMITED)
                transaction.add_many(admitted, z[requests.releases])
            for user, bound in caps.items():
                transaction.bind(user, bound, sorted(blocks[user]))
    return ledger


@contextmanager
def opened_to_read(path: PathLike, field: str = "ledger") -> Iterator[Ledger]:
    """A ledger that exists, to read: a file, or that of a release table. Opening another name would make one.

    Raises InvalidInput for what is neither, for an empty file, and for a table whose files are not as committed.
    """
    place = Path(path)
    if (place / "log").is_dir():
        yield _of_committed(ReleaseTable.open(place))
        return
    if not place.is_file():
        raise InvalidInput(field, str(path), "an existing ledger file, or the folder of a release table")
    if place.stat().st_size == 0:
        raise InvalidInput(field, f"{path}, which is empty", "a ledger that dphmm release has written")
    with open_ledger(place, read_only=True) as ledger:
        yield ledger


def _of_committed(table: ReleaseTable) -> MemoryLedger:
    """The ledger of all users of a table, without the rows of jobs that have not committed."""
    import pyarrow.parquet as pq

    parts, users, rules = [], set[str](), set[str]()
    for entry in table.entries():
        if isinstance(entry, Committed):
            rules.add(str(entry.document.get("spelling")))
            for file in entry.files:
                check_file(table.data, file, True)
                with _as_written(), pq.ParquetFile(table.data / file.name) as opened:
                    names = [n for n in opened.schema_arrow.names if n in OF_A_LEDGER or n.startswith(PREFIX)]
                    parts.append((str(entry.document["query"]), opened.read(columns=names)))
                    users.update(parts[-1][1].column("user").unique().to_pylist())
    if len(rules) > 1:
        raise InvalidInput("table", "jobs that compare names by several rules", _WHOLE)
    return ledger_of(parts, users, *rules)


def _requests(query: str, rows: pa.Table, plans: Mapping[str, PlanRecord]) -> tuple[Requests, IntArray]:
    """The stored rows of one query as requests (m,), with the skips between them, and their answers (m, d)."""
    import pyarrow.compute as pc

    rows = rows.sort_by([("user", "ascending"), ("step", "ascending")])
    names = rows.column("user").combine_chunks().dictionary_encode()
    user, t = names.indices.to_numpy().astype(np.int64), rows.column("step").to_numpy().astype(np.int64)
    kinds = pc.cast(rows.column(f"{PREFIX}terms"), "string").combine_chunks().dictionary_encode()
    terms = [_term(text, plans) for text in kinds.dictionary.to_pylist()]
    terms.append(Request("", query, 1, "skip", None, None, None, False, False))
    term = kinds.indices.fill_null(len(terms) - 1).to_numpy(zero_copy_only=False).astype(np.int64)
    axes = [name for name in rows.column_names if name.startswith(f"{PREFIX}z_")]
    z = np.stack([rows.column(name).fill_null(0).to_numpy().astype(np.int64) for name in axes], axis=1)
    # Where the row before, or the beginning, leaves steps out, they were skipped.
    before = np.where(np.diff(user, prepend=-1) != 0, 0, np.concatenate([[0], t[:-1]])) if len(t) else t
    gaps = np.flatnonzero(t > before + 1)
    steps = np.insert(np.ones(len(t), dtype=np.int64), gaps, (t - before - 1)[gaps])
    requests = Requests(
        query=query,
        subjects=names.dictionary.to_pylist(),
        terms=terms,
        subject=np.insert(user, gaps, user[gaps]),
        term=np.insert(term, gaps, len(terms) - 1),
        t=np.insert(t, gaps, before[gaps] + 1),
        steps=steps,
    )
    return requests, np.insert(z, gaps, 0, axis=0)


def _moments_of(tables: Sequence[pa.Table], users: Collection[str]) -> Iterator[tuple[str, IntArray]]:
    """The moments of each user's steps, by the times of all their rows. Raises as `ledger_of` does."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not users:
        return
    rows = pa.concat_tables([table.select(OF_A_LEDGER) for table in tables])
    rows = rows.filter(pc.is_in(rows.column("user"), pa.array(sorted(users), pa.string())))
    names = rows.column("user").combine_chunks().dictionary_encode()
    columns = names.indices, rows.column("step"), rows.column("t").cast("int64")
    # Each step of a user once: the same moment in every query.
    steps = np.unique(np.column_stack([np.asarray(column, dtype=np.int64) for column in columns]), axis=0)
    ends = np.flatnonzero(np.diff(steps[:, 0], append=-1)) + 1
    for part in np.split(steps, ends[:-1]):
        user = names.dictionary[int(part[0, 0])].as_py()
        if part[:, 1].tolist() != list(range(1, len(part) + 1)):
            raise InvalidInput("table", f"steps of {quoted(user)} that stand for no moment, or for two", _WHOLE)
        yield user, np.ascontiguousarray(part[:, 2])


def _by_user(rows: pa.Table, name: str) -> list[tuple[str, str]]:
    """(user, text) of the rows in which a column is not null."""
    import pyarrow.compute as pc

    filled = rows.filter(pc.is_valid(rows.column(f"{PREFIX}{name}")))
    return list(zip(filled.column("user").to_pylist(), filled.column(f"{PREFIX}{name}").to_pylist(), strict=True))


def _terms(rows: Releases, number: int, secure: bool) -> str:
    terms = rows.terms[number]
    document = {
        "constant": terms.constant,
        "cost": number_text(terms.cost),
        "epsilon": number_text(terms.epsilon),
        "plan": terms.plan_hash,
        "secure": secure,
    }
    return json.dumps(document, sort_keys=True)


def _term(text: str, plans: Mapping[str, PlanRecord]) -> Request:
    document: dict[str, Any] = json.loads(text)
    return Request(
        subject="",
        query="",
        t=1,
        kind="release",
        epsilon=Fraction(number_of(document["epsilon"])),
        cost=number_of(document["cost"]),
        plan=plans[document["plan"]],
        secure=document["secure"] is True,
        constant=document["constant"] is True,
    )


def _plan_text(plan: PlanRecord) -> str:
    document = {
        "description": plan.description,
        "hash": plan.hash,
        "n_states": plan.n_states,
        "states": base64.b64encode(zlib.compress(plan.plan_states, level=1)).decode(),
    }
    return json.dumps(document, sort_keys=True)


def _plan_from(text: str) -> PlanRecord:
    document: dict[str, Any] = json.loads(text)
    size = (int(document["n_states"]) + 7) // 8
    # One byte more than it may have: what is too long is refused, and cannot grow.
    states = zlib.decompressobj().decompress(base64.b64decode(document["states"]), size + 1)
    return PlanRecord(document["hash"], states, document["n_states"], document["description"])


def _caps_of(text: str) -> tuple[Caps, list[Bounds]]:
    """The caps of an account, and the blocks of local days that the file has of it."""
    members = _only({"cap_epsilon", "cap_cost", "promise", "blocks"}, text)
    caps = caps_from(members.get("cap_epsilon"), members.get("cap_cost"), members.get("promise"))
    return caps, bounds_from(members.get("blocks", []))


def _only(known: Collection[str], text: str) -> dict[str, Any]:
    """A JSON object of known members. Another one is refused: a limit that this version ignores would not be kept."""
    document: dict[str, Any] = json.loads(text)
    other = sorted(document.keys() - known)
    if other:
        raise InvalidInput("table", f"a history with {other[0]!r}", "members of this version")
    return document


class _as_written:
    """Around what is read of a table: an error says that it is damaged, without its content."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (DphmmError, ValueError, TypeError, KeyError, AttributeError, zlib.error)):
            raise InvalidInput("table", "a damaged history", _WHOLE) from None
