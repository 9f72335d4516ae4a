"""Shares of a population from noisy answers: unbiased whatever the truth is, with intervals that cover.

Fails for an estimate that leans to the guess, for intervals that are too narrow, and for regions that no answer tells
apart and that are answered all the same.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, multinomial

import dphmm
from dphmm.errors import InvalidInput
from dphmm.reconstruction.answers import outcome_table as laws_of
from dphmm.reconstruction.linear import (
    MISSES,
    TermBounds,
    TermMoments,
    interval,
    interval_of_rows,
    linear_estimates,
    normal_interval,
    of_those_that_go_on,
    shares,
    shares_of_outcomes,
)


def noisy(n, stay):
    """Randomised response over n labels."""
    table = np.full((n, n), (1 - stay) / (n - 1))
    np.fill_diagonal(table, stay)
    return table


@pytest.mark.parametrize("seed", range(5))
def test_estimates_are_unbiased_from_every_state(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    table = rng.dirichlet(np.full(n + 2, 0.7), n)
    regions = np.column_stack([np.eye(n), rng.integers(0, 2, n)])
    guess = rng.dirichlet(np.ones(n))
    assert table @ linear_estimates(table, regions, guess) == pytest.approx(regions, abs=1e-8)


def test_no_unbiased_estimate_varies_less_under_the_guess():
    """Against a general solver of the same problem: least variance, linear constraints."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(3)
    table, guess = rng.dirichlet(np.ones(5), 3), np.array([0.5, 0.3, 0.2])
    chance, region = guess @ table, np.array([1.0, 0.0, 0.0])
    found = linear_estimates(table, region[:, None], guess)[:, 0]
    limits = {"type": "eq", "fun": lambda g: table @ g - region}
    best = minimize(lambda g: chance @ g**2, np.zeros(5), constraints=limits, options={"ftol": 1e-15, "maxiter": 500})
    assert chance @ found**2 == pytest.approx(best.fun, rel=1e-6)


def test_the_expected_share_is_the_true_one_by_enumeration():
    """Three people, every combination of their outcomes."""
    table, truth = noisy(3, 0.6), (0, 0, 2)
    expected = np.zeros(3)
    for outcomes in product(range(3), repeat=3):
        chance = np.prod([table[state, z] for state, z in zip(truth, outcomes, strict=True)])
        expected += chance * shares_of_outcomes(table, np.array(outcomes)).share
    assert expected == pytest.approx([2 / 3, 0, 1 / 3])


@pytest.mark.parametrize("stay", [0.4, 0.55, 0.9, 0.999])
@pytest.mark.parametrize("people", [1, 2, 3, 5])
def test_intervals_cover_the_people_s_own_share_by_enumeration(people, stay):
    """Every combination of true labels and of outcomes, of few people: the worst coverage is never below 0.9."""
    table = noisy(3, stay)
    estimates = linear_estimates(table, np.eye(3))
    ends = estimates.min(axis=0), estimates.max(axis=0)
    found = {outcomes: shares(estimates[list(outcomes)], *ends) for outcomes in product(range(3), repeat=people)}
    for states in product(range(3), repeat=people):
        truth = np.bincount(states, minlength=3) / people
        covered = np.zeros(3)
        for outcomes, (_, low, high) in found.items():
            chance = np.prod([table[state, z] for state, z in zip(states, outcomes, strict=True)])
            covered += chance * ((low <= truth) & (truth <= high))
        assert (covered >= 0.9).all(), (states, covered)


@pytest.mark.parametrize("stay", [0.6, 0.9, 0.999])
@pytest.mark.parametrize("people", [1, 4, 20, 60])
def test_intervals_cover_the_population_s_share_exactly(people, stay):
    """How many outcomes name a label is binomial, whatever its share: coverage summed over all counts."""

    estimates = linear_estimates(noisy(2, stay), np.eye(2))
    ends = estimates.min(axis=0), estimates.max(axis=0)
    found = [shares(estimates[[0] * n + [1] * (people - n)], *ends) for n in range(people + 1)]
    for rho in np.linspace(0, 1, 41):
        chance = rho * stay + (1 - rho) * (1 - stay)
        held = [bool(low[0] <= rho <= high[0]) for _, low, high in found]
        assert binom.pmf(np.arange(people + 1), people, chance) @ held >= 0.9


