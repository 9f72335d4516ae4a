"""Neighbouring data sets never differ by more than the stated sensitivity, and some differ by all of it.

By enumeration: every data set of up to two records over 2 or 3 symbols, with sequences up to one longer than the cap
and owners of up to two sequences, through the very functions that count before noise is added. A bound that is too
small, a cap that is not kept, a count that depends on another record: each shows up here as a difference that is too
large; a bound that is too large as one that is never reached.

What one record adds depends on that record and the parameters alone, as integers and within its limits.

The sum over records must be the sum of single records, bit by bit and under every permutation: a count that were
computed for several sequences at once would fail here. Limits must hold whatever floats do: values are made that are
too large, no numbers, or add up to more than they should.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import dphmm
from dphmm._kernels.hmm import add_whole
from dphmm.errors import InvalidInput
from dphmm.markov.hidden import expected_counts as plain_counts
from dphmm.markov.hidden import observations
from dphmm.markov.hidden.parameters import Parameters
from dphmm.markov.private import sensitivity
from dphmm.markov.private.iterations import expected_counts
from dphmm.markov.private.ngrams import count_ngrams
from dphmm.markov.private.planned import masked
from dphmm.markov.private.sensitivity import RecordBounds, kept_records
from dphmm.markov.private.transition_counts import counts_of
from dphmm.markov.second_order import LatentPairs
from small_records import GRID, random_parameters, sequences_up_to


def data_of(records):
    """(sequences, owners) of records, each a tuple of sequences."""
    pairs = [(sequence, owner) for owner, record in enumerate(records) for sequence in record]
    return [s for s, _ in pairs], [o for _, o in pairs]


def largest(vectors_of, records, caps):
    """(L1, squared L2) of the largest difference of neighbours among data sets of up to two of these records."""

    def vector(*chosen):
        sequences, owners = data_of(chosen)
        return vectors_of(sequences, owners)

    none, alone = vector(), [vector(record) for record in records]
    both = {(i, j): vector(records[i], records[j]) for i in range(len(records)) for j in range(len(records))}
    differences = []
    if caps.neighbours == "add-remove":
        differences += [single - none for single in alone]
        differences += [both[i, j] - alone[i] for i, j in both]
        differences += [both[i, j] - alone[j] for i, j in both]
    else:
        differences += [a - b for a in alone for b in alone]
        # One record replaced beside another one that stays, first or second.
        stay = range(0, len(records), max(1, len(records) // 6))
        differences += [both[i, k] - both[j, k] for k in stay for i in range(len(records)) for j in range(len(records))]
        differences += [both[k, i] - both[k, j] for k in stay for i in range(len(records)) for j in range(len(records))]
    stacked = np.array(differences)
    return int(np.abs(stacked).sum(axis=1).max()), int((stacked.astype(object) ** 2).sum(axis=1).max())


def bounds(blocks, caps, grid=0):
    return int(sensitivity.l1(blocks, caps) * 2**grid), int(sensitivity.l2_squared(blocks, caps) * 4**grid)


BOTH = pytest.mark.parametrize("neighbours", ["add-remove", "replace"])


@BOTH
@pytest.mark.parametrize(("n", "cap", "of_owner"), [(2, 3, 1), (2, 4, 1), (3, 3, 1), (2, 3, 2)])
def test_pairs_of_moves(neighbours, n, cap, of_owner):
    """What a chain of second order publishes, where all moves may occur; and no more where some may not."""
    caps = RecordBounds(cap, of_owner, neighbours)
    sequences = sequences_up_to(cap + 1, n) if of_owner == 1 else sequences_up_to(cap, n)[-8:]
    records = [record for m in range(1, of_owner + 1) for record in itertools.product(sequences, repeat=m)]
    whole = dphmm.MarkovModel(np.full(n, 1 / n), np.full((n, n), 1 / n))
    fewer = dphmm.MarkovModel(np.full(n, 1 / n), np.triu(np.full((n, n), 1.0)) / np.arange(n, 0, -1)[:, None])
    found = []
    for base in (whole, fewer):
        pairs = LatentPairs.of(base)

        def vectors(sequences, owners, pairs=pairs):
            kept = kept_records(sequences, n, caps, owners)
            return pairs.counts(kept.symbols, kept.bounds)

        found.append(largest(vectors, records, caps))
    assert found[0] == bounds(sensitivity.ngrams(caps, 3), caps)
    assert found[1] <= found[0]


@BOTH
@pytest.mark.parametrize(("v", "order", "cap"), [(2, 2, 3), (2, 3, 3), (2, 2, 2), (3, 2, 2)])
def test_ngrams(neighbours, v, order, cap):
    caps = RecordBounds(cap, 1, neighbours)
    records = [(s,) for s in sequences_up_to(cap + 1, v)]

    def count(sequences, owners):
        return count_ngrams(kept_records(sequences, v, caps), v, order)

    assert largest(count, records, caps) == bounds(sensitivity.ngrams(caps, order), caps)


@BOTH
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(("v", "cap"), [(2, 2), (2, 3), (3, 2)])
def test_transitions(neighbours, first, v, cap):
    caps = RecordBounds(cap, 1, neighbours)
    records = [(s,) for s in sequences_up_to(cap + 1, v)]
    every = sparse.csr_array(np.ones((v, v)))

    def count(sequences, owners):
        return masked(counts_of(kept_records(sequences, v, caps), v, caps, "sequence"), every, first)

    assert largest(count, records, caps) == bounds(sensitivity.transitions(caps, first=first), caps)


@BOTH
@pytest.mark.parametrize(("cap", "of_owner"), [(1, 1), (2, 1), (2, 2)])
def test_sequences_with_a_begin_and_an_end(neighbours, cap, of_owner):
    """L + 1: the cap counts what is before the end, whether rows of the end are in the data or not."""
    caps, end = RecordBounds(cap, of_owner, neighbours), 2
    two = itertools.product([(0, 0), (1, 1), (0, 1, 1), (0, 2, 1), (2,)], repeat=2)
    records = [(s,) for s in sequences_up_to(cap + 1, 3)] + (list(two) if of_owner == 2 else [])
    leaving = sparse.csr_array(np.outer(np.arange(3) != end, np.ones(3)))

    def count(sequences, owners):
        kept = kept_records(sequences, 3, caps, owners, end=end)
        return masked(counts_of(kept, 3, caps, "owner", end=end), leaving, True)

    most, squared = largest(count, records, caps)
    blocks = sensitivity.transitions(caps, first=True, end=True)
    assert sum(blocks) == cap + 1
    # Moves to the end and moves between others are in different cells.
    assert most == sensitivity.l1(blocks, caps) and squared <= sensitivity.l2_squared(blocks, caps)


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("rule", ["2h/1h", "1,2+"])
@pytest.mark.parametrize(("cap", "of_owner"), [(2, 1), (3, 1), (2, 2)])
def test_transitions_by_slots(neighbours, first, rule, cap, of_owner):
    """One table of (slot, from, to): whatever hours a person writes, each move is in one cell of it."""
    caps, slots = RecordBounds(cap, of_owner, neighbours), dphmm.markov.Slots.parse(rule)
    singles = [(begin, *s) for s in sequences_up_to(cap + 1, 2) for begin in (96, 97, 2**40)]
    records = [(s,) for s in singles]
    if of_owner == 2:
        moving = [(begin, *s) for s in itertools.product(range(2), repeat=2) for begin in (96, 97)]
        records = [(s,) for s in moving] + list(itertools.product(moving, repeat=2))
    every = sparse.vstack([sparse.csr_array(np.ones((2, 2)))] * 2, "csr")

    def count(sequences, owners):
        steps = np.array([begin for begin, *_ in sequences], dtype=np.int64)
        kept = kept_records([states for _, *states in sequences], 2, caps, owners)
        return masked(counts_of(kept, 2, caps, "owner", slots, steps, 3600), every, first)

    most, squared = largest(count, records, caps)
    due = bounds(sensitivity.transitions(caps, first=first), caps)
    # Moves of one sequence may have to be in different slots, so the second bound is not always reached.
    assert most == due[0] and squared <= due[1]


def test_pairs_outside_the_mask_count_for_nothing():
    caps = RecordBounds(3)
    mask = sparse.csr_array(np.array([[1, 0, 1], [0, 1, 0], [1, 1, 0]]))
    kept = kept_records([[0, 1, 0], [0, 0, 0], [2, 1, 2], [1, 1]], 3, caps)
    assert masked(counts_of(kept, 3, caps, "sequence"), mask, False).tolist() == [2, 0, 1, 0, 1]


@BOTH
def test_owners_of_several_sequences(neighbours):
    caps = RecordBounds(2, 2, neighbours)
    singles = sequences_up_to(2, 2)
    records = [
        *[(s,) for s in singles],
        *itertools.product(singles, repeat=2),
        ([0, 0], [0, 0], [1, 1]),
        ([1, 1], [1, 1], [0, 0]),
    ]

    def count(sequences, owners):
        return count_ngrams(kept_records(sequences, 2, caps, owners), 2, 2)

    assert largest(count, records, caps) == bounds(sensitivity.ngrams(caps, 2), caps)


#: Reached by states that never change and show themselves; and by anything else, never passed.
STILL = Parameters(np.array([0.5, 0.5]), np.eye(2), np.eye(2))


def cells_of(letters, n, v):
    blocks = np.repeat(["s", "t", "e"], [n, n * n, n * v])
    return np.isin(blocks, list(letters))


@BOTH
@pytest.mark.parametrize("letters", ["ste", "te", "e", "t", "st"])
@pytest.mark.parametrize("cap", [2, 3])
def test_expected_counts_of_states_that_show_themselves_reach_the_bounds(neighbours, letters, cap):
    caps = RecordBounds(cap, 1, neighbours)
    records = [(s,) for s in sequences_up_to(cap + 1, 2)]

    def count(sequences, owners):
        return expected_counts(kept_records(sequences, 2, caps), STILL, cap, GRID)[cells_of(letters, 2, 2)]

    assert largest(count, records, caps) == bounds(sensitivity.expected_counts(caps, letters), caps, GRID)


@BOTH
@pytest.mark.parametrize("zeros", [False, True])
def test_expected_counts_of_any_parameters_stay_within_the_bounds(neighbours, zeros):
    cap, v = 3, 2
    caps = RecordBounds(cap, 1, neighbours)
    records = [(s,) for s in sequences_up_to(cap, v)]
    reached = 0.0
    for seed in range(6):
        parameters = random_parameters(seed, 3, v, zeros)

        def count(sequences, owners, parameters=parameters):
            return expected_counts(kept_records(sequences, v, caps), parameters, cap, GRID)

        l1, l2 = largest(count, records, caps)
        bound = bounds(sensitivity.expected_counts(caps, "ste"), caps, GRID)
        assert l1 <= bound[0] and l2 <= bound[1]
        reached = max(reached, l1 / bound[0])
    assert reached > (0.99 if neighbours == "add-remove" else 0.4)


def test_the_table_of_the_page():
    """docs/proofs/learning.md, 2: at L = 4 the sums are 7, 8, 14 and 16, and the L2 norms their roots say."""
    add, swap = RecordBounds(4), RecordBounds(4, 1, "replace")
    for caps, factor in ((add, 1), (swap, 2)):
        assert sensitivity.l1(sensitivity.expected_counts(caps, "te"), caps) == 7 * factor
        assert sensitivity.l1(sensitivity.expected_counts(caps, "ste"), caps) == 8 * factor
        assert sensitivity.l2_squared(sensitivity.expected_counts(caps, "te"), caps) == 25 * factor
        assert sensitivity.l2_squared(sensitivity.expected_counts(caps, "ste"), caps) == 26 * factor
        assert sensitivity.l1(sensitivity.ngrams(caps, 2), caps) == 3 * factor
        assert sensitivity.l1(sensitivity.transitions(caps, first=True), caps) == 4 * factor
    owner = RecordBounds(4, 3, "replace")
    assert sensitivity.l1(sensitivity.expected_counts(owner, "te"), owner) == Fraction(42)
    assert sensitivity.l2_squared(sensitivity.expected_counts(owner, "te"), owner) == 25 * 9 * 2


def test_a_bound_that_is_too_small_is_found_out():
    """Forgetting that replacement counts twice, or the owner's second sequence, would not pass the enumeration."""
    caps = RecordBounds(3, 1, "replace")
    records = [(s,) for s in sequences_up_to(3, 2)]
    found = largest(lambda s, o: count_ngrams(kept_records(s, 2, caps), 2, 2), records, caps)
    assert found[0] > int(sensitivity.l1(sensitivity.ngrams(RecordBounds(3), 2), RecordBounds(3)))


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: RecordBounds(0), "max_length: got 0"),
        (lambda: RecordBounds(2**20 + 1), "max_length: got"),
        (lambda: RecordBounds(3, 0), "max_sequences: got 0"),
        (lambda: RecordBounds(3, 1, "swap"), "neighbours: got swap"),
        (lambda: sensitivity.ngrams(RecordBounds(2), 3), "max_length: got 2"),
        (lambda: sensitivity.transitions(RecordBounds(1), first=True), "max_length: got 1"),
    ],
)
def test_bad_caps_get_one_line(make, told):
    with pytest.raises(InvalidInput) as error:
        make()
    assert told in str(error.value) and "\n" not in str(error.value)


