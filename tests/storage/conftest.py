"""A model with a space of its own and its file, and ledgers of both kinds."""

from __future__ import annotations

import pytest

from dphmm.accounting import MemoryLedger
from dphmm.markov import MarkovModel
from dphmm.states.space import StateSpace
from dphmm.storage.ledger import open_ledger
from dphmm.storage.models import save_model


@pytest.fixture
def model():
    """One whose states have places and names."""
    space = StateSpace([[0, 0], [1, 0], [2.5, 1]], names=["home", "work", "élan"])
    return MarkovModel(
        [0.5, 0.25, 0.25],
        [[0.5, 0.5, 0], [5e-324, 1.0, 0], [0.1, 0.2, 0.7]],
        space=space,
        step=300,
        start="at",
        provenance={"method": "given", "source": "a, b\n=c()"},
    )


@pytest.fixture
def path(model, tmp_path):
    save_model(model, tmp_path / "model.npz")
    return tmp_path / "model.npz"


@pytest.fixture(params=["memory", "file"])
def ledger(request, tmp_path):
    with MemoryLedger() if request.param == "memory" else open_ledger(tmp_path / "ledger.db", timeout=5) as made:
        yield made
