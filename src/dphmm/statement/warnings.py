"""Warnings about a release before anything is drawn, from public data alone."""

from __future__ import annotations

from dphmm.errors import Refused
from dphmm.markov.model import MarkovModel, absorbing_secrets
from dphmm.policy.constraint import Support
from dphmm.session.options import Options
from dphmm.session.plan import StepPlan
from dphmm.session.setting import Setting
from dphmm.statement.advice import finds_state, not_advised
from dphmm.statement.sentences import noun_words, plural, rendered
from dphmm.statement.verdict import ReaderFindings

#: A cost above this many epsilons is worth a warning: states that no edge joins can be told apart that well.
_FAR_ABOVE = 20


def release_warnings(setting: Setting) -> list[str]:
    """Warnings about a release under a setting, from its first plan; none where that plan will be refused.

    They say which states had to be joined or merged, where the cost is far above epsilon, where a delta-set can end on
    one absorbing state, and where one answer gives too much away. Nothing is drawn or stored; the plan stays with the
    setting.

    >>> import dphmm
    >>> from dphmm.session.setting import Setting
    >>> space = dphmm.StateSpace.categories(["a", "b", "c"])
    >>> model = dphmm.MarkovModel([1, 0, 0], [[0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0, 1]], space=space)
    >>> setting = Setting.of(model, dphmm.policy.complete(3), space, 1, constraint="delta=0.1")
    >>> [warning[:40] for warning in release_warnings(setting)]
    ['the model has 1 absorbing state: with de']
    """
    try:
        plan = setting.first_plan()
    except Refused:
        return []
    against = [f"not advised: {reason}" for reason in not_advised(setting.options.epsilon)]
    return [*plan_warnings(plan, setting.options), *trapped_belief(setting.model, setting.options), *against]


def plan_warnings(plan: StepPlan, options: Options) -> list[str]:
    """Sentences about the states that had to be joined, and about a cost far above epsilon."""
    facts = {
        "merged": len(plan.merged),
        "planned": int(plan.plan_set.sum()),
        "joins": len(plan.joins),
        "constrained": int(plan.constraint.plan.sum()),
        "table": options.made_from == "answers",
        "labels": getattr(plan.mechanism, "of_labels", False),
        "times": float(plan.cost / options.epsilon) if plan.cost > _FAR_ABOVE * options.epsilon else None,
    }
    return rendered(_OF_A_PLAN, facts)


_OF_A_PLAN = """
{% if merged %}
{{ merged }} of {{ planned }} planned states are hidden by nothing at the first step: each is answered as its nearest \
state (protection merge), which raises the noise for nobody and is off by the way there for those who are in it
{% endif %}
{% if joins %}
{{ joins }} of {{ constrained }} planned states are {{ "without an edge in" if table else "exposed by" }} the policy \
at the first step: each is joined to {{ "another label" if labels else "a nearest partner" }}, \
{{ "and the table keeps these pairs too" if table else "which widens the hull, and so the noise, for everyone" }}; \
{% if labels %}remedy: a policy with an edge for each of them{% else %}remedy where it lowers the error, as dphmm \
plan --details says: dphmm policy ... --merge-lonely{% if table %} --isolated{% endif %}{% endif +%}
{% endif %}
{% if times %}
the cost of the first step is {{ "%.3g" | format(times) }} epsilon: states that are far apart and that no edge of the \
policy joins can be told apart that well; a policy with longer edges, or a smaller epsilon, lowers it
{% endif %}
"""


def trapped_belief(model: MarkovModel, options: Options) -> list[str]:
    """A δ-set may end on one absorbing state, whose answer is then a public constant for ever."""
    absorbing = 0 if model.jump is not None else len(absorbing_secrets(model))
    if not absorbing or isinstance(options.constraint, Support):
        return []
    which = "one of them" if absorbing > 1 else "it"
    return [
        f"the model has {plural(absorbing, 'absorbing state')}: with {options.constraint} the belief can lock onto "
        f"{which}, and every later answer is then the same public constant; smooth the model, or plan on the support"
    ]


def no_limit(found: ReaderFindings | str) -> str:
    """The warning that nothing limits the sum of all answers, and what a reader of answers at every step then finds.

    ``found`` : by `dphmm.choose.planning.without_limit`, or why nothing was computed.
    """
    if isinstance(found, str):
        return f"No limit is set. What a reader finds is not computed: {found}"
    called = noun_words(found.noun)
    sentence = f"If every step has an answer and {called['people']} move as the model says, {found.lines[0]}"
    if finds_state(found.error, found.known):
        sentence += f": it tells where {called['somebody']} is, to the {found.state}"
    return f"No limit is set. {sentence}"