def test_intervals_of_few_people_are_wide_and_between_0_and_1():
    """Few people who all answer alike: the normal approximation had intervals of no width, far below 0 or above 1."""
    for outcomes in ([0], [0, 0], [1, 1, 1], [0, 1]):
        _, low, high = shares_of_outcomes(noisy(3, 0.4), np.array(outcomes))
        assert (low >= 0).all() and (high <= 1).all() and (high - low > 0.5).all()
    _, low, high = shares_of_outcomes(noisy(3, 0.9), np.repeat([0, 1, 2], [3600, 200, 200]))
    assert 0.95 < low[0] < high[0] == 1 and low[1] == 0 and (high - low < 0.1).all()


SHARES = (0.0, 0.001, 0.01, 0.03, 0.05, 0.1, 0.15, 0.2, 0.35, 0.5, 0.8, 0.9, 0.97, 1.0)


def staircase(n, epsilon):
    """The chances (2, 3) of three groups of answers, from a label and from another one, as a release of n labels has.

    The groups: answers that count for the first label, those that count against it, and all others. What is put
    together is one outcome: the table is that of the plan.
    """
    space = dphmm.StateSpace.categories([f"l{k:02d}" for k in range(n)])
    model = dphmm.MarkovModel(np.full(n, 1 / n), np.full((n, n), 1 / n), space=space)
    plan = dphmm.ReleaseSession(model, dphmm.policy.complete(n), space, epsilon=epsilon).plan
    found = laws_of(plan)
    table = found.table[found.law_of]
    counts = linear_estimates(table, np.eye(n)[:, :1])[:, 0]
    group = np.where(counts > 1, 0, np.where(counts < 0, 1, 2))
    return np.stack([np.bincount(group, weights=table[state], minlength=3) for state in (0, 1)])


def of_two_states(table, guess=(0.5, 0.5)):
    """What each outcome counts for the first of two states, and the bounds of these terms."""
    counts = linear_estimates(table, np.eye(2)[:, :1], np.array(guess))[:, 0]
    square = table @ counts**2
    return counts, (counts.min(), counts.max(), square[0], square[1])


def told(values, ways, people, bounds):
    """The ends of the intervals for every way (m, j) in which people may have the values (j,)."""
    mean, square = ways @ values / people, ways @ values**2 / people
    terms = TermBounds(*(np.full(len(ways), bound) for bound in bounds))
    return interval(TermMoments(mean, square, square - 2 * mean + 1), people, terms)


def ways_of(people, values):
    """Every way (m, j) in which people may have two values or three."""
    if values == 2:
        return np.stack([np.arange(people + 1), people - np.arange(people + 1)], axis=1)
    one, other = np.indices((people + 1, people + 1)).reshape(2, -1)
    return np.stack([one, other, people - one - other], axis=1)[one + other <= people]


def covered(chances, values, people, bounds, share):
    """How likely the interval holds a share, by every way in which people have the values with some chances (j,)."""
    ways = ways_of(people, len(values))
    low, high = told(values, ways, people, bounds)
    return float(multinomial.pmf(ways, people, chances / chances.sum()) @ ((low <= share) & (share <= high)))


@pytest.mark.parametrize("labels", [2, 20])
@pytest.mark.parametrize("epsilon", [0.5, 1, 2, 3, 5])
@pytest.mark.parametrize("people", [1, 5, 30, 40, 60, 300])
def test_intervals_of_a_population_cover_every_share_by_enumeration(people, epsilon, labels):
    """Randomised response: the normal approximation held some of these shares in 57 to 76 of 100 cases."""
    stay = np.exp(epsilon) / (np.exp(epsilon) + labels - 1)
    table = np.array([[stay, 1 - stay], [(1 - stay) / (labels - 1), 1 - (1 - stay) / (labels - 1)]])
    values, bounds = of_two_states(table)
    for share in SHARES:
        chances = np.array([share, 1 - share]) @ table
        assert covered(chances, values, people, bounds, share) >= 0.9, share


@pytest.mark.parametrize("people", [60, 100, 300])
def test_intervals_of_labels_cover_every_share_by_enumeration(people):
    """Labels of a release at epsilon 2, of which few answers count for much."""
    table = staircase(20, 2)
    values, bounds = of_two_states(table, [0.05, 0.95])
    assert values.max() > 14
    for share in SHARES:
        chances = np.array([share, 1 - share]) @ table
        assert covered(chances, values, people, bounds, share) >= 0.9, share


