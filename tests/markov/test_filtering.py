"""Beliefs: predict and condition against exact fractions, and the support that no underflow may shrink."""

from __future__ import annotations

import math
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from dphmm.errors import InvalidInput
from dphmm.markov import Belief, MarkovModel


def corridor(n):
    """A lazy walk on n cells: stay 1/2, left or right 1/4, at the ends stay 3/4 (theory, underflow)."""
    side = np.full(n - 1, 0.25)
    middle = np.full(n, 0.5)
    middle[[0, -1]] = 0.75
    matrix = sparse.diags_array([side, middle, side], offsets=[-1, 0, 1])
    initial = np.zeros(n)
    initial[n // 2] = 1
    return MarkovModel(initial, matrix)


def log_fraction(x):
    """log of a positive fraction far below the smallest double."""
    shift = x.numerator.bit_length() - x.denominator.bit_length()
    return math.log(x / Fraction(2) ** shift) + shift * math.log(2)


@st.composite
def chains(draw):
    n = draw(st.integers(2, 5))
    # Powers of two down to 2^-1000 keep the rows exact and reach far below what a scaled float could hold.
    weight = st.one_of(st.just(0.0), st.sampled_from([1.0, 2.0**-3, 2.0**-60, 2.0**-1000, 5e-324]))
    rows = np.zeros((n, n))
    for i in range(n):
        rows[i] = draw(st.lists(weight, min_size=n, max_size=n))
        if rows[i].max() != 1.0:
            rows[i, draw(st.integers(0, n - 1))] = 1.0
    rows /= rows.sum(axis=1, keepdims=True)
    steps = draw(st.lists(st.lists(st.floats(-900, 900), min_size=n, max_size=n), min_size=1, max_size=5))
    return MarkovModel(np.eye(n)[draw(st.integers(0, n - 1))], rows), steps


@settings(max_examples=80, deadline=None)
@given(chains())
def test_filter_against_fractions(case):
    model, steps = case
    matrix = [[Fraction(x) for x in row] for row in model.transition.toarray()]
    n = model.n_states
    exact = [Fraction(x) for x in model.initial]
    belief = Belief.initial(model)
    for t, log_likelihood in enumerate(steps, start=1):
        exact = [sum(exact[i] * matrix[i][j] for i in range(n)) for j in range(n)]
        reached = model.reach(belief.support, t)
        belief = belief.predict(model, t)
        assert (belief.support == reached).all()
        check(belief, exact)
        # Fractions of floats: exp in doubles would underflow, 2^x with whole x is exact.
        whole = [round(x) for x in log_likelihood]
        exact = [p * Fraction(2) ** w for p, w in zip(exact, whole, strict=True)]
        exact = [p / sum(exact) for p in exact]
        belief = belief.condition(np.array(whole) * math.log(2))
        assert (belief.support == reached).all()
        check(belief, exact)


def check(belief, exact):
    for state, p in enumerate(exact):
        assert belief.support[state] == (p > 0)
        if p > 0:
            assert belief.log_probability[state] == pytest.approx(log_fraction(p), rel=1e-12, abs=2e-12)
        else:
            assert belief.log_probability[state] == -np.inf


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 30), st.integers(0, 2**32 - 1))
def test_predict_against_dense_floats(n, seed):
    random = np.random.default_rng(seed)
    matrix = random.random((n, n)) * (random.random((n, n)) < 0.4)
    matrix[np.arange(n), random.integers(0, n, n)] += 0.1
    matrix /= matrix.sum(axis=1, keepdims=True)
    initial = random.dirichlet(np.ones(n))
    belief = Belief.initial(MarkovModel(initial, matrix)).predict(MarkovModel(initial, matrix), 1)
    assert belief.probability == pytest.approx(initial @ matrix, rel=1e-12)


def plain_predict(model, belief):
    """log(p M) by logsumexp over the predecessors, column by column."""
    matrix = model.transition.toarray()
    logs = np.full(model.n_states, -np.inf)
    for j in range(model.n_states):
        sources = [i for i in range(model.n_states) if belief.support[i] and matrix[i, j] > 0]
        if sources:
            terms = [belief.log_probability[i] + math.log(matrix[i, j]) for i in sources]
            logs[j] = max(terms) + math.log(math.fsum(math.exp(x - max(terms)) for x in terms))
    return logs


