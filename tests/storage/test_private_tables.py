"""Private tables: rows that cannot be read are rows all the same, and no public file is one of them.

Claims: how many rows there are does not depend on whether a row can be read, because that number decides noise and is
published. Links, copies, other orders of rows and of cells, other formats and the columns that are asked about alone
are all noticed, in every option of `dphmm query` and of a private `dphmm fit` that names a public table; other files
pass. What is not noticed is written down here too, so that nobody takes it for a promise. Fails where one option does
not look, and where a file that merely overlaps with the data is refused.

Files for the data owner alone: counts and lists of rows without a value of any, readable by nobody else.
"""

from __future__ import annotations

import gzip
import io
import json
import os
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner

from dphmm.cli.app import app
from dphmm.errors import InvalidInput
from dphmm.storage.private_tables import (
    PrivateTable,
    in_words,
    keyed_digest,
    list_rejected,
    owner_counts,
    owner_path,
    refuse_private,
    rejected_path,
    write_counts,
    write_rejected,
)
from dphmm.storage.trajectories import by_reason


@pytest.mark.parametrize("odd", [0, 1, 2])
def test_rows_with_another_number_of_fields_count(tmp_path, odd):
    rows = ["a,1", "b,2", "c,3", *["d,4,5", "e"][:odd]]
    (tmp_path / "rows.csv").write_text("\n".join(["user,x", *rows]) + "\n")
    found = PrivateTable(tmp_path / "rows.csv").read(["user", "x"])
    assert (found.n_rows, len(found.odd), len(found.table)) == (3 + odd, odd, 3)


def test_names_that_are_no_text_are_missing_and_never_one_person(tmp_path):
    """With replaced bytes two people would have one name, and one cap; a sign for them that is written is a name."""
    names = [b"an\xff", b"an\xfe", "an\N{REPLACEMENT CHARACTER}".encode(), b"ann"]
    (tmp_path / "rows.csv").write_bytes(b"user,x\n" + b"".join(name + b",1\n" for name in names))
    found = PrivateTable(tmp_path / "rows.csv").read(["user", "x"])
    assert found.table.column("user").to_pylist() == [None, None, "an\ufffd", "ann"] and found.n_rows == 4


def test_names_of_a_frame_that_are_no_text_are_missing():
    """Written with escapes, a name that cannot be encoded would be another person's."""
    users = pd.Series(["\udcff", "\\udcff", "ann"], dtype=object)
    frame = pd.DataFrame({"user": users, "x": [1, 2, 3]})
    assert PrivateTable(frame).read(["user", "x"]).table.column("user").to_pylist() == [None, "\\udcff", "ann"]


EDGES = "a,b\nann,bob\nbob,cid\ncid,dan\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text(EDGES)
    return tmp_path


def linked(name, target):
    Path(name).symlink_to(target)
    return name


def parquet(name, text):
    pd.read_csv(io.StringIO(text)).to_parquet(name)


SAME = {
    "its path": lambda: "data.csv",
    "another way to it": lambda: "../" + Path.cwd().name + "/./data.csv",
    "a link": lambda: linked("link.csv", "data.csv"),
    "a link to a link": lambda: linked("m.csv", linked("l.csv", "data.csv")),
    "a hard link": lambda: os.link("data.csv", "hard.csv") or "hard.csv",
    "a copy": lambda: Path("copy.csv").write_text(EDGES) and "copy.csv",
    "packed": lambda: Path("copy.csv.gz").write_bytes(gzip.compress(EDGES.encode())) and "copy.csv.gz",
    "parquet": lambda: parquet("copy.parquet", EDGES) or "copy.parquet",
    "another order": lambda: Path("turned.csv").write_text("a,b\ncid,dan\nann,bob\nbob,cid\n") and "turned.csv",
    "ends the other way": lambda: Path("ends.csv").write_text("x,y\nbob,ann\nbob,cid\ndan,cid\n") and "ends.csv",
    "each edge twice": lambda: Path("two.csv").write_text(EDGES + "cid,bob\nbob,ann\n") and "two.csv",
    "other ends of lines": lambda: Path("crlf.csv").write_bytes(EDGES.replace("\n", "\r\n").encode()) and "crlf.csv",
    "quoted": lambda: Path("q.csv").write_text('"a","b"\n"ann","bob"\n"bob","cid"\n"cid","dan"\n') and "q.csv",
    "a text with the header": lambda: Path("friends.txt").write_text(EDGES) and "friends.txt",
    "packed as a text": lambda: Path("f.txt.gz").write_bytes(gzip.compress(EDGES.encode())) and "f.txt.gz",
    "a text": lambda: Path("snap.txt").write_text("# who whom\ncid dan\nann\tbob\ncid,bob\n") and "snap.txt",
}  # fmt: skip
OTHER = {
    "a row less": lambda: Path("less.csv").write_text("a,b\nann,bob\nbob,cid\n") and "less.csv",
    "a row more": lambda: Path("more.csv").write_text(EDGES + "ann,dan\n") and "more.csv",
    "other names": lambda: Path("names.csv").write_text(EDGES.upper()) and "names.csv",
    "other people": lambda: Path("others.csv").write_text("a,b\neve,fay\n") and "others.csv",
    "a column more": lambda: Path("wide.csv").write_text("a,b,c\nann,bob,1\nbob,cid,1\ncid,dan,1\n") and "wide.csv",
    "nothing": lambda: Path("empty.csv").write_text("a,b\n") and "empty.csv",
    "a missing file": lambda: "missing.csv",
    "no table": lambda: Path("model.npz").write_bytes(b"PK\x03\x04") and "model.npz",
    "a damaged table": lambda: Path("bad.parquet").write_bytes(b"PAR1") and "bad.parquet",
}  # fmt: skip


