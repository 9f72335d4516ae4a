"""The privacy statement of a release: each member with its type, its description, its value and its sentence.

A member is public: a parameter, a hash of public inputs, or a count or sum over the rows that were published. Nothing
stronger than was proved is said, and each sentence stands alone. Sources: Definition 4.4 and Theorems 6.3 and 7.2 of
the DPHMM paper, with errata 4, 5, 11, 19 and 21. Proof: docs/proofs/covered-distance.md.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from importlib.metadata import version
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from msgspec import UNSET, UnsetType

from dphmm._checks import exact_epsilon, written_fraction
from dphmm.accounting.budget import UNLIMITED, Caps
from dphmm.accounting.event import LearningEvent, NotPrivateEvent, learning_event
from dphmm.accounting.ledger import COST_STATEMENT, EPSILON_STATEMENT, OWN_POLICIES
from dphmm.accounting.person import NOUN
from dphmm.accounting.promise import Schedule, SequencePromise
from dphmm.accounting.records import in_short, shown
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel, couples_along
from dphmm.mechanisms import chosen_kind
from dphmm.policy import covered_distance
from dphmm.policy.graph import PolicyGraph
from dphmm.session.options import Options, StepChoice
from dphmm.session.plan import ALGORITHM_VERSION
from dphmm.session.setting import Subjects
from dphmm.statement.events import EventLog
from dphmm.statement.learning import Learning
from dphmm.statement.origin import (
    AGAINST,
    DOUBTS,
    MODEL_PEOPLE,
    NOBODY,
    REASONS,
    Whom,
    reasons,
    verdict,
)
from dphmm.statement.parts import (
    Count,
    Exact,
    Holds,
    Metres,
    Pair,
    Part,
    Positive,
    Sha256,
    Software,
    StatedFile,
    StatedVerdict,
    SubjectNames,
    Text,
    Texts,
    member,
    rule,
    schema,
)
from dphmm.statement.sentences import ANY, length, rendered
from dphmm.states.space import StateSpace
from dphmm.storage.released import FileSums

FORMAT = 3
# Longer lists appear by their hash alone.
_MOST_PLANS = 1000
# Of a wrong value an error shows no more.
LONGEST_VALUE = 40
#: Kinds of states whose answers are places on a map.
_ON_MAPS = ("grid", "h3", "zones")
WRITTEN = "a privacy statement as dphmm release wrote it"
_LONGEST_PARAMETERS = 4096


class Policy(Part, frozen=True, kw_only=True):
    """The policy of the release.

    kind : As in the policy file.
    parameters : Null where they are long; the policy file has them.
    sha256 : Of the edges among the states.
    """

    kind: Text
    parameters: dict[str, Any] | None
    sha256: Sha256

    @classmethod
    def of(cls, policy: PolicyGraph) -> Policy:
        """The facts of a policy."""
        described = policy.describe()
        kind = described.pop("kind")
        short = len(json.dumps(described)) <= _LONGEST_PARAMETERS
        return cls(kind=kind, parameters=described if short else None, sha256=policy.digest)


class CoveredDistance(Part, frozen=True, kw_only=True):
    """The largest distance up to which two places in cells of a map are hidden from each other.

    metres : As the cells are measured: a grid's on its map, H3 cells on the ground; "any": every distance.
    ground_metres : The same for distances on the ground; never more.
    """

    metres: Metres
    ground_metres: Metres

    _APART: ClassVar[str] = (
        "{% set ground = length(ground_metres) %}{{ length(metres) }} apart"
        "{% if length(metres) != ground %} on the map ({{ ground }} on the ground){% endif %}"
    )
    says: ClassVar[Mapping[str, str]] = {
        "places": "{% if metres == 'any' %}any two places in cells of the model{% elif metres == 0 %}places in one and "
        f"the same cell of the model{{% else %}}places in cells of the model up to {_APART}{{% endif %}}",
        "meaning": "Take {% if metres == 'any' %}any two places in cells of the model{% elif metres == 0 %}two places "
        "in one and the same cell of the model{% else %}any two places in cells of the model that are at most "
        f"{_APART}{{% endif %}}. Where the promise holds and the public history leaves the cells of both possible, "
        "each answer is at most a factor {{ factor(epsilon) }} more likely from the one than from the other. "
        "{% if metres != 'any' %}Of places {{ 'in two cells' if metres == 0 else 'further apart' }}, one answer can "
        "tell more. {% endif %}A place outside every cell is answered as the nearest state: of such places nothing is "
        "said here.",
        "per answer": "{{ part.places }}: a factor of at most {{ factor(epsilon) }} per answer{% if metres != 'any' %}"
        "; places {{ 'in two cells' if metres == 0 else 'further apart' }} can lose more{% endif %}",
    }

    @classmethod
    def of(cls, policies: Sequence[PolicyGraph], space: StateSpace) -> CoveredDistance | None:
        """The distance that is covered at every step, whichever of the policies it has.

        None where the states are no cells of a map.
        """
        distances = [covered_distance(policy, space) for policy in policies]
        known = [metres for metres in distances if metres is not None]
        return cls.at(ANY if min(known) == math.inf else min(known), space) if len(known) == len(distances) else None

    @classmethod
    def at(cls, metres: Any, space: Any) -> CoveredDistance:
        """A distance on a map, and the same on the ground."""
        return cls(metres=metres, ground_metres=ANY if metres == ANY else space.on_the_ground(metres))

    @property
    def places(self) -> str:
        """The places that are covered: "places in cells of the model up to 680 m apart on the map (677 m ...)"."""
        return self.sentence("places")


class Mechanism(Part, frozen=True, kw_only=True):
    """The mechanism that was asked for, and those that answered.

    asked : As it is written on the command line.
    chosen : Rows by the mechanism that answered them.
    protection : How a state without a policy edge gets a partner.
    start : Whether the initial distribution is of the step before the first.
    """

    asked: Text
    chosen: dict[str, Positive]
    protection: Text
    start: Annotated[str, rule(enum=["before", "at"])]

    @property
    def noise(self) -> str:
        """The law that answers each state, as a sentence."""
        return chosen_kind(self.asked).words.noise


class MergedStates(Part, frozen=True, kw_only=True):
    """States that are answered as another state.

    count : How many.
    pairs : Each merged state and the state that it is answered as; null where there are many.
    """

    count: Positive
    pairs: list[Pair] | None

    says: ClassVar[Mapping[str, str]] = {
        "meaning": "{{ count }} of {{ whole.space.states }} states are answered as another state, their partner: the "
        "answer is exactly as likely from a merged state as from its partner, and says where the partner is.",
    }


class Space(Part, frozen=True, kw_only=True):
    """The states and their answers.

    kind : As in the model's file.
    states : How many.
    dimension : Coordinates of an answer.
    pitch : The step of the lattice of answers, by coordinate.
    sha256 : Of the states' names and answers.
    merged : Only where states are merged.
    """

    kind: Text
    states: Positive
    dimension: Positive
    pitch: Annotated[list[Annotated[float, rule(exclusiveMinimum=0)]], rule(minItems=1)]
    sha256: Sha256
    merged: MergedStates | UnsetType = UNSET

    @classmethod
    def of(cls, space: StateSpace) -> Space:
        """The facts of a space."""
        pairs = space.merges.tolist()
        short = len(json.dumps(pairs)) <= _LONGEST_PARAMETERS
        return cls.from_attributes(
            space,
            states=space.n_states,
            pitch=[float(pitch) for pitch in space.pitch],
            sha256=space.digest,
            merged=MergedStates(count=len(pairs), pairs=pairs if short else None) if pairs else UNSET,
        )


class Model(Part, frozen=True, kw_only=True):
    """The model of the release, and whom it was fitted on.

    sha256 : Of what the model says, not of its file.
    step_seconds : Its time step; null for a model without one.
    latent_states : The number of states of its chain, where several of them are of one state of the release, their
        secret; absent where each is a state of the release. Only secrets are hidden. For a transition policy
        `policy.parameters.order` says whether states are joined that one secret (1) or one latent state (2) leads to.
    slots : The number of its matrices, where the clock or the position of a step says which one moves it; absent where
        there is one.
    method : How it was made.
    private : Whether it was fitted with differential privacy, as the model's file says; null where the file does not
        say. This is about the people it was fitted on, not those released: false says that these have no protection
        from the model.
    because : Why a fit that its own record calls not private is not, in that record's words.
    people : Who it was fitted on, seen from those released: others (or nobody), same (or some of them), or unknown.
    people_known_by : owner: the data owner says so (--model-people), and nothing checks it. names: user names were
        compared, and one person may have two. file: the released table is the one it was fitted on, by SHA-256. model:
        its file says that it was made from geometry alone, without data. Null where people is unknown.
    """

    sha256: Sha256
    step_seconds: Positive | None
    latent_states: Positive | UnsetType = UNSET
    slots: Positive | UnsetType = UNSET
    method: str
    private: bool | None
    because: Text | UnsetType = UNSET
    people: Annotated[str, rule(enum=list(MODEL_PEOPLE))]
    people_known_by: Annotated[str | None, rule(enum=["owner", "names", "file", "model", None])]

    says: ClassVar[Mapping[str, str]] = {
        "meaning": """
{% if private is true %}
Fitted with differential privacy: what the model itself loses about people adds to the releases.\
{% if not learned %} By how much is not recorded.{% endif +%}
{% elif people_known_by == "model" %}
Made from geometry alone, {{ known }}: a box, its cells, a rule of moves and its numbers, all public. Nobody's data is \
in it, so it loses nothing about anybody; how well it fits decides errors alone.
{% elif private is none %}
Given, not fitted by dphmm: {% if people == "same" %}made from data of people released here, {{ known }}. Nothing \
records that this was done with differential privacy, so the model may show their moves.\
{% elif people == "others" %}made without data of the people released, {{ known }}.\
{% else %}nothing says whose data it was made from. If people released here are among them, it may show their moves.\
{% endif +%}
{% else %}
{% if learned %}Its noise can be replayed by whoever knows the seed, so it counts as none. {% elif because %}\
{{ because }}. {% endif %}\
{% if people == "same" %}Fitted without privacy on the very people released here, or on some of them, {{ known }}: no \
bound holds for them, because the model itself can show one person's move.\
{% elif people == "others" %}Fitted without privacy on other people than those released, {{ known }}: the promise to \
the released people stands, and those it was fitted on have no protection from the model.\
{% else %}Fitted without privacy, and whether on people released here is not known: for those who are among those it \
was fitted on no bound holds, because the model itself can show one person's move.{% endif +%}
{% endif %}
""",
    }

    @classmethod
    def of(cls, model: MarkovModel, whom: Whom) -> Model:
        """The facts of a model, and of whom it was fitted on."""
        private = model.provenance.get("private")
        event = learning_event(model.provenance)
        return cls(
            sha256=model.digest,
            step_seconds=model.step,
            latent_states=UNSET if model.secrets is None else model.n_states,
            slots=UNSET if model.slots is None else model.slots.n,
            method=str(model.provenance.get("method", "unknown")),
            private=private if isinstance(private, bool) else None,
            because=event.reason if isinstance(event, NotPrivateEvent) else UNSET,
            people=whom.people,
            people_known_by=whom.known_by,
        )

    def origin(self, learned: bool) -> str:
        """The consequence of the model's origin for the promise; ``learned``: True if its noise is on record."""
        return self.sentence(learned=learned, known=self.whom.known)

    @property
    def whom(self) -> Whom:
        """The people that it was fitted on, relative to those released, and the evidence."""
        return Whom(self.people, self.people_known_by)


