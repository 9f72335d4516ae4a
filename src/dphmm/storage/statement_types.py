"""What a privacy statement has: the one definition that it is written, read, compared and documented from.

The types are what every reader demands. The rules beside them, in `Meta`, are in the JSON schema alone. The description
of a member is its line in the schema and in docs/files.md. Members stand in the order of the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from dphmm._checks import written_fraction


def _rule(**keywords: Any) -> Meta:
    """What the JSON schema demands of a member beside its type."""
    return Meta(extra_json_schema=keywords)


def _is(description: str) -> Meta:
    """What a member is."""
    return Meta(description=description)


#: A text that is not empty.
Text = Annotated[str, _rule(minLength=1)]
Texts = list[Text]
#: True, False or "unknown"; compare with ``is True``, for "unknown" is no empty text.
Verdict = bool | str
StatedVerdict = Annotated[Verdict, _rule(enum=[True, False, "unknown"])]
Sha256 = Annotated[str, _rule(pattern="^[0-9a-f]{64}$")]
#: A number exactly, as a fraction: 1 or 1/3.
Exact = Annotated[str, _rule(pattern="^[0-9]+(/[0-9]+)?$")]
Count = Annotated[int, _rule(minimum=0)]
Positive = Annotated[int, _rule(minimum=1)]
#: Metres, or "any": every two cells are joined.
Metres = Annotated[float | str, _rule(oneOf=[{"const": "any"}, {"type": "number", "minimum": 0}])]
Pair = Annotated[list[Count], _rule(minItems=2, maxItems=2)]


class Part(Struct, frozen=True):
    """A part of a statement."""


class Software(Part, frozen=True, kw_only=True):
    """What wrote the statement."""

    name: Annotated[str, _rule(const="dphmm"), _is("Of the package.")]
    version: Annotated[Text, _is("Of the package, when it wrote the statement.")]
    algorithm_version: Annotated[Positive, _is("Other versions make other plans from the same choices.")]


class Promise(Part, frozen=True, kw_only=True):
    """The definition that each release satisfies, and whether it holds for this file."""

    definition: Annotated[str, _rule(const="{epsilon, G, C_t}-DPHMM"), _is("Its name.")]
    source: Annotated[Text, _is("Where the definition is from.")]
    holds: Annotated[StatedVerdict, _is("The same as private.")]
    meaning: Annotated[Texts, _rule(minItems=1), _is("The definition in words, a sentence each.")]
    assumes: Annotated[Text, _is("What is taken to be known to everybody.")]


class Policy(Part, frozen=True, kw_only=True):
    """The policy of the release."""

    kind: Annotated[Text, _is("As in the policy file.")]
    parameters: Annotated[dict[str, Any] | None, _is("Null where they are long; the policy file has them.")]
    sha256: Annotated[Sha256, _is("Of the edges among the states.")]


class CoveredDistance(Part, frozen=True, kw_only=True):
    """How far apart two places in cells of a map may be and still be hidden from each other."""

    metres: Annotated[
        Metres, _is('As the cells are measured: a grid\'s on its map, H3 cells on the ground; "any": every distance.')
    ]
    ground_metres: Annotated[Metres, _is("The same for distances on the ground; never more.")]
    meaning: Annotated[Text, _is("What that means, as a sentence that stands alone.")]


class Choice(Part, frozen=True, kw_only=True):
    """A choice by its name, and what it means."""

    name: Annotated[Text, _is("As it is written on the command line.")]
    meaning: Annotated[Text, _is("What the choice means, as a sentence.")]


class Mechanism(Part, frozen=True, kw_only=True):
    """The mechanism that was asked for, and those that answered."""

    asked: Annotated[Text, _is("As it is written on the command line.")]
    chosen: Annotated[dict[str, Positive], _is("Rows by the mechanism that answered them.")]
    protection: Annotated[Text, _is("How a state without a policy edge gets a partner.")]
    start: Annotated[
        str, _rule(enum=["before", "at"]), _is("Whether the initial distribution is of the step before the first.")
    ]
    meaning: Annotated[Text, _is("Which law answers each state, as a sentence.")]


class Merged(Part, frozen=True, kw_only=True):
    """States that are answered as another state."""

    count: Annotated[Positive, _is("How many.")]
    pairs: Annotated[
        list[Pair] | None, _is("Each merged state and the state that it is answered as; null where there are many.")
    ]
    meaning: Annotated[Text, _is("What merging means, as a sentence.")]


class Space(Part, frozen=True, kw_only=True):
    """The states and their answers."""

    kind: Annotated[Text, _is("As in the model's file.")]
    states: Annotated[Positive, _is("How many.")]
    dimension: Annotated[Positive, _is("Coordinates of an answer.")]
    pitch: Annotated[
        list[Annotated[float, _rule(exclusiveMinimum=0)]],
        _rule(minItems=1),
        _is("The step of the lattice of answers, by coordinate."),
    ]
    sha256: Annotated[Sha256, _is("Of the states' names and answers.")]
    merged: Annotated[Merged | UnsetType, _is("Only where states are merged.")] = UNSET


class Model(Part, frozen=True, kw_only=True):
    """The model of the release, and whom it was fitted on."""

    sha256: Annotated[Sha256, _is("Of what the model says, not of its file.")]
    step_seconds: Annotated[Positive | None, _is("Its time step; null for a model without one.")]
    method: Annotated[str, _is("How it was made.")]
    private: Annotated[
        bool | None,
        _is(
            "Whether it was fitted with differential privacy, as the model's file says; null where the file does not "
            "say. This is about the people it was fitted on, not those released: false says that these have no "
            "protection from the model."
        ),
    ]
    people: Annotated[
        str,
        _rule(enum=["unknown", "others", "same"]),
        _is("Who it was fitted on, seen from those released: others (or nobody), same (or some of them), or unknown."),
    ]
    people_known_by: Annotated[
        str | None,
        _rule(enum=["owner", "names", "file", "model", None]),
        _is(
            "owner: the data owner says so (--model-people), and nothing checks it. names: user names were compared, "
            "and one person may have two. file: the released table is the one it was fitted on, by SHA-256. model: its "
            "file says that it was made from geometry alone, without data. Null where people is unknown."
        ),
    ]
    meaning: Annotated[Text, _is("What the model's origin means for the promise.")]


class Together(Part, frozen=True, kw_only=True):
    """What the model and the releases of one person lose together."""

    epsilon: Annotated[Text, _is("The epsilon of replacing their record plus the sum of costs.")]
    delta: Annotated[Text, _is("The delta of replacing their record.")]
    meaning: Annotated[Text, _is("What that bounds, what is counted and what is not.")]
    costs: Annotated[Text, _is("Whose costs they are.")]


class Learning(Part, frozen=True, kw_only=True):
    """What learning the model cost the people it was learned from."""

    private: Annotated[bool, _is("False where the noise can be replayed.")]
    epsilon: Annotated[Text, _is("The true total of the fit, rounded up where it is long.")]
    delta: Annotated[Text, _is("The true total of the fit.")]
    neighbours: Annotated[str, _rule(enum=["add-remove", "replace"]), _is("Which data sets are compared.")]
    max_length: Annotated[Positive, _is("Steps of a sequence that counted.")]
    max_sequences: Annotated[Positive, _is("Sequences of a person that counted.")]
    meaning: Annotated[Text, _is("What the epsilon bounds, and where that is proved.")]
    record: Annotated[Text, _is("What was kept of a person.")]
    not_covered: Annotated[Texts, _rule(minItems=1), _is("What the epsilon does not cover, a sentence each.")]
    together: Annotated[
        Together | UnsetType | None,
        _is(
            "With the releases of one person, for any two possible records of that person; null where people is others."
        ),
    ] = UNSET


class Plans(Part, frozen=True, kw_only=True):
    """The plans that the file was released under."""

    count: Annotated[Count, _is("How many.")]
    sha256: Annotated[Sha256, _is("Of the sorted hashes, joined by line feeds.")]
    hashes: Annotated[list[Sha256] | None, _is("Sorted; null where there are many.")]


class PublishedCounts(Part, frozen=True, kw_only=True):
    """What the file publishes."""

    rows: Annotated[Count, _is("One for each subject and step.")]
    subjects: Annotated[Count, _is("Users that have rows.")]
    public_constants: Annotated[Count, _is("Rows whose answer was known to everybody in advance.")]
    earlier_answers: Annotated[
        Positive | UnsetType,
        _is(
            "Answers of these users to the query that are in other files and that estimates in this one follow from, "
            "too; totals count them. Absent where there are none."
        ),
    ] = UNSET


class Totals(Part, frozen=True, kw_only=True):
    """The largest sums of any one subject in this file, each with what it bounds."""

    of: Annotated[Text, _is("Whose totals they are.")]
    epsilon_sum: Annotated[Text, _is("A number, exactly where it is short, else rounded up.")]
    epsilon_sum_meaning: Annotated[Text, _is("What the sum of epsilons bounds.")]
    cost_sum: Annotated[Text, _is("A number, exactly where it is short, else rounded up.")]
    cost_sum_meaning: Annotated[Text, _is("What the sum of costs bounds.")]


class SequenceBound(Part, frozen=True, kw_only=True):
    """What the releases of one subject promise together."""

    over: Annotated[str, _rule(const="paths"), _is("What is compared: two neighbouring paths of one subject.")]
    total: Annotated[Exact, _is("What the epsilons of the steps may add up to, over all queries of the subject.")]
    steps: Annotated[Positive | None, _is("Of the whole sequence, where it has an end.")]
    window: Annotated[Positive | None, _is("Any so many steps in a row.")]
    per: Annotated[Positive | str | None, _is('A block: so many steps, or a time as "1d".')]
    zone: Annotated[Text, _is("The offset from UTC of the clock by which blocks of a time begin.")]
    holds: Annotated[StatedVerdict, _is("The same as private.")]
    meaning: Annotated[Texts, _rule(minItems=1), _is("What is promised, and what is not, a sentence each.")]
    couples: Annotated[
        StatedVerdict,
        _is(
            "Whether the epsilons of any answers bound in sum what these tell of two states of one step that an edge "
            'joins, too: true where the model is known to couple along the policy, "unknown" where nobody looked.'
        ),
    ]
    proved_in: Annotated[Text, _is("The page of the proof.")]


class ChosenSteps(Part, frozen=True, kw_only=True):
    """What some steps were released under in place of what the statement says; null is what it says."""

    steps: Annotated[
        list[Annotated[list[int], _rule(minItems=2, maxItems=2)]],
        _is("First and last of each run of them: their numbers in tables, or those of time bins since 1970."),
    ]
    epsilon: Annotated[Exact | None, _is("That of the steps.")]
    policy: Annotated[Policy | None, _is("That of the steps.")]
    protection: Annotated[Text | None, _is("How a state without an edge found its partner.")]
    partners: Annotated[
        list[Annotated[list[Text], _rule(minItems=2, maxItems=2)]] | None,
        _is("States and the partners that each was given where it has no edge, by name."),
    ]


class Varied(Part, frozen=True, kw_only=True):
    """What was chosen step by step, from public data."""

    names: Annotated[Texts, _rule(minItems=1), _is("Of what may differ: epsilon, partners, policy, protection.")]
    chosen: Annotated[list[ChosenSteps], _is("What was chosen; other steps are as the statement says.")]
    meaning: Annotated[Texts, _rule(minItems=1), _is("What that means, a sentence each.")]
    proved_in: Annotated[Text, _is("The page of the proof.")]


class Beginnings(Part, frozen=True, kw_only=True):
    """Subjects who are publicly known to begin elsewhere than the model says."""

    subjects: Annotated[Positive, _is("How many there are in the public table.")]
    sha256: Annotated[Sha256, _is("Of their names and where each begins.")]
    meaning: Annotated[Texts, _rule(minItems=1), _is("What that means, a sentence each.")]


class Asking(Part, frozen=True, kw_only=True):
    """At which steps subjects were asked."""

    name: Annotated[str, _is('"planned": at fixed public steps; "paced": where earlier answers made it worth while.')]
    at: Annotated[Text, _is('Steps of the sequence, or of each block or window, as "12,36-40": of these.')]
    spreads: Annotated[list[float], _is("What the belief's spread must reach, by steps left for each answer left.")]
    releases: Annotated[Positive, _is("Answers in the sequence, or in a block or window, at most.")]
    not_asked: Annotated[Count, _is("Rows of this file without an answer.")]
    meaning: Annotated[Texts, _rule(minItems=1), _is("What that means, a sentence each.")]


#: Where random words are from: the operating system for each of them, or the key of one job.
SYSTEM_WORDS, KEYED_WORDS = "system", "job key"


class Randomness(Part, frozen=True, kw_only=True):
    """Where the noise is from."""

    secure: Annotated[bool, _is("Whether all noise was of the operating system's randomness.")]
    replayable_rows: Annotated[Count, _is("Rows whose noise can be replayed by whoever knows the seed.")]
    meaning: Annotated[Text, _is("What that means, as a sentence.")]
    words: Annotated[
        Literal["system", "job key"] | UnsetType,
        _is("Where random words are from: the system, which is not said, or the key of one job on many machines."),
    ] = UNSET


class StatedFile(Part, frozen=True, kw_only=True):
    """The file that the statement is about."""

    name: Annotated[Text, _is("Its name; a stream has none, and is called -.")]
    sha256: Annotated[Sha256, _is("Of the file's bytes; of a stream that of the lines that this run printed.")]


class ReleaseStatement(Part, frozen=True, kw_only=True):
    """What was promised about a released file, what it cost, and what is not protected. Every member is public."""

    format: Annotated[int, _rule(const=2), _is("Of this kind of statement.")]
    software: Software
    private: Annotated[
        StatedVerdict,
        _is(
            "Whether the released people have the promise: true, false or \"unknown\". False where noise can be "
            "replayed, or the model was fitted without privacy on people released. \"unknown\" where that depends on "
            "what nobody said: the model was fitted without privacy and it is not known on whom, or nothing says where "
            "it comes from. In Python compare with `is True`: \"unknown\" is no empty text. True is about "
            "the answers, given the model: what a model learned with differential privacy loses itself is under "
            "learning."
        ),
    ]  # fmt: skip
    not_private_because: Annotated[Texts, _is("Empty unless private is false.")]
    unknown_because: Annotated[Texts, _is('Empty unless private is "unknown".')]
    promise: Promise
    unit_of_privacy: Annotated[Text, _is("One subject's one step.")]
    query: Annotated[str, _is("Its name; a subject's releases are keyed by (subject, step, query).")]
    answer: Annotated[
        Choice | UnsetType,
        _is(
            "Which of several rows of a subject in one time bin, or one step, was answered: last or first. A release "
            "of single states has none."
        ),
    ] = UNSET
    epsilon: Annotated[Exact, _is("The promise of each release given the past, exactly, as a fraction: 1 or 1/3.")]
    policy: Policy
    covered_distance: Annotated[
        CoveredDistance | None,
        _is(
            "How far apart two places in cells of a map may be and still be hidden from each other; null where states "
            "are no cells of a map whose shapes are known."
        ),
    ]
    constraint: Annotated[Choice, _is("On which states a release is planned.")]
    mechanism: Mechanism
    space: Space
    model: Model
    learning: Annotated[
        Learning | None,
        _is("What learning the model cost the people it was learned from; null where it was not learned with noise."),
    ]
    plans: Plans
    published: PublishedCounts
    totals: Totals
    sequence: Annotated[
        SequenceBound | UnsetType,
        _is("A promise over the sequence, to which the ledger keeps every subject of the file; absent without one."),
    ] = UNSET
    schedule: Annotated[
        Asking | UnsetType, _is("At which steps subjects were asked; absent where they were asked at every step.")
    ] = UNSET
    varied: Annotated[
        Varied | UnsetType, _is("What was chosen step by step; absent where all steps are as the statement says.")
    ] = UNSET
    beginnings: Annotated[
        Beginnings | UnsetType, _is("Who begins elsewhere than the model says; absent where nobody does.")
    ] = UNSET
    randomness: Randomness
    not_protected: Annotated[Texts, _rule(minItems=5), _is("What these releases do not hide, a sentence each.")]
    file: Annotated[StatedFile | UnsetType, _is("The file beside which the statement lies.")] = UNSET


class QuerySoftware(Part, frozen=True, kw_only=True):
    """What wrote the statement."""

    name: Annotated[str, _rule(const="dphmm"), _is("Of the package.")]
    version: Annotated[Text, _is("Of the package, when it wrote the statement.")]


class QueryPromise(Part, frozen=True, kw_only=True):
    """What is promised of one record, or of the rows of one person."""

    holds: Annotated[StatedVerdict, _is("The same as private.")]
    meaning: Annotated[Text, _is("The promise as a sentence that says what it rests on.")]


class PerRecord(Part, frozen=True, kw_only=True):
    """What replacing one record and no other loses; at edge level, adding or removing one edge."""

    epsilon: Annotated[Text | None, _is("Null where noise can be replayed.")]
    meaning: Annotated[Text, _is("This adds up over several answers; the epsilon under dependence does not.")]


class Dependence(Part, frozen=True, kw_only=True):
    """Which records may depend on each other."""

    given: Annotated[Text | UnsetType, _is("How it was given. Of a model alone the hash of its file is given.")] = UNSET
    largest_circle: Annotated[
        Positive | UnsetType, _is("People of the largest circle of friends, where friendships are given.")
    ] = UNSET
    meaning: Annotated[Text | UnsetType, _is("In words; what rests on the data owner's word says so.")] = UNSET
    model_sha256: Annotated[Sha256 | UnsetType, _is("Of the file of a model, where one is given.")] = UNSET
    model: Annotated[Text, _is("The model of dependence in the library's words.")]


class Noise(Part, frozen=True, kw_only=True):
    """The noise in one vector of numbers."""

    of: Annotated[Text, _is("Which numbers.")]
    distribution: Annotated[Text, _is("Of the noise.")]
    sensitivity: Annotated[Text, _is("How much one record alone changes the numbers at most.")]
    scale: Annotated[Text, _is("Of the noise.")]


class QueryMechanism(Part, frozen=True, kw_only=True):
    """How the answer was drawn."""

    name: Annotated[Text, _is("Of the mechanism.")]
    noise: Annotated[list[Noise], _rule(minItems=1), _is("Of each vector of numbers.")]


class Proof(Part, frozen=True, kw_only=True):
    """What the promise rests on."""

    by: Annotated[Text, _is("By what it is proved, or why it is not.")]
    where: Annotated[Text, _is("The page of the proof.")]
    rows: Annotated[Text, _is("The page on what the rows of one person count for.")]


class QueryRandomness(Part, frozen=True, kw_only=True):
    """Where the noise is from."""

    secure: Annotated[bool, _is("Whether all noise was of the operating system's randomness.")]
    source: Annotated[str, _rule(enum=["the operating system", "replayable bits"]), _is("Of the random bits.")]


class QueryStatement(Part, frozen=True, kw_only=True):
    """What was promised about the answer of a query, and what is not protected. Every member is public."""

    format: Annotated[int, _rule(const=2), _is("Of this kind of statement.")]
    kind: Annotated[str, _rule(const="query"), _is("query; the statement of a release has no kind.")]
    software: QuerySoftware
    query: Annotated[Text, _is("What was asked.")]
    private: Annotated[
        StatedVerdict,
        _is(
            'Whether anything is promised: true, false or "unknown". False where noise can be replayed, where nothing '
            "is proved, or where the model was fitted without privacy to these very records (or on these people, as "
            'the data owner says); "unknown" where it was fitted without privacy and nobody has said on whom.'
        ),
    ]
    not_private_because: Annotated[Texts, _is("Empty unless private is false.")]
    unknown_because: Annotated[Texts, _is("The reasons for which it is not known, if there are any.")]
    unit_of_privacy: Annotated[
        Text, _is("What is hidden: one record, or the rows of one person, of which at most K count.")
    ]
    epsilon: Annotated[Text | None, _is("For that unit under the dependence; null where private is false.")]
    promise: QueryPromise
    per_record: PerRecord
    dependence: Dependence
    mechanism: QueryMechanism
    proved: Proof
    domain: Annotated[
        dict[str, Any],
        _is(
            "The public options: states, windows, box, start, people, classes; of counts `in_no_state`, the state that "
            "rows with any other name count as (null where places say the states); for svm also how many rows DATA "
            "have."
        ),
    ]  # fmt: skip
    randomness: QueryRandomness
    not_protected: Annotated[Texts, _rule(minItems=4), _is("What the answer does not hide, a sentence each.")]
    file: Annotated[StatedFile | UnsetType, _is("The file beside which the statement lies.")] = UNSET


class SyntheticStatement(Part, frozen=True, kw_only=True):
    """What rows drawn from a model tell of the people whom the model was fitted on. Every member is public."""

    format: Annotated[int, _rule(const=1), _is("Of this kind of statement.")]
    kind: Annotated[str, _rule(const="synthetic"), _is("synthetic; the statement of a release has no kind.")]
    software: QuerySoftware
    private: Annotated[
        StatedVerdict,
        _is(
            "Whether the rows keep a promise to the people whom the model was fitted on: true where it was learned "
            'with privacy, or made from geometry alone; false where it was fitted without; "unknown" where nothing '
            "says so."
        ),
    ]
    not_private_because: Annotated[Texts, _is("Empty unless private is false.")]
    unknown_because: Annotated[Texts, _is("The reasons for which it is not known, if there are any.")]
    meaning: Annotated[Text, _is("The promise as a sentence.")]
    learning: Annotated[Learning | None, _is("What the fit of the model lost; null where it has no noise.")]
    model: Annotated[Sha256, _is("The model's own hash, as plans and releases name it.")]
    people: Annotated[Positive, _is("Invented people in the file.")]
    steps: Annotated[Positive, _is("Rows of each.")]
    like: Annotated[bool, _is("Whether the rows keep public totals.")]
    not_protected: Annotated[Texts, _rule(minItems=1), _is("What the rows do not hide, a sentence each.")]
    file: Annotated[StatedFile | UnsetType, _is("The file beside which the statement lies.")] = UNSET


AnyPart = TypeVar("AnyPart", bound=Part)


def document(part: Part) -> dict[str, Any]:
    """A statement, or a part of one, as JSON has it; members that it does not have are left out."""
    found: dict[str, Any] = msgspec.to_builtins(part, enc_hook=_plain)
    return found


def typed(found: Any, kind: type[AnyPart]) -> AnyPart:
    """What JSON has, as a statement or a part of one; members that are not known are left out.

    Raises msgspec.ValidationError, which names the first member that is missing or of another type.
    """
    return msgspec.convert(found, kind)


def member(part: Part, path: str) -> Any:
    """A member of a statement by its path, such as totals.cost_sum; None for one that the statement does not have."""
    value: Any = part
    for name in path.split("."):
        value = getattr(value, name)
        if value is None or value is UNSET:
            return None
    return value


def earlier_answers_of(statement: ReleaseStatement) -> int:
    """From how many answers of other files estimates follow, too; 0 where a statement tells of none."""
    return statement.published.earlier_answers or 0


def epsilons_of(statement: ReleaseStatement) -> tuple[Fraction, Fraction]:
    """The smallest and the largest epsilon that an answer may have. Raises ValueError for a text that is none."""
    found = [epsilon for epsilon in exact_epsilons(statement).values() if epsilon]
    return min(found), max(found)


def exact_epsilons(statement: ReleaseStatement) -> dict[float, Fraction]:
    """The epsilons that a row may have, by the number in the file: 0 of a public constant, or of a row not asked."""
    chosen = [] if statement.varied is UNSET else [one.epsilon for one in statement.varied.chosen]
    found = [written_fraction(one) for one in dict.fromkeys((statement.epsilon, *chosen, "0")) if one is not None]
    return {float(epsilon): epsilon for epsilon in found}


def schema(kind: type[Part], rules: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of what is written: every member, no other one, and these rules."""
    (_,), parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    for name, part in parts.items():
        part["required"] = [known for known in part["properties"] if known not in _SOMETIMES.get(name, ())]
        part["additionalProperties"] = False
        for known in part["properties"].values():
            known.pop("default", None)
    whole = parts.pop(kind.__name__)
    return {**whole, **({"allOf": list(rules)} if rules else {}), "$defs": parts}


