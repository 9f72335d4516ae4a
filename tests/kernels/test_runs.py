"""Degrees counted in runs of rows equal the definition, point by point, for any planar body and any two sets of states.

It could fail at a facet's rounding (a run one point too long or short), for bodies that lean, where a row of the body
is empty between others, for states outside the box of those counted, and where numbers pass 64 bits.
"""

from __future__ import annotations

import numpy as np
import pytest

import dphmm
from dphmm._kernels import runs
from dphmm.sensitivity import protection
from dphmm.sensitivity.protection import degree_among


def _hull(differences, points):
    """The body spanned by ± these differences, over the points."""
    ends = np.array([[a, a + b] for a, b in enumerate(np.ones(len(differences), dtype=int))])
    answers = np.vstack([np.cumsum(np.vstack([[[0, 0]], differences]), axis=0), points])
    return dphmm.sensitivity_hull(dphmm.policy.from_edges(ends.tolist(), len(answers)), answers)


def _plain(hull, image, targets, among):
    return [int(hull.contains_lattice(image[among] - image[target]).sum()) for target in targets]


def _refuse_pairs(*_):
    raise AssertionError("every pair was tested")


@pytest.mark.parametrize("share", [0.05, 0.9], ids=["some cells asked for", "every cell asked for"])
@pytest.mark.parametrize("seed", range(30))
def test_rows_equal_the_definition(seed, share, monkeypatch):
    rng = np.random.default_rng(seed)
    width, height = rng.integers(3, 30, size=2)
    image = np.column_stack([rng.integers(0, width, size=400), rng.integers(0, height, size=400)]) + rng.integers(
        -50, 50
    )
    hull = _hull(rng.integers(-25, 26, size=(rng.integers(2, 6), 2)), image)
    targets, among = (np.flatnonzero(rng.random(400) < p) for p in (share, 0.5))
    monkeypatch.setattr(protection, "_by_pairs", _refuse_pairs)
    assert hull.rank == 2
    assert degree_among(hull, image, targets, among).tolist() == _plain(hull, image, targets, among)


def test_a_thin_leaning_body_has_empty_rows_between_others():
    """Rows 1 and 2 of this body hold no lattice point, row 3 does."""
    image = np.stack(np.meshgrid(np.arange(12), np.arange(12)), axis=-1).reshape(-1, 2)
    hull = _hull(np.array([[5, 3], [7, 4]]), image)
    states = np.arange(len(image))
    rows = runs.runs_of_body(hull.normals, hull.offsets, 12, 12)
    assert [first <= last for first, last in rows[:4].tolist()] == [True, False, False, True]
    assert degree_among(hull, image, states, states).tolist() == _plain(hull, image, states, states)


def test_a_state_far_outside_the_box_of_those_counted():
    """A body may be much taller than the box: its rows count however far they are."""
    counted = np.stack(np.meshgrid(np.arange(10), np.arange(3)), axis=-1).reshape(-1, 2)
    image = np.vstack([counted, [[4, 40]]])
    hull = _hull(np.array([[50, 0], [0, 50]]), image)
    assert degree_among(hull, image, np.array([30]), np.arange(30)).tolist() == [len(counted)]


def test_numbers_beyond_64_bits_are_left_to_exact_integers():
    offsets = np.array([2**61, 2**61])
    steep = np.array([[0, 2**60], [1, 1]])
    assert len(runs.runs_of_body(steep, offsets, 2, 8)) == 0
    assert len(runs.runs_of_body(steep, offsets, 2, 1)) == 1


def test_nobody_asks_and_nobody_counts():
    image = np.array([[0, 0], [1, 0], [0, 1]])
    hull = _hull(np.array([[1, 0], [0, 1]]), image)
    nobody, states = np.zeros(0, dtype=np.int64), np.arange(3)
    assert degree_among(hull, image, nobody, states).tolist() == []
    assert degree_among(hull, image, states, nobody).tolist() == [0, 0, 0]
