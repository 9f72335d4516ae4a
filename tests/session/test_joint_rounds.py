"""Tables of one query beside sessions of another, in any order and form: each step has one set of partners.

The corrected Theorem 7.1 needs the partners that the first query of a step fixed in every later one. It would fail
where a table plans a step from its schedule alone, at a chunk's border, or after it was resumed.
"""

from __future__ import annotations

import json

import numpy as np

import dphmm
from dphmm.accounting.ledger import MemoryLedger
from dphmm.release.batch import Batch
from dphmm.states.trajectory import Trajectories
from random_seeds import seeds

QUERIES, USERS = ("A", "B"), ("u", "v")


class Played:
    """A ledger with two queries of two subjects, over a policy with lonely states."""

    def __init__(self, rng):
        self.rng, self.n, self.ledger = rng, int(rng.integers(5, 9)), MemoryLedger()
        self.model = dphmm.MarkovModel(np.full(self.n, 1 / self.n), np.full((self.n, self.n), 1 / self.n))
        edges = [sorted(rng.choice(self.n, 2, replace=False)) for _ in range(int(rng.integers(1, 3)))]
        self.policy = dphmm.policy.from_edges(edges, self.n)
        self.spaces = {q: dphmm.StateSpace(rng.integers(0, 30, (self.n, int(rng.integers(1, 3))))) for q in QUERIES}
        self.done = {(q, u): 0 for q in QUERIES for u in USERS}

    def parts(self, query):
        return self.model, self.policy, self.spaces[query]

    def choices(self, query):
        bits = dphmm.ReplayBits(int(self.rng.integers(10**6)))
        return {"query": query, "ledger": self.ledger, "bits": bits}

    def table(self, query):
        """All rows so far and some more of each subject, released together; stored ones come back."""
        for user in USERS:
            self.done[query, user] += int(self.rng.integers(0, 3))
        rows = [(user, t) for user in USERS for t in range(1, self.done[query, user] + 1)]
        if rows:
            names, steps = zip(*rows, strict=True)
            states = self.rng.integers(self.n, size=len(rows)).astype(str).astype(object)
            given = Trajectories.from_labels(list(names), state=states, step=np.array(steps))
            work = Batch(*self.parts(query), 1, **self.choices(query))
            assert len([row for chunk in work.run(given, resume=True) for row in chunk]) == len(rows)

    def session(self, query):
        """One step more of one subject."""
        user, choices = USERS[int(self.rng.integers(2))], self.choices(query)
        if self.ledger.header(user, query):
            session = dphmm.ReleaseSession.resume(choices.pop("ledger"), user, *self.parts(query), **choices)
        else:
            session = dphmm.ReleaseSession(*self.parts(query), 1, subject=user, origin="1", **choices)
        session.release(int(self.rng.integers(self.n)))
        self.done[query, user] += 1

    def pairs(self, query, user, t, name):
        (entry,) = [entry for entry in self.ledger.entries(user, query) if entry.t == t]
        return sorted(map(tuple, json.loads(self.ledger.plan(entry.plan_hash).description)[name]))


@seeds(12)
def test_the_second_query_of_a_step_keeps_the_partners_of_the_first(seed, monkeypatch):
    rng = np.random.default_rng([5, seed])
    played = Played(rng)
    for _ in range(20):
        monkeypatch.setattr("dphmm.release.batch.CHUNK", int(rng.choice([1, 2, 3, 1000])))
        step = played.table if rng.random() < 0.5 else played.session
        step(QUERIES[int(rng.integers(2))])
    both = [(user, t) for user in USERS for t in range(1, min(played.done[q, user] for q in QUERIES) + 1)]
    assert both
    for user, t in both:
        given = [played.pairs(query, user, t, "given_partners") for query in QUERIES]
        own = [played.pairs(query, user, t, "partners") for query in QUERIES]
        assert (given[1], given[0]) == (own[0], []) or (given[0], given[1]) == (own[1], [])
