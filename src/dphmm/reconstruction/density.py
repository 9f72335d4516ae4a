"""The likeliest density of a population over the states, by expectation maximisation that stops early.

Expectation maximisation for a mixture of known components is the iterative Bayesian update of local differential
privacy. Its limit is spiky; stopping is what keeps the density smooth. The people are in ten parts, each of which is
held out in turn; start and number of iterations are those under which the answers held out are likeliest, all parts
together; then all people count. A start is even, or where the public model says that people are, which no iteration may
improve. The part of a person hangs on the SHA-256 of the name alone, so that the same file gives the same density.

An answer's state must not hang on its law: answers are divided by their laws, each has a density, and these are added
up with the weights of their answers.

Source: Agrawal and Aggarwal (PODS 2001), where such a density is found by expectation maximisation; ElSalamouny and
Palamidessi, "Generalized iterative Bayesian update" (EuroS&P 2020).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from dphmm._kernels.filter import TRUSTED
from dphmm.errors import InvalidInput
from dphmm.reconstruction.answers import Answers
from dphmm.session.plan import StepPlan, likelihood_of
from dphmm.types import FloatArray, IntArray

#: Likelihoods of so many states together are kept between iterations, and made together where they are not.
_KEPT, _TOGETHER = 2**25, 2**22
#: Iterations, at most and where nobody can be held out; how long without a likelier one until the best is taken.
MOST_ITERATIONS = 2000
_WITHOUT = 20
_PATIENCE = 25
#: Parts of the people, each of which is held out in turn to say when to stop.
PARTS = 10
#: Laws of fewer people say too little of a density; so much of all answers may be of such laws.
FEWEST_PEOPLE = 30
_OF_FEW = 0.05


class Fitted(NamedTuple):
    """A density (N,) or flows (N, N) with the most iterations that one of its laws took, and its start's number."""

    q: FloatArray
    iterations: int
    start: int = 0


