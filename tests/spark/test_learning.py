"""Private fits from a frame: the model of the same sequences in one process, drawn once for an id, stored before shown.

It could fail where executors keep other sequences than one process, where a repeated or restarted driver draws a second
time for an id, where a job starts before public options and caps are checked, or where a model is shown unstored.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import dphmm
from dphmm import StateSpace
from dphmm.accounting import MemoryLedger
from dphmm.errors import BudgetExceeded, InvalidInput
from dphmm.samplers.entropy import ReplayBits
from dphmm.spark import queries
from plain_rows import N, rows_of, sequences_of
from spark.deaths import drawn_by_dying_drivers
from spark.worlds import Unread

pytestmark = pytest.mark.replayed_words

SPACE = StateSpace.categories(["home", "work", "gym", "park"])
SCHEMA = "user long, step long, state long"
UNREAD = Unread(user="LongType", step="LongType", state="LongType")


def in_process(rows, **options):
    """`MarkovModel.fit_private` of the same sequences."""
    sequences, owners = sequences_of(rows, 1 if options.get("initial", "first") == "first" else 2)
    given = {"space": SPACE, "bits": ReplayBits(5), **options}
    return dphmm.MarkovModel.fit_private(sequences, N, owners=owners, **given)


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 1, "max_length": 4},
        {"epsilon": "0.3", "max_length": 3, "max_sequences": 2, "neighbours": "replace", "initial": "first"},
        {"epsilon": 2, "max_length": 9, "mask": np.eye(N) + np.eye(N, k=1), "initial": "uniform"},
        {"epsilon": 1, "max_length": 4, "slots": dphmm.markov.Slots.parse("1,2+")},
    ],
)
def test_under_the_same_words_it_is_the_fit_of_one_process(spark, options):
    rows = rows_of(3, 300, 20)
    frame = spark.createDataFrame(rows, SCHEMA).repartition(5)
    ledger = MemoryLedger()
    model, event = queries.fit_private(frame, SPACE, ledger=ledger, event_id="walks", bits=ReplayBits(5), **options)
    expected = in_process(rows, **options)
    assert model.digest == expected.digest and model.provenance == expected.provenance
    np.testing.assert_array_equal(model.initial, expected.initial)
    assert event.epsilon == Fraction(str(options["epsilon"])) and event.unit == "owner"
    assert [each.name for each in ledger.publications()] == ["walks"]


def test_spellings_of_a_name_are_one_record(spark):
    """Two spellings would be two records with a cap each, under noise for one."""
    rows = [(f"Ann {owner}", step, state) for owner, step, state in rows_of(3, 300, 20)]
    spelt = [(name if step % 2 else f" {name.upper()}", step, state) for name, step, state in rows]
    frame = spark.createDataFrame(spelt, "user string, step long, state long").repartition(5)
    options = {"epsilon": 1, "max_length": 4, "max_sequences": 2}
    models = [
        queries.fit_private(frame, SPACE, ledger=MemoryLedger(rule), event_id="walks", bits=ReplayBits(5), **options)[0]
        for rule in ("same", "exact")
    ]
    assert [model.digest for model in models] == [in_process(own, **options).digest for own in (rows, spelt)]


def test_fault_69_the_same_id_gives_the_stored_model_whatever_the_frame_is(spark, monkeypatch):
    ledger, given = MemoryLedger(), {"epsilon": 1, "max_length": 4, "event_id": "walks"}
    first, event = queries.fit_private(spark.createDataFrame(rows_of(1), SCHEMA), SPACE, ledger=ledger, **given)
    assert ledger.publications()[0].epsilon == 1 and event.secure
    other = spark.createDataFrame(rows_of(2), SCHEMA)

    def no_job(*_):
        raise AssertionError("a job was started")

    with monkeypatch.context() as patched:
        patched.setattr(queries, "counted", no_job)
        again, event_again = queries.fit_private(other, SPACE, ledger=ledger, **given)
        assert again.digest == first.digest and event_again == event
        with pytest.raises(InvalidInput, match=r"^event_id: got \"walks\""):
            queries.fit_private(other, SPACE, ledger=ledger, **{**given, "epsilon": 2})
        with pytest.raises(InvalidInput, match=r"^event_id: got \"walks\""):
            renamed = StateSpace.categories(["home", "work", "gym", "pool"])
            queries.fit_private(other, renamed, ledger=ledger, **given)
    anew, _ = queries.fit_private(other, SPACE, ledger=ledger, **{**given, "event_id": "more"})
    assert anew.digest != first.digest
    assert [each.name for each in ledger.publications()] == ["walks", "more"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"epsilon": 0}, "epsilon: got 0"),
        ({"max_length": 1}, "max_length: got 1"),
        ({"max_sequences": 0}, "max_sequences: got 0"),
        ({"neighbours": "x"}, "neighbours: got x"),
        ({"initial": "x"}, "initial: got x"),
        ({"mask": "x"}, "mask: got x"),
        ({"bits": 3}, "bits: got int"),
        ({"columns": {"user": "who"}}, "columns['user']: got who"),
        ({"event_id": ""}, "event_id: got"),
        ({"event_id": 3}, "event_id: got"),
    ],
)
def test_public_checks_come_before_any_job(options, told):
    ledger = MemoryLedger()
    given = {"epsilon": 1, "max_length": 4, "event_id": "walks", **options}
    with pytest.raises(InvalidInput) as error:
        queries.fit_private(UNREAD, SPACE, ledger=ledger, **given)
    assert told in str(error.value) and ledger.publications() == []


def test_sequences_that_begin_and_end_are_those_of_one_process(spark):
    space = StateSpace.categories(["home", "work", "gym", "END"])
    rows = rows_of(3, 300, 20)
    frame, given = spark.createDataFrame(rows, SCHEMA).repartition(5), {"max_length": 3, "max_sequences": 2}
    model, event = queries.fit_private(
        frame, space, 1, ledger=MemoryLedger(), event_id="walks", bits=ReplayBits(5), **given
    )
    expected = in_process(rows, epsilon=1, end=3, space=space, **given)
    assert model.digest == expected.digest and model.provenance == expected.provenance
    assert event.parts[0].sensitivity == 2 * (3 + 1)


def test_a_cap_refuses_before_any_job():
    ledger = MemoryLedger()
    with ledger.transaction() as transaction:
        transaction.bind_publications(Fraction(1))
    with pytest.raises(BudgetExceeded, match="nothing was drawn or spent"):
        queries.fit_private(UNREAD, SPACE, 1, 4, ledger=ledger, event_id="walks")


def test_a_job_that_fails_leaves_nothing(spark):
    def broken(batches):
        raise ValueError("no rows today")

    frame = spark.createDataFrame(rows_of(1), SCHEMA)
    ledger = MemoryLedger()
    with pytest.raises(Exception, match="no rows today"):
        queries.fit_private(frame.mapInArrow(broken, frame.schema), SPACE, 1, 4, ledger=ledger, event_id="walks")
    assert ledger.publications() == []
    queries.fit_private(frame, SPACE, 1, 4, ledger=ledger, event_id="walks")
    assert len(ledger.publications()) == 1


#: A driver that ends, without a word, before or after the commit of the transaction that drew.
DRIVER = """
import os, sys
from dphmm import StateSpace
from dphmm import MarkovModel
from dphmm.markov.private import count_transitions, planned
from dphmm.spark import queries
from dphmm.storage import publications
from dphmm.storage.ledger import open_ledger
from spark.deaths import in_turn

