"""Inference in hidden Markov models is right for every path of small models, and everywhere else consistent with it.

Claims: log-likelihoods, posteriors, expected counts and likeliest paths equal sums and maxima over all paths written
out (tests/naive_hmm.py); they do not depend on how sequences are put side by side, cut into blocks or checkpointed,
nor on the matrix being dense or sparse; where scaled floats underflow, logs give the right answer and a possible
sequence stays possible; an impossible symbol is named by sequence and position. Drawn paths have the posterior's law.
Fails with a transposed matrix, rows misaligned where a sequence ends, a block's border counted twice, or a tie broken
upwards.

Batches hold every symbol once, in its place, and are full; a pass holds no more rows than it must.

Fails with a sequence that stands in two batches, a row at another position than its symbol, a batch of twice the size,
or a checkpointed pass that keeps all its rows.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats
from threadpoolctl import threadpool_info

import naive_hmm
from dphmm._kernels.process import on_one_thread
from dphmm.errors import InvalidInput
from dphmm.markov.hidden import Parameters, expected_counts, inference, observations
from dphmm.markov.hidden.inference import BATCH_NUMBERS, batches

LENGTHS = [1, 5, 3, 5, 2, 4, 1]


def made(seed, n_states=3, n_symbols=4, zeros=0.0, lengths=LENGTHS):
    random = np.random.default_rng(seed)
    model = naive_hmm.random_model(random, n_states, n_symbols, zeros)
    symbols = [random.integers(0, n_symbols, length) for length in lengths]
    return model, symbols


def as_kind(model, kind):
    initial, transition, emission = model
    return Parameters(initial, sparse.csr_array(transition) if kind == "sparse" else transition, emission)


def dense(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else matrix


@pytest.fixture(params=["dense", "sparse"])
def kind(request):
    return request.param


@pytest.fixture(params=["whole", "blocks"])
def cut(request, monkeypatch):
    """Everything in one block, or at most two positions to a block, a few numbers to a batch."""
    if request.param == "blocks":
        monkeypatch.setattr(inference, "BLOCK_NUMBERS", 6)
        monkeypatch.setattr(inference, "BLOCK_NUMBERS", 1)
        monkeypatch.setattr(inference, "BATCH_NUMBERS", 40)
    return request.param


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("checkpoint", [False, True])
def test_all_paths(seed, kind, cut, checkpoint):
    model, symbols = made(seed, zeros=0.3 if seed % 2 else 0.0)
    parameters, observed = as_kind(model, kind), observations(symbols)
    weights = np.arange(1.0, len(symbols) + 1)
    by_hand = [naive_hmm.smooth(*model, sequence) for sequence in symbols]

    logs = [math.log(whole) for whole, _, _ in by_hand]
    assert inference.log_likelihoods(parameters, observed) == pytest.approx(logs, rel=1e-12)

    found, found_logs = inference.posteriors(parameters, observed, checkpoint=checkpoint)
    assert found == pytest.approx(np.concatenate([rows for _, rows, _ in by_hand]), abs=1e-13)
    assert found_logs == pytest.approx(logs, rel=1e-12)

    counts = expected_counts(parameters, observed, weights, checkpoint=checkpoint)
    emission = np.zeros_like(model[2])
    for weight, sequence, (_, rows, _) in zip(weights, symbols, by_hand, strict=True):
        np.add.at(emission.T, sequence, weight * rows)
    assert counts.log_likelihood == pytest.approx(weights @ logs, rel=1e-12)
    assert counts.initial == pytest.approx(weights @ [rows[0] for _, rows, _ in by_hand], rel=1e-12)
    moves = sum(weight * each for weight, (_, _, each) in zip(weights, by_hand, strict=True))
    assert dense(counts.transition) == pytest.approx(moves, abs=1e-12)
    assert counts.emission == pytest.approx(emission, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_likeliest_paths(seed, kind, cut):
    model, symbols = made(seed, zeros=0.3)
    path, logs = inference.viterbi(as_kind(model, kind), observations(symbols))
    pieces = np.split(path, np.cumsum(LENGTHS)[:-1])
    for piece, log, sequence in zip(pieces, logs, symbols, strict=True):
        best = max(probability for _, probability in naive_hmm.all_paths(*model, sequence))
        assert naive_hmm.path_probability(*model, sequence, piece) == pytest.approx(best, rel=1e-12)
        assert log == pytest.approx(math.log(best), rel=1e-12)


def test_ties_go_to_the_lowest_states(kind, cut):
    """All paths over states 1 and 2 are equally likely, and state 0 is impossible."""
    transition = np.array([[1, 0, 0], [0, 0.5, 0.5], [0, 0.5, 0.5]])
    parameters = as_kind((np.array([0, 0.5, 0.5]), transition, np.full((3, 2), 0.5)), kind)
    path, _ = inference.viterbi(parameters, observations([[0, 1, 1, 0, 1], [1]]))
    assert path.tolist() == [1] * 6


def test_one_state_and_one_symbol(kind):
    parameters = as_kind((np.ones(1), np.ones((1, 1)), np.ones((1, 1))), kind)
    observed = observations([[0, 0, 0]])
    assert inference.log_likelihoods(parameters, observed) == [0.0]
    assert expected_counts(parameters, observed).transition == np.array([[2.0]])
    assert inference.viterbi(parameters, observed)[0].tolist() == [0, 0, 0]
    assert inference.draw_paths(parameters, observed, 2, np.random.default_rng(0)).tolist() == [[0, 0, 0]] * 2


@pytest.mark.parametrize("n_states", [2, 40])
def test_many_sequences_are_as_each_alone(n_states, kind):
    """For several sequences products are made by BLAS, for one by loops: the same numbers within rounding."""
    lengths = np.random.default_rng(1).integers(1, 30, 60)
    model, symbols = made(2, n_states, 5, zeros=0.2, lengths=lengths)
    parameters = as_kind(model, kind)
    together = expected_counts(parameters, observations(symbols))
    alone = [expected_counts(parameters, observations([sequence])) for sequence in symbols]
    assert together.log_likelihood == pytest.approx(sum(each.log_likelihood for each in alone), rel=1e-13)
    for name in ("initial", "transition", "emission"):
        summed = sum(dense(getattr(each, name)) for each in alone)
        assert dense(getattr(together, name)) == pytest.approx(summed, rel=1e-11, abs=1e-13)


@pytest.mark.parametrize("checkpoint", [False, True])
def test_what_underflows_is_found_in_logs(kind, cut, checkpoint):
    """State 1 is 1e-300 likely, and alone can emit the last symbol; without it the sequence is impossible."""
    tiny = 1e-300
    transition = np.array([[1.0, 0.0], [0.5, 0.5]])
    emission = np.array([[1.0, 0.0], [1e-6, 1 - 1e-6]])
    model = np.array([1.0, tiny]), transition, emission
    symbols = [np.array([0, 0, 0, 0, 1]), np.array([0, 0])]
    parameters, observed = as_kind(model, kind), observations(symbols)
    expected = math.log(tiny) + 4 * math.log(0.5e-6) + math.log(1 - 1e-6)
    assert inference.log_likelihoods(parameters, observed)[0] == pytest.approx(expected, rel=1e-12)
    found, _ = inference.posteriors(parameters, observed, checkpoint=checkpoint)
    assert found[:5] == pytest.approx(np.tile([0.0, 1.0], (5, 1)))
    counts = expected_counts(parameters, observed, [3.0, 2.0], checkpoint=checkpoint)
    assert counts.log_likelihood == pytest.approx(3 * expected, rel=1e-12)
    assert counts.initial == pytest.approx([2.0, 3.0], abs=1e-9)
    assert dense(counts.transition) == pytest.approx(np.array([[2.0, 0.0], [0.0, 12.0]]), abs=1e-9)
    assert counts.emission == pytest.approx(np.array([[4.0, 0.0], [12.0, 3.0]]), abs=1e-9)
    paths = inference.draw_paths(parameters, observed, 3, np.random.default_rng(0))
    assert paths.tolist() == [[1] * 5 + [0] * 2] * 3


@pytest.mark.parametrize("faint", [0.0, 1e-270])
def test_rows_that_sum_to_a_little_less_than_1_count_as_they_are_in_logs_too(kind, faint):
    """Sums are checked to 1e-6 only. A symbol of 1e-295 needs the filter, and a state of 1e-300 needs its logs."""
    share = 1 - 5e-7
    emission = np.array([[1e-295, 1.0], [1e-305, 1.0]])
    parameters = as_kind((np.array([share, faint]), share * np.eye(2), emission), kind)
    found = inference.log_likelihoods(parameters, observations([[0] * 6]))
    assert found[0] == pytest.approx(6 * math.log(1e-295) + 6 * math.log(share), abs=2e-11)


def test_backward_rows_that_overflow_are_found_in_logs(kind):
    """State 1, where each symbol is 1e100 times likelier, is impossible from the start: 0 times infinity is NaN."""
    model = np.array([1.0, 0.0]), np.eye(2), np.array([[1e-100, 1 - 1e-100], [1.0, 0.0]])
    parameters, observed = as_kind(model, kind), observations([[0] * 5, [1, 1]])
    found, logs = inference.posteriors(parameters, observed)
    assert logs[0] == pytest.approx(5 * math.log(1e-100), rel=1e-12)
    assert found == pytest.approx(np.tile([1.0, 0.0], (7, 1)))
    counts = expected_counts(parameters, observed)
    assert dense(counts.transition) == pytest.approx(np.diag([5.0, 0.0]))
    assert counts.initial == pytest.approx([2.0, 0.0])


@pytest.mark.parametrize("call", ["log_likelihoods", "posteriors", "viterbi", "counts", "paths"])
def test_an_impossible_symbol_is_named_by_its_place(kind, cut, call):
    """Only state 0 emits symbol 0 and only state 1 symbol 1, and no move leads back: 1 then 0 is impossible."""
    transition = np.array([[0.5, 0.5], [0.0, 1.0]])
    parameters = as_kind((np.array([0.5, 0.5]), transition, np.array([[0.9, 0.0, 0.1], [0.0, 0.9, 0.1]])), kind)
    observed = observations([[0, 0, 1, 1, 1, 1], [0, 1, 1, 0], [2]])
    calls = {
        "log_likelihoods": lambda: inference.log_likelihoods(parameters, observed),
        "posteriors": lambda: inference.posteriors(parameters, observed),
        "viterbi": lambda: inference.viterbi(parameters, observed),
        "counts": lambda: expected_counts(parameters, observed),
        "paths": lambda: inference.draw_paths(parameters, observed, 1, np.random.default_rng(0)),
    }
    with pytest.raises(InvalidInput, match=r"^X, sequence 1, position 3 \(from 0\): got a symbol that is impossible"):
        calls[call]()


def test_a_sequence_of_weight_0_need_not_be_possible(kind):
    parameters = as_kind((np.array([1.0, 0.0]), np.eye(2), np.eye(2)), kind)
    counts = expected_counts(parameters, observations([[0, 0], [1]]), [2.0, 0.0])
    assert counts.log_likelihood == 0.0
    assert counts.initial.tolist() == [2.0, 0.0]


def test_drawn_paths_have_the_law_of_the_posterior(kind, cut):
    """Chi-squared over all 3^4 paths of 20,000 draws from a fixed seed: level 1e-4, and a law that is off by a total
    variation of 0.05 gives a non-centrality above 200, so power above 0.999."""
    model, symbols = made(5, lengths=[4])
    n_paths = 20_000
    parameters, observed = as_kind(model, kind), observations(symbols)
    drawn = inference.draw_paths(parameters, observed, n_paths, np.random.default_rng(7))
    seen = np.bincount(drawn @ 3 ** np.arange(3, -1, -1), minlength=81)
    law = np.array([probability for _, probability in naive_hmm.all_paths(*model, symbols[0])])
    law /= law.sum()
    common = law * n_paths >= 5
    pooled_seen = np.append(seen[common], seen[~common].sum())
    pooled_law = np.append(law[common], law[~common].sum())
    kept = pooled_law > 0
    assert stats.chisquare(pooled_seen[kept], pooled_law[kept] * n_paths).pvalue > 1e-4
    # The check can fail: the paths backwards are not the posterior's.
    backwards = np.bincount(drawn[:, ::-1] @ 3 ** np.arange(3, -1, -1), minlength=81)
    pooled = np.append(backwards[common], backwards[~common].sum())
    assert stats.chisquare(pooled[kept], pooled_law[kept] * n_paths).pvalue < 1e-4


RAGGED = st.lists(st.lists(st.integers(0, 9), min_size=2, max_size=6), min_size=1, max_size=9)


def drawn(n_states, length):
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
    monkeypatch.setattr(inference, "BLOCK_NUMBERS", 1000)
    parameters, observed = drawn(n_states, n_symbols)
    (batch,) = batches(observed, n_states)
    kept = inference.Pass(parameters, parameters.initial, batch, False)
    dropped = inference.Pass(parameters, parameters.initial, batch, True)
    assert kept._alpha.shape == (n_symbols, n_states)
    assert dropped._alpha.size <= inference.BLOCK_NUMBERS
    assert dropped.logs == pytest.approx(kept.logs, rel=1e-12)


def test_auto_checkpoints_from_256_mb_on(monkeypatch):
    parameters, observed = drawn(3, 100)
    (batch,) = batches(observed, 3)
    monkeypatch.setattr(inference, "BLOCK_NUMBERS", 30)
    assert inference.Pass(parameters, parameters.initial, batch, "auto")._alpha.shape == (100, 3)
    monkeypatch.setattr(inference, "KEPT_BYTES", 100 * 3 * 8 - 1)
    assert inference.Pass(parameters, parameters.initial, batch, "auto")._alpha.shape == (10, 3)


def test_learning_runs_on_one_thread_of_blas_and_gives_the_others_back():
    def threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before = threads()
    assert before and set(on_one_thread(threads)()) == {1}
    assert threads() == before
