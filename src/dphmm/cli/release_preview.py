"""dphmm release --dry-run: the plans of the first steps. Nothing is drawn, no ledger is opened."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from dphmm.cli.console import Console, Row, aligned, print_json
from dphmm.cli.outcomes import SET_ASIDE
from dphmm.cli.release_batch import read_rows
from dphmm.cli.release_job import Job, check_outputs, people

if TYPE_CHECKING:
    from dphmm.batch import Batch
    from dphmm.session.plan import Plan

_STEPS = 3


def preview(job: Job, given: Mapping[str, Any], console: Console) -> int:
    """Print what a release would do; returns the exit code."""
    from dphmm.accounting.records import in_short
    from dphmm.cli.owner_view import by_reason, in_words
    from dphmm.cli.public_warnings import (
        coming_rows,
        covered_rows,
        learning_of,
        plan_warnings,
        trapped_belief,
        whom_warning,
    )
    from dphmm.cli.release_total import budget_plan_rows, check_total, with_budget_plan
    from dphmm.storage.promises import covered_by_all, covered_document

    check_outputs(given)
    loaded, sha256 = read_rows(job, given)
    rows = loaded.visits
    owners = people(job, rows, sha256, given, console)
    check_total(job, rows, given["query"])
    job = with_budget_plan(job, console)
    batch = job.batch(None)
    plans = first_plans(batch)
    set_aside = by_reason(loaded.rejected)
    asked, schedule = batch.most_asked(rows), batch.setting.schedule
    longest, most = max(asked), "" if schedule is None or schedule.kind == "planned" else "at most "
    least_each, most_each = batch.subjects.epsilons
    present = rows.n_visits
    document: dict[str, Any] = {
        "rows": rows.n_rows + len(loaded.rejected),
        "set_aside": set_aside,
        "would_release": sum(asked),
        "not_asked": None if schedule is None else present - sum(asked),
        "schedule": None if schedule is None else str(schedule),
        "subjects": len(rows),
        "answer_unit": job.space.unit,
        "plans": [plan_document(step, plan, job) for step, plan in enumerate(plans, start=1)],
        "covered_distance": covered_document(covered_by_all(batch.subjects.policies, job.space), most_each),
        "largest_epsilon_sum": str(longest * most_each),
        "learning": learning_of(job.model),
        "horizon": None if job.budget_plan is None else job.budget_plan.document(),
        "sequence": None if batch.caps.promise is None else batch.caps.promise.sentence(),
    }
    if given["as_json"]:
        print_json(document)
    else:
        lines: list[Row] = [
            ("rows in", f"{document['rows']} of {len(rows)} subjects"),
            ("would release", f"{most}{document['would_release']} rows"),
            ("set aside", in_words(set_aside) or "none"),
        ]
        if schedule is not None:
            lines.append(("not asked", f"{'' if not most else 'at least '}{present - sum(asked)} rows: {schedule}"))
        for plan in document["plans"]:
            lines.append((f"plan of step {plan['step']}", plan_words(plan, document["answer_unit"])))
        sums = most if least_each == most_each else "at most "
        if batch.subjects.chosen:
            lines.append(
                ("choices", f"{len(batch.subjects.chosen)} steps have their own; the plans above are of the others")
            )
        lines += covered_rows(document["covered_distance"], most_each)
        lines.append(
            (
                "epsilon sum",
                f"{sums}{in_short(document['largest_epsilon_sum'])} for the subject with most rows",
            )
        )
        if document["sequence"] is not None:
            lines.append(("over paths", document["sequence"]))
        lines += [*coming_rows(job.model, owners.people), *budget_plan_rows(job)]
        click.echo("\n".join(aligned(lines)))
    whom_warning(job.model, owners, console)
    for warning in (*plan_warnings(plans[0], batch.setting.options), *trapped_belief(job.model, batch.setting.options)):
        console.warn(warning)
    if given["owner_view"]:
        console.tell(
            "--owner-view: a dry run counts nothing; the release writes the counts to OUT.owner.json, for you alone"
        )
    console.say([("", "dry run: nothing was drawn, nothing was spent, nothing was written")])
    return SET_ASIDE if set_aside else 0


def first_plans(batch: Batch) -> list[Plan]:
    """The plans of the first steps, as far as they do not depend on what is released."""
    from dphmm.policy.constraint import Support

    position = batch.setting.first()
    plans: list[Plan] = []
    for _ in range(_STEPS):
        plan = batch.setting.plan(position)
        plans.append(plan)
        if plan.narrows_support or not isinstance(batch.setting.options.constraint, Support):
            break
        # With bodies of full rank the support does not depend on the answers.
        position = position.following(batch.setting.model, position.prior)
    return plans


def plan_document(step: int, plan: Plan, job: Job) -> dict[str, Any]:
    """A plan for machines."""
    from dphmm.evaluation.lonely import shown_error

    unbounded = plan.cost == math.inf
    return {
        "step": step,
        "hash": plan.hash,
        "plan_states": int(plan.constraint.plan.sum()),
        "possible_states": int(plan.constraint.support.sum()),
        "mechanism": plan.mechanism,
        "expected_error": shown_error(plan, job.space, job.model),
        "epsilon": str(plan.epsilon),
        "cost": None if unbounded else str(plan.cost),
        "joined": len(plan.joins),
        "constant": plan.constant,
    }


def plan_words(plan: Mapping[str, Any], unit: str) -> str:
    """A plan for people."""
    if plan["constant"]:
        return "a public constant: every possible state has the same answer; cost 0"
    from dphmm.accounting.records import in_short
    from dphmm.states.space import LABELS_WRONG

    cost = "unbounded" if plan["cost"] is None else in_short(plan["cost"])
    error = f"root mean square error {plan['expected_error']:.4g} {unit}"
    if unit == LABELS_WRONG:
        error = f"{plan['expected_error']:.1%} {unit}"
    return (
        f"{plan['plan_states']} of {plan['possible_states']} possible states, {plan['mechanism']}, "
        f"{error}, epsilon {in_short(plan['epsilon'])}, cost {cost}"
    )
