"""The privacy statement of one answer about records that may depend on each other.

Everything in it is public: the options, the hash of a model, and what the answer's event says. No other file is named
by its hash.

Decision: docs/adr/0017. Proofs: docs/proofs/dependent-markov.md, docs/proofs/contributions.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Annotated, Any, ClassVar

from msgspec import UNSET, UnsetType

from dphmm.accounting.event import DependentEvent
from dphmm.accounting.records import shown
from dphmm.statement.origin import verdict
from dphmm.statement.parts import (
    Count,
    Part,
    Positive,
    Sha256,
    Software,
    StatedFile,
    StatedVerdict,
    SubjectNames,
    Text,
    rule,
)
from dphmm.statement.sentences import rendered

FORMAT = 3
PROOF = "docs/proofs/dependent-markov.md"
#: Why nothing is promised, or why that is not known.
REASONS = {
    "replayable bits": "replayable bits: whoever knows the seed can take the noise away",
    "nothing proved": "nothing is proved for dependent records",
    "fitted on these records": "the model of dependence or of the states was fitted without privacy on the people of "
    "these very records",
    "fitted on unknown people": "the model of dependence or of the states was fitted without privacy, and nobody has "
    "said on whom: if on the people of these records, nothing is promised to them, because the model itself can show "
    "what one of them did",
}
#: What an answer does not hide.
NOT_PROTECTED = {
    "noise of the model": "What the model of dependence or of the states itself loses about the people it was learned "
    "from, with noise: it adds to what this answer loses about the same people.",
    "presence": "Which records there are: who is in the data, when, and how many records there are.",
    "several records": "Anything but one record at a time: a record is hidden together with what the named dependence "
    "makes follow from it. Dependence of another kind, or a stronger one, is not covered.",
    "certain dependence": "One record from somebody who knows others that it depends on for certain: against them only "
    "the loss of {{ change }} that record alone is bounded.",
    "several answers about records": "What several answers about the same records show together: their epsilons do not "
    "add up under dependence. Their losses per record do, and dphmm.dependent.together says what the sum means under a "
    "chain or a tree.",
    "many people": "More than the rows of one unit: what the rows of many people show together is what the answer is "
    "for.",
    "dependent units": "Dependence between the rows of different units: it is not covered.",
    "rows of others": "What the rows of others show about somebody.",
    "several answers about rows": "What several answers about the same rows show together: their epsilons add up.",
    "all records of a person": "All of one person's records together: epsilon is about one of them, with what the "
    "dependence makes follow from it.",
    "a person's edges": "A person: epsilon is about one edge, and a person may have many.",
    "one edge or another": "Which of two edges is there: one edge in another's place is two changes, and loses at most "
    "twice epsilon.",
    "the people": "Who the people are, and how many there are: they are public.",
    "rows that move": "A row without which another row of the same person counts, or counts at another step: epsilon "
    "is of one record that counts, there or not.",
    "rows of DATA": "How many rows DATA have: the noise is calculated from it, and it is told in this statement. Rows "
    "that cannot be used, and those beyond --max-rows-per-user, are counted in it and have no weight.",
}
Reasons = list[Annotated[str, rule(enum=list(REASONS))]]
Unprotected = list[Annotated[str, rule(enum=list(NOT_PROTECTED))]]


class Unit(Part, frozen=True, kw_only=True):
    """The unit of privacy: in what neighbouring data differ.

    of : One record, or all rows of a person or of a circle of friends.
    most : Rows of a person that count, null where it is one record.
    counts : Rows, trips, or moves: trips, the beginning of a person's rows and their end.
    there_or_not : Whether neighbouring data have it or not; else they may differ in it in any way.
    number_public : Whether the number of rows of DATA is the same in neighbouring data.
    """

    of: Annotated[str, rule(enum=["record", "person", "circle"])] = "record"
    most: Positive | None = None
    counts: Annotated[str, rule(enum=["rows", "trips", "moves"])] = "rows"
    there_or_not: bool = False
    number_public: bool = False

    says: ClassVar[Mapping[str, str]] = {
        "meaning": """
{% set apart = "neighbouring data have them all or none, and differ nowhere else" if there_or_not else \
"neighbouring data differ in these rows and nowhere else: " ~ ("the number of rows of DATA is the same" \
if number_public else "they may be there or not") %}
{% if counts == "trips" %}all rows of one person, whose first {{ most }} trips count; {{ apart }}\
{% elif counts == "moves" %}all rows of one person, whose first {{ most }} moves count, the beginning and the end \
among them; {{ apart }}\
{% elif of == "record" %}one record: {{ whole.record }}{% if there_or_not %}, there or not{% endif %}; neighbouring \
data differ in it and nowhere else\
{% else %}all rows of {{ "one person" if of == "person" else "all people of one circle of friends" }} \
({{ whole.record }} each), of which at most {{ most }}{% if of == "circle" %} of each person{% endif %} count; \
{{ apart }}{% endif +%}
""",
    }


class StatedDependence(Part, frozen=True, kw_only=True):
    """The dependence between records.

    given : How it was given. Of a model alone the hash of its file is given.
    between : Nobody (as the owner says, or assumed), circles of friends, the records of a person, so many records, or
        the steps of a chain.
    most : Records that may depend on each other, people of the largest circle, or steps of the chain.
    model : The model of dependence in the library's words.
    model_sha256 : Of the file of a model, where one is given.
    """

    given: Text
    between: Annotated[str, rule(enum=["nobody", "nobody, assumed", "circles", "a person", "records", "a chain"])]
    most: Count | None
    model: Text
    model_sha256: Sha256 | UnsetType = UNSET

    says: ClassVar[Mapping[str, str]] = {
        "meaning": "{% if between == 'nobody' %}no record depends on another one, as the data owner says"
        "{% elif between == 'nobody, assumed' %}no record depends on another one, which is assumed: nobody has said so"
        "{% elif between == 'circles' %}records of people who are joined by friendships, directly or by way of others, "
        "may depend on each other in any way; the friendships are public, as the data owner says, and the largest "
        "circle has {{ most }} people{% elif between == 'a person' %}all records of one person may depend on each "
        "other in any way; those of different people do not, as the data owner says{% elif between == 'records' %}at "
        "most {{ most }} records depend on each other, as the data owner says{% else %}each person's records are "
        "{{ most }} steps of this chain and people are independent, as the data owner says{% endif %}",
    }


class Noise(Part, frozen=True, kw_only=True):
    """The discrete Laplace noise in one vector of whole numbers, P(z) proportional to exp(-|z|/scale), drawn exactly.

    of : The numbers.
    sensitivity : How much one record alone changes the numbers at most.
    scale : Of the noise.
    """

    of: Text
    sensitivity: Text
    scale: Text


class QueryStatement(Part, frozen=True, kw_only=True):
    """The facts about the answer of a query. Every member is public.

    format : Of this kind of statement.
    kind : query; the statement of a release has no kind.
    query : The question.
    private : Whether anything is promised: true, false or "unknown". False where noise can be replayed, where nothing
        is proved, or where the model was fitted without privacy to these very records (or on these people, as the data
        owner says); "unknown" where it was fitted without privacy and nobody has said on whom.
    reasons : Why private is not true; empty where it is.
    record : A record, by name.
    subjects : How people are told apart, where the unit is one.
    epsilon : For the unit under the dependence; null where private is false.
    neighbours : A record is replaced, or it is there or not.
    per_record : The loss of one record and no other, whatever depends on it: it adds up over several answers, and
        epsilon does not. Null where noise can be replayed.
    model_people : On whom a model without privacy was fitted; null without one.
    mechanism : Its name.
    noise : In each vector of numbers.
    proved_by : The theorem, or why nothing is proved.
    domain : The public options: states, windows, box, start, people, classes; of counts `in_no_state`, the
        cell of rows that name no public state; for svm also how many rows DATA have.
    replayable : Whether the noise can be replayed.
    not_protected : What the answer does not hide.
    file : The file beside which the statement lies.
    """

    format: Annotated[int, rule(const=FORMAT)]
    kind: Annotated[str, rule(const="query")]
    software: Software
    query: Text
    private: StatedVerdict
    reasons: Reasons
    record: Text
    unit: Unit
    subjects: SubjectNames
    epsilon: Text | None
    neighbours: Annotated[str, rule(enum=["add-remove", "replace"])]
    per_record: Text | None
    dependence: StatedDependence
    model_people: Annotated[str | None, rule(enum=["others", "same", "unknown", None])]
    mechanism: Text
    noise: Annotated[list[Noise], rule(minItems=1)]
    proved_by: Text
    domain: dict[str, Any]
    replayable: bool
    not_protected: Annotated[Unprotected, rule(minItems=4)]
    file: StatedFile | UnsetType = UNSET

    says: ClassVar[Mapping[str, str]] = {
        "meaning": """
{% set promised = dependent_words(neighbours, record, per_record, epsilon, dependence.model, proved_by) %}
{% if replayable %}{{ promised }}\
{% elif model_people == "same" %}nothing is promised: {{ whole.whys[-1] }}\
{% elif model_people == "unknown" %}if the model was fitted on other people than those of these records: {{ promised }}\
{% else %}{{ promised }}{% if model_people == "others" %}; the model was fitted on other people, as the data owner says\
{% endif %}{% endif +%}
""",
        "per record": "what {{ change }} one record and no other loses, whatever depends on it, given noise that "
        "nobody can replay; adds up over answers",
    }

    @classmethod
    def of(
        cls,
        event: DependentEvent,
        *,
        unit: Unit,
        spelling: str = "same",
        dependence: StatedDependence,
        domain: Mapping[str, Any],
        not_protected: Sequence[str] = (),
        model_people: str | None = None,
    ) -> QueryStatement:
        """The statement of one answer; `dphmm.statement.files.write_statement` adds the file.

        ``spelling``: by which rule names are of one person. ``domain``: the public options of the question.
        ``not_protected``: codes beside those of every answer. ``model_people``: on whom the model of dependence, or of
        the states, was fitted without privacy, "others", "same" or "unknown"; None where no such model is named.
        """
        reasons = ["replayable bits"] * (not event.secure) + ["nothing proved"] * (event.claimed is None)
        reasons += ["fitted on these records"] * (model_people == "same")
        if not reasons:
            reasons = ["fitted on unknown people"] * (model_people == "unknown")
        private = verdict(reasons)
        hidden = ["several records", "certain dependence", "several answers about records"]
        if unit.of != "record":
            hidden = ["many people", "dependent units", "rows of others", "several answers about rows"]
        elif event.neighbours == "replace":
            hidden = ["presence", *hidden]
        return cls.from_attributes(
            event,
            format=FORMAT,
            kind="query",
            software=Software(name="dphmm", version=version("dphmm")),
            private=private,
            reasons=reasons,
            unit=unit,
            subjects=SubjectNames(spelling=spelling, noun="person"),
            epsilon=None if private is False else str(event.claimed),
            per_record=shown(event.per_record) if event.secure else None,
            dependence=dependence,
            model_people=model_people,
            noise=[
                Noise(of=part.name, sensitivity=shown(part.sensitivity), scale=shown(part.scale))
                for part in event.parts
            ],
            proved_by=event.why,
            domain=dict(domain),
            replayable=not event.secure,
            not_protected=[*hidden, *not_protected],
            file=UNSET,
        )

    @property
    def change(self) -> str:
        """The change between neighbouring data."""
        return "replacing" if self.neighbours == "replace" else "adding or removing"

    @property
    def whys(self) -> list[str]:
        """The reasons in words."""
        return [REASONS[code] for code in self.reasons]

    @property
    def hides_not(self) -> list[str]:
        """One sentence for each thing that the answer does not hide."""
        return [line for code in self.not_protected for line in rendered(NOT_PROTECTED[code], {"change": self.change})]
