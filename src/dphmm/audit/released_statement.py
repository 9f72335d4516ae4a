"""The privacy statement beside a released file, against the file."""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphmm.accounting.records import shown
from dphmm.audit.findings import Findings
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.session.planner import Planner
from dphmm.storage.inputs import file_digest
from dphmm.storage.statement import load_statement, statement_path

if TYPE_CHECKING:
    from dphmm.audit.released import Counted

_NOTHING = "the privacy statement: there is none beside the file"


def check_statement(
    path: Path, counted: Counted, model: MarkovModel, planner: Planner, query: str, findings: Findings
) -> list[str]:
    """Findings where a statement says what is not so; a note where there is no statement."""
    if not statement_path(path).exists():
        return [_NOTHING]
    try:
        statement = load_statement(path)
    except InvalidInput:
        findings.add("a privacy statement that cannot be read")
        return []
    for name, due in _due(path, counted, model, planner, query).items():
        told = _member(statement, name)
        findings.require(told == due, f"the privacy statement says {name} {_short(told)}, and it is {_short(due)}")
    secure = _member(statement, "randomness.secure")
    claims = statement.get("private") is True and (counted.replayable > 0 or secure is not True)
    findings.require(not claims, "the privacy statement calls a release private that was drawn from replayable bits")
    return []


def _due(path: Path, counted: Counted, model: MarkovModel, planner: Planner, query: str) -> dict[str, Any]:
    options, hashes = planner.options, sorted(counted.plans)
    accounts = counted.accounts.values()
    epsilon = max((total for total, _ in accounts), default=Fraction(0))
    cost = max((total for _, total in accounts), default=Fraction(0))
    return {
        "file.name": path.name,
        "file.sha256": file_digest(path),
        "query": query,
        "epsilon": str(options.epsilon),
        "policy.sha256": planner.policy.digest,
        "space.sha256": planner.space.digest,
        "model.sha256": model.digest,
        "constraint.name": str(options.constraint),
        "mechanism.asked": options.mechanism,
        "mechanism.protection": options.protection,
        "mechanism.start": options.start,
        "scope.name": options.scope,
        "flat.name": options.flat,
        "plans.count": len(hashes),
        "plans.sha256": hashlib.sha256("\n".join(hashes).encode()).hexdigest(),
        "published.rows": counted.rows,
        "published.subjects": len(counted.accounts),
        "published.public_constants": counted.constants,
        "totals.epsilon_sum": shown(epsilon),
        "totals.cost_sum": shown(math.inf if cost == math.inf else cost),
    }


def _member(statement: dict[str, Any], name: str) -> Any:
    value: Any = statement
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 16 else text[:12] + "…"
