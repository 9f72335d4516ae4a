"""(α, β)-accuracy: how likely an answer is more than α away from the truth, in L1, by formula and by draws of noise.

Of d numbers with Laplace noise of scale σ, P(L1 error > α) = Γ(d, α/σ)/Γ(d). What is drawn is the integer noise that is
released. Asked is one person's time in a state (d = 1), and how many people of Gowalla are in each fifth of the
city (d = 5; replacing one person changes two counts).
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
from scipy.special import gammaincc, gammainccinv

from dphmm.dependent import Sum, calibrate
from dphmm.evaluation.dependence_gowalla import CLUSTERS, city
from dphmm.evaluation.dependence_mechanisms import (
    CORRELATED,
    DPM,
    EVERYBODY,
    INDEPENDENT,
    KEPT,
    MARKOV,
    NONE,
    bits_of,
    chain_of,
)
from dphmm.evaluation.dependence_scales import CHAINS, LENGTH
from dphmm.evaluation.experiment import Cell, Row, Settings
from dphmm.samplers.discrete import DiscreteLaplace

MODELS = ("symmetric chain .1/.1", "bursty chain .01/.1")
GOWALLA = "Gowalla, people in 5 regions"
EPSILONS = ("0.1", "1")
ALPHAS = (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000)
BETAS = (0.1, 0.5)
_CALIBRATED = {INDEPENDENT: INDEPENDENT, CORRELATED: CORRELATED, DPM: DPM, MARKOV: MARKOV, EVERYBODY: "group"}


def cells(settings: Settings, gowalla: bool) -> list[Cell]:
    """A cell for each model and ε."""
    models = (*(MODELS[1:] if settings.quick else MODELS), *((GOWALLA,) if gowalla else ()))
    epsilons = EPSILONS[1:] if settings.quick else EPSILONS
    return [{"part": "accuracy", "model": model, "epsilon": epsilon} for model in models for epsilon in epsilons]


def measure(folder: Path | None, cell: Cell, seed: np.random.SeedSequence, draws: int = 4000) -> Iterator[Row]:
    """A row for each mechanism and α, and one for each mechanism and β."""
    numbers = 1 if cell["model"] in CHAINS else CLUSTERS
    for place, scale in _scales(folder, cell):
        noise = DiscreteLaplace(scale).draw(draws * numbers, bits_of(seed, place["mechanism"]))
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
            found = calibrate(chain_of(*CHAINS[model], LENGTH), Sum([0, 1]), epsilon, mechanism)
            yield {"mechanism": name, "guarantee": KEPT if found.proved else NONE}, found.scale
    elif folder is not None:
        people = city(folder).people
        for mechanism in people.mechanisms:
            spent = people.spending(mechanism, epsilon)
            yield {**spent.described()}, 2 / spent.per_record
