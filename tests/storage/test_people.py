"""The people of a model: who is recognised, what the file holds, and that nothing of it is anywhere else.

Could fail: a name or an unkeyed digest in the file, a file that others can read, a file beside a model learned with
privacy, a file believed beside another model, silence taken for "others".
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
import os
import stat

import numpy as np
import pytest

import dphmm
from dphmm.errors import InvalidInput
from dphmm.storage.learned import Whom, check_people, load_people, people_path, remove_people, save_people, whom

#: Commands and files draw here: each test replays words of its own.
pytestmark = pytest.mark.replayed_words

NAMES = ("ann", "Bob", "carla-ortiz", "7", "Zoë")


def saved(folder, name="model.npz", **provenance):
    origin = {"method": "maximum likelihood", "private": False} | provenance
    model = dphmm.MarkovModel(np.full(3, 1 / 3), np.full((3, 3), 1 / 3), provenance=origin)
    dphmm.save_model(model, folder / name)
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
        assert not any(digest[:32] in text for digest in unkeyed)
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
    assert dphmm.load_model(other).digest == dphmm.load_model(model).digest


def test_a_model_learned_with_privacy_has_none(tmp_path):
    learned = dphmm.MarkovModel.fit_private([[0, 1, 2]] * 9, 3, 1, 3)
    dphmm.save_model(learned, tmp_path / "m.npz")
    with pytest.raises(InvalidInput, match="learned with privacy"):
        save_people(tmp_path / "m.npz", NAMES)
    assert not people_path(tmp_path / "m.npz").exists()


def test_hidden_models_have_them_too(tmp_path):
    hmm = dphmm.CategoricalHMM(2, random_state=0).fit(np.array([[0], [1], [0], [1]]))
    dphmm.save_hidden_model(hmm, tmp_path / "h.npz")
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


#: By what the owner says, and whether names were compared (None: not) and met, and whether it is the same file.
KNOWN = {
    (None, None, False): ("unknown", None),
    (None, False, False): ("others", "names"),
    (None, True, False): ("same", "names"),
    ("unknown", None, False): ("unknown", None),
    ("unknown", False, False): ("unknown", None),
    ("unknown", True, False): ("same", "names"),
    ("others", None, False): ("others", "owner"),
    ("others", False, False): ("others", "owner"),
    ("others", True, False): ("same", "names"),
    ("same", None, False): ("same", "owner"),
    ("same", False, False): ("same", "owner"),
    ("same", True, False): ("same", "names"),
    **{(said, among, True): ("same", "file")
       for said in (None, "unknown", "others", "same") for among in (None, False, True)},
}  # fmt: skip


def test_what_is_known_of_whom_the_model_was_fitted_on():
    assert len(KNOWN) == 4 * 3 * 2
    for (said, among, same_file), expected in KNOWN.items():
        assert whom(said, among, same_file) == expected, (said, among, same_file)
    with pytest.raises(InvalidInput, match="model_people"):
        whom("everybody", True)


def test_a_pair_that_cannot_be_is_refused():
    possible = {("unknown", None), ("others", "owner"), ("others", "names")}
    possible |= {("same", known_by) for known_by in ("owner", "names", "file")}
    for pair in itertools.product(("unknown", "others", "same"), ("owner", "names", "file", "nobody")):
        if pair in possible:
            assert Whom.of(*pair) == pair
        else:
            with pytest.raises(InvalidInput, match="known_by"):
                Whom.of(*pair)
    assert [Whom.of(people).known_by for people in ("unknown", "others", "same")] == [None, "owner", "owner"]
