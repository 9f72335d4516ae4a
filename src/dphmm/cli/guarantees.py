"""What commands print of guarantees: of a learned model, its people, and the distance that a policy covers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dphmm.accounting.records import in_short
from dphmm.cli.console import Row

if TYPE_CHECKING:
    from dphmm.cli.console import Console
    from dphmm.markov.model import MarkovModel
    from dphmm.storage.learned import Whom


def model_warning(model: MarkovModel, people: str, console: Console, known_by: str | None = None) -> None:
    """What a model fitted without privacy means: nothing wrong where it was fitted on other people."""
    from dphmm.storage.learned import Whom
    from dphmm.storage.promises import provenance_words

    if model.provenance.get("private") is False:
        tell = console.note if people == "others" else console.warn
        tell(f"the model: {provenance_words(model.provenance, Whom.of(people, known_by))}")


def whom_warning(model: MarkovModel, whom: Whom, console: Console) -> None:
    """The same before a release, and what the privacy statement will say where nobody knows whom the model is of."""
    from dphmm.storage.promises import provenance_words, unknown_because

    if not unknown_because(model.provenance, whom, 0):
        model_warning(model, whom.people, console, whom.known_by)
        return
    words = provenance_words(model.provenance, whom)
    console.warn(
        f"the model: {words} The privacy statement says private: unknown; --model-people others|same says more"
    )


def guarantee_rows(learning: Mapping[str, Any], covered: bool = False) -> list[Row]:
    """What a fit promises, whom of, and (``covered``) what it does not."""
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
    return "together", f"epsilon {in_short(both['epsilon'])}, delta {in_short(both['delta'])}: {both['meaning']}"


def coming_rows(model: MarkovModel, people: str) -> list[Row]:
    """The same before a release, whose costs are not known yet."""
    from dphmm.storage.learned import OTHER_PEOPLE, replacing_epsilon
    from dphmm.storage.models import event_of, learning_of

    event = event_of(model)
    learning = learning_of(model)
    if learning is None or event is None:
        return []
    if people == "others":
        return [*guarantee_rows(learning), ("together", OTHER_PEOPLE)]
    replacing = in_short(replacing_epsilon(event))
    said = f"the sum of a person's costs, and {replacing}: what the model loses if they are replaced"
    return [*guarantee_rows(learning), ("together", said)]


def covered_rows(facts: Mapping[str, Any] | None, epsilon: Fraction | str | None = None) -> list[Row]:
    """The line of these facts, with an epsilon what one answer may tell; none where states are no cells of a map."""
    from dphmm.storage.promises import covered_words, places_words

    if facts is None:
        return []
    words = places_words(facts) if epsilon is None else covered_words(facts, Fraction(epsilon))
    return [("covered", words)]
