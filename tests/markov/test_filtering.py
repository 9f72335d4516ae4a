"""Beliefs: predict and condition against exact fractions, and the support that no underflow may shrink.

Smoothing and Viterbi equal the sums and the largest term over all paths.

Claims: marginals are those of the joint law of all paths, gaps and excluded states included; the path is one of the
likeliest over all moves; blocks of any size give the same; nothing possible becomes 0 where floats underflow. Fails
where a gap is moved once too often, where a block forgets what came after it, where a likelihood is applied twice,
where a zero of the matrix is walked, or where a product that underflows is taken for impossible.
"""

from __future__ import annotations

import itertools
import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import dphmm
from dphmm.errors import InvalidInput
from dphmm.markov import Belief, MarkovModel, filtering, smoothing
from dphmm.markov.filtering import LikelihoodRows, ObservationTable, likeliest_path
from dphmm.markov.smoothing import Observed, smooth
from random_seeds import seeds


def corridor(n, start=None):
    """A lazy walk on n cells: stay 1/2, left or right 1/4, at the ends stay 3/4 (theory, underflow)."""
    side = np.full(n - 1, 0.25)
    middle = np.full(n, 0.5)
    middle[[0, -1]] = 0.75
    matrix = sparse.diags_array([side, middle, side], offsets=[-1, 0, 1])
    initial = np.zeros(n)
    initial[n // 2 if start is None else start] = 1
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


@settings(max_examples=80)
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


def test_what_grows_slowly_has_not_settled():
    """A move in 10^11 leads on: after a million steps that is one in 10^5, which an answer may make certain."""
    moves, steps = 1e-11, 2**20
    model = MarkovModel(np.array([1.0, 0.0]), np.array([[1 - moves, moves], [0.0, 1.0]]))
    many = Belief.initial(model).predict_many(model, 1, steps).probability[1]
    assert many == pytest.approx(-np.expm1(steps * np.log1p(-moves)), rel=1e-6)


@pytest.mark.parametrize("logged", [False, True])
def test_what_is_rare_is_moved_as_what_is_common(logged):
    """Against move after move: a class that people leave slowly, one that they enter slowly, one left for good."""
    moves = np.array([[0.5, 0.5 - 1e-12, 1e-12, 0], [0.5, 0.5, 0, 0], [0, 0, 1, 0], [0.05, 0, 0, 0.95]])
    model = MarkovModel(np.array([0.6, 0.3, 0.0, 0.1]), moves)
    belief = Belief.initial(model)
    if logged:
        belief = Belief(np.array([np.log(0.6), np.log(0.4), -np.inf, -700.0]), np.array([True, True, False, True]))
    one_by_one = belief
    for t in range(3000):
        one_by_one = one_by_one.predict(model, t + 1)
    many = belief.predict_many(model, 1, 3000)
    kept = one_by_one.probability > 1e-90
    assert np.allclose(many.probability[kept], one_by_one.probability[kept], rtol=1e-8, atol=0)
    assert np.array_equal(many.support, one_by_one.support)


@pytest.mark.parametrize("rare", [1e-120, 1e-285, 0.0])
def test_what_is_left_for_good_shrinks_at_every_step(rare):
    """However little it is, however a gap is cut: two places that are left with 1 % a step, beside two closed ones."""
    moves = np.array([[0.5, 0.49, 0.01, 0], [0.49, 0.5, 0, 0.01], [0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5]])
    model = MarkovModel(np.full(4, 0.25), moves)
    logs = np.log([rare, rare, 0.5, 0.5]) if rare else np.array([-900.0, -901.0, *np.log([0.5, 0.5])])
    begin = Belief(logs, np.ones(4, dtype=np.bool_))
    one_by_one = begin
    for t in range(1000):
        one_by_one = one_by_one.predict(model, t + 1)
    cut = begin
    for steps in (1, 10, 189, 800):
        cut = cut.predict_many(model, 1, steps)
    for many in (begin.predict_many(model, 1, 1000), cut):
        assert np.allclose(many.log_probability, one_by_one.log_probability, rtol=0, atol=1e-8)


def test_a_long_gap_keeps_the_support_of_every_step():
    """A corridor widens by one cell a step: stopping early would lose cells."""
    n = 400
    moves = np.eye(n) + np.eye(n, k=1) + np.eye(n, k=-1)
    model = MarkovModel(np.eye(n)[0], moves / moves.sum(axis=1, keepdims=True))
    assert Belief.initial(model).predict_many(model, 1, 250).support.sum() == 251


def observations_of(values, moves, logged=None):
    """Rows as they are, each in logs or in floats, so many moves apart."""
    rows = np.array(values, dtype=np.float64)
    logged = np.zeros(len(rows), dtype=bool) if logged is None else logged
    with np.errstate(divide="ignore"):
        rows[logged] = np.log(rows[logged])
    return ObservationTable.of(rows, moves=np.array(moves), logged=logged)


def brute(model, prior, likelihoods, moves):
    """Marginals, the best log-probability, and the best paths at the observations, from every path there is."""
    matrix, n = model.transition.toarray(), model.n_states
    seen = np.cumsum(moves)
    weights, best, paths = np.zeros((len(moves), n)), -math.inf, []
    for path in itertools.product(range(n), repeat=int(seen[-1]) + 1):
        p = prior[path[0]] * math.prod(matrix[a, b] for a, b in itertools.pairwise(path))
        p *= math.prod(likelihoods[k][path[at]] for k, at in enumerate(seen))
        if p == 0:
            continue
        for k, at in enumerate(seen):
            weights[k, path[at]] += p
        shown = [path[at] for at in seen]
        if math.log(p) > best + 1e-9:
            best, paths = math.log(p), [shown]
        elif math.log(p) > best - 1e-9:
            paths.append(shown)
    # Where no path is possible there are no marginals.
    with np.errstate(invalid="ignore"):
        return weights / weights.sum(axis=1, keepdims=True), best, paths


def model_of(rng, n, zeros=True):
    matrix = rng.random((n, n)) ** 3
    if zeros:
        matrix[rng.random((n, n)) < 0.35] = 0
        matrix[np.arange(n), rng.integers(0, n, n)] += 0.1
    return dphmm.MarkovModel(rng.dirichlet(np.ones(n)), matrix / matrix.sum(axis=1, keepdims=True))


def marginals(model, prior, observations, block=None, t=1):
    one = Observed(prior, observations, t)
    return smooth(model, [one], np.empty((model.n_states, 0)), marginals=True, block=block)[0].marginals


@pytest.fixture(params=["floats", "logs"])
def arithmetic(request, monkeypatch):
    """As it comes, and where no certificate is good enough."""
    if request.param == "logs":
        monkeypatch.setattr(smoothing, "DOUBT", 0.0)


@seeds(12)
@pytest.mark.parametrize("block", [None, 1, 2])
def test_equal_to_all_paths(seed, block, arithmetic):
    """Three states, seven times, gaps of up to three moves, likelihoods over 12 orders of magnitude, some of them 0."""
    rng = np.random.default_rng(seed)
    model = model_of(rng, 3)
    moves = [0, *rng.choice([1, 1, 2, 3], size=3)]
    likelihoods = 10.0 ** rng.uniform(-12, 0, (4, 3))
    likelihoods[rng.random((4, 3)) < 0.15] = 0
    prior = dphmm.markov.Belief.initial(model)
    observations = observations_of(likelihoods, moves, rng.random(4) < 0.5)
    expected, best, paths = brute(model, prior.probability, likelihoods, moves)
    if best == -math.inf:
        with pytest.raises(InvalidInput, match="no possible state"):
            marginals(model, prior, observations, block)
        with pytest.raises(InvalidInput, match="no possible state"):
            likeliest_path(model, prior, observations, block=block)
        return
    got = marginals(model, prior, observations, block)
    assert np.allclose(got, expected, rtol=1e-9, atol=1e-12)
    assert likeliest_path(model, prior, observations, block=block).tolist() in paths


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(2, 5))
def test_blocks_change_nothing(seed, block, n):
    rng = np.random.default_rng(seed)
    model = model_of(rng, n)
    t = int(rng.integers(1, 12))
    moves = np.concatenate([[0], rng.choice([1, 1, 1, 2, 9, 40], size=t - 1)])
    observations = observations_of(10.0 ** rng.uniform(-200, 0, (t, n)), moves)
    prior = dphmm.markov.Belief.initial(model)
    got = marginals(model, prior, observations, block)
    assert np.allclose(got, marginals(model, prior, observations), rtol=1e-9, atol=1e-300)
    assert np.array_equal(
        likeliest_path(model, prior, observations, block=block), likeliest_path(model, prior, observations)
    )


