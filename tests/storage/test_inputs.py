from __future__ import annotations

import pytest

from dphmm.errors import InvalidInput
from dphmm.storage import inputs
from dphmm.storage.importers import IMPORTERS
from fuzz.registry import READERS
from storage.importers.test_rows import plt, point, write_folder, write_tar, write_zip


@pytest.mark.parametrize(
    "name",
    ["../Data/000/Trajectory/a.plt", "/Data/000/Trajectory/a.plt", "Data/../../x", "C:/Data/a", "a\\b"],
)
def test_members_that_leave_the_archive_are_refused(tmp_path, name):
    for source in (write_tar(tmp_path / "x.tar.gz", {name: b""}), write_zip(tmp_path / "x.zip", {name: b""})):
        with pytest.raises(InvalidInput, match="leaves"):
            IMPORTERS["geolife"](source)


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
    for source in sources:
        with pytest.raises(InvalidInput, match="expands to more"):
            IMPORTERS["geolife"](source)
    monkeypatch.undo()
    monkeypatch.setattr(inputs, "MOST_MEMBER", 1000)
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


#: What is read in one go, and the lines of a stream.
ONE_GO = {"people of a model", "geolife file", "stream of places", "stream of states"}


@pytest.mark.parametrize("name", [name for name, reader in READERS.items() if reader.private and name not in ONE_GO])
def test_every_reader_of_people_refuses_a_file_that_changes(tmp_path, monkeypatch, name):
    reader, digests = READERS[name], iter("ab" * 9)
    path = reader.path(tmp_path)
    path.write_bytes(reader.seeds()[0])
    monkeypatch.setattr(inputs, "file_digest", lambda path: next(digests))
    with pytest.raises(InvalidInput, match="changed while it was read"):
        reader.read(path)
