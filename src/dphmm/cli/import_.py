"""dphmm import: trajectories of other formats, as one table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from dphmm.cli.console import REJECTED, Console, named, print_json, reworded
from dphmm.cli.options import CONTEXT, F, duration, force, messages, new_output, output
from dphmm.errors import InvalidInput
from dphmm.storage.importers import RECIPES, import_trajectories
from dphmm.storage.private_tables import rejected_path, write_rejected
from dphmm.storage.tables import table_format
from dphmm.storage.trajectories import save_trajectories

#: Columns that a table may name, and what they are for.
_COLUMNS = {
    "user": "who",
    "time": "when: timestamps with a time zone",
    "order": "which row of a user comes first, where there are no times",
    "trip": "a number or name per trip: a model is not fitted across trips",
    "state": "the name of a state, instead of a place",
    "lat": "latitude in degrees",
    "lon": "longitude in degrees",
    "start": "when an interval begins",
    "end": "when it ends",
    "label": "the state that it is of",
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


def _user_and_times(command: F) -> F:
    """Whose rows they are, and how times are written."""
    for option in (
        click.option("--assume-utc", is_flag=True, default=None, help="Times without a zone are UTC."),
        click.option("--timezone", metavar="ZONE", help="Times without a zone are local: Europe/Berlin."),
        click.option(
            "--time-format",
            metavar="FORMAT",
            help="iso, unix-s, unix-ms, unix-us, or as %d/%m/%Y %H:%M  [default: iso, and Unix times of a plain unit]",
        ),
        click.option("--user-pattern", metavar="REGEX", help="Its first group is the user; other files are left out."),
        click.option(
            "--user-from", metavar="file-name|folder-name", help="The user of all rows of a file is in its name."
        ),
        click.option("--user", "user_name", metavar="NAME", help="All rows are of one person."),
    ):
        command = option(command)
    return command


def _text_options(command: F) -> F:
    """How a text is cut into rows, whose they are, and how times are written."""
    command = _user_and_times(command)
    for option in (
        click.option("--encoding", metavar="NAME", help="Of a text that is not UTF-8: latin-1, cp1252, utf-16."),
        click.option("--skip-lines", type=int, metavar="N", help="Lines at the start that are no rows."),
        click.option("--comment", metavar="SIGN", help="Lines that begin with it are no rows: #"),
        click.option(
            "--delimiter",
            metavar="CHAR",
            help="What separates cells: comma, semicolon, tab, space (several are one), tabs, or a character.",
        ),
        click.option("--names", metavar="A,B,...", help="The columns, of a text whose first row is none of names."),
    ):
        command = option(command)
    return command


@import_.command("geolife", context_settings=CONTEXT)
@_common
def geolife(**given: Any) -> int:
    """Geolife GPS Trajectories 1.3: a folder, .tar, .tar.gz or .zip with Data/USER/Trajectory/*.plt."""
    return _run("geolife", given)


@import_.command("csv", context_settings=CONTEXT)
@_common
@_column_options("user", "time", "order", "trip", "state", "lat", "lon")
@_text_options
@click.option("--no-times", is_flag=True, default=None, help="There are no times: rows are in the order of the file.")
def csv_table(**given: Any) -> int:
    """Any rows: text (.csv, .txt, ..., packed by gzip), .parquet, or a folder or archive (.zip, .tar) of texts."""
    return _run("csv", given)


@import_.command("intervals", context_settings=CONTEXT)
@_common
@click.option("--step", required=True, metavar="TIME", help="One row per step of this length: 5min.")
@_column_options("user", "start", "end", "label")
@click.option("--gap-label", metavar="NAME", help="The state of steps between two intervals that none covers.")
@_text_options
def intervals(**given: Any) -> int:
    """Intervals with start, end and label, as a state per step: activity logs, time-use surveys, careers.

    A step has the label of the interval that covers its beginning; of several the one that began last.
    """
    duration(given["step"], "--step")
    return _run("intervals", given)


@import_.command("geo", context_settings=CONTEXT)
@_common
@_column_options("user", "time", "order", "trip", "state")
@_user_and_times
@click.option("--crs", metavar="CRS", help="Coordinates of a file that does not say them: EPSG:25833.")
@click.option("--no-times", is_flag=True, default=None, help="There are no times: rows are in the order of the file.")
def geo(**given: Any) -> int:
    """Points of .geojson, .gpkg, .shp, .fgb or .gpx; needs pip install 'dphmm[geo]'."""
    return _run("geo", given)


def _recipe_command(name: str) -> click.Command:
    """The command of a published set: its options are those that its recipe has."""
    recipe = RECIPES[name]

    def run(**given: Any) -> int:
        return _run(name, given)

    run.__doc__ = recipe.help
    columns = [option.removesuffix("_column") for option in recipe.options if option.endswith("_column")]
    return import_.command(name, context_settings=CONTEXT)(_common(_column_options(*columns)(run)))


for _name in RECIPES:
    _recipe_command(_name)


@import_.command("sequences", context_settings=CONTEXT)
@_common
@_column_options("user")
@click.option("--columns", metavar="A:B", help="First and last column of states, in a wide table.")
@click.option("--no-names", is_flag=True, help="A .seq file begins with a sequence, not with the names of categories.")
def sequences(no_names: bool, **given: Any) -> int:
    """State sequences: MSNBC's .seq, or a wide table with one person a row and one step a column."""
    return _run("sequences", {**given, "names": not no_names})


_FIELDS = {
    "columns": "--columns", "path": "SRC", "time": "--time-column", "user": "--user-column", "delimiter": "--delimiter",
    "comment": "--comment", "encoding": "--encoding", "names": "--names", "step": "--step", "timezone": "--timezone",
    "crs": "--crs", "source": "SRC",
}  # fmt: skip


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
            imported = import_trajectories(source, name, progress=progress, **given)
        except InvalidInput as error:
            raise named(error, _FIELDS | ({"names": "--no-names"} if name == "sequences" else {})) from None
    save_trajectories(out, imported.trajectories, inputs=inputs)
    report = imported.report
    write_rejected(rejected_path(out), imported.rejected, source, report.layout)
    if as_json:
        print_json(
            {
                "format": name,
                "files": report.files,
                "rows": report.rows,
                "kept": report.kept,
                "users": report.users,
                "dropped": dict(report.dropped),
                "notes": list(map(reworded, report.notes)),
                "warnings": list(report.warnings),
                "output": out,
            }
        )
    console.say([("", reworded(line)) for line in report.lines()])
    console.say([("", f"written to {out}")])
    for warning in report.warnings:
        console.warn(reworded(warning))
    # An empty cell of a wide table is a gap, not a row that cannot be read.
    return REJECTED if len(imported.rejected) or "ragged_row" in report.dropped else 0
