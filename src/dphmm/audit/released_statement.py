"""Check the privacy statement beside a released file against the file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import UNSET

from dphmm.accounting.event import LearningEvent
from dphmm.accounting.ledger import Ledger
from dphmm.accounting.promise import SequencePromise
from dphmm.accounting.records import in_short, shown
from dphmm.audit.checked_statement import checked_statement
from dphmm.audit.findings import Findings
from dphmm.audit.released_file import ReleasedFile
from dphmm.audit.released_rows import Counted
from dphmm.audit.replay import number_of
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.session.plan import ALGORITHM_VERSION
from dphmm.session.rounds import promise_of
from dphmm.session.setting import Setting, Subjects, option_words
from dphmm.storage.inputs import file_digest
from dphmm.storage.json_lines import is_json_lines
from dphmm.storage.learned import UNKNOWN, Whom, learning, learning_event, learning_of_others, whom_of
from dphmm.storage.promises import covered_by_all, unknown_because, verdict
from dphmm.storage.statement import (
    check_subjects,
    couples,
    promise_of_statement,
    read_statement,
    schedule_of_statement,
    stated_model,
    stated_plans,
    stated_policy,
    stated_space,
)
from dphmm.storage.statement_types import ReleaseStatement, SequenceBound, document, member

_NOTHING = "the privacy statement: there is none beside the file"
_OTHERS = {"owner": "as the data owner says", "names": "as user names tell", "model": "as the model's file says"}
#: Members that are compared with what the audit was asked about, not with the file.
_GIVEN = frozenset(
    {"query", "epsilon", "policy.sha256", "space.sha256", "model.sha256", "constraint.name", "mechanism.asked"}
    | {"mechanism.protection", "mechanism.start"}
)
_OTHER_TOTALS = "whether the totals count what answers of other files spent, as they say: give --ledger"
NO_BYTES = (
    "whether the table is the file of the privacy statement, answer by answer: its hash is of the bytes of a file; "
    "rows, people, plans and totals were compared"
)
_NO_TOTALS = "the totals of the privacy statement: not every row could be followed, so their sums are not known"


def check_statement(
    path: Path | None,
    beside: Path,
    counted: Counted,
    subjects: Subjects,
    findings: Findings,
    answers: set[str],
    kept: Iterable[tuple[str, SequencePromise | None]],
) -> list[str]:
    """Findings where the statement ``beside`` says what is not so of ``path``; notes on what was not compared.

    ``path`` is None of a table in memory, which has no bytes that the hash of the statement could be of.
    ``answers`` : which of several rows in one step were answered, as the ledger says of these users. ``kept`` : the
    origin of each user's steps, and the promise over paths that the ledger keeps that user to.
    """
    if not beside.exists():
        return [_NOTHING]
    setting = subjects.setting
    try:
        statement = read_statement(beside)
    except InvalidInput as error:
        findings.add(f"a privacy statement that cannot be read: {_came(error)}")
        return []
    for name, due in (_due(path, counted, setting) | _described(counted, setting, statement)).items():
        told = member(statement, name)
        findings.require(told == due, f"the privacy statement says {name} {_short(told)}, and {_instead(name, due)}")
    notes = _private(statement, counted, setting.model, findings)
    if path is None:
        notes.append(NO_BYTES)
    covered = covered_by_all(subjects.policies, setting.space)
    if covered is not None:
        for name in ("metres", "ground_metres"):
            told = member(statement, f"covered_distance.{name}")
            wrong = f"covered_distance.{name} {_short(told)}, and it is {_short(covered[name])}"
            findings.require(told == covered[name], f"the privacy statement says {wrong}")
    rule = member(statement, "answer.name")
    wrong = f"answer.name {_short(rule)}, and the ledger has {_short(' and '.join(sorted(answers)))}"
    findings.require(rule is None or answers <= {rule}, f"the privacy statement says {wrong}")
    if statement.sequence is not UNSET:
        _check_sequence(statement.sequence, statement, counted, subjects, kept, findings)
    _check_schedule(statement, counted, setting, findings)
    _check_learning(statement, counted, setting.model, findings)
    try:
        check_subjects(statement, subjects)
    except InvalidInput as error:
        told = {"step_choices": "what was chosen for steps", "initials": "who begins where"}[error.field]
        findings.add(f"the privacy statement says of {told} otherwise than the audit was given")
    claims = statement.private is not False and (counted.replayable > 0 or not statement.randomness.secure)
    findings.require(not claims, "the privacy statement calls a release private that was drawn from replayable bits")
    if counted.complete and not counted.summed:
        notes.append(_OTHER_TOTALS)
    return notes if counted.complete else [*notes, _NO_TOTALS]


def check_words(file: ReleasedFile, beside: Path, subjects: Subjects, findings: Findings) -> list[str]:
    """Findings where sentences of a statement are not those that its choices promise; notes where nothing tells."""
    if not beside.exists():
        return []
    setting = subjects.setting
    try:
        statement = read_statement(beside)
        _, other = checked_statement(statement, beside.name, file, setting.model, setting.space, subjects.policies)
    except InvalidInput as error:
        if not findings.sentences:
            # Nothing else convicts it, and nobody has read its words.
            findings.add(f"a privacy statement that dphmm does not write: {_came(error)}")
            return []
        return ["the sentences of the privacy statement: its numbers are not those of the file"]
    if other:
        findings.add(f"the privacy statement has other words than its choices promise for {', '.join(other)}")
    return []


def require_confirmed(
    statement: ReleaseStatement, name: str, file: ReleasedFile, model: MarkovModel, ledger: Ledger | None = None
) -> None:
    """Raises InvalidInput where the model's record, or the ledger, says otherwise than a statement.

    ``ledger``: keeps every user of the file to the promise and the schedule that are stated; without it nothing
    confirms them.
    """
    findings, counted = Findings(), Counted()
    # What a person loses together with the learning hangs on exact costs, which a file does not have.
    counted.rows = len(file)
    _check_learning(statement, counted, model, findings)
    if findings.sentences:
        came = findings.sentences[0].removeprefix("the privacy statement ")
        raise InvalidInput("statement", f"{name}, which {came}", "a privacy statement as dphmm release wrote it")
    if ledger is not None:
        _require_kept(statement, name, file, model, ledger)


def _require_kept(
    statement: ReleaseStatement, name: str, file: ReleasedFile, model: MarkovModel, ledger: Ledger
) -> None:
    """Raises InvalidInput where a ledger keeps a user to another promise, or asks at other steps, than is stated."""
    promise, schedule = promise_of_statement(statement), schedule_of_statement(statement)
    users = list(dict.fromkeys(file.users))
    headers = {header.subject: header for header in ledger.headers_of(users) if header.query == statement.query}
    for user in users:
        header = headers.get(user)
        if header is None:
            raise InvalidInput("ledger", f"one that does not know user {user!r}", "the ledger of this release")
        origin = header.options.get("origin", "")
        stored = ledger.caps(user).promise
        if promise is not None and stored != _in_steps(promise, model, origin):
            came = f"{name} with a sequence of {promise}"
            kept = "no promise at all" if stored is None else str(stored)
            raise InvalidInput("statement", came, f"what the ledger keeps user {user!r} to: {kept}")
        asked = header.options.get("schedule")
        if asked != (None if schedule is None else schedule.written()):
            came = f"{name} with a schedule of {'every step' if schedule is None else schedule}"
            kept = option_words("schedule", asked)
            raise InvalidInput("statement", came, f"the schedule that the ledger has for user {user!r}: {kept}")


def _in_steps(promise: SequencePromise, model: MarkovModel, origin: str) -> SequencePromise | None:
    """A promise in steps of a subject whose step 1 is ``origin``; None where nothing says when that was."""
    number = number_of(origin, 1)
    if not isinstance(promise.per, str):
        return promise
    return None if number is None else promise.in_steps(model.step, number)


def _came(error: InvalidInput) -> str:
    """What an error says came."""
    return str(error).partition("got ")[2].partition("; expected")[0]


def _check_learning(statement: ReleaseStatement, counted: Counted, model: MarkovModel, findings: Findings) -> None:
    """Whether a statement says of the learning of the model what the model's record of it says."""
    event = learning_event(model.provenance)
    due = None
    if isinstance(event, LearningEvent):
        others = statement.model.people == "others"
        _, cost = counted.largest
        due = learning_of_others(event) if others else learning(event, cost)
    if due is None or statement.learning is None:
        wrong = f"learning {'nothing' if due else 'something'}, and the model says {'something' if due else 'nothing'}"
        findings.require(due is statement.learning, f"the privacy statement says of {wrong}")
        return
    told, known = document(statement.learning), document(due)
    if not counted.summed:
        # What both lose together hangs on all rows.
        told, known = ({**each, "together": None} for each in (told, known))
    for name in sorted({*known, *told}):
        if name == "together" and isinstance(told.get(name), dict) and isinstance(known[name], dict):
            pairs = [(f"together.{part}", told[name].get(part), known[name][part]) for part in sorted(known[name])]
        else:
            pairs = [(name, told.get(name), known.get(name))]
        for path, said, right in pairs:
            wrong = f"learning.{path} {_short(said)}, and it is {_short(right)}"
            findings.require(said == right, f"the privacy statement says {wrong}")


