"""Leakage and couplings of a chain that moves otherwise at other hours, against all outputs of all paths.

It would fail where one matrix stood for all steps, and where a step had the matrix of the hour it arrives at.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import dphmm
from dphmm.accounting import couplable, policy_leakage, temporal_leakage

HOUR, T = 3600, 3
FAST, SLOW = [[0.55, 0.45], [0.4, 0.6]], [[0.98, 0.02], [0.05, 0.95]]
SLOTS = dphmm.markov.Slots(period="3h", begins=(0, "1h"))


def model_of(first, second, start="at", initial=(0.7, 0.3)):
    return dphmm.MarkovModel(initial, [first, second], slots=SLOTS, step=HOUR, start=start)


def exact(initial, matrices, epsilon, states):
    """The largest log-ratio of all outputs of randomised response for two states at each step: every path written out.

    ``matrices``: of the moves from step 1 to 2, 2 to 3, and so on.
    """
    n, keep = len(initial), math.exp(epsilon) / (math.exp(epsilon) + len(initial) - 1)
    chances = {}
    for path in itertools.product(range(n), repeat=len(matrices) + 1):
        chance = initial[path[0]]
        for matrix, (a, b) in zip(matrices, itertools.pairwise(path), strict=True):
            chance *= matrix[a][b]
        chances[path] = chance
    worst = [0.0] * (len(matrices) + 1)
    for outputs in itertools.product(range(n), repeat=len(matrices) + 1):
        for t in range(len(worst)):
            likely = [0.0] * n
            mass = [0.0] * n
            for path, chance in chances.items():
                seen = math.prod(keep if x == z else (1 - keep) / (n - 1) for x, z in zip(path, outputs, strict=True))
                likely[path[t]] += chance * seen
                mass[path[t]] += chance
            ratios = [math.log(p / m) for p, m in zip(likely, mass, strict=True)]
            worst[t] = max([worst[t], *(abs(ratios[a] - ratios[b]) for a, b in states)])
    return worst


@pytest.mark.parametrize("origin", ["96", "97", "98"])
def test_leakage_with_a_matrix_for_each_step_is_that_of_all_outputs(origin):
    """Two states: the bound is nearly reached, by the matrices of the very hours that this person leaves."""
    model = model_of(FAST, SLOW).counted_from(origin)
    hours = [(int(origin) + t) % 3 for t in range(T - 1)]
    matrices = [FAST if hour == 0 else SLOW for hour in hours]
    found = temporal_leakage(model, [0.5] * T)
    due = exact([0.7, 0.3], matrices, 0.5, [(0, 1)])
    assert (found.total >= np.array(due) - 1e-9).all() and (found.total <= np.array(due) + 0.01).all()
    others = [FAST if hour != 0 else SLOW for hour in hours]
    assert np.abs(found.total - exact([0.7, 0.3], others, 0.5, [(0, 1)])).max() > 0.03


def test_without_an_origin_who_is_looked_at_begins_on_a_monday():
    """96 hours after 1970 began the first Monday did."""
    model = model_of(FAST, SLOW)
    counted = temporal_leakage(model.counted_from("96"), [0.5] * T)
    assert temporal_leakage(model, [0.5] * T).total.tolist() == counted.total.tolist()
    assert temporal_leakage(model.counted_from("97"), [0.5] * T).total.tolist() != counted.total.tolist()


def still(n):
    return np.eye(n) * 0.8 + 0.2 / n


#: Moves of the first row that nothing within one hop of the second row's matches.
APART = np.array([[0.9, 0.1, 0, 0], [0, 0, 0.1, 0.9], [0, 0, 0.1, 0.9], [0, 0, 0.1, 0.9]]) * 0.999 + 0.00025


def test_couplings_are_looked_at_in_every_slot_of_the_horizon():
    """A chain that couples at every hour but one couples for as many steps as it takes to come to that hour."""
    slots = dphmm.markov.Slots(period="1d", begins=(0, "5h"))
    line = [(0, 1), (1, 2), (2, 3)]
    model = dphmm.MarkovModel([0.25] * 4, [still(4), APART], slots=slots, step=HOUR, start="at")
    horizons = [couplable(model, np.array(line), steps).holds for steps in range(1, 9)]
    # Step 1 begins at midnight, step 6 at five, and what leaves it arrives at step 7.
    assert horizons == [True] * 6 + [False] * 2
    late = [couplable(model.counted_from("100"), np.array(line), steps).holds for steps in (1, 2, 3)]
    assert late == [True, True, False]
    assert couplable(model, np.array(line), 8).worst[0] in (6, 7)


def test_policy_leakage_passes_the_sum_of_epsilons_where_an_hour_does_not_couple():
    """Three steps at night lose the sum of their epsilons, at five in the morning more."""
    slots = dphmm.markov.Slots(period="1d", begins=(0, "5h"))
    space, policy = dphmm.StateSpace([0, 1, 2, 3]), dphmm.policy.from_edges([(0, 1), (1, 2), (2, 3)], 4)
    model = dphmm.MarkovModel([0.25] * 4, [still(4), APART], slots=slots, step=HOUR, start="at")
    plan = dphmm.ReleaseSession(model, policy, space, "0.5", origin="96", bits=dphmm.ReplayBits(1)).plan
    lost = [policy_leakage(model.counted_from(origin), [plan] * T, policy.edges()).worst for origin in ("96", "100")]
    assert lost[0] == pytest.approx(1.5) and lost[1] > 1.6
