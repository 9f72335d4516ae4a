"""Ledger files of format 1: how they are recognised and read.

They are read for ever. Nothing is written to one but by `migrate_ledger`.

Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

META = """(
    key TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID"""

_TABLES = {
    "meta": META,
    "session": """(
    id INTEGER PRIMARY KEY,
    subject TEXT NOT NULL,
    query TEXT NOT NULL,
    options TEXT NOT NULL,
    UNIQUE (subject, query)
)""",
    "plan": """(
    id INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    n_states INTEGER NOT NULL CHECK (n_states >= 1),
    states BLOB NOT NULL,
    description TEXT NOT NULL
)""",
    "release": """(
    session INTEGER NOT NULL REFERENCES session (id),
    t INTEGER NOT NULL CHECK (t >= 1),
    through INTEGER NOT NULL CHECK (through = t OR through > t AND kind = 'skip'),
    kind TEXT NOT NULL CHECK (kind IN ('release', 'skip')),
    z TEXT,
    epsilon TEXT,
    cost TEXT,
    plan INTEGER REFERENCES plan (id),
    secure INTEGER NOT NULL CHECK (secure IN (0, 1)),
    constant INTEGER NOT NULL CHECK (constant IN (0, 1)),
    PRIMARY KEY (session, t),
    CHECK ((kind = 'release') = (z IS NOT NULL)),
    CHECK ((z IS NULL) = (epsilon IS NULL) AND (z IS NULL) = (cost IS NULL) AND (z IS NULL) = (plan IS NULL))
) WITHOUT ROWID""",
    "account": """(
    subject TEXT NOT NULL PRIMARY KEY,
    epsilon TEXT NOT NULL,
    cost_nanos TEXT NOT NULL,
    unbounded INTEGER NOT NULL CHECK (unbounded IN (0, 1))
) WITHOUT ROWID""",
}
STATEMENTS = {name: f"CREATE TABLE {name} {columns}" for name, columns in _TABLES.items()}

#: How the tables are called while their rows move into new ones.
OLD = "_format1"


def reading(suffix: str = "") -> str:
    """What begins every query of such a file; see `schema.reading`. ``suffix``: of the names of its tables."""
    return f"""WITH
stored_header AS (SELECT subject, query, options FROM session{suffix}),
stored_entry AS (
    SELECT subject, query, t, through - t + 1 AS steps, kind, z, epsilon, cost, secure, constant, hash
    FROM session{suffix} AS session JOIN release{suffix} AS release ON release.session = session.id
    LEFT JOIN plan{suffix} AS plan ON plan.id = release.plan
),
stored_plan AS (SELECT id, hash, n_states, states, description FROM plan{suffix}),
stored_account AS (SELECT subject, epsilon, cost_nanos, unbounded FROM account{suffix}),
stored_caps AS (SELECT NULL AS subject, NULL AS cap_epsilon, NULL AS cap_cost, NULL AS promise, NULL AS horizon
    WHERE 0),
stored_snapshot AS (SELECT NULL AS subject, NULL AS query, NULL AS t, NULL AS digest, NULL AS belief WHERE 0),
stored_publication AS (
    SELECT NULL AS name, NULL AS kind, NULL AS statement, NULL AS unit, NULL AS relation, NULL AS units_per_person,
        NULL AS epsilon, NULL AS rho, NULL AS delta, NULL AS counts, NULL AS version, NULL AS time, NULL AS result
    WHERE 0
)
"""
