"""Batches hold every symbol once, in its place, and are full; a pass holds no more rows than it must.

Fails with a sequence that stands in two batches, a row at another position than its symbol, a batch of twice the size,
or a checkpointed pass that keeps all its rows.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

import naive_hmm
from dphmm._kernels.process import on_one_thread
from dphmm.markov.hidden import Parameters, observations, passes
from dphmm.markov.hidden.passes import BATCH_NUMBERS, batches

RAGGED = st.lists(st.lists(st.integers(0, 9), min_size=2, max_size=6), min_size=1, max_size=9)


def made(n_states, length):
    """Parameters, and one sequence of so many symbols."""
    random = np.random.default_rng(3)
    return Parameters(*naive_hmm.random_model(random, n_states, 4)), observations([random.integers(0, 4, length)])


@given(RAGGED, st.integers(1, 30))
def test_batches_hold_every_symbol_once_in_its_place(sequences, most):
    observed = observations(sequences)
    seen = np.zeros(len(observed.symbols), dtype=int)
    for batch in batches(observed, max(2**20 // most, 1)):
        seen[batch.rows] += 1
        assert np.array_equal(batch.symbols, observed.symbols[batch.rows])
        assert (np.diff(batch.widths) <= 0).all()
        begins = np.cumsum(batch.widths) - batch.widths
        for place, k in enumerate(batch.which):
            rows = [begins[t] + place for t in range(len(sequences[k]))]
            assert batch.symbols[rows].tolist() == sequences[k]
        assert [(b.first, b.start) for b in batch.blocks(2**17)] == list(enumerate(begins))
    assert (seen == 1).all()


@given(RAGGED, st.integers(2**14, 2**20))
def test_batches_are_full_and_not_fuller(sequences, n_states):
    """At most BATCH_NUMBERS forward numbers, or one sequence; and the next sequence would not have gone in."""
    observed = observations(sequences)
    most = BATCH_NUMBERS // n_states
    found = list(batches(observed, n_states))
    for batch, after in pairwise(found):
        assert len(batch.rows) + observed.lengths[after.which[0]] > most
    assert all(len(batch.rows) <= most or len(batch.which) == 1 for batch in found)


def test_a_checkpointed_pass_keeps_one_block_of_rows(monkeypatch):
    n_symbols, n_states = 4_000, 4
    monkeypatch.setattr(passes, "BLOCK_NUMBERS", 1000)
    parameters, observed = made(n_states, n_symbols)
    (batch,) = batches(observed, n_states)
    kept = passes.Pass(parameters, parameters.initial, batch, False)
    dropped = passes.Pass(parameters, parameters.initial, batch, True)
    assert kept._alpha.shape == (n_symbols, n_states)
    assert dropped._alpha.size <= passes.BLOCK_NUMBERS
    assert dropped.logs == pytest.approx(kept.logs, rel=1e-12)


def test_auto_checkpoints_from_256_mb_on(monkeypatch):
    parameters, observed = made(3, 100)
    (batch,) = batches(observed, 3)
    monkeypatch.setattr(passes, "BLOCK_NUMBERS", 30)
    assert passes.Pass(parameters, parameters.initial, batch, "auto")._alpha.shape == (100, 3)
    monkeypatch.setattr(passes, "KEPT_BYTES", 100 * 3 * 8 - 1)
    assert passes.Pass(parameters, parameters.initial, batch, "auto")._alpha.shape == (10, 3)


def test_learning_runs_on_one_thread_of_blas_and_gives_the_others_back():
    def threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before = threads()
    assert before and set(on_one_thread(threads)()) == {1}
    assert threads() == before
