"""Queries of arrays and tables: at most K records of one person count, and no cell decides whether there is an answer.

The noise is replaced by numbers that do not depend on the data (see `noisy_numbers`), so that whatever is published
must be equal for all data, and the distance of the true numbers in scales of the noise is the exact worst log-ratio.
Fails where a record beyond K counts, where the noise is read off the data, and where a bad cell raises or moves others.
"""

from __future__ import annotations

import itertools
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from dphmm.dependent import (
    Chain,
    PrivateClassifier,
    classifier,
    count,
    degree_distribution,
    histogram,
    kmeans,
    mean,
    total,
)
from dphmm.dependent._inputs import first_of_each, last_of_each, people, whole_numbers
from dphmm.errors import InvalidInput
from noisy_numbers import loss, replaced
from random_seeds import seeds

#: What draws by default replays words here, each test its own.
pytestmark = pytest.mark.replayed_words

BAD = [None, float("nan"), float("inf"), float("-inf"), 1e308, -1, 7, 0.5, "x", "", "1e400", 2**70, True]


@pytest.fixture
def numbers(monkeypatch):
    return replaced(monkeypatch)


def judged(numbers, ask, data, *, same=lambda answer: (answer.table.to_csv(), answer.event)):
    """The worst loss of any two of the data sets, whose published answers must all be equal."""
    found = []
    for one in data:
        answer = ask(one)
        found.append((same(answer), numbers.taken()))
    assert [(published, _) for published, _ in found if published != found[0][0]] == []
    return max(loss(one, other) for (_, one), (_, other) in itertools.combinations(found, 2))


def frame(rows):
    return pd.DataFrame(rows, columns=["user", "t", "state"]).astype({"t": "int64", "state": "int64"})


BOTH = [(0, 3), (1, 4)]
ONE = {
    "histogram": lambda table, **more: histogram(table, "group", 1, n_states=3, n_times=4, **more),
    "consistent": lambda table, **more: histogram(table, "group", 1, n_states=3, n_times=4, consistent=True, **more),
    "windows": lambda table, **more: histogram(table, "group", 1, n_states=3, windows=BOTH, n_times=4, **more),
    "count": lambda table, **more: count(table, "group", 1, n_states=3, n_times=4, states=[2], **more),
    "total": lambda table, **more: total(table, "group", 1, values=np.array([0, 1, 5]), n_times=4, **more),
}  # fmt: skip


@pytest.mark.parametrize("question", ONE)
@pytest.mark.parametrize("most", [1, 2])
def test_any_two_tables_of_one_person_s_records(numbers, question, most):
    """All tables of up to three records of ann's over five times and two states, wherever they stand."""
    cells = list(itertools.product(range(5), (0, 2)))
    own = [[], *([one] for one in cells), *itertools.product(cells[:6], repeat=2), cells[:3], cells, cells[::-1]]
    tables = []
    for place, records in enumerate(own):
        rows = [("bob", 0, 1), ("bob", 3, 2), ("cid", 1, 1)]
        mine = [("ann", t, state) for t, state in records]
        tables.append(frame(rows + mine if place % 2 else mine + rows))
    found = judged(numbers, lambda table: ONE[question](table, max_rows_per_user=most), tables)
    # All of it is spent: K records leave a state for another one, and a sum changes by as much as it can.
    assert found == 1


def test_the_first_records_in_time_count(numbers):
    table = frame([("ann", 5, 2), ("ann", 1, 0), ("bob", 9, 1), ("ann", 3, 1), ("ann", 1, 1)])
    histogram(table, "group", 1, n_states=3, max_rows_per_user=2)
    ((_, sensitivity, epsilon, counts),) = numbers.taken()
    # Of two records at one time the last one counts.
    assert counts == (0, 3, 0) and sensitivity / epsilon == 4
    histogram(np.array([[-1, 0, 1, 2], [2, 2, -1, -1]]), "group", 1, n_states=3, max_rows_per_user=1)
    assert numbers.taken()[0][3] == (1, 0, 1)


@seeds(20)
def test_first_and_last_of_each_against_loops(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 12))
    codes, order = rng.integers(-1, 3, n), rng.integers(0, 4, n)
    most = int(rng.integers(1, 4))
    expected = np.zeros(n, dtype=bool)
    for person in range(3):
        own = sorted((int(order[i]), i) for i in range(n) if codes[i] == person)
        expected[[i for _, i in own[:most]]] = True
    assert first_of_each(codes, most, order).tolist() == expected.tolist()
    last = [not any(codes[j] == codes[i] and order[j] == order[i] for j in range(i + 1, n)) for i in range(n)]
    assert last_of_each(codes, order).tolist() == last


