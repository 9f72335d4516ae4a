"""Markov models of where subjects go: the model, fitting it, and moving beliefs with it.

MarkovModel     initial distribution, transition matrix, structure
fit             maximum likelihood from integer sequences, with a FitReport
Slots           transition matrices by time of day
keep_visited    leave out cells that nobody visits
hidden          hidden Markov models: CategoricalHMM and what it is made of
Belief          log-probabilities beside a support that never underflows: predict, condition
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dphmm._lazy import lazy
from dphmm.markov.filtering import Belief as Belief
from dphmm.markov.model import MarkovModel as MarkovModel
from dphmm.types import Predecessors as Predecessors

if TYPE_CHECKING:
    from dphmm.markov.estimate import FitReport as FitReport
    from dphmm.markov.estimate import keep_visited as keep_visited
    from dphmm.markov.hidden.hmm import CategoricalHMM as CategoricalHMM
    from dphmm.markov.slots import Slots as Slots
    from dphmm.markov.trajectories import fit as fit

__getattr__, __dir__, __all__ = lazy(__name__)
