"""Markov models of where subjects go: the model, fitting it, and moving beliefs with it.

MarkovModel     initial distribution, transition matrix, structure
fit             maximum likelihood from integer sequences, with a FitReport
keep_visited    leave out cells that nobody visits
hidden          hidden Markov models: CategoricalHMM and what it is made of
Belief          log-probabilities beside a support that never underflows: predict, condition
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dphmm.markov.filtering import Belief
from dphmm.markov.model import MarkovModel
from dphmm.types import Predecessors

if TYPE_CHECKING:
    from dphmm.markov.estimate import FitReport as FitReport
    from dphmm.markov.estimate import keep_visited as keep_visited
    from dphmm.markov.trajectories import fit as fit

__all__ = ["Belief", "FitReport", "MarkovModel", "Predecessors", "fit", "keep_visited"]


def __getattr__(name: str) -> Any:
    """Fitting is loaded where somebody fits: a release does not."""
    if name not in ("FitReport", "fit", "keep_visited"):
        raise AttributeError(f"module 'dphmm.markov' has no attribute {name!r}")
    from dphmm.markov import estimate, trajectories

    return globals().setdefault(name, getattr(trajectories if name == "fit" else estimate, name))


def __dir__() -> list[str]:
    return __all__