def expected_of(sequences, parameters, cap=9, caps=None, owners=None):
    kept = kept_records(sequences, parameters.n_symbols, caps or RecordBounds(cap), owners)
    return expected_counts(kept, parameters, cap, GRID)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_sum_is_the_sum_of_single_records_under_every_permutation(seed, zeros):
    parameters = random_parameters(seed, 3, 3, zeros)
    source = np.random.default_rng(seed)
    data = [source.integers(0, 3, size=n).tolist() for n in (1, 9, 4, 2, 9)]
    singles = sum(expected_of([s], parameters) for s in data)
    for order in itertools.permutations(range(len(data))):
        np.testing.assert_array_equal(expected_of([data[i] for i in order], parameters), singles)


def test_where_a_sequence_lies_in_memory_does_not_change_it():
    """Sequences at odd offsets, between long neighbours: no rounding of theirs differs."""
    parameters = random_parameters(5, 7, 5)
    source = np.random.default_rng(1)
    target = source.integers(0, 5, size=33).tolist()
    alone = expected_of([target], parameters, 50)
    for before in range(1, 20):
        other = source.integers(0, 5, size=before).tolist()
        pair = expected_of([other, target], parameters, 50)
        np.testing.assert_array_equal(pair - expected_of([other], parameters, 50), alone)


