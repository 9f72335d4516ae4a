"""A privacy statement held against the file, the model and the policy: what its choices promise, in words.

Numbers and hashes that are not those of the file are refused. Sentences are not read at all: they are written again
from the choices, by the code that writes statements. A page shows those, and an audit convicts others. Without a model,
`require_numbers` and `stated_words` do what needs none.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from msgspec import UNSET
from msgspec.structs import replace

from dphmm._checks import exact_number, written_fraction
from dphmm.accounting.promise import MOST_STEPS, Schedule, SequencePromise
from dphmm.accounting.records import shown
from dphmm.audit.first_steps import Compared, compared_with_blocks, compared_with_runs, have_values
from dphmm.audit.released_file import ReleasedFile
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.mechanisms import AUTO, registry
from dphmm.mechanisms.answer_table import is_reference
from dphmm.policy.graph import KINDS, PolicyGraph
from dphmm.session.options import CHOICES, Options, checked_varies
from dphmm.states.space import Labels, StateSpace
from dphmm.states.trajectory import ANSWERS, MICROSECONDS
from dphmm.storage import promises
from dphmm.storage.learned import KNOWN_BY, NOBODY, Whom, made_without_data
from dphmm.storage.promises import ANY, covered_by_all, covered_distance_of, facts_of
from dphmm.storage.statement import (
    couples,
    promise_of_statement,
    schedule_of_statement,
    stated_options,
    stated_plans,
    stated_schedule,
    stated_sequence,
    whose_totals,
)
from dphmm.storage.statement_types import (
    SYSTEM_WORDS,
    CoveredDistance,
    Randomness,
    ReleaseStatement,
    earlier_answers_of,
    epsilons_of,
    exact_epsilons,
    member,
)
from dphmm.types import BoolArray, FloatArray, IntArray

#: Costs in a file are floats: a sum of them may miss a sum of exact costs by so much a row, and in proportion.
_ROW, _PROPORTION = Fraction(2, 10**9), Fraction(1, 10**12)
#: In seconds; what is longer has no whole number of microseconds.
_LONGEST_STEP = 2**43
#: A total that is written with "about" has six digits.
_ABOUT = 1 + Fraction(1, 10**5)
#: Words of a statement that a page repeats and nothing else confirms have no room for sentences.
_HASH = re.compile("[0-9a-f]{64}")
_FORMS = {
    "software.version": re.compile("[0-9]+[.][0-9A-Za-z.+]{1,36}"),
    "policy.sha256": _HASH,
    "policy.kind": re.compile("|".join(KINDS)),
    "file.sha256": _HASH,
}
#: Members that are sentences, or follow from choices as sentences do: `_with_sentences` writes them, without a model.
_OF_CHOICES = (
    "private",
    "not_private_because",
    "unknown_because",
    "promise",
    "unit_of_privacy",
    "answer.meaning",
    "constraint.meaning",
    "mechanism.meaning",
    "randomness.meaning",
    "not_protected",
    "totals.of",
    "totals.epsilon_sum_meaning",
    "totals.cost_sum_meaning",
)
_SENTENCES = (
    *_OF_CHOICES,
    "model.meaning",
    "sequence.meaning",
    "sequence.proved_in",
    "schedule.meaning",
    "varied.meaning",
    "beginnings.meaning",
)
_WRITTEN = "a privacy statement as dphmm release wrote it"


def checked_statement(
    statement: ReleaseStatement,
    name: str,
    file: ReleasedFile,
    model: MarkovModel,
    space: StateSpace,
    policies: Sequence[PolicyGraph],
) -> tuple[ReleaseStatement, list[str]]:
    """The statement with the sentences that its choices promise, and the members that had others.

    A covered distance that no policy confirms is left out. Raises InvalidInput where a number is not that of the file.
    """
    options = _options(statement, name, space.has_labels)
    policy = next(iter(policies), None)
    for path, due in _facts(statement, model, space, policy).items():
        _require(member(statement, path) == due, name, path)
    if require_numbers(statement, name, Columns.of(file)):
        came = "rows without times, which were not compared with their statement from all first steps"
        raise InvalidInput("released", came, "rows with their times, in a column t")
    for path, form in _FORMS.items():
        told = member(statement, path)
        _require(told is None or form.fullmatch(told) is not None, name, path)
    covered, computed = _covered(statement, name, space, policies)
    whom = _whom(statement, name, model.provenance)
    _require((whom == NOBODY) == made_without_data(model.provenance), name, "model.people_known_by")
    found = replace(_with_sentences(statement, name, model.provenance, options), covered_distance=covered)
    found = replace(found, model=replace(found.model, meaning=promises.provenance_words(model.provenance, whom)))
    found = _over_the_sequence(found, file, model, policy, options)
    other = [path for path in _SENTENCES if member(statement, path) != member(found, path)]
    if statement.covered_distance != covered:
        other.append("covered_distance.meaning")
    if not computed:
        # Nothing shows that the policy of the hash covers them.
        found = replace(found, covered_distance=None)
    if policy is None:
        # Nothing shows that they are those of the hash.
        unconfirmed = replace(found.policy, kind=f"{found.policy.kind}, as {name} says", parameters=None)
        found = replace(found, policy=unconfirmed)
    return found, other


def stated_words(statement: ReleaseStatement, name: str) -> tuple[ReleaseStatement, list[str]]:
    """The same without a model, from what the statement says of it; no sentence over the sequence is written.

    Raises InvalidInput for choices that no release has.
    """
    options = _options(statement, name, statement.space.kind == Labels.kind, tables=False)
    model = statement.model
    origin = {"method": model.method, "private": model.private, "privacy": statement.learning}
    found = _with_sentences(statement, name, origin, options)
    return found, [path for path in _OF_CHOICES if member(statement, path) != member(found, path)]


class Columns(NamedTuple):
    """Released rows (n,), in any order.

    ``times`` in microseconds since 1970 UTC, None where not all rows have one. ``plans``: "" where a row was not asked.
    ``estimated``: whether there are estimates.
    """

    users: Sequence[str]
    step: IntArray
    times: IntArray | None
    epsilon: FloatArray
    cost: FloatArray
    plans: Sequence[str]
    estimated: bool

    @classmethod
    def of(cls, file: ReleasedFile) -> Columns:
        """Those of a file."""
        told = (file.users, file.step, file.times, file.epsilon, file.cost, file.plans)
        return cls(*told, estimated=file.estimate is not None)


def require_numbers(statement: ReleaseStatement, name: str, rows: Columns, *, whole: bool = True) -> list[str]:
    """What was not compared, of rows without times that may begin in too many places.

    Raises InvalidInput where rows contradict a number, the promise over paths or the schedule of their statement.

    ``whole``: they are all of its rows. Others may be a part of them: no total is then below theirs, and they keep the
    promise and the schedule too.
    """
    asked, plans = np.array([plan != "" for plan in rows.plans]), stated_plans(set(rows.plans) - {""})
    names = {user: number for number, user in enumerate(dict.fromkeys(rows.users))}
    person = np.fromiter(map(names.__getitem__, rows.users), dtype=np.int64, count=len(rows.users))
    order = np.lexsort((rows.step, person))
    by_user = _ByUser(person[order], rows.step[order], asked[order])
    chosen = statement.mechanism.chosen
    if whole:
        due = {
            "published.rows": len(rows.users),
            "published.subjects": len(names),
            "published.public_constants": int((asked & (rows.epsilon == 0)).sum()),
            "plans.count": plans.count,
            "plans.sha256": plans.sha256,
            "plans.hashes": None if statement.plans.hashes is None else plans.hashes,
            "schedule.not_asked": None if statement.schedule is UNSET else int((~asked).sum()),
        }
        for path, found in due.items():
            _require(member(statement, path) == found, name, path)
        _require(sum(chosen.values()) == int(asked.sum()), name, "mechanism.chosen")
        room = by_user.left_out if rows.estimated else 0
        # Other files have answers at steps that this one leaves out, at most; without estimates none of them tells.
        _require(earlier_answers_of(statement) <= room, name, "published.earlier_answers")
    named = {part for names_of in chosen for part in names_of.split("+")} <= set(registry.KINDS)
    _require(named, name, "mechanism.chosen")
    exact, promise = exact_epsilons(statement), promise_of_statement(statement)
    values, which = np.unique(rows.epsilon, return_inverse=True)
    _require(set(values.tolist()) <= exact.keys(), name, "epsilon")
    chosen_left = 0
    if statement.varied is not UNSET:
        chosen_left = _require_epsilons_of_steps(statement, name, rows, by_user, order, exact)
    total = Fraction(0) if promise is None else promise.exact
    own = [exact[value] for value in values.tolist()]
    scale = math.lcm(total.denominator, *(value.denominator for value in own))
    units = _units(own, scale, which[order], total)
    more = not whole or earlier_answers_of(statement) > 0
    cost = by_user.cost(rows.cost[order])
    if isinstance(cost, Fraction):
        cost = cost * (1 - _PROPORTION) - len(rows.users) * _ROW
    _require_totals(statement, name, Fraction(by_user.most(units), scale), cost, more)
    times = None if rows.times is None else rows.times[order]
    found = _compared(statement, name, promise, by_user, times, units, int(total * scale))
    if found.person is not None:
        told = "schedule, which {!r} does not follow," if found.what == "schedule" else "sequence, which {!r} passes,"
        _require(False, name, told.format(list(names)[found.person]))
    people = f"{len(names):,} people"
    return [
        *[f"the epsilons of {chosen_left:,} of {people} with those of the steps that were chosen"] * (chosen_left > 0),
        *[f"the answers of {found.left:,} of {people} with the blocks of the promise"] * (found.left > 0),
    ]


def _require_epsilons_of_steps(
    statement: ReleaseStatement,
    name: str,
    rows: Columns,
    by_user: _ByUser,
    order: IntArray,
    exact: Mapping[float, Fraction],
) -> int:
    """Rows of a time have the epsilon that was chosen for it, others the statement's; 0 is that of a public constant.

    Without times no row tells its number in the table that choices name: it is some first step of each person from
    which all of theirs have these. Of how many people that was not looked at.
    """
    assert statement.varied is not UNSET
    runs = sorted(
        (first, last, one.epsilon or statement.epsilon) for one in statement.varied.chosen for first, last in one.steps
    )
    apart = all(first <= last for first, last, _ in runs) and all(one[1] < two[0] for one, two in pairwise(runs))
    near = all(first >= -MOST_STEPS and last <= MOST_STEPS for first, last, _ in runs)
    _require(apart and near, name, "varied.chosen")
    known = np.array(sorted(exact))
    epsilons = {statement.epsilon, *(epsilon for _, _, epsilon in runs)}
    coded = {epsilon: int(np.searchsorted(known, float(written_fraction(epsilon)))) for epsilon in epsilons}
    numbered = [(first, last, coded[epsilon]) for first, last, epsilon in runs]
    told, seconds = rows.epsilon[order], statement.model.step_seconds
    lost = told != 0
    person, value = by_user.person[lost], np.searchsorted(known, told[lost])
    if rows.times is None or seconds is None:
        found = compared_with_runs(person, by_user.step[lost], value, numbered, coded[statement.epsilon])
        _require(found.person is None, name, "varied.chosen")
        return found.left
    bins = rows.times[order][lost] // (seconds * MICROSECONDS)
    _require(have_values(bins, value, numbered, coded[statement.epsilon]), name, "varied.chosen")
    return 0


class _ByUser(NamedTuple):
    """Rows (n,) by person and step; ``person`` numbers them from 0."""

    person: IntArray
    step: IntArray
    asked: BoolArray

    @property
    def first(self) -> IntArray:
        """The first row of each person."""
        return np.flatnonzero(np.diff(self.person, prepend=-1))

    @property
    def left_out(self) -> int:
        """How many steps before the last row of a person have no row, of all persons."""
        first = self.first
        last = self.step[np.append(first[1:], len(self.step)) - 1]
        again = (np.diff(self.person, prepend=-1) == 0) & (np.diff(self.step, prepend=-1) == 0)
        return int(sum(last.tolist())) - len(self.step) + int(again.sum())

    def most(self, units: Any) -> int:
        """The largest sum of any one person of whole numbers (n,)."""
        return int(max(np.add.reduceat(units, self.first).tolist()))

    def cost(self, cost: FloatArray) -> Fraction:
        """The largest sum of costs (n,) of any one person."""
        values, which = np.unique(cost, return_inverse=True)
        own = [Fraction(value) for value in values.tolist()]
        scale = math.lcm(*(value.denominator for value in own))
        return Fraction(self.most(_units(own, scale, which)), scale)


def _units(values: Sequence[Fraction], scale: int, which: IntArray, total: Fraction = Fraction(0)) -> Any:
    """The values (n,) of rows in so many parts of 1, as whole numbers that no sum overflows."""
    units = [int(value * scale) for value in values]
    small = (max(units) * (len(which) + 1) + abs(int(total * scale))) < 2**62
    return np.array(units, dtype=np.int64 if small else object)[which]


def _require_totals(statement: ReleaseStatement, name: str, epsilon: Fraction, cost: Fraction, more: bool) -> None:
    """The sums are the largest of any one subject, costs at least; ``more``: both, as other rows count too."""
    told = statement.totals.epsilon_sum
    _require(told == shown(epsilon) or (more and _number(told) >= epsilon), name, "totals.epsilon_sum")
    _require(_number(statement.totals.cost_sum) >= cost, name, "totals.cost_sum")


def _number(told: str) -> Fraction | float:
    """A total as it is written, or more where it was rounded; one that is no number is below all."""
    plain = told.removeprefix("about ")
    try:
        found = written_fraction(plain) if "/" in plain else exact_number(plain, "total")
    except (ValueError, ZeroDivisionError):
        return -math.inf
    return found if plain == told else found * _ABOUT


def _compared(
    statement: ReleaseStatement,
    name: str,
    promise: SequencePromise | None,
    rows: _ByUser,
    times: IntArray | None,
    units: Any,
    total: int,
) -> Compared:
    """A person whose rows do not keep the schedule, or the promise.

    Where blocks are of a time and rows have none, they keep both wherever step 1 may be in a block.
    """
    seconds, t, schedule = statement.model.step_seconds, rows.step, None
    timed = promise is not None and isinstance(promise.per, str)
    _require(seconds is None or 0 < seconds < _LONGEST_STEP, name, "model.step_seconds")
    try:
        schedule = schedule_of_statement(statement)
        schedule = schedule.in_steps(seconds, 0) if schedule is not None and timed else schedule
        promise = promise.in_steps(seconds, 0) if promise is not None else None
    except InvalidInput:
        _require(False, name, "schedule or sequence")
    if times is not None and seconds is not None:
        begun = times - rows.step * (seconds * MICROSECONDS)
        _require(bool((begun == begun[rows.first][rows.person]).all()), name, "model.step_seconds, by its times,")
    if timed and promise is not None:
        assert seconds is not None and isinstance(promise.per, int)
        if times is None:
            return compared_with_blocks(*rows, units, total, promise.per, schedule)
        # Blocks are of steps since 1970.
        t = times // (seconds * MICROSECONDS) + 1
    late = rows.person[~_in_turn(schedule, t, rows.asked)]
    if len(late):
        return Compared(int(late[0]), "schedule")
    over = late if promise is None else _passing(promise, rows, t, units, total)
    return Compared(int(over[0]), "sequence") if len(over) else Compared(None)


def _passing(promise: SequencePromise, rows: _ByUser, t: IntArray, units: Any, total: int) -> IntArray:
    """Persons of whom more than the ``total`` is in one sequence, window or block (in steps) of their steps t (n,)."""
    if promise.window is not None:
        # Any window holds at most what the one that begins at its first row does.
        length, low = min(promise.window, int(t.max() - t.min()) + 1), int(t.min())
        span = int(t.max()) - low + length + 1
        kind = np.int64 if span * (int(rows.person[-1]) + 1) < 2**62 else object
        key = rows.person.astype(kind) * span + (t - low)
        sums = np.concatenate([np.zeros(1, dtype=units.dtype), np.cumsum(units)])
        return np.asarray(rows.person[sums[np.searchsorted(key, key + length)] - sums[:-1] > total])
    block = (t - 1 + promise.passed) // promise.per if isinstance(promise.per, int) else np.zeros_like(t)
    begins = np.flatnonzero((np.diff(rows.person, prepend=-1) != 0) | (np.diff(block, prepend=0) != 0))
    over = rows.person[begins[np.add.reduceat(units, begins) > total]]
    late = rows.person[rows.asked & (t > promise.steps)] if promise.steps is not None else over[:0]
    return np.concatenate([over, late])


def _in_turn(schedule: Schedule | None, steps: IntArray, asked: BoolArray) -> BoolArray:
    """Whether of the steps (n,) those are ``asked`` that a schedule names; of a paced one none but these.

    Which of them a paced schedule asks follows from beliefs, which `dphmm audit` makes again.
    """
    if schedule is None:
        return asked
    named = schedule.may_ask(steps)
    return asked == named if schedule.kind == "planned" else named | ~asked


def _options(statement: ReleaseStatement, name: str, labels: bool, tables: bool = True) -> Options:
    """The choices of a statement; without ``tables`` those of a made table too, whose file was not read."""
    told = stated_options(statement)
    made = told["mechanism"] if is_reference(told["mechanism"]) and not tables else None
    try:
        # No sentence is about what is in a table.
        options = Options.read(told if made is None else {**told, "mechanism": AUTO}, labels)
        options = options if made is None else dataclasses.replace(options, mechanism=made)
        epsilons_of(statement)
    except (ValueError, ZeroDivisionError, OverflowError) as error:
        if isinstance(error, InvalidInput) and error.field == "mechanism" and is_reference(told["mechanism"]):
            raise
        raise InvalidInput("statement", f"{name} without the choices of a release", _WRITTEN) from None
    # They are shown, so none is written in a way of its own.
    for choice, due in options.written().items():
        _require(told[choice] == due, name, choice)
    return options


def _facts(
    statement: ReleaseStatement, model: MarkovModel, space: StateSpace, policy: PolicyGraph | None
) -> dict[str, Any]:
    """What is known of the public data, by its path in the statement."""
    found: dict[str, Any] = {
        "space.states": space.n_states,
        "space.kind": space.kind,
        "space.dimension": space.dimension,
        "space.sha256": space.digest,
        "model.sha256": model.digest,
        "model.step_seconds": model.step,
    }
    if policy is not None:
        described = policy.describe()
        found |= {"policy.kind": described.pop("kind"), "policy.sha256": policy.digest}
        if statement.policy.parameters is not None:
            found["policy.parameters"] = json.loads(json.dumps(described))
    return found


def _with_sentences(
    statement: ReleaseStatement, name: str, provenance: Mapping[str, Any], options: Options
) -> ReleaseStatement:
    """The statement with every sentence that no model is needed for written again, and whether it holds."""
    answer, replayable, varied = statement.answer, statement.randomness.replayable_rows, statement.varied
    if answer is not UNSET:
        _require(answer.name in ANSWERS, name, "answer.name")
        answer = replace(answer, meaning=promises.answer_words(answer.name))
    _require(0 <= replayable <= statement.published.rows, name, "randomness.replayable_rows")
    varies = () if varied is UNSET else varied.names
    if varied is not UNSET:
        used = {choice for one in varied.chosen for choice in CHOICES if getattr(one, choice) is not None}
        _require(varies == list(checked_varies(varies)) and used <= set(varies), name, "varied.names")
    origin = (provenance, _whom(statement, name, provenance))
    return replace(
        statement,
        private=promises.verdict(*origin, replayable),
        not_private_because=promises.not_private_because(*origin, replayable),
        unknown_because=promises.unknown_because(*origin, replayable),
        promise=promises.promise(options, *origin, replayable, varies),
        unit_of_privacy=promises.UNIT,
        answer=answer,
        constraint=replace(statement.constraint, meaning=promises.constraint_words(options)),
        mechanism=replace(statement.mechanism, meaning=promises.noise_words(options)),
        randomness=replace(
            statement.randomness, meaning=_randomness_words(statement.randomness, statement.published.rows)
        ),
        not_protected=promises.not_protected(options, *origin, varies),
        totals=replace(
            statement.totals,
            of=whose_totals(earlier_answers_of(statement)),
            epsilon_sum_meaning=promises.epsilon_words(varies),
            cost_sum_meaning=promises.cost_words(),
        ),
    )


def _randomness_words(told: Randomness, rows: int) -> str:
    """Where the noise came from, in words."""
    words = SYSTEM_WORDS if told.words is UNSET else told.words
    return promises.randomness_words(told.replayable_rows, rows, words)


def _over_the_sequence(
    statement: ReleaseStatement, file: ReleasedFile, model: MarkovModel, policy: PolicyGraph | None, options: Options
) -> ReleaseStatement:
    """The statement with the sentences about the sequence that its choices promise."""
    found, varied = statement, statement.varied
    if varied is not UNSET:
        found = replace(found, varied=replace(varied, meaning=promises.varied_words(varied.names, options)))
    if statement.beginnings is not UNSET:
        found = replace(found, beginnings=replace(statement.beginnings, meaning=promises.BEGINNINGS))
    promise, schedule = promise_of_statement(statement), schedule_of_statement(statement)
    if schedule is not None:
        found = replace(found, schedule=stated_schedule(schedule, int((~file.asked).sum())))
    if promise is None:
        return found
    alike = statement.beginnings is UNSET and (varied is UNSET or varied.names == ["epsilon"])
    known = couples(model, policy, options, None) if alike and policy is not None else "unknown"
    names = () if varied is UNSET else varied.names
    return replace(found, sequence=stated_sequence(promise, statement.private, known, names))


def _whom(statement: ReleaseStatement, name: str, provenance: Mapping[str, Any]) -> Whom:
    """Whom the model was fitted on, as the statement says."""
    people, known_by = statement.model.people, statement.model.people_known_by
    _require(people in KNOWN_BY, name, "model.people")
    _require(known_by in KNOWN_BY[people], name, "model.people_known_by")
    whom = Whom.of(people, known_by)
    _require(whom != NOBODY or made_without_data(provenance), name, "model.people_known_by")
    # Names and hashes are compared with those of a table that dphmm fitted the model on, without noise.
    _require(known_by not in ("names", "file") or provenance.get("private") is False, name, "model.people_known_by")
    return whom


def _covered(
    statement: ReleaseStatement, name: str, space: StateSpace, policies: Sequence[PolicyGraph]
) -> tuple[CoveredDistance | None, bool]:
    """The distance that the policies cover and True; where it cannot be computed, what is stated and False."""
    facts = covered_by_all(policies, space) if policies else None
    metres = member(statement, "covered_distance.metres")
    if metres is not None:
        number = isinstance(metres, float) and 0 <= metres < math.inf
        _require(space.on_map and (number or metres == ANY), name, "covered_distance.metres")
        _require(facts is None or facts["metres"] == metres, name, "covered_distance.metres")
    told = facts if metres is None else facts_of(metres, space)
    return covered_distance_of(told, epsilons_of(statement)[1]), facts is not None


def _require(right: bool, name: str, path: str) -> None:
    if not right:
        raise InvalidInput("statement", f"{name} with another {path} than the file's", _WRITTEN)