def _because(private: Verdict) -> dict[str, Any]:
    """What goes with each answer to whether a release is private."""
    due = {
        "not_private_because": {"minItems": 1} if private is False else {"maxItems": 0},
        "unknown_because": {"minItems": 1} if private == "unknown" else {"maxItems": 0},
        "promise": {"properties": {"holds": {"const": private}}},
    }
    return {"if": {"properties": {"private": {"const": private}}}, "then": {"properties": due}}


#: What holds between members of the statement of a release.
RELEASE_RULES: tuple[Mapping[str, Any], ...] = (
    _because(True),
    _because(False),
    _because("unknown"),
    {
        "if": {"properties": {"model": {"properties": {"people": {"const": "unknown"}}}}},
        "then": {"properties": {"model": {"properties": {"people_known_by": {"const": None}}}}},
        "else": {"properties": {"model": {"properties": {"people_known_by": {"type": "string"}}}}},
    },
)
#: Members that a statement has only sometimes; it has all others.
_SOMETIMES = {
    "ReleaseStatement": {"answer", "beginnings", "schedule", "sequence", "varied"},
    "PublishedCounts": {"earlier_answers"},
    "Randomness": {"words"},
    "Space": {"merged"},
    "Dependence": {"given", "largest_circle", "meaning", "model_sha256"},
}


def _plain(value: object) -> object:
    """NumPy's floats are floats of Python's."""
    if isinstance(value, float):
        return float(value)
    raise NotImplementedError(type(value).__name__)