class Plans(Part, frozen=True, kw_only=True):
    """The plans that the file was released under.

    count : How many.
    sha256 : Of the sorted hashes, joined by line feeds.
    hashes : Sorted; null where there are many.
    """

    count: Count
    sha256: Sha256
    hashes: list[Sha256] | None

    @classmethod
    def of(cls, hashes: set[str]) -> Plans:
        """The facts of plans."""
        ordered = sorted(hashes)
        digest = hashlib.sha256("\n".join(ordered).encode()).hexdigest()
        return cls(count=len(ordered), sha256=digest, hashes=ordered if len(ordered) <= _MOST_PLANS else None)


class PublishedCounts(Part, frozen=True, kw_only=True):
    """The counts of what the file publishes.

    rows : One for each subject and step.
    subjects : Users that have rows.
    public_constants : Rows whose answer was known to everybody in advance.
    """

    rows: Count
    subjects: Count
    public_constants: Count


class Totals(Part, frozen=True, kw_only=True):
    """The largest sums of any one subject in this file.

    epsilon_sum : A number, exactly where it is short, else rounded up: bounds two paths whose states are equal or
        joined by a policy edge at every step.
    cost_sum : A number, exactly where it is short, else rounded up: bounds any two histories of possible states.
    cap : The limit of the sum of epsilons of a subject over all files and queries; null without one.
    cost_cap : The same of costs.
    limited : Whether a cap or a promise limits every subject's sum, of this release or kept from another.
    """

    epsilon_sum: Text
    cost_sum: Text
    cap: Exact | None
    cost_cap: Exact | None
    limited: bool

    says: ClassVar[Mapping[str, str]] = {
        "of": "the subject with the largest total in this file; the ledger has everyone's, over all files",
        "epsilon_sum": EPSILON_STATEMENT + "{% if 'policy' in whole.varies %}; " + OWN_POLICIES + "{% endif %}",
        "cost_sum": f"{COST_STATEMENT}. It is of the rows of one subject in this file, given the model: other files, "
        "queries and names of the same person are not counted, nor what the model says about that person",
    }


