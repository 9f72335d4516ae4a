"""Where learning starts from: parameters drawn at random, beside those that the caller has set."""

from __future__ import annotations

from typing import Any

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.markov.hidden.parameters import Parameters, checked

#: The letters of ``params`` and ``init_params``, and the attributes they stand for.
ATTRIBUTES = {"s": "startprob_", "t": "transmat_", "e": "emissionprob_"}


def random_generator(given: Any) -> Any:
    """A generator: from a seed, a new one from the system for None, or the one that was given."""
    if given is None or (isinstance(given, (int, np.integer)) and not isinstance(given, bool)):
        try:
            return np.random.default_rng(given)
        except ValueError:
            raise InvalidInput("random_state", given, "a seed, 0 or more") from None
    if hasattr(given, "dirichlet") and hasattr(given, "random"):
        return given
    raise InvalidInput("random_state", type(given).__name__, "None, a seed or a NumPy generator")


def drawn(kept: dict[str, Any], n_states: int, n_symbols: int, random: Any) -> Parameters:
    """Each row of what is not in ``kept`` (by letter) uniform over all distributions, so nothing is impossible."""
    initial = kept["s"] if "s" in kept else random.dirichlet(np.ones(n_states))
    transition = kept["t"] if "t" in kept else random.dirichlet(np.ones(n_states), size=n_states)
    emission = kept["e"] if "e" in kept else random.dirichlet(np.ones(n_symbols), size=n_states)
    return checked(initial, transition, emission, n_states, n_symbols)


def letters(given: Any, field: str) -> str:
    """Some of the letters s, t, e; InvalidInput for others."""
    if not isinstance(given, str) or set(given) - set(ATTRIBUTES):
        raise InvalidInput(field, given, 'some of the letters "ste"')
    return given