def test_columns_on_both_sides_of_underflow_agree_with_logs():
    """Log-probabilities from 0 to -1500 side by side: scaled sums and sums in logs meet without a seam."""
    n = 301
    model = corridor(n)
    logs = -5.0 * np.arange(n)
    belief = Belief(logs - np.log(np.exp(logs).sum()), np.ones(n, dtype=bool))
    assert belief.predict(model, 1).log_probability == pytest.approx(plain_predict(model, belief), abs=1e-12)


def test_corridor_never_loses_a_possible_state():
    """Theory, underflow: r = 1 cell, epsilon = 1, releases at the middle; floats keep 74 of 1001 cells."""
    n, horizon = 1001, 500
    model = corridor(n)
    distance = np.abs(np.arange(n) - n // 2)
    belief, mask = Belief.initial(model), model.support_at_start
    floats, dense = model.initial, model.transition
    first_loss = None
    for t in range(1, horizon + 1):
        mask = model.reach(mask, t)
        belief = belief.predict(model, t).condition(-1.0 * distance)
        floats = floats @ dense * np.exp(-1.0 * distance)
        floats = floats / floats.sum()
        if first_loss is None and np.count_nonzero(floats) < np.count_nonzero(mask):
            first_loss = t
        assert (belief.support == mask).all()
        assert (np.isfinite(belief.log_probability) == mask).all()
    assert belief.support.all()
    assert belief.log_probability.min() < -10_000
    # The float twin of the same filter fails, as measured: this test can tell the two apart.
    assert first_loss is not None
    assert first_loss < 60
    assert np.count_nonzero(floats) < 100


def test_far_below_the_smallest_double():
    model = MarkovModel([1, 0, 0], [[1.0, 5e-324, 0], [0, 1.0, 5e-324], [0, 0, 1.0]])
    belief = Belief.initial(model)
    for t in range(1, 3):
        belief = belief.predict(model, t)
    assert belief.support.all()
    assert belief.log_probability[2] == pytest.approx(2 * math.log(5e-324))
    assert belief.probability[2] == 0.0


def test_running_example(example):
    """THEORY 10: from s1, after one move, s2 and s4 with probability one half each."""
    belief = Belief.initial(example).predict(example, 1)
    assert belief.probability.tolist() == [0, 0.5, 0, 0.5, 0, 0]
    # Likelihoods of z = (3/2, 1), up to a constant, as the posterior printed there implies.
    belief = belief.condition(np.log([1, 0.62246, 1, 0.37754, 1, 1]))
    assert belief.probability[[1, 3]] == pytest.approx([0.62246, 0.37754], abs=1e-9)
    assert (np.flatnonzero(belief.predict(example, 2).support) + 1).tolist() == [2, 3, 5]


def test_condition_restricts_only_by_the_set(example):
    belief = Belief.initial(example).predict(example, 1)
    # Outside what remains a likelihood may be anything.
    narrowed = belief.condition([np.nan, -1e5, np.inf, -np.inf, 0, 0], support=[0, 1, 2])
    assert narrowed.support.tolist() == [False, True, False, False, False, False]
    assert narrowed.log_probability[1] == 0
    same = belief.condition(np.full(6, -1e300), support=None)
    assert same.probability == pytest.approx(belief.probability)


def test_impossible_answers_are_the_callers_error(example):
    belief = Belief.initial(example).predict(example, 1)
    with pytest.raises(InvalidInput, match="log_likelihood: got no finite value on the support"):
        belief.condition(np.full(6, -np.inf))
    with pytest.raises(InvalidInput, match=r"log_likelihood\[3\]: got -inf; expected a finite value"):
        belief.condition([0, 0, 0, -np.inf, 0, 0])
    with pytest.raises(InvalidInput, match=r"log_likelihood\[1\]: got nan"):
        belief.condition([0, np.nan, 0, 0, 0, 0])
    with pytest.raises(InvalidInput, match=r"log_likelihood\[1\]: got inf"):
        belief.condition([0, np.inf, 0, 0, 0, 0])
    with pytest.raises(InvalidInput, match="excludes every possible state"):
        belief.condition(np.zeros(6), support=[0, 2])
    with pytest.raises(InvalidInput, match=r"log_likelihood: got shape \(5,\)"):
        belief.condition(np.zeros(5))
    with pytest.raises(InvalidInput, match="model: got 2 states; expected the belief's 6"):
        belief.predict(MarkovModel([1, 0], np.eye(2)), 1)


@pytest.mark.parametrize(
    ("logs", "support", "said"),
    [
        ([0.0, -np.inf], [True, True], "disagree"),
        ([0.0, 0.0], [True, False], "disagree"),
        ([0.0, np.nan], [True, False], "disagree"),
        ([0.0, np.inf], [True, True], "disagree"),
        ([-np.inf, -np.inf], [False, False], "no state"),
        ([0.0], [True, False], "one per state"),
        ([0.0, 0.0], [1, 1], "one per state"),
    ],
)
def test_a_belief_is_always_consistent(logs, support, said):
    with pytest.raises(InvalidInput, match=said):
        Belief(np.array(logs), np.array(support))


def test_beliefs_are_frozen_and_own_their_arrays(example):
    logs, support = np.array([0.0, -np.inf]), np.array([True, False])
    belief = Belief(logs, support)
    logs[0] = -5
    assert belief.log_probability[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        belief.support[1] = True
    with pytest.raises(AttributeError):
        belief.support = support  # type: ignore[misc]


def test_start_is_left_to_the_caller(example, example_matrix):
    """The initial distribution is returned as it is, of t = 0 or of t = 1."""
    at = MarkovModel(example.initial, example_matrix, start="at")
    assert (Belief.initial(at).log_probability == Belief.initial(example).log_probability).all()


@pytest.mark.long
def test_a_step_takes_well_under_a_millisecond():
    side = 60
    n = side * side
    x, y = np.divmod(np.arange(n), side)
    offsets = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1)]
    rows, columns = [], []
    for a, b in offsets:
        inside = np.isin(x + a, range(side)) & np.isin(y + b, range(side))
        rows.append(np.flatnonzero(inside))
        columns.append(((x + a) * side + y + b)[inside])
    counts = sparse.csr_array(
        (np.ones(sum(map(len, rows))), (np.concatenate(rows), np.concatenate(columns))), shape=(n, n)
    )
    model = MarkovModel(np.full(n, 1 / n), sparse.csr_array(counts / counts.sum(axis=1)[:, None]))
    belief = Belief.initial(model).predict(model, 1)
    best = min(_seconds(lambda: belief.predict(model, 1)) for _ in range(20))
    assert best < 1e-3


