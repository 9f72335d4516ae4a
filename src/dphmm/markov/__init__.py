"""Markov models of where subjects go: the model, fitting it, and moving beliefs with it.

MarkovModel     initial distribution, transition matrix, structure
fit             maximum likelihood from integer sequences, with a FitReport
Slots           transition matrices by time of day
keep_visited    leave out cells that nobody visits
hidden          hidden Markov models: CategoricalHMM and what it is made of
Belief          log-probabilities beside a support that never underflows: predict, condition
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dphmm.markov.filtering import Belief
from dphmm.markov.model import MarkovModel
from dphmm.types import Predecessors

if TYPE_CHECKING:
    from dphmm.markov.estimate import FitReport as FitReport
    from dphmm.markov.estimate import keep_visited as keep_visited
    from dphmm.markov.hidden.hmm import CategoricalHMM as CategoricalHMM
    from dphmm.markov.slots import Slots as Slots
    from dphmm.markov.trajectories import fit as fit

#: Fitting is loaded where somebody fits: a release does not.
_HOMES = {
    "CategoricalHMM": "dphmm.markov.hidden.hmm",
    "FitReport": "dphmm.markov.estimate",
    "Slots": "dphmm.markov.slots",
    "fit": "dphmm.markov.trajectories",
    "keep_visited": "dphmm.markov.estimate",
}

__all__ = ["Belief", "CategoricalHMM", "FitReport", "MarkovModel", "Predecessors", "Slots", "fit", "keep_visited"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dphmm.markov' has no attribute {name!r}")
    return globals().setdefault(name, getattr(import_module(_HOMES[name]), name))


def __dir__() -> list[str]:
    return __all__
