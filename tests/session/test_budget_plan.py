"""The search for an epsilon that keeps a total: what it tells of itself. What it finds: tests/accounting, tests/cli.

It could fail where progress stands still or goes back, or where nobody is told that a search takes long.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import dphmm
from dphmm.policy import Support
from dphmm.session.budget_plan import BudgetPlan, may_take_long
from dphmm.session.options import Options
from dphmm.session.setting import Setting


def ring(n, reach, jump=None):
    """States of a ring, and a policy of neighbours on a line; each state moves up to ``reach`` on."""
    moves = np.zeros((n, n))
    for far in range(-reach, reach + 1):
        moves += np.roll(np.eye(n), far, axis=1) / (2 * reach + 1)
    space = dphmm.StateSpace(np.arange(n)[:, None])
    model = dphmm.MarkovModel(np.full(n, 1 / n), moves, jump=jump)
    return Setting(model, dphmm.policy.radius(space, 1), space, Options(Fraction(1), Support()))


def test_progress_moves_with_every_step_and_never_back():
    seen = []
    found = BudgetPlan.allocated(ring(5, 1), "2", 6, lambda done, of: seen.append((done, of)))
    assert found.epsilon > 0
    shares = [done / of for done, of in seen]
    assert all(0 < share <= 1 for share in shares)
    # Where more epsilons are tried than expected, there is more to do, and the share stays.
    assert len(seen) >= 12 * 10 and all(after > before for before, after in pairwise(seen))


@pytest.mark.parametrize(
    "n, reach, jump, steps, long", [(60, 25, None, 200, False), (60, 25, None, 2000, True), (60, 25, 0.01, 2000, False)]
)
def test_a_long_search_is_said_to_be_one(n, reach, jump, steps, long):
    assert may_take_long(ring(n, reach, jump), steps) is long
