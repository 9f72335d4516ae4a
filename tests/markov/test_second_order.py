"""Chains of second order: their pairs, counts and laws, against plain loops and the chain they came from."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dphmm
import naive_secrets
from dphmm.errors import InvalidInput
from dphmm.session.setting import Setting

N = 4


def base_of(seed, start="before", jump=None):
    random = np.random.default_rng(seed)
    matrix = random.random((N, N)) * (random.random((N, N)) < 0.5)
    matrix[np.arange(N), random.permutation(N)] += 0.2
    initial = random.dirichlet(np.ones(N))
    return dphmm.MarkovModel(initial, matrix / matrix.sum(axis=1, keepdims=True), start=start, jump=jump)


def sequences(seed):
    random = np.random.default_rng(seed)
    return [random.integers(N, size=length).tolist() for length in (1, 2, 3, 9, 1, 12, 2, 30)]


def rows_of(base):
    matrix = base.matrix.toarray()
    return {b: {c: float(p) for c, p in enumerate(row) if p > 0} for b, row in enumerate(matrix)}


@pytest.mark.parametrize("seed", range(5))
def test_moves_are_counted_as_plain_loops_count_them(seed):
    base, given, moves = base_of(seed), sequences(seed), {}
    for one in given:
        for a, b, c in zip(one, one[1:], one[2:], strict=False):
            counted = moves.setdefault((a, b), {})
            counted[c] = counted.get(c, 0) + 1
    rows = rows_of(base)
    weights = {
        pair: {c: count / 3 for c, count in counted.items() if c in rows[pair[1]]} for pair, counted in moves.items()
    }
    model = dphmm.MarkovModel.second_order(base, given, weight=3)
    pairs, matrix = naive_secrets.second_order(weights, {(a, b) for a in rows for b in rows[a]}, rows)
    assert model.secrets.tolist() == [b for _, b in pairs]
    assert np.allclose(model.matrix.toarray(), matrix, rtol=1e-13, atol=0)
    told = model.provenance["counts"]
    kept = sum(
        c in rows[b] and b in rows[a] for (a, b), counted in moves.items() for c in counted for _ in range(counted[c])
    )
    assert told["pairs_of_moves"] - told["not_of_the_base"] == kept


@pytest.mark.parametrize("jump", [None, 0.1])
@pytest.mark.parametrize("start", ["before", "at"])
@pytest.mark.parametrize("seed", range(4))
def test_without_counts_it_moves_as_its_base(seed, start, jump):
    """The same supports and beliefs about places at every step, whatever was answered."""
    base = base_of(seed, start, jump)
    model = dphmm.MarkovModel.second_order(base)
    assert model.start == "at" and model.n_secrets == N and model.provenance["order"] == 2
    space, policy = dphmm.StateSpace(np.arange(N)[:, None]), dphmm.policy.complete(N)
    settings = [Setting.of(one, policy, space, 1) for one in (base, model)]
    positions = [setting.first() for setting in settings]
    for z in (0, 3, 1, 2):
        one, other = (position.prior for position in positions)
        assert np.array_equal(one.support, other.support)
        assert np.allclose(one.probability, other.probability, rtol=1e-12, atol=1e-15)
        for k, (setting, position) in enumerate(zip(settings, positions, strict=True)):
            plan = setting.plan(position)
            z = int(plan.lattice[plan.lowest_state, 0]) if plan.constant else z
            positions[k] = position.predict(setting.model, position.condition(plan, np.array([z])))


@pytest.mark.slow
@pytest.mark.parametrize("constraint", ["support", "delta=0.1"])
def test_a_table_and_a_plan_of_it_are_those_of_its_base(constraint):
    """The same words give the same answers, whose smoothed places agree; and nearly the errors of other people."""
    space = dphmm.StateSpace(np.arange(N)[:, None])
    base = dphmm.MarkovModel(np.full(N, 1 / N), base_of(3).matrix.toarray(), space=space, jump=0.05)
    model, policy = dphmm.MarkovModel.second_order(base), dphmm.policy.radius(space, 1)
    rows = [(user, step, str((3 * step + ord(user)) % N)) for user in "abc" for step in range(1, 9)]
    table = pd.DataFrame(rows, columns=["user", "step", "state"])
    given = policy, space, 2
    released, errors = [], []
    for one in (base, model):
        made = dphmm.release_many(table, one, *given, constraint=constraint, bits=dphmm.ReplayBits(1), progress=False)
        released.append(
            (made["z_0"], dphmm.reconstruction.smooth(made, one, *given, constraint=constraint)["smoothed_0"])
        )
        promise = dphmm.SequencePromise(4, steps=8)
        for schedule in ("planned", "paced"):
            plan = dphmm.choose.plan(
                one, policy, space, promise=promise, schedule=schedule, constraint=constraint, people=50
            )
            errors.append((plan.without, plan.expected_error))
    assert (released[0][0] == released[1][0]).all()
    assert np.allclose(released[0][1], released[1][1], rtol=1e-9)
    for one, other in zip(errors[:2], errors[2:], strict=True):
        assert other[0] == pytest.approx(one[0], rel=1e-9)
        assert other[1] == pytest.approx(one[1], rel=0.15)


def test_a_place_that_nothing_leads_to_has_a_pair_with_itself():
    base = dphmm.MarkovModel([0.5, 0.25, 0.25], [[0, 1, 0], [0, 0.5, 0.5], [0, 1, 0]], start="at")
    model = dphmm.MarkovModel.second_order(base)
    assert model.secrets.tolist() == [0, 1, 1, 2, 1]
    assert np.allclose(np.bincount(model.secrets, weights=model.initial), base.initial, rtol=1e-15)
    assert model.matrix.toarray()[0].tolist() == [0, 1, 0, 0, 0]


def test_somebody_who_goes_on_is_expected_to_go_on():
    """People who walk up and down a line: after counting them the next place follows the direction."""
    n = 5
    walk = np.array([[0.5 if a == b else 0.25 if abs(a - b) == 1 else 0 for b in range(n)] for a in range(n)])
    base = dphmm.MarkovModel(np.full(n, 1 / n), walk / walk.sum(axis=1, keepdims=True))
    up, down = list(range(n)), list(range(n))[::-1]
    model = dphmm.MarkovModel.second_order(base, [up + down[1:] + up[1:]] * 20)
    row = model.matrix.toarray()[[*map(tuple, np.argwhere(base.matrix.toarray() > 0).tolist())].index((1, 2))]
    assert row.argmax() == [*map(tuple, np.argwhere(base.matrix.toarray() > 0).tolist())].index((2, 3))
    assert model.provenance["private"] is False and "not private" not in repr(model)
    assert any("fitted without privacy" in note for note in model.notes)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"base": "no model"}, "base: got str"),
        ({"weight": 0}, "weight: got 0"),
        ({"sequences": [[0, 9]]}, r"sequences\[0\]\[1\]: got a number above 3"),
        ({"max_length": 4}, "max_length: got a choice of a private fit"),
        ({"owners": [1]}, "max_length: got a choice of a private fit|owners: got a choice of a private fit"),
    ],
)
def test_what_cannot_be_a_chain_of_second_order_is_refused(given, told):
    with pytest.raises(InvalidInput, match=told):
        dphmm.MarkovModel.second_order(**{"base": base_of(1), **given})


def test_a_base_with_secrets_is_refused():
    model = dphmm.MarkovModel.second_order(base_of(1))
    with pytest.raises(InvalidInput, match="a base of second order does not tell the two apart yet"):
        dphmm.MarkovModel.second_order(model)
