"""Blocks against the planner, row by row and table by table: the same plans, words, answers and beliefs, bit for bit.

It could fail where a kernel decides what only exact sums can decide, where words are read in another order, where two
beliefs with one plan are taken for each other, where a law of one hull is drawn for another, and where rows that floats
do not serve are not left to the planner.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, nullcontext
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dphmm
from crafted_bits import CraftedBits
from dphmm.errors import DphmmError, InvalidInput
from dphmm.markov.filtering import Belief
from dphmm.samplers.body import LatticeSampler
from dphmm.session import block as module
from dphmm.session.answer import answer
from dphmm.session.block import Blocked, BlockPlan, Blocks
from dphmm.session.plan import Position
from dphmm.session.setting import Setting
from dphmm.session.stepwise import walk
from session.block_worlds import World, counted_plans, released, without_blocks

SEEDS = st.integers(0, 2**32 - 1)


def twice(world, bits, **extra):
    """A release with blocks and one without."""
    with_blocks = released(world, bits(), **extra)
    with without_blocks():
        with_blocks.same(released(world, bits(), **extra))
    return with_blocks


@given(SEEDS)
@settings(max_examples=40)
def test_a_table_is_the_same_with_blocks_and_without(seed):
    twice(World.numbered(seed), lambda: dphmm.ReplayBits(seed))


@given(SEEDS)
@settings(max_examples=25)
def test_a_table_of_a_chain_of_second_order_is_the_same_with_blocks_and_without(seed):
    """Its plan sets are of secrets, and its beliefs of latent pairs."""
    world = World.numbered(seed)
    walks = np.random.default_rng(seed).integers(world.space.n_states, size=(3, 40))
    world.model = dphmm.MarkovModel.second_order(world.model, walks, weight=0.5)
    twice(world, lambda: dphmm.ReplayBits(seed))


def test_blocks_decide_most_rows_of_these_worlds_and_leave_some():
    with counted_plans() as counts:
        for seed in range(30):
            released(World.numbered(seed), dphmm.ReplayBits(seed))
    assert counts["decided"] > 150
    assert counts["left"] > 20


@given(SEEDS)
@settings(max_examples=15)
def test_words_that_leave_a_decision_open_are_read_in_the_same_order(seed):
    """Words at both ends of the interval leave the level, a coordinate or the last acceptance open."""
    ends = [[2**64 - 1], [0], [2**64 - 1] * 4, [0, 2**64 - 1, 0, 2**64 - 1]]
    twice(World.numbered(seed), lambda: CraftedBits(seed, ends))


def priors_of(world, rng, n=12):
    """Beliefs of every kind: spread, near one state, with equal masses, with impossible states."""
    states, found = world.model.n_states, []
    for _ in range(n):
        masses = rng.random(states) ** float(rng.choice([1, 8, 40])) + 1e-12
        if rng.random() < 0.3:
            masses = np.ceil(masses * 4)
        support = rng.random(states) < rng.choice([0.6, 1.0])
        support[int(rng.integers(states))] = True
        masses[~support] = 0.0
        found.append(Belief.of_row(masses / masses.sum(), support))
    return found


@given(SEEDS)
@settings(max_examples=30)
def test_rows_are_the_planner_s_plans_and_laws_its_samplers(seed):
    world = World.numbered(seed)
    planner = world.planner()
    blocks = Blocks.of(planner)
    priors = priors_of(world, np.random.default_rng(seed))
    block = blocks.plan(blocks.constrain(priors))
    for row, prior in enumerate(priors):
        plan = block.plans[row]
        if plan is None:
            continue
        made = planned_alone(world, prior)
        assert plan.record == made.record
        assert (plan.hash, plan.cost, plan.mechanism_name) == (made.hash, made.cost, made.mechanism_name)
        assert (plan.promised, plan.constant, plan.inputs) == (made.promised, made.constant, made.inputs)
        assert np.array_equal(block.planned.plan[row], made.constraint.plan)
        assert np.array_equal(block.planned.surrogate[row], made.constraint.surrogate)
        assert block.planned.lowest[row] == made.lowest_state
        check_law(block, row, made.mechanism)


def planned_alone(world, prior):
    options = world.setting.options
    return world.planner().plan(prior.support, Position(1, prior).constrain(options.constraint))


def check_law(block, row, mechanism):
    """The numbers that rows are drawn with are those of the mechanism's own sampler."""
    laws, law, own = block.laws, block.numbers[row], mechanism._sampler._compiled
    assert isinstance(mechanism._sampler, LatticeSampler)
    levels, facets = laws.levels[law], laws.sizes[law]
    assert np.array_equal(laws.low[law, :levels], own.low)
    assert np.array_equal(laws.high[law, :levels], own.high)
    assert np.array_equal(laws.half_widths[law, :levels], own.half_widths)
    assert np.array_equal(laws.normals[law, :facets], own.normals)
    assert np.array_equal(laws.offsets[law, :facets], own.offsets)
    assert np.array_equal(laws.allowances[law, :facets], own.allowances)
    assert np.array_equal(laws.embedding[law], own.embedding)