def test_they_are_the_expected_counts_rounded_down():
    parameters = random_parameters(3, 3, 4)
    data = [np.random.default_rng(k).integers(0, 4, size=9) for k in range(20)]
    plain = plain_counts(parameters, observations(data))
    flat = np.concatenate([plain.initial, plain.transition.ravel(), plain.emission.ravel()])
    whole = expected_of(data, parameters) * 2.0**-GRID
    assert np.abs(whole - flat).max() <= len(data) * 2.0**-GRID + 1e-9
    assert (whole <= flat + 1e-9).all()


def test_impossible_sequences_add_nothing_and_say_nothing():
    never = Parameters(np.array([1.0, 0.0]), np.eye(2), np.array([[1.0, 0.0], [0.0, 1.0]]))
    possible, impossible = [0, 0, 0], [0, 1, 0]
    np.testing.assert_array_equal(
        expected_of([impossible, possible, impossible], never), expected_of([possible], never)
    )
    assert not expected_of([impossible], never).any()


@pytest.mark.parametrize("n", [1, 300, 3000])
def test_sequences_beyond_the_range_of_floats_stay_within_their_limits(n):
    tiny = Parameters(
        np.array([1 - 1e-300, 1e-300]), np.array([[1 - 1e-300, 1e-300], [1e-300, 1.0]]), np.array([[1.0, 1e-300]] * 2)
    )
    found = expected_of([[1] * n], tiny, n)
    assert found.min() >= 0
    assert found[:2].sum() <= 2**GRID and found[2:6].sum() <= (n - 1) * 2**GRID and found[6:].sum() <= n * 2**GRID