def _seconds(call):
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


@pytest.mark.parametrize("steps", [0, 1, 7, 40])
def test_predicting_many_steps_is_predicting_again_and_again(steps):
    rng = np.random.default_rng(steps)
    moves = rng.random((6, 6)) * (rng.random((6, 6)) < 0.5) + np.eye(6)
    model = MarkovModel(np.eye(6)[0], moves / moves.sum(axis=1, keepdims=True))
    one_by_one = belief = Belief.initial(model)
    for t in range(steps):
        one_by_one = one_by_one.predict(model, t=3 + t)
    many = belief.predict_many(model, 3, steps)
    assert np.array_equal(many.support, one_by_one.support)
    assert np.allclose(many.probability, one_by_one.probability, rtol=0, atol=1e-8)


def test_a_periodic_chain_never_settles_and_ends_on_its_own_phase():
    model = MarkovModel(np.array([1.0, 0.0]), np.array([[0.0, 1.0], [1.0, 0.0]]))
    for steps in (1000, 1001):
        assert Belief.initial(model).predict_many(model, 1, steps).support.tolist() == [steps % 2 == 0, steps % 2 == 1]


def test_what_grows_slowly_is_taken_for_settled():
    """What docs/proofs/support.md says is not claimed: a change that is small now can be large over a long skip."""
    moves, steps = 1e-11, 2**20
    model = MarkovModel(np.array([1.0, 0.0]), np.array([[1 - moves, moves], [0.0, 1.0]]))
    many = Belief.initial(model).predict_many(model, 1, steps).probability[1]
    assert 0 < many < 1e-10 < 1e-5 < -np.expm1(steps * np.log1p(-moves))


def test_a_long_gap_keeps_the_support_of_every_step():
    """A corridor widens by one cell a step: stopping early would lose cells."""
    n = 400
    moves = np.eye(n) + np.eye(n, k=1) + np.eye(n, k=-1)
    model = MarkovModel(np.eye(n)[0], moves / moves.sum(axis=1, keepdims=True))
    assert Belief.initial(model).predict_many(model, 1, 250).support.sum() == 251
