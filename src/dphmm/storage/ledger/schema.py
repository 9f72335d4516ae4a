"""The tables of a ledger file, records as rows and back, and the checks that a file is a whole ledger.

meta         format, id, maker, epoch, features that a program must know to use the file, rule of spelling and version
             of Unicode, delta and cap of publications
document     public texts, each once: options of sessions, descriptions of plans
account      one person: key, first spelling, totals over all queries, a version that every stored fact raises, caps and
             a promise that stay
block        first bin and end of each block of local days in which an account has an answer, stored with its first
change       what changed an account besides releases: caps and promises given; a fence (reserved)
session      one (subject, query) and its public parameters
plan         each plan once: its plan set as packed bits
terms        what many rows share: kind, epsilon, cost, and how they were drawn
moment       what the steps of an account stand for where they are ranks: packed 64-bit integers from step t on
release      one step each, UNIQUE (session, t); z as text, because integers may pass 64 bits and labels are text
snapshot     a belief at a step: a cache that the rows can always replace
publication  what was published about all persons of a data set, with its result

Decision: docs/adr/0012. Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import sqlite3
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from dphmm._checks import written_fraction
from dphmm.accounting.budget import EMPTY, UNLIMITED, Account, Caps, quoted, recount
from dphmm.accounting.clock import Bounds, overlap
from dphmm.accounting.ledger import Entry, Kind, PlanRecord, Request
from dphmm.accounting.moments import NO_MOMENTS, has_moments
from dphmm.accounting.person import SPELLINGS, UNICODE, key_by
from dphmm.accounting.promise import SequencePromise
from dphmm.accounting.publication import Publication, Published
from dphmm.accounting.records import Requests
from dphmm.errors import DphmmError, InvalidInput
from dphmm.storage.ledger.connection import damaged
from dphmm.types import IntArray

Row: TypeAlias = tuple[Any, ...]
#: What reading a row of wrong content raises; the content itself is in no message.
_UNREADABLE = (ValueError, TypeError, AttributeError, ZeroDivisionError, RecursionError)


def number_text(value: Fraction | None) -> str | None:
    """An exact number as text: ``3`` or ``1/3``."""
    return None if value is None else str(value)


@lru_cache(maxsize=4096)
def number_of(text: str) -> Fraction:
    """The exact finite number of its text."""
    return written_fraction(text)


def digest_of(text: str | bytes) -> bytes:
    """The key or checksum of a document or a snapshot: the first 16 bytes of its SHA-256."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).digest()[:16]


def terms_row(request: Request) -> Row:
    """The row (kind, epsilon, cost, secure, constant) that many releases share."""
    numbers = number_text(request.epsilon), number_text(request.cost)
    return request.kind, *numbers, int(bool(request.secure)), int(bool(request.constant))


def release_row(session: int, request: Request, z: tuple[int, ...] | None, plan: int | None, terms: int) -> Row:
    """The row (session, t, steps, z, plan, terms)."""
    return session, request.t, request.steps, None if z is None else ",".join(map(str, z)), plan, terms


def release_rows(
    requests: Requests,
    rows: IntArray,
    sessions: IntArray,
    plans: Mapping[int, int],
    terms: Mapping[int, int],
    answers: Sequence[str | None],
) -> list[Row]:
    """`release_row` of many rows: ``sessions`` by subject, ``plans`` and ``terms`` by term, ``answers`` one a row."""
    number, count = requests.term[rows], len(requests.terms)
    columns = (
        sessions[requests.subject[rows]].tolist(),
        requests.t[rows].tolist(),
        requests.steps[rows].tolist(),
        answers,
        _of_each([plans.get(place) for place in range(count)], number),
        _of_each([terms.get(place) for place in range(count)], number),
    )
    return list(zip(*columns, strict=True))


def _of_each(values: Sequence[Any], numbers: IntArray) -> list[Any]:
    column: list[Any] = np.array(values, dtype=np.object_)[numbers].tolist()
    return column


def answer_texts(z: IntArray) -> list[str]:
    """The text of each of many answers (k, d)."""
    template = ",".join(["%d"] * z.shape[1])
    return list(map(template.__mod__, zip(*z.T.tolist(), strict=True)))


def entry_from(subject: str, query: str, row: Row) -> Entry:
    """The entry of (t, steps, kind, z, epsilon, cost, secure, constant, hash)."""
    t, steps, kind, z, *terms = row
    if type(t) is not int or type(steps) is not int:
        raise damaged()
    try:
        shared = _terms_of(kind, z is None, *terms)
        answer = None if z is None else tuple(map(int, z.split(",")))
    except _UNREADABLE:
        raise damaged() from None
    return Entry(subject, query, t, kind, answer, *shared, steps)


