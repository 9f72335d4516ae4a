"""Add up losses: the corrected theorems of the DPHMM paper, and zero-concentrated privacy (zCDP).

docs/theory.md 7 has the corrected theorems; "errata n" is a number of docs/errata.md. A total is a ``Guarantee``: a
value and the statement that it makes. The value infinity means that the statement has no bound.

zCDP adds up rho of Gaussian noise and converts it to (epsilon, delta). Rounding goes towards privacy: epsilon up, rho
down. A search in floats picks the order; the bound at that order is computed to 60 digits and holds at any order.

Proofs: docs/proofs/composition.md, docs/proofs/paths.md, docs/proofs/zcdp.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, localcontext
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


_DIGITS = 60
#: Epsilons are rounded up to this unit.
_UNIT = Decimal(1).scaleb(-12)
#: More than the error of evaluating the bound to 60 digits for any order up to e**40 and delta from 1e-300.
_MARGIN = Decimal(1).scaleb(-30)
_RHO_BITS = 40
SMALLEST_DELTA = Fraction(1, 10**300)


def check_delta(delta: Fraction, field: str = "delta") -> Fraction:
    """A delta that the conversion takes: from 1e-300 to below 1."""
    if not SMALLEST_DELTA <= delta < 1:
        raise InvalidInput(field, delta, "a number from 1e-300 to below 1 for Gaussian noise")
    return delta


def epsilon_of(rho: Fraction, delta: Fraction) -> Fraction:
    """The least epsilon known for rho-zCDP at this delta, rounded up (Canonne, Kamath and Steinke 2020, v4, Prop. 12).

    min over orders a > 1 of a·rho + (log(1/delta) + (a - 1)·log(1 - 1/a) - log a)/(a - 1).
    """
    check_delta(delta)
    if rho == 0:
        return Fraction(0)
    log_delta = math.log(delta.numerator) - math.log(delta.denominator)
    order = 1.0 + math.exp(_best_log_excess(float(rho), log_delta))
    return _bound(rho, delta, order)


def rho_for(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho (to 40 binary digits, rounded down) whose ``epsilon_of`` is at most epsilon."""
    check_delta(delta)
    exponent = math.floor(math.log2(_simple_rho(float(epsilon), delta)))
    unit = Fraction(2) ** (exponent - _RHO_BITS)
    low, high = 0, 1 << _RHO_BITS
    while epsilon_of(high * unit, delta) <= epsilon:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if epsilon_of(middle * unit, delta) <= epsilon:
            low = middle
        else:
            high = middle
    return low * unit


def _simple_rho(epsilon: float, delta: Fraction) -> float:
    """The rho with rho + 2·sqrt(rho·log(1/delta)) = epsilon: a first guess."""
    log = math.log(delta.denominator) - math.log(delta.numerator)
    # (sqrt(log + epsilon) - sqrt(log))**2 without cancellation.
    return (epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))) ** 2


def _best_log_excess(rho: float, log_delta: float) -> float:
    """log(a - 1) of about the best order a: golden section."""

    def bound(log_excess: float) -> float:
        excess = math.exp(log_excess)
        logs = excess * math.log(excess / (1.0 + excess)) if log_excess < 30 else -1.0
        return (1.0 + excess) * rho + (-log_delta + logs - math.log1p(excess)) / excess

    low, high = -12.0, 40.0
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    for _ in range(90):
        width = ratio * (high - low)
        if bound(high - width) < bound(low + width):
            high = low + width
        else:
            low = high - width
    return (low + high) / 2.0


def _bound(rho: Fraction, delta: Fraction, order: float) -> Fraction:
    with localcontext() as context:
        context.prec = _DIGITS
        a = Decimal(order)
        log_inverse_delta = Decimal(delta.denominator).ln() - Decimal(delta.numerator).ln()
        logs = (a - 1) * (1 - 1 / a).ln() - a.ln()
        exact = a * rho.numerator / rho.denominator + (log_inverse_delta + logs) / (a - 1)
        up = (exact + _MARGIN).quantize(_UNIT, rounding=ROUND_CEILING)
    return max(Fraction(0), Fraction(up))
