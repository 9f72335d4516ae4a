"""From sequences of states, or from people's trajectories, to a model: speed limit, time steps, cells, counts.

Fitting is not releasing: a glitch of a receiver or a cell that nobody visits would widen the bodies of every
release, so both are left out here, and counted. Nothing of this is private.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dphmm._checks import whole
from dphmm.errors import InvalidInput
from dphmm.markov.estimate import FitReport, estimate, keep_visited, smoothing_pairs
from dphmm.markov.model import MarkovModel
from dphmm.markov.slots import Slots
from dphmm.markov.stochastic import many, percent
from dphmm.states.lattice import nearest_among
from dphmm.states.trajectory import MICROSECONDS, Counts, Trajectories
from dphmm.types import IntArray

if TYPE_CHECKING:
    from dphmm.states.space import StateSpace
    from dphmm.states.trajectory import Sequences


def fit(
    sequences: Iterable[Any],
    n_states: int,
    smoothing: float = 0.0,
    initial: str | None = None,
    min_count: int = 1,
    **options: Any,
) -> tuple[MarkovModel, FitReport]:
    """Fit a model to sequences of states, without privacy.

    Parameters
    ----------
    sequences : integer sequences, states 0..n_states-1, one step apart; a gap is a cut into two sequences.
    smoothing : pseudo-count added to every pair of states: everything becomes possible.
    smoothing_support : the pairs to smooth instead of all: "neighbours" on a grid, or a mask (N, N). Required
        above 3,000 states.
    initial : "first" by default where there is no ``step``, else "occupancy".
        "first": the frequency of each at a start. Without a step it is of t = 1, the first release: the model's start
        is "at". With one it is of t = 0: releases are expected to begin one step after where these sequences begin.
        "occupancy": the frequency of each state, taken as of t = 0: the model's start is "before". Every visited
        state is possible then, and one only ever seen at the start of sequences is not possible at t = 1.
        "uniform": every state alike at t = 0, visited or not.
    min_count : transitions seen fewer times are dropped, before smoothing.
    n_users, source, source_sha256 : the number of people of the sequences, and the file they came from.
        Kept in the provenance; who the people are is not, hashed or otherwise: `dphmm.storage.models.save_people`
        writes that beside a saved model, for its owner alone.
    unseen : the share of people's moves that a model of all others would call impossible, recorded likewise.
    slots, first_steps, owners : a matrix for each of the `Slots`. Where slots go by a clock, ``first_steps`` (k,) are
        the time bins since 1970 that sequences begin in. ``owners`` (k,) are the owners of sequences, if people are
        left out to choose how much slots differ; else each sequence is somebody's.

    A state that no kept transition leaves, and no smoothing, gets a self-loop and is named in the report.
    Raises InvalidInput naming sequence and position, or the option that is wrong.
    """
    parts, report = estimate(sequences, n_states, smoothing, initial, min_count, **options)
    return MarkovModel(**parts._asdict()), report


class Source(NamedTuple):
    """The file that people's rows came from: its name, and the SHA-256 (hex) of its bytes."""

    name: str
    sha256: str


@dataclass(frozen=True)
class FitSummary:
    """The fate of the rows: ``dropped`` by reason; ``held`` steps were filled with the state before."""

    rows: int
    users: int
    n_cells: int
    n_visited: int
    dropped: Counts
    held: int
    report: FitReport
    all_cells: bool = False
    unseen: float = 0.0

    @property
    def share_outside(self) -> float:
        """The share of the rows that counted (one a time step, none too fast) that are in no state."""
        outside = self.dropped["outside"]
        return outside / (self.rows - self.dropped.total + outside)

    def lines(self) -> tuple[str, ...]:
        """The summary in sentences, without the figures that are 0."""
        said = [f"{many(self.rows, 'row')} of {many(self.users, 'user')}"]
        said.append(_visited(self.n_visited, self.n_cells, self.all_cells))
        for reason, rows in self.dropped.items():
            share = f", {100 * self.share_outside:.1f} % of those that count" if reason == "outside" else ""
            said.append(f"{many(rows, 'row')} left out: {reason}{share}")
        if self.unseen > 0:
            said.append(
                f"{percent(self.unseen)} of people's moves are impossible under a model of all others: so often "
                "somebody new is answered from elsewhere; remedy: more smoothing, a jump, or coarser states"
            )
        if self.held:
            said.append(f"{many(self.held, 'step')} filled with the state before")
        return (*said, *self.report.lines())


