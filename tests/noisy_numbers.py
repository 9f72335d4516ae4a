"""What a query is told of the data: numbers that get noise, and nothing else.

`Numbers` stands in for the noise. It answers with numbers that do not depend on the data and keeps the true ones. Then
whatever is published must be equal for any two data sets, and how far the true numbers of two data sets are apart, in
scales of the noise, is exactly the largest log-ratio of the probabilities of any output: discrete Laplace noise on
integers loses |x - y| / scale for a number that is x or y, and no less.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from dphmm.accounting.event import NoisyCounts
from dphmm.dependent import _counts, _degrees, _flows, _kmeans, _linear

MODULES = (_counts, _degrees, _flows, _linear, _kmeans)


@dataclass
class Numbers:
    """Takes the place of `add_integer_noise`."""

    asked: list[tuple[str, Fraction, Fraction, tuple[int, ...]]] = field(default_factory=list)

    def __call__(self, counts: Any, sensitivity: Any, epsilon: Any, name: str, bits: Any) -> Any:
        flat = np.asarray(counts).ravel()
        self.asked.append((name, Fraction(sensitivity), Fraction(epsilon), tuple(flat.tolist())))
        answer = ((np.arange(flat.size) * 7 + 3 * len(self.asked)) % 11 - 3).reshape(np.shape(counts))
        return answer, NoisyCounts(name, "laplace", Fraction(sensitivity), Fraction(sensitivity) / Fraction(epsilon))

    def taken(self) -> list[tuple[str, Fraction, Fraction, tuple[int, ...]]]:
        """What was asked since the last time."""
        found, self.asked = self.asked, []
        return found


def replaced(monkeypatch: Any) -> Numbers:
    """The noise of all queries replaced."""
    numbers = Numbers()
    for module in MODULES:
        monkeypatch.setattr(module, "add_integer_noise", numbers)
    return numbers


def loss(one: list[Any], other: list[Any]) -> Fraction:
    """The largest log-ratio of the probabilities of any output. The noise must be the same for both."""
    assert [part[:3] for part in one] == [part[:3] for part in other], "the noise depends on the data"
    assert [len(part[3]) for part in one] == [len(part[3]) for part in other], "how many numbers depends on the data"
    total = Fraction(0)
    for (_, sensitivity, epsilon, here), (_, _, _, there) in zip(one, other, strict=True):
        apart = sum(abs(x - y) for x, y in zip(here, there, strict=True))
        total += Fraction(apart) * epsilon / sensitivity
    return total
