"""The distance that a policy covers, in words and numbers: for statements, commands and pages.

Proof: docs/proofs/covered-distance.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any

from dphmm.accounting.records import in_short
from dphmm.policy import covered_distance
from dphmm.policy.graph import PolicyGraph
from dphmm.states.space import StateSpace
from dphmm.storage.statement_types import CoveredDistance, document

#: What stands for a distance where every two cells are joined.
ANY = "any"
#: Factors above this are told as a power of e alone.
_LARGEST_FACTOR = Fraction(13)
_KILOMETRES = 10_000.0


def covered_facts(policy: PolicyGraph, space: StateSpace) -> dict[str, Any] | None:
    """The covered distance as ``metres`` and as ``ground_metres``, which is never more.

    Both are "any" where every two cells are joined. None where the states are no cells of a map.
    """
    metres = covered_distance(policy, space)
    return None if metres is None else facts_of(ANY if metres == math.inf else metres, space)


def facts_of(metres: Any, space: Any) -> dict[str, Any]:
    """A distance that is covered on a map, and the same on the ground."""
    return {"metres": metres, "ground_metres": ANY if metres == ANY else space.on_the_ground(metres)}


def covered_distance_of(facts: Mapping[str, Any] | None, epsilon: Fraction) -> CoveredDistance | None:
    """What a statement says of it: the facts and a sentence that stands alone; None without facts."""
    if facts is None:
        return None
    return CoveredDistance(
        metres=facts["metres"], ground_metres=facts["ground_metres"], meaning=_meaning(facts, epsilon)
    )


def covered_document(facts: Mapping[str, Any] | None, epsilon: Fraction) -> dict[str, Any] | None:
    """The same for JSON."""
    covered = covered_distance_of(facts, epsilon)
    return None if covered is None else document(covered)


def places_words(facts: Mapping[str, Any]) -> str:
    """Which places are covered: "places in cells of the model up to 680 m apart on the map (677 m on the ground)"."""
    if facts["metres"] == ANY:
        return "any two places in cells of the model"
    if facts["metres"] == 0:
        return "places in one and the same cell of the model"
    return f"places in cells of the model up to {_apart(facts)}"


def covered_words(facts: Mapping[str, Any], epsilon: Fraction) -> str:
    """The places that are covered, and what one answer may tell of two of them."""
    which = {ANY: "", 0: "in two cells"}.get(facts["metres"], "further apart")
    more = f"; places {which} can lose more" if which else ""
    return f"{places_words(facts)}: a factor of at most {factor(epsilon)} per answer{more}"


def factor(epsilon: Fraction) -> str:
    """exp(ε), and as a number of three digits, rounded up, where that is not too large: "exp(1) = 2.72"."""
    power = f"exp({in_short(epsilon)})"
    if epsilon > _LARGEST_FACTOR:
        return power
    exact = Context(prec=30)
    value = exact.exp(exact.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator)))
    # The quotient and its power are rounded to nearest, by less than this.
    value = exact.next_plus(exact.next_plus(value))
    rounded = Context(prec=3, rounding=ROUND_CEILING).plus(value)
    return f"{power} = {rounded:f}" if rounded < 1000 else f"{power} = {math.ceil(value):,}"


def _meaning(facts: Mapping[str, Any], epsilon: Fraction) -> str:
    which = {ANY: "", 0: "in two cells"}.get(facts["metres"], "further apart")
    more = f"Of places {which}, one answer can tell more. " if which else ""
    return (
        f"Take {_pairs(facts)}. Where the promise holds and the public history leaves the cells of both possible, each "
        f"answer is at most a factor {factor(epsilon)} more likely from the one than from the other. {more}"
        "A place outside every cell is answered as the nearest state: of such places nothing is said here."
    )


def _pairs(facts: Mapping[str, Any]) -> str:
    if facts["metres"] == ANY:
        return "any two places in cells of the model"
    if facts["metres"] == 0:
        return "two places in one and the same cell of the model"
    return f"any two places in cells of the model that are at most {_apart(facts)}"


def _apart(facts: Mapping[str, Any]) -> str:
    metres, ground = length(facts["metres"]), length(facts["ground_metres"])
    return f"{metres} apart" if metres == ground else f"{metres} apart on the map ({ground} on the ground)"


def length(metres: float) -> str:
    """A distance for people, rounded down: metres below 10 km, centimetres below 10 m."""
    if metres >= _KILOMETRES:
        return f"{math.floor(metres / 100) / 10:,.1f} km"
    return f"{math.floor(metres):,} m" if metres >= 10 else f"{math.floor(metres * 100) / 100:g} m"
