"""`black_box`: a lower confidence bound on ε from outputs alone, for our own samplers and for others.

For each pair an event is learned on one half of the draws and judged on the other, in both directions, by
Clopper-Pearson bounds whose error probabilities add up to alpha over all pairs. A mechanism that keeps ε is convicted
with probability at most alpha, whatever it is; one that breaks it is convicted if the draws show an event that does.

The bound is that of an event on which two samples differ, from its counts and a confidence.
The event is learned from draws of both samples, so that it can be judged on fresh ones. The draws of both are cut into
cells of about equal numbers, by medians along one feature after another; an event is a union of the cells in which the
first is commonest, the union whose bound on ε is largest on the training draws. Features are the coordinates, and, for
numbers that are not whole, the place of the last bit of each: a float sum keeps bits of its terms
(docs/theory.md 5). Bounds are those of Clopper and Pearson: they assume independent draws and nothing else.

Proof: docs/proofs/black-box-audit.md.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dphmm._checks import exact_epsilon
from dphmm._notebook import html_lines
from dphmm.audit.pairs import law_of, reached, required_pairs
from dphmm.errors import InvalidInput
from dphmm.policy.graph import PolicyGraph
from dphmm.samplers.entropy import default_bits
from dphmm.session.answer import answer_under
from dphmm.session.plan import StepPlan
from dphmm.states.lattice import Lattice
from dphmm.states.space import StateSpace
from dphmm.storage.public_tables import read_numbers
from dphmm.types import Bits, BoolArray, Exact, FloatArray, IntArray

#: Draws of one answer: a function of how many, an array (n, d), or a file (.npy, .parquet, .csv) of numbers.
Source: TypeAlias = Callable[[int], Any] | Any
#: The violation that an acquittal would have seen: a loss of so many ε on an event of this probability.
TIMES, PROBABILITY, POWER = 2, 0.1, 0.99
#: With fewer draws no event is learned; the power above needs many more.
_FEWEST = 16
#: Parts of a smaller one would be no floats.
_LEAST_ALPHA = 1e-300


@dataclass(frozen=True)
class PairBound:
    """The bounds of one pair: ``forward`` on log Pr(E | first) / Pr(E | second), ``backward`` the other way round."""

    name: str
    forward: float
    backward: float

    @property
    def lower(self) -> float:
        """The larger of the two."""
        return max(self.forward, self.backward)


@dataclass(frozen=True)
class BlackBoxVerdict:
    """The verdict of samples on a mechanism, pair by pair.

    ``lower``: at confidence 1 - alpha some pair loses at least this. ``decided`` is False where too few draws were
    given to convict a loss of 2ε on an event of probability 1/10 with probability .99; ``needed`` a side would do, or
    are None where no number that can be drawn would. Without ``pairs`` nothing had to be kept apart.
    """

    epsilon: float
    alpha: float
    draws: int
    needed: int | None
    pairs: tuple[PairBound, ...]
    findings: tuple[str, ...]

    @property
    def lower(self) -> float:
        """The largest lower bound on a loss; at least 0, which is always one."""
        return max((pair.lower for pair in self.pairs if pair.lower > 0), default=0.0)

    @property
    def convicted(self) -> bool:
        """True if the samples show a loss above ε, or outputs that no lattice mechanism gives."""
        return bool(self.findings)

    @property
    def decided(self) -> bool:
        """True if the samples convict, or are enough for an acquittal to count."""
        return self.convicted or (self.needed is not None and self.draws >= self.needed)

    @property
    def lines(self) -> list[str]:
        """The verdict in prose."""
        bound = f"loses at least {self.lower:.4g} (confidence {1 - self.alpha:.9g}, {self.draws} draws a side)"
        if self.convicted:
            return [f"samples: CONVICTED; some pair {bound}", *(f"  {finding}" for finding in self.findings)]
        if not self.pairs:
            return ["samples: nothing to look at, for no two states must be kept apart here"]
        if self.needed is None:
            return [f"samples: undecided, needs n > {MOST_SAMPLES} draws a side: too many for any file to decide"]
        if not self.decided:
            return [f"samples: undecided, needs n = {self.needed} draws a side; there are {self.draws}"]
        return [
            f"samples: no loss above epsilon {self.epsilon:g} was found; some pair {bound}",
            f"  a loss of {TIMES} epsilon on a learned event of probability {PROBABILITY} would have been convicted "
            f"with probability {POWER}; a smaller or rarer one may not be",
        ]

    def _repr_html_(self) -> str:
        return html_lines(self.lines)

    def document(self) -> dict[str, Any]:
        """The verdict for machines."""
        return {
            "convicted": self.convicted,
            "decided": self.decided,
            "lower": self.lower,
            "epsilon": self.epsilon,
            "alpha": self.alpha,
            "draws": self.draws,
            "needed": self.needed,
            "findings": list(self.findings),
            "pairs": [
                {"name": p.name, "forward": _known(p.forward), "backward": _known(p.backward)} for p in self.pairs
            ],
        }


def _known(bound: float) -> float | None:
    """A finite bound, else None: JSON has no infinity."""
    return bound if math.isfinite(bound) else None


def black_box(
    pairs: Sequence[tuple[Source, Source]],
    epsilon: Exact,
    *,
    names: Sequence[str] | None = None,
    alpha: float = 1e-6,
    draws: int = 100_000,
    lattice: Lattice | None = None,
) -> BlackBoxVerdict:
    """Judge a mechanism by its samples.

    Parameters
    ----------
    pairs : for each pair of states that must not be told apart, draws of the one and of the other: a function of how
        many, an array (n, d) or (n,), or a file of numbers (.npy, .parquet, .csv). Draws must be independent.
    epsilon : the largest permitted loss of each pair.
    alpha : the probability, over all pairs and both directions, of convicting a mechanism that keeps epsilon.
    draws : draws of each answer that a function is asked for; half of them teach, half of them judge.
    lattice : the lattice of all outputs; one off it convicts, because the digits of a float show the terms of its sum.

    Few draws, or none, are no error: the verdict is undecided, and gives the number that would do.

    Raises InvalidInput for no pairs, draws of different dimensions, and numbers that are not finite.
    """
    promised = float(exact_epsilon(epsilon))
    if not pairs:
        raise InvalidInput("pairs", "none", "at least one pair of sources of draws")
    if not _LEAST_ALPHA <= alpha < 1:
        raise InvalidInput("alpha", alpha, f"a probability above 0 and below 1, {_LEAST_ALPHA:g} or more")
    share = alpha / (2 * len(pairs))
    bounds, findings, fewest = [], [], None
    for number, (first, second) in enumerate(pairs):
        name = names[number] if names is not None else f"pair {number}"
        sample, other = taken(first, draws, f"{name}, first"), taken(second, draws, f"{name}, second")
        if sample.shape[1] != other.shape[1]:
            raise InvalidInput(name, f"draws of {sample.shape[1]} and of {other.shape[1]} dimensions", "one dimension")
        fewest = min(len(sample), len(other), *([] if fewest is None else [fewest]))
        bound = _bound(name, sample, other, share)
        bounds.append(bound)
        if bound.lower > promised:
            findings.append(f"{name}: at least {bound.lower:.4g} is lost, more than epsilon {promised:g}")
        off = 0 if lattice is None else sum(int((~is_on_lattice(x, lattice)).sum()) for x in (sample, other))
        if off:
            findings.append(f"{name}: {off} outputs are no lattice points: floats, whose last digits tell")
    judged = samples_needed(promised, TIMES * promised, PROBABILITY, share, POWER)
    assert fewest is not None
    # Half of them teach.
    needed = None if judged is None else 2 * judged
    return BlackBoxVerdict(promised, alpha, fewest, needed, tuple(bounds), tuple(findings))


def is_on_lattice(samples: Any, lattice: Lattice) -> Any:
    """True where an output (n, d) is exactly origin + pitch·integers, bit for bit as a release writes it.

    Raises InvalidInput for another dimension, and for numbers that are not finite.
    """
    points = _rows(samples, "samples")
    if points.shape[1] != lattice.dimension:
        raise InvalidInput("samples", f"{points.shape[1]} dimensions", f"the lattice's {lattice.dimension}")
    nearest = np.rint((points - lattice.origin) / lattice.pitch)
    return np.asarray(np.all(lattice.origin + nearest * lattice.pitch == points, axis=1))


def taken(source: Source, n: int, name: str) -> FloatArray:
    """The draws (n, d) of a source."""
    if callable(source):
        return _rows(source(n), name)
    if isinstance(source, (str, os.PathLike)):
        return _rows(read_numbers(source), name)
    return _rows(source, name)


def _bound(name: str, one: FloatArray, other: FloatArray, share: float) -> PairBound:
    """Learn on the first halves, judge on the second ones: events are fixed before their draws are looked at."""
    if min(len(one), len(other)) < _FEWEST:
        return PairBound(name, -math.inf, -math.inf)
    (learned_one, judged_one), (learned_other, judged_other) = (in_halves(draws) for draws in (one, other))
    ahead, back = learn(learned_one, learned_other, share)
    n1, n0 = len(judged_one), len(judged_other)
    forward = [int(ahead.contains(draws).sum()) for draws in (judged_one, judged_other)]
    backward = [int(back.contains(draws).sum()) for draws in (judged_other, judged_one)]
    return PairBound(
        name,
        float(epsilon_below(forward[0], n1, forward[1], n0, share)),
        float(epsilon_below(backward[0], n0, backward[1], n1, share)),
    )


def _rows(samples: Any, name: str) -> FloatArray:
    try:
        numbers = np.asarray(samples, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(name, type(samples).__name__, "numbers (n, d)") from None
    rows = numbers[:, None] if numbers.ndim == 1 else numbers
    if rows.ndim != 2 or not rows.shape[1]:
        raise InvalidInput(name, f"an array of shape {numbers.shape}", "draws (n, d)")
    if not np.isfinite(rows).all():
        raise InvalidInput(name, "NaN or an infinity", "finite numbers")
    return rows


def sample_plan(
    plan: StepPlan,
    policy: PolicyGraph,
    space: StateSpace,
    *,
    pairs: list[tuple[int, int]] | None = None,
    most: int = 3,
    draws: int = 100_000,
    alpha: float = 1e-6,
    bits: Bits | None = None,
) -> BlackBoxVerdict:
    """Judge a plan by its samples, on the required pairs that reach farthest in its bodies, or on ``pairs``.

    It looks at the sampler itself, which `verify` does not. Nothing is released: the states drawn for are those of the
    pairs, whoever is where. ``bits``: None for the system's.
    """
    words = default_bits(bits)
    chosen = farthest_pairs(plan, policy, most) if pairs is None else pairs
    if not chosen:
        return BlackBoxVerdict(float(plan.epsilon), alpha, draws, 0, (), ())

    def drawn(state: int) -> Callable[[int], FloatArray]:
        def draw(n: int) -> FloatArray:
            z, _ = answer_under(plan, np.full(n, state, dtype=np.int64), words)
            return np.asarray(space.frame.to_answers(z))

        return draw

    sources = [(drawn(a), drawn(b)) for a, b in chosen]
    names = [f"states {a} and {b}" for a, b in chosen]
    return black_box(sources, plan.epsilon, names=names, alpha=alpha, draws=draws, lattice=space.frame)


def farthest_pairs(plan: StepPlan, policy: PolicyGraph, most: int) -> list[tuple[int, int]]:
    """At most ``most`` required pairs of largest norm, facet by facet."""
    norms: dict[tuple[int, int], float] = {}
    for a, b, far in reached(law_of(plan.mechanism), required_pairs(policy, plan), plan.image).farthest():
        norms[a, b] = max(norms.get((a, b), 0.0), far)
    return sorted(norms, key=lambda pair: (-norms[pair], pair))[:most]


#: Inverses of the beta function are trusted to this, and bounds moved outwards by it.
_RELATIVE = 1e-9
#: More draws than these nobody has.
MOST_SAMPLES = 2**50


def lowest(successes: ArrayLike, n: int, alpha: float) -> FloatArray:
    """Clopper-Pearson: a true probability lies below this with probability at most alpha, over the draws."""
    from scipy.special import betaincinv

    k = np.asarray(successes, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        bound = np.where(k > 0, betaincinv(np.maximum(k, 1), n - np.maximum(k, 1) + 1, alpha), 0.0)
    return np.asarray(bound * (1 - _RELATIVE))


def highest(successes: ArrayLike, n: int, alpha: float) -> FloatArray:
    """Clopper-Pearson: a true probability lies above this with probability at most alpha, over the draws."""
    from scipy.special import betainccinv

    k = np.asarray(successes, dtype=np.float64)
    inner = np.minimum(k, n - 1)
    bound = np.where(k < n, betainccinv(inner + 1, n - inner, alpha), 1.0)
    return np.asarray(np.minimum(1.0, bound * (1 + _RELATIVE)))


def epsilon_below(k1: ArrayLike, n1: int, k0: ArrayLike, n0: int, alpha: float) -> FloatArray:
    """A lower bound on log Pr(E | first) / Pr(E | second), wrong with probability at most alpha.

    ``k1`` of ``n1`` draws of the first were in the event, ``k0`` of ``n0`` of the second. -inf where nothing is known.
    """
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(lowest(k1, n1, alpha / 2)) - np.log(highest(k0, n0, alpha / 2)))


def fewest_that_could_convict(epsilon: float, alpha: float) -> int:
    """Below so many draws a side the bound stays at most epsilon whatever comes out.

    The best outcome, all n of the one and none of the other, gives a^(1/n) / (1 - a^(1/n)) with a = alpha / 2. For an
    epsilon of 700 at most: e^epsilon is a float.
    """
    # log(1 + e^-x), small for a large epsilon.
    return math.floor(math.log(2 / alpha) / math.log1p(math.exp(-epsilon))) + 1


def samples_needed(epsilon: float, loss: float, probability: float, alpha: float, power: float = 0.99) -> int | None:
    """Draws a side at which an event of this probability, lost by ``loss`` > epsilon, convicts with this power.

    None where that takes more than MOST_SAMPLES.
    """
    # At least log(2/alpha)·e^epsilon draws, of which an exponential may be beyond all floats.
    if math.log(math.log(2 / alpha)) + epsilon > math.log(MOST_SAMPLES):
        return None
    low = fewest_that_could_convict(epsilon, alpha)
    high = low
    while not _convicts(high, epsilon, loss, probability, alpha, power):
        low, high = high, 2 * high
        if high > MOST_SAMPLES:
            return None
    while low < high - 1:
        middle = (low + high) // 2
        if _convicts(middle, epsilon, loss, probability, alpha, power):
            high = middle
        else:
            low = middle
    return high


def _convicts(n: int, epsilon: float, loss: float, probability: float, alpha: float, power: float) -> bool:
    """True if even the unlucky counts, each exceeded with probability (1 - power)/2, pass the bound."""
    from scipy.stats import binom

    miss = (1 - power) / 2
    k1 = binom.ppf(miss, n, probability)
    k0 = binom.isf(miss, n, probability * math.exp(-loss))
    return bool(epsilon_below(k1, n, k0, n, alpha) > epsilon)


#: Draws of both together that a cell holds on average, levels of cutting, and draws that cells are made from.
_CELL = 48
_DEEPEST = 12
_MOST_TRAINED = 2**17
#: The exponent of the last bit of 0: coarser than any other.
_ZERO = 64.0


@dataclass(frozen=True, eq=False)
class Event:
    """A union of cells; ``thresholds`` and ``axes`` are of the inner nodes of a binary tree, level by level."""

    axes: IntArray
    thresholds: FloatArray
    depth: int
    chosen: BoolArray
    fine: bool

    def contains(self, draws: FloatArray) -> BoolArray:
        """True where a draw (n, d) is in the event."""
        return np.asarray(self.chosen[_cells(features(draws, self.fine), self.axes, self.thresholds, self.depth)])


def learn(first: FloatArray, second: FloatArray, alpha: float) -> tuple[Event, Event]:
    """An event that the first makes commoner, and one that the second does.

    One half of the draws makes and orders the cells, the other says how many of them, and how fine, are best.
    """
    fine = not (_whole(first) and _whole(second))
    halves = [in_halves(draws) for draws in (first, second)]
    making = [features(half[:_MOST_TRAINED], fine) for half, _ in halves]
    depth = max(1, min(_DEEPEST, int(math.log2(max(2.0, sum(map(len, making)) / _CELL)))))
    axes, thresholds = _tree(np.vstack(making), depth)

    def counts(draws: FloatArray) -> IntArray:
        return np.bincount(_cells(features(draws, fine), axes, thresholds, depth), minlength=2**depth)

    (made_a, chosen_a), (made_b, chosen_b) = [(counts(half), counts(rest)) for half, rest in halves]
    ahead = _best((made_a, made_b), (chosen_a, chosen_b), depth, alpha)
    back = _best((made_b, made_a), (chosen_b, chosen_a), depth, alpha)
    return Event(axes, thresholds, depth, ahead, fine), Event(axes, thresholds, depth, back, fine)


def in_halves(draws: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The draws in two parts, by their number and not by their value."""
    middle = len(draws) // 2
    return draws[:middle], draws[middle:]


