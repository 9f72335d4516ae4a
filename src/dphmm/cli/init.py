"""dphmm init: a pipeline to begin with, from the name of a data file and the names of its columns; no row is read.

`LAYOUTS` and `ENDINGS` are the standard layouts, each with its importer. Of other tables the columns are found by their
names; of a folder or an archive of texts these are the names of the first. Nobody's column is guessed: a number of the
row never is one, nor a case on a map, and where two columns could be the person the pipeline has a question in its
place, which `dphmm run` does not begin without an answer to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple

import click

from dphmm.cli.console import Console, options_called, print_json
from dphmm.cli.help import CONTEXT, Command
from dphmm.cli.options import force, messages, new_output
from dphmm.cli.pipeline import COLUMN, QUESTIONS
from dphmm.errors import InvalidInput
from dphmm.storage.cells import delimiter_within, lifecycle_column
from dphmm.storage.csv_files import Text, TextMember, csv_names, looks_like_data
from dphmm.storage.importers import RECIPES
from dphmm.storage.importers.folders import is_many, text_member
from dphmm.storage.importers.jsonl import columns_of
from dphmm.storage.inputs import checked_input, members, open_bytes, replacing
from dphmm.storage.json_lines import lines as json_lines
from dphmm.storage.json_lines import written_object
from dphmm.storage.layouts import IMPORTED, Layout
from dphmm.storage.tables import SUFFIXES, column_names
from dphmm.storage.trajectories import looks_like_times


class Known(NamedTuple):
    """A standard layout: its name, the importer, the columns that tell it in any case, and the options to read it.

    ``columns``: of csv those of user, time and state, in this order. ``person``: the line that asks for the person,
    if the layout does not say it. ``zone``: True if times may lack their zone. ``on_map``: True if its states are
    places. ``timed``: True if its rows have times. ``noun``: the noun for a subject of its rows, if no person.
    """

    called: str
    kind: str
    columns: tuple[str, ...] = ()
    person: str = ""
    zone: bool = False
    on_map: bool = True
    timed: bool = True
    noun: str = ""


_TRIP_OF = f'user-column = "{COLUMN}"  # who made a trip? each-trip = true in its place: nothing links the trips of one'
_FILE_OF = f'user = "{QUESTIONS["user"]}"  # whose file is it? user-from = "file-name" or "folder-name" if that says it'
_POINT_OF = f'user-column = "{COLUMN}"  # which property is the person? user = "NAME" in its place if all are of one'
_ONE_PERSON = 'user = "NAME" in its place if all are of one person'
_FILES_OF = f'{_ONE_PERSON}; user-from = "file-name" or "folder-name" if that says whose they are'
_ROW_OF = "user-column = false in its place if each row is another person"
_ZONE = '# timezone = "Europe/Berlin"  # of times that have no zone; or "UTC"'
_NO_TIMES = (
    "no-times = true  # no column is called a time: rows stay in the order of the file. If one has times: time-column "
    'in place of this, step in [fit], and in [plan] per = "1d" in place of steps'
)
_LOG = Known(
    "an event log",
    "events",
    ("case:concept:name", "time:timestamp", "concept:name"),
    zone=True,
    on_map=False,
    timed=False,
    noun="case",
)
#: Tables, those that an importer knows by the same names first. Of several that fit the first counts.
LAYOUTS = (
    *(
        Known(recipe.help, kind, dialect[:4], zone="timezone" in recipe.options, noun=recipe.noun)
        for kind, recipe in RECIPES.items()
        for dialect in recipe.dialects
    ),
    Known("bike trips", "trips", ("started_at", "ended_at", "start_lat", "start_lng", "end_lat"), _TRIP_OF, True),
    Known("bike trips", "trips", ("starttime", "stoptime", "start station latitude"), _TRIP_OF, True),
    Known("taxi trips", "trips", ("PULocationID", "DOLocationID"), _TRIP_OF, True, on_map=False),
    Known("taxi trips of Porto", "porto", ("TAXI_ID", "TRIP_ID", "TIMESTAMP", "POLYLINE"), noun="vehicle"),
    _LOG,
)
#: Files that are no tables, by how their names end.
ENDINGS = {
    (".xes", ".xes.gz"): _LOG._replace(columns=(), zone=False),
    (".kml",): Known("KML", "kml", person=f'{_FILE_OF}; or user-column = "name": that of a Placemark says it'),
    (".gpx",): Known("GPX", "geo", person=_FILE_OF),
    (".geojson", ".gpkg", ".shp", ".fgb"): Known("points", "geo", person=_POINT_OF),
    ("records.json", "timeline.json", "location-history.json"): Known("Google", "google", person=_FILE_OF),
    (".rec",): Known("OwnTracks", "owntracks", person=_FILE_OF, noun="device"),
    (".seq", ".seq.gz"): Known("a sequence a line, each of another person", "sequences", on_map=False, timed=False),
}
#: Those that are read of a folder or an archive of them.
OF_MANY = {
    **{ends: known for ends, known in ENDINGS.items() if known.called != "points" and known.kind != "sequences"},
    (".plt",): Known("Geolife", "geolife"),
}
#: JSON lines have the names of their first line.
_LINES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
#: Nouns for who or what moves, whatever of `_NAMING` stands beside them; names of a number of the row.
_MOVING = re.compile(
    "(?:user|person|subject|individual|participant|respondent|customer|client|visitor|member|patient|student|employee|"
    "driver|rider|passenger|owner|agent|account|household|vehicle|car|cab|taxi|bus|truck|ship|vessel|boat|animal|tag|"
    "collar|device|phone|bike|case)(?:id)?|mmsi|imei|uid"
)
#: Who a row of an event log is about; on a map a case is what happened there: a crime, an accident.
_CASE = re.compile("case(?:id)?")
_ACTIVITIES = ("activity", "concept:name", "event", "task", "action")
#: Sessions of a site begin at any time, so they are asked by position; beside a user they are trips of that user.
_SESSION = re.compile("(?:session|visit)(?:id)?")
_PAGES = ("page", "url")
_NAMING = re.compile("ids?|identifier|key|code|name|number|no|hash|local")
_ROW_NUMBER = re.compile(
    "id|index|idx|record(?: ?id)?|row(?: ?id| number)?|object ?id|[fog]id|uuid|guid|event id|unnamed|seq|no|nr|number"
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
#: Columns of a wide table: months of years, and names that are numbered.
_STEPS = (
    re.compile(r"(?i)()(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\W?\d\d+"),
    re.compile(r"(.*?)\d+"),
)
_LEAST_WIDE = 5
#: Columns that a question about the person names; of more it says none.
_MOST_ASKED = 4


@click.command("init", cls=Command, context_settings=CONTEXT)
@click.argument("data", metavar="DATA")
@click.option("-o", "--output", default="release.toml", show_default=True, metavar="FILE", help="The file to write.")
@force
@messages
def init(data: str, output: str, force: bool, quiet: bool, as_json: bool) -> None:
    """Write a pipeline to begin with, commented, from the names of DATA's columns: no row is looked at.

    Left open as a question: what has to be chosen and may not be taken from the data (the box of the map, the names of
    states), and which column is the person where two could be. dphmm run does not begin before it is answered.
    """
    several = is_many(data)
    source = Path(data) if several and Path(data).is_dir() else checked_input(data, "DATA")
    new_output(output, [source], force)
    name = source.name if source.parent.resolve() == Path(output).parent.resolve() else str(source.resolve())
    with options_called(lambda name: name.replace("SRC", "DATA")):
        first = first_of(source)
    ending = first.name.lower()
    endings = (OF_MANY if several else ENDINGS).items()
    known = next((layout for ends, layout in endings if ending.endswith(ends)), None)
    lines, columns = [f"file = {_toml(name)}"], list[str]()
    if known is None:
        columns, how = header(first)
        lines += [*how, f"# its columns: {', '.join(map(_toml, columns))}"]
        kinds = (
            {layout.kind for layout in LAYOUTS} if not how else {"csv", "trips"} if ending.endswith(SUFFIXES) else {}
        )
        lower = {column.lower() for column in columns}
        fits = (layout for layout in LAYOUTS if layout.kind in kinds)
        known = next((layout for layout in fits if lower.issuperset(map(str.lower, layout.columns))), _log(columns))
    rest = _other(columns, _FILES_OF if several else _ONE_PERSON) if known is None else _standard(known, columns)
    called = [] if known is None or not known.noun else [f'noun = "{known.noun}"  # what one is called in the report']
    names = () if known is not None and known.kind == "events" else (_NAMES,)
    asked = _AT_EACH_ROW if known is not None and known.kind == "trips" else ()
    text = "\n".join([*_HEAD, *lines, *rest, "", "[release]", *names, *asked, *called, _QUERY, "", "[report]"])
    with replacing(output) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")
    if as_json:
        print_json({"output": output})
    Console(quiet or as_json).say([("written", f"{output}: answer what it leaves open, then dphmm run {output}")])


def first_of(source: Path) -> Text:
    """The first file of a standard layout in a folder or an archive, by its ending, else the first text with a line."""
    if not is_many(source):
        return source
    endings = [end for ends in OF_MANY for end in ends]
    by_ending = re.compile(rf"(?i)(?:^|/)(?!\.)[^/]*(?:{'|'.join(map(re.escape, endings))})$")
    for wanted, opened in ((by_ending, TextMember), (IMPORTED.files, text_member)):
        for member in members(source, wanted):
            first = opened(member.name, member.data)
            if wanted is by_ending or first.data.strip():
                return first
    raise InvalidInput("DATA", source.name, f"texts with a header in it (.csv, .txt, ...), or {', '.join(endings)}")


def header(source: Text) -> tuple[list[str], list[str]]:
    """The names of a table's columns, and the lines that say how it is read."""
    ending = source.name.lower()
    if isinstance(source, Path) and ending.endswith(_LINES):
        with open_bytes(source) as file:
            value = written_object(next(json_lines(source.name, file), b""))
        if value is None:
            raise InvalidInput("DATA", source.name, "a JSON object on its first line")
        return columns_of(value), ['kind = "jsonl"']
    if isinstance(source, Path) and not ending.endswith(SUFFIXES):
        # What else there is has columns only once an importer has read it.
        ends = ", ".join([*_LINES, *(end for each in ENDINGS for end in each)])
        expected = f"a table ({', '.join(SUFFIXES)}) or {ends}: dphmm import FORMAT makes one of other files"
        raise InvalidInput("DATA", source.name, expected)
    columns, how = column_names(source) if isinstance(source, Path) else csv_names(source), list[str]()
    if ending.endswith(".parquet"):
        return columns, how
    if (delimiter := delimiter_within(columns)) is not None:
        columns = csv_names(source, Layout().changed(delimiter=delimiter))
        how = [f"delimiter = {_toml(delimiter)}"]
    counted = _counted(columns)
    if looks_like_data([name for name in columns if name.strip() and name not in counted]):
        got = f"{source.name}, whose first row looks like data"
        raise InvalidInput("DATA", got, "a header; or dphmm import csv --names, which reads a file without one")
    return columns, how


