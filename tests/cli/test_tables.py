"""dphmm import: every format end to end, counts, and rows that cannot be read.

dphmm split: two files, both or none; of more rows the first stays.
"""

from __future__ import annotations

import stat

import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@pytest.mark.parametrize("delimiter", [",", ";", "tab", "\\t"])
def test_a_row_set_aside_and_a_ragged_one_have_the_same_line(tmp_path, run, rows_of, delimiter):
    character = {"tab": "\t", "\\t": "\t"}.get(delimiter, delimiter)
    text = 'user,step,lat,lon,note\na,0,1,2,"two\nlines"\n\n'.replace(",", character)
    source, out = tmp_path / "x.csv", tmp_path / "t.csv"
    arguments = ("import", "csv", source, "-o", out, "--delimiter", delimiter)
    source.write_text(text + "a,0,400,2,\n".replace(",", character))
    run(*arguments, code=3)
    assert rows_of(tmp_path / "t.csv.rejected.csv") == [{"line": "5", "reason": "invalid_place"}]
    source.write_text(text + "a,0\n".replace(",", character))
    run(*arguments, "--force", code=3)
    assert rows_of(tmp_path / "t.csv.rejected.csv") == [{"line": "5", "reason": "ragged_row"}]
    # A quote that is never closed is no row of anybody's: whatever follows it would be lost.
    source.write_text(text + 'a,0,"1\nb,0,1,2,\n'.replace(",", character))
    assert run(*arguments, "--force", code=2).stderr.startswith("error: line 5: got a quote that is never closed")


def test_lists_of_rows_of_other_formats(tmp_path, run, rows_of):
    (tmp_path / "w.csv").write_text("id,m1,m2\n1,x,y\n,x,y\n")
    run("import", "sequences", tmp_path / "w.csv", "-o", tmp_path / "s.csv", "--columns", "m1:m2",
        "--user-column", "id", code=3)  # fmt: skip
    assert rows_of(tmp_path / "s.csv.rejected.csv") == [{"line": "3", "reason": "missing_user"}]
    table = pa.table({"user": ["a", "a"], "step": [0, 1], "lat": [1.0, 400.0], "lon": [2.0, 2.0]})
    pq.write_table(table, tmp_path / "p.parquet")
    run("import", "csv", tmp_path / "p.parquet", "-o", tmp_path / "q.csv", code=3)
    assert rows_of(tmp_path / "q.csv.rejected.csv") == [{"row": "2", "reason": "invalid_place"}]


DOCUMENT_FILES = {
    "xes": (
        "x.xes",
        '<log><trace><string key="concept:name" value="a"/><event><string key="concept:name" value="x"/>'
        '<date key="time:timestamp" value="2024-05-06T08:00:00Z"/></event><event/></trace></log>',
        (),
        [{"row": "2", "reason": "invalid_time"}],
    ),
    "geo": (
        "x.gpx",
        '<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg><trkpt lat="50" lon="10">'
        '<time>2024-05-06T08:00:00Z</time></trkpt><trkpt lat="50" lon="10"/></trkseg></trk></gpx>',
        ("--user", "a"),
        [{"row": "2", "reason": "invalid_time"}],
    ),
    "kml": (
        "x.kml",
        "<kml><Placemark><name>a</name><TimeStamp><when>2024-05-06T08:00:00Z</when></TimeStamp><Point><coordinates>1,2"
        "</coordinates></Point></Placemark><Placemark><Point><coordinates>1,2</coordinates></Point></Placemark></kml>",
        ("--user-column", "name"),
        [{"row": "2", "reason": "missing_user"}],
    ),
    "google": (
        "x.json",
        '{"locations": [{"latitudeE7": 1, "longitudeE7": 2, "timestamp": "2024-05-06T08:00:00Z"}, {}]}',
        ("--user", "a"),
        [{"row": "2", "reason": "invalid_time"}],
    ),
    "owntracks": (
        "a.rec",
        '-\t*\t{"_type": "location", "tst": 1714982400, "lat": 1, "lon": 2}\n-\t*\t{\n',
        ("--user-from", "file-name"),
        [{"row": "2", "reason": "ragged_row"}],
    ),
    "jsonl": (
        "x.jsonl",
        '{"who": {"id": "a"}, "t": "2024-05-06T08:00:00Z", "state": "x"}\n{\n',
        ("--user-column", "who.id"),
        [{"row": "2", "reason": "ragged_row"}],
    ),
    "trips": (
        "x.csv",
        "user,started_at,ended_at,PULocationID,DOLocationID\na,2024-05-06T08:00:00Z,2024-05-06T08:00:00Z,1,1\na\n",
        ("--spelling", "exact"),
        [{"line": "3", "reason": "ragged_row"}],
    ),
    "avl": (
        "x.csv",
        "vehicle_id,timestamp,latitude,longitude\na,2024-05-06T10:00:00,1,2\na,2024-05-06T10:00:00,91,2\na,soon,1,2\n",
        ("--timezone", "Europe/Berlin"),
        [{"line": "4", "reason": "invalid_time"}],
    ),
}


