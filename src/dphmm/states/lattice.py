"""The integer lattice on which geometry is decided: answer = origin + pitch * integer, axis by axis.

Pitch and origin are public and mean the decimals they print as, so a distance is compared exactly and a
released value carries no low-order bits of the true answer (docs/theory.md 5).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dphmm.errors import InvalidInput
from dphmm.types import FloatArray, IntArray

#: Largest lattice coordinate: beyond it float64 no longer holds every integer.
LARGEST = 2**53
#: How far from a lattice point an answer may lie, in pitches, and still be taken for it.
OFF_LATTICE = 1e-6
#: A step within this of an integer is that integer.
STEP_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Lattice:
    """Pitch (d,) and origin (d,) in answer units; equal and hashed by value.

    Raises InvalidInput unless both are finite one-dimensional arrays of one length and the pitch is positive.
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

    @cached_property
    def exact_origin(self) -> tuple[Fraction, ...]:
        """The origin as the decimals it prints as, one Fraction per axis."""
        return tuple(Fraction(repr(float(value))) for value in self.origin)

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
