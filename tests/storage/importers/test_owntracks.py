"""The OwnTracks Recorder: lines of locations are rows, others are counted, devices of a user are one person's."""

from __future__ import annotations

import pytest

from dphmm.errors import InvalidInput
from dphmm.storage.importers import IMPORTERS
from storage.importers.test_rows import write_folder, write_zip

STAR = b"*                 "
DEMO = (
    b'2015-08-24T05:55:07Z\t%s\t{"tst":1440395361,"acc":30,"_type":"location","lon":10.0278,"lat":52.3788,"tid":"AA"}\n'
    b'2015-08-24T06:16:05Z\t%s\t{"tst":1440396651,"acc":20,"_type":"location","lon":10.7553,"lat":52.3099,"tid":"AA"}\n'
    b'2015-08-24T06:20:05Z\t-                 \t{"tst":"1440396700","_type":"lwt"}\n' % (STAR, STAR)
)


def report(members, kind=STAR):
    return b"2015-08-24T05:55:07Z\t" + kind + b"\t{" + members + b"}\n"


def read(path, **options):
    """(user, clock, lat, lon) of the rows, and the whole."""
    imported = IMPORTERS["owntracks"](path, **options)
    rows = [tuple(row.values()) for row in imported.trajectories.placed.to_arrow().to_pylist()]
    return [(row[0], row[1].strftime("%H:%M:%S"), *row[2:]) for row in rows], imported


def test_locations_are_rows_and_other_lines_are_counted(tmp_path):
    (tmp_path / "demo.rec").write_bytes(DEMO)
    rows, imported = read(tmp_path / "demo.rec", user="ann")
    assert rows == [("ann", "05:49:21", 52.3788, 10.0278), ("ann", "06:10:51", 52.3099, 10.7553)]
    assert not len(imported.rejected)
    assert imported.report.notes == (
        "t: taken as Unix seconds (2 rows)", "1 lines of another _type than location are no rows"
    )  # fmt: skip
    assert read(tmp_path / "demo.rec", user_from="file-name")[0][0][0] == "demo"
    with pytest.raises(InvalidInput, match="user_name: got nothing"):
        read(tmp_path / "demo.rec")


def test_lines_are_judged_one_by_one(tmp_path):
    place = b'"_type":"location","lat":52.3,"lon":10'
    wrong = (
        b"\xff\xfe\n", b"x\ty\n", report(b'"_type":"location"')[:-3] + b"\n", b"\t\t[1]\n",
        b"\t\t" + b"[" * 100_000 + b"\n", report(place),
        report(place + b',"tst":"soon"'), report(place + b',"tst":1e3'),
        report(b'"_type":"location","tst":1440395361,"lat":"52.3","lon":[1]'), report(place + b',"tst":null'),
        report(b'"_type":"location","tst":1440395361,"lat":1e999,"lon":10'), report(place + b',"tst":' + b"9" * 5000),
    )  # fmt: skip
    (tmp_path / "x.rec").write_bytes(b"".join([DEMO, *wrong, b"\n\r\n", DEMO.replace(b"1440", b"1450")]))
    rows, imported = read(tmp_path / "x.rec", user="ann")
    assert len(rows) == 4
    reasons = {row["row"]: row["reason"] for row in imported.rejected.to_pylist()}
    assert [reasons[row] for row in range(3, 15)] == ["ragged_row"] * 5 + [
        "invalid_time", "invalid_time", "invalid_time", "invalid_place", "invalid_time", "invalid_place", "invalid_time"
    ]  # fmt: skip
    assert imported.report.rows == 16


def test_all_devices_of_a_user_are_one_person_s(tmp_path):
    files = {"rec/ann/phone/2015-08.rec": DEMO, "rec/ann/watch/2015-08.rec": DEMO, "rec/bob/phone/2015-08.rec": DEMO}
    files |= {"rec/last/ann/phone/x.json": b"{}", "rec/lost.rec": DEMO}
    for source in (write_folder(tmp_path, files) / "rec", write_zip(tmp_path / "x.zip", files)):
        _, imported = read(source, user_from="folder-name")
        assert imported.trajectories.users == ("ann", "bob") and imported.report.kept == 6
        assert [note for note in imported.report.notes if "several files" in note and note.startswith("1 user")]
        # A file in fewer folders is nobody's.
        assert [(row["file"], row["reason"]) for row in imported.rejected.to_pylist()] == [
            ("rec/lost.rec", "missing_user"), ("rec/lost.rec", "missing_user")
        ]  # fmt: skip
        assert "4 lines of another _type than location are no rows" in imported.report.notes
    assert read(tmp_path / "rec", user_from="file-name")[1].trajectories.users == ("2015-08", "lost")
    assert read(tmp_path / "rec", user="eve")[1].report.kept == 8