def _check_sequence(
    told: SequenceBound,
    statement: ReleaseStatement,
    counted: Counted,
    subjects: Subjects,
    kept: Iterable[tuple[str, SequencePromise | None]],
    findings: Findings,
) -> None:
    """Whether every user is kept to the promise over paths that a statement tells."""
    says, setting = "the privacy statement promises over paths", subjects.setting
    findings.require(
        told.over == "paths", f"the privacy statement promises over {_short(told.over)}, and it is over paths"
    )
    try:
        promise = promise_of_statement(statement)
    except InvalidInput:
        promise = None
    if promise is None:
        findings.add(f"{says} what is no promise")
        return
    findings.require(told.holds == statement.private, f"{says} what holds {_short(told.holds)}, and private is another")
    known = couples(setting.model, setting.policy, setting.options, subjects)
    wrong = f"sequence.couples {_short(told.couples)}, and it is not known"
    findings.require(told.couples in ("unknown", known), f"the privacy statement says {wrong}")
    for user, spent in counted.spent.items():
        try:
            held = promise_of(promise, setting, counted.origins[user]).holds(spent)
        except InvalidInput:
            # Blocks are of a time, and nothing says when the subject's steps were.
            continue
        findings.require(held, f"{says} {promise}, which the answers of a user pass", f"user {user!r}")
    for origin, stored in kept:
        try:
            due = promise_of(promise, setting, origin)
        except InvalidInput:
            due = None
        other = "nothing" if stored is None else str(stored)
        findings.require(due == stored, f"{says} {promise}, and the ledger keeps a subject to {other}")


