"""Documents in general: one person's piece of one decides nothing about others, and no document makes a traceback.

Claims: whatever one person writes as a piece (a line, a trace, a Placemark), wherever it stands between those of
others, the rows of these are the same in the same order, and so are their rejected ones; and a document that is cut at
any byte, or has other bytes anywhere, is read or refused in one line. The default run is the same every time.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dphmm.errors import InvalidInput
from dphmm.storage.importers import IMPORTERS
from dphmm.storage.importers.documents import DocumentRows, unless_named
from neighbouring_files import placed
from storage.importers import test_google, test_kml, test_owntracks, test_xes
from storage.importers.test_rows import write_folder, write_zip


def test_rows_are_numbered_with_those_that_are_none():
    rows = DocumentRows(("a", "b"))
    for cells in (None, ("1", "2"), (None, "3"), None, ("4", None)):
        rows.add(cells)
    document = rows.document({"others": 2})
    assert document.table.to_pydict() == {"a": ["1", None, "4"], "b": ["2", "3", None]}
    assert document.ragged == [1, 4] and document.others == {"others": 2}
    assert DocumentRows(("a",)).document().table.to_pydict() == {"a": []}


def test_columns_of_a_format_give_way_to_options():
    columns = {"user_column": "u", "time_column": "t", "trip_column": "k"}
    assert unless_named({}, columns) == unless_named({"user": None, "no_times": False}, columns) == columns
    assert unless_named({"user_from": "file-name", "no_times": True}, columns) == {"trip_column": "k"}
    assert unless_named({"trip_column": "x", "order_column": "o"}, columns) == {"user_column": "u"}


@dataclass(frozen=True)
class Pieces:
    """A kind of document, the pieces of others with how many rows each makes, and whatever one more person writes."""

    kind: str
    suffix: str
    document: Callable[[tuple[str, ...]], bytes]
    others: dict[str, int]
    added: tuple[str, ...]
    options: dict[str, Any] = field(default_factory=dict)
    #: Whether a piece is added before all others: the names of the first object of JSON lines are the columns.
    first: bool = True


def log(pieces):
    return f"<log>{''.join(pieces)}</log>".encode()


def feature(user, time="2024-05-06T08:00:00Z", **more):
    return json.dumps({"user": user, "t": time, "at": {"lat": 50.01, "lon": 10.01}, "trip": 1, **more})


TIMES = ("2024-05-06T08:00:00", "2024-02-30T08:00:00Z", "", "1715000000", "5", "9" * 5000, "now")
NAMES = ("x", "7", "007", "1.0", " x ", "X", "é", "u" * 300, "\u200b", "")
event, trace = test_xes.event, test_xes.trace
track, point = test_kml.track, test_kml.point
PIECES = {
    "traces": Pieces(
        "xes", ".xes", log,
        {
            trace("a", event("x"), event(), event("y", "2011-01-01T10:00:00")): 3,
            trace("b", event("x", "2011-01-01T09:00:00Z")): 1,
            trace(None, event("x")): 1,
            trace("a", event("z", "2011-01-01T08:00:00Z")): 1,
        },
        (
            *(trace(name, event("x"), event("x")) for name in NAMES),
            *(trace("x", event("x", time)) for time in TIMES),
            *(trace("x", event(name)) for name in NAMES), trace("x"), trace("x", "<event/>"), "<trace/>", "<event/>",
            trace("x", event("y", more='<list key="concept:name"><string key="concept:name" value="a"/></list>')),
            trace("x", '<trace><string key="concept:name" value="a"/></trace>', event("x")),
            trace("x", event("x", more=trace("a", event("y")))), "<extension/><global scope='event'/>",
            trace("x", event("x", more='<string key="concept:name" value="twice"/><string value="no key"/>')),
            "<a>" * 90 + "</a>" * 90, '<string key="concept:name" value="log"/>', "<!-- trace --><?pi x?>text",
        ),
    ),
    "placemarks": Pieces(
        "kml", ".kml", lambda pieces: test_kml.document(*pieces).encode(),
        {
            track(("08:00:00", "10.01 50.01"), ("08:05:00", "x"), ("08:06:00", "10 50"), name="a"): 3,
            point("08:00:00Z", "10.01,50.01", name="b"): 1,
            point("08:00:00", "10.01,50.01", name="b"): 1,
            track(("07:00:00", "10.01 50.01"), name="a"): 1,
        },
        (
            *(track(("08:00:00", "10 50"), ("08:01:00", "10 50"), name=name) for name in NAMES),
            *(point(time, "10,50", name="x") for time in TIMES),
            *(point("08:00:00Z", place, name="x") for place in ("10", "10,", ",50", "10;50", "1e999,2", "10,50 11,51")),
            track(name="x"), track(("08:00:00", ""), ("", "10 50"), ("", "10 50"), name="x"), test_kml.line("1,2 3,4"),
            "<Placemark><Placemark><name>a</name></Placemark></Placemark>", "<gx:coord>1 2</gx:coord>",
            track(("08:00:00", "10 50"), name="x").replace("Placemark>", "Folder>"),
            point("08:00:00Z", "10,50", name="x").replace("Placemark>", "Folder>"),
            test_kml.line("1,2 3,4").replace("Placemark>", "Folder>"), "<TimeStamp><when>1</when></TimeStamp>",
            "<Folder><TimeStamp><when>2024-05-06T08:00:00Z</when></TimeStamp></Folder>",
            "<Track><when>1</when></Track>",
            "<Folder><name>a</name>" + point("08:00:00Z", "1,2", name="x") + "</Folder>", "<name>a</name>",
        ),
        {"user_column": "name"},
    ),
    "objects": Pieces(
        "jsonl", ".jsonl", lambda pieces: "\n".join(pieces).encode("utf-8", "surrogatepass"),
        {
            feature("b", "2024-05-06T08:10:00Z"): 1, feature("a"): 1, feature("a", "2024-05-06T07:00:00"): 1,
            feature("a", "2024-05-06T07:00:00Z", trip="x"): 1,
        },
        (
            *(feature(name) for name in (*NAMES, None, 7, 7.0, 9007199254740993, True, [1], {"a": 1}, "\ud800")),
            *(feature("x", time) for time in (*TIMES, None, 1715000000, 1.5, [], {})),
            *(feature("x", at=at) for at in ({}, [], None, {"lat": "50.01", "lon": None}, {"lat": {"lat": 1}})),
            *(feature("x", trip=trip) for trip in ("home", -1, 1e400, None, [1])),
            feature("x", state="s", step=1, order=2, lat=1), "{", "null", "[]", "5", '"x"', "{}", "[" * 3000,
            feature("x")[:-1], feature("x") + "x", "\ufeff" + feature("x"), "\0", '{"a\\ud800": 1}', "NaN", "\udcff",
        ),
        {"lat_column": "at.lat", "lon_column": "at.lon", "trip_column": "trip"},
        first=False,
    ),
}  # fmt: skip


def read_pieces(case, pieces, folder):
    """The others' rows, which of their rows were rejected and why, and the types of the columns."""
    path = folder / f"x{case.suffix}"
    path.write_bytes(case.document(pieces))
    imported = IMPORTERS[case.kind](path, **case.options)
    table = imported.trajectories.to_arrow()
    theirs = [row for row in table.to_pylist() if row["user"] in ("a", "b")]
    added = imported.report.rows - sum(case.others.values())
    owners = [(piece, at) for piece in pieces for at in range(case.others.get(piece, added))]
    rejected = [(*owners[row["row"] - 1], row["reason"]) for row in imported.rejected.to_pylist()]
    return table.schema, theirs, [row for row in rejected if row[0] in case.others]


