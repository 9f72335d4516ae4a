"""Counting sorted rows as they pass: the counts of plain loops, files and sequences, in whatever parts they come.

It could fail where an owner's caps begin anew in another part, where rows are capped after they were counted or in the
order in which they arrived, where the second row of a step counts, where a row in no state joins its neighbours, or
where memory grows with the rows of one owner.
"""

from __future__ import annotations

import itertools
import tracemalloc
from collections import Counter

import numpy as np
import pytest

from dphmm.markov.private import count_transitions
from dphmm.markov.private.row_counter import RowCounter, counts_of_keys
from dphmm.markov.private.sensitivity import Caps
from dphmm.states.trajectory import Trajectories
from plain_rows import N, in_order, rows_of, same, sequences_of


def counted(rows, caps, shortest=2, parts=()):
    """The counts of sorted rows that come in parts which end at these places."""
    counter = RowCounter(N, caps, shortest)
    table = np.array(sorted(rows, key=lambda row: row[:2]), dtype=np.int64).reshape(-1, 3)
    last = None
    for part in np.split(table, sorted(parts)):
        owner = part[:, 0]
        before = np.concatenate([[-1 if last is None else last], owner[:-1]])[: len(owner)]
        counter.add(owner != before, part[:, 1], part[:, 2])
        last = owner[-1] if len(owner) else last
    return counts_of_keys(*counter.found(), N, caps)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("shortest", [1, 2])
@pytest.mark.parametrize("caps", [Caps(1, 1), Caps(2, 1), Caps(3, 2), Caps(50, 50)])
def test_they_are_those_of_the_sequences(seed, shortest, caps):
    rows = rows_of(seed)
    sequences, owners = sequences_of(rows, shortest)
    expected = count_transitions(sequences, N, caps.max_length, owners=owners, max_sequences=caps.max_sequences)
    found = counted(rows, caps, shortest)
    same(found, expected)
    assert found.n_owners == len({owner for owner, _, _ in rows})
    first = {}
    for owner, step, state in in_order(rows):
        first.setdefault((owner, step), state)
    assert found.left_out == sum(not 0 <= state < N for state in first.values())


@pytest.mark.parametrize("seed", range(12))
def test_parts_and_arrival_change_nothing(seed):
    source, rows, caps = np.random.default_rng(seed), rows_of(seed), Caps(3, 2)
    whole = counted(rows, caps)
    every = [range(1, len(rows)), [], [1], source.integers(0, len(rows), 9).tolist(), [7] * 3]
    for parts in every:
        shuffled = [rows[k] for k in source.permutation(len(rows))]
        found = counted(shuffled, caps, parts=parts)
        same(found, whole)
        assert (found.n_owners, found.left_out) == (whole.n_owners, whole.left_out)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("shortest", [1, 2])
def test_a_sorted_table_is_counted_as_by_a_fit_of_its_trajectories(seed, shortest):
    rows = [row for row in in_order(rows_of(seed)) if row[2] < N]
    owner, step, state = (np.array(column) for column in zip(*rows, strict=True))
    table = Trajectories.from_labels([str(name) for name in owner], step=step)
    found = table.sequences(state)
    long = [k for k, sequence in enumerate(found.sequences) if len(sequence) >= shortest]
    expected = count_transitions(
        [found.sequences[k] for k in long], N, 3, owners=found.owners[long].tolist(), max_sequences=2
    )
    same(counted(rows, Caps(3, 2), shortest), expected)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("parts", [[], range(1, 90), [4, 40]])