def log_marginals(model, prior, logs):
    """Marginals by logsumexp alone: slow, and without any float that could underflow."""
    with np.errstate(divide="ignore"):
        matrix, initial = np.log(model.transition.toarray()), np.log(prior.probability)

    def summed(x, axis):
        top = x.max(axis=axis, keepdims=True)
        top = np.where(np.isfinite(top), top, 0)
        with np.errstate(divide="ignore"):
            return np.log(np.exp(x - top).sum(axis=axis)) + top.squeeze(axis)

    alpha, beta = [initial + logs[0]], [np.zeros(len(initial))]
    for row in logs[1:]:
        alpha.append(summed(alpha[-1][:, None] + matrix, 0) + row)
    for row in logs[:0:-1]:
        beta.append(summed(matrix + (row + beta[-1])[None], 1))
    joint = np.array(alpha) + np.array(beta[::-1])
    return np.exp(joint - summed(joint, 1)[:, None])


def test_likelihoods_that_underflow():
    """A corridor on which each answer is e^-900 per cell off: no product of two steps is a float.

    Right by logsumexp to 1e-9. The last answer is at the far end, where floats held 0 from the second step on: taken
    for impossible, the path could not end there.
    """
    n, t = 12, 14
    matrix = np.diag(np.full(n, 0.5)) + np.diag(np.full(n - 1, 0.5), 1)
    matrix[-1, -1] = 1
    model = dphmm.MarkovModel(np.eye(n)[0], matrix, start="at")
    centres = np.minimum(np.arange(t), n - 1)
    centres[3] = 0
    logs = -900.0 * np.abs(np.arange(n)[None] - centres[:, None])

    prior, observed = dphmm.markov.Belief.initial(model), ObservationTable.of(logs, logged=True)
    got = marginals(model, prior, observed)
    expected = log_marginals(model, prior, logs)
    assert np.allclose(got, expected, atol=1e-9)
    assert got[-1, n - 1] > 0.99
    path = likeliest_path(model, prior, observed)
    scored = logs[np.arange(t), path].sum()
    assert path[-1] == n - 1 and np.all(np.isin(np.diff(path), (0, 1)))
    assert scored == pytest.approx(-900 * 3, abs=1e-6)