def test_people_are_told_apart_as_text():
    assert people(["b", "a", "b"]).tolist() == [1, 0, 1]
    assert people(np.array(["b", None, float("nan"), "a"], dtype=object)).tolist()[1:3] == [-1, -1]


def test_points_and_means_of_one_person(numbers):
    others = [[1.0, 1.0], [8.0, 9.0]]
    corners = [list(corner) for corner in itertools.product((0.0, 10.0), repeat=2)]
    own = [[], *([one] for one in corners), *([a, b] for a in corners for b in corners), corners, corners[::-1] * 9]
    data = [(np.array(others + mine).reshape(-1, 2), ["b", "c"] + ["a"] * len(mine)) for mine in own]

    def centroids(one):
        points, users = one
        return kmeans(
            points, "group", 1, box=(0, 10), start=[[1, 1], [9, 9]], iterations=2, users=users, max_rows_per_user=2
        )

    assert Fraction(1, 2) < judged(numbers, centroids, data) <= 1
    # n is public: as many values in all data sets.
    values = [[1.0, *mine] for mine in itertools.product((0.0, 4.0, 99.0, float("nan")), repeat=3)]

    def middle(one):
        return mean(one, "group", 1, bounds=(0, 4), users=["b", "a", "a", "a"], max_rows_per_user=2)

    assert judged(numbers, middle, values) == 1


def test_classifiers_of_one_person(numbers):
    rng = np.random.default_rng(0)
    rows, labels = rng.uniform(-1, 1, (6, 2)), ["no", "yes"] * 3
    own = [[(1, 1, "no")] * 4, [(-1, -1, "yes")] * 4, [(1, -1, "maybe")] * 4, [(None, 1, "no"), (9, 9, "yes")] * 2]
    data = [([*rows.tolist(), *([x, y] for x, y, _ in mine)], [*labels, *(c for *_, c in mine)]) for mine in own]

    def weights(one):
        X, y = one
        users = [*map(str, range(6)), *("a" * 4)]
        return classifier(
            np.array(X, dtype=object), np.array(y, dtype=object), "group", 1, classes=("no", "yes"), norm=2**0.5,
            regularization=0.5, users=users, max_rows_per_user=2,
        )  # fmt: skip

    assert Fraction(1, 10) < judged(numbers, weights, data) <= 1


def with_cell(base, at, value):
    changed = np.array(base, dtype=object)
    changed[at] = value
    return changed


ANY = {
    "histogram": lambda x: histogram(
        pd.DataFrame({"user": ["a", "b", "a"], "t": [0, 0, 1], "state": pd.Series([0, x, 1], dtype=object)}),
        "independent", 1, n_states=3, n_times=2,
    ),
    "an array": lambda x: histogram(with_cell([[0, 1], [2, 0]], (1, 0), 0 if x == -1 else x), "independent", 1,
                                    n_states=3),
    "a chain": lambda x: total(
        pd.DataFrame({"user": ["a", "b"], "t": [0, 0], "state": pd.Series([0, x], dtype=object)}),
        Chain([[0.9, 0.1], [0.2, 0.8]], 2), 1, values=np.array([0, 1]), n_times=2,
    ),
    "mean": lambda x: mean(with_cell([1.0, 2.0, 3.0], 1, x), "independent", 1, bounds=(0, 4)),
    "kmeans": lambda x: kmeans(with_cell([[1, 1], [5, 5], [9, 9]], (1, 0), x), "independent", 1, box=(0, 10),
                               start=[[1, 1], [9, 9]], iterations=1),
    "degree": lambda x: degree_distribution(with_cell([[0, 1], [1, 2]], (1, 0), x), 9, "independent", 1,
                                            level="edge", cap=3),
    "svm": lambda x: classifier(with_cell([[1, 1], [-1, 1], [1, -1]], (1, 0), x), ["no", "yes", "no"], "independent", 1,
                                classes=("no", "yes"), regularization=1),
    "labels": lambda x: classifier(np.eye(3), with_cell(["no", "yes", "no"], 1, x), "independent", 1,
                                   classes=np.array(["no", "yes"], dtype=object), regularization=1),
}  # fmt: skip


@pytest.mark.parametrize("question", ANY)
def test_no_cell_decides(numbers, question):
    assert 0 < judged(numbers, ANY[question], ["yes" if question == "labels" else 1, *BAD]) <= 1