@lru_cache(maxsize=4096)
def _terms_of(
    kind: Kind, skips: bool, epsilon: str | None, cost: str | None, secure: int, constant: int, plan: str | bytes | None
) -> tuple[Fraction | None, Fraction | None, str | None, bool, bool]:
    """Epsilon, cost, hash, secure and constant of an entry, as many entries share them. Damaged ones are refused."""
    nothing = [value is None for value in (epsilon, cost, plan)]
    if kind not in ("release", "skip") or [skips, *nothing] != [kind == "skip"] * 4:
        raise damaged()
    if epsilon is None or cost is None or plan is None:
        return None, None, None, bool(secure), bool(constant)
    return number_of(epsilon), number_of(cost), hash_text(plan), bool(secure), bool(constant)


def account_row(account: Account) -> Row:
    """The row (epsilon, cost_nanos)."""
    return str(account.epsilon), str(account.nanos)


def account_from(row: Row) -> Account:
    """The account of (epsilon, cost_nanos)."""
    epsilon, nanos = row
    try:
        return Account(written_fraction(epsilon), int(nanos))
    except _UNREADABLE:
        raise damaged() from None


@lru_cache(maxsize=64)
def caps_from(epsilon: str | None, cost: str | None, promise: str | None) -> Caps:
    """The caps and the promise of an account."""
    if epsilon is cost is promise is None:
        return UNLIMITED
    try:
        return Caps(
            None if epsilon is None else written_fraction(epsilon),
            None if cost is None else written_fraction(cost),
            None if promise is None else SequencePromise.read(promise),
        )
    except (InvalidInput, *_UNREADABLE) as error:
        if isinstance(error, InvalidInput) and error.field == "zone":
            raise
        raise damaged() from None


def bounds_from(rows: Sequence[Row]) -> list[Bounds]:
    """The bounds of blocks, ascending."""
    if any(type(number) is not int for row in rows for number in row) or overlap(rows):
        raise damaged()
    return [(first, end) for first, end in rows]


def publication_row(published: Published) -> Row:
    """The row of the table of publications; the result begins with its digest."""
    publication = published.publication
    return (
        publication.name,
        0,
        published.version,
        publication.kind,
        publication.unit,
        publication.units,
        publication.relation,
        int(publication.counts),
        publication.loss,
        number_text(publication.epsilon),
        number_text(publication.rho),
        number_text(publication.delta),
        published.time,
        publication.statement,
        digest_of(published.result) + published.result,
    )


def publication_from(row: Row) -> Publication:
    """The publication of (name, kind, statement, unit, relation, units, epsilon, rho, delta, counts)."""
    name, kind, statement, unit, relation, units, *losses, counts = row
    try:
        epsilon, rho, delta = (None if loss is None else number_of(loss) for loss in losses)
        return Publication(name, kind, statement, unit, relation, units, epsilon, rho, delta, bool(counts))
    except (InvalidInput, *_UNREADABLE):
        raise damaged(what="a damaged publication") from None


def published_from(row: Row) -> Published:
    """The publication with its place, its time and its result, which must be that of its digest."""
    *described, version, time, result = row
    if type(version) is not int or type(result) is not bytes or digest_of(result[16:]) != result[:16]:
        raise damaged(what="a damaged publication")
    return Published(publication_from(tuple(described)), version, str(time), result[16:])


def fact_from(text: str) -> Fraction:
    """An exact number that holds of all publications."""
    try:
        return written_fraction(text)
    except _UNREADABLE:
        raise damaged() from None


def options_from(text: str) -> dict[str, str]:
    """The options of a session row."""
    try:
        return {str(name): str(value) for name, value in json.loads(text).items()}
    except _UNREADABLE:
        raise damaged() from None


_SHA256 = re.compile("[0-9a-f]{64}")


def hash_stored(plan_hash: str) -> str | bytes:
    """A plan's hash as it is stored: the 32 bytes of a SHA-256, any other text as it is."""
    return bytes.fromhex(plan_hash) if _SHA256.fullmatch(plan_hash) else plan_hash


def hash_text(stored: str | bytes) -> str:
    """The hash of what `hash_stored` gave."""
    return stored.hex() if isinstance(stored, bytes) else str(stored)


