"""The loss of the people that a model was learned from, as facts and sentences.

Two promises stand side by side. Learning: any two data sets that differ by one person's record give almost the same
model. Releasing: the answers about a person, given the model. `Together` bounds both, for one person who was in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, ClassVar

from dphmm.accounting.event import LearningEvent, NoisyCounts, learned, learning_event, together
from dphmm.accounting.records import in_short, shown
from dphmm.markov.model import MarkovModel
from dphmm.statement.parts import Part, Positive, Text, rule


class Together(Part, frozen=True, kw_only=True):
    """The bound on the loss of the model and the releases of one person together.

    epsilon : The epsilon of replacing their record plus the sum of costs.
    delta : The delta of replacing their record.
    """

    epsilon: Text
    delta: Text

    says: ClassVar[Mapping[str, str]] = {
        "meaning": """
{{ together_words(unit, delta | exact, private) }} (docs/proofs/learning.md, 4)\
{% if delta != "0" %}. With this delta it holds where a cap has bounded the sum of costs in advance{% endif %}. \
It counts this one fit, and {% if ledger %}the releases of that person in this ledger{% else %}the rows of this file \
that are of that person{% endif %}, at all their steps, between histories that the model leaves possible; not counted \
are other models of the same people, answers of queries about them, what the person has in other files or ledgers or \
under other names, and people who depend on that person
""",
        "costs": "{% if ledger %}those of the subject with the largest total here; for a person in both, and releases "
        "made with this model{% else %}those of the subject with the largest total in this file; the ledger has "
        "everyone's, over all files{% endif %}",
    }


class Learning(Part, frozen=True, kw_only=True):
    """The cost of learning the model to the people it was learned from.

    private : False where the noise can be replayed.
    epsilon : The true total of the fit, rounded up where it is long.
    delta : The true total of the fit.
    neighbours : Which data sets are compared.
    unit : A record: all sequences of one owner, or one sequence.
    max_length : Steps of a sequence that counted.
    max_sequences : Sequences of a person that counted.
    together : With the releases of one person, for any two possible records of that person; null where people is
        others, and where nothing is released.
    """

    private: bool
    epsilon: Text
    delta: Text
    neighbours: Annotated[str, rule(enum=["add-remove", "replace"])]
    unit: Annotated[str, rule(enum=["owner", "sequence"])]
    max_length: Positive
    max_sequences: Positive
    together: Together | None

    says: ClassVar[Mapping[str, str]] = {
        "replayable": "NOT PRIVATE: the noise can be replayed by whoever knows the seed. For tests and simulations "
        "only.",
        "meaning": "{{ learned_words(neighbours, unit, delta | exact, private) }} (docs/proofs/learning.md, 1)",
        "record": "{% if unit == 'sequence' %}one sequence, of at most {{ plural(max_length, 'step') }}; whose "
        "sequences are whose was not said{% else %}of each person the first {% if max_sequences == 1 %}sequence, of"
        "{% else %}{{ max_sequences }} sequences, each of{% endif %} at most {{ plural(max_length, 'step') }}"
        "{% endif %}",
        "not_covered": """
What was chosen before the fit and is taken to be public: the file's name, states and symbols, step, box, caps, seeds, \
and all other options.
More than one person at a time: k people who belong together lose up to k times as much.
Other models learned from the same people: what each of them costs adds up.
Releases made with the model: they have a promise of their own, and its cost adds to this one.
What holds of people in general: a model that is any good tells it, whether or not a person took part.
""",
        "all": """
epsilon {{ epsilon }}, delta {{ delta }}: {{ part.sentence() }}
{{ part.sentence("record") }}
{% if together %}
together epsilon {{ together.epsilon }}, delta {{ together.delta }}: {{ part.both() }}; {{ part.both("costs") }}
{% endif %}
{{ part.said("not_covered") | join("\\n") }}
""",
        "others": "left out: the model is of other people than those released, as the data owner says",
    }

    @classmethod
    def of(cls, event: LearningEvent, sum_cost: Fraction | None = None) -> Learning:
        """The facts of a fit; with the sum of one person's costs also what both lose together."""
        both = None if sum_cost is None else together(event, sum_cost).value
        return cls.from_attributes(
            event,
            private=event.secure,
            epsilon=shown(learned(event).value),
            delta=shown(event.delta),
            together=None if both is None else Together(epsilon=shown(both), delta=shown(event.delta)),
        )

    def both(self, name: str = "meaning", ledger: bool = False) -> str:
        """A sentence of what the model and the releases of one person lose together; ``ledger``: for all its files."""
        assert self.together is not None
        return self.together.sentence(name, unit=self.unit, private=self.private, ledger=ledger)


def learning_of(model: MarkovModel, field: str = "privacy") -> Learning | None:
    """The facts of a model's fit; None where it was not learned with noise. Raises InvalidInput for ``field``."""
    event = learning_event(model.provenance, field)
    return Learning.of(event) if isinstance(event, LearningEvent) else None


def replacing_epsilon(event: LearningEvent) -> str:
    """The loss of a fit where a person's record is replaced: it adds to the costs of releases."""
    return shown(event.for_replacement().epsilon)


def published_parts(event: LearningEvent) -> list[dict[str, str]]:
    """The vectors of counts that a fit published about the data, and the noise in each."""
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