def test_a_product_of_what_came_before_and_after_may_be_below_every_float():
    """Before: surely state 0, but for 1e-200. After: 1e-200 against it. Each is a float, the product of both is not."""
    model = dphmm.MarkovModel([1 - 1e-200, 1e-200], np.eye(2), start="at")
    got = marginals(
        model,
        dphmm.markov.Belief.initial(model),
        observations_of([[1.0, 1e-200], [1e-250, 1.0], [1e-250, 1.0]], [0, 1, 1]),
    )
    assert np.allclose(got, [[0, 1]] * 3)
    got = marginals(
        model,
        dphmm.markov.Belief.initial(model),
        observations_of([[1.0, 1e-200], [1e-200, 1.0], [1e-200, 1.0]], [0, 1, 1]),
    )
    assert np.allclose(got, [[0.5, 0.5]] * 3)


def test_long_gaps_settle_at_the_long_run():
    """A gap of 50 million moves forgets: both ends are as without each other. On a periodic chain nothing settles."""
    rng = np.random.default_rng(4)
    model = model_of(rng, 5, zeros=False)
    prior, rows = dphmm.markov.Belief.initial(model), rng.random((2, 5))
    got = marginals(model, prior, observations_of(rows, [0, 50_000_000]))
    lasting = np.linalg.matrix_power(model.transition.toarray(), 4096)[0]
    first, last = prior.probability * rows[0], lasting * rows[1]
    assert np.allclose(got, [first / first.sum(), last / last.sum()], atol=1e-8)
    stay = int(np.argmax(np.diag(model.transition.toarray())))
    path = likeliest_path(model, prior, observations_of(rows, [0, 50_000_000]))
    other = likeliest_path(model, prior, observations_of(rows, [0, 60_000_000]))
    assert np.array_equal(path, other) and 0 <= stay < 5

    swap = dphmm.MarkovModel([0.5, 0.5], [[0, 1], [1, 0]], start="at")
    rows = [[0.9, 0.1], [0.5, 0.5]]
    got = marginals(swap, dphmm.markov.Belief.initial(swap), observations_of(rows, [0, 1001]))
    assert np.allclose(got, [[0.9, 0.1], [0.1, 0.9]])
    assert likeliest_path(swap, dphmm.markov.Belief.initial(swap), observations_of(rows, [0, 1001])).tolist() == [0, 1]


