"""dphmm check-release: check a finished release against its statement, its ledger and public data."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from dphmm.cli.console import Console, one_line, print_json, stage_of
from dphmm.cli.help import CONTEXT, Command
from dphmm.cli.options import loaded_model, loaded_policy, opened
from dphmm.errors import InvalidInput
from dphmm.storage.release_folder import OWNER


@click.command("check-release", cls=Command, context_settings=CONTEXT)
@click.argument("released", metavar="OUT")
@click.option("--ledger", metavar="L", help="The ledger of the release  [default: that which OUT.owner names, if any]")
@click.option("--plain", metavar="FOLDER", help="Keep what verify_release.py reads in this folder, a new one.")
@click.option("--model", metavar="M", help="Of a release table of Spark: its model.")
@click.option("--policy", metavar="P", help="Of a release table: its policy  [default: as its commits describe it]")
@click.option("--query", metavar="Q", help="Of a release table: the query of the rows, if it has several.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")
def check_release(as_json: bool, **given: Any) -> int:
    """Check a finished release: nothing is run or believed that its files hold.

    OUT is the folder of a release, or that of a release table of Spark, whose commits hold the statements. Each
    distinct plan is made again from public data and verified; rows, losses, account, statement, ledger and bytes are
    compared by verify_release.py, a file that needs nothing but Python, in a process of its own. A file of the folder
    that is not the release's is found. Exit code 0: nothing is wrong. 1: something is. 2: a file cannot be read. 5:
    nothing is wrong, and something was not looked at, each on a line.
    """
    from dphmm.audit.release_tables import check_release_table
    from dphmm.storage.table_ledger import opened_to_read

    if given["plain"] is not None and Path(given["plain"]).exists():
        raise InvalidInput("--plain", f"{given['plain']}, which exists", "a new folder")
    of_table = (Path(given["released"]) / "log").is_dir()
    released = None if of_table else opened(given["released"])
    for option in () if of_table else ("model", "policy", "query"):
        if given[option] is not None:
            raise InvalidInput(f"--{option}", given[option], "nothing: the folder of a release has it")
    ledger_path = None if given["ledger"] is None else Path(given["ledger"])
    if released is not None and ledger_path is None and (released.folder.owner / OWNER).exists():
        ledger_path = released.folder.ledger()
    with ExitStack() as held, Console().progress("check-release") as progress:
        ledger = None if ledger_path is None else held.enter_context(opened_to_read(ledger_path))
        stage_of(progress, "plans and rows")
        if released is not None:
            checked = released.checked(ledger, ledger_path, given["plain"])
        else:
            if given["model"] is None:
                raise InvalidInput("--model", "nothing", "the model of a release table")
            model, space = loaded_model(given["model"])
            policy = None
            if given["policy"] is not None:
                policy, space = loaded_policy(given["policy"], model)
            file = ledger_path if ledger_path is not None and ledger_path.is_file() else None
            checked = check_release_table(
                *(given["released"], model, policy, None if policy is None else space),
                query=given["query"],
                ledger=ledger,
                plain=given["plain"],
                ledger_file=file,
            )
    if as_json:
        print_json(checked.document())
    else:
        for line in checked.lines:
            click.echo(" " * (len(line) - len(line.lstrip())) + one_line(line))
    return checked.code
