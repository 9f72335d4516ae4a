"""Learning with differential privacy: chains from transition counts, hidden Markov models from noisy counts.

fit_private         a hidden Markov model, by one of METHODS
fit_chain           a Markov chain (``MarkovModel.fit_private``), with its event
fit_second_order    a chain of second order (``MarkovModel.second_order``), with its event
count_transitions   the first half of it: exact counts, which are private
fit_counts          the second half: one draw
spread              how far a private chain scatters

Whatever is published is an integer vector whose sensitivity is a theorem (``sensitivity``), plus integer noise
(``release``); everything after that is post-processing.
"""

from dphmm.markov.private.chain import fit_chain, fit_counts, fit_second_order
from dphmm.markov.private.hidden import METHODS, fit_private
from dphmm.markov.private.spread import spread
from dphmm.markov.private.transition_counts import TransitionCounts, count_transitions

__all__ = [
    "METHODS",
    "TransitionCounts",
    "count_transitions",
    "fit_chain",
    "fit_counts",
    "fit_private",
    "fit_second_order",
    "spread",
]
