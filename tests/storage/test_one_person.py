"""What one person writes into a file changes nothing that is read or written of anybody else.

Enumerated: small files, and what comes of the others when the lines of one more person, whatever these are, are laid
between theirs: every line at two places every day, in every way in the long tests. Compared are the schema, the cells
and the order of the others' rows in the file that import writes, and which of their lines are rejected and why; and
what fit, release and query take from such a table: rows, steps, trips, states and published times.

A column that is judged as a whole fails here: trips or names that are numbers only if everybody's are, a time zone that
is asked for only if nobody has one, a parser that falls back for all rows because of one, a row that refuses the file.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dphmm.accounting.person import person_key
from dphmm.errors import InvalidInput
from dphmm.states import Grid, StateSpace
from dphmm.states.trajectory import in_steps, public_times, true_states
from dphmm.storage.csv_files import CSV, lines_of_rows
from dphmm.storage.importers import IMPORTERS
from dphmm.storage.tables import convert_frame
from dphmm.storage.trajectories import (
    load_trajectories,
    save_trajectories,
)
from neighbouring_files import first_neighbours, neighbours, placed, text
from storage.importers.test_rows import write_folder, write_tar, write_zip

#: Names that only the added person has; a row whose name cannot be read is nobody's.
ODD_NAMES = (
    b"x", b"7", b"007", b"1.0", b"1e3", b"NA", b"=x", b"'x", b"-1", b"zz", b"nan", b"\xc3\xa9", b'"x ""y"""',
    b"X", b" x ", b"\xef\xbd\x98", b"x\xe2\x80\x8b",
)  # fmt: skip
#: Some of them are spellings of x, and some are no names for this version of Unicode.
SPELLINGS = (b"x", b"X", b" x ", b"\xef\xbd\x98", b"x\xe2\x80\x8b")
ODD_ROWS = (b"x", b" ", b"x,x,x,x,x,x,x", b"%", b"x\0,x", b"\xff\xfe", b'"x', b"x\x0bx")
UNCLOSED = b'"x'


def rows_like(pattern: bytes, cells: dict[bytes, tuple[bytes, ...]]) -> tuple[bytes, ...]:
    """The good row first; then each cell in turn as somebody may write it, every odd name, and rows that are none."""
    good = {name: values[0] for name, values in cells.items()}

    def row(**changed: bytes) -> bytes:
        made = pattern
        for name, value in {**good, **{key.encode(): cell for key, cell in changed.items()}}.items():
            made = made.replace(b"<" + name + b">", value)
        return made

    odd = [row(**{name.decode(): cell}) for name, values in cells.items() for cell in values[1:]]
    names = [row(user=name) for name in ODD_NAMES] + [row(user=name) for name in (b"", b"\xff", b"a\0b", b"u" * 300)]
    shapes = [shape for shape in ODD_ROWS if shape != UNCLOSED]
    return tuple(dict.fromkeys([row(), *odd, *names, *shapes, row() + b",x", row().replace(b",", b"")]))


TIMES = (
    b"2024-05-06T08:07:00Z", b"2024-05-06T08:07:00", b"2024-05-06 08:07:00.123456789Z", b"2024-02-30T08:07:00Z",
    b"", b"2024-05-06T08:07:00+02:00", b"2024-03-31T02:30:00", b"1715000000", b"0001-01-01T00:00:00Z",
    b"9999-12-31T00:00:00Z", b"06/05/2024 08:07", b"2016-12-31T23:59:60Z", b"\xff",
)  # fmt: skip
PLACES = (b"50.015", b"1e999", b"nan", b"", b"+5", b"400", b"-0", b".5", b"1e-999", b"5,0", b"50\xff", b"9" * 40)
STEPS = (
    b"5716321",
    b"+3",
    b"1.5",
    b"",
    b"-2",
    b"9007199254740992",
    b"9007199254740993",
    b"9" * 30,
    b"x",
    b"0",
    b"5716321.0",
)
TRIPS = (b"3", b"home", b"03", b"", b"-1", b"99999999999", b"1.0", b"\xff")
NAMES = (b"b", b"CANARY", b"", b"1", b"1.0", b"\x01", b"n" * 300)
UNIX = (b"1715000000", b"1715000000.5", b"1715000000000", b"5", b"-5", b"9" * 18, b"9" * 19, b"1e9", b"99999999999")
LINES = (b"[[-8.6!41.1]]", b"[]", b"[[-8.6!141.1]]", b"[[-8.6]]", b"[[1!2]![3!4]]", b"", b"[[-8.6!41.1]", b"[[nan!1]]")
TIMED = rows_like(b"<user>,<t>,<lat>,10.02", {b"user": (b"x",), b"t": TIMES, b"lat": PLACES})


CHECK_INS = rows_like(b"<user>,<t>,<lat>,-97.5,3", {b"user": (b"x",), b"t": TIMES, b"lat": PLACES})
PAGE_VIEWS = rows_like(b"<user>,<state>", {b"user": (b"x",), b"state": NAMES})


@dataclass(frozen=True)
class Case:
    """A file of others, and whatever one more person may write into it."""

    header: bytes
    others: tuple[bytes, ...]
    added: tuple[bytes, ...]
    options: dict[str, Any] = field(default_factory=dict)
    users: tuple[str, ...] = ("a", "b")
    kind: str = "csv"
    suffix: str = ".csv"
    file_of: Callable[[bytes, Sequence[bytes]], bytes] = text
    #: Whether a line is added before all others: the first feature of GeoJSON is the header of its names.
    first: bool = True


def features(header: bytes, lines: Sequence[bytes]) -> bytes:
    """GeoJSON with a feature a line."""
    return b'{"type": "FeatureCollection", "features": [' + b",\n".join(lines) + b"]}"


def feature(properties: bytes, coordinates: bytes = b"[10.01, 50.01]") -> bytes:
    point = b'{"type": "Point", "coordinates": ' + coordinates + b"}"
    return b'{"type": "Feature", "properties": {' + properties + b'}, "geometry": ' + point + b"}"


def at(user: bytes, time: bytes, coordinates: bytes = b"[10.01, 50.01]") -> bytes:
    return feature(b'"user": ' + user + b', "t": ' + time, coordinates)