def plan_row(plan: PlanRecord, document: int) -> Row:
    """The row (hash, n_states, states, description)."""
    # A small window: the one that `zlib.compress` makes ready for each plan takes most of its time.
    packing = zlib.compressobj(level=1, wbits=12, memLevel=5)
    states = packing.compress(plan.plan_states) + packing.flush()
    return hash_stored(plan.hash), plan.n_states, states, document


def plan_from(row: Row) -> PlanRecord:
    """The plan of (hash, n_states, states, description); a damaged plan set is refused, and cannot grow."""
    plan_hash, n_states, packed, description = row
    try:
        size = (n_states + 7) // 8
        states = zlib.decompressobj().decompress(packed, size + 1)
    except (zlib.error, *_UNREADABLE):
        size, states = -1, b""
    if len(states) != size:
        raise damaged(what=f"a damaged plan {hash_text(plan_hash)}")
    return PlanRecord(hash_text(plan_hash), states, n_states, description)


def moments_row(account: int, t: int, moments: IntArray) -> Row:
    """The row (account, t, moments) with the moments of the steps from ``t`` on."""
    return account, t, moments.astype("<i8").tobytes()


def moments_from(rows: Sequence[tuple[int, bytes]]) -> tuple[int, IntArray]:
    """The first step, and the moments (k,) from it on, of the rows (t, moments) of one account in order of t.

    Raises InvalidInput for rows that do not follow each other or are no moments, and where they do not ascend.
    """
    try:
        parts = [np.frombuffer(packed, dtype="<i8") for _, packed in rows]
    except _UNREADABLE:
        raise damaged() from None
    if not rows:
        return 1, NO_MOMENTS
    moments = np.concatenate(parts)
    first = rows[0][0]
    begins = [first, *(np.cumsum([len(part) for part in parts]) + first).tolist()]
    if begins[:-1] != [t for t, _ in rows] or not all(map(len, parts)) or bool((np.diff(moments) <= 0).any()):
        raise damaged()
    return first, moments


FORMAT = 3
#: What a program must know to use a file that has it, because it would pass a bound or print a smaller total.
FEATURES: frozenset[str] = frozenset({"caps", "promise", "publications"})

_TABLES = {
    "meta": """(
    key TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID""",
    "document": """(
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    text TEXT NOT NULL
)""",
    "account": """(
    id INTEGER PRIMARY KEY,
    subject TEXT NOT NULL UNIQUE,
    key TEXT NOT NULL UNIQUE,
    version INTEGER NOT NULL CHECK (version >= 0),
    epsilon TEXT NOT NULL,
    cost_nanos TEXT NOT NULL,
    cap_epsilon TEXT,
    cap_cost TEXT,
    promise INTEGER REFERENCES document (id),
    delta TEXT,
    burnt_until TEXT,
    incomplete INTEGER NOT NULL DEFAULT 0 CHECK (incomplete IN (0, 1)),
    closed TEXT
)""",
    "block": """(
    account INTEGER NOT NULL REFERENCES account (id),
    first INTEGER NOT NULL,
    "end" INTEGER NOT NULL CHECK ("end" > first),
    PRIMARY KEY (account, first)
) WITHOUT ROWID""",
    "change": """(
    account INTEGER NOT NULL REFERENCES account (id),
    version INTEGER NOT NULL,
    kind TEXT NOT NULL,
    document INTEGER NOT NULL REFERENCES document (id),
    epsilon TEXT,
    cost_nanos TEXT,
    PRIMARY KEY (account, version)
) WITHOUT ROWID""",
    "session": """(
    id INTEGER PRIMARY KEY,
    account INTEGER NOT NULL REFERENCES account (id),
    query TEXT NOT NULL,
    options INTEGER NOT NULL REFERENCES document (id),
    UNIQUE (account, query)
)""",
    "plan": """(
    id INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    n_states INTEGER NOT NULL CHECK (n_states >= 1),
    states BLOB NOT NULL,
    description INTEGER NOT NULL REFERENCES document (id)
)""",
    "terms": """(
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('release', 'skip', 'decide')),
    epsilon TEXT,
    cost TEXT,
    secure INTEGER NOT NULL CHECK (secure IN (0, 1)),
    constant INTEGER NOT NULL CHECK (constant IN (0, 1)),
    UNIQUE (kind, epsilon, cost, secure, constant),
    CHECK ((kind = 'skip') = (epsilon IS NULL) AND (kind = 'skip') = (cost IS NULL))
)""",
    "moment": """(
    account INTEGER NOT NULL REFERENCES account (id),
    t INTEGER NOT NULL CHECK (t >= 1),
    moments BLOB NOT NULL,
    PRIMARY KEY (account, t)
) WITHOUT ROWID""",
    "release": """(
    session INTEGER NOT NULL REFERENCES session (id),
    t INTEGER NOT NULL CHECK (t >= 1),
    steps INTEGER NOT NULL CHECK (steps = 1 OR steps > 1 AND z IS NULL),
    z TEXT,
    plan INTEGER REFERENCES plan (id),
    terms INTEGER NOT NULL REFERENCES terms (id),
    PRIMARY KEY (session, t),
    CHECK ((z IS NULL) = (plan IS NULL))
) WITHOUT ROWID""",
    "snapshot": """(
    session INTEGER PRIMARY KEY REFERENCES session (id),
    t INTEGER NOT NULL CHECK (t >= 0),
    digest BLOB NOT NULL,
    belief BLOB NOT NULL
)""",
    "publication": """(
    id TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    version INTEGER NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    unit TEXT NOT NULL,
    units_per_person INTEGER CHECK (units_per_person >= 1),
    relation TEXT CHECK (relation IN ('add-remove', 'replace')),
    counts INTEGER NOT NULL CHECK (counts IN (0, 1)),
    loss TEXT NOT NULL CHECK (loss IN ('epsilon', 'rho', 'epsilon-delta', 'none')),
    epsilon TEXT,
    rho TEXT,
    delta TEXT,
    time TEXT NOT NULL,
    statement TEXT NOT NULL,
    result BLOB NOT NULL,
    PRIMARY KEY (id, epoch),
    CHECK ((loss IN ('epsilon', 'epsilon-delta')) = (epsilon IS NOT NULL)),
    CHECK ((loss = 'rho') = (rho IS NOT NULL) AND (loss = 'epsilon-delta') = (delta IS NOT NULL)),
    CHECK ((loss = 'none') = (relation IS NULL))
) WITHOUT ROWID""",
}
_STATEMENTS = {name: f"CREATE TABLE {name} {columns}" for name, columns in _TABLES.items()}

