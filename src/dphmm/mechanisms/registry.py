"""Every mechanism that a release draws from, registered in one place.

mechanism="auto" takes the one of least expected error for a hull, from public information alone.

Proofs: docs/proofs/promise.md, docs/proofs/dilations.md.
"""

from __future__ import annotations

from fractions import Fraction

from dphmm._cached import Recent
from dphmm._checks import exact_epsilon, one_of
from dphmm.mechanisms.answer_table import MadeTable, is_reference, known_table
from dphmm.mechanisms.base import AnswerMechanism, LatticeMechanism, NoiseMechanism, hull_field
from dphmm.mechanisms.discrete_laplace import DiscreteLaplace
from dphmm.mechanisms.hops import Hops
from dphmm.mechanisms.knorm import Constant, DiscreteKNorm, Staircase, lattice_body, law_sums
from dphmm.mechanisms.table import OptimalTable
from dphmm.policy.constraint import Constraint
from dphmm.policy.graph import PolicyGraph
from dphmm.sensitivity.hull import SensitivityHull
from dphmm.states.lattice import Lattice
from dphmm.states.space import StateSpace
from dphmm.types import Exact

#: By name; the order is that of help texts.
KINDS: dict[str, type[LatticeMechanism]] = {
    kind.name: kind for kind in (DiscreteKNorm, Staircase, DiscreteLaplace, OptimalTable, Hops, MadeTable, Constant)
}
AUTO = "auto"
#: What a release may ask for.
MECHANISM_CHOICES: tuple[str, ...] = (AUTO, *(name for name, kind in KINDS.items() if kind.choosable))


def chosen_kind(chosen: str) -> type[LatticeMechanism]:
    """The kind that a choice stands for; "auto" adds noise of one kind or another."""
    if is_reference(chosen):
        return MadeTable
    return NoiseMechanism if chosen == AUTO else KINDS[chosen]


def mechanism_for(hull: SensitivityHull, epsilon: Fraction, chosen: str) -> NoiseMechanism:
    """The mechanism ``chosen`` for a hull; "auto" takes the one of least expected error.

    A hull of rank 0 (no edge between different answers) leaves nothing to choose: answers are released as they are.
    Raises InvalidInput for a kind that is not made for a hull.
    """
    if hull.rank == 0:
        return Constant(hull, epsilon)
    if chosen == AUTO:
        return choose(hull, epsilon)
    kinds = {name: kind for name, kind in KINDS.items() if issubclass(kind, NoiseMechanism)}
    return kinds[one_of(chosen, tuple(kinds), "mechanism")].for_hull(hull, epsilon)


def answer_mechanism(
    name: str, policy: PolicyGraph, space: StateSpace, epsilon: Fraction, constraint: Constraint
) -> AnswerMechanism:
    """The mechanism of that name for the answers of the plan states and the policy's edges between them."""
    if is_reference(name):
        return known_table(name).for_plan(policy, space, epsilon, constraint)
    kind = KINDS[name]
    assert issubclass(kind, AnswerMechanism)
    return kind.for_policy(policy, space, epsilon, constraint=constraint)


#: The staircase must be better by more than rounding: where it is not, K-norm costs less for near pairs.
LEAST_GAIN = 1e-9

_cache = Recent[tuple[str, Lattice, tuple[int, int]], NoiseMechanism](1024)


def choose(K: SensitivityHull, epsilon: Exact) -> NoiseMechanism:
    """DiscreteKNorm or the best Staircase, whichever has the lesser expected error; Constant for a hull of rank 0.

    Deterministic, cached by K with its lattice and ε, the last 1024 of them. The staircase may lower the error and
    raise the cost of pairs that are not policy edges (docs/theory.md 7).
    """
    exact = exact_epsilon(epsilon)
    key = (hull_field(K).digest, K.frame, exact.as_integer_ratio())
    if (chosen := _cache.get(key)) is not None:
        return chosen
    return _cache.keep(key, _choose(K, exact))


def _choose(K: SensitivityHull, epsilon: Fraction) -> NoiseMechanism:
    if K.rank == 0:
        return Constant(K, epsilon)
    body = lattice_body(K)
    sums = law_sums(K, body, epsilon)
    knorm, (offset, staircase) = sums.knorm, sums.best_staircase()
    if staircase.error < knorm.error * (1.0 - LEAST_GAIN):
        return Staircase(K, epsilon, offset).knowing(body, staircase)
    return DiscreteKNorm(K, epsilon).knowing(body, knorm)
