"""The integer lattice on which geometry is decided: answer = origin + pitch * integer, axis by axis.

Pitch and origin are public and mean the decimals they print as, so a distance is compared exactly and a
released value carries no low-order bits of the true answer (docs/theory.md 5).

`snap` is the only place where a float becomes an integer of the geometry, once. Without a pitch, an axis of integers
stays as it is; any other axis gets the smallest answer as origin and the largest pitch of the form span/m whose
snapping error is at most 1 % of the smallest gap between its distinct answers.

Merges say which states are answered as another one, their nearest on the lattice (docs/proofs/merging.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dphmm._cached import cached_property
from dphmm.errors import InvalidInput
from dphmm.types import FloatArray, IntArray

#: Largest lattice coordinate: beyond it float64 no longer holds every integer.
LARGEST = 2**53
#: Largest pitch, and largest number of an origin: squares of answers stay within float64.
_LARGEST_UNIT = 1e100
#: How far from a lattice point an answer may lie, in pitches, and still be taken for it.
OFF_LATTICE = 1e-6
#: A step within this of an integer is that integer.
STEP_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Lattice:
    """Pitch (d,) and origin (d,) in answer units; equal and hashed by value.

    Raises InvalidInput unless both are one-dimensional arrays of one length, of numbers of at most 1e100, and the pitch
    is positive.
    """

    pitch: FloatArray
    origin: FloatArray
    _key: tuple[bytes, bytes] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        pitch = _vector(self.pitch, "pitch")
        origin = _vector(self.origin, "origin")
        if len(pitch) != len(origin):
            raise InvalidInput("origin", f"{len(origin)} numbers", f"{len(pitch)}, one per axis of the pitch")
        if not (pitch > 0).all():
            raise InvalidInput("pitch", float(pitch.min()), "numbers greater than 0")
        for name, numbers in (("pitch", pitch), ("origin", origin)):
            if np.abs(numbers).max(initial=0) > _LARGEST_UNIT:
                raise InvalidInput(name, float(numbers[np.abs(numbers).argmax()]), "numbers of at most 1e100")
        object.__setattr__(self, "pitch", pitch)
        object.__setattr__(self, "origin", origin)
        object.__setattr__(self, "_key", (pitch.tobytes(), origin.tobytes()))

    @classmethod
    def unit(cls, d: int) -> Lattice:
        """The integers themselves in d dimensions: pitch 1, origin 0."""
        return cls(np.ones(d), np.zeros(d))

    @property
    def dimension(self) -> int:
        """Number of axes d."""
        return len(self.pitch)

    @cached_property
    def exact_pitch(self) -> tuple[Fraction, ...]:
        """The pitch as the decimals it prints as, one Fraction per axis."""
        return tuple(Fraction(repr(float(value))) for value in self.pitch)

    def to_answers(self, integers: ArrayLike) -> FloatArray:
        """Answers (..., d) of lattice points (..., d)."""
        points = self._points(np.asarray(integers), "lattice points")
        answers: FloatArray = self.origin + points * self.pitch
        return answers

    def to_lattice(self, answers: ArrayLike) -> IntArray:
        """Lattice points int64 (..., d) of answers (..., d).

        Raises InvalidInput, without naming the answer, if one lies more than 1e-6 of a pitch off the lattice
        or beyond 2**53 steps: it may be a person's.
        """
        points = self._points(np.asarray(answers, dtype=np.float64), "answers")
        steps = (points - self.origin) / self.pitch
        nearest = np.rint(steps)
        # Written so that NaN is refused too.
        if not (np.abs(nearest) <= LARGEST).all():
            raise InvalidInput("answers", "a point that is not finite or too far away", "at most 2**53 steps")
        if not (np.abs(steps - nearest) <= OFF_LATTICE).all():
            raise InvalidInput("answers", "a point off the lattice", "origin + pitch * integers")
        return nearest.astype(np.int64)

    def steps(self, differences: ArrayLike) -> FloatArray:
        """Differences (..., d) of answers in lattice steps, rounded where within 1e-9 of an integer."""
        steps = self._points(np.asarray(differences, dtype=np.float64), "differences") / self.pitch
        nearest = np.rint(steps)
        rounded: FloatArray = np.where(np.abs(steps - nearest) <= STEP_TOLERANCE, nearest, steps)
        return rounded

    def _points(self, points: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
        if points.ndim == 0 or points.shape[-1] != self.dimension:
            raise InvalidInput(name, f"an array of shape {points.shape}", f"(..., {self.dimension})")
        return points

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Lattice) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def _vector(values: ArrayLike, name: str) -> FloatArray:
    try:
        # Adding 0.0 turns -0.0 into 0.0, so equal values have equal bytes.
        vector = np.array(values, dtype=np.float64) + 0.0
    except (TypeError, ValueError):
        raise InvalidInput(name, type(values).__name__, "one number per axis") from None
    if vector.ndim != 1 or len(vector) == 0:
        raise InvalidInput(name, f"an array of shape {vector.shape}", "one number per axis")
    if not np.isfinite(vector).all():
        raise InvalidInput(name, "NaN or an infinity", "finite numbers")
    vector.flags.writeable = False
    return vector


#: Most steps across an axis that is snapped, and across one whose integers or pitch were given.
MOST_STEPS_SNAPPED = 2**20
MOST_STEPS_GIVEN = 2**28
#: Snapping error allowed, as a share of the smallest gap.
SNAP_SHARE = 0.01
#: Largest answer and smallest pitch: their squares and products must stay within float64.
LARGEST_ANSWER = 1e100
SMALLEST_PITCH = 1e-100
_BLOCK = 1 << 14


def as_answers(answers: ArrayLike) -> FloatArray:
    """Answers as finite float64 (N, d), N and d at least 1, without -0.0; a list of N numbers becomes (N, 1).

    Raises InvalidInput naming the state of the first answer that is missing or not finite.
    """
    try:
        table = np.asarray(answers)
    except ValueError:
        raise InvalidInput("answers", _first_ragged(answers), "the same count for every state") from None
    if table.dtype.kind not in "iuf":
        raise InvalidInput("answers", f"dtype {table.dtype}", "numbers")
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2 or 0 in table.shape:
        raise InvalidInput("answers", f"an array of shape {table.shape}", "(N, d) with N and d at least 1")
    if table.dtype.kind in "iu" and _too_large(table):
        raise InvalidInput("answers", "an integer beyond 2**53", "integers of at most 2**53")
    values: FloatArray = table.astype(np.float64) + 0.0
    bad = ~np.isfinite(values)
    if bad.any():
        state, axis = (int(i) for i in np.argwhere(bad)[0])
        raise InvalidInput(f"answers[{state}, {axis}]", float(values[state, axis]), "a finite number")
    large = np.abs(values) > LARGEST_ANSWER
    if large.any():
        state, axis = (int(i) for i in np.argwhere(large)[0])
        raise InvalidInput(f"answers[{state}, {axis}]", float(values[state, axis]), "at most 1e100; rescale")
    return values


def snap(raw: FloatArray, pitch: ArrayLike | None = None) -> tuple[IntArray, Lattice]:
    """Lattice points int64 (N, d) nearest to the answers (N, d), and their lattice.

    A given pitch (a number or one per axis) has origin 0. Raises InvalidInput where an axis is too long for
    its pitch.
    """
    d = raw.shape[1]
    if pitch is not None:
        frame = Lattice(_pitches(pitch, d), np.zeros(d))
    else:
        axes = [_choose(raw[:, axis], axis) for axis in range(d)]
        frame = Lattice(np.array([a[0] for a in axes]), np.array([a[1] for a in axes]))
    with np.errstate(over="ignore"):
        steps = np.rint((raw - frame.origin) / frame.pitch)
    # The choice above already kept a snapped axis to the shorter limit.
    _check_range(steps)
    lattice = steps.astype(np.int64)
    _check_round_trip(lattice, frame)
    return lattice, frame


def check_lattice(lattice: IntArray) -> None:
    """Refuse integer answers beyond 2**53 or more than 2**28 across an axis."""
    if _too_large(lattice):
        raise InvalidInput("answers", "an integer beyond 2**53", "integers of at most 2**53")
    _check_range(lattice.astype(np.float64))


def _first_ragged(answers: ArrayLike) -> str:
    rows = list(answers) if isinstance(answers, Sequence) else []
    sizes = [np.size(row) for row in rows]
    ragged = next((i for i, size in enumerate(sizes) if size != sizes[0]), None)
    return "ragged rows" if ragged is None else f"{sizes[ragged]} numbers for state {ragged}, {sizes[0]} for 0"


def _too_large(table: np.ndarray[Any, Any]) -> bool:
    return bool((table > LARGEST).any() or (table < -LARGEST).any())


def _pitches(pitch: ArrayLike, d: int) -> FloatArray:
    pitches = np.asarray(pitch)
    if pitches.dtype.kind not in "iuf":
        raise InvalidInput("pitch", f"dtype {pitches.dtype}", f"a number or {d} numbers")
    if pitches.ndim > 1 or (pitches.ndim == 1 and len(pitches) != d):
        raise InvalidInput("pitch", f"an array of shape {pitches.shape}", f"a number or {d} numbers")
    return np.broadcast_to(pitches.astype(np.float64), (d,)).copy()


def _choose(values: FloatArray, axis: int) -> tuple[float, float]:
    """Pitch and origin of one axis."""
    if (values == np.rint(values)).all() and (np.abs(values) <= LARGEST).all():
        return 1.0, 0.0
    distinct = np.unique(values)
    if len(distinct) == 1:
        return 1.0, float(distinct[0])
    offsets = distinct - distinct[0]
    span, gap = float(offsets[-1]), float(np.diff(distinct).min())
    if gap < SMALLEST_PITCH:
        raise InvalidInput(f"answers[:, {axis}]", f"a gap of {gap:.3g}", "gaps of float64's range; rescale")
    steps = _fewest_steps(offsets[1:], gap)
    if steps is None:
        raise InvalidInput(
            f"answers[:, {axis}]",
            f"a gap of {gap:.3g} in a span of {span:.3g}",
            f"at most 2**20 steps across; give pitch=, such as {span / 2**10:.1g}",
        )
    return _short_decimal(span / steps, distinct, steps), float(distinct[0])


def _fewest_steps(offsets: FloatArray, gap: float) -> int | None:
    """The smallest m for which span/m snaps all offsets to within 1 % of the gap; None above 2**20.

    Two answers a gap apart snap to different points, so no pitch above 1.02 gaps can serve: m starts there.
    """
    span = float(offsets[-1])
    allowed = SNAP_SHARE * gap * (1 + 1e-9)
    m = max(1, math.floor(min(span / gap / (1 + 2 * SNAP_SHARE), float(MOST_STEPS_SNAPPED + 1))))
    while m <= MOST_STEPS_SNAPPED:
        stop = min(m + _BLOCK, MOST_STEPS_SNAPPED + 1)
        serving = _serving(np.arange(m, stop, dtype=np.float64), offsets, span, allowed)
        if len(serving):
            return int(serving[0])
        m = stop
    return None


def _serving(candidates: FloatArray, offsets: FloatArray, span: float, allowed: float) -> FloatArray:
    """The values m whose pitch serves every offset; most fall at the first few: small blocks."""
    start = 0
    while start < len(offsets) and len(candidates):
        part = offsets[start : start + max(1, min(256, (1 << 20) // len(candidates)))]
        pitch = span / candidates[:, None]
        error = np.abs(part - np.rint(part / pitch) * pitch).max(axis=1)
        candidates = candidates[error <= allowed]
        start += len(part)
    return candidates


def _short_decimal(pitch: float, distinct: FloatArray, steps: int) -> float:
    """The pitch without the last binary digits (0.1 for 0.10000000000000002) where that moves no answer."""
    short = float(f"{pitch:.15g}")
    moved = abs(short - pitch) * steps
    return short if moved <= 1e-9 * pitch and short > 0 else pitch


def _check_range(steps: FloatArray) -> None:
    if not (np.abs(steps) <= LARGEST).all():
        raise InvalidInput("answers", "a point beyond 2**53 steps", "a larger pitch or answers nearer to 0")
    across = np.ptp(steps, axis=0)
    if (across > MOST_STEPS_GIVEN).any():
        axis = int(np.argmax(across))
        fault = f"{across[axis]:.0f} steps across"
        raise InvalidInput(f"answers[:, {axis}]", fault, "at most 2**28; give a larger pitch=")


def _check_round_trip(lattice: IntArray, frame: Lattice) -> None:
    """Refuse an origin so far from the answers' gaps that float64 cannot tell lattice points apart."""
    back = (frame.to_answers(lattice) - frame.origin) / frame.pitch
    if (frame.pitch < SMALLEST_PITCH).any() or not (np.abs(back - lattice) <= OFF_LATTICE).all():
        raise InvalidInput("answers", "steps too fine for float64", "answers nearer to 0 or a larger pitch=")


