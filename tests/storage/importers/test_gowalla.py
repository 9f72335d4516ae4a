from __future__ import annotations

import gzip

import pytest

from dphmm.errors import InvalidInput
from dphmm.storage import inputs
from dphmm.storage.importers import IMPORTERS

CANARY = "CANARY_7f3a"


GOWALLA = (
    "0\t2010-10-19T23:55:27Z\t30.2359091167\t-97.7951395833\t22847\n"
    "0\t2010-10-18T22:17:43Z\t30.2691029532\t-97.7493953705\t420315\n"
    "10\t2010-10-18T22:17:43Z\t405.5\t-97.7493953705\t420315\n"
    "10\t2010-10-18T22:17:43Z\t30.5\t-97.5\t420315\n"
    "2\t2010-10-18T22:17:43Z\t30.5\t-97.5\n"
    f"2\t{CANARY}\t30.5\t-97.5\t3\n"
    "2\t2010-10-17T22:17:43Z\t30.25\t-97.25\t3\n"
).encode()


@pytest.mark.parametrize("packed", [False, True])
def test_gowalla_is_read_oldest_first(tmp_path, packed):
    path = tmp_path / ("x.txt.gz" if packed else "x.txt")
    path.write_bytes(gzip.compress(GOWALLA) if packed else GOWALLA)
    seen = []
    rows, report, rejected = IMPORTERS["gowalla"](path, progress=lambda done, total: seen.append((done, total)))
    assert rows.users == ("0", "2", "10") and rows.user.tolist() == [0, 0, 1, 2]
    assert rows.lat.tolist() == [30.2691029532, 30.2359091167, 30.25, 30.5]
    assert report.dropped == {"invalid_place": 1, "ragged_row": 1, "invalid_time": 1} and report.rows == 7
    assert CANARY not in str(report) and CANARY not in str(rejected)
    assert seen and all(done <= total for done, total in seen)


def test_bad_gowalla_files_are_refused(tmp_path, monkeypatch):
    for data, words in [
        (b"", "empty"),
        (b"a\tb\n", "empty|0 rows"),
        (b"\xff\xfe\t\t\t\t\n", "1 missing_user"),
        (b"a\tnever\t1\t1\t1\n", "0 rows"),
    ]:
        (tmp_path / "x.txt").write_bytes(data)
        with pytest.raises(InvalidInput, match=words):
            IMPORTERS["gowalla"](tmp_path / "x.txt")
    (tmp_path / "x.txt.gz").write_bytes(gzip.compress(GOWALLA)[:-30])
    with pytest.raises(InvalidInput, match="truncated"):
        IMPORTERS["gowalla"](tmp_path / "x.txt.gz")
    (tmp_path / "x.txt.gz").write_bytes(gzip.compress(GOWALLA * 5000))
    monkeypatch.setattr(inputs, "FREE_BYTES", 1000)
    with pytest.raises(InvalidInput, match="bomb"):
        IMPORTERS["gowalla"](tmp_path / "x.txt.gz")


def test_real_gowalla_check_ins(data_folder):
    _, report, _ = IMPORTERS["gowalla"](data_folder / "raw" / "loc-gowalla_totalCheckins.head10k.txt.gz")
    assert report.rows == report.kept == 10_000