#: Begins every query that reads: headers, entries, plans, accounts, caps, snapshots and publications as tables.
READING = """WITH
stored_header AS (
    SELECT subject, query, text AS options
    FROM account JOIN session ON session.account = account.id JOIN document ON document.id = session.options
),
stored_entry AS (
    SELECT subject, query, t, steps, kind, z, terms.epsilon AS epsilon, cost, secure, constant, hash
    FROM account JOIN session ON session.account = account.id JOIN release ON release.session = session.id
    JOIN terms ON terms.id = release.terms LEFT JOIN plan ON plan.id = release.plan
),
stored_plan AS (
    SELECT plan.id AS id, hash, n_states, states, text AS description
    FROM plan JOIN document ON document.id = plan.description
),
stored_account AS (SELECT subject, key, epsilon, cost_nanos FROM account),
stored_caps AS (
    SELECT subject, cap_epsilon, cap_cost, promised.text AS promise
    FROM account LEFT JOIN document AS promised ON promised.id = account.promise
    WHERE cap_epsilon IS NOT NULL OR cap_cost IS NOT NULL OR account.promise IS NOT NULL
),
stored_block AS (SELECT subject, first, "end" FROM account JOIN block ON block.account = account.id),
stored_snapshot AS (
    SELECT subject, query, t, digest, belief
    FROM account JOIN session ON session.account = account.id JOIN snapshot ON snapshot.session = session.id
),
stored_moment AS (
    SELECT subject, t, moments FROM account JOIN moment ON moment.account = account.id
),
stored_publication AS (
    SELECT id AS name, kind, statement, unit, relation, units_per_person, epsilon, rho, delta, counts, version, time,
        result FROM publication
)
"""


def prepare(connection: sqlite3.Connection, path: Path, spelling: str = "same") -> None:
    """Make the tables in an empty file; any other must be a ledger of this format."""
    if is_empty(connection):
        connection.execute("BEGIN IMMEDIATE")
        # Another process may have made them while this one waited.
        if is_empty(connection):
            create(connection, spelling)
        connection.execute("COMMIT")
    check_tables(connection, path)


def is_empty(connection: sqlite3.Connection) -> bool:
    """True if a file has no tables yet."""
    return not _objects(connection)