class SequenceBound(Part, frozen=True, kw_only=True):
    """The promise over all releases of one subject: of any two neighbouring paths.

    total : What the epsilons of the steps may add up to, over all queries of the subject.
    steps : Of the whole sequence, where it has an end.
    window : Any so many steps in a row.
    per : A block: so many steps, or a time as "1d".
    zone : The clock by which blocks of a time begin: its offset from UTC; or, of days, the name of a zone of the IANA
        table, whose days are from local midnight to the next.
    couples : Whether the epsilons of any answers bound in sum what these tell of two states of one step that an edge
        joins, too: true where the model is known to couple along the policy, "unknown" where nobody looked.
    """

    total: Exact
    steps: Positive | None
    window: Positive | None
    per: Positive | str | None
    zone: Text
    couples: StatedVerdict

    says: ClassVar[Mapping[str, str]] = {
        "meaning": """
{{ whole.promise.sentence() }}
{% if whole.private is not true %}Whether this holds is said by `private`, with its reasons.{% endif +%}
Two paths of a subject are neighbouring if at every step their two states are equal or hide each other: an edge of \
{{ "that step's" if "policy" in whole.varies else "the" }} policy joins them, or one is the partner that a release of \
that step gave the other; and both are possible given the model and everything released before.
To lose at most E is to say that all answers of all queries of the subject together are at most a factor exp(E) more \
likely from the one path than from the other, whatever anybody knows of how people move.
Any two possible paths lose at most the sum, over the steps that were answered, of what their two states of that step \
lose: a path twice as far away loses about twice as much.
{% if couples is true %}Under this model the paths through the two ends of a policy edge can be matched, step by step, \
with neighbouring ones: what answers tell of two such states of one step is at most the sum of these answers' \
epsilons, too (docs/proofs/couplings.md).\
{% else %}This is no bound for what is learned of one step from the steps around it, where paths that leave the edges \
of the policy are likely: that is the policy leakage under the model (dphmm account --temporal --policy, which also \
says whether the model couples along the policy, so that it is a bound for this too).{% endif +%}
""",
    }


class ChosenSteps(Part, frozen=True, kw_only=True):
    """The choices of some steps in place of those of the statement; null is the statement's.

    steps : First and last of each run of them: their numbers in tables, or those of time bins since 1970.
    epsilon : That of the steps.
    policy : That of the steps.
    protection : How a state without an edge found its partner.
    partners : States and the partners that each was given where it has no edge, by name.
    """

    steps: list[Annotated[list[int], rule(minItems=2, maxItems=2)]]
    epsilon: Exact | None
    policy: Policy | None
    protection: Text | None
    partners: list[Annotated[list[Text], rule(minItems=2, maxItems=2)]] | None

    @classmethod
    def of(cls, choice: StepChoice, steps: list[int], space: StateSpace) -> ChosenSteps:
        """The facts of one choice for these steps."""
        runs = np.split(np.array(steps), np.flatnonzero(np.diff(steps) != 1) + 1)
        pairs = None if choice.partners is None else choice.partners.tolist()
        return cls(
            steps=[[int(run[0]), int(run[-1])] for run in runs],
            epsilon=None if choice.epsilon is None else str(choice.epsilon),
            policy=None if choice.policy is None else Policy.of(choice.policy),
            protection="a function" if callable(choice.protection) else choice.protection,
            partners=None if pairs is None else [[space.names[state] for state in pair] for pair in pairs],
        )


