"""Publications in both ledgers: stored once, counted for everybody, capped before anything is drawn.

It could fail where a publication is drawn twice or shown unpaid, where another one takes its name, where a cap is kept
for releases or publications alone, where a group's cap is kept for each member, or where the file forgets any of it.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dphmm.accounting import Caps, MemoryLedger, Publication, Request, Requests, SessionHeader
from dphmm.errors import BudgetExceeded, DphmmError, InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.markov.private import count_transitions, fit_counts
from dphmm.markov.private.planned import PlannedFit
from dphmm.markov.private.sensitivity import RecordBounds
from dphmm.samplers.entropy import ReplayBits
from dphmm.storage.ledger import open_ledger, schema
from dphmm.storage.publications import fit_counts_once, model_of
from storing import FREE, PLAN, store

pytestmark = pytest.mark.replayed_words

PERSON = "all sequences of one person"
FIT = Publication("walks", "fit", "digest", PERSON, "add-remove", epsilon=Fraction(1), counts=True)
NOISY = Publication("noisy", "fit", "digest", PERSON, "add-remove", rho=Fraction(1, 8), counts=True)
OPEN = Publication("open", "fit", "digest", PERSON)


def publish(ledger, publication, result=b"result", delta=None):
    """The stored publication and whether it was drawn now."""
    with ledger.transaction() as transaction:
        admitted = transaction.admit_publication(publication, delta)
        if admitted.stored is not None:
            return admitted.stored, False
        return transaction.add_publication(admitted, result), True


def begin(ledger, subject="ann", caps=FREE):
    with ledger.transaction([subject]) as transaction:
        transaction.open_session(SessionHeader(subject, "state", {}))
        transaction.bind(subject, caps)


def release(ledger, t, epsilon=Fraction(1), subject="ann"):
    request = Request(subject, "state", t, "release", epsilon, epsilon, PLAN, True, False)
    with ledger.transaction([subject]) as transaction:
        store(transaction, request, lambda: (t,), FREE)


def release_many(ledger, counts, epsilon=Fraction(1)):
    """Steps 1 to n of each of these subjects, at once."""
    subjects = list(counts)
    term = Request("", "state", 1, "release", epsilon, epsilon, PLAN, True, False)
    rows = np.repeat(np.arange(len(subjects)), list(counts.values()))
    t = np.concatenate([np.arange(1, n + 1) for n in counts.values()])
    requests = Requests("state", subjects, [term], rows, np.zeros(len(t), np.int64), t, np.ones(len(t), np.int64))
    with ledger.transaction(subjects) as transaction:
        admitted = transaction.admit_many(requests, FREE)
        transaction.add_many(admitted, np.ones((len(t), 1), np.int64))


def refused(ledger, asked, match):
    before = everything(ledger)
    with pytest.raises((BudgetExceeded, InvalidInput), match=match):
        asked()
    assert everything(ledger) == before


def everything(ledger):
    return (
        [(key, ledger.entries(*key), ledger.spent(key[0]), ledger.caps(key[0])) for key in ledger.sessions()],
        [ledger.published(each.name) for each in ledger.publications()],
        ledger.facts(),
    )


class TestPublications:
    def test_the_same_name_gives_the_stored_result(self, ledger):
        first, drawn = publish(ledger, FIT, b"first")
        again, drawn_again = publish(ledger, FIT, b"second")
        assert (drawn, drawn_again) == (True, False)
        assert again == first == ledger.published("walks")
        assert (first.result, first.version, first.publication) == (b"first", 1, FIT)
        assert ledger.publications() == [FIT]

    @pytest.mark.parametrize(
        "other",
        [
            {"statement": "other"}, {"epsilon": Fraction(2)}, {"relation": "replace"}, {"kind": "query"},
            {"units": 2}, {"counts": False},
        ],
    )  # fmt: skip
    def test_another_one_under_its_name_is_refused(self, ledger, other):
        publish(ledger, FIT)
        refused(
            ledger,
            lambda: publish(ledger, replace(FIT, **other)),
            r"^event_id: got \"walks\" with (another |other settings than it was stored with at )",
        )

    def test_an_error_between_leaves_nothing(self, ledger):
        with pytest.raises(ZeroDivisionError), ledger.transaction() as transaction:
            transaction.add_publication(transaction.admit_publication(FIT), b"result")
            raise ZeroDivisionError
        assert ledger.publications() == []

    def test_an_admission_is_recorded_once(self, ledger):
        with ledger.transaction() as transaction:
            admitted = transaction.admit_publication(FIT)
            transaction.add_publication(admitted, b"result")
            with pytest.raises(InvalidInput, match="admitted"):
                transaction.add_publication(admitted, b"result")
            assert transaction.admit_publication(FIT).stored.result == b"result"

    def test_what_is_no_result_is_refused(self, ledger):
        refused(ledger, lambda: publish(ledger, FIT, "text"), "^result: got str")

    def test_the_first_delta_stays(self, ledger):
        publish(ledger, FIT, delta=Fraction(1, 10))
        assert ledger.facts() == {}
        publish(ledger, NOISY, delta=Fraction(1, 100))
        publish(ledger, replace(NOISY, name="more"), delta=Fraction(1, 1000))
        assert ledger.facts() == {"delta": Fraction(1, 100)}


class TestCaps:
    @pytest.mark.parametrize("cap", [Caps(epsilon=Fraction(4)), Caps(cost=Fraction(4))])
    def test_releases_and_publications_share_a_cap(self, ledger, cap):
        """A fit that hides whether a person is there loses twice its epsilon of a person who is replaced."""
        begin(ledger, caps=cap)
        release(ledger, 1)
        publish(ledger, FIT)
        release(ledger, 2)
        refused(ledger, lambda: release(ledger, 3, Fraction(1, 1000)), "nothing was drawn or spent")
        refused(ledger, lambda: release_many(ledger, {"ann": 3}, Fraction(1)), "nothing was drawn or spent")
        refused(ledger, lambda: publish(ledger, replace(FIT, name="more", epsilon=Fraction(1, 1000))), "over its cap")
        assert ledger.spent("ann").epsilon == 2
        release(ledger, 2)
        assert publish(ledger, FIT)[1] is False

    def test_a_publication_counts_for_everybody(self, ledger):
        begin(ledger, "ann", Caps(epsilon=Fraction(9)))
        begin(ledger, "bob", Caps(epsilon=Fraction(3)))
        release(ledger, 1, Fraction(3, 2), "bob")
        refused(ledger, lambda: publish(ledger, FIT), 'the account of "bob" over its cap')
        publish(ledger, replace(FIT, relation="replace"))
        # It is counted beside an account, not in it.
        release_many(ledger, {"ann": 1})
        assert ledger.spent("ann").epsilon == 1

    def test_without_a_bound_no_cap_can_be_kept(self, ledger):
        begin(ledger, caps=Caps(epsilon=Fraction(9)))
        refused(ledger, lambda: publish(ledger, OPEN), 'nothing bounds what "open" loses')
        other = MemoryLedger()
        publish(other, OPEN)
        begin(other)
        release(other, 1)
        begin(other, caps=Caps(epsilon=Fraction(9)))
        refused(other, lambda: release(other, 2), 'nothing bounds what "open" loses')

    def test_rho_is_summed_before_it_is_converted(self, ledger):
        """Converted one by one they would not fit."""
        from dphmm.accounting.event import epsilon_of

        delta = Fraction(1, 10**5)
        both = epsilon_of(2 * 2 * NOISY.rho, delta)
        assert both < 2 * epsilon_of(2 * NOISY.rho, delta)
        begin(ledger, caps=Caps(epsilon=both))
        publish(ledger, NOISY, delta=delta)
        publish(ledger, replace(NOISY, name="more"), delta=delta)
        refused(ledger, lambda: release(ledger, 1, Fraction(1, 10**9)), "cap")

    def test_the_cap_of_all_publications(self, ledger):
        def bind(cap):
            with ledger.transaction() as transaction:
                transaction.bind_publications(Fraction(cap))

        bind(3)
        publish(ledger, FIT)
        refused(ledger, lambda: publish(ledger, replace(FIT, name="more")), "would lose 4 of one person, cap 3")
        for other in (5, 2):
            refused(ledger, lambda cap=other: bind(cap), f"^cap_epsilon: got {other}; expected 3, .* which stays$")
        bind(3)
        assert ledger.facts()["cap_epsilon"] == 3


class TestTheFile:
    @pytest.fixture
    def path(self, tmp_path):
        with open_ledger(tmp_path / "ledger.db") as made:
            begin(made, "ann")
            begin(made, "bob")
            publish(made, FIT, b"first")
            publish(made, NOISY, b"second", Fraction(1, 100))
            release(made, 1, Fraction(3))
            made.check()
        return tmp_path / "ledger.db"

    def test_it_is_there_after_opening_again(self, path):
        for read_only in (False, True):
            with open_ledger(path, read_only=read_only) as made:
                made.check()
                assert made.publications() == [FIT, NOISY]
                assert made.published("noisy").result == b"second"
                assert made.published("nobody") is None
                assert made.facts() == {"delta": Fraction(1, 100)}
        with open_ledger(path) as made:
            assert publish(made, FIT, b"other") == (made.published("walks"), False)

    def test_a_program_that_does_not_know_them_refuses_the_file(self, path, monkeypatch):
        monkeypatch.setattr(schema, "FEATURES", schema.FEATURES - {"publications"})
        with pytest.raises(InvalidInput, match="a ledger without 'publications': upgrade dphmm"):
            open_ledger(path)

    def test_a_file_without_them_has_no_feature(self, tmp_path):
        with open_ledger(tmp_path / "plain.db") as made:
            begin(made)
            release(made, 1)
            assert (made.publications(), made.facts()) == ([], {})
        with closing(sqlite3.connect(tmp_path / "plain.db")) as file:
            assert file.execute("SELECT value FROM meta WHERE key = 'features'").fetchone() == ("",)

    @pytest.mark.parametrize(
        ("change", "told"),
        [
            ("UPDATE publication SET result = x'00' WHERE id = 'walks'", "damaged publication"),
            ("UPDATE publication SET result = CAST(result || 'x' AS BLOB) WHERE id = 'walks'", "damaged publication"),
            ("UPDATE publication SET epsilon = 'much' WHERE id = 'walks'", "damaged publication"),
            ("DELETE FROM publication WHERE id = 'walks'", "a publication is missing"),
            ("UPDATE meta SET value = 'caps' WHERE key = 'features'", "does not say so"),
            ("UPDATE meta SET value = 'x' WHERE key = 'delta'", "damaged row"),
        ],
    )
    def test_the_check_finds_what_was_changed(self, path, change, told):
        with closing(sqlite3.connect(path)) as file:
            file.execute(change)
            file.commit()
        with open_ledger(path) as made, pytest.raises(DphmmError, match=told):
            made.check()

    def test_one_name_has_one_publication(self, path):
        with closing(sqlite3.connect(path)) as file, pytest.raises(sqlite3.IntegrityError):
            file.execute("INSERT INTO publication SELECT * FROM publication WHERE id = 'walks'")


class TestFitCountsOnce:
    """Count first, then draw in the transaction that stores: `fit_counts_once`."""

    COUNTS = staticmethod(lambda: count_transitions([[0, 1, 1], [1, 0]], 2, 3))

    def planned(self, **options):
        return PlannedFit(2, **{"epsilon": 1, "caps": RecordBounds(3), "unit": "sequence", **options})

    def unasked(self):
        raise AssertionError("the data were counted")

    def test_it_is_the_fit_and_is_stored_before_it_is_given(self, ledger):
        model = fit_counts_once(ledger, "walks", self.planned(bits=ReplayBits(1)), self.COUNTS)
        assert model.digest == fit_counts(self.COUNTS(), 1, bits=ReplayBits(1))[0].digest
        stored = ledger.published("walks")
        assert model_of(stored.result).digest == model.digest
        assert stored.publication.statement and ledger.publications() == [stored.publication]

    def test_the_same_id_gives_the_stored_model_and_counts_nothing(self, ledger):
        model = fit_counts_once(ledger, "walks", self.planned(), self.COUNTS)
        assert ledger.publications()[0].epsilon == 1
        planned = self.planned()
        assert fit_counts_once(ledger, "walks", planned, self.unasked).digest == model.digest
        planned.learned(self.COUNTS())  # its noise had not been drawn
        other = fit_counts_once(ledger, "more", self.planned(), self.COUNTS)
        assert other.digest != model.digest and len(ledger.publications()) == 2

    @pytest.mark.parametrize(
        "other",
        [
            {"epsilon": 2}, {"caps": RecordBounds(4)}, {"caps": RecordBounds(3, 2)}, {"unit": "owner"},
            {"caps": RecordBounds(3, 1, "replace")}, {"mask": [[1, 0], [1, 1]]}, {"initial": "uniform"},
            {"step": 60}, {"source": "other"}, {"bits": ReplayBits(1)},
        ],
    )  # fmt: skip
    def test_another_fit_under_a_stored_id_is_refused_before_anything_is_counted(self, ledger, other):
        fit_counts_once(ledger, "walks", self.planned(), self.COUNTS)
        asked = self.planned(**other)
        refused(ledger, lambda: fit_counts_once(ledger, "walks", asked, self.unasked), r"^event_id: got \"walks\"")

    def test_a_cap_refuses_before_anything_is_counted(self, ledger):
        with ledger.transaction() as transaction:
            transaction.bind_publications(Fraction(1))
        asked = self.planned()
        refused(ledger, lambda: fit_counts_once(ledger, "walks", asked, self.unasked), "nothing was drawn or spent")

    def test_no_transaction_is_open_while_counting(self, ledger):
        def count():
            publish(ledger, replace(FIT, name="other"))
            return self.COUNTS()

        fit_counts_once(ledger, "walks", self.planned(), count)
        assert [each.name for each in ledger.publications()] == ["other", "walks"]

    def test_of_two_that_count_at_once_one_draws(self, ledger):
        first = []

        def count():
            first.append(fit_counts_once(ledger, "walks", self.planned(), self.COUNTS))
            return self.COUNTS()

        planned = self.planned()
        second = fit_counts_once(ledger, "walks", planned, count)
        assert second.digest == first[0].digest and len(ledger.publications()) == 1
        planned.learned(self.COUNTS())  # its noise had not been drawn

    def test_what_counting_raises_leaves_nothing(self, ledger):
        with pytest.raises(ZeroDivisionError):
            fit_counts_once(ledger, "walks", self.planned(), lambda: 1 / 0)
        assert ledger.publications() == []

    @pytest.mark.parametrize("after", [False, True])
    def test_whoever_dies_around_the_commit_leaves_one_answer(self, ledger, monkeypatch, after):
        """Before it nothing is stored, and nothing was shown; after it the id gives what was stored."""
        plainly = type(ledger).transaction

        def dying(self, *given):
            transaction = plainly(self, *given)
            end = transaction.__exit__

            class Dying:
                def __enter__(inner):
                    return transaction.__enter__()

                def __exit__(inner, *error):
                    if drawn and not after:
                        end(KeyboardInterrupt, KeyboardInterrupt(), None)
                        raise KeyboardInterrupt
                    end(*error)
                    if drawn:
                        raise KeyboardInterrupt

            return Dying()

        drawn = []
        planned = self.planned()
        learned = planned.learned
        planned.learned = lambda counts: drawn.append(learned(counts)) or drawn[0]
        with monkeypatch.context() as patched:
            patched.setattr(type(ledger), "transaction", dying)
            with pytest.raises(KeyboardInterrupt):
                fit_counts_once(ledger, "walks", planned, self.COUNTS)
        assert len(ledger.publications()) == int(after)
        again = fit_counts_once(ledger, "walks", self.planned(), self.unasked if after else self.COUNTS)
        assert (again.digest == MarkovModel(**drawn[0]._asdict()).digest) == after
