"""Small models with known joint laws, and losses from definitions: what the tests of dependence compare with."""

from __future__ import annotations

import itertools
import math

import numpy as np

from dphmm.dependent import Chain, JointTable, Star

#: Binary chains of the comparison table: chances of a change up and down.
CHAINS = {
    ".4": (0.3, 0.3),
    ".8": (0.1, 0.1),
    ".9": (0.05, 0.05),
    ".98": (0.01, 0.01),
    ".01/.1": (0.01, 0.1),
    ".05/.5": (0.05, 0.5),
    ".001/.1": (0.001, 0.1),
}


def binary(up, down, length, start=None):
    return Chain([[1 - up, up], [down, 1 - down]], length, start=start)


def rare_star(leaves):
    return Star(leaves, [1 - 1e-6, 1e-6], [[1 - 1e-7, 1e-7], [0.9, 0.1]])


def xor():
    return JointTable({(a ^ b, a, b): 0.25 for a in (0, 1) for b in (0, 1)})


def simplex(k):
    """n = 2^k − 1 bits of which every two are independent: the code words of the simplex code, all equally likely."""
    words = [[bin(word & column).count("1") % 2 for column in range(1, 2**k)] for word in range(2**k)]
    return JointTable(words, np.full(2**k, 2.0**-k))


def joint_of(model):
    """{values: probability} of a chain or a tree, multiplied out."""
    parents = [i - 1 for i in range(model.n)] if isinstance(model, Chain) else model.parents
    sizes = [len(model.marginal(i)) for i in range(model.n)]
    table = {}
    for values in itertools.product(*map(range, sizes)):
        p = 1.0
        for i, parent in enumerate(parents):
            p *= (
                model.marginal(i)[values[i]]
                if parent < 0
                else model.kernel(parent, i).matrix[values[parent], values[i]]
            )
        if p > 0:
            table[values] = p
    return table


def true_loss(table, answer, rate):
    """The largest |log P(s | D_i = x) / P(s | D_i = y)| over a grid of atoms of an answer of any dimension."""
    outcomes, chances = list(table), np.array(list(table.values()))
    answers = np.array([np.atleast_1d(answer(values)) for values in outcomes], dtype=float)
    atoms = np.array(list(itertools.product(*[np.unique(column) for column in answers.T])))
    density = np.exp(-rate * np.abs(answers[:, None] - atoms).sum(axis=2))
    worst = 0.0
    for i in range(len(outcomes[0])):
        own = np.array([values[i] for values in outcomes])
        rows = [chances[own == x] @ density[own == x] / chances[own == x].sum() for x in np.unique(own)]
        for one, other in itertools.permutations(rows, 2):
            worst = max(worst, float(np.log(one / other).max()))
    return worst


def largest_increase_by_subsets(kernel, alpha):
    """L(α) over all subsets of columns."""
    worst = 0.0
    for q, d in itertools.permutations(kernel, 2):
        for chosen in itertools.product((False, True), repeat=len(q)):
            mask = np.array(chosen)
            gain = (q[mask] - d[mask]).sum() * math.expm1(alpha)
            worst = max(worst, math.log1p(gain / (d[mask].sum() * math.expm1(alpha) + 1)))
    return worst
