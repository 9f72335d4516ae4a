"""Accepted rows are divided by their exact sum once; matrices that are none are refused before scipy reads them.

Fails where a row is divided twice, or by a rounded sum, and where a number of the smallest size is lost. Bad values are
in the catalogue (tests/faults).

A chain with a jump is the dense chain M' = (1 - λ) M + λ 1 u' in everything that takes one, and refused elsewhere.

It would fail where a consumer of the matrix forgets the jump, takes its weight from the matrix twice or not at all,
moves what jumped by the wrong law, or forwards by what is meant for backwards; and where floats lose a state that a
jump reaches.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import dphmm
from dphmm.accounting import couplable
from dphmm.audit.history import moved
from dphmm.choose.simulated import _jumped, walks
from dphmm.errors import InvalidInput
from dphmm.markov import MarkovModel
from dphmm.markov.filtering import Belief, likeliest_path
from dphmm.markov.hidden.parameters import checked
from dphmm.markov.stochastic import LEAST_SHARE, Jump, distribution, stochastic_matrix
from markov.test_filtering import brute, marginals, model_of, observations_of
from random_seeds import seeds

FAIR = [[0.5, 0.5], [0.5, 0.5]]
COUNTS = st.integers(2, 6).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, 9), min_size=n, max_size=n).filter(any), min_size=n, max_size=n).map(
        np.array
    )
)


@settings(max_examples=80)
@given(COUNTS, st.floats(-9e-10, 9e-10))
def test_rows_are_divided_by_their_exact_sum_once(counts, error):
    rows = counts / counts.sum(axis=1, keepdims=True) * (1 + error)
    found = stochastic_matrix(rows).matrix
    for exact, stored in zip(rows, found.toarray(), strict=True):
        total = sum(map(Fraction, exact))
        assert abs(sum(map(Fraction, stored)) - 1) < Fraction(1, 2**50)
        for x, y in zip(exact, stored, strict=True):
            assert abs(Fraction(x) / total - Fraction(y)) <= Fraction(y) / 2**50
    again = stochastic_matrix(found)
    assert again.matrix.data.tobytes() == found.data.tobytes()
    assert again.n_rescaled == 0
    assert distribution(distribution(rows[0], len(rows)), len(rows)).tobytes() == found.toarray()[0].tobytes()


def test_the_smallest_number_survives_rescaling():
    assert stochastic_matrix([[1 + 9e-10, 5e-324], [0.5, 0.5]]).matrix.nnz == 4
    assert distribution([1 + 9e-10, 5e-324], 2).tolist() == [1.0, 5e-324]


def test_what_was_rescaled_is_counted():
    found = stochastic_matrix(np.float32([[0.1, 0.9], [0.5, 0.5]]))
    assert found.n_rescaled == 1
    assert 1e-9 < found.worst < 1e-6
    with pytest.raises(InvalidInput, match=r"transition\[0\]: got row sum 1\.0000"):
        stochastic_matrix([[0.1, 0.9 + 1e-8], [0.5, 0.5]])


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array, sparse.csr_matrix])
@pytest.mark.parametrize("within", [10**6, -(10**6)])
def test_index_pointers_that_return_to_nothing_are_refused(kind, within):
    """With the last of them 0 scipy takes the matrix for an empty one, and writes as many entries as the others say."""
    matrix = kind((2, 2))
    matrix.indptr = np.array([0, within, 0])
    with pytest.raises(InvalidInput, match="transition: got a broken sparse matrix"):
        MarkovModel([1, 0], matrix)
    with pytest.raises(InvalidInput, match="transmat_: got a sparse matrix with wrong index arrays"):
        checked(np.array([1.0, 0.0]), matrix, np.array(FAIR), 2, 2)


N = 5


def chains(seed, rate=None, n=N, uniform=False):
    """A model with a jump and the model of the dense M'."""
    rng = np.random.default_rng(seed)
    rate = float(rng.choice([1e-6, 0.001, 0.2, 0.9])) if rate is None else rate
    into = np.full(n, 1 / n) if uniform else rng.dirichlet(np.ones(n)) * 0.9 + 0.1 / n
    plain = model_of(rng, n)
    first = np.eye(n)[rng.integers(n)] if rng.random() < 0.5 else plain.initial
    plain = dphmm.MarkovModel(first, plain.transition)
    jumping = plain.with_jump(rate, into)
    dense = (1 - rate) * plain.transition.toarray() + rate * jumping.jump.into
    return jumping, dphmm.MarkovModel(first, dense), rng


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 30))
def test_beliefs_are_those_of_the_dense_chain(seed, steps):
    jumping, dense, rng = chains(seed)
    one, other = Belief.initial(jumping), Belief.initial(dense)
    for t in range(1, steps + 1):
        one, other = one.predict(jumping, t), other.predict(dense, t)
        assert one.support.all() and np.array_equal(one.support, other.support)
        assert np.allclose(one.probability, other.probability, rtol=1e-12, atol=0)
        # Likelihoods that leave floats: the next move is made from logs.
        likelihood = rng.uniform(-900 if t % 3 == 0 else -5, 0, N)
        one, other = one.condition(likelihood), other.condition(likelihood)
        assert np.allclose(one.log_probability, other.log_probability, rtol=1e-11, atol=1e-11)
    many, each = (belief.predict_many(chain, 1, 7) for belief, chain in ((one, jumping), (other, dense)))
    assert np.allclose(many.probability, each.probability, rtol=1e-9, atol=1e-9)


