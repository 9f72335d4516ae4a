"""Figures of a table for its owner, before anything is spent: coarse on purpose, and why a release would not begin.

They are for the owner alone, who does not choose by them: an option that was fitted to figures is made of the data, and
no epsilon counts it (SECURITY.md, The owner's own choices).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from dphmm.accounting.budget import quoted
from dphmm.accounting.person import alike_words
from dphmm.accounting.records import in_short
from dphmm.errors import DphmmError, InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.policy import complete
from dphmm.policy.graph import PolicyGraph
from dphmm.release.batch import Batch, BatchChoices
from dphmm.session.rounds import schedule_of
from dphmm.statement.sentences import noun_words, plural
from dphmm.states.maps import MapSpace, ground_distance, parse_speed
from dphmm.states.space import StateSpace
from dphmm.states.trajectory import MICROSECONDS
from dphmm.states.visit_table import VisitTable
from dphmm.storage.private_tables import in_words
from dphmm.storage.tables import read_rows, read_whole
from dphmm.storage.trajectories import LoadedVisits, by_reason, load_visits
from dphmm.types import Exact, FloatArray

#: Shares are told in steps of so many per cent.
_PER_CENT = 5
_EXTREMES = {_PER_CENT: "hardly any (under 8 %)", 100 - _PER_CENT: "nearly all (over 92 %)"}
#: Names that are no states are told up to so many.
_MOST_NAMES = 5
#: So many rows of each person are more than most files have.
_MANY = 10_000
#: Names of columns that may be those of people, where the one that was taken has hardly two rows of anybody, or many.
OF_PEOPLE = re.compile("user|uid|person|people|subject|vehicle|device|driver|rider|animal|customer|patient|name", re.I)
_HOUR = 3600 * MICROSECONDS
#: The reader of times learns and is tried on the first cases with so many rows together.
_MOST_TIMED = 20_000
#: Cells are taken to be this many times as wide as they are far apart, so that rows at their edges are not too fast.
_WIDE = 1.5


def percent(part: int, whole: int) -> int:
    """A share in steps of 5 %; 0 and 100 stand for none and all alone.

    >>> percent(1, 1000), percent(999, 1000), percent(13, 100)
    (5, 95, 15)
    """
    if part in (0, whole):
        return 100 if part else 0
    return min(100 - _PER_CENT, max(_PER_CENT, round(100 * part / whole / _PER_CENT) * _PER_CENT))


@dataclass(frozen=True)
class TableCheck:
    """Figures of a table as a release would have it; shares in per cent, in steps of 5.

    rows, people, most_rows : the numbers of rows and people, and of rows of the person with most.
    together : the rows that count as one of these, in words.
    rejected : rows that cannot be read, by reason. without_place : rows with empty cells there, which have no answer.
    same_moment : rows that another row of their person and step stands for.
    other_people : other columns that may be the person's, where people have a row, or very many.
    alike : the question that spellings of names raise.
    on_map : True if states are places; in_states : rows in states of the model.
    swapped, kilometres_away : where hardly a row is on the map, the share that would be with latitude and longitude
        swapped, and about how far the middle of the rows is from it.
    other_names : the commonest names that no state has.
    steps, steps_with_rows : steps that a block of the schedule names, and those at which somebody has a row.
    unanswered : people without a row at a step that is asked.
    too_fast : moves faster than the model's largest speed.
    budget : the number of people in the ledger (``known``), the most that all rows add to a person (``adds``), and
        what is ``left`` where least is, of all people and all blocks with new steps, and ``left_after`` it, ``of``
        which limit, if there is one.
    by_times : where times of events are published, the rows whose state they tell a reader; see `by_times`.
    stops : why a release would not begin.
    unseen : the facts that could not be seen yet; the steps are then those that may be asked.
    noise : the noise of each part of a query or a private fit that is not drawn yet.
    noun : the word for a person or thing that the rows are about.
    fitted_on : the share of people whom a pipeline splits off to fit a model on.
    """

    rows: int
    people: int
    most_rows: int
    together: str
    rejected: Mapping[str, int]
    same_moment: int
    other_people: Sequence[str]
    alike: str | None
    on_map: bool
    in_states: int
    swapped: int | None
    kilometres_away: float | None
    other_names: Sequence[str]
    steps: int | None
    steps_with_rows: int | None
    unanswered: int
    too_fast: int | None
    budget: Mapping[str, Any] | None
    stops: Sequence[str]
    without_place: int = 0
    unseen: str | None = None
    noise: Sequence[str] = ()
    by_times: str | None = None
    noun: str = "person"
    fitted_on: str | None = None

    @property
    def is_doubtful(self) -> bool:
        """True if the column of the person may be the wrong one."""
        many = self.rows >= _MANY * self.people > _MANY
        return (self.most_rows == 1 < self.people) or many or bool(self.other_people)

    def lines(self) -> list[str]:
        """The figures, one a line, and then what would stop a release."""
        called = noun_words(self.noun)
        people = plural(self.people, self.noun, called["people"])
        where, budget = "on the map" if self.on_map else "in states", self.budget or {}
        asked, room = "may be" if self.unseen else "are", "no limit"
        if budget.get("left") is not None:
            least = f"the least of any {self.noun} and step; {budget['left_after']} afterwards"
            room = f"epsilon {budget['left']} of {budget['of']}, {least}"
        doubt = ""
        if self.is_doubtful:
            each = f"each {self.noun} has 1 row" if self.most_rows == 1 else f"{people} have {self.rows:,} rows"
            others = f", or is it {' or '.join(map(quoted, self.other_people))}" if self.other_people else ""
            doubt = f"{each}: is this column the {self.noun}{others}? The promise holds for each of its values"
        figures = [
            ("who", doubt),
            ("rows", f"{self.rows:,} of {people}"),
            ("", self.fitted_on and f"of the first run's, a share of {self.fitted_on} is fitted on and never released"),
            (f"rows per {self.noun}", f"at most {self.most_rows:,}{self.together}"),
            ("set aside", in_words(dict(self.rejected))),
            ("without place", self.without_place and f"{self.without_place:,} rows with empty cells there"),
            (
                "same moment",
                self.same_moment and f"{self.same_moment:,} rows beside another of their {self.noun} and step",
            ),
            ("names", self.alike),
            (where, f"{_EXTREMES.get(self.in_states, f'{self.in_states} %')} of the rows"),
            ("", self.swapped and f"swapped latitude and longitude would put {self.swapped} % on it"),
            ("", self.kilometres_away and f"the middle of the rows is about {self.kilometres_away:,.0f} km away"),
            ("", self.other_names and f"no states: {', '.join(map(quoted, self.other_names))}"),
            ("steps", self.steps and f"{self.steps_with_rows} of the {self.steps} that {asked} asked have rows"),
            ("no answer", self.unanswered and f"{self.unanswered:,} of {people}{_ASK_THEM}"),
            ("too fast", self.too_fast and f"{self.too_fast} % of the moves, by the model's speed"),
            ("in the ledger", budget and f"{budget['known']:,} of {people}"),
            ("adds", budget and f"epsilon {budget['adds']} at most to {called['somebody']}, by all rows"),
            ("left", budget and budget["adds"] != "0" and room),
            ("times", self.by_times),
            *(("noise", part) for part in self.noise),
            ("not looked at", self.unseen),
            *(("stops", stop) for stop in self.stops),
        ]
        return [f"{label:16} {text}" for label, text in figures if text]

    def __repr__(self) -> str:
        return "\n".join(self.lines())


#: How those get an answer who have no row at the steps that are asked.
_ASK_THEM = (
    ", who have no row at a step that is asked: dphmm plan --hours A-B asks in some hours of the clock alone; without "
    "a plan, dphmm release --path-epsilon asks at each row, with the --epsilon of one answer"
)


class Unplaced:
    """Counts of rows as they are read: those on the map with swapped axes, and names that no state has."""

    def __init__(self, space: StateSpace) -> None:
        self._space = space
        self.rows = self.swapped = 0
        self._middles: list[tuple[float, float]] = []
        self.other_names = Counter[str]()

    def add(self, part: Mapping[str, NDArray[Any]], labels: Sequence[str]) -> None:
        """Some rows: ``lat`` and ``lon`` (n,), or numbers ``state`` (n,) of labels."""
        if "lat" in part and isinstance(self._space, MapSpace) and len(part["lat"]):
            self.rows += len(part["lat"])
            self.swapped += int((self._space.locate(part["lon"], part["lat"]) >= 0).sum())
            self._middles.append((float(np.median(part["lat"])), float(np.median(part["lon"]))))
        elif "state" in part and "lat" not in part:
            numbers, counts = np.unique(part["state"], return_counts=True)
            names = [labels[number] for number in numbers.tolist()]
            self.other_names.update({name: count for name, count in zip(names, counts.tolist(), strict=True)
                                     if self._space.index_of(name) < 0})  # fmt: skip

    def kilometres_away(self) -> float | None:
        """About how far the middle of the rows is from the nearest state, with two digits."""
        if not isinstance(self._space, MapSpace) or not self._middles:
            return None
        lat, lon = np.median(self._middles, axis=0).tolist()
        nearest = self._space.own_answers[self._space.nearest(lat, lon)]
        away = float(ground_distance(lat, lon, *self._space.to_latlon(nearest[None]))[0]) / 1000
        return float(f"{away:.1e}")


def check_table(
    table: Any,
    model: MarkovModel,
    policy: PolicyGraph | None = None,
    space: StateSpace | None = None,
    epsilon: Exact | None = None,
    *,
    state_column: str | None = None,
    timezone: str | None = None,
    **choices: Unpack[BatchChoices],
) -> TableCheck:
    """Check a table before `dphmm.release_many`, for its owner alone; nothing is drawn, spent or written.

    Parameters
    ----------
    table : as `dphmm.release_many` takes it, or the path of a file.
    model, policy, space, epsilon, and other choices : those of the release; all but the model may be left out. A
        ``ledger`` says what is left for these people.
    state_column, timezone : as `load_trajectories` has them.

    Raises
    ------
    InvalidInput : as `dphmm.release_many`, for choices that cannot be, and for a table that cannot be read at all.

    Examples
    --------
    >>> import dphmm, pandas
    >>> space = dphmm.StateSpace.categories(["0", "1"])
    >>> model = dphmm.MarkovModel([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]], space=space)
    >>> rows = pandas.DataFrame({"user": ["ann"] * 2, "step": [1, 2], "state": ["zero", "1"]})
    >>> print(dphmm.evaluation.check_table(rows, model))
    rows             2 of 1 person
    rows per person  at most 2
    in states        50 % of the rows
                     no states: "zero"
    """
    space = space or model.space
    if space is None:
        raise InvalidInput("space", "nothing, of a model without one", "the space of the release")
    known = epsilon is not None or choices.get("promise") is not None or choices.get("schedule") is not None
    policy = policy or complete(space.n_states)
    batch, seen = Batch(model, policy, space, epsilon if known else 1, **choices), Unplaced(space)
    table = read_whole(table)
    loaded = load_visits(
        *(table, space, model.step, batch.answer),
        state_column=state_column,
        timezone=timezone,
        spelling=batch.ledger.spelling,
        watch=seen.add,
    )
    return table_check(batch, loaded, seen, table, budget=known)


def table_check(batch: Batch, loaded: LoadedVisits, seen: Unplaced, table: Any, budget: bool = True) -> TableCheck:
    """The figures of rows that were loaded for a batch, of which some were ``seen``, as they would be released.

    ``table``: what they were loaded from, in which other columns may be the person's. ``budget``: whether what is left
    is told.
    """
    visits, space, setting = batch.visits(loaded.visits), batch.setting.space, batch.setting
    stops = [f"{stop.came}; expected {stop.expected}" for stop in batch.stops(visits)]
    try:
        batch.check(visits, resume=True)
    except DphmmError as error:
        stops.append(str(error))
    hardly = 100 * visits.in_states < _PER_CENT * visits.n_placed
    places, named = set[int](), 0
    unanswered, each = 0, batch.subjects.epsilons[1]
    for subject, t, may_ask in batch.asked_steps(visits):
        asked = t[may_ask]
        unanswered += not len(asked)
        schedule = schedule_of(setting, subject.origin, batch.ledger, subject.name)
        if schedule is not None:
            named = len(schedule.hours or schedule.at)
            places |= set(schedule.places(asked).tolist())
    known = len({name for name, _ in batch.ledger.sessions_of(visits.users)})
    budgets = {"known": known, "adds": in_short(each * max(batch.most_asked(visits)))}
    least = min(batch.left(visits, each), key=lambda left: (left.after, left.before), default=None) if budget else None
    if least is not None:
        epsilons = (in_short(epsilon, down=True) for epsilon in least[:2])
        budgets |= dict(zip(("left", "left_after", "of"), (*epsilons, least.limit), strict=True))
    return TableCheck(
        rows=visits.n_rows + len(loaded.rejected) + loaded.without_place,
        people=len(visits),
        most_rows=int(np.diff(visits.first).max()),
        together=", those of a time step as one" if visits.in_bins else "",
        rejected=by_reason(loaded.rejected),
        without_place=loaded.without_place,
        same_moment=visits.same_step,
        other_people=_other_people(table, len(visits), visits.n_rows),
        alike=alike_words(visits.users, loaded.alike),
        on_map=space.on_map,
        in_states=percent(visits.in_states, visits.n_placed),
        swapped=percent(seen.swapped, seen.rows) if hardly and seen.rows else None,
        kilometres_away=seen.kilometres_away() if hardly else None,
        other_names=[name for name, _ in seen.other_names.most_common(_MOST_NAMES)],
        steps=named or None,
        steps_with_rows=min(named, len(places)) if named else None,
        unanswered=unanswered,
        too_fast=_too_fast(visits, setting.model, space),
        budget=budgets if budget else None,
        stops=stops,
        by_times=by_times(visits),
    )


def by_times(visits: VisitTable) -> str | None:
    """The share of rows whose state a reader names who has no answer, with the published times of events and without.

    A random forest learns on the rows of half of the cases, by their positions, lengths, gaps, hours and weekdays, and
    names those of the other half. No epsilon bounds it. None where no times of events are published.
    """
    if not (visits.ordered and visits.shown) or len(visits) < 2:
        return None
    try:
        from sklearn.ensemble import RandomForestClassifier
    except ImportError:
        return "no reader of them is tried: pip install 'dphmm[learn]'"
    cases = max(2, int(np.searchsorted(visits.first, _MOST_TIMED, side="right")) - 1)
    n = int(visits.first[min(cases, len(visits))])
    owners, states, times = visits.owners(0, n), visits.states(0, n), visits.times_of(0, n)
    place, length = np.arange(n) - visits.first[owners], np.diff(visits.first)[owners]
    before = np.where(place == 0, -1, np.diff(times, prepend=0))
    hour = times // _HOUR
    features = [place, length, before, np.append(before[1:], -1), hour % 24, hour // 24 % 7]
    learned_on = owners % 2 == 0

    def named(rows: FloatArray) -> int:
        forest = RandomForestClassifier(min_samples_leaf=2, random_state=0).fit(rows[learned_on], states[learned_on])
        return percent(int((forest.predict(rows[~learned_on]) == states[~learned_on]).sum()), int((~learned_on).sum()))

    shares = [named(np.column_stack(features[:number])) for number in (len(features), 2)]
    return f"a reader without an answer names {shares[0]} % of the rows by them, {shares[1]} % without; in no epsilon"


def _other_people(table: Any, people: int, rows: int) -> list[str]:
    """Columns that sound like people: far fewer where these have hardly two rows, far more where they have many.

    Only the first part of a large table is looked at.
    """
    few, read = rows < 5 * people, read_rows(table)
    others = next((part for part in read.parts(read.names) if len(part)), None)
    if others is None or not (few or rows >= _MANY * people > _MANY):
        return []
    counts = {name: len(others.column(name).unique()) for name in others.column_names if OF_PEOPLE.search(name)}
    return [name for name, count in counts.items() if (4 * count <= people if few else 4 * people <= count)]


def _too_fast(visits: VisitTable, model: MarkovModel, space: StateSpace) -> int | None:
    """The share of moves between states that are faster than the model's largest speed; None where it has none."""
    try:
        speed = float(parse_speed(model.provenance["max_speed"]))
    except (KeyError, InvalidInput):
        return None
    if model.step is None or not space.on_map:
        return None
    centres: FloatArray = space.own_answers
    apart = np.sqrt(np.prod(np.ptp(centres, axis=0) + space.pitch) / space.n_states)
    moves = faster = 0
    for first, end in visits.parts():
        owners, steps, states = visits.owners(first, end), visits.steps_of(first, end), visits.states(first, end)
        same = (owners[1:] == owners[:-1]) & (states[1:] >= 0) & (states[:-1] >= 0)
        away = np.linalg.norm(np.diff(centres[states], axis=0), axis=1)
        moves += int(same.sum())
        faster += int((same & (away > speed * model.step * np.diff(steps) + _WIDE * apart)).sum())
    return percent(faster, moves) if moves else None