@pytest.mark.parametrize("kind", DOCUMENT_FILES)
def test_formats_of_other_programs(tmp_path, run, rows_of, kind):
    name, text, options, listed = DOCUMENT_FILES[kind]
    (tmp_path / name).write_text(text)
    run("import", kind, tmp_path / name, "-o", tmp_path / "t.csv", *options, code=3)
    assert {(row["user"], row["t"]) for row in rows_of(tmp_path / "t.csv")} == {("a", "2024-05-06 08:00:00.000000Z")}
    assert rows_of(tmp_path / "t.csv.rejected.csv") == listed


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("google x.json", "--user: got nothing; expected --user for one person, or --user-from file-name"),
        ("kml x.kml --no-times", "--user-column: got no such column among name, t, lat, lon, trip; expected --user-"),
        ("kml x.kml --user a", "SRC: got places without times; expected --no-times to take them in the order of"),
        ("xes x.xes --state-column nope", "--state-column: got nope; expected one of case:concept:name, concept:name"),
        ("trips x.csv", "--user-column: got no such column among started_at, ended_at, PULocationID, DOLocationID; "
                        "expected --user-column, or --each-trip where each trip is of a person of its own"),
        ("trips x.csv --each-trip --time-column a,b", "--time-column: got a,b; expected START,END, two of"),
        ("trips x.csv --each-trip --user a", "--each-trip: got another rule beside it: a; expected one rule"),
        ("trips x.csv --each-trip --lat-column a,b", "--lat-column: got a,b; expected START,END, two of"),
        ("ais x.csv", "SRC: got columns started_at, ended_at, PULocationID, DOLocationID; expected columns mmsi"),
    ],
)  # fmt: skip
def test_what_is_needed_is_said_in_options(tmp_path, run, arguments, told):
    kind, name, *options = arguments.split()
    text = {
        "x.csv": "started_at,ended_at,PULocationID,DOLocationID\n1,2,3,4\n",
        "x.kml": "<kml><Placemark><LineString><coordinates>1,2</coordinates></LineString></Placemark></kml>",
    }.get(name) or next(text for file, text, *_ in DOCUMENT_FILES.values() if file == name)
    (tmp_path / name).write_text(text)
    assert run("import", kind, tmp_path / name, "-o", tmp_path / "t.csv", *options, code=2).stderr.startswith(
        f"error: {told}"
    )


NAMED = [("csv", option, ()) for option in ("user", "time", "order", "trip", "state", "lat", "lon")] + [
    ("sequences", "user", ("--columns", "t:lon"))
]


@pytest.mark.parametrize(("kind", "option", "more"), NAMED)
def test_a_column_that_is_not_there_is_told_by_its_option(tmp_path, run, kind, option, more):
    arguments = ("import", kind, tmp_path / "x.csv", "-o", tmp_path / "t.csv", f"--{option}-column", "nope", *more)
    (tmp_path / "x.csv").write_text("user,t,lat,lon\na,2024-05-06T08:00:00Z,1,2\n")
    assert run(*arguments, code=2).stderr == f"error: --{option}-column: got nope; expected one of user, t, lat, lon\n"
    # Without a header the first row is somebody's: only how many columns there are is told.
    (tmp_path / "x.csv").write_text("anna,2024-05-06T08:00:00Z,1.234,2\nanna,2024-05-06T08:05:00Z,1.234,2\n")
    told = run(*arguments, code=2).stderr
    assert "4 columns (the first row looks like data" in told
    assert "anna" not in told


