"""Bad and odd answers f(s), 46-65: a table of finite numbers, snapped once, or refused naming the state.

Fails if a number that is none becomes an answer, if geometry is decided by a rounding error (a hull that leaves out a
difference it must hold), or if answers could depend on anything but the state.
"""

from __future__ import annotations

import numpy as np

from dphmm import Grid, MarkovModel, ReleaseSession, StateSpace, policy
from dphmm.sensitivity import sensitivity_hull
from faults.answers import Accepted, Same, both_surfaces, refused
from faults.catalogue import command, fault, library
from running_example import ANSWERS, EDGES_3B

NAN, INF = float("nan"), float("inf")
FIT_BOX = "fit people.csv -o m.npz --grid 1km --bbox"


def space(answers, **given):
    return lambda place: StateSpace(answers, **given)


def answers_file(*lines):
    """A table of answers for the pages, and the command that reads it."""

    def make(place):
        place.write("answers.csv", "".join(f"{line}\n" for line in lines))
        return "fit all_visits.csv -o m.npz --state-column state --answers answers.csv"

    return make


def table(**answers):
    """The pages' answers 0..3, some of them replaced."""
    numbers = {"alpha": 0, "beta": 1, "gamma": 2, "delta": 3} | answers
    return answers_file("state,x", *(f"{name},{value}" for name, value in numbers.items()))


def session(answers, **options):
    n = len(answers)
    model = MarkovModel(np.full(n, 1 / n), np.full((n, n), 1 / n))
    return ReleaseSession(model, policy.complete(n), StateSpace(answers), 1, **options)


def plan(answers, **options):
    return lambda place: session(answers, **options).plan


def constants(place):
    """Answers that are all the same: z must be that answer, whatever the truth."""
    for state in range(3):
        release = session([7, 7, 7]).release(state)
        yield release.z.tolist(), release.constant, release.cost


def covers_every_difference(plan):
    """The body holds every difference of answers, decided in integers, and no direction is left out."""
    hull = plan.hull
    differences = (plan.image[:, None] - plan.image[None]).reshape(-1, plan.image.shape[1])
    assert hull.rank == hull.dimension
    assert (hull.norm(differences) <= 1).all() and hull.contains(differences).all()


def far_from_zero(found):
    """Answers 1e15 .. 1e15 + 9 keep their differences exactly."""
    assert np.diff(found.image[:, 0]).tolist() == [1] * 9
    assert found.hull.norm(np.array([[9]])).tolist() == [1]


def two_units(found):
    assert found.snap_error.max() == 0
    assert found.lattice.tolist() == [[0, 0], [1_000_000, 1], [2_000_000, 3]]


def zeros(place):
    for zero in (0.0, -0.0):
        found = StateSpace([zero, 1.5, -1.5])
        yield found.digest, np.signbit(found.answers).tolist()


def interval(place):
    """One dimension needs no hull code at all."""
    import scipy.spatial

    def called(*_):
        raise AssertionError("Qhull")

    original, scipy.spatial.ConvexHull = scipy.spatial.ConvexHull, called
    try:
        return sensitivity_hull(policy.from_edges([(0, 1), (1, 3)], 4), [5, 2, 9, 4])
    finally:
        scipy.spatial.ConvexHull = original


def golden_plane(hull):
    """The running example of the DPHMM paper, Fig. 3b: differences (1,-1), (4,1), (1,1), (3,0); (1,1) is on a side."""
    vertices = {tuple(int(x) for x in vertex) for vertex in hull.vertices}
    assert vertices == {(4, 1), (-1, 1), (-3, 0), (-4, -1), (1, -1), (3, 0)}
    assert hull.volume == 11


def across_the_date_line(grid):
    """Neighbouring cells on both sides of 180 degrees are neighbours."""
    west, east = grid.locate(0.05, 179.995), grid.locate(0.05, -179.999)
    assert grid.lattice[east].tolist() == (grid.lattice[west] + [1, 0]).tolist()


def changing(state):
    raise AssertionError("the answer to a query was computed when it was asked for")


