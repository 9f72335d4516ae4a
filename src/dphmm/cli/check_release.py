"""dphmm check-release: whether a finished release is what its statement, its ledger and public data say it is."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from dphmm.cli.console import Console, one_line, print_json, stage_of
from dphmm.cli.options import CONTEXT, loaded_model, loaded_policy, made_table, of_folder
from dphmm.errors import InvalidInput


@click.command("check-release", context_settings=CONTEXT)
@click.argument("released", metavar="RELEASED")
@click.option("--model", metavar="M", help="Of a bare file: the model of the release.")
@click.option("--policy", metavar="P", help="Its policy  [default: as the privacy statement describes it]")
@click.option("--statement", metavar="S", help="Its privacy statement, if not beside it.")
@click.option("--query", metavar="Q", help="Of a release table the query of the rows, if it has several.")
@click.option("--ledger", metavar="L", help="The ledger that its releases are in: a file, or a release table.")
@made_table
@click.option("--plain", metavar="FOLDER", help="Keep what verify_release.py reads in this folder, a new one.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")
def check_release(as_json: bool, **given: Any) -> int:
    """Check a finished release: nothing is run or believed that its files hold.

    RELEASED is a released file or the lines of a stream, its privacy statement beside it; or the folder of a release
    table of Spark, whose commits hold the statements. Each distinct plan is made again from public data and verified;
    rows, losses, account, statement, ledger and bytes are compared by verify_release.py, a file that needs nothing but
    Python, in a process of its own. All choices of the release are in its statement. Exit code 0: nothing is wrong.
    1: something is. 2: a file cannot be read. 5: nothing is wrong, and something was not looked at, each on a line.
    """
    from dphmm.audit.check import WRONG
    from dphmm.audit.check import check_release as check_file
    from dphmm.audit.release_tables import check_release_table
    from dphmm.storage.table_ledger import opened_to_read

    if given["plain"] is not None and Path(given["plain"]).exists():
        raise InvalidInput("--plain", f"{given['plain']}, which exists", "a new folder")
    given = of_folder(given)
    of_table = Path(given["released"]).is_dir()
    alone = "statement" if of_table else "query"
    if given[alone] is not None:
        other = "a release table has its statements in its commits" if of_table else "it is for release tables"
        raise InvalidInput(f"--{alone}", given[alone], f"none: {other}")
    model, space = loaded_model(given["model"])
    policy = None
    if given["policy"] is not None:
        policy, space = loaded_policy(given["policy"], model)
    with ExitStack() as held, Console().progress("check-release") as progress:
        file = None if given["ledger"] is None else Path(given["ledger"])
        ledger = None if file is None else held.enter_context(opened_to_read(file))
        stage_of(progress, "plans and rows")
        public = (model, policy, None if policy is None else space)
        kept: dict[str, Any] = {"ledger": ledger, "plain": given["plain"]}
        kept["ledger_file"] = file if file is not None and file.is_file() else None
        if of_table:
            found = check_release_table(given["released"], *public, query=given["query"], **kept)
        else:
            found = check_file(given["released"], *public, statement=given["statement"], **kept)
        if (place := given.get("place")) is not None:
            found = found.beside([(WRONG, "folder", line) for line in place.others()])
    if as_json:
        print_json(found.document())
    else:
        for line in found.lines:
            click.echo(" " * (len(line) - len(line.lstrip())) + one_line(line))
    return found.code
