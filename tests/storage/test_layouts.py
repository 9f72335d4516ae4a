"""One reader for every layout of rows: text of any kind, whose they are, how times are written, what is rejected."""

from __future__ import annotations

import gzip
import io
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm.errors import InvalidInput
from dphmm.storage import inputs
from dphmm.storage.csv_files import RecordParts, TextLayout, TextMember, lines_of_rows
from dphmm.storage.importers.folders import lines_by_file, read_files
from dphmm.storage.layouts import IMPORTED
from dphmm.storage.trajectories import looks_like_times
from storage.importers.test_rows import write_folder, write_tar, write_zip

CABS = IMPORTED.changed(
    names="lat,lon,occupied,t", delimiter="space", comment="#", skip_lines=2, user_from="file-name",
    user_pattern="new_(.+)",
)  # fmt: skip


def rows_of(source, layout=None, **options):
    """The rows that are kept, and the rejected ones."""
    found = read_files(source, (layout or IMPORTED).changed(**options))
    rejected = [tuple(row.values()) for row in found.loaded.rejected.to_pylist()]
    return found.loaded.trajectories.placed.to_arrow().to_pylist(), rejected, found


def test_a_row_of_text_of_another_kind_is_read_in_place(tmp_path):
    path = tmp_path / "new_abc.txt"
    path.write_bytes(b"a title\nlat lon\n# c\n  37.75   -122.39 0\t1213084687 \n\n400 1 0 1213084687\n# d\n1 2\n")
    rows, rejected, found = rows_of(path, CABS)
    (row,) = rows
    assert (row["user"], row["lat"], row["lon"], row["t"].isoformat()) == (
        "abc", 37.75, -122.39, "2008-06-10T07:58:07+00:00",
    )  # fmt: skip
    assert rejected == [(2, "invalid_place"), (3, "ragged_row")]
    assert lines_of_rows(path, [1, 2, 3], CABS) == [4, 6, 8]
    assert "t: taken as Unix seconds (2 rows)" in found.notes


def test_folders_archives_and_packed_members_are_the_same_rows(tmp_path):
    texts = {"d/new_a.txt": b"x\ny\n1 2 0 1213084687\nbad\n", "d/new_b.txt": b"x\ny\n", "d/_cabs.txt": b"z",
             "e/new_a.txt.gz": gzip.compress(b"x\ny\n3 4 0 1213084688\n5 400 0 1213084688\n")}  # fmt: skip
    sources = write_zip(tmp_path / "x.zip", texts), write_tar(tmp_path / "x.tar.gz", texts)
    found = [rows_of(source, CABS) for source in (*sources, write_folder(tmp_path / "x", texts))]
    assert found[0][0] == found[1][0] == found[2][0]
    assert [(row["user"], row["lat"]) for row in found[0][0]] == [("a", 1.0), ("a", 3.0)]
    assert found[0][1] == [("d/new_a.txt", 2, "ragged_row"), ("e/new_a.txt.gz", 2, "invalid_place")]
    rejected = found[0][2].loaded.rejected
    assert lines_by_file(tmp_path / "x.zip", rejected, CABS) == [
        ("d/new_a.txt", 4, "ragged_row"), ("e/new_a.txt.gz", 4, "invalid_place"),
    ]  # fmt: skip
    notes = " | ".join(found[0][2].notes)
    assert "1 user(s) have several files" in notes and "1 file without a row: 'd/new_b.txt'" in notes
    assert "1 file left out, whose names do not match new_(.+): 'd/_cabs.txt'" in notes


def test_a_file_of_a_folder_may_have_its_columns_in_another_order_and_without_one_it_is_left_out(tmp_path):
    (tmp_path / "a.csv").write_text("user,t,lat,lon\na,2024-05-06T08:00:00Z,1,2\n")
    (tmp_path / "b.csv").write_text("lon,lat,t,user\n2,1,2024-05-06T08:00:00Z,b\n")
    rows, _, _ = rows_of(tmp_path)
    assert [(row["user"], row["lat"], row["lon"]) for row in rows] == [("a", 1.0, 2.0), ("b", 1.0, 2.0)]
    (tmp_path / "c.csv").write_text("lon,lat,user\n2,1,b\n")
    asked = r"^source: got columns .* in 2 of the files, and .* in 1; expected 2 more .*: time_column=t$"
    with pytest.raises(InvalidInput, match=asked):
        rows_of(tmp_path)
    again, rejected, found = rows_of(tmp_path, time_column="t")
    assert again == rows and [row[1:] for row in rejected] == [(1, "missing_column")]
    assert any("c.csv': no column t, its rows are left out" in note for note in found.notes)


