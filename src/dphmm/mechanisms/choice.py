"""mechanism="auto": the lattice mechanism of least expected error for a hull, from public information alone.

Proof: docs/proofs/dilations.md.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from fractions import Fraction

from dphmm._checks import exact_epsilon
from dphmm.mechanisms.base import NoiseMechanism, hull_field
from dphmm.mechanisms.constant import Constant
from dphmm.mechanisms.expected import law_sums
from dphmm.mechanisms.lattice import DiscreteKNorm, lattice_body
from dphmm.mechanisms.staircase import Staircase
from dphmm.sensitivity.hull import SensitivityHull
from dphmm.states.lattice import Lattice
from dphmm.types import Exact

#: The staircase must be better by more than rounding: where it is not, K-norm costs less for near pairs.
_LEAST_GAIN = 1e-9
_MOST_CACHED = 1024

_cache: OrderedDict[tuple[str, Lattice, tuple[int, int]], NoiseMechanism] = OrderedDict()
_lock = threading.Lock()


def choose(K: SensitivityHull, epsilon: Exact) -> NoiseMechanism:
    """DiscreteKNorm or the best Staircase, whichever has the lesser expected error; Constant for a hull of rank 0.

    Deterministic, cached by K with its lattice and ε, the last 1024 of them. The staircase may lower the error and
    raise the cost of pairs that are not policy edges (docs/theory.md 7).
    """
    exact = exact_epsilon(epsilon)
    key = (hull_field(K).digest, K.frame, exact.as_integer_ratio())
    with _lock:
        if key in _cache:
            _cache.move_to_end(key)
            return _cache[key]
    chosen = _choose(K, exact)
    with _lock:
        _cache[key] = chosen
        while len(_cache) > _MOST_CACHED:
            _cache.popitem(last=False)
    return chosen


def _choose(K: SensitivityHull, epsilon: Fraction) -> NoiseMechanism:
    if K.rank == 0:
        return Constant(K, epsilon)
    body = lattice_body(K)
    sums = law_sums(K, body, epsilon)
    knorm, (offset, staircase) = sums.knorm, sums.best_staircase()
    if staircase.error < knorm.error * (1.0 - _LEAST_GAIN):
        return Staircase(K, epsilon, offset).knowing(body, staircase)
    return DiscreteKNorm(K, epsilon).knowing(body, knorm)