class Varied(Part, frozen=True, kw_only=True):
    """The choices of single steps, made from public data.

    names : Of the choices that may differ: epsilon, partners, policy, protection.
    chosen : The choices; other steps have those of the statement.
    """

    names: Annotated[Texts, rule(minItems=1)]
    chosen: list[ChosenSteps]

    says: ClassVar[Mapping[str, str]] = {
        "meaning": """
What was chosen for a step follows from public data and earlier answers, never from where anybody is.
{% if "epsilon" in names %}Each answer keeps the epsilon of its own step.{% endif +%}
{% if "policy" in names %}Edges are those of the policy of the answer's own step: states that another step's policy \
joins are not hidden from each other there. The covered distance is the shortest of all these policies.{% endif +%}
{% if "partners" in names %}A state without an edge hides with the partner that was named for it\
{% if whole.constraint != "support" %} where the step plans on that state, and where the policy as it is contracted \
leaves it without an edge; else the state is answered as its surrogate, or hides with a neighbour there{% endif %}.\
{% endif +%}
{% if "protection" in names %}How a state without an edge finds a partner was chosen for each step.{% endif +%}
""",
    }

    @classmethod
    def of(cls, subjects: Subjects) -> Varied | UnsetType:
        """The facts of what was chosen step by step."""
        names = subjects.setting.varies
        if not names:
            return UNSET
        grouped = subjects.grouped()
        chosen = [ChosenSteps.of(choice, steps, subjects.setting.space) for choice, steps in grouped]
        return cls(names=list(names), chosen=chosen)


class Beginnings(Part, frozen=True, kw_only=True):
    """Subjects who are publicly known to begin elsewhere than the model says.

    subjects : How many there are in the public table.
    sha256 : Of their names and where each begins.
    """

    subjects: Positive
    sha256: Sha256

    says: ClassVar[Mapping[str, str]] = {
        "meaning": """
Where these subjects begin is taken to be known to everybody, and is not protected.
What others must not know of a beginning must not be in the public table.
""",
    }

    @classmethod
    def of(cls, subjects: Subjects) -> Beginnings | UnsetType:
        """The facts of subjects who begin elsewhere than the model says."""
        if not subjects.initials:
            return UNSET
        return cls(subjects=len(subjects.initials), sha256=subjects.initials_digest)


class Asking(Part, frozen=True, kw_only=True):
    """At which steps subjects were asked.

    name : "planned": at fixed public steps; "staggered": at public steps of each person and block; "paced": where
        earlier answers made it worth while.
    at : Steps of the sequence, or of each block or window, as "12,36-40": of these.
    hours : In place of steps, times of each day by the clock of the promise, as "08:00".
    spreads : What the belief's spread must reach, by steps left for each answer left.
    seed : Of a staggered schedule: offsets follow from it, the person's key and the block's first step.
    releases : Answers in the sequence, or in a block or window, at most.
    not_asked : Rows of this file without an answer.
    """

    name: str
    at: Text | UnsetType = UNSET
    hours: list[Text] | UnsetType = UNSET
    spreads: list[float]
    seed: Text | UnsetType = UNSET
    releases: Positive
    not_asked: Count

    says: ClassVar[Mapping[str, str]] = {
        "meaning": """
{% set where = "of each block" if whole.sequence.per else "of each window" if whole.sequence.window else "" %}
{% if hours %}{% set steps = (hours | join(", ")) ~ " by the clock " ~ whole.sequence.zone %}\
{% else %}{% set steps = ("steps " if "," in at or "-" in at else "step ") ~ at %}{% endif %}
{% if name == "staggered" %}Each subject is asked at public steps of its own: {{ (steps ~ " " ~ where).strip() }}, \
moved together by an offset that follows from the public seed {{ seed }}, the subject's name and the block, and from \
no row.\
{% elif name == "planned" and hours %}Subjects are asked at fixed public times alone: {{ steps }}, each at most once a \
day. Where clocks are put back over one, it is the first time; where they are put forward over one, it is left out.\
{% elif name == "planned" %}Subjects are asked at fixed public steps alone: {{ (steps ~ " " ~ where).strip() }}, \
from 1.\
{% else %}At which steps a subject is asked follows from the model, public settings and what was published about the \
subject before, never from where the subject is; at most {{ releases }} times {{ where or "in all" }}, at {{ steps }}.\
{% endif +%}
A row that is not asked has no answer, and costs nothing.
""",
    }


class Randomness(Part, frozen=True, kw_only=True):
    """The origin of the noise.

    replayable_rows : Rows whose noise can be replayed by whoever knows the seed.
    words : Where random words are from: the operating system, or the key of one job on many machines.
    """

    replayable_rows: Count
    words: Literal["system", "job key"]

    says: ClassVar[Mapping[str, str]] = {
        "meaning": "{% if replayable_rows %}NOT PRIVATE: {{ replayable_rows }} of {{ whole.published.rows }} rows were "
        "drawn from replayable bits. Whoever knows the seed can take the noise away. For tests and simulations only."
        "{% elif words == 'job key' %}A key of the operating system's secure randomness, made for one job and "
        "overwritten at its end: with HMAC-SHA256 and ChaCha20 it gives every attempt at a draw the same words, "
        "sampled exactly on the lattice of answers. Exact means: against whoever has not the key and cannot break "
        "these.{% else %}The operating system's secure randomness, sampled exactly on the lattice of answers."
        "{% endif %}",
    }

    @property
    def secure(self) -> bool:
        """True if all noise came from the operating system's randomness."""
        return self.replayable_rows == 0


