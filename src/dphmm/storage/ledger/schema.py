"""The tables of a ledger file, the queries that read them, and the checks that a file is a ledger.

meta         format, maker, epoch, features that a program must know to use the file, delta and cap of publications
document     public texts, each once: options of sessions, descriptions of plans
account      one subject: totals over all queries, a version that every stored fact raises, caps and a promise that stay
change       what changed an account besides releases: caps and promises given, caps raised; a fence (reserved)
session      one (subject, query) and its public parameters
plan         each plan once: its plan set as packed bits
terms        what many rows share: kind, epsilon, cost, and how they were drawn
release      one step each, UNIQUE (session, t); z as text, because integers may pass 64 bits and labels are text
snapshot     a belief at a step: a cache that the rows can always replace
publication  what was published about all persons of a data set, with its result
group        in two tables, group_account and group_member: who shares a cap; there from the first group on

Decision: docs/adr/0012. Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

import sqlite3
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from dphmm.errors import InvalidInput
from dphmm.storage.ledger import format1

FORMAT = 2
#: What a program must know to use a file that has it, because it would pass a bound or print a smaller total.
FEATURES: frozenset[str] = frozenset({"caps", "promise", "horizon", "publications", "groups"})

_TABLES = {
    "meta": format1.META,
    "document": """(
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    text TEXT NOT NULL
)""",
    "account": """(
    id INTEGER PRIMARY KEY,
    subject TEXT NOT NULL UNIQUE,
    version INTEGER NOT NULL CHECK (version >= 0),
    epsilon TEXT NOT NULL,
    cost_nanos TEXT NOT NULL,
    unbounded INTEGER NOT NULL CHECK (unbounded IN (0, 1)),
    cap_epsilon TEXT,
    cap_cost TEXT,
    promise INTEGER REFERENCES document (id),
    horizon INTEGER REFERENCES document (id),
    delta TEXT,
    burnt_until TEXT,
    incomplete INTEGER NOT NULL DEFAULT 0 CHECK (incomplete IN (0, 1)),
    closed TEXT
)""",
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
#: Made with the first group.
_GROUP_TABLES = {
    "group_account": """(
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    cap_epsilon TEXT NOT NULL
)""",
    "group_member": """(
    subject TEXT NOT NULL PRIMARY KEY,
    group_account INTEGER NOT NULL REFERENCES group_account (id)
) WITHOUT ROWID""",
}
_STATEMENTS = {name: f"CREATE TABLE {name} {columns}" for name, columns in _TABLES.items()}
_GROUP_STATEMENTS = {name: f"CREATE TABLE {name} {columns}" for name, columns in _GROUP_TABLES.items()}

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
stored_account AS (SELECT subject, epsilon, cost_nanos, unbounded FROM account),
stored_caps AS (
    SELECT subject, cap_epsilon, cap_cost, promised.text AS promise, farthest.text AS horizon
    FROM account LEFT JOIN document AS promised ON promised.id = account.promise
    LEFT JOIN document AS farthest ON farthest.id = account.horizon
    WHERE cap_epsilon IS NOT NULL OR cap_cost IS NOT NULL OR account.promise IS NOT NULL OR account.horizon IS NOT NULL
),
stored_snapshot AS (
    SELECT subject, query, t, digest, belief
    FROM account JOIN session ON session.account = account.id JOIN snapshot ON snapshot.session = session.id
),
stored_publication AS (
    SELECT id AS name, kind, statement, unit, relation, units_per_person, epsilon, rho, delta, counts, version, time,
        result FROM publication
)
"""

#: (name, cap, member) of all groups, where there are any.
GROUPS = (
    "SELECT name, cap_epsilon, subject FROM group_account "
    "JOIN group_member ON group_member.group_account = group_account.id"
)


def prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Make the tables in an empty file; any other must be a ledger of this format."""
    if not _objects(connection):
        connection.execute("BEGIN IMMEDIATE")
        # Another process may have made them while this one waited.
        if not _objects(connection):
            create(connection)
        connection.execute("COMMIT")
    if found_format(connection, path) != FORMAT:
        remedy = f"this one has format 1 and can only be read: dphmm ledger migrate {path.name}"
        raise InvalidInput("ledger", str(path), f"a ledger of format {FORMAT}; {remedy}")


def create(connection: sqlite3.Connection) -> None:
    """The tables of an empty ledger."""
    create_tables(connection)
    facts = [("format", str(FORMAT)), ("created_by", _this_version()), ("epoch", "0"), ("features", "")]
    connection.executemany("INSERT INTO meta VALUES (?, ?)", facts)


def use_feature(connection: sqlite3.Connection, name: str) -> None:
    """Write, in a transaction of the caller's, that a program must know this feature to use the file."""
    (written,) = connection.execute("SELECT value FROM meta WHERE key = 'features'").fetchone()
    used = " ".join(sorted({*written.split(), name}))
    if used != written:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'features'", (used,))


def create_group_tables(connection: sqlite3.Connection) -> None:
    """The tables of groups, in a transaction of the caller's that writes the feature too."""
    for statement in _GROUP_STATEMENTS.values():
        connection.execute(statement)


def create_tables(connection: sqlite3.Connection, *present: str) -> None:
    """All tables but those that are ``present``."""
    for name, statement in _STATEMENTS.items():
        if name not in present:
            connection.execute(statement)


def reading(connection: sqlite3.Connection, path: Path) -> str:
    """What begins every query of a ledger file of any format: its headers, entries, plans and accounts as tables.

    stored_header (subject, query, options),
    stored_entry (subject, query, t, steps, kind, z, epsilon, cost, secure, constant, hash),
    stored_plan (id, hash, n_states, states, description), stored_account (subject, epsilon, cost_nanos, unbounded),
    stored_caps (subject, cap_epsilon, cap_cost, promise, horizon), stored_snapshot (subject, query, t, digest, belief),
    stored_publication (name, kind, statement, unit, relation, units_per_person, epsilon, rho, delta, counts, version,
    time, result).
    Raises InvalidInput for what is no ledger.
    """
    return READING if found_format(connection, path) == FORMAT else format1.reading()


def found_format(connection: sqlite3.Connection, path: Path) -> int:
    """The format of a ledger file, 1 or 2. Raises InvalidInput for another one, and for tables made by others."""
    written = _written_format(connection, path)
    # A trigger or an altered table could make the account say less than was released.
    found = _objects(connection)
    own = _STATEMENTS | (_GROUP_STATEMENTS if "group_account" in found else {})
    if found != (own if written == FORMAT else format1.STATEMENTS):
        raise InvalidInput("ledger", str(path), "the tables as dphmm made them; others were added or changed")
    return written


def _objects(connection: sqlite3.Connection) -> dict[str, str]:
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    # In a damaged file a name may be no text.
    return {name: sql for name, sql in rows if not str(name).startswith("sqlite_")}


def _written_format(connection: sqlite3.Connection, path: Path) -> int:
    is_ledger = _objects(connection).get("meta") == _STATEMENTS["meta"]
    facts = dict(connection.execute("SELECT key, value FROM meta")) if is_ledger else {}
    written = str(facts.get("format"))[:20]
    if not written.isdecimal() or int(written) < 1:
        raise InvalidInput("ledger", str(path), "a dphmm ledger; this is a database of something else")
    if int(written) > FORMAT:
        newer = f"a ledger of format {FORMAT} or older; this one has format {written}: upgrade dphmm"
        raise InvalidInput("ledger", str(path), newer)
    unknown = sorted(set(str(facts.get("features", ""))[:200].split()) - FEATURES)
    if unknown:
        raise InvalidInput("ledger", str(path), f"a ledger without {unknown[0]!r}: upgrade dphmm")
    return int(written)


def _this_version() -> str:
    try:
        return f"dphmm {version('dphmm')}"
    except PackageNotFoundError:
        return "dphmm, not installed"
