"""Fitting: counts against a dict, what happens to rows nobody left, smoothing, and what the report says."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from dphmm.errors import InvalidInput
from dphmm.markov import MarkovModel, estimate, fit, keep_visited
from dphmm.states.space import StateSpace

sequences_of = st.integers(2, 6).flatmap(
    lambda n: st.tuples(
        st.just(n), st.lists(st.lists(st.integers(0, n - 1), min_size=1, max_size=9), min_size=1, max_size=6)
    )
)


def naive_counts(sequences):
    pairs = Counter()
    for sequence in sequences:
        for a, b in pairwise(sequence):
            pairs[a, b] += 1
    return pairs


def naive_rows(sequences, n, smooth=0, min_count=1):
    """The definition, in fractions: counts, rare ones dropped, pseudo-counts, self-loops, division."""
    pairs = {pair: c for pair, c in naive_counts(sequences).items() if c >= min_count}
    rows = [[Fraction(pairs.get((i, j), 0)) + Fraction(smooth) for j in range(n)] for i in range(n)]
    for i in range(n):
        if not any(rows[i]):
            rows[i][i] = Fraction(1)
    return [[x / sum(row) for x in row] for row in rows]


@settings(max_examples=80)
@given(sequences_of, st.sampled_from([0, 0.5, 3]), st.integers(1, 3))
def test_fit_is_the_definition(case, smooth, min_count):
    n, sequences = case
    pairs = naive_counts(sequences)
    kept = {pair: c for pair, c in pairs.items() if c >= min_count}
    if not kept and not smooth:
        with pytest.raises(InvalidInput, match="a transition to learn from"):
            fit(sequences, n, smooth, min_count=min_count)
        return
    model, report = fit(sequences, n, smooth, min_count=min_count)
    expected = naive_rows(sequences, n, smooth, min_count)
    stored = model.transition.toarray()
    for i in range(n):
        for j in range(n):
            assert (stored[i, j] > 0) == (expected[i][j] > 0)
            assert stored[i, j] == pytest.approx(float(expected[i][j]), rel=1e-15)
    seen = Counter(state for sequence in sequences for state in sequence)
    firsts = Counter(sequence[0] for sequence in sequences)
    assert model.initial == pytest.approx([firsts[i] / firsts.total() for i in range(n)], rel=1e-15)
    timed, _ = fit(sequences, n, smooth, min_count=min_count, step=60)
    assert timed.initial == pytest.approx([seen[i] / seen.total() for i in range(n)], rel=1e-15)
    assert (model.start, timed.start) == ("at", "before")
    left = {a for a, _ in kept}
    assert report.n_sequences == len(sequences)
    assert report.n_visited == len(seen)
    assert report.n_transitions == sum(pairs.values())
    assert report.dropped_pairs == len(pairs) - len(kept)
    assert report.dropped_transitions == sum(pairs.values()) - sum(kept.values())
    assert report.possible_before_smoothing == len(kept)
    assert report.possible == model.n_transitions
    assert report.never_left == tuple(i for i in range(n) if i not in left)
    assert report.n_self_loops == (0 if smooth else n - len(left))
    assert [note for note in model.notes if "rescaled" in note] == []


@settings(max_examples=40)
@given(sequences_of)
def test_table_and_sort_count_alike(case):
    n, sequences = case
    flat = estimate.flatten(sequences, n)
    table = estimate.count_transitions(flat, n).toarray()
    # A space of 5,000 states is counted by sorting; the same sequences give the same corner.
    large = estimate.count_transitions(flat, 5_000)
    assert (large[:n, :n].toarray() == table).all()
    assert large.sum() == table.sum() == sum(naive_counts(sequences).values())


def test_a_state_seen_only_last_is_said_not_divided_by_zero():
    # quantecon answers "P must be nonnegative" to this one.
    model, report = fit([[0, 1, 0, 1, 2]], 4)
    assert model.transition.toarray().tolist() == [[0, 1, 0, 0], [0.5, 0, 0.5, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert report.never_left == (2, 3)
    assert report.n_self_loops == 2
    assert report.lines() == (
        "4 transitions in 1 sequence",
        "1 of 4 states never visited",
        "2 states never left (2, 3): no move from there to anywhere was counted; "
        "each was given a self-loop (absorbing), so "
        "that the model says that whoever is there stays for ever; remedy: smoothing=1, which makes other moves "
        "possible",
    )
    assert any("2 absorbing states (2, 3)" in note for note in model.notes)
    assert any("fitted without privacy" in note for note in model.notes)


def test_dropped_and_smoothed_are_said():
    _, report = fit([[0, 1, 0, 1, 0, 0]], 2, 1.0, min_count=2)
    assert report.lines()[1:] == (
        "1 rare transition dropped (1 pair of states)",
        "2 possible transitions, 4 after smoothing",
    )


def test_initial_kinds():
    sequences = [[0, 1, 1, 2], [0, 2], [1, 0]]
    by_kind = {kind: fit(sequences, 4, initial=kind)[0] for kind in ("occupancy", "first", "uniform")}
    assert by_kind["occupancy"].initial.tolist() == [3 / 8, 3 / 8, 2 / 8, 0]
    assert by_kind["first"].initial == pytest.approx([2 / 3, 1 / 3, 0, 0])
    assert by_kind["uniform"].initial.tolist() == [0.25] * 4
    assert [model.start for model in by_kind.values()] == ["before", "at", "before"]
    # With a step the first rows are t = 0: what is possible at t = 1 includes every second row.
    first = fit(sequences, 4, initial="first", step=60)[0]
    assert first.start == "before"
    assert first.reach(first.support_at_start)[[1, 2, 0]].all()


def test_smoothing_over_a_mask_only():
    mask = sparse.coo_array(([1.0, 1.0, 0.0, 7.0], ([0, 0, 1, 3], [2, 2, 0, 3])), shape=(4, 4))
    model, report = fit([[0, 1, 2]], 4, smoothing=0.5, smoothing_support=mask)
    assert model.transition.toarray().tolist() == [
        [0, 1 / 1.5, 0.5 / 1.5, 0],
        [0, 0, 1, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 1],
    ]
    assert report.n_self_loops == 1
    assert (report.possible_before_smoothing, report.possible) == (2, 5)
    assert model.provenance["smoothing_support"] == "a mask"


def test_smoothing_over_neighbours_of_a_grid():
    side = 4
    space = StateSpace([[x, y] for y in range(side) for x in range(side)])
    model, report = fit([[0, 1]], side * side, 0.25, smoothing_support="neighbours", space=space)
    for i, j in np.ndindex(side * side, side * side):
        near = max(abs(i % side - j % side), abs(i // side - j // side)) <= 1
        assert (model.transition[i, j] > 0) == near
    assert report.n_self_loops == 0
    assert model.transition[0, 1] == pytest.approx(1.25 / 2)
    assert model.space is space


def test_smoothing_of_many_states_needs_a_support():
    with pytest.raises(InvalidInput, match=r'all pairs of 3001 states; expected smoothing_support="neighbours"'):
        fit([[0, 1]], 3_001, 1.0)
    assert estimate.ALL_PAIRS_STATES == 3_000
    with pytest.raises(InvalidInput, match="neighbours of no space"):
        fit([[0, 1]], 2, 1.0, smoothing_support="neighbours")
    with pytest.raises(InvalidInput, match="not on a lattice"):
        fit(
            [[0, 1]],
            2,
            1.0,
            smoothing_support="neighbours",
            space=StateSpace([[0.0, 0.1], [1.0, 1.0]], pitch=1),
        )
    with pytest.raises(InvalidInput, match=r"smoothing_support: got shape \(3, 3\)"):
        fit([[0, 1]], 2, 1.0, smoothing_support=np.eye(3))
    with pytest.raises(InvalidInput, match=r"smoothing_support: got shape \(3, 3\); expected \(2, 2\)"):
        fit([[0, 1]], 2, 1.0, smoothing_support="neighbours", space=StateSpace([0, 1, 2]))
    with pytest.raises(InvalidInput, match="smoothing_support: got everything"):
        fit([[0, 1]], 2, 1.0, smoothing_support="everything")


CANARY = 7_356_021
BAD = {
    "none": ([], "sequences: got no sequence"),
    "a number": (3, "sequences: got int"),
    "text": ("0101", "sequences: got str"),
    "one flat sequence": (
        [0, 1, 2],
        "sequences[0]: got int; expected a sequence of states; a single sequence",
    ),
    "numbers of an array": (np.array([0, 1]), "sequences[0]: got int64"),
    "empty": ([[0, 1], []], "sequences[1]: got an empty sequence"),
    "negative": ([[0, 1], [1], [0, 1, -CANARY]], "sequences[2][2]: got a negative number"),
    "too large": (
        [[0, 1], [1, CANARY]],
        "sequences[1][1]: got a number above 9; expected a state from 0 to 9",
    ),
    "unsigned": ([np.array([0, 2**63 + CANARY], dtype=np.uint64)], "sequences[0][1]: got a negative number"),
    "fraction": ([[0, 1], [0, 1.5, 2]], "sequences[1][1]: got dtype float64; expected integer"),
    "bool": ([[True, False]], "sequences[0][0]: got dtype bool"),
    "names": ([[0, str(CANARY)]], "sequences[0][1]: got dtype"),
    "none inside": ([[0, None]], "sequences[0][1]: got dtype object"),
    "huge": ([[0, 10**30 + CANARY]], "sequences[0][0]: got dtype object"),
    "nested": ([[[0, 1]]], "sequences[0]: got 2 dimensions"),
    "ragged": ([[[0, 1], [1]]], "sequences[0]: got rows of different lengths"),
    "string inside": ([str(CANARY)], "sequences[0]: got str"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_sequences_are_named_by_place_and_never_shown(case):
    sequences, said = BAD[case]
    for read in (lambda: fit(sequences, 10), lambda: keep_visited(sequences, 10)):
        with pytest.raises(InvalidInput) as refusal:
            read()
        assert str(refusal.value).startswith(said)
        assert "\n" not in str(refusal.value)
        assert "7356" not in str(refusal.value).replace("_", "")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"smoothing": -1}, "smoothing: got -1"),
        ({"smoothing": float("nan")}, "smoothing: got nan"),
        ({"smoothing": 1e-300}, "smoothing: got 1e-300"),
        ({"smoothing": "1"}, "smoothing: got 1"),
        ({"initial": "last"}, "initial: got last; expected one of occupancy, first, uniform"),
        ({"min_count": 0}, "min_count: got 0"),
        ({"min_count": 9}, "sequences: got 2 pairs seen, none 9 times"),
        ({"n_users": 0}, "n_users: got 0"),
        ({"n_states": 1}, "n_states: got 1"),
    ],
)
def test_options_are_checked(options, said):
    with pytest.raises(InvalidInput) as refusal:
        fit([[0, 1, 0]], **{"n_states": 2, **options})
    assert str(refusal.value).startswith(said)


def test_provenance_says_where_the_model_is_from_and_not_who():
    model = MarkovModel.fit(
        [[0, 1, 0], [1, 1]],
        2,
        smoothing=0.5,
        initial="first",
        step=300,
        n_users=2,
        source="gps.parquet",
        source_sha256="ab" * 32,
    )
    assert model.step == 300
    assert model.provenance == {
        "method": "maximum likelihood",
        "private": False,
        "smoothing": 0.5,
        "smoothing_support": "all pairs",
        "min_count": 1,
        "initial": "first",
        "n_users": 2,
        "source": "gps.parquet",
        "source_sha256": "ab" * 32,
        "counts": {
            "n_states": 2,
            "n_visited": 2,
            "n_sequences": 2,
            "n_transitions": 3,
            "dropped_transitions": 0,
            "dropped_pairs": 0,
            "possible_before_smoothing": 3,
            "possible": 4,
            "never_left": 0,
            "n_self_loops": 0,
        },
    }


@settings(max_examples=60)
@given(sequences_of)
def test_keep_visited_only_renames(case):
    n, sequences = case
    kept, renamed = keep_visited(sequences, n)
    assert kept.tolist() == sorted({state for sequence in sequences for state in sequence})
    assert [kept[sequence].tolist() for sequence in renamed] == sequences


def test_arrays_of_every_integer_kind():
    expected = fit([[0, 1, 2, 1]], 3)[0].digest
    for kind in (np.int8, np.uint8, np.int32, np.uint32, np.uint64):
        assert fit([np.array([0, 1, 2, 1], dtype=kind)], 3)[0].digest == expected
    assert fit(np.array([[0, 1, 2, 1]]), 3)[0].digest == expected
    assert fit(iter([(0, 1, 2, 1)]), 3)[0].digest == expected
    assert fit([range(3), [2, 1]], 3)[0].digest != expected


def test_sequences_without_a_move_are_refused_with_the_remedy():
    with pytest.raises(InvalidInput, match=r"no two states that follow each other; expected .* a longer step, or gap"):
        fit([[0], [1], [1]], n_states=2)