def _check_schedule(statement: ReleaseStatement, counted: Counted, setting: Setting, findings: Findings) -> None:
    """Whether a statement tells the schedule of the release, and how many rows it left out."""
    says = "the privacy statement says of the steps that were asked"
    try:
        schedule = schedule_of_statement(statement)
    except InvalidInput:
        findings.add(f"{says} what is no schedule")
        return
    told, due = "every step" if schedule is None else str(schedule), "every step"
    if setting.schedule is not None:
        due = str(setting.schedule)
    findings.require(schedule == setting.schedule, f"{says} {told}, and it is {due}")
    if statement.schedule is UNSET or schedule is None:
        return
    counts = {"releases": schedule.releases, "not_asked": counted.not_asked}
    for name, number in counts.items():
        given = getattr(statement.schedule, name)
        wrong = f"schedule.{name} {given}, and it is {number}"
        known = name != "not_asked" or counted.complete
        findings.require(not known or given == number, f"the privacy statement says {wrong}")


def _private(statement: ReleaseStatement, counted: Counted, model: MarkovModel, findings: Findings) -> list[str]:
    """Whether the statement says what follows from the model and from whom it was fitted on, which is not checked."""
    try:
        whom = Whom.of(statement.model.people, statement.model.people_known_by)
        if whom != whom_of(model.provenance, whom):
            findings.add("a privacy statement that does not say that the model was made without data")
    except InvalidInput:
        findings.add("a privacy statement that does not say in dphmm's words whom the model was fitted on")
        return []
    origin = (model.provenance, whom, max(counted.replayable, statement.randomness.replayable_rows))
    due = verdict(*origin)
    notes = []
    if due == "unknown":
        notes.append(f"whether the release is private, which is not known: {'; '.join(unknown_because(*origin))}")
    elif due and model.provenance.get("private") is not True:
        notes.append(f"whom the model was fitted on: others than those released, {_OTHERS[str(whom.known_by)]}")
    for name in ("private", "promise.holds"):
        said = member(statement, name)
        findings.require(said == due, f"the privacy statement says {name} {_short(said)}, and it is {due}")
    return notes


