"""Files for the data owner alone: counts and lists of rows without a value of any, readable by nobody else."""

from __future__ import annotations

import json

import pyarrow as pa

from dphmm.storage.owner_view import (
    by_reason,
    in_words,
    list_rejected,
    owner_counts,
    owner_path,
    rejected_path,
    write_counts,
    write_rejected,
)

REJECTED = pa.table({"row": [2, 3], "reason": ["missing_user", "invalid_time"]})


def test_counts_are_written_for_the_owner_alone(tmp_path):
    path = owner_path(str(tmp_path / "r.parquet"))
    write_counts(path, owner_counts(8, 2, 4, 1, {"invalid_time": 1}))
    told = json.loads(path.read_text())
    assert (told["share_in_no_state"], told["share_drifted"], told["rejected"]) == (0.25, 0.25, {"invalid_time": 1})
    assert path.stat().st_mode & 0o077 == 0
    assert owner_counts(0, 0, 0, 0, {})["share_in_no_state"] is None


def test_lines_of_rejected_rows_are_those_of_an_editor(tmp_path):
    source = tmp_path / "t.csv"
    source.write_text('user,t\n"a\nb",1\n,2\nc,x\n')
    path = rejected_path(str(tmp_path / "out.csv"))
    write_rejected(path, REJECTED, str(source))
    assert path.read_bytes().splitlines() == [b"line,reason", b"4,missing_user", b"5,invalid_time"]
    assert path.stat().st_mode & 0o077 == 0


def test_a_list_of_an_earlier_run_goes_and_one_that_is_always_there_stays(tmp_path):
    path = rejected_path(str(tmp_path / "out.csv"))
    write_rejected(path, REJECTED, "x.parquet")
    write_rejected(path, REJECTED.slice(0, 0), "x.parquet")
    assert not path.exists()
    list_rejected(str(tmp_path / "out.csv"), REJECTED.slice(0, 0), tmp_path / "x.parquet")
    assert path.read_bytes().splitlines() == [b"row,reason"]


def test_reasons_are_counted_in_order():
    assert by_reason(REJECTED) == {"invalid_time": 1, "missing_user": 1}
    assert in_words(by_reason(REJECTED)).startswith("1 invalid_time")
