"""Files of arrays: read without pickles, whole or not at all, whatever their bytes say of themselves."""

from __future__ import annotations

import json
import os
import re
import struct
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dphmm.errors import InvalidInput
from dphmm.markov import MarkovModel
from dphmm.storage.models import (
    load_model,
    save_model,
)
from storage.test_models import npy, refusal, rewritten


def test_numpy_reads_it_without_pickle(path):
    with np.load(path, allow_pickle=False) as file:
        assert int(file["format"]) == 1
        assert json.loads(file["meta"].tobytes())["step"] == 300
        assert set(file["data"]) >= {0.5, 5e-324}


def test_cut_short_anywhere(path, tmp_path):
    whole = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        expected = archive.read("sha256").decode().removeprefix("sha256:")[:16]
    for length in range(0, len(whole), 37):
        path.write_bytes(whole[:length])
        message = refusal(path)
        assert message.startswith(f"{path}: got a file that cannot be read as a model")
        if length > 200:
            assert f"expected contents with SHA-256 {expected}" in message


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_changed_byte_is_found_or_harmless(model, path, data):
    save_model(model, path)
    content = bytearray(path.read_bytes())
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    # Dates and attributes of the archive are not part of the model; all that is, is covered by the hash.
    try:
        assert load_model(path).digest == model.digest
    except InvalidInput as refused:
        assert "\n" not in str(refused)
        assert str(path) in str(refused)


def test_changed_contents_name_both_hashes(path):
    rewritten(path, lambda c: c.update({"initial.npy": npy([0.25, 0.5, 0.25])}), rehash=False)
    assert re.search(r"got contents with SHA-256 \w{16}; expected contents with SHA-256 \w{16}: it was", refusal(path))


def test_newer_format_is_refused_whatever_else_it_holds(path):
    rewritten(path, lambda c: (c.clear(), c.update({"format.npy": npy(6)})), rehash=False)
    assert "model format 6; expected at most 5: upgrade dphmm" in refusal(path)


@pytest.mark.parametrize("number", [0, -1, 1.0, [1, 1], True])
def test_format_must_be_a_number(path, number):
    assert "format number" in refusal(rewritten(path, lambda c: c.update({"format.npy": npy(number)})))


def header(text):
    line = text.encode() + b" \n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(line)) + line


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY",
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"),
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }"),
        header("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"),
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -1), }"),
        header("__import__('os')"),
        npy(np.zeros(3), version=(2, 0)),
        npy(np.zeros(3, dtype=[("x", "<f8")])),
        npy(np.zeros(3, dtype="datetime64[s]")),
        npy(np.zeros(3))[:-1],
        npy(np.zeros(3)) + b"\x00",
    ],
)
def test_arrays_that_are_none(path, content):
    message = refusal(rewritten(path, lambda c: c.update({"initial.npy": content})))
    assert "no plain array" in message or "of another size" in message


def test_compressed_members_are_refused_unread(path, tmp_path):
    bomb = tmp_path / "bomb.npz"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.npy", bytes(10**7))
    assert "'data.npy' compressed" in refusal(bomb)
    np.savez_compressed(bomb, data=np.zeros(4))
    assert "compressed" in refusal(bomb)


def test_repeated_and_overlapping_members(path, tmp_path):
    odd = tmp_path / "odd.npz"
    with zipfile.ZipFile(odd, "w") as archive:
        archive.writestr("data.npy", bytes(100))
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("data.npy", bytes(100))
    assert "2 members" in refusal(odd)
    with zipfile.ZipFile(odd, "w") as archive:
        for k in range(65):
            archive.writestr(f"{k}.npy", b"")
    assert "65 members; expected at most 64" in refusal(odd)
    with zipfile.ZipFile(odd, "w") as archive:
        archive.writestr("a", bytes(20_000))
        for k in range(10):
            member = zipfile.ZipInfo(f"b{k}")
            member.header_offset, member.file_size, member.compress_size = 0, 20_000, 20_000
            member.CRC = 0
            archive.filelist.append(member)
    assert "220000 bytes in members" in refusal(odd)


def test_saving_is_all_or_nothing(model, path, tmp_path, monkeypatch):
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as refused:
        save_model(MarkovModel([1, 0], np.eye(2)), path)
    assert refused.value.filename == str(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.npz"]
    with pytest.raises(InvalidInput, match="a folder that exists"):
        save_model(model, tmp_path / "none" / "model.npz")