#: Values of JSON that a name or a time may have.
JSON_VALUES = (
    b"null", b"true", b"[1, 2]", b"[]", b'{"a": 1}', b"1.5", b"7.0", b"1e3", b"-0.0", b"9007199254740993", b"9" * 5000,
    b"NaN", b"-Infinity", b'""', b'"9007199254740993"', b'"\\ud83d"', b'"\\u0000"', b'"a\xff"', b'"\x0b"', b'"n\n"',
)  # fmt: skip
JSON_TIMES = (
    *(b'"' + time + b'"' for time in TIMES), b"1715000000", b"1715000000.5", b"1715000000000", b"5", b"1e9",
)  # fmt: skip
JSON_PLACES = (
    b"[1e999, 2]", b"[NaN, 2]", b"[10.01]", b"[]", b"null", b'"10"', b'["10.01", 50.01]', b"[[10.01, 50.01]]",
    b"[10.01, 50.01, 5]", b"[-1e999, 50]", b"[400, 50]", b"{}", b"[" + b"9" * 400 + b", 50]",
)  # fmt: skip
GOOD_TIME = b'"2024-05-06T08:07:00Z"'
ODD_FEATURES = (
    *(at(b'"x"', time) for time in (GOOD_TIME, b'"2024-05-06T08:07:00+02:00"', b'"2024-05-06T08:07:00"')),
    *(at(b'"x"', time) for time in (*JSON_TIMES, *JSON_VALUES)),
    *(at(user, GOOD_TIME) for user in JSON_VALUES),
    *(at(b'"x"', GOOD_TIME, place) for place in JSON_PLACES),
)
#: Those whose names are not those of the others.
FEATURES_OF_OTHER_NAMES = (
    feature(b'"user": "x"'),
    feature(b'"t": ' + GOOD_TIME),
    feature(b""),
    feature(b'"user": "x", "t": ' + GOOD_TIME + b', "trip": 1, "step": 2, "state": "s", "order": 1, "lat": 1'),
    feature(b'"user": "x", "user": ["y"], "t": ' + GOOD_TIME),
    feature(b'"user": "x", "\\u0000user": "a", "\\ud800": 1, "' + b"n" * 5000 + b'": {}, "": 1'),
    b'{"type": "Feature", "properties": null, "geometry": null}',
    b'{"type": "Feature", "properties": ["user"], "geometry": [1, 2]}',
    b'{"type": "Feature", "properties": {"user": "x", "t": ' + GOOD_TIME + b'}}',
    b"null", b"5", b'"x"', b"[]", b"{}", b"[[[[[[[[1]]]]]]]]",
)  # fmt: skip


def track_points(header: bytes, lines: Sequence[bytes]) -> bytes:
    """GPX with one segment, and a point of it a line."""
    return (
        b'<gpx version="1.1" creator="x" xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>'
        + b"\n".join(lines)
        + b"</trkseg></trk></gpx>"
    )


def tracks(header: bytes, lines: Sequence[bytes]) -> bytes:
    """GPX with a track a line."""
    return track_points(header, lines).replace(b"\n", b"</trkseg></trk><trk><trkseg>")


def point(user: bytes, time: bytes, lat: bytes = b"50.01") -> bytes:
    return b'<trkpt lat="%s" lon="10.01"><time>%s</time><name>%s</name></trkpt>' % (lat, time, user)


XML_TIMES = tuple(time for time in TIMES if b"\xff" not in time)
ODD_POINTS = (
    *(point(b"x", time) for time in XML_TIMES),
    *(point(user, TIMES[0]) for user in (b"7", b"007", b"1.0", b"NA", b"&lt;x", b"", b"\xc3\xa9", b"u" * 300)),
    *(point(b"x", TIMES[0], place) for place in PLACES if b"\xff" not in place),
    b'<trkpt lat="50" lon="10"/>', b"<trkpt/>", b"", b"<name>x</name>", b"<!-- x -->",
    b'<trkpt lat="50" lon="10"><ele>x</ele><sat>1.5</sat><extensions><user>a</user></extensions></trkpt>',
    point(b"x</name><desc>lat='</desc><name>x", TIMES[0]), point(b"x<!--" + b"x" * 70_000 + b"-->", TIMES[0]),
    point(b"x</name><cmt>OGRVRTDataSource" + b"\r" * 70_000 + b"</cmt><name>x", TIMES[0]),
)  # fmt: skip


