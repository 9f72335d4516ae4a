"""Experiment "hmm-privacy": private estimation of hidden Markov models, as the paper did it and as it can be done.

The paper is "Differentially private parameter estimation of hidden Markov models", IPSJ SIG 2014-MPS-98-25. Its Figures
5 to 10 show how similar the Viterbi paths of a normally trained model and of one trained with noise are, for 2 and 3
states and 6 symbols. Here every epsilon of the paper's stands beside the true total: that of noise in every iteration
is (2 - 1/L) epsilon, and noise in the last iteration alone is not private at all. Other methods get the same true
total. What the paper does not say is chosen so: similarity is measured on 100 held-out sequences, states are renamed so
that it is greatest, and all models of a data set are learned from one start, half truth and half random.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.drawing import Figure
from experiments.experiment import Cell, Experiment, OwnSequences, Row, Settings
from experiments.hmm_privacy import casino, real, tables

EPSILONS = ("0.01", "0.1", "0.3", "1", "3", "10")
REAL_EPSILONS = ("0.1", "0.3", "1", "3", "10", "30")
_FEW, _FEW_REAL = ("0.1", "1", "10"), ("1", "10")
#: For each size, as many as the bootstrap resamples.
DATA_SETS = 8
STATES, LENGTHS, SEQUENCES = (2, 3), (10, 20, 30), (100, 200, 300)
_NOMINAL = "nominal ε of the paper's methods"


def cells(settings: Settings) -> list[Cell]:
    """Every data set of the casino, every split of the real ones."""
    if settings.own is not None:
        return list(real.cells(settings, *((1, 1) if settings.quick else (5, 2))))
    if settings.quick:
        found = [_cell(states, 10, 100, k, draws=1, removals=2) for states in STATES for k in range(2)]
        return [*found, *real.cells(settings, splits=1, draws=1)]
    sizes = [(states, length, n) for states in STATES for length in LENGTHS for n in SEQUENCES]
    found = list(real.cells(settings, splits=5, draws=2))
    # All sizes of a data set before the next one: a run that is stopped has as many of each.
    for k in range(DATA_SETS):
        found += [_cell(*size, k, draws=2, removals=3) for size in sizes]
        found += [_cell(states, 20, 3000, k, draws=1, removals=0) for states in STATES if k < 5]
    return found


def measure(settings: Settings, cell: Cell, seed: np.random.SeedSequence) -> list[Row]:
    """The rows of a cell."""
    if cell["part"] == "casino":
        return casino.measure(cell, _FEW if settings.quick else EPSILONS, seed)
    if cell["part"] == "real":
        return real.measure(settings, cell, _FEW_REAL if settings.quick else REAL_EPSILONS, seed)
    return [{"method": "skipped"}]


def _cell(states: int, length: int, sequences: int, data_set: int, **counts: int) -> Cell:
    place = {"states": states, "length": length, "sequences": sequences, "data_set": data_set}
    return {"part": "casino", **place, **counts}


def _similarity(name: str, title: str, table: str, y: str = "similarity", **others: Any) -> Figure:
    low, high = ("low", "high") if y == "similarity" else ("paths_low", "paths_high")
    label = "equal positions of Viterbi paths" if y == "similarity" else "equal Viterbi paths"
    given = {"x": "epsilon", "by": "method", "x_label": _NOMINAL, "panels": "panel", "log_x": True, **others}
    return Figure(name, title, table, y=y, y_label=label, low=low, high=high, **given)


def _papers(name: str, title: str, y: str = "similarity") -> Figure:
    return _similarity(name, title, name.removesuffix("-paths"), y, by="sequences", panels="panel_of_length")


_LAST = "Noise in the last iteration, NOT PRIVATE; a line for each number of sequences"
_EVERY = "Noise in every iteration, true total (2 - 1/L) ε; a line for each number of sequences"
_SAME = "the same true total, (2 - 1/L) ε"


def _perplexity(name: str, title: str, table: str) -> Figure:
    return Figure(
        name,
        f"{title}: {_SAME}",
        table,
        x="epsilon",
        y="perplexity",
        by="method",
        x_label=_NOMINAL,
        y_label="perplexity of held-out symbols",
        panels="panel",
        log_x=True,
        log_y=True,
    )


EXPERIMENT = Experiment(
    name="hmm-privacy",
    title="Private estimation of hidden Markov models",
    source="Differentially private parameter estimation of hidden Markov models, IPSJ SIG 2014-MPS-98-25, Figures 5-10",
    cells=cells,
    measure=measure,
    tables=tables.tables,
    takes_own=OwnSequences,
    files=tuple(data.file for data in real.DATA_SETS.values()),
    figures=(
        _papers("last", _LAST),
        _papers("last-paths", _LAST, "paths"),
        _papers("every", _EVERY),
        _papers("every-paths", _EVERY, "paths"),
        _similarity("methods-2-states", f"2 states: {_SAME}", "methods-2-states"),
        _similarity("methods-3-states", f"3 states: {_SAME}", "methods-3-states"),
        _similarity("more-people", f"More people: {_SAME}", "more-people"),
        _perplexity("perplexity-2-states", "2 states", "methods-2-states"),
        _perplexity("perplexity-3-states", "3 states", "methods-3-states"),
        _perplexity("perplexity-more-people", "More people", "more-people"),
        Figure(
            "real",
            "Real sequences: held-out likelihood of models learned privately",
            "real",
            x="epsilon",
            y="loglik",
            by="method",
            x_label="true ε",
            y_label="log-likelihood per held-out symbol",
            panels="data",
            low="low",
            high="high",
            log_x=True,
        ),
    ),
)
