"""What an adversary learns of one person from a noisy sum, in bits, with and without the friends' data.

The paper's measure is H(person) − H(person | answer, what else is known). It has two parts: what the known friends tell
without any release, which no mechanism changes, and what the answer adds. Both are computed: laws of answers are exact,
and what is known of friends is drawn from the distance model (or, for Gowalla, is where the friends were).
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from dphmm.dependent import ExactLoss, calibrate
from dphmm.evaluation.dependence_mechanisms import (
    CORRELATED,
    DPM,
    EVERYBODY,
    INDEPENDENT,
    KEPT,
    MARKOV,
    NONE,
    OVER,
    UNDER,
    mistaken_rate,
)
from dphmm.evaluation.dependence_places import (
    FRIENDS,
    FRIENDS_QUERY,
    KERNEL,
    PRIOR,
    Friends,
    beliefs,
    entropy,
    noisy,
    star_of,
    told,
)
from dphmm.evaluation.experiment import Cell, Row, Settings, spread
from dphmm.types import FloatArray, IntArray

EPSILONS = ("0.1", "0.3", "1", "3", "10")
DRAWS = 2000
WITHOUT, UNAWARE = "without friends' data", "taking people as independent"
_NOTHING = "nothing is released"


def cells(settings: Settings) -> list[Cell]:
    """A cell for each ε."""
    epsilons = ("1",) if settings.quick else EPSILONS
    return [{"part": "leak", "data": "distance model", "epsilon": epsilon} for epsilon in epsilons]


def measure(cell: Cell, seed: np.random.SeedSequence, draws: int = DRAWS) -> list[Row]:
    """Bits about the person at the centre of a star, mechanism by mechanism and adversary by adversary."""
    random = np.random.default_rng(seed)
    friends = drawn(random, FRIENDS, draws)
    star = Friends(FRIENDS)
    losses = star.losses()
    rows: list[Row] = []
    for mechanism, guarantee, rate in rates(Fraction(str(cell["epsilon"])), losses):
        place: Row = {"mechanism": mechanism, "guarantee": guarantee, "noise": None if rate == 0 else 1 / rate}
        place["true_epsilon"] = 0.0 if rate == 0 else losses.at(1 / rate)
        rows += [{**place, **found} for found in adversaries(star, friends, rate)]
    return rows


def drawn(random: np.random.Generator, friends: int, draws: int) -> IntArray:
    """Places of friends (draws, friends) by the model."""
    centre = random.choice(len(PRIOR), size=draws, p=PRIOR)
    steps = KERNEL.cumsum(axis=1)[centre]
    found: IntArray = (random.random((draws, friends))[:, :, None] > steps[:, None, :]).sum(axis=2)
    return np.minimum(found, len(PRIOR) - 1)


def rates(epsilon: Fraction, losses: ExactLoss) -> Iterator[tuple[str, str, float]]:
    """1/scale of every mechanism on the star itself, whose losses are known; 0 where nothing is released."""
    star = star_of(FRIENDS)
    yield _NOTHING, KEPT, 0.0
    names = {INDEPENDENT: INDEPENDENT, CORRELATED: CORRELATED, DPM: DPM, MARKOV: MARKOV, EVERYBODY: "group"}
    for name, mechanism in names.items():
        found = calibrate(star, FRIENDS_QUERY, epsilon, mechanism)
        yield name, KEPT if found.proved else NONE, float(found.rate)
    for name, factor in {**UNDER, **OVER}.items():
        rate = mistaken_rate(star, FRIENDS_QUERY, epsilon, factor)
        kept = losses.at(float(1 / rate)) <= float(epsilon) * (1 - 1e-9)
        yield name, KEPT if kept else NONE, float(rate)


def adversaries(star: Friends, friends: IntArray, rate: float) -> Iterator[Row]:
    """Bits of the paper's measure, and their two parts, for every adversary."""
    nobody = PRIOR[None]
    blind = _added(star.taken_as_independent(), nobody, rate)
    yield {"adversary": UNAWARE, "known": 0, **_bits(np.zeros(1), blind)}
    for known in (0, star.friends // 2, star.friends):
        before = beliefs(friends[:, :known]) if known else nobody
        # Friends whose place is known are subtracted from the answer.
        added = _added(star.given_person(star.friends - known), before, rate)
        yield {"adversary": name_of(known, star.friends), "known": known, **_bits(_gained(before), added)}


def name_of(known: int, friends: int) -> str:
    """An adversary by how many friends' data it has."""
    if known == 0:
        return WITHOUT
    return "with all friends' data" if known == friends else f"with {known} of {friends} friends' data"


def _added(laws: FloatArray, before: FloatArray, rate: float) -> FloatArray:
    return np.zeros(len(before)) if rate == 0 else told(noisy(laws, rate), before)


def _gained(before: FloatArray) -> FloatArray:
    found: FloatArray = entropy(PRIOR[None]) - entropy(before)
    return found


def _bits(friends: FloatArray, release: FloatArray) -> Row:
    mean, low, high = spread(friends + release)
    parts = {"by_friends": float(friends.mean()), "by_release": float(release.mean())}
    return {"leaked": mean, "low": low, "high": high, **parts}
