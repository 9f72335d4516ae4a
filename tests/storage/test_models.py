"""Model files: the same model back, the same bytes for equal models, one clear line for anything else."""

from __future__ import annotations

import io
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
from dphmm.states.grid import Grid
from dphmm.states.space import StateSpace
from dphmm.storage import arrays
from dphmm.storage.arrays import read_arrays
from dphmm.storage.models import load_model, save_model


@pytest.fixture
def model():
    space = StateSpace([[0, 0], [1, 0], [2.5, 1]], names=["home", "work", "élan"])
    return MarkovModel(
        [0.5, 0.25, 0.25],
        [[0.5, 0.5, 0], [5e-324, 1.0, 0], [0.1, 0.2, 0.7]],
        space=space,
        step=300,
        start="at",
        provenance={"method": "given", "source": "a, b\n=c()"},
    )


@pytest.fixture
def path(model, tmp_path):
    save_model(model, tmp_path / "model.npz")
    return tmp_path / "model.npz"


def refusal(path):
    with pytest.raises(InvalidInput) as refused:
        load_model(path)
    message = str(refused.value)
    assert "\n" not in message
    return message


def rewritten(path, change, rehash=True):
    """The members changed by ``change``, with a hash that fits again unless ``rehash`` is False."""
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    written = contents.pop("sha256")
    change(contents)
    if rehash:
        written = f"sha256:{arrays.content_hash(contents)}\n".encode()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("sha256", written)
        for name, content in contents.items():
            archive.writestr(name, content)
    return path


def npy(array, **options):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), **options)
    return buffer.getvalue()


def test_round_trip(model, path):
    loaded = load_model(str(path))
    assert loaded.digest == model.digest
    assert (loaded.initial == model.initial).all()
    assert (loaded.transition.toarray() == model.transition.toarray()).all()
    assert (loaded.step, loaded.start, loaded.provenance) == (300, "at", model.provenance)
    assert loaded.space.digest == model.space.digest
    assert loaded.space.names == ("home", "work", "élan")
    assert (loaded.space.raw_answers == model.space.raw_answers).all()
    assert load_model(path).notes == model.notes


def test_plain_model_without_space(tmp_path):
    model = MarkovModel([1, 0], [[0.5, 0.5], [1, 0]])
    save_model(model, tmp_path / "plain")
    loaded = load_model(tmp_path / "plain")
    assert (loaded.space, loaded.step, loaded.digest) == (None, None, model.digest)


def test_grid_with_cells_left_out(tmp_path):
    grid = Grid.from_bounds(116.28, 39.85, 116.30, 39.87, cell=340.0)
    space = grid.subset(np.arange(0, grid.n_states, 3))
    n = space.n_states
    save_model(MarkovModel(np.full(n, 1 / n), np.eye(n), space=space), tmp_path / "m.npz")
    loaded = load_model(tmp_path / "m.npz").space
    assert isinstance(loaded, Grid)
    assert (loaded.digest, loaded.names) == (space.digest, space.names)
    points = np.array([39.851, 39.86]), np.array([116.281, 116.29])
    assert (loaded.locate(*points) == space.locate(*points)).all()


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(2, 8), st.integers(0, 2**32 - 1), st.floats(-9e-10, 9e-10))
def test_round_trip_is_bit_for_bit(tmp_path, n, seed, error):
    random = np.random.default_rng(seed)
    rows = random.random((n, n)) ** 20
    model = MarkovModel(random.dirichlet(np.ones(n)), rows / rows.sum(axis=1, keepdims=True) * (1 + error))
    save_model(model, tmp_path / "m.npz")
    assert load_model(tmp_path / "m.npz").digest == model.digest
    first = (tmp_path / "m.npz").read_bytes()
    save_model(load_model(tmp_path / "m.npz"), tmp_path / "m.npz")
    assert (tmp_path / "m.npz").read_bytes() == first


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


def test_a_jump_comes_back_and_older_versions_refuse_it(model, tmp_path):
    jumping = model.with_jump(0.001, [0.2, 0.3, 0.5])
    save_model(jumping, tmp_path / "jump.npz")
    again = load_model(tmp_path / "jump.npz")
    assert again.digest == jumping.digest != model.digest
    assert again.jump.rate == 0.001 and again.jump.into.tolist() == [0.2, 0.3, 0.5]
    assert again.provenance == {**model.provenance, "jump_into": "given"}
    with zipfile.ZipFile(tmp_path / "jump.npz") as archive:
        assert np.load(io.BytesIO(archive.read("format.npy"))) == 3
    first = (tmp_path / "jump.npz").read_bytes()
    save_model(again, tmp_path / "jump.npz")
    assert (tmp_path / "jump.npz").read_bytes() == first


@pytest.mark.parametrize(
    "into", [[0.2, 0.8], [0.2, 0.3, 0.6], [0.0, 0.5, 0.5], [np.nan, 0.5, 0.5], [[1.0]], ["a", "b", "c"]]
)
def test_a_broken_jump_is_refused(model, tmp_path, into):
    save_model(model.with_jump(0.001), tmp_path / "jump.npz")
    assert "into" in refusal(rewritten(tmp_path / "jump.npz", lambda c: c.update({"jump.npy": npy(into)})))


