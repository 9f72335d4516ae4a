from __future__ import annotations

import gzip
import importlib
import io
import pkgutil
import subprocess
import sys
import tarfile
import zipfile

import numpy as np
import pyarrow as pa
import pytest

import dphmm.storage.importers as importers
from dphmm.errors import InvalidInput
from dphmm.storage import inputs
from dphmm.storage.importers import IMPORTERS, archives
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
CANARY = "CANARY_7f3a"


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


def test_every_importer_is_registered():
    made = set()
    for module in pkgutil.iter_modules(importers.__path__):
        loaded = importlib.import_module(f"{importers.__name__}.{module.name}")
        made |= {v for k, v in vars(loaded).items() if k.startswith("import_") and v.__module__ == loaded.__name__}
    assert made == set(IMPORTERS.values())
    assert all(function.__name__ == f"import_{name}" for name, function in IMPORTERS.items())
    assert set(IMPORTERS) == {"geolife", "gowalla", "csv", "sequences"}


@pytest.mark.parametrize("kind", ["folder", "Data", "tar", "tar.gz", "tgz", "zip"])
def test_geolife_is_read_in_place(tmp_path, kind):
    source = geolife_source(kind, tmp_path)
    before = sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*"))
    seen = []
    rows, report, rejected = IMPORTERS["geolife"](source, progress=lambda done, total: seen.append((done, total)))
    assert rows.users == ("000", "001")
    assert rows.user.tolist() == [0, 0, 0, 1, 1]
    assert rows.lat.tolist() == [39.1, 39.2, 39.3, 39.5, 39.6] and rows.lon.tolist() == [
        116.1,
        116.2,
        116.3,
        116.5,
        116.6,
    ]
    assert rows.trip.tolist() == [0, 0, 1, 0, 0]
    assert rows.time[0] == np.datetime64("2008-10-23T02:53:04", "us").astype(np.int64)
    assert report.files == 4 and report.rows == 7 and report.kept == 5 and report.users == 2
    assert report.dropped == {"invalid_place": 1, "ragged_row": 1}
    assert rejected.column("reason").to_pylist() == ["invalid_place"]
    assert report.lines()[0] == "7 rows in 4 file(s), 5 kept, 2 users"
    assert len(seen) == 4 and all(0 < done <= total for done, total in seen) and sorted(seen) == seen
    assert sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*")) == before


def test_geolife_in_many_flushes_is_the_same(tmp_path, monkeypatch):
    from dphmm.storage.importers import geolife

    source = write_folder(tmp_path)
    whole = IMPORTERS["geolife"](source)
    monkeypatch.setattr(geolife, "_ENOUGH", 1)
    parts = IMPORTERS["geolife"](source)
    assert parts.report == whole.report
    for name in whole.trajectories.columns:
        assert np.array_equal(getattr(parts.trajectories, name), getattr(whole.trajectories, name))


@pytest.mark.parametrize(
    "name",
    ["../Data/000/Trajectory/a.plt", "/Data/000/Trajectory/a.plt", "Data/../../x", "C:/Data/a", "a\\b"],
)
def test_members_that_leave_the_archive_are_refused(tmp_path, name):
    for source in (write_tar(tmp_path / "x.tar.gz", {name: b""}), write_zip(tmp_path / "x.zip", {name: b""})):
        with pytest.raises(InvalidInput, match="leaves"):
            IMPORTERS["geolife"](source)


def test_links_and_devices_in_archives_are_refused(tmp_path):
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
        with tarfile.open(tmp_path / "x.tar", "w") as archive:
            info = tarfile.TarInfo("Data/000/Trajectory/a.plt")
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
        with pytest.raises(InvalidInput, match="link or device"):
            IMPORTERS["geolife"](tmp_path / "x.tar")
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        link = zipfile.ZipInfo("Data/000/Trajectory/a.plt")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(InvalidInput, match="link"):
        IMPORTERS["geolife"](tmp_path / "x.zip")


def test_links_in_folders_are_refused(tmp_path):
    write_folder(tmp_path / "g")
    (tmp_path / "g/Data/000/Trajectory/z.plt").symlink_to(tmp_path / "g/Data/000/labels.txt")
    with pytest.raises(InvalidInput, match="links"):
        IMPORTERS["geolife"](tmp_path / "g")


