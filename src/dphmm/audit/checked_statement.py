"""A privacy statement held against the file, the model and the policy: what its choices promise, in words.

Numbers and hashes that are not those of the file are refused. Sentences are not read at all: they are written again
from the choices, by the code that writes statements. A page shows those, and an audit convicts others.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from msgspec import UNSET
from msgspec.structs import replace

from dphmm._checks import exact_number
from dphmm.accounting.promise import Schedule, SequencePromise
from dphmm.accounting.records import shown
from dphmm.audit.released_file import ReleasedFile
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.mechanisms.answer_table import is_reference
from dphmm.mechanisms.registry import RELEASE_MECHANISMS
from dphmm.policy.graph import KINDS, PolicyGraph
from dphmm.session.options import Options, checked_varies
from dphmm.states.space import StateSpace
from dphmm.states.trajectory import ANSWERS, MICROSECONDS
from dphmm.storage import promises
from dphmm.storage.learned import KNOWN_BY, NOBODY, Whom, made_without_data
from dphmm.storage.promises import ANY, covered_by_all, covered_distance_of, facts_of
from dphmm.storage.statement import (
    couples,
    promise_of_statement,
    schedule_of_statement,
    stated_options,
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
from dphmm.types import BoolArray, IntArray

#: Costs in a file are floats: a sum of them may miss a sum of exact costs by so much a row, and in proportion.
_ROW, _PROPORTION = Fraction(2, 10**9), Fraction(1, 10**12)
#: Words of a statement that a page repeats and nothing else confirms have no room for sentences.
_HASH = re.compile("[0-9a-f]{64}")
VERSION = re.compile("[0-9]+[.][0-9A-Za-z.+]{1,36}")
_FORMS = {
    "software.version": VERSION,
    "policy.sha256": _HASH,
    "policy.kind": re.compile("|".join(KINDS)),
    "file.sha256": _HASH,
}
#: Members that are sentences, or follow from choices as sentences do: `_with_sentences` writes them all.
_SENTENCES = (
    "private",
    "not_private_because",
    "unknown_because",
    "promise",
    "unit_of_privacy",
    "answer.meaning",
    "constraint.meaning",
    "scope.meaning",
    "flat.meaning",
    "model.meaning",
    "randomness.meaning",
    "not_protected",
    "sequence.meaning",
    "sequence.proved_in",
    "schedule.meaning",
    "varied.meaning",
    "beginnings.meaning",
    "totals.of",
    "totals.epsilon_sum_meaning",
    "totals.cost_sum_meaning",
    "totals.cost_unbounded_because",
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
    options, policy = _options(statement, name, space), next(iter(policies), None)
    for path, due in _facts(statement, file, model, space, policy).items():
        _require(member(statement, path) == due, name, path)
    _require_earlier(statement, name, file)
    _require_totals(statement, name, file)
    for path, form in _FORMS.items():
        told = member(statement, path)
        _require(told is None or form.fullmatch(told) is not None, name, path)
    chosen = statement.mechanism.chosen
    named = {part for names in chosen for part in names.split("+")} <= set(RELEASE_MECHANISMS)
    _require(named and sum(chosen.values()) == int(file.asked.sum()), name, "mechanism.chosen")
    covered, computed = _covered(statement, name, space, policies)
    found = _with_sentences(statement, name, model, options, len(file), covered)
    found = _over_the_sequence(found, name, file, model, policy, options)
    other = [path for path in _SENTENCES if member(statement, path) != member(found, path)]
    if statement.covered_distance is not UNSET and statement.covered_distance != covered:
        other.append("covered_distance.meaning")
    if not computed:
        # Nothing shows that the policy of the hash covers them.
        found = replace(found, covered_distance=None)
    if policy is None:
        # Nothing shows that they are those of the hash.
        unconfirmed = replace(found.policy, kind=f"{found.policy.kind}, as {name} says", parameters=None)
        found = replace(found, policy=unconfirmed)
    return found, other


def _options(statement: ReleaseStatement, name: str, space: StateSpace) -> Options:
    try:
        told = stated_options(statement)
        options = Options.read(told, space.dimension, space.has_labels)
        epsilons_of(statement)
    except (ValueError, ZeroDivisionError, OverflowError) as error:
        if isinstance(error, InvalidInput) and error.field == "mechanism" and is_reference(told["mechanism"]):
            raise
        raise InvalidInput("statement", f"{name} without the choices of a release", _WRITTEN) from None
    # A page shows them, so none is written in a way of its own.
    for choice, due in options.written().items():
        _require(told[choice] == due, name, choice)
    return options


def _facts(
    statement: ReleaseStatement, file: ReleasedFile, model: MarkovModel, space: StateSpace, policy: PolicyGraph | None
) -> dict[str, Any]:
    """What is known of the file and its public data, by its path in the statement."""
    plans = sorted(set(file.plans) - {""})
    found: dict[str, Any] = {
        "published.rows": len(file),
        "published.subjects": len(set(file.users)),
        "plans.count": len(plans),
        "plans.sha256": hashlib.sha256("\n".join(plans).encode()).hexdigest(),
        "space.states": space.n_states,
        "space.kind": space.kind,
        "space.dimension": space.dimension,
        "space.sha256": space.digest,
        "model.sha256": model.digest,
    }
    if policy is not None:
        described = policy.describe()
        found |= {"policy.kind": described.pop("kind"), "policy.sha256": policy.digest}
        if statement.policy.parameters is not None:
            found["policy.parameters"] = json.loads(json.dumps(described))
    return found


def _require_earlier(statement: ReleaseStatement, name: str, file: ReleasedFile) -> None:
    """Other files have answers at steps that this one leaves out, at most; without estimates none of them tells."""
    told = earlier_answers_of(statement)
    if told:
        room = sum(file.left_out.values()) if file.estimate is not None else 0
        _require(told <= room, name, "published.earlier_answers")


def _require_totals(statement: ReleaseStatement, name: str, file: ReleasedFile) -> None:
    """Every row promises epsilon, or is a public constant; the sums are the largest of any one subject.

    Where earlier answers of other files count, they are at least so large.
    """
    exact = exact_epsilons(statement)
    _require(set(file.epsilon.tolist()) <= exact.keys(), name, "epsilon")
    count = Counter(zip(file.users, file.epsilon.tolist(), strict=True))
    sums = dict.fromkeys(file.users, Fraction(0))
    for (user, own), times in count.items():
        sums[user] += times * exact[own]
    least = max(sums.values())
    stated, more = statement.totals.epsilon_sum, earlier_answers_of(statement) > 0
    _require(stated == shown(least) or (more and _at_least(stated, least)), name, "totals.epsilon_sum")
    costs: dict[str, Fraction | float] = {}
    for user, cost in zip(file.users, file.cost.tolist(), strict=True):
        costs[user] = costs.get(user, Fraction(0)) + (cost if cost == math.inf else Fraction(cost))
    largest, told = max(costs.values()), statement.totals.cost_sum
    if largest == math.inf:
        _require(told == shown(math.inf), name, "totals.cost_sum")
        return
    least = Fraction(largest) * (1 - _PROPORTION) - len(file) * _ROW
    _require(_at_least(told, least), name, "totals.cost_sum")


def _at_least(told: str, least: Fraction) -> bool:
    """Whether a number of a statement is one, and not below another."""
    try:
        return exact_number(told, "total") >= least
    except InvalidInput:
        return False


def _with_sentences(
    statement: ReleaseStatement,
    name: str,
    model: MarkovModel,
    options: Options,
    rows: int,
    covered: CoveredDistance | None,
) -> ReleaseStatement:
    """The statement with every sentence written again, and whether it holds."""
    answer, replayable = statement.answer, statement.randomness.replayable_rows
    if answer is not UNSET:
        _require(answer.name in ANSWERS, name, "answer.name")
        answer = replace(answer, meaning=promises.answer_words(answer.name))
    _require(0 <= replayable <= rows, name, "randomness.replayable_rows")
    _require(statement.randomness.secure == (replayable == 0), name, "randomness.secure")
    origin = (model.provenance, _whom(statement, name, model.provenance))
    unbounded = statement.totals.cost_sum == shown(math.inf)
    varies = () if statement.varied is UNSET else statement.varied.names
    return replace(
        statement,
        private=promises.verdict(*origin, replayable),
        not_private_because=promises.not_private_because(*origin, replayable),
        unknown_because=promises.unknown_because(*origin, replayable),
        promise=promises.promise(options, *origin, replayable, varies),
        unit_of_privacy=promises.UNIT,
        answer=answer,
        covered_distance=covered,
        constraint=replace(statement.constraint, meaning=promises.constraint_words(options)),
        scope=replace(statement.scope, meaning=promises.scope_words(options, varies)),
        flat=replace(statement.flat, meaning=promises.flat_words(options)),
        model=replace(statement.model, meaning=promises.provenance_words(*origin)),
        randomness=replace(statement.randomness, meaning=_randomness_words(statement.randomness, rows)),
        not_protected=promises.not_protected(options, *origin, varies),
        totals=replace(
            statement.totals,
            of=whose_totals(earlier_answers_of(statement)),
            epsilon_sum_meaning=promises.epsilon_words(varies),
            cost_sum_meaning=promises.cost_words(),
            cost_unbounded_because=promises.cost_unbounded_because(options) if unbounded else None,
        ),
    )


def _randomness_words(told: Randomness, rows: int) -> str:
    """Where the noise came from, in the words of this version."""
    words = SYSTEM_WORDS if told.words is UNSET else told.words
    return promises.randomness_words(told.replayable_rows, rows, words)


def _over_the_sequence(
    statement: ReleaseStatement,
    name: str,
    file: ReleasedFile,
    model: MarkovModel,
    policy: PolicyGraph | None,
    options: Options,
) -> ReleaseStatement:
    """The statement with what it says of the sequence in the words of this version; the file's rows must keep it."""
    found, varied = statement, statement.varied
    if varied is not UNSET:
        _require(varied.names == list(checked_varies(varied.names)), name, "varied.names")
        found = replace(found, varied=replace(varied, meaning=promises.varied_words(varied.names, options)))
    if statement.beginnings is not UNSET:
        found = replace(found, beginnings=replace(statement.beginnings, meaning=promises.BEGINNINGS))
    promise, schedule = promise_of_statement(statement), schedule_of_statement(statement)
    _require_kept(promise, schedule, statement, name, file, model)
    if schedule is not None:
        found = replace(found, schedule=stated_schedule(schedule, int((~file.asked).sum())))
    if promise is None:
        return found
    alike = statement.beginnings is UNSET and (varied is UNSET or varied.names == ["epsilon"])
    known = couples(model, policy, options, None) if alike and policy is not None else "unknown"
    names = () if varied is UNSET else varied.names
    return replace(found, sequence=stated_sequence(promise, statement.private, known, names))