#: What releases do not hide. Sentences of a mechanism's own stand beside it.
NOT_PROTECTED = {
    "presence": "Who is in the data, at which time steps they were observed, and how often.",
    "states no edge joins": "States that no edge of {{ policy }} joins: they can be told apart up to the cost of a "
    "release, which may be larger than epsilon. Where a subject is, seen more coarsely than the policy, is not hidden.",
    "many releases": "What many releases show together: a place that a subject returns to becomes clearer every time. "
    "Epsilon bounds each release given the past. Over time the sum of the epsilons bounds the loss of two paths whose "
    "states are equal or joined by {{ policy }} at every step, and only the sum of the costs that of any two paths.",
    "impossible moves": "A true state outside the support, where the model calls the subject's move impossible: it is "
    "only indistinguishable from its surrogate, the nearest planned state, and not from its own policy neighbours.",
    "a stronger adversary": "Subjects against an adversary who knows more than the model and these releases, or uses "
    "another model: whoever can exclude more states may leave a state without a neighbour to hide among.",
    "what a secret leaves out": "What a state of the model says beside the state of the release that it is of, such as "
    "where a subject was before: of {{ model.latent_states }} states of the model only the state of the release is "
    "hidden.",
    "more by the mechanism": "{{ mechanism }}",
    "people of a learned model": "The people the model was learned from, beyond the model's own epsilon and delta: for "
    "one of them who is released too, that loss and the costs of the releases add up.",
    "people of the model": "{% set how = 'fitted on them without privacy' if model.private is false else 'made from "
    "their data' %}{% if model.people == 'same' %}Anything that the model shows about the people released: it was "
    "{{ how }}, {{ known }}.{% elif model.people == 'others' %}The people the model was fitted on, or made from if "
    "there are any: nothing protects them from it. They are others than those released, {{ known }}.{% else %}The "
    "people whose data the model was made from, who may be among those released: if it was {{ how }}, it can show "
    "their moves.{% endif %}",
}

Reasons = list[Annotated[str, rule(enum=list(REASONS))]]
Unprotected = list[Annotated[str, rule(enum=list(NOT_PROTECTED))]]


