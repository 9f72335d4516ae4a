"""The nearest state within the hull of one's own: the compiled loop against plain Python on thousands of instances.

The twin asks every pair, compares squared distances as fractions of the pitch's decimals, and takes the norm of a
difference from the integer facets as fractions (`exactness.exact_norm`). Instances have one to three dimensions, flat
hulls, equal answers, ties, odd pitches, some states left out, and answers so far apart that 64 bits do not hold the
sums. It could fail for a boundary that does not count, a tie that goes to another state, the state itself, a state
outside the hull that is nearer, and for sums that overflow.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import dphmm
from dphmm import _kernels
from dphmm.errors import Unprotectable
from dphmm.sensitivity import protection
from dphmm.sensitivity.protection import nearest_covered
from dphmm.states.lattice import Lattice
from exactness.exact_norm import FacetBody
from exactness.law import facet_body

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
    hull = dphmm.sensitivity_hull(dphmm.policy.from_edges(rng.integers(n, size=(few, 2)), n), space)
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
    seen = check(range(2500))
    assert min(seen.values()) >= 100, seen


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
        hull = dphmm.sensitivity_hull(dphmm.policy.from_edges([(0, 1), (3, 4)], 6), space)
        targets = np.array([0, 1, 3, 4])
        expected = [plainly(hull, space.lattice, state, np.arange(6)) for state in targets]
        assert expected == [1, 0, 4, 3]
        # The nearest of all to state 0 is not covered.
        assert protection.nearest_other(space.lattice, hull.frame, 0, np.arange(1, 6)) == 5
        assert nearest_covered(hull, space.lattice, targets, np.arange(6)).tolist() == expected


def test_the_boundary_counts_and_ties_go_to_the_lowest_number():
    hull = dphmm.sensitivity_hull(dphmm.policy.from_edges([(0, 1)], 2), np.array([[0], [2]]))
    image = np.array([[0], [2], [-2], [3], [5]])
    found = nearest_covered(hull, image, np.arange(5), np.arange(5))
    assert found.tolist() == [1, 3, 0, 1, 3]


def test_distances_are_in_answer_units():
    """Four steps of 0.1 are nearer than one of 7."""
    frame = Lattice(np.array([0.1, 7.0]), np.zeros(2))
    answers = frame.to_answers(np.array([[0, 0], [4, 0], [0, 1], [9, 9], [5, 8]]))
    space = dphmm.StateSpace(answers, pitch=[0.1, 7.0])
    hull = dphmm.sensitivity_hull(dphmm.policy.from_edges([(0, 1), (0, 2)], 5), space)
    assert nearest_covered(hull, space.lattice, np.array([0]), np.arange(5)).tolist() == [1]


def test_nobody_is_asked_about_nothing():
    hull = dphmm.sensitivity_hull(dphmm.policy.complete(2), np.array([[0], [1]]))
    none = np.zeros(0, dtype=np.int64)
    assert nearest_covered(hull, np.array([[0], [1]]), none, np.arange(2)).tolist() == []
