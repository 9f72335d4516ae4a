"""What can be said against a release before anything is drawn: from public data alone.

Beside them the guarantee of a learned model, and the distance that a policy covers, as lines for people.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dphmm.cli.console import Row

if TYPE_CHECKING:
    from dphmm.accounting.event import LearningEvent, NotPrivateEvent
    from dphmm.batch import Batch
    from dphmm.cli.console import Console
    from dphmm.markov.model import MarkovModel
    from dphmm.session.options import Options
    from dphmm.session.plan import Plan
    from dphmm.storage.learned import Whom

#: A cost above this many epsilons is worth a warning: states that no edge joins can be told apart that well.
_FAR_ABOVE = 20


def plan_warnings(plan: Plan, options: Options) -> list[str]:
    """Sentences about the states that had to be joined, and about a cost far above epsilon."""
    said = []
    if len(plan.merged):
        said.append(
            f"{len(plan.merged)} of {int(plan.plan_set.sum())} planned states are hidden by nothing at the first step: "
            "each is answered as its nearest state (--protection merge), which raises the noise for nobody and is off "
            "by the way there for those who are in it"
        )
    if len(plan.joins):
        table = options.made_from == "answers"
        cost = (
            "and the table keeps these pairs too" if table else "which widens the hull, and so the noise, for everyone"
        )
        component = " --scope component" if table or options.scope == "component" else ""
        found = "without an edge in" if table else "exposed by"
        partner = "a nearest partner"
        remedy = f"remedy where it lowers the error, as dphmm inspect says: dphmm policy ... --merge-lonely{component}"
        if any(getattr(mechanism, "of_labels", False) for mechanism in plan.mechanisms):
            partner, remedy = "another label", "remedy: a policy with an edge for each of them"
        said.append(
            f"{len(plan.joins)} of {int(plan.constraint.plan.sum())} planned states are {found} the policy at the "
            f"first step: each is joined to {partner}, {cost}; {remedy}"
        )
    if plan.cost == math.inf:
        from dphmm.storage.promises import cost_unbounded_because

        said.append(f"the cost is unbounded: {cost_unbounded_because(options)}")
    elif plan.cost > _FAR_ABOVE * options.epsilon:
        times = float(plan.cost / options.epsilon)
        said.append(
            f"the cost of the first step is {times:.3g} epsilon: states that are far apart and that no edge of the "
            "policy joins can be told apart that well; a policy with longer edges, or a smaller epsilon, lowers it"
        )
    return said


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


def trapped_belief(model: MarkovModel, options: Options) -> list[str]:
    """A δ-set may end on one absorbing state, whose answer is then a public constant for ever."""
    from dphmm.markov.model import absorbing_states
    from dphmm.policy.constraint import Support

    absorbing = 0 if model.jump is not None else len(absorbing_states(model.matrix))
    if not absorbing or isinstance(options.constraint, Support):
        return []
    many, which = ("states", "one of them") if absorbing > 1 else ("state", "it")
    return [
        f"the model has {absorbing} absorbing {many}: with {options.constraint} the belief can lock onto {which}, and "
        "every later answer is then the same public constant; smooth the model, or plan on the support"
    ]


def first_step_warnings(batch: Batch) -> list[str]:
    """The same for a release, whose first plan is made now and kept; nothing where it will be refused."""
    from dphmm.errors import Refused

    try:
        plan = batch.setting.first_plan()
    except Refused:
        return []
    return [*plan_warnings(plan, batch.setting.options), *trapped_belief(batch.setting.model, batch.setting.options)]


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
    from dphmm.accounting.event import LearningEvent
    from dphmm.storage.learned import learning_event

    event: LearningEvent | NotPrivateEvent | None = learning_event(model.provenance, source)
    return event if isinstance(event, LearningEvent) else None


def covered_rows(facts: Mapping[str, Any] | None, epsilon: Fraction | str | None = None) -> list[Row]:
    """The line of these facts, with an epsilon what one answer may tell; none where states are no cells of a map."""
    from dphmm.storage.promises import covered_words, places_words

    if facts is None:
        return []
    words = places_words(facts) if epsilon is None else covered_words(facts, Fraction(epsilon))
    return [("covered", words)]
