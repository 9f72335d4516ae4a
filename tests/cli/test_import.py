"""dphmm import: every format end to end, counts, and rows that cannot be read."""

from __future__ import annotations

import stat
import tarfile

import pyarrow.parquet as pq
import pytest

PLT_HEADER = "Geolife trajectory\nWGS 84\nAltitude is in Feet\nReserved 3\n0,2,255,My Track,0,0,2,8421376\n0\n"
PLT_ROWS = (
    "39.9,116.4,0,100,39745.1,2008-10-23,02:53:04\r\n",
    "39.91,116.41,0,100,39745.1,2008-10-23,02:54:04\r\n",
    "400.1,116.41,0,100,39745.1,2008-10-23,02:55:04\r\n",
)


@pytest.fixture
def geolife_folder(tmp_path):
    folder = tmp_path / "Data" / "007" / "Trajectory"
    folder.mkdir(parents=True)
    (folder / "20081023025304.plt").write_text(PLT_HEADER + "".join(PLT_ROWS), newline="")
    return tmp_path / "Data"


def test_geolife_from_folder_and_archive(geolife_folder, tmp_path, run, one_json, rows_of):
    archive = tmp_path / "sample.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(geolife_folder, "Data")
    for source, out in ((geolife_folder, "a.parquet"), (archive, "b.parquet")):
        counted = one_json(run("import", "geolife", source, "-o", tmp_path / out, "--json", code=3))
        assert (counted["rows"], counted["kept"], counted["users"]) == (3, 2, 1)
        assert counted["dropped"] == {"invalid_place": 1}
    assert pq.read_table(tmp_path / "a.parquet").equals(pq.read_table(tmp_path / "b.parquet"))
    assert rows_of(tmp_path / "a.parquet.rejected.csv") == [{"row": "3", "reason": "invalid_place"}]
    assert stat.S_IMODE((tmp_path / "a.parquet.rejected.csv").stat().st_mode) == 0o600


def test_gowalla(tmp_path, run):
    (tmp_path / "checkins.txt").write_text(
        "0\t2010-10-19T23:55:27Z\t30.2\t-97.7\t22847\n0\t2010-10-18T22:17:43Z\t30.3\t-97.8\t420315\n"
    )
    result = run("import", "gowalla", tmp_path / "checkins.txt", "-o", tmp_path / "g.parquet")
    assert result.stdout == ""
    assert "2 rows" in result.stderr
    table = pq.read_table(tmp_path / "g.parquet")
    assert table.column_names == ["user", "t", "lat", "lon"]
    assert table.column("lat").to_pylist() == [30.3, 30.2]


def test_sequences(tmp_path, run):
    (tmp_path / "web.seq").write_text("% comment\nhome news\n\n1 2 1\n2 2\n")
    run("import", "sequences", tmp_path / "web.seq", "-o", tmp_path / "s.parquet", "--quiet")
    assert pq.read_table(tmp_path / "s.parquet").column("state").to_pylist()[:3] == ["home", "news", "home"]


def test_empty_cells_of_a_wide_table_are_gaps_and_not_rows_set_aside(tmp_path, run, one_json):
    (tmp_path / "lives.csv").write_text("id,m1,m2,m3\n1,work,,school\n2,school,work,work\n")
    result = run(
        "import", "sequences", tmp_path / "lives.csv", "-o", tmp_path / "s.parquet",
        "--columns", "m1:m3", "--user-column", "id", "--json",
    )  # fmt: skip
    assert one_json(result)["dropped"] == {"missing_state": 1}


def test_columns_of_a_table_by_name(tmp_path, run):
    (tmp_path / "x.csv").write_text("who,when,y,x\na,2024-01-01T00:00:00,1.5,2.5\n")
    options = ("--user-column", "who", "--time-column", "when", "--lat-column", "y", "--lon-column", "x")
    result = run("import", "csv", tmp_path / "x.csv", "-o", tmp_path / "x.parquet", *options, code=2)
    assert "zone" in result.stderr
    run("import", "csv", tmp_path / "x.csv", "-o", tmp_path / "x.parquet", *options, "--assume-utc")
    assert pq.read_table(tmp_path / "x.parquet").column("lon").to_pylist() == [2.5]


def test_the_source_is_never_replaced(tmp_path, run):
    source = tmp_path / "x.csv"
    source.write_text("user,lat,lon\na,1.5,2.5\n")
    run("import", "csv", source, "-o", source, code=2)
    assert source.read_text() == "user,lat,lon\na,1.5,2.5\n"
