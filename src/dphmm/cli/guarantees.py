"""Printed guarantees: of a learned model, of its people, and of the distance that a policy covers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dphmm.accounting.event import LearningEvent, learning_event
from dphmm.accounting.records import in_short
from dphmm.cli.console import Row

if TYPE_CHECKING:
    from dphmm.cli.console import Console
    from dphmm.markov.model import MarkovModel
    from dphmm.statement.learning import Learning
    from dphmm.statement.origin import Whom
    from dphmm.statement.release import CoveredDistance


def model_warning(model: MarkovModel, whom: Whom, console: Console, *, release: bool = False) -> None:
    """Print the consequences of a model fitted without privacy: nothing wrong if it was fitted on other people.

    Before a ``release`` also the privacy statement's verdict if nobody knows the model's people.
    """
    from dphmm.statement.learning import learning_of
    from dphmm.statement.origin import DOUBTS, reasons
    from dphmm.statement.release import Model

    doubted = release and bool(set(reasons(model.provenance, whom)) & DOUBTS.keys())
    if not doubted and model.provenance.get("private") is not False:
        return
    origin = f"the model: {Model.of(model, whom).origin(learning_of(model) is not None)}"
    if doubted:
        origin += " The privacy statement says private: unknown; --model-people others|same says more"
    tell = console.note if whom.people == "others" else console.warn
    tell(origin)


def guarantee_rows(learning: Learning, covered: bool = False) -> list[Row]:
    """The promise of a fit and its people, and with ``covered`` the facts that it does not cover."""
    epsilon = f"{in_short(learning.epsilon)}, delta {in_short(learning.delta)}: {learning.sentence()}"
    rows = [("learning", f"epsilon {epsilon}"), ("counted", learning.sentence("record"))]
    return rows + [("not covered", sentence) for sentence in learning.said("not_covered") if covered]


def published_rows(parts: Sequence[str], choices: Mapping[str, Any]) -> list[Row]:
    """The published parts of a fit, and the choices for it."""
    return [
        *(("published", words) for words in parts),
        *((name, str(value)) for name, value in choices.items() if value is not None),
    ]


def both_rows(learning: Learning | None) -> list[Row]:
    """The learning guarantee of a statement, and what it gives together with the releases; nothing without one."""
    if learning is None:
        return []
    others = ("together", learning.sentence("others"))
    return [*guarantee_rows(learning), others if learning.together is None else together_row(learning)]


def together_row(learning: Learning, ledger: bool = False) -> Row:
    """The joint loss of a model and the releases of one person."""
    both = learning.together
    assert both is not None
    return "together", f"epsilon {in_short(both.epsilon)}, delta {in_short(both.delta)}: {learning.both(ledger=ledger)}"


def coming_rows(model: MarkovModel, people: str) -> list[Row]:
    """The same before a release, whose costs are not known yet."""
    from dphmm.statement.learning import Learning, replacing_epsilon

    event = learning_event(model.provenance)
    if not isinstance(event, LearningEvent):
        return []
    learning = Learning.of(event)
    said = learning.sentence("others")
    if people != "others":
        replacing = in_short(replacing_epsilon(event))
        said = f"the sum of a person's costs, and {replacing}: what the model loses if they are replaced"
    return [*guarantee_rows(learning), ("together", said)]


def covered_rows(covered: CoveredDistance | None, epsilon: Fraction | None = None) -> list[Row]:
    """The line of a covered distance, with an epsilon what one answer may tell; none where nothing is covered."""
    if covered is None:
        return []
    return [("covered", covered.places if epsilon is None else covered.sentence("per answer", epsilon=epsilon))]
