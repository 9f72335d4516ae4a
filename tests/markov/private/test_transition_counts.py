"""Counting apart from drawing: exact, by plain loops; the same model as in one go; nothing of it is shown or written.

It could fail where a cap comes after counting, where totals that are added in parts lose some, where counts are drawn
from twice or under other caps than they were taken with, or where a repr, an error or a pickle has a count in it.
"""

from __future__ import annotations

import copy
import io
import itertools
import logging
import pickle
from collections import Counter

import numpy as np
import pytest
from scipy import sparse

import dphmm
from dphmm.errors import InvalidInput
from dphmm.markov.private import count_transitions, fit_chain, fit_counts, transition_counts
from dphmm.markov.private.chain import PlannedFit
from dphmm.markov.private.sensitivity import Caps
from dphmm.markov.private.transition_counts import KeyTotals
from dphmm.samplers.entropy import ReplayBits

pytestmark = pytest.mark.replayed_words

MASK = sparse.csr_array(np.array([[1, 0, 1, 0], [0, 1, 1, 0], [1, 1, 0, 1], [0, 0, 1, 1]]))


def data_of(seed, people=9):
    """Sequences of states 0 to 3, and whose each is."""
    source = np.random.default_rng(seed)
    sequences = [source.integers(0, 4, size=source.integers(1, 8)).tolist() for _ in range(30)]
    return sequences, source.integers(0, people, size=30).tolist()


def by_loops(sequences, owners, length, most):
    """(moves, starts) of the first ``most`` sequences of each owner, cut to ``length``."""
    kept, moves, starts = Counter(), Counter(), Counter()
    for sequence, owner in zip(sequences, owners, strict=True):
        kept[owner] += 1
        if kept[owner] <= most:
            cut = sequence[:length]
            starts[cut[0]] += 1
            moves.update(itertools.pairwise(cut))
    return moves, starts


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("length", "most"), [(1, 1), (2, 1), (3, 2), (9, 40)])
def test_they_are_those_of_plain_loops(seed, length, most):
    sequences, owners = data_of(seed)
    counts = count_transitions(sequences, 4, length, owners=owners, max_sequences=most)
    moves, starts = by_loops(sequences, owners, length, most)
    assert counts.transitions.toarray().tolist() == [[moves[i, j] for j in range(4)] for i in range(4)]
    assert counts.starts.tolist() == [starts[i] for i in range(4)]
    assert counts.n_owners == len(set(owners)) and counts.left_out == 0
    assert counts.transitions.dtype == counts.starts.dtype == np.int64
    assert (counts.n_states, counts.max_length, counts.max_sequences, counts.unit) == (4, length, most, "owner")


def test_without_owners_every_sequence_is_a_record():
    counts = count_transitions(iter([[0, 1], [1, 1]]), 2, 5)
    assert (counts.n_owners, counts.unit) == (2, "sequence")
    empty = count_transitions([], 2, 5)
    assert empty.n_owners == 0 and not empty.transitions.nnz and empty.starts.tolist() == [0, 0]


@pytest.mark.parametrize("initial", ["occupancy", "first", "uniform"])
@pytest.mark.parametrize("mask", [None, MASK])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_two_steps_give_the_model_of_one(initial, mask, neighbours):
    sequences, owners = data_of(1)
    options = {"initial": initial, "mask": mask, "neighbours": neighbours, "source": "walks.csv"}
    counts = count_transitions(sequences, 4, 5, owners=owners, max_sequences=2)
    model, event = fit_counts(counts, "0.5", bits=ReplayBits(3), **options)
    whole = fit_chain(sequences, 4, "0.5", 5, owners=owners, max_sequences=2, bits=ReplayBits(3), **options)
    assert model.digest == whole[0].digest and event == whole[1]
    assert model.provenance == whole[0].provenance


def test_the_event_is_told_before_anything_is_drawn():
    counts, told = count_transitions([[0, 1]], 2, 5), []

    def admit(event):
        told.append(event)
        raise ZeroDivisionError

    class NoWords(ReplayBits):
        def uint64(self, n):
            raise AssertionError("words were drawn")

    with pytest.raises(ZeroDivisionError):
        fit_counts(counts, 1, bits=NoWords(1), admit=admit)
    assert told[0].epsilon == 1 and told[0].unit == "sequence"