def create(connection: sqlite3.Connection, spelling: str = "same") -> None:
    """The tables of an empty ledger."""
    for statement in _STATEMENTS.values():
        connection.execute(statement)
    facts = [("format", str(FORMAT)), ("created_by", _this_version()), ("epoch", "0"), ("features", "")]
    facts += [("spelling", spelling), ("unicode", UNICODE), ("id", secrets.token_hex(16))]
    connection.executemany("INSERT INTO meta VALUES (?, ?)", facts)


def use_feature(connection: sqlite3.Connection, name: str) -> None:
    """Write, in a transaction of the caller's, that a program must know this feature to use the file."""
    (written,) = connection.execute("SELECT value FROM meta WHERE key = 'features'").fetchone()
    used = " ".join(sorted({*written.split(), name}))
    if used != written:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'features'", (used,))


def check_tables(connection: sqlite3.Connection, path: Path) -> None:
    """Raise InvalidInput for what is no ledger, one of another format, and tables made by others."""
    objects = _objects(connection)
    is_ledger = objects.get("meta") == _STATEMENTS["meta"]
    facts = dict(connection.execute("SELECT key, value FROM meta")) if is_ledger else {}
    written = str(facts.get("format"))[:20]
    if not written.isdecimal() or int(written) < FORMAT or "features" not in facts:
        raise InvalidInput("ledger", str(path), "a dphmm ledger; this is a database of something else")
    if int(written) > FORMAT:
        newer = f"a ledger of format {FORMAT}; this one has format {written}: upgrade dphmm"
        raise InvalidInput("ledger", str(path), newer)
    unknown = sorted(set(str(facts["features"])[:200].split()) - FEATURES)
    if unknown:
        raise InvalidInput("ledger", str(path), f"a ledger without {unknown[0]!r}: upgrade dphmm")
    if (
        facts.get("spelling") not in SPELLINGS
        or re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,4}){2}", str(facts.get("unicode"))) is None
        or re.fullmatch(r"[0-9a-f]{32}", str(facts.get("id"))) is None
    ):
        expected = "an undamaged ledger (its id, how it compares names): restore its latest copy"
        raise InvalidInput("ledger", str(path), expected)
    # A trigger or an altered table could make the account say less than was released.
    if objects != _STATEMENTS:
        raise InvalidInput("ledger", str(path), "the tables as dphmm made them; others were added or changed")


def _objects(connection: sqlite3.Connection) -> dict[str, str]:
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    # In a damaged file a name may be no text.
    return {name: sql for name, sql in rows if not str(name).startswith("sqlite_")}


def _this_version() -> str:
    try:
        return f"dphmm {version('dphmm')}"
    except PackageNotFoundError:
        return "dphmm, not installed"


def check_pages(connection: sqlite3.Connection, path: Path) -> None:
    """Read every page. Raises InvalidInput with the first fault that SQLite finds."""
    verdict = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    if verdict != "ok":
        first = " ".join(verdict.split())[:80]
        raise InvalidInput("ledger", str(path), f"an undamaged ledger ({first}): restore its latest copy")


_SPENT = "SELECT t, epsilon FROM stored_entry WHERE subject = ? AND epsilon IS NOT NULL"
BLOCKS = 'SELECT first, "end" FROM stored_block WHERE subject = ? ORDER BY first'
#: The last step of every session.
_REACHED = """SELECT subject, text, (SELECT max(t + steps - 1) FROM release WHERE session = session.id)
    FROM account JOIN session ON session.account = account.id JOIN document ON document.id = session.options"""
#: Sessions, rows and changes raise the version of their account by one each.
_VERSIONS = """SELECT subject FROM account WHERE version IS NOT
    (SELECT count(*) FROM session WHERE account = account.id)
    + (SELECT count(*) FROM session JOIN release ON release.session = session.id WHERE account = account.id)
    + (SELECT count(*) FROM change WHERE account = account.id)"""


