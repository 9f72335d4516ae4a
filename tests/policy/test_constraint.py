"""Constraints: δ-sets, surrogate maps and what may not be one."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_policy as naive
from dphmm.errors import InvalidInput
from dphmm.policy import Constraint, DeltaSet, Support, delta_states, parse_constraint
from dphmm.states.space import StateSpace

PRIOR = [0.3, 0.4, 0.05, 0.2, 0.03, 0.02]


@pytest.mark.parametrize(
    ("delta", "expected"),
    [
        (0.1, [0, 1, 3]),
        (0.05, [0, 1, 2, 3]),
        ("0.1", [0, 1, 3]),
        (Fraction(1, 10), [0, 1, 3]),
        (0, [*range(6)]),
    ],
)
def test_the_papers_delta_sets(delta, expected):
    assert 0.4 + 0.3 + 0.2 < 1 - 0.1  # the float trap of theory (g)
    assert np.flatnonzero(delta_states(PRIOR, None, delta)).tolist() == expected


def test_delta_set_stays_inside_the_support():
    prior = np.array(PRIOR)
    assert np.flatnonzero(delta_states(prior, [0, 2, 3], 0.05)).tolist() == [0, 2, 3]
    assert np.flatnonzero(delta_states(prior, [0, 2, 3], 0.1)).tolist() == [0, 3]
    # Possible states of zero float probability still count as support (underflow is not exclusion).
    assert np.flatnonzero(delta_states([0.0, 1.0, 0.0], None, 0)).tolist() == [0, 1, 2]
    assert np.flatnonzero(delta_states([0.0, 1.0, 0.0], None, 0.5)).tolist() == [1]


def test_ties_go_to_the_lowest_number():
    assert np.flatnonzero(delta_states([0.25] * 4, None, 0.5)).tolist() == [0, 1]
    nearly = np.array([0.25, 0.25, 0.25, 0.25]) * (1 + np.array([0, 3, 2, 4]) * 2.0**-52)
    assert np.flatnonzero(delta_states(nearly, None, 0.5)).tolist() == [0, 1]
    assert np.flatnonzero(delta_states([0.2, 0.3, 0.2, 0.3], None, 0.3)).tolist() == [0, 1, 3]


def test_tiny_probabilities_keep_their_order():
    prior = np.r_[1e-14, 3e-14, 2e-14]
    assert np.flatnonzero(delta_states(prior / prior.sum(), None, 0.4)).tolist() == [1, 2]


@given(st.lists(st.integers(0, 20), min_size=1, max_size=7).filter(any), st.integers(0, 19))
def test_delta_states_are_the_fewest(weights, percent):
    delta = Fraction(percent, 20)
    total = sum(weights)
    prior = np.array(weights) / total
    chosen = set(np.flatnonzero(delta_states(prior, None, delta)).tolist())
    if delta == 0:
        assert chosen == set(range(len(weights)))
        return
    for size in range(1, len(weights) + 1):
        enough = [
            subset
            for subset in itertools.combinations(range(len(weights)), size)
            if Fraction(sum(weights[s] for s in subset), total) >= 1 - delta
        ]
        if enough:
            heaviest = max(sum(weights[s] for s in subset) for subset in enough)
            best = min(subset for subset in enough if sum(weights[s] for s in subset) == heaviest)
            assert chosen == set(best)
            return


def test_mass_is_compared_with_tolerance():
    assert delta_states([0.9 - 5e-13, 0.1 + 5e-13], None, 0.1).tolist() == [True, False]
    assert delta_states([0.9 - 5e-12, 0.1 + 5e-12], None, 0.1).all()


def test_many_states_are_summed_without_drift():
    # Running sums of a million equal numbers: 6e-12 too small in the middle, 8e-12 too large at the end.
    n = 1_000_000
    for delta, count in ((0.5, n // 2), (0.000002, n - 2)):
        chosen = delta_states(np.full(n, 1 / n), None, delta)
        assert chosen.sum() == count
        assert chosen[:count].all()


@pytest.mark.parametrize("delta", [1, -0.1, 1.5, float("nan"), float("inf"), True, "one", None])
def test_delta_is_below_one(delta):
    with pytest.raises(InvalidInput, match="delta"):
        delta_states(PRIOR, None, delta)
    with pytest.raises(InvalidInput, match="delta"):
        DeltaSet(delta)


@pytest.mark.parametrize("prior", [[0.5, float("nan")], [1.0, -0.1], [0.0, 0.0], [[1.0]], [1.0, float("inf")]])
def test_prior_is_a_distribution(prior):
    with pytest.raises(InvalidInput, match="prior"):
        delta_states(prior, None, 0.1)


def test_parse_constraint():
    assert parse_constraint("support") == Support() == parse_constraint(Support())
    assert parse_constraint("delta=0.01") == DeltaSet(0.01) == parse_constraint(DeltaSet("0.01"))
    assert parse_constraint("delta = 1e-3").delta == 0.001
    assert str(DeltaSet(0.01)) == "delta=0.01"
    assert parse_constraint(str(DeltaSet(0.3))) == DeltaSet(0.3)
    assert str(Support()) == "support"
    assert json.dumps(DeltaSet(0.01).delta) == "0.01"


@pytest.mark.parametrize("value", ["", "delta", "delta=", "delta=2", "delta=x", "Support", 0.01, None, "d=0.1"])
def test_parse_constraint_refuses(value):
    with pytest.raises(InvalidInput):
        parse_constraint(value)


def test_of_masks_numbers_and_none():
    every = Constraint.of(None, 3)
    assert every.plan.all() and not every.contracted and every.n_states == 3
    some = Constraint.of([2, 0], 3)
    assert some.support.tolist() == [True, False, True]
    assert some.surrogate.tolist() == [0, -1, 2]
    assert some.plan_states.tolist() == [0, 2]
    assert some.plan_states.dtype == np.int64
    assert Constraint.of(some, 3) is some
    assert Constraint.of(np.array([True, False, True]), 3).digest == some.digest != every.digest
    with pytest.raises(InvalidInput, match="one on 4 states"):
        Constraint.of(some, 4)


def test_constraints_cannot_change():
    mask = np.array([True, True])
    constraint = Constraint.of(mask, 2)
    mask[0] = False
    assert constraint.support.all()
    for array in (constraint.support, constraint.plan, constraint.surrogate):
        with pytest.raises(ValueError):
            array[0] = 0


def bools(*values):
    return np.array(values, dtype=bool)


@pytest.mark.parametrize(
    ("support", "plan", "surrogate", "field"),
    [
        (bools(1, 1), bools(1, 0), np.array([0, -1]), "surrogate"),
        (bools(1, 1), bools(1, 0), np.array([0, 1]), "surrogate"),
        (bools(1, 1), bools(1, 1), np.array([1, 0]), "surrogate"),
        (bools(1, 1), bools(1, 1), np.array([0, 2]), "surrogate"),
        (bools(1, 0), bools(1, 1), np.array([0, 1]), "plan"),
        (bools(1, 0), bools(1, 0), np.array([0, 1]), "surrogate"),
        (bools(1, 0), bools(1, 0), np.array([0, -2]), "surrogate"),
        (bools(1, 0), bools(1, 0), np.array([0, 2]), "surrogate"),
        (bools(1, 0), bools(1), np.array([0, -1]), "plan"),
        (bools(1, 0), np.array([1, 0]), np.array([0, -1]), "plan"),
        (bools(1, 0), bools(1, 0), np.array([0.0, -1.0]), "surrogate"),
    ],
)
def test_parts_must_fit(support, plan, surrogate, field):
    with pytest.raises(InvalidInput, match=field):
        Constraint(support, plan, surrogate)


def test_digest_sees_every_part():
    states = np.arange(3)
    base = Constraint(bools(1, 1, 1), bools(1, 1, 0), np.array([0, 1, 1]))
    others = [
        Constraint(bools(1, 1, 1), bools(1, 1, 0), np.array([0, 1, 0])),
        Constraint(bools(1, 1, 0), bools(1, 1, 0), np.array([0, 1, 1])),
        Constraint(bools(1, 1, 1), bools(1, 1, 1), states),
        Constraint.of(None, 4),
    ]
    assert len({c.digest for c in [base, *others]}) == 5
    assert Constraint(bools(1, 1, 1), bools(1, 1, 0), np.array([0, 1, 1])).digest == base.digest


def test_the_location_set_example(answers):
    # Theory (g): δ = .1, plan set {1, 2, 4}, g(3) = g(5) = g(6) = 2 in the paper's numbers.
    plan = delta_states(PRIOR, None, 0.1)
    constraint = Constraint.surrogated(None, plan, StateSpace(answers))
    assert constraint.surrogate.tolist() == [0, 1, 1, 3, 1, 1]
    assert constraint.contracted


def test_surrogates_reach_outside_the_support(answers):
    constraint = Constraint.surrogated([0, 1], [1], StateSpace(answers))
    assert constraint.surrogate.tolist() == [1] * 6


def test_surrogated_refuses(answers):
    space = StateSpace(answers)
    with pytest.raises(InvalidInput, match="at least one state"):
        Constraint.surrogated(None, [], space)
    with pytest.raises(InvalidInput, match="subset of the support"):
        Constraint.surrogated([0, 1], [2], space)


#: Settings that force each of the ways to find a nearest state.
WAYS = {
    "as chosen": {},
    "sweep": {"BOX": 0, "BOX_PER_STATE": 0},
    "tree": {"BOX": 0, "BOX_PER_STATE": 0, "SWEEP": 0},
    "tree of three": {"BOX": 0, "BOX_PER_STATE": 0, "SWEEP": 0, "_SHORTLIST": 3, "_CHUNK": 4},
}


@pytest.mark.parametrize("way", WAYS)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=50)
def test_nearest_by_brute_force(way, seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 20)), int(rng.integers(1, 4))
    # 1e-17 and 3e9 make integer weights that do not fit 64 bits.
    pitch = rng.choice([1.0, 0.1, 0.3, 2.5, 1 / 3, 1e-17, 3e9], d)
    lattice = rng.integers(-3, 4, (n, d)) + (0 if rng.random() < 0.7 else 2**50)
    plan = rng.random(n) < 0.5
    plan[int(rng.integers(n))] = True
    from dphmm.policy import constraint

    with pytest.MonkeyPatch.context() as patch:
        for name, value in WAYS[way].items():
            patch.setattr(constraint, name, value)
        exact = tuple(Fraction(repr(float(p))) for p in pitch)
        found = constraint.Surrogates.of(lattice, exact).nearest(np.flatnonzero(plan))
    assert found.tolist() == naive.nearest(lattice, exact, plan).tolist()


@given(seed=st.integers(0, 2**32 - 1))
def test_nearest_in_a_crowded_plane(seed):
    """Many states in a small box, so that parabolas touch, cross and tie in every way; uneven units too."""
    from dphmm.policy import constraint

    rng = np.random.default_rng(seed)
    n, sides = int(rng.integers(1, 150)), rng.integers(1, 14, 2)
    lattice = np.stack([rng.integers(0, side, n) for side in sides], axis=1)
    if rng.random() < 0.4:
        # A whole box, row by row: the states are its places in turn.
        lattice = np.argwhere(np.ones(sides[::-1]))[:, ::-1]
        n = len(lattice)
    plan = rng.random(n) < rng.choice([0.05, 0.3, 0.7])
    plan[int(rng.integers(n))] = True
    exact = tuple(Fraction(int(p)) for p in rng.choice([1, 2, 3, 5], 2))
    found = constraint.Surrogates.of(lattice, exact).nearest(np.flatnonzero(plan))
    assert found.tolist() == naive.nearest(lattice, exact, plan).tolist()


def test_near_ties_are_decided_exactly():
    # 10**8 + 1 against 10**8 steps, and an exact tie between states 1 and 3 at 5 = |(3, 4)|.
    far = StateSpace(np.array([(0, 0), (10**8 + 1, 0), (-(10**8), 0)]))
    assert Constraint.surrogated(None, [1, 2], far).surrogate[0] == 2
    tie = StateSpace(np.array([(0, 0), (3, 4), (5, 1), (5, 0)]))
    assert Constraint.surrogated(None, [1, 2, 3], tie).surrogate[0] == 1


@pytest.mark.parametrize("way", WAYS)
def test_many_ties_go_to_the_lowest_number(way, monkeypatch):
    from dphmm.policy import constraint

    for name, value in WAYS[way].items():
        monkeypatch.setattr(constraint, name, value)
    ring = np.array([p for p in np.ndindex(11, 11) if (p[0] - 5) ** 2 + (p[1] - 5) ** 2 == 25])
    assert len(ring) == 12
    for seed in range(12):
        order = np.random.default_rng(seed).permutation(12)
        space = StateSpace(np.vstack([[(20, 5)], ring[order], [(5, 5)]]))
        constraint = Constraint.surrogated(None, np.arange(13), space)
        assert constraint.surrogate[13] == 1


def test_twins_stay_themselves():
    space = StateSpace(np.array([(0, 0), (0, 0), (5, 5)]))
    assert Constraint.surrogated(None, [0, 1], space).surrogate.tolist() == [0, 1, 0]


def test_a_full_plan_set_is_its_own_surrogate(answers):
    constraint = Constraint.surrogated(None, None, StateSpace(answers))
    assert not constraint.contracted
    assert constraint.surrogate.tolist() == [*range(6)]


def test_nothing_private_is_shown():
    text = repr(Constraint.of([4], 9))
    assert text == "Constraint(1 plan states in 1 of 9)"
