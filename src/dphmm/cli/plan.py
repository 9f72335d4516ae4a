"""dphmm plan: when to ask, and what a budget buys, from the public model alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dphmm import plot
from dphmm._checks import exact_number
from dphmm.accounting.records import in_short
from dphmm.cli.console import Console, Interrupted, aligned, in_columns, option_of, print_json
from dphmm.cli.options import (
    PlanOptions,
    command,
    length,
    loaded_model,
    loaded_policy,
    loaded_setting,
    new_output,
)
from dphmm.cli.plan_details import details, lines
from dphmm.cli.plan_search import LONG, lasting_words, print_search
from dphmm.errors import InvalidInput
from dphmm.statement.sentences import by_chance, clock, lasting, off
from dphmm.states.grid import Grid
from dphmm.storage.inputs import checked_output

if TYPE_CHECKING:
    from dphmm.choose.planning import World
    from dphmm.choose.schedule_plan import SchedulePlan, WorthTable
    from dphmm.choose.search import Targets
    from dphmm.policy.graph import PolicyGraph
    from dphmm.states.space import StateSpace

#: Larger cells are named that take about so few seconds.
_SHORT = 3.0
#: Sizes of cells that are named, in metres.
_CELLS = [digit * 10**power for power in range(1, 6) for digit in (1, 2, 5)]
#: More times of a day than these are told by how many there are.
_MOST_TIMES = 12


@command("plan", PlanOptions)
def plan(options: PlanOptions) -> None:
    """Choose when to ask, and see what each total buys, before anything is spent.

    Schedules are tried on invented people who move as the model says. Nothing but model, policy and options is looked
    at. Printed for a quarter, a half and twice the total too: the schedule, the expected error, and what a reader
    of the file would still find of who stays at one place.

    With a target settings are searched: covered distances, larger cells, totals up to twice the one given and numbers
    of answers; the one that reaches it is printed with the commands that make it.

    With --details also what the states are and, with a policy, whom it protects at what error; without --path-epsilon
    that alone.
    """
    from dphmm.choose.planning import World
    from dphmm.choose.schedule_plan import WorthTable, save_plan

    model, as_json, quiet = options.model, options.as_json, options.quiet
    chain, space = loaded_model(model)
    policy: PolicyGraph | None = None
    if options.policy is not None:
        policy, space = loaded_policy(options.policy, chain)
    choices: Any = loaded_setting(options.policy, space)
    promise = options.promise
    if promise is None:
        _check_details(options)
        document = details(chain, policy, space, options, choices)
        if as_json:
            print_json(document)
        else:
            click.echo("\n".join(lines(document, space)))
        _warn_of(document)
        return
    console = Console(quiet=quiet or as_json)
    targets = _targets(options, space)
    if targets is not None:
        print_search((chain, space, policy), targets, promise, options, choices)
        return
    if policy is None:
        raise InvalidInput("--policy", "nothing", "the policy, as dphmm policy writes it; or a target to reach")
    _check_outputs(options)
    named = {name: getattr(options, name) for name in ("schedule", "hours", "epsilon", "people", "reserve")}
    world = World(chain, policy, space, promise, **named, choices=choices)
    totals = world.totals(promise.exact)
    console.say([("", line) for line in forecast_lines(world, world.forecast(totals))])
    plans: list[SchedulePlan] = []
    stop: BaseException | None = None
    try:
        with console.progress("plans") as progress:
            plans.extend(world.plans(totals, progress))
    except KeyboardInterrupt as interrupt:
        stop = interrupt
        if not plans:
            raise Interrupted("interrupted: no plan was finished, and none is written", stop) from None
    planned = replace(plans[0], others=tuple(plans[1:]))
    ladder = planned.by_total
    against = [world.not_advised(each) for each in ladder]
    is_taken = options.epsilon is not None or not world.not_advised(planned)
    if options.output is not None and is_taken:
        save_plan(planned, options.output)
    if options.plot is not None:
        plot.ladder(planned).save(options.plot)
    if planned.expected_error >= planned.without:
        console.warn(
            f"over {planned.over}, readers are expected to err no less than without it: more budget, a longer block, "
            "fewer states, or a policy of shorter edges"
        )
    exact = replace(options, epsilon=str(planned.schedule.exact), steps=None)
    document = details(chain, policy, space, exact, choices) if options.details else {}
    if as_json:
        rows = [
            {name: rung.document()[name] for name in ("schedule", "stays")} | _error(rung) | {"not_advised": reasons}
            for rung, reasons in zip(ladder, against, strict=True)
        ]
        output = options.output if is_taken else None
        print_json(
            {"plan": planned.document(), **_error(planned), "totals": rows, "output": output, "spent": "nothing"}
            | ({"details": document} if document else {})
        )
    else:
        tried = [*_tried(planned), *lines(document, space, limited=True)] if document else []
        table = WorthTable.of(ladder, planned.schedule.promise.exact, against)
        click.echo("\n".join([*told(table, planned), *_when(planned, ladder), *tried]))
    _warn_of(document)
    if stop is not None:
        missing = ", ".join(map(in_short, totals[len(plans) :]))
        written = "" if options.output is None or not is_taken else f"; {options.output} is written without them"
        raise Interrupted(f"interrupted: what was finished is above; no plan for totals of {missing}{written}", stop)
    world.check_advised(planned)


def _targets(options: PlanOptions, space: StateSpace) -> Targets | None:
    """The targets in the options; lengths in metres on a map, in answer units elsewhere."""
    from dphmm.choose.search import Targets

    read = length if space.on_map else exact_number
    error, stay = (
        None if text is None else float(read(text, option))
        for option, text in (("--target-error", options.target_error), ("--target-stay", options.target_stay))
    )
    if error is None and stay is None and options.target_doubt is None:
        return None
    of_one_plan = ("output", "plot", "details", "states", "by")
    named = next((name for name in of_one_plan if getattr(options, name)), None)
    if named is not None or options.schedule != "planned":
        got = f"--schedule {options.schedule}" if named is None else option_of(named)
        raise InvalidInput("targets", f"{got} beside them", "it with the plan of the setting that is recommended")
    return Targets(error, options.target_doubt, stay)


def _check_details(options: PlanOptions) -> None:
    """Without a total nothing is planned: refuse the options of a plan, and those about a policy without one."""
    if not options.details:
        raise InvalidInput("--path-epsilon", "nothing", "the total to plan for; or --details, what MODEL is")
    of_a_plan = ("per", "zone", "window", "hours", "output", "plot")
    named = next((name for name in of_a_plan if getattr(options, name) is not None), None)
    if named is not None:
        raise InvalidInput("--path-epsilon", f"nothing, beside {option_of(named)}", "the total to plan for")
    if options.policy is None and any(each is not None for each in (options.epsilon, options.steps, options.by)):
        raise InvalidInput("--policy", "nothing", "a policy, which the other options are about")


def _warn_of(document: Mapping[str, Any]) -> None:
    for warning in document.get("warnings", []):
        Console().warn(warning)


def _tried(own: SchedulePlan) -> list[str]:
    """Every schedule that was tried for the total."""
    rows = [
        (
            f"  {row.releases} x {in_short(row.epsilon)}{' (chosen)' * row.chosen}",
            f"{off(row.smoothed, own.unit)}, {off(row.online, own.unit)} by the answers so far; {row.people} people",
        )
        for row in own.ladder
    ]
    return ["tried for this total", *aligned(rows)]


def forecast_lines(world: World, seconds: float) -> list[str]:
    """About how long plans take, and which cells take little; nothing of what takes no time to speak of."""
    if seconds < LONG:
        return []
    model, space = world.setting.model, world.setting.space
    from dphmm.choose.planning import state_name

    moves = round(model.n_transitions / model.n_states)
    cells = f"{model.n_states:,} {'label' if space.has_labels else state_name(space)}s with {moves:,} moves each"
    remedy = ""
    if isinstance(space, Grid):
        # Twice as wide cells are a quarter of them, with a quarter of the moves from each.
        cell = next(cell for cell in _CELLS if cell > space.cell * (seconds / _SHORT) ** 0.25 or cell == _CELLS[-1])
        cells_of = f"{cell}m" if cell < 1000 else f"{cell // 1000}km"
        less = seconds * (space.cell / cell) ** 4
        remedy = f": dphmm model grid --cell {cells_of} would take {lasting_words(less)}"
    return [f"about {lasting_words(seconds)}; {cells}{remedy}"]


def told(table: WorthTable, planned: SchedulePlan) -> list[str]:
    """A line for each total, the one that was given marked, and one without the file."""
    from dphmm.statement.story import stay_words

    paced, long = planned.schedule.kind == "paced", "" if planned.seconds is None else f" of {lasting(planned.seconds)}"
    who = f"{stay_words(planned.unit)}, {' / '.join(table.stays)}{long}"
    rows = [[_for(planned), "answers", "expected error", *["as it is released"] * paced, who, ""]]
    for worth in table.rows:
        marks = [f"<- {worth.total}"] * worth.own + [f"not advised: {'; '.join(worth.against)}"] * bool(worth.against)
        answers, stays = worth.answers.replace("×", "x"), " / ".join(worth.stays)
        rows.append([worth.total, answers, worth.error, *[worth.online] * paced, stays, "  ".join(marks)])
    base = table.without
    rows.append([base.total, base.answers, base.error, *[base.online] * paced, base.stays[0], ""])
    return in_columns(rows, "rlr" + "r" * paced + "rl")


def _for(planned: SchedulePlan) -> str:
    promise, steps = planned.schedule.promise, " steps" * (planned.times == ())
    if promise.steps is not None:
        return f"in {promise.steps} steps"
    if promise.window is not None:
        return f"any {promise.window} steps"
    return {"1d": "a day", "7d": "a week"}.get(str(promise.per), f"per {promise.per}{steps}")


def _when(planned: SchedulePlan, ladder: Sequence[SchedulePlan]) -> list[str]:
    """At which times of the clock, or at which steps, answers come; and of what the errors are."""
    of = f"errors over {planned.over}{'; who stays: from the first row on' * (planned.stays.what != 'sequence')}"
    whose = f"{of}\nall of people who move as the model says; nothing has been spent"
    if planned.left:
        left = f"{in_short(planned.left)} of {in_short(planned.schedule.promise.exact)} {_for(planned)}"
        whose = f"left for later questions: {left}\n{whose}"
    unsure = by_chance(max(rung.chance for rung in ladder))
    if unsure:
        whose += f"\n{planned.people} of them were invented: {unsure} (--people {4 * planned.people}: half as much)"
    if planned.schedule.kind == "paced":
        where = f" from {planned.hours.replace('-', ':00 to ')}:00" if planned.hours is not None else ""
        return [f"answers where the belief is wide enough{where}: {planned.chosen.asked:.3g} on average", whose]
    moved = ", moved by a public offset of each person and block" * bool(planned.schedule.seed)
    if planned.times and len(planned.times) <= _MOST_TIMES:
        zone = planned.schedule.promise.zone
        of_zone = f"of {zone}" if planned.schedule.promise.is_local else f"UTC{'' if zone == '+00:00' else zone}"
        return [f"answers at {' '.join(map(_clock, planned.times))} {of_zone}{moved}", whose]
    at = planned.schedule.at
    if len(at) <= _MOST_TIMES:
        return [f"answers at step{'s' * (len(at) != 1)} {' '.join(map(str, at))}{moved}", whose]
    return [f"answers at {len(at)} steps, the first at step {at[0]} and the last at step {at[-1]}{moved}", whose]


def _clock(seconds: int) -> str:
    return f"day {seconds // 86400 + 1} " * (seconds >= 86400) + clock(seconds)


def _error(one: SchedulePlan) -> dict[str, Any]:
    return {"expected_error": one.expected_error, "online_error": one.online_error, "unit": one.unit}


def _check_outputs(options: PlanOptions) -> None:
    inputs = [path for path in (options.model, options.policy) if path is not None]
    if options.output is not None:
        new_output(options.output, inputs, options.force)
    if options.plot is None:
        return
    if Path(options.plot).suffix.lower() != ".svg":
        raise InvalidInput("--plot", options.plot, "a name that ends in .svg")
    if checked_output(options.plot, inputs, "--plot").exists() and not options.force:
        raise InvalidInput("--plot", f"{options.plot}, which exists", "another name, or --force to replace it")
