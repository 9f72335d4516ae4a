"""The best mechanism there is for one prior and one policy: a linear program over all mechanisms that name a cell.

Unknown are the probabilities P(y | s) of naming y where the truth is s. A mechanism with other outputs, and an estimate
made of them, is one of these; so none that keeps ε, followed by any choice of a cell, has a smaller mean distance.
Motions of the grid that leave the prior as it is tie unknowns together: the mean of an optimum over them is an optimum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dphmm.types import FloatArray, IntArray

#: Priors that differ by less are the same.
_SAME = 1e-12


@dataclass(frozen=True, eq=False)
class Optimum:
    """``value``: the least mean distance. ``bound``: one that no mechanism is below, from the dual. ``law`` (n, n):
    P(y | s) of a best mechanism. ``unknowns``: of the program.
    """

    value: float
    bound: float
    law: FloatArray
    unknowns: int


def optimum(cells: IntArray, prior: FloatArray, edges: IntArray, epsilon: float) -> Optimum:
    """The optimum for cells (n, 2) of a square grid, a prior (n,), and edges (m, 2) of a policy."""
    from scipy import sparse
    from scipy.optimize import linprog

    n = len(cells)
    unknown = _tied(motions(cells, prior))
    count = int(unknown.max()) + 1
    lengths = np.linalg.norm(cells[:, None] - cells[None], axis=2)
    weights = (prior[:, None] * lengths).ravel()
    prices = np.bincount(unknown.ravel(), weights=weights, minlength=count).astype(np.float64)
    both = np.concatenate([edges, edges[:, ::-1]])
    pairs = np.unique(np.stack([unknown[both[:, 0]].ravel(), unknown[both[:, 1]].ravel()], axis=1), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    rows = np.arange(len(pairs))
    shape = (len(pairs), count)
    ratios = sparse.csr_matrix((np.ones(len(pairs)), (rows, pairs[:, 0])), shape)
    ratios = ratios - sparse.csr_matrix((np.full(len(pairs), np.exp(epsilon)), (rows, pairs[:, 1])), shape)
    sums = sparse.csr_matrix((np.ones(n * n), (np.repeat(np.arange(n), n), unknown.ravel())), (n, count))
    own = np.unique(unknown.diagonal(), return_index=True)[1]
    found = linprog(
        prices,
        A_ub=ratios,
        b_ub=np.zeros(len(pairs)),
        A_eq=sums[own],
        b_eq=np.ones(len(own)),
        bounds=(0, None),
        method="highs-ipm",
    )
    if found.x is None:
        raise ArithmeticError(f"the linear program was not solved: {found.message}")
    return Optimum(float(found.fun), _dual_bound(prices, ratios, sums[own], found), found.x[unknown], count)


def _dual_bound(prices: FloatArray, ratios: object, sums: object, found: object) -> float:
    """A lower bound that holds whatever the solver's tolerances were, from its multipliers made feasible."""
    multipliers = np.maximum(0.0, -np.asarray(found.ineqlin.marginals))  # type: ignore[attr-defined]
    levels = np.asarray(found.eqlin.marginals)  # type: ignore[attr-defined]
    slack = prices + ratios.T @ multipliers - sums.T @ levels  # type: ignore[attr-defined]
    # Each unknown is at most 1 and those of a state sum to 1, so what is missing is paid once for each of them.
    return float(levels.sum() + np.minimum(slack, 0.0).sum())


def motions(cells: IntArray, prior: FloatArray) -> list[IntArray]:
    """Motions of the square grid that leave the prior as it is, as permutations (n,) of the cells."""
    side = int(cells.max()) + 1
    numbers = np.empty((side, side), dtype=np.int64)
    numbers[cells[:, 0], cells[:, 1]] = np.arange(len(cells))
    found = []
    for turned in (cells, cells[:, ::-1]):
        for x in (turned[:, 0], side - 1 - turned[:, 0]):
            for y in (turned[:, 1], side - 1 - turned[:, 1]):
                images = numbers[x, y]
                if np.abs(prior[images] - prior).max() <= _SAME:
                    found.append(images)
    return found


def _tied(maps: list[IntArray]) -> IntArray:
    """Numbers (n, n) of the unknowns P(y | s): pairs that a motion maps onto each other have the same."""
    n = len(maps[0])
    pair = np.arange(n * n).reshape(n, n)
    least = np.min([pair[np.ix_(images, images)] for images in maps], axis=0)
    return np.unique(least, return_inverse=True)[1].reshape(n, n)
