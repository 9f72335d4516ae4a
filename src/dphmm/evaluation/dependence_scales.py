"""Noise for one promise by every mechanism, and the true loss: chains, a star, and joint laws that pairs miss.

Nothing here is random and nothing needs data: laws are given, losses of sums are computed.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from dphmm.dependent import Chain, JointTable, Star, Sum, compare, exact_loss
from dphmm.evaluation.dependence_mechanisms import EVERYBODY, GROUP, OVER, UNDER, chain_of, mistaken_rate
from dphmm.evaluation.dependence_places import FRIENDS, FRIENDS_QUERY, star_of
from dphmm.evaluation.experiment import Cell, Row, Settings

EPSILONS = ("0.1", "0.3", "1", "3")
LENGTH = 100
#: Chances of a change up and down.
CHAINS = {
    "symmetric chain .3/.3": (0.3, 0.3),
    "symmetric chain .1/.1": (0.1, 0.1),
    "symmetric chain .05/.05": (0.05, 0.05),
    "symmetric chain .01/.01": (0.01, 0.01),
    "bursty chain .01/.1": (0.01, 0.1),
    "bursty chain .05/.5": (0.05, 0.5),
    "bursty chain .001/.1": (0.001, 0.1),
    "alternating chain .9/.9": (0.9, 0.9),
}
RING, EXCLUSIVE_OR, SIMPLEX = "ring of 3 states", "exclusive or, 3 bits", "simplex code, 31 bits"
STAR, RARE_STAR = f"{FRIENDS} friends of one person", "rare centre, 5 leaves"
MODELS = (*CHAINS, RING, STAR, RARE_STAR, EXCLUSIVE_OR, SIMPLEX)
_QUICK = ("symmetric chain .1/.1", "bursty chain .01/.1", STAR, EXCLUSIVE_OR)


def cells(settings: Settings) -> list[Cell]:
    """A cell for each model and ε."""
    if settings.quick:
        return [{"part": "scales", "model": model, "epsilon": "1"} for model in _QUICK]
    return [{"part": "scales", "model": model, "epsilon": epsilon} for model in MODELS for epsilon in EPSILONS]


def measure(cell: Cell) -> list[Row]:
    """A row for each mechanism, and for those with coefficients that are taken wrong."""
    epsilon = Fraction(str(cell["epsilon"]))
    model, query = case(str(cell["model"]))
    rows: list[Row] = []
    for row in compare(model, query, epsilon).rows:
        name = EVERYBODY if row.mechanism == GROUP else row.mechanism
        told = {"scale": float(row.scale), "true_epsilon": row.true_epsilon, "proved": row.proved, "why": row.why}
        rows.append({"mechanism": name, **told})
    losses = exact_loss(model, query)
    assert losses is not None
    for name, factor in {**UNDER, **OVER}.items():
        scale = float(1 / mistaken_rate(model, query, epsilon, factor))
        true = losses.at(scale)
        kept = true <= float(epsilon) * (1 - 1e-9)
        why = f"exact computation for this model and this query: {true:.6g}"
        rows.append({"mechanism": name, "scale": scale, "true_epsilon": true, "proved": kept, "why": why})
    return rows


def case(name: str) -> tuple[Any, Sum]:
    """A model by its name, and the sum that is asked of it."""
    if name in CHAINS:
        return chain_of(*CHAINS[name], LENGTH), Sum([0, 1])
    return _OTHERS[name]()


def _ring() -> tuple[Chain, Sum]:
    return Chain(np.full((3, 3), 0.05) + 0.85 * np.eye(3), 60), Sum([0, 1, 2])


def _rare() -> tuple[Star, Sum]:
    return Star(5, [1 - 1e-6, 1e-6], [[1 - 1e-7, 1e-7], [0.9, 0.1]]), Sum([0, 1])


def _exclusive_or() -> tuple[JointTable, Sum]:
    return JointTable({(a ^ b, a, b): 0.25 for a in (0, 1) for b in (0, 1)}), Sum([0, 1])


def _simplex(k: int = 5) -> tuple[JointTable, Sum]:
    words = [[(word & column).bit_count() % 2 for column in range(1, 2**k)] for word in range(2**k)]
    return JointTable(np.array(words), np.full(2**k, 2.0**-k)), Sum([0, 1])


_OTHERS: dict[str, Callable[[], tuple[Any, Sum]]] = {
    RING: _ring,
    STAR: lambda: (star_of(FRIENDS), FRIENDS_QUERY),
    RARE_STAR: _rare,
    EXCLUSIVE_OR: _exclusive_or,
    SIMPLEX: _simplex,
}
