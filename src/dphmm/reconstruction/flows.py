"""The likeliest flows of a population between states, from every two answers of a person that follow each other.

Given the states, the noise of two answers is independent: their likelihood is the product of both. Expectation
maximisation then takes two products of matrices an iteration, and stops early as that of a density does, but by one of
the ten parts of the people alone. It starts from
flows that are likelier the nearer two states are: by the mean distance of a move of the public model.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.reconstruction.answers import Answers
from dphmm.reconstruction.density import Fitted, Likelihoods, of_few, part_of, totals
from dphmm.states.space import StateSpace
from dphmm.types import FloatArray, IntArray

#: Flows between so many states are estimated, at most.
MOST_STATES = 2048
#: Likelihoods of pairs that are multiplied together.
_TOGETHER = 2**22
_MOST_LIKELIHOODS = 2**26
MOST_ITERATIONS = 300
_WITHOUT, _PATIENCE = 20, 10


class Pairs(NamedTuple):
    """Different pairs (m,) of answers: the outcome of each of the two, what it counts, and what of it was held out."""

    first: IntArray
    second: IntArray
    weights: FloatArray
    held: FloatArray


def first_guess(q: FloatArray, model: MarkovModel, space: StateSpace) -> FloatArray:
    """Flows (N, N) to start from: q of both states, less the farther they are apart."""
    points = space.own_answers
    apart = space.distances(points[:, None], points[None])
    if model.secrets is None:
        step = float(q @ np.asarray(model.moves.multiply(apart).sum(axis=1)).ravel())
    else:
        # The latent states of a secret alike: it is only where to start from.
        moves, secret = model.moves.tocoo(), model.secrets
        before, after = moves.coords
        share = (q / np.bincount(secret))[secret]
        step = float((share[before] * moves.data) @ apart[secret[before], secret[after]])
    # Of a model that never moves, every two states are alike far.
    scale = step if step > 0 else max(1.0, float(apart.max()))
    guess = q[:, None] * q[None] * np.exp(-apart / scale)
    return np.asarray(guess / guess.sum())


def flows(pairs: tuple[Answers, Answers], q: FloatArray, model: MarkovModel, space: StateSpace) -> Fitted | None:
    """The flows (N, N) between the states of pairs of answers, as `Answers.pairs` has them; rows are origins.

    None where nobody has two answers, or too many of the pairs are under laws of few people. Raises InvalidInput for
    more than 2048 states.
    """
    if space.n_states > MOST_STATES:
        raise InvalidInput("flows", f"{space.n_states:,} states", f"at most {MOST_STATES:,}")
    origins, after = pairs
    if not len(origins):
        return None
    weights = origins.weights()
    laws = np.column_stack([origins.law, after.law])
    if of_few(laws, origins.person, weights):
        return None
    out = part_of(origins.people)[origins.person] == 0
    start, flow, iterations = first_guess(q, model, space), np.zeros((len(q), len(q))), 0
    for earlier, later in np.unique(laws, axis=0).tolist():
        of_laws = np.flatnonzero((laws == [earlier, later]).all(axis=1))
        z, first = np.unique(origins.z[of_laws], axis=0, return_inverse=True)
        then, second = np.unique(after.z[of_laws], axis=0, return_inverse=True)
        kinds, number = np.unique(np.column_stack([first.reshape(-1), second.reshape(-1)]), axis=0, return_inverse=True)
        number = number.reshape(-1)
        counted = totals(number, weights[of_laws], len(kinds))
        held = totals(number, weights[of_laws] * out[of_laws], len(kinds))
        sides = Likelihoods(origins.plans[earlier], z), Likelihoods(origins.plans[later], then)
        fitted = likeliest_flows(*sides, Pairs(kinds[:, 0], kinds[:, 1], counted, held), start)
        flow += weights[of_laws].sum() * fitted.q
        iterations = max(iterations, fitted.iterations)
    return Fitted(flow / flow.sum(), iterations)


def likeliest_flows(origins: Likelihoods, destinations: Likelihoods, pairs: Pairs, start: FloatArray) -> Fitted:
    """The flows (N, N) under which pairs of answers are likely, from a start (N, N)."""
    a, b = _whole(origins), _whole(destinations)
    learning = np.maximum(pairs.weights - pairs.held, 0.0)
    best = _WITHOUT
    if pairs.held.any() and learning.any():
        best = _best_iterations(a, b, pairs, learning / learning.sum(), start)
    flow, weights = start, pairs.weights / pairs.weights.sum()
    for _ in range(best):
        flow, _ = improved(flow, a, b, pairs, weights)
    return Fitted(flow / flow.sum(), best)


def improved(
    flow: FloatArray, a: FloatArray, b: FloatArray, pairs: Pairs, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Flows (N, N) after one more iteration, and the probability (m,) of each pair under those before.

    a, b : likelihoods (D, N) of the first and of the second answers. weights : of the pairs (m,), together 1.
    """
    through, chance = a @ flow, np.empty(len(pairs.first))
    size = max(1, _TOGETHER // len(flow))
    for at in range(0, len(chance), size):
        part = slice(at, at + size)
        chance[part] = np.einsum("is,is->i", through[pairs.first[part]], b[pairs.second[part]])
    shares = sparse.csr_matrix((weights / chance, (pairs.first, pairs.second)), shape=(len(a), len(b)))
    return flow * (a.T @ (shares @ b)), chance


def _best_iterations(a: FloatArray, b: FloatArray, pairs: Pairs, learning: FloatArray, start: FloatArray) -> int:
    flow, best, highest, seen = start, 0, -np.inf, pairs.held > 0
    for iteration in range(MOST_ITERATIONS):
        moved, chance = improved(flow, a, b, pairs, learning)
        log_likelihood = float(pairs.held[seen] @ np.log(chance[seen]))
        if log_likelihood > highest:
            best, highest = iteration, log_likelihood
        elif iteration - best >= max(_PATIENCE, best // 2):
            break
        flow = moved
    return best


def _whole(likelihoods: Likelihoods) -> FloatArray:
    if len(likelihoods) * likelihoods.n_states > _MOST_LIKELIHOODS:
        fault = f"{len(likelihoods):,} different answers of {likelihoods.n_states:,} states"
        raise InvalidInput("flows", fault, f"at most {_MOST_LIKELIHOODS:,} likelihoods: fewer states, or some users")
    return np.concatenate([block for _, block in likelihoods.blocks()])