NO_MERGES: IntArray = np.zeros((0, 2), dtype=np.int64)
NO_MERGES.setflags(write=False)
# Distances in floats make a shortlist this much too long; integers decide.
_SLACK = 1e-9


def checked_merges(merges: Mapping[int, int] | ArrayLike, n_states: int) -> IntArray:
    """Pairs (m, 2) of a merged state and its partner, by merged state, each once.

    ``merges`` : a mapping merged state -> partner, or pairs (m, 2). Raises InvalidInput for what is no state, for a
    state with two partners or with itself, and for a partner that is merged: its answer would not be its own.
    """
    pairs = _numbers(list(merges.items()) if isinstance(merges, Mapping) else merges)
    if pairs.size and not 0 <= pairs.min() <= pairs.max() < n_states:
        raise InvalidInput("merges", "a number that no state has", f"states from 0 to {n_states - 1}")
    pairs = np.unique(pairs, axis=0)
    again = np.flatnonzero(pairs[1:, 0] == pairs[:-1, 0])
    if len(again):
        raise InvalidInput("merges", f"two partners of state {pairs[again[0], 0]}", "one partner for each merged state")
    wrong = pairs[np.isin(pairs[:, 1], pairs[:, 0])]
    if len(wrong):
        fault = f"state {wrong[0, 0]} merged into state {wrong[0, 1]}, which is merged itself"
        raise InvalidInput("merges", fault, "a partner that keeps its own answer")
    pairs.setflags(write=False)
    return pairs


