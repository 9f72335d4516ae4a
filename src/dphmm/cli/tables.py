"""dphmm import, dphmm export and dphmm split: tables in other formats, and in two parts.

Trajectories of other formats are read as one table. A released file becomes points, for maps, or a table in another
format. The people of a table are split in two, so that a model is not fitted to those who are released.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from dphmm.cli.console import REJECTED, Console, fields_named, print_json, reworded
from dphmm.cli.help import CONTEXT, Command, Kinds
from dphmm.cli.options import (
    ONE_OF_MANY,
    F,
    OneOf,
    duration,
    force,
    messages,
    new_output,
    opened,
    output,
    spelling,
    spelling_of,
    together,
)
from dphmm.errors import InvalidInput
from dphmm.setup.releasing import check_spelling
from dphmm.statement.files import changed_words, copy_release, load_statement, statement_path
from dphmm.storage.case_names import names_path
from dphmm.storage.fits import split_file
from dphmm.storage.geo_files import PLACES, write_released
from dphmm.storage.importers import DOCUMENTS, RECIPES, import_trajectories
from dphmm.storage.importers.folders import list_left_out
from dphmm.storage.inputs import checked_input, steady
from dphmm.storage.layouts import TRANSITIONS
from dphmm.storage.private_tables import rejected_path
from dphmm.storage.release_folder import folder_of
from dphmm.storage.tables import table_format
from dphmm.storage.trajectories import save_trajectories
from dphmm.storage.xes_files import write_xes

#: Columns that a table may name, and what they are for.
_COLUMNS = {
    "user": "who",
    "time": "when: timestamps with a time zone; of intervals and trips two columns: START,END",
    "order": "which row of a user comes first, where there are no times",
    "trip": "a number or name per trip: a model is not fitted across trips",
    "state": "the name of a state, instead of a place; of trips START,END",
    "lat": "latitude in degrees; of trips START,END",
    "lon": "longitude in degrees; of trips START,END",
}


@click.group("import", cls=Kinds, context_settings=CONTEXT)
def import_() -> None:
    """Read trajectories of other formats into a table: user, t (UTC), lat, lon or state, trip, step.

    Rows that cannot be read are counted by reason and listed, by line and without their values, in
    OUT.rejected.csv, which only you can read (exit 3).
    """


def _column_options(*names: str) -> Callable[[F], F]:
    return together(*(click.option(f"--{name}-column", metavar="COL", help=_COLUMNS[name]) for name in names))


_common = together(click.argument("source", metavar="SRC"), output("trajectories.parquet"), force, messages)
#: Whose rows they are.
_whose = together(
    click.option("--user", "user_name", metavar="NAME", help="All rows are of one person."),
    click.option("--user-from", metavar="file-name|folder-name", help="The user of all rows of a file is in its name."),
    click.option("--user-pattern", metavar="REGEX", help="The user is its first group in names of files that match."),
    spelling,
)
_zones = together(
    click.option("--timezone", metavar="ZONE", help="Times without a zone are its clock's: UTC, Europe/Berlin."),
    click.option("--fold", metavar="first|second", help="The hour that is meant where clocks show one twice."),
)
#: How times are written.
_times = together(
    click.option(
        "--time-format",
        metavar="FORMAT",
        help="iso, unix-s, unix-ms, unix-us, or as %d/%m/%Y %H:%M  [default: iso, and Unix times of a plain unit]",
    ),
    _zones,
)
_no_times = click.option(
    "--no-times", is_flag=True, default=None, help="There are no times: rows are in the order of the file."
)
#: How a text is cut into rows, whose they are, and how times are written.
_text_options = together(
    click.option("--names", metavar="A,B,...", help="The names of the columns, for a text without a header."),
    click.option(
        "--delimiter",
        metavar="CHAR",
        help="What separates cells: comma, semicolon, tab, space (several are one), tabs, or a character.",
    ),
    click.option("--decimal", metavar="point|comma", help="Before the fraction of degrees: comma of 52,5."),
    click.option("--comment", metavar="SIGN", help="Lines that begin with it are no rows: #"),
    click.option("--skip-lines", type=int, metavar="N", help="Lines at the start that are no rows."),
    click.option("--encoding", metavar="NAME", help="Of a text that is not UTF-8: latin-1, cp1252, utf-16."),
    _whose,
    _times,
)


@import_.command("intervals", cls=Command, context_settings=CONTEXT)
@_common
@click.option("--step", required=True, metavar="TIME", help="One row per step of this length: 5min.")
@_column_options("user", "time", "state")
@click.option("--gap-label", metavar="NAME", help="The state of steps between two intervals that none covers.")
@_text_options
def intervals(**given: Any) -> int:
    """Intervals with start, end and label, as a state per step: activity logs, time-use surveys, careers.

    A step has the label of the interval that covers its beginning; of several the one that began last.
    """
    duration(given["step"], "--step")
    return _run("intervals", given)


def _command(name: str, text: str, *options: Callable[[Any], Any]) -> None:
    """A command that gives its options to the importer of its name."""

    def run(**given: Any) -> int:
        return _run(name, given)

    run.__doc__ = text
    import_.command(name, cls=Command, context_settings=CONTEXT)(together(_common, *options)(run))


_command(
    "csv",
    "Any rows: text (.csv, .txt, ..., packed by gzip), .parquet, or a folder or archive (.zip, .tar) of texts.",
    _column_options("user", "time", "order", "trip", "state", "lat", "lon"),
    _text_options,
    _no_times,
)
_command(
    "events",
    """Cases of an event log (.xes, or a table), a session, a career: steps are positions.

    Rows of a case are in the order of their times, ties as they stand. OUT has no times, only the moments by which the
    ledger knows a row, and cases have random names. The table of names is for you alone.
    """,
    _column_options("user", "time", "order", "state"),
    click.option("--columns", metavar="A:B", help="First and last column of states, in a wide table."),
    click.option(
        "--length", type=int, metavar="N", help="Every case has N rows, END after its last event; public: choose it."
    ),
    click.option(
        "--lifecycle", type=OneOf(TRANSITIONS), help="Events that are read, by transition.  [default: complete]"
    ),
    click.option("--case-names", type=OneOf(["random", "kept"]), default="random", show_default=True, help="In OUT."),
    click.option(
        "--names-file", metavar="FILE", help="Random names; known cases keep theirs  [default: OUT.names.csv]"
    ),
    _text_options,
    _no_times,
)
_command(
    "geo",
    "Points of .geojson, .gpkg, .shp, .fgb or .gpx, or a folder or archive of .gpx; all but GPX need 'dphmm[geo]'.",
    _column_options("user", "time", "order", "trip", "state"),
    _whose,
    _times,
    click.option("--crs", metavar="CRS", help="Coordinates of a file that does not say them: EPSG:25833."),
    _no_times,
)
_command("geolife", "Geolife GPS Trajectories 1.3: a folder, .tar, .tar.gz or .zip with Data/USER/Trajectory/*.plt.")
_command(
    "trips",
    """Trips with origin and destination in one row, as two rows: shared bikes, taxis.

    Columns of Citi Bike, Divvy and the taxis of New York are known by name. With --each-trip what is promised to a
    person is promised to a trip: somebody who makes k of them may lose k times as much.
    """,
    _column_options("user", "time", "state", "lat", "lon"),
    click.option("--each-trip", is_flag=True, help="Each trip is of a person of its own, called by its row's number."),
    _text_options,
)
#: Options that registered formats have beside columns.
_GROUPS = {"user": _whose, "times": _times, "timezone": _zones, "no_times": _no_times}
for _name, _kind in (DOCUMENTS | RECIPES).items():
    _columns = [option.removesuffix("_column") for option in _kind.options if option.endswith("_column")]
    _groups = [_GROUPS[option] for option in _kind.options if option in _GROUPS]
    _command(_name, _kind.help, _column_options(*_columns), *_groups)


@import_.command("sequences", cls=Command, context_settings=CONTEXT)
@_common
@_column_options("user")
@spelling
@click.option("--columns", metavar="A:B", help="First and last column of states, in a wide table.")
@click.option("--no-names", is_flag=True, help="A .seq file begins with a sequence, not with the names of categories.")
def sequences(no_names: bool, **given: Any) -> int:
    """State sequences: MSNBC's .seq, or a wide table with one person a row and one step a column."""
    return _run("sequences", {**given, "names": not no_names, "spelling": spelling_of(given["spelling"])})