def test_a_planned_fit_draws_once():
    counts = count_transitions([[0, 1]], 2, 5)
    planned = PlannedFit(2, 1, Caps(5), "sequence", bits=ReplayBits(1))
    planned.learned(counts)
    with pytest.raises(RuntimeError, match="has been drawn"):
        planned.learned(counts)


@pytest.mark.parametrize(
    "other",
    [
        count_transitions([[0, 1]], 3, 5),
        count_transitions([[0, 1]], 2, 6),
        count_transitions([[0, 1]], 2, 5, owners=["a"]),
        count_transitions([[0, 1]], 2, 5, owners=["a"], max_sequences=2),
    ],
)
def test_counts_of_another_setting_are_refused(other):
    planned = PlannedFit(2, 1, Caps(5), "sequence", bits=ReplayBits(1))
    with pytest.raises(InvalidInput, match=r"^counts: got those of another setting"):
        planned.learned(other)
    planned.learned(count_transitions([[0, 1]], 2, 5))


def test_what_is_no_counts_is_refused():
    with pytest.raises(InvalidInput, match=r"^counts: got list; expected what count_transitions gives"):
        fit_counts([[0, 1]], 1)


class TestNothingIsShown:
    """State 31,415 of 50,000, 27,182 times."""

    COUNTS = count_transitions([[31415, 31415]] * 27182, 50_000, 3)

    def shown(self, text):
        assert "31415" not in text and "27182" not in text and "5000" not in text, text

    @pytest.mark.parametrize("how", [repr, str, format, "{}".format, "{!r}".format, "%s".__mod__])
    def test_as_text(self, how):
        assert how(self.COUNTS) == "TransitionCounts(...)"
        self.shown(how([self.COUNTS]))

    def test_in_a_log(self, caplog):
        with caplog.at_level(logging.DEBUG):
            logging.getLogger("x").warning("fitting %s", self.COUNTS)
        self.shown(caplog.text)

    @pytest.mark.parametrize(
        "write", [pickle.dumps, copy.copy, copy.deepcopy, lambda c: pickle.Pickler(io.BytesIO(), 0).dump(c)]
    )
    def test_they_are_not_written(self, write):
        with pytest.raises(TypeError, match=r"^TransitionCounts are not written") as error:
            write(self.COUNTS)
        self.shown(str(error.value))

    def test_errors_about_them(self):
        for wrong in ({"mask": "x"}, {"epsilon": 0}, {"space": dphmm.StateSpace([[0], [1]])}, {"bits": 1}):
            with pytest.raises(InvalidInput) as error:
                fit_counts(self.COUNTS, **{"epsilon": 1, "mask": sparse.eye_array(50_000), **wrong})
            assert "31415" not in str(error.value) and "27182" not in str(error.value)

    def test_they_have_no_dictionary(self):
        assert not hasattr(self.COUNTS, "__dict__")

    def test_what_adds_up_shows_nothing(self):
        totals = KeyTotals(9)
        totals.add(np.array([7, 7]))
        assert repr(totals) == "KeyTotals(...)"


@pytest.mark.parametrize("n_keys", [50, transition_counts._TABLE_PAIRS + 1])
@pytest.mark.parametrize("held", [1, 7, 2**20])
def test_totals_that_are_added_in_parts_are_exact(monkeypatch, n_keys, held):
    monkeypatch.setattr(transition_counts, "_HELD", held)
    source, totals, expected = np.random.default_rng(held), KeyTotals(n_keys), Counter()
    for size in (0, 1, 5, 40, 3, 0, 100):
        keys = source.integers(0, 50, size=size) * (n_keys // 50)
        totals.add(keys)
        expected.update(keys.tolist())
    for _ in range(2):
        keys, counts = totals.found()
        assert dict(zip(keys.tolist(), counts.tolist(), strict=True)) == expected
        assert (np.diff(keys) > 0).all()
