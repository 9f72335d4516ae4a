"""The promise on plans that came from a block: the numbers that a block draws by, judged in exact fractions.

Claim: wherever a block decides a plan of an instance, its facets, its law, its plan set and its surrogates keep every
required pair within eps, and beliefs and costs are those of the exact law. Nothing of the planner is judged here: plan,
hull and mechanism are put together from the block's columns. Deterministic.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from dphmm._kernels.blocks import KNORM
from dphmm.mechanisms import DiscreteKNorm, Staircase
from dphmm.policy.constraint import Constraint
from dphmm.sensitivity.exact_hull import Body
from dphmm.sensitivity.hull import SensitivityHull, whole_span
from dphmm.session.block import Blocks
from dphmm.session.plan import NO_PARTNERS, StepPlan
from dphmm.session.setting import Setting
from exactness.instances import Instance, PolicySpec
from exactness.judge import judge
from exactness.play import Play

_SEED, _INSTANCES = 28, 120


def instance_of(number):
    """An instance with a radius policy and a δ-set, its states near one another in the plane: what blocks are for."""
    instance = Instance.numbered(_SEED, number)
    query = instance.queries[0]
    if len(instance.queries) > 1:
        return None
    rng = np.random.default_rng([_SEED, number])
    side = 2 if instance.n <= 4 else 4
    cells = rng.permutation(side * side)[: instance.n]
    answers = np.stack(np.divmod(cells, side), axis=1) * rng.integers(1, 4, size=2)
    share = str(rng.choice(["1/2", "1"]))
    choices = {"constraint": f"delta={rng.choice([0.05, 0.2, 0.5])}"}
    if query.options["mechanism"] == "discrete-laplace":
        choices["mechanism"] = "auto"
    policy = PolicySpec("radius", {"share": share, "closed": bool(rng.random() < 0.7)})
    query = replace(query, answers=answers.astype(np.float64), pitch=None, options=query.options | choices)
    return replace(instance, policy=policy, queries=(query,))


def unpacked(block, frame):
    """The plan of a block's only row, put together from its columns alone."""
    found, law, plan = block.planned, int(block.numbers[0]), block.plans[0]
    size, laws = int(found.sizes[0]), block.laws
    normals, offsets = found.facets[0, : 2 * size].reshape(size, 2), found.facets[0, 2 * size : 3 * size]
    body = Body(normals.copy(), offsets.copy(), found.vertices[0, : 2 * size].copy(), None, exact=True)
    hull = SensitivityHull(frame, *whole_span(2), np.zeros((0, 2), dtype=np.int64), body)
    offset = Fraction(*laws.offset[law].tolist())
    knorm = laws.which[law] == KNORM
    mechanism = DiscreteKNorm(hull, plan.epsilon) if knorm else Staircase(hull, plan.epsilon, offset)
    surrogate = found.surrogate[0].astype(np.int64)
    return StepPlan(
        constraint=Constraint(block.supports[0], found.plan[0], surrogate),
        epsilon=plan.epsilon,
        lattice=plan.lattice,
        hull=hull,
        mechanism=mechanism,
        joins=NO_PARTNERS,
        partners=NO_PARTNERS,
        joint_edges=NO_PARTNERS,
        cost=plan.cost,
        constant=False,
        inputs=plan.inputs,
        packed=plan.packed,
    )


def test_plans_of_blocks_keep_the_promise(monkeypatch):
    judged = []
    steps = Play.steps

    def of_blocks(play):
        query = play.instance.queries[0]
        choices = dict(query.options)
        space = play.spaces[query.name]
        epsilon = Fraction(choices.pop("epsilon"))
        blocks = Blocks.of(Setting.of(play.model, play.policy, space, epsilon, **choices).planner)
        for step in steps(play):
            block = None if blocks is None or step.prior.row is None else blocks.plan(blocks.constrain([step.prior]))
            if block is None or block.plans[0] is None:
                yield step
                continue
            plan = unpacked(block, space.frame)
            assert plan.hash == block.plans[0].hash == step.plan.hash
            judged.append(plan)
            yield replace(step, plan=plan)

    monkeypatch.setattr(Play, "steps", of_blocks)
    ratios = []
    for instance in filter(None, map(instance_of, range(_INSTANCES))):
        findings = judge(instance)
        assert findings.violations == []
        ratios.append(findings.ratio.value)
    assert len(judged) > 40
    assert {plan.mechanism_name for plan in judged} == {DiscreteKNorm.name, Staircase.name}
    assert max(ratios) == 1
