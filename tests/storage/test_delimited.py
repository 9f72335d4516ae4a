"""CSV with another delimiter than a comma."""

from __future__ import annotations

import gzip

import pytest

from dphmm.errors import InvalidInput
from dphmm.storage.trajectories import load_trajectories

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
        ('user;lat;lon\na;1;2\n"b;1\nc;1;2\n', "line 3: got 1 fields"),
        ("user,lat,lon\na,1,2\n", "no such column"),
        ("user;user\n", "two columns"),
        ("", "0 rows"),
        ("user;lat;lon\n", "0 rows"),
        (b"user;lat;Jos\xe9\na;1;2\n", "UTF-8 in line 1"),
        ("user;lat;lon\na;1;2\n".encode("utf-16"), "UTF-16"),
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
    with pytest.raises(InvalidInput, match="csv"):
        load_trajectories(tmp_path / "x.parquet", delimiter=";")


def rows_of(tmp_path, data, delimiter=";"):
    (tmp_path / "x.csv").write_bytes(data.replace(b";", delimiter.encode()))
    loaded = load_trajectories(tmp_path / "x.csv", delimiter=delimiter)
    rejected = loaded.rejected
    return (
        [loaded.trajectories.users[u] for u in loaded.trajectories.user],
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
        2: "ragged_row", 3: "ragged_row", 4: "missing_user", 5: "invalid_place", 6: "missing_user", 8: "ragged_row",
        10: "ragged_row", 11: "invalid_place", 13: "ragged_row",
    }  # fmt: skip


def test_a_byte_that_is_not_text_spoils_its_cell_wherever_blocks_end(tmp_path):
    """Characters of several bytes are cut by the ends of blocks: every split reads the same."""
    import io

    from dphmm.storage.inputs import Legible

    data = "aé€😀".encode() + b"\xff" + "é".encode()[:1] + b"b" + "€".encode()[:2]
    whole = "aé€😀\x1a\x1ab\x1a\x1a".encode()
    for size in range(1, len(data) + 2):
        reader = Legible(io.BytesIO(data))
        assert b"".join(iter(lambda reader=reader, size=size: reader.read(size), b"")) == whole


def test_rows_of_another_width_in_a_long_file_have_their_numbers(tmp_path):
    lines = [b"u%d;1;2" % i for i in range(200_000)]
    lines[150_000] = lines[199_998] = b"x"
    users, reasons = rows_of(tmp_path, b"user;lat;lon\n" + b"\n".join(lines))
    assert len(users) == 199_998 and reasons == {150_001: "ragged_row", 199_999: "ragged_row"}
