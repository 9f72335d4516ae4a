"""Tables as files: what is written is read back, and what is no table is refused in one line without a value."""

from __future__ import annotations

import csv
import gzip
import io
import pickle
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm.errors import InvalidInput
from dphmm.storage import csv_files, inputs
from dphmm.storage.csv_files import RecordParts, TextLayout, TextMember
from dphmm.storage.inputs import checked_input, replacing
from dphmm.storage.tables import column_names, read_batches, read_rows, read_table, table_writer, write_table
from dphmm.storage.trajectories import load_trajectories

CANARY = "CANARY_7f3a116.30417"
SUFFIXES = (".parquet", ".csv", ".csv.gz")


def some_table():
    return pa.table(
        {
            "user": ["001", 'a "quoted", id', "line\nbreak", "=HYPERLINK(1)"],
            "t": pa.array([0, 1, 10**15, None], pa.timestamp("us", "UTC")),
            "x": [-116.3, 1e-7, 1e22, 0.1 + 0.2],
            "n": [1, -2, 3, None],
        }
    )


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_table_comes_back(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    write_table(path, some_table())
    back = read_table(path, text=("user",))
    assert back.column("user").to_pylist() == some_table().column("user").to_pylist()
    assert back.column("x").to_pylist() == some_table().column("x").to_pylist()
    assert back.column("n").to_pylist() == [1, -2, 3, None]
    times = back.column("t").cast(pa.timestamp("us", "UTC"))
    assert times.to_pylist() == some_table().column("t").to_pylist()
    assert column_names(path) == ["user", "t", "x", "n"]
    assert read_table(path, columns=["n", "x"]).column_names == ["n", "x"]
    assert [p.name for p in tmp_path.iterdir()] == [f"x{suffix}"]


#: What a spreadsheet evaluates, what escapes it, and what a reader of CSV takes for something else.
HOSTILE = st.text(
    st.sampled_from(list("'=+-@\t\r\n\",;0159.eE a_N\u00e9\u00a0\ufeff\u200f\uff1d")), min_size=1, max_size=8
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
TEXTS = {
    "string": pa.string(),
    "large": pa.large_string(),
    "view": pa.string_view(),
    "dictionary": pa.dictionary(pa.int32(), pa.string()),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
@given(
    cells=st.lists(st.tuples(HOSTILE, FLOATS), min_size=1, max_size=6),
    name=HOSTILE.filter(lambda text: text == text.strip(" \t")),
)
def test_ids_and_numbers_come_back_as_they_went_in(tmp_path_factory, kind, suffix, cells, name):
    path = tmp_path_factory.getbasetemp() / f"ids-{kind}{suffix}"
    ids, numbers = map(list, zip(*cells, strict=True))
    write_table(path, pa.table({name: pa.array(ids).cast(TEXTS[kind]), "x": numbers}))
    back = read_table(path, text=(name,))
    assert back.column_names == [name, "x"] and back.column(name).to_pylist() == ids
    assert back.column("x").cast(pa.float64()).to_pylist() == numbers
    opened = gzip.decompress(path.read_bytes()) if suffix.endswith("gz") else path.read_bytes()
    cells = [cell for row in csv.reader(io.StringIO(opened.decode(), newline="")) for cell in row]
    assert not [cell for cell in cells if cell.startswith(FORMULAS) and not NUMBER.fullmatch(cell)]


FORMULAS = ("=", "+", "-", "@", "\t", "\r")
NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


def test_numbers_written_as_text_are_left_alone(tmp_path):
    write_table(tmp_path / "x.csv", pa.table({"user": ["-5", "+1.5e3", "-116.3"]}))
    assert (tmp_path / "x.csv").read_text() == '"user"\n"-5"\n"+1.5e3"\n"-116.3"\n'


def test_text_columns_keep_zeros_and_words_for_nothing(tmp_path):
    (tmp_path / "x.csv").write_text("user,v\n007,1\nNA,2\nnull,3\n")
    table = read_table(tmp_path / "x.csv", text=("user",))
    assert table.column("user").to_pylist() == ["007", "NA", "null"]
    assert table.column("v").to_pylist() == [1, 2, 3]
    assert read_table(tmp_path / "x.csv", text=None).column("v").to_pylist() == ["1", "2", "3"]


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_byte_order_marks_and_line_ends_are_handled(tmp_path, start, end):
    (tmp_path / "x.csv").write_bytes(start + end.join([b"user,v", '"é\ne",1'.encode(), b"b,2", b""]))
    table = read_table(tmp_path / "x.csv")
    assert table.to_pydict() == {"user": ["é\ne", "b"], "v": [1, 2]}


BAD_CSV = {
    "empty": (b"", "0 rows"),
    "utf16": ("user,v\na,1\n".encode("utf-16"), "UTF-16"),
    "latin1": (b"user,v\na,1\nb,2\n" + CANARY.encode() + b"\xe9,3\n", "line 4"),
    "nul": (b"user,v\na,1\n" + CANARY.encode() + b"\x00,2\n", "NUL in line 3"),
    "short row": (b"user,v\na,1\n" + CANARY.encode() + b"\n", "line 3"),
    "long row": (b"user,v\n" + CANARY.encode() + b",1,2\n", "line 2"),
    "open quote": (b'user,v\n"' + CANARY.encode() + b",1\nb,2\n", "quotes|fields"),
    "two columns": (b"user,user\na,1\n", "two columns"),
    "parquet": (b"PAR1" + b"\x01" * 20, "Parquet"),
    "pickle": (pickle.dumps({"a": 1}), "pickle"),
    "gzip": (gzip.compress(b"user,v\n"), "gzip"),
    "zip": (b"PK\x03\x04 ...", "zip"),
}


@pytest.mark.parametrize("name", BAD_CSV)
@pytest.mark.parametrize("packed", [False, True])
def test_bad_csv_is_refused_in_one_line_without_its_cells(tmp_path, name, packed):
    data, words = BAD_CSV[name]
    path = tmp_path / ("x.csv.gz" if packed else "x.csv")
    path.write_bytes(gzip.compress(data) if packed else data)
    with pytest.raises(InvalidInput, match=words) as refused:
        read_table(path)
    assert CANARY not in str(refused.value) and "\n" not in str(refused.value)
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


def test_a_ragged_row_is_named_in_a_long_file_too(tmp_path):
    lines = ["user,v", *(f"u{i},{i}" for i in range(3_000_000 // 10)), CANARY, "z,1"]
    (tmp_path / "x.csv").write_text("\n".join(lines))
    with pytest.raises(InvalidInput, match="line 300002: got 1 fields; expected 2"):
        read_table(tmp_path / "x.csv")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_column_that_is_not_there_is_named(tmp_path, suffix):
    write_table(tmp_path / f"x{suffix}", some_table())
    with pytest.raises(InvalidInput, match="column: got nope; expected one of user, t, x, n"):
        read_table(tmp_path / f"x{suffix}", columns=["user", "nope"])


def test_paths_that_are_no_tables_are_refused(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "x.txt").write_text("a")
    (tmp_path / "x.pkl").write_text("a")
    for path, words in [
        (tmp_path / "missing.csv", "exists"),
        (tmp_path / "folder.csv", "folder"),
        ("/dev/zero", "device or a pipe"),
        (tmp_path / "x.txt", ".parquet, .csv or .csv.gz"),
        (tmp_path / "x.pkl", "pickles are never loaded"),
        (str(tmp_path / "a\0.csv"), "NUL"),
    ]:
        with pytest.raises(InvalidInput, match=words):
            read_table(path)


def test_broken_parquet_is_refused(tmp_path):
    path = tmp_path / "x.parquet"
    write_table(path, some_table())
    whole = path.read_bytes()
    for data, words in [
        (b"", "0 rows"),
        (whole[:-1], "truncated"),
        (whole[:8], "truncated"),
        (b"user,v\n", "not Parquet"),
        (whole[:-40] + b"\xff" * 32 + whole[-8:], "damaged"),
        (b"PARE" + whole[4:], "encrypted"),
    ]:
        path.write_bytes(data)
        with pytest.raises(InvalidInput, match=words):
            read_table(path)


def test_every_truncation_of_a_parquet_file_is_refused(tmp_path):
    write_table(tmp_path / "x.parquet", some_table())
    whole = (tmp_path / "x.parquet").read_bytes()
    for length in range(0, len(whole), 61):
        (tmp_path / "y.parquet").write_bytes(whole[:length])
        with pytest.raises(InvalidInput):
            read_table(tmp_path / "y.parquet")


def test_extension_types_are_refused_wherever_they_hide(tmp_path):
    uuid = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0123456789abcdef"], pa.binary(16)))
    hidden = pa.field("v", pa.struct([pa.field("w", pa.int64(), metadata={"ARROW:extension:name": "evil"})]))
    tables = [
        pa.table({"u": uuid}),
        pa.table(
            [pa.array([1])],
            schema=pa.schema([pa.field("v", pa.int64(), metadata={"ARROW:extension:name": "e"})]),
        ),
        pa.table([pa.array([{"w": 1}], hidden.type)], schema=pa.schema([hidden])),
    ]
    for table in tables:
        pq.write_table(table, tmp_path / "x.parquet")
        with pytest.raises(InvalidInput, match="extension type"):
            read_table(tmp_path / "x.parquet")


def test_two_columns_of_one_name_are_refused_in_parquet(tmp_path):
    pq.write_table(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]), tmp_path / "x.parquet")
    with pytest.raises(InvalidInput, match="two columns"):
        read_table(tmp_path / "x.parquet")


def test_metadata_of_a_file_is_not_taken_over(tmp_path):
    table = some_table().replace_schema_metadata({"pandas": "not even JSON"})
    pq.write_table(table, tmp_path / "x.parquet")
    assert not read_table(tmp_path / "x.parquet").schema.metadata


def test_parquet_is_streamed_in_parts(tmp_path):
    pq.write_table(pa.table({"v": range(1000)}), tmp_path / "x.parquet", row_group_size=100)
    parts = list(read_batches(tmp_path / "x.parquet", rows=64))
    assert max(map(len, parts)) <= 100 and len(parts) > 5
    assert pa.concat_tables(parts).column("v").to_pylist() == list(range(1000))
    pq.write_table(pa.table({"v": pa.array([], pa.int64())}), tmp_path / "y.parquet")
    assert [len(part) for part in read_batches(tmp_path / "y.parquet")] == [0]


def test_rows_of_parquet_that_are_looked_at_are_few_at_a_time(tmp_path):
    """However long the groups of the file are: what is made of a part on the way is in memory at once."""
    pq.write_table(pa.table({"x": pa.nulls(600_000, pa.int8())}), tmp_path / "x.parquet", row_group_size=600_000)
    parts = [len(part) for part in read_rows(tmp_path / "x.parquet").parts(["x"])]
    assert sum(parts) == 600_000 and max(parts) <= 2**18


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("parts", [read_batches, lambda path: read_rows(path).parts(["user"])])
def test_a_file_may_not_change_before_its_last_part_is_used(tmp_path, parts, suffix):
    path = tmp_path / f"x{suffix}"
    write_table(path, pa.table({"user": ["a", "b"]}))
    with pytest.raises(InvalidInput, match="changed while it was read"):
        for _ in parts(path):
            path.write_bytes(path.read_bytes() + b"c")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_parts_can_be_appended(tmp_path, suffix):
    table = pa.table({"user": ["=a", "b"], "v": [1, 2]})
    with table_writer(tmp_path / f"x{suffix}", table.schema) as append:
        append(table)
        append(table)
    assert read_table(tmp_path / f"x{suffix}").to_pydict() == {"user": ["=a", "b"] * 2, "v": [1, 2] * 2}


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    write_table(path, some_table())
    before = path.read_bytes()
    with pytest.raises(RuntimeError), table_writer(path, some_table().schema) as append:
        append(some_table())
        raise RuntimeError
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_outputs_are_checked_before_any_work(tmp_path):
    source = tmp_path / "x.csv"
    source.write_text("user\na\n")
    link = tmp_path / "link.csv"
    link.symlink_to(source)
    for path, words in [
        (source, "input"),
        (link, "input"),
        (tmp_path / "none" / "x.csv", "folder that exists"),
        (tmp_path / "x.txt", ".parquet"),
    ]:
        with pytest.raises(InvalidInput, match=words):
            write_table(path, some_table(), inputs=[source])
    assert source.read_text() == "user\na\n"


def test_csv_has_no_nested_columns(tmp_path):
    with pytest.raises(InvalidInput, match="v: got type list"):
        write_table(tmp_path / "x.csv", pa.table({"v": [[1]]}))
    assert list(tmp_path.iterdir()) == []


def test_truncated_gzip_and_bombs_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b"user\n" + b"a\n" * 10_000)[:-20])
    with pytest.raises(InvalidInput, match="truncated"):
        read_table(path)
    path.write_bytes(gzip.compress(b"user\n" + b"a\n" * 500_000))
    assert read_table(path).num_rows == 500_000
    monkeypatch.setattr(inputs, "FREE_BYTES", 1000)
    with pytest.raises(InvalidInput, match="expands to more"):
        read_table(path)


def test_a_written_file_has_ordinary_permissions(tmp_path):
    plain = tmp_path / "plain"
    plain.touch()
    with replacing(tmp_path / "x.csv") as temporary:
        temporary.write_text("a")
    assert (tmp_path / "x.csv").stat().st_mode == plain.stat().st_mode


def test_symbolic_links_to_files_are_followed(tmp_path):
    (tmp_path / "x.csv").write_text("user\na\n")
    (tmp_path / "link.csv").symlink_to(tmp_path / "x.csv")
    assert checked_input(tmp_path / "link.csv").name == "link.csv"


TEXT = 'user;lat;lon;page\n001;1.5;2.5;"a;b"\n=x;3;4;two\n'


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
@pytest.mark.parametrize("delimiter", [";", "|", ":"])
def test_the_same_rows_by_any_delimiter(tmp_path, suffix, delimiter):
    text = ("﻿" + TEXT.replace(";", delimiter)).encode()
    path = tmp_path / f"x{suffix}"
    path.write_bytes(gzip.compress(text) if suffix.endswith(".gz") else text)
    rows = load_trajectories(path, delimiter=delimiter, state_column="page").trajectories
    assert rows.users == ("001", "=x")
    assert rows.state.tolist()[0] == f"a{delimiter}b"
    assert load_trajectories(path, delimiter=delimiter, lat_column="lat").trajectories.lat.tolist() == [1.5, 3]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('user;lat;lon\na;1;2\n"b;1\nc;1;2\n', "line 3: got a quote that is never closed"),
        ("user,lat,lon\na,1,2\n", "cells that are separated by comma"),
        ("user;lat;lon\n", "0 rows"),
        (b"user;lat;Jos\xe9\na;1;2\n", "UTF-8 in line 1"),
        ("user;lat;lon\na;1;2\n".encode("utf-16-le"), "NUL in line 1"),
    ],
)
def test_bad_files_are_refused(tmp_path, text, words):
    (tmp_path / "x.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InvalidInput, match=words):
        load_trajectories(tmp_path / "x.csv", delimiter=";")


@pytest.mark.parametrize("delimiter", ["", ";;", '"', "\n", "§"])
def test_a_delimiter_is_one_character(tmp_path, delimiter):
    (tmp_path / "x.csv").write_text(TEXT)
    with pytest.raises(InvalidInput, match="one character"):
        load_trajectories(tmp_path / "x.csv", delimiter=delimiter)


def test_parquet_has_none(tmp_path):
    (tmp_path / "x.parquet").write_bytes(b"")
    with pytest.raises(InvalidInput, match=r"^delimiter: got ;; expected a text"):
        load_trajectories(tmp_path / "x.parquet", delimiter=";")


def rows_of(tmp_path, data, delimiter=";"):
    (tmp_path / "x.csv").write_bytes(data.replace(b";", delimiter.encode()))
    loaded = load_trajectories(tmp_path / "x.csv", delimiter=delimiter)
    rejected = loaded.rejected
    return (
        [loaded.trajectories.users[u] for u in loaded.trajectories.placed.user],
        dict(zip(rejected.column("row").to_pylist(), rejected.column("reason").to_pylist(), strict=True)),
    )


@pytest.mark.parametrize("delimiter", [";", ","])
def test_a_row_that_is_none_is_set_aside_by_its_number(tmp_path, delimiter):
    data = (
        b"user;lat;lon\n"
        b"a;1;2\nb;1\n\nc;1;2;3\nJos\xe9;1;2\nd;\xff1;2\n"
        b"e\0;1;2\nf;1;2\n"
        b'g;"1\n";2;3\n"h"x;1;2\n\xe9\ni;400;2\nj;1;2\nk'
    )
    users, reasons = rows_of(tmp_path, data, delimiter)
    assert users == ["a", "f", "hx", "j"]
    assert reasons == {
        2: "ragged_row", 3: "ragged_row", 4: "wrong_encoding", 5: "wrong_encoding", 6: "missing_user", 8: "ragged_row",
        10: "ragged_row", 11: "invalid_place", 13: "ragged_row",
    }  # fmt: skip


def test_a_byte_that_is_not_text_spoils_its_cell_wherever_blocks_end(monkeypatch):
    """Characters of several bytes are cut by the ends of blocks: every split reads the same."""
    data = "aé€😀".encode() + b"\xff" + "é".encode()[:1] + b"b" + "€".encode()[:2]
    whole = "aé€😀\x1a\x1ab\x1a\x1a".encode()
    for size in range(1, len(data) + 2):
        monkeypatch.setattr(csv_files, "_ROW_BLOCK", size)
        assert b"".join(RecordParts(TextMember("x", data), TextLayout(names=("a",)))) == whole


def test_rows_of_another_width_in_a_long_file_have_their_numbers(tmp_path):
    lines = [b"u%d;1;2" % i for i in range(200_000)]
    lines[150_000] = lines[199_998] = b"x"
    users, reasons = rows_of(tmp_path, b"user;lat;lon\n" + b"\n".join(lines))
    assert len(users) == 199_998 and reasons == {150_001: "ragged_row", 199_999: "ragged_row"}