@pytest.mark.parametrize("name", PIECES)
def test_a_piece_of_one_more_person_changes_nothing_of_others(name, tmp_path):
    case = PIECES[name]
    expected = read_pieces(case, tuple(case.others), tmp_path)
    assert len(expected[1]) >= 3 and expected[2]
    tried = 0
    for piece in case.added:
        assert piece not in case.others
        for pieces in placed(tuple(case.others), (piece,)):
            if case.first or pieces[0] != piece:
                assert read_pieces(case, pieces, tmp_path) == expected, piece
                tried += 1
    assert tried >= 4 * len(case.added)


WHOLE = {
    "xes": (test_xes.TWO, ".xes", {}),
    "kml": (test_kml.document(track(("08:00:00", "13.4 52.5")), point("08:00:00Z", "1,2")).encode(), ".kml",
            {"user": "ann"}),
    "google": (test_google.RECORDS.encode(), ".json", {"user": "ann"}),
    "owntracks": (test_owntracks.DEMO, ".rec", {"user": "ann"}),
    "jsonl": (f'{feature("a")}\n{feature("b")}\n'.encode(), ".jsonl", {"lat_column": "at.lat", "lon_column": "at.lon"}),
}  # fmt: skip


def read_or_refused(kind, path, options):
    """How many rows are read of a file; None where it is refused in one line that says nothing of them."""
    try:
        return len(IMPORTERS[kind](path, **options).trajectories)
    except InvalidInput as refused:
        assert "\n" not in str(refused) and len(str(refused)) < 1500
        return None