@pytest.mark.parametrize("made", SAME)
def test_the_same_table_is_refused(folder, made):
    with pytest.raises(InvalidInput, match="public information: DATA is private") as refused:
        refuse_private(SAME[made](), "data.csv", "--people")
    assert str(refused.value).startswith("--people: got ") and "ann" not in str(refused.value)


@pytest.mark.parametrize("made", OTHER)
def test_another_table_is_not(folder, made):
    """A part of the rows, and other names for them, are what nobody notices."""
    refuse_private(OTHER[made](), "data.csv", "--people")


def test_the_columns_that_are_asked_about_alone(folder):
    Path("points.csv").write_text("user,x,y\nann,1,2\nbob,3,4.0\n")
    Path("start.csv").write_text("x,y\n3,4\n1.0,2\n")
    refuse_private("start.csv", "points.csv", "--start")
    with pytest.raises(InvalidInput, match="with the rows of DATA"):
        refuse_private("start.csv", "points.csv", "--start", ["x", "y"])


#: A question, and what a file must be called and look like to be its DATA and its side information at once.
OPTIONS = {
    "--states": ("histogram D --states S", "user,state\nann,home\nbob,work\n"),
    "--dependence of a histogram": (
        "histogram D --states home,work --dependence friends:S --max-rows-per-user 2",
        "user,state\nann,home\nbob,work\n",
    ),
    "--start": ("kmeans D --columns x,y --box 0:9,0:9 --start S", "x,y\n1,1\n2,2\n"),
    "--dependence of k-means": (
        "kmeans D --columns x,y --box 0:9,0:9 --start 1,1 --dependence friends:S --max-rows-per-user 2",
        "x,y\n1,1\n2,2\n",
    ),
    "--people": ("degree D --people S --level edge --cap 2", EDGES),
    "--dependence of degrees": ("degree D --people 9 --level node --cap 2 --dependence friends:S", EDGES),
    "--dependence of svm": (
        "svm D --columns x --label y --classes 1,2 --box 0:9 --dependence friends:S --max-rows-per-user 2",
        "x,y\n1,1\n2,2\n",
    ),
}


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("made", ["itself", "a copy", "parquet", "another order"])
def test_every_option_of_a_query_looks(folder, option, made):
    line, text = OPTIONS[option]
    Path("data.csv").write_text(text)
    header, *rows = text.splitlines()
    side = {"itself": "data.csv", "a copy": "copy.csv", "parquet": "side.parquet", "another order": "side.csv"}[made]
    if made == "parquet":
        parquet(side, text)
    elif made != "itself":
        Path(side).write_text("\n".join([header, *(rows[::-1] if made == "another order" else rows)]) + "\n")
    words = ["query", *line.replace("D ", "data.csv ", 1).replace("S", side).split()]
    told = CliRunner().invoke(app, [*words, "--epsilon", "1", "-o", "out.csv"])
    assert told.exit_code == 2
    (said,) = (found for found in told.stderr.splitlines() if not found.startswith("warning"))
    assert option.split()[0] in said and "DATA is private" in said
    assert not Path("out.csv").exists()


@pytest.mark.parametrize("options", [
    ("--state-column", "state", "--states-file"),
    ("--state-column", "state", "--answers"),
    ("--states", "2", "--symbols", "state", "--symbols-file"),
])  # fmt: skip
def test_a_private_fit_looks(folder, options):
    Path("visits.csv").write_text("user,state\nann,home\nbob,work\n")
    Path("copy.csv").write_text("user,state\nbob,work\nann,home\n")
    for side in ("visits.csv", "copy.csv"):
        words = ["fit", "visits.csv", "-o", "m.npz", *options, side, "--epsilon", "1", "--max-length", "3"]
        told = CliRunner().invoke(app, words)
        assert told.exit_code == 2 and "TRAJ is private" in told.stderr
        assert options[-1] in told.stderr


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


class TestKeyedDigest:
    ROWS = pd.DataFrame({"user": ["ann", "bob", None], "step": [1, 2, 3], "place": [0.5, 7.0, 2.0]})

    def digest(self, data, key=b"k" * 32):
        return keyed_digest(PrivateTable(data), key)

    def test_the_same_rows_in_any_container(self, tmp_path):
        self.ROWS.to_csv(tmp_path / "rows.csv", index=False)
        self.ROWS[["place", "user", "step"]].to_parquet(tmp_path / "rows.parquet")
        tables = (tmp_path / "rows.csv", tmp_path / "rows.parquet", self.ROWS, pa.Table.from_pandas(self.ROWS))
        assert len({self.digest(table) for table in tables}) == 1

    def test_other_rows_another_order_and_another_key_differ(self, monkeypatch):
        monkeypatch.setattr("dphmm.storage.private_tables._HASHED", 2)
        changed = self.ROWS.replace("bob", "eve")
        moved = self.ROWS.assign(user=["a", "nn", "bob"]), self.ROWS.assign(user=["an", "n", "bob"])
        tables = [self.ROWS, changed, self.ROWS[::-1], self.ROWS[:2], self.ROWS.rename(columns={"step": "s"}), *moved]
        digests = [self.digest(table) for table in tables] + [self.digest(self.ROWS, b"j" * 32)]
        assert len(set(digests)) == len(digests)

    def test_a_text_of_edges(self, tmp_path):
        (tmp_path / "edges.txt").write_text("# friends\n1 2\n2 3\n")
        pd.DataFrame({"a": [1, 2], "b": [2, 3]}).to_csv(tmp_path / "edges.csv", index=False)
        assert self.digest(tmp_path / "edges.txt") == self.digest(tmp_path / "edges.csv")
