"""Spaces with merged states: whose answer counts, what stays each state's own, and that files keep it.

Fails where a merged state is released as anything but its partner's answer, where its name, place or cell moves, where
two different merges have one digest, where a file loses or invents a merge, and where a chain of merges is let in.
"""

from __future__ import annotations

import numpy as np
import pytest

from dphmm.errors import InvalidInput
from dphmm.states import H3, Grid, StateSpace
from dphmm.states.lattice import checked_merges, nearest_among


def plain():
    return StateSpace(np.array([0.25, 1.5, 7.0, 9.0]), names=["a", "b", "c", "d"], pitch=0.1)


def grid():
    return Grid.from_bounds(10.0, 50.0, 10.056, 50.036, "1km").subset([0, 1, 6, 16])


def hexes():
    lat, lon = np.array([50.0, 50.01, 50.02, 50.05]), np.array([10.0, 10.01, 10.02, 10.08])
    return H3.covering(lat, lon, 8)


SOME = {"plain": plain, "grid": grid, "h3": hexes}


@pytest.mark.parametrize("kind", SOME)
def test_a_merged_state_has_its_partners_answer_and_its_own_place(kind):
    own = SOME[kind]()
    space = own.merged({3: 0, 1: 0})
    assert space.merges.tolist() == [[1, 0], [3, 0]] and space.unmerged is own and type(space) is type(own)
    assert space.lattice.tolist() == own.lattice[[0, 0, 2, 0]].tolist()
    assert np.array_equal(space.answers, own.answers[[0, 0, 2, 0]])
    assert np.array_equal(space.raw_answers, own.raw_answers[[0, 0, 2, 0]])
    assert np.array_equal(space.own_answers, own.answers)
    assert space.names == own.names and space.given_names == own.given_names
    assert [space.index_of(name) for name in own.names] == [0, 1, 2, 3]
    assert len({own.digest, space.digest, own.merged({1: 0}).digest, own.merged({1: 2}).digest}) == 4
    assert own.merged({1: 0}).merged({3: 0}).digest == space.digest and space.merged({1: 0}) is space
    if space.on_map:
        lat, lon = own.to_latlon(own.raw_answers)
        assert space.locate(lat, lon).tolist() == [0, 1, 2, 3] == space.nearest(lat, lon).tolist()
        assert repr(space.projection) == repr(own.projection)
    if kind == "h3":
        assert all(np.array_equal(a, b) for a, b in zip(space.corners, own.corners, strict=True))


@pytest.mark.parametrize("kind", SOME)
def test_a_described_space_with_merges_is_restored(kind):
    space = SOME[kind]().merged([[3, 2], [1, 2]])
    meta, arrays = space.describe()
    back = StateSpace.from_description(meta, arrays)
    assert type(back) is type(space) and back.digest == space.digest and back.names == space.names
    assert np.array_equal(back.lattice, space.lattice) and back.merges.tolist() == [[1, 2], [3, 2]]
    assert back.unmerged.digest == space.unmerged.digest
    for wrong in (np.array([[3, 2], [2, 1]]), np.array([[3.0, 2.0]]), np.array([1, 2]), np.array([[4, 0]])):
        with pytest.raises(InvalidInput, match="merges"):
            StateSpace.from_description(meta, arrays | {"merges": wrong})


@pytest.mark.parametrize("kind", SOME)
def test_a_subset_keeps_the_merges_inside_it(kind):
    space = SOME[kind]().merged({3: 2})
    part = space.subset([0, 2, 3])
    assert part.merges.tolist() == [[2, 1]] and np.array_equal(part.lattice, space.lattice[[0, 2, 3]])
    assert part.names == tuple(space.names[k] for k in (0, 2, 3))
    assert space.subset([0, 2]).merges.tolist() == []
    with pytest.raises(InvalidInput, match="state 3 without state 2"):
        space.subset([0, 3])


@pytest.mark.parametrize(
    ("merges", "said"),
    [
        ({1: 2, 2: 3}, "state 1 merged into state 2, which is merged itself"),
        ({1: 1}, "merged itself"),
        ([[1, 2], [1, 3]], "two partners of state 1"),
        ({1: 4}, "a number that no state has"),
        ({-1: 2}, "a number that no state has"),
        ([[1, 2, 3]], "state numbers"),
        ([[1], [2, 3]], "rows of different lengths"),
        ([["1", "2"]], "state numbers"),
        ([[True, False]], "state numbers"),
    ],
)
def test_merges_that_cannot_be_are_refused(merges, said):
    with pytest.raises(InvalidInput, match=said):
        plain().merged(merges)


def test_a_later_merge_must_fit_the_earlier_ones():
    once = plain().merged({1: 2})
    for wrong in ({2: 3}, {3: 1}, {1: 3}):
        with pytest.raises(InvalidInput, match="merges"):
            once.merged(wrong)


def test_the_nearest_is_exact_where_floats_cannot_tell():
    """Two candidates whose squared distances differ by 1 in 10**15, and two that are tied."""
    far = 2**25
    points = np.array([[0, 0], [far, 1], [far, 0], [-far, 0]])
    frame = StateSpace(points).frame
    among = nearest_among(points, frame, np.array([0]), np.array([1, 2, 3]))
    assert among.tolist() == [2]
    assert nearest_among(points, frame, np.array([0]), np.array([1, 3])).tolist() == [3]
    assert checked_merges({}, 3).shape == (0, 2)