def _log(columns: Sequence[str]) -> Known | None:
    """The layout of a table with one column of cases, times, and a column of activities, whatever they are called.

    Sessions with pages are cases too, if no column names somebody else.
    """
    words = {name: [word for word in _words(name) if not _NAMING.fullmatch(word)] for name in columns}
    times = [name for name in columns if looks_like_times(name)]
    of_sessions = not any(map(_moves, columns))
    naming, states, noun = (_SESSION, _PAGES, "session") if of_sessions else (_CASE, _ACTIVITIES, "case")
    cases = [name for name in columns if words[name] and all(map(naming.fullmatch, words[name]))]
    activity = next((name for name in columns if name.lower() in states), None)
    if len(cases) != 1 or not times or activity is None:
        return None
    return _LOG._replace(columns=(cases[0], times[0] if len(times) == 1 else "", activity), noun=noun)


def _standard(known: Known, columns: Sequence[str]) -> list[str]:
    """Everything of a standard layout that follows the file."""
    lower = {column.lower(): column for column in columns}
    lines = [f'kind = "{known.kind}"  # {known.called}', *[known.person] * bool(known.person), *[_ZONE] * known.zone]
    if known.kind == "events":
        lines += _CASES
        lines += [_TRANSITION] * (not columns or lifecycle_column(columns) is not None)
    if known.kind in ("csv", "events") and columns:
        times = [name for name in columns if looks_like_times(name)]
        for role, name in zip(("user", "time", "state"), known.columns, strict=True):
            lines += _column(f"{role}-column", lower.get(name.lower()), "", times)
    states = _MAP if known.on_map else _labels(known.timed)
    schedule = [*_PLAN, *(_OF_A_DAY if known.timed else _OF_A_SEQUENCE)]
    return [*lines, *states, *(_NO_PLAN if known.kind == "trips" else schedule)]