CASES = {
    "times": Case(
        b"user,t,lat,lon",
        (
            b"b,2024-05-06T08:10:00Z,50.01,10.01", b"a,2024-05-06T10:05:00+02:00,50.02,10.01",
            b"a,2024-05-06T08:00:00.1234567Z,50.01,10.02", b"b,2024-05-06T08:05:00,50.0,10.0",
        ),
        TIMED,
    ),
    "times without a zone": Case(
        b"user,t,lat,lon",
        (b"a,2024-05-06T08:10:00,50.01,10.01", b"b,2024-05-06T08:10:00,50.01,10.01"),
        TIMED,
    ),
    "assumed to be UTC": Case(
        b"user,t,lat,lon",
        (b"a,2024-05-06T08:10:00,50.01,10.01", b"b,2024-05-06T08:10:00Z,50.01,10.01", b"a,2024-05-06 07:00,50,10"),
        TIMED,
        {"timezone": "UTC"},
    ),
    "on local clocks": Case(
        b"user,t,lat,lon",
        (b"a,2024-05-06T08:10:00,50.01,10.01", b"b,2024-10-27T02:30:00,50.01,10.01", b"b,2024-05-06 07:00,50,10"),
        TIMED,
        {"timezone": "Europe/Berlin"},
    ),
    "ordered trips": Case(
        b"user,k,leg,state",
        (b"a,2,1,b", b"a,1,2,a", b"b,1,out,a", b"b,1,back,b"),
        rows_like(b"<user>,<k>,<leg>,<state>", {b"user": (b"x",), b"leg": TRIPS, b"k": STEPS, b"state": NAMES}),
        {"order_column": "k", "trip_column": "leg"},
    ),
    "trips of others that are numbers": Case(
        b"user,k,leg,state",
        (b"a,2,2,b", b"a,1,10,a", b"b,1,3,a", b"b,1,2,b"),
        rows_like(b"<user>,<k>,<leg>,<state>", {b"user": (b"x",), b"leg": TRIPS, b"k": STEPS, b"state": NAMES}),
        {"order_column": "k", "trip_column": "leg"},
    ),
    "rows in an order": Case(
        b"user,order,state",
        (b"a,2,b", b"a,1,a", b"b,3,", b"b,2,a", b"b,4,b"),
        rows_like(b"<user>,<k>,<state>", {b"user": (b"x",), b"k": STEPS, b"state": NAMES}),
        {"order_column": "order"},
    ),
    "steps and trips": Case(
        b"user,step,trip,state",
        (b"a,5716320,7,b", b"a,5716321,7,a", b"b,+5716320,2,1.0", b"b,5716320,2,a"),
        rows_like(b"<user>,<step>,<trip>,<state>", {b"user": (b"x",), b"trip": TRIPS, b"step": STEPS, b"state": NAMES}),
    ),
    "rows alone": Case(
        b"user,state", (b"a,b", b"b,1", b"a,1.0", b"b,1"), PAGE_VIEWS
    ),
    "names that are numbers": Case(
        b"user,state",
        # As a number, which it is only where all names are, 007 would be 7.
        (b"10,a", b"9,b", b"10,b", b"1,a", b"007,b"),
        # 1.0 would be a line of person 1, and 007 one of 007.
        tuple(line for line in PAGE_VIEWS if not line.startswith((b"1.0,", b"007,"))),
        users=("10", "9", "1", "007"),
    ),
    "another delimiter": Case(
        b"user;step;lat;lon",
        (b"a;1;50,0;10", b"a;2;50.1;10", b"b;1;50;+10"),
        tuple(
            line.replace(b",", b";")
            for line in rows_like(b"<user>,<step>,<lat>,10", {b"user": (b"x",), b"step": STEPS, b"lat": PLACES})
        ),
        {"delimiter": ";"},
    ),
    "a packed file": Case(
        b"user,state",
        (b"a,b", b"b,c", b"a,c"),
        PAGE_VIEWS,
        suffix=".csv.gz",
    ),
    "check-ins": Case(
        b"",
        (
            b"10\t2010-10-18T22:17:43Z\t30.5\t-97.5\t420315", b"9\t2010-10-18T22:17:43Z\t30.5\t-97.5\t1",
            b"10\t2010-10-17T22:17:43Z\t30.5\t-97.5\t1",
        ),
        (
            *(line.replace(b",", b"\t") for line in CHECK_INS),
            b'"\tx',
            UNCLOSED,
            b"PAR1\t\t\t\t",
            b"PK\x03\x04",
            b"\xff\xfeu\t2010-10-18T22:17:43Z\t30.5\t-97.5\t420315",
        ),
        users=("10", "9"),
        kind="gowalla",
        suffix=".txt",
    ),
    "check-ins of a city": Case(
        b"",
        (
            b"10\tv1\tc\tCaf\xe9\t40.7\t-74\t-240\tTue Apr 03 18:00:09 +0000 2012",
            b"9\tv2\tc\tBar\t40.8\t-74\t-240\tTue Apr 03 18:00:25 +0000 2012",
            b"10\tv2\tc\tBar\t400\t-74\t-240\tTue Apr 03 18:02:25 +0000 2012",
        ),
        tuple(
            line.replace(b",", b"\t")
            for line in rows_like(
                b"<user>,v,c,Bar,<lat>,-74,-240,<t>",
                {b"user": (b"x",), b"lat": PLACES, b"t": (b"Tue Apr 03 18:00:09 +0000 2012", *TIMES)},
            )
        ),
        users=("10", "9"),
        kind="foursquare",
        suffix=".txt",
    ),
    "text of another kind": Case(
        b"",
        (b"a 1715000000 50.01 10.01", b"b  1715000300 50.0 10.0 ", b"# c", b"a 1715000300000 50 10"),
        tuple(
            line.replace(b",", b" ")
            for line in rows_like(
                b"<user>,<t>,<lat>,10", {b"user": (b"x",), b"t": (*UNIX, *TIMES), b"lat": PLACES}
            )
        ),
        {"names": "user,t,lat,lon", "delimiter": "space", "comment": "#"},
        suffix=".txt",
    ),
    "days first in Latin-1": Case(
        b"user;t;lat;lon",
        (b"a;06/05/2024 08:07;50.01;10.01", b"b;07/05/2024 08:07;50;10", b"a;27/10/2024 02:30;50;10"),
        tuple(
            line.replace(b",", b";")
            for line in rows_like(
                b"<user>,<t>,<lat>,10",
                {b"user": (b"x",), b"t": (b"06/05/2024 08:07", b"31/02/2024 08:07", b"now", *TIMES), b"lat": PLACES},
            )
        ),
        {"delimiter": "semicolon", "time_format": "%d/%m/%Y %H:%M", "timezone": "Europe/Berlin", "encoding": "latin-1"},
    ),
    "intervals": Case(
        b"user,start,end,label",
        (
            b"a,2024-05-06T08:00:00Z,2024-05-06T09:00:00Z,x", b"b,2024-05-06T08:30:00Z,2024-05-06T09:00:00Z,y",
            b"a,2024-05-06T08:20:00Z,2024-05-06T08:40:00Z,z",
        ),
        rows_like(b"<user>,<t>,2024-05-06T09:00:00Z,<state>", {b"user": (b"x",), b"t": TIMES, b"state": NAMES}),
        {"step": "10min", "gap_label": "none"},
        kind="intervals",
    ),
    "features": Case(
        b"",
        (
            at(b'"b"', b'"2024-05-06T08:10:00Z"'), at(b"12", b'"2024-05-06T10:05:00+02:00"'),
            at(b'"b"', b'"2024-05-06T08:00:00"'), at(b"9007199254740995", b"1715000000"),
            at(b'"b"', b"null"), at(b'"b"', GOOD_TIME, b"[200, 100]"),
        ),
        ODD_FEATURES,
        users=("b", "12", "9007199254740995"),
        kind="geo", suffix=".geojson", file_of=features,
    ),
    "features on local clocks": Case(
        b"",
        (at(b'"b"', b'"2024-05-06T08:10:00"'), at(b'"a"', b'"2024-10-27T02:30:00"'), at(b'"a"', GOOD_TIME)),
        ODD_FEATURES,
        {"timezone": "Asia/Tokyo"},
        kind="geo", suffix=".json", file_of=features,
    ),
    "features of other names": Case(
        b"",
        (at(b'"b"', b'"2024-05-06T08:10:00Z"'), at(b'"a"', GOOD_TIME), at(b'"a"', b'"2024-05-06T09:00:00"')),
        FEATURES_OF_OTHER_NAMES,
        kind="geo", suffix=".geojson", file_of=features, first=False,
    ),
    "points of a track": Case(
        b"",
        (
            point(b"b", b"2024-05-06T08:10:00Z"), point(b"a", b"2024-05-06T10:05:00+02:00"),
            point(b"12", b"2024-05-06T08:00:00"), point(b"a", b"2024-05-06T09:00:00"), point(b"a", b""),
        ),
        ODD_POINTS,
        {"user_column": "name", "timezone": "Asia/Tokyo"},
        users=("b", "a", "12"),
        kind="geo", suffix=".gpx", file_of=track_points,
    ),
    "tracks": Case(
        b"",
        (
            point(b"b", b"2024-05-06T08:10:00Z"), point(b"a", b"2024-05-06T10:05:00+02:00"),
            point(b"a", b"2024-05-06T10:00:00Z"), point(b"b", b"2024-05-06T08:00:00"),
        ),
        ODD_POINTS,
        {"user_column": "name"},
        kind="geo", suffix=".gpx", file_of=tracks,
    ),
    "trips as lines": Case(
        b"TAXI_ID;TRIP_ID;TIMESTAMP;MISSING_DATA;POLYLINE",
        (b"a;5;1372636858;False;[[-8.6,41.1],[-8.7,41.2]]", b"b;6;1372636858;False;[[-8.6,41.1]]"),
        tuple(
            row.replace(b"!", b",")
            for row in (
                line.replace(b",", b";")
                for line in rows_like(
                    b"<user>,<leg>,<t>,False,<line>",
                    {b"user": (b"x",), b"leg": TRIPS, b"t": (*UNIX, *TIMES), b"line": LINES},
                )
            )
        ),
        {"delimiter": "semicolon"},
        kind="porto",
    ),
    "trips in one row": Case(
        b"user,start,end,lat,lon,to,elsewhere",
        (
            b"a,2024-05-06T08:00:00Z,2024-05-06T09:00:00Z,50.01,10.01,50.02,10.02",
            b"b,2024-05-06T08:00:00Z,2024-05-06T07:00:00Z,50.01,10.01,50.02,10.02",
            b"b,2024-05-06T08:00:00+02:00,2024-05-06T09:00:00Z,50.01,10.01,91,10.02",
            b"a,2024-05-06T07:00:00Z,2024-05-06T07:30:00Z,50.01,10.01,50.02,10.02",
        ),
        rows_like(
            b"<user>,<t>,2024-05-06T09:00:00Z,<lat>,10.01,50,10",
            {b"user": (b"x",), b"t": TIMES, b"lat": PLACES},
        ),
        {"time_column": "start,end", "lat_column": "lat,to", "lon_column": "lon,elsewhere"},
        kind="trips",
    ),
    "fixes of animals": Case(
        b"visible,timestamp,location-lat,location-long,individual-local-identifier,manually-marked-outlier",
        (
            b"true,2024-05-06 08:00:00.000,50.01,10.01,a,", b"false,2024-05-06 08:00:00.000,50.01,10.01,a,",
            b"true,2024-05-06 07:00:00.000,50.01,10.01,b,", b"true,soon,50.01,10.01,b,",
            b"true,2024-05-06 08:00:00,,,a,",
        ),
        rows_like(
            b"<seen>,<t>,<lat>,10.01,<user>,<mark>",
            {
                b"user": (b"x",), b"t": TIMES, b"lat": PLACES, b"seen": (b"true", b"", b"FALSE", b"\xff"),
                b"mark": (b"", b"true", b"x"),
            },
        ),
        kind="movebank",
    ),
    "a wide table": Case(
        b"id,m1,m2,m3",
        (b"b,work,,school", b"10,1,1.0,work", b"9,school,work,work", b"b,again,again,again"),
        rows_like(b"<user>,<m>,x,x", {b"user": (b"x",), b"m": NAMES}),
        {"columns": "m1:m3", "user_column": "id"},
        users=("b", "10", "9"),
        kind="sequences",
    ),
}  # fmt: skip


