"""Importers of rows: any table, Gowalla's check-ins, Geolife's trajectories in folders and archives."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile

import numpy as np
import pyarrow as pa
import pytest

from dphmm.errors import InvalidInput
from dphmm.storage.importers import IMPORTERS
from dphmm.storage.importers.folders import list_left_out
from dphmm.storage.tables import write_table

HEADER = "\r\n".join(
    [
        "Geolife trajectory",
        "WGS 84",
        "Altitude is in Feet",
        "Reserved 3",
        "0,2,255,My Track,0,0,2,8421376",
        "0",
        "",
    ]
)


def plt(*rows):
    return (HEADER + "".join(f"{row}\r\n" for row in rows)).encode()


def point(lat, lon, clock, date="2008-10-23"):
    return f"{lat},{lon},0,492,39744.1201851852,{date},{clock}"


FILES = {
    "Data/001/Trajectory/20081023055305.plt": plt(point(39.5, 116.5, "05:53:05"), point(39.6, 116.6, "05:53:06")),
    "Data/000/Trajectory/20081024020959.plt": plt(point(39.3, 116.3, "02:09:59", "2008-10-24")),
    "Data/000/Trajectory/20081023025304.plt": plt(
        point(39.1, 116.1, "02:53:04"),
        point(400.166666, 116.1, "02:53:05"),
        point(39.2, 116.2, "02:53:09"),
        "39.2,116.2",
    ),
    "Data/000/labels.txt": b"Start Time\tEnd Time\tTransportation Mode\r\n",
    "Data/002/Trajectory/20081023025304.plt": b"Geolife trajectory\r\nWGS 84\r\n",
    "User Guide-1.3.pdf": b"%PDF",
}


def write_folder(path, files=FILES):
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def write_tar(path, files=FILES, mode="w:gz"):
    with tarfile.open(path, mode) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def write_zip(path, files=FILES):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def geolife_source(kind, tmp_path):
    if kind == "folder":
        return write_folder(tmp_path / "Geolife")
    if kind == "Data":
        return write_folder(tmp_path / "Geolife") / "Data"
    if kind == "zip":
        return write_zip(tmp_path / "x.zip")
    return write_tar(tmp_path / f"x.{kind}", mode="w" if kind == "tar" else "w:gz")


@pytest.mark.parametrize("kind", ["folder", "Data", "tar", "tar.gz", "tgz", "zip"])
def test_geolife_is_read_in_place(tmp_path, kind):
    source = geolife_source(kind, tmp_path)
    before = sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*"))
    seen = []
    rows, report, rejected = IMPORTERS["geolife"](source, progress=lambda done, total: seen.append((done, total)))
    assert rows.users == ("000", "001")
    # A row without a place keeps its moment.
    assert rows.user.tolist() == [0, 0, 0, 0, 1, 1] and rows.blank.tolist() == [False, True, *[False] * 4]
    assert rows.placed.lat.tolist() == [39.1, 39.2, 39.3, 39.5, 39.6]
    assert rows.placed.lon.tolist() == [116.1, 116.2, 116.3, 116.5, 116.6]
    assert rows.trip.tolist() == [0, 0, 0, 1, 0, 0]
    assert rows.time[0] == np.datetime64("2008-10-23T02:53:04", "us").astype(np.int64)
    assert report.files == 4 and report.rows == 7 and report.kept == 5 and report.users == 2
    assert report.dropped == {"invalid_place": 1, "ragged_row": 1}
    (name,) = {name.removeprefix("Geolife/") for name in rejected.column("file").to_pylist()}
    assert name == "Data/000/Trajectory/20081023025304.plt"
    assert rejected.drop_columns(["file"]).to_pylist() == [
        {"row": 2, "reason": "invalid_place"},
        {"row": 4, "reason": "ragged_row"},
    ]
    (empty,) = report.notes
    assert empty.startswith("1 file without a row: ") and "Data/002/Trajectory/20081023025304.plt" in empty
    assert report.lines()[0] == "7 rows in 4 file(s), 5 kept, 2 users"
    assert len(seen) == 4 and all(0 < done <= total for done, total in seen) and sorted(seen) == seen
    assert sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*")) == before


def test_spoiled_geolife_files_are_told_and_their_rows_listed_by_file_and_line(tmp_path):
    """A binary, an emptied and a cut file among whole ones, and an empty line; the others are read as without them."""
    whole = plt(point(39.5, 116.5, "05:53:05"), "", point(400.0, 116.6, "05:53:06"), "39.2,116.2")
    files = {
        "a": whole, "binary": HEADER.encode() + b"\x00\xff\xfe\r\n" * 3, "cut": whole[:-3], "emptied": b"",
        "header": plt(),
    }  # fmt: skip
    source = write_folder(
        tmp_path / "Data", {f"00{n}/Trajectory/{name}.plt": files[name] for n, name in enumerate(files)}
    )
    rows, report, rejected = IMPORTERS["geolife"](source)
    assert rows.users == ("000", "002") and len(rows.placed) == 2
    assert report.notes == (
        "2 files without a row: 'Data/003/Trajectory/emptied.plt', 'Data/004/Trajectory/header.plt'",
        "1 file whose last line is cut off: 'Data/002/Trajectory/cut.plt'",
    )
    list_left_out(tmp_path / "rejected.csv", rejected, str(source), report.layout)
    assert (tmp_path / "rejected.csv").read_text().splitlines() == [
        "file,line,reason",
        "Data/000/Trajectory/a.plt,9,invalid_place",
        "Data/000/Trajectory/a.plt,10,ragged_row",
        *(f"Data/001/Trajectory/binary.plt,{line},ragged_row" for line in (7, 8, 9)),
        "Data/002/Trajectory/cut.plt,9,invalid_place",
        "Data/002/Trajectory/cut.plt,10,ragged_row",
    ]


def test_geolife_in_many_flushes_is_the_same(tmp_path, monkeypatch):
    from dphmm.storage import trajectories

    source = write_folder(tmp_path)
    whole = IMPORTERS["geolife"](source)
    monkeypatch.setattr(trajectories, "_ENOUGH", 1)
    parts = IMPORTERS["geolife"](source)
    assert parts.report == whole.report
    for name in whole.trajectories.columns:
        np.testing.assert_array_equal(getattr(parts.trajectories, name), getattr(whole.trajectories, name))


def test_sources_without_geolife_are_refused(tmp_path):
    write_folder(tmp_path / "g", {"Data/000/labels.txt": b""})
    (tmp_path / "x.rar").write_bytes(b"")
    for source, words in [
        (tmp_path / "g", "plt"),
        (tmp_path / "x.rar", ".zip"),
        (tmp_path / "missing.zip", "exists"),
        ("/dev/null", "device"),
    ]:
        with pytest.raises(InvalidInput, match=words):
            IMPORTERS["geolife"](source)
    with pytest.raises(InvalidInput, match="0 rows that can be read of 1"):
        IMPORTERS["geolife"](
            write_folder(
                tmp_path / "b",
                {"Data/000/Trajectory/a.plt": plt("\xff").replace("ÿ".encode(), b"\xff,1,1,1,1,1,1")},
            )
        )


def test_real_geolife_files(data_folder):
    rows, report, _ = IMPORTERS["geolife"](data_folder / "raw" / "geolife_plt_sample.tar.gz")
    assert report.users == 16 and report.files == 151 and report.kept == len(rows) == 184_635
    first = rows.take(rows.user == rows.users.index("000"))
    assert (first.lat[0], first.lon[0]) == (39.984702, 116.318417)
    assert first.time[0] == np.datetime64("2008-10-23T02:53:04", "us").astype(np.int64)


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
    assert rows.users == ("0", "2", "10") and rows.placed.user.tolist() == [0, 0, 1, 2]
    assert rows.placed.lat.tolist() == [30.2691029532, 30.2359091167, 30.25, 30.5]
    assert report.dropped == {"invalid_place": 1, "ragged_row": 1, "invalid_time": 1} and report.rows == 7
    assert CANARY not in str(report) and CANARY not in str(rejected)
    assert seen and all(done <= total for done, total in seen)


def test_bad_gowalla_files_are_refused(tmp_path):
    for data, words in [
        (b"", "0 rows"),
        (b"a\tb\n", "1 ragged_row"),
        (b"\xff\xfe\t\t\t\t\n", "1 wrong_encoding"),
        (b"a\tnever\t1\t1\t1\n", "0 rows"),
    ]:
        (tmp_path / "x.txt").write_bytes(data)
        with pytest.raises(InvalidInput, match=words):
            IMPORTERS["gowalla"](tmp_path / "x.txt")


def test_real_gowalla_check_ins(data_folder):
    _, report, _ = IMPORTERS["gowalla"](data_folder / "raw" / "loc-gowalla_totalCheckins.head10k.txt.gz")
    assert report.rows == report.kept == 10_000


def test_csv_takes_the_names_of_its_columns(tmp_path):
    table = pa.table({"who": ["b", "a", "b"], "k": [3, 1, 2], "page": ["x", "y", None]})
    seen = []
    for suffix in (".csv", ".parquet", ".csv.gz"):
        write_table(tmp_path / f"x{suffix}", table)
        rows, report, rejected = IMPORTERS["csv"](
            tmp_path / f"x{suffix}",
            user_column="who",
            order_column="k",
            state_column="page",
            progress=lambda done, total: seen.append((done, total)),
        )
        assert rows.users == ("a", "b") and rows.state.tolist() == ["y", None, "x"] and rows.step.tolist() == [0, 0, 1]
        assert report.rows == 3 and report.dropped == {"missing_state": 1}
        assert rejected.to_pylist() == [{"row": 3, "reason": "missing_state"}]
    assert seen == [(1, 1)] * 3


@pytest.mark.parametrize(
    ("moment", "unset"),
    [
        ("1901-12-13T20:45:52Z", 1), ("1970-01-01T00:00:00Z", 1), ("1980-01-06T00:00:00Z", 1),
        ("1980-01-06T00:00:01Z", 0), ("2024-05-06T08:00:00Z", 0), ("2038-01-19T03:14:06Z", 0),
        ("2038-01-19T03:14:07Z", 1), ("2106-02-07T06:28:15Z", 1),
    ],
)  # fmt: skip
def test_times_of_clocks_that_were_never_set_are_told_and_kept(moment, unset, tmp_path):
    """A device counts from a year of its own, or shows the end of its 32 bits."""
    point = '<trkpt lat="46.43" lon="13.73"><time>{}</time></trkpt>'
    points = "".join(map(point.format, (moment, "2024-05-06T09:00:00Z")))
    track = f'<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>{points}</trkseg></trk></gpx>'
    (tmp_path / "walk.gpx").write_text(track)
    (tmp_path / "rows.csv").write_text(f"user,t,state\na,{moment},x\na,2024-05-06T09:00:00Z,x\n")
    found = [
        IMPORTERS["geo"](tmp_path / "walk.gpx", user="a"),
        IMPORTERS["csv"](tmp_path / "rows.csv", state_column="state"),
    ]
    for report in (each.report for each in found):
        assert report.kept == 2 and len(report.warnings) == unset
        assert all("never set: 1 (up to 1980-01-06" in warning for warning in report.warnings)