def masses(world, weights):
    """A belief with these weights on some states and hardly any on all others."""
    row = np.full(world.model.n_states, 1e-9)
    for state, weight in weights.items():
        row[state] = weight
    return Belief.of_row(row / row.sum(), np.ones(len(row), dtype=np.bool_))


def grid(width, height, radius=1.5, **options):
    """A full grid in the order of its cells; state x·height + y is at (x, y)."""
    points = np.stack(np.divmod(np.arange(width * height), height), axis=1)
    space = dphmm.StateSpace(points)
    n = len(points)
    model = dphmm.MarkovModel(np.full(n, 1 / n), np.full((n, n), 1 / n))
    chosen = {"constraint": "delta=0.05"} | options
    return World(model, space, dphmm.policy.radius(space, radius), "1", chosen, None)


def test_what_a_block_cannot_decide_is_left_to_the_planner():
    world = grid(6, 6)
    blocks = Blocks.of(world.planner())
    decided = masses(world, {0: 1, 1: 1, 6: 1})
    far_apart = masses(world, {0: 1, 1: 1, 35: 1})
    # All others are nearest to one of the two ends of a line.
    on_a_line = masses(world, {0: 1, 1: 1})
    alone = masses(world, {14: 1})
    everywhere = Belief.of_row(np.full(36, 1 / 36), np.ones(36, dtype=np.bool_))
    # Three states hold what is enough up to a rounding: only exact sums can tell.
    near_the_cut = np.full(36, (0.05 + 1e-12) / 33)
    near_the_cut[[0, 1, 6]] = 0.4, 0.3, 0.25 - 1e-12
    on_the_cut = Belief.of_row(near_the_cut, np.ones(36, dtype=np.bool_))
    only_planned = Belief.of_row(np.where(np.arange(36) < 3, 1 / 3, 0.0), np.arange(36) < 3)
    rows = [decided, far_apart, everywhere, on_a_line, alone, on_the_cut, only_planned]
    block = blocks.plan(blocks.constrain(rows))
    assert [plan is None for plan in block.plans] == [False, False, False, True, True, True, True]
    for plan, prior in zip(block.plans, rows, strict=True):
        if plan is not None:
            assert plan.record == planned_alone(world, prior).record


def test_a_state_that_nothing_hides_is_left_to_the_planner():
    points = np.stack(np.divmod(np.arange(30), 3), axis=1)
    # The last column is far from all others.
    points = points[(points[:, 0] < 3) | (points[:, 0] == 9)]
    space = dphmm.StateSpace(points)
    n = len(points)
    model = dphmm.MarkovModel(np.full(n, 1 / n), np.full((n, n), 1 / n))
    world = World(model, space, dphmm.policy.radius(space, 1), "1", {"constraint": "delta=0.05"}, None)
    # Of the last column one state is planned and stands for the others: no neighbour has another surrogate.
    alone = masses(world, {0: 1, 1: 1, 3: 1, n - 2: 1})
    assert len(planned_alone(world, alone).partners) or len(planned_alone(world, alone).merged)
    assert Blocks.of(world.planner()).plan(Blocks.of(world.planner()).constrain([alone, alone])).plans == [None, None]


@pytest.mark.parametrize(
    ("name", "value"), [("MOST_FACETS", 1), ("MOST_LEVELS", 4), ("MOST_POINTS", 8), ("MOST_FRACTIONS", 2)]
)
def test_hulls_and_laws_that_are_too_large_are_left_to_the_planner(monkeypatch, name, value):
    monkeypatch.setattr(module, name, value)
    world = World.numbered(5, mechanism="auto")
    with counted_plans() as counts:
        twice(world, lambda: dphmm.ReplayBits(5))
    assert counts["decided"] == 0 < counts["left"]


