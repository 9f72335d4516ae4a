"""docs/proofs/joint-queries.md for batches: the second query of many subjects keeps the partners that the first fixed.

The instance is the counter-example of errata 4. Plans that batches share between subjects would break the statement if
they did not know of a subject's other query: then a hides with k in the first query and with l in the second.
"""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import dphmm

pytestmark = pytest.mark.replayed_words

FIRST = np.array([[0], [1], [10], [11], [2]])  # a, k, l, m, n
SECOND = np.array([[0], [10], [1], [2], [11]])
EDGES = [(1, 4), (2, 3)]


def released(ledger, answers, query, users, edges=EDGES, **choices):
    model = dphmm.MarkovModel(np.full(5, 0.2), np.full((5, 5), 0.2))
    rows = [(user, t, "0") for user in users for t in range(3)]
    table = pd.DataFrame(rows, columns=["user", "step", "state"])
    space, policy = dphmm.StateSpace(answers), dphmm.policy.from_edges(edges, 5)
    choices = {"ledger": ledger, "query": query, "mechanism": "discrete-knorm", "protection": "nearest", **choices}
    dphmm.release_many(table, model, policy, space, 1, **choices)


def described(ledger, user, query):
    return [json.loads(ledger.plan(entry.plan_hash).description) for entry in ledger.entries(user, query)]


def test_every_subject_keeps_the_partners_of_its_other_query():
    ledger = dphmm.accounting.MemoryLedger()
    released(ledger, FIRST, "first", ["anna", "ben"])
    released(ledger, SECOND, "second", ["anna", "ben", "cleo"])
    for user in ("anna", "ben"):
        for first, second in zip(described(ledger, user, "first"), described(ledger, user, "second"), strict=True):
            assert first["partners"] == second["given_partners"] == [[0, 1]]
    # cleo has no other query, and shares plans with nobody who does.
    assert all(plan["given_partners"] == [] for plan in described(ledger, "cleo", "second"))


def test_the_bodies_of_both_queries_cover_the_partner():
    ledger = dphmm.accounting.MemoryLedger()
    released(ledger, FIRST, "first", ["anna"])
    released(ledger, SECOND, "second", ["anna"])
    costs = {query: ledger.entries("anna", query)[0].cost for query in ("first", "second")}
    # The second body reaches from a to k, 10 steps away, so its cost is 11/10; alone it would be 11.
    assert costs["first"] == 11 and float(costs["second"]) == pytest.approx(1.1)


def test_a_second_query_that_one_partner_cannot_serve_is_refused():
    ledger = dphmm.accounting.MemoryLedger()
    released(ledger, FIRST, "first", ["anna"])
    for choices in ({"constraint": "delta=0.1"}, {"edges": [(0, 1)]}):
        with pytest.raises(dphmm.errors.InvalidInput, match="query"):
            released(ledger, SECOND, "second", ["anna"], **choices)
    assert ledger.entries("anna", "second") == []


def test_a_query_that_begins_while_a_batch_runs_is_noticed(monkeypatch):
    """Another process may release about the same steps between two transactions of a batch."""
    import dphmm.release.batch

    monkeypatch.setattr(dphmm.release.batch, "CHUNK", 1)
    ledger = dphmm.accounting.MemoryLedger()
    done = []

    def meanwhile(count, total):
        if not done:
            done.append(count)
            released(ledger, FIRST, "first", ["anna"], progress=False)

    released(ledger, SECOND, "second", ["anna"], progress=meanwhile)
    first, second = described(ledger, "anna", "first"), described(ledger, "anna", "second")
    # Step 1 was the second query's, so its partner holds there; the others are the first query's.
    assert first[0]["given_partners"] == second[0]["partners"] != []
    assert [plan["given_partners"] for plan in second[1:]] == [plan["partners"] for plan in first[1:]] == [[[0, 1]]] * 2
