"""Model files: the same model back, the same bytes for equal models, one clear line for anything else.

The people of a model: who is recognised, what the file holds, and that nothing of it is anywhere else. Could fail: a
name or an unkeyed digest in the file, a file that others can read, a file beside a model learned with privacy, a file
believed beside another model, silence taken for "others".
"""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import os
import stat
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dphmm
from dphmm.errors import InvalidInput
from dphmm.markov import MarkovModel
from dphmm.states.grid import Grid
from dphmm.storage import models
from dphmm.storage.models import (
    check_people,
    load_model,
    load_people,
    people_path,
    read_arrays,
    remove_people,
    save_model,
    save_people,
)


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
        written = f"sha256:{models.content_hash(contents)}\n".encode()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("sha256", written)
        for name, content in contents.items():
            archive.writestr(name, content)
    return path


def npy(array, **options):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), **options)
    return buffer.getvalue()


def meta_with(**changes):
    """What changes members of a file's description."""

    def change(contents):
        meta = json.loads(np.lib.format.read_array(io.BytesIO(contents["meta.npy"])).tobytes())
        contents["meta.npy"] = npy(np.frombuffer(json.dumps(meta | changes).encode(), dtype=np.uint8))

    return change


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
    save_model(model.with_jump(0.001), tmp_path / "jump.npz")
    assert "jump" in refusal(rewritten(tmp_path / "jump.npz", meta_with(jump=rate)))


@pytest.mark.parametrize("name", ["format", "meta", "initial", "indptr", "indices", "data"])
def test_missing_parts(path, name):
    message = refusal(rewritten(path, lambda c: c.pop(f"{name}.npy")))
    assert "format number" in message if name == "format" else f"without {name}" in message


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
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
    assert said in refusal(rewritten(path, meta_with(**{key: value})))


def test_not_a_file(tmp_path):
    assert "expected an existing model file" in refusal(tmp_path / "none.npz")
    assert "expected an existing model file" in refusal(tmp_path)


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


#: Commands and files draw here: each test replays words of its own.
pytestmark = pytest.mark.replayed_words

NAMES = ("ann", "Bob", "carla-ortiz", "7", "Zoë")


def saved(folder, name="model.npz", **provenance):
    origin = {"method": "maximum likelihood", "private": False} | provenance
    model = dphmm.MarkovModel(np.full(3, 1 / 3), np.full((3, 3), 1 / 3), provenance=origin)
    dphmm.storage.save_model(model, folder / name)
    return folder / name


def test_those_in_the_file_are_recognised_and_nobody_else(tmp_path):
    model = saved(tmp_path)
    assert load_people(model) is None
    assert save_people(model, NAMES) == people_path(model) == tmp_path / "model.npz.people"
    people = load_people(model)
    for name in (*NAMES, " ann ", "ANN", "bob", "Zoe\u0308", "zoë"):
        assert people.has_one_of(["x", name]) is True, name
    for name in ("an", "ann2", "", "carla ortiz", "07", "Zoe"):
        assert people.has_one_of([name]) is False, name
    assert people.has_one_of([]) is None
    assert repr(people) == "People(...)"


def test_nothing_can_be_read_or_tried_without_the_key(tmp_path):
    """No name, and no digest of one that somebody without the file could compute."""
    written = save_people(saved(tmp_path), NAMES)
    text = written.read_text()
    spellings = {spelt for name in NAMES for spelt in (name, name.casefold(), name.upper())}
    assert not any(name.lower() in text.lower() for name in spellings if len(name) > 2)
    for spelt in spellings:
        raw = spelt.encode()
        unkeyed = [hashlib.new(kind, raw).hexdigest() for kind in ("md5", "sha1", "sha256", "sha512")]
        unkeyed += [hashlib.blake2b(raw, digest_size=size).hexdigest() for size in (16, 20, 32, 64)]
        unkeyed += [hmac.new(b"", raw, kind).hexdigest() for kind in ("md5", "sha256")]
        assert [digest for digest in unkeyed if digest[:32] in text] == []
    assert list(json.loads(text)) == ["format", "kind", "model_sha256", "key", "digests"]
    digests = json.loads(text)["digests"]
    assert digests == sorted(digests) and len(digests) == len(NAMES)


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_it_is_its_owner_s_alone_whatever_was_there(tmp_path):
    model = saved(tmp_path)
    before = os.umask(0)
    try:
        written = save_people(model, NAMES)
        assert stat.S_IMODE(written.stat().st_mode) == 0o600
        written.chmod(0o644)
        assert stat.S_IMODE(save_people(model, NAMES).stat().st_mode) == 0o600
    finally:
        os.umask(before)


