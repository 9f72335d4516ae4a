"""Where private learning starts: parameters that are public, and so never made from the data.

Proof: docs/proofs/learning.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dphmm._checks import whole
from dphmm.errors import InvalidInput
from dphmm.markov.hidden.memory import is_learned
from dphmm.markov.hidden.parameters import Parameters
from dphmm.markov.hidden.starting import ATTRIBUTES, drawn, letters, random_generator

MOST_STATES = 2**10
MOST_SYMBOLS = 2**20
#: Most entries of the emission probabilities.
MOST_EMISSIONS = 2**24


def public_starts(hmm: Any, count: int) -> list[Parameters]:
    """``count`` starts: random rows for the letters of ``init_params``, the model's own parameters for the others.

    Number of symbols: ``n_features``, or the width of a given ``emissionprob_``; never that of the data. Parameters
    that a fit has learned are refused: without privacy they tell about its data, and with it they have cost something
    that the event of another fit would not count.
    """
    redrawn = letters(hmm.init_params, "init_params")
    n, v = whole(hmm.n_states, "n_states", 1, MOST_STATES), _n_symbols(hmm, redrawn)
    if n * v > MOST_EMISSIONS:
        raise InvalidInput("n_features", v, f"at most {MOST_EMISSIONS // n} symbols for {n} states")
    random = random_generator(hmm.random_state)
    kept = {letter: _set(hmm, name) for letter, name in ATTRIBUTES.items() if letter not in redrawn}
    return [_dense(drawn(kept, n, v, random)) for _ in range(count if redrawn else 1)]


def _n_symbols(hmm: Any, redrawn: str) -> int:
    if hmm.n_features is not None:
        return whole(hmm.n_features, "n_features", 1, MOST_SYMBOLS)
    if "e" not in redrawn:
        return int(np.shape(_set(hmm, "emissionprob_"))[-1])
    expected = "the public number of symbols: private learning does not count those of the data"
    raise InvalidInput("n_features", None, expected)


def _set(hmm: Any, name: str) -> Any:
    given = getattr(hmm, name, None)
    if given is None:
        raise InvalidInput(name, "not set", "public start values, or its letter in init_params")
    if is_learned(hmm, name):
        raise InvalidInput(name, "what a fit has learned", "public start values")
    return given


def _dense(start: Parameters) -> Parameters:
    moves = start.transition.toarray() if start.is_sparse else start.transition
    return Parameters(start.initial, moves, start.emission)
