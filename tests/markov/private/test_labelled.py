"""Known states, learned privately: sensitivities by enumeration of neighbouring files; nothing but the noisy vector.

Every labelled data set of up to two records over 2 states and 2 symbols, with sequences one longer than the cap, goes
through the very functions that count before the noise. What could go wrong: a start counted twice, a cap applied to one
of the two files only, states and symbols of other sequences beside each other, a second draw.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from dphmm.accounting.event import LearningEvent
from dphmm.errors import InvalidInput
from dphmm.markov.hidden import CategoricalHMM
from dphmm.markov.hidden.parameters import Parameters
from dphmm.markov.private import hidden, sensitivity
from dphmm.markov.private.labelled import count_labelled, learned_rows, open_cells
from dphmm.markov.private.release import NoisyTable
from dphmm.markov.private.sensitivity import RecordBounds, kept_records
from dphmm.samplers.entropy import ReplayBits

pytestmark = pytest.mark.replayed_words

START = Parameters(np.full(2, 0.5), np.full((2, 2), 0.5), np.full((2, 2), 0.5))


def vector(records, caps, letters):
    """The published cells of a data set: records of (states, symbols) sequences."""
    owners = [k for k, record in enumerate(records) for _ in record]
    states, symbols = ([pair[part] for record in records for pair in record] for part in (0, 1))
    kept = [kept_records(given, 2, caps, owners) for given in (states, symbols)]
    return count_labelled(*kept, 2, 2)[open_cells(START, letters)]


def labelled_sequences(longest):
    for length in range(1, longest + 1):
        for states in itertools.product(range(2), repeat=length):
            for symbols in itertools.product(range(2), repeat=length):
                yield states, symbols


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize(("letters", "blocks"), [("te", 2 * 2 - 1), ("ste", 2 * 2), ("e", 2), ("t", 1), ("se", 3)])
def test_the_sensitivity_is_reached_and_never_passed(neighbours, letters, blocks):
    caps = RecordBounds(2, 1, neighbours)
    records = [(pair,) for pair in labelled_sequences(3)]
    alone = [vector([record], caps, letters) for record in records]
    if neighbours == "add-remove":
        differences = [np.abs(one).sum() for one in alone]
        differences += [
            np.abs(vector([first, second], caps, letters) - alone[k]).sum()
            for k, first in list(enumerate(records))[::7]
            for second in records[::3]
        ]
    else:
        differences = [np.abs(one - other).sum() for one in alone for other in alone]
    stated = sensitivity.l1(sensitivity.expected_counts(caps, letters), caps)
    assert max(differences) == stated == blocks * (2 if neighbours == "replace" else 1)


def test_several_sequences_of_a_person():
    caps = RecordBounds(2, 2)
    records = [record for m in (1, 2, 3) for record in itertools.product(list(labelled_sequences(2))[::5], repeat=m)]
    largest = max(int(np.abs(vector([record], caps, "ste")).sum()) for record in records)
    assert largest == sensitivity.l1(sensitivity.expected_counts(caps, "ste"), caps) == 8


def fit(X, states, hmm=None, **options):
    hmm = CategoricalHMM(2, n_features=2) if hmm is None else hmm
    options = {"epsilon": 1, "max_length": 4, "bits": ReplayBits(1)} | options
    return hmm.fit_private(X, states=states, **options)


def test_the_noise_is_that_of_the_vector_and_drawn_once(monkeypatch):
    seen = []
    plainly = hidden.release
    monkeypatch.setattr(hidden, "release", lambda *asked: seen.append(asked) or plainly(*asked))
    hmm = fit([[0, 1, 1, 0, 1]], [[0, 0, 1, 1, 1]], epsilon="0.5", owners=["a"], max_sequences=3)
    ((counts, part, grid, _),) = seen
    # Starts, moves and emissions of the first four positions.
    assert counts.tolist() == [1, 0, 1, 1, 0, 1, 1, 1, 1, 1]
    assert isinstance(hmm.privacy_, LearningEvent) and hmm.privacy_.parts == (part,)
    assert part.sensitivity == 2 * 4 * 3 and part.scale == Fraction(48) and grid == 0


def test_without_starts_the_noise_is_smaller():
    hmm = CategoricalHMM(2, n_features=2, params="te", init_params="te")
    hmm.startprob_ = np.array([0.25, 0.75])
    fit([[0, 1]], [[0, 1]], hmm)
    assert hmm.privacy_.parts[0].sensitivity == 2 * 4 - 1
    np.testing.assert_array_equal(hmm.startprob_, [0.25, 0.75])


def test_other_true_numbers_with_the_same_noisy_vector_give_the_same_bytes(monkeypatch):
    table = NoisyTable(np.array([3.0, -2.0, 7.0, 1.0, 0.0, 5.0, -9.0, -1.0, 14.0, 2.0]), 2.0)
    monkeypatch.setattr(hidden, "release", lambda *_: table)
    models = [fit(X, states) for X, states in (([], []), ([[0, 1]], [[1, 1]]), ([[1] * 4] * 900, [[0] * 4] * 900))]
    assert (
        len({(hmm.startprob_.tobytes(), hmm.transmat_.tobytes(), hmm.emissionprob_.tobytes()) for hmm in models}) == 1
    )
    assert len({repr(hmm.privacy_) for hmm in models}) == 1


def test_zeros_of_the_public_start_get_no_noise_and_stay():
    start = Parameters(np.array([1.0, 0.0]), np.array([[0.5, 0.5], [0.0, 1.0]]), np.array([[1.0, 0.0], [0.5, 0.5]]))
    cells = open_cells(start, "ste")
    assert cells.tolist() == [True, False, True, True, False, True, True, False, True, True]
    found = learned_rows(np.array([5.0, 40.0, 2.0, 30.0, 9.0, -4.0, 60.0]), cells, start, 5.0)
    for rows, plain in zip(
        (found.initial, found.transition, found.emission),
        (start.initial, start.transition, start.emission),
        strict=True,
    ):
        np.testing.assert_array_equal(rows > 0, plain > 0)
        np.testing.assert_allclose(np.atleast_2d(rows).sum(axis=1), 1)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"order": 2}, "states: got known states"),
        ({"about": 9}, "states: got known states"),
        ({"method": "every-iteration"}, "states: got known states"),
        ({"max_length": 0}, "max_length: got 0"),
        ({"epsilon": 0}, "epsilon: got 0"),
    ],
)
def test_bad_options_are_refused_before_the_data_are_read(options, told):
    class Unreadable:
        def __iter__(self):
            raise AssertionError("the data were read")

        __len__ = __getitem__ = __array__ = __iter__

    with pytest.raises(InvalidInput, match=told):
        fit(Unreadable(), Unreadable(), **options)


def test_labels_of_other_sequences_get_one_line_without_a_number():
    for states in ([[0, 0, 1], [1]], [[0, 0]], [[0, 1, 31415]]):
        with pytest.raises(InvalidInput, match="states") as error:
            fit([[0, 1, 1]], states)
        assert "\n" not in str(error.value) and "31415" not in str(error.value)


def test_a_casino_at_epsilon_2_decodes_nearly_as_the_truth_does():
    """Right states on held-out rolls: within 0.03 of the true model, in the mean of eight data sets of 300 people."""
    truth = CategoricalHMM(2)
    truth.startprob_, truth.transmat_ = np.array([0.67, 0.33]), np.array([[0.95, 0.05], [0.1, 0.9]])
    truth.emissionprob_ = np.array([[1 / 6] * 6, [0.1] * 5 + [0.5]])
    lost = []
    for seed in range(8):
        random = np.random.default_rng(seed)
        pairs = [truth.sample(20, random_state=random) for _ in range(400)]
        rolls, states = [pair[0].ravel() for pair in pairs], [pair[1] for pair in pairs]
        hmm = CategoricalHMM(2, n_features=6)
        fit(rolls[:300], states[:300], hmm, epsilon="1.95", max_length=20, bits=ReplayBits(seed))
        right = [np.mean(model.predict(rolls[300:]) == np.concatenate(states[300:])) for model in (truth, hmm)]
        lost.append(right[0] - right[1])
    assert np.mean(lost) < 0.03