def test_local_times(tmp_path, run, one_json):
    clocks = ("2024-05-06T10:00:00", "2024-03-31T02:30:00", "2024-10-27T02:30:00")
    (tmp_path / "x.csv").write_text("who,when,y,x\n" + "".join(f"a,{clock},1,2\n" for clock in clocks))
    options = ("--user-column", "who", "--time-column", "when", "--lat-column", "y", "--lon-column", "x")
    arguments = ("import", "csv", tmp_path / "x.csv", "-o", tmp_path / "t.parquet", *options)
    assert "zone" in run(*arguments, code=2).stderr
    counted = one_json(run(*arguments, "--timezone", "Europe/Berlin", "--json", code=3))
    assert counted["dropped"] == {"ambiguous_time": 1, "nonexistent_time": 1}
    (row,) = pq.read_table(tmp_path / "t.parquet").to_pylist()
    assert (row["lat"], row["lon"], row["t"].isoformat()) == (1, 2, "2024-05-06T08:00:00+00:00")


def test_rows_without_times_are_warned_of(tmp_path, run, one_json):
    (tmp_path / "x.csv").write_text("user,seen,lat,lon\na,2024-05-06T08:00:00Z,1,2\n")
    arguments = ("import", "csv", tmp_path / "x.csv", "-o", tmp_path / "t.parquet", "--force", "--json")
    result = run(*arguments, "--quiet")
    assert "no time column found among user, seen, lat, lon: rows are taken in file order" in result.stderr
    assert "models of a time step refuse them; name one with --time-column" in result.stderr
    grid = ("--grid", "50km", "--bbox", "0,0,4,4", "-o", tmp_path / "m.npz")
    assert (
        "--step: got 1h, and columns user, lat, lon"
        in run("fit", tmp_path / "t.parquet", *grid, "--step", "1h", code=2).stderr
    )
    assert len(one_json(result)["warnings"]) == 1
    assert one_json(run(*arguments, "--time-column", "seen"))["warnings"] == []
    (tmp_path / "x.csv").write_text("user,step,lat,lon\na,0,1,2\n")
    assert one_json(run(*arguments))["warnings"] == []


def test_an_output_is_replaced_only_by_force_and_with_its_list_of_rows(tmp_path, run):
    source, out = tmp_path / "x.csv", tmp_path / "t.csv"
    source.write_text("user,step,lat,lon\na,0,1,2\na,1,400,2\n")
    run("import", "csv", source, "-o", out, code=3)
    first = out.read_bytes()
    source.write_text("user,step,lat,lon\na,0,5,2\n")
    assert "--force" in run("import", "csv", source, "-o", out, code=2).stderr
    assert out.read_bytes() == first
    run("import", "csv", source, "-o", out, "--force")
    assert out.read_bytes() != first
    assert not (tmp_path / "t.csv.rejected.csv").exists()


CABS = "37.75134 -122.39488 0 1213084687\n91 -122.39488 0 1213084687\n"


def test_headerless_text_by_options(tmp_path, run, one_json, rows_of):
    (tmp_path / "new_x.txt").write_text("# c\n" + CABS)
    result = run(
        "import", "csv", tmp_path / "new_x.txt", "-o", tmp_path / "t.parquet", "--names", "lat,lon,occupied,t",
        "--delimiter", "space", "--comment", "#", "--user", "x", "--json", code=3,
    )  # fmt: skip
    counted = one_json(result)
    assert counted["notes"] == ["t: taken as Unix seconds (2 rows)"] and counted["dropped"] == {"invalid_place": 1}
    assert (counted["rows"], counted["kept"], counted["users"]) == (2, 1, 1)
    assert result.stderr.split("\n")[0].strip() == "2 rows in 1 file(s), 1 kept, 1 user"
    assert pq.read_table(tmp_path / "t.parquet").column("lat").to_pylist() == [37.75134, None]
    assert rows_of(tmp_path / "t.parquet.rejected.csv") == [{"line": "3", "reason": "invalid_place"}]


def test_rejected_rows_of_a_folder_are_named_by_file_and_line(tmp_path, run, rows_of):
    (tmp_path / "cabs").mkdir()
    for name in ("new_a.txt", "new_b.txt", "_cabs.txt"):
        (tmp_path / "cabs" / name).write_text(CABS)
    run("import", "cabspotting", tmp_path / "cabs", "-o", tmp_path / "t.parquet", code=3)
    rejected = tmp_path / "t.parquet.rejected.csv"
    assert rows_of(rejected) == [
        {"file": f"cabs/new_{cab}.txt", "line": "2", "reason": "invalid_place"} for cab in "ab"
    ]
    assert stat.S_IMODE(rejected.stat().st_mode) == 0o600
    told = run(
        "import", "csv", tmp_path / "cabs", "-o", tmp_path / "u.parquet", "--names", "lat,lon,occupied,t",
        "--delimiter", "space", "--user-from", "file-name", "--user-pattern", "old_(.+)", code=2,
    )  # fmt: skip
    assert "(3 left out by --user-pattern)" in told.stderr


