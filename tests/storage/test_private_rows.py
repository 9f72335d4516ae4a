"""Tables that a query asks about: rows that cannot be read are rows all the same.

The number of rows decides noise and is published, so it must not depend on whether a row can be read.
"""

from __future__ import annotations

import pytest

from dphmm.storage.private_rows import read_private


@pytest.mark.parametrize("odd", [0, 1, 2])
def test_rows_with_another_number_of_fields_count(tmp_path, odd):
    rows = ["a,1", "b,2", "c,3", *["d,4,5", "e"][:odd]]
    (tmp_path / "rows.csv").write_text("\n".join(["user,x", *rows]) + "\n")
    found = read_private(tmp_path / "rows.csv", ["user", "x"])
    assert (found.n_rows, len(found.odd), len(found.table)) == (3 + odd, odd, 3)