def fit_trajectories(
    trajectories: Trajectories,
    space: StateSpace,
    *,
    step: int | None = None,
    smoothing: float = 0.0,
    smoothing_support: Any = None,
    initial: str | None = None,
    max_speed: object = None,
    min_count: int = 1,
    hold: int = 0,
    gap: float | None = None,
    source: Source | None = None,
    all_cells: bool = False,
    merge_rare: int | None = None,
    slots: Slots | None = None,
) -> tuple[MarkovModel, FitSummary]:
    """Fit a Markov model to trajectories, without privacy; the model's space is the cells that were visited.

    Parameters
    ----------
    trajectories : rows with places or states; the last row of a user in each time step counts.
    space : the states there are. A row outside all of them is left out, counted, and cuts its sequence.
    step : seconds; time bins are anchored at the UTC epoch. None: every row is a step.
    max_speed : m/s; points that cannot be reached from the last kept point at that speed are left out.
    hold : a hole of at most this many steps is filled with the state before it; a longer one cuts.
    gap : seconds; rows further apart are cut (needs times).
    smoothing, smoothing_support, initial, min_count : as in `fit`.
    source : recorded in the provenance, so that a release about these very people can say what that means.
    all_cells : keep every cell, visited or not.
    merge_rare : cells with fewer visits than this are answered as the nearest cell with as many, ties to the lowest
        number (`StateSpace.merged`). Visits are those that "occupancy" counts: the steps of the sequences, before
        ``min_count`` drops moves. The cells stay states of the model.
    slots : a matrix for each of the `Slots`, by the time of the step that a move leaves, or by its position.

    Raises InvalidInput for a missing column, for rows that are in no state, and as `fit` does.
    """
    rows, sequences, dropped = state_sequences(trajectories, space, step=step, max_speed=max_speed, hold=hold, gap=gap)
    if not sequences.sequences:
        raise InvalidInput("trajectories", f"{len(trajectories)} rows, none in a state", "rows in states of the space")
    visited, numbered = keep_visited(sequences.sequences, space.n_states)
    if len(visited) < 2:
        raise InvalidInput("trajectories", "rows in 1 state", "at least 2 states: there is nothing to hide among")
    n_visited = len(visited)
    if all_cells:
        visited, numbered = np.arange(space.n_states), sequences.sequences
    cells = space.subset(visited)
    unseen = share_unseen(numbered, sequences.owners, cells, smoothing, smoothing_support, min_count)
    model, report = fit(
        numbered,
        len(visited),
        smoothing,
        initial,
        min_count,
        smoothing_support=smoothing_support,
        space=cells if merge_rare is None else _without_rare(cells, numbered, merge_rare),
        step=step,
        n_users=len(np.unique(rows.placed.user)),
        source=None if source is None else source.name,
        source_sha256=None if source is None else source.sha256,
        unseen=unseen,
        slots=slots,
        first_steps=sequences.first_steps,
        owners=sequences.owners,
    )
    summary = FitSummary(
        rows=len(trajectories.placed),
        users=len(np.unique(trajectories.placed.user)),
        n_cells=space.n_states,
        n_visited=n_visited,
        dropped=dropped,
        held=sequences.counts["held"],
        report=report,
        all_cells=all_cells,
        unseen=unseen,
    )
    return model, summary


