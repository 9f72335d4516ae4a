"""Whether a privacy statement has every member that a page repeats, before the page is made."""

from __future__ import annotations

import re
from typing import Any

from dphmm.errors import InvalidInput

_HASH = re.compile("[0-9a-f]{64}")
#: Members by their path, and what they must be.
_NEEDED: dict[str, type | tuple[type, ...]] = {
    "not_private_because": list,
    "promise.meaning": list,
    "promise.assumes": str,
    "promise.definition": str,
    "promise.source": str,
    "published.rows": int,
    "published.subjects": int,
    "epsilon": str,
    "query": str,
    "unit_of_privacy": str,
    "totals.of": str,
    "totals.epsilon_sum": (str, int, float),
    "totals.epsilon_sum_meaning": str,
    "totals.cost_sum": (str, int, float),
    "totals.cost_sum_meaning": str,
    "totals.cost_unbounded_because": (str, type(None)),
    "not_protected": list,
    "software.name": str,
    "software.version": str,
    "software.algorithm_version": int,
    "mechanism.asked": str,
    "mechanism.chosen": dict,
    "policy.kind": str,
    "policy.parameters": (dict, type(None)),
    "policy.sha256": str,
    "constraint.name": str,
    "constraint.meaning": str,
    "scope.name": str,
    "scope.meaning": str,
    "flat.name": str,
    "flat.meaning": str,
    "space.states": int,
    "space.kind": str,
    "space.dimension": int,
    "space.sha256": str,
    "model.meaning": str,
    "model.sha256": str,
    "randomness.meaning": str,
    "plans.count": int,
    "plans.sha256": str,
}


def checked_statement(statement: dict[str, Any], name: str) -> dict[str, Any]:
    """The statement, complete. Raises InvalidInput naming what is missing, or of another type."""
    for path, kind in _NEEDED.items():
        if not isinstance(_member(statement, path), kind):
            raise InvalidInput("statement", f"{name} without {path}", "a privacy statement as dphmm release wrote it")
    sentences = ["not_private_because", "promise.meaning", "not_protected"]
    if statement.get("format") != 1:
        sentences.append("unknown_because")
    for path in sentences:
        listed = _member(statement, path)
        if not isinstance(listed, list) or not all(isinstance(sentence, str) for sentence in listed):
            raise InvalidInput("statement", f"{name} with no text in {path}", "sentences as dphmm release wrote them")
    about = statement.get("file", {})
    if not isinstance(about, dict) or (
        about and not (isinstance(about.get("name"), str) and _HASH.fullmatch(str(about.get("sha256"))))
    ):
        raise InvalidInput(
            "statement", f"{name} without the name and sha256 of its file", "one as dphmm release wrote it"
        )
    if not all(isinstance(count, int) for count in statement["mechanism"]["chosen"].values()):
        raise InvalidInput("statement", f"{name} with no counts of mechanisms", "a statement as dphmm release wrote it")
    return statement


def _member(statement: Any, path: str) -> Any:
    """A member by its path; a missing one is no text, list or number."""
    value = statement
    for part in path.split("."):
        value = value.get(part, _MISSING) if isinstance(value, dict) else _MISSING
    return value


_MISSING = object()