_FIELDS = {
    "columns": "--columns", "path": "SRC", "time": "--time-column", "user": "--user-column", "delimiter": "--delimiter",
    "comment": "--comment", "encoding": "--encoding", "names": "--names", "step": "--step", "timezone": "--timezone",
    "crs": "--crs", "source": "SRC", "names_file": "--names-file",
    "length": "--length", "lifecycle": "--lifecycle", "each_trip": "--each-trip", "user_name": "--user",
    **{f"{role}_column": f"--{role}-column" for role in ("time", "state", "lat", "lon")},
}  # fmt: skip


def _run(name: str, given: dict[str, Any]) -> int:

    source, out, as_json = given.pop("source"), given.pop("output"), given.pop("as_json")
    console = Console(given.pop("quiet"))
    table_format(out, "-o")
    inputs = [source] if Path(source).is_file() else []
    replace = given.pop("force")
    for path in (out, rejected_path(out)):
        new_output(path, inputs, replace)
    if name == "events" and given["names_file"] is None:
        given["names_file"] = names_path(out)
    fields = _FIELDS | ({"names": "--no-names"} if name == "sequences" else {})
    with console.progress(f"import {name}") as progress, fields_named(fields):
        imported = import_trajectories(source, name, progress=progress, **given)
    if click.get_current_context().find_root().obj == ONE_OF_MANY:
        # What a run imports it releases: from here on each person has one name.
        users, alike = imported.trajectories.users, imported.report.alike
        check_spelling(given.get("spelling"), Path(out).with_name("ledger.db"), users, alike)
    save_trajectories(out, imported.trajectories, inputs=inputs)
    report = imported.report
    list_left_out(rejected_path(out), imported.rejected, source, report.layout)
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


