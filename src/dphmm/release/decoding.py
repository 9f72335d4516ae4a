"""Smooth finished releases, and tell how they changed the odds of an event: from public data alone.

A release was made knowing the answers before it; smoothing knows those after it too. It is post-processing: no true
state is there to be used, and nothing is spent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Unpack

import numpy as np

from dphmm._progress import Progress, shown
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.policy.graph import PolicyGraph
from dphmm.session.believing import believed_model
from dphmm.session.odds import EventOdds, EventWatch, PathEvent
from dphmm.session.options import PlanChoices, ReleaseChoices
from dphmm.session.own_places import OwnPlaces, chosen_places, deciding, public_base
from dphmm.session.setting import Setting, StepChoices, Subjects, check_same_states, checked_steps, names_chosen
from dphmm.session.smoothing import AnswerHistory, SmoothedSteps, Smoother, Smoothers, smooth_people
from dphmm.states.space import StateSpace
from dphmm.states.trajectory import MICROSECONDS
from dphmm.storage.columns import Times, zoned_times
from dphmm.storage.released import ReleasedRows, released_rows, smoothed_table
from dphmm.storage.tables import to_kind
from dphmm.types import Exact, FloatArray, IntArray, States

__all__ = [
    "OtherQuery", "epsilon_of", "event_odds", "odds_of_rows", "own_places_of", "smooth", "smooth_rows",
]  # fmt: skip

#: Most numbers that marginals may be: two gigabytes.
_MOST_MARGINALS = 2**28


@dataclass(frozen=True)
class OtherQuery:
    """A finished release of another query about the same subjects, for `smooth`.

    released : its table, as for `smooth`. space : its answers; those of the first query when None. epsilon : read from
    the table when None. options : mechanism, protection, as it was released with. Model,
    policy, start, beginnings and the choices of single steps are those of the first query: a subject has one each.
    """

    released: Any
    space: StateSpace | None = None
    epsilon: Exact | None = None
    options: PlanChoices = field(default_factory=PlanChoices)

    def read(
        self, first: Setting, initials: Mapping[str, Any] | None, step_choices: StepChoices | None
    ) -> tuple[ReleasedRows, Subjects]:
        """Its rows, and what they were released under. Raises InvalidInput as `smooth` does."""
        public = first.model, first.policy, first.space if self.space is None else self.space
        choices: PlanChoices = {**self.options, "start": first.options.start}
        return rows_and_subjects(self.released, public, self.epsilon, initials, step_choices, **choices)


def rows_and_subjects(
    released: Any,
    public: tuple[MarkovModel, PolicyGraph, StateSpace],
    epsilon: Exact | None,
    initials: Mapping[str, Any] | None,
    step_choices: StepChoices | None,
    **choices: Unpack[ReleaseChoices],
) -> tuple[ReleasedRows, Subjects]:
    """The rows of a finished release, and what they were released under. Raises InvalidInput as `smooth` does."""
    check_same_states(*public)
    rows = released_rows(released, public[-1])
    exact = epsilon_of(rows) if epsilon is None else epsilon
    setting = Setting.of(*public, exact, varies=names_chosen(checked_steps(step_choices or {})), **choices)
    return rows, Subjects(setting, initials, step_choices)


def smooth(
    released: Any,
    model: MarkovModel,
    policy: PolicyGraph,
    space: StateSpace,
    epsilon: Exact | None = None,
    *,
    initials: Mapping[str, Any] | None = None,
    step_choices: StepChoices | None = None,
    beside: Sequence[OtherQuery] = (),
    path: bool = False,
    marginals: bool = False,
    own_places: bool = False,
    believe: MarkovModel | None = None,
    progress: bool | Progress = True,
    **choices: Unpack[ReleaseChoices],
) -> Any:
    """Smooth a finished release: estimate each step of a subject from all its answers together.

    Parameters
    ----------
    released : the result of `release_many` or ``dphmm release``: a pandas, polars or Arrow table with user, step, z_0..
        (z of labels), epsilon and plan, and t where there are times; rows in any order, steps without a row are
        predicted through.
    model, policy, space, epsilon and the other choices : those of the release; ``epsilon`` is read from the table
        by default.
    initials, step_choices : those of the release, as `release_many` takes them. The choices for a row are told by
        the hash of its plan, so that steps need no numbers.
    beside : finished releases of other queries about the same subjects, as `OtherQuery`: their answers count too.
    path : add the state of every row on the single likeliest path (Viterbi).
    marginals : add the probability of every state to every row.
    own_places : learn of each subject, from its answers alone, the few places of its own that it returns to. Answers
        that are left out decide for all together whether that helps; where it does not, nothing changes.
    believe : another model of the same states, with which the answers are read; the plans stay those of ``model``. It
        is used with a jump of 0.001 beside its moves. One that was fitted on true rows without privacy makes estimates
        that are not to be published.
    progress : show a bar on a terminal, or call (done, total).

    Returns
    -------
    A table of the same kind, its rows in the same order: user, t, step, smoothed_0.. (the posterior mean answer,
    the estimate of least expected squared error; not of labels), smoothed (the likeliest state of the step),
    probability (of that state), for maps smoothed_lat and smoothed_lon; with ``path`` path, for maps path_lat and
    path_lon; with ``marginals`` a list of N numbers.

    Raises
    ------
    InvalidInput : a column that is missing or cannot be read; an answer that was drawn under another plan than model,
        policy, epsilon and options make.

    Examples
    --------
    >>> import dphmm, pandas
    >>> space = dphmm.StateSpace.categories(["home", "work"])
    >>> model = dphmm.MarkovModel([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]], space=space)
    >>> public = model, dphmm.policy.complete(2), space
    >>> rows = pandas.DataFrame({"user": ["ann", "ann"], "step": [1, 2], "state": ["home", "work"]})
    >>> released = dphmm.release_many(rows, *public, epsilon=1, bits=dphmm.ReplayBits(1), progress=False)
    >>> list(dphmm.reconstruction.smooth(released, *public, progress=False).columns)
    ['user', 'step', 'smoothed_0', 'smoothed', 'probability']

    Source: docs/reading.md.
    """
    rows, subjects = rows_and_subjects(released, (model, policy, space), epsilon, initials, step_choices, **choices)
    others = [query.read(subjects.setting, initials, step_choices) for query in beside]
    places = own_places_of(rows, subjects, others, believe) if own_places else None
    with shown(progress, "smooth") as report:
        smoothed = smooth_rows(
            *(rows, subjects, believe),
            beside=others,
            path=path,
            marginals=marginals,
            places=places,
            progress=report,
        )
    return to_kind(smoothed_table(rows, smoothed, space), released)


def smooth_rows(
    rows: ReleasedRows,
    subjects: Subjects,
    believe: MarkovModel | None = None,
    *,
    beside: Sequence[tuple[ReleasedRows, Subjects]] = (),
    path: bool = False,
    marginals: bool = False,
    places: OwnPlaces | None = None,
    progress: Progress | None = None,
) -> SmoothedSteps:
    """The rows smoothed user by user, in their own order; ``beside``: the rows of their other queries.

    ``places``: the parameters of own places, from `own_places_of`. ``believe``: as of `smooth`.

    Raises as `smooth` does.
    """
    n, space = len(rows.users), subjects.setting.space
    whole = _room(n, space.n_states) if marginals else None
    way = np.empty(n, dtype=np.int64) if path else None
    mean, probability, state = np.empty((n, space.dimension)), np.empty(n), np.empty(n, dtype=np.int64)
    believed = believed_model(subjects.setting, believe)
    smoothers, others, done = Smoothers(subjects, believed), OtherRows(beside), 0
    users, models = rows.by_user(), (subjects.setting.model, believed)
    people = ((smoothers.of(user), published_of(rows, user, at, *models), others.of(user)) for user, at in users)
    for (_, at), part in zip(users, smooth_people(people, marginals=marginals, path=path, places=places), strict=True):
        mean[at], probability[at], state[at] = part.mean, part.probability, part.state
        if way is not None and part.path is not None:
            way[at] = part.path
        if whole is not None:
            whole[at] = part.marginals
        done += len(at)
        if progress is not None:
            progress(done, n)
    return SmoothedSteps(mean, state, probability, way, whole)


def own_places_of(
    rows: ReleasedRows,
    subjects: Subjects,
    beside: Sequence[tuple[ReleasedRows, Subjects]] = (),
    believe: MarkovModel | None = None,
) -> OwnPlaces | None:
    """The parameters of own places that best predict left-out answers of these people; None if none do.

    Raises as `smooth` does.
    """
    believed = believed_model(subjects.setting, believe)
    smoothers, others = Smoothers(subjects, believed), OtherRows(beside)
    rows_of = dict(rows.by_user())
    names = deciding({user: sum(rows.plans[row] != "" for row in at.tolist()) for user, at in rows_of.items()})
    models = subjects.setting.model, believed
    answers = ((user, published_of(rows, user, rows_of[user], *models)) for user in names)
    people = (smoothers.of(user).person(published, others.of(user)) for user, published in answers)
    return chosen_places(people, public_base(subjects.setting.model))


class OtherRows:
    """The answers of other queries, user by user."""

    def __init__(self, beside: Sequence[tuple[ReleasedRows, Subjects]]) -> None:
        self._queries = [(rows, dict(rows.by_user()), Smoothers(subjects)) for rows, subjects in beside]

    def of(self, user: str) -> list[tuple[Smoother, AnswerHistory]]:
        """The smoother and the published answers about a user, for each query that knows the user."""
        return [
            (smoothers.of(user), published_of(rows, user, rows_of[user], smoothers.of(user).model))
            for rows, rows_of, smoothers in self._queries
            if user in rows_of
        ]


def event_odds(
    released: Any,
    model: MarkovModel,
    policy: PolicyGraph,
    space: StateSpace,
    states: States,
    first: int | str,
    last: int | str,
    epsilon: Exact | None = None,
    *,
    always: bool = False,
    beside: Sequence[OtherQuery] = (),
    believe: MarkovModel | None = None,
    initials: Mapping[str, Any] | None = None,
    step_choices: StepChoices | None = None,
    **choices: Unpack[ReleaseChoices],
) -> list[EventOdds]:
    """The change of the odds, by the published answers, of "in one of these states at some step from first to last".

    Parameters
    ----------
    released, model, policy, space, epsilon, initials, step_choices : as for `smooth`; ``choices`` are its other choices
        of the release.
    states : the states of the event, a mask (N,) or state numbers.
    first, last : step numbers from 1; or times with a zone, such as "2024-05-06T09:00Z": the steps from that of
        ``first`` to the last that begins before ``last``.
    always : at every step of the window, not at some.
    beside : finished releases of other queries about the same subjects: their answers count too.
    believe : another model of the same states, by which prior and posterior are computed, as for `smooth`.

    Returns
    -------
    For every subject, in order of names, ``subject``, ``prior`` and ``posterior`` (each with ``probability`` and
    ``log_odds``), ``loss`` (log of posterior odds over prior odds; None where the model alone decides the event) and
    ``cost``, the sum of costs that bounds it. With times, subjects whose step 1 lies after ``first`` are left out.

    Raises
    ------
    InvalidInput : as `smooth` does; for states that there are not, for a window that ends before it begins, and for
        times where there is no column t or the model has no step.

    Examples
    --------
    >>> import dphmm, pandas
    >>> space = dphmm.StateSpace([0, 1, 2])
    >>> model = dphmm.MarkovModel([0.5, 0.25, 0.25], [[0.8, 0.2, 0], [0.1, 0.8, 0.1], [0, 0.2, 0.8]])
    >>> policy = dphmm.policy.complete(3)
    >>> plan = dphmm.ReleaseSession(model, policy, space, epsilon=1).plan
    >>> row = {"user": "a", "step": 1, "z_0": 2.0, "epsilon": 1.0, "plan": plan.hash}
    >>> told = dphmm.reconstruction.event_odds(pandas.DataFrame([row]), model, policy, space, [2], 1, 3)[0]
    >>> round(told.prior.probability, 3), told.posterior.probability > told.prior.probability, told.loss <= told.cost
    (0.296, True, True)

    Source: docs/proofs/composition.md.
    """
    rows, subjects = rows_and_subjects(released, (model, policy, space), epsilon, initials, step_choices, **choices)
    others = [query.read(subjects.setting, initials, step_choices) for query in beside]
    return odds_of_rows(rows, subjects, states, first, last, always=always, beside=others, believe=believe)


def odds_of_rows(
    rows: ReleasedRows,
    subjects: Subjects,
    states: States,
    first: int | str,
    last: int | str,
    *,
    always: bool = False,
    beside: Sequence[tuple[ReleasedRows, Subjects]] = (),
    users: Sequence[str] | None = None,
    believe: MarkovModel | None = None,
    progress: Progress | None = None,
) -> list[EventOdds]:
    """The odds user by user, of ``users`` or of all; ``beside``: the rows of their other queries.

    Raises as `event_odds` does.
    """
    parts = rows_of_users(rows, users)
    n_states = subjects.setting.model.n_states
    if isinstance(first, str) != isinstance(last, str):
        raise InvalidInput("last", last, "a time as first is one, or a step number as first is one")
    if isinstance(first, str):
        windows = _windows(rows, parts, subjects.setting.model, str(first), str(last))
        event = PathEvent.of(states, n_states, 1, 1, always)
    else:
        event = PathEvent.of(states, n_states, first, int(last), always)
        windows = [(event.first, event.last)] * len(parts)
    watches, odds, others = dict[Setting, EventWatch](), [], OtherRows(beside)
    believed = believed_model(subjects.setting, believe)
    for done, ((user, at), window) in enumerate(zip(parts, windows, strict=True), start=1):
        if window[0] >= 1:
            setting = subjects.of(user)
            if setting not in watches:
                watches[setting] = EventWatch(setting, event, subjects, believed)
            published = published_of(rows, user, at, setting.model, believed)
            odds.append(watches[setting].odds(published, window, others.of(user)))
        if progress is not None:
            progress(done, len(parts))
    if not odds:
        raise InvalidInput("first", first, "a time from the first step of some subject on; the model knows none before")
    return odds


def rows_of_users(rows: ReleasedRows, users: Sequence[str] | None = None) -> list[tuple[str, IntArray]]:
    """The row numbers of some users, or of all; InvalidInput for a user without rows."""
    parts = rows.by_user()
    if users is None:
        return parts
    known = dict(parts)
    for user in users:
        if user not in known:
            raise InvalidInput("user", user, "a user of the released file")
    return [(user, known[user]) for user in users]


def published_of(rows: ReleasedRows, user: str, own: IntArray, *models: MarkovModel | None) -> AnswerHistory:
    """One user's rows as they were published; times are read where slots of one of the models go by a clock."""
    plans = [rows.plans[row] for row in own.tolist()]
    seconds = [model.step for model in models if model is not None and model.example_origin]
    origin = rows.origin(own, seconds[0]) if seconds else ""
    return AnswerHistory(user, rows.step[own], rows.z[own], plans, rows.epsilon[own], origin=origin)


