from __future__ import annotations

import json
import pkgutil
from importlib import import_module

import numpy as np
import pytest

import dphmm.states
from dphmm.errors import InvalidInput
from dphmm.states import H3, SPACES, Grid, StateSpace, Zones, from_description, ordered_labels

pytest.importorskip("h3")
shapely = pytest.importorskip("shapely")


def make_spaces():
    rng = np.random.default_rng(5)
    return {
        "plain": StateSpace([[0.5, 1], [1.5, 2], [2.5, 4]], names=["a", "b", "ç"]),
        "grid": Grid.from_bounds(116.28, 39.85, 116.48, 39.99, cell=2000),
        "h3": H3.covering(rng.uniform(39.9, 39.93, 50), rng.uniform(116.3, 116.35, 50), resolution=8),
        "labels": StateSpace.labels(["a", "b", "ç"]),
        "zones": Zones(["a", "b", "ç"], [shapely.box(116 + k / 10, 39.9, 116.1 + k / 10, 40.0) for k in range(3)]),
    }


SOME = make_spaces()


def subclasses(space):
    return {space}.union(*(subclasses(kind) for kind in space.__subclasses__()))


def test_every_kind_of_space_is_registered_and_tested():
    for module in pkgutil.iter_modules(dphmm.states.__path__):
        import_module(f"dphmm.states.{module.name}")
    concrete = {space for space in subclasses(StateSpace) if not getattr(space, "__abstractmethods__", None)}
    concrete = {space for space in concrete if "kind" in vars(space)}
    assert concrete == set(SPACES.values())
    assert set(SOME) == set(SPACES)


@pytest.mark.parametrize("kind", SPACES)
@pytest.mark.parametrize("part", [None, [0, 2]])
def test_a_described_space_is_restored(kind, part):
    space = SOME[kind] if part is None else SOME[kind].subset(part)
    meta, arrays = space.describe()
    assert [array for array in arrays.values() if array.dtype.kind not in "iuf"] == []
    back = from_description(json.loads(json.dumps(meta)), arrays)
    assert type(back) is type(space) and back.kind == kind
    assert back.digest == space.digest and back.names == space.names
    for name in ("lattice", "answers", "raw_answers", "pitch", "snap_error"):
        assert np.array_equal(getattr(back, name), getattr(space, name))
    if space.on_map:
        places = space.to_latlon(space.raw_answers)
        assert np.array_equal(back.locate(*places), space.locate(*places))
        assert np.array_equal(back.nearest(39.0, [116, 117]), space.nearest(39.0, [116, 117]))
    assert type(StateSpace.from_description(meta, arrays)) is type(space)


@pytest.mark.parametrize("kind", SPACES)
def test_broken_descriptions_are_refused(kind):
    meta, arrays = SOME[kind].describe()
    for missing in meta:
        if missing != "names":
            with pytest.raises(InvalidInput):
                from_description({k: v for k, v in meta.items() if k != missing}, arrays)
    lattice = arrays["lattice"]
    far = lattice.copy()
    far[0] += 2**40
    for broken in (lattice.astype(float), lattice[:, 0], far):
        with pytest.raises(InvalidInput):
            from_description(meta, arrays | {"lattice": broken})
    with pytest.raises(InvalidInput, match="kind"):
        from_description(meta | {"kind": "sphere"}, arrays)
    with pytest.raises(InvalidInput):
        from_description(meta | {"pitch": ["x"]}, arrays)


@pytest.mark.parametrize("kind", SPACES)
def test_a_subset_keeps_names_answers_and_kind(kind):
    space = SOME[kind]
    mask = np.zeros(space.n_states, dtype=bool)
    mask[[2, 0]] = True
    part = space.subset(mask)
    assert type(part) is type(space)
    assert part.names == (space.names[0], space.names[2])
    # Labels are numbered anew: the number of a name is not its answer, the name is.
    assert np.array_equal(part.answers, [[0], [1]] if space.has_labels else space.answers[[0, 2]])
    assert np.array_equal(part.raw_answers, [[0], [1]] if space.has_labels else space.raw_answers[[0, 2]])
    assert part.frame == space.frame
    assert part.index_of(space.names[1]) == -1 and part.index_of(space.names[2]) == 1
    assert part.subset([1]).names == (space.names[2],)
    with pytest.raises(InvalidInput, match="at least 1"):
        space.subset([])


def test_default_names_are_numbers_and_survive_a_subset():
    space = StateSpace([5, 6, 7])
    assert space.names == ("0", "1", "2")
    assert space.subset([2]).names == ("2",)
    assert space.index_of("1") == 1 and space.index_of("x") == -1
    assert space.indices_of(["2", "x", "2", "0"]).tolist() == [2, -1, 2, 0]
    assert space.indices_of([]).tolist() == []


def test_a_whole_number_is_one_name_unless_two_states_have_two_of_its_names():
    listed = StateSpace.labels(["3", "10.0", "01", "2.5", "250", "250.0"])
    written = {"3": 0, "3.0": 0, "3.00": 0, "10": 1, "10.00": 1, "01": 2, "01.0": 2, "2.50": -1, "1": -1, "3.": -1}
    written |= {"250": 4, "250.0": 5, "250.00": -1, "3.0x": -1, "\u0663.0": -1}
    assert {name: listed.index_of(name) for name in written} == written
    assert listed.indices_of(list(written)).tolist() == list(written.values())
    assert ordered_labels(["10.0", "9", "10", "9.00", "2.50"]) == ("2.50", "9", "10")
    assert ordered_labels(["b", "9.0", "9"]) == ("9", "9.0", "b")


def test_the_digest_depends_on_all_that_is_public_and_nothing_else():
    base = StateSpace([[0, 1], [2, 3]])
    assert base.digest == StateSpace(np.array([[0.0, 1.0], [2.0, 3.0]]), names=["0", "1"]).digest
    others = [
        StateSpace([[0, 1], [2, 4]]),
        StateSpace([[0, 1], [2, 3]], names=["0", "2"]),
        StateSpace([[0, 2], [4, 6]], pitch=(1, 2)),
        StateSpace([0, 1, 2, 3]),
    ]
    assert len({base.digest, *(space.digest for space in others)}) == 5


def test_arrays_cannot_be_changed_and_input_is_left_alone():
    given = np.array([[0.5], [1.0]])
    space = StateSpace(given)
    for name in ("lattice", "answers", "raw_answers"):
        with pytest.raises(ValueError):
            getattr(space, name)[0] = 0
    given[0] = 9
    assert space.raw_answers[0, 0] == 0.5


@pytest.mark.parametrize(
    ("names", "field"),
    [
        (["a"], "1 names"),
        (["a", ""], r"names\[1\]"),
        (["a", "x" * 201], r"names\[1\]"),
        (["a", 1], r"names\[1\]"),
        ("ab", "one string"),
    ],
)
def test_bad_names_are_refused(names, field):
    with pytest.raises(InvalidInput, match=field) as refused:
        StateSpace([0, 1], names=names)
    assert str(refused.value).isprintable()


def test_a_plain_space_has_no_map():
    assert StateSpace([[0, 1]]).to_latlon([[0, 1]]) is None
    assert not hasattr(StateSpace([[0, 1]]), "locate")


def test_repr_and_len():
    assert repr(StateSpace([1, 2])) == "StateSpace(n_states=2, dimension=1)"
    assert len(StateSpace([1, 2])) == 2