learned = planned.PlannedFit.learned
path, drawn, *whens = sys.argv[1:]

class Schema:
    fields = [type("Field", (), {"name": n, "dataType": type("LongType", (), {})()}) for n in ("user", "step", "state")]

def traced(self, counts):
    parts = learned(self, counts)
    with open(drawn, "a") as file:
        file.write(MarkovModel(**parts._asdict()).digest + "\\n")
    if when == "before":
        os._exit(9)
    return parts

def dying(published):
    if when == "after":
        os._exit(9)
    return shown(published)

shown, publications._stored_model = publications._stored_model, dying
planned.PlannedFit.learned = traced
queries.counted = lambda *_: count_transitions([[0, 1, 1]], 2, 4, owners=["a"])
frame = type("Frame", (), {"schema": Schema})

def job(then):
    global when
    when = then
    with open_ledger(path) as ledger:
        model, _ = queries.fit_private(
            frame, StateSpace.categories(["a", "b"]), 1, 4, ledger=ledger, event_id="walks"
        )
    return model.digest

in_turn(job, whens)
"""


def test_fault_68_a_driver_that_dies_after_drawing(tmp_path):
    """Before the commit nothing is stored, and the next driver draws; after it the id gives the stored model."""

    first, second = drawn_by_dying_drivers(DRIVER, tmp_path)
    assert first != second
