"""The budget per record, and totals of several queries: what is not proved is refused, and sums do not bound totals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dependent_models import binary
from dphmm import ReplayBits
from dphmm.accounting.event import DependentEvent, per_record_total
from dphmm.dependent import histogram, mean, together, total
from dphmm.errors import InvalidInput, Refused

#: What draws by default replays words here, each test its own.
pytestmark = pytest.mark.replayed_words


STATES = np.array([[0, 0, 1, 1, 0], [1, 1, 1, 0, 0]])


def bits():
    return ReplayBits(7)


class TestClaims:
    def test_what_is_not_proved_is_refused(self):
        with pytest.raises(Refused, match="not 1-DDP"):
            histogram(STATES, binary(0.01, 0.1, 5), 1, n_states=2, mechanism="independent")
        bursty = binary(0.001, 0.1, 100)
        states = np.zeros(100, dtype=int)
        with pytest.raises(Refused, match="not 1-DDP"):
            histogram(states, bursty, 1, n_states=2, mechanism="dpm")
        found = histogram(states, bursty, 1, n_states=2, mechanism="dpm", accept_unproved=True)
        assert found.event.claimed is None and "nothing is proved" in found.event.statement
        with pytest.raises(Refused, match="not proved"):
            _ = found.event.epsilon

    def test_groups(self):
        found = mean([1.0, 2.0, 3.0], ("group", 3), 1, bounds=(0, 4))
        assert found.event.per_record == Fraction(1, 3) and found.event.epsilon == 1
        assert "under groups of 3" in found.event.statement

    def test_two_queries_lose_more_than_the_sum_of_their_claims(self):
        """The bursty chain: ε = 1 twice is 2.31, and the recursion at the summed ε₀ says so."""
        model = binary(0.01, 0.1, 100)
        states = np.zeros(100, dtype=int)
        events = [total(states, model, 1, values=np.array([0, 1])).event for _ in range(2)]
        both = together(model, events)
        assert float(both.value) == pytest.approx(2.31, abs=5e-3)
        assert per_record_total(events).value == 2 * events[0].per_record
        assert float(together(model, events[:1]).value) == pytest.approx(1, abs=1e-6)
        with pytest.raises(Refused, match="replayed"):
            together(model, [total(states, model, 1, values=np.array([0, 1]), bits=bits()).event])

    def test_events_are_checked(self):
        with pytest.raises(InvalidInput, match="parts"):
            DependentEvent("q", "r", (), "m", "d", None, "w", True)
