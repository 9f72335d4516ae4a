"""`black_box` convicts samplers that break ε and acquits right ones at the stated error rate.

Level: a right sampler is convicted with probability at most alpha (1e-6 by default, over all pairs and directions),
proven in docs/proofs/black-box-audit.md. The bounds alone are checked in test_events.py, and the whole here at alpha =
1/5, where 60 right audits may convict 30 at most (a chance of 1e-6 if alpha is right). Power: every wrong sampler is
convicted in the default run at one fixed seed, and in the long run at 60 of 60 seeds, so with probability above .92 at
confidence .99. Seeds are fixed: nothing flickers. What it cannot see is here too: an honest "undecided".

Confidence bounds on epsilon, and the events that they are about.

Claims: Clopper-Pearson bounds cover at their level, checked exactly by summing binomial laws; the number of draws that
is needed gives the power; an event is learned before it is judged. It would fail for a bound that spends alpha twice.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

import dphmm
from audit import planted
from audit.small import POLICY, SPACE, everywhere, session
from dphmm.audit import black_box, is_on_lattice, sample_plan
from dphmm.audit.black_box import (
    epsilon_below,
    fewest_that_could_convict,
    highest,
    last_bit,
    learn,
    lowest,
    samples_needed,
)
from dphmm.errors import InvalidInput
from dphmm.mechanisms import DiscreteKNorm, KNorm, Laplace, Staircase
from dphmm.samplers import ReplayBits
from dphmm.samplers.body import LatticeSampler
from statistical import wrong_samplers
from statistical.lattice_law import Case

DRAWS = 40_000
HULL = dphmm.sensitivity.sensitivity_hull(POLICY, SPACE)
#: A policy edge on the boundary of the hull: it loses all of ε.
FIRST, SECOND = np.array([0, 1]), np.array([4, 2])


def drawn(mechanism, answer, bits):
    return lambda n: mechanism.sample(np.tile(np.asarray(answer, dtype=float), (n, 1)), bits)


def two(mechanism, bits, first=FIRST, second=SECOND):
    return [(drawn(mechanism, first, bits), drawn(mechanism, second, bits))]


class LocalLaplace:
    """Laplace noise rounded to the lattice: right in law but for its scale, which is ``times`` what it must be."""

    def __init__(self, times):
        self.scale = 5 * times

    def sample(self, answers, bits):
        chance = np.random.default_rng(int(bits.uint64(1)[0]))
        return np.rint(answers + chance.laplace(0, self.scale, answers.shape))


def wrong_law(sampler):
    """A sampler of tests/statistical with one error, on the example's body at ε = 1, for two answers one edge apart."""
    case = Case("example", Fraction(1))

    def pairs(bits):
        seeds = bits.uint64(2).tolist()
        vertex = case.hull.hull_vertices[0]
        return [(lambda n: sampler(case, n, seeds[0]), lambda n: vertex + sampler(case, n, seeds[1]))]

    return pairs


def stale(bits):
    """Noise of the hull before s3 was joined, for s3 and its partner (Example 6.1)."""
    support = np.array([False, False, True, True, True, True])
    within = np.where(support, 0.25, 0.0)
    one = session(model=dphmm.MarkovModel(within, np.tile(within, (6, 1)), start="at"), mechanism="discrete-knorm")
    bad = planted.stale_hull(one.plan, POLICY, SPACE)
    (pair,) = one.plan.joins.tolist()
    return two(bad.mechanism, bits, SPACE.lattice[pair[0]], SPACE.lattice[pair[1]])


