"""A chain whose states are its secrets in another order: a door that takes the one for the other tells something else.

There are as many latent states as secrets, so no shape of an array gives a confusion away.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dphmm
from dphmm.accounting import MemoryLedger, couplable, policy_leakage, temporal_leakage
from dphmm.audit import attack, check_release
from dphmm.audit.leakage import subject_leakage
from dphmm.audit.sequences import sequence_loss
from dphmm.audit.verify import verify_steps
from dphmm.choose.details import protection_facts
from dphmm.reconstruction.flows import first_guess
from dphmm.session.own_places import OwnPlaces, own_jumps, public_base
from dphmm.session.setting import Setting
from dphmm.session.smoothing import AnswerHistory, Smoother
from dphmm.storage.models import model_facts, state_list

N = 7
SPACE = dphmm.StateSpace(np.random.default_rng(5).permutation(20)[:N][:, None])
POLICY = dphmm.policy.from_edges([[0, 1], [1, 2], [3, 4], [4, 5]], N)
ORDER = np.random.default_rng(6).permutation(N)
ROWS = [(user, step, str((3 * step + 5 * ord(user)) % N)) for user in "abcdef" for step in (1, 2, 3, 5, 6)]
TABLE = pd.DataFrame(ROWS, columns=["user", "step", "state"])


def models():
    """The same chain twice: named by its secrets, and in another order."""
    random = np.random.default_rng(7)
    matrix = random.random((N, N)) * (random.random((N, N)) < 0.5) + 0.2 * np.eye(N)
    matrix /= matrix.sum(axis=1, keepdims=True)
    initial = random.random(N) * (np.arange(N) != 3)
    initial /= initial.sum()
    given = {"space": SPACE, "provenance": {"method": "given", "initial": "occupancy"}}
    plain = dphmm.MarkovModel(initial, matrix, **given)
    # Latent state x is at secret ORDER[x].
    renamed = dphmm.MarkovModel(initial[ORDER], matrix[np.ix_(ORDER, ORDER)], secrets=ORDER, **given)
    return plain, renamed


def released(model, **options):
    ledger = MemoryLedger()
    given = {"bits": dphmm.ReplayBits(1), "progress": False, "ledger": ledger, **options}
    return dphmm.release_many(TABLE, model, POLICY, SPACE, 1, **given), ledger


def figures(found):
    """Numbers and texts of a table, a mapping or a list, in order."""
    if isinstance(found, pd.DataFrame):
        return [value for column in found for value in found[column].tolist()]
    if isinstance(found, dict):
        return [one for value in found.values() for one in figures(value)]
    if isinstance(found, (list, tuple, np.ndarray)):
        return [one for value in found for one in figures(value)]
    return [found]


def smoothed(model, **options):
    table, _ = released(model, **{name: value for name, value in options.items() if name != "own_places"})
    return dphmm.reconstruction.smooth(table, model, POLICY, SPACE, 1, path=True, progress=False, **options)


def attacked(model):
    found = attack(released(model)[0], TABLE, model, POLICY, SPACE, 1)
    return [one.overall() for one in found.measured]


def odds(model):
    table, _ = released(model)
    return [
        (one.prior.log_odds, one.posterior.log_odds)
        for one in dphmm.reconstruction.event_odds(table, model, POLICY, SPACE, [2], 2, 4, 1)
    ]


def people(model):
    found = dphmm.reconstruction.population(released(model)[0], model, POLICY, SPACE, 1, flows=True, progress=False)
    return found.to_pandas() if hasattr(found, "to_pandas") else str(found)


def planned(model):
    plan = dphmm.choose.plan(model, POLICY, SPACE, promise=dphmm.SequencePromise(3, steps=6), people=50)
    return plan.without


def leakage(model):
    setting = Setting.of(model, POLICY, SPACE, 1)
    position, plans = setting.first(), []
    for _ in range(3):
        plans.append(setting.plan(position))
        position = position.predict(model, position.prior)
    edges = policy_leakage(model, plans, POLICY)
    coupled = couplable(model, POLICY, 3)
    costs = [float(plan.cost) for plan in plans]
    return [np.nan_to_num(edges.total), edges.edges, coupled.hops, temporal_leakage(model, costs).total]


def verified(model):
    return [(t, plan.hash) for t, plan, _ in verify_steps(model, POLICY, SPACE, 1, 4)]


def worst_histories(model):
    # Of several that lose as much any two are told.
    verdict = sequence_loss(model, POLICY, SPACE, 1, 2)
    return [verdict.worst, verdict.charged]


def facts(model):
    found = model_facts(model)
    return [found["possible_at_start"], found["absorbing_states"], state_list(model, SPACE)]


def of_a_ledger(model):
    (found,) = subject_leakage(released(model)[1], ["a"], model, POLICY)
    return [found["temporal"]["total"], found["policy"], found["couplable"]]


def own_places(model):
    """Where each person's own jumps lead, learned from four rounds of answers."""
    table, _ = released(model)
    smoother, base = Smoother(Setting.of(model, POLICY, SPACE, 1)), public_base(model)
    people = []
    for _, rows in table.groupby("user"):
        z = SPACE.frame.to_lattice(rows[["z_0"]].to_numpy())
        history = AnswerHistory("a", np.array([1, 2, 3, 5, 6]), z, rows.plan.tolist())
        people.append((smoother.person(history).observed, OwnPlaces(0.3, 2.0, base)))
    return [model.summed(jump.into) for jump in own_jumps(model, people)]


NARROW = {"constraint": "delta=0.2"}
DOORS = {
    "answers of a table": lambda model: released(model)[0],
    "answers under delta-sets": lambda model: released(model, **NARROW)[0],
    "smoothed steps": smoothed,
    "smoothed steps under delta-sets": lambda model: smoothed(model, **NARROW),
    "smoothed steps with own places": lambda model: smoothed(model, own_places=True),
    "places of people's own": own_places,
    "attackers": attacked,
    "odds of an event": odds,
    "a population": people,
    "a plan's guess without a file": planned,
    "leakage": leakage,
    "leakage of a ledger": of_a_ledger,
    "worst histories": worst_histories,
    "plans that are verified": verified,
    "a made table": lambda model: dphmm.choose.optimize(model, dphmm.policy.complete(N), SPACE, 1).digest,
    "who begins elsewhere": lambda model: released(model, initials={"a": "2", "b": "4"})[0],
    "a first guess of flows": lambda model: first_guess(np.arange(1.0, N + 1) / 28, model, SPACE),
    "facts": facts,
    "details of a policy": lambda model: protection_facts(model, POLICY, SPACE, 1),
    "a table that is checked": lambda model: str(dphmm.evaluation.check_table(TABLE, model, POLICY, SPACE, 1)),
    "a transition policy": lambda model: dphmm.policy.transition(model).edges(),
    "weights": lambda model: model.occupancy_weights,
}


@pytest.mark.parametrize("door", DOORS)
def test_a_door_tells_the_same_of_renamed_states(door):
    one, other = (figures(DOORS[door](model)) for model in models())
    assert len(one) == len(other) > 0
    for a, b in zip(one, other, strict=True):
        if isinstance(a, (float, np.floating)):
            assert a == pytest.approx(b, rel=1e-9, abs=1e-12, nan_ok=True)
        else:
            assert a == b


@pytest.mark.parametrize("constraint", ["support", "delta=0.2"])
def test_a_release_of_renamed_states_is_acquitted(tmp_path, constraint):
    table, ledger = released(models()[1], constraint=constraint)
    assert not check_release(table, models()[1], POLICY, SPACE, 1, ledger=ledger, constraint=constraint).convicted
