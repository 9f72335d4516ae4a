"""Plans, answers and beliefs of many subjects at one step, in compiled calls, instead of one by one.

A block has a row for each prior. The kernels plan the rows that they can decide for certain; the planner plans all
others. A release takes a plan's hash, cost and record from packed columns; the plan itself is made by the
planner when somebody looks at it, and must have the same hash.

Proofs: docs/proofs/promise.md, docs/proofs/delta-sets.md, docs/proofs/sampling.md.
"""

from __future__ import annotations

import hashlib
import math
import sys
import threading
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dphmm import _kernels
from dphmm._cached import cached_property
from dphmm._kernels.process import cores
from dphmm.accounting.records import PlanRecord, Request
from dphmm.errors import DphmmError
from dphmm.markov.filtering import Belief
from dphmm.markov.model import MarkovModel
from dphmm.mechanisms import AUTO, DiscreteKNorm, NoiseMechanism, Staircase
from dphmm.mechanisms.knorm import MOST_FRACTIONS, MOST_POINTS, TIE, falling_steps
from dphmm.mechanisms.registry import LEAST_GAIN
from dphmm.policy._points import CHAIN_SPAN
from dphmm.policy.constraint import MASS_TOLERANCE, DeltaSet, surrogates_of
from dphmm.samplers.body import GUARD, add_noise, knorm_height, staircase_stride
from dphmm.samplers.rows import PLANAR_SPAN
from dphmm.samplers.uniform import OFFSET_BITS, TAIL, WIDTH_BITS, WordReader
from dphmm.sensitivity.exact_hull import PLANAR_SPAN as SUMS_SPAN
from dphmm.sensitivity.hull import whole_span, written_span
from dphmm.session.plan import StepPlan, description_of, exact_room, in_json, record_of
from dphmm.session.planner import Planner
from dphmm.types import Bits, BoolArray, FloatArray, IntArray, Predecessors, WordArray

if TYPE_CHECKING:
    from dphmm._kernels.blocks import Family, LatticeLaws, MassShare, MovedRows, PlanarAnswers, PlannedRows

#: Hulls with more pairs of facets, and laws with more levels, are the planner's.
MOST_FACETS, MOST_LEVELS = 32, 512
#: Numbers of states have 16 bits in a block: kernels are compiled for one type.
_MOST_STATES = 2**15
#: Laws that are kept; the next ones begin anew.
_MOST_LAWS = 1024
#: Of a model whose states are their own secrets.
_NO_SECRETS: IntArray = np.zeros(0, dtype=np.int64)
_NO_SECRETS.setflags(write=False)
#: Fewer numbers of all rows together are not worth a thread; a law takes as long as so many.
_LITTLE, _OF_A_LAW = 2**12, 2**9


class BlockPlan(StepPlan):
    """A plan of a block: its record is known; whatever else is asked is of the plan that the planner makes."""

    def __init__(self, planner: Planner, inputs: bytes, hull: str, law: _Law, cost: Fraction, packed: _Packed) -> None:
        record = record_of(inputs, hull, description_of(cost, law.text), packed.plan_set, packed.n_states)
        vars(self).update(
            _planner=planner,
            _packed=packed,
            epsilon=law.epsilon,
            lattice=planner.space.lattice,
            cost=cost,
            constant=False,
            inputs=inputs,
            packed=packed.plan_set,
            chosen="",
            record=record,
            request=law.request.under(record, cost),
            hash=record.hash,
            mechanism_name=law.name,
        )

    @cached_property
    def _made(self) -> StepPlan:
        made: StepPlan = self._planner.plan(*map(self._packed.states, self._packed[:2]))
        if made.hash != self.hash:
            raise DphmmError(f"plan {self.hash[:12]}: the planner makes {made.hash[:12]} of the same inputs")
        return made

    def __getattr__(self, name: str) -> Any:
        # Only what is not known already is asked here.
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._made, name)


class _Packed(NamedTuple):
    """Support and plan set, a bit for each state."""

    support: bytes
    plan_set: bytes
    n_states: int

    def states(self, packed: bytes) -> BoolArray:
        return np.unpackbits(np.frombuffer(packed, np.uint8), count=self.n_states).astype(np.bool_)


