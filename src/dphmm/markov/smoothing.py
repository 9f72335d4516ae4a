"""Posteriors of many people side by side: of every step, given all observations of the person.

People of one model are smoothed together, in floats (`dphmm._kernels.smoothing`). A certificate says for each of them
that floats held everything that counts; those for whom it does not are smoothed in logs, one by one.

Observations come as rows of likelihoods, in blocks: of long sequences the beliefs at the start of each block are kept,
and the others made again on the way back.

Proof: docs/proofs/support.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from dphmm import _kernels
from dphmm.markov.filtering import SETTLED, Belief, ChainObservations, LikelihoodRows, impossible
from dphmm.markov.model import MarkovModel
from dphmm.markov.stochastic import Jump, fixed
from dphmm.types import BoolArray, FloatArray, IntArray

#: Beliefs of so many numbers together are made once and kept.
KEPT = 2**23
#: So few people or so many stand side by side, and none with a gap so long that what moves through it may settle.
_FEWEST, _MOST, _LONG = 8, 32, 1024
#: States within this share of the likeliest are as likely.
_TIE = 1e-12
#: Paths that floats do not hold weigh at most so much beside the others.
DOUBT = 1e-13


class Observed(NamedTuple):
    """Observations of a chain; ``prior`` is the belief before the first of them, which is of step ``t``.

    ``jump``: the jump of this chain, in place of the model's. ``left_out`` (T,): observations that do not count.
    """

    prior: Belief
    observations: ChainObservations
    t: int = 1
    jump: Jump | None = None
    left_out: BoolArray | None = None

    def chain(self, model: MarkovModel) -> MarkovModel:
        """The model with this chain's own jump."""
        return model if self.jump is None else model.with_jump(self.jump.rate, self.jump.into)


class Posteriors(NamedTuple):
    """The states of each step given all observations (T,); the secrets of a model that has some.

    ``mean`` (T, d): of points; ``state``: the likeliest one, of ties within 1e-12 the lowest; ``probability``: its own.
    ``log_likelihood``: of all observations together, up to factors of their rows. Empty unless they were asked for,
    ``marginals`` (T, N), and ``entered`` (N,): the expected number of entries into each state by a jump in the
    last move before an observation.
    """

    mean: FloatArray
    state: IntArray
    probability: FloatArray
    log_likelihood: float
    marginals: FloatArray
    entered: FloatArray


def smooth(
    model: MarkovModel,
    people: Sequence[Observed],
    points: FloatArray,
    *,
    marginals: bool = False,
    entered: bool = False,
    block: int | None = None,
) -> list[Posteriors]:
    """The posteriors of each, which company changes by no more than rounding; ``points`` (S, d) are those of means.

    ``block``: steps held at a time, chosen by default. Raises InvalidInput for an observation that no possible state
    allows.
    """
    by_number = dict[int, Posteriors]()
    for group in _groups(model, people):
        together = _Together(model, [people[number] for number in group], block, logged=False)
        for number, posteriors, held in zip(group, *together.smoothed(points, marginals, entered), strict=True):
            by_number[number] = posteriors
            if not held:
                person = people[number]
                alone = _Together(person.chain(model), [person._replace(jump=None)], block, logged=True)
                by_number[number] = alone.smoothed(points, marginals, entered)[0][0]
    return [by_number[number] for number in range(len(people))]


def marginals(model: MarkovModel, one: Observed) -> FloatArray:
    """The marginals (T, S) of one person."""
    return smooth(model, [one], np.empty((model.n_secrets, 0)), marginals=True)[0].marginals


def _groups(model: MarkovModel, people: Sequence[Observed]) -> Iterator[list[int]]:
    """The numbers of people who stand side by side: of nearly the same length, and in step where the matrix changes."""
    kinds, known = list[tuple[bytes, int, int]](), dict[tuple[int, int], bytes]()
    for number, person in enumerate(people, 1):
        moves = int(person.observations.moves.sum())
        # In step are people whose slots are the same for a power of two of steps that neither passes.
        asked = person.t, 0 if model.slots is None else 1 << moves.bit_length()
        if asked not in known:
            known[asked] = model.slots_of(asked[0] + np.arange(asked[1])).tobytes()
        kinds.append((known[asked], number if person.observations.moves.max() > _LONG else 0, moves))
    group: list[int] = []
    for number in sorted(range(len(people)), key=kinds.__getitem__):
        if group:
            *kind, shortest = kinds[group[0]]
            held = KEPT // (model.n_states * (shortest + 1))
            full = len(group) == min(max(held, _FEWEST), _MOST)
            if full or kinds[number][:2] != tuple(kind) or kinds[number][2] > 2 * shortest + 16:
                yield group
                group = []
        group.append(number)
    yield group


