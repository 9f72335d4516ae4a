"""A Markov chain learned with differential privacy from many people's state sequences.

Published: how often each public pair of states follows each other, with integer noise in every cell of the mask, and
if asked for how often each state begins a sequence, in the same vector. All else is computed from that.

Proof: docs/proofs/learning.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from dphmm._checks import exact_epsilon, finite_number, one_of, whole
from dphmm.accounting.event import LearningEvent, described
from dphmm.errors import InvalidInput
from dphmm.markov.estimate import ALL_PAIRS_STATES, lattice_neighbours, pseudo_count
from dphmm.markov.model import MarkovModel
from dphmm.markov.private import sensitivity
from dphmm.markov.private.caps import Kept, kept_records, unit_of
from dphmm.markov.private.projection import PROJECTIONS, nearest_counts, probabilities, row_totals, uniform_rows
from dphmm.markov.private.release import NoisyTable, noise_for, release
from dphmm.markov.private.sensitivity import Caps
from dphmm.samplers.entropy import default_bits, is_secure
from dphmm.types import Bits, Exact, FloatArray, IntArray

if TYPE_CHECKING:
    from dphmm.states.space import StateSpace

INITIALS = ("occupancy", "first", "uniform")


def fit_chain(
    sequences: Iterable[Any],
    n_states: int,
    epsilon: Exact,
    max_length: int,
    *,
    neighbours: str = "add-remove",
    owners: Any = None,
    max_sequences: int = 1,
    mask: Any = None,
    initial: str = "occupancy",
    smoothing: float = 1.0,
    projection: str = "simplex",
    bits: Bits | None = None,
    space: StateSpace | None = None,
    step: int | None = None,
    source: str | None = None,
    admit: Callable[[LearningEvent], None] | None = None,
) -> tuple[MarkovModel, LearningEvent]:
    """Fit a model to sequences of states with pure differential privacy; a record is all sequences of one owner.

    Parameters
    ----------
    sequences : integer sequences, states 0..n_states-1, one step apart. None at all is data too.
    epsilon : the whole privacy budget.
    max_length : public; each sequence is cut to its first positions.
    neighbours : "add-remove" one record, or "replace" one by another (twice the noise).
    owners, max_sequences : whose each sequence is, and how many of an owner's are kept, the first ones.
    mask : the public pairs of states that can follow each other: None for all (up to 3,000 states), "neighbours" on
        a grid, or a matrix (N, N) whose non-zeros they are. Every one gets noise; all others get probability 0.
    initial : "occupancy", from the noisy transitions; "first", from how often each state begins a sequence, noised
        together with them; "uniform".
    smoothing : pseudo-count added to every pair of the mask after the noise.
    projection : how negative counts go: "simplex" or "clamp".
    source : recorded in the provenance: public. Nothing else about the data is.
    admit : told the event before the data are looked at; what it raises ends the fit (`dphmm.fit_once`).

    Returns the model and the event; raises InvalidInput for public options and for malformed sequences.
    """
    n = whole(n_states, "n_states", 2, 2**31 - 1)
    total = exact_epsilon(epsilon)
    caps = Caps(max_length, max_sequences, neighbours)
    first = one_of(initial, INITIALS, "initial") == "first"
    one_of(projection, PROJECTIONS, "projection")
    pseudo = pseudo_count(finite_number(smoothing, "smoothing"), smoothing)
    pairs = _pairs(mask, n, space)
    words = default_bits(bits)
    size = sensitivity.l1(sensitivity.transitions(caps, first=first), caps)
    part = noise_for("transitions and starts" if first else "transitions", "laplace", size, total)
    caps_of_event = (caps.neighbours, caps.max_length, caps.max_sequences, is_secure(words))
    event = LearningEvent((part,), *caps_of_event, unit=unit_of(owners))
    # Every public check is made before the data is looked at.
    shape = MarkovModel(np.full(n, 1.0 / n), _matrix(pairs, uniform_rows(pairs.indptr)), space=space, step=step)
    if admit is not None:
        admit(event)
    counts = _counts(kept_records(sequences, n, caps, owners), pairs, first)
    table = release(counts, part, 0, words)
    model = _model(table, pairs, initial, pseudo, projection)
    provenance = {
        "method": "noisy counts",
        "private": event.secure,
        "privacy": described(event),
        "mask": _named(mask),
        "initial": initial,
        "smoothing": pseudo,
        "projection": projection,
        "source": source,
    }
    return MarkovModel(*model, space=space, step=shape.step, provenance=provenance), event


def _counts(kept: Kept, pairs: Any, first: bool) -> IntArray:
    """How often each pair of the mask occurs, in the order of the mask; then how often each state comes first."""
    n = pairs.shape[0]
    inside = np.ones(max(len(kept.symbols) - 1, 0), dtype=np.bool_)
    inside[kept.bounds[1:-1] - 1] = False
    moves = (kept.symbols[:-1] * n + kept.symbols[1:])[inside]
    known = np.repeat(np.arange(n), np.diff(pairs.indptr)) * n + pairs.indices
    if len(known) == n * n:
        counts = np.bincount(moves, minlength=n * n)
    else:
        place = np.minimum(np.searchsorted(known, moves), len(known) - 1)
        counts = np.bincount(place[known[place] == moves], minlength=len(known))
    if first:
        starts = np.bincount(kept.symbols[kept.bounds[:-1]], minlength=n)
        counts = np.concatenate([counts, starts])
    return counts.astype(np.int64)


def _model(table: NoisyTable, pairs: Any, initial: str, smoothing: float, projection: str) -> tuple[FloatArray, Any]:
    """(initial, transition) from what was published."""
    n, moves = pairs.shape[0], pairs.nnz
    counts = nearest_counts(table.values[:moves], pairs.indptr, projection)
    even = uniform_rows(pairs.indptr)
    pseudo = counts + smoothing
    transition = _matrix(pairs, probabilities(pseudo, pairs.indptr, even))
    if initial == "uniform":
        weights = np.ones(n)
    elif initial == "first":
        row = np.array([0, n])
        weights = nearest_counts(table.values[moves:], row, projection) + smoothing
    else:
        weights = row_totals(pseudo, pairs.indptr) + np.bincount(pairs.indices, weights=pseudo, minlength=n)
    return probabilities(weights, np.array([0, n]), np.full(n, 1.0 / n)), transition


def _matrix(pairs: Any, data: FloatArray) -> Any:
    return sparse.csr_array((data, pairs.indices, pairs.indptr), shape=pairs.shape)


def _pairs(mask: Any, n: int, space: Any) -> Any:
    """The public pairs as a canonical csr_array of ones, no row empty."""
    if mask is None:
        if n > ALL_PAIRS_STATES:
            expected = f'mask="neighbours" or a sparse mask above {ALL_PAIRS_STATES} states'
            raise InvalidInput("mask", f"all pairs of {n} states", expected)
        return sparse.csr_array(np.ones((n, n)))
    if isinstance(mask, str):
        one_of(mask, ("neighbours",), "mask")
        if space is None or space.n_states != n:
            raise InvalidInput(
                "space", "none, or of another size", f"the grid of {n} states whose neighbours are meant"
            )
        given = lattice_neighbours(space)
    else:
        given = _given_pairs(mask, n)
    pairs = sparse.csr_array(given != 0).astype(np.float64)
    pairs.sum_duplicates()
    pairs.eliminate_zeros()
    empty = np.flatnonzero(np.diff(pairs.indptr) == 0)
    if len(empty):
        raise InvalidInput(f"mask[{empty[0]}]", "a row of no pairs", "at least one state that can follow, as itself")
    return pairs


def _given_pairs(mask: Any, n: int) -> Any:
    try:
        given = mask if sparse.issparse(mask) else np.asarray(mask)
        wrong = given.shape != (n, n) or given.dtype.kind not in "biuf"
    except (TypeError, ValueError):
        wrong = True
    if wrong:
        raise InvalidInput("mask", type(mask).__name__, f"a matrix ({n}, {n}) of booleans or numbers")
    return sparse.csr_array(given)


def _named(mask: Any) -> str:
    if mask is None:
        return "all pairs"
    return mask if isinstance(mask, str) else "given"
