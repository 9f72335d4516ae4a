"""A chain of second order learned with differential privacy, from counts of pairs of moves: noise in every public cell.

A pair of moves a, b, c is a 3-gram of a sequence of states. Which of them may occur is public: the moves of the base.

Proof: docs/proofs/learning.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from dphmm._checks import exact_epsilon
from dphmm.accounting.event import LearningEvent, described
from dphmm.errors import InvalidInput
from dphmm.markov.private import sensitivity
from dphmm.markov.private.release import nearest_counts, noise_for, release
from dphmm.markov.private.sensitivity import Caps, kept_records, unit_of
from dphmm.markov.second_order import WEIGHT, Pairs, checked_weight
from dphmm.markov.stochastic import ModelParts
from dphmm.samplers.entropy import default_bits, is_secure
from dphmm.types import Bits, Exact


def learn(
    sequences: Iterable[Any],
    base: Any,
    epsilon: Exact,
    max_length: Any,
    *,
    neighbours: str = "add-remove",
    owners: Any = None,
    max_sequences: int = 1,
    weight: float | None = None,
    bits: Bits | None = None,
    admit: Callable[[LearningEvent], None] | None = None,
) -> tuple[ModelParts, LearningEvent]:
    """What `dphmm.markov.private.fit_second_order` makes a model from; parameters as there."""
    pairs, caps = Pairs.of(base), Caps(max_length, max_sequences, neighbours)
    if base.provenance.get("private") is not None:
        expected = "a base without anybody's data: what it says of people would be a loss of its own"
        raise InvalidInput("base", "a model that was fitted", expected)
    words = default_bits(bits)
    size = sensitivity.l1(sensitivity.ngrams(caps, 3), caps)
    part = noise_for("pairs of moves", "laplace", size, exact_epsilon(epsilon))
    capped = (caps.neighbours, caps.max_length, caps.max_sequences, is_secure(words))
    event = LearningEvent((part,), *capped, unit=unit_of(owners))
    if weight is None:
        cells = len(pairs.indices) / len(pairs.now)
        weight = WEIGHT + float(part.scale) * math.sqrt(2 * cells)
    worth = checked_weight(weight)
    # Every public check is made before the data is looked at.
    if admit is not None:
        admit(event)
    kept = kept_records(sequences, base.n_states, caps, owners)
    table = release(pairs.counts(kept.symbols, kept.bounds), part, 0, words)
    provenance = {
        "method": "noisy counts",
        "private": event.secure,
        "privacy": described(event),
        "order": 2,
        "weight": worth,
        "base": base.digest,
        "initial": base.provenance.get("initial"),
    }
    counts = nearest_counts(table.values, pairs.indptr)
    return pairs.parts(counts, worth, provenance), event
