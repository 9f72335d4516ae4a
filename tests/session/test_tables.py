"""A batch, a session and a resumed session are one computation: the same answers and the same plans.

It could fail where a table is planned otherwise than a session's own steps: after gaps, on supports that still grow, at
the seams between transactions.

The schedule of public plans: what threads that share one find.

It would fail where a step is found twice, or where a plan is looked up after another thread has dropped it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, TimeoutError

import numpy as np
import pandas as pd
import pytest

import dphmm
from dphmm._kernels.filter import predict_logs
from dphmm.accounting.ledger import MemoryLedger, SequencePromise
from dphmm.accounting.promise import Schedule
from dphmm.errors import InvalidInput
from dphmm.release.batch import Batch, ReleasedRow
from dphmm.session.answer import answer_under
from dphmm.session.plan_schedule import PlanSchedule
from dphmm.session.setting import Setting
from dphmm.states.trajectory import Trajectories
from markov.test_filtering import corridor


def world(name):
    """(model, policy, space, epsilon, choices) of one kind of difficulty."""
    if name in ("tails", "jump tails"):
        # An answer every cell at a large epsilon: after some steps the far end is below 1e-290.
        n = 400
        space = dphmm.StateSpace(np.arange(n)[:, None])
        if name == "jump tails":
            # An answer 399 cells from where nearly everybody is counts exp(-3192 / (1 + noise)) there.
            return corridor(n, 0).with_jump(1e-3), dphmm.policy.radius(space, 1), space, 8, {}
        return corridor(n, 0), dphmm.policy.radius(space, 1), space, 8, {}
    if name in ("labels", "table"):
        weights = np.random.default_rng(2).uniform(0.1, 1, (9, 9))
        model = dphmm.MarkovModel(np.full(9, 1 / 9), weights / weights.sum(axis=1, keepdims=True))
        if name == "labels":
            return model, dphmm.policy.complete(9), dphmm.StateSpace.labels(list("012345678")), 1, {}
        space = dphmm.StateSpace(np.stack(np.divmod(np.arange(9), 3), axis=1))
        return model, dphmm.policy.radius(space, 1), space, 1, {"mechanism": "optimal-table"}
    if name == "two phases":
        moves = np.kron([[0, 1], [1, 0]], np.full((5, 5), 0.2))
        space = dphmm.StateSpace(np.stack(np.divmod(np.arange(10), 5), axis=1))
        return dphmm.MarkovModel(np.eye(10)[0], moves), dphmm.policy.complete(10), space, 1, {}
    side = 7
    points = np.stack(np.divmod(np.arange(side**2), side), axis=1)
    near = np.abs(points[:, None] - points).max(axis=2) <= 1
    weights = near * np.random.default_rng(1).uniform(0.2, 1, near.shape)
    model = dphmm.MarkovModel(np.eye(side**2)[24], weights / weights.sum(axis=1, keepdims=True))
    if name == "faint":
        # All but one state so unlikely at first that the belief begins in logs.
        faint = np.full(side**2, 1e-300)
        faint[24] = 1 - faint[:24].sum() - faint[25:].sum()
        model = dphmm.MarkovModel(faint, model.transition)
    if name == "jump":
        model = model.with_jump(0.01, np.arange(1, side**2 + 1) / np.arange(1, side**2 + 1).sum())
    space = dphmm.StateSpace(points)
    policy = dphmm.policy.radius(space, 2)
    chosen = {
        "grid": {},
        "jump": {},
        "graded": {"mechanism": "discrete-knorm"},
        "categories": {},
        "at": {"start": "at"},
        "faint": {"start": "at"},
    }[name]
    if name == "categories":
        policy = dphmm.policy.categorical(np.arange(side**2) // 25)
    return model, policy, space, 1, chosen


WORLDS = (
    *("grid", "graded", "categories", "at", "faint", "tails", "two phases"),
    *("jump", "jump tails", "labels", "table"),
)


def rows_of(n_states, users=7, seed=3):
    """Users of different lengths, some of one row, with gaps short and long: in the longest a belief settles."""
    rng = np.random.default_rng(seed)
    names, steps, states = [], [], []
    for user in range(users):
        count = int(rng.choice([1, 2, 9, 30]))
        ahead = rng.choice([1, 1, 1, 1, 1, 1, 2, 5, 40, 300], count)
        names += [f"u{user}"] * count
        steps += (100 * user + np.cumsum(ahead)).tolist()
        states += rng.integers(0, n_states, count).astype(str).tolist()
    return Trajectories.from_labels(names, state=np.array(states, dtype=object), step=np.array(steps))


def batch_of(name, ledger, seed=5):
    model, policy, space, epsilon, choices = world(name)
    return Batch(model, policy, space, epsilon, ledger=ledger, bits=dphmm.ReplayBits(seed), **choices)


def told(rows):
    """Everything that is published, floats in full."""
    return [(row.user, [np.asarray(value).tolist() for value in vars(row.release).values()]) for row in rows]


def run(work, rows, **choices):
    return [row for chunk in work.run(rows, **choices) for row in chunk]


@pytest.mark.parametrize("name", WORLDS)
def test_resumed_sessions_tell_the_same(name):
    ledger = MemoryLedger()
    rows = rows_of(world(name)[2].n_states)
    work = batch_of(name, ledger)
    published = run(work, rows)
    sessions = {user: work.resumed(user) for user, _ in ledger.sessions()}
    again = [ReleasedRow(user, None, r) for user, session in sessions.items() for r in session.releases]
    assert told(published) == told(again)
    assert len(published) == len(rows)


@pytest.mark.parametrize("name", WORLDS)
def test_a_resumed_batch_tells_the_same_and_goes_on_as_a_session(name):
    ledger = MemoryLedger()
    rows = rows_of(world(name)[2].n_states)
    first = told(run(batch_of(name, ledger), rows))
    work = batch_of(name, ledger, seed=9)
    assert told(run(work, rows, resume=True)) == first
    assert (work.report.replayed, work.report.drifted) == (len(rows), 0)
    longer = rows_of(world(name)[2].n_states, users=9)
    more = run(batch_of(name, ledger, seed=11), longer, resume=True)
    assert told(more)[: len(first)] == first
    sessions = [(user, work.resumed(user)) for user, _ in ledger.sessions()]
    again = [ReleasedRow(user, None, r) for user, session in sessions for r in session.releases]
    assert told(more) == told(again)


def test_floats_agree_with_logs_and_lose_no_state():
    """The tails again, against a filter that is in logs throughout: were floats trusted too long, states would go."""
    model, policy, space, epsilon, _ = world("tails")
    session = dphmm.ReleaseSession(model, policy, space, epsilon, bits=dphmm.ReplayBits(2))
    logs = session.prior.log_probability
    matrix = model.predecessors_at(1)
    support = session.support
    for state in [*range(1, 80), *range(80, 0, -1)]:
        plan = session.plan
        z = session.release(state).z_lattice
        joint = np.where(support, logs + plan.log_likelihood(z), -np.inf)
        logs = predict_logs(matrix, joint - np.logaddexp.reduce(joint[support]))
        support = logs > -np.inf
        assert np.array_equal(session.support, support)
        assert session.prior.log_probability == pytest.approx(logs, rel=1e-11, abs=1e-10)
        assert np.isfinite(session.prior.log_probability[support]).all()


def test_words_are_read_plan_by_plan_and_row_by_row():
    name = "grid"
    model, policy, space, epsilon, _ = world(name)
    rows = rows_of(space.n_states)
    published = run(batch_of(name, MemoryLedger()), rows)
    schedule = PlanSchedule(Setting.of(model, policy, space, epsilon))
    legs = schedule.numbers(np.array([row.release.t for row in published]))
    states = np.array([int(state) for state in rows.state])
    bits, z = dphmm.ReplayBits(5), {}
    for leg in dict.fromkeys(legs.tolist()):
        own = np.flatnonzero(legs == leg)
        drawn, _ = answer_under(schedule.plan(leg), states[own], bits)
        z |= dict(zip(own.tolist(), drawn.tolist(), strict=True))
    assert len(set(legs.tolist())) == 3
    assert [row.release.z_lattice.tolist() for row in published] == [z[row] for row in range(len(published))]


@pytest.mark.parametrize("name", ["grid", "tails", "two phases", "at"])
def test_a_schedule_has_the_supports_and_plans_of_a_session(name):
    model, policy, space, epsilon, choices = world(name)
    session = dphmm.ReleaseSession(model, policy, space, epsilon, bits=dphmm.ReplayBits(1), **choices)
    start = choices.get("start", model.start)
    schedule = PlanSchedule(Setting.of(model, policy, space, epsilon, start=start))
    for t in range(1, 25):
        (number,) = schedule.numbers(np.array([t])).tolist()
        assert np.array_equal(schedule.support(t), session.support)
        assert schedule.plan(number).hash == session.plan.hash
        session.release(0)
    far = schedule.numbers(np.array([10**9, 10**9 + 1])).tolist()
    assert far == ([1, 0] if name == "two phases" else far[:1] * 2)


def test_no_belief_is_kept_whatever_the_number_of_subjects():
    """600 subjects on 5,000 states: their beliefs together would be 24 MB, and none is kept."""
    import tracemalloc

    n = 5000
    space = dphmm.StateSpace(np.arange(n)[:, None])
    model = dphmm.MarkovModel(np.full(n, 1 / n), corridor(n).transition)
    names = [f"u{k}" for k in range(600) for _ in range(2)]
    rows = Trajectories.from_labels(names, state=np.array(["7", "8"] * 600, dtype=object))
    work = Batch(model, dphmm.policy.radius(space, 1), space, 1, bits=dphmm.ReplayBits(1))
    run(work, Trajectories.from_labels(["first"], state=np.array(["7"], dtype=object)))
    tracemalloc.start()
    assert len(run(work, rows, resume=True)) == 1200
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8e6


@pytest.mark.parametrize("every", [None, 3])
def test_rows_that_come_again_have_their_own_steps_and_late_ones_none(every):
    """Of many subjects at once, with gaps between their rows, and steps that a schedule does not ask."""
    rng, ledger = np.random.default_rng(8), MemoryLedger()
    model = dphmm.MarkovModel(np.full(9, 1 / 9), np.full((9, 9), 1 / 9))
    space = dphmm.StateSpace(np.stack(np.divmod(np.arange(9), 3), axis=1))
    places = {(f"u{user}", 0) for user in range(20)} | {("u7", 2 * 10**6)}
    places |= {(f"u{rng.integers(20)}", int(2 * rng.integers(40))) for _ in range(400)}
    rows = pd.DataFrame(sorted(places), columns=["user", "step"])
    rows["state"] = rng.integers(9, size=len(rows)).astype(str)
    schedule = None if every is None else Schedule(SequencePromise(8, per=24), 1, list(range(1, 25, every)))
    choices = {"ledger": ledger, "schedule": schedule, "bits": dphmm.ReplayBits(3), "progress": False}
    public = model, dphmm.policy.complete(9), space, None if schedule else 1
    first = dphmm.release_many(rows, *public, **choices)
    before_the_last = rows.step + 1 < rows.groupby("user").step.transform("max")
    late = rows.assign(step=rows.step + 1, state="0")[before_the_last]
    kept = rows[(rows.step == 0) | (rng.random(len(rows)) < 0.7)]
    again = dphmm.release_many(pd.concat([kept, late]), *public, resume=True, **choices)
    told, shown = ({(row.user, row.step): row[3:] for row in table.itertuples()} for table in (first, again))
    # Step 1 of a person is that of the first row.
    expected = {(row.user, row.step + 1) for row in kept.itertuples()}
    assert len(expected) > 150 and all(str(shown.pop(place)) == str(told[place]) for place in expected)
    held = {(u, e.t): e.z for u, q in ledger.sessions() for e in ledger.entries(u, q) if e.z is not None}
    answers = first.dropna(subset="z_0")[["user", "step", "z_0", "z_1"]].itertuples(index=False)
    assert {(u, t): (x, y) for u, t, x, y in answers} == held
    # A late row is told where a skip ended at its step: nothing was asked there.
    assert all(np.isnan(row[:2]).all() for row in shown.values()) and bool(shown) == bool(schedule)


def test_a_gap_that_would_take_hours_is_refused_before_anything_is_drawn():
    model = dphmm.MarkovModel([0.5, 0.5], np.eye(2)[::-1])
    ledger = dphmm.accounting.MemoryLedger()
    table = pd.DataFrame({"user": ["a", "a"], "step": [0, 2**40], "state": ["0", "1"]})
    with pytest.raises(InvalidInput, match="t: got a gap of"):
        dphmm.release_many(table, model, dphmm.policy.complete(2), dphmm.StateSpace([0, 1]), 1, ledger=ledger)
    assert ledger.sessions() == []
    session = dphmm.ReleaseSession(model, dphmm.policy.complete(2), dphmm.StateSpace([0, 1]), 1)
    with pytest.raises(InvalidInput, match="t: got a gap of"):
        session.skip(2**40)


def schedule_of(name):
    model, policy, space, epsilon, _ = world(name)
    return PlanSchedule(Setting.of(model, policy, space, epsilon))


@pytest.mark.parametrize("name", ["tails", "two phases", "grid"])
def test_a_step_that_two_threads_look_for_is_found_once(name, monkeypatch):
    """The second thread asks while the first one is between finding a support and adding it."""
    steps = np.arange(1, 40)
    expected = schedule_of(name).numbers(steps)
    schedule, reach, others = schedule_of(name), type(schedule_of(name)._model).reach, []
    with ThreadPoolExecutor(1) as pool:

        def reach_slowly(model, *args):
            found = reach(model, *args)
            if not others:
                others.append(pool.submit(schedule.numbers, steps))
                with pytest.raises(TimeoutError):
                    others[0].result(timeout=0.2)
            return found

        monkeypatch.setattr(type(schedule._model), "reach", reach_slowly)
        assert schedule.numbers(steps).tolist() == expected.tolist()
        assert others[0].result().tolist() == expected.tolist()
    supports = [schedule.support(int(t)).tobytes() for t in steps]
    assert supports == [schedule_of(name).support(int(t)).tobytes() for t in steps]


def test_a_plan_that_another_thread_drops_meanwhile_is_found_all_the_same():
    schedule = schedule_of("tails")
    planner = schedule._setting.planner
    planner._most_plans = 1
    first, second = (schedule.support(t) for t in (1, 2))
    plan = planner.plan(first, first)
    kept = planner._plans

    class Dropping(type(kept)):
        """Another thread plans the second step right after the first one was found."""

        def get(self, key):
            found = kept.get(key)
            if found is plan:
                planner._plans = kept
                planner.plan(second, second)
            return found

    planner._plans = Dropping(kept)
    assert planner.plan(first, first) is plan
    assert list(planner._plans.values()) == [plan]