def test_a_state_that_fades_over_a_gap_is_kept_by_what_comes_after():
    """Halves of a transient state are left at every move; seen after 3,000 moves, it was that state all along.

    The message of that answer falls below every float on its way back, and may not be taken for settled there.
    """
    model = dphmm.MarkovModel([0.5, 0.3, 0.2], [[0.5, 0.25, 0.25], [0, 1, 0], [0, 0, 1]], start="at")
    rows = [[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]]
    got = marginals(model, dphmm.markov.Belief.initial(model), observations_of(rows, [0, 900]))
    assert np.allclose(got, [[1, 0, 0], [1, 0, 0]])
    assert likeliest_path(model, dphmm.markov.Belief.initial(model), observations_of(rows, [0, 900])).tolist() == [0, 0]


def test_what_fades_has_not_settled():
    """Two states are left at nearly the same rate: 900 moves on and back, what is small still tells them apart."""
    stay = np.array([0.9, 0.899])
    matrix = [[stay[0], 0, 1 - stay[0]], [0, stay[1], 1 - stay[1]], [0, 0, 1]]
    model = dphmm.MarkovModel([0.5, 0.3, 0.2], matrix, start="at")
    got = marginals(model, dphmm.markov.Belief.initial(model), observations_of([[1, 1, 1], [1, 1, 0]], [0, 900]))
    weights = np.array([0.5, 0.3]) * stay**900
    assert np.allclose(got[:, :2], weights / weights.sum(), rtol=1e-6)


@pytest.mark.parametrize("gap", [1000, 1001, 10**7 + 3])
@pytest.mark.parametrize("block", [None, 3])
def test_moves_that_repeat_themselves_are_all_traced(gap, block):
    """A ring on which everybody moves on: where a path began follows from where it ends and from the gap alone."""
    model = dphmm.MarkovModel(np.full(7, 1 / 7), np.roll(np.eye(7), 1, axis=1), start="at")
    rows = [np.ones(7), np.eye(7)[3]]
    path = likeliest_path(model, dphmm.markov.Belief.initial(model), observations_of(rows, [0, gap]), block=block)
    assert path.tolist() == [(3 - gap) % 7, 3]


def test_one_possible_state():
    model = dphmm.MarkovModel([1.0, 0.0], np.eye(2))
    observations = observations_of([[0.3, 0.9], [1e-280, 1.0]], [0, 5])
    assert np.array_equal(marginals(model, dphmm.markov.Belief.initial(model), observations), [[1.0, 0.0]] * 2)
    assert likeliest_path(model, dphmm.markov.Belief.initial(model), observations).tolist() == [0, 0]


