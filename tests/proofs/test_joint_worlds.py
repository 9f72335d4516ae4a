"""Several queries of one subject at the same moments, in drawn worlds.

Small worlds are drawn: models of few possible moves, policies that leave states alone, two or three queries with
answers, ε and a mechanism of their own, asked in any order at each step, resumed in between, some steps left out for
some queries. Every loss is exact, from the integer facets of the body that is sampled (`exactness.law`, which shares no
code with planner and filter).

Claims, exactly: about every step, states that share an edge lose at most the sum of ε over the queries answered; a
state without one has a single partner against which it loses at most that; any two lose at most the sum of the costs
that the ledger charged; and what the ledger says was spent is the sum over all queries. It would fail for a partner
chosen by each query for itself, which `test_the_check_can_fail` shows.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dphmm
from dphmm.accounting.ledger import MemoryLedger
from dphmm.audit.history import first_support, moved
from dphmm.sensitivity.protection import METHODS
from dphmm.session import rounds
from dphmm.session.options import Options
from dphmm.session.plan import recorded_joint_edges
from dphmm.session.planner import Planner
from exactness.law import Law

STEPS = 3


def loss(plan, a, b):
    """The exact loss of two planned states; inf off the span of the body."""
    if plan.constant:
        return Fraction(0)
    worst = Law.of(plan.mechanism).worst(tuple((plan.image[a] - plan.image[b]).tolist()))
    return math.inf if worst is None else worst


class World:
    """A drawn world, its queries, and what was planned about each step."""

    def __init__(self, seed, ledger):
        self.rng = np.random.default_rng(seed)
        self.ledger = ledger
        n = self.n = int(self.rng.integers(3, 6))
        moves = self.rng.random((n, n)) < 0.6
        moves |= np.eye(n, dtype=bool)
        moves[:, :2] |= self.rng.random() < 0.5
        self.model = dphmm.MarkovModel(np.full(n, 1 / n), moves / moves.sum(axis=1, keepdims=True))
        pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
        chosen = self.rng.permutation(len(pairs))[: int(self.rng.integers(0, 3))]
        self.policy = dphmm.policy.from_edges([pairs[k] for k in chosen], n)
        self.queries = [f"q{k}" for k in range(int(self.rng.integers(2, 4)))]
        self.space, self.epsilon, self.options = {}, {}, {}
        for query in self.queries:
            plane = self.rng.random() < 0.2
            flat = self.rng.integers(0, 2 if plane else 5, (n, 2 if plane else 1))
            flat[0] += 1 + flat.max()
            self.space[query] = dphmm.StateSpace(flat)
            self.epsilon[query] = Fraction(int(self.rng.integers(5, 9)), 2)
            self.options[query] = {
                "mechanism": str(self.rng.choice(["auto", "discrete-knorm", "staircase"])),
                "protection": str(self.rng.choice(METHODS)),
            }
        self.open = {query: self._begun(query) for query in self.queries}
        self.plans = []

    def _begun(self, query):
        return dphmm.ReleaseSession(
            self.model, self.policy, self.space[query], self.epsilon[query], subject="x", query=query,
            ledger=self.ledger, bits=dphmm.ReplayBits(int(self.rng.integers(2**31))), origin="0", **self.options[query],
        )  # fmt: skip

    def _resumed(self, query):
        bits = dphmm.ReplayBits(int(self.rng.integers(2**31)))
        return dphmm.ReleaseSession.resume(
            self.ledger, "x", self.model, self.policy, self.space[query], query=query, bits=bits
        )

    def play(self):
        """All steps; of each the plans of the queries that were answered."""
        state = 0
        for t in range(1, STEPS + 1):
            state = int(self.rng.choice(np.flatnonzero(self.model.transition.toarray()[state])))
            asked = []
            for query in self.rng.permutation(self.queries).tolist():
                if self.rng.random() < 0.2:
                    self.open[query].skip(1)
                    continue
                if self.rng.random() < 0.4 and self.ledger.header("x", query) is not None:
                    self.open[query] = self._resumed(query)
                own = self.open[query]
                assert own.t == t
                plan = own.plan
                release = own.release(state)
                assert release.plan_hash == plan.hash
                asked.append((query, plan))
            self.plans.append(asked)
        return self

    def play_in_batches(self):
        """All queries of all steps, each in a batch for two people or in a session for one; plans are made again."""
        whom = {}
        for query in self.rng.permutation(self.queries).tolist():
            whom[query] = self.rng.random() < 0.6
            states = self.rng.integers(0, self.n, (2, STEPS)).astype(str)
            rows = [(user, t, states[k, t]) for k, user in enumerate("xy") for t in range(STEPS)]
            if whom[query]:
                table = pd.DataFrame(rows, columns=["user", "step", "state"])
                public = (self.model, self.policy, self.space[query], self.epsilon[query])
                choices = {"query": query, "ledger": self.ledger, "progress": False, **self.options[query]}
                dphmm.release_many(table, *public, bits=dphmm.ReplayBits(1), **choices)
            else:
                for t in range(STEPS):
                    self.open[query].release(int(states[0, t]))
        support, self.plans = first_support(self.model, "before"), []
        for t in range(1, STEPS + 1):
            self.plans.append([(query, self._recorded(query, t, support)) for query in self.queries])
            support = moved(self.model, support)
        return self

    def _recorded(self, query, t, support):
        """The plan of an answer in the ledger, made again from public data and its record."""
        (entry,) = [entry for entry in self.ledger.entries("x", query) if entry.t == t]
        space = self.space[query]
        options = Options.checked(self.epsilon[query], **self.options[query])
        partners = recorded_joint_edges(self.ledger.plan(entry.plan_hash))
        plan = Planner(self.policy, space, options).plan(support, support, partners)
        assert plan.hash == entry.plan_hash
        return plan

    def broken(self):
        """What does not hold, in words."""
        found = []
        for t, asked in enumerate(self.plans, start=1):
            if not asked:
                continue
            plans = [plan for _, plan in asked]
            possible = np.flatnonzero(plans[0].constraint.support).tolist()
            assert all(np.flatnonzero(plan.constraint.support).tolist() == possible for plan in plans)
            promised = sum((plan.promised for plan in plans), Fraction(0))
            cost = sum((plan.cost for plan in plans), Fraction(0))
            edges = {tuple(edge) for edge in self.policy.edges().tolist()}
            for a in possible:
                lost = {b: sum(loss(plan, a, b) for plan in plans) for b in possible if b != a}
                near = [b for b in lost if (min(a, b), max(a, b)) in edges]
                found += [f"step {t}: edge {a} {b}" for b in near if lost[b] > promised]
                if not near and lost and min(lost.values()) > promised:
                    found.append(f"step {t}: no partner of {a}")
                found += [f"step {t}: cost of {a} {b}" for b in lost if lost[b] > cost]
        spent = self.ledger.spent("x")
        every = [plan for asked in self.plans for _, plan in asked]
        if spent.epsilon != sum((plan.promised for plan in every), Fraction(0)):
            found.append("epsilon")
        if spent.cost != sum((Fraction(math.ceil(plan.cost * 10**9), 10**9) for plan in every), Fraction(0)):
            found.append("cost")
        return found


def worlds(seeds, folder=None):
    for seed in seeds:
        if folder is None:
            yield World(seed, MemoryLedger()).play()
        else:
            with dphmm.open_ledger(folder / f"{seed}.db") as ledger:
                yield World(seed, ledger).play()


def test_joint_promises_and_accounts_hold():
    told = alone = 0
    for world in worlds(range(30)):
        assert world.broken() == []
        told += sum(len(asked) > 1 for asked in world.plans)
        alone += sum(len(plan.joins) > 0 for asked in world.plans for _, plan in asked)
    # The worlds are about something: steps of several queries, and states that had to be joined.
    assert told >= 60 and alone >= 40


def test_they_hold_in_a_file_too(tmp_path):
    assert [world.broken() for world in worlds(range(40, 46), tmp_path)] == [[]] * 6


def test_they_hold_for_batches_beside_sessions():
    played = [World(seed, MemoryLedger()).play_in_batches() for seed in range(60, 80)]
    assert [world.broken() for world in played] == [[]] * 20
    joined = [len(plan.joins) > 0 for world in played for asked in world.plans for _, plan in asked]
    assert sum(joined) >= 20


@pytest.mark.long
def test_joint_promises_hold_in_many_worlds():
    assert [world.broken() for world in worlds(range(1000, 1400))] == [[]] * 400


def test_the_check_can_fail(monkeypatch):
    """Queries that do not read each other's partners hide some state behind two."""
    none = np.zeros((0, 2), dtype=np.int64)
    monkeypatch.setattr(rounds, "all_partners", lambda others: none)
    found = [word for world in worlds(range(30)) for word in world.broken()]
    assert any("no partner" in word for word in found)
