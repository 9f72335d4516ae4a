"""What learning a model cost the people it was learned from: from its provenance to sentences and JSON.

Two promises stand side by side. Learning: any two data sets that differ by one person's record give almost the same
model. Releasing: the answers about a person, given the model. ``together`` bounds both, for one person who was in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from msgspec import UNSET, structs

from dphmm._checks import one_of
from dphmm.accounting.event import Guarantee, LearningEvent, NoisyCounts, NotPrivateEvent, event_from, learned, together
from dphmm.accounting.records import in_short, shown
from dphmm.errors import InvalidInput
from dphmm.markov.model import GEOMETRY
from dphmm.storage.statement_types import Learning, Together, document

NOT_COVERED = (
    "What was chosen before the fit and is taken to be public: the file's name, states and symbols, step, box, caps, "
    "seeds, and all other options.",
    "More than one person at a time: k people who belong together lose up to k times as much.",
    "Other models learned from the same people: what each of them costs adds up.",
    "Releases made with the model: they have a promise of their own, and its cost adds to this one.",
    "What holds of people in general: a model that is any good tells it, whether or not a person took part.",
)
COSTS = "those of the subject with the largest total in this file; the ledger has everyone's, over all files"
LEDGER_COSTS = (
    "those of the subject with the largest total here; for a person in both, and releases made with this model"
)
#: What a bound on model and releases together counts, by whose costs are in it.
_COUNTED = {
    COSTS: "It counts this one fit, and the rows of this file that are of that person, at all their steps",
    LEDGER_COSTS: "It counts this one fit, and the releases of that person in this ledger, at all their steps",
}
_NOT_COUNTED = (
    "not counted are other models of the same people, answers of queries about them, what the person has in other "
    "files or ledgers or under other names, and people who depend on that person"
)
OTHER_PEOPLE = "left out: the model is of other people than those released, as the data owner says"
REPLAYABLE = "NOT PRIVATE: the noise can be replayed by whoever knows the seed. For tests and simulations only."


def learning_event(provenance: Mapping[str, Any], field: str = "privacy") -> LearningEvent | NotPrivateEvent | None:
    """The record of a fit with noise, or of one that says it has no privacy; None where there is none.

    ``field``: what an error names, such as the model's file.

    Raises InvalidInput for a record that contradicts itself, or what the provenance says beside it.
    """
    if provenance.get("privacy") is None:
        return None
    try:
        event = event_from(provenance["privacy"])
    except InvalidInput as error:
        came, _, expected = str(error).removeprefix(f"{error.field}: got ").rpartition("; expected ")
        came = f"a record of its learning with {error.field} {came}"
        raise InvalidInput(field, came, f"{expected}; fit the model again") from None
    private = isinstance(event, LearningEvent) and event.secure
    if provenance.get("private") is not private:
        raise InvalidInput("private", provenance.get("private"), f"{private}, as its own record of the fit says")
    return event


def learning(event: LearningEvent, sum_cost: Fraction | None = None, costs: str = COSTS) -> Learning:
    """The guarantee of a fit; with the sum of one person's costs also what both lose together.

    ``costs``: whose costs they are.
    """
    return Learning(
        private=event.secure,
        epsilon=shown(learned(event).value),
        delta=shown(event.delta),
        neighbours=event.neighbours,
        max_length=event.max_length,
        max_sequences=event.max_sequences,
        meaning=meaning(event),
        record=record_words(event),
        not_covered=list(NOT_COVERED),
        together=UNSET if sum_cost is None else _together(event, sum_cost, costs),
    )


def learning_document(event: LearningEvent, sum_cost: Fraction | None = None, costs: str = COSTS) -> dict[str, Any]:
    """The same for JSON."""
    return document(learning(event, sum_cost, costs))


def learning_of_others(event: LearningEvent) -> Learning:
    """The guarantee of a fit on other people than those released: no person is in both, so ``together`` is null."""
    own = learning(event)
    left_out = f"What the model and the releases lose together, {OTHER_PEOPLE}."
    return structs.replace(own, not_covered=[*own.not_covered, left_out], together=None)


def published_parts(event: LearningEvent) -> list[dict[str, str]]:
    """What a fit published of the data: each vector of counts, and the noise in it."""
    return [
        {"name": p.name, "noise": p.noise, "sensitivity": str(p.sensitivity), "scale": str(p.scale)}
        for p in event.parts
    ]


def published_words(event: LearningEvent) -> list[str]:
    """The same in words, those with equal noise on one line."""
    alike: dict[tuple[str, str], list[str]] = {}
    for part in event.parts:
        alike.setdefault((part.name.partition(",")[0], _noise_words(part)), []).append(part.name)
    return [
        f"{names[0]}: {noise}" if len(names) == 1 else f"{names[0]} to {names[-1]}, {len(names)} parts, each: {noise}"
        for (_, noise), names in alike.items()
    ]


def _noise_words(part: NoisyCounts) -> str:
    squared, scale = ("squared L2", "variance") if part.noise == "gaussian" else ("L1", "scale")
    sensitivity, noise = in_short(part.sensitivity), in_short(part.scale, down=True)
    return f"{part.noise} noise, {squared} sensitivity {sensitivity}, {scale} {noise}"


def meaning(event: LearningEvent) -> str:
    """What the epsilon of a fit bounds, and where that is proved."""
    guarantee = learned(event)
    return f"{guarantee.statement} ({guarantee.citation})"


def record_words(event: LearningEvent) -> str:
    """What was kept of a person."""
    longest = f"{event.max_length} step" + ("" if event.max_length == 1 else "s")
    if event.unit == "sequence":
        return f"one sequence, of at most {longest}; whose sequences are whose was not said"
    if event.max_sequences == 1:
        return f"of each person the first sequence, of at most {longest}"
    return f"of each person the first {event.max_sequences} sequences, each of at most {longest}"


def replacing_epsilon(event: LearningEvent) -> str:
    """What the fit loses where a person's record is replaced: this is what adds to the costs of releases."""
    return shown(event.for_replacement().epsilon)


