"""Markov models of where subjects go: the model, fitting it, and moving beliefs with it.

MarkovModel     initial distribution, transition matrix, structure
fit             maximum likelihood from integer sequences, with a FitReport
keep_visited    leave out cells that nobody visits
hidden          hidden Markov models: CategoricalHMM and what it is made of
Belief          log-probabilities beside a support that never underflows: predict, condition
"""

from dphmm.markov.estimate import FitReport, fit, keep_visited
from dphmm.markov.filtering import Belief
from dphmm.markov.model import MarkovModel, Predecessors

__all__ = ["Belief", "FitReport", "MarkovModel", "Predecessors", "fit", "keep_visited"]
