"""How much noise each mechanism adds for one promise: the true loss, and how far answers are from the truth.

Scales and losses: chains, a star, and joint laws that pairs miss. Nothing of it is random and nothing needs data: laws
are given, losses of sums are computed.

(α, β)-accuracy: how likely an answer is more than α away from the truth, in L1, by formula and by draws of noise. Of d
numbers with Laplace noise of scale σ, P(L1 error > α) = Γ(d, α/σ)/Γ(d). What is drawn is the integer noise that is
released. Asked is one person's time in a state (d = 1), and how many people of Gowalla are in each fifth of the city
(d = 5; replacing one person changes two counts).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import gammaincc, gammainccinv

from dphmm.dependent import Chain, JointTable, Star, Sum, exact_loss

# The integer noise of `dphmm.dependent` itself, drawn without a question.
from dphmm.samplers.body import LaplaceSampler
from experiments.dependence.baselines import calibrated, compared
from experiments.dependence.leakage import FRIENDS, FRIENDS_QUERY, star_of
from experiments.dependence.mechanisms import (
    CORRELATED,
    DPM,
    EVERYBODY,
    GROUP,
    INDEPENDENT,
    KEPT,
    MARKOV,
    NONE,
    OVER,
    UNDER,
    chain_of,
    mistaken_rate,
)
from experiments.dependence.real import CLUSTERS, city
from experiments.experiment import Cell, Row, Settings, bits_of

SCALE_EPSILONS = ("0.1", "0.3", "1", "3")
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


def scale_cells(settings: Settings) -> list[Cell]:
    """A cell for each model and ε."""
    if settings.quick:
        return [{"part": "scales", "model": model, "epsilon": "1"} for model in _QUICK]
    return [{"part": "scales", "model": model, "epsilon": epsilon} for model in MODELS for epsilon in SCALE_EPSILONS]


def measure_scales(cell: Cell) -> list[Row]:
    """A row for each mechanism, and for those with coefficients that are taken wrong."""
    epsilon = Fraction(str(cell["epsilon"]))
    model, query = case(str(cell["model"]))
    rows: list[Row] = []
    for row in compared(model, query, epsilon):
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


ACCURACY_MODELS = ("symmetric chain .1/.1", "bursty chain .01/.1")
GOWALLA = "Gowalla, people in 5 regions"
ACCURACY_EPSILONS = ("0.1", "1")
ALPHAS = (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000)
BETAS = (0.1, 0.5)
_CALIBRATED = {INDEPENDENT: INDEPENDENT, CORRELATED: CORRELATED, DPM: DPM, MARKOV: MARKOV, EVERYBODY: "group"}


def accuracy_cells(settings: Settings, gowalla: bool) -> list[Cell]:
    """A cell for each model and ε."""
    models = (*(ACCURACY_MODELS[1:] if settings.quick else ACCURACY_MODELS), *((GOWALLA,) if gowalla else ()))
    epsilons = ACCURACY_EPSILONS[1:] if settings.quick else ACCURACY_EPSILONS
    return [{"part": "accuracy", "model": model, "epsilon": epsilon} for model in models for epsilon in epsilons]


def measure_accuracy(folder: Path | None, cell: Cell, seed: np.random.SeedSequence, draws: int = 4000) -> Iterator[Row]:
    """A row for each mechanism and α, and one for each mechanism and β."""
    numbers = 1 if cell["model"] in CHAINS else CLUSTERS
    for place, scale in _scales(folder, cell):
        noise = LaplaceSampler(scale).draw(draws * numbers, bits_of(seed, place["mechanism"]))
        errors = np.abs(noise.reshape(draws, numbers)).sum(axis=1)
        for alpha in ALPHAS:
            told = {"alpha": alpha, "beta": float(gammaincc(numbers, alpha / float(scale)))}
            yield {**place, "kind": "beta of alpha", **told, "drawn": float((errors > alpha).mean())}
        for beta in BETAS:
            needed = float(gammainccinv(numbers, beta)) * float(scale)
            drawn = float(np.quantile(errors, 1 - beta))
            yield {**place, "kind": "alpha of beta", "alpha": needed, "beta": beta, "drawn": drawn}


def _scales(folder: Path | None, cell: Cell) -> Iterator[tuple[Row, Fraction]]:
    epsilon, model = str(cell["epsilon"]), str(cell["model"])
    if model in CHAINS:
        for name, mechanism in _CALIBRATED.items():
            found = calibrated(chain_of(*CHAINS[model], LENGTH), Sum([0, 1]), epsilon, mechanism)
            yield {"mechanism": name, "guarantee": KEPT if found.proved else NONE}, found.scale
    elif folder is not None:
        people = city(folder).people
        for mechanism in people.mechanisms:
            spent = people.spending(mechanism, epsilon)
            yield {**spent.described()}, 2 / spent.per_record
