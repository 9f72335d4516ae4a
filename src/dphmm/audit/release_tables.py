"""`check_release_table`: compare the committed jobs of a release table with their statements.

The statement of a job is in the commit that made its rows part of the table. The table is the ledger of all jobs.

Proof: docs/proofs/table-commit.md.
"""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from dphmm.accounting.ledger import Ledger
from dphmm.audit import verify_release
from dphmm.audit.check import LEFT, OK, WRONG, CheckedRelease, check_release, look_beside_columns
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.policy.graph import PolicyGraph
from dphmm.states.space import StateSpace
from dphmm.storage.commit_log import Committed
from dphmm.storage.release_table import ReleaseTable, check_files
from dphmm.storage.table_ledger import PREFIX, ledger_columns, opened_to_read
from dphmm.storage.tables import read_table

if TYPE_CHECKING:
    import pyarrow as pa

_MEMBERS = {"query", "buckets", "spelling", "hash", "unicode", "rows", "subjects", "statement"}


def check_release_table(
    released: str | os.PathLike[str],
    model: MarkovModel,
    policy: PolicyGraph | None = None,
    space: StateSpace | None = None,
    *,
    query: str | None = None,
    ledger: Ledger | None = None,
    plain: str | os.PathLike[str] | None = None,
    **given: Any,
) -> CheckedRelease:
    """Check the rows of one query that each job of a release table committed, as `check_release` does a file.

    Parameters
    ----------
    released : the folder of the table.
    model, policy, space : as `check_release`.
    query : that of the rows; by default the only one of the table.
    ledger : where its releases were stored, if not in the table itself.
    plain : a folder for the plain form of what is checked, a folder for each job in it.
    given : the other options of `check_release`.

    Raises InvalidInput for a folder that is no release table, and for a query of which it has no rows.

    Source: docs/audit.md.
    """
    path = Path(released)
    if not (path / "log").is_dir():
        raise InvalidInput("released", str(path), "a released file, or the folder of a release table")
    table = ReleaseTable.open(path)
    jobs = [entry for entry in table.entries() if isinstance(entry, Committed) and entry.files]
    queries = sorted({str(job.document.get("query")) for job in jobs})
    asked = queries[0] if query is None and len(queries) == 1 else query
    if asked not in queries:
        got = "none of several" if query is None and queries else str(query)
        raise InvalidInput("query", got, f"the query of rows of this table: {', '.join(queries) or 'it has no rows'}")
    damaged = [(WRONG, "file", f"{_name(job)}: {why}") for job in jobs if (why := _damage(table, job))]
    if damaged:
        # Files that were not committed so are nobody's ledger.
        return CheckedRelease(0, 0, 0, (), tuple(damaged))
    checks, parts = list[tuple[str, str, str]](), list[CheckedRelease]()
    people, plans = set[str](), set[str | None]()
    with ExitStack() as held:
        folder = Path(held.enter_context(TemporaryDirectory()) if plain is None else plain)
        folder.mkdir(exist_ok=True)
        store = held.enter_context(opened_to_read(path, "released")) if ledger is None else ledger
        for job in (job for job in jobs if str(job.document.get("query")) == asked):
            place = folder / f"job-{job.number}"
            place.mkdir()
            rows, beside = _rows(table, job)
            statement = place / "statement.json"
            stated = job.document.get("statement")
            stated = stated if isinstance(stated, dict) else {}
            # A commit has its members in an order of its own.
            stated = verify_release.in_order(stated, verify_release.MEMBERS)
            statement.write_text(json.dumps(stated, indent=2) + "\n", encoding="utf-8")
            checked = check_release(rows, model, policy, space, ledger=store, statement=statement, plain=place, **given)
            said = [line for line in checked.checks if line[:2] != (LEFT, "file")]
            checks += [(word, check, f"{_name(job)}: {figure}") for word, check, figure in [*beside, *said]]
            parts.append(checked)
            people |= set(rows.column("user").unique().to_pylist())
            plans |= set(rows.column("plan").unique().to_pylist()) - {None}
    return CheckedRelease(
        rows=sum(part.rows for part in parts),
        users=len(people),
        plans=len(plans),
        verdicts=tuple({verdict.plan: verdict for part in parts for verdict in part.verdicts}.values()),
        checks=tuple(checks),
        plans_made=tuple({plan.hash: (plan, planner) for part in parts for plan, planner in part.plans_made}.values()),
    )


def _name(job: Committed) -> str:
    return f"job {job.number}"


def _damage(table: ReleaseTable, job: Committed) -> str:
    """The reason why the files of a job are not those that it committed; "" where they are."""
    try:
        check_files(table.data, job, None)
    except InvalidInput as error:
        return verify_release.printable(str(error))
    return ""


def _rows(table: ReleaseTable, job: Committed) -> tuple[pa.Table, list[tuple[str, str, str]]]:
    """The published rows of a job by person and step, and the checks of its commit and files."""
    import pyarrow as pa

    parts, checks = list[pa.Table](), list[tuple[str, str, str]]()
    for file in job.files:
        checks += look_beside_columns(table.data / file.name)
        parts.append(read_table(table.data / file.name))
    rows = pa.concat_tables(parts)
    columns = {name for name in rows.column_names if name.startswith(PREFIX)}
    axes = sum(name.startswith(f"{PREFIX}z_") for name in columns)
    others = [*sorted(columns - set(ledger_columns(axes))), *sorted(job.document.keys() - _MEMBERS)]
    if others:
        checks.append(
            (
                WRONG,
                "columns",
                verify_release.printable(f"columns or members of the commit that no release has: {others}"),
            )
        )
    checks.append((OK, "file", "the commit names each file by its SHA-256, and holds the statement"))
    checks.append((LEFT, "bytes", "of the columns of the ledger the values are compared, and not how they are written"))
    rows = rows.select([name for name in rows.column_names if name not in columns])
    return rows.sort_by([("user", "ascending"), ("step", "ascending")]), checks