def test_wide_hulls_are_the_planner_s():
    """Sums over too many points; the planner takes the continuous law instead."""
    points = np.stack(np.divmod(np.arange(36), 6), axis=1) * 40
    space = dphmm.StateSpace(points, pitch=[1.0, 1.0])
    model = dphmm.MarkovModel(np.full(36, 1 / 36), np.full((36, 36), 1 / 36))
    wide = World(model, space, dphmm.policy.radius(space, 40), "1", {"constraint": "delta=0.05"}, None)
    prior = masses(wide, {0: 1, 1: 1, 6: 1})
    assert Blocks.of(wide.planner()).plan(Blocks.of(wide.planner()).constrain([prior, prior])).plans == [None, None]


CUBE = dphmm.StateSpace(np.stack(np.unravel_index(np.arange(27), (3, 3, 3)), axis=1))
OTHERS = {
    "three dimensions": lambda w: (CUBE, dphmm.policy.radius(CUBE, 1), {}),
    "edges": lambda w: (w.space, dphmm.policy.from_edges([(0, 1), (1, 2)], 36), {}),
    "union": lambda w: (w.space, w.policy.union(dphmm.policy.from_edges([(0, 35)], 36)), {}),
    "complete": lambda w: (w.space, dphmm.policy.complete(36), {}),
    "laplace": lambda w: (w.space, w.policy, {"mechanism": "discrete-laplace"}),
    "support": lambda w: (w.space, w.policy, {"constraint": "support"}),
    "no delta": lambda w: (w.space, w.policy, {"constraint": "delta=0"}),
}


@pytest.mark.parametrize("name", OTHERS)
def test_settings_without_blocks(name):
    world = grid(6, 6)
    space, policy, options = OTHERS[name](world)
    n = space.n_states
    model = dphmm.MarkovModel(np.full(n, 1 / n), np.full((n, n), 1 / n))
    setting = Setting.of(model, policy, space, 1, **({"constraint": "delta=0.05"} | options))
    assert Blocks.of(setting.planner) is None


@pytest.mark.parametrize(("rows", "cores"), [(2, 1), (7, 2), (8, 1), (1000, 2)])
def test_beliefs_that_are_moved_together_have_the_bits_of_those_moved_alone(rows, cores, monkeypatch):
    """Sums are in one order however many there are; and two beliefs that have one plan stay two."""
    monkeypatch.setattr(module, "_LITTLE", 1)
    monkeypatch.setattr(module, "cores", lambda: cores)
    world, rng = grid(4, 4, radius=2), np.random.default_rng(rows)
    moves = rng.random((16, 16)) ** 3
    world.model = dphmm.MarkovModel(np.full(16, 1 / 16), moves / moves.sum(axis=1, keepdims=True))
    priors = [masses(world, {0: 1, 1: 2, 4: 3}), masses(world, {0: 3, 1: 2, 4: 1})]
    priors += [masses(world, dict(enumerate(rng.random(16) ** 8))) for _ in range(rows - 2)]
    blocks = Blocks.of(world.planner())
    block = blocks.plan(blocks.constrain(priors))
    assert block.plans[0].hash == block.plans[1].hash
    places = np.flatnonzero([plan is not None for plan in block.plans])
    z = rng.integers(0, 4, (len(places), 2))
    moved = block.move(places, z, world.model, np.ones(len(places), dtype=np.int64))
    assert len(places) > rows / 2 and not np.array_equal(moved.posterior[0], moved.posterior[1])
    for at, place in enumerate(places.tolist()):
        (now, then), before = moved.beliefs(at), Position(1, priors[place])
        posterior = before.condition(planned_alone(world, priors[place]), z[at])
        assert np.array_equal(now.row, posterior.row)
        assert np.array_equal(then.row, before.predict(world.model, posterior).prior.row)


def still(world, steps=3, subjects=3):
    """The same world, in which people hardly move, begin alike, and everybody's table is the same."""
    n = world.model.n_states
    moves = np.eye(n) * (1 - 1e-6) + np.full((n, n), 1e-6 / n)
    initial = np.full(n, 1e-7)
    initial[[0, 1, 2, 4, 5, 8]] = 0.3, 0.2, 0.2, 0.1, 0.1, 0.1
    world.model = dphmm.MarkovModel(initial / initial.sum(), moves / moves.sum(axis=1, keepdims=True))
    rows = [(f"u{user}", step + 1, 0) for user in range(subjects) for step in range(steps)]
    world.table = pd.DataFrame(rows, columns=["user", "step", "state"])
    return world


