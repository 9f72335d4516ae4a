"""Remarks about a model that is valid but may surprise: printed by whoever loads it, never raised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from dphmm.types import BoolArray, IntArray

#: Row sums further than this from 1 are worth a remark; closer is the rounding of an ordinary division.
_REMARKABLE = 1e-13

_STAYS = "since the model has no move out of them: who is known to be there is known to stay"


def remarks(
    transition: Any, start: BoolArray, rescaled: tuple[int, float], provenance: dict[str, Any]
) -> tuple[str, ...]:
    """One sentence per fact, from public data."""
    found = [
        _rescaled(*rescaled),
        _absorbing(transition),
        _closed(transition),
        _unreachable(transition, start),
        _not_private(provenance),
    ]
    return tuple(sentence for sentence in found if sentence)


def absorbing_states(transition: Any) -> IntArray:
    """States whose only move is to themselves, increasing."""
    single = np.flatnonzero(np.diff(transition.indptr) == 1)
    absorbing: IntArray = single[transition.indices[transition.indptr[single]] == single]
    return absorbing.astype(np.int64)


def closed_classes(transition: Any) -> IntArray:
    """Class number (0.., by lowest member) of each state of a closed class, -1 for all other states."""
    from scipy.sparse.csgraph import connected_components

    structure = sparse.csr_array(
        (np.ones(transition.nnz), transition.indices.copy(), transition.indptr.copy()), shape=transition.shape
    )
    count, label = connected_components(structure, directed=True, connection="strong")
    source = np.repeat(label, np.diff(transition.indptr))
    leaves = np.zeros(count, dtype=np.bool_)
    leaves[source[source != label[transition.indices]]] = True
    number = np.full(count, -1, dtype=np.int64)
    closed, first = np.unique(label[~leaves[label]], return_index=True)
    number[closed[np.argsort(first)]] = np.arange(len(closed))
    classes: IntArray = number[label]
    return classes


def _rescaled(count: int, worst: float) -> str:
    if worst <= _REMARKABLE:
        return ""
    return f"{many(count, 'row')} of the transition matrix rescaled to sum to 1 (off by at most {worst:.2g})"


def _absorbing(transition: Any) -> str:
    states = absorbing_states(transition)
    if len(states) == 0:
        return ""
    if len(states) == transition.shape[0]:
        return "every state is absorbing: no move is possible, a known start stays known"
    return f"{many(len(states), 'absorbing state')} ({some(states)}): a support inside them never grows again, {_STAYS}"


def _closed(transition: Any) -> str:
    classes = int(closed_classes(transition).max()) + 1
    return "" if classes == 1 else f"{classes} closed classes: no move leads from one to another"


def _unreachable(transition: Any, start: BoolArray) -> str:
    from dphmm._kernels.markov import reachable

    never = np.flatnonzero(~reachable(transition.indptr, transition.indices, start.copy()))
    if len(never) == 0:
        return ""
    return f"{many(len(never), 'state')} ({some(never)}) that no path from the initial distribution reaches"


def _not_private(provenance: dict[str, Any]) -> str:
    if provenance.get("private") is not False:
        return ""
    return "fitted without privacy: no bound holds for releases about the people it was fitted on"


def many(count: int, noun: str) -> str:
    """A number and its noun."""
    return f"{count} {noun}" + ("" if count == 1 else "s")


def some(states: Sequence[int] | IntArray) -> str:
    """The first few state numbers."""
    return ", ".join(str(int(state)) for state in states[:5]) + (", ..." if len(states) > 5 else "")
