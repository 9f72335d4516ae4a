"""Whole histories of tiny instances: all pairs of them, against what the ledger charged.

The loss of two histories is a sum over releases (docs/theory.md 7). Sums are exact fractions, charges are read from
the ledger, and an observer who filters and smooths is played with decimals of 50 digits.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext
from fractions import Fraction

from exactness.case import Case
from exactness.check_points import DIGITS, decimal
from exactness.findings import Findings
from exactness.instances import Instance
from exactness.play import SUBJECT, Play

History = tuple[int, ...]
_ABSOLUTE = 1e-9
#: The ledger keeps its totals in whole units of this, every charge rounded up.
_UNIT = Fraction(1, 10**9)


def check_histories(play: Play, cases: Sequence[Case], findings: Findings) -> None:
    """``cases``: all releases of the instance, of all its queries, in order."""
    charged = _charged(play, cases, findings)
    histories = [h for h in possible_histories(play.instance) if _left(h, cases)]
    findings.counts["histories"] += len(histories)
    if charged < math.inf:
        for one, other in itertools.combinations(histories, 2):
            findings.counts["pairs of histories"] += 1
            _pair(one, other, cases, charged, findings)
    with localcontext() as context:
        # The odds of large charges have exponents of more than six digits.
        context.prec, context.Emax, context.Emin = DIGITS, MAX_EMAX, MIN_EMIN
        masses = {h: _prior(play, h) for h in histories}
        given = {h: mass * _likelihood(h, cases) for h, mass in masses.items()}
        _filtered(play, cases, findings)
        if charged < math.inf:
            _smoothed(masses, given, charged, findings, cases[0].where)


def _charged(play: Play, cases: Sequence[Case], findings: Findings) -> Fraction | float:
    """The sum of the charges in the ledger, which must be the plans' own and the subject's total."""
    entries = [e for q in play.instance.queries for e in play.ledger.entries(SUBJECT, q.name) if e.kind == "release"]
    where = cases[0].where
    costs = sorted(case.step.plan.cost for case in cases)
    findings.require(
        sorted(e.cost for e in entries) == costs, where, "the ledger charged something else than the plans"
    )
    spent = play.ledger.spent(SUBJECT)
    epsilons = [case.step.epsilon for case in cases]
    for name, total, parts in (("cost", spent.cost, costs), ("eps", spent.epsilon, epsilons)):
        exact = sum(parts, Fraction(0))
        rounded_up = total == exact or exact < total < exact + len(parts) * _UNIT
        findings.require(rounded_up, where, f"the ledger's {name} is {total}, its parts make {exact}")
    return sum((e.cost for e in entries), Fraction(0))


def possible_histories(instance: Instance) -> list[History]:
    """All sequences of states that the model allows at steps 1 to T."""
    before = instance.queries[0].options["start"] == "before"
    found = []
    for h in itertools.product(range(instance.n), repeat=len(instance.walk)):
        moves = all(instance.transition[a, b] > 0 for a, b in itertools.pairwise(h))
        started = [s for s in range(instance.n) if instance.initial[s] > 0]
        if moves and (any(instance.transition[s, h[0]] > 0 for s in started) if before else h[0] in started):
            found.append(h)
    return found


def _left(history: History, cases: Sequence[Case]) -> bool:
    """Whether no answer excludes the history."""
    return all(_exponent(case, history) is not None for case in cases)


def _exponent(case: Case, history: History) -> Fraction | None:
    s = history[case.step.t - 1]
    noise = [int(a) - b for a, b in zip(case.step.z, case.images[s], strict=True)]
    return case.law.exponent(noise)


def _pair(one: History, other: History, cases: Sequence[Case], charged: Fraction, findings: Findings) -> None:
    losses = [case.worst(one[case.step.t - 1], other[case.step.t - 1]) for case in cases]
    total = math.inf if None in losses else sum(losses)
    where = cases[0].where
    findings.require(total <= charged, where, f"histories {one} and {other} lose {total}, charged {charged}")
    actual = sum(_exponent(case, other) - _exponent(case, one) for case in cases)
    findings.require(abs(actual) <= total, where, f"histories {one} and {other} lost {actual}, more than {total}")


def _prior(play: Play, history: History) -> Decimal:
    """The probability of a history under the model that is used, whose rows the library has divided by their sums."""
    moves = play.model.transition.toarray()
    initial = play.model.initial
    if play.instance.queries[0].options["start"] == "before":
        first = sum((Decimal(float(p)) * Decimal(float(m)) for p, m in zip(initial, moves[:, history[0]], strict=True)))
    else:
        first = Decimal(float(initial[history[0]]))
    return first * math.prod((Decimal(float(moves[a, b])) for a, b in itertools.pairwise(history)), start=Decimal(1))


def _likelihood(history: History, cases: Sequence[Case], until: int | None = None) -> Decimal:
    """Pr(all answers up to a step | history), up to a constant."""
    total = Decimal(0)
    for case in cases:
        if until is None or case.step.t <= until:
            total -= decimal(_exponent(case, history))
    return total.exp()


def _filtered(play: Play, cases: Sequence[Case], findings: Findings) -> None:
    """The session's beliefs are those of an exact filter over all histories."""
    histories = possible_histories(play.instance)
    for query in play.instance.queries:
        own = [case for case in cases if case.step.query is query]
        for case in own:
            for belief, until in ((case.step.prior, case.step.t - 1), (case.step.posterior, case.step.t)):
                past = [c for c in own if c.step.t <= until]
                mass = dict.fromkeys(range(play.instance.n), Decimal(0))
                for h in histories:
                    if _left(h, past):
                        mass[h[case.step.t - 1]] += _prior(play, h) * _likelihood(h, past)
                _same_belief(case, belief, mass, findings)


def _same_belief(case: Case, belief: object, mass: dict[int, Decimal], findings: Findings) -> None:
    total = sum(mass.values())
    for s, log in enumerate(belief.log_probability.tolist()):
        if (mass[s] == 0) != (log == -math.inf):
            findings.require(False, case.where, f"state {s} is possible, or not")
        elif mass[s]:
            off = abs(log - float((mass[s] / total).ln()))
            findings.require(off <= _ABSOLUTE + 1e-14 * abs(log), case.where, f"a belief is off by {off:.3g}")


def _smoothed(
    masses: dict[History, Decimal], given: dict[History, Decimal], charged: Fraction, findings: Findings, where: str
) -> None:
    """After all answers, the odds of two states at any time have moved by at most the sum of the charges."""
    allowed = decimal(charged).exp() * (1 + Decimal(10) ** (10 - DIGITS))
    for t in range(len(next(iter(masses)))):
        before, after = _at(masses, t), _at(given, t)
        for a, b in itertools.permutations(before, 2):
            moved = (after[a] / after[b]) / (before[a] / before[b])
            findings.require(moved <= allowed, where, f"the odds of ({a}, {b}) at step {t + 1} move beyond the charges")


def _at(masses: dict[History, Decimal], t: int) -> dict[int, Decimal]:
    found: dict[int, Decimal] = {}
    for history, mass in masses.items():
        found[history[t]] = found.get(history[t], Decimal(0)) + mass
    return found