def _together(event: LearningEvent, sum_cost: Fraction, costs: str) -> Together:
    both: Guarantee = together(event, sum_cost)
    holds = f"{both.statement} ({both.citation})"
    if event.delta:
        holds += f". {_IN_ADVANCE}"
    return Together(
        epsilon=shown(both.value),
        delta=shown(event.delta),
        meaning=f"{holds}. {_COUNTED[costs]}, between histories that the model leaves possible; {_NOT_COUNTED}",
        costs=costs,
    )


_IN_ADVANCE = "With this delta it holds where a cap has bounded the sum of costs in advance"


#: Who the model was fitted on: "others" than the released people (or nobody), the "same", or "unknown".
MODEL_PEOPLE = ("unknown", "others", "same")
#: How that is known: the data owner says so, user names were compared, or the two tables are one file.
KNOWN_BY = {"unknown": (None,), "others": ("owner", "names", "model"), "same": ("owner", "names", "file")}


class Whom(NamedTuple):
    """Whom a model was fitted on, seen from the people released, and how that is known (None: it is not)."""

    people: str
    known_by: str | None

    @classmethod
    def of(cls, people: str, known_by: str | None = None) -> Whom:
        """A checked pair; without ``known_by`` the data owner says so. Raises InvalidInput."""
        one_of(people, MODEL_PEOPLE, "model_people")
        if known_by is None and people != "unknown":
            known_by = "owner"
        if known_by not in KNOWN_BY[people]:
            named = ", ".join(map(str, KNOWN_BY[people]))
            raise InvalidInput("known_by", known_by, f"of model_people {people!r} one of {named}")
        return cls(people, known_by)


UNKNOWN = Whom("unknown", None)
#: Nobody's data is in the model, as its file says: all who are released are others.
NOBODY = Whom("others", "model")


def made_without_data(provenance: Mapping[str, Any]) -> bool:
    """Whether a model says that it was made from geometry alone, as by `dphmm.MarkovModel.from_geometry`."""
    return provenance.get("method") == GEOMETRY and provenance.get("private") is None and "jump_into" not in provenance


def whom_of(provenance: Mapping[str, Any], told: Whom) -> Whom:
    """Whom a model was fitted on, by what is ``told`` and by what its file says.

    Raises InvalidInput where they contradict each other.
    """
    if not made_without_data(provenance):
        if told == NOBODY:
            raise InvalidInput("known_by", "model", "a model made from geometry alone: this one was not")
        return told
    if told.people == "same":
        raise InvalidInput("model_people", "same", "nothing: the model was made from geometry alone, without data")
    return NOBODY


def whom(declared: str | None, among: bool | None, same_file: bool = False) -> Whom:
    """Whom a model was fitted on, from all that is known.

    ``declared``: what the data owner says; None where they say nothing, and "unknown" where they say that names are
    not to be relied on. ``among``: whether a released user's name is that of somebody the model was fitted on; None
    where names were not compared. ``same_file``: whether the released table is the one that the model was fitted on.

    Evidence that they are the same outweighs what is declared; that no name is the same does not. Raises InvalidInput
    for another word.
    """
    if declared is not None:
        one_of(declared, MODEL_PEOPLE, "model_people")
    if same_file:
        return Whom("same", "file")
    if among:
        return Whom("same", "names")
    if declared is not None:
        return Whom.of(declared)
    return UNKNOWN if among is None else Whom("others", "names")