@click.command("export", cls=Command, context_settings=CONTEXT)
@click.argument("released", metavar="OUT")
@output("released.geojson")
@click.option(
    "--what",
    type=OneOf(list(PLACES)),
    help="Whose places the points are: of estimates smoothed or path, the answers themselves (z), or lat and lon "
    "(place)  [default: the first there is]",
)
@force
@messages
def export(released: str, what: str | None, **given: Any) -> None:
    """Write a release of a map as points (.geojson, .gpkg, .fgb), or one of cases as an event log (.xes).

    OUT is its folder, or a table such as dphmm read OUT --estimates writes.

    One point per row that has such a place (of --what z per answer), with all columns of the released file. Nothing is
    added to what is published. The privacy statement beside the file says what is promised of it: pass it on with the
    points. An output that ends in .csv, .csv.gz or .parquet is the same table in that format, with its privacy
    statement beside it. One that ends in .xes is an event log of the likeliest activities (--what path, smoothed or z)
    of the cases in OUT, its folder; where no times were published each position has an invented day, which it says.
    """
    if str(given["output"]).lower().endswith(".xes"):
        _as_log(released, what, given)
        return
    if not Path(released).is_file() or folder_of(released) is not None:
        released = str(opened(released).folder.table)
    new_output(given["output"], [released], given["force"])
    options = {"released": "OUT", "output": "-o", "what": "--what"}
    if str(given["output"]).lower().endswith((".csv", ".csv.gz", ".parquet")):
        with fields_named(options):
            rows = copy_release(released, given["output"])
        if given["as_json"]:
            print_json({"rows": rows, "output": given["output"]})
        Console(given["quiet"]).say([("", f"{rows} rows"), ("", f"written to {given['output']}")])
        return
    with fields_named(options), steady(checked_input(released, "released")) as sha256:
        points, what = write_released(released, given["output"], what=what)
    if given["as_json"]:
        print_json({"points": points, "what": what, "output": given["output"]})
    console = Console(given["quiet"])
    _warn(released, sha256, console)
    console.say([("", f"{points} points of {what}"), ("", f"written to {given['output']}")])