@pytest.mark.parametrize("people", [30, 60])
def test_intervals_of_a_population_cover_the_share_of_these_people_too(people):
    """Given where people are their answers are independent, and not alike: sums of two binomials."""

    table = noisy(2, 0.8)
    values, bounds = of_two_states(table)
    low, high = told(values, ways_of(people, 2), people, bounds)
    for inside in range(people + 1):
        one = binom.pmf(np.arange(inside + 1), inside, table[0, 0])
        chance = np.convolve(one, binom.pmf(np.arange(people - inside + 1), people - inside, table[1, 0]))
        assert chance @ ((low <= inside / people) & (inside / people <= high)) >= 0.9, inside


@pytest.mark.parametrize("people", [30, 100])
@pytest.mark.parametrize("moving", [0.0, 0.5, 1.0])
def test_intervals_cover_where_persons_have_two_answers(people, moving):
    """The term of a person is the mean of two answers; some persons are at one place, others at both."""
    table = noisy(2, 0.8)
    values, bounds = of_two_states(table)
    means = np.array([values[0], values.mean(), values[1]])
    (a, b), (c, d) = table
    here, there, both = (a * a, 2 * a * b, b * b), (c * c, 2 * c * d, d * d), (a * c, a * d + b * c, b * d)
    for share in SHARES:
        still = 1 - moving
        chances = moving * np.array(both) + still * (share * np.array(here) + (1 - share) * np.array(there))
        assert covered(chances, means, people, bounds, moving / 2 + still * share) >= 0.9, share


@pytest.mark.parametrize("people", [10, 40])
def test_intervals_over_rows_cover_by_enumeration(people):
    """Half of the persons have one row, the others three in one state: all ways in which all rows may be answered."""
    table = noisy(2, 0.8)
    values, bounds = of_two_states(table)
    half, rows = people // 2, 4 * (people // 2)
    few, many = ways_of(half, 2), np.array([way for way in product(range(half + 1), repeat=4) if sum(way) == half])
    of_few, of_many = values / 3, (values[0] * np.arange(4) + values[1] * (3 - np.arange(4))) / 3
    sums = [(few @ of_few**k)[:, None] + (many @ of_many**k)[None] for k in (1, 2)]
    mean, square = (one.ravel() / people for one in sums)
    terms = TermBounds(*(np.full(len(mean), bound) for bound in bounds))
    low, high = interval_of_rows(TermMoments(mean, square, square - 2 * mean + 1), people, terms, 3 * people / rows)
    for alone, together in product((0.0, 0.1, 0.5, 1.0), (0.0, 0.02, 0.3, 1.0)):
        one = multinomial.pmf(few, half, np.array([alone, 1 - alone]) @ table)
        ways = [
            sum(s * binom.pmf(k, 3, table[at, 0]) for at, s in ((0, together), (1, 1 - together))) for k in range(4)
        ]
        chance = np.outer(one, multinomial.pmf(many, half, np.array(ways) / sum(ways))).ravel()
        share = (alone + 3 * together) / 4
        assert chance.sum() == pytest.approx(1) and chance @ ((low <= share) & (share <= high)) >= 0.9


@pytest.mark.parametrize("people", [30, 100])
@pytest.mark.parametrize("stay", [0.5, 0.8])
def test_intervals_of_those_that_go_on_cover_by_enumeration(people, stay):
    """Two labels and END: all ways in which people may answer."""
    table = noisy(3, stay)
    counts, ways = linear_estimates(table, np.eye(3)), ways_of(people, 3)
    ends = []
    for region in (0, 2):
        values, squares = counts[:, region], table @ counts[:, region] ** 2
        mean, square = ways @ values / people, ways @ values**2 / people
        bounds = values.min(), values.max(), squares[region], np.delete(squares, region).max()
        terms = TermBounds(*(np.full(len(ways), bound) for bound in bounds))
        ends.append(interval(TermMoments(mean, square, square - 2 * mean + 1), people, terms, MISSES / 2))
    of_label, of_end = ends
    low, high = np.empty((2, len(ways)))
    for way, ended in enumerate(zip(*of_end, strict=True)):
        one = of_those_that_go_on((of_label[0][[way]], of_label[1][[way]]), ended)
        low[way], high[way] = one[0][0], one[1][0]
    for label, end in product((0.0, 0.05, 0.3, 0.6), (0.0, 0.1, 0.4)):
        chance = multinomial.pmf(ways, people, np.array([label, 1 - label - end, end]) @ table)
        share = label / (1 - end)
        assert chance @ ((low <= share) & (share <= high)) >= 0.9


