"""The privacy statement of rows that a model invents."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Annotated, ClassVar

from msgspec import UNSET, UnsetType

from dphmm.accounting.event import LearningEvent, learning_event
from dphmm.markov.model import ANSWERS, MarkovModel
from dphmm.statement.learning import Learning
from dphmm.statement.origin import made_without_data, verdict
from dphmm.statement.parts import Part, Positive, Sha256, Software, StatedFile, StatedVerdict, rule

FORMAT = 2
#: Why nothing is promised to the people whom the model was fitted on, or why that is not known.
REASONS = {
    "fitted without privacy": "the model was fitted without privacy: rows drawn from it can show single moves of the "
    "people it was fitted on",
    "replayable bits": "the noise of the model's fit can be replayed by whoever knows its seed",
    "unknown origin": "nothing says where the model's numbers come from: if they were counted from people, the rows "
    "can show their moves",
}

Reasons = list[Annotated[str, rule(enum=list(REASONS))]]


class SyntheticStatement(Part, frozen=True, kw_only=True):
    """The facts that rows drawn from a model tell about the people of its fit. Every member is public.

    format : Of this kind of statement.
    kind : synthetic; the statement of a release has no kind.
    private : The verdict on a promise to the people whom the model was fitted on: true if it was learned with
        privacy, or made from geometry alone; false if it was fitted without; "unknown" if nothing says so.
    reasons : Why private is not true; empty where it is.
    learning : What the fit of the model lost; null where it has no noise.
    model : The model's own hash, as plans and releases name it.
    people : Invented people in the file.
    steps : Rows of each.
    like : True if the rows keep public totals.
    answers : SHA-256 of each released table from whose answers the model was learned too; absent where from none.
    file : The file beside which the statement lies.
    """

    format: Annotated[int, rule(const=FORMAT)]
    kind: Annotated[str, rule(const="synthetic")]
    software: Software
    private: StatedVerdict
    reasons: Reasons
    learning: Learning | None
    model: Sha256
    people: Positive
    steps: Positive
    like: bool
    answers: list[Sha256] | UnsetType = UNSET
    file: StatedFile | UnsetType = UNSET

    says: ClassVar[Mapping[str, str]] = {
        "meaning": "{% if private is false %}Nothing is promised: {{ whole.why }}.{% elif private == 'unknown' %}"
        "Nothing is known: {{ whole.why }}.{% elif learning %}The rows are drawn from the model"
        "{% if like %} and the totals that they keep{% endif %}, and from nothing else. "
        "They lose what the fit of the model lost: {{ learning.sentence() }}{% else %}The model says of itself that it "
        "was made from geometry{% if answers %} and published answers{% endif %} alone, and no hash confirms it. "
        "If so, no row tells anything about anybody{% if answers %} but what these answers tell{% endif %}"
        "{% if like %} but what the totals that are kept tell{% endif %}.{% endif %}"
        "{% if answers and private is true %} Of the answers, the privacy statement of their release "
        "says what is promised.{% endif %}",
        "not protected": """
What the model says of people in general: rows that are any good tell it, whether or not a person took part.
{% if like %}Public totals that the rows were made to agree with: they are taken to be public.{% endif +%}
""",
    }

    @classmethod
    def of(cls, model: MarkovModel, people: int, steps: int, *, like: bool = False) -> SyntheticStatement:
        """The statement of the rows of `synthesize`.

        Raises InvalidInput for a model whose record of its fit contradicts itself.
        """
        learned = model.provenance.get("method") == ANSWERS
        provenance = model.provenance["plan"] if learned else model.provenance
        event = learning_event(provenance, "model")
        learning = Learning.of(event) if isinstance(event, LearningEvent) else None
        if learning is not None:
            reasons = [] if learning.private else ["replayable bits"]
        elif made_without_data(provenance):
            reasons = []
        else:
            reasons = ["fitted without privacy" if provenance.get("private") is False else "unknown origin"]
        return cls(
            format=FORMAT,
            kind="synthetic",
            software=Software(name="dphmm", version=version("dphmm")),
            private=verdict(reasons),
            reasons=reasons,
            learning=learning,
            model=model.digest,
            people=people,
            steps=steps,
            like=like,
            answers=model.provenance["released"] if learned else UNSET,
        )

    @property
    def why(self) -> str:
        """The reasons in words."""
        return "; ".join(REASONS[code] for code in self.reasons)
