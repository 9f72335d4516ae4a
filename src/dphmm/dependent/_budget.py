"""From what is promised under dependence to what one record alone may lose: the budget that every query spends.

``dependence`` is a model, or "independent" (taken on the caller's word), or ("group", k): records come in groups of at
most k, and different groups are independent of each other.

Proof: docs/proofs/dependent-markov.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dphmm._checks import exact_epsilon
from dphmm.accounting.composition import Guarantee
from dphmm.accounting.event import DependentEvent, NoisyCounts, per_record_total
from dphmm.dependent._chain import Chain
from dphmm.dependent._queries import AnyQuery
from dphmm.dependent._recursion import largest_loss
from dphmm.dependent._scales import calibrate
from dphmm.dependent._tree import Tree
from dphmm.errors import InvalidInput
from dphmm.samplers.discrete import DiscreteLaplace
from dphmm.samplers.entropy import default_bits, is_secure
from dphmm.types import Bits, Exact, IntArray

#: The noise of one number of a query is kept within ±2**61 of it.
_FARTHEST = 2**61


@dataclass(frozen=True)
class Budget:
    """ε₀ for one record alone, and what it is claimed to give under the dependence."""

    per_record: Fraction
    claimed: Fraction | None
    mechanism: str
    dependence: str
    why: str

    @classmethod
    def of(cls, dependence: Any, epsilon: Exact, mechanism: str | None, accept_unproved: bool) -> Budget:
        """The budget of a query that promises ``epsilon``; Refused where the mechanism is not proved to keep it."""
        promised = exact_epsilon(epsilon)
        if isinstance(dependence, (str, tuple)):
            return _without_a_model(dependence, promised, mechanism)
        found = calibrate(dependence, AnyQuery(1), promised, mechanism, exact=False)
        if not (found.proved or accept_unproved):
            found.claim()
        claimed = promised if found.proved else None
        return cls(found.rate, claimed, found.mechanism, found.model, found.why)

    def event(
        self, query: str, record: str, parts: tuple[NoisyCounts, ...], bits: Bits, neighbours: str = "replace"
    ) -> DependentEvent:
        """What happened, for accounting."""
        secure = is_secure(bits)
        return DependentEvent(
            query, record, parts, self.mechanism, self.dependence, self.claimed, self.why, secure, neighbours
        )


def _without_a_model(dependence: Any, promised: Fraction, mechanism: str | None) -> Budget:
    if dependence == "independent":
        if mechanism not in (None, "independent"):
            raise InvalidInput("mechanism", mechanism, '"independent", or a model of dependence')
        return Budget(promised, promised, "independent", "independent records", "records are taken as independent")
    if isinstance(dependence, tuple) and len(dependence) == 2 and dependence[0] == "group":
        size = dependence[1]
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
            raise InvalidInput("dependence", size, 'how many records may depend on each other: ("group", 3)')
        why = (
            f"at most {size} records depend on each other, and all of them together change the answer by at most "
            f"{size} Δ, where Δ is the most that one record alone changes it by"
        )
        return Budget(promised / int(size), promised, "group", f"groups of {size}", why)
    raise InvalidInput("dependence", dependence, 'a model, "independent" or ("group", size)')


def add_integer_noise(
    counts: IntArray, sensitivity: Fraction, epsilon: Fraction, name: str, bits: Bits | None
) -> tuple[IntArray, NoisyCounts]:
    """Integers with discrete Laplace noise in every one, P(z) ∝ exp(−|z|·ε/sensitivity), and what that was.

    ``sensitivity``: L1, over all of ``counts``, for a change of one record.
    """
    scale = sensitivity / epsilon
    flat = counts.ravel()
    noise = DiscreteLaplace(scale).draw(len(flat), default_bits(bits))
    noisy: IntArray = np.clip(flat + noise, -_FARTHEST, _FARTHEST).reshape(counts.shape)
    return noisy, NoisyCounts(name, "laplace", sensitivity, scale)


def together(model: Any, events: Iterable[DependentEvent]) -> Guarantee:
    """What several queries about the tuples of one chain or tree lose together under it: the sum does not bound it.

    The losses per record add up, and their sum goes through the recursion once.
    """
    if not isinstance(model, (Chain, Tree)):
        raise InvalidInput("model", type(model).__name__, "a chain or a tree")
    given = [events] if isinstance(events, DependentEvent) else list(events)
    # A tuple of the model is replaced.
    total = per_record_total(
        [event.for_replacement() if isinstance(event, DependentEvent) else event for event in given]
    ).value
    single = np.full(model.n_tuples, float(total) * (1 + 2.0**-51))
    return Guarantee(
        Fraction(largest_loss(model, single)),
        f"bounds what all these queries lose of one tuple of this {model!r}",
        "docs/proofs/dependent-markov.md",
    )
