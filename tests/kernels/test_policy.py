"""The loops over graphs give what sets and dictionaries give.

It could fail for a row that is empty, members that end a row where the next begins, a surrogate that maps two members
of a clique to one, components that meet late, and a cap that an edge passes at one end alone.
"""

from __future__ import annotations

import numpy as np
import pytest

from dphmm._kernels import policy


def packed(groups):
    """Rows of members as compressed rows."""
    ptr = np.concatenate([[0], np.cumsum([len(row) for row in groups])]).astype(np.int64)
    return ptr, np.array([member for row in groups for member in row], dtype=np.int64)


def cliques(rng, n, rows):
    """Ascending members of some rows, each of them at least one."""
    return [sorted(rng.choice(n, rng.integers(1, n), replace=False).tolist()) for _ in range(rows)]


@pytest.mark.parametrize("seed", range(20))
def test_plan_states_and_others_are_those_of_the_masks(seed):
    rng = np.random.default_rng(seed)
    support, plan = rng.random(9) < 0.6, rng.random(9) < 0.5
    states, others, impossible = policy.planned(support, plan)
    assert states.tolist() == np.flatnonzero(plan).tolist()
    assert others == bool((support & ~plan).any())
    assert impossible == next((state for state in range(9) if plan[state] and not support[state]), -1)


@pytest.mark.parametrize(
    ("surrogate", "said"),
    [([0, 0, 2, 2], ""), ([0, -1, 2, 2], "missing"), ([0, 3, 2, 2], "outside"), ([2, 0, 2, 2], "moved"),
     ([0, 0, 2, -1], ""), ([0, 0, 2, 4], "missing"), ([0, 0, 2, -2], "missing")],
)  # fmt: skip
def test_a_surrogate_map_fits_or_the_fault_is_named(surrogate, said):
    support, plan = np.array([True, True, True, False]), np.array([True, False, True, False])
    assert policy.misplaced(support, plan, np.array(surrogate)) == said


@pytest.mark.parametrize("seed", range(20))
def test_rows_are_asked_as_sets_are(seed):
    rng = np.random.default_rng(seed)
    n, groups = 10, cliques(rng, 10, 4)
    ptr, members = packed(groups)
    states = rng.permutation(n)[:6]
    together = {state for row in groups for state in row}
    assert policy.outside_rows(states, members, n).tolist() == [s for s in states.tolist() if s not in together]
    rows_of = [[k for k, row in enumerate(groups) if state in row] for state in range(n)]
    a, b = rng.integers(0, n, 15), rng.integers(0, n, 15)
    shared = [bool(set(rows_of[i]) & set(rows_of[j])) for i, j in zip(a, b, strict=True)]
    assert policy.in_one_row(*packed(rows_of), a, b).tolist() == shared
    values = rng.integers(-9, 10, n)
    high, low = policy.widest_row(ptr, members, values)
    assert values[high] - values[low] == max(np.ptp(values[row]) for row in groups)
    assert any({high, low} <= set(row) for row in groups)


@pytest.mark.parametrize("seed", range(40))
def test_contracted_cliques_are_the_surrogates_of_possible_members(seed):
    rng = np.random.default_rng(seed)
    n, groups = 12, cliques(rng, 12, 5)
    groups += [groups[-1]]
    support, surrogate = rng.random(n) < 0.7, rng.integers(0, 5, n)
    run_ptr, first, last = policy.runs_of_rows(*packed(groups))
    unrolled = [
        [state for k in range(run_ptr[row], run_ptr[row + 1]) for state in range(first[k], last[k] + 1)]
        for row in range(len(groups))
    ]
    assert unrolled == groups
    longest = sum(map(len, groups))
    ptr, members = policy.contract_cliques(run_ptr, first, last, longest, support, surrogate)
    found = [members[ptr[k] : ptr[k + 1]].tolist() for k in range(len(ptr) - 1)]
    expected = []
    for row in groups:
        images = list(dict.fromkeys(surrogate[state] for state in row if support[state]))
        if len(images) >= 2 and (not expected or images != expected[-1]):
            expected.append(images)
    assert found == expected


@pytest.mark.parametrize("seed", range(30))
def test_components_are_those_of_a_plain_search(seed):
    rng = np.random.default_rng(seed)
    n = 14
    a, b = rng.integers(0, n, 6), rng.integers(0, n, 6)
    groups = [rng.choice(n, 2, replace=False).tolist() for _ in range(2)]
    plan = rng.random(n) < 0.8
    parent = np.arange(n)
    policy.join_pairs(parent, a, b)
    policy.join_rows(parent, *packed(groups))
    label = list(range(n))
    for i, j in [*zip(a.tolist(), b.tolist(), strict=True), *groups]:
        label = [label[i] if one == label[j] else one for one in label]
    seen = list(dict.fromkeys(label[state] for state in range(n) if plan[state]))
    expected = [seen.index(label[state]) if plan[state] else -1 for state in range(n)]
    assert policy.number_components(parent, plan).tolist() == expected


@pytest.mark.parametrize("cap", [1, 2, 5])
def test_an_edge_counts_while_both_ends_have_room(cap):
    rng = np.random.default_rng(cap)
    n, first, second = 6, rng.integers(0, 6, 20), rng.integers(0, 6, 20)
    second = np.where(second == first, (second + 1) % n, second)
    order, degrees = rng.permutation(20), np.full(n, 99)
    policy.capped_degrees(first, second, order, n, cap, degrees)
    expected = [0] * n
    for at in order:
        if expected[first[at]] < cap and expected[second[at]] < cap:
            expected[first[at]] += 1
            expected[second[at]] += 1
    assert degrees.tolist() == expected