@pytest.mark.slow
@pytest.mark.parametrize("kind", WHOLE)
def test_a_document_that_is_cut_at_any_byte_is_read_or_refused(kind, tmp_path):
    data, suffix, options = WHOLE[kind]
    path = tmp_path / f"x{suffix}"
    path.write_bytes(data)
    whole = read_or_refused(kind, path, options)
    counts = set()
    for end in range(len(data)):
        path.write_bytes(data[:end])
        counts.add(read_or_refused(kind, path, options))
    assert whole is not None and None in counts and max(count or 0 for count in counts) <= whole


ODD = (
    b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"<", b"&", b"&#0;", b"]]>", b"<!DOCTYPE x [<!ENTITY a 'a'>]>", b"{", b"}",
    b"[" * 3000, b"9" * 5000, b"1e999", b"NaN", b"-", b'"', b"\n", b"\t", b"\\ud800", "\u202e".encode(), b"<a>" * 200,
    b"null", b" " * 300,
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", WHOLE)
@settings(max_examples=150, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_document_with_other_bytes_anywhere_is_read_or_refused(kind, data):
    whole, suffix, options = WHOLE[kind]
    for _ in range(data.draw(st.integers(1, 3))):
        first, second = sorted(data.draw(st.tuples(*[st.integers(0, len(whole))] * 2)))
        middle = data.draw(st.sampled_from(ODD) | st.binary(max_size=8) | st.just(whole[first:second] * 3))
        whole = whole[:first] + middle + whole[second if data.draw(st.booleans()) else first :]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"x{suffix}{data.draw(st.sampled_from(['', '.gz']))}"
        path.write_bytes(gzip.compress(whole) if path.suffix == ".gz" else whole)
        read_or_refused(kind, path, options)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "latin-1"])
@pytest.mark.parametrize("kind", WHOLE)
def test_a_document_of_another_encoding_is_read_or_refused(kind, encoding, tmp_path):
    data, suffix, options = WHOLE[kind]
    (tmp_path / f"x{suffix}").write_bytes(data.decode().replace('encoding="UTF-8"', "").encode(encoding))
    expected = {"utf-16": ("xes", "kml"), "utf-16-le": ("xes", "kml"), "latin-1": tuple(WHOLE)}.get(encoding, ())
    assert (read_or_refused(kind, tmp_path / f"x{suffix}", options) is not None) == (kind in expected)


@pytest.mark.parametrize("kind", WHOLE)
def test_a_packed_document_that_expands_too_far_is_refused(kind, tmp_path, monkeypatch):
    data, suffix, options = WHOLE[kind]
    path = tmp_path / f"x{suffix}.gz"
    path.write_bytes(gzip.compress(data + b"\n" * 10**6))
    assert read_or_refused(kind, path, options) is not None
    monkeypatch.setattr("dphmm.storage.inputs.FREE_BYTES", 1000)
    with pytest.raises(InvalidInput, match="expands to more than"):
        IMPORTERS[kind](path, **options)


@pytest.mark.parametrize("kind", WHOLE)
def test_documents_of_a_folder_and_of_an_archive_are_the_same(kind, tmp_path):
    data, suffix, options = WHOLE[kind]
    options = {name: value for name, value in options.items() if name != "user"} | {"user_from": "file-name"}
    files = {f"all/d/{name}{suffix}": data for name in ("ann", "bob")} | {f"all/d/eve{suffix}": b"\xff", "all/x": b""}
    read = [
        IMPORTERS[kind](source, **options)
        for source in (write_folder(tmp_path, files) / "all", write_zip(tmp_path / "x.zip", files))
    ]
    assert read[0].trajectories.users == ("ann", "bob")
    assert read[0].trajectories.to_arrow().equals(read[1].trajectories.to_arrow())
    assert read[0].rejected.equals(read[1].rejected)
    assert [(row["file"], row["row"]) for row in read[0].rejected.to_pylist()] == [(f"all/d/eve{suffix}", 1)]