def _due(path: Path | None, counted: Counted, setting: Setting) -> dict[str, Any]:
    due = _choices(counted, setting)
    if path is not None:
        # A stream has no name of its own.
        due |= {"file.name": "-" if is_json_lines(path) else path.name, "file.sha256": file_digest(path)}
    return due | _sums(counted) if counted.complete else due


def _choices(counted: Counted, setting: Setting) -> dict[str, Any]:
    options, plans = setting.options, stated_plans(counted.plans)
    return {
        "software.algorithm_version": ALGORITHM_VERSION,
        "query": setting.query,
        "epsilon": str(options.epsilon),
        "policy.sha256": setting.policy.digest,
        "space.sha256": setting.space.digest,
        "model.sha256": setting.model.digest,
        "constraint.name": str(options.constraint),
        "mechanism.asked": options.mechanism,
        "mechanism.protection": options.protection,
        "mechanism.start": options.start,
        "plans.count": plans.count,
        "plans.sha256": plans.sha256,
        "plans.hashes": plans.hashes,
        "published.rows": counted.rows,
        "published.subjects": len(counted.accounts),
    } | ({} if counted.earlier is None else {"published.earlier_answers": counted.earlier.answers or None})


def _described(counted: Counted, setting: Setting, statement: ReleaseStatement) -> dict[str, Any]:
    """What is told of model, policy and space beside their digests: a reader looks at it, and not at those."""
    model, policy = stated_model(setting.model, UNKNOWN), stated_policy(setting.policy)
    space = stated_space(setting.space)
    due = {f"model.{name}": getattr(model, name) for name in ("step_seconds", "method", "private")}
    due |= {f"space.{name}": getattr(space, name) for name in ("kind", "states", "dimension", "pitch")}
    due["policy.kind"] = policy.kind
    if policy.parameters is not None:
        due["policy.parameters"] = json.loads(json.dumps(policy.parameters))
    if counted.complete:
        due["mechanism.chosen"] = dict(sorted(counted.mechanisms.items()))
    return due


def _sums(counted: Counted) -> dict[str, Any]:
    """What is known where the plan of every row is."""
    found: dict[str, Any] = {"published.public_constants": counted.constants}
    if counted.summed:
        epsilon, cost = counted.largest
        found |= {"totals.epsilon_sum": shown(epsilon), "totals.cost_sum": shown(cost)}
    return found


def _instead(name: str, due: Any) -> str:
    """What it should be; of a choice that the audit was given, which of the two is wrong is not known."""
    if name not in _GIVEN:
        return f"it is {_short(due)}"
    value = in_short(due) if name == "epsilon" else _short(due)
    return f"{value} was given: give the audit what was released with, or the statement is of another release"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 16 else text[:12] + "…"
