"""Files of samples: no draw is lost, none is made up, and what is no file of numbers is refused in one line.

Claims: a CSV file without a header keeps its first row, whatever numbers stand there (equal ones too, which are no
repeated names); names stay names; a first row that is neither is refused, as is a column that numbers the rows; an
array is read without believing its shape. It would fail for a reader that takes any first row of a CSV file for names.

Public tables by name: answers, labels; what is wrong with one is said in one line.
"""

from __future__ import annotations

import gzip
import os
import struct

import numpy as np
import pyarrow as pa
import pytest

import dphmm
from dphmm.errors import InvalidInput
from dphmm.storage.public_tables import labels_by_state, listed_names, read_numbers, space_of_answers
from dphmm.storage.tables import write_table

ROWS = [[3.0, 3.0], [-1.0, 0.5], [2.0, 1e3]]
HEADLESS = {
    "plain": "3,3\n-1,0.5\n2,1e3\n",
    "spaces": " 3, 3\n-1, .5\n2,1E3\n",
    "quoted": '"3","3"\n"-1","0.5"\n"2","1e3"\n',
    "windows": "3,3\r\n-1,0.5\r\n2,1e3\r\n",
    "a mark of UTF-8": "\ufeff3,3\n-1,0.5\n2,1e3\n",
    "empty lines first": "\n\n3,3\n-1,0.5\n2,1e3\n",
    "signs": "+3,+3.\n-1,0.5\n2,1e3\n",
}


@pytest.mark.parametrize("name", HEADLESS)
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_without_a_header_the_first_row_is_a_draw(tmp_path, name, suffix):
    path, text = tmp_path / f"x{suffix}", HEADLESS[name].encode()
    path.write_bytes(gzip.compress(text) if suffix == ".csv.gz" else text)
    assert read_numbers(path).tolist() == ROWS


@pytest.mark.parametrize("header", ["x,y", "z_0,z_1", "3 km,4 km", "1st,2nd", "x1,e5"])
def test_names_are_no_draw(tmp_path, header):
    path = tmp_path / "x.csv"
    path.write_text(f"{header}\n{HEADLESS['plain']}")
    assert read_numbers(path).tolist() == ROWS


