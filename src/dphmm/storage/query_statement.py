"""The statement beside the answer of a query: what is promised of one record, under which dependence, and what is not.

Everything in it is public: the options, the hash of a model, and what the answer's event says. No other file is named
by its hash. ``private`` and ``promise.holds`` are true, false or "unknown", with reasons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from dphmm.accounting.event import CHANGES, DependentEvent, NoisyCounts
from dphmm.accounting.records import shown
from dphmm.storage.statement_types import (
    Dependence,
    Noise,
    PerRecord,
    Proof,
    QueryMechanism,
    QueryPromise,
    QueryRandomness,
    QuerySoftware,
    QueryStatement,
    Verdict,
)

FORMAT = 2
PROOF = "docs/proofs/dependent-markov.md"
ROWS = "docs/proofs/contributions.md"
_REPLAYABLE = "replayable bits: whoever knows the seed can take the noise away"
_UNPROVED = "nothing is proved for dependent records"
_SAME_MODEL = "the model of dependence or of the states was fitted without privacy on the people of these very records"
_ANY_MODEL = (
    "the model of dependence or of the states was fitted without privacy, and nobody has said on whom: if on the "
    "people of these records, nothing is promised to them, because the model itself can show what one of them did"
)

_WHO = "Which records there are: who is in the data, when, and how many records there are."
_OTHERS = "More than the rows of one unit: what the rows of many people show together is what the answer is for."
#: Of one record at a time; {change} is what neighbouring data differ by.
_NEVER = (
    "Anything but one record at a time: a record is hidden together with what the named dependence makes follow from "
    "it. Dependence of another kind, or a stronger one, is not covered.",
    "One record from somebody who knows others that it depends on for certain: against them only the loss of {change} "
    "that record alone is bounded.",
    "What several answers about the same records show together: their epsilons do not add up under dependence. Their "
    "losses per record do, and dphmm.dependent.together says what the sum means under a chain or a tree.",
)
_NEVER_BY_PERSON = (
    "Dependence between the rows of different units: it is not covered.",
    "What the rows of others show about somebody.",
    "What several answers about the same rows show together: their epsilons add up.",
)


def query_statement(
    event: DependentEvent,
    *,
    dependence: Mapping[str, Any],
    domain: Mapping[str, Any],
    unit: str | None = None,
    by_person: bool = False,
    not_protected: Sequence[str] = (),
    model_people: str | None = None,
) -> QueryStatement:
    """The statement of one answer; `dphmm.storage.statement.write_statement` adds the file.

    ``dependence``: how it was given, with the hash of its model. ``domain``: the public options of the question.
    ``unit``: what is hidden, in a sentence. ``by_person``: whether that is all rows of somebody, there or not.
    ``model_people``: on whom the model of dependence, or of the states, was fitted without privacy, "others", "same" or
    "unknown"; None where no such model is named.
    """
    false = [_REPLAYABLE] * (not event.secure) + [_UNPROVED] * (event.claimed is None)
    false += [_SAME_MODEL] * (model_people == "same")
    unknown = [_ANY_MODEL] * (model_people == "unknown")
    holds: Verdict = False if false else "unknown" if unknown else True
    change, there_or_not = CHANGES[event.neighbours], event.neighbours == "add-remove"
    hidden = event.record + ", there or not" * there_or_not
    of_records = [text.format(change=change) for text in _NEVER]
    told = [_OTHERS, *_NEVER_BY_PERSON] if by_person else of_records if there_or_not else [_WHO, *of_records]
    return QueryStatement(
        format=FORMAT,
        kind="query",
        software=QuerySoftware(name="dphmm", version=version("dphmm")),
        query=event.query,
        private=holds,
        not_private_because=false,
        unknown_because=unknown,
        unit_of_privacy=unit or f"one record: {hidden}; neighbouring data differ in it and nowhere else",
        epsilon=None if holds is False else str(event.claimed),
        promise=QueryPromise(holds=holds, meaning=_meaning(event, model_people)),
        per_record=PerRecord(
            epsilon=shown(event.per_record) if event.secure else None,
            meaning=f"what {change} one record and no other loses, whatever depends on it, given "
            "noise that nobody can replay; adds up over answers",
        ),
        dependence=Dependence(**{**dependence, "model": event.dependence}),
        mechanism=QueryMechanism(name=event.mechanism, noise=[_noise(part) for part in event.parts]),
        proved=Proof(by=event.why, where=PROOF, rows=ROWS),
        domain=dict(domain),
        randomness=QueryRandomness(
            secure=event.secure, source="the operating system" if event.secure else "replayable bits"
        ),
        not_protected=[*told, *not_protected],
    )


def _meaning(event: DependentEvent, model_people: str | None) -> str:
    """The promise as a sentence that says what it rests on."""
    if event.secure and model_people == "same":
        return f"nothing is promised: {_SAME_MODEL}"
    if event.secure and model_people == "unknown":
        return f"if the model was fitted on other people than those of these records: {event.statement}"
    if event.secure and model_people == "others":
        return f"{event.statement}; the model was fitted on other people, as the data owner says"
    return event.statement


def _noise(part: NoisyCounts) -> Noise:
    return Noise(
        of=part.name,
        distribution="discrete Laplace, exactly: P(z) proportional to exp(-|z|/scale) on the integers",
        sensitivity=shown(part.sensitivity),
        scale=shown(part.scale),
    )
