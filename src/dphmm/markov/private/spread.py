"""The spread of a private chain by a parametric bootstrap: fits to invented tables of the fitted chain.

It is a spread and no interval: it shows how far noise and sampling scatter such a fit, and nothing of its bias, which
the prior has where the noise is wide. Nothing of the data but the model enters, so it costs no privacy.

Proof: docs/proofs/noisy-tables.md.
"""

from __future__ import annotations

import numpy as np

from dphmm._checks import whole
from dphmm.accounting.event import LearningEvent
from dphmm.errors import InvalidInput
from dphmm.markov.hidden.parameters import Parameters
from dphmm.markov.model import MarkovModel
from dphmm.markov.private.noisy_table import rates_of
from dphmm.types import FloatArray


def spread(model: MarkovModel, event: LearningEvent, about: int, draws: int = 20, seed: int = 0) -> FloatArray:
    """The standard deviation of every transition probability (moves,), in the order of ``model.transition.data``.

    Parameters
    ----------
    model, event : of a private fit of a chain.
    about : how many people there are, on the owner's word; each is taken to make ``event.max_length - 1`` moves.
    draws, seed : how many tables are invented, and from which numbers: public.

    Raises InvalidInput for an event of another fit than of a chain, and for numbers that are none.

    Examples
    --------
    >>> import dphmm
    >>> from dphmm.markov.private import fit_chain, spread
    >>> model, event = fit_chain([[0, 1, 1]] * 40, 2, 1, 3, bits=dphmm.ReplayBits(1))
    >>> spread(model, event, 40).shape
    (4,)
    """
    people, times = whole(about, "about", 1), whole(draws, "draws", 2, 10_000)
    if len(event.parts) != 1 or not event.parts[0].name.startswith("transitions") or event.max_length < 2:
        raise InvalidInput("event", event.parts[0].name, "that of a private fit of a chain")
    moves, n, random = model.transition, model.n_states, np.random.default_rng(whole(seed, "seed", 0))
    rows, columns = np.repeat(np.arange(n), np.diff(moves.indptr)), moves.indices.astype(np.int64)
    resting = Parameters(model.initial, moves, np.eye(n)).stationary
    means = people * (event.max_length - 1) * resting[rows] * moves.data
    scale = float(event.parts[0].scale)
    fall, learned = -np.expm1(-1.0 / scale), []
    for _ in range(times):
        noise = random.geometric(fall, len(rows)) - random.geometric(fall, len(rows))
        (rates,) = rates_of((random.poisson(means) + noise).astype(np.float64)[None], rows, columns, n, scale)
        learned.append(rates / np.bincount(rows, weights=rates, minlength=n)[rows])
    return np.asarray(np.std(learned, axis=0, ddof=1))