def test_short_sequences_give_no_more_than_they_have():
    for s in sequences_up_to(3, 2):
        found = expected_of([s], random_parameters(2), 9)
        assert found[:2].sum() <= 2**GRID
        assert found[2:6].sum() <= (len(s) - 1) * 2**GRID + 4
        assert found[6:].sum() <= len(s) * 2**GRID + 4


@pytest.mark.parametrize(
    ("values", "limit"),
    [
        ([0.5, 0.75, 0.25], 10),
        ([1e300, 2.0], 10),
        ([np.inf, np.inf, 3.0], 7),
        ([np.nan, 1.0], 10),
        ([-3.0, 1.0], 10),
        ([1.0] * 9, 4),
        ([1.0, 1.0], 0),
        ([np.inf] * 2**10, 2**60),
    ],
)
def test_limits_hold_whatever_the_floats_are(values, limit):
    totals = np.zeros(len(values), np.int64)
    add_whole(np.array(values), 8.0, limit, totals)
    assert totals.min() >= 0 and totals.sum() <= limit
    finite = np.where(np.isfinite(values) & (np.array(values) > 0), values, 0)
    if np.floor(finite * 8).sum() <= limit and np.isfinite(values).all():
        np.testing.assert_array_equal(totals, np.floor(finite * 8))