class Endless:
    """100,000 observations that are made when asked for."""

    def __init__(self, t, n):
        self.moves = np.ones(t, dtype=np.int64)
        self.moves[0] = 0
        self.n, self.most = n, 0

    def rows(self, first, last):
        self.most = max(self.most, last - first)
        at = (np.arange(first, last)[:, None] * 7 + np.arange(self.n)[None] * 5) % 11
        return LikelihoodRows(np.exp(-0.3 * at), np.zeros(last - first, dtype=bool), np.arange(last - first))


def test_long_sequences_hold_few_rows(monkeypatch):
    """10^5 steps of 40 states: some hundred rows at a time, and the same as all at once."""
    monkeypatch.setattr(filtering, "_KEPT", 1)
    monkeypatch.setattr(smoothing, "KEPT", 1)
    rng = np.random.default_rng(8)
    model, t = model_of(rng, 40, zeros=False), 100_000
    prior, endless, third = dphmm.markov.Belief.initial(model), Endless(t, 40), np.eye(40)[:, [3]]
    smooth(model, [Observed(prior, Endless(100, 40))], third)
    likeliest_path(model, prior, Endless(100, 40))
    tracemalloc.start()
    (got,) = smooth(model, [Observed(prior, endless)], third)
    path = likeliest_path(model, prior, endless)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert endless.most <= 2 * math.isqrt(t)
    # A row for every step would be 32 MB, its logs and messages as much again; steps alone are 0.8 MB an array.
    assert peak < 16e6
    monkeypatch.undo()
    (whole,) = smooth(model, [Observed(prior, Endless(t, 40))], third)
    assert np.allclose(got.mean, whole.mean, rtol=1e-12) and np.array_equal(got.state, whole.state)
    assert np.array_equal(path, likeliest_path(model, prior, Endless(t, 40), block=t))


@pytest.mark.parametrize("rate", [0.0, 0.2])
@pytest.mark.parametrize("block", [None, 1, 2])
@pytest.mark.parametrize("t", [1, 2, 9])
def test_a_matrix_of_its_own_at_every_step(t, block, rate):
    """Every path is written out with the matrix of each of its moves; the first observation is at step t.

    Hours are even and odd: the matrix is that of the hour which a move leaves, and a jump goes anywhere alike.
    """
    rng = np.random.default_rng(3 * t + (block or 0))
    chains = [model_of(rng, 3, zeros=False).transition.toarray() for _ in range(2)]
    slots = dphmm.markov.Slots(period="2h", width="1h")
    chain = dphmm.MarkovModel([0.5, 0.2, 0.3], chains, slots=slots, step=3600, jump=rate or None)
    moves, likelihoods = np.array([0, 1, 3, 1, 2]), rng.uniform(0.1, 1.0, (5, 3))
    prior = dphmm.markov.Belief(np.log([0.5, 0.2, 0.3]), np.ones(3, dtype=bool))
    seen, joint = np.cumsum(moves), {}
    moving = [(1 - rate) * chains[(step - 1) % 2] + rate / 3 for step in range(t + 1, t + 1 + int(seen[-1]))]
    for path in itertools.product(range(3), repeat=int(seen[-1]) + 1):
        chance = prior.probability[path[0]]
        for matrix, (before, after) in zip(moving, itertools.pairwise(path), strict=True):
            chance *= matrix[before, after]
        joint[path] = chance * np.prod([likelihoods[k][path[at]] for k, at in enumerate(seen)])
    whole = sum(joint.values())
    expected = np.zeros((5, 3))
    for path, chance in joint.items():
        expected[range(5), [path[at] for at in seen]] += chance / whole
    observed = observations_of(likelihoods, moves)
    assert marginals(chain, prior, observed, block, t) == pytest.approx(expected, abs=1e-12)
    best = max(joint.values())
    likeliest = [path for path, chance in joint.items() if chance >= best * (1 - 1e-12)]
    found = likeliest_path(chain, prior, observed, block=block, t=t).tolist()
    assert found in [[path[at] for at in seen] for path in likeliest]
    # The check can fail: one step later the chain moves by the other matrix.
    assert abs(marginals(chain, prior, observed, t=t + 1) - expected).max() > 1e-3