def _windows(
    rows: ReleasedRows, parts: Sequence[tuple[str, IntArray]], model: MarkovModel, first: str, last: str
) -> list[tuple[int, int]]:
    """The steps of each user between two times."""
    if rows.times is None or model.step is None:
        fault = f"{first}, but " + ("the table has no column t" if rows.times is None else "the model has no time step")
        raise InvalidInput("first", fault, "step numbers, such as 1")
    begins, ends, width = _moment(first, "first"), _moment(last, "last"), model.step * MICROSECONDS
    if ends <= begins:
        raise InvalidInput("last", last, f"a time after {first}")
    micros, marks = Times("t", "UTC").add(rows.times)
    known = ~np.logical_or.reduce(list(marks.values()))
    before = micros // width - rows.step
    windows = []
    for user, at in parts:
        offsets = np.unique(before[at][known[at]])
        if len(offsets) != 1:
            fault = f"times of {user!r} that " + ("do not go with its steps" if len(offsets) else "cannot be read")
            raise InvalidInput("t", fault, "a table as it was released, and the model of the release; or step numbers")
        windows.append((begins // width - int(offsets[0]), (ends - 1) // width - int(offsets[0])))
    return windows


def _moment(text: str, field: str) -> int:
    """Microseconds since 1970 of a time with a zone."""
    micros, none = zoned_times([text], field)
    if none.any():
        raise InvalidInput(field, text, "a step number, or a time with a zone, such as 2024-05-06T09:00Z")
    return int(micros[0])


def epsilon_of(rows: ReleasedRows) -> Fraction:
    """The epsilon of the rows, as the decimal it prints as. Raises InvalidInput unless it is one and the same.

    Rows of a public constant have none.
    """
    seen = np.unique(rows.epsilon[rows.epsilon != 0])
    if len(seen) != 1:
        fault = f"{len(seen)} different ones in the table" if len(seen) else "none in the table, public constants only"
        raise InvalidInput("epsilon", fault, "one; give the epsilon of the release")
    return Fraction(repr(float(seen[0])))


def _room(rows: int, n_states: int) -> FloatArray:
    if rows * n_states > _MOST_MARGINALS:
        fault = f"{rows} rows of {n_states} states"
        raise InvalidInput("marginals", fault, f"at most {_MOST_MARGINALS} numbers; smooth some users at a time")
    return np.empty((rows, n_states))
