"""dphmm release: the releases of many people's trajectories."""

from __future__ import annotations

from typing import Any

import click

from dphmm.cli.console import Console
from dphmm.cli.options import CONTEXT, messages, output, plan_choices, step_tables
from dphmm.errors import InvalidInput


@click.command("release", context_settings=CONTEXT)
@click.argument("trajectories", metavar="TRAJ")
@click.option("--model", required=True, metavar="M", help="The model, as dphmm fit writes it.")
@click.option("--policy", required=True, metavar="P", help="The policy, as dphmm policy writes it.")
@click.option("--epsilon", metavar="E", help="The promise of each release given the past: 1, 0.5.")
@click.option("--total-epsilon", metavar="E", help="Instead: what T steps together may lose at an edge of the policy.")
@click.option(
    "--path-epsilon",
    metavar="E",
    help="What two neighbouring paths of a subject may lose over --steps T, any --window W of steps, or --per 1d: the "
    "sum of its epsilons, over all queries, for ever. Without --epsilon every step has its share.",
)
@click.option(
    "--steps",
    type=int,
    metavar="T",
    help="With --total-epsilon or --path-epsilon: how many steps a subject has at most.",
)
@click.option("--window", type=int, metavar="W", help="With --path-epsilon: any W steps in a row.")
@click.option("--per", metavar="TIME", help="With --path-epsilon: each block of 1d, 12h or 30min, or of so many steps.")
@click.option(
    "--zone",
    metavar="+HH:MM",
    help="With --per: the offset from UTC of the clock at whose midnight blocks begin  [default: +00:00]",
)
@click.option(
    "--schedule",
    type=click.Choice(["every", "planned", "paced"]),
    default="every",
    show_default=True,
    help="With --path-epsilon: ask at every step; or at the steps, and as strongly, as dphmm plan would choose.",
)
@click.option(
    "--plan",
    metavar="FILE",
    help="A plan as dphmm plan writes it: its promise, schedule and epsilon, instead of those options.",
)
@output("released.parquet", required=False)
@click.option("--ledger", metavar="FILE", help="Where every release and its cost are stored before anyone sees it.")
@plan_choices
@step_tables
@click.option(
    "--query",
    metavar="NAME",
    default="state",
    show_default=True,
    help="A name for what is asked; a subject has one answer per query and step.",
)
@click.option(
    "--answer",
    type=click.Choice(["last", "first"]),
    default="last",
    show_default=True,
    help="Of several rows of a subject in one time bin, or one step, the last in time is answered, or the first. A "
    "stream answers the last once its bin has closed, and the first at once.",
)
@click.option("--cap-epsilon", metavar="E", help="Refuse what would bring a subject's sum of epsilons above this.")
@click.option("--cap-cost", metavar="C", help="Refuse what would bring a subject's sum of costs above this.")
@click.option(
    "--raise-cap",
    is_flag=True,
    help="Let a higher --cap-epsilon or --cap-cost, or more --steps of a --total-epsilon, take the place of what the "
    "subjects have; recorded.",
)
@click.option("--groups", metavar="FILE", help="A public table (subject, group) of people who are hidden together.")
@click.option("--cap-group", metavar="E", help="With --groups: refuse what brings a group's sum of epsilons above it.")
@click.option(
    "--no-estimates",
    is_flag=True,
    help="z alone: no belief is kept and no estimate is written, which is faster. Only where plans do not depend on "
    "answers: not with a delta-set, not with --flat allow.",
)
@click.option(
    "--resume", is_flag=True, help="Continue subjects that the ledger holds; stored answers stay as they are."
)
@click.option("--dry-run", is_flag=True, help="Print the plans of the first steps; draw, spend and write nothing.")
@click.option("--state-column", metavar="COL", help="The column of state names  [default: state]")
@click.option(
    "--model-people",
    type=click.Choice(["unknown", "others", "same"]),
    help="Whom the model was fitted on, for the privacy statement: others than those released (or nobody)?  "
    "[default: what the user names in M.people tell, else unknown]",
)
@click.option(
    "--statement",
    metavar="FILE",
    help="With TRAJ -: write the privacy statement of the lines answered here, when the stream ends.",
)
@click.option(
    "--owner-view",
    is_flag=True,
    help="Name the file with the counts for you alone, OUT.owner.json, with --quiet too. It is written anyway.",
)
@messages
def release(**given: Any) -> int:
    """Release trajectories step by step: one answer per subject and time step.

    Everything is checked first. Each answer is stored in the ledger with its cost before it can be seen; the
    output file and the privacy statement beside it appear at the end. Interrupted, the same command with
    --resume continues, and what was released stays as it was. A place or name that is no state is released
    like any other row; rows that cannot be read are listed in OUT.rejected.csv for you alone (exit 3). How many
    rows were in no state, and how often a true state was not in the plan set, is in OUT.owner.json, for you alone.

    TRAJ may be - for JSON lines: {"user": "a", "t": "2024-01-01T08:00:00Z", "lat": 1.0, "lon": 2.0} or with
    "state"; answers are JSON lines, each stored before it is printed. With a model that has a time step, a time bin
    is answered once it has closed: when a line of a later bin comes, from anybody, or the input ends. Until then
    nothing is printed; --answer first answers the first line of a bin at once.
    """
    from dphmm.cli.release_job import Job

    console = Console(given["quiet"])
    if given["statement"] is not None and given["trajectories"] != "-":
        raise InvalidInput("--statement", given["statement"], "- as TRAJ with it: of a file it lies beside the output")
    job = Job.of(given)
    if given["trajectories"] == "-":
        from dphmm.cli.release_stream import release_stream

        return release_stream(job, given, console)
    if given["dry_run"]:
        from dphmm.cli.release_preview import preview

        return preview(job, given, console)
    from dphmm.cli.release_batch import release_file

    return release_file(job, given, console)