#: Samplers that lose more than ε = 1 on the pair they are given.
WRONG = {
    "wrong radius law": wrong_law(wrong_samplers.levels_without_boxes),
    "boundary only": wrong_law(wrong_samplers.boundary_only),
    "stale hull": stale,
    "Laplace with half the scale": lambda bits: two(LocalLaplace(0.5), bits),
    "K-norm with epsilon doubled": lambda bits: two(DiscreteKNorm(HULL, 2), bits),
    "staircase with epsilon doubled": lambda bits: two(Staircase(HULL, 2), bits),
    "no noise": lambda bits: [(lambda n: np.tile(FIRST, (n, 1)), lambda n: np.tile(SECOND, (n, 1)))],
    "float output, continuous K-norm": lambda bits: two(KNorm(HULL, 1), bits),
    "float output, Laplace": lambda bits: two(Laplace(1, 1), bits, [0.0], [1.0]),
}
RIGHT = {
    "K-norm": lambda bits: two(DiscreteKNorm(HULL, 1), bits),
    "staircase": lambda bits: two(Staircase(HULL, 1, Fraction(1, 3)), bits),
    "Laplace on the lattice": lambda bits: two(LocalLaplace(1), bits),
    "right sampler": wrong_law(wrong_samplers.right),
    "too much noise": wrong_law(wrong_samplers.epsilon_times("0.9")),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_sampler_is_convicted(name):
    verdict = black_box(WRONG[name](ReplayBits(11)), 1, draws=DRAWS)
    assert verdict.convicted and verdict.lower > 1, verdict.lines
    assert "CONVICTED" in verdict.lines[0]


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_sampler_is_acquitted(name):
    verdict = black_box(RIGHT[name](ReplayBits(12)), 1, draws=DRAWS)
    assert not verdict.convicted and verdict.decided, verdict.lines
    # The bound is no idle one: the pair loses all of ε, and most of that is found.
    assert name == "too much noise" or 0.5 < verdict.lower <= 1


@pytest.mark.long
@pytest.mark.parametrize("name", WRONG)
def test_wrong_samplers_are_convicted_again_and_again(name):
    convicted = [black_box(WRONG[name](ReplayBits(100 + seed)), 1, draws=DRAWS).convicted for seed in range(60)]
    assert all(convicted)
    # 60 of 60 has a chance below .01 where the power is below this.
    assert 0.92**60 < 0.01


@pytest.mark.long
@pytest.mark.parametrize("name", RIGHT)
def test_right_samplers_are_acquitted_again_and_again(name):
    assert not any(black_box(RIGHT[name](ReplayBits(500 + seed)), 1, draws=DRAWS).convicted for seed in range(60))


def convictions(runs, alpha):
    mechanism, bits = DiscreteKNorm(HULL, 1), ReplayBits(5)
    return sum(black_box(two(mechanism, bits), 1, draws=4000, alpha=alpha).convicted for _ in range(runs))


def test_the_error_rate_is_the_stated_one():
    assert binom.sf(30, 60, 0.2) < 1e-6
    assert convictions(60, 0.2) <= 30


def test_the_rate_breaks_where_the_event_is_judged_on_the_draws_it_was_learned_from(monkeypatch):
    """The check can fail: without a sample split the same audits convict nearly always."""
    monkeypatch.setattr(sys.modules["dphmm.audit.black_box"], "in_halves", lambda draws: (draws, draws))
    assert convictions(60, 0.2) > 30


def test_too_few_draws_are_undecided():
    verdict = black_box(RIGHT["K-norm"](ReplayBits(1)), 1, draws=200)
    assert not verdict.convicted and not verdict.decided
    assert verdict.lines == [f"samples: undecided, needs n = {verdict.needed} draws a side; there are 200"]
    enough = black_box(RIGHT["K-norm"](ReplayBits(1)), 1, draws=verdict.needed)
    assert enough.decided


@pytest.mark.parametrize("draws", [0, 1, 2, 3, 5, 15, 16, 17, 40])
def test_very_few_draws_are_undecided_too(draws):
    """With the number that would do, which hangs on epsilon, alpha and the pairs, never on the draws."""
    apart = [(np.zeros(draws), np.full(draws, 9.0)), (np.zeros(500), np.zeros(500))]
    verdict = black_box(apart, 1, names=["a", "b"])
    assert not verdict.convicted and not verdict.decided and verdict.lower == 0
    assert verdict.needed == 2 * samples_needed(1, 2, 0.1, 1e-6 / 4)
    assert verdict.lines == [f"samples: undecided, needs n = {verdict.needed} draws a side; there are {draws}"]


def test_the_number_that_is_needed_does_what_is_said():
    """Judged by half of them, an event of probability 1/10, lost by 2, convicts with power .99: summed exactly."""
    share = 1e-6 / 2
    judged = black_box([(np.zeros(3), np.zeros(3))], 1).needed // 2
    p, q = 0.1, 0.1 * math.exp(-2)
    k1, k0 = (np.arange(int(binom.isf(1e-15, judged, chance)) + 2) for chance in (p, q))
    low, high = np.log(np.maximum(lowest(k1, judged, share / 2), 1e-300)), np.log(highest(k0, judged, share / 2))
    fewest = np.searchsorted(low, high + 1, side="right")
    assert (binom.pmf(k0, judged, q) * binom.sf(fewest - 1, judged, p)).sum() >= 0.99


def test_an_epsilon_that_no_samples_decide():
    """e^40 draws are more than anybody has, and e^1000 are no float."""
    for epsilon in (40, 1000):
        verdict = black_box([(np.zeros(99), np.zeros(99))], epsilon)
        assert not verdict.convicted and not verdict.decided and verdict.needed is None
        assert "undecided, needs n > " in verdict.lines[0]


def test_bounds_that_say_nothing_are_null_for_machines():
    verdict = black_box([(np.arange(40), np.arange(40)[::-1])], 1)
    assert verdict.pairs[0].forward == -math.inf
    (pair,) = json.loads(json.dumps(verdict.document(), allow_nan=False))["pairs"]
    assert pair["forward"] is None


def test_where_nothing_must_be_kept_apart():
    space, policy = dphmm.StateSpace([[0], [1], [2]]), dphmm.policy.complete(3)
    constant = dphmm.ReleaseSession(dphmm.MarkovModel([1, 0, 0], np.eye(3), start="at"), policy, space, 1).plan
    verdict = sample_plan(constant, policy, space, draws=100, bits=ReplayBits(1))
    assert not verdict.convicted and "nothing to look at" in verdict.lines[0]


def test_a_loss_in_a_rare_event_is_beyond_it():
    """A thousandth of the draws of one side is a mark of its own: 400 draws cannot show it, 200,000 do."""

    def marked(n):
        rng = np.random.default_rng(n)
        return np.where(rng.random(n) < 1e-3, 50, rng.integers(0, 4, n))

    plain = lambda n: np.random.default_rng(n + 1).integers(0, 4, n)  # noqa: E731
    assert not black_box([(marked, plain)], 1, draws=2000).convicted
    assert black_box([(marked, plain)], 1, draws=200_000).convicted


def test_plans_are_sampled_on_their_farthest_pairs():
    plan = session(model=everywhere(), mechanism="staircase").plan
    verdict = sample_plan(plan, POLICY, SPACE, draws=DRAWS, bits=ReplayBits(4))
    assert len(verdict.pairs) == 2 and verdict.decided and not verdict.convicted
    # `verify` reads what a mechanism says of itself; a sampler that does something else is for this audit.
    telling = Staircase(plan.hull, 1, plan.mechanism.offset)
    telling.__dict__["_sampler"] = LatticeSampler.staircase(telling._body, 2 * telling.epsilon, telling.offset)
    bad = replace(plan, mechanism=telling)
    assert not dphmm.audit.verify(bad, POLICY, SPACE).convicted
    assert sample_plan(bad, POLICY, SPACE, draws=DRAWS, bits=ReplayBits(4)).convicted


def test_float_output_is_off_the_lattice():
    bits = ReplayBits(2)
    right = DiscreteKNorm(HULL, 1).sample(np.tile([1.0, 0.0], (500, 1)), bits)
    floats = KNorm(HULL, 1).sample(np.tile([1.0, 0.0], (500, 1)), bits)
    assert is_on_lattice(right, SPACE.frame).all() and not is_on_lattice(floats, SPACE.frame).any()
    assert not is_on_lattice(right + 2.0**-40, SPACE.frame).any()
    verdict = black_box(two(KNorm(HULL, 1), bits), 100, draws=1000, lattice=SPACE.frame)
    assert verdict.convicted and "no lattice points" in verdict.findings[0]
    metres = dphmm.StateSpace([[0.0], [340.3], [680.6]], pitch=340.3)
    steps = np.arange(-9, 10)[:, None]
    assert is_on_lattice(metres.frame.to_answers(steps), metres.frame).all()


@pytest.mark.parametrize("suffix", [".npy", ".csv", ".parquet"])
def test_files_of_samples(tmp_path, suffix):
    import pyarrow as pa

    from dphmm.storage.tables import write_table

    paths = []
    bits = ReplayBits(7)
    for name, answer in (("a", FIRST), ("b", SECOND)):
        z = drawn(DiscreteKNorm(HULL, 2), answer, bits)(20_000)
        paths.append(tmp_path / f"{name}{suffix}")
        if suffix == ".npy":
            np.save(paths[-1], z)
        else:
            write_table(paths[-1], pa.table({"x": z[:, 0], "y": z[:, 1]}))
    assert black_box([tuple(paths)], 1).convicted
    assert not black_box([tuple(paths)], 2).convicted


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ([], "pairs"),
        ([(np.zeros((99, 2)), np.zeros((99, 3)))], "dimension"),
        ([(np.full((99, 2), np.nan), np.zeros((99, 2)))], "NaN"),
        ([("nothing.npy", np.zeros((99, 2)))], "nothing.npy"),
        ([(["a"] * 99, np.zeros((99, 2)))], "numbers"),
    ],
)
def test_bad_samples_are_refused_in_one_line(pairs, words):
    with pytest.raises(InvalidInput, match=words) as refused:
        black_box(pairs, 1)
    assert "\n" not in str(refused.value)


