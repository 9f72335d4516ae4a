"""Maximum likelihood from observed state sequences.

M[i, j] = (times i was followed by j) / (times i was followed by anything). Nothing here is private: the zero
pattern of the result can show one person's move, and the model says so in its provenance and its notes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from dphmm._checks import one_of, whole
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.markov.notes import many, some
from dphmm.markov.sequences import FlatSequences, flatten
from dphmm.markov.smoothing import pseudo_count, smoothing_pairs
from dphmm.markov.stochastic import canonical, divided, row_sums
from dphmm.types import FloatArray, IntArray

if TYPE_CHECKING:
    from dphmm.states.space import StateSpace

#: Up to this many pairs a table of all of them is counted; above, the pairs that occur are sorted.
_TABLE_PAIRS = 2**22


@dataclass(frozen=True)
class FitReport:
    """What a fit did with its data. "Possible" counts pairs of states, the others count observations."""

    n_states: int
    n_visited: int
    n_sequences: int
    n_transitions: int
    dropped_transitions: int
    dropped_pairs: int
    possible_before_smoothing: int
    possible: int
    #: States no kept transition leaves, in increasing order; without smoothing each got a self-loop.
    never_left: tuple[int, ...]
    n_self_loops: int

    def lines(self) -> tuple[str, ...]:
        """The report in sentences; what did not happen is not mentioned."""
        said = [f"{many(self.n_transitions, 'transition')} in {many(self.n_sequences, 'sequence')}"]
        if self.n_visited < self.n_states:
            said.append(f"{self.n_states - self.n_visited} of {self.n_states} states never visited")
        if self.dropped_pairs:
            pairs = many(self.dropped_pairs, "pair")
            said.append(f"{many(self.dropped_transitions, 'rare transition')} dropped ({pairs} of states)")
        if self.never_left:
            states = f"{many(len(self.never_left), 'state')} never left ({some(self.never_left)})"
            said.append(f"{states}: no move from there to anywhere was counted; {self._instead}")
        if self.possible != self.possible_before_smoothing + self.n_self_loops:
            before = many(self.possible_before_smoothing, "possible transition")
            said.append(f"{before}, {self.possible} after smoothing")
        return tuple(said)

    @property
    def _instead(self) -> str:
        """What the states that no counted move leaves got instead."""
        if not self.n_self_loops:
            return "all their moves are from smoothing"
        every = "it was" if self.n_self_loops == 1 else "each was"
        looped = every if self.n_self_loops == len(self.never_left) else f"{self.n_self_loops} of them were"
        return (
            f"{looped} given a self-loop (absorbing), so that the model says that whoever is there stays for ever; "
            "remedy: smoothing=1, which makes other moves possible"
        )


def fit(
    sequences: Iterable[Any],
    n_states: int,
    smoothing: float = 0.0,
    initial: str = "occupancy",
    min_count: int = 1,
    *,
    smoothing_support: Any = None,
    space: StateSpace | None = None,
    step: int | None = None,
    n_users: int | None = None,
    source: str | None = None,
    source_sha256: str | None = None,
) -> tuple[MarkovModel, FitReport]:
    """Fit a model to sequences of states, without privacy.

    Parameters
    ----------
    sequences : integer sequences, states 0..n_states-1, one step apart; a gap is a cut into two sequences.
    smoothing : pseudo-count added to every pair of states: everything becomes possible.
    smoothing_support : the pairs to smooth instead of all: "neighbours" on a grid, or a mask (N, N). Required
        above 3,000 states.
    initial : of t = 0, as the model starts "before" the first release.
        "occupancy": how often each state occurs at all; every visited state is possible at t = 0, and one
        only ever seen at the start of sequences is not possible at t = 1. Needs no shift.
        "first": how often each begins a sequence. The first row of every sequence is taken as t = 0, the
        state its first transition leaves, so releases are expected to begin one step after where these
        sequences begin.
        "uniform": every state alike, visited or not.
    min_count : transitions seen fewer times are dropped, before smoothing.
    n_users, source, source_sha256 : how many people the sequences are of, and which file they came from.
        Kept in the provenance; who the people are is not, hashed or otherwise: `dphmm.storage.people.save_people`
        writes that beside a saved model, for its owner alone.

    A state that no kept transition leaves, and no smoothing, gets a self-loop and is named in the report.
    Raises InvalidInput naming sequence and position, or the option that is wrong.
    """
    one_of(initial, ("occupancy", "first", "uniform"), "initial")
    amount = pseudo_count(_number(smoothing), smoothing)
    whole(n_states, "n_states", 2)
    flat = flatten(sequences, n_states)
    observed = count_transitions(flat, n_states)
    kept = _frequent(observed, whole(min_count, "min_count", 1))
    if kept.nnz == 0 and amount == 0:
        raise InvalidInput(
            "sequences", f"{observed.nnz} pairs seen, none {min_count} times", "a transition to learn from"
        )
    smoothed = kept if amount == 0 else kept + amount * smoothing_pairs(smoothing_support, n_states, space)
    complete, n_self_loops = _with_self_loops(smoothed)
    report = _report(flat, observed, kept, complete, n_self_loops)
    provenance = {
        "method": "maximum likelihood",
        "private": False,
        "smoothing": amount,
        "smoothing_support": _named(smoothing_support) if amount else None,
        "min_count": int(min_count),
        "initial": initial,
        "n_users": None if n_users is None else whole(n_users, "n_users", 1),
        "source": source,
        "source_sha256": source_sha256,
        "counts": asdict(report) | {"never_left": len(report.never_left)},
    }
    model = MarkovModel(
        _initial(flat, n_states, initial),
        divided(complete, row_sums(complete)),
        space=space,
        step=step,
        provenance=provenance,
    )
    return model, report


def count_transitions(flat: FlatSequences, n: int) -> Any:
    """How often each state follows each other one: a csr_array (n, n) of counts, exact below 2**53."""
    keys = flat.states[:-1] * n
    keys += flat.states[1:]
    keys = keys[flat.leaves()]
    if n * n <= _TABLE_PAIRS:
        table = np.bincount(keys, minlength=n * n)
        pairs = np.flatnonzero(table)
        counts = table[pairs]
    else:
        pairs, counts = np.unique(keys, return_counts=True)
    rows, columns = np.divmod(pairs, n)
    return canonical(sparse.csr_array((counts.astype(np.float64), (rows, columns)), shape=(n, n)))


def _frequent(observed: Any, min_count: int) -> Any:
    kept = observed.copy()
    kept.data[kept.data < min_count] = 0.0
    return canonical(kept)


def _with_self_loops(counts: Any) -> tuple[Any, int]:
    # A row of zeros has no estimate: 0/0. Staying is the one move that makes no other state possible.
    empty = np.flatnonzero(np.diff(counts.indptr) == 0)
    loops = sparse.csr_array((np.ones(len(empty)), (empty, empty)), shape=counts.shape)
    return canonical(sparse.csr_array(counts + loops)), len(empty)


def _initial(flat: FlatSequences, n: int, kind: str) -> FloatArray:
    if kind == "uniform":
        return np.full(n, 1.0 / n)
    seen: IntArray = flat.states if kind == "occupancy" else flat.states[flat.starts]
    return np.bincount(seen, minlength=n) / len(seen)


def _report(flat: FlatSequences, observed: Any, kept: Any, complete: Any, n_self_loops: int) -> FitReport:
    return FitReport(
        n_states=complete.shape[0],
        n_visited=int(np.count_nonzero(np.bincount(flat.states))),
        n_sequences=flat.n_sequences,
        n_transitions=int(observed.data.sum()),
        dropped_transitions=int(observed.data.sum() - kept.data.sum()),
        dropped_pairs=int(observed.nnz - kept.nnz),
        possible_before_smoothing=int(kept.nnz),
        possible=int(complete.nnz),
        never_left=tuple(np.flatnonzero(np.diff(kept.indptr) == 0).tolist()),
        n_self_loops=n_self_loops,
    )


def _named(smoothing_support: Any) -> str:
    if smoothing_support is None:
        return "all pairs"
    return smoothing_support if isinstance(smoothing_support, str) else "a mask"


def _number(value: object) -> float | None:
    plain = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    return float(value) if plain else None  # type: ignore[arg-type]