def _other(columns: Sequence[str], otherwise: str) -> list[str]:
    """Everything that follows the file, of a table whose columns are found by their names; ``otherwise``: of whom."""
    lower = {name.lower(): name for name in columns}

    def first(*names: str) -> str | None:
        return next((lower[name] for name in names if name in lower), None)

    def ends_in(*words: str) -> str | None:
        fit = [name for name in columns if _words(name)[-1:] and _words(name)[-1] in words]
        return fit[0] if len(fit) == 1 else None

    lat = first("lat", "latitude", "y") or ends_in("lat", "latitude")
    lon = first("lon", "lng", "long", "longitude", "x") or ends_in("lon", "lng", "long", "longitude")
    on_map = lat is not None and lon is not None
    times = [name for name in columns if looks_like_times(name) or _words(name)[-1:] == ["at"]]
    time = first("t", "time", "timestamp", "datetime", "t_local", "date") or (times[0] if len(times) == 1 else None)
    order = first("step", "order", "seq", "index")
    if not on_map and (steps := _wide(columns)) and set(steps).issuperset(times):
        return [
            'kind = "sequences"  # one person a row, one step a column',
            f"columns = {_toml(f'{steps[0]}:{steps[-1]}')}",
            *_person([name for name in columns if name not in steps], _ROW_OF, default="", wide=True),
            *_labels(timed=False),
            *_PLAN,
            f"steps = {len(steps)}  # the budget is of a whole row",
        ]
    timed = on_map or time is not None or bool(times)
    state = None if on_map else first("state", "page", "url", "label", "activity", "place")
    used = {lat, lon, state, None if times else order, *times}
    no_case = [name for name in columns if on_map and any(map(_CASE.fullmatch, _words(name)))]
    lines = _person([name for name in columns if name not in used], otherwise, never_alone=no_case)
    if timed:
        lines += [*_column("time-column", time, "t", times), _ZONE]
    else:
        lines += [_NO_TIMES if order is None else f"order-column = {_toml(order)}  # rows without times"]
    if on_map:
        lines += [*_column("lat-column", lat, "lat"), *_column("lon-column", lon, "lon"), *_MAP]
    else:
        lines += [*_column("state-column", state, "state"), *_labels(timed)]
    return [*lines, *_PLAN, *(_OF_A_DAY if timed else _OF_A_SEQUENCE)]