def test_of_one_step_the_latest_row_counts_and_then_the_least_state(seed, parts):
    source, chosen = np.random.default_rng(seed), {}
    rows = [(owner, step // 3, state) for owner, step, state in rows_of(seed, 90)]
    times = source.integers(0, 3, len(rows)).tolist()
    for (owner, step, state), time in zip(rows, times, strict=True):
        place = (-time, state if 0 <= state < N else N)
        chosen[owner, step] = min(chosen.get((owner, step), place), place)
    expected = counted([(*key, state) for key, (_, state) in chosen.items()], Caps(3, 2))
    order = sorted(range(len(rows)), key=lambda k: rows[k][:2])
    counter = RowCounter(N, Caps(3, 2), 2)
    table = np.array([(*rows[k], times[k]) for k in order])
    new_owner = np.diff(table[:, 0], prepend=-1) != 0
    for part in np.split(np.arange(len(rows)), list(parts)):
        counter.add(new_owner[part], *table[part, 1:].T)
    found = counts_of_keys(*counter.found(), N, Caps(3, 2))
    same(found, expected)
    assert (found.n_owners, found.left_out) == (expected.n_owners, expected.left_out)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("shortest", [1, 2])
def test_no_owner_adds_more_than_the_caps_allow(seed, shortest):
    """Whatever one owner's rows are, and whoever's stand beside them."""
    rows, caps = rows_of(seed, 80, 2), Caps(4, 3)
    alone = counted([row for row in rows if row[0] == 0], caps, shortest)
    together = counted(rows, caps, shortest)
    added = together.transitions.toarray() - alone.transitions.toarray()
    other = counted([row for row in rows if row[0] == 1], caps, shortest).transitions.toarray()
    np.testing.assert_array_equal(added, other)
    assert alone.transitions.sum() <= caps.max_sequences * (caps.max_length - 1)
    assert alone.starts.sum() <= caps.max_sequences


def test_sums_of_partitions_are_the_counts_of_all():
    rows, caps, totals = rows_of(3, 200, 40), Caps(4, 2), Counter()
    for part in range(3):
        counter = RowCounter(N, caps, 2)
        own = np.array(sorted(row for row in rows if row[0] % 3 == part))
        counter.add(np.diff(own[:, 0], prepend=-1) != 0, own[:, 1], own[:, 2])
        for key, total in zip(*counter.found(), strict=True):
            totals[int(key)] += int(total)
    keys = np.array(list(totals), dtype=np.int64)
    found = counts_of_keys(keys, np.array(list(totals.values()), dtype=np.int64), N, caps)
    whole = counted(rows, caps)
    same(found, whole)
    assert (found.n_owners, found.left_out) == (whole.n_owners, whole.left_out)


@pytest.mark.parametrize("rows", [[(0, 5, 1), (0, 4, 1)], [(0, 5, 1), (0, 6, 1), (0, 5, 1)]])
def test_rows_out_of_order_are_refused(rows):
    table = np.array(rows)
    for parts in ([], [1]):
        counter = RowCounter(N, Caps(9), 2)
        with pytest.raises(ValueError, match=r"^rows are out of order"):
            for k, part in enumerate(np.split(table, parts)):
                counter.add(np.array([k == 0] + [False] * (len(part) - 1)), part[:, 1], part[:, 2])


def test_nothing_counts_and_no_owner_is_anybody():
    counter = RowCounter(N, Caps(3), 2)
    counter.leave_out(7)
    counter.add(np.zeros(0, bool), np.zeros(0, np.int64), np.zeros(0, np.int64))
    found = counts_of_keys(*counter.found(), N, Caps(3))
    assert (found.left_out, found.n_owners, found.transitions.nnz) == (7, 0, 0)
    assert repr(counter) == "RowCounter(...)"


def test_the_largest_numbers_of_steps_are_no_neighbours():
    far = 2**63 - 1
    rows = [(0, -far - 1, 0), (0, -far, 1), (0, far - 1, 2), (0, far, 3), (1, -far - 1, 0)]
    found = counted(rows, Caps(9, 9))
    assert found.transitions.toarray()[[0, 2], [1, 3]].tolist() == [1, 1] and found.transitions.sum() == 2


def test_memory_does_not_grow_with_the_rows_of_one_owner():
    """Fault 70: one owner with all rows."""

    def peak(n_parts, caps):
        counter = RowCounter(N, caps, 2)
        state = np.arange(10_000) % N
        tracemalloc.start()
        for k in range(n_parts):
            counter.add(np.zeros(10_000, bool), np.arange(10_000) + 10_000 * k, state)
        found = counts_of_keys(*counter.found(), N, caps)
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found.transitions.sum(), highest

    small, least = peak(20, Caps(100, 3))
    large, most = peak(400, Caps(100, 3))
    assert small == large == 99
    assert most < 1.1 * least + 100_000
    # Where nothing is capped keys are held, up to a number that is fixed.
    everything, held = peak(400, Caps(2**20, 1))
    assert everything == 2**20 - 1 and held < 60e6


def test_small_tables_of_one_owner_one_by_one():
    """All tables of up to four rows at steps 0 to 4 in two states, by the plain loop."""
    for steps in itertools.combinations(range(5), 4):
        for states in itertools.product(range(2), repeat=4):
            rows = [(0, step, state) for step, state in zip(steps, states, strict=True)]
            for caps, shortest in itertools.product([Caps(2, 1), Caps(3, 1), Caps(2, 2)], [1, 2]):
                sequences, owners = sequences_of(rows, shortest)
                expected = count_transitions(
                    sequences, N, caps.max_length, owners=owners, max_sequences=caps.max_sequences
                )
                same(counted(rows, caps, shortest), expected)
