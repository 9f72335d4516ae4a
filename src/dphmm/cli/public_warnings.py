"""What can be said against a release before anything is drawn: from public data alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dphmm.batch import Batch
    from dphmm.cli.console import Console
    from dphmm.markov.model import MarkovModel
    from dphmm.session.options import Options
    from dphmm.session.plan import Plan
    from dphmm.storage.people import Whom

#: A cost above this many epsilons is worth a warning: states that no edge joins can be told apart that well.
_FAR_ABOVE = 20


def plan_warnings(plan: Plan, options: Options) -> list[str]:
    """Sentences about the states that had to be joined, and about a cost far above epsilon."""
    said = []
    if len(plan.joins):
        table = options.made_from == "answers"
        cost = (
            "and the table keeps these pairs too" if table else "which widens the hull, and so the noise, for everyone"
        )
        component = " --scope component" if table or options.scope == "component" else ""
        found = "without an edge in" if table else "exposed by"
        said.append(
            f"{len(plan.joins)} of {int(plan.constraint.plan.sum())} planned states are {found} the policy at the "
            f"first step: each is joined to a nearest partner, {cost}; remedy where it lowers the error, as "
            f"dphmm inspect says: dphmm policy ... --merge-lonely{component}"
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
    from dphmm.storage.people import Whom
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
    from dphmm.markov.notes import absorbing_states
    from dphmm.policy.constraint import Support

    absorbing = len(absorbing_states(model.transition))
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