@pytest.mark.parametrize("lead", [0, 1, 2])
def test_columns_of_a_folder_are_named_where_one_person_would_decide_them(lead, tmp_path):
    """A person's own file would have all others' trips read, or left out, whatever they say of it."""
    (tmp_path / "x.csv").write_text("user,t,lat,lon\nx,2024-05-06T08:00:00Z,1,2\n")
    for name in "abc"[: lead + 1]:
        (tmp_path / f"{name}.csv").write_text(f"user,t,lat,lon,trip\n{name},2024-05-06T08:00:00Z,1,2,7\n")
    if lead < 2:
        with pytest.raises(InvalidInput, match=r"columns that are named: trip_column=trip$"):
            rows_of(tmp_path)
    named = rows_of(tmp_path, trip_column="trip")
    assert {row["user"]: row["trip"] for row in named[0]} == {"x": -1} | dict.fromkeys("abc"[: lead + 1], 7)
    assert lead < 2 or rows_of(tmp_path)[:2] == named[:2]


def test_columns_that_are_named_are_read_of_the_only_file_that_has_them(tmp_path):
    for name in "abc":
        (tmp_path / f"{name}.csv").write_text(f"user,t,lat,lon\n{name},2024-05-06T08:00:00Z,1,2\n")
    (tmp_path / "x.csv").write_text("user,when,lat,lon\nx,2024-05-06T08:00:00Z,1,2\n")
    rows, rejected, _ = rows_of(tmp_path, time_column="when")
    assert [row["user"] for row in rows] == ["x"] and [row[1:] for row in rejected] == [(1, "missing_column")] * 3
    with pytest.raises(InvalidInput, match=r"^time_column: got whom"):
        rows_of(tmp_path, time_column="whom")


def test_a_person_has_one_vote_under_all_spellings(tmp_path):
    """Five files of one person were five votes, and decided which columns are read of others."""
    common, own = "t,lat,lon\n2024-05-06T08:00:00Z,1,2\n", "t,latitude,longitude\n2024-05-06T08:00:00Z,1,2\n"
    files = {f"p{number}.csv": common for number in range(3)}
    files |= {f"{name}.csv": own for name in ("mal", "Mal", "MAL", "mAl", "maL")}
    rows, rejected, _ = rows_of(write_zip(tmp_path / "x.zip", files), user_from="file-name")
    assert [row["user"] for row in rows] == ["p0", "p1", "p2"]
    assert [row[2] for row in rejected] == ["missing_column"] * 5
    several, _, _ = rows_of(tmp_path / "x.zip", user_from="file-name", spelling="exact")
    assert {row["user"] for row in several} == {"mal", "Mal", "MAL", "mAl", "maL"}


FORMATS = [
    ("1213084687", {}, "2008-06-10T07:58:07"),
    ("1213084687.5", {}, "2008-06-10T07:58:07.500000"),
    ("1213084687250", {}, "2008-06-10T07:58:07.250000"),
    ("1213084687250001", {}, "2008-06-10T07:58:07.250001"),
    ("5", {"time_format": "unix-s"}, "1970-01-01T00:00:05"),
    ("-5", {"time_format": "unix-ms"}, "1969-12-31T23:59:59.995000"),
    ("06/05/2024 08:07", {"time_format": "%d/%m/%Y %H:%M", "timezone": "UTC"}, "2024-05-06T08:07:00"),
    ("06/05/2024 08:07", {"time_format": "%m/%d/%Y %H:%M", "timezone": "Europe/Berlin"}, "2024-06-05T06:07:00"),
    ("Tue Apr 03 18:00:09 +0000 2012", {"time_format": "%a %b %d %H:%M:%S %z %Y"}, "2012-04-03T18:00:09"),
    ("2024-05-06 10:00", {"timezone": "Europe/Berlin"}, "2024-05-06T08:00:00"),
]


@pytest.mark.parametrize(("text", "options", "moment"), FORMATS)
def test_times_as_they_are_written(tmp_path, text, options, moment):
    (tmp_path / "x.csv").write_text(f"user,t,lat,lon\na,{text},1,2\n")
    ((row,), rejected, _) = rows_of(tmp_path / "x.csv", **options)
    assert (row["t"].replace(tzinfo=None).isoformat(), rejected) == (moment, [])