@pytest.mark.parametrize("suffix", [".npy", ".parquet", ".csv"])
def test_what_is_written_is_read(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    if suffix == ".npy":
        np.save(path, np.array(ROWS))
    else:
        write_table(path, pa.table({"x": [row[0] for row in ROWS], "y": [row[1] for row in ROWS]}))
    assert read_numbers(path).tolist() == ROWS


def test_one_number_a_row(tmp_path):
    (tmp_path / "x.csv").write_text("1\n2\n")
    np.save(tmp_path / "x.npy", np.array([1, 2], dtype=np.int8))
    assert read_numbers(tmp_path / "x.csv").tolist() == read_numbers(tmp_path / "x.npy").tolist() == [[1.0], [2.0]]


def test_no_draws_are_none(tmp_path):
    (tmp_path / "x.csv").write_text("x,y\n")
    np.save(tmp_path / "x.npy", np.zeros((0, 2)))
    assert read_numbers(tmp_path / "x.csv").shape == read_numbers(tmp_path / "x.npy").shape == (0, 2)


def _npy(shape, descr="'<f8'", data=8):
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (63 - (len(header) + 10) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + b"\0" * data


REFUSED = {
    "names in part": (".csv", b"x,1\n3,4\n", "samples, x.csv: got a first row with 1 of 2 cells"),
    "an index": (".csv", b",x,y\n0,1,2\n1,2,3\n", "without a name"),
    "the index of numbered columns": (".csv", b",0,1\n0,1,2\n", "2 of 3 cells"),
    "a number and NaN": (".csv", b"nan,1\n3,4\n", "x.csv, line 1: got a cell of 'column 1' that is no number;"),
    "text below": (".csv", b"1,2\n3,four\n", "x.csv, line 2: got a cell of 'column 2' that is no number;"),
    "text below names": (".csv", b"x,z\n\n1,2\n3,four\n5,\n", "x.csv, line 4: .* 'z' that is no number, and 1 more;"),
    "ragged": (".csv", b"1,2\n3\n", "line 2"),
    "ragged with names": (".csv", b"x,y\n1,2\n3\n", "line 3"),
    "semicolons": (".csv", b"1;2\n3;4\n", "line 2: got a cell of '1;2' that is no number"),
    "empty": (".csv", b"", "empty"),
    "another name": (".txt", b"1\n", r"\.parquet"),
    "empty array": (".npy", b"", "numpy"),
    "a shape beyond the file": (".npy", _npy("(1000000000000000,)"), "numpy"),
    "a shape beyond numbers": (".npy", _npy("(4611686018427387904, 4)"), "numpy"),
    "a negative shape": (".npy", _npy("(-5,)"), "numpy"),
    "objects": (".npy", _npy("(1,)", "'|O'"), "numpy"),
    "complex numbers": (".npy", _npy("(1,)", "'<c16'", 16), "complex"),
    "records": (".npy", _npy("(1,)", "[('a', '<f8')]"), "shape"),
    "a number": (".npy", _npy("()"), "shape"),
    "another format": (".npy", b"PK\x03\x04 and so on", "numpy"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_file_of_numbers_is_refused_in_one_line(tmp_path, name):
    suffix, content, words = REFUSED[name]
    path = tmp_path / f"x{suffix}"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=words) as refused:
        read_numbers(path)
    assert "\n" not in str(refused.value)


def test_a_cell_of_a_table_without_lines_is_told_by_its_row(tmp_path):
    write_table(tmp_path / "x.parquet", pa.table({"x": [1.0, 2.0, float("nan")]}))
    with pytest.raises(InvalidInput, match=r"samples, x\.parquet, row 3: got a cell of 'x' that is no number;"):
        read_numbers(tmp_path / "x.parquet")


def test_pipes_and_folders_are_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.npy")
    (tmp_path / "folder.npy").mkdir()
    for name in ("pipe.npy", "folder.npy"):
        with pytest.raises(InvalidInput, match=r"not a (folder|device)"):
            read_numbers(tmp_path / name)


@pytest.fixture
def table(tmp_path):
    def write(text):
        (tmp_path / "t.csv").write_text(text)
        return str(tmp_path / "t.csv")

    return write


def test_names_and_labels_come_back_as_they_are_written(table):
    space = space_of_answers(table("name,x,y\n01,1,2\n'=b,0.5,3\n"))
    assert space.names == ("01", "=b") and space.answers.tolist() == [[1, 2], [0.5, 3]]
    assert labels_by_state(table("state,kind\n'=b,007\nother,x\n01,1e5\n"), space) == ["1e5", "007"]
    assert listed_names(table("state\n01\n'=b\n"), "names", "state") == ["01", "=b"]


@pytest.mark.parametrize(
    ("text", "came"),
    [
        ("state\na\n", "with names only"),
        ("state,x\n", "with no rows"),
        ("state,x\na,one\n", "one"),
    ],
)
def test_a_table_of_answers_is_refused_in_one_line(table, text, came):
    with pytest.raises(InvalidInput, match=came) as refused:
        space_of_answers(table(text))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "came"),
    [
        ("state,kind\na,1\n", "no label for state 'b'"),
        ("state,kind\na,1\na,2\nb,1\n", "two labels for state 'a'"),
        ("state,kind\na,\nb,1\n", "no label for state 'a'"),
        ("state,kind,more\na,1,2\nb,1,2\n", "2 columns beside the names"),
    ],
)
def test_every_state_has_one_label(table, text, came):
    with pytest.raises(InvalidInput, match=came) as refused:
        labels_by_state(table(text), dphmm.StateSpace.categories(["a", "b"]))
    assert refused.value.field == "labels"