@seeds(20)
def test_smoothing_and_the_likeliest_path_are_those_of_all_paths(seed):
    """Likelihoods of 10^-12 in floats and 10^-120 in logs, zeros, gaps; every path of M' is possible."""
    jumping, dense, rng = chains(seed, n=3)
    moves = [0, *rng.choice([1, 1, 2, 3], size=3)]
    likelihoods = 10.0 ** rng.uniform(-12 if seed % 2 else -60, 0, (4, 3))
    likelihoods[rng.random((4, 3)) < 0.15] = 0
    likelihoods[:, 0] = np.maximum(likelihoods[:, 0], 1e-9)
    prior = Belief.initial(jumping).predict(jumping, 1)
    observations = observations_of(likelihoods, moves, rng.random(4) < 0.5)
    expected, _, paths = brute(dense, prior.probability, likelihoods, moves)
    assert np.allclose(marginals(jumping, prior, observations), expected, rtol=1e-9, atol=1e-12)
    assert likeliest_path(jumping, prior, observations).tolist() in paths


def test_of_equal_paths_one_of_low_states_is_taken():
    plain = dphmm.MarkovModel(np.full(3, 1 / 3), np.full((3, 3), 1 / 3))
    observations = observations_of(np.ones((4, 3)), [0, 1, 1, 1])
    jumping = plain.with_jump(0.5)
    assert likeliest_path(jumping, Belief.initial(plain), observations).tolist() == [0, 0, 0, 0]


def test_supports():
    """A jump reaches everything from anything, and nothing from nothing; the audit says the same by its own rule."""
    jumping = dphmm.MarkovModel(np.eye(N)[0], np.eye(N), jump=0.001)
    dense = dphmm.MarkovModel(np.eye(N)[0], 0.999 * np.eye(N) + 0.001 / N)
    for mask in (np.eye(N, dtype=bool)[2], np.ones(N, dtype=bool), np.zeros(N, dtype=bool)):
        assert np.array_equal(jumping.reach(mask), dense.reach(mask))
        assert np.array_equal(jumping.reach(mask), moved(jumping, mask))
    assert not jumping.notes


def test_walks_jump_with_the_rate_and_move_otherwise():
    """The chances of a step laid evenly over 0..1: each next state has its share of them."""
    jumping, dense, _ = chains(8, rate=0.2)
    chance = (np.arange(100_000) + 0.5) / 100_000
    for state in range(N):
        to = _jumped(jumping, 1, np.full(len(chance), state), chance, None, None)
        shares = np.bincount(to, minlength=N) / len(chance)
        assert np.abs(shares - dense.transition.toarray()[state]).max() < 1e-4
    paths = walks(jumping, 50, 20, np.random.default_rng(1))
    assert paths.shape == (50, 20) and len(np.unique(paths)) == N


def test_a_digest_tells_jumps_apart_and_is_the_old_one_without():
    jumping, _, _ = chains(1, rate=0.2)
    plain = jumping.without_jump()
    told = (plain, jumping, plain.with_jump(0.2), plain.with_jump(0.3), plain.with_jump("0.3"))
    assert len({model.digest for model in told}) == 4
    assert plain.digest == dphmm.MarkovModel(plain.initial, plain.transition).digest
    assert dphmm.MarkovModel(plain.initial, plain.transition, jump=0).digest == plain.digest
    assert jumping.starting("at").jump is jumping.jump


@pytest.mark.parametrize("given", [1, -0.1, "x", float("nan"), True, 2])
def test_what_is_no_rate_is_refused(given):
    with pytest.raises(InvalidInput, match="jump"):
        dphmm.MarkovModel([1, 0], np.eye(2), jump=given)


