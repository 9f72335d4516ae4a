"""dphmm export: a released file as points, for maps, or as a table in another format."""

from __future__ import annotations

from typing import Any

import click

from dphmm.cli.console import Console, named, print_json
from dphmm.cli.options import CONTEXT, force, messages, new_output, output
from dphmm.errors import InvalidInput
from dphmm.storage.geo_files import PLACES, write_released
from dphmm.storage.statement import copy_release, load_statement, statement_path


@click.command("export", context_settings=CONTEXT)
@click.argument("released", metavar="RELEASED")
@output("released.geojson")
@click.option(
    "--what",
    type=click.Choice(list(PLACES)),
    help="Whose places the points are: where the belief has its mean after each answer (estimate), the answers "
    "themselves (z), of a smoothed file smoothed or path, or lat and lon (place)  [default: the first there is]",
)
@force
@messages
def export(released: str, what: str | None, **given: Any) -> None:
    """Write a released file of a map as points: .geojson, .gpkg or .fgb by the name of the output.

    One point per row that has such a place (of --what z per answer), with all columns of the released file. Nothing is
    added to what is published. The privacy statement beside the file says what is promised of it: pass it on with the
    points. An output that ends in .csv, .csv.gz or .parquet is the same table in that format, with its privacy
    statement beside it.
    """
    new_output(given["output"], [released], given["force"])
    if str(given["output"]).lower().endswith((".csv", ".csv.gz", ".parquet")):
        rows = copy_release(released, given["output"])
        if given["as_json"]:
            print_json({"rows": rows, "output": given["output"]})
        Console(given["quiet"]).say([("", f"{rows} rows"), ("", f"written to {given['output']}")])
        return
    try:
        points, what = write_released(released, given["output"], what=what)
    except InvalidInput as error:
        raise named(error, {"released": "RELEASED", "output": "-o", "what": "--what"}) from None
    if given["as_json"]:
        print_json({"points": points, "what": what, "output": given["output"]})
    console = Console(given["quiet"])
    _warn(released, console)
    console.say([("", f"{points} points of {what}"), ("", f"written to {given['output']}")])


def _warn(released: str, console: Console) -> None:
    """Points are passed on without their statement: say what it does not promise."""
    if not statement_path(released).exists():
        console.warn(f"no privacy statement lies beside {released}: nothing says what is promised of these points")
        return
    statement = load_statement(released)
    if statement.private is False:
        console.warn(f"NOT PRIVATE: {'; '.join(statement.not_private_because)}")
    elif statement.private == "unknown":
        console.warn(f"it is not known whether these points are private: {'; '.join(statement.unknown_because or ())}")