def _require_kept(
    promise: SequencePromise | None,
    schedule: Schedule | None,
    statement: ReleaseStatement,
    name: str,
    file: ReleasedFile,
    model: MarkovModel,
) -> None:
    """Raises InvalidInput where a user's rows keep neither schedule nor promise, wherever step 1 may be in a block."""

    @cache
    def of_steps(begins: int) -> tuple[SequencePromise | None, Schedule | None]:
        return (
            None if promise is None else promise.in_steps(model.step, begins),
            None if schedule is None else schedule.in_steps(model.step, begins),
        )

    exact = {} if promise is None else exact_epsilons(statement)
    for user, rows in file.by_user().items():
        steps, asked = file.step[rows], np.array([bool(file.plans[row]) for row in rows])
        spent = [(int(file.step[row]), exact[float(file.epsilon[row])]) for row in rows if exact and file.plans[row]]
        in_turn = False
        for begins in _begins(promise, file, model, rows):
            kept, named = of_steps(begins)
            if not _in_turn(named, steps, asked):
                continue
            in_turn = True
            if kept is None or kept.holds(spent):
                break
        else:
            _require(in_turn, name, f"schedule, which {user!r} does not follow,")
            _require(False, name, f"sequence, which {user!r} passes,")


def _begins(promise: SequencePromise | None, file: ReleasedFile, model: MarkovModel, rows: list[int]) -> Iterable[int]:
    """What a user's step 1 may be, in steps since 1970: where the file has no times, any one of a block."""
    if promise is None or not isinstance(promise.per, str):
        return (0,)
    if model.step is not None and file.times is not None:
        return (int(file.times[rows[0]] // (model.step * MICROSECONDS)) - int(file.step[rows[0]]) + 1,)
    block = promise.in_steps(model.step, 0).per
    assert isinstance(block, int)
    return range(block)


def _in_turn(schedule: Schedule | None, steps: IntArray, asked: BoolArray) -> bool:
    """Whether those of the steps (n,) are ``asked`` that a schedule names; of a paced one none but these.

    Which of them a paced schedule asks follows from beliefs, which `dphmm audit` makes again.
    """
    if schedule is None:
        return bool(asked.all())
    named = schedule.may_ask(steps)
    return bool((asked == named).all() if schedule.kind == "planned" else named[asked].all())


def _whom(statement: ReleaseStatement, name: str, provenance: Mapping[str, Any]) -> Whom:
    """Whom the model was fitted on, as the statement says; one of format 1 does not say how that is known."""
    people, known_by = statement.model.people, statement.model.people_known_by
    _require(people in KNOWN_BY, name, "model.people")
    silent = known_by is None and statement.format == 1
    _require(silent or known_by in KNOWN_BY[people], name, "model.people_known_by")
    whom = Whom.of(people, known_by)
    _require((whom == NOBODY) == made_without_data(provenance), name, "model.people_known_by")
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
