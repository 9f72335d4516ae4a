"""mechanism="auto", and the registry that names every mechanism."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from fractions import Fraction

import pytest

import dphmm.mechanisms
from dphmm.errors import InvalidInput
from dphmm.mechanisms import (
    MECHANISM_CHOICES,
    Constant,
    DiscreteKNorm,
    KNorm,
    Laplace,
    LatticeMechanism,
    NoiseMechanism,
    PlanarIsotropic,
    Staircase,
    choose,
    mechanism_for,
)
from dphmm.mechanisms import registry as module
from dphmm.mechanisms.knorm import Breakpoints, lattice_body
from dphmm.mechanisms.registry import KINDS
from dphmm.session.options import Options
from naive_mechanisms import SHAPES, hull_of_points, shape


@pytest.mark.parametrize("name", sorted(SHAPES))
@pytest.mark.parametrize("epsilon", ["0.3", 1, 4, 12])
def test_auto_takes_the_least_expected_error(name, epsilon):
    hull = shape(name)
    sums = Breakpoints.of(hull, lattice_body(hull), Fraction(str(epsilon)))
    offsets = [sums.fraction(i) for i in range(len(sums.parts))]
    errors = [DiscreteKNorm(hull, epsilon).expected_error]
    errors += [Staircase(hull, epsilon, g).expected_error for g in offsets]
    chosen = choose(hull, epsilon)
    again = Staircase(hull, epsilon, chosen.offset) if isinstance(chosen, Staircase) else DiscreteKNorm(hull, epsilon)
    assert chosen.expected_error == pytest.approx(again.expected_error, rel=2e-3)
    assert chosen.expected_error <= min(errors) * (1 + 1e-8)
    assert chosen.epsilon == Fraction(str(epsilon))
    if isinstance(chosen, Staircase):
        assert chosen.offset in offsets and chosen.expected_error < errors[0]


def test_equal_errors_go_to_the_knorm_mechanism_which_costs_less():
    """Where N takes only whole values, the staircase at 0 is the K-norm law itself."""
    square = hull_of_points([(1, 1), (1, -1), (1, 0), (0, 1)])
    chosen = choose(square, 1)
    assert isinstance(chosen, DiscreteKNorm)
    assert Staircase(square, 1).expected_error == pytest.approx(chosen.expected_error, rel=1e-12)


def test_auto_is_cached_by_body_and_epsilon(monkeypatch):
    module._cache.clear()
    first = choose(shape("disc"), "0.5")
    assert choose(shape("disc"), Fraction(1, 2)) is first
    assert choose(shape("disc"), 1) is not first and choose(shape("thin"), "0.5") is not first
    scaled = hull_of_points(SHAPES["disc"], pitch=(2.0, 2.0))
    assert choose(scaled, "0.5").expected_error == pytest.approx(4 * first.expected_error)
    monkeypatch.setattr(module._cache, "most", 2)
    for epsilon in range(2, 8):
        choose(shape("disc"), epsilon)
    assert len(module._cache) == 2


def test_auto_of_one_answer_is_the_constant():
    assert isinstance(choose(hull_of_points([(0, 0)]), 1), Constant)


def test_auto_is_a_function_of_public_inputs():
    module._cache.clear()
    descriptions = []
    for _ in range(2):
        descriptions.append([choose(shape(name), e).describe() for name in sorted(SHAPES) for e in (1, 3)])
        module._cache.clear()
    assert descriptions[0] == descriptions[1]


def test_no_mechanism_is_left_out_of_the_registry():
    found = set()
    for info in pkgutil.iter_modules(dphmm.mechanisms.__path__, "dphmm.mechanisms."):
        for _, cls in inspect.getmembers(importlib.import_module(info.name), inspect.isclass):
            if issubclass(cls, LatticeMechanism) and not inspect.isabstract(cls):
                found.add(cls)
    assert found == set(KINDS.values()) and len(found) == len(KINDS)
    assert [(name, cls) for name, cls in KINDS.items() if cls.name != name] == []
    exported = [getattr(dphmm.mechanisms, name) for name in dphmm.mechanisms.__all__]
    assert [cls for cls in found if cls not in exported] == []


ON_HULLS = sorted(name for name, kind in KINDS.items() if issubclass(kind, NoiseMechanism))


@pytest.mark.replayed_words
@pytest.mark.parametrize("name", ON_HULLS)
def test_every_mechanism_keeps_the_protocol(name):
    hull = hull_of_points([(0, 0)]) if name == "constant" else shape("disc")
    made = mechanism_for(hull, Fraction(1, 2), name)
    assert type(made) is KINDS[name] and made.epsilon == Fraction(1, 2)
    described = made.describe()
    assert described["name"] == name and described["epsilon"] == "1/2"
    assert all(isinstance(value, str) for value in described.values())
    assert type(made).__name__ in repr(made)
    assert made.loss((0.0, 0.0)) == 0.0 and made.expected_error >= 0.0
    z = made.sample((1.0, 2.0))
    assert made.log_likelihood(z, [(1.0, 2.0), (0.0, 0.0)]).shape == (2,)


def test_no_release_takes_a_continuous_mechanism():
    for kind, name in ((KNorm, "knorm"), (PlanarIsotropic, "planar-isotropic"), (Laplace, "laplace")):
        assert not issubclass(kind, LatticeMechanism)
        with pytest.raises(InvalidInput, match=f"mechanism: got {name}; expected one of discrete-knorm, staircase"):
            mechanism_for(shape("disc"), Fraction(1), name)
        with pytest.raises(InvalidInput, match=f"mechanism: got {name}; expected one of auto, discrete-knorm"):
            Options.checked(1, mechanism=name)


def test_a_plan_gets_the_mechanism_it_names():
    hull = shape("disc")
    assert mechanism_for(hull, Fraction(1), "auto") is choose(hull, 1)
    with pytest.raises(InvalidInput, match="mechanism: got optimal-table; expected one of discrete-knorm, staircase"):
        mechanism_for(hull, Fraction(1), "optimal-table")
    for name in (name for name in MECHANISM_CHOICES[1:] if KINDS[name].made_from == "hull"):
        assert mechanism_for(hull, Fraction(1), name).name == name
        assert isinstance(mechanism_for(hull_of_points([(0, 0)]), Fraction(1), name), Constant)
    for made in (DiscreteKNorm(hull, 2), Staircase(hull, 2, 0)):
        assert made.loss_of_norm(made.hull.norm_fraction((4, 1))) == made.loss_lattice((4, 1))
        assert made.loss_of_norm(float("inf")) == float("inf")
