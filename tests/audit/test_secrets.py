"""The audit's own walk over latent states: what it calls possible, and what two histories of secrets really lose."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dphmm
import naive_secrets
from dphmm.accounting import MemoryLedger
from dphmm.audit.attacks.attack import METHODS, attack
from dphmm.audit.history import support_of
from dphmm.audit.leakage import subject_leakage
from dphmm.audit.sequences import losses, sequence_loss
from dphmm.audit.verify import verify_steps
from dphmm.session.setting import Setting
from session.test_secrets import MODEL, PLACES, POLICY, SPACE

CHAIN = (MODEL.initial.tolist(), MODEL.matrix.toarray().tolist(), MODEL.secrets.tolist())
BEGUN = MODEL.beginning(0)


@pytest.mark.parametrize("constraint", ["support", "delta=0.2"])
def test_what_a_session_calls_possible_is_what_sets_say(constraint):
    session = dphmm.ReleaseSession(BEGUN, POLICY, SPACE, 1, constraint=constraint, bits=dphmm.ReplayBits(1))
    for t in range(4):
        due = {MODEL.secrets[x] for x in naive_secrets.possible((BEGUN.initial.tolist(), *CHAIN[1:]), t + 1)[-1]}
        assert set(np.flatnonzero(support_of(session))) == due == set(np.flatnonzero(session.support))
        session.release(0)


def test_plans_of_the_first_steps_are_acquitted():
    found = verify_steps(BEGUN, POLICY, SPACE, 1, steps=6)
    assert [t for t, _, _ in found] == [1, 2, 3, 4, 5]
    assert not any(verdict.convicted for _, _, verdict in found)


def test_the_worst_two_histories_are_those_of_all_pairs_of_latent_paths():
    verdict = sequence_loss(BEGUN, POLICY, SPACE, 1, 3)
    setting = Setting.of(BEGUN, POLICY, SPACE, 1)
    position, tables = setting.first(), []
    for _ in range(3):
        tables.append(losses(setting.plan(position)))
        position = position.predict(BEGUN, position.prior)
    chain = (BEGUN.initial.tolist(), *CHAIN[1:])
    ways = {tuple(MODEL.secrets[x] for x in path) for path, _ in naive_secrets.paths(chain, 3)}
    worst = max(
        sum(tables[t][a[t]][b[t]] for t in range(3)) for a, b in itertools.product(ways, repeat=2)
    )  # fmt: skip
    assert verdict.worst == worst and not verdict.convicted
    assert {verdict.first, verdict.second} <= ways
    assert sum(tables[t][verdict.first[t]][verdict.second[t]] for t in range(3)) == worst


def test_adversaries_follow_latent_states():
    """The tracker has the session's beliefs; of every method beliefs are laws of secrets."""
    table = pd.DataFrame([("a", step, str(step % PLACES)) for step in range(1, 6)], columns=["user", "step", "state"])
    given = MODEL, POLICY, SPACE, 1
    released = dphmm.release_many(table, *given, bits=dphmm.ReplayBits(5))
    found = attack(released, table, *given)
    assert {one.name for one in found.measured} == set(METHODS)
    mean = {one.name: one.overall() for one in found.measured}
    assert mean["smoother"]["probability"] > mean["prior"]["probability"]
    ledger = MemoryLedger()
    session = dphmm.ReleaseSession(*given, ledger=ledger, subject="a", bits=dphmm.ReplayBits(5))
    told = []
    for step in range(1, 6):
        session.release(step % PLACES)
        told.append(session.posterior.probability[step % PLACES])
    assert mean["tracker"]["probability"] == pytest.approx(np.mean(told), rel=1e-9)


def test_leakage_of_a_ledger_is_over_latent_states():
    ledger = MemoryLedger()
    session = dphmm.ReleaseSession(MODEL, POLICY, SPACE, 1, ledger=ledger, subject="a", bits=dphmm.ReplayBits(5))
    for step in range(3):
        session.release(step)
    (found,) = subject_leakage(ledger, ["a"], MODEL, POLICY)
    assert found["policy"]["worst"] <= found["temporal"]["worst"] + 1e-9
    assert found["policy"]["worst"] > float(Fraction(1)) and len(found["temporal"]["total"]) == 3
    assert not found["couplable"]["holds"]