class ReleaseStatement(Part, frozen=True, kw_only=True):
    """The promise about a released file, its cost, and the facts that are not protected. Every member is public.

    format : Of this kind of statement.
    algorithm_version : Other versions make other plans from the same choices.
    private : Whether the released people have the promise: true, false or "unknown". False where noise can be replayed,
        or the model was fitted without privacy on people released. "unknown" where that depends on what nobody said:
        the model was fitted without privacy and it is not known on whom, or nothing says where it comes from. In Python
        compare with `is True`: "unknown" is no empty text. True is about the answers, given the model: what a model
        learned with differential privacy loses itself is under learning.
    reasons : Why private is not true; empty where it is.
    definition : Of the promise of each release.
    query : Its name; a subject's releases are keyed by (subject, moment, query).
    answer : Which of several rows of a subject of one moment was answered: of one time bin, time, or number of a step.
        A release of single states has none.
    subjects : How the people of the release are told apart.
    checked : Whether a table that cannot be meant would have stopped the release: with hardly a row in a state of the
        model, with none at a step that was asked, or with too few people. What was found is said nowhere. False for
        streams, and where the owner chose to go on, or not to check.
    epsilon : The promise of each release given the past, exactly, as a fraction: 1 or 1/3.
    covered_distance : How far apart two places in cells of a map may be and still be hidden from each other; null where
        states are no cells of a map whose shapes are known.
    constraint : On which states a release is planned: support, or delta=0.2.
    learning : What learning the model cost the people it was learned from; null where it was not learned with noise.
    sequence : A promise over the sequence, to which the ledger keeps every subject of the file; absent without one.
    schedule : At which steps subjects were asked; absent where they were asked at every step.
    varied : The choices of single steps; absent where all steps are as the statement says.
    beginnings : Who begins elsewhere than the model says; absent where nobody does.
    events : What rows of cases tell beside their answers; absent where rows are no cases.
    not_protected : What these releases do not hide.
    file : The file beside which the statement lies.
    """

    format: Annotated[int, rule(const=FORMAT)]
    software: Software
    algorithm_version: Positive
    private: StatedVerdict  # fmt: skip
    reasons: Reasons
    definition: Literal["{epsilon, G, C_t}-DPHMM"]
    query: str
    answer: Annotated[str | UnsetType, rule(enum=["last", "first"])] = UNSET
    subjects: SubjectNames
    checked: bool
    epsilon: Exact
    policy: Policy
    covered_distance: CoveredDistance | None
    constraint: Text
    mechanism: Mechanism
    space: Space
    model: Model
    learning: Learning | None
    plans: Plans
    published: PublishedCounts
    totals: Totals
    sequence: SequenceBound | UnsetType = UNSET
    schedule: Asking | UnsetType = UNSET
    varied: Varied | UnsetType = UNSET
    beginnings: Beginnings | UnsetType = UNSET
    events: EventLog | UnsetType = UNSET
    randomness: Randomness
    not_protected: Annotated[Unprotected, rule(minItems=5)]
    file: StatedFile | UnsetType = UNSET

    says: ClassVar[Mapping[str, str]] = {
        "source": "Definition 4.4 of Xiao et al., DPHMM (2016), where a state hides among others than itself",
        "unit": "one release: the answer about one subject's state at one time step, given everything released about "
        "the subject before",
        "doubt": """
{% if private is false %}What follows does not hold for this file: {{ whole.why }}.\
{% elif private == "unknown" %}It is not known whether what follows holds for this file: {{ whole.why }}.{% endif +%}
""",
        "edges": """
{% set own = whole.varies %}
Take any two states that share an edge of {{ "the step's policy" if "policy" in own else "the policy" }} and that the \
public history leaves possible: whatever was released before, each answer is at most a factor \
{{ "exp(E)" if "epsilon" in own else "exp(" ~ epsilon ~ ")" }} more likely from the one than from the other\
{% if "epsilon" in own %}; E is {{ epsilon }}, or the step's own epsilon as `varied` says{% endif %}\
{% if "policy" in own %}; the step's policy is `policy`, or its own as `varied` says{% endif %}.
""",
        "lonely": """
A possible state without such an edge has another possible state that it is hidden with in the same way, unless all \
possible states have one and the same answer, which is then published as it is and says nothing.
""",
        "assumes": """
The model, its initial distribution, the policy, the answers of the states, the mechanism, the release times and all \
earlier releases are taken to be known to everybody. \
{% if model.private is true %}The promise is about the answers, given the model: the model was learned with \
differential privacy, and what it says itself about people released is a loss of its own.\
{% else %}The model is taken to say nothing about the people released\
{% if model.people_known_by == "model" %}: it was made from geometry alone, without anybody's data, {{ whole.known }}.\
{% elif model.people == "others" %}: it was made without their data, {{ whole.known }}.\
{% elif model.people == "same" %}, and it may: it was made from their data, {{ whole.known }}.\
{% else %}; whether it was made without their data is not known.{% endif %}{% endif %}
""",
        "joined": """
{% set kind, reach = space.kind, whole.reach %}
{% set what = kind if kind in ("labels", "zones") else "cells" if whole.on_map else "states" %}
any two {% if "policy" in whole.varies %}{{ what }} that the policy of their step joins\
{% elif policy.kind == "complete" %}of the {{ "{:,}".format(space.states) }} {{ what }}\
{% elif reach is none %}{{ what }} that the policy joins\
{% else %}{{ reach.between }} {{ "up to" if reach.closed else "less than" }} {{ reach.apart }} apart\
{% if kind in ("grid", "h3", "zones") %} on the map{% endif %}{% endif %}
""",
        "answer": "Of several rows of a subject of one moment the {{ answer }} in time is answered, and no other: "
        "which one that is depends on times and on the order of rows, which are taken to be public. A moment has one "
        "answer for ever; a row that came after an answer to a later moment of its subject has none.",
        "constraint": "{% if constraint == 'support' %}Releases are planned on the support: every state that the model "
        "and the subject's earlier releases leave possible.{% else %}Releases are planned on a delta-set: the fewest "
        "possible states that hold 1 - delta of the prior. A state outside it is answered as its surrogate, the "
        "nearest state inside. The policy is contracted along that map, so that every policy edge among possible "
        "states keeps epsilon; delta does not weaken the promise.{% endif %}",
    }

    @classmethod
    def of(
        cls,
        published: FileSums,
        *,
        model: MarkovModel,
        policy: PolicyGraph,
        space: StateSpace,
        options: Options,
        whom: Whom,
        query: str = "state",
        answer: str | None = None,
        spelling: str = "same",
        noun: str = "person",
        caps: Caps = UNLIMITED,
        limited: bool | None = None,
        schedule: Schedule | None = None,
        subjects: Subjects | None = None,
        words: Literal["system", "job key"] = "system",
        checked: bool = False,
        events: EventLog | None = None,
    ) -> ReleaseStatement:
        """The statement of a release; `dphmm.statement.files.write_statement` adds the file.

        ``answer``: the row that was answered of several in one step; None if each had one. ``spelling``, ``noun``: as
        in `SubjectNames`. ``caps``: the limits on every subject's spending, and the promise over paths. ``limited``:
        True if everybody has a limit, by default if ``caps`` has any. ``subjects``: the people who begin elsewhere than
        the model says, and the choices for single steps. ``words``: the sources of the noise. ``checked``: True if a
        table that cannot be meant would have stopped it. ``events``: the facts of cases, if rows are cases.
        """
        because = reasons(model.provenance, whom, published.replayable)
        largest = published.largest.spent
        event = learning_event(model.provenance)
        cost = None if whom.people == "others" else largest.cost
        policies = [policy] if subjects is None else subjects.policies
        sequence = caps.promise
        return cls(
            format=FORMAT,
            software=Software(name="dphmm", version=version("dphmm")),
            algorithm_version=ALGORITHM_VERSION,
            private=verdict(because),
            reasons=because,
            definition="{epsilon, G, C_t}-DPHMM",
            query=query,
            answer=UNSET if answer is None else answer,
            subjects=SubjectNames(spelling=spelling, noun=noun),
            checked=checked,
            epsilon=str(options.epsilon),
            policy=Policy.of(policy),
            covered_distance=CoveredDistance.of(policies, space),
            constraint=str(options.constraint),
            mechanism=Mechanism.from_attributes(
                options, asked=options.mechanism, chosen=dict(sorted(published.mechanisms.items()))
            ),
            space=Space.of(space),
            model=Model.of(model, whom),
            learning=Learning.of(event, cost) if isinstance(event, LearningEvent) else None,
            plans=Plans.of(published.plans),
            published=PublishedCounts(
                rows=published.rows,
                subjects=published.subjects,
                public_constants=published.constants,
            ),
            totals=Totals(
                epsilon_sum=shown(largest.epsilon),
                cost_sum=shown(largest.cost),
                cap=None if caps.epsilon is None else str(caps.epsilon),
                cost_cap=None if caps.cost is None else str(caps.cost),
                limited=caps.limit(options.epsilon, model.step) if limited is None else limited,
            ),
            sequence=UNSET
            if sequence is None
            else SequenceBound.from_attributes(
                sequence, total=str(sequence.exact), couples=couples(model, policy, subjects)
            ),
            schedule=UNSET
            if schedule is None
            else Asking.from_attributes(
                schedule,
                name=schedule.kind,
                at=UNSET if schedule.hours else schedule.ranges,
                hours=list(schedule.hours) or UNSET,
                spreads=list(schedule.spreads),
                seed=schedule.seed or UNSET,
                not_asked=published.not_asked,
            ),
            varied=UNSET if subjects is None else Varied.of(subjects),
            beginnings=UNSET if subjects is None else Beginnings.of(subjects),
            events=UNSET if events is None else events,
            randomness=Randomness(replayable_rows=published.replayable, words=words),
            not_protected=unprotected(options.mechanism, model.provenance, whom, model.secrets is not None),
        )

    @property
    def varies(self) -> list[str]:
        """The choices that steps may have of their own."""
        return [] if self.varied is UNSET else self.varied.names

    @property
    def whys(self) -> list[str]:
        """The reasons in words."""
        return self.model.whom.whys(self.reasons)

    @property
    def why(self) -> str:
        """The reasons in one sentence."""
        return "; ".join(self.whys)

    @property
    def known(self) -> str:
        """The evidence for the people that the model was fitted on, in words."""
        return self.model.whom.known

    @property
    def origin(self) -> str:
        """The consequence of the model's origin for the promise, in words."""
        return self.model.origin(self.learning is not None)

    @property
    def on_map(self) -> bool:
        """True if answers are places on a map, with or without a distance that is known to be covered."""
        return bool(self.covered_distance) or self.space.kind in _ON_MAPS

    @property
    def reach(self) -> dict[str, Any] | None:
        """The states that a distance policy joins: ``between`` (their kind), the distance ``apart``, and ``closed``.

        None for policies of another kind, for policies of single steps, and for merged states. A distance is
        rounded down.
        """
        policy, space = self.policy, self.space
        if policy.kind != "radius" or not policy.parameters or space.merged is not UNSET or "policy" in self.varies:
            return None
        try:
            apart, closed = Fraction(str(policy.parameters["r"])), policy.parameters["closed"] is True
        except (KeyError, ValueError, ZeroDivisionError):
            return None
        if space.kind not in _ON_MAPS:
            return {"between": "states", "apart": in_short(apart, down=True), "closed": closed}
        between = f"{'zones' if space.kind == 'zones' else 'cells'} whose centres are"
        return {"between": between, "apart": length(float(apart)), "closed": closed}

    @property
    def joined(self) -> str:
        """The pairs of states that a guarantee covers: "any two states up to 3 apart", "any two of the 7 labels".

        For places with a covered distance, `CoveredDistance.places` says more.
        """
        return self.sentence("joined")

    @property
    def pair(self) -> str:
        """The two that a guarantee is of: "two places up to 680 m apart", "two of the 7 labels".

        Its conditions are those of `covered_distance` and `joined`.
        """
        covered = self.covered_distance
        # Places in one cell have one and the same answer anyhow.
        if covered is None or covered.metres == 0:
            return self.joined.removeprefix("any ")
        return "any two places" if covered.metres == ANY else f"two places up to {length(float(covered.metres))} apart"

    @property
    def unprotected_fit(self) -> bool:
        """True if the model was fitted on people without protection."""
        fitted = self.model.people in ("others", "same") and self.model.people_known_by != "model"
        return fitted and not (self.learning and self.learning.private)

    @property
    def promised(self) -> list[str]:
        """The definition of each release in words, after a sentence where it does not hold, or may not."""
        return [*self.said("doubt"), *self.said("edges"), *self.said("lonely")]

    @property
    def covered(self) -> list[str]:
        """The covered distance as a sentence that stands alone; none without one."""
        return [] if self.covered_distance is None else self.covered_distance.said(epsilon=self.epsilons[1])

    @property
    def hides_not(self) -> list[str]:
        """One sentence for each thing that these releases do not hide."""
        facts = {
            "policy": "the step's own policy" if "policy" in self.varies else "the policy",
            "mechanism": "\n".join(chosen_kind(self.mechanism.asked).words.not_protected),
            "model": self.model,
            "known": self.known,
        }
        return [sentence for code in self.not_protected for sentence in rendered(NOT_PROTECTED[code], facts)]

    def rows(self) -> Iterator[tuple[str, str]]:
        """Every sentence, with the member that it is about."""

        def said(part: object) -> list[str]:
            return part.said(whole=self) if isinstance(part, Part) else []

        sections = {
            "promise": [*self.promised, *self.said("assumes"), f"Source: {self.sentence('source')}."],
            "unit of privacy": self.said("unit"),
            "subjects": said(self.subjects),
            "answer": [] if self.answer is UNSET else self.said("answer"),
            "covered distance": self.covered,
            "constraint": self.said("constraint"),
            "mechanism": [self.mechanism.noise],
            "space": said(self.space.merged),
            "model": [self.origin],
            "learning": [] if self.learning is None else self.learning.said("all"),
            "epsilon sum": [f"{self.totals.epsilon_sum}: {self.totals.sentence('epsilon_sum', self)}"],
            "cost sum": [f"{self.totals.cost_sum}: {self.totals.sentence('cost_sum', self)}"],
            "totals": self.totals.said("of", self),
            "sequence": said(self.sequence),
            "schedule": said(self.schedule),
            "varied": said(self.varied),
            "beginnings": said(self.beginnings),
            "events": said(self.events),
            "randomness": said(self.randomness),
            "not protected": self.hides_not,
        }
        return ((name, sentence) for name, sentences in sections.items() for sentence in sentences)

    @property
    def promise(self) -> SequencePromise | None:
        """The promise over paths; None without one. Raises InvalidInput for a wrong one."""
        stated = self.sequence
        if stated is UNSET:
            return None
        try:
            total = written_fraction(stated.total)
            return SequencePromise(total, steps=stated.steps, window=stated.window, per=stated.per, zone=stated.zone)
        except (ValueError, ZeroDivisionError):
            got = f"a promise over paths of {stated.total[:LONGEST_VALUE]!r}"
            raise InvalidInput("statement", got, WRITTEN) from None

    @property
    def asking(self) -> Schedule | None:
        """The schedule; None where every step was asked. Raises InvalidInput for a wrong one."""
        schedule, promise = self.schedule, self.promise
        if schedule is UNSET:
            return None
        if promise is None:
            raise InvalidInput("statement", "a schedule without a promise over the sequence", WRITTEN)
        names = ["steps", "window", "per"] + ["zone"] * isinstance(promise.per, str)
        document = {name: getattr(promise, name) for name in names if getattr(promise, name) is not None}
        document |= {"total": str(promise.exact), "schedule": schedule.name, "epsilon": self.epsilon}
        steps = {"at": schedule.at, "hours": schedule.hours, "seed": schedule.seed}
        document |= {name: value for name, value in steps.items() if value is not UNSET}
        return Schedule.of_document(document | ({"spreads": schedule.spreads} if schedule.spreads else {}))

    @property
    def choices(self) -> dict[str, str]:
        """The choices of the release, as `Options.written` has them."""
        made = self.mechanism
        return {
            "epsilon": self.epsilon,
            "constraint": self.constraint,
            "mechanism": made.asked,
            "protection": made.protection,
            "start": made.start,
        }

    @property
    def exact_epsilons(self) -> dict[float, Fraction]:
        """The epsilons that a row may have, by the number in the file: 0 of a public constant, or of one not asked."""
        chosen = [] if self.varied is UNSET else [choice.epsilon for choice in self.varied.chosen]
        exact = [written_fraction(text) for text in dict.fromkeys((self.epsilon, *chosen, "0")) if text is not None]
        return {float(epsilon): epsilon for epsilon in exact}

    @property
    def epsilons(self) -> tuple[Fraction, Fraction]:
        """The smallest and the largest epsilon that an answer may have. Raises ValueError for a text that is none."""
        positive = [epsilon for epsilon in self.exact_epsilons.values() if epsilon]
        return min(positive), max(positive)

    def contradiction(self) -> str | None:
        """A number that is not as it is written, or a member that another one contradicts; None without any."""
        chosen = () if self.varied is UNSET else self.varied.chosen
        numbers = {"epsilon": self.epsilon, "sequence.total": member(self, "sequence.total")}
        numbers |= {f"varied.chosen[{n}].epsilon": choice.epsilon for n, choice in enumerate(chosen)}
        wrong = [(name, number) for name, number in numbers.items() if number is not None and not _is_exact(number)]
        wrong += [("reasons", code) for code in self.reasons if code not in REASONS]
        wrong += [("not_protected", code) for code in self.not_protected if code not in NOT_PROTECTED]
        wrong += [("subjects.noun", self.subjects.noun)] * (re.fullmatch(NOUN, self.subjects.noun) is None)
        for name, text in wrong:
            return f"{name} {ascii(text)[:LONGEST_VALUE]}"
        if self.private not in (True, False, "unknown") or self.private != verdict(self.reasons):
            return f"private {ascii(self.private)[:LONGEST_VALUE]}, and other reasons than that has"
        return None

    def check_subjects(self, subjects: Subjects) -> None:
        """Raises InvalidInput where public tables say other choices or beginnings than the statement."""
        for name, due, public in (
            ("step_choices", self.varied, Varied.of(subjects)),
            ("initials", self.beginnings, Beginnings.of(subjects)),
        ):
            if due != public:
                got = "nothing" if public is UNSET else "what its privacy statement does not say"
                raise InvalidInput(name, got, "the table that the release was made with, or none if it had none")


