"""What a plan's hash and a ledger's record of it are made of, by a twin that builds both from the plan's parts.

Claims. The record is canonical JSON of what was chosen, for every mechanism, for joined states, partners, unbounded
costs. The hash covers version, space, policy, options, support, plan set, surrogates and given partners, the bodies and
the record. A ledger of another version of the algorithm is not continued, and the refusal says so. It could fail for
a text that only looks like JSON, for a part that is left out (two plans under one hash), and for numbers of states
that are written too narrowly to be told apart.
"""

from __future__ import annotations

import hashlib
import json
import math

import numpy as np
import pytest

import dphmm
from dphmm.errors import InvalidInput
from dphmm.mechanisms import MECHANISM_CHOICES
from dphmm.session import planner as planner_module
from dphmm.session.options import Options
from dphmm.session.plan import ALGORITHM_VERSION
from dphmm.session.planner import Planner, _narrowest
from running_example import ANSWERS, EDGES_3B


def made(plan_states, partners=(), **chosen):
    """A planner and its plan of some states of the running example, which has states without an edge."""
    policy, space = dphmm.policy.from_edges(EDGES_3B, 6), dphmm.StateSpace(ANSWERS)
    planner = Planner(policy, space, Options.checked("0.5", dimension=2, **{"protection": "nearest", **chosen}))
    planned = np.isin(np.arange(6), list(plan_states))
    return planner, planner.plan(np.ones(6, dtype=np.bool_), planned, np.array(partners, np.int64).reshape(-1, 2))


def description_of(plan):
    return {
        "mechanisms": [mechanism.describe() for mechanism in plan.mechanisms],
        "joins": plan.joins.tolist(),
        "partners": plan.partners.tolist(),
        "given_partners": plan.joint_edges.tolist(),
        "cost": "unbounded" if plan.cost == math.inf else str(plan.cost),
    }


def hash_of(planner, plan):
    shared = {
        "version": ALGORITHM_VERSION,
        "space": planner.space.digest,
        "policy": planner.policy.digest,
        "options": planner.options.written(),
    }
    parts = [json.dumps(shared, sort_keys=True).encode(), b"\n"]
    parts += [np.packbits(plan.constraint.support).tobytes(), np.packbits(plan.constraint.plan).tobytes()]
    parts += [b"".join(int(state).to_bytes(2, "little", signed=True) for state in plan.constraint.surrogate)]
    parts += [int(state).to_bytes(8, "little", signed=True) for state in plan.joint_edges.ravel()]
    inputs = hashlib.sha256(b"".join(parts)).digest()
    chosen = "".join(hull.digest for hull in plan.hulls) + json.dumps(description_of(plan), sort_keys=True)
    return hashlib.sha256(inputs + chosen.encode()).hexdigest()


CASES = [
    *({"mechanism": mechanism} for mechanism in MECHANISM_CHOICES),
    {"scope": "component"},
    {"scope": "component", "mechanism": "staircase"},
    {"flat": "allow"},
    {"protection": "min-error"},
]


@pytest.mark.parametrize("chosen", CASES, ids=str)
@pytest.mark.parametrize("states", [range(6), (0, 2, 3, 5), (1, 4), (2,)], ids=str)
@pytest.mark.parametrize("partners", [(), [(0, 4)]], ids=["alone", "beside"])
def test_record_and_hash_are_those_of_the_twin(chosen, states, partners):
    planner, plan = made(states, partners, **chosen)
    text = json.dumps(description_of(plan), sort_keys=True)
    assert plan.record.description == text
    assert plan.record.plan_states == np.packbits(plan.constraint.plan).tobytes()
    assert plan.record.n_states == 6
    assert plan.hash == plan.record.hash == hash_of(planner, plan)


def test_the_cases_hold_what_they_are_for():
    plans = [made(range(6), **chosen)[1] for chosen in CASES]
    assert any(len(plan.joins) for plan in plans)
    assert any(len(plan.partners) for plan in plans)
    assert any(plan.cost == math.inf for plan in plans)
    assert any(len(plan.mechanisms) > 1 for plan in plans)


def test_states_are_written_in_the_narrowest_type_that_holds_their_numbers():
    for size, most in ((2, 2**15), (4, 2**31)):
        narrow = _narrowest(most)
        assert narrow == np.dtype(f"<i{size}")
        assert np.array([-1, most - 1]).astype(narrow).tolist() == [-1, most - 1]
        assert _narrowest(most + 1).itemsize == 2 * size


def test_a_ledger_of_another_version_is_not_continued(monkeypatch):
    """And says why; its rows stay readable."""
    model = dphmm.MarkovModel(np.full(6, 1 / 6), np.full((6, 6), 1 / 6))
    parts = (model, dphmm.policy.from_edges(EDGES_3B, 6), dphmm.StateSpace(ANSWERS))
    ledger = dphmm.accounting.MemoryLedger()
    with monkeypatch.context() as earlier:
        earlier.setattr(planner_module, "ALGORITHM_VERSION", ALGORITHM_VERSION - 1)
        dphmm.ReleaseSession(*parts, 1, subject="s", ledger=ledger, bits=dphmm.ReplayBits(1)).release(3)
    refused = f"made from the record by version {ALGORITHM_VERSION} of the algorithm"
    with pytest.raises(InvalidInput, match=refused):
        dphmm.ReleaseSession.resume(ledger, "s", *parts)
    with pytest.raises(InvalidInput, match=refused):
        dphmm.ReleaseSession(*parts, 1, subject="s", ledger=ledger).release(3, t=1)
    with pytest.raises(InvalidInput, match=refused):
        dphmm.ReleaseSession.resume(ledger, "s", *parts, estimates=False)
    assert len(ledger.entries("s", "state")) == 1
