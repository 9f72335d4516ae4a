"""What a page says was spent over time: a ledger's totals, and leakage where it is quickly computed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dphmm.report.content import Total

if TYPE_CHECKING:
    from dphmm.accounting.ledger import Ledger
    from dphmm.report.assembling import Made
    from dphmm.report.content import ReleaseReport
    from dphmm.session.plan import Plan

#: Leakage of longer histories or more states takes more than seconds: dphmm account --temporal computes it.
_MOST_STATES, _MOST_STEPS, _MOST_EDGE_STEPS = 500, 1000, 1000


def totals(report: ReleaseReport, ledger: Ledger | None, made: Made, plans: list[Plan]) -> list[Total]:
    """Of the first explored subject: all stored releases, and what all answers say about one step."""
    user = str(report.released.column("user")[int(report.explored[0][0])])
    found = [] if ledger is None else _stored(user, ledger)
    if plans and len(plans) == len(report.explored[0]):
        found += _leakage(user, report, made, plans)
    return found


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
