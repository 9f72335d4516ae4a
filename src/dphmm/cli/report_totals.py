"""What a page says was spent over time: a ledger's totals, and leakage where it is quickly computed."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from dphmm.accounting.budget import sum_above
from dphmm.accounting.edge_leakage import losses_between
from dphmm.report.content import Total

if TYPE_CHECKING:
    from dphmm.accounting.ledger import Ledger
    from dphmm.report.assembling import Made
    from dphmm.report.content import ReleaseReport
    from dphmm.session.plan import Plan

#: Leakage of longer histories or more states takes more than seconds: dphmm account --temporal computes it.
_MOST_STATES, _MOST_STEPS, _MOST_EDGE_STEPS = 500, 1000, 1000
#: Distances that are shown of paths, each twice the one before.
_DOUBLED, _ROUNDING = 4, 1e-9
_GRADED = (
    "how well all answers can tell two possible paths apart whose states are no further apart than that at every step: "
    "the sum, over the answers, of the most that two such states lose (docs/proofs/paths.md)"
)


def totals(report: ReleaseReport, ledger: Ledger | None, made: Made, plans: list[Plan]) -> list[Total]:
    """Of the first explored subject: all stored releases, and what all answers say about one step."""
    user = str(report.released.column("user")[int(report.explored[0][0])])
    found = [] if ledger is None else _stored(user, ledger)
    if plans and len(plans) == len(report.explored[0]):
        found += _graded(user, made, plans)
        found += _leakage(user, report, made, plans)
    return found


def _graded(user: str, made: Made, plans: list[Plan]) -> list[Total]:
    """What all answers tell of two paths, by how far apart they are at most: the sum of what pairs of states lose.

    Source: docs/proofs/paths.md.
    """
    n = made.space.n_states
    if n > _MOST_STATES:
        return []
    one, other = (part.astype(np.int64) for part in np.triu_indices(n, 1))
    apart = made.space.distances(made.space.own_answers[one], made.space.own_answers[other])
    different = Counter(plans)
    losses = {plan: losses_between(plan, one, other, n) for plan in different}
    # Twice as far is about twice as much: as far as the longest edge, then twice that and so on.
    assert made.policy is not None
    edges = np.asarray(made.policy.edges())
    hidden = made.space.distances(*(made.space.own_answers[edges[:, end]] for end in (0, 1))) if len(edges) else apart
    least, widest = float(hidden.max(initial=0.0)), float(apart.max(initial=0.0))
    found = []
    for distance in [least * 2**k for k in range(_DOUBLED) if 0 < least * 2**k < widest] + [widest]:
        near, total = apart <= distance * (1 + _ROUNDING), np.zeros(1)
        for plan, times in different.items():
            total = sum_above(total, np.nextafter(losses[plan][near].max(initial=0.0) * times, np.inf))
        what = "any two possible paths" if distance == widest else f"paths at most {_far(distance, made)} apart"
        found.append(Total(f"{what}, all {len(plans):,} answers of {user}", _shown(float(total[0])), _GRADED))
    return found


def _far(distance: float, made: Made) -> str:
    return f"{distance:,.0f} m" if made.space.on_map else f"{distance:.4g}"


def _stored(user: str, ledger: Ledger) -> list[Total]:
    from dphmm.accounting.records import in_short
    from dphmm.accounting.summary import summarise_ledger

    found = []
    for summary in summarise_ledger(ledger, user):
        releases = sum(query.releases for query in summary.queries)
        of = f"of {user}, all {releases:,} stored releases"
        for name, total in (("sum of epsilons", summary.epsilon), ("sum of costs", summary.cost)):
            words = f"{total.statement} ({total.citation})"
            if total.value == math.inf and summary.reason:
                words = f"unbounded: {summary.reason}"
            found.append(Total(f"{name} {of}", in_short(total.value), words))
    return found


def _leakage(user: str, report: ReleaseReport, made: Made, plans: list[Plan]) -> list[Total]:
    """Of answers at steps 1, 2, 3, …: a gap would need the plans of no release. None is known where a model jumps."""
    from dphmm.accounting import temporal_leakage
    from dphmm.cli.account_leakage import TEMPORAL
    from dphmm.session.budget_plan import MEANING, PROOF, leakage_of, started

    steps = report.released.column("step").to_numpy()[report.explored[0]]
    assert made.subjects is not None and made.options is not None and made.policy is not None
    own = set(made.subjects.setting.varies) - {"epsilon"}
    small = made.space.n_states <= _MOST_STATES and len(plans) <= _MOST_STEPS
    if (
        not small
        or made.subjects.initials
        or made.model.jump is not None
        or steps.tolist() != list(range(1, len(plans) + 1))
        or any(plan.cost == math.inf for plan in plans)
    ):
        return []
    chain = started(made.model, made.options.start)
    found = temporal_leakage(chain, [float(plan.cost) for plan in plans])
    rows = [Total(f"temporal leakage of {user}", _shown(found.worst), f"{TEMPORAL} (docs/proofs/temporal-leakage.md)")]
    if not own and made.policy.n_states <= 60 and len(made.policy.edges()) * len(plans) <= _MOST_EDGE_STEPS:
        worst = leakage_of(made.model, made.options.start, plans, made.policy).worst
        rows.append(Total(f"policy leakage of {user}", _shown(worst), f"{MEANING} ({PROOF})"))
    return rows


def _shown(value: float) -> str:
    return f"at most {value:.6g}" if math.isfinite(value) else "unbounded"
