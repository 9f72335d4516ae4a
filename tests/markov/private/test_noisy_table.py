"""Rates of a noisy table: a function of it, of the noise's scale and of nothing else; nearer than clipping.

What could go wrong: a number of the data beside the table; a state whose number matters; a beginning that counts twice;
several tables that are taken for one; a prior that does not give way to many data, or holds on to noise.
"""

from __future__ import annotations

import numpy as np
import pytest

from dphmm.markov.private import planned
from dphmm.markov.private.chain import fit_chain
from dphmm.markov.private.noisy_table import at_most, rates_of
from dphmm.markov.private.release import NoisyTable, nearest_counts
from dphmm.markov.slots import Slots
from dphmm.samplers.body import LaplaceSampler
from dphmm.samplers.entropy import ReplayBits

N = 5
ROWS, COLUMNS = np.repeat(np.arange(N), N), np.tile(np.arange(N), N)


def noisy(counts, scale, seed):
    noise = LaplaceSampler(scale).draw(counts.size, ReplayBits(seed))
    return (counts.ravel() + noise).astype(float)


def sticky(seed, moves):
    """Counts (N, N) of a chain that mostly stays, and the rows of the chain."""
    random = np.random.default_rng(seed)
    chain = 0.7 * np.eye(N) + 0.3 * random.dirichlet(np.ones(N), N)
    return random.multinomial(moves // N, chain), chain


def rows_of(rates):
    table = rates.reshape(-1, N)
    return table / table.sum(axis=1, keepdims=True)


def test_other_true_numbers_with_the_same_noisy_table_give_the_same_bytes(monkeypatch):
    table = NoisyTable(np.array([3.0, -2.0, 7.0, 1.0, 0.0, 5.0, -9.0, -1.0, -4.0, 12.0, 0.0, 1.0]), 2.0)
    monkeypatch.setattr(planned, "release", lambda *_: table)
    models = [
        fit_chain(data, 3, 1, 4, initial="first", bits=ReplayBits(1))[0]
        for data in ([], [[0, 1]], [[2, 2, 2]] * 500, [[1]] * 31)
    ]
    assert len({(model.initial.tobytes(), model.transition.toarray().tobytes()) for model in models}) == 1


def test_every_rate_is_possible_and_many_data_are_believed():
    counts, _ = sticky(0, 10**7)
    (rates,) = rates_of(noisy(counts, 3, 1)[None], ROWS, COLUMNS, N, 3.0)
    np.testing.assert_allclose(rates, counts.ravel(), atol=30)
    (rates,) = rates_of(np.full((1, N * N), -40.0), ROWS, COLUMNS, N, 10.0)
    assert (rates > 0).all() and rates.sum() < 40
    np.testing.assert_allclose(rows_of(rates), 1 / N, atol=0.02)


def test_relabelled_states_give_relabelled_rates():
    counts, _ = sticky(2, 2_000)
    values, names = noisy(counts, 30, 3), np.random.default_rng(0).permutation(N)
    (rates,) = rates_of(values[None], ROWS, COLUMNS, N, 30.0)
    (renamed,) = rates_of(values[None], names[ROWS], names[COLUMNS], N, 30.0)
    np.testing.assert_allclose(renamed, rates, rtol=1e-2)


@pytest.mark.parametrize("scale", [10, 50, 200])
def test_it_is_nearer_than_clipping(scale):
    """Cross-entropy per move, over 40 tables: less than clipping by more than three standard errors of the gain."""
    gains = []
    for seed in range(40):
        counts, chain = sticky(seed, 3_000)
        values = noisy(counts, scale, seed)
        (rates,) = rates_of(values[None], ROWS, COLUMNS, N, float(scale))
        clipped = nearest_counts(values, np.arange(N + 1) * N) + 1
        gains.append((chain * np.log(rows_of(rates) / rows_of(clipped))).sum(axis=1).mean())
    assert np.mean(gains) > 3 * np.std(gains) / np.sqrt(len(gains))


def test_of_pure_noise_the_rows_are_nearly_even():
    """Cross-entropy of even rows: less than clipping in the mean of 40 tables, by more than three standard errors."""
    gains = []
    for seed in range(40):
        values = noisy(np.full(N * N, 4), 100, seed)
        (rates,) = rates_of(values[None], ROWS, COLUMNS, N, 100.0)
        clipped = nearest_counts(values, np.arange(N + 1) * N) + 1
        gains.append(np.log(rows_of(rates) / rows_of(clipped)).mean())
    assert np.mean(gains) > 3 * np.std(gains) / np.sqrt(len(gains))


def test_rates_are_at_most_a_total_and_small_ones_give_way():
    """Against a search of the shift by halves."""
    random = np.random.default_rng(4)
    for total in (5.0, 300.0, 900.0):
        rates = np.concatenate([[600.0, 40.0], random.exponential(0.5, 700)])
        low, high = 0.0, 1e6
        for _ in range(200):
            shift = (low + high) / 2
            low, high = (shift, high) if (rates * rates / (rates + shift)).sum() > total else (low, shift)
        np.testing.assert_allclose(at_most(rates, total), rates * rates / (rates + high), rtol=1e-6)
    assert at_most(rates, rates.sum()).tolist() == rates.tolist() and (at_most(rates, 1e-9) > 0).all()


def test_a_reader_s_model_is_as_sure_of_positions_as_it_is_right():
    """Of 700 walks over 24 states, position by position: cells without a move had as much weight as all moves."""
    n, length = 24, 6
    walks = [[(3 * position + turn % 2) % n for position in range(length)] for turn in range(700)]
    for seed in range(3):
        options = {"slots": Slots.parse("1,2,3,4,5+"), "bits": ReplayBits(seed)}
        model, _ = fit_chain(walks, n, 1, length, **options)
        law = model.initial
        for position, matrix in enumerate(model.matrices, start=1):
            law = law @ matrix.toarray()
            assert law[[3 * position % n, (3 * position + 1) % n]].sum() > 0.85


@pytest.mark.parametrize("end", [None, 3])
def test_without_noise_worth_speaking_of_slots_are_the_shares_of_moves(end):
    """Of the last slot each walk has as many moves as there can be: a smaller bound would take from the rare ones."""
    walks = [[0, 1, turn % 10 == 0, 2] for turn in range(4_000)]
    model, _ = fit_chain(walks, 4, 1000, 4, slots=Slots.parse("1,2+"), end=end, bits=ReplayBits(0))
    np.testing.assert_allclose(model.matrices[1].toarray()[1], np.array([3600, 400, 400, 0]) / 4400, atol=2e-4)


def test_several_tables_share_what_they_have_in_common():
    """Six tables of one chain: each is nearer to it than alone, in the mean of 20 by three standard errors."""
    gains = []
    for seed in range(20):
        random = np.random.default_rng(seed)
        chain = sticky(seed, N)[1]
        values = np.stack([noisy(random.multinomial(100, chain), 3, 6 * seed + k) for k in range(6)])
        together = rates_of(values, ROWS, COLUMNS, N, 3.0)
        alone = np.concatenate([rates_of(values[k : k + 1], ROWS, COLUMNS, N, 3.0) for k in range(6)])
        gains.append((np.tile(chain, (6, 1)) * np.log(rows_of(together) / rows_of(alone))).sum(axis=1).mean())
    assert np.mean(gains) > 3 * np.std(gains) / np.sqrt(len(gains))


def test_a_beginning_is_one_row_of_its_own():
    """Starts all in one state move no row of moves by much, and are a row that says so."""
    counts, _ = sticky(4, 4_000)
    rows, columns = np.append(ROWS, np.full(N, N)), np.append(COLUMNS, np.arange(N))
    values = np.append(noisy(counts, 20, 5), [400.0, 1.0, -3.0, 8.0, 2.0])
    (rates,) = rates_of(values[None], rows, columns, N, 20.0)
    (without,) = rates_of(values[None, : N * N], ROWS, COLUMNS, N, 20.0)
    assert rates[N * N] / rates[N * N :].sum() > 0.85
    np.testing.assert_allclose(rows_of(rates[: N * N]), rows_of(without), atol=0.05)


def test_a_state_that_alone_begins_is_believed():
    """Cases of one process: all begin alike, nobody comes back there, and each state leads to one other."""
    n, begins, moves = 20, [], []
    counts = np.zeros((n + 1, n), dtype=int)
    counts[n, 0] = 700
    for state in range(n - 1):
        counts[state, state + 1] = 600 if state < 5 else 30
    rows, columns = np.repeat(np.arange(n + 1), n), np.tile(np.arange(n), n + 1)
    for seed in range(5):
        (rates,) = rates_of(noisy(counts, 10, seed)[None], rows, columns, n, 10.0)
        table = rates.reshape(-1, n) / rates.reshape(-1, n).sum(axis=1, keepdims=True)
        begins.append(table[n, 0])
        moves += [table[state, state + 1] for state in range(5)]
    # With one mean for all cells of a row and a column these are .80 and .83.
    assert np.mean(begins) > 0.87 and np.mean(moves) > 0.9


def test_the_tables_with_the_others_taken_away_say_nothing_of_a_table_twice():
    """Of K tables of which one is nothing but noise, the others' rows stay as near as those of the others alone."""
    random = np.random.default_rng(7)
    chain = sticky(7, N)[1]
    tables = np.stack([noisy(random.multinomial(2_000, chain), 5, k) for k in range(3)])
    with_noise = np.concatenate([tables, noisy(np.zeros(N * N, int), 5, 9)[None]])
    together = rates_of(with_noise, ROWS, COLUMNS, N, 5.0)[:3]
    np.testing.assert_allclose(rows_of(together), np.tile(chain, (3, 1)), atol=0.05)
