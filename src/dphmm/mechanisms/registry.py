"""Every mechanism by name: the one place to register a new one."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dphmm._checks import one_of
from dphmm.errors import InvalidInput
from dphmm.mechanisms.base import Mechanism, NoiseMechanism
from dphmm.mechanisms.constant import Constant
from dphmm.mechanisms.knorm import KNorm
from dphmm.mechanisms.laplace import Laplace
from dphmm.mechanisms.lattice import DiscreteKNorm
from dphmm.mechanisms.optimal import OptimalAdditive
from dphmm.mechanisms.planar import PlanarIsotropic
from dphmm.mechanisms.staircase import Staircase
from dphmm.mechanisms.table import OptimalTable
from dphmm.sensitivity.hull import SensitivityHull
from dphmm.types import Exact

MECHANISMS: dict[str, type[Mechanism]] = {
    cls.name: cls for cls in (DiscreteKNorm, Staircase, OptimalAdditive, Constant, KNorm, PlanarIsotropic, Laplace)
}
#: Those that are made from answers and edges, not from a hull.
ANSWER_MECHANISMS: dict[str, type[Mechanism]] = {OptimalTable.name: OptimalTable}
#: The exact ones, fit for release; and those of them that are made for a hull.
RELEASE_MECHANISMS: tuple[str, ...] = tuple(n for n, cls in (MECHANISMS | ANSWER_MECHANISMS).items() if cls.exact)
_ON_HULLS = tuple(name for name in RELEASE_MECHANISMS if name in MECHANISMS)


def mechanism(name: str, K: SensitivityHull, epsilon: Exact) -> Mechanism:
    """The mechanism of that name for a hull. Raises InvalidInput with the names there are."""
    build: Any = MECHANISMS[one_of(name, tuple(MECHANISMS), "mechanism")]
    built: Mechanism = build(K, epsilon)
    return built


def from_description(K: SensitivityHull, description: Mapping[str, str]) -> NoiseMechanism:
    """The release mechanism that described itself so, on the same hull.

    Raises InvalidInput for a description that is not of a release mechanism on hulls, or of optimal weights that
    another machine found and this one does not.
    """
    name = one_of(description.get("name"), _ON_HULLS, "mechanism")
    try:
        epsilon = description["epsilon"]
        if name == Staircase.name:
            return Staircase(K, _fraction(epsilon), _fraction(description["offset"]))
        if name == OptimalAdditive.name:
            return _solved_again(K, epsilon, description["loss"], description["weights"])
    except KeyError as missing:
        raise InvalidInput("mechanism", description, f"a description with {missing.args[0]}") from None
    built = mechanism(name, K, _fraction(epsilon))
    assert isinstance(built, NoiseMechanism)
    return built


def _solved_again(K: SensitivityHull, epsilon: str, loss: str, weights: str) -> OptimalAdditive:
    """The optimal additive mechanism, if its program has the solution here that it had where it was described."""
    made = OptimalAdditive(K, _fraction(epsilon), loss)
    if made.law.digest != weights:
        came = f"weights {weights[:12]}"
        raise InvalidInput("mechanism", came, f"{made.law.digest[:12]}, as the linear program is solved here")
    return made


def _fraction(text: str) -> Exact:
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise InvalidInput("mechanism", text, "a fraction such as 1/2") from None