def _is_exact(told: str) -> bool:
    """True if a text is an epsilon, or a sum of several, in its exact form."""
    try:
        return str(exact_epsilon(written_fraction(told))) == told
    except (ValueError, ZeroDivisionError):
        return False


def unprotected(mechanism: str, provenance: Mapping[str, Any], whom: Whom, secrets: bool = False) -> list[str]:
    """Codes of `NOT_PROTECTED`; ``secrets``: True if the model has some."""
    codes = ["presence", "states no edge joins", "many releases", "impossible moves", "a stronger adversary"]
    codes += ["what a secret leaves out"] * secrets
    codes += ["more by the mechanism"] * bool(chosen_kind(mechanism).words.not_protected)
    if provenance.get("private") is True:
        return [*codes, "people of a learned model"]
    return codes if whom == NOBODY else [*codes, "people of the model"]


def couples(model: MarkovModel, policy: PolicyGraph, subjects: Subjects | None) -> Holds:
    """True if a model is known to couple along a policy, else "unknown".

    No proof covers steps with edges of their own, or subjects with other initial laws.
    """
    if subjects is not None and (subjects.initials or set(subjects.setting.varies) - {"epsilon"}):
        return "unknown"
    return couples_along(model, policy) or "unknown"


def statement_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a written statement; ``privacy-statement.schema.json`` is a copy of it."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:dphmm:privacy-statement:{FORMAT}",
        **schema(ReleaseStatement, _RULES),
        "title": "Privacy statement of a dphmm release",
    }


def _because(private: Holds, found: Sequence[str]) -> dict[str, Any]:
    """The schema's rule of which reasons go with a truth."""
    due = {"items": {"enum": list(found)}, "minItems": 1} if found else {"maxItems": 0}
    return {"if": {"properties": {"private": {"const": private}}}, "then": {"properties": {"reasons": due}}}


_RULES: tuple[Mapping[str, Any], ...] = (
    _because(True, ()),
    _because(False, list(AGAINST)),
    _because("unknown", list(DOUBTS)),
    {
        "if": {"properties": {"model": {"properties": {"people": {"const": "unknown"}}}}},
        "then": {"properties": {"model": {"properties": {"people_known_by": {"const": None}}}}},
        "else": {"properties": {"model": {"properties": {"people_known_by": {"type": "string"}}}}},
    },
)