BLANKS = [
    "user, t, lat, lon\na, 2024-05-06T08:00:00Z, 52.5, 13.3\na, 2024-05-06T08:10:00Z, 52.51, 13.3\n",
    "user,t,lat,lon\na,2024-05-06T08:00:00Z, 52.5, 13.3\na , 2024-05-06T08:10:00Z ,+52.51,\t13.3\t\n",
]


@pytest.mark.parametrize("text", BLANKS)
def test_blanks_around_cells_and_names_of_columns_are_no_part_of_them(tmp_path, text):
    (tmp_path / "x.csv").write_text(text)
    rows, rejected, _ = rows_of(tmp_path / "x.csv")
    assert [(row["lat"], row["lon"]) for row in rows] == [(52.5, 13.3), (52.51, 13.3)] and rejected == []


def test_decimal_commas_are_read_where_they_are_said_and_points_are_none_then(tmp_path):
    cells = ["52,5;13,3", "52,51;13,31", "52.5;13,3", "1.052,5;13"]
    (tmp_path / "x.csv").write_text("user;t;lat;lon\n" + "".join(f"a;2024-05-06T08:00:00Z;{each}\n" for each in cells))
    rows, rejected, _ = rows_of(tmp_path / "x.csv", delimiter="semicolon", decimal="comma")
    assert [(row["lat"], row["lon"]) for row in rows] == [(52.5, 13.3), (52.51, 13.31)]
    assert rejected == [(3, "invalid_place"), (4, "invalid_place")]
    with pytest.raises(InvalidInput, match="or decimal=comma"):
        rows_of(tmp_path / "x.csv", delimiter="semicolon")
    (tmp_path / "x.csv").write_text('user,t,lat,lon\na,2024-05-06T08:00:00Z,"52,5","13,3"\n')
    assert rows_of(tmp_path / "x.csv", decimal="comma")[0][0]["lat"] == 52.5
    with pytest.raises(InvalidInput, match=r"^decimal: got ;"):
        rows_of(tmp_path / "x.csv", decimal=";")


@pytest.mark.parametrize(("fold", "moments"), [("first", ["00:30"]), ("second", ["01:30"]), (None, [])])
def test_of_an_hour_that_clocks_show_twice_the_one_that_is_said_is_meant(tmp_path, fold, moments):
    (tmp_path / "x.csv").write_text("user,t,lat,lon\na,2024-10-27 02:30,1,2\na,2024-10-27 12:00,1,2\n")
    options = {} if fold is None else {"fold": fold}
    rows, rejected, _ = rows_of(tmp_path / "x.csv", timezone="Europe/Berlin", **options)
    assert [f"{row['t']:%H:%M}" for row in rows] == [*moments, "11:00"]
    assert rejected == ([] if moments else [(1, "ambiguous_time")])


def test_numbers_and_times_of_parquet_columns(tmp_path):
    columns = {"user": ["a", "b"], "lat": [1.0, 1.0], "lon": [2.0, 2.0]}
    for times in (pa.array([1213084687, 5]), pa.array([1213084687.0, 5.0])):
        pq.write_table(pa.table({**columns, "t": times}), tmp_path / "x.parquet")
        rows, rejected, found = rows_of(tmp_path / "x.parquet")
        assert [row["user"] for row in rows] == ["a"] and rejected == [(2, "unclear_unit")]
        assert found.notes == ("t: taken as Unix seconds (1 rows)",)
    pq.write_table(pa.table({**columns, "kept": pa.array([0, 1], pa.timestamp("us", "UTC"))}), tmp_path / "x.parquet")
    with pytest.raises(InvalidInput, match="time: got no column t, but kept; expected time_column=kept"):
        rows_of(tmp_path / "x.parquet")


@pytest.mark.parametrize("name", ["t_local", "timestamp", "datetime", "pickup_datetime", "eventTime", "when", "Date"])
def test_a_column_whose_name_says_times_is_proposed_and_not_ignored(tmp_path, name):
    assert looks_like_times(name)
    (tmp_path / "x.csv").write_text(f"user,{name},lat,lon\na,2024-05-06T08:00:00Z,1,2\n")
    with pytest.raises(InvalidInput, match=f"time_column={name}, or no_times=True"):
        rows_of(tmp_path / "x.csv")
    assert rows_of(tmp_path / "x.csv", no_times=True)[0] == [{"user": "a", "lat": 1.0, "lon": 2.0}]
    (tmp_path / "x.csv").write_text(f"user,{name},step,lat,lon\na,2024-05-06T08:00:00Z,7,1,2\n")
    assert f"{name}: not read" in rows_of(tmp_path / "x.csv")[2].notes[0]