def features(draws: FloatArray, fine: bool) -> FloatArray:
    """Coordinates (n, d), and for ``fine`` ones the exponents of their last bits too (n, 2d)."""
    return np.hstack([draws, last_bit(draws)]) if fine else draws


def last_bit(values: FloatArray) -> FloatArray:
    """The exponent of the largest power of two that divides each float."""
    mantissa, exponent = np.frexp(values)
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    lowest = whole & -whole
    bits = np.log2(np.maximum(lowest, 1).astype(np.float64))
    return np.asarray(np.where(whole == 0, _ZERO, exponent - 53 + bits))


def _whole(draws: FloatArray) -> bool:
    return bool(np.array_equal(draws, np.rint(draws)))


def _tree(pooled: FloatArray, depth: int) -> tuple[IntArray, FloatArray]:
    """Medians, level by level: the features take turns, but for those that are far narrower than others in a node."""
    axes, thresholds = np.zeros(2**depth - 1, dtype=np.int64), np.full(2**depth - 1, np.inf)
    members: list[IntArray] = [np.arange(len(pooled))]
    scale = np.maximum(np.quantile(pooled, 0.9, axis=0) - np.quantile(pooled, 0.1, axis=0), 1e-300)
    for level in range(depth):
        below: list[IntArray] = []
        for place, rows in enumerate(members):
            node = 2**level - 1 + place
            axis, threshold = _cut(pooled[rows], scale, level)
            axes[node], thresholds[node] = axis, threshold
            beyond = pooled[rows, axis] > threshold
            below += [rows[~beyond], rows[beyond]]
        members = below
    return axes, thresholds


