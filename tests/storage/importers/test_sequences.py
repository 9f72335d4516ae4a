from __future__ import annotations

import gzip

import numpy as np
import pytest

from dphmm.errors import InvalidInput
from dphmm.storage.importers import IMPORTERS

SEQ = (
    b"% Different categories found in input file:\r\n\r\nfrontpage news on-air\r\n"
    b"\r\n\r\n% Sequences:\r\n\r\n"
    b"1 1 3 \r\n2\r\n1 4\r\n0 1\r\n1 x\r\n2 3\r\n"
)


@pytest.mark.parametrize("packed", [False, True])
def test_seq_files_are_read_with_their_categories(tmp_path, packed):
    path = tmp_path / ("x.seq.gz" if packed else "x.seq")
    path.write_bytes(gzip.compress(SEQ) if packed else SEQ)
    rows, report, rejected = IMPORTERS["sequences"](path)
    assert rows.users == ("1", "2", "6")
    assert rows.state.tolist() == ["frontpage", "frontpage", "on-air", "news", "news", "on-air"]
    assert rows.step.tolist() == [0, 1, 2, 0, 0, 1]
    assert report.rows == 12 and report.kept == 6 and report.dropped == {"bad_sequence": 6}
    assert rejected.column("row").to_pylist() == [3, 4, 5]
    assert [s.tolist() for s in rows.sequences(np.arange(6)).sequences] == [[0, 1, 2], [3], [4, 5]]


def test_seq_files_without_names_use_the_numbers(tmp_path):
    (tmp_path / "x.seq").write_bytes(b"1 12\n7\n")
    rows = IMPORTERS["sequences"](tmp_path / "x.seq", names=False).trajectories
    assert rows.state.tolist() == ["1", "12", "7"]
    # Whether there are names is said, not guessed from what may be somebody's sequence.
    with pytest.raises(InvalidInput, match="names=False"):
        IMPORTERS["sequences"](tmp_path / "x.seq")
    (tmp_path / "x.csv").write_text("a,b\nx,y\n")
    with pytest.raises(InvalidInput, match="names: got False"):
        IMPORTERS["sequences"](tmp_path / "x.csv", columns="a:b", names=False)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "0 sequences"),
        (b"% only\n", "0 sequences"),
        (b"a b\n", "0 sequences"),
        (b"a a\n1\n", "names"),
        (b"a \xff\n1\n", "ASCII"),
        (b"a\n" + b"9" * 5000, "0 seq"),
    ],
)
def test_bad_seq_files_are_refused(tmp_path, data, words):
    (tmp_path / "x.seq").write_bytes(data)
    with pytest.raises(InvalidInput, match=words):
        IMPORTERS["sequences"](tmp_path / "x.seq")


WIDE = "id,sex,Jul.93,Aug.93,a:b,end\n7,m,school,school,,work\n9,f,work,FE,FE,school\n,f,work,work,work,work\n"


def test_wide_tables_have_a_person_a_row_and_a_step_a_column(tmp_path):
    (tmp_path / "x.csv").write_text(WIDE)
    rows, report, rejected = IMPORTERS["sequences"](tmp_path / "x.csv", columns="Jul.93:a:b", user_column="id")
    assert rows.users == ("7", "9")
    assert rows.state.tolist() == ["school", "school", "work", "FE", "FE"]
    assert rows.step.tolist() == [0, 1, 0, 1, 2]
    assert report.rows == 9 and report.dropped == {"missing_state": 1, "missing_user": 3} and report.users == 2
    assert rejected.to_pylist() == [{"row": 3, "reason": "missing_user"}]
    unnamed = IMPORTERS["sequences"](tmp_path / "x.csv", columns="a:b:end").trajectories
    assert unnamed.users == ("1", "2", "3")
    assert unnamed.state.tolist() == ["work", "FE", "school", "work", "work"]
    cut = rows.sequences(np.array([0, 0, 1, 2, 2]))
    assert [s.tolist() for s in cut.sequences] == [[0, 0], [1, 2, 2]]


def test_of_a_person_in_two_rows_of_a_wide_table_the_first_counts(tmp_path):
    (tmp_path / "x.csv").write_text("id,m1,m2\n7,a,b\n9\n8,c,d\n7,e,f\n,x,y\n7,,\n")
    rows, report, rejected = IMPORTERS["sequences"](tmp_path / "x.csv", columns="m1:m2", user_column="id")
    assert rows.users == ("7", "8") and rows.state.tolist() == ["a", "b", "c", "d"]
    assert report.dropped == {"repeated_user": 4, "missing_user": 2, "ragged_row": 1} and report.rows == 11
    assert [(row["row"], row["reason"]) for row in rejected.to_pylist()] == [
        (2, "ragged_row"), (4, "repeated_user"), (5, "missing_user"), (6, "repeated_user"),
    ]  # fmt: skip
    unnamed = IMPORTERS["sequences"](tmp_path / "x.csv", columns="m1:m2").trajectories
    assert unnamed.users == ("1", "3", "4", "5", "6")


def test_a_gap_in_a_wide_table_cuts_its_sequence(tmp_path):
    (tmp_path / "x.csv").write_text(WIDE)
    rows = IMPORTERS["sequences"](tmp_path / "x.csv", columns="Jul.93:end", user_column="id").trajectories
    assert [len(s) for s in rows.sequences(np.zeros(len(rows), int)).sequences] == [2, 1, 4]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "columns"),
        ({"columns": "Jul.93"}, "FIRST:LAST"),
        ({"columns": "Jul.93:nope"}, "FIRST:LAST"),
        ({"columns": "end:Jul.93"}, "to the left"),
        ({"columns": "Jul.93:end", "user_column": "nope"}, "nope"),
        ({"columns": "Jul.93:end", "user_column": "end"}, "outside"),
    ],
)
def test_bad_options_of_wide_tables_are_refused(tmp_path, options, words):
    (tmp_path / "x.csv").write_text(WIDE)
    with pytest.raises(InvalidInput, match=words):
        IMPORTERS["sequences"](tmp_path / "x.csv", **options)


def test_other_sequence_files_are_refused(tmp_path):
    (tmp_path / "x.txt").write_text("1 2")
    (tmp_path / "x.seq").write_text("1 2")
    (tmp_path / "x.csv").write_text("a,b\n")
    with pytest.raises(InvalidInput, match="ending in"):
        IMPORTERS["sequences"](tmp_path / "x.txt")
    with pytest.raises(InvalidInput, match="no columns"):
        IMPORTERS["sequences"](tmp_path / "x.seq", columns="a:b")
    with pytest.raises(InvalidInput, match="0 rows"):
        IMPORTERS["sequences"](tmp_path / "x.csv", columns="a:b")


def test_real_sequences(data_folder):
    rows, report, _ = IMPORTERS["sequences"](data_folder / "msnbc323.seq.gz")
    assert report.users == 323 and not report.dropped and len(set(rows.state)) <= 17
    mvad = IMPORTERS["sequences"](data_folder / "mvad.csv.gz", columns="Jul.93:Jun.99", user_column="id")
    assert mvad.report.users == 712 and mvad.report.rows == 712 * 72 and not mvad.report.dropped
    assert set(mvad.trajectories.state) == {"training", "joblessness", "FE", "employment", "school", "HE"}
