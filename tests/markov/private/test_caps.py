"""What one record adds depends on that record and the parameters alone, as integers and within its limits.

The sum over records must be the sum of single records, bit by bit and under every permutation: a count that were
computed for several sequences at once would fail here. Limits must hold whatever floats do: values are made that are
too large, no numbers, or add up to more than they should.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dphmm._kernels.hmm import add_whole
from dphmm.errors import InvalidInput
from dphmm.markov.hidden import expected_counts as plain_counts
from dphmm.markov.hidden import observations
from dphmm.markov.hidden.parameters import Parameters
from dphmm.markov.private.caps import kept_records
from dphmm.markov.private.iterations import expected_counts
from dphmm.markov.private.sensitivity import Caps
from small_records import GRID, random_parameters, sequences_up_to


def counts_of(sequences, parameters, cap=9, caps=None, owners=None):
    kept = kept_records(sequences, parameters.n_symbols, caps or Caps(cap), owners)
    return expected_counts(kept, parameters, cap, GRID)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_sum_is_the_sum_of_single_records_under_every_permutation(seed, zeros):
    parameters = random_parameters(seed, 3, 3, zeros)
    source = np.random.default_rng(seed)
    data = [source.integers(0, 3, size=n).tolist() for n in (1, 9, 4, 2, 9)]
    singles = sum(counts_of([s], parameters) for s in data)
    for order in itertools.permutations(range(len(data))):
        np.testing.assert_array_equal(counts_of([data[i] for i in order], parameters), singles)


def test_where_a_sequence_lies_in_memory_does_not_change_it():
    """Sequences at odd offsets, between long neighbours: no rounding of theirs differs."""
    parameters = random_parameters(5, 7, 5)
    source = np.random.default_rng(1)
    target = source.integers(0, 5, size=33).tolist()
    alone = counts_of([target], parameters, 50)
    for before in range(1, 20):
        other = source.integers(0, 5, size=before).tolist()
        pair = counts_of([other, target], parameters, 50)
        np.testing.assert_array_equal(pair - counts_of([other], parameters, 50), alone)


def test_they_are_the_expected_counts_rounded_down():
    parameters = random_parameters(3, 3, 4)
    data = [np.random.default_rng(k).integers(0, 4, size=9) for k in range(20)]
    plain = plain_counts(parameters, observations(data))
    flat = np.concatenate([plain.initial, plain.transition.ravel(), plain.emission.ravel()])
    whole = counts_of(data, parameters) * 2.0**-GRID
    assert np.abs(whole - flat).max() <= len(data) * 2.0**-GRID + 1e-9
    assert (whole <= flat + 1e-9).all()


def test_impossible_sequences_add_nothing_and_say_nothing():
    never = Parameters(np.array([1.0, 0.0]), np.eye(2), np.array([[1.0, 0.0], [0.0, 1.0]]))
    possible, impossible = [0, 0, 0], [0, 1, 0]
    np.testing.assert_array_equal(counts_of([impossible, possible, impossible], never), counts_of([possible], never))
    assert not counts_of([impossible], never).any()


@pytest.mark.parametrize("n", [1, 300, 3000])
def test_sequences_beyond_the_range_of_floats_stay_within_their_limits(n):
    tiny = Parameters(
        np.array([1 - 1e-300, 1e-300]), np.array([[1 - 1e-300, 1e-300], [1e-300, 1.0]]), np.array([[1.0, 1e-300]] * 2)
    )
    found = counts_of([[1] * n], tiny, n)
    assert found.min() >= 0
    assert found[:2].sum() <= 2**GRID and found[2:6].sum() <= (n - 1) * 2**GRID and found[6:].sum() <= n * 2**GRID


def test_short_sequences_give_no_more_than_they_have():
    for s in sequences_up_to(3, 2):
        found = counts_of([s], random_parameters(2), 9)
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
        kept = kept_records([[0, 1, 2, 2], [1], [2, 2, 2]], 3, Caps(3))
        assert kept.symbols.tolist() == [0, 1, 2, 1, 2, 2, 2]
        assert kept.bounds.tolist() == [0, 3, 4, 7]

    def test_owners_keep_their_first_sequences(self):
        kept = kept_records([[0], [1], [2], [3], [4], [5]], 6, Caps(3, 2), ["a", "b", "a", "a", "b", "b"])
        assert kept.symbols.tolist() == [0, 1, 2, 4]
        assert kept.bounds.tolist() == [0, 1, 2, 3, 4]

    @pytest.mark.parametrize("seed", range(10))
    def test_what_is_kept_of_an_owner_depends_on_that_owner(self, seed):
        source = np.random.default_rng(seed)
        data = [source.integers(0, 4, size=source.integers(1, 6)).tolist() for _ in range(12)]
        owners = source.integers(0, 4, size=12).tolist()
        caps = Caps(3, 2)
        whole = kept_records(data, 4, caps, owners)
        pieces = np.split(whole.symbols, whole.bounds[1:-1])
        expected = []
        for owner in range(4):
            own = [s for s, o in zip(data, owners, strict=True) if o == owner]
            expected += [s[:3] for s in own[:2]]
        assert sorted(p.tolist() for p in pieces) == sorted(expected)

    def test_no_sequence_is_data_like_any_other(self):
        for owners in (None, []):
            kept = kept_records([], 3, Caps(4), owners)
            assert kept.symbols.tolist() == [] and kept.bounds.tolist() == [0]
        assert not counts_of([], random_parameters(1)).any()

    @pytest.mark.parametrize(
        ("sequences", "owners", "caps", "told"),
        [
            ([[0]], None, Caps(3, 2), "owners: got None"),
            ([[0], [1]], ["a"], Caps(3, 2), "owners: got another number"),
            ([[0], [1]], ["a", None], Caps(3), "owners: got a missing owner"),
            ([[0], [1]], ["a", float("nan")], Caps(3), "owners: got a missing owner"),
            ([[0], [1]], [["a"], ["b"]], Caps(3), "owners: got an owner that cannot"),
            ([[0], [1]], "ab", Caps(3), "owners: got str"),
            ([], ["a"], Caps(3), "owners: got another number"),
            ([[0], []], None, Caps(3), "sequences[1]: got an empty sequence"),
            ([[0], [0, 7]], None, Caps(3), "sequences[1][1]: got a number above 2"),
            ([[0], [0, -1]], None, Caps(3), "sequences[1][1]: got a negative number"),
            ([[0], [0, 0.5]], None, Caps(3), "sequences[1][1]"),
            ("01", None, Caps(3), "sequences: got str"),
            (3, None, Caps(3), "sequences: got int"),
        ],
    )
    def test_bad_data_gets_one_line(self, sequences, owners, caps, told):
        with pytest.raises(InvalidInput) as error:
            kept_records(sequences, 3, caps, owners)
        assert told in str(error.value) and "\n" not in str(error.value)

    def test_nothing_is_shown_of_what_is_kept(self):
        assert repr(kept_records([[0, 1]], 3, Caps(4))) == "Kept(...)"