def test_pickles_are_not_opened(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(InvalidInput, match="numpy"):
        black_box([(path, path)], 1)


def test_bad_parameters():
    good = [(np.zeros(99), np.zeros(99))]
    for parameters in ({"epsilon": 0}, {"epsilon": 1, "alpha": 0.0}, {"epsilon": 1, "alpha": 1.5}):
        with pytest.raises(InvalidInput):
            black_box(good, **parameters)


@pytest.mark.parametrize("n", [1, 2, 5, 20, 60])
@pytest.mark.parametrize("alpha", [0.4, 0.05, 1e-3])
def test_clopper_pearson_covers(n, alpha):
    """For every p the chance that the bound passes it is at most alpha: summed exactly over all counts."""
    counts = np.arange(n + 1)
    low, high = lowest(counts, n, alpha), highest(counts, n, alpha)
    for p in np.linspace(0, 1, 201):
        law = binom.pmf(counts, n, p)
        assert law[low > p].sum() <= alpha * (1 + 1e-9)
        assert law[high < p].sum() <= alpha * (1 + 1e-9)
    assert (low <= counts / n).all() and (counts / n <= high).all()
    # Not idle: between its steps a bound is passed with nearly that chance.
    assert max(binom.sf(k - 1, n, low[k]) for k in counts[1:]) > 0.99 * alpha


def test_two_bounds_share_alpha():
    n, alpha = 30, 0.3
    for p in np.linspace(0.05, 1, 20):
        q = p / math.e
        wrong = 0.0
        for k1, k0 in itertools.product(range(n + 1), repeat=2):
            if float(epsilon_below(k1, n, k0, n, alpha)) > 1:
                wrong += binom.pmf(k1, n, p) * binom.pmf(k0, n, q)
        assert wrong <= alpha


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("alpha", [0.1, 1e-6])
def test_the_fewest_draws_that_could_convict(epsilon, alpha):
    n = fewest_that_could_convict(epsilon, alpha)
    assert float(epsilon_below(n + 1, n + 1, 0, n + 1, alpha)) > epsilon
    assert n == 1 or float(epsilon_below(n - 1, n - 1, 0, n - 1, alpha)) <= epsilon


def test_the_draws_that_are_needed_give_the_power():
    n = samples_needed(1, 2, 0.1, 1e-4)
    rng = np.random.default_rng(3)
    k1, k0 = rng.binomial(n, 0.1, 4000), rng.binomial(n, 0.1 * math.exp(-2), 4000)
    assert (epsilon_below(k1, n, k0, n, 1e-4) > 1).mean() > 0.985
    m = n // 2
    k1, k0 = rng.binomial(m, 0.1, 4000), rng.binomial(m, 0.1 * math.exp(-2), 4000)
    assert (epsilon_below(k1, m, k0, m, 1e-4) > 1).mean() < 0.9


def test_the_last_bit_of_a_float():
    values = np.array([0.0, 1.0, 1.5, -0.25, 3.0, 2.0**60, 0.1, 1 + 2.0**-52])
    assert last_bit(values).tolist() == [64, 0, -1, -2, 0, 60, -55, -52]


def test_an_event_is_fixed_before_it_is_judged():
    rng = np.random.default_rng(0)
    one, other = rng.normal(0, 1, (3000, 2)), rng.normal(1, 1, (3000, 2))
    ahead, back = learn(one, other, 1e-3)
    fresh = rng.normal(0, 1, (1000, 2)), rng.normal(1, 1, (1000, 2))
    assert ahead.contains(fresh[0]).mean() > 2 * ahead.contains(fresh[1]).mean()
    assert back.contains(fresh[1]).mean() > 2 * back.contains(fresh[0]).mean()
    assert ahead.contains(fresh[0][:7]).tolist() == ahead.contains(fresh[0])[:7].tolist()
