"""Which models have a guarantee to tell of: those learned with noise, and no others."""

from __future__ import annotations

import numpy as np

import dphmm
from dphmm.accounting.event import LearningEvent, learning_event
from dphmm.statement.learning import learning_of


def test_a_model_learned_with_noise_has_its_event_and_others_have_none():
    private = dphmm.MarkovModel.fit_private([[0, 1], [1, 0]], 2, 1, 4, bits=dphmm.ReplayBits(1))
    event = learning_event(private.provenance)
    assert isinstance(event, LearningEvent) and event.epsilon == 1 and event.max_length == 4
    assert learning_of(private).epsilon == "1"
    plain = dphmm.MarkovModel(np.full(2, 0.5), np.full((2, 2), 0.5))
    assert learning_event(plain.provenance) is None and learning_of(plain) is None
