"""Rows of a text file are told by the line that an editor shows: the message of a ragged row and the list of rows
set aside agree.

It could fail where records are no lines: empty lines, cells of several lines, a byte order mark, other line ends.
"""

from __future__ import annotations

import csv
import gzip
import io
import random

import pytest

from dphmm.errors import InvalidInput
from dphmm.storage.csv_files import TextLayout, lines_of_records, lines_of_rows
from dphmm.storage.importers import RECIPES
from dphmm.storage.tables import read_table
from random_seeds import seeds

TEXTS = {
    "plain": ("a,b\n1,2\n3,4\n", [1, 2, 3]),
    "empty lines": ("\n\na,b\n\n1,2\n\n\n3,4", [3, 5, 8]),
    "a cell of three lines": ('a,b\n"x\n\ny",2\n3,4\n', [1, 2, 5]),
    "a byte order mark and CRLF": ('\ufeffa,b\r\n"x\r\ny",2\r\n3,4\r\n', [1, 2, 4]),
    "a quote inside a cell": ('a,b\n5",2\n3,4\n', [1, 2, 3]),
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("packed", [False, True])
def test_lines_of_records(tmp_path, name, packed):
    text, lines = TEXTS[name]
    path = tmp_path / ("x.csv.gz" if packed else "x.csv")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    assert lines_of_records(path, [1, 2, 3]) == lines
    assert lines_of_rows(path, [2, 1]) == [lines[2], lines[1]]


@seeds(20)
def test_lines_are_those_at_which_a_writer_stood(tmp_path, seed):
    rng = random.Random(seed)
    text, lines = io.StringIO(newline=""), []
    writer = csv.writer(text, delimiter=";", lineterminator="\n")
    for _ in range(30):
        text.write("\n" * rng.choice([0, 0, 1, 3]))
        lines.append(text.getvalue().count("\n") + 1)
        writer.writerow([rng.choice(["x", "y\nz", 'a"b', "u;v", "\n"]) for _ in range(3)])
    (tmp_path / "x.csv").write_bytes(text.getvalue().encode())
    assert lines_of_records(tmp_path / "x.csv", range(1, 31), TextLayout(";")) == lines


@pytest.mark.parametrize("name", TEXTS)
def test_a_ragged_row_is_told_by_its_line(tmp_path, name):
    text, lines = TEXTS[name]
    path = tmp_path / "x.csv"
    path.write_bytes(text.removesuffix("\n").removesuffix("\r").encode() + b",5\n")
    with pytest.raises(InvalidInput, match=f"^line {lines[2]}: got 3 fields; expected 2"):
        read_table(path)


def test_check_ins_of_another_number_of_cells_are_lines_too(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text('0\tt\t1\t2\t"7\n\n0\tt\n1\tt\t1\t2\t8\n')
    assert lines_of_rows(path, [1, 4], RECIPES["gowalla"].layout) == [1, 4]
