"""The guarantee of a learned model, beside that of the releases made with it, as lines for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dphmm.cli.console import Row

if TYPE_CHECKING:
    from dphmm.accounting.learning import LearningEvent, NotPrivateEvent
    from dphmm.markov.model import MarkovModel


def guarantee_rows(learning: Mapping[str, Any], covered: bool = False) -> list[Row]:
    """What a fit promises, whom of, and (``covered``) what it does not."""
    from dphmm.accounting.records import in_short

    epsilon = f"{in_short(learning['epsilon'])}, delta {in_short(learning['delta'])}: {learning['meaning']}"
    rows = [("learning", f"epsilon {epsilon}"), ("counted", learning["record"])]
    if covered:
        rows += [("not covered", sentence) for sentence in learning["not_covered"]]
    return rows


def published_rows(parts: Sequence[str], choices: Mapping[str, Any]) -> list[Row]:
    """What a fit published of the data, and what was chosen for it."""
    return [
        *(("published", words) for words in parts),
        *((name, str(value)) for name, value in choices.items() if value is not None),
    ]


def both_rows(learning: Mapping[str, Any] | None) -> list[Row]:
    """The learning guarantee of a statement, and what it gives together with the releases; nothing without one."""
    if learning is None:
        return []
    from dphmm.storage.learned import OTHER_PEOPLE

    both = learning["together"]
    if both is None:
        return [*guarantee_rows(learning), ("together", OTHER_PEOPLE)]
    return [*guarantee_rows(learning), together_row(both)]


def together_row(both: Mapping[str, Any]) -> Row:
    """What a model and the releases of one person lose together."""
    from dphmm.accounting.records import in_short

    return "together", f"epsilon {in_short(both['epsilon'])}, delta {in_short(both['delta'])}: {both['meaning']}"


def coming_rows(model: MarkovModel, people: str) -> list[Row]:
    """The same before a release, whose costs are not known yet."""
    from dphmm.accounting.records import in_short
    from dphmm.storage.learned import OTHER_PEOPLE, replacing_epsilon

    event = event_of(model)
    learning = learning_of(model)
    if learning is None or event is None:
        return []
    if people == "others":
        return [*guarantee_rows(learning), ("together", OTHER_PEOPLE)]
    replacing = in_short(replacing_epsilon(event))
    said = f"the sum of a person's costs, and {replacing}: what the model loses if they are replaced"
    return [*guarantee_rows(learning), ("together", said)]


def learning_of(model: MarkovModel, source: str = "privacy") -> dict[str, Any] | None:
    """The guarantee of a model's fit for JSON; None if it was not learned with noise."""
    from dphmm.storage.learned import learning_document

    event = event_of(model, source)
    return None if event is None else learning_document(event)


def event_of(model: MarkovModel, source: str = "privacy") -> LearningEvent | None:
    """The event of a model learned with noise."""
    from dphmm.accounting.learning import LearningEvent
    from dphmm.storage.learned import learning_event

    event: LearningEvent | NotPrivateEvent | None = learning_event(model.provenance, source)
    return event if isinstance(event, LearningEvent) else None