class _Law(NamedTuple):
    """A law as records name it; ``graded``: its loss grows with the norm, not with the steps.

    ``request``: a release by it, whose plan and cost stand for nothing. ``losses``: by steps, each made once.
    """

    epsilon: Fraction
    name: str
    text: str
    graded: bool
    request: Request
    losses: dict[int, Fraction]

    def loss_of_norm(self, above: int, below: int) -> Fraction:
        if self.graded:
            return Fraction(self.epsilon.numerator * above, self.epsilon.denominator * below)
        steps = -(-above // below)
        loss = self.losses.get(steps)
        if loss is None:
            loss = self.losses[steps] = self.epsilon * steps
        return loss


class Blocks:
    """Makes blocks for one planner, whose policy, space and options allow it. Threads may share one."""

    def __init__(self, planner: Planner, grid: PlanarAnswers, delta: Fraction) -> None:
        from dphmm._kernels.blocks import MassShare

        self.planner = planner
        self.grid = grid
        share = (delta.denominator - delta.numerator) / delta.denominator
        self._share: MassShare = MassShare(share - MASS_TOLERANCE, float(delta), MASS_TOLERANCE)
        self._lock = threading.Lock()
        self._laws = empty_laws(_MOST_LAWS, self._levels)
        self._number_of: dict[bytes, int] = {}
        self._known: dict[tuple[int, int, int], _Law] = {}

    @classmethod
    def of(cls, planner: Planner) -> Blocks | None:
        """None where every plan is the planner's."""
        from dphmm._kernels.blocks import PlanarAnswers

        options, space = planner.options, planner.space
        delta = options.constraint
        noise = options.mechanism in (AUTO, DiscreteKNorm.name, Staircase.name)
        if (
            not noise
            or not isinstance(delta, DeltaSet)
            or not delta.exact
            or space.has_labels
            or space.n_states > _MOST_STATES
            or sys.byteorder != "little"
        ):
            return None
        cells, around = planner.policy.planar_cells(space.lattice), surrogates_of(space)
        if cells is None or around.places is None:
            return None
        (wx, wy), (width, height) = around.metric.weights, around.sides
        steps = cells.linear, cells.cell_of, cells.order, cells.deltas, cells.table, cells.bands
        bounds = _kernels.points.bounds(space.lattice)
        grid = PlanarAnswers(space.lattice, *bounds, *around.places, (wx, wy), (width, height), *steps, CHAIN_SPAN // 2)
        return cls(planner, grid, delta.exact)

    @cached_property
    def family(self) -> Family:
        """The parameters that the laws of all hulls have in common."""
        from dphmm._kernels.blocks import BETTER, KNORM, STAIRCASE, Family

        options, epsilon = self.planner.options, self.planner.options.epsilon
        stride, height = staircase_stride(epsilon), knorm_height(epsilon)
        return Family(
            chosen={AUTO: BETTER, DiscreteKNorm.name: KNORM, Staircase.name: STAIRCASE}[options.mechanism],
            pitch=np.ascontiguousarray(self.planner.space.frame.pitch),
            epsilon=float(epsilon),
            ratio=math.exp(-float(epsilon)),
            complement=-math.expm1(-float(epsilon)),
            stride=stride,
            up=height.numerator,
            down=height.denominator,
            rates=(float(epsilon * stride), float(epsilon * height)),
            most_points=MOST_POINTS,
            most_fractions=MOST_FRACTIONS,
            gain=LEAST_GAIN,
            tie=TIE,
            spans=(SUMS_SPAN, PLANAR_SPAN),
            offset_bits=OFFSET_BITS,
            width_bits=WIDTH_BITS,
            tail=TAIL,
            guard=GUARD,
        )

    @property
    def _levels(self) -> int:
        """Room for the levels of a law: more than it has at these rates, as a rule, and little memory."""
        return min(MOST_LEVELS, 16 + math.ceil(50 / min(self.family.rates)))

    def constrain(self, priors: Sequence[Belief]) -> DeltaSets:
        """The δ-sets of different priors whose latent beliefs floats hold."""
        from dphmm._kernels.blocks import constrain_rows

        rows, supports = stacked([prior.row for prior in priors]), stacked([prior.support for prior in priors])
        n, states = rows.shape
        plan, decided = np.zeros((n, states), dtype=np.bool_), np.zeros(n, dtype=np.bool_)
        arrays = rows, supports, self._share, plan, decided
        in_parts(n, states, lambda first, last: constrain_rows(first, last, *arrays))
        latent, possible = rows, supports
        if priors[0].latent is not priors[0]:
            latent = stacked([prior.latent.row for prior in priors])
            possible = stacked([prior.latent.support for prior in priors])
        return DeltaSets(self, latent, possible, supports, plan, decided)

    def plan(self, sets: DeltaSets) -> Block:
        """The plans of δ-sets, None where the planner has to look at one."""
        from dphmm._kernels.blocks import PlannedRows, plan_rows

        n, states = sets.plan.shape
        planned: PlannedRows = PlannedRows(
            plan=sets.plan,
            surrogate=np.empty((n, states), dtype=np.int16),
            lowest=np.zeros(n, dtype=np.int64),
            sizes=np.zeros(n, dtype=np.int64),
            facets=np.empty((n, 3 * MOST_FACETS), dtype=np.int64),
            vertices=np.empty((n, 2 * MOST_FACETS, 2), dtype=np.int64),
            norm=np.empty((n, 2), dtype=np.int64),
        )
        arrays = sets.supports, sets.decided, self.grid, planned
        in_parts(n, states, lambda first, last: plan_rows(first, last, *arrays))
        digests = [self._digest(planned, row) for row in range(n)]
        with self._lock:
            laws, numbers = self._lawful(digests, planned)
        plans = self._plans(sets.supports, planned, digests, laws, numbers)
        return Block(self, sets.priors, sets.possible, sets.supports, planned, laws, numbers, plans)

    def _digest(self, found: PlannedRows, row: int) -> bytes:
        """The SHA-256 of a hull, b"" where there is none."""
        size = int(found.sizes[row])
        if not size:
            return b""
        digest = self._prefixes[size].copy()
        digest.update(found.facets[row, : 3 * size].data)
        return bytes(digest.digest())

    @cached_property
    def _prefixes(self) -> list[Any]:
        """The hashes of the first bytes of a hull's digest, by number of facets."""
        pitch = self.planner.space.frame.pitch
        return [hashlib.sha256(written_span(pitch, *whole_span(2), size)) for size in range(MOST_FACETS + 1)]

    def _lawful(self, digests: list[bytes], found: PlannedRows) -> tuple[LatticeLaws, IntArray]:
        """Laws, and of each row the number of the one of its hull, -1 for none."""
        from dphmm._kernels.blocks import law_rows

        fresh = {digest: row for row, digest in enumerate(digests) if digest and digest not in self._number_of}
        if len(self._number_of) + len(fresh) > len(self._laws.which):
            # Blocks that are still in use keep the laws that they were given.
            fresh = {digest: row for row, digest in enumerate(digests) if digest}
            self._laws, self._number_of = empty_laws(max(_MOST_LAWS, 2 * len(fresh)), self._levels), {}
        rows = np.array(list(fresh.values()), dtype=np.int64)
        numbers = len(self._number_of) + np.arange(len(rows))
        laws, family = self._laws, self.family
        in_parts(len(rows), _OF_A_LAW, lambda first, last: law_rows(first, last, rows, numbers, found, family, laws))
        self._number_of |= dict(zip(fresh, numbers.tolist(), strict=True))
        return laws, np.array([self._number_of.get(digest, -1) for digest in digests], dtype=np.int64)

    def _plans(
        self, supports: BoolArray, found: PlannedRows, digests: list[bytes], laws: LatticeLaws, numbers: IntArray
    ) -> list[BlockPlan | None]:
        n = supports.shape[1]
        support_bits, plan_bits = (np.packbits(mask, axis=1).tobytes() for mask in (supports, found.plan))
        size = (n + 7) // 8
        kinds = zip(laws.which[numbers].tolist(), laws.offset[numbers].tolist(), strict=True)
        rows = zip(digests, numbers.tolist(), kinds, found.norm.tolist(), strict=True)
        plans: list[BlockPlan | None] = []
        for row, (digest, number, (which, offset), norm) in enumerate(rows):
            if number < 0 or which < 0:
                plans.append(None)
                continue
            law = self._law(which, *offset)
            part = slice(row * size, (row + 1) * size)
            bits = _Packed(support_bits[part], plan_bits[part], n)
            inputs = self.planner.inputs(bits.support, bits.plan_set, found.surrogate[row].data)
            plans.append(BlockPlan(self.planner, inputs, digest.hex(), law, law.loss_of_norm(*norm), bits))
        return plans

    def _law(self, which: int, above: int, below: int) -> _Law:
        from dphmm._kernels.blocks import KNORM

        key = which, above, below
        if key not in self._known:
            epsilon, graded = self.planner.options.epsilon, which == KNORM
            name = DiscreteKNorm.name if graded else Staircase.name
            offset = {} if graded else {"offset": str(Fraction(above, below))}
            text = in_json({"name": name, "epsilon": str(epsilon)} | offset)
            nothing = PlanRecord("-", b"-", 1, "")
            request = Request("", "", 1, "release", epsilon, Fraction(0), nothing, True, False)
            self._known[key] = _Law(epsilon, name, text, graded, request, {})
        return self._known[key]


class DeltaSets(NamedTuple):
    """The δ-sets ``plan`` (n, S) of priors and ``supports`` (n, S), as far as they are ``decided`` (n,).

    ``priors`` and ``possible`` (n, N) are of the model's own states, which move.
    """

    blocks: Blocks
    priors: FloatArray
    possible: BoolArray
    supports: BoolArray
    plan: BoolArray
    decided: BoolArray


class Block(NamedTuple):
    """The rows of `DeltaSets`, planned; ``numbers`` (n,) of their laws; the plans, None for others'."""

    blocks: Blocks
    priors: FloatArray
    possible: BoolArray
    supports: BoolArray
    planned: PlannedRows
    laws: LatticeLaws
    numbers: IntArray
    plans: list[BlockPlan | None]

    def images(self, rows: IntArray, states: IntArray) -> tuple[IntArray, BoolArray]:
        """The lattice answers (m, 2) before noise for states (m,) under the plans of rows (m,); -1 is a place outside.

        Also a mask of the states that are in no plan set.
        """
        known = states >= 0
        number = np.where(known, states, self.planned.lowest[rows])
        drifted = ~(known & self.planned.plan[rows, number])
        return self.blocks.grid.lattice[self.planned.surrogate[rows, number]], drifted

    def answer(self, rows: IntArray, images: IntArray, bits: Bits) -> IntArray:
        """Lattice answers (m, 2) under the plans of rows (m,), each with noise of its own, drawn row by row."""
        from dphmm._kernels.blocks import KNORM, draw_rows

        family, numbers, m = self.blocks.family, self.numbers[rows], len(rows)
        # An attempt reads a word for the level, one for each coordinate, and perhaps one for the last acceptance.
        attempt = 3 + ((self.laws.which[numbers] == KNORM) | (family.stride > 1))
        needed = np.append(np.cumsum(attempt[::-1])[::-1], 0)
        noise = np.empty((m, 2), dtype=np.int64)
        words, row = np.empty(0, dtype=np.uint64), 0
        while row < m:
            # Every row that is left takes at least one attempt, so no word is fetched that is not read.
            missing = int(needed[row]) - len(words)
            if missing > 0:
                words = np.concatenate([words, bits.uint64(missing)])
            used, row, left_open = draw_rows(words, row, numbers, self.laws, family, noise)
            words = words[used:]
            if left_open:
                rest = _Rest(words, bits)
                plan = self.plans[int(rows[row])]
                assert plan is not None and isinstance(plan.mechanism, NoiseMechanism)
                noise[row] = plan.mechanism.noise(1, rest)[0]
                words, row = rest.left(), row + 1
        return add_noise(images, noise)

    def move(self, rows: IntArray, z: IntArray, model: MarkovModel, t: IntArray) -> MovedBeliefs:
        """The beliefs of rows (m,) given answers (m, 2), and one transition later, as far as floats serve.

        They are about the model's own states. ``t`` (m,): the time that the transition of each leads to.
        """
        from dphmm._kernels.blocks import Falls, MovedRows, move_rows

        blocks, m, n = self.blocks, len(rows), self.priors.shape[1]
        secrets = _NO_SECRETS if model.secrets is None else model.secrets
        falls = Falls(*falling_steps(blocks.family.epsilon), exact_room())
        out: MovedRows = MovedRows(
            posterior=np.empty((m, n)),
            remaining=np.empty((m, n), dtype=np.bool_),
            prior=np.empty((m, n)),
            reached=np.empty((m, n), dtype=np.bool_),
            done=np.empty(m, dtype=np.int64),
        )
        beliefs = self.priors, self.possible, secrets, self.supports
        # Rows of one slot have one matrix, and are moved together.
        slots = model.slots_of(t - 1)
        order = np.argsort(slots, kind="stable")
        arrays = rows[order], *beliefs, np.ascontiguousarray(z[order]), self.planned, self.numbers, self.laws
        public = blocks.family, falls, blocks.grid

        def move(begin: int, end: int, matrix: Predecessors) -> None:
            arguments = *arrays, *public, matrix, out
            in_parts(end - begin, n, lambda first, last: move_rows(begin + first, begin + last, *arguments))

        for a, b in pairwise([*np.flatnonzero(np.diff(slots[order], prepend=-1)).tolist(), m]):
            move(a, b, model.predecessors_at(t.item(order[a])))
        moved = MovedBeliefs(*out)
        return moved.in_order(np.argsort(order)) if slots.any() else moved


class Blocked(NamedTuple):
    """The places in a block of a round's plans (p,), and of the beliefs before its told requests (m,); -1: none.

    Two beliefs may have one plan.
    """

    block: Block
    plans: IntArray
    beliefs: IntArray


class MovedBeliefs(NamedTuple):
    """As `_kernels.blocks.MovedRows`."""

    posterior: FloatArray
    remaining: BoolArray
    prior: FloatArray
    reached: BoolArray
    done: IntArray

    def in_order(self, places: IntArray) -> MovedBeliefs:
        """The rows at these places (m,)."""
        rows = self.posterior[places], self.remaining[places], self.prior[places], self.reached[places]
        return MovedBeliefs(*rows, self.done[places])

    def beliefs(self, at: int) -> tuple[Belief | None, Belief | None]:
        """The belief of a row given its answer, and a transition later; None for what floats do not serve."""
        done = self.done[at]
        now = Belief.of_row(self.posterior[at], self.remaining[at]) if done else None
        return now, Belief.of_row(self.prior[at], self.reached[at]) if done == 2 else None


class _Rest:
    """Words that have been fetched, and then more."""

    def __init__(self, words: WordArray, bits: Bits) -> None:
        self._reader = WordReader(bits, words)

    def uint64(self, n: int) -> WordArray:
        return np.array([self._reader.word() for _ in range(n)], dtype=np.uint64)

    def left(self) -> WordArray:
        return self._reader.left()


def stacked(rows: Sequence[Any]) -> Any:
    """Rows (n, N) as one array; without a copy where they are the rows of one in order, as a block before left them."""
    whole, size = rows[0].base, len(rows[0])
    if whole is not None and whole.shape == (len(rows), size) and all(row.base is whole for row in rows):
        begins = [row.__array_interface__["data"][0] for row in rows]
        step = whole.strides[0]
        if whole.flags.c_contiguous and begins == list(range(begins[0], begins[0] + len(rows) * step, step)):
            return whole
    return np.array(rows)


def empty_laws(most: int, levels: int) -> LatticeLaws:
    """Room for so many laws of so many levels."""
    from dphmm._kernels.blocks import LatticeLaws

    def integers(*shape: int) -> IntArray:
        return np.zeros((most, *shape), dtype=np.int64)

    return LatticeLaws(
        which=integers(),
        offset=integers(2),
        levels=integers(),
        low=np.empty((most, levels)),
        high=np.empty((most, levels)),
        half_widths=np.empty((most, levels, 2), dtype=np.int64),
        sizes=integers(),
        normals=integers(MOST_FACETS, 2),
        offsets=integers(MOST_FACETS),
        allowances=integers(MOST_FACETS),
        embedding=integers(2, 2),
    )


def in_parts(n: int, states: int, work: Callable[[int, int], None]) -> None:
    """Do the rows 0..n of so many numbers each: on all cores where they are many."""
    parts = max(1, min(cores(), n, n * states // _LITTLE))
    cuts = [n * part // parts for part in range(parts + 1)]
    if parts == 1:
        work(0, n)
        return
    failed: list[BaseException] = []

    def attempt(first: int, last: int) -> None:
        try:
            work(first, last)
        except BaseException as error:
            failed.append(error)

    # Made here and ended here: threads do not live on in a forked child. A pool takes half as long again.
    threads = [threading.Thread(target=attempt, args=cut) for cut in pairwise(cuts[1:])]
    for thread in threads:
        thread.start()
    attempt(cuts[0], cuts[1])
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
