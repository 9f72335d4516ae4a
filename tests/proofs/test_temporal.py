"""docs/proofs/temporal-leakage.md: the recursion for policy temporal leakage, compared with every outcome.

The chain is small enough to compute Pr(z_1 .. z_T | s_t = i) for every z of a window exactly as it is: integer answers,
the K-norm mechanism of [-1, 1] on the integers, so a pair loses |i - j|·ε. If the theorem were wrong somewhere, an
outcome would lose more than the recursion says; if it were idle, the bound would be far above the worst outcome.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from leakage_programs import by_linear_program


def largest_ratio(q, d, limits):
    """max log(q·x / d·x) over x > 0 with log x_k - log x_l <= limits[k, l]: a linear program on the rows' supports."""
    found = by_linear_program(q, d, limits)
    assert found < math.inf
    return found


def onward(kernel, limits):
    """The next F or B from c + F or c + B."""
    n = len(kernel)
    out = np.zeros((n, n))
    for i, j in itertools.permutations(range(n), 2):
        out[i, j] = largest_ratio(kernel[i], kernel[j], limits)
    return out


def leakage(start, move, losses):
    """(T, n, n): c_t + F_t + B_t."""
    steps = len(losses)
    marginals = [start]
    for _ in range(1, steps):
        marginals.append(marginals[-1] @ move)
    F, B = [np.zeros_like(losses[0])], [np.zeros_like(losses[0])]
    for t in range(steps - 1, 0, -1):
        F.insert(0, onward(move, losses[t] + F[0]))
    for t in range(1, steps):
        reversed_kernel = (marginals[t - 1][:, None] * move).T / marginals[t][:, None]
        B.append(onward(reversed_kernel, losses[t - 1] + B[-1]))
    return np.array([losses[t] + F[t] + B[t] for t in range(steps)])


def exact(start, move, answers, epsilons, window):
    """(T, n, n): the largest log-ratio over outcomes in a window, from the joint law of states and answers."""
    n, steps = len(start), len(epsilons)
    worst = np.full((steps, n, n), -np.inf)
    grid = np.arange(answers.min() - window, answers.max() + window + 1)
    laws = [np.exp(-e * np.abs(grid[:, None] - answers)) for e in epsilons]
    for outcome in itertools.product(range(len(grid)), repeat=steps):
        emissions = [law[z] for law, z in zip(laws, outcome, strict=True)]
        before = [start]
        for t in range(1, steps):
            before.append((before[-1] * emissions[t - 1]) @ move)
        after = [np.ones(n)]
        for t in range(steps - 1, 0, -1):
            after.insert(0, move @ (emissions[t] * after[0]))
        marginal = start
        for t in range(steps):
            logs = np.log(before[t] / marginal * emissions[t] * after[t])
            worst[t] = np.maximum(worst[t], logs[:, None] - logs[None])
            marginal = marginal @ move
    return worst


def distances(answers, epsilon):
    return epsilon * np.abs(answers[:, None] - answers[None]).astype(float)


@pytest.mark.parametrize("seed", range(6))
def test_the_recursion_bounds_every_outcome(seed):
    rng = np.random.default_rng(seed)
    n, steps = int(rng.integers(2, 5)), int(rng.integers(2, 4))
    answers = rng.integers(0, 5, n)
    start, move = rng.dirichlet(np.ones(n)), rng.dirichlet(np.full(n, 0.4), n)
    epsilons = rng.choice([0.3, 0.7, 1.5], steps)
    bound = leakage(start, move, [distances(answers, e) for e in epsilons])
    found = exact(start, move, answers, epsilons, window=3)
    assert (found <= bound + 1e-7).all()
    # Not idle: the worst pair of the sequence comes within a third of the bound.
    assert found.max() > 0.66 * bound.max()


def walk_of_two(n=11):
    """Two cells left or right with equal chances, turned back at the walls."""
    move = np.zeros((n, n))
    for i in range(n):
        for step in (-2, 2):
            target = i + step
            move[i, target if 0 <= target < n else i - step] += 0.5
    return move


def test_two_releases_near_a_wall():
    answers = np.arange(11)
    start, move = np.full(11, 1 / 11), walk_of_two()
    bound = leakage(start, move, [distances(answers, 1.0)] * 2)
    found = exact(start, move, answers, [1.0, 1.0], window=3)
    assert (found <= bound + 1e-7).all()
    per_edge = [max(bound[:, i, i + 1].max(), bound[:, i + 1, i].max()) for i in range(10)]
    # Neighbours lose Σε = 2 in the middle; next to a wall their ways part.
    assert min(per_edge) == pytest.approx(2, abs=1e-6) and max(per_edge) == pytest.approx(3.660, abs=1e-3)
    worst = max(found[:, i, j].max() for i in range(11) for j in (i - 1, i + 1) if 0 <= j < 11)
    assert worst == pytest.approx(3.604, abs=1e-3)
    # The sum of the costs, for any pair: 20.
    assert 2 * distances(answers, 1.0).max() == 20


def test_a_bound_without_the_past_would_be_too_small():
    """The check can fail: present and future alone do not bound the outcome."""
    answers = np.arange(11)
    start, move = np.full(11, 1 / 11), walk_of_two()
    losses = [distances(answers, 1.0)] * 2
    found = exact(start, move, answers, [1.0, 1.0], window=3)
    assert (found[1] > losses[1] + 1e-3).any()


def prefix_loss(q, d, a):
    """Cao et al.: the best prefix of the states sorted by falling q/d."""
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(-np.where(q + d > 0, q / d, 0), kind="stable")
    gain = math.expm1(a)
    prefixes = np.r_[0.0, np.cumsum(q[order])], np.r_[0.0, np.cumsum(d[order])]
    return max(math.log((x * gain + 1) / (y * gain + 1)) for x, y in zip(*prefixes, strict=True))


@pytest.mark.parametrize("seed", range(20))
def test_cao_s_prefixes_are_the_linear_program(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    q, d = rng.dirichlet(np.full(n, 0.5), 2)
    a = float(rng.uniform(0.05, 3))
    constant = a * (1 - np.eye(n))
    assert prefix_loss(q, d, a) == pytest.approx(largest_ratio(q, d, constant), abs=1e-7)


def test_the_figures_of_the_temporal_leakage_paper():
    """P = [[.8, .2], [0, 1]], .1 a step: the backward leakage of ten steps, with the matrix as the reversed one."""
    move = np.array([[0.8, 0.2], [0.0, 1.0]])

    def longest(a):
        return max(prefix_loss(move[0], move[1], a), prefix_loss(move[1], move[0], a))

    backward = [0.1]
    for _ in range(9):
        backward.append(longest(backward[-1]) + 0.1)
    assert np.round(backward, 2).tolist() == [0.10, 0.18, 0.25, 0.30, 0.35, 0.39, 0.42, 0.45, 0.48, 0.50]


@pytest.mark.parametrize("seed", range(5))
def test_smaller_losses_give_smaller_bounds(seed):
    rng = np.random.default_rng(seed)
    answers = rng.integers(0, 5, 4)
    start, move = rng.dirichlet(np.ones(4)), rng.dirichlet(np.full(4, 0.5), 4)
    losses = [distances(answers, e) for e in (0.5, 1.0, 0.7)]
    skipped = [losses[0], np.zeros((4, 4)), losses[2]]
    assert (leakage(start, move, skipped) <= leakage(start, move, losses) + 1e-7).all()