def written_of(case, given, folder):
    """The schema, the others' lines in the file and rows in the table that import writes, and their rejected lines.

    Nothing if it refuses.
    """
    data = case.file_of(case.header, given)
    source, out = folder / f"x{case.suffix}", folder / "out.csv"
    source.write_bytes(gzip.compress(data) if case.suffix.endswith(".gz") else data)
    try:
        imported = IMPORTERS[case.kind](source, **case.options)
    except InvalidInput as refused:
        assert "that can be read" in str(refused) or "without a zone" in str(refused) or "0 states" in str(refused)
        return None, [], [], []
    rejected = list(
        zip(lines_rejected(case, source, data, imported), imported.rejected["reason"].to_pylist(), strict=True)
    )
    table = imported.trajectories.to_arrow()
    save_trajectories(out, imported.trajectories)
    lines = out.read_bytes().splitlines()
    cells = list(csv.reader(io.StringIO(out.read_text(), newline="")))
    assert len(lines) == len(cells)
    theirs = [line for line, row in zip(lines[1:], cells[1:], strict=True) if row[0] in case.users]
    rows = [row for row in table.to_pylist() if row["user"] in case.users]
    return (table.schema, lines[0]), theirs, rows, [(line, why) for line, why in rejected if line in case.others]


def lines_rejected(case, source, data, imported):
    """What stands in the rows that were rejected."""
    numbers = imported.rejected["row"].to_pylist()
    if case.kind == "geo":
        ends = b"</trkpt>" if case.suffix == ".gpx" else None
        if ends is None:
            return [
                data.removeprefix(features(b"", [])[:-2]).removesuffix(b"]}").split(b",\n")[row - 1] for row in numbers
            ]
        points = re.findall(rb"<trkpt[^>]*/>|<trkpt.*?</trkpt>", data, re.DOTALL)
        return [points[row - 1] for row in numbers]
    layout = imported.report.layout or CSV
    return [data.split(b"\n")[line - 1] for line in lines_of_rows(source, numbers, layout)]