def _labels(timed: bool) -> list[str]:
    """The split, the fit and the policy of names of states; without times every row is a step."""
    other = ("# slots", "# max") if timed else ("step", "max")
    return [line for line in _LABELS if not line.startswith(other)]


def _person(
    columns: Sequence[str],
    otherwise: str,
    default: str = "user",
    never_alone: Sequence[str] = (),
    wide: bool = False,
) -> list[str]:
    """The line that names the column of the person, or asks for it with the columns that could be it.

    ``otherwise``: the other possible answers than a column. ``default``: the column that the importer reads unnamed.
    ``never_alone``: columns that are asked for, whatever their names. ``wide``: a row is a whole sequence, so a number
    of the row may be the person.
    """
    moving = [name for name in columns if _moves(name) and name not in never_alone]
    if len(moving) == 1:
        return _column("user-column", moving[0], default)
    numbers = [name for name in columns if not name.strip() or _ROW_NUMBER.fullmatch(" ".join(_words(name)))]
    likely = moving or [name for name in columns if name not in numbers]
    asked = _listed(likely) if len(likely) <= _MOST_ASKED else "one of its columns"
    if numbers and wide:
        asked, otherwise = f"{_listed(numbers)} if each row is another person", f"else {asked}"
    elif numbers:
        asked += f"; {_listed(numbers)} may number the rows"
    return [f'user-column = "{COLUMN}"  # who is a row about? {asked}; {otherwise}']


def _moves(name: str) -> bool:
    """True if a column is named after somebody or something that moves: user_id, vehicle.id, customerName."""
    words = [word for word in _words(name) if not _NAMING.fullmatch(word)]
    return bool(words) and all(map(_MOVING.fullmatch, words))


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def _wide(columns: Sequence[str]) -> list[str]:
    """The columns of a wide table that are steps: neighbours that are named alike, and counted or dated."""

    def family(name: str) -> str:
        matches = (form.fullmatch(name) for form in _STEPS)
        return next((match[1] for match in matches if match), f"{name}, which is no step")

    longest = max((list(run) for _, run in groupby(columns, family)), key=len, default=[])
    return longest if len(longest) >= _LEAST_WIDE else []