class _Block(NamedTuple):
    """Stops of some people, filtered as `_kernels.smoothing.forward` says.

    ``log_factors`` (T, n): the logs of what their likelihoods were divided by.
    """

    stops: Any
    log_factors: FloatArray
    alpha: FloatArray
    sums: FloatArray


class _Together:
    """Some people side by side, each from its first step on: all stop wherever one of them has an observation.

    ``logged``: a single person, in logs.
    """

    def __init__(self, model: MarkovModel, people: Sequence[Observed], block: int | None, logged: bool) -> None:
        self._model, self._people, self._logged = model, people, logged
        times = [np.cumsum(person.observations.moves) for person in people]
        # All moves to a stop are by one matrix: where a slot ends is a stop, too.
        runs = model.slot_runs(people[0].t + 1, max(int(time[-1]) for time in times))
        ends = [first + moves - 1 - people[0].t for first, moves in runs][:-1]
        self._stops = np.unique(np.concatenate([*times, np.array(ends, dtype=np.int64)]))
        self._moves = np.diff(self._stops, prepend=0)
        #: At which stop each observation of each person is; where its observations begin among those of all; and which
        #: of all (T, n) is at a stop, -1 for none.
        self._at = [np.searchsorted(self._stops, time) for time in times]
        self._begins = np.cumsum([0, *map(len, times)])
        self._places = np.full((len(self._stops), len(people)), -1)
        for k, at in enumerate(self._at):
            self._places[at, k] = self._begins[k] + np.arange(len(at))
        # Of long sequences about the square root.
        size = block or max(KEPT // (model.n_states * len(people)), math.isqrt(len(self._stops)) + 1)
        self._cuts = list(pairwise([*range(0, len(self._stops), size), len(self._stops)]))
        self._jumps = self._all_jumps()
        #: Company would decide when everybody has settled: only somebody alone does.
        alone = logged or (len(people) == 1 and self._moves.max() > _LONG)
        self._settled = SETTLED if alone else -1.0

    def smoothed(self, points: FloatArray, marginals: bool, entered: bool) -> tuple[list[Posteriors], BoolArray]:
        """The posteriors of each person, and whether all that counts was held (n,)."""
        n_states, total, n = self._model.n_states, int(self._begins[-1]), len(self._people)
        secrets = self._model.secrets
        points = points if secrets is None else points[secrets]
        mean, state, probability = np.empty((total, points.shape[1])), np.empty(total, np.int64), np.empty(total)
        whole = np.empty((total if marginals else 0, self._model.n_secrets))
        visits = np.zeros((n_states if entered else 0, n))
        logs, least = np.empty(total), np.full(n, np.inf)
        for places, block, (totals, tops, means, states) in self._blocks_from_the_last(points, visits):
            here = places >= 0
            weights = block.alpha
            if secrets is not None:
                weights = self._model.summed(weights.transpose(1, 0, 2)).transpose(1, 0, 2)
                tops = weights.max(axis=1)
                states = (weights >= (1.0 - _TIE) * tops[:, None]).argmax(axis=1)
            with np.errstate(divide="ignore", invalid="ignore"):
                if marginals:
                    whole[places[here]] = (weights / totals[:, None]).transpose(0, 2, 1)[here]
                mean[places[here]] = (means / totals[:, None]).transpose(0, 2, 1)[here]
                probability[places[here]] = np.minimum(1.0, (tops / totals)[here])
                logs[places[here]] = ((block.sums if self._logged else np.log(block.sums)) + block.log_factors)[here]
            state[places[here]] = states[here]
            least = np.minimum(least, np.where(here, totals, np.inf).min(axis=0))
        # So much is lost at most, as a share of the least total: docs/proofs/support.md.
        lost = 4.0 * n_states * (int(self._stops[-1]) + len(self._stops) + 1) * _kernels.smoothing.LEAST
        posteriors = []
        for k, (a, b) in enumerate(pairwise(self._begins.tolist())):
            of_person = mean[a:b], state[a:b], probability[a:b], float(logs[a:b].sum())
            posteriors.append(Posteriors(*of_person, whole[a:b], visits[:, k]))
        return posteriors, self._logged | (least * DOUBT > lost)

    def _blocks_from_the_last(self, points: FloatArray, visits: FloatArray) -> Iterator[tuple[IntArray, _Block, Any]]:
        """The observations (T, n) at the stops of each block, the block smoothed, and its results."""
        priors = [person.prior for person in self._people]
        row = np.stack([prior.log_probability if self._logged else prior.probability for prior in priors], axis=1)
        scales, stack = np.ones(len(self._people)), []
        for first, last in self._cuts:
            stack.append((first, last, row.copy(), scales.copy()))
            block = self._filtered(first, last, row, scales)
        later, ends = np.zeros_like(row), np.array([at[-1] for at in self._at])
        while stack:
            first, last, row, scales = stack.pop()
            if last < len(self._stops):
                block = self._filtered(first, last, row, scales)
            shape = last - first, len(self._people)
            means, states = np.empty((shape[0], points.shape[1], shape[1])), np.empty(shape, dtype=np.int64)
            said = _kernels.smoothing.Said(np.empty(shape), np.empty(shape), means, states)
            places = self._places[first:last]
            asked = (places >= 0, points, later, block.alpha, said, visits)
            for span in reversed(self._runs(first, last)):
                chain = self._chain(first + span[0], back=True)
                if self._logged:
                    _kernels.smoothing.backward_logs(chain, block.stops, span, block.sums, *asked)
                else:
                    _kernels.smoothing.backward(chain, block.stops, span, ends - first, *asked)
            yield places, block, said

    def _filtered(self, first: int, last: int, row: FloatArray, scales: FloatArray) -> _Block:
        """Filter a block from the belief before it on, which becomes that after it."""
        size, (n_states, n) = last - first, row.shape
        block = _Block(*self._observed(first, last), np.empty((size, n_states, n)), np.empty((size, n)))
        for span in self._runs(first, last):
            chain, made = self._chain(first + span[0], back=False), (block.alpha, block.sums)
            if not self._logged:
                _kernels.smoothing.forward(chain, block.stops, span, row, scales, *made)
            elif (stop := _kernels.smoothing.forward_logs(chain, block.stops, span, row, *made)) >= 0:
                raise impossible(int(np.searchsorted(self._at[0], first + stop)))
        return block

    def _observed(self, first: int, last: int) -> tuple[Any, FloatArray]:
        """The likelihoods at the stops of a block, and the logs (T, n) of their divisors."""
        which = np.full((last - first, len(self._people)), -1)
        tables: dict[int, tuple[int, LikelihoodRows]] = {}
        count = 0
        for k, (person, at) in enumerate(zip(self._people, self._at, strict=True)):
            a, b = np.searchsorted(at, (first, last)).tolist()
            if a < b:
                rows = person.observations.rows(a, b)
                # Several people may have their rows in one array.
                begin, _ = tables.setdefault(id(rows.values), (count, rows))
                count = max(count, begin + len(rows.values))
                never = rows.which < 0 if person.left_out is None else (rows.which < 0) | person.left_out[a:b]
                which[at[a:b] - first, k] = np.where(never, -1, begin + rows.which)
        # The last row, -1, is of those who observed nothing.
        table, factors = np.full((count + 1, self._model.n_states), 0.0 if self._logged else 1.0), np.zeros(count + 1)
        for begin, rows in tables.values():
            of_table = slice(begin, begin + len(rows.values))
            if self._logged:
                table[of_table] = rows.logs
            else:
                _kernels.smoothing.scaled_likelihoods(rows.values, rows.logged, table[of_table], factors[of_table])
        which[which < 0] = count
        return _kernels.smoothing.Stops(table, which, self._moves[first:last]), factors[which]

    def _runs(self, first: int, last: int) -> list[tuple[int, int]]:
        """Spans of the stops first..last, from 0, that are moved to by one matrix."""
        slots = self._model.slots_of(self._people[0].t + self._stops[first:last] - 1)
        return list(pairwise([0, *(np.flatnonzero(np.diff(slots)) + 1).tolist(), last - first]))

    def _chain(self, stop: int, back: bool) -> Any:
        """The chain that moves people to a stop, ahead or back."""
        t = self._people[0].t + int(self._stops[stop])
        moves: Any = self._model.matrix_at(t) if back else self._model.predecessors_at(t)
        jump = self._model.jump if back else None
        data = moves.data if jump is None else fixed(jump.stays * moves.data)
        return _kernels.smoothing.JumpChain(moves.indptr, moves.indices, data, *self._jumps, self._settled)

    def _all_jumps(self) -> tuple[FloatArray, FloatArray]:
        """Everybody's jump beside the matrix, which has the weight that the model's own leaves it."""
        jumps, stays = [person.jump or self._model.jump for person in self._people], np.ones(len(self._people))
        share = np.zeros((self._model.n_states if any(jumps) else 0, len(jumps)))
        for k, jump in enumerate(jumps):
            if jump is not None:
                stays[k] = jump.stays / (1.0 if self._model.jump is None else self._model.jump.stays)
                share[:, k] = jump.share
        return stays, share
