"""Private fits of hidden models from a frame: the model of the same sequences in one process, drawn once for an id.

It could fail where executors count other words or pairs than one process, where two columns of a row come apart, where
the model that was given is changed though nothing is stored, or where a job starts before public options are checked.
"""

from __future__ import annotations

import numpy as np
import pytest

from dphmm import StateSpace
from dphmm.accounting import MemoryLedger
from dphmm.errors import InvalidInput
from dphmm.markov import CategoricalHMM
from dphmm.samplers.entropy import ReplayBits
from dphmm.spark import hidden
from plain_rows import N, rows_of, sequences_of
from spark.worlds import Unread

pytestmark = pytest.mark.replayed_words

SYMBOLS = StateSpace.categories(["one", "two", "three", "four"])
LABELS, SIDES = StateSpace.categories(["fair", "loaded"]), StateSpace.categories(["low", "high"])
UNREAD = Unread(user="LongType", step="LongType", symbol="LongType", state="LongType")
ARRAYS = ("startprob_", "transmat_", "emissionprob_")


def model(n=2, v=N):
    return CategoricalHMM(n, n_features=v, random_state=3)


def same_model(found, expected):
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert found.privacy_ == expected.privacy_


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 1, "max_length": 4},
        {"epsilon": 1, "max_length": 4, "about": 20, "max_sequences": 2, "neighbours": "replace"},
        {"epsilon": 2, "max_length": 9, "order": 3},
        {"epsilon": 2, "max_length": 3, "order": 1, "n_starts": 2},
    ],
)
def test_under_the_same_words_it_is_the_fit_of_one_process(spark, options):
    rows = rows_of(3, 300, 20)
    frame = spark.createDataFrame(rows, "user long, step long, symbol long").repartition(5)
    ledger, given = MemoryLedger(), model()
    found = hidden.fit_hidden(given, frame, SYMBOLS, ledger=ledger, event_id="rolls", bits=ReplayBits(5), **options)
    sequences, owners = sequences_of(rows, 2)
    same_model(found, model().fit_private(sequences, owners=owners, bits=ReplayBits(5), **options))
    assert not hasattr(given, "transmat_") and found.symbols_ == tuple(SYMBOLS.names)
    assert [each.name for each in ledger.publications()] == ["rolls"]
    again = hidden.fit_hidden(given, UNREAD, SYMBOLS, ledger=ledger, event_id="rolls", bits=ReplayBits(6), **options)
    same_model(again, found)
    with pytest.raises(InvalidInput, match=r"^event_id: got \"rolls\""):
        hidden.fit_hidden(model(3), UNREAD, SYMBOLS, ledger=ledger, event_id="rolls", **options)


@pytest.mark.parametrize("by_name", [False, True])
def test_known_states_are_those_of_one_process(spark, by_name):
    """A row whose state or symbol is no name ends a sequence; of one step the pair of the least number counts."""
    rows, options = rows_of(4, 300, 20), {"epsilon": 1, "max_length": 3, "max_sequences": 2}
    # A pair is state * 2 + symbol; of numbers that are none, state or symbol is none.
    pairs = [(owner, step, z // 2 if z >= 0 else 7, z % 2 if z < N else 5) for owner, step, z in rows]
    kind = "long"
    if by_name:
        pairs = [
            (owner, step, ["fair", "loaded", "x"][min(s, 2)], ["low", "high", "y"][min(e, 2)])
            for owner, step, s, e in pairs
        ]
        kind = "string"
    frame = spark.createDataFrame(pairs, f"user long, step long, label {kind}, side {kind}").repartition(5)
    asked = {"states": LABELS, "columns": {"state": "label", "symbol": "side"}, "bits": ReplayBits(5), **options}
    found = hidden.fit_hidden(model(2, 2), frame, SIDES, ledger=MemoryLedger(), event_id="rolls", **asked)
    sequences, owners = sequences_of(rows, 1)
    states, seen = ([np.asarray(sequence) // 2 for sequence in sequences], [np.asarray(one) % 2 for one in sequences])
    same_model(found, model(2, 2).fit_private(seen, states=states, owners=owners, bits=ReplayBits(5), **options))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"epsilon": 0}, "epsilon: got 0"),
        ({"max_length": 0}, "max_length: got 0"),
        ({"order": 11}, "order: got 11"),
        ({"about": 0}, "about: got 0"),
        ({"symbols": LABELS}, "symbols: got 2 names"),
        ({"states": SYMBOLS}, "states: got 4 names"),
        ({"states": LABELS, "order": 2}, "states: got known states"),
        ({"states": LABELS, "columns": {"state": "who"}}, "a column state, or columns={'state': NAME}"),
        ({"columns": {"symbol": "who"}}, "a column symbol, or columns={'symbol': NAME}"),
        ({"bits": 3}, "bits: got int"),
    ],
)
def test_public_checks_come_before_any_job(options, told):
    ledger, given = MemoryLedger(), {"symbols": SYMBOLS, "epsilon": 1, "max_length": 4, **options}
    with pytest.raises(InvalidInput) as error:
        hidden.fit_hidden(model(), UNREAD, ledger=ledger, event_id="rolls", **given)
    assert told in str(error.value) and ledger.publications() == []
