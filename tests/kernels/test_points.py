"""The nearest state within the hull of one's own: the compiled loop against plain Python on thousands of instances.

The twin asks every pair, compares squared distances as fractions of the pitch's decimals, and takes the norm of a
difference from the integer facets as fractions (`exactness.exact_norm`). Instances have one to three dimensions, flat
hulls, equal answers, ties, odd pitches, some states left out, and answers so far apart that 64 bits do not hold the
sums. It could fail for a boundary that does not count, a tie that goes to another state, the state itself, a state
outside the hull that is nearer, and for sums that overflow.

Degrees counted in runs of rows equal the definition, point by point, for any planar body and any two sets of states.

It could fail at a facet's rounding (a run one point too long or short), for bodies that lean, where a row of the body
is empty between others, for states outside the box of those counted, and where numbers pass 64 bits.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import dphmm
from dphmm import _kernels
from dphmm._kernels import points
from dphmm.errors import Unprotectable
from dphmm.sensitivity import protection
from dphmm.sensitivity.protection import degree_among, nearest_covered
from dphmm.states.lattice import Lattice
from exactness.exact_norm import FacetBody
from exactness.law import facet_body
from random_seeds import seeds

_PITCHES = (1.0, 1.0, 0.1, 0.25, 0.3, 7.0, 340.0)


def drawn(seed):
    """A hull, answers (N, d), targets and the states to choose among."""
    rng = np.random.default_rng([77, seed])
    n, d = int(rng.integers(2, 12)), int(rng.choice([1, 2, 2, 3]))
    scale = int(rng.choice([1, 1, 1, 2**12, 2**24]))
    lattice = rng.integers(0, int(rng.choice([2, 4, 9])), (n, d)) * scale
    few = int(rng.integers(0, 5))
    pitch = rng.choice(_PITCHES, size=d)
    space = dphmm.StateSpace(lattice * pitch, pitch=pitch.tolist())
    hull = dphmm.sensitivity.sensitivity_hull(dphmm.policy.from_edges(rng.integers(n, size=(few, 2)), n), space)
    among = np.flatnonzero(rng.random(n) < 0.8)
    image = space.lattice.take(rng.integers(n, size=n), axis=0) if rng.random() < 0.3 else space.lattice
    return hull, image, among


def plainly(hull, image, state, among):
    """The same by a double loop over fractions; -1 where nothing hides the state."""
    body: FacetBody = facet_body(hull)
    best = (Fraction(0), -1)
    for other in among.tolist():
        step = [int(a) - int(b) for a, b in zip(image[other], image[state], strict=True)]
        norm = body.norm(step)
        if other == state or norm is None or norm > 1:
            continue
        square = sum((p * s) ** 2 for p, s in zip(hull.frame.exact_pitch, step, strict=True))
        if best[1] < 0 or square < best[0]:
            best = (square, other)
    return best[1]


def check(seeds):
    """How many targets had somebody, had nobody, had somebody nearer outside; and how many hulls were flat."""
    seen = {"hidden": 0, "exposed": 0, "nearer outside": 0, "flat": 0}
    for seed in seeds:
        hull, image, among = drawn(seed)
        expected = {state: plainly(hull, image, state, among) for state in range(len(image))}
        hidden = [state for state, partner in expected.items() if partner >= 0]
        exposed = [state for state, partner in expected.items() if partner < 0]
        targets = np.array(hidden, dtype=np.int64)
        assert nearest_covered(hull, image, targets, among).tolist() == [expected[s] for s in hidden], seed
        for state in exposed:
            with pytest.raises(Unprotectable, match="within the hull"):
                nearest_covered(hull, image, np.array([*hidden, state], dtype=np.int64), among)
        seen["hidden"] += len(hidden)
        seen["exposed"] += len(exposed)
        seen["flat"] += bool(hidden) and hull.rank < hull.dimension
        for state in hidden:
            others = among[among != state]
            nearest = protection.nearest_other(image, hull.frame, state, others)
            seen["nearer outside"] += nearest != expected[state]
    return seen


def test_it_is_the_double_loop():
    seen = check(range(1250))
    assert min(seen.values()) >= 50, seen


@pytest.mark.long
def test_it_is_the_double_loop_in_many_more():
    check(range(10_000, 40_000))


def test_sums_beyond_64_bits_are_left_to_python_integers(monkeypatch):
    """The kernel is asked where its sums fit, and nowhere else."""
    sums, plainly_asked = [], []
    kernel, plain = _kernels.points.nearest_within, protection._covered_plainly

    def watched(points, weights, targets, among, rows, limits):
        spans = [int(np.ptp(axis)) for axis in points.T]
        sums.append(sum((int(w) * s) ** 2 for w, s in zip(weights, spans, strict=True)))
        sums.extend(sum(abs(a) * s for a, s in zip(row, spans, strict=True)) for row in rows.tolist())
        return kernel(points, weights, targets, among, rows, limits)

    def counted(*arguments):
        plainly_asked.append(arguments)
        return plain(*arguments)

    monkeypatch.setattr(_kernels.points, "nearest_within", watched)
    monkeypatch.setattr(protection, "_covered_plainly", counted)
    check(range(300))
    assert 2**50 < max(sums) < 2**62
    assert len(plainly_asked) >= 20


@pytest.mark.parametrize("reach", [2**27 - 1, 2**27, 2**27 + 1, 2**28])
def test_sums_around_the_bound_are_exact(reach):
    """Weighted by 16 or so, squares pass 2**62 between these: the same states below it and above."""
    points = np.array([[0, 0], [reach, 1], [1, reach], [reach, reach], [reach - 1, reach], [0, 2]])
    for pitch in (0.05, 0.06, 0.0625, 0.07):
        space = dphmm.StateSpace(points * np.array([1.0, pitch]), pitch=[1.0, pitch])
        hull = dphmm.sensitivity.sensitivity_hull(dphmm.policy.from_edges([(0, 1), (3, 4)], 6), space)
        targets = np.array([0, 1, 3, 4])
        expected = [plainly(hull, space.lattice, state, np.arange(6)) for state in targets]
        assert expected == [1, 0, 4, 3]
        # The nearest of all to state 0 is not covered.
        assert protection.nearest_other(space.lattice, hull.frame, 0, np.arange(1, 6)) == 5
        assert nearest_covered(hull, space.lattice, targets, np.arange(6)).tolist() == expected


def test_the_boundary_counts_and_ties_go_to_the_lowest_number():
    hull = dphmm.sensitivity.sensitivity_hull(dphmm.policy.from_edges([(0, 1)], 2), np.array([[0], [2]]))
    image = np.array([[0], [2], [-2], [3], [5]])
    found = nearest_covered(hull, image, np.arange(5), np.arange(5))
    assert found.tolist() == [1, 3, 0, 1, 3]


def test_distances_are_in_answer_units():
    """Four steps of 0.1 are nearer than one of 7."""
    frame = Lattice(np.array([0.1, 7.0]), np.zeros(2))
    answers = frame.to_answers(np.array([[0, 0], [4, 0], [0, 1], [9, 9], [5, 8]]))
    space = dphmm.StateSpace(answers, pitch=[0.1, 7.0])
    hull = dphmm.sensitivity.sensitivity_hull(dphmm.policy.from_edges([(0, 1), (0, 2)], 5), space)
    assert nearest_covered(hull, space.lattice, np.array([0]), np.arange(5)).tolist() == [1]


def test_nobody_is_asked_about_nothing():
    hull = dphmm.sensitivity.sensitivity_hull(dphmm.policy.complete(2), np.array([[0], [1]]))
    none = np.zeros(0, dtype=np.int64)
    assert nearest_covered(hull, np.array([[0], [1]]), none, np.arange(2)).tolist() == []


def _hull(differences, points):
    """The body spanned by ± these differences, over the points."""
    ends = np.array([[a, a + b] for a, b in enumerate(np.ones(len(differences), dtype=int))])
    answers = np.vstack([np.cumsum(np.vstack([[[0, 0]], differences]), axis=0), points])
    return dphmm.sensitivity.sensitivity_hull(dphmm.policy.from_edges(ends.tolist(), len(answers)), answers)


def _plain(hull, image, targets, among):
    return [int(hull.contains_lattice(image[among] - image[target]).sum()) for target in targets]


def _refuse_pairs(*_):
    raise AssertionError("every pair was tested")


@pytest.mark.parametrize("share", [0.05, 0.9], ids=["some cells asked for", "every cell asked for"])
@seeds(30)
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
    rows = points.runs_of_body(hull.normals, hull.offsets, 12, 12)
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
    assert len(points.runs_of_body(steep, offsets, 2, 8)) == 0
    assert len(points.runs_of_body(steep, offsets, 2, 1)) == 1


def test_nobody_asks_and_nobody_counts():
    image = np.array([[0, 0], [1, 0], [0, 1]])
    hull = _hull(np.array([[1, 0], [0, 1]]), image)
    nobody, states = np.zeros(0, dtype=np.int64), np.arange(3)
    assert degree_among(hull, image, nobody, states).tolist() == []
    assert degree_among(hull, image, states, nobody).tolist() == [0, 0, 0]


@seeds(30)
def test_points_within_a_body_are_counted_as_pairs_say(seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(-6, 7, size=(25, 2)) @ rng.integers(-3, 4, size=(2, 3))
    values = values[np.argsort(values[:, 0], kind="stable")]
    offsets, weights = rng.integers(0, 9, 3), rng.integers(0, 5, 25)
    counts = np.arange(25)
    points.count_within(values, offsets, weights, counts)
    near = (np.abs(values[:, None] - values[None]) <= offsets).all(axis=2)
    assert counts.tolist() == (np.arange(25) + near @ weights).tolist()