def test_every_file_has_a_key_of_its_own(tmp_path):
    model = saved(tmp_path)
    first, second = (json.loads(save_people(model, NAMES).read_text()) for _ in range(2))
    assert first["key"] != second["key"] and not set(first["digests"]) & set(second["digests"])
    assert first["model_sha256"] == second["model_sha256"] == hashlib.sha256(model.read_bytes()).hexdigest()


def test_it_belongs_to_the_bytes_of_one_model(tmp_path):
    """A copy of both files is good; a model with equal numbers and another origin is another model."""
    model = saved(tmp_path)
    save_people(model, NAMES)
    copy = tmp_path / "copy.npz"
    copy.write_bytes(model.read_bytes())
    assert load_people(copy) is None
    people_path(copy).write_bytes(people_path(model).read_bytes())
    assert load_people(copy).has_one_of(["ann"])
    other, told = saved(tmp_path, "other.npz", source="another table"), []
    people_path(other).write_bytes(people_path(model).read_bytes())
    assert load_people(other, told.append) is None
    assert len(told) == 1 and "other.npz.people is of another model than other.npz" in told[0]
    assert dphmm.storage.load_model(other).digest == dphmm.storage.load_model(model).digest


def test_a_model_learned_with_privacy_has_none(tmp_path):
    learned = dphmm.MarkovModel.fit_private([[0, 1, 2]] * 9, 3, 1, 3)
    dphmm.storage.save_model(learned, tmp_path / "m.npz")
    with pytest.raises(InvalidInput, match="learned with privacy"):
        save_people(tmp_path / "m.npz", NAMES)
    assert not people_path(tmp_path / "m.npz").exists()


def test_hidden_models_have_them_too(tmp_path):
    hmm = dphmm.markov.CategoricalHMM(2, random_state=0).fit(np.array([[0], [1], [0], [1]]))
    dphmm.storage.save_hidden_model(hmm, tmp_path / "h.npz")
    save_people(tmp_path / "h.npz", NAMES)
    assert load_people(tmp_path / "h.npz").has_one_of(["ann"])


def test_there_is_none_of_a_file_that_is_no_model(tmp_path):
    (tmp_path / "table.csv").write_text("user\n")
    with pytest.raises(InvalidInput):
        save_people(tmp_path / "table.csv", NAMES)
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_removing_it_is_no_error_where_there_is_none(tmp_path):
    model = saved(tmp_path)
    save_people(model, NAMES)
    for _ in range(2):
        remove_people(model)
        assert not people_path(model).exists()


GOOD = {"format": 1, "kind": "the people a dphmm model was fitted on", "model_sha256": "0" * 64, "key": "1" * 64}
BROKEN = {
    "empty": "",
    "a list": "[]",
    "deep": "[" * 100_000,
    "another kind": json.dumps(GOOD | {"kind": "friends", "digests": []}),
    "a newer format": json.dumps(GOOD | {"format": 2, "digests": []}),
    "no digests": json.dumps(GOOD),
    "digests that are one text": json.dumps(GOOD | {"digests": "ab"}),
    "a digest that is a number": json.dumps(GOOD | {"digests": [3]}),
    "a short digest": json.dumps(GOOD | {"digests": ["ab"]}),
    "a short key": json.dumps(GOOD | {"key": "ab", "digests": []}),
    "no model": json.dumps(GOOD | {"model_sha256": None, "digests": []}),
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_what_is_no_such_file_is_refused_and_repeats_nothing(text, tmp_path):
    model = saved(tmp_path)
    people_path(model).write_text(text)
    for read in (load_people, check_people):
        with pytest.raises(InvalidInput, match=r"people of the model: got model\.npz\.people; expected .* remove it"):
            read(model)


def test_a_folder_in_its_place_is_refused(tmp_path):
    model = saved(tmp_path)
    people_path(model).mkdir()
    with pytest.raises(InvalidInput, match="not a folder"):
        check_people(model)