@pytest.mark.parametrize("name", ["seen", "lat", "route", "datum", "distance", "state", "estimate"])
def test_other_names_say_nothing_of_times(name):
    assert not looks_like_times(name)


def test_encodings_and_bytes_that_are_not_of_them(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes("user,state\nJosé,café\nann,b\n".encode("latin-1"))
    rows, rejected, _ = rows_of(path)
    assert [row["user"] for row in rows] == ["ann"] and rejected == [(1, "wrong_encoding")]
    assert {row["user"] for row in rows_of(path, encoding="latin-1")[0]} == {"José", "ann"}
    path.write_bytes("user,state\nJosé,café\n".encode("utf-16"))
    assert rows_of(path, encoding="utf-16")[0][0]["state"] == "café"
    with pytest.raises(InvalidInput, match="encoding: got klingon; expected the name of one"):
        rows_of(path, encoding="klingon")
    path.write_bytes("user,état\na,b\n".encode("latin-1"))
    with pytest.raises(InvalidInput, match="names of columns that are not ascii"):
        rows_of(path, encoding="ascii")


NOTHING_LEFT = [
    ("a,06/05/2024 08:07,1,2", {}, r'1 invalid_time.* 99/99/9999 99:99; time_format="%d/%m/%Y %H:%M" or "%m/%d'),
    ("a,20240506,1,2", {}, "unix-s, unix-ms or unix-us"),
    ("a,2024-05-06T08:00:00,1,2", {}, "times without a zone"),
    ("a,2024-05-06T08:00:00Z,116.4,39.9", {}, "lat is beyond 90 where lon is not: are they swapped"),
    ("a,2024-05-06T08:00:00Z,1", {}, "1 ragged_row.*delimiter="),
    ("\xff,2024-05-06T08:00:00Z,1,2", {}, "1 wrong_encoding.*encoding=latin-1"),
    ("a;b,2024,1,2", {"delimiter": ";", "names": "user,lat"}, "lat and lon, or state"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "options", "told"), NOTHING_LEFT)
def test_where_no_row_can_be_read_the_commonest_reason_and_its_remedy_are_told(tmp_path, line, options, told):
    (tmp_path / "x.csv").write_bytes(f"user,t,lat,lon\n{line}\n".encode("latin-1"))
    with pytest.raises(InvalidInput, match=told) as refused:
        rows_of(tmp_path / "x.csv", **options)
    assert "\n" not in str(refused.value) and "2024-05" not in str(refused.value)


OPTIONS = [
    ({"delimiter": ",,"}, "delimiter"),
    ({"names": "a,a"}, "names"),
    ({"skip_lines": -1}, "skip_lines"),
    ({"comment": " "}, "comment"),
    ({"time_format": "%H:%M"}, "time_format"),
    ({"time_format": "soon"}, "time_format"),
    ({"timezone": "Mars/Olympus"}, "timezone"),
    ({"user_from": "moon"}, "user_from"),
    ({"user_pattern": "(.)"}, "user_pattern"),
    ({"user_from": "file-name", "user_pattern": "x"}, "user_pattern"),
    ({"user_from": "file-name", "user_pattern": "(y)"}, "user_pattern"),
    ({"user_from": "folder-name"}, "user_from"),
    ({"user_from": "file-name", "user_name": "a"}, "user_from"),
    ({"user_name": "a\n"}, "names"),
    ({"no_times": True, "time_column": "t"}, "no_times"),
]


@pytest.mark.parametrize(("options", "field"), OPTIONS)
def test_options_that_say_nothing_are_refused_by_their_name(tmp_path, options, field):
    (tmp_path / "x.csv").write_text("user,t,lat,lon\na,2024-05-06T08:00:00Z,1,2\n")
    with pytest.raises(InvalidInput) as refused:
        rows_of(tmp_path / "x.csv", **options)
    assert refused.value.field.startswith(field)


def test_options_of_text_are_refused_for_parquet(tmp_path):
    pq.write_table(pa.table({"user": ["a"], "state": ["b"]}), tmp_path / "x.parquet")
    for option in ({"delimiter": ";"}, {"names": "a,b"}, {"encoding": "latin-1"}, {"comment": "#"}, {"skip_lines": 1}):
        with pytest.raises(InvalidInput, match="Parquet has columns of its own"):
            rows_of(tmp_path / "x.parquet", **option)


def test_who_nobody_says_and_cells_that_are_not_cut_are_told_with_the_option(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("who;t;lat;lon\na;2024-05-06T08:00:00Z;1;2\n")
    with pytest.raises(InvalidInput, match="separated by semicolon: delimiter="):
        rows_of(path)
    path.write_text("37.75134,-122.39488,0,1213084687\n")
    with pytest.raises(InvalidInput, match=r"4 columns .the first row looks like data.*names= where the first row"):
        rows_of(path)


def test_an_archive_does_not_change_between_its_columns_and_its_rows(tmp_path, monkeypatch):
    source, digests = write_zip(tmp_path / "x.zip", {"a.csv": b"user,state\na,b\n"}), iter("aabb")
    monkeypatch.setattr(inputs, "file_digest", lambda path: next(digests))
    with pytest.raises(InvalidInput, match="changed while it was read"):
        rows_of(source)


def test_archives_that_expand_too_far_lead_elsewhere_or_have_no_rows_are_refused(tmp_path):
    with pytest.raises(InvalidInput, match="expands to more than"):
        rows_of(write_zip(tmp_path / "x.zip", {"a.csv.gz": gzip.compress(b"\0" * (1 << 27))}))
    with pytest.raises(InvalidInput, match="no path that leaves it"):
        rows_of(write_zip(tmp_path / "z.zip", {"../a.csv": b"user,state\na,b\n"}))
    with pytest.raises(InvalidInput, match="without a file that has rows"):
        rows_of(write_zip(tmp_path / "e.zip", {"a.jpg": b"x"}))


#: Lines with their ends, of several kinds in one text.
LINES = st.lists(
    st.tuples(st.text(alphabet="a1 \t;#-=", max_size=8), st.sampled_from(["\n", "\r\n", "\r"])), max_size=8
)


@given(
    LINES,
    st.booleans(),
    st.sampled_from([" ", "\t", ";"]),
    st.booleans(),
    st.sampled_from([None, "#"]),
    st.integers(0, 2),
    st.booleans(),
)
def test_the_parser_reads_what_lines_are_one_by_one(lines, ended, delimiter, runs, comment, skip, underlined):
    layout = TextLayout(delimiter, ("x",), comment=comment, skip=skip, runs=runs, underlined=underlined)
    text = "".join(line + end for line, end in lines)
    text = text if ended else text.rstrip("\r\n")
    kept = [cleaned(line, at, layout) for at, line in enumerate(io.StringIO(text, newline=""))]
    read = b"".join(RecordParts(TextMember("x", text.encode()), layout)).decode()
    # Each line is one still: an end of two signs is not made of two ends.
    assert read.replace("\r\n", "\n").replace("\r", "\n") == "".join(kept)


@pytest.mark.parametrize(
    ("removed", "layout"),
    [
        ("#", {"comment": "#"}),
        ("---", {"underlined": True}),
        ("  ", {"runs": True, "delimiter": " "}),
    ],
)
def test_a_line_that_is_removed_between_a_cr_and_an_lf_counts(tmp_path, removed, layout):
    """The list of rows set aside named the line before."""
    (tmp_path / "x.csv").write_bytes(f"a\r{removed}\nb\r\nc".encode())
    assert lines_of_rows(tmp_path / "x.csv", [1, 2], TextLayout(**layout)) == [3, 4]


def cleaned(line, at, layout):
    """A line as the parser has it, with LF at its end: nothing but that where it is no record."""
    body = line.rstrip("\r\n")
    end = "" if body == line else "\n"
    underline = layout.underlined and at == layout.skip + 1 and re.fullmatch(r"[-=\s]*[-=]{2}[-=\s]*", line)
    if at < layout.skip or underline or (layout.comment is not None and body.startswith(layout.comment)):
        return end
    if not layout.runs:
        return body + end
    between = "[ \t]" if layout.delimiter == " " else re.escape(layout.delimiter)
    cells = [cell.strip(" ") for cell in re.split(between, body)]
    return layout.delimiter.join(filter(None, cells)) + end
