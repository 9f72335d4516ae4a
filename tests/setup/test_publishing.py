"""The public side of a release is in its folder before anything is drawn, and stays what it was released with."""

from __future__ import annotations

import pytest

import dphmm
from dphmm.errors import InvalidInput
from dphmm.setup.publishing import PublicSide
from dphmm.storage.release_folder import MADE_TABLE, ReleaseFolder

SETUP = dphmm.Setup.labels(["a", "b"], moves=[[9, 1], [1, 9]])
SIDE = PublicSide(SETUP.model, SETUP.policy, SETUP.space)


@pytest.fixture
def place(tmp_path):
    place = ReleaseFolder.of(tmp_path / "out")
    place.create()
    SIDE.save(place)
    return place


def test_it_is_written_once_and_indexed(place):
    before = place.files()
    assert list(before) == ["model.npz", "policy.json"] and place.others() == []
    SIDE.check_same(place)
    SIDE.save(place)
    assert place.files() == before


def test_a_policy_of_the_moves_of_the_model_is_one_of_them(tmp_path):
    side = SIDE._replace(policy=dphmm.policy.transition(SETUP.model))
    other = ReleaseFolder.of(tmp_path / "moves")
    other.create()
    side.save(other)
    side.check_same(other)
    with pytest.raises(InvalidInput, match="another policy"):
        SIDE._replace(policy=dphmm.policy.from_edges([], 2)).check_same(other)


def test_a_made_table_lies_beside_the_model(place):
    table = dphmm.choose.optimize(SETUP.model, SETUP.policy, SETUP.space, 1)
    from dphmm.mechanisms import make_known

    SIDE._replace(mechanism=make_known(table)).save(place)
    assert dphmm.storage.load_table(place.path / MADE_TABLE).reference == table.reference and place.others() == []


@pytest.mark.parametrize("part", ["model", "policy"])
def test_another_model_or_policy_is_refused(place, part):
    other = dphmm.Setup.labels(["a", "b"], moves=[[8, 2], [1, 9]])
    changed = {"model": other.model} if part == "model" else {"policy": dphmm.policy.from_edges([], 2)}
    with pytest.raises(InvalidInput, match=f"another {part}"):
        SIDE._replace(**changed).check_same(place)


def test_a_folder_whose_making_was_interrupted_goes_on(place):
    (place.path / "policy.json").unlink()
    SIDE.check_same(place)
    SIDE.save(place)
    assert list(place.files()) == ["model.npz", "policy.json"] and place.others() == []
