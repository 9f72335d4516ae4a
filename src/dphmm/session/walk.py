"""The steps of one subject walked again: from what was recorded to plans, beliefs and estimates.

Proof: docs/proofs/promise.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from dphmm.accounting.ledger import Entry, PlanRecord
from dphmm.markov.filtering import Belief
from dphmm.session.history import check_made_again
from dphmm.session.plan import Plan, given_partners, plan_states
from dphmm.session.setting import Setting
from dphmm.session.step import Position


class Walked(NamedTuple):
    """A stored step: its plan (None for a skip), the belief given it, and where the subject stands after it."""

    entry: Entry
    plan: Plan | None
    posterior: Belief
    after: Position


def walk(
    setting: Setting, position: Position, entries: Iterable[Entry], plan: Callable[[str], PlanRecord]
) -> Iterator[Walked]:
    """Each entry from ``position`` on, under the plan set that was recorded.

    Float arithmetic may differ between machines, so a delta-set is not made again. ``plan`` finds the record of a hash.
    Raises InvalidInput where a record does not make the plan that it names.
    """
    for entry in entries:
        if entry.z is None:
            last = position.passing(setting.model, entry.through)
            position = last.following(setting.model, last.prior)
            yield Walked(entry, None, last.prior, position)
            continue
        record = plan(str(entry.plan_hash))
        made = setting.planner.plan(position.prior.support, plan_states(record), given_partners(record))
        check_made_again(entry, made.hash)
        posterior = position.posterior(made, np.array(entry.z, dtype=np.int64))
        position = position.following(setting.model, posterior)
        yield Walked(entry, made, posterior, position)