def test_shares_of_outcomes_are_among_those_that_go_on_where_one_state_is_the_end():
    """By arithmetic, and intervals by enumeration, of thirty people."""
    table, ways = noisy(3, 0.8), ways_of(30, 3)
    made = [shares_of_outcomes(table, np.repeat(np.arange(3), way), end=2) for way in ways]
    for among, way in zip(made[::50], ways[::50], strict=True):
        of_all = shares_of_outcomes(table, np.repeat(np.arange(3), way))
        left = 1 - of_all.share[2]
        assert among.share == pytest.approx([*(of_all.share[:2] / left if left > 0 else [0, 0]), 1 - left])
    low, high = (np.array([getattr(among, side)[0] for among in made]) for side in ("low", "high"))
    for label, end in product((0.0, 0.05, 0.3, 0.6), (0.0, 0.1, 0.4)):
        chance = multinomial.pmf(ways, 30, np.array([label, 1 - label - end, end]) @ table)
        assert chance @ ((low <= label / (1 - end)) & (label / (1 - end) <= high)) >= 0.9


@pytest.mark.parametrize("regions", ["labels", "cells"])
def test_intervals_of_many_people_are_not_much_wider_than_normal_ones(regions, board):
    """Of 10,000 people: 1.5 to 1.6 times for labels; up to 1.8 for cells, where the noise of few states is large."""
    if regions == "labels":
        table, inside, most = staircase(20, 2), np.array([1.0, 0.0]), 1.6
        density = np.array([0.2, 0.8])
    else:
        space, model, policy = board(9)
        found = laws_of(dphmm.ReleaseSession(model, policy, space, epsilon=1).plan)
        table, inside, most = found.table[found.law_of], (np.arange(81) < 9) * 1.0, 1.8
        density = np.full(81, 1 / 81)
    counts = linear_estimates(table, inside[:, None])[:, 0]
    squares, chance = table @ counts**2, density @ table
    bounds = counts.min(), counts.max(), squares[inside > 0].max(), squares[inside == 0].max()
    mean, square = chance @ counts, chance @ counts**2
    seen = TermMoments(*(np.array([one]) for one in (mean, square, square - 2 * mean + 1)))
    low, high = interval(seen, 10_000, TermBounds(*(np.array([bound]) for bound in bounds)))
    error = np.sqrt((square - mean**2) / 10_000)
    least, largest = normal_interval(np.array([mean]), np.array([error]), 10_000)
    assert 1.4 <= (high - low)[0] / (largest - least)[0] <= most


def test_a_region_of_all_states_is_known_without_noise():
    seen = TermMoments(np.array([1.0]), np.array([1.0]), np.array([0.0]))
    low, high = interval(seen, 3, TermBounds(*(np.array([bound]) for bound in (1.0, 1.0, 1.0, 0.0))))
    assert low[0] == pytest.approx(1, abs=1e-7) and high[0] == 1


def test_normal_intervals_of_fewer_than_30_people_say_nothing():
    share, error = np.array([0.4]), np.array([0.01])
    assert normal_interval(share, error, 29) == (0, 1)
    low, high = normal_interval(share, error, 30)
    assert high - low == pytest.approx(2 * 2.302585 / 30)


def test_what_no_outcome_counts_for_is_refused():
    for counts in (np.zeros((0, 1)), np.array([[2.0]]), np.array([[-1.0]])):
        with pytest.raises(InvalidInput, match="counts_for"):
            shares(counts, np.array([-0.5]), np.array([1.5]))


def test_states_that_no_outcome_tells_apart_are_refused_apart_and_answered_together():
    table = np.array([[0.7, 0.3], [0.7, 0.3], [0.2, 0.8]])
    with pytest.raises(InvalidInput, match="region 0, which splits states"):
        linear_estimates(table, np.eye(3))
    found = linear_estimates(table, np.array([[1.0], [1.0], [0.0]]))
    assert table @ found == pytest.approx(np.array([[1.0], [1.0], [0.0]]))


def test_the_table_of_a_plan_is_its_law():
    """Rows add up to one, and no two differ by more than the promise."""
    space = dphmm.StateSpace.labels(["a", "b", "c"])
    model = dphmm.MarkovModel([0.4, 0.3, 0.3], np.full((3, 3), 1 / 3), space=space)
    plan = dphmm.ReleaseSession(model, dphmm.policy.complete(3), space, epsilon=1).plan
    outcomes = laws_of(plan)
    table = outcomes.table[outcomes.law_of][:, outcomes.numbers(plan.image)]
    assert table.sum(axis=1) == pytest.approx(1) and (table.argmax(axis=1) == np.arange(3)).all()
    assert np.log(table.max(axis=0) / table.min(axis=0)).max() == pytest.approx(1, abs=1e-6)
