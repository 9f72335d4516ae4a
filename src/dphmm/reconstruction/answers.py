"""The answers of a released table with the laws that they were drawn under, for every estimate of a population.

Plans are made again from public data and compared with the published hashes, as for smoothing. Plans under which every
state has the same law are one law here, whatever else tells them apart.

An `OutcomeTable` has the probability of every outcome of a plan from every state. Noise has infinitely many outcomes,
and a fine lattice has very many. Outcomes that are put together are one outcome, whose probability is the sum of
theirs: what is unbiased for such a table is unbiased. Lattice points are put together in boxes where there
are too many, and all that are far from every answer are one outcome. Of noise on a box the probability is exact up to
rounding and to what lies so far out that it has a probability below 1e-9, which counts as nothing. It is added up from
running sums over the lattice, one look-up a corner.

Proof: docs/proofs/population-shares.md.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from dphmm._progress import Progress
from dphmm.accounting.promise import PUBLIC_KINDS
from dphmm.errors import InvalidInput
from dphmm.mechanisms.answer_table import AnswerTable
from dphmm.mechanisms.base import LatticeMechanism, NoiseMechanism
from dphmm.release.decoding import published_of
from dphmm.session.plan import StepPlan
from dphmm.session.setting import Subjects
from dphmm.session.smoothing import Smoothers
from dphmm.storage.released import ReleasedRows
from dphmm.types import BoolArray, FloatArray, IntArray

#: Numbers of a table, outcomes of one, and lattice points whose probabilities are added up.
MOST_NUMBERS = 2**24
MOST_OUTCOMES = 2**14
MOST_POINTS = 2**25
#: Laws of one plan that are told apart.
MOST_LAWS = 4096
#: How far outcomes reach beyond the answers, and how far noise is added up: in units of 1/ε beyond the body itself.
_NEAR, _FAR = 6, 28
#: Lattice points that are looked at together.
_TOGETHER = 2**20


@dataclass(frozen=True, eq=False)
class OutcomeTable:
    """``table`` (K, Z): the probability of each outcome under each law; ``law_of`` (N,): the law of every state.

    Outcomes are boxes of ``side`` lattice steps from ``low`` (d,), ``shape`` (d,) of them, and one of all other points;
    or, where ``points`` is not None, those points (Z, d) themselves.
    """

    table: FloatArray
    law_of: IntArray
    low: IntArray
    side: int
    shape: tuple[int, ...]
    points: IntArray | None = None

    def numbers(self, z: IntArray) -> IntArray:
        """The outcome (n,) that each of the answers (n, d) is. Raises InvalidInput for one that no table has."""
        if self.points is not None:
            places = {tuple(point): number for number, point in enumerate(self.points.tolist())}
            outcomes = np.array([places.get(tuple(answer), -1) for answer in z.tolist()], dtype=np.int64)
            if (outcomes < 0).any():
                raise InvalidInput("z", "an answer that its table does not have", "answers as they were released")
            return outcomes
        box = (z - self.low) // self.side
        inside = ((box >= 0) & (box < self.shape)).all(axis=1)
        flat = np.ravel_multi_index(tuple(np.where(inside, column, 0) for column in box.T), self.shape)
        return np.where(inside, flat, self.table.shape[1] - 1)

    def split(self, region: FloatArray) -> IntArray:
        """The laws of which some states are in a region (N,) of zeros and ones and some are not."""
        counts = np.bincount(self.law_of, minlength=len(self.table))
        inside = np.bincount(self.law_of, weights=region, minlength=len(self.table))
        return np.flatnonzero((inside > 0) & (inside < counts))


class _Laws(NamedTuple):
    """The different laws of a plan: their lattice answers (K, d), and each state's law (N,)."""

    images: IntArray
    law_of: IntArray


def law_key(plan: StepPlan) -> str:
    """The key that two plans share if and only if every state has the same law under both, as they describe it."""
    body = getattr(plan.mechanism, "hull", plan.hull).digest
    sha = hashlib.sha256(json.dumps([plan.mechanism.describe(), body], sort_keys=True).encode())
    sha.update(np.ascontiguousarray(plan.image, dtype="<i8").tobytes())
    return sha.hexdigest()


def outcome_table(plan: StepPlan) -> OutcomeTable:
    """The outcomes of a plan with their probability from every state, states outside the support included.

    A state that a plan answers as another one has the law of the other one.

    Raises InvalidInput where a plan has more than 4096 different laws, and for noise that spans too many lattice steps
    to be added up.

    Examples
    --------
    >>> import dphmm
    >>> from dphmm.reconstruction.answers import outcome_table
    >>> space, model = dphmm.StateSpace([0, 1, 2]), dphmm.MarkovModel([0.5, 0.25, 0.25], [[1 / 3] * 3] * 3)
    >>> plan = dphmm.ReleaseSession(model, dphmm.policy.complete(3), space, epsilon=1).plan
    >>> found = outcome_table(plan)
    >>> bool(abs(found.table.sum(axis=1) - 1).max() < 1e-12), found.law_of
    (True, array([0, 1, 2]))

    Source: docs/proofs/population-shares.md.
    """
    laws = _laws(plan)
    if len(laws.images) > MOST_LAWS:
        raise InvalidInput("regions", f"{len(laws.images):,} states that answers tell apart", f"at most {MOST_LAWS:,}")
    if isinstance(plan.mechanism, AnswerTable):
        law = plan.mechanism.law
        table = law.probabilities[law.numbers(laws.images)]
        return OutcomeTable(table, laws.law_of, law.points[0], 1, (), law.points)
    assert isinstance(plan.mechanism, NoiseMechanism)
    return _of_boxes(plan.mechanism, laws)