@pytest.mark.parametrize("rate", [0, 1, -1, "x", None, True, [1]])
def test_a_broken_rate_of_a_jump_is_refused(model, tmp_path, rate):
    def change(contents):
        meta = json.loads(np.load(io.BytesIO(contents["meta.npy"])).tobytes())
        meta["jump"] = rate
        contents["meta.npy"] = npy(np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8))

    save_model(model.with_jump(0.001), tmp_path / "jump.npz")
    assert "jump" in refusal(rewritten(tmp_path / "jump.npz", change))


def test_newer_format_is_refused_whatever_else_it_holds(path):
    rewritten(path, lambda c: (c.clear(), c.update({"format.npy": npy(4)})), rehash=False)
    assert "model format 4; expected at most 3: upgrade dphmm" in refusal(path)


@pytest.mark.parametrize("number", [0, -1, 1.0, [1, 1], True])
def test_format_must_be_a_number(path, number):
    assert "format number" in refusal(rewritten(path, lambda c: c.update({"format.npy": npy(number)})))


@pytest.mark.parametrize("name", ["format", "meta", "initial", "indptr", "indices", "data"])
def test_missing_parts(path, name):
    message = refusal(rewritten(path, lambda c: c.pop(f"{name}.npy")))
    assert "format number" in message if name == "format" else f"without {name}" in message


class Canary:
    """Unpickling this would create a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_pickles_are_not_loaded(path, tmp_path):
    payload = npy(np.array([Canary(tmp_path / "ran")], dtype=object), allow_pickle=True)
    for name in ("initial.npy", "format.npy", "space/lattice.npy"):
        copy = tmp_path / "copy.npz"
        copy.write_bytes(path.read_bytes())
        assert "no plain array" in refusal(rewritten(copy, lambda c, name=name: c.update({name: payload})))
    path.write_bytes(payload)
    assert "cannot be read" in refusal(path)
    assert not (tmp_path / "ran").exists()


def header(text):
    line = text.encode() + b" \n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(line)) + line


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY",
        b"text",
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


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("initial.npy", npy([0.5, 0.5, 0.5]), "initial: got sum 1.5"),
        ("data.npy", npy([0.5, 0.5, 0.5, 0.5, 0.1, 0.2, 0.6]), "transition[2]: got row sum"),
        ("data.npy", npy(["a"] * 7), "transition"),
        ("indices.npy", npy(np.array([0, 1, 0, 1, 0, 1, 9], dtype=np.int32)), "sparse"),
        ("indices.npy", npy([0.5] * 7), "no sparse matrix"),
        ("indptr.npy", npy(np.array([0, 2, 9, 7], dtype=np.int32)), "sparse"),
        ("indptr.npy", npy(3), "no sparse matrix"),
        ("indptr.npy", npy(np.zeros(0, dtype=np.int32)), "no sparse matrix"),
        ("meta.npy", npy(np.frombuffer(b"{", dtype=np.uint8)), "not JSON"),
        ("meta.npy", npy(np.frombuffer(b"\xff\xfe", dtype=np.uint8)), "not JSON"),
        ("meta.npy", npy(np.frombuffer(b"[1]", dtype=np.uint8)), "not JSON"),
        ("meta.npy", npy(np.frombuffer(b"[" * 100_000, dtype=np.uint8)), "not JSON"),
        ("meta.npy", npy(np.frombuffer(b'{"step": 1}', dtype=np.uint8)), "not JSON"),
    ],
)
def test_forged_contents_still_pass_the_models_checks(path, name, content, said):
    assert said in refusal(rewritten(path, lambda c: c.update({name: content})))


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("step", -5, "step: got -5"),
        ("start", "soon", "start: got soon"),
        ("provenance", [], "provenance"),
        ("space", [], "space: got list"),
        ("space", {"kind": "sphere"}, "sphere"),
        ("space", {"kind": "plain"}, "space"),
    ],
)
def test_forged_descriptions(path, key, value, said):
    def change(contents):
        array = np.frombuffer(contents["meta.npy"], dtype=np.uint8, offset=128)
        meta = json.loads(array.tobytes()) | {key: value}
        contents["meta.npy"] = npy(np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8))

    assert said in refusal(rewritten(path, change))


def test_not_a_file(tmp_path):
    assert "expected an existing model file" in refusal(tmp_path / "none.npz")
    assert "expected an existing model file" in refusal(tmp_path)


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


def test_merged_states_are_kept_in_a_format_of_their_own(tmp_path):
    """A model without merges is byte for byte what it was; one with merges is refused by an older reader."""
    space = Grid.from_bounds(10.0, 50.0, 10.056, 50.036, "1km").subset([0, 1, 4])
    plain, merged = (MarkovModel(np.full(3, 1 / 3), np.eye(3), space=s) for s in (space, space.merged({2: 0})))
    save_model(plain, tmp_path / "plain.npz")
    save_model(merged, tmp_path / "merged.npz")
    back = load_model(tmp_path / "merged.npz")
    assert back.space.digest == merged.space.digest != load_model(tmp_path / "plain.npz").space.digest
    assert back.space.merges.tolist() == [[2, 0]] and back.digest == plain.digest
    assert int(read_arrays(tmp_path / "plain.npz", 1, "save_model")["format"]) == 1
    with pytest.raises(InvalidInput, match="model format 2; expected at most 1: upgrade dphmm"):
        read_arrays(tmp_path / "merged.npz", 1, "save_model")
