"""Learning with differential privacy: chains from transition counts, hidden Markov models from noisy counts.

fit_private     a hidden Markov model, by one of METHODS
fit_chain       a Markov chain (``MarkovModel.fit_private``), with its event

Whatever is published is an integer vector whose sensitivity is a theorem (``sensitivity``), plus integer noise
(``release``); everything after that is post-processing.
"""

from dphmm.markov.private.chain import fit_chain
from dphmm.markov.private.hidden import METHODS, fit_private

__all__ = ["METHODS", "fit_chain", "fit_private"]
