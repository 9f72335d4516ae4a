"""Mechanisms whose weights come from a float solver: a session is resumed under its own weights or not at all.

It would fail for a plan whose hash is of ε and name alone: on a machine that solves otherwise, old answers would be
followed by weights that they were not drawn from.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import dphmm
from dphmm.errors import InvalidInput
from dphmm.mechanisms import table
from running_example import ANSWERS, EDGES_3B

PARTS = (
    dphmm.MarkovModel(np.full(6, 1 / 6), np.full((6, 6), 1 / 6)),
    dphmm.policy.from_edges(EDGES_3B, 6),
    dphmm.StateSpace(ANSWERS),
)


def test_a_session_is_resumed_under_its_own_weights_or_not_at_all(tmp_path, monkeypatch):
    path, options = tmp_path / "ledger.db", {"subject": "s", "mechanism": "optimal-table", "bits": dphmm.ReplayBits(1)}
    with dphmm.open_ledger(path) as ledger:
        own = dphmm.ReleaseSession(*PARTS, 2, ledger=ledger, **options)
        kept = [own.release(state).z_lattice.tolist() for state in (3, 1)]
        record = json.loads(ledger.plan(own.release(0, t=2).plan_hash).description)
        assert record["mechanisms"][0]["weights"] == own.plan.mechanism.law.digest
    table._cache.clear()
    with dphmm.open_ledger(path) as ledger:
        resumed = dphmm.ReleaseSession.resume(ledger, "s", *PARTS)
        assert resumed.t == 3 and resumed.release(0, t=1).z_lattice.tolist() == kept[0]
        before = resumed.plan.hash
    solve = table.optimum

    def solved_elsewhere(problem, epsilon, bounded_at):
        """As well, and with another solution."""
        found = solve(problem, epsilon, bounded_at)
        return replace(found, law=0.9 * found.law + 0.1 / len(found.law))

    try:
        table._cache.clear()
        monkeypatch.setattr(table, "optimum", solved_elsewhere)
        assert dphmm.ReleaseSession(*PARTS, 2, **options).plan.hash != before
        with dphmm.open_ledger(path) as ledger:
            with pytest.raises(InvalidInput, match="made from the record"):
                dphmm.ReleaseSession.resume(ledger, "s", *PARTS)
            assert len(ledger.entries("s", "state")) == 2
    finally:
        table._cache.clear()