#: The cases of the default tests: those that seeded bugs need.
QUICK = (
    "times without a zone",
    "ordered trips",
    "trips of others that are numbers",
    "names that are numbers",
    "check-ins",
    "rows alone",
    "features of other names",
    "trips in one row",
)
TRIED = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in CASES]
#: Every line at two places every day, at all of them where there is time.
PLACES_TRIED = [
    pytest.param(first_neighbours, id="some places"),
    pytest.param(neighbours, id="every place", marks=pytest.mark.long),
]


@pytest.mark.parametrize("tried_of", PLACES_TRIED)
@pytest.mark.parametrize("name", TRIED)
def test_import_writes_the_same_of_others(name, tried_of, tmp_path):
    case = CASES[name]
    schema, *theirs = written_of(case, case.others, tmp_path)
    tried = 0
    for neighbour in tried_of(case.others, case.added, pairs=2):
        if not case.first and neighbour[0] not in case.others:
            continue
        found, *same = written_of(case, neighbour, tmp_path)
        # A file of which nothing was read has no schema.
        if None not in (found, schema):
            assert found == schema and same == theirs, neighbour
        else:
            assert same[:2] == theirs[:2] == [[], []], neighbour
        tried += 1
    few = 20 if not case.first else 60
    assert tried > few
    assert tried_of is first_neighbours or tried > few + 20


GRID = Grid.from_bounds(10.0, 50.0, 10.056, 50.036, cell=1000.0)
PAGES = StateSpace.categories(["a", "b", "c", "1"])
READ = [name for name, case in CASES.items() if case.kind == "csv" and case.options.get("delimiter") is None]


def taken_of(case, data, folder, bins):
    """What fit, release and query take of each of the others, by name: None of somebody without a row."""
    source = folder / f"x{case.suffix}"
    source.write_bytes(gzip.compress(data) if case.suffix.endswith(".gz") else data)
    loaded = load_trajectories(source, bins=bins, may_be_empty=True, **case.options)
    rows = loaded.trajectories
    space = PAGES if rows.lat is None else GRID
    stepped, _ = in_steps(rows, bins) if rows.time is not None or rows.step is not None else (rows, 0)
    states, _ = true_states(stepped, space)
    times = public_times(stepped, bins)
    visits, _ = stepped.visits()
    found = {}
    for visit in visits:
        published = None if times is None else times[visit.rows].tolist()
        found[visit.user] = [visit.steps.tolist(), states[visit.rows].tolist(), published]
    for gap, hold in ((None, 0), (None, 2)):
        cut = stepped.sequences(states, gap=gap, hold=hold)
        sequences, owners = cut.sequences, cut.owners
        for sequence, owner in zip(sequences, owners.tolist(), strict=True):
            found[rows.users[owner]].append((hold, sequence.tolist()))
    if rows.time is not None and rows.lat is not None:
        slow, _ = rows.drop_faster_than(5.0)
        for user, at in zip(slow.user.tolist(), slow.time.tolist(), strict=True):
            found[rows.users[user]].append(at)
    for row in rows.to_arrow().to_pylist():
        found[row["user"]].append(row)
    return {user: found.get(user) for user in case.users}


#: Steps that only count rows are refused by a model with time steps, whatever the rows are.
WITH_BINS = [
    pytest.param(name, bins, marks=() if name in QUICK else pytest.mark.slow)
    for name in READ
    for bins in (None, 300)
    if bins is None or {b"t", b"step"} & set(CASES[name].header.split(b","))
]


@pytest.mark.parametrize("tried_of", PLACES_TRIED)
@pytest.mark.parametrize(("name", "bins"), WITH_BINS)
def test_fit_and_release_take_the_same_of_others(name, bins, tried_of, tmp_path):
    case = CASES[name]
    expected = taken_of(case, text(case.header, case.others), tmp_path, bins)
    for neighbour in tried_of(case.others, case.added, pairs=1):
        assert taken_of(case, text(case.header, neighbour), tmp_path, bins) == expected, neighbour


@pytest.mark.parametrize("spelling", ["same", "exact"])
def test_spellings_are_one_person_and_change_nothing_of_others(spelling, tmp_path):
    """Steps of a person are ranks over the rows of all spellings; who comes first is called so."""
    others = (b"a,1,h", b"b,2,w", b"a,3,w")
    added = tuple(name + b",%d,h" % at for at, name in enumerate(SPELLINGS))
    path = tmp_path / "x.csv"
    for order in itertools.permutations(added, 3):
        for lines in ((*order, *others), (*others, *order), (order[0], *others, *order[1:])):
            path.write_bytes(text(b"user,at,state", lines))
            rows = load_trajectories(path, order_column="at", spelling=spelling).trajectories
            own = {name: rows.state[rows.user == number].tolist() for number, name in enumerate(rows.users)}
            assert (own["a"], own["b"]) == (["h", "w"], ["w"])
            first = order[0].partition(b",")[0].decode()
            expected = (
                {"a", "b", first}
                if spelling == "same"
                else {"a", "b", *(line.partition(b",")[0].decode() for line in order)}
            )
            assert set(own) == expected
            assert sum(map(len, own.values())) == 6


@pytest.mark.slow
def test_steps_that_are_no_time_bins_are_judged_row_by_row(tmp_path):
    """A table with times and steps: a step that is not that of its time is an invalid one, and nobody else's."""
    others = (b"a,2024-05-06T08:00:00Z,5716608,50.01,10.01", b"b,2024-05-06T08:05:00Z,5716609,50.01,10.01")
    added = tuple(b"x,2024-05-06T08:00:00Z,%s,50.01,10.01" % step for step in (*STEPS, b"5716608", b"5716609"))
    case = Case(b"user,t,step,lat,lon", others, added)
    expected = taken_of(case, text(case.header, others), tmp_path, 300)
    assert expected["a"] and expected["b"]
    for neighbour in neighbours(others, added):
        assert taken_of(case, text(case.header, neighbour), tmp_path, 300) == expected
    (tmp_path / "x.csv").write_bytes(text(case.header, (*others, *added)))
    loaded = load_trajectories(tmp_path / "x.csv", bins=300)
    assert loaded.trajectories.users == ("a", "b", "x") and loaded.dropped == {"invalid_step": len(added) - 1}