def test_what_is_no_law_is_refused():
    plain = dphmm.MarkovModel([1, 0], np.eye(2))
    for into, said in (([1, 0], r"into\[1\]"), ([0.5, 0.6], "into"), ([1], "into"), ([1, LEAST_SHARE], r"into\[1\]")):
        with pytest.raises(InvalidInput, match=said):
            plain.with_jump(0.1, into)
    with pytest.raises(InvalidInput, match="the model's 2"):
        dphmm.MarkovModel([1, 0], np.eye(2), jump=Jump.of(0.1, 3))


def test_what_only_a_sparse_matrix_serves_refuses_a_jump():
    jumping, _, _ = chains(0, rate=0.001)
    space = dphmm.StateSpace(np.arange(N)[:, None])
    policy = dphmm.policy.radius(space, 1)
    asked = (
        lambda: jumping.transition,
        lambda: jumping.transition_at(1),
        lambda: dphmm.policy.transition(jumping),
        lambda: dphmm.accounting.temporal_leakage(jumping, [1.0, 1.0]),
        lambda: dphmm.accounting.policy_leakage(jumping, [np.ones((N, N)) - np.eye(N)] * 2, policy.edges()),
        lambda: dphmm.audit.sequence_loss(jumping, policy, space, 1, 2),
    )
    for ask in asked:
        with pytest.raises(InvalidInput, match=r"a jump of 0\.001"):
            ask()


def line(n):
    return np.array([(i, i + 1) for i in range(n - 1)])


def lazy(n, jump=None):
    """A walk that draws the same move everywhere and stays put at walls."""
    matrix = np.zeros((n, n))
    for at in range(n):
        for move in (-2, -1, 0, 1, 2):
            matrix[at, at + move if 0 <= at + move < n else at] += 0.2
    return dphmm.MarkovModel(np.full(n, 1 / n), matrix, start="at", jump=jump)


def test_a_couplable_chain_stays_couplable():
    """And the dense chain of it is couplable, by a search over all rows of it."""
    walk = lazy(7, 0.01)
    assert couplable(walk, line(7), 6).holds
    dense = dphmm.MarkovModel(walk.initial, 0.99 * walk.matrix.toarray() + 0.01 / 7, start="at")
    assert couplable(dense, line(7), 6).holds


def test_jumps_that_lead_to_one_end_alone_are_no_coupling():
    """Nobody moves, and hardly anybody jumps to state 0: who is at 1 may come from far away."""
    into = np.array([1e-6, *[(1 - 1e-6) / 3] * 3])
    jumping = dphmm.MarkovModel(np.full(4, 0.25), np.eye(4), start="at").with_jump(0.1, into)
    dense = dphmm.MarkovModel(jumping.initial, 0.9 * np.eye(4) + 0.1 * into, start="at")
    assert couplable(jumping.without_jump(), line(4), 3).holds
    assert couplable(dense, line(4), 3).hops == 3 and not couplable(jumping, line(4), 3).holds


@seeds(30)
def test_what_is_called_couplable_is_so_in_the_dense_chain(seed):
    """Random chains, mostly near to couplable ones, and laws of jumps; the dense chain never needs more hops."""
    rng = np.random.default_rng(seed)
    walk = lazy(5)
    matrix = walk.transition.toarray()
    if seed % 3 == 0:
        matrix = matrix * (1 - 0.02) + 0.02 * rng.dirichlet(np.ones(5), 5)
    into = np.full(5, 0.2) if seed % 2 else rng.dirichlet(np.ones(5)) * 0.9 + 0.02
    initial = np.full(5, 0.2) if seed % 5 else rng.dirichlet(np.ones(5))
    jumping = dphmm.MarkovModel(initial, matrix, start="at").with_jump(0.05, into)
    dense = dphmm.MarkovModel(initial, 0.95 * matrix + 0.05 * jumping.jump.into, start="at")
    assert couplable(dense, line(5), 4).hops <= couplable(jumping, line(5), 4).hops


def test_releases_are_those_of_the_dense_chain():
    """The same plans, the same answers from the same bits, estimates equal to rounding; and one plan for all steps."""
    jumping, dense, rng = chains(5, rate=0.01, n=9)
    space = dphmm.StateSpace(np.arange(9)[:, None])
    policy = dphmm.policy.radius(space, 1)
    sessions = [
        dphmm.ReleaseSession(chain, policy, space, 1, bits=dphmm.ReplayBits(3), start="before")
        for chain in (jumping, dense)
    ]
    hashes = set()
    for state in rng.integers(0, 9, 12):
        one, other = (session.release(int(state)) for session in sessions)
        assert one.z_lattice.tolist() == other.z_lattice.tolist()
        assert np.allclose(*(session.estimate().answer for session in sessions), rtol=1e-12)
        assert one.plan_hash == other.plan_hash
        hashes.add(one.plan_hash)
    assert len(hashes) == 1
