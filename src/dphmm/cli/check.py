"""dphmm check: the figures of a table for its owner, before anything is spent, and why a release would stop."""

from __future__ import annotations

from typing import Any

import click

from dphmm.accounting.ledger import MemoryLedger
from dphmm.cli.console import BAD_INPUT, print_json, reworded
from dphmm.cli.options import CONTEXT, messages, spelling_of
from dphmm.cli.release import read_rows, release
from dphmm.cli.release_job import Job, kept_ledger

#: Options of a release that are no part of a question, or change nothing of a table.
_OTHERS = (
    "trajectories", "policy", "output", "resume", "dry_run", "statement", "owner_view", "although", "check",
    "model_people", "mechanism", "quiet", "as_json",
)  # fmt: skip


@click.command(
    "check", context_settings=CONTEXT, params=[option for option in release.params if option.name not in _OTHERS]
)
@click.argument("trajectories", metavar="TRAJ")
@click.option("--policy", metavar="P", help="The policy, where lonely states are merged by it.")
@messages
def check(quiet: bool, as_json: bool, **given: Any) -> int:
    """Look at a table before anything is spent: what would it be to a release? For its owner alone.

    TRAJ and options are those of dphmm release, of which only --model is needed; with --ledger it says what is left for
    these people. Nothing is drawn, spent, written or published; figures are coarse, and no option is to be fitted to
    them. The exit code is 2 where the release would stop.
    """
    from dphmm.evaluation.table_check import Unplaced, first_rows, table_check

    asked = any(given[name] is not None for name in ("epsilon", "path_epsilon", "plan"))
    given |= {"resume": True, "quiet": quiet, "mechanism": None, "check": None, "although": None}
    job = Job.of(given | ({} if asked else {"epsilon": "1"}))
    seen = Unplaced(job.space)
    loaded, _ = read_rows(job, given, seen.add)
    with kept_ledger(given["ledger"], given["spelling"]) as ledger:
        batch = job.batch(ledger or MemoryLedger(spelling_of(given)))
        figures = table_check(batch, loaded, seen, first_rows(given["trajectories"]), budget=asked)
    if as_json:
        print_json(figures.document())
    else:
        click.echo("\n".join(map(reworded, figures.lines())))
    return BAD_INPUT if figures.stops else 0
