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
        ("user;lat;lon\na;1;2\nb;1\n", "line 3: got 2 fields"),
        ("user,lat,lon\na,1,2\n", "no such column"),
        ("user;user\n", "two columns"),
        ("", "0 rows"),
        ("user;lat;lon\n", "0 rows"),
        (b"user;lat;lon\nJos\xe9;1;2\n", "UTF-8 in line 2"),
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
