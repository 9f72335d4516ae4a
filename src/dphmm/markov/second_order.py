"""Chains of second order: where somebody goes next depends on where they are and on where they were before.

Latent states are pairs (before, now) that may occur, which are the moves of a public base model, and ``now`` is the
secret. Whoever is at a place where no move of the base leads has the pair of it with itself. From (a, b) the chain
moves to (b, c) with counts of c after a and b, and beside them the base's row of b, worth some moves: where nothing was
counted, the chain moves as the base does.

Proof: docs/proofs/secrets.md (what is hidden), docs/proofs/learning.md (private counts).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from dphmm._checks import finite_number
from dphmm.errors import InvalidInput
from dphmm.markov.estimate import flatten
from dphmm.markov.stochastic import Jump, ModelParts, refuse_secrets
from dphmm.types import FloatArray, IntArray

#: How many moves the row of the base is worth.
WEIGHT = 5.0
#: A weight below this is lost beside any count.
_LEAST_WEIGHT = 1e-9


@dataclass(frozen=True, eq=False)
class LatentPairs:
    """The latent pairs over the moves of a base model, ``before`` and ``now`` (N,), and the moves between them.

    From pair i they are those of the base from ``now[i]``: compressed rows ``indptr`` (N + 1,) and ``indices`` (m,),
    and how likely the base makes each, ``chances`` (m,).
    """

    base: Any
    before: IntArray
    now: IntArray
    indptr: IntArray
    indices: IntArray
    chances: FloatArray

    @classmethod
    def of(cls, base: Any) -> LatentPairs:
        """The pairs of a `dphmm.MarkovModel`. Raises InvalidInput for one with secrets."""
        refuse_secrets(base, "a base of second order")
        matrix, n = base.matrix, base.n_states
        alone = np.flatnonzero(np.bincount(matrix.indices, minlength=n) == 0)
        before = np.concatenate([np.repeat(np.arange(n), np.diff(matrix.indptr)), alone])
        now = np.concatenate([matrix.indices, alone]).astype(np.int64)
        order = np.argsort(before * n + now)
        before, now = before[order], now[order]
        sizes = np.diff(matrix.indptr)[now].astype(np.int64)
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        # The entries of the base's matrix that pair i has for its moves, one after another.
        entries = np.arange(indptr[-1]) + np.repeat(matrix.indptr[now] - indptr[:-1], sizes)
        indices = np.searchsorted(before * n + now, np.repeat(now, sizes) * n + matrix.indices[entries])
        return cls(base, before, now, indptr, indices, matrix.data[entries])

    def counts(self, symbols: IntArray, bounds: IntArray) -> IntArray:
        """The count (m,) of each move between pairs in the sequences ``symbols[bounds[k]:bounds[k + 1]]``.

        A move that the base does not have is in none of them.
        """
        n, keys = self.base.n_states, self.before * self.base.n_states + self.now
        inside = np.ones(max(len(symbols) - 2, 0), dtype=np.bool_)
        for last in (1, 2):
            ends = bounds[1:] - last
            inside[ends[(ends >= 0) & (ends < len(inside))]] = False
        a, b, c = symbols[:-2][inside], symbols[1:-1][inside], symbols[2:][inside]
        pair, to = (np.minimum(np.searchsorted(keys, key), len(keys) - 1) for key in (a * n + b, b * n + c))
        known = (keys[pair] == a * n + b) & (keys[to] == b * n + c)
        # Rows are in order, and those of different pairs are apart.
        moves = np.repeat(np.arange(len(keys)), np.diff(self.indptr)) * len(keys) + self.indices
        wanted = pair[known] * len(keys) + to[known]
        place = np.minimum(np.searchsorted(moves, wanted), len(moves) - 1)
        return np.bincount(place[moves[place] == wanted], minlength=len(moves))

    def parts(self, counts: Any, weight: float, provenance: dict[str, Any]) -> ModelParts:
        """A model of counts (m,), at least 0, beside the base's rows, which are worth ``weight`` moves each."""
        base, n = self.base, len(self.now)
        matrix = sparse.csr_array((counts + weight * self.chances, self.indices, self.indptr), shape=(n, n))
        matrix.data /= np.repeat(np.add.reduceat(matrix.data, self.indptr[:-1]), np.diff(self.indptr))
        jump, initial = base.jump, self._first()
        if jump is not None:
            of_secret = np.bincount(self.now)[self.now]
            into = jump.into[self.now] / of_secret
            if base.start == "before":
                initial = jump.stays * initial + jump.rate * into
            jump = Jump.of(jump.rate, n, into)
        return ModelParts(initial, matrix, base.space, base.step, provenance, jump, "at", self.now)

    def _first(self) -> FloatArray:
        """The law (N,) of the pair of step 1, of a base that does not jump there."""
        base, now = self.base, self.now
        chance = np.asarray(base.matrix[self.before, now]).ravel()
        joint: FloatArray = base.initial[self.before] * chance
        if base.start == "before":
            return joint
        # Of where people were before step 1 the base says nothing: by its law where it can have led there.
        law = np.ones(len(now))
        for weights in (chance, joint):
            law = np.where(np.bincount(now, weights=weights)[now] > 0, weights, law)
        return np.asarray(base.initial[now] * law / np.bincount(now, weights=law)[now])


def second_order(base: Any, sequences: Iterable[Any] | None, weight: float | None) -> ModelParts:
    """See `dphmm.MarkovModel.second_order`."""
    pairs, worth = LatentPairs.of(base), checked_weight(WEIGHT if weight is None else weight)
    if sequences is None:
        return pairs.parts(0, worth, {**base.provenance, "order": 2})
    flat = flatten(sequences, base.n_states)
    counts = pairs.counts(flat.states, np.append(flat.starts, len(flat.states)))
    triples = int(np.maximum(np.diff(flat.starts, append=len(flat.states)) - 2, 0).sum())
    provenance = {
        "method": "maximum likelihood",
        "private": False,
        "order": 2,
        "weight": worth,
        "base": base.digest,
        "initial": base.provenance.get("initial"),
        "counts": {"pairs_of_moves": triples, "not_of_the_base": triples - int(counts.sum())},
    }
    return pairs.parts(counts, worth, provenance)


def checked_weight(weight: Any) -> float:
    """The number of moves that a row of the base is worth. Raises InvalidInput for none, or too few to count."""
    worth = finite_number(weight, "weight")
    if worth < _LEAST_WEIGHT:
        raise InvalidInput("weight", weight, "how many moves the base's row is worth, such as 5")
    return worth
