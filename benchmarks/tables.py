"""How near made tables are to the best mechanism there is, beside noise with the best naming: a table.

    python benchmarks/tables.py [--epsilon 1 2 4] [--small] [--grid 20] [--gap 1.05] [--seed 1]

Costs are mean squared distances under a skewed public prior. "table" is what `optimize` makes, from its certified
whole numbers; "auto" is what a release adds without it, with every output named as whatever is best for it. Both are
divided by a bound that no mechanism with the same promise is below. Then square grids too large for one program,
by columns, with the seconds that they took.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator

import numpy as np

import dphmm
from dphmm.mechanisms import NoiseMechanism
from dphmm.session.setting import Setting

#: How much of the noise's mass may lie outside the outputs that are looked at.
LEFT_OUT = 1e-6


def towns(points: np.ndarray, seed: int) -> np.ndarray:
    """A few towns in the country: bumps of different height over little that is everywhere."""
    generator = np.random.default_rng(seed)
    low, high = points.min(axis=0), points.max(axis=0)
    width = max(float((high - low).max()) / 10, 1.0)
    weights = np.full(len(points), 0.05)
    for height in (3.0, 2.0, 1.0, 1.0):
        centre = generator.uniform(low, high)
        weights += height * np.exp(-np.square(points - centre).sum(axis=1) / (2 * width**2))
    return weights / weights.sum()


def small_places(seed: int) -> Iterator[tuple[str, np.ndarray, dphmm.policy.PolicyGraph]]:
    """Six small, irregular places: answers and a policy."""
    generator = np.random.default_rng(seed)
    policy = dphmm.policy

    def near(points: np.ndarray, radius: float) -> dphmm.policy.PolicyGraph:
        return policy.radius(dphmm.StateSpace(points), radius)

    block = np.array(list(itertools.product(range(12), range(4))))
    yield "12 x 4 grid", block, near(block, 1.5)
    line = np.arange(40)[:, None]
    yield "line of 40", line, near(line, 2)
    hexagons = np.array([(4 * x + 2 * (y % 2), round(3.46 * y)) for x in range(8) for y in range(6)])
    yield "48 hexagons", hexagons, near(hexagons, 4.2)
    ell = np.array([(x, y) for x, y in itertools.product(range(8), range(8)) if x < 3 or y < 3][:40])
    yield "an L of 40", ell, near(ell, 1.5)
    rows = np.array(list(itertools.product(range(8), range(6))))
    far = policy.from_edges([(0, 47), (5, 42), (20, 30)], 48)
    yield "8 x 6, union", rows, near(rows, 1).union(far)
    scattered = np.unique(generator.integers(0, 15, (60, 2)), axis=0)[:43]
    yield "43 at random", scattered, near(scattered, 3.2)


def world(points: np.ndarray, seed: int) -> tuple[dphmm.MarkovModel, dphmm.StateSpace]:
    n = len(points)
    told = {"initial": "occupancy"}
    model = dphmm.MarkovModel(towns(points, seed), np.full((n, n), 1 / n), provenance=told)
    return model, dphmm.StateSpace(points)


def named_noise(model: dphmm.MarkovModel, policy, space: dphmm.StateSpace, epsilon: str) -> float:
    """The mean squared distance of what "auto" adds, every output named as the state that is best for it."""
    plan = Setting.of(model, policy, space, epsilon).first_plan()
    mechanism = plan.mechanism
    assert isinstance(mechanism, NoiseMechanism)
    points, prior = space.lattice, model.initial
    apart = np.square(points[:, None] - points[None]).sum(axis=2)
    reach = int(2 * (points.max() - points.min()) + 4)
    while True:
        axes = [range(int(a) - reach, int(b) + reach + 1) for a, b in zip(points.min(0), points.max(0), strict=True)]
        cost = mass = 0.0
        for z in itertools.product(*axes):
            logs = mechanism.log_likelihood_lattice(np.array(z), plan.image) - mechanism.log_normaliser
            joint = prior * np.exp(logs)
            cost += float((joint @ apart).min())
            mass += float(joint.sum())
        if mass > 1 - LEFT_OUT or reach > 400:
            return cost
        reach *= 2


def small(epsilons: list[str], seed: int) -> None:
    print("| place | epsilon | mean cost of the table | table / bound | auto, named / bound | seconds |")
    print("|---|---|---|---|---|---|")
    for name, points, policy in small_places(seed):
        model, space = world(points, seed)
        for epsilon in epsilons:
            began = time.perf_counter()
            table = dphmm.choose.optimize(model, policy, space, epsilon)
            seconds = time.perf_counter() - began
            making = table.making
            auto = named_noise(model, policy, space, epsilon) / making.bound
            print(
                f"| {name} | {epsilon} | {making.cost:.4f} | {making.certified_ratio:.4f} | {auto:.2f} | "
                f"{seconds:.1f} |",
                flush=True,
            )


def large(size: int, epsilons: list[str], gap: float, seed: int) -> None:
    print("\n| grid | radius | epsilon | mean cost of the table | table / bound | rounds | seconds |")
    print("|---|---|---|---|---|---|---|")
    points = np.array(list(itertools.product(range(size), range(size))))
    model, space = world(points, seed)
    for radius in ("1.5", "2.3", "3"):
        policy = dphmm.policy.radius(space, float(radius))
        for epsilon in epsilons:
            rounds: list[object] = []
            began = time.perf_counter()
            making = dphmm.choose.optimize(model, policy, space, epsilon, gap=gap, progress=rounds.append).making
            seconds = time.perf_counter() - began
            print(
                f"| {size} x {size} | {radius} | {epsilon} | {making.cost:.4f} | {making.certified_ratio:.4f} | "
                f"{len(rounds)} | {seconds:.0f} |",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilon", nargs="+", default=["1", "2", "4"])
    parser.add_argument("--small", action="store_true", help="the six small places alone")
    parser.add_argument("--grid", type=int, default=20)
    parser.add_argument("--gap", type=float, default=1.05)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    small(given.epsilon, given.seed)
    if not given.small:
        large(given.grid, [e for e in given.epsilon if float(e) >= 2], given.gap, given.seed)


if __name__ == "__main__":
    main()