def resumed_twice(seed, first):
    """The rows up to a step, then the whole table from the same ledger: with blocks and without."""
    whole, told = World.numbered(seed), []
    for blocks in (nullcontext, without_blocks):
        first = max(first, whole.table.step.min())
        early = replace(whole, table=whole.table[whole.table.step <= first])
        ledger = released(early, dphmm.ReplayBits(seed)).ledger
        with blocks():
            told.append(released(whole, dphmm.ReplayBits(seed + 1), ledger))
    told[0].same(told[1])
    return told[0]


@pytest.mark.slow
@given(SEEDS, st.integers(1, 6))
@settings(max_examples=25)
def test_stored_steps_are_the_same_with_blocks_and_without(seed, first):
    resumed_twice(seed, first)


def test_stored_steps_of_many_subjects_are_walked_together(monkeypatch):
    alone = []

    def counted(setting, position, entries, plan):
        entries = list(entries)
        alone.extend(entry for entry in entries if entry.z is not None)
        return walk(setting, position, entries, plan)

    monkeypatch.setattr("dphmm.session.stepwise.walk", counted)
    rows = sum(len(resumed_twice(seed, 6).table) for seed in range(10))
    # Once with blocks, which leave few, and once without.
    assert rows < len(alone) < 1.5 * rows


@pytest.mark.parametrize("tolerance", [0.2, 0.4])
def test_plans_that_another_machine_made_are_those_of_the_record(monkeypatch, tolerance):
    """Where sums of floats came out otherwise, delta-sets that are recorded are not those that a block makes now."""
    others = 0
    for seed in range(8):
        world = World.numbered(seed)
        here = released(world, dphmm.ReplayBits(seed)).table
        with monkeypatch.context() as patched:
            patched.setattr(module, "MASS_TOLERANCE", tolerance)
            there = released(world, dphmm.ReplayBits(seed))
        again = released(world, dphmm.ReplayBits(seed), there.ledger)
        with without_blocks():
            again.same(released(world, dphmm.ReplayBits(seed), there.ledger))
        pd.testing.assert_frame_equal(again.table, there.table, check_exact=True)
        others += (here.plan != there.table.plan).any()
    assert others > 3


@pytest.mark.parametrize("blocks", [nullcontext, without_blocks])
@pytest.mark.parametrize("z", ["5", "5,5,5", f"{2**64},5"])
def test_a_stored_answer_of_another_space_is_refused(tmp_path, z, blocks):
    world, path = World.numbered(3), tmp_path / "ledger.db"
    with dphmm.open_ledger(path) as ledger:
        released(world, dphmm.ReplayBits(3), ledger)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE release SET z = ? WHERE z IS NOT NULL", (z,))
    with (
        dphmm.open_ledger(path) as ledger,
        blocks(),
        pytest.raises(InvalidInput, match="an answer of another space"),
    ):
        released(world, dphmm.ReplayBits(3), ledger)


def test_two_subjects_with_one_plan_keep_their_beliefs():
    """After step 1 priors differ; where the answers leave the plan set what it was, plans do not."""
    shared = 0
    for seed in range(12):
        told = twice(still(grid(4, 4, radius=2)), lambda seed=seed: dphmm.ReplayBits(seed))
        second = told.table[told.table.step == 2]
        shared += len(set(second.plan)) < len(second)
    assert shared > 3


def test_rows_of_one_plan_are_drawn_together():
    """Plans a, b, a of three subjects: the words of the third row come before those of the second."""
    world = grid(4, 4, radius=2)
    blocks = Blocks.of(world.planner())
    one, other = masses(world, {0: 1, 1: 2, 4: 3}), masses(world, {10: 3, 11: 2, 14: 1})
    block = blocks.plan(blocks.constrain([one, other]))
    plans, plan_of = list(block.plans), np.array([0, 1, 0])
    blocked = Blocked(block, np.array([0, 1]), np.array([0, 1, 0]))
    states = np.array([0, 10, 1])
    together = answer(plans, plan_of, states, dphmm.ReplayBits(3), blocked)
    alone = answer([planned_alone(world, prior) for prior in (one, other)], plan_of, states, dphmm.ReplayBits(3))
    assert np.array_equal(together[0], alone[0])
    assert np.array_equal(together[1], alone[1])


