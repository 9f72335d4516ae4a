"""Maximum likelihood from observed state sequences.

M[i, j] = (transitions from i to j) / (transitions from i). Nothing here is private: the zero
pattern of the result can show one person's move, and the model says so in its provenance and its notes.

Sequences are checked and laid end to end first; messages name sequence and position, never a state. Pseudo-counts are
spread over the pairs of states that `smoothing_pairs` names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from dphmm._checks import whole
from dphmm.errors import InvalidInput
from dphmm.markov.slots import Slots
from dphmm.markov.slotted import chosen_kappa, described, shrunk, steps_of
from dphmm.markov.stochastic import ModelParts, beginning, canonical, checked_step, divided, many, row_sums, some
from dphmm.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from dphmm.states.space import StateSpace


@dataclass(frozen=True, eq=False)
class FlatSequences:
    """``states`` (m,) of all sequences, one after another; sequence k begins at ``starts[k]``."""

    states: IntArray
    starts: IntArray

    @property
    def n_sequences(self) -> int:
        return len(self.starts)

    def split(self) -> list[IntArray]:
        """The sequences again, as views."""
        return np.split(self.states, self.starts[1:])

    def leaves(self) -> BoolArray:
        """True where a position (m - 1,) is not the last of its sequence."""
        inside = np.ones(max(len(self.states) - 1, 0), dtype=np.bool_)
        inside[self.starts[1:] - 1] = False
        return inside


def flatten(sequences: Iterable[Any], n_states: int, field: str = "sequences") -> FlatSequences:
    """Lay sequences of states 0..n_states-1 end to end.

    Raises InvalidInput for no sequences, an empty one, anything that is not an integer, and numbers out of
    range.
    """
    if isinstance(sequences, (str, bytes)) or not isinstance(sequences, Iterable):
        raise InvalidInput(field, type(sequences).__name__, "a list of integer sequences")
    arrays = [_one(sequence, f"{field}[{k}]") for k, sequence in enumerate(sequences)]
    if not arrays:
        raise InvalidInput(field, "no sequence", "at least one")
    lengths = np.array([len(array) for array in arrays], dtype=np.int64)
    starts = np.cumsum(lengths) - lengths
    states = np.concatenate(arrays)
    if states.min() < 0 or states.max() >= n_states:
        position = int(np.argmax((states < 0) | (states >= n_states)))
        k = int(np.searchsorted(starts, position, side="right")) - 1
        where = f"{field}[{k}][{position - int(starts[k])}]"
        fault = "a negative number" if states[position] < 0 else f"a number above {n_states - 1}"
        raise InvalidInput(where, fault, f"a state from 0 to {n_states - 1}")
    return FlatSequences(states, starts)


def keep_visited(sequences: Iterable[Any], n_cells: int) -> tuple[IntArray, list[IntArray]]:
    """Leave out cells that nobody visits.

    Returns
    -------
    (k,) int64, the visited cells, increasing: cell ``kept[i]`` is state i of the smaller space
    (``space.subset(kept)``); ``n_cells - k`` were left out.
    The sequences in the numbers of that space.

    Which cells are visited is taken from the data, without privacy. Raises InvalidInput as :func:`flatten`
    does.
    """
    flat = flatten(sequences, n_cells)
    visited = np.zeros(n_cells, dtype=np.bool_)
    visited[flat.states] = True
    number = np.cumsum(visited, dtype=np.int64) - 1
    return np.flatnonzero(visited), FlatSequences(number[flat.states], flat.starts).split()


def _one(given: Any, field: str) -> IntArray:
    if np.ndim(given) == 0 if isinstance(given, np.ndarray) else not _is_sequence(given):
        raise InvalidInput(field, type(given).__name__, "a sequence of states; a single sequence goes in a list")
    try:
        array = np.asarray(given)
    except ValueError:
        raise InvalidInput(field, "rows of different lengths", "a flat sequence of states") from None
    if array.ndim != 1:
        raise InvalidInput(field, f"{array.ndim} dimensions", "a flat sequence of states")
    if len(array) == 0:
        raise InvalidInput(field, "an empty sequence", "at least one state")
    if array.dtype.kind not in "iu":
        position = next((k for k, entry in enumerate(given) if not _is_whole(entry)), 0)
        raise InvalidInput(f"{field}[{position}]", f"dtype {array.dtype}", "integer state numbers")
    return array.astype(np.int64, copy=False)


def _is_sequence(given: Any) -> bool:
    return isinstance(given, Iterable) and hasattr(given, "__len__") and not isinstance(given, (str, bytes, dict))


def _is_whole(entry: Any) -> bool:
    if isinstance(entry, (bool, np.bool_)):
        return False
    return isinstance(entry, (int, np.integer)) or (
        isinstance(entry, (float, np.floating)) and float(entry).is_integer()
    )


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
    nonzero: BoolArray = mask.data != 0
    rows = np.repeat(np.arange(n), np.diff(mask.indptr))[nonzero]
    pairs = sparse.csr_array((np.ones(len(rows)), (rows, mask.indices[nonzero])), shape=(n, n))
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
        fault = "no space" if space is None else "answers that are not on a lattice"
        raise InvalidInput("smoothing_support", f"neighbours of {fault}", "a grid, or a mask (n, n)")
    # Lattice points are integers, so any radius between 1 and 2 asks the same question without rounding.
    pairs = KDTree(space.unmerged.lattice).query_pairs(1.5, p=np.inf, output_type="ndarray")
    itself = np.arange(space.n_states)
    rows = np.concatenate([pairs[:, 0], pairs[:, 1], itself])
    columns = np.concatenate([pairs[:, 1], pairs[:, 0], itself])
    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(space.n_states, space.n_states))


#: Up to this many pairs a table of all of them is counted; above, the pairs that occur are sorted.
_TABLE_PAIRS = 2**22


@dataclass(frozen=True)
class FitReport:
    """The figures of a fit and its data. "Possible" counts pairs of states, the others count observations."""

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
        """The report in sentences, without the figures that are 0."""
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
        """The replacement for the moves of states that no counted move leaves."""
        if not self.n_self_loops:
            return "all their moves are from smoothing"
        every = "it was" if self.n_self_loops == 1 else "each was"
        looped = every if self.n_self_loops == len(self.never_left) else f"{self.n_self_loops} of them were"
        return (
            f"{looped} given a self-loop (absorbing), so that the model says that whoever is there stays for ever; "
            "remedy: smoothing=1, which makes other moves possible"
        )


def estimate(
    sequences: Iterable[Any],
    n_states: int,
    smoothing: float = 0.0,
    initial: str | None = None,
    min_count: int = 1,
    *,
    smoothing_support: Any = None,
    space: StateSpace | None = None,
    step: int | None = None,
    n_users: int | None = None,
    source: str | None = None,
    source_sha256: str | None = None,
    unseen: float | None = None,
    slots: Slots | None = None,
    first_steps: Any = None,
    owners: Any = None,
) -> tuple[ModelParts, FitReport]:
    """The parts of the model of `dphmm.markov.fit`, and its report; parameters and errors as there."""
    initial, start = beginning(initial, step)
    amount = pseudo_count(_number(smoothing), smoothing)
    whole(n_states, "n_states", 2)
    flat = flatten(sequences, n_states)
    observed = count_transitions(flat, n_states)
    frequent = observed.copy()
    frequent.data[frequent.data < whole(min_count, "min_count", 1)] = 0.0
    frequent = canonical(frequent)
    if observed.nnz == 0 and amount == 0:
        expected = "a transition to learn from: rows of neighbouring steps, which a longer step, or gap, has more of"
        raise InvalidInput("sequences", "no two states that follow each other", expected)
    if frequent.nnz == 0 and amount == 0:
        raise InvalidInput(
            "sequences", f"{observed.nnz} pairs seen, none {min_count} times", "a transition to learn from"
        )
    smoothed = frequent if amount == 0 else frequent + amount * smoothing_pairs(smoothing_support, n_states, space)
    complete, n_self_loops = _with_self_loops(smoothed)
    report = _report(flat, observed, frequent, complete, n_self_loops)
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
        **({} if unseen is None else {"moves_impossible_for_others": unseen}),
        "counts": asdict(report) | {"never_left": len(report.never_left)},
    }
    transition = divided(complete, row_sums(complete))
    if slots is not None:
        left = slots.of_steps(steps_of(first_steps, flat.starts, len(flat.states), slots), checked_step(step))[:-1]
        keys = move_keys(flat, n_states, left * n_states)
        kappa = chosen_kappa(keys, _of_moves(flat, owners), n_states, canonical(sparse.csr_array(complete - frequent)))
        transition = shrunk(counted(keys, slots.n * n_states, n_states), transition, kappa)
        provenance |= described(slots, kappa)
    initial_law = _initial(flat, n_states, initial)
    return ModelParts(initial_law, transition, space, step, provenance, start=start, slots=slots), report


def count_transitions(flat: FlatSequences, n: int) -> Any:
    """The number of moves from each state to each other: a csr_array (n, n) of counts, exact below 2**53."""
    return counted(move_keys(flat, n), n, n)


def move_keys(flat: FlatSequences, n: int, above: IntArray | int = 0) -> IntArray:
    """The number ``(above + from) * n + to`` of each move; ``above`` (m - 1,) of all states but the last."""
    keys: IntArray = (flat.states[:-1] + above) * n
    keys += flat.states[1:]
    return keys[flat.leaves()]


def counted(keys: IntArray, rows: int, n: int) -> Any:
    """The count of each number ``from * n + to``: a csr_array (rows, n) of counts, exact below 2**53."""
    if rows * n <= _TABLE_PAIRS:
        table = np.bincount(keys, minlength=rows * n)
        pairs = np.flatnonzero(table)
        counts = table[pairs]
    else:
        pairs, counts = np.unique(keys, return_counts=True)
    before, after = np.divmod(pairs, n)
    return canonical(sparse.csr_array((counts.astype(np.float64), (before, after)), shape=(rows, n)))


def _of_moves(flat: FlatSequences, owners: Any) -> IntArray:
    """The owner of each move: its sequence's owner, or its sequence if there are no owners."""
    lengths = np.diff(flat.starts, append=len(flat.states))
    each = np.arange(flat.n_sequences) if owners is None else np.asarray(owners)
    if each.shape != lengths.shape:
        raise InvalidInput("owners", f"shape {each.shape}", f"({len(lengths)},): one owner for each sequence")
    return np.repeat(each, lengths)[:-1][flat.leaves()]


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
