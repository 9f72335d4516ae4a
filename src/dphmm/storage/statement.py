"""The privacy statement beside every released file: what it guarantees, what it cost, what it does not protect.

Machine-readable: JSON of what `dphmm.storage.statement_types` defines; ``privacy-statement.schema.json`` of this
package says it for other programs. Everything in it is public: parameters, hashes of public inputs, and counts and sums
over the rows that were published.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from dphmm._checks import exact_epsilon, written_fraction
from dphmm.accounting.budget import Account
from dphmm.accounting.event import LearningEvent
from dphmm.accounting.promise import Schedule, SequencePromise
from dphmm.accounting.records import shown
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel, couples_along
from dphmm.policy.graph import PolicyGraph
from dphmm.session.options import Options, StepChoice
from dphmm.session.plan import ALGORITHM_VERSION
from dphmm.session.releases import Earlier
from dphmm.session.setting import Subjects
from dphmm.states.space import StateSpace
from dphmm.storage.inputs import PathLike, checked_input, checked_output, file_digest, replacing, steady
from dphmm.storage.learned import Whom, learning, learning_event, learning_of_others, whom_of
from dphmm.storage.promises import (
    BEGINNINGS,
    UNIT,
    answer_words,
    constraint_words,
    cost_words,
    covered_by_all,
    covered_distance_of,
    covered_facts,
    epsilon_words,
    merged_words,
    noise_words,
    not_private_because,
    not_protected,
    promise,
    provenance_words,
    randomness_words,
    schedule_words,
    sequence_words,
    unknown_because,
    varied_words,
    verdict,
)
from dphmm.storage.released import Published, as_released
from dphmm.storage.statement_types import (
    KEYED_WORDS,
    RELEASE_RULES,
    SYSTEM_WORDS,
    Asking,
    Beginnings,
    Choice,
    ChosenSteps,
    Learning,
    Mechanism,
    Merged,
    Model,
    Part,
    Plans,
    Policy,
    PublishedCounts,
    QueryStatement,
    Randomness,
    ReleaseStatement,
    SequenceBound,
    Software,
    Space,
    StatedFile,
    SyntheticStatement,
    Totals,
    Varied,
    Verdict,
    document,
    member,
    schema,
    typed,
)
from dphmm.storage.tables import read_table, write_table

FORMAT = 2
AnyStatement: TypeAlias = ReleaseStatement | QueryStatement | SyntheticStatement

# Longer lists appear by their hash alone.
_MOST_PLANS = 1000
_LONGEST_PARAMETERS = 4096
# Of a wrong value an error shows no more.
_LONGEST_VALUE = 40
_WRITTEN = "a privacy statement as dphmm release wrote it"


def whose_totals(earlier: int) -> str:
    """Whose totals a statement has, of a file whose estimates follow from so many ``earlier`` answers of other files.

    >>> whose_totals(0)
    "the subject with the largest total in this file; the ledger has everyone's, over all files"
    """
    counted = " and of the earlier answers that its estimates follow from" if earlier else ""
    return f"the subject with the largest total in this file{counted}; the ledger has everyone's, over all files"


def privacy_statement(
    published: Published,
    *,
    model: MarkovModel,
    policy: PolicyGraph,
    space: StateSpace,
    options: Options,
    query: str = "state",
    answer: str | None = None,
    model_people: str = "unknown",
    known_by: str | None = None,
    sequence: SequencePromise | None = None,
    schedule: Schedule | None = None,
    subjects: Subjects | None = None,
    words: str = SYSTEM_WORDS,
    earlier: Earlier | None = None,
) -> ReleaseStatement:
    """The statement of one released file; `write_statement` adds the file.

    ``published`` has counted every row of the file. ``model_people``: "others" where the data owner knows that the
    model was made without data of the people released, "same" where it was made from data of some of them; "unknown"
    keeps `private` and `promise.holds` from being true of a model that was not learned with differential privacy.
    ``known_by``: how that is known, "owner" by default (`dphmm.storage.learned.whom`). Raises InvalidInput for another
    word, and for "same" of a model that was made without data. ``answer``: which of several rows in one step was
    answered; None where each step had one state. ``sequence``: the promise over paths that every subject of the file
    was released under. ``schedule``: at which steps they were asked; None for every step. ``subjects``: who begins
    elsewhere than the model says, and what was chosen for single steps. ``words``: where the noise came from, "system"
    or "job key".
    ``earlier``: the answers of other files that estimates follow from; None where there are none.

    Examples
    --------
    >>> import dphmm, numpy as np
    >>> from dphmm.batch import Batch
    >>> space, policy = dphmm.StateSpace.labels(["home", "work"]), dphmm.policy.complete(2)
    >>> model = dphmm.MarkovModel([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]])
    >>> batch = Batch(model, policy, space, 1, bits=dphmm.ReplayBits(1))
    >>> names = np.array(["home", "work"], dtype=object)
    >>> rows = dphmm.Trajectories.from_labels(["ann", "ann"], step=np.arange(2), state=names)
    >>> published = Published(row for chunk in batch.run(rows) for row in chunk)
    >>> choices = {"model": model, "policy": policy, "space": space, "options": batch.setting.options}
    >>> told = privacy_statement(published, **choices, model_people="others")
    >>> told.published.rows, told.totals.epsilon_sum, told.private
    (2, '2', False)
    >>> told.not_private_because
    ['replayable bits: whoever knows the seed can take the noise away']

    Source: docs/files.md.
    """
    earlier = earlier or Earlier()
    whom = whom_of(model.provenance, Whom.of(model_people, known_by))
    provenance, replayable = model.provenance, published.replayable
    varied = UNSET if subjects is None else stated_varied(subjects)
    varies = () if varied is UNSET else varied.names
    return ReleaseStatement(
        format=FORMAT,
        software=Software(name="dphmm", version=version("dphmm"), algorithm_version=ALGORITHM_VERSION),
        private=verdict(provenance, whom, replayable),
        not_private_because=not_private_because(provenance, whom, replayable),
        unknown_because=unknown_because(provenance, whom, replayable),
        promise=promise(options, provenance, whom, replayable, varies),
        unit_of_privacy=UNIT,
        query=query,
        answer=UNSET if answer is None else Choice(name=answer, meaning=answer_words(answer)),
        epsilon=str(options.epsilon),
        policy=stated_policy(policy),
        covered_distance=covered_distance_of(*_covered(policy, space, options, subjects)),
        constraint=Choice(name=str(options.constraint), meaning=constraint_words(options)),
        mechanism=Mechanism(
            asked=options.mechanism,
            chosen=dict(sorted(published.mechanisms.items())),
            protection=options.protection,
            start=options.start,
            meaning=noise_words(options),
        ),
        space=stated_space(space),
        model=stated_model(model, whom),
        learning=_learning(model, published.largest_with(earlier), whom),
        plans=stated_plans(published.plans),
        published=PublishedCounts(
            rows=published.rows,
            subjects=published.subjects,
            public_constants=published.constants,
            earlier_answers=earlier.answers or UNSET,
        ),
        totals=_totals(published, earlier, options, varies),
        sequence=UNSET
        if sequence is None
        else stated_sequence(
            sequence, verdict(provenance, whom, replayable), couples(model, policy, options, subjects), varies
        ),
        schedule=UNSET if schedule is None else stated_schedule(schedule, published.not_asked),
        varied=varied,
        beginnings=UNSET if subjects is None else stated_beginnings(subjects),
        randomness=Randomness(
            secure=published.replayable == 0,
            replayable_rows=published.replayable,
            words="job key" if words == KEYED_WORDS else UNSET,
            meaning=randomness_words(published.replayable, published.rows, words),
        ),
        not_protected=not_protected(options, provenance, whom, varies),
    )


def stated_schedule(schedule: Schedule, not_asked: int) -> Asking:
    """What a statement says of a schedule."""
    told = schedule.document()
    return Asking(
        name=schedule.kind,
        at=told["at"],
        spreads=list(schedule.spreads),
        releases=schedule.releases,
        not_asked=not_asked,
        meaning=schedule_words(schedule),
    )


def _covered(
    policy: PolicyGraph, space: StateSpace, options: Options, subjects: Subjects | None
) -> tuple[dict[str, Any] | None, Fraction]:
    """What is covered at every step, and the largest epsilon of one."""
    if subjects is None:
        return covered_facts(policy, space), options.epsilon
    return covered_by_all(subjects.policies, space), subjects.epsilons[1]


def stated_varied(subjects: Subjects) -> Varied | UnsetType:
    """What a statement says of what was chosen step by step."""
    names = subjects.setting.varies
    if not names:
        return UNSET
    return Varied(
        names=list(names),
        chosen=[_chosen_steps(choice, steps, subjects.setting.space) for choice, steps in subjects.grouped()],
        meaning=varied_words(names, subjects.setting.options),
        proved_in="docs/proofs/choices.md",
    )


def _chosen_steps(choice: StepChoice, steps: list[int], space: StateSpace) -> ChosenSteps:
    runs = np.split(np.array(steps), np.flatnonzero(np.diff(steps) != 1) + 1)
    names, pairs = space.names, None if choice.partners is None else choice.partners.tolist()
    protection = choice.protection if choice.protection is None or isinstance(choice.protection, str) else "a function"
    return ChosenSteps(
        steps=[[int(run[0]), int(run[-1])] for run in runs],
        epsilon=None if choice.epsilon is None else str(choice.epsilon),
        policy=None if choice.policy is None else stated_policy(choice.policy),
        protection=protection,
        partners=None if pairs is None else [[names[state], names[partner]] for state, partner in pairs],
    )


def stated_beginnings(subjects: Subjects) -> Beginnings | UnsetType:
    """What a statement says of subjects who begin elsewhere than the model says."""
    if not subjects.initials:
        return UNSET
    return Beginnings(subjects=len(subjects.initials), sha256=subjects.initials_digest, meaning=BEGINNINGS)


def check_subjects(statement: ReleaseStatement, subjects: Subjects) -> None:
    """Raises InvalidInput where public tables say other choices or beginnings than a statement."""
    for field, due, own in (
        ("step_choices", statement.varied, stated_varied(subjects)),
        ("initials", statement.beginnings, stated_beginnings(subjects)),
    ):
        if _bare(due) != _bare(own):
            came = "nothing" if own is UNSET else "what its privacy statement does not say"
            raise InvalidInput(field, came, "the table that the release was made with, or none if it had none")


def _bare(part: Part | UnsetType) -> dict[str, Any] | None:
    """A part without its sentences."""
    return None if part is UNSET else {name: told for name, told in document(part).items() if name != "meaning"}


def promise_of_statement(statement: ReleaseStatement) -> SequencePromise | None:
    """The promise over paths in a statement; None without one. Raises InvalidInput for a wrong one."""
    told = statement.sequence
    if told is UNSET:
        return None
    try:
        total = written_fraction(told.total)
        return SequencePromise(total, steps=told.steps, window=told.window, per=told.per, zone=told.zone)
    except (ValueError, ZeroDivisionError):
        raise InvalidInput("statement", f"a promise over paths of {told.total[:_LONGEST_VALUE]!r}", _WRITTEN) from None


def schedule_of_statement(statement: ReleaseStatement) -> Schedule | None:
    """The schedule in a statement; None where every step was asked. Raises InvalidInput for a wrong one."""
    told, over = statement.schedule, statement.sequence
    if told is UNSET:
        return None
    if over is UNSET:
        raise InvalidInput("statement", "a schedule without a promise over the sequence", _WRITTEN)
    lengths = {"steps": over.steps, "window": over.window, "per": over.per}
    document = {name: length for name, length in lengths.items() if length is not None}
    document |= {"zone": over.zone} if isinstance(over.per, str) else {}
    document |= {"total": over.total, "schedule": told.name, "at": told.at, "epsilon": statement.epsilon}
    return Schedule.of_document(document | ({"spreads": told.spreads} if told.spreads else {}))


def write_statement(release: PathLike, statement: AnyStatement) -> Path:
    """Write the statement of a released file beside it, as ``<name>.privacy.json``; returns that path.

    Adds the file's name and SHA-256, so that the statement says which file it is about.
    """
    file = Path(release)
    path = statement_path(file)
    save_statement(path, statement, file.name, file_digest(file))
    return path


def save_statement(path: PathLike, statement: AnyStatement, name: str, sha256: str) -> None:
    """Write a statement to ``path``: about what is called ``name`` ("-" for a stream) and has this SHA-256."""
    whole = msgspec.structs.replace(statement, file=StatedFile(name=name, sha256=sha256))
    text = json.dumps(document(whole), indent=2, ensure_ascii=True, allow_nan=False) + "\n"
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def copy_release(released: PathLike, output: PathLike) -> int:
    """The rows of a released file as a table of another format, its statement beside it; how many rows there are.

    The statement is the same but for its member ``file``, which names the new file. Without one none is written.

    Raises InvalidInput for a file that is no table, one that is not the file of its statement, and an output that is
    none.
    """
    file = checked_input(released, "released")
    with steady(file) as sha256:
        table = as_released(read_table(file, text={"user", "z", "estimate", "plan"}))
    statement = load_statement(file) if statement_path(file).exists() else None
    if statement is not None:
        changed = changed_words(statement, statement_path(file), file, sha256)
        if changed is not None:
            # A statement of these rows would hide that nobody released them.
            raise InvalidInput("released", changed, "the released file: dphmm release --resume writes both again")
        checked_output(statement_path(output), [released, statement_path(released)])
    write_table(output, table, inputs=[released])
    if statement is not None:
        write_statement(output, statement)
    return len(table)


def changed_words(statement: ReleaseStatement, path: PathLike, file: PathLike, sha256: str) -> str | None:
    """That a file with this SHA-256 is not the one that its statement, at a path, is about; None where it is."""
    if member(statement, "file.sha256") == sha256:
        return None
    return f"{Path(file).name} was changed since {Path(path).name} was written"


def load_statement(release: PathLike) -> ReleaseStatement:
    """The statement beside a released file. Raises InvalidInput where there is none that can be read."""
    path = statement_path(release)
    if not path.exists():
        came = f"{Path(release).name} without its privacy statement {path.name} beside it"
        expected = "both: put the statement back beside the file, or write both again with dphmm release --resume"
        raise InvalidInput("released", came, expected)
    return read_statement(path)


def read_statement(file: PathLike) -> ReleaseStatement:
    """The privacy statement of a release.

    Raises InvalidInput for a file that is none, and for one with a member missing or of another type, which it names.
    Members that are not known are left out.
    """
    path = checked_input(file, "statement")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        known = found["format"] == FORMAT and found["software"]["name"] == "dphmm"
    except (ValueError, KeyError, TypeError, RecursionError):
        known = False
    if not known:
        raise InvalidInput("statement", str(path), f"a privacy statement of format {FORMAT}")
    try:
        statement = typed(found, ReleaseStatement)
    except msgspec.ValidationError as error:
        raise InvalidInput("statement", f"{path.name} {_fault(found, str(error))}", _WRITTEN) from None
    except UnicodeEncodeError:
        raise InvalidInput("statement", f"{path.name} with a name that is no text", _WRITTEN) from None
    except RecursionError:
        raise InvalidInput("statement", f"{path.name} with members too deep in each other", _WRITTEN) from None
    came = _contradiction(statement)
    if came is not None:
        raise InvalidInput("statement", f"{path.name} with {came}", _WRITTEN)
    return statement


def _contradiction(statement: ReleaseStatement) -> str | None:
    """A number that is not as it is written, or a member that another one contradicts; None where there is neither."""
    randomness, over = statement.randomness, statement.sequence
    chosen = () if statement.varied is UNSET else statement.varied.chosen
    numbers = {"epsilon": statement.epsilon} | ({} if over is UNSET else {"sequence.total": over.total})
    numbers |= {f"varied.chosen[{n}].epsilon": one.epsilon for n, one in enumerate(chosen) if one.epsilon is not None}
    for name, told in numbers.items():
        try:
            right = str(exact_epsilon(written_fraction(told))) == told
        except (ValueError, ZeroDivisionError):
            right = False
        if not right:
            return f"{name} {ascii(told)[:_LONGEST_VALUE]}"
    if randomness.secure is (randomness.replayable_rows > 0):
        called, count = "" if randomness.secure else "not ", randomness.replayable_rows or "no"
        return f"noise that is {called}secure, and with {count} replayable rows"
    private = statement.private
    held = {"promise.holds": statement.promise.holds} | ({} if over is UNSET else {"sequence.holds": over.holds})
    for name, holds in held.items():
        if holds != private:
            return f"{name} {ascii(holds)[:_LONGEST_VALUE]}, and private {ascii(private)[:_LONGEST_VALUE]}"
    reasons = bool(statement.not_private_because), bool(statement.unknown_because)
    if private not in (True, False, "unknown") or reasons != (private is False, private == "unknown"):
        return f"private {ascii(private)[:_LONGEST_VALUE]}, and other reasons than that has"
    return None


def stated_options(statement: ReleaseStatement) -> dict[str, str]:
    """The choices that a statement names, as `Options.written` has them."""
    return {
        "epsilon": statement.epsilon,
        "constraint": statement.constraint.name,
        "mechanism": statement.mechanism.asked,
        "protection": statement.mechanism.protection,
        "start": statement.mechanism.start,
    }


def statement_path(release: PathLike) -> Path:
    """Where the statement of a released file lies: released.parquet.privacy.json."""
    file = Path(release)
    return file.with_name(f"{file.name}.privacy.json")


def statement_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a written statement; ``privacy-statement.schema.json`` is a copy of it."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:dphmm:privacy-statement:{FORMAT}",
        **schema(ReleaseStatement, RELEASE_RULES),
        "title": "Privacy statement of a dphmm release",
    }


def _fault(found: Any, error: str) -> str:
    """What is wrong with the JSON of a statement, from what its types say: a member is missing, or another value."""
    path = error.partition(" - at `$.")[2].rstrip("`")
    missing = re.match("Object missing required field `(.*?)`", error)
    if missing:
        return f"without {path}.{missing[1]}" if path else f"without {missing[1]}"
    name, listed, _ = path.partition("[")
    if name == "mechanism.chosen" and listed:
        return "with no counts of mechanisms"
    if listed and error.startswith("Expected `str`"):
        return f"with no text in {name}"
    value = found
    for part in name.split("."):
        value = value[part]
    told = ascii(value)
    return f"with {name} {told if len(told) <= _LONGEST_VALUE else told[:_LONGEST_VALUE] + '...'}"


def stated_policy(policy: PolicyGraph) -> Policy:
    """What a statement says of a policy."""
    described = policy.describe()
    kind = described.pop("kind")
    short = len(json.dumps(described)) <= _LONGEST_PARAMETERS
    return Policy(kind=kind, parameters=described if short else None, sha256=policy.digest)


def stated_space(space: StateSpace) -> Space:
    """What a statement says of a space."""
    said = Space(
        kind=space.kind,
        states=space.n_states,
        dimension=space.dimension,
        pitch=[float(pitch) for pitch in space.pitch],
        sha256=space.digest,
    )
    if not len(space.merges):
        return said
    pairs = space.merges.tolist()
    short = len(json.dumps(pairs)) <= _LONGEST_PARAMETERS
    merged = Merged(count=len(pairs), pairs=pairs if short else None, meaning=merged_words(space))
    return msgspec.structs.replace(said, merged=merged)


def couples(model: MarkovModel, policy: PolicyGraph, options: Options, subjects: Subjects | None) -> Verdict:
    """What a statement says of coupling: true, or "unknown".

    It is not proved where steps have edges of their own, and of other beginnings.
    """
    if subjects is not None and (subjects.initials or set(subjects.setting.varies) - {"epsilon"}):
        return "unknown"
    return couples_along(model, policy) or "unknown"


def stated_sequence(
    promise: SequencePromise, holds: Verdict, couples: Verdict, varies: Sequence[str] = ()
) -> SequenceBound:
    """What a statement says of a promise over paths; ``couples``: whether the model is known to couple."""
    return SequenceBound(
        over="paths",
        total=str(promise.exact),
        steps=promise.steps,
        window=promise.window,
        per=promise.per,
        zone=promise.zone,
        holds=holds,
        meaning=sequence_words(promise, holds, couples, varies),
        couples=couples,
        proved_in="docs/proofs/paths.md",
    )


def stated_model(model: MarkovModel, whom: Whom) -> Model:
    """What a statement says of a model, and of whom it was fitted on."""
    provenance = model.provenance
    private = provenance.get("private")
    return Model(
        sha256=model.digest,
        step_seconds=model.step,
        method=str(provenance.get("method", "unknown")),
        private=private if isinstance(private, bool) else None,
        people=whom.people,
        people_known_by=whom.known_by,
        meaning=provenance_words(provenance, whom),
    )


def _learning(model: MarkovModel, largest: Account, whom: Whom) -> Learning | None:
    """The other guarantee: what a model learned with noise loses, by itself and with the releases of one person."""
    event = learning_event(model.provenance)
    if not isinstance(event, LearningEvent):
        return None
    if whom.people == "others":
        return learning_of_others(event)
    return learning(event, largest.spent.cost)


def stated_plans(hashes: set[str]) -> Plans:
    """What a statement says of plans."""
    ordered = sorted(hashes)
    digest = hashlib.sha256("\n".join(ordered).encode()).hexdigest()
    return Plans(count=len(ordered), sha256=digest, hashes=ordered if len(ordered) <= _MOST_PLANS else None)


def _totals(published: Published, earlier: Earlier, options: Options, varies: Sequence[str]) -> Totals:
    spent = published.largest_with(earlier).spent
    return Totals(
        of=whose_totals(earlier.answers),
        epsilon_sum=shown(spent.epsilon),
        epsilon_sum_meaning=epsilon_words(varies),
        cost_sum=shown(spent.cost),
        cost_sum_meaning=cost_words(),
    )
