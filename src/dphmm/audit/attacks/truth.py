"""True states beside released rows: for the data owner alone, and only of the trajectories that were released."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dphmm.accounting.ledger import Ledger
from dphmm.accounting.moments import ORDER, ROWS, TIMES
from dphmm.accounting.person import person_key
from dphmm.audit.released import ReleasedFile
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.statement.parts import member
from dphmm.statement.release import ReleaseStatement
from dphmm.states.maps import MapSpace
from dphmm.states.space import StateSpace
from dphmm.states.trajectory import Trajectories, in_steps, public_times, true_states
from dphmm.storage.trajectories import load_trajectories
from dphmm.types import BoolArray, FloatArray, IntArray

_EXPECTED = "the trajectories that were released, all of them from the first row on"


@dataclass(frozen=True, eq=False, repr=False)
class Truth:
    """The truth of n released rows. Private.

    states : the true state (n,), the nearest one for a place that is in none, -1 for a name that no state has.
    answers : the true answer (n, d): on a map the place itself, in metres of the map's projection, wherever it is on
        earth, else the answer of the state; NaN where the state is -1.
    outside : True where a row (n,) is in no state.
    """

    states: IntArray
    answers: FloatArray
    outside: BoolArray

    @property
    def known(self) -> BoolArray:
        """The rows (n,) whose true answer is known."""
        return np.asarray(~np.isnan(self.answers).any(axis=1))


def truth_of(
    file: ReleasedFile,
    truth: Any,
    model: MarkovModel,
    space: StateSpace,
    begins: Mapping[str, str] | None = None,
    answer: str | None = None,
) -> Truth:
    """The truth of each released row.

    ``truth`` : trajectories as they were released, a file or a table. A row belongs to the released row of its subject
    and time where rows are published with times, else to that of its subject and number, counted from the subject's
    first row; then the numbers must be the released ones, one for one.
    ``begins`` : the origin of subjects that a ledger knows, from the ledger.
    ``answer`` : the rule for several rows in one step, see `answer_of`; "last" where the release does
        not say so.

    Raises InvalidInput, without any of it, where it does not have every released row, or has others in between.
    """
    rule = _rule(file)
    rows = _Rows.of(_named(_loaded(truth, space, model.step, rule), file, rule), model, answer or "last")
    by_time = rows.times is not None and file.times is not None
    numbers = rows.times if by_time else rows.numbers
    assert numbers is not None
    known = {(user, n): row for row, (user, n) in enumerate(zip(rows.users, numbers.tolist(), strict=True))}
    released = file.times if by_time else file.step
    assert released is not None
    keys = list(zip(file.users, released.tolist(), strict=True))
    missing = sum(key not in known for key in keys)
    if missing:
        raise InvalidInput("truth", f"no row for {missing} of {len(keys)} released rows", _EXPECTED)
    at = np.array([known[key] for key in keys], dtype=np.int64)
    if not by_time:
        _check_times(file, rows, at)
        _check_numbers(file, rows)
        _check_begins(rows, {} if begins is None or file.streamed else begins)
    trajectories = rows.trajectories.take(rows.row[at])
    states, outside = true_states(trajectories, space)
    return Truth(states, _true_answers(trajectories, states, space), outside)


def _true_answers(trajectories: Trajectories, states: IntArray, space: StateSpace) -> FloatArray:
    if isinstance(space, MapSpace) and trajectories.lat is not None and trajectories.lon is not None:
        return space.projection.to_metres(trajectories.lat, trajectories.lon)
    answers = space.own_answers[states].astype(np.float64)
    answers[states < 0] = np.nan
    return np.asarray(answers)


@dataclass(frozen=True, eq=False, repr=False)
class _Rows:
    """The rows that a release of these trajectories would have: whose, the number (from 1) and the time of each."""

    trajectories: Trajectories
    users: list[str]
    row: IntArray
    numbers: IntArray
    times: IntArray | None
    #: The origin of each user's steps, as a ledger has it.
    begins: dict[str, str]

    @classmethod
    def of(cls, truth: Trajectories, model: MarkovModel, answer: str) -> _Rows:
        stepped, _ = in_steps(truth, model.step, answer)
        times, clock = _published(stepped, model.step), None
        if model.step is None and (stepped.step is None or stepped.counted):
            clock = ORDER if stepped.order is not None else ROWS if stepped.time is None else TIMES
            # Rows of one moment are one row.
            stepped = replace(stepped, step=stepped.time if stepped.order is None else stepped.order)
        visits, steps = stepped.visits(answer)[0], stepped.steps()
        begins = {visit.user: clock or str(int(steps[visit.rows[0]])) for visit in visits}
        if clock is not None:
            visits = [visit._replace(steps=np.arange(1, len(visit.rows) + 1)) for visit in visits]
        # A row without a place has a step and no answer.
        placed = ~stepped.blank
        visits = [
            visit._replace(steps=visit.steps[placed[visit.rows]], rows=visit.rows[placed[visit.rows]])
            for visit in visits
        ]
        row = np.concatenate([visit.rows for visit in visits]) if visits else np.zeros(0, dtype=np.int64)
        return cls(
            trajectories=stepped,
            users=[visit.user for visit in visits for _ in visit.rows],
            row=row,
            numbers=np.concatenate([visit.steps for visit in visits]) if visits else row,
            times=None if times is None else times[row],
            begins=begins,
        )


def _published(stepped: Trajectories, step: int | None) -> IntArray | None:
    """The times under which rows are published; None for steps that are no time bins, which no release has."""
    try:
        return public_times(stepped, step)
    except InvalidInput:
        return None


def _check_times(file: ReleasedFile, rows: _Rows, at: IntArray) -> None:
    """Numbers that count rows are shifted by a row too many; times are not."""
    if file.times is None:
        return
    if rows.times is None:
        raise InvalidInput("truth", "rows without times, of a release that has them", _EXPECTED)
    other = int((rows.times[at] != file.times).sum())
    if other:
        raise InvalidInput("truth", f"other times than those of {other} of {len(at)} released rows", _EXPECTED)


def _check_numbers(file: ReleasedFile, rows: _Rows) -> None:
    """Check that a subject's numbers are the release's: without times a row too many would shift all later ones."""
    if file.times is not None:
        return
    first: dict[str, int] = {}
    for user, step in zip(file.users, file.step.tolist(), strict=True):
        first[user] = min(step, first.get(user, step)) if file.streamed else 1
    released = {*zip(file.users, file.step.tolist(), strict=True), *file.unasked}
    pairs = zip(rows.users, rows.numbers.tolist(), strict=True)
    more = sum(user in first and n >= first[user] and (user, n) not in released for user, n in pairs)
    if more:
        got = f"{more} rows of released subjects that were not released, and no times to tell which"
        raise InvalidInput("truth", got, _EXPECTED)


def begins_of(ledger: Ledger | None, query: str, file: ReleasedFile) -> dict[str, str]:
    """The origin of each released subject's steps, as far as a ledger stores it."""
    headers = {} if ledger is None else {user: ledger.header(user, query) for user in dict.fromkeys(file.users)}
    origins = {user: header.options.get("origin", "") for user, header in headers.items() if header is not None}
    return {user: origin for user, origin in origins.items() if origin}


