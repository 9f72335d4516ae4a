"""dphmm import: trajectories of other formats, as one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dphmm.cli.console import Console, print_json
from dphmm.cli.options import CONTEXT, F, force, messages, new_output, output
from dphmm.cli.outcomes import REJECTED, named, reworded
from dphmm.errors import InvalidInput
from dphmm.storage.csv_files import Layout
from dphmm.storage.importers import IMPORTERS
from dphmm.storage.importers.rows import GOWALLA
from dphmm.storage.owner_view import rejected_path, write_rejected
from dphmm.storage.tables import table_format
from dphmm.storage.trajectories import save_trajectories

if TYPE_CHECKING:
    from dphmm.storage.csv_files import Layout

#: Columns that a table may name, and what they are for.
_COLUMNS = {
    "user": "who",
    "time": "when: timestamps with a time zone",
    "order": "which row of a user comes first, where there are no times",
    "trip": "a number or name per trip: a model is not fitted across trips",
    "state": "the name of a state, instead of a place",
    "lat": "latitude in degrees",
    "lon": "longitude in degrees",
}


@click.group("import", context_settings=CONTEXT)
def import_() -> None:
    """Read trajectories of other formats into a table: user, t (UTC), lat, lon or state, trip, step.

    Rows that cannot be read are counted by reason and listed, by line and without their values, in
    OUT.rejected.csv, which only you can read (exit 3).
    """


def _common(command: F) -> F:
    source = click.argument("source", metavar="SRC")
    return source(output("trajectories.parquet")(force(messages(command))))


def _column_options(*names: str) -> Callable[[F], F]:
    def add(command: F) -> F:
        for name in reversed(names):
            command = click.option(f"--{name}-column", metavar="COL", help=_COLUMNS[name])(command)
        return command

    return add


@import_.command("geolife", context_settings=CONTEXT)
@_common
def geolife(**given: Any) -> int:
    """Geolife GPS Trajectories 1.3: a folder, .tar, .tar.gz or .zip with Data/USER/Trajectory/*.plt."""
    return _run("geolife", given)


@import_.command("gowalla", context_settings=CONTEXT)
@_common
def gowalla(**given: Any) -> int:
    """Gowalla check-ins in SNAP's layout: .txt or .txt.gz."""
    return _run("gowalla", given)


@import_.command("csv", context_settings=CONTEXT)
@_common
@_column_options("user", "time", "order", "trip", "state", "lat", "lon")
@click.option("--assume-utc", is_flag=True, help="Times without a zone are UTC.")
@click.option("--timezone", metavar="ZONE", help="Times without a zone are local: Europe/Berlin.")
@click.option(
    "--delimiter", default=",", show_default=True, metavar="CHAR", help="What separates cells: ; or | or tab."
)
def csv_table(delimiter: str, **given: Any) -> int:
    """Any table of rows: .csv, .csv.gz or .parquet."""
    return _run("csv", {**given, "delimiter": _TABS.get(delimiter, delimiter)})


@import_.command("sequences", context_settings=CONTEXT)
@_common
@_column_options("user")
@click.option("--columns", metavar="A:B", help="First and last column of states, in a wide table.")
@click.option("--no-names", is_flag=True, help="A .seq file begins with a sequence, not with the names of categories.")
def sequences(no_names: bool, **given: Any) -> int:
    """State sequences: MSNBC's .seq, or a wide table with one person a row and one step a column."""
    return _run("sequences", {**given, "names": not no_names})


_TABS = {"tab": "\t", "\\t": "\t"}


def _layout(name: str, given: Mapping[str, Any]) -> Layout | None:
    """How a text that is not plain CSV is cut into rows; None for CSV, and for what has no lines of its own."""

    if name == "gowalla":
        return GOWALLA
    return Layout(given["delimiter"]) if given.get("delimiter", ",") != "," else None


def _run(name: str, given: dict[str, Any]) -> int:

    source, out, as_json = given.pop("source"), given.pop("output"), given.pop("as_json")
    console = Console(given.pop("quiet"))
    table_format(out, "-o")
    inputs = [source] if Path(source).is_file() else []
    replace = given.pop("force")
    for path in (out, rejected_path(out)):
        new_output(path, inputs, replace)
    with console.progress(f"import {name}") as progress:
        try:
            imported = IMPORTERS[name](source, progress=progress, **given)
        except InvalidInput as error:
            raise named(error, {"columns": "--columns", "names": "--no-names", "path": "SRC"}) from None
    save_trajectories(out, imported.trajectories, inputs=inputs)
    write_rejected(rejected_path(out), imported.rejected, source, _layout(name, given))
    report = imported.report
    if as_json:
        print_json(
            {
                "format": name,
                "files": report.files,
                "rows": report.rows,
                "kept": report.kept,
                "users": report.users,
                "dropped": dict(report.dropped),
                "warnings": list(report.warnings),
                "output": out,
            }
        )
    console.say([("", line) for line in report.lines()])
    console.say([("", f"written to {out}")])
    for warning in report.warnings:
        console.warn(reworded(warning))
    # An empty cell of a wide table is a gap, not a row that cannot be read.
    return REJECTED if len(imported.rejected) or "ragged_row" in report.dropped else 0