@pytest.mark.parametrize("room", [2.0, 6.0])
def test_beliefs_that_floats_do_not_hold_are_moved_one_by_one(monkeypatch, room):
    monkeypatch.setattr("dphmm.session.plan._ROOM", room)
    for seed in range(6):
        twice(World.numbered(seed), lambda seed=seed: dphmm.ReplayBits(seed))


def test_parts_of_a_block_on_several_cores(monkeypatch):
    monkeypatch.setattr(module, "_LITTLE", 1)
    for cores in (1, 2, 3):
        monkeypatch.setattr(module, "cores", lambda cores=cores: cores)
        for seed in range(5):
            twice(World.numbered(seed), lambda seed=seed: dphmm.ReplayBits(seed))


def test_an_error_in_a_part_is_raised(monkeypatch):
    monkeypatch.setattr(module, "cores", lambda: 2)

    def work(first, last):
        if last == 4:
            raise DphmmError("a part failed")

    with pytest.raises(DphmmError, match="a part failed"):
        module.in_parts(4, module._LITTLE, work)


def test_every_row_is_in_one_part(monkeypatch):
    for cores in (1, 2, 3, 8):
        monkeypatch.setattr(module, "cores", lambda cores=cores: cores)
        for n in range(12):
            done = []
            module.in_parts(n, module._LITTLE, lambda first, last: done.extend(range(first, last)))  # noqa: B023
            assert sorted(done) == list(range(n))


def test_laws_that_no_longer_fit_are_made_anew(monkeypatch):
    monkeypatch.setattr(module, "_MOST_LAWS", 3)
    for seed in range(8):
        twice(World.numbered(seed), lambda seed=seed: dphmm.ReplayBits(seed))


def test_a_block_keeps_its_laws_when_others_are_made(monkeypatch):
    monkeypatch.setattr(module, "_MOST_LAWS", 2)
    world = grid(6, 6, radius=2)
    blocks = Blocks.of(world.planner())
    first = blocks.plan(blocks.constrain([masses(world, {0: 1, 1: 1, 6: 1}), masses(world, {0: 1, 2: 1, 6: 1, 7: 1})]))
    before = first.answer(np.array([0, 1]), np.zeros((2, 2), dtype=np.int64), dphmm.ReplayBits(1))
    for corner in (14, 21, 28):
        blocks.plan(blocks.constrain([masses(world, {corner: 1, corner + 1: 1, corner - 6: 2, corner - 12: 1})]))
    after = first.answer(np.array([0, 1]), np.zeros((2, 2), dtype=np.int64), dphmm.ReplayBits(1))
    assert np.array_equal(before, after)


def test_a_plan_that_the_planner_does_not_make_is_refused():
    world = grid(6, 6)
    plan = (
        Blocks.of(world.planner())
        .plan(Blocks.of(world.planner()).constrain([masses(world, {0: 1, 1: 1, 6: 1})]))
        .plans[0]
    )
    assert plan.constraint.plan.sum() == 3
    vars(plan).pop("_made")
    vars(plan)["hash"] = "0" * 64
    with pytest.raises(DphmmError, match="the planner makes"):
        _ = plan.hull


@pytest.mark.parametrize("seed", [4, 11, 23])
def test_no_release_looks_at_a_plan_of_a_block(monkeypatch, seed):
    def looked(plan):
        raise AssertionError("a plan was made")

    monkeypatch.setattr(BlockPlan, "_made", property(looked))
    with counted_plans() as counts:
        released(World.numbered(seed, mechanism="auto"), dphmm.ReplayBits(seed))
    assert counts["decided"]


def test_a_drifted_state_is_answered_as_its_surrogate_and_counted():
    world = grid(6, 6)
    prior = masses(world, {0: 1, 1: 1, 6: 1})
    block = Blocks.of(world.planner()).plan(Blocks.of(world.planner()).constrain([prior, prior]))
    images, drifted = block.images(np.array([0, 1, 0]), np.array([35, -1, 6]))
    made = planned_alone(world, prior)
    assert images.tolist() == [made.image[35].tolist(), made.image[0].tolist(), made.image[6].tolist()]
    assert drifted.tolist() == [True, True, False]