SEQUENCE = b"% comment\nhome news shop\n\n"
ODD_SEQUENCES = (
    b"1 2", b"9", b"1 x", b"x y", b"0", b"-1", b"+1", b"1.0", b"9" * 5000, b"\xff", b"1\0", b"1\x0b2", b"% 1", b'"1',
)  # fmt: skip


def by_number(path, data, **options):
    """(step, state) of each person, who is the number of a line."""
    path.write_bytes(data)
    rows = IMPORTERS["sequences"](path, **options).trajectories
    found: dict[int, list[Any]] = {}
    for user, step, state in zip(rows.user, rows.step, rows.state, strict=True):
        found.setdefault(int(rows.users[user]), []).append((int(step), state))
    return found


@pytest.mark.parametrize("named", [True, False])
def test_sequences_without_names_of_people_are_the_same_but_for_their_numbers(named, tmp_path):
    """A person is the number of the line: one line more moves the numbers after it, and nothing else."""
    others = (b"1 3 2", b"2", b"3 3")

    def read(lines):
        return by_number(tmp_path / "x.seq", (SEQUENCE if named else b"") + text(b"", lines), names=named)

    expected = read(others)
    assert sorted(expected) == [1, 2, 3]
    for line in ODD_SEQUENCES:
        taken = 0 if line.startswith(b"%") else 1
        for at, lines in enumerate(placed(others, (line,))):
            found = read(lines)
            theirs = [number + (taken if number > at else 0) for number in expected]
            assert [found[number] for number in theirs] == list(expected.values()), lines
    for two in itertools.product(ODD_SEQUENCES, repeat=2):
        assert list(read((*others, *two)).items())[:3] == list(expected.items())


def test_a_wide_table_without_names_is_the_same_but_for_its_numbers(tmp_path):
    others = (b"work,,school", b"1,1.0,work")

    def read(lines):
        return by_number(tmp_path / "x.csv", text(b"m1,m2,m3", lines), columns="m1:m3")

    expected = read(others)
    for line in (b"x,y,z", b"x", b"x,y,z,w", b"\xff,y,z", b"1.0,1,x", b",,"):
        for at, lines in enumerate(placed(others, (line,))):
            found = read(lines)
            assert [found[number + (number > at)] for number in expected] == list(expected.values())


HEAD = b"Geolife trajectory\r\nWGS 84\r\nAltitude is in Feet\r\nReserved 3\r\n0,2,255\r\n0\r\n"
POINT = b"39.9,116.4,0,100,39745.1,2008-10-23,%s\r\n"
HEADED = b"user,t,lat,lon,trip\n%s,2024-05-06T08:00:00Z,50.01,10.01,3\n%s,2024-05-06T08:05:00Z,50.02,10.01,4\nbad\n"
UNNAMED = b"t,lat,lon\n2024-05-06T08:00:00Z,50.01,10.01\n2024-05-06T08:05:00Z,91,10.01\n"
CAB = b"50.01 10.01 0 1213084687\n50.02 10.01 1 1213084680\nbad\n"
TAXI = b"%s,2008-02-02 15:36:08,10.01,50.01\n%s,2008-02-30 15:36:08,10.01,50.01\n"
#: What a file of one more person may be, beside what each layout adds: of another form, of other columns, or no text.
ODD_FILES = (
    b"", b"\n\n", b"x\n", b'"x', b"a,a\n1,2\n", b"PAR1" + bytes(range(256)), b"\xff\xfe\n", b"\0,\0\n",
    b"user,t\nx,1\n", b"user,state\nx,home\n", b"x,2024-05-06T08:00:00Z,50.01,10.01\n", b"\x1f\x8b\x08",
    b'"' + b"x" * 200 + b"\n", b"lat,lon\n50,10\n",
)  # fmt: skip


@dataclass(frozen=True)
class Folder:
    """A folder of others' files, by name; what somebody else's may hold beside `ODD_FILES`; and how it is read."""

    others: dict[str, bytes]
    added: tuple[bytes, ...]
    names: tuple[str, ...]
    users: tuple[str, ...]
    options: dict[str, Any] = field(default_factory=dict)
    kind: str = "csv"


FOLDERS_OF_ROWS = {
    "users in a column": Folder(
        {f"d/{name}.csv": HEADED % (name.encode(), name.encode()) for name in "abc"},
        (
            HEADED % (b"x", b"x"), HEADED % (b"x", b"7") + b'x,"', HEADED.replace(b",trip", b"") % (b"x", b"x"),
            HEADED.replace(b"lon", b"longitude") % (b"x", b"x"), HEADED.replace(b",t,", b",t_local,") % (b"x", b"x"),
            HEADED.replace(b"trip", b"step") % (b"x", b"x"), b"user,t,lat,lon\nx,2024-05-06T08:00:00Z,50.01,10.01\n",
            b"lon,lat,user,t\n10.01,50.01,x,2024-05-06T08:00:00Z\n",
            b"user,t,lat,lon,trip,state\nx,2024-05-06T08:00:00Z,1,2,home,y\n",
        ),
        ("d/0.csv", "d/b2.csv", "e/z.csv", "a.csv.gz"),
        ("a", "b", "c"),
    ),
    "users by file": Folder(
        {f"d/{name}.csv": UNNAMED for name in "abc"},
        (
            UNNAMED, UNNAMED.replace(b"t,", b"time,"), UNNAMED.replace(b"lat", b"x"), b"t,lat,lon,trip\n1,2,3,4\n",
            b"state\nhome\n",
        ),
        ("d/0.csv", "d/x.csv", "e/\udce9.csv", "a/x.csv.gz"),
        ("a", "b", "c"),
        {"user_from": "file-name"},
    ),
    "users by folder": Folder(
        {f"{name}/{part}.csv": UNNAMED for name in "abc" for part in (1, 2)},
        (UNNAMED, UNNAMED.replace(b"lat", b"x"), b"state\nhome\n"),
        ("0/1.csv", "z/1.csv", "x/1.csv"),
        ("a", "b", "c"),
        {"user_from": "folder-name"},
    ),
    "cabspotting": Folder(
        {f"cabs/new_{name}.txt": CAB for name in "ab"},
        (CAB, b"50.01 10.01 0 1213084687 7\n", b"91 10 0 1\n", b'" " " "\n', b"50 10 0 2008-06-10T07:58:07Z\n"),
        ("cabs/new_0.txt", "cabs/new_x.txt", "cabs/_cabs.txt", "cabs/new_z.txt.gz"),
        ("a", "b"),
        kind="cabspotting",
    ),
    "tdrive": Folder(
        {f"taxi/{name}.txt": TAXI % (name.encode(), name.encode()) for name in "12"},
        (TAXI % (b"x", b"007"), b"x,2008-02-02T15:36:08Z,10,50\n", b"x,1,2\n", b"x,1201937768,10.01,50.01\n"),
        ("taxi/0.txt", "taxi/10.txt", "zz/x.txt"),
        ("1", "2"),
        kind="tdrive",
    ),
    "geolife": Folder(
        {
            "Data/010/Trajectory/b.plt": HEAD + POINT % b"02:53:04" + POINT % b"02:53:09",
            "Data/010/Trajectory/a.plt": HEAD + POINT % b"05:53:04",
            "Data/9/Trajectory/a.plt": HEAD + POINT % b"05:53:04" + b"39.9\r\n" + POINT % b"05:54:04",
        },
        (
            HEAD + POINT % b"02:53:04", HEAD, HEAD + b"1,2\r\n\r\n1\r\n", HEAD + b"\xef\xbb\xbf",
            HEAD + b"\xff\xfe\r\n" + POINT % b"\xff" + b"\0\r\n",
            HEAD + b"1e999,nan,0,0,0,2008-02-30,25:00:00\r\n" + POINT % b"02:53:04.123456789" + b'"x\r\n',
        ),
        tuple(f"Data/{folder}/Trajectory/a.plt" for folder in ("x", "0", "00", "100", "=x", "caf\udce9")),
        ("010", "9"),
        kind="geolife",
    ),
}  # fmt: skip


