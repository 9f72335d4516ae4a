"""Over which pairs of states a fit spreads its pseudo-counts."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from dphmm.errors import InvalidInput
from dphmm.types import BoolArray

#: All pairs of this many states are 9 million moves; more would make every step of every release dense.
ALL_PAIRS_STATES = 3_000


def pseudo_count(amount: float | None, given: object) -> float:
    """An amount of smoothing in its range; InvalidInput names what was ``given`` where it is not, or is no number."""
    # Divided by any count a pseudo-count of 1e-12 is still far from underflow: what is smoothed stays possible.
    if amount is None or not (amount == 0 or 1e-12 <= amount <= 1e12):
        raise InvalidInput("smoothing", given, "a pseudo-count: 0, or from 1e-12 to 1e12")
    return amount


def smoothing_pairs(chosen: Any, n: int, space: Any) -> Any:
    """The pairs to smooth over, as a csr_array (n, n) of ones.

    chosen : None, every pair (up to 3,000 states);
        "neighbours", pairs at most one lattice step apart on every axis and each state with itself (needs a
        space whose answers lie on a lattice, such as a grid);
        or a dense or sparse (n, n) matrix, whose non-zeros are the pairs.

    Raises InvalidInput for anything else.
    """
    if chosen is None:
        if n > ALL_PAIRS_STATES:
            expected = f'smoothing_support="neighbours" or a sparse mask above {ALL_PAIRS_STATES} states'
            raise InvalidInput("smoothing", f"all pairs of {n} states", expected)
        return sparse.csr_array(np.ones((n, n)))
    if isinstance(chosen, str):
        if chosen != "neighbours":
            raise InvalidInput("smoothing_support", chosen, '"neighbours", a mask (n, n) or None')
        return _of_size(lattice_neighbours(space), n)
    mask = _of_size(sparse.csr_array(chosen), n)
    kept: BoolArray = mask.data != 0
    rows = np.repeat(np.arange(n), np.diff(mask.indptr))[kept]
    pairs = sparse.csr_array((np.ones(len(rows)), (rows, mask.indices[kept])), shape=(n, n))
    pairs.sum_duplicates()
    pairs.data[:] = 1.0
    return pairs


def _of_size(mask: Any, n: int) -> Any:
    if mask.shape != (n, n):
        raise InvalidInput("smoothing_support", f"shape {mask.shape}", f"({n}, {n})")
    return mask


def lattice_neighbours(space: Any) -> Any:
    """Pairs of states whose lattice points differ by at most 1 on every axis, as a csr_array of ones."""
    from scipy.spatial import KDTree

    if space is None or not space.unmerged.is_lattice:
        came = "no space" if space is None else "answers that are not on a lattice"
        raise InvalidInput("smoothing_support", f"neighbours of {came}", "a grid, or a mask (n, n)")
    # Lattice points are integers, so any radius between 1 and 2 asks the same question without rounding.
    pairs = KDTree(space.unmerged.lattice).query_pairs(1.5, p=np.inf, output_type="ndarray")
    itself = np.arange(space.n_states)
    rows = np.concatenate([pairs[:, 0], pairs[:, 1], itself])
    columns = np.concatenate([pairs[:, 1], pairs[:, 0], itself])
    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(space.n_states, space.n_states))