def answer_of(ledger: Ledger | None, query: str, file: ReleasedFile, statement: ReleaseStatement | None) -> str | None:
    """The rule of a release for several rows in one step, from its ledger or its statement; None without either."""
    users = list(dict.fromkeys(file.users))
    headers = [] if ledger is None else [header for header in ledger.headers_of(users) if header.query == query]
    rules = {header.options["answer"] for header in headers if "answer" in header.options}
    if len(rules) == 1:
        return rules.pop()
    rule: str | None = None if statement is None else member(statement, "answer")
    return rule


def _check_begins(rows: _Rows, begins: Mapping[str, str]) -> None:
    other = sum(user in rows.begins and rows.begins[user] != origin for user, origin in begins.items())
    if other:
        raise InvalidInput("truth", f"another first row than the ledger says of {other} subjects", _EXPECTED)


def _rule(file: ReleasedFile) -> str:
    """The rule of spelling by which the people of a file are several; its ledger has it, and need not be here."""
    users = set(file.users)
    return "same" if len(set(map(person_key, users))) == len(users) else "exact"


def _named(rows: Trajectories, file: ReleasedFile, rule: str) -> Trajectories:
    """The rows of people as they are called in the file."""
    called = {person_key(user, rule): user for user in file.users}
    return replace(rows, users=tuple(called.get(person_key(user, rule), user) for user in rows.users))


def _loaded(truth: Any, space: StateSpace, step: int | None, rule: str) -> Trajectories:
    """The rows that a release takes: of a file, without those whose steps are no time bins."""
    if isinstance(truth, Trajectories):
        return truth
    if isinstance(truth, (str, os.PathLike)):
        try:
            return load_trajectories(truth, bins=step, space=space, spelling=rule).trajectories
        except InvalidInput as error:
            if error.field == "path":
                raise
            # A column's name alone would not say which of several files is meant.
            raise InvalidInput("truth", Path(truth).name, f"{_EXPECTED} ({error})") from None
    return load_trajectories(truth, space=space, spelling=rule).trajectories
