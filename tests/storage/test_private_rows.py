"""Tables that a query asks about: rows that cannot be read are rows all the same.

The number of rows decides noise and is published, so it must not depend on whether a row can be read.
"""

from __future__ import annotations

import pytest

from dphmm.storage.private_rows import _of_pandas, read_private


@pytest.mark.parametrize("odd", [0, 1, 2])
def test_rows_with_another_number_of_fields_count(tmp_path, odd):
    rows = ["a,1", "b,2", "c,3", *["d,4,5", "e"][:odd]]
    (tmp_path / "rows.csv").write_text("\n".join(["user,x", *rows]) + "\n")
    found = read_private(tmp_path / "rows.csv", ["user", "x"])
    assert (found.n_rows, len(found.odd), len(found.table)) == (3 + odd, odd, 3)


def test_names_that_are_no_text_are_missing_and_never_one_person(tmp_path):
    """With replaced bytes two people would have one name, and one cap."""
    names = [b"an\xff", b"an\xfe", "an\N{REPLACEMENT CHARACTER}".encode(), b"ann"]
    (tmp_path / "rows.csv").write_bytes(b"user,x\n" + b"".join(name + b",1\n" for name in names))
    found = read_private(tmp_path / "rows.csv", ["user", "x"])
    assert found.table.column("user").to_pylist() == [None, None, None, "ann"] and found.n_rows == 4


def test_names_of_a_frame_that_are_no_text_are_missing():
    """Written with escapes, a name that cannot be encoded would be another person's."""
    import pandas as pd

    users = pd.Series(["\udcff", "\\udcff", "ann"], dtype=object)
    frame = pd.DataFrame({"user": users, "x": [1, 2, 3]})
    assert _of_pandas(frame, ["user", "x"]).column("user").to_pylist() == [None, "\\udcff", "ann"]
