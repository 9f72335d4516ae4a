"""A Markov chain learned with differential privacy from many people's state sequences, or from counts of them.

Proof: docs/proofs/learning.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from dphmm._checks import one_of
from dphmm.accounting.event import LearningEvent
from dphmm.errors import InvalidInput
from dphmm.markov.estimate import ALL_PAIRS_STATES
from dphmm.markov.model import MarkovModel
from dphmm.markov.private import second_order
from dphmm.markov.private.planned import PlannedFit, learn
from dphmm.markov.private.sensitivity import RecordBounds
from dphmm.markov.private.transition_counts import TransitionCounts
from dphmm.markov.stochastic import beginning
from dphmm.states.space import END
from dphmm.types import Exact

if TYPE_CHECKING:
    from dphmm.states.space import StateSpace


def fit_chain(
    sequences: Iterable[Any], n_states: int, epsilon: Exact, max_length: int, **options: Any
) -> tuple[MarkovModel, LearningEvent]:
    """Fit a model to sequences of states with pure differential privacy; a record is all sequences of one owner.

    Parameters
    ----------
    sequences : integer sequences, states 0..n_states-1, one step apart. None at all is data too.
    epsilon : the whole privacy budget.
    max_length : public; each sequence is cut to its first positions.
    neighbours : "add-remove" one record, or "replace" one by another (twice the noise).
    owners, max_sequences : the owner of each sequence, and the number kept of an owner's, the first ones.
    mask : the public pairs of states that can follow each other: None for all (up to 3,000 states), "neighbours" on
        a grid, or a matrix (N, N) whose non-zeros they are. Every one gets noise; all others get probability 0.
    initial : "first", from how often each state begins a sequence, noised together with the transitions: the default
        where there is no ``step``, and then of the first step (the model's start is "at"); "occupancy", from the noisy
        transitions, the default with a step; "uniform".
    slots : a matrix for each of the `Slots`, from one noisy table of (slot, from, to). Where slots go by a clock,
        ``first_steps`` (k,) are the time bins since 1970 that sequences begin in.
    end : the number of a state that stands after the last position of a sequence, and moves to itself alone. Each
        sequence counts ``max_length`` positions before it, and one move more; a longer one is cut and has no end. It
        needs ``initial`` "first".
    source : recorded in the provenance: public. Nothing else about the data is.
    admit : called with the event before the data are looked at; its exceptions end the fit (`dphmm.storage.fit_once`).

    Returns the model and the event; raises InvalidInput for public options and for malformed sequences.
    """
    parts, event = learn(sequences, n_states, epsilon, max_length, **options)
    return MarkovModel(**parts._asdict()), event


def fit_second_order(
    sequences: Iterable[Any], base: MarkovModel, epsilon: Exact, max_length: int, **options: Any
) -> tuple[MarkovModel, LearningEvent]:
    """Fit a chain of second order with pure differential privacy; a record is all sequences of one owner.

    Parameters
    ----------
    sequences : integer sequences of the base's states, one step apart. None at all is data too.
    base : the public model whose moves may occur: made without anybody's data, as by `MarkovModel.from_geometry`.
    epsilon : the whole privacy budget.
    max_length : public; each sequence is cut to its first positions, 3 or more.
    neighbours, owners, max_sequences, bits, admit : as in `fit_chain`.

    Returns the model and the event; raises InvalidInput for public options and for malformed sequences.

    Examples
    --------
    >>> import dphmm
    >>> base = dphmm.MarkovModel([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]])
    >>> model, event = fit_second_order([[0, 1, 0, 1]], base, 1, 4, bits=dphmm.ReplayBits(1))
    >>> model.n_states, model.n_secrets, event.epsilon
    (4, 2, Fraction(1, 1))

    Source: docs/learning.md, docs/proofs/learning.md.
    """
    parts, event = second_order.learn(sequences, base, epsilon, max_length, **options)
    return MarkovModel(**parts._asdict()), event


def end_of(space: StateSpace, initial: str | None, step: object) -> int | None:
    """The ``end`` of `fit_chain`: a state called `END`, where a model without a step begins as sequences do."""
    number = space.index_of(END)
    return number if number >= 0 and beginning(initial, step)[1] == "at" else None


def noisy_moves(space: StateSpace, moves: str | None = None) -> str | None:
    """The mask of `fit_chain` for ``moves``, "all" or "neighbours"; by default all but of a grid of many cells.

    Raises InvalidInput for neighbours of what is no grid.
    """
    if moves is not None:
        one_of(moves, ("all", "neighbours"), "moves")
    if moves == "neighbours" and space.kind != "grid":
        raise InvalidInput("moves", "neighbours", "all: only cells of a grid have neighbours")
    many = moves is None and space.kind == "grid" and space.n_states > ALL_PAIRS_STATES
    return "neighbours" if many or moves == "neighbours" else None


def fit_counts(
    counts: TransitionCounts,
    epsilon: Exact,
    *,
    neighbours: str = "add-remove",
    admit: Callable[[LearningEvent], None] | None = None,
    **options: Any,
) -> tuple[MarkovModel, LearningEvent]:
    """Fit a model to exact counts with pure differential privacy, drawing the noise once.

    Under the same words it is the model that `fit_chain` learns from the sequences that were counted. Every call draws
    anew and costs what its event says; a ledger keeps one answer for one name (`dphmm.storage.fit_once`).

    counts : as `count_transitions` gives them.
    epsilon, neighbours, admit, and as ``options`` mask, initial, bits, space, step, end, source :
        as in `fit_chain`.

    Returns the model and the event; raises InvalidInput for public options.

    Examples
    --------
    >>> import dphmm
    >>> from dphmm.markov.private import count_transitions, fit_chain, fit_counts
    >>> paths = [[0, 1, 1], [1, 0, 0]]
    >>> model, event = fit_counts(count_transitions(paths, 2, 3), 1, bits=dphmm.ReplayBits(1))
    >>> model.digest == fit_chain(paths, 2, 1, 3, bits=dphmm.ReplayBits(1))[0].digest
    True

    Source: docs/proofs/learning.md.
    """
    if not isinstance(counts, TransitionCounts):
        raise InvalidInput("counts", type(counts).__name__, "what count_transitions gives")
    caps = RecordBounds(counts.max_length, counts.max_sequences, neighbours)
    planned = PlannedFit(counts.n_states, epsilon, caps, counts.unit, **options)
    if admit is not None:
        admit(planned.event)
    return MarkovModel(**planned.learned(counts)._asdict()), planned.event
