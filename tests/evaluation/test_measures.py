"""Measures of a release, against the same measures written out plainly, row by row.

Claims. Each measure is what its definition says, for subjects whose rows are mixed up, of different lengths, with
places equally far. Intervals are those of resampled subjects: a twin puts the rows of those together and
measures them again. They would fail for rows resampled instead of subjects, for ties decided by luck, for moves counted
across subjects or gaps, and for rows that are matched in another order.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

import dphmm
from dphmm import evaluation
from dphmm.audit import resampling
from dphmm.errors import InvalidInput
from dphmm.evaluation.measures import nearest

N_STATES = 12
ROOT = Path(__file__).parents[2]


def rows_of(subjects) -> list[list[int]]:
    """Row numbers of each subject, in order of first appearance."""
    found: dict = {}
    for row, label in enumerate(subjects):
        found.setdefault(label, []).append(row)
    return list(found.values())


def resampled(measure, subjects, *columns):
    """The measure of every resample, its rows put together and measured again."""
    groups = rows_of(subjects)
    chosen = np.random.default_rng(len(groups)).integers(len(groups), size=(resampling.RESAMPLES, len(groups)))
    values = []
    for resample in chosen:
        rows = [row for k in resample for row in groups[k]]
        labels = [copy for copy, k in enumerate(resample) for _ in groups[k]]
        values.append(measure(labels, *(column[rows] for column in columns)))
    return np.array(values)


def check(found, measure, subjects, *columns, centred=False):
    value = measure(subjects, *columns)
    assert found.value == pytest.approx(value, rel=1e-12, abs=1e-15)
    low, middle, high = np.nanquantile(resampled(measure, subjects, *columns), [0.025, 0.5, 0.975])
    if centred:
        low, high = max(0.0, value + low - middle), value + high - middle
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-9, abs=1e-12)
    assert found.low <= found.value <= found.high


@pytest.fixture(scope="module")
def people():
    """60 rows of 7 people, mixed up: subjects, steps, true and published states and places."""
    random = np.random.default_rng(20)
    subjects = np.array([f"p{k}" for k in random.integers(7, size=60)])
    steps = np.zeros(60, dtype=np.int64)
    for rows in rows_of(subjects.tolist()):
        steps[rows] = np.cumsum(random.integers(1, 3, size=len(rows)))
    truth = random.integers(N_STATES, size=60) // 3
    released = np.where(random.random(60) < 0.5, truth, random.integers(N_STATES, size=60) // 2)
    places, answers = random.normal(size=(60, 2)), random.normal(size=(60, 2))
    return {
        "subjects": subjects, "steps": steps, "truth": truth, "released": released, "places": places, "z": answers
    }  # fmt: skip


def naive_mean(subjects, truth, z):
    return sum(np.sqrt(sum((a - b) ** 2)) for a, b in zip(truth, z, strict=True)) / len(truth)


def naive_rms(subjects, truth, z):
    return np.sqrt(sum(sum((a - b) ** 2) for a, b in zip(truth, z, strict=True)) / len(truth))


def test_error(people):
    found = dphmm.evaluation.error(people["places"], people["z"], people["subjects"])
    for one, naive in ((found.mean, naive_mean), (found.rms, naive_rms)):
        check(one, naive, people["subjects"].tolist(), people["places"], people["z"])
    assert found.rms.value > found.mean.value


def test_error_km_is_the_length_of_an_arc():
    """Along a meridian and along the equator a degree is a 360th of the circumference; a quarter of it to the pole."""
    degree = 2 * np.pi * 6371.0088 / 360
    for start, end, expected in (
        ((0, 0), (0, 1), 1),
        ((40, 7), (41, 7), 1),
        ((0, 30), (90, 0), 90),
        ((5, 5), (5, 5), 0),
    ):
        found = evaluation.error_km([start[0]], [start[1]], [end[0]], [end[1]]).mean
        assert found.value == pytest.approx(expected * degree, rel=1e-12)
    metres = dphmm.Grid.from_bounds(116.28, 39.85, 116.48, 39.99, cell=340)
    lat, lon = metres.to_latlon(metres.answers)
    planar = evaluation.error(metres.answers[:-1], metres.answers[1:]).mean.value / 1000
    assert evaluation.error_km(lat[:-1], lon[:-1], lat[1:], lon[1:]).mean.value == pytest.approx(planar, rel=0.006)


def naive_nearest(point, places, k):
    return set(sorted(range(len(places)), key=lambda j: (float(np.hypot(*(places[j] - point))), j))[:k])


@pytest.mark.parametrize(("k", "returned"), [(1, None), (3, None), (3, 9), (9, 3), (30, 40)])
def test_nearest_places(people, k, returned):
    random = np.random.default_rng(5)
    places = np.repeat(random.normal(size=(14, 2)), 3, axis=0)[random.permutation(42)]  # three of each: many ties
    more = k if returned is None else returned

    def naive(subjects, truth, z, wanted=False):
        both = [
            len(naive_nearest(a, places, k) & naive_nearest(b, places, more)) for a, b in zip(truth, z, strict=True)
        ]
        return sum(both) / len(both) / (k if wanted else more)

    given = people["places"], people["z"]
    found = evaluation.nearest_places_error(*given, places, k, returned, people["subjects"])
    assert found.precision.value == pytest.approx(naive(None, *given), rel=1e-12)
    assert found.recall.value == pytest.approx(naive(None, *given, wanted=True), rel=1e-12)
    assert found.precision.value * more == pytest.approx(found.recall.value * k)
    for asked, rows in zip(given[0], nearest(given[0], places, k), strict=True):
        assert set(rows.tolist()) == naive_nearest(asked, places, k)


def test_the_check_of_ties_can_fail(people, monkeypatch):
    """Without looking further than k, places equally far are taken as the tree happens to find them."""
    places = np.repeat(np.arange(10.0)[:, None] * [1, 0], 40, axis=0)[np.random.default_rng(1).permutation(400)]
    asked = np.array([[3.1, 0.0], [7.0, 0.2]])
    expected = [sorted(naive_nearest(point, places, 5)) for point in asked]
    assert np.sort(nearest(asked, places, 5), axis=1).tolist() == expected

    from scipy.spatial import cKDTree

    careless = np.sort(cKDTree(places).query(asked, k=5)[1], axis=1).tolist()
    assert careless != expected


def naive_variation(one, other):
    first, second = Counter(one), Counter(other)
    return sum(abs(first[key] / len(one) - second[key] / len(other)) for key in {*first, *second}) / 2


def test_density_error(people):
    found = evaluation.density_error(people["truth"], people["released"], N_STATES, people["subjects"])
    check(
        found,
        lambda subjects, truth, released: naive_variation(truth.tolist(), released.tolist()),
        people["subjects"].tolist(),
        people["truth"],
        people["released"],
        centred=True,
    )


def naive_moves(subjects, states, steps, region):
    for rows in rows_of(subjects):
        for a, b in pairwise(rows):
            if steps is None or steps[b] == steps[a] + 1:
                yield region[states[a]], region[states[b]]


@pytest.mark.parametrize("stepped", [False, True])
@pytest.mark.parametrize("regions", [None, [f"r{k % 3}" for k in range(N_STATES)]])
def test_flow_error(people, stepped, regions):
    def naive(subjects, truth, released, steps):
        region = list(range(N_STATES)) if regions is None else regions
        both = [list(naive_moves(subjects, part, steps if stepped else None, region)) for part in (truth, released)]
        return naive_variation(*both) if both[0] else np.nan

    steps = people["steps"] if stepped else None
    found = evaluation.flow_error(
        people["truth"], people["released"], N_STATES, people["subjects"], steps=steps, regions=regions
    )
    given = people["truth"], people["released"], people["steps"]
    check(found, naive, people["subjects"].tolist(), *given, centred=True)


def test_flow_error_between_ends(people):
    def naive(subjects, truth, released):
        ends = [(rows[0], rows[-1]) for rows in rows_of(subjects)]
        return naive_variation(*([(part[a], part[b]) for a, b in ends] for part in (truth, released)))

    given = people["truth"], people["released"]
    found = evaluation.flow_error(*given, N_STATES, people["subjects"], between="ends")
    check(found, naive, people["subjects"].tolist(), *given, centred=True)


def naive_visits(subjects, states, steps):
    lengths = []
    for rows in rows_of(subjects):
        length = 1
        for a, b in pairwise(rows):
            if states[a] == states[b] and (steps is None or steps[b] == steps[a] + 1):
                length += 1
            else:
                lengths.append(length)
                length = 1
        lengths.append(length)
    return lengths


@pytest.mark.parametrize("stepped", [False, True])
def test_visit_length_error(people, stepped):
    def naive(subjects, truth, released, steps):
        given = steps if stepped else None
        return wasserstein_distance(*(naive_visits(subjects, part, given) for part in (truth, released)))

    truth, released, steps = people["truth"] // 2, people["released"] // 2, people["steps"]
    given = steps if stepped else None
    lengths, owners = evaluation.visit_lengths(truth, people["subjects"], given)
    assert lengths.tolist() == naive_visits(people["subjects"].tolist(), truth, given)
    assert [int(lengths[owners == k].sum()) for k in range(7)] == [len(r) for r in rows_of(people["subjects"].tolist())]
    found = evaluation.visit_length_error(truth, released, people["subjects"], given)
    check(found, naive, people["subjects"].tolist(), truth, released, steps, centred=True)


def naive_radii(subjects, places):
    radii = []
    for rows in rows_of(subjects):
        middle = sum(places[rows]) / len(rows)
        radii.append(np.sqrt(sum(sum((place - middle) ** 2) for place in places[rows]) / len(rows)))
    return radii


def test_gyration_error(people):
    def naive(subjects, truth, z):
        both = [naive_radii(subjects, part) for part in (truth, z)]
        return sum(abs(a - b) for a, b in zip(*both, strict=True)) / len(both[0])

    given = people["places"], people["z"]
    found = evaluation.radius_of_gyration(given[0], people["subjects"])
    assert found == pytest.approx(naive_radii(people["subjects"].tolist(), given[0]), rel=1e-12)
    check(evaluation.gyration_error(*given, people["subjects"]), naive, people["subjects"].tolist(), *given)


def test_subjects_are_resampled_and_not_rows():
    """A row written down a hundred times is no new subject: the interval stays; rows as subjects would shrink it."""
    random = np.random.default_rng(3)
    truth, z, who = np.zeros((9, 2)), random.normal(size=(9, 2)), np.arange(9)
    one = evaluation.error(truth, z, who)
    many = evaluation.error(np.tile(truth, (100, 1)), np.tile(z, (100, 1)), np.tile(who, 100))
    assert many.mean == pytest.approx(one.mean) and many.rms == pytest.approx(one.rms)
    rows = evaluation.error(np.tile(truth, (100, 1)), np.tile(z, (100, 1)))
    assert rows.mean.high - rows.mean.low < (one.mean.high - one.mean.low) / 5


def test_resamples_are_the_same_in_blocks(monkeypatch, people):
    given = people["truth"], people["released"], N_STATES, people["subjects"]
    whole = evaluation.density_error(*given)
    for at_once in (1, 2**10):
        monkeypatch.setattr(resampling, "_AT_ONCE", at_once)
        assert evaluation.density_error(*given) == pytest.approx(whole)


def test_the_interval_covers_the_truth_as_often_as_it_says():
    """Means of 40 subjects of a skew law, 400 times; 95 % intervals then cover a little less often: .88 to .97.

    A wrong interval (rows for subjects, one standard error for two) covers less than .85 and fails.
    """
    random = np.random.default_rng(8)
    inside = 0
    for _ in range(400):
        level = random.exponential(size=40)
        values = np.repeat(level, 5) + 0.1 * random.normal(size=200)
        found = evaluation.of_distances(np.abs(values), np.repeat(np.arange(40), 5)).mean
        inside += found.low <= 1.0 + 0.004 <= found.high
    assert 0.88 <= inside / 400 <= 0.97


def test_a_single_subject_has_no_interval():
    found = evaluation.error([[0.0, 0.0], [0.0, 1.0]], [[3.0, 4.0], [0.0, 1.0]], ["a", "a"])
    assert found.mean.value == 2.5 and np.isnan([found.mean.low, found.mean.high]).all()


POINTS, STATES = np.zeros((4, 2)), np.zeros(4, dtype=int)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: evaluation.error(POINTS, POINTS[:3]), r"released: got shape \(3, 2\); expected \(4, 2\)"),
        (lambda: evaluation.error(POINTS, POINTS, [1, 2]), r"subjects: got shape \(2,\); expected \(4,\)"),
        (lambda: evaluation.error(POINTS[:0], POINTS[:0]), "truth: got no rows"),
        (lambda: evaluation.error(POINTS * np.nan, POINTS), "truth: got NaN or an infinity"),
        (lambda: evaluation.error(STATES, STATES), r"truth: got int64 of shape \(4,\); expected numbers"),
        (lambda: evaluation.error_km([1.0], [1.0], [1.0, 2.0], [1.0, 2.0]), "released_lat: got 2 places; expected 1"),
        (lambda: evaluation.error_km([1.0], [1.0, 2.0], [1.0], [1.0]), "lat, lon: got shapes"),
        (lambda: evaluation.nearest_places_error(POINTS, POINTS, POINTS[:, :1], 1), r"places: got shape \(4, 1\)"),
        (lambda: evaluation.nearest_places_error(POINTS, POINTS, POINTS, 5), "k: got 5; expected a number"),
        (lambda: evaluation.nearest_places_error(POINTS, POINTS, POINTS, 1, 0), "returned: got 0"),
        (lambda: evaluation.density_error(STATES, STATES[:2], 3), r"released: got shape \(2,\)"),
        (lambda: evaluation.density_error(STATES, STATES + 7, 3), "released: got a number that is no state; expected"),
        (lambda: evaluation.density_error(STATES, STATES, ["anna"]), "n_states: got list; expected the number"),
        (lambda: evaluation.density_error(STATES, STATES, 0), "n_states: got int; expected the number of states, 1 or"),
        (lambda: evaluation.density_error(STATES * 0.5, STATES, 3), "truth: got float64"),
        (lambda: evaluation.flow_error(STATES, STATES, 3, [1, 2, 3, 4]), "subjects: got no subject with two rows"),
        (lambda: evaluation.flow_error(STATES, STATES, 3, [1, 1, 1, 1], regions=[1]), r"regions: got shape \(1,\)"),
        (lambda: evaluation.flow_error(STATES, STATES, 3, [1, 1, 1, 1], between="days"), "between: got days"),
        (lambda: evaluation.flow_error(STATES, STATES, 3, [1, 1, 1, 1], steps=STATES), "steps: got a step that is not"),
        (lambda: evaluation.visit_lengths(STATES, STATES, [0.5]), r"steps: got float64 of shape \(1,\)"),
        (lambda: evaluation.gyration_error(POINTS, POINTS, None), "subjects: got None"),
    ],
)  # fmt: skip
def test_what_does_not_match_is_refused_in_one_line(call, message):
    with pytest.raises(InvalidInput, match=message) as refused:
        call()
    assert "\n" not in str(refused.value)


def test_other_names_are_not():
    with pytest.raises(AttributeError, match="no attribute 'accuracy'"):
        _ = evaluation.accuracy


def test_the_page_s_example_runs(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "measures.md").read_text(), re.DOTALL)
    exec(compile(code, "measures.md", "exec"), {})
    errors = [float(number) for number in re.findall(r"^\w+: ([\d.]+) k?m", capsys.readouterr().out, re.MULTILINE)]
    assert len(errors) == 2 and 0 < errors[1] < errors[0]


@pytest.mark.parametrize("measure", [name for name in evaluation.__all__ if name.endswith(("error", "error_km"))])
def test_the_page_has_every_measure(measure):
    assert f"| `{measure}` |" in (ROOT / "docs" / "measures.md").read_text()


def test_the_mean_of_a_sample_is_that_of_subjects_of_one_row_each():
    sample = np.random.default_rng(4).exponential(3.0, 25)
    assert evaluation.bootstrap_mean(sample) == pytest.approx(evaluation.of_distances(sample).mean, rel=1e-12)
