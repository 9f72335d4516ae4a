"""paths.md by enumeration: all pairs of paths of small worlds, with plans that depend on earlier answers."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp

import dphmm
from dphmm import SequencePromise
from dphmm.session.options import Options
from dphmm.session.planner import Planner
from registered import chosen_mechanisms

STEPS = 3
#: Wide enough for the largest ratios, which answers next to and beyond the states have.
WINDOW = range(-4, 12)
LADDER = (Fraction(1, 2), Fraction(1), Fraction(2))


class World:
    """A policy of edges on a line of states, and a public schedule: what is planned after which answers."""

    def __init__(self, seed, *, mechanism="discrete-knorm", sets=False):
        random = np.random.default_rng(seed)
        self.n = int(random.integers(3, 5))
        answers = random.permutation(8)[: self.n].reshape(-1, 1)
        pairs = [(i, j) for i in range(self.n) for j in range(i)]
        chosen = random.random(len(pairs)) < 0.5
        self.edges = {frozenset(pair) for pair, kept in zip(pairs, chosen, strict=True) if kept}
        policy = dphmm.policy.from_edges([tuple(edge) for edge in self.edges], self.n)
        space = dphmm.StateSpace(answers)
        self.planners = [Planner(policy, space, Options.checked(epsilon, mechanism=mechanism)) for epsilon in LADDER]
        masks = [mask for mask in product([False, True], repeat=self.n) if any(mask)]
        self.sets = [np.array(mask) for mask in masks] if sets else [np.ones(self.n, dtype=bool)]
        self.seed = seed
        self.made = {}

    def plan(self, earlier):
        """The plan after these answers: of a public choice of epsilon and plan set that changes with every answer."""
        if earlier not in self.made:
            choice = np.random.default_rng([self.seed, *(z + 100 for z in earlier)])
            planner = self.planners[choice.integers(len(LADDER))]
            everything = np.ones(self.n, dtype=bool)
            self.made[earlier] = planner.plan(everything, self.sets[choice.integers(len(self.sets))])
        return self.made[earlier]

    def outcomes(self):
        """(plans, log-likelihoods (T, N)) of every outcome in the window."""
        for z in product(WINDOW, repeat=STEPS):
            plans = [self.plan(z[:t]) for t in range(STEPS)]
            yield plans, np.array([plan.log_likelihood(np.array([z[t]])) for t, plan in enumerate(plans)])

    def neighbours(self, one, other):
        return all(a == b or frozenset((a, b)) in self.edges for a, b in zip(one, other, strict=True))

    def pairs(self, neighbouring):
        paths = list(product(range(self.n), repeat=STEPS))
        found = [(a, b) for a in paths for b in paths if a < b and self.neighbours(a, b) == neighbouring]
        return np.array(found, dtype=np.int64).reshape(-1, 2, STEPS)


def worst_excess(world, neighbouring=True):
    """The largest loss of two paths minus the sum of the epsilons, over all outcomes and pairs of paths."""
    pairs = world.pairs(neighbouring)
    if not len(pairs):
        return -np.inf
    steps = np.arange(STEPS)
    worst = -np.inf
    for plans, likelihood in world.outcomes():
        first, second = likelihood[steps, pairs[:, 0]], likelihood[steps, pairs[:, 1]]
        # An answer that neither state can give (a public constant has one answer) is no outcome of these two paths.
        lost = np.abs(np.subtract(first, second, where=first != second, out=np.zeros_like(first)).sum(axis=1))
        worst = max(worst, lost.max() - float(sum(plan.promised for plan in plans)))
    return worst


@pytest.mark.parametrize("mechanism", chosen_mechanisms())
@pytest.mark.parametrize("sets", [False, True], ids=["support", "smaller plan sets"])
def test_neighbouring_paths_lose_at_most_the_sum(mechanism, sets):
    excess = [worst_excess(World(seed, mechanism=mechanism, sets=sets)) for seed in range(2)]
    assert max(excess) <= 1e-9
    assert max(excess) > -np.inf


def enforced(world, promise):
    """The world with its epsilons cut to what the promise leaves to each step, as a ledger would refuse the rest."""
    public = world.plan
    everything = np.ones(world.n, dtype=bool)

    def plan(earlier):
        found, t = public(earlier), len(earlier) + 1
        spent = [(u, Fraction(plan(earlier[: u - 1]).promised)) for u in range(1, t)]
        room = promise.room(spent, t)
        if found.promised <= room:
            return found
        fits = [p for p, epsilon in zip(world.planners, LADDER, strict=True) if epsilon <= room]
        return fits[-1].plan(everything, everything) if fits else NOT_ASKED

    world.plan = cache(plan)
    return world


class NotAsked:
    """A step at which nothing is published: the same for every state."""

    promised = Fraction(0)

    def log_likelihood(self, z):
        return np.zeros(9)


NOT_ASKED = NotAsked()

#: Promises of three steps with what may be lost, and the steps within which two paths may differ.
PROMISES = [
    (SequencePromise(2, steps=STEPS), [{0, 1, 2}]),
    (SequencePromise("1.5", window=2), [{0, 1}, {1, 2}]),
    (SequencePromise(1, window=1), [{0}, {1}, {2}]),
    (SequencePromise(2, per=2), [{0, 1}, {2}]),
    (SequencePromise("1.5", per=2, passed=1), [{0}, {1, 2}]),
]


def worst_within(world, promise, parts):
    """The largest loss of two neighbouring paths that differ within one of the parts, minus the promised total."""
    pairs = world.pairs(True)
    differ = pairs[:, 0] != pairs[:, 1]
    steps = np.arange(STEPS)
    kept = np.array([any(set(np.flatnonzero(row).tolist()) <= part for part in parts) for row in differ], dtype=bool)
    pairs = pairs[kept]
    if not len(pairs):
        return -np.inf
    worst = -np.inf
    for z in product(WINDOW, repeat=STEPS):
        plans = [world.plan(z[:t]) for t in range(STEPS)]
        likelihood = np.array([p.log_likelihood(np.array([z[t]]))[: world.n] for t, p in enumerate(plans)])
        first, second = likelihood[steps, pairs[:, 0]], likelihood[steps, pairs[:, 1]]
        lost = np.abs(np.subtract(first, second, where=first != second, out=np.zeros_like(first)).sum(axis=1))
        worst = max(worst, lost.max())
    return worst - float(promise.total)


@pytest.mark.parametrize(("promise", "parts"), PROMISES, ids=lambda value: getattr(value, "written", str)())
def test_paths_that_differ_within_a_window_or_a_block_lose_at_most_the_total(promise, parts):
    """Adaptive plans under the promise: never more, and on a line of states just as much."""
    assert worst_within(enforced(World(1), promise), promise, parts) <= 1e-9
    assert worst_within(enforced(line(), promise), promise, parts) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(("promise", "parts"), [PROMISES[1], PROMISES[3]], ids=["window", "block"])
def test_paths_that_differ_within_more_steps_lose_more(promise, parts):
    """The parts are no wider than they need be: the promise says nothing of all three steps together."""
    assert worst_within(enforced(line(), promise), promise, [set(range(STEPS))]) > 0.4


def test_a_window_that_is_one_step_short_is_caught():
    """The ledger keeps windows of two steps where three were promised: the comparison finds the loss."""
    kept, promised = SequencePromise("1.5", window=2), SequencePromise("1.5", window=3)
    assert worst_within(enforced(line(), kept), promised, [set(range(STEPS))]) > 0.4


def line():
    """Four states 0, 1, 2, 3, joined to the next."""
    world = World(0)
    world.n = 4
    world.edges = {frozenset((i, i + 1)) for i in range(3)}
    policy = dphmm.policy.from_edges([tuple(edge) for edge in world.edges], 4)
    space = dphmm.StateSpace(np.arange(4).reshape(-1, 1))
    world.planners = [Planner(policy, space, Options.checked(e, mechanism="discrete-knorm")) for e in LADDER]
    world.sets = [np.ones(4, dtype=bool)]
    return world


def test_the_sum_is_reached():
    assert worst_excess(line()) == pytest.approx(0, abs=1e-9)


def test_other_paths_lose_more():
    """Two paths that a step leaves further apart than an edge lose more: up to three times the sum on this line."""
    assert worst_excess(line(), neighbouring=False) > 2


def test_a_schedule_that_looks_at_the_state_is_caught():
    """The same comparison finds the loss of a step whose epsilon depends on the true state."""
    world = line()
    everything = np.ones(4, dtype=bool)
    wide = np.arange(-80, 80)
    laws = []
    for state, planner in ((0, world.planners[0]), (1, world.planners[2])):
        plan = planner.plan(everything, everything)
        logs = np.array([plan.log_likelihood(np.array([z]))[state] for z in wide])
        laws.append(logs - logsumexp(logs))
    assert np.abs(laws[0] - laws[1]).max() > float(max(LADDER)) + 1


def test_totals_say_which_statement_they_are():
    total = dphmm.accounting.neighbouring_paths([Fraction(1, 10)] * 3)
    assert total.value == Fraction(3, 10)
    assert "at every step" in total.statement and "not a bound for two states of one step" in total.statement


# -- days of 23, 24 and 25 hours --------------------------------------------------------------------------------------

#: Of Berlin a day with its hours, from its midnight on (hours since 1970, UTC): in spring, in summer, in autumn.
DAYS = {23: 475_511, 24: 477_718, 25: 480_550}
BERLIN = SequencePromise(2, per="1d", zone="Europe/Berlin")


def at_the_edge(hours):
    """Steps of an hour of which day they are: the first and the last of a day, and the first of the next."""
    t = (1, hours, hours + 1)
    placed = BERLIN.in_steps(3600, DAYS[hours])
    begins, ends = placed.bounds(np.array(t))
    assert begins.tolist() == [1, 1, hours + 1] and ends.tolist()[0] == hours + 1
    return placed, t


def enforced_at(world, promise, times):
    """As `enforced`, of three steps that lie at these ``times``; nothing is asked at the others."""
    public, everything = world.plan, np.ones(world.n, dtype=bool)

    def plan(earlier):
        found = public(earlier)
        spent = [(t, Fraction(plan(earlier[:place]).promised)) for place, t in enumerate(times[: len(earlier)])]
        room = promise.room(spent, times[len(earlier)])
        fits = [p for p, epsilon in zip(world.planners, LADDER, strict=True) if epsilon <= room]
        if found.promised <= room:
            return found
        return fits[-1].plan(everything, everything) if fits else NOT_ASKED

    world.plan = cache(plan)
    return world


@pytest.mark.parametrize("hours", DAYS)
def test_paths_that_differ_within_a_local_day_lose_at_most_its_total(hours):
    """Every outcome of three hours, two of them of one day: plans that depend on answers, and the ledger's refusals."""
    placed, times = at_the_edge(hours)
    for world in (World(1), World(4), line()):
        assert worst_within(enforced_at(world, placed, times), placed, [{0, 1}, {2}]) <= 1e-9
    # What may be lost is lost: by two paths that differ at both hours of the day, and by no pair of days together.
    assert worst_within(enforced_at(line(), placed, times), placed, [{0, 1}]) == pytest.approx(0, abs=1e-9)
    assert worst_within(enforced_at(line(), placed, times), placed, [{0, 1, 2}]) > 0.4