def _laws(plan: StepPlan) -> _Laws:
    images, law_of = np.unique(plan.image, axis=0, return_inverse=True)
    return _Laws(images, law_of.reshape(-1))


def _of_boxes(mechanism: NoiseMechanism, laws: _Laws) -> OutcomeTable:
    """Outcomes of noise: boxes of lattice points around the answers, and all other points."""
    near = _reach(mechanism, _NEAR, laws.images.shape[1])
    low, high = laws.images.min(axis=0) - near, laws.images.max(axis=0) + near
    side = _side(high - low + 1, len(laws.images))
    shape = tuple((-(-(high - low + 1) // side)).tolist())
    table = np.zeros((len(laws.images), math.prod(shape) + 1))
    sums = _RunningSums.of(mechanism, low - laws.images.max(axis=0), shape, side, laws.images)
    table[:, :-1] = sums.boxes(low - laws.images, side, shape)
    table[:, -1] = np.maximum(0.0, 1.0 - table[:, :-1].sum(axis=1))
    return OutcomeTable(table, laws.law_of, low, side, shape)


def _reach(mechanism: LatticeMechanism, falls: int, d: int) -> IntArray:
    """The reach of noise on each of d axes, in lattice steps, until its likelihood has fallen by so many units."""
    if not isinstance(mechanism, NoiseMechanism) or mechanism.hull.rank == 0:
        return np.zeros(d, dtype=np.int64)
    widths = np.array([float(mechanism.hull.half_width(row)) for row in mechanism.hull.basis])
    return np.ceil(widths * (falls / float(mechanism.epsilon) + 2)).astype(np.int64)


def _side(span: IntArray, laws: int) -> int:
    """The smallest side of boxes that are not too many."""
    most = min(MOST_OUTCOMES, MOST_NUMBERS // laws)
    side = 1
    while math.prod((-(-span // side)).tolist()) >= most:
        side += 1
    return side


class _RunningSums:
    """Sums of the probabilities of noise below every lattice point of a box: of any box they are few look-ups."""

    def __init__(self, low: IntArray, sums: FloatArray) -> None:
        self._low, self._sums = low, sums

    @classmethod
    def of(
        cls, mechanism: NoiseMechanism, least: IntArray, shape: tuple[int, ...], side: int, images: IntArray
    ) -> _RunningSums:
        """Those of the noise that leads from some answers into boxes, ``least`` the least of it."""
        far = _reach(mechanism, _FAR, len(shape))
        span = images.max(axis=0) - images.min(axis=0) + np.array(shape) * side
        low, high = np.minimum(least, -far), np.maximum(least + span, far)
        sizes = tuple((high - low + 1).tolist())
        if math.prod(sizes) > MOST_POINTS:
            fault = f"noise over {' x '.join(map(str, sizes))} lattice steps"
            expected = (
                f"at most {MOST_POINTS:,} together: a larger epsilon, fewer states, or answers on a coarser lattice"
            )
            raise InvalidInput("regions", fault, expected)
        weights = np.exp(_logs(mechanism, low, sizes))
        weights /= weights.sum()
        sums = np.zeros(tuple(size + 1 for size in sizes))
        sums[(slice(1, None),) * len(sizes)] = weights
        for axis in range(len(sizes)):
            np.cumsum(sums, axis=axis, out=sums)
        return cls(low, sums)

    def boxes(self, starts: IntArray, side: int, shape: tuple[int, ...]) -> FloatArray:
        """The probabilities (k, boxes) of the noise in each of the boxes from each of the starts (k, d) on."""
        d = len(shape)
        edges = []
        for axis, count in enumerate(shape):
            at = starts[:, axis, None] - self._low[axis] + side * np.arange(count + 1)
            edges.append(np.clip(at, 0, self._sums.shape[axis] - 1))
        chances = np.zeros((len(starts), *shape))
        for corner in product((0, 1), repeat=d):
            index = []
            for axis in range(d):
                part = edges[axis][:, 1:] if corner[axis] else edges[axis][:, :-1]
                index.append(part.reshape((len(starts), *(1,) * axis, -1, *(1,) * (d - 1 - axis))))
            sign = 1.0 if (d - sum(corner)) % 2 == 0 else -1.0
            chances += sign * self._sums[tuple(index)]
        return np.maximum(chances.reshape(len(starts), -1), 0.0)


def _logs(mechanism: NoiseMechanism, low: IntArray, sizes: tuple[int, ...]) -> FloatArray:
    """The logs of the unnormalised probabilities of all noises in a box of lattice points, less the largest."""
    count, d = math.prod(sizes), len(sizes)
    logs, nothing = np.empty(count), np.zeros(d, dtype=np.int64)
    for first in range(0, count, _TOGETHER):
        numbers = np.arange(first, min(first + _TOGETHER, count))
        points = np.stack(np.unravel_index(numbers, sizes), axis=1) + low
        logs[first : first + len(numbers)] = mechanism.log_likelihood_lattice(nothing, -points)
    return np.asarray((logs - logs.max()).reshape(sizes))


#: Different laws of one release: those of delta-sets are nearly as many as answers.
LAWS_AT_HAND = 256
#: Numbers of the laws that are kept.
_MOST_NUMBERS = 2**26


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers (n,) that were asked, person after person and step after step.

    ``plans`` has a plan of each law, and ``law`` (n,) says under which an answer was drawn. ``z`` (n, d) are lattice
    answers, ``row`` (n,) the rows of the table, ``person`` (n,) numbers into ``people``. ``public``: True if the choice
    of asked rows depends on no answer, so that every person may count alike; with ``by_rows`` every row does.
    """

    plans: list[StepPlan]
    law: IntArray
    z: IntArray
    row: IntArray
    step: IntArray
    person: IntArray
    people: list[str]
    public: bool
    by_rows: bool = False

    def __len__(self) -> int:
        return len(self.law)

    def take(self, which: BoolArray | IntArray) -> Answers:
        """Some of the answers."""
        columns = (self.law[which], self.z[which], self.row[which], self.step[which], self.person[which])
        return Answers(self.plans, *columns, self.people, self.public, self.by_rows)

    def weights(self) -> FloatArray:
        """The weights of answers (n,): persons count alike; answers do if they are ``by_rows`` or not ``public``."""
        if not self.public or self.by_rows:
            return np.full(len(self), 1.0 / max(1, len(self)))
        _, number, counts = np.unique(self.person, return_inverse=True, return_counts=True)
        return np.asarray(1.0 / (counts[number] * len(counts)))

    @property
    def factor(self) -> float:
        """The ratio of a share to that with every person's rows filled up, as `interval_of_rows` has it; else 1."""
        if not self.by_rows:
            return 1.0
        _, counts = np.unique(self.person, return_counts=True)
        return float(len(counts) * counts.max() / len(self))

    def pairs(self, among: IntArray | None = None) -> tuple[Answers, Answers]:
        """Every two answers of one person that follow each other: the first of each (m,), and the second.

        ``among`` : of which answers the first one is; the second may be any.
        """
        first = np.flatnonzero(self.person[1:] == self.person[:-1])
        if among is not None:
            first = first[np.isin(first, among)]
        return self.take(first), self.take(first + 1)


def answers_of(
    rows: ReleasedRows, subjects: Subjects, schedule: str | None = None, progress: Progress | None = None
) -> Answers:
    """The answers of released rows.

    schedule : "planned" or "staggered" where the steps that were asked are public, "paced" where earlier answers chose
        them. Without it rows without an answer are taken to be those of a paced schedule.

    Raises InvalidInput as `smooth` does, for a table without any answer, and for more than 256 different laws.
    """
    smoothers, numbers, by_hash = Smoothers(subjects), dict[str, int](), dict[str, int]()
    plans: list[StepPlan] = []
    most = max(1, min(LAWS_AT_HAND, _MOST_NUMBERS // subjects.setting.space.n_states))
    laws, persons = list[int](), list[int]()
    answered, people = list[IntArray](), list[str]()
    done = 0
    for user, which in rows.by_user():
        published = published_of(rows, user, which, subjects.setting.model)
        made = smoothers.of(user).made_again(published)
        asked = [n for n, plan in enumerate(published.plans) if plan]
        for n in asked:
            hash_ = published.plans[n]
            if hash_ not in by_hash:
                plan = made.at(n)
                number = by_hash[hash_] = numbers.setdefault(law_key(plan), len(plans))
                if number == len(plans):
                    plans.append(plan)
                if len(plans) > most:
                    fault = f"answers of more than {most} different laws"
                    expected = "a release on the support (constraint support): each answer of a delta-set has its own"
                    raise InvalidInput("released", fault, expected)
            laws.append(by_hash[hash_])
        if asked:
            answered.append(which[asked])
            persons += [len(people)] * len(asked)
            people.append(user)
        done += len(which)
        if progress is not None:
            progress(done, len(rows.users))
    if not answered:
        raise InvalidInput("released", "no row with an answer", "at least one answer")
    row = np.concatenate(answered)
    public = schedule in PUBLIC_KINDS or (schedule is None and len(row) == len(rows.users))
    law, person = np.array(laws, dtype=np.int64), np.array(persons, dtype=np.int64)
    return Answers(plans, law, rows.z[row], row, rows.step[row], person, people, public)