FAULTS = [
    fault(
        46, "NaN as an answer", "refused: the state",
        library(space([[0, 1], [1, NAN]]), refused("answers[1, 1]", "nan", "finite")),
        command(table(beta="nan"), refused("x of state 'beta'", "nan")),
    ),
    fault(
        47, "an infinite answer", "refused: the state",
        library(space([0, INF]), refused("answers[1, 0]", "inf", "finite")),
        command(table(gamma="-inf"), refused("x of state 'gamma'", "-inf")),
        command(table(gamma="1e999"), refused("gamma", "1e999")),
    ),
    fault(
        48, "a state without an answer", "refused: the state",
        library(lambda place: StateSpace.categories(["a", "b"], {"a": 1}), refused("answers", "no answer for 'b'")),
        library(lambda place: StateSpace.categories(["a"], {"a": 1, "c": 1}), refused("answers", "an answer for 'c'")),
        command(table(delta=""), refused("x of state 'delta'", "a number")),
        command(answers_file("state", "alpha"), refused("--answers", "names only", "a column of numbers")),
    ),
    fault(
        49, "the same answer for every state", "released as it is: a public constant, without noise, of cost 0",
        library(constants, Same(3)),
        library(plan([7, 7, 7]), Accepted(lambda found: found.constant and found.cost == 0)),
    ),
    fault(
        50, "answers that lie on one line", "the body is widened to all directions",
        library(plan([[0, 0], [1, 1], [4, 4]]), Accepted(covers_every_difference)),
    ),
    fault(
        51, "answers that lie almost on one line", "snapped, and the body holds every difference exactly",
        library(plan([[0, 0], [1, 1], [2, 2 + 1e-13], [3, 3]]), Accepted(covers_every_difference)),
        library(plan([[0, 0], [1000, 1000], [2000, 2001], [3000, 3000]]), Accepted(covers_every_difference)),
    ),
    fault(
        52, "answers from 1e15 to 1e15 + 9", "exact; beyond 2**53 refused",
        library(plan([1e15 + k for k in range(10)]), Accepted(far_from_zero)),
        library(space([2**60, 2**60 + 1]), refused("answers", "beyond 2**53")),
        command(table(alpha=2**60), refused("answers[:, 0]", "a span of 1.15e+18", "at most 2**20 steps")),
    ),
    fault(
        53, "axes in units a million millions apart", "each axis has a pitch of its own; within one axis refused",
        library(space([[0, 0], [1e6, 1e-6], [2e6, 3e-6]]), Accepted(two_units)),
        library(space([0, 1e-6, 1e6]), refused("answers[:, 0]", "a gap of 1e-06", "at most 2**20 steps", "pitch=")),
        command(table(beta="1e-6", delta="1e6"), refused("answers[:, 0]", "a gap of 1e-06", "larger gaps")),
    ),
    fault(
        54, "answers of 1e308, whose difference overflows", "refused: rescale",
        library(space([1e308, -1e308]), refused("answers[0, 0]", "1e+308", "rescale")),
        command(table(alpha="1e308"), refused("answers[0, 0]", "1e+308", "rescale")),
    ),
    fault(
        55, "answers whose differences are below the range of floats", "refused: rescale",
        library(space([0, 5e-324, 1e-323]), refused("answers[:, 0]", "a gap of 4.94e-324", "rescale")),
    ),
    fault(56, "-0.0 and 0.0", "the same answer", library(zeros, Same())),
    fault(
        57, "states of equal answers", "allowed: neighbours are protected by equality",
        library(plan([[0, 0], [0, 0], [3, 1], [1, 2]]), Accepted(covers_every_difference)),
        command(table(beta=0), Accepted(lambda result, place: (place / "m.npz").exists())),
    ),
    fault(
        58, "answers of one dimension", "an interval: no hull code is called",
        library(interval, Accepted(lambda hull: sorted(hull.vertices.ravel().tolist()) == [-3, 3])),
    ),
    fault(
        59, "answers of two and three dimensions", "the hulls that were computed by hand",
        library(lambda place: sensitivity_hull(policy.from_edges(EDGES_3B, 6), ANSWERS), Accepted(golden_plane)),
        library(
            lambda place: sensitivity_hull(policy.complete(8), [[i, j, 2 * k] for i, j, k in np.ndindex(2, 2, 2)]),
            Accepted(lambda hull: hull.volume == 16 and len(hull.vertices) == 8),
        ),
    ),
    fault(
        60, "answers of eight dimensions over a wide range",
        "refused at once, naming fewer dimensions or a coarser pitch",
        library(
            plan(np.random.default_rng(0).integers(0, 1000, (30, 8))),
            refused("answers", "8 dimensions", "fewer dimensions, or a coarser pitch"),
        ),
    ),
    fault(
        61, "answers without a dimension, or of different lengths", "refused: the shape, or the first odd state",
        library(space(np.zeros((3, 0))), refused("answers", "shape (3, 0)", "d at least 1")),
        library(space([[1], [1, 2]]), refused("answers", "2 numbers for state 1, 1 for 0")),
        library(space([]), refused("answers", "shape (0, 1)")),
        library(space(np.zeros((2, 2, 2))), refused("answers", "shape (2, 2, 2)")),
        command(answers_file("state,x,y", "alpha,1,2", "beta,1"), refused("line 3", "2 fields", "3")),
    ),
    fault(
        62, "more dimensions than states can span", "the body is widened to all of them",
        library(plan([[0, 0, 1], [1, 2, 3]]), Accepted(covers_every_difference)),
    ),
    fault(
        63, "a box of the map with latitude and longitude swapped", "refused, asking whether they are",
        library(lambda place: Grid(39.9, 116.3, 40.0, 116.4), refused("south", "116.3", "are lat and lon swapped")),
        command(f"{FIT_BOX} 50,100,50.1,100.1", refused("--bbox", "100 is no latitude", "are lat and lon swapped")),
        command(f"{FIT_BOX} 50.0,10.0,50.036,10.056", refused("--bbox", "none of the 288 rows inside", "west, south")),
    ),
    fault(
        64, "a box across the antimeridian", "cells that are neighbours there are; the long way round is refused",
        library(lambda place: Grid(179.9, 0.0, -179.9, 0.1, "1km"), Accepted(across_the_date_line)),
        library(lambda place: Grid(179.9, 0.0, 179.9, 0.1), refused("east", "179.9", "another longitude")),
        command(f"{FIT_BOX} 11,50,10,51", refused("--bbox", "359 degrees wide", "across the antimeridian")),
    ),
    fault(
        65, "answers given as a function", "refused: answers are a table, nothing runs when a state is released",
        library(space(changing), refused("answers", "dtype object", "numbers")),
        library(space([changing, changing]), refused("answers", "dtype object", "numbers")),
    ),
]  # fmt: skip


test_in_the_library, test_on_the_command_line = both_surfaces(FAULTS)
