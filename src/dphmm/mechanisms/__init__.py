"""Mechanisms: the laws of published answers, and their likelihoods.

- for release, exact on the lattice: `DiscreteKNorm`, `Staircase`, `Constant`; `choose` takes the better ("auto")
- `DiscreteLaplace`, exact too: independent noise on every axis, where it is asked for
- for few answers, exact too: `OptimalTable`, the best law over the answers for each of them, from a linear program;
`Hops` for labels: labels further away by edges are named less often (randomised response if all are joined);
`MadeTable`, made once before and named by its contents
- continuous floats, for research and not for publication: `Laplace`, `KNorm`, `PlanarIsotropic`
- by name: `mechanism_for`, `answer_mechanism`
"""

from dphmm.mechanisms.answer_table import MadeTable, make_known
from dphmm.mechanisms.base import AnswerMechanism, LatticeMechanism, NoiseMechanism
from dphmm.mechanisms.continuous import KNorm, Laplace, PlanarIsotropic
from dphmm.mechanisms.discrete_laplace import DiscreteLaplace
from dphmm.mechanisms.hops import Hops
from dphmm.mechanisms.knorm import Constant, DiscreteKNorm, Staircase
from dphmm.mechanisms.registry import (
    AUTO,
    MECHANISM_CHOICES,
    answer_mechanism,
    choose,
    chosen_kind,
    mechanism_for,
)
from dphmm.mechanisms.table import OptimalTable

__all__ = [
    "AUTO",
    "MECHANISM_CHOICES",
    "AnswerMechanism",
    "Constant",
    "DiscreteKNorm",
    "DiscreteLaplace",
    "Hops",
    "KNorm",
    "Laplace",
    "LatticeMechanism",
    "MadeTable",
    "NoiseMechanism",
    "OptimalTable",
    "PlanarIsotropic",
    "Staircase",
    "answer_mechanism",
    "choose",
    "chosen_kind",
    "make_known",
    "mechanism_for",
]