class Likelihoods:
    """The likelihoods of some different answers z (D, d) of one plan, by state, up to a factor of the answer.

    They come in rows of ``blocks``, which are kept if they are few.
    """

    def __init__(self, plan: StepPlan, z: IntArray) -> None:
        self.n_states = len(plan.image)
        self._plan, self._z = plan, z
        self._whole = self._made(0, len(z)) if len(z) * self.n_states <= _KEPT else None

    def __len__(self) -> int:
        return len(self._z)

    def blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """Rows of answers, with their likelihoods."""
        if self._whole is not None:
            yield slice(0, len(self._z)), self._whole
            return
        size = max(1, _TOGETHER // self.n_states)
        for first in range(0, len(self._z), size):
            last = min(first + size, len(self._z))
            yield slice(first, last), self._made(first, last)

    def _made(self, first: int, last: int) -> FloatArray:
        fast, z = likelihood_of(self._plan), self._z[first:last]
        rows = None if fast is None else fast.of_answers(z)
        if rows is not None and rows.max(axis=1).min(initial=np.inf) > TRUSTED:
            return np.asarray(rows / rows.max(axis=1, keepdims=True))
        logs = np.stack([self._plan.log_likelihood(answer) for answer in z])
        largest = logs.max(axis=1, keepdims=True)
        if not np.isfinite(largest).all():
            raise InvalidInput("z", "an answer that no state gives", "answers as they were released")
        return np.asarray(np.exp(logs - largest))


def improved(q: FloatArray, likelihoods: Likelihoods, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A density (N,) after one more iteration, and the probability (D,) of each answer under the one before.

    weights : of the answers (D,); together 1. The mean log-likelihood never falls. Each of several
    densities (N, K), with weights (D, K), is improved by its own.
    """
    chance, share = np.empty(weights.shape), np.zeros(q.shape)
    for rows, block in likelihoods.blocks():
        chance[rows] = block @ q
        share += block.T @ (weights[rows] / chance[rows])
    return q * share, chance


def likeliest_density(
    likelihoods: Likelihoods, weights: FloatArray, parts: FloatArray, starts: Sequence[FloatArray]
) -> Fitted:
    """The density under which answers (D,) are likely, from the start (N,) and with the iterations that serve best.

    weights : of each answer. parts : its weights by part of the people (D, K), which add up to it.
    If no part can be held out, 20 iterations are made from the first start.
    """
    number, best = 0, _WITHOUT
    learning = np.maximum(weights[:, None] - parts, 0.0)
    able = (parts.sum(axis=0) > 0) & (learning.sum(axis=0) > 0)
    if able.any():
        both = learning[:, able] / learning[:, able].sum(axis=0), parts[:, able] / weights.sum()
        tried = [_best_iterations(likelihoods, *both, start) for start in starts]
        number = max(range(len(tried)), key=lambda one: tried[one][1])
        best = tried[number][0]
    q, weights = starts[number], weights / weights.sum()
    for _ in range(best):
        q, _ = improved(q, likelihoods, weights)
    return Fitted(q / q.sum(), best, number)


def _best_iterations(
    likelihoods: Likelihoods, learning: FloatArray, held: FloatArray, start: FloatArray
) -> tuple[int, float]:
    """The number of iterations after which the held-out answers are likeliest, and their mean log-likelihood then.

    Of each part (D, K) by the density that the others make likely.
    """
    q, best, highest, seen = np.repeat(start[:, None], held.shape[1], axis=1), 0, -np.inf, held > 0
    for iteration in range(MOST_ITERATIONS):
        moved, chance = improved(q, likelihoods, learning)
        log_likelihood = float(held[seen] @ np.log(chance[seen]))
        if log_likelihood > highest:
            best, highest = iteration, log_likelihood
        elif iteration - best >= max(_PATIENCE, best // 2):
            break
        q = moved
    return best, highest


def part_of(people: Sequence[str]) -> IntArray:
    """The part (n,) of each person, 0 to 9, by the SHA-256 of the name.

    Examples
    --------
    >>> from dphmm.reconstruction.density import part_of
    >>> part_of(["anna", "ben", "carl"])
    array([6, 4, 7])
    """
    firsts = [int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") for name in people]
    return np.array([first % PARTS for first in firsts], dtype=np.int64)


def density(answers: Answers, starts: Sequence[FloatArray]) -> Fitted | None:
    """The density (N,) of the people who gave some answers, from one of some public starts (N,).

    The start is taken from which the answers held out become likeliest.

    None where too many of the answers are of laws that few people answered under: then no density can be told.
    """
    weights, part = answers.weights(), part_of(answers.people)[answers.person]
    if of_few(answers.law[:, None], answers.person, weights):
        return None
    q, iterations, largest, start = np.zeros(len(starts[0])), 0, 0.0, 0
    for number in np.unique(answers.law).tolist():
        of_law = np.flatnonzero(answers.law == number)
        z, outcome = np.unique(answers.z[of_law], axis=0, return_inverse=True)
        counted = _counted(outcome.reshape(-1), weights[of_law], part[of_law], len(z))
        fitted = likeliest_density(Likelihoods(answers.plans[number], z), counted.sum(axis=1), counted, starts)
        share = float(weights[of_law].sum())
        q += share * fitted.q
        iterations = max(iterations, fitted.iterations)
        if share > largest:
            largest, start = share, fitted.start
    return Fitted(q / q.sum(), iterations, start)


def _counted(outcome: IntArray, weights: FloatArray, part: IntArray, n: int) -> FloatArray:
    """The weight of each of n outcomes, by part of the people (n, K)."""
    return totals(outcome * PARTS + part, weights, n * PARTS).reshape(n, PARTS)


def totals(number: IntArray, weights: FloatArray, n: int) -> FloatArray:
    """The weights of each of n numbers added up (n,)."""
    return np.asarray(np.bincount(number, weights, n), dtype=np.float64)


def of_few(laws: IntArray, person: IntArray, weights: FloatArray) -> bool:
    """True if too many of some answers, or pairs of answers, are under laws (n, 1 or 2) of few people."""
    _, number = np.unique(laws, axis=0, return_inverse=True)
    number = number.reshape(-1)
    kinds = np.unique(np.column_stack([number, person]), axis=0)[:, 0]
    few = np.bincount(kinds, minlength=int(number.max(initial=0)) + 1) < FEWEST_PEOPLE
    several = len(few) > 1
    return bool(several and weights[few[number]].sum() > _OF_FEW * weights.sum())