def check_contents(connection: sqlite3.Connection, path: Path) -> None:
    """Read every page and recount every account, in one snapshot. Raises DphmmError for a difference."""
    check_pages(connection, path)
    connection.execute("BEGIN")
    try:
        dangling = connection.execute("PRAGMA foreign_key_check").fetchone()
        if dangling is not None:
            raise DphmmError(f"ledger {path.name}: a row of {dangling[0]} has lost what it refers to")
        counted, stored = _counted(connection), _stored(connection)
        other_key = _of_another_key(connection)
        broken, lost = _broken_promise(connection), _of_other_moments(connection)
        _check_publications(connection, path)
        other = connection.execute(_VERSIONS).fetchone()
    finally:
        connection.execute("ROLLBACK")
    for subject in sorted({*counted, *stored}, key=str):
        if not isinstance(subject, str):
            raise DphmmError(f"ledger {path.name}: a subject whose name is no text: restore its latest copy")
        if counted.get(subject, EMPTY) != stored.get(subject, EMPTY):
            raise DphmmError(f"ledger {path.name}: the account of {quoted(subject)} is not that of its releases")
    if other_key is not None:
        raise DphmmError(f"ledger {path.name}: the key of {quoted(other_key)} is not that of the name")
    if lost is not None:
        raise DphmmError(f"ledger {path.name}: the steps of {quoted(lost)} do not stand for a moment each")
    if broken is not None:
        raise DphmmError(f"ledger {path.name}: the releases of {quoted(broken)} break the promise of its account")
    if other is not None:
        raise DphmmError(f"ledger {path.name}: the version of {quoted(other[0])} is not the number of its facts")


def _counted(connection: sqlite3.Connection) -> dict[str, Account]:
    accounts: dict[str, Account] = defaultdict(lambda: EMPTY)
    for subject, query, *row in connection.execute(f"{READING} SELECT * FROM stored_entry"):
        accounts[subject] = recount([entry_from(subject, query, tuple(row))], accounts[subject])
    return dict(accounts)


def _broken_promise(connection: sqlite3.Connection) -> str | None:
    """A subject whose releases, of all its queries, break its promise, or are in no stored block of local days."""
    for subject, *columns in connection.execute(f"{READING} SELECT * FROM stored_caps").fetchall():
        spent = [(t, number_of(epsilon)) for t, epsilon in connection.execute(f"{READING} {_SPENT}", (subject,))]
        promise = caps_from(*columns).promise
        if promise is not None and promise.local is not None:
            local = promise.local.beside(bounds_from(connection.execute(f"{READING} {BLOCKS}", (subject,)).fetchall()))
            if local.stored_as([t for t, _ in spent]):
                return str(subject)
            promise = promise.beside(local.stored)
        if promise is not None and not promise.holds(spent):
            return str(subject)
    return None


def _check_publications(connection: sqlite3.Connection, path: Path) -> None:
    """Every publication can be read with its result, they are numbered from 1, and the file says that it has some."""
    (features,) = connection.execute("SELECT value FROM meta WHERE key = 'features'").fetchone()
    numbers = []
    for row in connection.execute(f"{READING} SELECT * FROM stored_publication ORDER BY version"):
        numbers.append(published_from(row).version)
    if numbers != list(range(1, len(numbers) + 1)):
        raise DphmmError(f"ledger {path.name}: a publication is missing: restore its latest copy")
    facts = connection.execute("SELECT value FROM meta WHERE key IN ('delta', 'cap_epsilon')").fetchall()
    for (value,) in facts:
        fact_from(value)
    if (numbers or facts) and "publications" not in str(features).split():
        raise DphmmError(f"ledger {path.name}: it has publications and does not say so: restore its latest copy")


def _of_another_key(connection: sqlite3.Connection) -> str | None:
    """The first person whose key does not follow from the name: its account may be one of two."""
    (spelling,) = connection.execute("SELECT value FROM meta WHERE key = 'spelling'").fetchone()
    key_of = key_by(spelling)
    rows = connection.execute("SELECT subject, key FROM account ORDER BY subject")
    return next((str(subject) for subject, key in rows if key_of(str(subject)) != key), None)


def _of_other_moments(connection: sqlite3.Connection) -> str | None:
    """The first person who has not one moment for each step, all queries together, or has moments without need."""
    parts: dict[str, list[tuple[int, bytes]]] = defaultdict(list)
    for subject, *row in connection.execute(f"{READING} SELECT subject, t, moments FROM stored_moment ORDER BY 1, 2"):
        parts[subject].append((row[0], row[1]))
    reached = dict.fromkeys(parts, 0)
    for subject, options, last in connection.execute(f"{READING} {_REACHED}"):
        if has_moments(options_from(options).get("origin")):
            reached[subject] = max(reached.get(subject, 0), last or 0)
    for subject, last in sorted(reached.items()):
        first, moments = moments_from(parts[subject])
        if first != 1 or len(moments) != last:
            return str(subject)
    return None


def _stored(connection: sqlite3.Connection) -> dict[str, Account]:
    rows = connection.execute(f"{READING} SELECT subject, epsilon, cost_nanos FROM stored_account")
    return {row[0]: account_from(row[1:]) for row in rows}