def packed(kind, files, folder):
    """A folder, or an archive in the order of the files."""
    if kind == "folder":
        return write_folder(folder / f"folder{len(list(folder.iterdir()))}", dict(files))
    return write_zip(folder / "x.zip", dict(files)) if kind == "zip" else write_tar(folder / "x.tar", dict(files), "w")


@pytest.mark.parametrize("kind", ["folder", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("zip", "tar"))])
@pytest.mark.parametrize("name", FOLDERS_OF_ROWS)
def test_a_file_of_one_more_person_changes_nothing_of_others(name, kind, tmp_path):
    """Whatever is in it, whatever its name, wherever it lies in an archive: rows, order, types and rejected rows."""
    case = FOLDERS_OF_ROWS[name]
    others = list(case.others.items())

    def read(files):
        source = packed(kind, files, tmp_path)
        imported = IMPORTERS[case.kind](source, **case.options)
        table, rejected = imported.trajectories.to_arrow(), imported.rejected.to_pylist()
        prefix = f"{source.name}/" if kind == "folder" else ""
        theirs = [row for row in rejected if row["file"].removeprefix(prefix) in case.others]
        for row in theirs:
            row["file"] = row["file"].removeprefix(prefix)
        return table.schema, [row for row in table.to_pylist() if row["user"] in case.users], theirs

    expected = read(others)
    assert len(expected[1]) >= 2 and {row["user"] for row in expected[1]} == set(case.users) and expected[2]
    contents = (*case.added, *ODD_FILES)
    tried = 0
    for number, data in enumerate(contents):
        # Every content under one name, in turn, and the first and the last under each.
        named = case.names if data in (case.added[0], ODD_FILES[-1]) else (case.names[number % len(case.names)],)
        for called in named:
            if kind == "zip" and not called.isascii():
                continue
            made = gzip.compress(data) if called.endswith(".gz") and number % 2 else data
            orders = placed(others, [(called, made)]) if kind != "folder" else [[*others, (called, made)]]
            for files in orders:
                assert read(files) == expected, (called, data)
                tried += 1
    assert tried >= len(contents)


def test_a_file_that_lacks_a_column_is_told_and_its_rows_are_listed(tmp_path):
    files = {
        "a.csv": HEADED % (b"a", b"a"), "b.csv": HEADED % (b"b", b"b"),
        "c.csv": HEADED.replace(b"lon", b"x") % (b"c", b"c"), "e.csv": b'"x',
        "d.csv": b"user,t,lat,lon\nd,2024-05-06T08:00:00Z,50.01,10.01\n",
    }  # fmt: skip
    imported = IMPORTERS["csv"](packed("zip", files.items(), tmp_path), trip_column="trip")
    assert imported.report.dropped == {"ragged_row": 3, "missing_column": 2, "unreadable_file": 1}
    rows = [tuple(row.values()) for row in imported.rejected.to_pylist() if row["file"] in ("c.csv", "e.csv")]
    expected = [("c.csv", 1, "missing_column"), ("c.csv", 2, "missing_column"), ("c.csv", 3, "ragged_row")]
    assert rows == [*expected, ("e.csv", 1, "unreadable_file")]
    assert "file 'c.csv': no column lon, its rows are left out" in imported.report.notes
    trips = {row["user"]: row["trip"] for row in imported.trajectories.to_arrow().to_pylist()}
    assert trips == {"a": 4, "b": 4, "d": -1}


