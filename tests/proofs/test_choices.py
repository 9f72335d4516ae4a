"""choices.md by enumeration: every outcome, with epsilon, policy and partners chosen anew after every answer."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest

import dphmm
from dphmm.accounting.ledger import MemoryLedger
from dphmm.session.setting import Setting
from proofs.test_joint_partners import everywhere, joint
from registered import chosen_mechanisms

STEPS = 3
#: Wide enough for the largest ratios, which answers next to and beyond the states have.
WINDOW = range(-4, 12)
EPSILONS = (None, Fraction(1, 2), Fraction(2))


def always_the_last(state, others):
    """A partner that is neither the nearest nor the first."""
    return int(others[-1])


class World:
    """Four or five states on a line, and public choices: another one after every sequence of answers.

    The choices look at answers alone. ``sets`` : plan sets smaller than the support, chosen as freely.
    """

    def __init__(self, seed, mechanism="discrete-knorm", sets=False):
        random = np.random.default_rng(seed)
        self.n, self.seed, self.sets = int(random.integers(4, 6)), seed, sets
        answers = random.permutation(8)[: self.n]
        self.space = dphmm.StateSpace(answers.reshape(-1, 1))
        pairs = [pair for pair in product(range(self.n), repeat=2) if pair[0] < pair[1]]
        drawn = [[pair for pair in pairs if random.random() < 0.3] for _ in range(3)]
        # The session's own has the narrowest body there is, and another the widest.
        drawn[0] = [min(pairs, key=lambda pair: abs(answers[pair[0]] - answers[pair[1]]))]
        drawn[1] = [max(pairs, key=lambda pair: abs(answers[pair[0]] - answers[pair[1]]))]
        self.policies = [dphmm.policy.from_edges(edges, self.n) for edges in drawn]
        varies = ("epsilon", "policy", "partners", "protection")
        choices = {"mechanism": mechanism, "varies": varies}
        self.setting = Setting.of(everywhere(self.n), self.policies[0], self.space, 1, **choices)
        self.made = cache(self._made)

    def _made(self, earlier):
        """The policy of a step, and its plan."""
        random = np.random.default_rng([self.seed, *(z + 100 for z in earlier)])
        policy, epsilon = self.policies[random.integers(3)], EPSILONS[random.integers(3)]
        everything, chosen = np.ones(self.n, dtype=bool), np.ones(self.n, dtype=bool)
        if self.sets:
            chosen[random.integers(self.n)] = False
        alone, partners = np.flatnonzero(chosen).tolist(), None
        if random.random() < 0.5:
            partners = {alone[0]: alone[-1], alone[1]: alone[0]}
        protection = always_the_last if random.random() < 0.5 else None
        choice = self.setting.choice(epsilon, policy, partners, protection)
        return policy, self.setting.under(choice).planner.plan(everything, chosen, choice=choice)

    def neighbours(self, policy, plan):
        """Which two states (N, N) are neighbours at a step: equal, joined by its policy, or partners of its plan."""
        found = np.eye(self.n, dtype=bool)
        for a, b in [*policy.edges().tolist(), *plan.partners.tolist()]:
            found[a, b] = found[b, a] = True
        return found


def worst_excess(world, step_policy=None, earlier=()):
    """The largest loss of two neighbouring paths minus the sum of the epsilons, over all outcomes after some answers.

    A path and its neighbour are chosen step by step, so the largest sum is the sum of the largest. ``step_policy``: the
    policy whose edges count in place of the step's own.
    """
    if len(earlier) == STEPS:
        return 0.0
    policy, plan = world.made(earlier)
    neighbours, worst = world.neighbours(step_policy or policy, plan), -np.inf
    for z in WINDOW:
        told = plan.log_likelihood(np.array([z]))
        # An answer that neither of two states can give is no outcome of theirs.
        differ = neighbours & (told[:, None] != told)
        lost = float(np.subtract(told[:, None], told, where=differ, out=np.zeros(differ.shape)).max())
        worst = max(worst, lost - float(plan.promised) + worst_excess(world, step_policy, (*earlier, z)))
    return worst


@pytest.mark.parametrize("mechanism", chosen_mechanisms())
@pytest.mark.parametrize("sets", [False, True], ids=["support", "smaller plan sets"])
def test_neighbours_under_the_policy_of_every_step_lose_at_most_the_sum(mechanism, sets):
    excess = [worst_excess(World(seed, mechanism, sets)) for seed in range(2)]
    assert max(excess) <= 1e-9
    assert max(excess) > -1


def test_neighbours_under_another_policy_lose_more():
    """The promise is that of the step's own policy: with the edges of one graph for all steps it is broken."""
    worlds = [World(seed) for seed in range(2)]
    assert max(worst_excess(world, dphmm.policy.complete(world.n)) for world in worlds) > 0.5


def test_choices_do_vary():
    world = World(0)
    made = [world.made((z,)) for z in WINDOW]
    assert len({policy.digest for policy, _ in made}) > 1 and len({plan.epsilon for _, plan in made}) > 1


ANSWERS = ([[0], [1], [3], [6], [7]], [[5], [0], [2], [9], [4]])


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("partner", [2, 3, 4])
def test_two_queries_hide_a_state_with_the_partner_that_somebody_named(first, partner):
    """State 0 has no edge. Whichever query is released first, both together lose at most the sum against its partner.

    Losses are those of every difference in a window, in fractions.
    """
    policy, ledger = dphmm.policy.from_edges([(1, 2), (3, 4)], 5), MemoryLedger()
    sessions = [
        dphmm.ReleaseSession(
            *(everywhere(5), policy, dphmm.StateSpace(answers), epsilon),
            varies=("epsilon", "partners"),
            mechanism="discrete-knorm",
            subject="x",
            query=f"f{number}",
            ledger=ledger,
            bits=dphmm.ReplayBits(number),
        )
        for number, (answers, epsilon) in enumerate(zip(ANSWERS, (1, Fraction(1, 2)), strict=True))
    ]
    sessions[first].release(1, epsilon=2, partners={0: partner})
    second = sessions[1 - first].release(1)
    records = [ledger.plan(entry.plan_hash) for n in range(2) for entry in ledger.entries("x", f"f{n}")]
    everything = np.ones(5, dtype=bool)
    plans = [one.setting.made_again(everything, record) for one, record in zip(sessions, records, strict=True)]
    assert [plan.hash for plan in plans] == [record.hash for record in records]
    total = 2 + second.epsilon
    for a, b in [(0, partner), (1, 2), (3, 4)]:
        lost = joint(plans, a, b)
        assert lost is not None and lost <= total
    with pytest.raises(dphmm.errors.InvalidInput, match="partners: got state 1 for state 0; expected state"):
        other = dphmm.ReleaseSession(
            *(everywhere(5), policy, dphmm.StateSpace(ANSWERS[0]), 1),
            varies="partners",
            subject="x",
            query="third",
            ledger=ledger,
            bits=dphmm.ReplayBits(3),
        )
        other.release(1, partners={0: 1})
    assert ledger.entries("x", "third") == []