def _numbers(merges: ArrayLike) -> IntArray:
    expected = "state numbers (m, 2): merged state, partner"
    try:
        raw = np.asarray(merges)
    except ValueError:
        raise InvalidInput("merges", "rows of different lengths", expected) from None
    if raw.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if raw.dtype.kind not in "iu" or raw.ndim != 2 or raw.shape[1] != 2:
        raise InvalidInput("merges", f"{raw.dtype} {raw.shape}", expected)
    return raw.astype(np.int64)


def nearest_among(lattice: IntArray, frame: Lattice, states: IntArray, others: IntArray) -> IntArray:
    """The nearest of ``others`` to each of ``states`` in answer units, decided exactly; ties to the lowest number."""
    from scipy.spatial import cKDTree

    centred = lattice - lattice.min(axis=0)
    points = centred * frame.pitch
    tree = cKDTree(points[others])
    distance = tree.query(points[states])[0]
    slack = float(np.abs(points).max(initial=0.0)) * _SLACK
    near = tree.query_ball_point(points[states], distance * (1 + _SLACK) + slack)
    squares = [pitch**2 for pitch in frame.exact_pitch]

    def closest(state: int, candidates: list[int]) -> int:
        def order(other: int) -> tuple[Fraction, int]:
            steps = (int(x) for x in centred[other] - centred[state])
            return sum((step**2 * square for step, square in zip(steps, squares, strict=True)), Fraction(0)), other

        return int(min(others[candidates].tolist(), key=order))

    nearest = [closest(state, tied) for state, tied in zip(states.tolist(), near, strict=True)]
    return np.array(nearest, dtype=np.int64)