def test_intervals_by_step(tmp_path, run, rows_of):
    (tmp_path / "x.csv").write_text("user,start,end,label\na,2024-05-06 08:00,2024-05-06 08:10,tea\n")
    arguments = ("import", "intervals", tmp_path / "x.csv", "-o", tmp_path / "t.csv", "--step", "5min")
    assert "--timezone UTC or Europe/Berlin of dphmm import" in run(*arguments, code=2).stderr
    run(*arguments, "--timezone", "Europe/Berlin")
    assert [row["t"] for row in rows_of(tmp_path / "t.csv")] == [
        "2024-05-06 06:00:00.000000Z",
        "2024-05-06 06:05:00.000000Z",
    ]
    assert "--step" in run(*arguments[:-1], "5", "--force", "--timezone", "UTC", code=2).stderr


REMEDIES = [
    ("user,t_local,lat,lon\na,2024-05-06T08:00:00Z,1,2\n", "--time-column t_local, or --no-times"),
    ("user,t,lat,lon\na,5,1,2\n", "--time-format unix-s, unix-ms or unix-us"),
    ("user,t,lat,lon\na,6/5/2024 8:07,1,2\n", '--time-format "%d/%m/%Y %H:%M"'),
    ("user,t,lat,lon\na,2024-05-06T08:00:00Z,116.4,39.9\n", "--lat-column, --lon-column"),
    ("user,t,lat,lon\na,2024-05-06T08:00:00Z,1\n", "--delimiter, --names or --skip-lines"),
    ("user;t;lat\na;1;2\n", "semicolon: --delimiter"),
    ('user,t,lat,lon\na,2024-05-06T08:00:00Z,"52,5",13\n', "--decimal comma"),
    ("who,t,lat,lon\na,1,1,2\n", "--user-column, --user for one person, or --user-from file-name"),
]


@pytest.mark.parametrize(("text", "told"), REMEDIES)
def test_where_nothing_can_be_read_one_line_names_the_option(tmp_path, run, text, told):
    (tmp_path / "x.csv").write_text(text)
    result = run("import", "csv", tmp_path / "x.csv", "-o", tmp_path / "t.parquet", code=2)
    assert told in result.stderr and result.stderr.count("\n") == 1 and "=" not in result.stderr
    assert not (tmp_path / "t.parquet").exists()


def test_two_files_with_nobody_in_both(tmp_path, run, one_json):
    lines = [f"u{i % 9},2024-05-06T08:{i:02}:00Z,1,2" for i in range(60)]
    (tmp_path / "x.csv").write_text("\n".join(["user,t,lat,lon", *lines]) + "\n")
    outputs = (tmp_path / "model.parquet", tmp_path / "people.parquet")
    result = run("split", tmp_path / "x.csv", "-o", *outputs, "--json")
    people = [set(pq.read_table(path).column("user").to_pylist()) for path in outputs]
    assert one_json(result)["people"] == [len(people[0]), len(people[1])]
    assert len(people[0] | people[1]) == 9 and not people[0] & people[1]
    assert "--force" in run("split", tmp_path / "x.csv", "-o", *outputs, code=2).stderr
    before = outputs[0].read_bytes()
    (tmp_path / "x.csv").write_text("\n".join(["user,t,lat,lon", *lines, "new,2024-05-06T08:00:00Z,1,2"]) + "\n")
    assert "--force" in run("split", tmp_path / "x.csv", "-o", *outputs, "--grow", code=2).stderr
    run("split", tmp_path / "x.csv", "-o", *outputs, "--grow", "--force")
    assert outputs[0].read_bytes() == before
    assert set(pq.read_table(outputs[1]).column("user").to_pylist()) == people[1] | {"new"}
    assert (
        "--share: got 2" in run("split", tmp_path / "x.csv", "--share", "2", "-o", *outputs, "--force", code=2).stderr
    )
    assert (
        "--user-column: got who"
        in run("split", tmp_path / "x.csv", "--user-column", "who", "-o", *outputs, "--force", code=2).stderr
    )