def share_unseen(
    sequences: Sequence[IntArray],
    owners: IntArray,
    space: StateSpace,
    smoothing: float = 0.0,
    smoothing_support: Any = None,
    min_count: int = 1,
) -> float:
    """The share of all moves that would be impossible under a model of everybody but the person who made them.

    ``sequences`` of states, ``owners`` (k,) whose each is; smoothing and ``min_count`` as in `fit`. It tells what drift
    to expect of people who are not in the model; 0 where there is no move at all.

    Source: leave-one-person-out; of moves made once in all it is Good's estimate (1953).
    """
    n = space.n_states
    moves = [s[:-1].astype(np.int64) * n + s[1:] for s in sequences]
    if not sum(map(len, moves)):
        return 0.0
    keys = np.concatenate(moves)
    who = np.repeat(np.unique(owners, return_inverse=True)[1], [len(s) for s in moves])
    pairs, place = np.unique(keys, return_inverse=True)
    movers, count = np.unique(np.stack([place.reshape(-1), who]), axis=1, return_counts=True)
    others = np.bincount(place.reshape(-1))[movers[0]] - count
    impossible = others < max(1, min_count)
    if smoothing:
        smoothed = smoothing_pairs(smoothing_support, n, space).tocsr()
        known = np.asarray(smoothed[pairs // n, pairs % n]).reshape(-1) != 0
        impossible &= ~known[movers[0]]
    return round(float(count[impossible].sum() / len(keys)), 6)


def state_sequences(
    trajectories: Trajectories,
    space: StateSpace,
    *,
    step: int | None = None,
    max_speed: object = None,
    hold: int = 0,
    gap: float | None = None,
) -> tuple[Trajectories, Sequences, Counts]:
    """The rows that are kept, the sequences of states they make, and the rows left out by reason.

    Options as in `fit_trajectories`. The use of a person's rows depends on that person's rows alone. No row at all
    makes no sequence.
    """
    remaining, dropped = trajectories, Counts()
    if max_speed is not None:
        remaining, dropped = remaining.drop_faster_than(max_speed)
    remaining, repeated = _in_steps(remaining, step)
    sequences = remaining.sequences(_states(remaining, space), gap=gap, hold=hold)
    counts = {reason: rows for reason, rows in sequences.counts.items() if reason != "held"}
    return remaining, sequences, dropped + repeated + counts


class OwnedSequences(NamedTuple):
    """Sequences of numbered states, whose each one is, and the number of its first step. Not public."""

    sequences: list[IntArray]
    owners: IntArray
    first_steps: IntArray

    def __repr__(self) -> str:
        return "OwnedSequences(...)"


def records_of(rows: Trajectories, space: StateSpace, *, shortest: int, **options: Any) -> OwnedSequences:
    """The sequences that a private fit counts, those of ``shortest`` rows or more; ``options`` of `state_sequences`."""
    _, sequences, _ = state_sequences(rows, space, **options)
    counted = [k for k, sequence in enumerate(sequences.sequences) if len(sequence) >= shortest]
    return OwnedSequences(
        [sequences.sequences[k] for k in counted], sequences.owners[counted], sequences.first_steps[counted]
    )


def timing_of(step: int | None, gap: float | None, longest: int | None = None) -> dict[str, Any]:
    """``step``, ``gap`` and ``hold`` of `state_sequences`, from seconds: with a step holes up to the gap are filled.

    Raises InvalidInput for a gap below the step, and for one of more steps than a record has (``longest``): filled,
    such a hole would pass the cap by itself, and take memory that no cap bounds.
    """
    if step is None or gap is None:
        return {"step": step, "gap": gap}
    if gap < step:
        raise InvalidInput("gap", f"{gap:g} s", f"at least the step, {step} s")
    if longest is not None and gap // step > longest:
        raise InvalidInput("gap", f"{gap:g} s", f"at most {longest} steps of {step} s, the longest record")
    return {"step": step, "hold": int(gap // step) - 1}


def _in_steps(trajectories: Trajectories, step: int | None) -> tuple[Trajectories, Counts]:
    if step is None:
        return trajectories, Counts()
    if trajectories.step is None:
        return trajectories.resample(step)
    # Rows that are numbered already must be numbered as a release will number them.
    bins = None if trajectories.time is None else np.floor_divide(trajectories.time, step * MICROSECONDS)
    if bins is None or not np.array_equal(bins, trajectories.step):
        expected = "no step here, or a step column that counts these time bins since 1970"
        raise InvalidInput("step", f"{step} s for rows that have steps of their own", expected)
    return trajectories, Counts()


def _states(trajectories: Trajectories, space: StateSpace) -> IntArray:
    """The state of every row, -1 where it is in none."""
    locate = getattr(space, "locate", None)
    if locate is not None:
        if trajectories.lat is None or trajectories.lon is None:
            raise InvalidInput("lat, lon", "no places", "columns lat and lon, which a map needs")
        states, placed = np.full(len(trajectories), -1, dtype=np.int64), ~trajectories.blank
        states[placed] = locate(trajectories.lat[placed], trajectories.lon[placed])
        return states
    if trajectories.state is None:
        raise InvalidInput("state", "no states", "a state column, which a space of names needs")
    return space.indices_of(trajectories.state)


def _without_rare(space: StateSpace, sequences: list[IntArray], fewest: int) -> StateSpace:
    """The space with its rarely visited cells merged into the others."""
    whole(fewest, "merge_rare", 1)
    if space.has_labels:
        raise InvalidInput(
            "merge_rare", "labels, none of which is nearer than another", "nothing; or answers in numbers"
        )
    visits = np.bincount(np.concatenate(sequences), minlength=space.n_states)
    frequent, rare = np.flatnonzero(visits >= fewest), np.flatnonzero(visits < fewest)
    if len(frequent) < 2:
        fault = f"{fewest}, which {many(len(frequent), 'state')} of {space.n_states} reach"
        raise InvalidInput("merge_rare", fault, "a number of visits that at least 2 states reach")
    partners = nearest_among(space.lattice, space.frame, rare, frequent)
    return space.merged(np.stack([rare, partners], axis=1))


def _visited(n_visited: int, n_cells: int, all_cells: bool) -> str:
    if n_visited == n_cells:
        return f"all {many(n_cells, 'state')} visited"
    if all_cells:
        return f"{n_visited} of {many(n_cells, 'state')} visited; the others are kept"
    return f"{n_visited} of {many(n_cells, 'state')} visited; the others are left out of the model"
