"""Releases under a model with slots: each person's moves have the matrices of that person's own hours.

Beliefs, plan sets and smoothed steps are those of all paths, written out with the matrix of the clock on the wall. It
would fail where a slot was a step off or that of another person, where chunks, a resume or a cut skip changed a bit,
and where somebody without a clock was taken to begin at midnight.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dphmm
import naive_secrets
import naive_slots
from dphmm.accounting.ledger import MemoryLedger
from dphmm.audit import check_release
from dphmm.errors import InvalidInput
from dphmm.release.batch import Batch
from dphmm.session import stepwise
from dphmm.session.setting import Setting
from dphmm.session.stepwise import walk
from dphmm.statement.files import write_statement
from dphmm.states.trajectory import Trajectories
from dphmm.storage.released import FileSums, released_table
from dphmm.storage.tables import write_table
from statement.told import statement_of

STEP, ZONE = 1800, "Europe/Berlin"
BEGINS = (0, 2 * 3600, 3 * 3600 + 1800)
#: Before clocks were put back in October 2024 and put forward in March.
BACK, FORWARD = 480_553 * 2 - 3, 475_513 * 2 - 3
SPACE = dphmm.StateSpace(np.stack(np.divmod(np.arange(6), 3), axis=1))
POLICY = dphmm.policy.radius(SPACE, "1")
STEPS = 4


def model_of(seed=0, secrets=None, **facts):
    """Sparse moves, the same in each of three slots, of six states or of eight latent ones."""
    rng = np.random.default_rng(seed)
    n = 6 if secrets is None else len(secrets)
    moves = rng.random((n, n)) < 0.4
    moves[np.arange(n), rng.integers(n, size=n)] = True
    weights = moves * rng.random((3, n, n)) ** 3 + 1e-9 * moves
    matrices = list(weights / weights.sum(axis=2, keepdims=True))
    initial = rng.dirichlet(np.ones(n))
    slots = dphmm.markov.Slots(period="1d", begins=("0h", "2h", "210min"), zone=ZONE)
    return dphmm.MarkovModel(initial, matrices, slots=slots, step=STEP, secrets=secrets, **facts)


def chain_of(model):
    secrets = list(range(model.n_states)) if model.secrets is None else model.secrets.tolist()
    return model.initial.tolist(), [matrix.toarray().tolist() for matrix in model.matrices], secrets


def slots_from(first, steps=STEPS):
    """The slots of the moves to steps 1, 2, ... of somebody whose step 1 has this number."""
    return [naive_slots.slot_by_clock(first - 1 + k, STEP, ZONE, BEGINS) for k in range(steps)]


@pytest.mark.parametrize("secrets", [None, [0, 1, 2, 3, 4, 5, 0, 3]])
@pytest.mark.parametrize("first", [BACK, BACK + 4, FORWARD + 2, FORWARD + 3])
@pytest.mark.parametrize("constraint", ["support", "delta=0.3"])
def test_beliefs_plan_sets_and_smoothed_steps_are_those_of_all_paths(constraint, first, secrets):
    model = model_of(first, secrets)
    chain, slots = chain_of(model), slots_from(first)
    assert len(set(slots)) > 1
    session = dphmm.ReleaseSession(
        model, POLICY, SPACE, 2, constraint=constraint, origin=str(first), bits=dphmm.ReplayBits(first)
    )
    likelihoods, rows, rng = [], [], np.random.default_rng(first)
    for t in range(STEPS):
        mass = naive_slots.masses(chain, slots, t, STEPS, likelihoods)
        assert np.allclose(session.prior.probability, mass, rtol=0, atol=1e-12)
        plan = session.plan
        possible = {s for s, p in enumerate(mass) if p > 0}
        assert set(np.flatnonzero(plan.plan_set)) == (
            possible if constraint == "support" else naive_secrets.fewest(mass, 0.3)
        )
        if t == 2:
            session.skip()
            likelihoods.append(None)
            continue
        release = session.release(int(rng.integers(6)))
        logs = plan.log_likelihood(release.z)
        likelihoods.append(np.exp(logs - logs[plan.constraint.support].max()).tolist())
        told = naive_slots.masses(chain, slots, t, STEPS, likelihoods)
        assert np.allclose(session.posterior.probability, told, rtol=0, atol=1e-12)
        moment = pd.Timestamp((first + t) * STEP, unit="s", tz="UTC")
        rows.append(("a", moment, t + 1, *release.z.astype(float).tolist(), 2.0, release.plan_hash))
    table = pd.DataFrame(rows, columns=["user", "t", "step", "z_0", "z_1", "epsilon", "plan"])
    smoothed = dphmm.reconstruction.smooth(
        table, model, POLICY, SPACE, 2, constraint=constraint, marginals=True, path=True
    )
    for row, t in enumerate((0, 1, 3)):
        due = naive_slots.masses(chain, slots, t, STEPS, likelihoods)
        assert np.allclose(smoothed.marginals[row], due, rtol=0, atol=1e-10)
    best = max(
        chance * np.prod([one[chain[2][x]] for x, one in zip(path, likelihoods, strict=True) if one is not None])
        for path, chance in naive_slots.paths(chain, slots, STEPS)
    )
    likely = [
        [chain[2][path[t]] for t in (0, 1, 3)]
        for path, chance in naive_slots.paths(chain, slots, STEPS)
        if chance * np.prod([o[chain[2][x]] for x, o in zip(path, likelihoods, strict=True) if o is not None])
        >= best * (1 - 1e-9)
    ]
    assert smoothed.path.astype(int).tolist() in likely
    # One step later in the day the beliefs are others: the check can fail.
    moved = naive_slots.masses(chain, slots_from(first + 1), 3, STEPS, likelihoods)
    assert not np.allclose(naive_slots.masses(chain, slots, 3, STEPS, likelihoods), moved, rtol=0, atol=1e-10)


def crowd(seed=3, people=5, steps=9):
    """People who begin at hours of their own, with gaps, around the hour that is shown twice."""
    rng = np.random.default_rng(seed)
    found = []
    for user in range(people):
        numbers = BACK + 3 * user + np.cumsum(rng.choice([1, 1, 4], steps))
        found += [(f"u{user}", number, str(int(rng.integers(6)))) for number in numbers.tolist()]
    users, numbers, states = zip(*found, strict=True)
    moments = np.array(numbers) * STEP * 10**6 + 10**6
    return Trajectories.from_labels(list(users), state=np.array(states, dtype=object), time=moments)


def batch(model, ledger=None, **choices):
    given = {"constraint": "delta=0.3", "bits": dphmm.ReplayBits(1), **choices}
    return Batch(model, POLICY, SPACE, 2, ledger=ledger, **given)


def told(work, rows, **choices):
    found = [row for chunk in work.run(rows, **choices) for row in chunk]
    return {(row.user, row.release.t): (row.release.plan_hash, row.release.z.tolist()) for row in found}


@pytest.mark.parametrize("constraint", ["support", "delta=0.3"])
def test_chunks_of_1_7_and_1000_rows_make_the_plans_of_sessions_one_by_one(constraint, monkeypatch):
    """Rows together have the matrices of different slots; each plan is that of its person alone, to the bit."""
    model, rows, found = model_of(1), crowd(people=25), []
    for chunk in (1, 7, 1000):
        monkeypatch.setattr("dphmm.release.batch.CHUNK", chunk)
        work = batch(model, constraint=constraint)
        found.append(told(work, rows))
    assert [set(each) for each in found] == [set(found[0])] * 3
    # Words are drawn in another order with other chunks, and plans follow answers: each person's are walked alone.
    for user in {user for user, _ in found[-1]}:
        origin = work.ledger.header(user, "state").options["origin"]
        setting = Setting.of(model, POLICY, SPACE, 2, constraint=constraint)
        position, plans = setting.first(origin), []
        for entry in work.ledger.entries(user, "state"):
            (step,) = walk(setting, position, [entry], work.ledger.plan)
            if step.plan is not None:
                plan = setting.plan(position)
                assert plan.hash == entry.plan_hash == found[-1][user, entry.t][0]
                plans.append(plan.hash)
            position = step.after
        assert len(plans) == sum(user == each for each, _ in found[-1])


@pytest.mark.parametrize("cut", [1, 2, 5, 8])
@pytest.mark.parametrize("every", [2, 64])
def test_cut_anywhere_and_resumed_it_goes_on_to_the_bit(cut, every, monkeypatch):
    """Once in one session and once resumed after a snapshot or none: the same priors, plans and answers."""
    monkeypatch.setattr(stepwise, "_SNAPSHOT_EVERY", every)
    model, states = model_of(2), np.random.default_rng(cut).integers(6, size=10).tolist()
    runs = []
    for cuts in ((), (cut,)):
        ledger, bits = MemoryLedger(), dphmm.ReplayBits(7)
        given = {"constraint": "delta=0.3", "ledger": ledger, "subject": "a", "origin": str(BACK), "bits": bits}
        session, seen = dphmm.ReleaseSession(model, POLICY, SPACE, 2, **given), []
        for at, state in enumerate(states):
            if at in cuts:
                session = dphmm.ReleaseSession.resume(ledger, "a", model, POLICY, SPACE, bits=bits)
            if at == 4:
                session.skip(3)
            seen.append((session.prior.log_probability.tobytes(), session.plan.hash))
            seen.append(session.release(state).z.tolist())
        runs.append(seen)
    assert runs[0] == runs[1]


def test_two_people_with_the_same_answers_and_other_hours_have_other_plans():
    """Their steps have the same numbers in their sessions, and others on the wall."""
    model, hashes = model_of(1), []
    for first in (BACK, BACK + 20):
        bits = dphmm.ReplayBits(5)
        given = {"constraint": "delta=0.3", "origin": str(first), "bits": bits}
        session = dphmm.ReleaseSession(model, POLICY, SPACE, "0.5", **given)
        hashes.append([session.plan.hash, *(session.release(0).plan_hash for _ in range(8))])
    assert hashes[0] != hashes[1]


@pytest.mark.parametrize("constraint", ["support", "delta=0.3"])
def test_a_release_is_checked_by_the_clock_of_its_times(constraint, tmp_path):
    """check-release makes the plans again from the file; an hour later in the day they are others."""
    model, ledger = model_of(1), MemoryLedger()
    work = batch(model, ledger, constraint=constraint)
    rows = [row for chunk in work.run(crowd()) for row in chunk]
    told = {"model": model, "policy": POLICY, "space": SPACE, "options": work.setting.options, "answer": work.answer}
    path, moved = tmp_path / "released.parquet", tmp_path / "moved.parquet"
    table = released_table(rows, SPACE)
    column = table.schema.get_field_index("t")
    later = pa.array(table["t"].to_pandas() + pd.Timedelta(2 * STEP, "s"), table.schema.field("t").type)
    for file, content in ((path, table), (moved, table.set_column(column, table.schema.field("t"), later))):
        write_table(file, content)
        write_statement(file, statement_of(FileSums(rows), **told, model_people="others"))
    assert list(check_release(path, model, POLICY, SPACE, 2).findings) == []
    assert list(check_release(path, model, POLICY, SPACE, 2, ledger=ledger).findings) == []
    other = list(check_release(moved, model, POLICY, SPACE, 2).findings)
    assert any("plan" in finding for finding in other) == (constraint != "support")


def test_who_has_no_clock_is_refused_before_anything_is_drawn():
    bits = dphmm.ReplayBits(1)
    for origin in ("", "1@times"):
        with pytest.raises(InvalidInput, match="slots of the model go by the clock"):
            session = dphmm.ReleaseSession(
                model_of(), POLICY, SPACE, 1, constraint="delta=0.3", bits=bits, origin=origin
            )
            session.release(0, moment=5 if origin else None)


def test_a_support_moves_alike_in_every_slot():
    """Plans on the support are those of one matrix with the same moves: slots change beliefs alone."""
    model = model_of(4)
    one = dphmm.MarkovModel(model.initial, model.matrices[0], step=STEP)
    many = dphmm.ReleaseSession(model, POLICY, SPACE, 1, origin=str(BACK), bits=dphmm.ReplayBits(2))
    alone = dphmm.ReleaseSession(one, POLICY, SPACE, 1, origin=str(BACK), bits=dphmm.ReplayBits(2))
    for state in (0, 1, 2, 3):
        assert many.plan.hash == alone.plan.hash
        assert many.release(state).z.tolist() == alone.release(state).z.tolist()