@pytest.mark.parametrize(("first", "times"), [(DAYS[25], (1, 25, 26)), (DAYS[23] - 24, (48, 49, 72))], ids=["25", "23"])
def test_days_that_are_counted_in_steps_are_caught(first, times):
    """Blocks of 24 steps part the 25th hour from its day, and after a day of 23 hours the first from the others."""
    begins, _ = BERLIN.in_steps(3600, first).bounds(np.array(times))
    assert begins[0] == begins[1] != begins[2]
    assert worst_within(enforced_at(line(), SequencePromise(2, per=24), times), BERLIN, [{0, 1}, {2}]) > 0.4


def test_a_window_of_24_hours_holds_two_askings_of_a_plan_of_once_a_day_in_spring():
    """Noon to noon is 23 hours then: blocks of days are kept, and a window as long as a day is another promise."""
    schedule = dphmm.accounting.Schedule(SequencePromise(1, per="1d", zone="Europe/Berlin"), 1, hours=["12:00"])
    placed = schedule.in_steps(3600, DAYS[23] - 24)
    t = np.arange(1, 73)
    asked = t[placed.may_ask(t)].tolist()
    assert np.diff(asked).tolist() == [23, 24]
    spent = [(step, Fraction(1)) for step in asked]
    assert placed.promise.holds(spent)
    assert not SequencePromise(1, window=24).holds(spent) and SequencePromise(1, window=23).holds(spent)
