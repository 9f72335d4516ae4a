"""dphmm split: the people of a table in two, so that a model is not fitted to those who are released."""

from __future__ import annotations

from typing import Any

import click

from dphmm.cli.console import Console, named, print_json
from dphmm.cli.options import CONTEXT, force, messages, new_output
from dphmm.errors import InvalidInput
from dphmm.storage.splits import split_file


@click.command("split", context_settings=CONTEXT)
@click.argument("trajectories", metavar="TRAJ")
@click.option("--share", default="0.5", show_default=True, metavar="P", help="The chance to be in the first file.")
@click.option("--by", type=click.Choice(["user"]), default="user", show_default=True, help="What stays together.")
@click.option("--user-column", default="user", show_default=True, metavar="COL", help="Who.")
@click.option("--seed", type=int, metavar="N", help="For tests: anybody with it can split alike.")
@click.option(
    "-o", "--output", nargs=2, required=True, metavar="MODEL.parquet PEOPLE.parquet", help="The two files to write."
)
@force
@messages
def split(trajectories: str, share: str, by: str, user_column: str, seed: int | None, **given: Any) -> None:
    """Write the rows of a table into two files, each person in one of them: one to fit, one to release.

    Each person goes to the first file with probability --share, whoever else there is; the system draws.
    """
    first, second = given["output"]
    for path in (first, second):
        new_output(path, [trajectories], given["force"])
    console = Console(given["quiet"])
    if seed is not None:
        console.warn("--seed: anybody with it can tell who is in which file; leave it out but for tests")
    try:
        found = split_file(trajectories, share, first, second, user_column=user_column, seed=seed)
    except InvalidInput as error:
        raise named(error, {"share": "--share", "first": "-o", "second": "-o", "seed": "--seed"}) from None
    if given["as_json"]:
        print_json(
            {"people": [found.first, found.second], "rows_without_user": found.nameless, "output": [first, second]}
        )
    console.say(
        [
            ("", f"{found.first} people in {first}, {found.second} in {second}"),
            ("", f"{found.nameless} rows without a user are in neither" if found.nameless else "no name is in both"),
        ]
    )
