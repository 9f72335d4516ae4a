"""Queries of Spark frames and private learning: executors count, the driver draws once and stores before it shows.

The answers are those of `dphmm.query`: the same options, numbers and statement. The exact counts come to the driver, no
row does. The noise is drawn in the transaction that stores an answer or a model, under an id that the caller chooses.
The same id gives what was stored again, whatever the frame is then: a driver that is restarted shows what was stored,
and nothing else.

Proofs: docs/proofs/contributions.md, docs/proofs/account.md, docs/proofs/learning.md. Decision: docs/adr/0030.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.accounting.event import LearningEvent
from dphmm.dependent._counts import Histogram
from dphmm.dependent._degrees import Degree
from dphmm.dependent._inputs import Rejected
from dphmm.dependent._question import ExactCounts
from dphmm.dependent._records import by_place
from dphmm.errors import InvalidInput
from dphmm.markov.private.chain import end_of
from dphmm.markov.private.planned import PlannedFit
from dphmm.markov.private.sensitivity import RecordBounds
from dphmm.markov.stochastic import beginning
from dphmm.spark.counting import (
    INTEGERS,
    MOMENTS,
    NUMBERS,
    TEXT,
    FrameColumns,
    checked_type,
    counted,
    key_totals,
    readable_user,
    tasks_of,
    text_of,
    types_of,
)
from dphmm.spark.settings import require_fixed
from dphmm.spark.tasks import (
    BUCKETS,
    DEGREES,
    TURNS,
    ByName,
    ByNearestPlace,
    CountRecords,
    OrderEdges,
    PackEdges,
    TakeEdges,
    WithoutValues,
    counts_of_intervals,
)
from dphmm.states.trajectory import MICROSECONDS
from dphmm.storage.publications import fit_counts_once
from dphmm.types import Bits, Exact, IntArray

if TYPE_CHECKING:
    from dphmm.accounting.ledger import Ledger
    from dphmm.dependent._question import QueryResult
    from dphmm.markov.model import MarkovModel
    from dphmm.markov.slots import Slots
    from dphmm.states.space import StateSpace
    from dphmm.storage import cells

_LABELS = (*INTEGERS, *TEXT)


def histogram(
    frame: Any,
    dependence: Any,
    epsilon: Exact,
    *,
    ledger: Ledger,
    event_id: str,
    bits: Bits | None = None,
    **options: Any,
) -> QueryResult:
    """The number of records of a Spark frame in each state, in each window of time, with noise that is drawn once.

    Parameters
    ----------
    frame : rows with columns user, state (a name of the public states) and step (whole numbers), or t (timestamps, with
        ``step`` or a model that has one). On a map also lat and lon instead of state.
    dependence, epsilon : as in `dphmm.query`.
    ledger : holds the answer and its loss before it is returned; the loss counts for every person of it.
    event_id : the name of this answer there. The same id gives the stored answer, whatever the frame is.
    bits, options : as in `dphmm.query` of a "histogram": states, times, windows, max_rows_per_user and more.

    Of a user's rows at one step the latest counts, and of those the one in the state of the least number. Otherwise it
    is the answer of `dphmm.query`, and under the same words its numbers; but the rows that do not count are not listed.

    Returns the table (columns first, end, state, count) with its statement. Raises InvalidInput and Refused for public
    options, and BudgetExceeded where a cap would be passed, before any job starts.

    Examples
    --------
    ``dphmm.spark.histogram(visits, "group:5", 1, states="home,work", ledger=ledger, event_id="visits-2026").table``

    Source: docs/proofs/contributions.md.
    """
    types = types_of(frame)
    asked = Histogram(_header(types), dependence, epsilon, options)
    roles, space, spans, n = asked.roles(), asked.space, tuple(asked.spans), len(asked.cells)
    task = CountRecords(
        spans,
        n,
        asked.clock.times,
        asked.clock.first_step,
        asked.dependence.most,
        n - 1,
        None if roles.step is not None else _bin(asked, types),
        ByNearestPlace(space) if by_place(roles, space) else ByName(tuple(space.names)),
        by_step=False,
    )
    _check_types(types, roles, by_place(roles, space))

    def count() -> ExactCounts:
        keys, totals = key_totals(_records(frame, types, roles, by_place(roles, space)), task, asked.data.spelling)
        return ExactCounts(counts_of_intervals(keys, totals, spans, n), Rejected("row"))

    return asked.answer_counts(count, ledger, event_id, bits)


def degrees(
    frame: Any,
    dependence: Any,
    epsilon: Exact,
    *,
    ledger: Ledger,
    event_id: str,
    bits: Bits | None = None,
    **options: Any,
) -> QueryResult:
    """The number of people with 0, 1, 2, ... edges in a Spark frame of edges, with noise that is drawn once.

    Parameters
    ----------
    frame : an edge a row: two columns, each a number or a name of a public person.
    dependence, epsilon : as in `dphmm.query`.
    ledger, event_id : as in `dphmm.spark.histogram`.
    bits, options : as in `dphmm.query` of a "degree": people, level, cap and more.

    It is the answer of `dphmm.query`, and under the same words its numbers; but the rows that are no edges are not
    listed. All edges pass one task, eight bytes each, which holds a number for each of the people.

    Returns the table (columns degree, count) with its statement. Raises InvalidInput for public options, and
    BudgetExceeded where a cap would be passed, before any job starts.

    Examples
    --------
    ``dphmm.spark.degrees(edges, "independent", 1, people=1000, level="node", cap=50, ledger=ledger,
    event_id="edges-2026").table``

    Source: docs/proofs/dependent-markov.md.
    """
    types = types_of(frame)
    asked = Degree(_header(types), dependence, epsilon, options)
    ends = asked.ends()
    for name in ends:
        checked_type(types, name, _LABELS)

    def count() -> ExactCounts:
        return ExactCounts(_people_by_degree(frame, types, ends, asked), Rejected("row"))

    return asked.answer_counts(count, ledger, event_id, bits)


def _header(types: Mapping[str, str]) -> Any:
    """A table with these columns and no row: all that a question looks at before it counts."""
    import pyarrow as pa

    return pa.table({name: pa.array([], pa.string()) for name in types})


def _bin(asked: Histogram, types: Mapping[str, str]) -> int:
    """Microseconds of a step."""
    seconds = asked.clock.seconds
    if seconds is None:
        expected = "a column step, or timestamps and step, as step='5min': rows of a frame are in no order"
        raise InvalidInput("columns", ", ".join(types), expected)
    return seconds * MICROSECONDS


def _check_types(types: Mapping[str, str], roles: cells.Roles, places: bool) -> None:
    checked_type(types, roles.user, _LABELS)
    if roles.step is not None:
        checked_type(types, roles.step, INTEGERS)
    if roles.time is not None:
        checked_type(types, roles.time, MOMENTS)
    for name in (roles.lat, roles.lon) if places else (roles.state,):
        assert name is not None
        checked_type(types, name, NUMBERS if places else _LABELS)


def _records(frame: Any, types: Mapping[str, str], roles: cells.Roles, places: bool) -> Any:
    """The columns that are counted: owner, step, time where steps are numbers and there is one, and state or place."""
    columns = [readable_user(frame, types, roles.user).alias("owner")]
    if roles.step is None:
        columns.append(frame[f"`{roles.time}`"].alias("step"))
    else:
        columns.append(frame[f"`{roles.step}`"].cast("long").alias("step"))
        if roles.time is not None:
            columns.append(frame[f"`{roles.time}`"].alias("time"))
    if places:
        columns += [
            frame[f"`{name}`"].cast("double").alias(role) for role, name in (("lat", roles.lat), ("lon", roles.lon))
        ]
    else:
        assert roles.state is not None
        columns.append(text_of(frame, roles.state).cast("binary").alias("state"))
    return frame.select(*columns)


def _people_by_degree(frame: Any, types: Mapping[str, str], ends: tuple[str, str], asked: Degree) -> IntArray:
    """Numbers of people (cap + 1,) by degree, as `histogram_of_degrees` has them.

    The number and the length of the rows that Spark moves follow from the number of rows of the frame.
    """
    cap, n = asked.cap, asked.n_people
    sides = {
        side: frame[f"`{name}`"].cast("long") if types[name] in INTEGERS else text_of(frame, name)
        for side, name in zip("ab", ends, strict=True)
    }
    rows = frame.select(*(column.alias(side) for side, column in sides.items()))
    require_fixed(rows)
    packed = rows.mapInArrow(WithoutValues(PackEdges(asked.people, asked.data.spelling)), BUCKETS)
    placed = packed.repartition(tasks_of(frame), "bucket").sortWithinPartitions("bucket")
    edges = placed.mapInArrow(WithoutValues(OrderEdges()), TURNS).repartition(1).sortWithinPartitions("turn")
    # At edge level nobody has as many.
    task = TakeEdges(n, cap, cap if asked.given["level"] == "node" else n)
    people = edges.mapInArrow(WithoutValues(task), DEGREES).toArrow().column("people").to_pylist()
    # Spark may leave out the task where the frame has no row.
    return np.frombuffer(people[0], dtype="<i8") if people else np.array([n] + [0] * cap)


def fit_private(
    frame: Any,
    space: StateSpace,
    epsilon: Exact,
    max_length: int,
    *,
    ledger: Ledger,
    event_id: str,
    columns: Mapping[str, str] | None = None,
    neighbours: str = "add-remove",
    max_sequences: int = 1,
    mask: Any = None,
    initial: str | None = None,
    bits: Bits | None = None,
    step: int | None = None,
    source: str | None = None,
    slots: Slots | None = None,
) -> tuple[MarkovModel, LearningEvent]:
    """Fit a Markov model to a Spark frame with pure differential privacy; a record is all rows of one user.

    Parameters
    ----------
    frame, space, columns : as in `dphmm.spark.count_transitions`.
    ledger : holds the model and its loss before the model is returned; the loss counts for every person of it.
    event_id : the id of this fit there. The same id gives the stored model, whatever the frame is, and draws nothing.
    epsilon, max_length, neighbours, max_sequences, mask, initial, bits, step, source : as in
        `dphmm.markov.private.fit_chain`. Where it begins at first states, sequences of one row count too.
    slots : as there; where they go by the clock, steps are numbers of time bins since 1970. A state END ends sequences,
        as there.

    Under the same words it is the model that `dphmm.MarkovModel.fit_private` learns from the same sequences. Public
    options are checked, and caps of the ledger kept, before any job starts; no transaction is open while a job runs.

    Returns the model and the event. Raises InvalidInput for public options and for another fit under a stored id;
    BudgetExceeded for one that passes a cap.

    Examples
    --------
    ``model, event = dphmm.spark.fit_private(frame, space, 1, 24, ledger=dphmm.open_ledger("ledger.db"),
    event_id="walks-2026")``

    Source: docs/proofs/learning.md.
    """
    caps = RecordBounds(max_length, max_sequences, neighbours)
    planned = PlannedFit(
        space.n_states,
        epsilon,
        caps,
        "owner",
        mask=mask,
        initial=initial,
        bits=bits,
        space=space,
        step=step,
        source=source,
        slots=slots,
        end=end_of(space, initial, step),
    )
    roles, shortest = FrameColumns.of(frame, space, columns), 1 if beginning(initial, step)[0] == "first" else 2
    model = fit_counts_once(
        ledger,
        event_id,
        planned,
        lambda: counted(frame, roles, space, caps, shortest, ledger.spelling, planned.slots, planned.step, planned.end),
        {"space": space},
    )
    return model, planned.event