class TestCaps:
    def test_sequences_are_cut_to_their_first_positions(self):
        kept = kept_records([[0, 1, 2, 2], [1], [2, 2, 2]], 3, RecordBounds(3))
        assert kept.symbols.tolist() == [0, 1, 2, 1, 2, 2, 2]
        assert kept.bounds.tolist() == [0, 3, 4, 7]

    def test_owners_keep_their_first_sequences(self):
        kept = kept_records([[0], [1], [2], [3], [4], [5]], 6, RecordBounds(3, 2), ["a", "b", "a", "a", "b", "b"])
        assert kept.symbols.tolist() == [0, 1, 2, 4]
        assert kept.bounds.tolist() == [0, 1, 2, 3, 4]

    @pytest.mark.parametrize("seed", range(10))
    def test_what_is_kept_of_an_owner_depends_on_that_owner(self, seed):
        source = np.random.default_rng(seed)
        data = [source.integers(0, 4, size=source.integers(1, 6)).tolist() for _ in range(12)]
        owners = source.integers(0, 4, size=12).tolist()
        caps = RecordBounds(3, 2)
        whole = kept_records(data, 4, caps, owners)
        pieces = np.split(whole.symbols, whole.bounds[1:-1])
        expected = []
        for owner in range(4):
            own = [s for s, o in zip(data, owners, strict=True) if o == owner]
            expected += [s[:3] for s in own[:2]]
        assert sorted(p.tolist() for p in pieces) == sorted(expected)

    def test_no_sequence_is_data_like_any_other(self):
        for owners in (None, []):
            kept = kept_records([], 3, RecordBounds(4), owners)
            assert kept.symbols.tolist() == [] and kept.bounds.tolist() == [0]
        assert not expected_of([], random_parameters(1)).any()

    @pytest.mark.parametrize(
        ("sequences", "owners", "caps", "told"),
        [
            ([[0]], None, RecordBounds(3, 2), "owners: got None"),
            ([[0], [1]], ["a"], RecordBounds(3, 2), "owners: got another number"),
            ([[0], [1]], ["a", None], RecordBounds(3), "owners: got a missing owner"),
            ([[0], [1]], ["a", float("nan")], RecordBounds(3), "owners: got a missing owner"),
            ([[0], [1]], [["a"], ["b"]], RecordBounds(3), "owners: got an owner that cannot"),
            ([[0], [1]], "ab", RecordBounds(3), "owners: got str"),
            ([], ["a"], RecordBounds(3), "owners: got another number"),
            ([[0], []], None, RecordBounds(3), "sequences[1]: got an empty sequence"),
            ([[0], [0, 7]], None, RecordBounds(3), "sequences[1][1]: got a number above 2"),
            ([[0], [0, -1]], None, RecordBounds(3), "sequences[1][1]: got a negative number"),
            ([[0], [0, 0.5]], None, RecordBounds(3), "sequences[1][1]"),
            ("01", None, RecordBounds(3), "sequences: got str"),
        ],
    )
    def test_bad_data_gets_one_line(self, sequences, owners, caps, told):
        with pytest.raises(InvalidInput) as error:
            kept_records(sequences, 3, caps, owners)
        assert told in str(error.value) and "\n" not in str(error.value)

    def test_nothing_is_shown_of_what_is_kept(self):
        assert repr(kept_records([[0, 1]], 3, RecordBounds(4))) == "Kept(...)"