def test_users_and_times_that_are_none(numbers):
    """Such a record is none, whatever it was; the records of others stay, of the same person too."""
    bad = [None, float("nan"), float("inf"), -1, 0.5, "x", 2**70]
    tables = [pd.DataFrame({"user": ["a", user, "b"], "t": pd.Series([0, t, 1], dtype=object), "state": [0, 1, 2]})
              for user, t in [("b", 0), *((None, x) for x in bad), *(("b", x) for x in bad)]]  # fmt: skip
    found = judged(numbers, lambda table: histogram(table, "independent", 1, n_states=3, n_times=2), tables)
    assert found == Fraction(1, 2)


def test_nobody_at_all(numbers):
    """A table that the last person has left is answered like any other."""
    tables = [frame([]), frame([("a", 0, 1)])]
    found = judged(numbers, lambda table: histogram(table, "independent", 1, n_states=3, n_times=2), tables)
    assert found == Fraction(1, 2)
    points = [np.zeros((0, 2)), np.ones((1, 2))]
    judged(numbers, lambda one: kmeans(one, "independent", 1, box=(0, 1), start=[[0, 0]]), points)


def test_estimators_with_named_classes_take_any_row(numbers):
    rows = [[1.0, 2.0], [0.0, 1.0], [2.0, 1.0]]
    for x, label in itertools.product([0.5, np.nan, np.inf, -np.inf, 1e308], ["no", "maybe", None]):
        fitted = PrivateClassifier(1, dependence="independent", classes=np.array(["no", "yes"], dtype=object))
        changed = np.array(rows)
        changed[1, 0] = x
        fitted.fit(changed, np.array(["no", label, "yes"], dtype=object))
        assert np.isfinite(fitted.coef_).all()
    assert len({(part[:3], len(part[3])) for part in numbers.taken()}) == 1


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (lambda: histogram([[0]], "group", 1, n_states=1), "max_rows_per_user: got None"),
        (lambda: histogram([[0]], "group", 1, n_states=1, max_rows_per_user=0), "max_rows_per_user"),
        (lambda: mean([1.0], "group", 1, bounds=(0, 1), max_rows_per_user=1), "users: got None"),
        (lambda: mean([1.0], "group", 1, bounds=(0, 1), users=["a"]), "max_rows_per_user: got None"),
        (lambda: mean([1.0], "independent", 1, bounds=(0, 1), users=["a"]), "max_rows_per_user: got None"),
        (lambda: mean([1.0], "group", 1, bounds=(0, 1), users=["a", "b"], max_rows_per_user=1), "each of 1 rows"),
        (lambda: kmeans([[1.0]], "group", 1, box=(0, 1), start=[[0]], max_rows_per_user=2), "users"),
        (lambda: degree_distribution([(0, 1)], 2, "group", 1, level="node", cap=1), "dependence"),
    ],
)
def test_a_bound_that_is_missing_is_asked_for(ask, told):
    with pytest.raises(InvalidInput, match=told):
        ask()


@pytest.mark.parametrize(
    "cells",
    [
        np.array([3, 2**53, 2**53 + 1, -(2**53), -(2**53) - 1]),
        np.array([3, 2**53, 2**53 + 1, 2**64 - 1], np.uint64),
        np.array([3, 2**53, 2**53 + 1, 2**70, "7", "7.0", "x", None, float("nan"), float("inf"), 0.5, 2.5e15], object),
        np.array(["3", str(2**53), str(2**53 + 1), "9007199254740993.0", "1e400", ""]),
        np.array([3.0, 2.0**53, -(2.0**53), 0.5, np.nan, np.inf]),
        np.array([Fraction(3), Fraction(1, 2), Decimal(2**53), Decimal(2**53 + 1), Decimal("nan"), pd.NA], object),
    ],
    ids=lambda cells: str(cells.dtype),
)
def test_whole_numbers_are_exact(cells):
    """Read as floats, 2**53 + 1 was 2**53: two people were one."""

    def read(cell):
        try:
            exact = Fraction(str(cell))
        except ValueError:
            return None
        most = 2**53 - isinstance(cell, (float, np.floating))
        # Text with a point, too, is read as a float.
        most -= isinstance(cell, str) and "." in cell
        return int(exact) if exact.denominator == 1 and abs(exact) <= most else None

    expected = [read(cell) for cell in cells]
    values, good = whole_numbers(cells, "edges")
    assert good.tolist() == [cell is not None for cell in expected]
    assert values.tolist() == [cell or 0 for cell in expected]
