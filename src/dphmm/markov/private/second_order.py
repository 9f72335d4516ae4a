"""A chain of second order learned with differential privacy, from counts of pairs of moves: noise in every public cell.

A pair of moves a, b, c is a 3-gram of a sequence of states. Which of them may occur is public: the moves of the base.
The rates behind the noisy table are those of `dphmm.markov.private.noisy_table`. Its independence of rows and columns,
which are pairs (a, b) and (b, c), is the first order: given b, what was before says nothing of what follows.

Proof: docs/proofs/learning.md, docs/proofs/noisy-tables.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dphmm._checks import exact_epsilon
from dphmm.accounting.event import LearningEvent, described
from dphmm.errors import InvalidInput
from dphmm.markov.private import sensitivity
from dphmm.markov.private.noisy_table import ESTIMATOR, posterior
from dphmm.markov.private.release import noise_for, release
from dphmm.markov.private.sensitivity import RecordBounds, kept_records, unit_of
from dphmm.markov.second_order import LatentPairs
from dphmm.markov.stochastic import ModelParts
from dphmm.samplers.entropy import default_bits, is_secure
from dphmm.types import Bits, Exact, FloatArray


def learn(
    sequences: Iterable[Any],
    base: Any,
    epsilon: Exact,
    max_length: Any,
    *,
    neighbours: str = "add-remove",
    owners: Any = None,
    max_sequences: int = 1,
    bits: Bits | None = None,
    admit: Callable[[LearningEvent], None] | None = None,
) -> tuple[ModelParts, LearningEvent]:
    """The parts of the model of `dphmm.markov.private.fit_second_order`, and the event; parameters as there."""
    pairs, caps = LatentPairs.of(base), RecordBounds(max_length, max_sequences, neighbours)
    if base.provenance.get("private") is not None:
        expected = "a base without anybody's data: what it says of people would be a loss of its own"
        raise InvalidInput("base", "a model that was fitted", expected)
    words = default_bits(bits)
    size = sensitivity.l1(sensitivity.ngrams(caps, 3), caps)
    part = noise_for("pairs of moves", "laplace", size, exact_epsilon(epsilon))
    capped = (caps.neighbours, caps.max_length, caps.max_sequences, is_secure(words))
    event = LearningEvent((part,), *capped, unit=unit_of(owners))
    # Every public check is made before the data is looked at.
    if admit is not None:
        admit(event)
    records = kept_records(sequences, base.n_states, caps, owners)
    table = release(pairs.counts(records.symbols, records.bounds), part, 0, words)
    provenance = {
        "method": "noisy counts",
        "private": event.secure,
        "privacy": described(event),
        "order": 2,
        "estimator": ESTIMATOR,
        "base": base.digest,
        "initial": base.provenance.get("initial"),
    }
    return pairs.parts(rates_of_pairs(table.values, pairs, float(part.scale)), 0.0, provenance), event


def rates_of_pairs(values: FloatArray, pairs: LatentPairs, scale: float) -> FloatArray:
    """The true rates (m,) behind a noisy table of moves between pairs."""
    n, of = len(pairs.now), np.repeat(np.arange(len(pairs.now)), np.diff(pairs.indptr))
    # Whoever stays now is on the diagonal, wherever they came from.
    columns = np.where(pairs.now[of] == pairs.now[pairs.indices], n, pairs.indices)
    return posterior(values, np.log(pairs.chances), of, columns, n, scale).rates
