"""What an answer or a fit would be worth: its noise by the probabilities one by one, and the account after it.

It would fail where an expected error is that of other noise than is drawn, where an account would be another than the
one that follows, where a cap is not seen, and where a fit looks at its data.
"""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from dphmm.accounting import MemoryLedger, Publication, ledger_summary
from dphmm.accounting.event import LearningEvent, NoisyCounts, NotPrivateEvent
from dphmm.accounting.forecast import Coming, Forecast, event_before, forecast_of_fit
from dphmm.errors import BudgetExceeded, InvalidInput
from dphmm.storage.publications import publish


def counts(scale, noise="laplace", name="counts"):
    return NoisyCounts(name, noise, Fraction(1), Fraction(scale))


def published(name, epsilon=1):
    return Publication(name, "query", "asked", "all rows", "add-remove", 1, Fraction(epsilon))


def store(ledger, asked):
    def make(admit):
        admit(asked, None)
        return b"result"

    return publish(ledger, make)


@pytest.mark.parametrize("scale", [Fraction(1, 10), Fraction(1), Fraction(42), Fraction(1, 1024)])
def test_laplace_noise_by_its_probabilities(scale):
    """The mean of |z|, and the least k with Pr(|z| <= k) >= 0.9."""
    weights = [math.exp(-abs(z) / scale) for z in range(-2000, 2001)]
    mean = sum(abs(z) * weight for z, weight in zip(range(-2000, 2001), weights, strict=True)) / sum(weights)
    within = [sum(weights[2000 - k : 2001 + k]) / sum(weights) for k in range(300)]
    part = counts(scale)
    assert part.expected_error == pytest.approx(mean, rel=1e-9)
    assert part.mostly == next(k for k, share in enumerate(within) if share >= 0.9)


@pytest.mark.parametrize("variance", [Fraction(1, 10), Fraction(1), Fraction(3, 2), 900, 9_999, 10_001, 250_000])
def test_gaussian_noise_by_its_probabilities(variance):
    weights = [math.exp(-z * z / (2 * variance)) for z in range(-9000, 9001)]
    mean = sum(abs(z) * weight for z, weight in zip(range(-9000, 9001), weights, strict=True)) / sum(weights)
    assert counts(variance, "gaussian").expected_error == pytest.approx(mean, rel=1e-5)


def test_noise_is_told_once_for_parts_that_are_alike_and_as_a_share_of_people():
    rounds = [counts(4, name=f"{name}, round {k}") for k in range(3) for name in ("counts", "sums")]
    forecast = Forecast((*rounds, counts(500), counts(9, name="sums")), "replace", 100, ("sums",))
    assert [(noise.part.name, noise.part.scale) for noise in forecast.noise] == [
        ("counts, round 0", 4), ("sums, round 0", 4), ("counts", 500), ("sums", 9),
    ]  # fmt: skip
    assert [noise.share and round(noise.share, 3) for noise in forecast.noise] == [0.04, 0.04, 5.0, None]
    said = [words for _, words in forecast.lines()]
    assert said[0].endswith("on the counts, round 0: expected error 3.959 in each number, 4 % of the people")
    assert said[2].endswith("expected error 500 in each number, 5 times as many as there are people")
    assert said[3].endswith("expected error 8.982 steps in each number")
    assert Forecast((counts(4),), "replace").lines()[0][1].endswith("expected error 3.959 in each number")
    assert "Gaussian, variance 4" in Forecast((counts(4, "gaussian"),), "replace").lines()[0][1]
    assert forecast.document()["noise"][2] == {
        "of": "counts", "noise": "laplace", "scale": "500", "expected_error": pytest.approx(500, abs=1), "share":
        pytest.approx(5, abs=0.01),
    }  # fmt: skip


class TestAccount:
    def test_it_is_the_account_that_follows(self):
        ledger = MemoryLedger()
        store(ledger, published("first", 2))
        told = Coming.of(ledger, published("second"))
        assert len(ledger.publications()) == 1
        store(ledger, published("second"))
        assert told.totals == ledger_summary(ledger).totals_of(Fraction(0))
        assert told.sentence == "a person would have lost at most 6 there, replaced, and at most 3 of being in the data"
        assert not told.stored and not told.refused

    def test_an_id_that_is_stored_costs_nothing_and_belongs_to_one_publication(self):
        ledger = MemoryLedger()
        store(ledger, published("first"))
        told = Coming.of(ledger, published("first"))
        assert told.stored and told.sentence == "this id is stored: nothing would be drawn or paid"
        assert told.totals == ledger_summary(ledger).totals_of(Fraction(0))
        with pytest.raises(InvalidInput, match="another id for another publication"):
            Coming.of(ledger, published("first", 2))

    @pytest.mark.parametrize("cap", [1, 2, 3])
    def test_a_cap_that_would_refuse_is_told(self, cap):
        ledger = MemoryLedger()
        with ledger.transaction() as transaction:
            transaction.bind_publications(Fraction(cap))
        told = Coming.of(ledger, published("first"))
        assert told.refused is (cap < 2) and told.refused is ("would be refused" in told.sentence)
        if told.refused:
            with pytest.raises(BudgetExceeded):
                store(ledger, published("first"))
        else:
            store(ledger, published("first"))

    def test_a_publication_without_a_bound(self):
        asked = Publication("first", "query", "asked", "all rows")
        told = Coming.of(MemoryLedger(), asked)
        assert "lost without bound there, replaced, and without bound of being" in told.sentence
        document = Forecast((counts(3),), "replace", account=told).document()["account"]
        assert document == {"stored": False, "refused": False, "replaced": None, "present": None}


class TestFits:
    EVENT = LearningEvent((counts(3),), "add-remove", 20, 1, True, unit="owner")

    def test_a_fit_ends_where_it_tells_its_event(self):
        def learn(admit):
            admit(self.EVENT)
            raise AssertionError("the data were looked at")

        assert event_before(learn) is self.EVENT

    def test_of_a_ledger_and_of_nothing(self):
        alone = forecast_of_fit(self.EVENT, 50, None, None, str)
        assert alone.account is None and alone.parts == self.EVENT.parts and alone.about == 50
        kept = forecast_of_fit(self.EVENT, None, MemoryLedger(), "walks", str)
        assert kept.account.totals.replaced.value == Fraction(2, 3)
        with pytest.raises(InvalidInput, match="event_id: got nothing"):
            forecast_of_fit(self.EVENT, None, MemoryLedger(), None, str)
        with pytest.raises(InvalidInput, match="method: got one without privacy"):
            forecast_of_fit(NotPrivateEvent("shown"), None, None, None, str)