def test_bombs_are_refused(tmp_path, monkeypatch):
    files = {"Data/000/Trajectory/a.plt": plt(*[point(39.1, 116.1, "02:53:04")] * 20_000)}
    sources = [write_tar(tmp_path / "x.tar.gz", files), write_zip(tmp_path / "x.zip", files)]
    for source in sources:
        assert IMPORTERS["geolife"](source).report.kept == 20_000
    monkeypatch.setattr(inputs, "FREE_BYTES", 1000)
    monkeypatch.setattr(archives, "FREE_BYTES", 1000)
    for source in sources:
        with pytest.raises(InvalidInput, match="bomb"):
            IMPORTERS["geolife"](source)
    monkeypatch.undo()
    monkeypatch.setattr(archives, "MOST_MEMBER", 1000)
    for source in (*sources, write_folder(tmp_path / "g", files)):
        with pytest.raises(InvalidInput, match="at most 1000"):
            IMPORTERS["geolife"](source)


@pytest.mark.parametrize("make", [write_tar, write_zip])
def test_damaged_archives_are_refused_wherever_they_break(tmp_path, make):
    name = "x.zip" if make is write_zip else "x.tar.gz"
    whole = make(tmp_path / name).read_bytes()
    for length in range(0, len(whole) - 30, 37):
        (tmp_path / name).write_bytes(whole[:length])
        with pytest.raises(InvalidInput):
            IMPORTERS["geolife"](tmp_path / name)


def test_an_archive_with_a_flipped_byte_is_refused(tmp_path):
    whole = bytearray(write_zip(tmp_path / "x.zip").read_bytes())
    whole[60] ^= 0xFF
    (tmp_path / "x.zip").write_bytes(whole)
    with pytest.raises(InvalidInput):
        IMPORTERS["geolife"](tmp_path / "x.zip")


def test_encrypted_members_are_refused(tmp_path):
    data = bytearray(write_zip(tmp_path / "x.zip").read_bytes())
    at = data.find(b"PK\x01\x02")
    data[at + 8] |= 1
    (tmp_path / "x.zip").write_bytes(data)
    with pytest.raises(InvalidInput, match="encrypted"):
        IMPORTERS["geolife"](tmp_path / "x.zip")


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
        assert rows.users == ("a", "b") and rows.state.tolist() == ["y", "x"] and rows.step.tolist() == [0, 0]
        assert report.rows == 3 and report.dropped == {"missing_state": 1}
        assert rejected.to_pylist() == [{"row": 3, "reason": "missing_state"}]
    assert seen == [(1, 1)] * 3


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
    assert rows.state.tolist() == ["school", "school", "work", "FE", "FE"] and rows.step.tolist() == [
        0,
        1,
        0,
        1,
        2,
    ]
    assert report.rows == 9 and report.dropped == {"missing_state": 1, "missing_user": 3} and report.users == 2
    assert rejected.to_pylist() == [{"row": 3, "reason": "missing_user"}]
    unnamed = IMPORTERS["sequences"](tmp_path / "x.csv", columns="a:b:end").trajectories
    assert unnamed.users == ("1", "2", "3") and unnamed.state.tolist() == [
        "work",
        "FE",
        "school",
        "work",
        "work",
    ]
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


def test_real_geolife_files(data_folder):
    rows, report, _ = IMPORTERS["geolife"](data_folder / "raw" / "geolife_plt_sample.tar.gz")
    assert report.users == 16 and report.files == 151 and report.kept == len(rows) == 184_635
    first = rows.take(rows.user == rows.users.index("000"))
    assert (first.lat[0], first.lon[0]) == (39.984702, 116.318417)
    assert first.time[0] == np.datetime64("2008-10-23T02:53:04", "us").astype(np.int64)


def test_real_gowalla_check_ins(data_folder):
    _, report, _ = IMPORTERS["gowalla"](data_folder / "raw" / "loc-gowalla_totalCheckins.head10k.txt.gz")
    assert report.rows == report.kept == 10_000


def test_real_sequences(data_folder):
    rows, report, _ = IMPORTERS["sequences"](data_folder / "msnbc323.seq.gz")
    assert report.users == 323 and not report.dropped and len(set(rows.state)) <= 17
    mvad = IMPORTERS["sequences"](data_folder / "mvad.csv.gz", columns="Jul.93:Jun.99", user_column="id")
    assert mvad.report.users == 712 and mvad.report.rows == 712 * 72 and not mvad.report.dropped
    assert set(mvad.trajectories.state) == {"training", "joblessness", "FE", "employment", "school", "HE"}


def test_importing_the_importers_loads_nothing_heavy():
    heavy = "{'pandas', 'pyarrow', 'scipy.spatial', 'numba', 'h3', 'polars'}"
    code = f"import sys, dphmm.states, dphmm.storage.importers; print({heavy} & set(sys.modules) or 'none')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "none\n"
