"""The leakage of releases in a ledger is that of their costs and plans; those of another model or policy are refused.

`tests/cli/test_leakage_commands.py` compares it with the plans of sessions, for several queries, skips and constraints.
"""

from __future__ import annotations

import numpy as np
import pytest

import dphmm
from dphmm.accounting import MemoryLedger, losses_per_step, policy_leakage, temporal_leakage
from dphmm.audit.leakage import subject_leakage
from dphmm.errors import InvalidInput

SPACE = dphmm.StateSpace(np.array([[0.0], [1.0], [2.0]]))
MODEL = dphmm.MarkovModel([0.5, 0.3, 0.2], [[0.6, 0.4, 0], [0.2, 0.5, 0.3], [0, 0.4, 0.6]], space=SPACE, start="at")
POLICY = dphmm.policy.radius(SPACE, 1)


@pytest.fixture
def released():
    ledger, plans = MemoryLedger(), []
    session = dphmm.ReleaseSession(MODEL, POLICY, SPACE, 1, subject="ann", ledger=ledger, bits=dphmm.ReplayBits(1))
    for state in (0, 1, 1):
        plans.append(session.plan)
        session.release(state)
    return ledger, plans


def test_it_is_the_leakage_of_the_costs_and_of_the_plans(released):
    ledger, plans = released
    (found,) = subject_leakage(ledger, ["ann"], MODEL, POLICY)
    expected = temporal_leakage(MODEL, losses_per_step(ledger.entries("ann", "state")))
    for name in ("backward", "forward", "total"):
        assert found["temporal"][name] == getattr(expected, name).tolist()
    assert len(set(found["temporal"]["total"])) > 1
    assert found["policy"]["worst"] == policy_leakage(MODEL, plans, np.asarray(POLICY.edges())).worst
    assert found["couplable"]["holds"] in (True, False)


def test_without_a_policy_there_is_no_policy_leakage(released):
    (found,) = subject_leakage(released[0], ["ann"], MODEL)
    assert set(found) == {"subject", "temporal"}


def test_another_model_or_policy_is_refused(released):
    other = dphmm.MarkovModel([0.5, 0.5, 0], MODEL.transition, space=SPACE, start="at")
    with pytest.raises(InvalidInput, match="model: got another model than that of the releases of 'ann'"):
        subject_leakage(released[0], ["ann"], other)
    with pytest.raises(InvalidInput, match="policy: got another policy than that of the releases of 'ann'"):
        subject_leakage(released[0], ["ann"], MODEL, dphmm.policy.complete(3))
