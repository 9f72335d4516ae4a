"""Every kind of policy, registered in one place: how a described one is rebuilt.

A new one is a file, a line here, its function in `dphmm.policy`, a command in `dphmm.cli.policy`, and a row in
docs/commands.md. Tests that try every kind fail then, and say what each of them needs.
"""

from __future__ import annotations

from typing import Any

from dphmm.errors import InvalidInput
from dphmm.policy._cliques import Categorical, Complete, Transition
from dphmm.policy._edges import EdgeGraph
from dphmm.policy._knn import Knn
from dphmm.policy._radius import Radius
from dphmm.policy._union import Union
from dphmm.policy.graph import PolicyGraph

KINDS: dict[str, type[PolicyGraph]] = {
    kind.kind: kind for kind in (Complete, Categorical, Radius, Knn, Transition, EdgeGraph, Union)
}


def from_description(description: Any, space: Any = None, model: Any = None) -> PolicyGraph:
    """The policy that ``describe`` described; one of a space or model needs that.

    Raises InvalidInput for an unknown kind, a missing part, or a space or model that gives another graph.
    """
    if not isinstance(description, dict):
        raise InvalidInput("policy", type(description).__name__, "a description with a kind")
    kind = description.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise InvalidInput("kind", kind, "one of " + ", ".join(KINDS))
    _check_depth(description)
    try:
        policy = KINDS[kind].from_description(description, space, model)
    except InvalidInput:
        raise
    except KeyError as missing:
        raise InvalidInput("policy", f"a description without {missing.args[0]}", "a complete one") from None
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        raise InvalidInput("policy", "parameters of another type", f"those of a {kind} policy") from None
    if policy.describe() != description:
        raise InvalidInput("policy", "a description that does not fit its own parameters", "one by describe()")
    return policy


def needs(description: dict[str, Any], kind: str) -> bool:
    """Whether a description is of a kind, or a union with a part of it."""
    return description.get("kind") == kind or any(needs(part, kind) for part in description.get("parts", ()))


def _check_depth(description: dict[str, Any], depth: int = 0) -> None:
    # Unions are flat as described; a forged file may nest them.
    if depth > 1:
        raise InvalidInput("policy", "a union inside a union", "parts of other kinds")
    parts = description.get("parts", ())
    if not isinstance(parts, (list, tuple)):
        raise InvalidInput("parts", type(parts).__name__, "a list of policies")
    for part in parts:
        if isinstance(part, dict) and "parts" in part:
            _check_depth(part, depth + 1)
