"""Hidden Markov models with categorical emissions: inference and learning.

CategoricalHMM   the estimator, with scikit-learn's conventions and hmmlearn's names
observations     sequences of symbols, checked
Parameters       initial, transition (dense or sparse) and emission probabilities
em               Baum-Welch from given parameters, on weighted sequences
"""

from dphmm.markov.hidden.baum_welch import ExpectedCounts, Monitor, Priors, em, expected_counts
from dphmm.markov.hidden.hmm import CategoricalHMM
from dphmm.markov.hidden.parameters import Observations, Parameters, observations

__all__ = [
    "CategoricalHMM",
    "ExpectedCounts",
    "Monitor",
    "Observations",
    "Parameters",
    "Priors",
    "em",
    "expected_counts",
    "observations",
]
