"""schedules.md by enumeration: every outcome and every pair of neighbouring paths, planned and paced."""

from __future__ import annotations

from functools import cache
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest

import dphmm
from dphmm import SequencePromise
from dphmm.session.options import Options
from dphmm.session.planner import Planner
from proofs.test_paths import NOT_ASKED, STEPS, line, worst_within

BERLIN = SequencePromise(1, per="1d", zone="Europe/Berlin")
#: The step of 8 hours since 1970 that begins at 16:00 UTC on October 26th, 2024.
AUTUMN = 60_068
#: Promises with what two paths may differ within, and the steps that may be asked.
CASES = [
    (SequencePromise(2, steps=STEPS), [{0, 1, 2}], [1, 3]),
    (SequencePromise(1, window=2), [{0, 1}, {1, 2}], [2]),
    (SequencePromise(1, per=2), [{0, 1}, {2}], [1]),
    (SequencePromise(1, per=2, passed=1), [{0}, {1, 2}], [2]),
    # Steps of 8 hours: 18:00 of a Saturday in Berlin, and 2:00 and 10:00 of the Sunday on which clocks are put back.
    (BERLIN.in_steps(8 * 3600, AUTUMN), [{0}, {1, 2}], [1]),
    (BERLIN.in_steps(8 * 3600, AUTUMN), [{0}, {1, 2}], ["02:00"]),
]


def scheduled(promise, at, spreads=(), looks=False):
    """The line of four states, asked by a schedule; a public walk and Bayes' rule give the belief that it looks at.

    ``looks`` : a schedule that asks only where the answer before it was on one side, which it may, and, as a bug, where
    the true state is: then what is planned is returned for each state.
    """
    world = line()
    named = {"hours": at} if isinstance(at[0], str) else {"at": at}
    schedule = dphmm.accounting.Schedule(promise, 1, spreads=spreads, **named)
    everything = np.ones(4, dtype=bool)
    policy = dphmm.policy.from_edges([tuple(edge) for edge in world.edges], 4)
    space = dphmm.StateSpace(np.arange(4).reshape(-1, 1))
    planner = Planner(policy, space, Options.checked(1, mechanism="discrete-knorm"))
    walk = np.array([[0.8, 0.2, 0, 0], [0.1, 0.8, 0.1, 0], [0, 0.1, 0.8, 0.1], [0, 0, 0.2, 0.8]])

    @cache
    def before(earlier):
        """The belief before a step, and what has been spent."""
        if not earlier:
            return np.array([0.4, 0.3, 0.2, 0.1]), ()
        belief, spent = before(earlier[:-1])
        made, t = plan(earlier[:-1]), len(earlier)
        if made is not NOT_ASKED:
            belief = belief * np.exp(made.log_likelihood(np.array([earlier[-1]])))
            spent = (*spent, (t, made.promised))
        return (belief / belief.sum()) @ walk, spent

    @cache
    def plan(earlier):
        belief, spent = before(earlier)
        t, answers = len(earlier) + 1, np.arange(4)
        spread = float(np.sqrt(belief @ (answers - belief @ answers) ** 2))
        asked = bool(schedule.may_ask(np.array([t]))[0])
        if spreads:
            asked = schedule.asks(t, spread, promise.room(list(spent), t))
        return planner.plan(everything, everything) if asked else NOT_ASKED

    world.plan = plan
    return world


@pytest.mark.parametrize("spreads", [(), (0.0,), (0.6, 0.8, 0.9)], ids=["planned", "paced at once", "paced"])
@pytest.mark.parametrize(("promise", "parts", "at"), CASES, ids=str)
def test_neighbouring_paths_lose_at_most_the_total(promise, parts, at, spreads):
    """Never more than was promised; planned, and where every step with room is asked, just as much."""
    named = range(1, 3) if spreads and not isinstance(at[0], str) else at
    lost = worst_within(scheduled(promise, named, spreads), promise, parts)
    assert lost <= 1e-9
    if spreads != (0.6, 0.8, 0.9):
        assert lost == pytest.approx(0, abs=1e-9)


def test_some_steps_of_a_paced_schedule_are_asked_after_some_answers_alone():
    promise = SequencePromise(2, steps=STEPS)
    world = scheduled(promise, range(1, 4), (0.6, 0.8, 0.9))
    asked = {tuple(world.plan((z,) * t) is not NOT_ASKED for t in range(STEPS)) for z in range(-4, 12)}
    assert len(asked) > 1


def test_of_two_people_who_are_asked_at_different_times_neighbouring_files_lose_at_most_the_total():
    """All 81 files of two people, two steps and three states, as released: staggered, once in the two steps.

    Who is asked when is the same in every file. Of two files that differ in one person's rows, no file of answers is
    likelier by more than the epsilon of that person's block, which is reached.
    """
    states, policy = dphmm.StateSpace([0, 1, 2]), dphmm.policy.complete(3)
    model = dphmm.MarkovModel([0.2, 0.3, 0.5], [[0.6, 0.2, 0.2], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]], space=states)
    schedule = dphmm.accounting.Schedule(SequencePromise(1, per=2), 1, [1], seed="3")
    files, asked, plans = list(product(range(3), repeat=4)), set(), set()
    for file in files:
        table = pd.DataFrame({"user": list("aabb"), "step": [1, 2] * 2, "state": [str(state) for state in file]})
        made = dphmm.release_many(
            table, model, policy, states, schedule=schedule, bits=dphmm.ReplayBits(repr(file).encode()), progress=False
        )
        asked.add(tuple(made.plan.notna().tolist()))
        plans |= set(made.plan.dropna())
    ((one, two, three, four),) = asked
    assert one != two and three != four and one != three
    everything = np.ones(3, dtype=bool)
    plan = Planner(policy, states, Options.checked(1)).plan(everything, everything)
    assert plans == {plan.hash}
    law = np.stack([plan.log_likelihood(np.array([z])) for z in range(-8, 11)])
    rows = np.flatnonzero([one, two, three, four])
    answers = np.array(list(product(range(len(law)), repeat=2)))
    logs = {file: law[answers[:, 0], file[rows[0]]] + law[answers[:, 1], file[rows[1]]] for file in files}
    lost = max(
        np.abs(logs[file] - logs[other]).max()
        for file, other in combinations(files, 2)
        if file[:2] == other[:2] or file[2:] == other[2:]
    )
    assert lost == pytest.approx(1, abs=1e-9)


def test_a_schedule_that_looks_at_the_state_is_caught():
    """Asked in state 0 and not in state 1: that there is an answer tells the two apart for sure."""
    world = scheduled(SequencePromise(2, steps=STEPS), [1, 3])
    first = world.plan(())

    class Looks:
        promised = first.promised

        def log_likelihood(self, z):
            told = first.log_likelihood(z).copy()
            # State 1 is never asked, so no answer is ever seen of it.
            told[1] = -50.0
            return told

    public = world.plan
    world.plan = lambda earlier: Looks() if not earlier else public(earlier)
    assert worst_within(world, SequencePromise(2, steps=STEPS), [{0, 1, 2}]) > 10