def _cut(points: FloatArray, scale: FloatArray, level: int) -> tuple[int, float]:
    if len(points) < 2:
        return 0, math.inf
    order = np.roll(np.arange(points.shape[1]), -level)
    spread = [float(np.ptp(points[:, axis]) / scale[axis]) for axis in order]
    # Features take turns; one that is far narrower than another here is passed over.
    axis = int(next(a for a, s in zip(order, spread, strict=True) if s >= max(spread) / 4))
    column = points[:, axis]
    threshold = float(np.median(column))
    if threshold == column.max():
        under = column[column < threshold]
        threshold = float(under.max()) if len(under) else math.inf
    return axis, threshold


def _cells(values: FloatArray, axes: IntArray, thresholds: FloatArray, depth: int) -> IntArray:
    node = np.zeros(len(values), dtype=np.int64)
    rows = np.arange(len(values))
    for _ in range(depth):
        node = 2 * node + 1 + (values[rows, axes[node]] > thresholds[node])
    return np.asarray(node - (2**depth - 1))


Counts = tuple[IntArray, IntArray]


def _best(made: Counts, chosen_on: Counts, depth: int, alpha: float) -> BoolArray:
    """The union of cells whose bound is largest on one pair of counts; the other pair orders the cells."""
    best, largest = np.ones(2**depth, dtype=np.bool_), -math.inf
    for level in range(1, depth + 1):
        made_a, made_b, chosen_a, chosen_b = (c.reshape(2**level, -1).sum(axis=1) for c in (*made, *chosen_on))
        order = np.argsort(-(made_a + 0.5) / (made_b + 0.5), kind="stable")
        sums = np.cumsum(chosen_a[order]), np.cumsum(chosen_b[order])
        bounds = epsilon_below(sums[0], int(chosen_a.sum()), sums[1], int(chosen_b.sum()), alpha)
        at = int(np.argmax(bounds))
        if bounds[at] > largest:
            coarse = np.zeros(2**level, dtype=np.bool_)
            coarse[order[: at + 1]] = True
            best, largest = np.repeat(coarse, 2 ** (depth - level)), float(bounds[at])
    return best