def _as_log(released: str, what: str | None, given: dict[str, Any]) -> None:
    """Write the cases of a release as an event log."""
    chosen = what or "path"
    if chosen not in ("path", "smoothed", "z"):
        raise InvalidInput("--what", chosen, "path, smoothed or z: the activities of an event log")
    release = opened(released)
    if not release.space.has_labels:
        raise InvalidInput("OUT", f"{released}, whose states are no labels", "a release of labels")
    new_output(given["output"], [str(release.folder.table)], given["force"])
    rows = release.rows if chosen == "z" else release.estimates(path=chosen == "path", progress=False)
    names = [None if name != name else name for name in rows[chosen].tolist()]
    times = rows["t"].to_numpy().astype("datetime64[us]").astype("int64") if "t" in rows else None
    made = {"path": "the likeliest path", "smoothed": "the likeliest of each position", "z": "noisy answers"}[chosen]
    columns = rows["user"].tolist(), rows["step"].to_numpy(), names, times
    events = write_xes(given["output"], *columns, f"{made} of a dphmm release, not what happened")
    if given["as_json"]:
        print_json({"events": events, "what": chosen, "output": given["output"]})
    console = Console(given["quiet"])
    console.say([("", f"{events} events: {made}"), ("", f"written to {given['output']}")])
    if times is None:
        console.say([("", "their days are invented, one for each position: no times were published")])


def _warn(released: str, sha256: str, console: Console) -> None:
    """Points are passed on without their statement: say what it does not promise."""
    if not statement_path(released).exists():
        console.warn(f"no privacy statement lies beside {released}: nothing says what is promised of these points")
        return
    statement = load_statement(released)
    changed = changed_words(statement, statement_path(released), released, sha256)
    if changed is not None:
        console.warn(changed)
    if statement.private is False:
        console.warn(f"NOT PRIVATE: {statement.why}")
    elif statement.private == "unknown":
        console.warn(f"it is not known whether these points are private: {statement.why}")


@click.command("split", cls=Command, context_settings=CONTEXT)
@click.argument("trajectories", metavar="TRAJ")
@click.option("--share", default="0.5", show_default=True, metavar="P", help="The chance to be in the first file.")
@click.option("--user-column", default="user", show_default=True, metavar="COL", help="Who.")
@spelling
@click.option("--grow", is_flag=True, help="The first file stays; the second has everybody who is not in it.")
@click.option(
    "-o", "--output", nargs=2, required=True, metavar="MODEL.parquet PEOPLE.parquet", help="The two files to write."
)
@force
@messages
def split(trajectories: str, share: str, user_column: str, grow: bool, **given: Any) -> None:
    """Write the rows of a table into two files, each person in one of them: one to fit, one to release.

    Each person goes to the first file with probability --share, whoever else there is; the system draws. New rows of
    the same people, and new people, need --grow: split anew, people who were fitted on could be released.
    """
    first, second = given["output"]
    for path in (first, second)[grow:]:
        new_output(path, [trajectories], given["force"])
    console = Console(given["quiet"])
    with fields_named({"share": "--share", "first": "-o", "second": "-o"}):
        counts = split_file(
            trajectories,
            share,
            first,
            second,
            user_column=user_column,
            spelling=spelling_of(given["spelling"]),
            grow=grow,
        )
    if given["as_json"]:
        print_json(
            {"people": [counts.first, counts.second], "rows_without_user": counts.nameless, "output": [first, second]}
        )
    console.say(
        [
            ("", f"{counts.first} people in {first}, {counts.second} in {second}"),
            ("", f"{counts.nameless} rows without a user are in neither" if counts.nameless else "no name is in both"),
        ]
    )