COLUMNS = {
    "user": (pa.string(), ("a", "b", "a"), ("x", "", None, "\x01", "1.0")),
    "t": (pa.timestamp("us", "UTC"), (0, 300_000_000, 600_000_000), (5, None, -(2**62), 2**62)),
    "step": (pa.float64(), (0.0, 1.0, 2.0), (1.5, None, float("nan"), float("inf"), 1e300, -3.0)),
    "lat": (pa.float64(), (50.01, 50.02, 50.0), (None, float("nan"), float("inf"), 1e308)),
    "state": (pa.float32(), (1.0, 2.0, 3.0), (None, 1.5, float("nan"))),
    "trip": (pa.int64(), (10, 9, 2), (None, -1, -7, 2**62)),
}
TABLES = {
    "places in time": ("user", "t", "lat", "lon", "trip"),
    "numbered steps": ("user", "step", "state", "trip"),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("in_memory", [False, True])
def test_tables_with_types(name, in_memory, tmp_path):
    """Parquet, and pandas with objects: the type is that of the column, each cell is judged by itself."""
    chosen = [column for column in TABLES[name] if column != "lon"]
    good = {column: COLUMNS[column][2][0] for column in chosen} | {"user": "x"}
    if "lat" in chosen:
        good["lat"] = 50.0
    odd = [good | {column: cell} for column in chosen for cell in COLUMNS[column][2]]
    others = [{column: COLUMNS[column][1][row] for column in chosen} for row in range(3)]

    def read(rows):
        schema = pa.schema([(column, COLUMNS[column][0]) for column in chosen])
        table = pa.Table.from_pylist(rows, schema=schema)
        if "lat" in chosen:
            table = table.append_column("lon", table.column("lat"))
        if in_memory:
            found = load_trajectories(table).trajectories
        else:
            pq.write_table(table, tmp_path / "x.parquet", row_group_size=2)
            found = IMPORTERS["csv"](tmp_path / "x.parquet").trajectories
        made = found.to_arrow()
        return made.schema, [row for row in made.to_pylist() if row["user"] in ("a", "b")]

    expected = read(others)
    assert len(expected[1]) == 3
    for row, at in itertools.product(odd, range(4)):
        assert read([*others[:at], row, *others[at:]]) == expected


def test_objects_of_pandas_are_text_cell_by_cell():
    """Arrow gives a column the type that fits its oddest cell: 1.0 would be 1 alone and 1.0 beside a name."""
    cells = [1, 1.0, "1", "1.0", 2.5, np.float64(3), np.int64(4), None, float("nan"), "x", b"x", True, (1, 2), "\ud800"]

    def users(column):
        frame = pd.DataFrame({"user": pd.Series(column, dtype=object), "state": "s"})
        rows = load_trajectories(frame).trajectories
        return [person_key(rows.users[user]) for user in rows.user]

    for cell in cells[:7]:
        (alone,) = users([cell])
        for other in cells:
            assert users([cell, other])[0] == alone
            assert users([other, cell])[-1] == alone
    assert users([1, 1.0, "1", "1.0"]) == ["1"] * 4
    assert users(["1.5", 1.5]) == ["1.5"] * 2


def test_times_of_a_library_are_read_cell_by_cell():
    """pandas would take the format of the first text for all of them, and nothing of those that have another one."""
    others = ["2008-10-23 05:53:05", "2008-10-23T05:53:06.5"]

    def read(first):
        frame = pd.DataFrame({"uid": "a", "lat": 39.9, "lng": 116.3, "datetime": [*first, *others]})
        return convert_frame(frame, timezone="UTC")["t"].tolist()[-2:]

    expected = read([])
    assert [moment.isoformat() for moment in expected] == [
        "2008-10-23T05:53:05+00:00",
        "2008-10-23T05:53:06.500000+00:00",
    ]
    for odd in ("23/10/2008", "2008-10-23", "never", "2008-10-23T05:53:05+08:00", "", None, "9999-12-31T00:00:00Z"):
        assert read([odd]) == expected


ODD_SHAPES = ("POINT (10.01 50.01)", "POINT (400 50)", "POINT (Infinity 2)", "POINT (NaN 2)", "POINT EMPTY", None)
STAMPS = ("2024-05-06T08:07:00Z", "2024-05-06T08:07:00+02:00", "2024-05-06T08:07:00", None)
#: What FlatGeobuf and Shapefile cannot hold is tried in GeoPackage alone.
TYPED = {".gpkg": ODD_SHAPES, ".fgb": ODD_SHAPES[:4], ".shp": ODD_SHAPES[:2]}


# pyogrio draws a name for a GeoPackage in memory.
@pytest.mark.replayed_words
@pytest.mark.parametrize("suffix", TYPED)
@pytest.mark.parametrize("numbered", [False, True])
def test_geo_files_whose_columns_have_types(suffix, numbered, tmp_path):
    """Of a column the type is that of the file; its times have the zone that each of them has, or has not."""
    gpd, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    names = (9007199254740993, 12, 12) if numbered else ("b", "a", "a")
    others = [
        (names[0], "2024-05-06T01:00:00", "POINT (10.01 50.01)"),
        (names[1], "2024-05-06T01:00:00+02:00", "POINT (10.02 50.01)"),
        (names[2], "2024-05-06T09:00:00.5Z", "POINT (10.03 50.01)"),
    ]
    # A name of more than 18 digits makes another type of a Shapefile's column, which the file then declares.
    users = (3, None, 10**17 if suffix == ".shp" else 2**62) if numbered else ("x", "", None, "7", "n" * 70, "é")
    odd = [
        *((user, STAMPS[0], ODD_SHAPES[0]) for user in users),
        *((users[0], time, ODD_SHAPES[0]) for time in STAMPS),
        *((users[0], STAMPS[0], shape) for shape in TYPED[suffix]),
    ]

    def read(rows):
        frame = gpd.GeoDataFrame(
            {
                "user": pd.array([row[0] for row in rows], "Int64" if numbered else "str"),
                "t": pd.Series([None if row[1] is None else pd.Timestamp(row[1]) for row in rows], dtype=object),
            },
            geometry=[None if row[2] is None else shapely.from_wkt(row[2]) for row in rows],
            crs=4326,
        )
        # Shapefiles have no times but as text.
        if suffix == ".shp":
            frame["t"] = [row[1] for row in rows]
        frame.to_file(
            tmp_path / f"x{suffix}", engine="pyogrio", **({"SPATIAL_INDEX": "NO"} if suffix == ".fgb" else {})
        )
        imported = IMPORTERS["geo"](tmp_path / f"x{suffix}", timezone="Asia/Tokyo")
        table = imported.trajectories.to_arrow()
        theirs = [row for row in table.to_pylist() if row["user"] in {str(name) for name in names}]
        return table.schema, theirs, {rows[row - 1] for row in imported.rejected["row"].to_pylist()} & set(others)

    expected = read(others)
    assert [row["t"].isoformat() for row in sorted(expected[1], key=lambda row: row["lon"])] == [
        "2024-05-05T16:00:00+00:00",
        "2024-05-05T23:00:00+00:00",
        "2024-05-06T09:00:00.500000+00:00",
    ]
    for row, at_row in itertools.product(odd, (0, 2, 3)):
        assert read([*others[:at_row], row, *others[at_row:]]) == expected, row
