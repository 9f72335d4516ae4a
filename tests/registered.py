"""The kinds of policies and the mechanisms that the package has registered, and what a proof leaves out of them.

The proofs by enumeration draw their instances from tables of their own, which name what they know how to judge. A kind
or a mechanism that is registered in the package and missing there is told in words.
"""

from __future__ import annotations

from collections.abc import Collection

from dphmm.mechanisms import registry
from dphmm.policy import graph


def policy_kinds() -> list[str]:
    """Every kind of policy."""
    return list(graph.KINDS)


def release_mechanisms() -> list[str]:
    """Every mechanism that a release may draw from."""
    return list(registry.KINDS)


def chosen_mechanisms() -> list[str]:
    """What the option ``mechanism`` may be: auto, and all that a release may draw from; a constant is no choice."""
    return list(registry.MECHANISM_CHOICES)


def left_out(registered: Collection[str], covered: Collection[str], what_to_add: str) -> list[str]:
    """What is registered and not covered, and what is covered and no longer registered, in words."""
    found = [
        f"{name} is registered and not tried here: add {what_to_add}" for name in registered if name not in covered
    ]
    return found + [f"{name} is tried here and no longer registered" for name in covered if name not in registered]