def _counted(columns: Sequence[str]) -> list[str]:
    """The steps of a wide table whose names count up one by one; numbers of a row of data seldom do."""
    steps = _wide(columns)
    numbers = [float(re.findall(r"\d+", name)[-1]) for name in steps]
    return steps if all(after - before == 1 for before, after in pairwise(numbers)) else []


def _toml(text: str) -> str:
    """A text as TOML has it, on one line whatever is in it."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _listed(names: Sequence[str]) -> str:
    return " or ".join(map(_toml, names)) or "no column says it"


def _column(option: str, name: str | None, default: str, likely: Sequence[str] = ()) -> list[str]:
    if name == default:
        return []
    asked = f"which one? {_listed(likely)}" if likely else "which one?"
    return [f'{option} = "{COLUMN}"  # {asked}'] if name is None else [f"{option} = {_toml(name)}"]


_NAMES = "# names of people are published as they stand in the file: give it pseudonyms"
_HEAD = (
    "# A pipeline from a data file to a report: dphmm run reads it. Members of a table are options of its command",
    "# (dphmm import csv -h, dphmm model grid -h, ...), without their dashes.",
    'folder = "out"  # everything is written here',
    "",
    "[data]",
)
_MAP = (
    "",
    "[model]  # made from the map alone: nobody's data is in it",
    'kind = "grid"',
    f'bbox = "{QUESTIONS["bbox"]}"  # in degrees; public: choose it, never take it from the data',
    'cell = "500m"  # smaller cells: nearer answers at best, and longer computing',
    'step = "10min"  # about as far apart as the rows are: a step has one answer at most',
    'max-speed = "60km/h"  # nobody moves faster',
    "",
    "[policy]",
    'kind = "radius"',
    'covers = "1km"  # all places up to so far apart are hidden from each other',
)
_LABELS = (
    "",
    "[split]  # half of the people are fitted on, the others are released",
    "share = 0.5",
    "",
    "[fit]",
    'state-column = "state"',
    'answers = "labels"  # names, also where they are numbers; "ordinal" if these are quantities',
    f'step = "{QUESTIONS["step"]}"  # about as far apart as the rows of a person: "1min" of clicks, "1h" of activities',
    "# The next line is worth this: whether somebody is fitted on changes the odds of any model by at most 2.72 times.",
    "# Without it the model can show single moves of single people.",
    "epsilon = 1",
    "max-length = 100  # so many steps of a person count; public: more of them mean more noise",
    "# max-length = 20  # so many first rows of each are fitted on, else [plan] steps; public: more mean more noise",
    '# slots = "1, 2, 3, 4, 5, 6+"  # other moves at each position, up to the last that is asked, from many people',
    'states-file = "states.csv"  # public: a column state with the names there can be, whoever has them',
    "",
    "[policy]",
    'kind = "complete"  # all states are hidden from each other',
)
_CASES = (
    "# length = 20  # so many rows of each case, END after its last event: nothing but answers says how long it is.",
    "# Choose it, never take it from the data; END is a name of states-file, and [plan] steps is the same number",
    '# case-names = "kept"  # in place of random names: names and the order of cases tell when they began',
)
_TRANSITION = '# lifecycle = "start"  # or "all": without it complete events count, and those without a transition'
_PLAN = (
    "",
    "[plan]  # when to ask: a budget becomes a schedule",
    "path-epsilon = 12  # what all answers may lose together",
)
_QUERY = "# [query] with epsilon = 0.5 adds noisy counts of all people in each state, at that epsilon more"
_OF_A_DAY = (
    'per = "1d"',
    '# hours = "7-21"  # in which hours have people rows? Without it answers are spread over all 24',
    '# zone = "Europe/Berlin"  # whose midnight begins a day; UTC without it',
)
#: A schedule by the clock asks at steps at which few trips begin or end.
_NO_PLAN = (
    "",
    "# [plan]  # in place of path-epsilon, per and epsilon in [release]: asks at steps of these hours of the clock",
    "# path-epsilon = 12  # at which most trips have no row, and no answer",
    '# per = "1d"',
    '# hours = "7-21"',
)
_AT_EACH_ROW = (
    "path-epsilon = 4  # what all answers may lose together",
    _OF_A_DAY[0],
    _OF_A_DAY[2],
    "epsilon = 2  # of each row: a trip has two. For up to N trips of a person a day: 2 / N",
)
_OF_A_SEQUENCE = (
    f'steps = "{QUESTIONS["steps"]}"  # the budget is of so many rows; public: choose it, never take it from the data',
)
