"""What a release would do, from public data and who has rows at which steps: nothing is drawn, stored or spent."""

from __future__ import annotations

import math
from typing import Any

from dphmm.batch import Batch
from dphmm.evaluation.lonely import shown_error
from dphmm.policy.constraint import Support
from dphmm.session.budget_plan import BudgetPlan
from dphmm.session.plan import Plan
from dphmm.session.setting import Setting
from dphmm.states.trajectory import Trajectories
from dphmm.states.visit_table import VisitTable
from dphmm.storage.model_facts import learning_of
from dphmm.storage.promises import covered_by_all, covered_document

#: The plans of so many steps are told.
_STEPS = 3


def release_preview(
    batch: Batch, rows: Trajectories | VisitTable, budget_plan: BudgetPlan | None = None
) -> dict[str, Any]:
    """What a release of these rows would do: what `dphmm release --dry-run` prints.

    How many rows would be released at most, to how many subjects, under which plans of the first steps (as far as they
    do not depend on answers), with which largest sum of epsilons. Where people are changes nothing of it, and no
    history of a ledger is looked at.

    Parameters
    ----------
    rows : who has rows at which steps.
    budget_plan : what the epsilon was found from, where it was searched.

    Raises
    ------
    InvalidInput : rows that a release refuses.
    Refused : a first step that a release refuses.

    Examples
    --------
    >>> import dphmm
    >>> from dphmm.batch import Batch
    >>> space = dphmm.StateSpace.categories(["a", "b"])
    >>> model = dphmm.MarkovModel([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]], space=space)
    >>> rows = dphmm.Trajectories.from_labels(["ann", "ann", "ben"], state=["a", "b", "a"])
    >>> told = release_preview(Batch(model, dphmm.policy.complete(2), space, 1), rows)
    >>> told["would_release"], told["subjects"], told["largest_epsilon_sum"]
    (3, 2, '2')
    """
    setting, schedule = batch.setting, batch.setting.schedule
    asked, most_each = batch.most_asked(rows), batch.subjects.epsilons[1]
    left_out = None if schedule is None else batch.steps_of(rows) - sum(asked)
    return {
        "would_release": sum(asked),
        "not_asked": left_out,
        "schedule": None if schedule is None else str(schedule),
        "subjects": len(asked),
        "answer_unit": setting.space.unit,
        "plans": [_plan_document(step, plan, setting) for step, plan in enumerate(first_plans(setting), start=1)],
        "covered_distance": covered_document(covered_by_all(batch.subjects.policies, setting.space), most_each),
        "largest_epsilon_sum": str(max(asked) * most_each),
        "learning": learning_of(setting.model),
        "horizon": None if budget_plan is None else budget_plan.document(),
        "sequence": None if batch.caps.promise is None else batch.caps.promise.sentence(),
    }


def first_plans(setting: Setting) -> list[Plan]:
    """The plans of the first steps, as far as they do not depend on what is released."""
    position = setting.first()
    plans: list[Plan] = []
    for _ in range(_STEPS):
        plan = setting.plan(position)
        plans.append(plan)
        if plan.narrows_support or not isinstance(setting.options.constraint, Support):
            break
        # With bodies of full rank the support does not depend on the answers.
        position = position.predict(setting.model, position.prior)
    return plans


def _plan_document(step: int, plan: Plan, setting: Setting) -> dict[str, Any]:
    unbounded = plan.cost == math.inf
    return {
        "step": step,
        "hash": plan.hash,
        "plan_states": int(plan.constraint.plan.sum()),
        "possible_states": int(plan.constraint.support.sum()),
        "mechanism": plan.mechanism,
        "expected_error": shown_error(plan, setting.space, setting.model),
        "epsilon": str(plan.epsilon),
        "cost": None if unbounded else str(plan.cost),
        "joined": len(plan.joins),
        "constant": plan.constant,
    }
