"""What several queries of one subject must share, so that one partner can hide a state in all of them.

The corrected Theorem 7.1 keeps a state without an edge hidden behind one partner. That needs the same steps, the same
policy and model, partners for every possible state (so no δ-sets), and a support that no other query has narrowed
(so no flat hulls that are allowed to exclude states).

Proof: docs/proofs/joint-queries.md.
"""

from __future__ import annotations

from dphmm.accounting.ledger import Ledger, SessionHeader, Transaction
from dphmm.errors import InvalidInput
from dphmm.session.plan import all_partners
from dphmm.types import IntArray

_SHARED = ("origin", "model", "policy", "start")


def check_joint(header: SessionHeader, other: SessionHeader) -> None:
    """Refuse a query beside another one of the same subject when the two together would promise less."""
    beside = f"because the subject has the query {other.query!r} too"
    for name in _SHARED:
        own, kept = header.options.get(name), other.options.get(name)
        if own != kept:
            raise InvalidInput(name, str(own), f"{kept}, {beside}")
    for options in (header.options, other.options):
        if options.get("constraint") != "support":
            raise InvalidInput("constraint", str(options.get("constraint")), f"support in both, {beside}")
        if options.get("flat") == "allow":
            raise InvalidInput("flat", "allow", f"thicken or refuse in both, {beside}")


def partners_at(ledger: Ledger | Transaction, subject: str, t: int, query: str) -> IntArray:
    """The partners (p, 2) that a subject's other queries have fixed for a step."""
    return all_partners(ledger.plans_at(subject, t, query))
