"""What releases lose together: the theorems of the DPHMM paper, as corrected, on numbers.

The corrected theorems and their proofs are in docs/theory.md 7; "errata n" is a number of docs/errata.md. Every
total is a ``Guarantee``: a value that says which statement it is. A value of infinity means that the statement holds
with no bound; a total is never printed without its statement.

Proofs: docs/proofs/composition.md, docs/proofs/paths.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from dphmm.accounting.records import check_exact, shown
from dphmm.errors import InvalidInput
from dphmm.types import Loss


@dataclass(frozen=True)
class Guarantee:
    """A bound on a loss (natural log of a ratio of probabilities), what it bounds, and where to read it."""

    value: Loss
    statement: str
    citation: str

    @property
    def bounded(self) -> bool:
        """Whether there is a bound at all."""
        return self.value != math.inf

    def __str__(self) -> str:
        return f"{shown(self.value)} ({self.statement}; {self.citation})"


@dataclass(frozen=True)
class SeveralQueries:
    """Theorem 7.1 in its parts. ``isolated`` is None where the theorem, as corrected, gives nothing."""

    edges: Guarantee
    isolated: Guarantee | None
    any_pair: Guarantee


def theorem_5_3(epsilon: Fraction, norms: Iterable[Loss]) -> Guarantee:
    """A database of records with states s_i: the loss of adding or removing one record.

    ``norms`` are ‖f(s_i)‖_K over the possible states; the bound is epsilon times their maximum. Theorem
    5.3(2) of the DPHMM paper; infinite when an f(s_i) is off the span of a flat K (errata 19).
    """
    check_exact(epsilon, "epsilon")
    largest = _largest(norms, "norms")
    return Guarantee(
        largest if isinstance(largest, float) else epsilon * largest,
        "bounds the loss of adding or removing one record",
        "DPHMM 2016, Theorem 5.3(2); errata 19",
    )


def theorem_6_3(losses: Iterable[Loss]) -> Guarantee:
    """One release: the loss of any two states of the plan set, the release's *cost*.

    ``losses`` are the mechanism's own losses over pairs of the plan set (epsilon·‖f_j − f_k‖_K for the
    K-norm, epsilon·⌈‖f_j − f_k‖_K⌉ for the staircase); the bound is their maximum. Theorem 6.3 of the DPHMM
    paper, with the mechanism's own loss in place of the K-norm's; infinite for flat bodies with several
    cosets (errata 19).
    """
    return Guarantee(
        _largest(losses, "losses"),
        "bounds the loss of any two possible states in one release",
        "DPHMM 2016, Theorem 6.3; errata 19",
    )


def theorem_7_1(
    epsilons: Mapping[str, Fraction],
    costs: Mapping[str, Loss],
    partners: Mapping[str, Mapping[int, int]],
) -> SeveralQueries:
    """Several queries answered at one timestamp, by name of the query.

    Theorem 7.1 of the DPHMM paper, corrected (errata 4): the sum of the epsilons holds for policy edges. For
    a state without an edge in the graph in force it holds only against one partner that is the same in all
    queries: ``partners`` maps each query to {state without an edge: its partner}, and where two queries
    differ, or one is missing, there is no such bound (two queries, epsilon 1 each, can lose 11). The sum of
    costs holds for any pair.

    Raises InvalidInput when the queries of ``epsilons`` and ``costs`` differ or a state is its own partner.
    """
    if set(epsilons) != set(costs) or not epsilons:
        raise InvalidInput("costs", sorted(costs), f"one cost for each of the queries {sorted(epsilons)}")
    for query, epsilon in epsilons.items():
        check_exact(epsilon, f"epsilon of {query}")
    total = sum(epsilons.values(), Fraction(0))
    edges = Guarantee(
        total,
        "bounds the loss of two states joined by a policy edge over all queries of one timestamp",
        "DPHMM 2016, Theorem 7.1; errata 4",
    )
    isolated = Guarantee(
        total,
        "bounds the loss of a state without an edge and its one partner over all queries of one timestamp",
        "DPHMM 2016, Theorem 7.1; errata 4",
    )
    any_pair = Guarantee(
        _sum(costs.values(), "costs"),
        "bounds the loss of any two possible states over all queries of one timestamp",
        "DPHMM 2016, Theorem 7.1; errata 19",
    )
    return SeveralQueries(edges, isolated if _one_partner(epsilons, partners) else None, any_pair)


def theorem_7_2(costs: Iterable[Loss]) -> Guarantee:
    """A sequence of releases: the loss of any two histories of possible states, the sum of the costs.

    Theorem 7.2 of the DPHMM paper; infinite if any cost is (errata 19). The sum of the epsilons bounds less:
    see :func:`neighbouring_paths`.
    """
    return Guarantee(
        _sum(costs, "costs"),
        "bounds the loss of any two histories of possible states over the whole sequence",
        "DPHMM 2016, Theorem 7.2; errata 19",
    )


def neighbouring_paths(epsilons: Iterable[Loss]) -> Guarantee:
    """A sequence of releases: the loss of any two neighbouring paths, the sum of the epsilons.

    Two paths are neighbouring if at every step their states are equal or joined by a policy edge, and possible.
    It is no bound for two *states* of one step: their pasts may be joined by no edge (docs/theory.md 1).
    This is adaptive composition (Guerra-Balboa et al., CSF 2024) for the neighbours of d_inf-privacy of traces
    (Chatzikokolakis, Palamidessi and Stronati, PETS 2014), with policy edges as the distance.

    >>> neighbouring_paths([Fraction(1, 2)] * 6).value
    Fraction(3, 1)
    """
    return Guarantee(
        _sum(epsilons, "epsilons"),
        "the sum of the per-step epsilons: bounds the loss of two paths whose states are equal or joined by a policy "
        "edge at every step, and possible; not a bound for two states of one step",
        "docs/proofs/paths.md",
    )


def _one_partner(queries: Iterable[str], partners: Mapping[str, Mapping[int, int]]) -> bool:
    tables = [partners.get(query) for query in queries]
    for table in tables:
        for state, partner in (table or {}).items():
            if state == partner:
                raise InvalidInput("partners", f"state {state} with itself", "another state (errata 7)")
    return tables[0] is not None and all(table == tables[0] for table in tables)


def _checked(losses: Iterable[Loss], field: str) -> list[Loss]:
    given = list(losses)
    for loss in given:
        if not (isinstance(loss, float) and loss == math.inf):
            check_exact(loss, field)
    return given


def _largest(losses: Iterable[Loss], field: str) -> Loss:
    return max(_checked(losses, field), default=Fraction(0))


def _sum(losses: Iterable[Loss], field: str) -> Loss:
    given = _checked(losses, field)
    return math.inf if math.inf in given else sum((Fraction(loss) for loss in given), Fraction(0))
