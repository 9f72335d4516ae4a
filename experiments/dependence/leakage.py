"""What a noisy sum over one person's friends tells of that person, in bits, by the distance model.

A person is the centre of a star: given the centre's place, friends' places are independent, P ∝ (distance + b)^−c over
public places. Asked is the sum of places' rows, how far north people are. All numbers are exact: laws of sums are
convolutions, and where noise takes the answer beyond all possible sums it tells no more than at their end.

The paper's measure is H(person) − H(person | answer, what else is known). It has two parts: what the known friends tell
without any release, which no mechanism changes, and what the answer adds. Both are computed: laws of answers are exact,
and what is known of friends is drawn from the distance model (or, for Gowalla, is where the friends were).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dphmm.dependent import ExactLoss, Friendship, Star, Sum
from dphmm.evaluation import bootstrap_mean
from dphmm.types import FloatArray, IntArray
from experiments.dependence.baselines import calibrated
from experiments.dependence.mechanisms import (
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
from experiments.experiment import Cell, Row, Settings

#: Los Angeles: west, south, east, north. Cells of about 11 km.
BOX = (-118.70, 33.70, -118.10, 34.34)
ACROSS, DOWN = 5, 6
FRIENDS = 6
METRES = (92_300.0, 110_900.0)


def places() -> FloatArray:
    """Middles of the public cells, metres east and north of the box's corner (30, 2)."""
    width, height = (BOX[2] - BOX[0]) * METRES[0], (BOX[3] - BOX[1]) * METRES[1]
    east, north = (np.arange(ACROSS) + 0.5) * width / ACROSS, (np.arange(DOWN) + 0.5) * height / DOWN
    return np.stack([np.tile(east, DOWN), np.repeat(north, ACROSS)], axis=1)


def cell_of(lat: FloatArray, lon: FloatArray) -> IntArray:
    """The number of the cell that each position is in; positions outside are moved to the box."""
    column = np.clip(((lon - BOX[0]) / (BOX[2] - BOX[0]) * ACROSS).astype(np.int64), 0, ACROSS - 1)
    row = np.clip(((lat - BOX[1]) / (BOX[3] - BOX[1]) * DOWN).astype(np.int64), 0, DOWN - 1)
    found: IntArray = row * ACROSS + column
    return found


#: What each place counts: its row.
NORTH: IntArray = np.repeat(np.arange(DOWN), ACROSS)
FRIENDS_QUERY = Sum(NORTH)
PRIOR: FloatArray = np.full(ACROSS * DOWN, 1 / (ACROSS * DOWN))
KERNEL: FloatArray = Friendship(places(), [(0, 1)], 2).kernel_between_friends


def friendship(edges: IntArray, n: int) -> Friendship:
    """Friends among n people over the public places."""
    return Friendship(places(), edges, n)


def star_of(friends: int) -> Star:
    """A person and friends."""
    return Star(friends, PRIOR, KERNEL)


def correlation() -> float:
    """The linear correlation of two friends' coordinates, the larger of east and north."""
    found = []
    for axis in places().T:
        centred = axis - PRIOR @ axis
        other = axis - (PRIOR @ KERNEL) @ axis
        together = PRIOR @ (centred * (KERNEL @ other))
        found.append(together / np.sqrt((PRIOR @ centred**2) * ((PRIOR @ KERNEL) @ other**2)))
    return float(np.abs(found).max())


@dataclass(frozen=True, eq=False)
class Friends:
    """One person with this many friends, and the laws of the sum of all their rows."""

    friends: int

    @cached_property
    def _one(self) -> FloatArray:
        """The law of one friend's row given the person's place (k, DOWN)."""
        found = np.zeros((len(PRIOR), DOWN))
        for place, row in enumerate(NORTH):
            found[:, row] += KERNEL[:, place]
        return found

    def unknown(self, friends: int) -> FloatArray:
        """The law of the rows of so many friends together, given the person's place (k, S)."""
        total = np.ones((len(PRIOR), 1))
        for _ in range(friends):
            total = np.array([np.convolve(law, one) for law, one in zip(total, self._one, strict=True)])
        return total

    def given_person(self, friends: int | None = None) -> FloatArray:
        """The law of the sum of the person and so many friends (all), given the person's place (k, S)."""
        return _shifted(self.unknown(self.friends if friends is None else friends))

    def given_friend(self) -> FloatArray:
        """The law of the whole sum given one friend's place (k, S)."""
        back = (PRIOR[:, None] * KERNEL).T / (PRIOR @ KERNEL)[:, None]
        return _shifted(back @ self.given_person(self.friends - 1))

    def losses(self) -> ExactLoss:
        """Exact losses of the person and of a friend."""
        return ExactLoss([self.given_person(), self.given_friend()])

    def taken_as_independent(self) -> FloatArray:
        """The law of the whole sum given the person's place, for somebody who knows of no friendship (k, S)."""
        one = (PRIOR @ KERNEL) @ np.eye(DOWN)[NORTH]
        total = np.ones(1)
        for _ in range(self.friends):
            total = np.convolve(total, one)
        return _shifted(np.tile(total, (len(PRIOR), 1)))


def _shifted(laws: FloatArray) -> FloatArray:
    """The laws of row + rest, given each place."""
    found = np.zeros((len(laws), laws.shape[1] + DOWN - 1))
    for place, row in enumerate(NORTH):
        found[place, row : row + laws.shape[1]] = laws[place]
    return found


def noisy(laws: FloatArray, rate: float) -> FloatArray:
    """Laws of the answer (k, S): discrete Laplace noise, with what is beyond the possible sums at their ends."""
    return laws @ noise(laws.shape[1], rate)


def noise(size: int, rate: float) -> FloatArray:
    """P(answer | sum) for sums 0..size − 1 (size, size)."""
    q = np.exp(-rate)
    apart = np.abs(np.arange(size)[:, None] - np.arange(size)).astype(np.float64)
    found: FloatArray = q**apart * (1 - q) / (1 + q)
    found[:, 0] = q ** np.arange(size) / (1 + q)
    found[:, -1] = found[::-1, 0]
    return found


def beliefs(friends: IntArray) -> FloatArray:
    """What friends' places (n, m) tell of the person's (n, k), before anything is released."""
    logs = np.log(PRIOR) + np.log(KERNEL).T[friends].sum(axis=1) if friends.shape[1] else np.log(PRIOR)[None]
    logs = np.broadcast_to(logs, (len(friends), len(PRIOR)))
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    found: FloatArray = weights / weights.sum(axis=1, keepdims=True)
    return found


def entropy(laws: FloatArray) -> FloatArray:
    """Bits of each row."""
    logs = np.log2(laws, out=np.zeros_like(laws), where=laws > 0)
    found: FloatArray = -(laws * logs).sum(axis=1)
    return found


def told(answers: FloatArray, before: FloatArray) -> FloatArray:
    """Bits (n,) that an answer with laws (k, S) tells on average somebody who believes ``before`` (n, k)."""
    found: FloatArray = entropy(before @ answers) - before @ entropy(answers)
    return np.maximum(found, 0.0)


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
        found = calibrated(star, FRIENDS_QUERY, epsilon, mechanism)
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
    mean, low, high = bootstrap_mean(friends + release)
    parts = {"by_friends": float(friends.mean()), "by_release": float(release.mean())}
    return {"leaked": mean, "low": low, "high": high, **parts}
