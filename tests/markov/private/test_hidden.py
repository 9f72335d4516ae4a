"""CategoricalHMM.fit_private: methods, their events, and what must not come out.

What could go wrong: an event that says less than the noise gives; numbers of the data in messages or on the model;
leftovers of an earlier fit without privacy; a start that was made from the data; options that change meaning with the
data.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import dphmm
from dphmm.accounting.event import LearningEvent, NotPrivateEvent, described, learned, together
from dphmm.errors import InvalidInput
from dphmm.markov.hidden import CategoricalHMM
from dphmm.markov.private import METHODS, fit_private, iterations
from dphmm.samplers.entropy import ReplayBits

pytestmark = pytest.mark.replayed_words

PAPER = "paper-every-iteration"
NOT_PRIVATE = "paper-last-iteration-not-private"
PRIVATE = [name for name in METHODS if name != NOT_PRIVATE]
DATA = [[0, 1, 2, 1, 0], [2, 2, 1], [0, 0, 1, 2, 2, 2]]


def model(**options):
    return CategoricalHMM(2, n_features=3, random_state=1, **options)


def fit(hmm=None, X=DATA, lengths=None, **options):
    hmm = model() if hmm is None else hmm
    options = {"epsilon": 1, "max_length": 5, "bits": ReplayBits(1)} | options
    return hmm.fit_private(X, lengths, **options)


def arrays(hmm):
    return np.concatenate([hmm.startprob_, np.ravel(hmm.transmat_), np.ravel(hmm.emissionprob_)])


@pytest.mark.parametrize("method", PRIVATE)
def test_a_fit_gives_a_model_and_a_true_event(method):
    options = {"iterations": 4} if method == PAPER else {}
    hmm = fit(method=method, **options)
    assert isinstance(hmm.privacy_, LearningEvent)
    assert hmm.privacy_.secure is False
    assert hmm.privacy_.epsilon == (Fraction(9, 5) if method == PAPER else 1)
    for rows in (hmm.startprob_[None], hmm.transmat_, hmm.emissionprob_):
        np.testing.assert_allclose(rows.sum(axis=1), 1.0)
        # A chain shows its states.
        assert (rows > 0).all() or (method == "ngrams" and rows is hmm.emissionprob_)
    assert math.isfinite(hmm.score([[0, 1, 2]]))
    np.testing.assert_array_equal(arrays(fit(method=method, **options)), arrays(hmm))


def test_the_same_call_as_a_function():
    hmm = model()
    assert fit_private(hmm, DATA, epsilon=1, max_length=5, bits=ReplayBits(1)) is hmm
    np.testing.assert_array_equal(arrays(hmm), arrays(fit()))


def test_system_bits_are_the_default_and_secure():
    hmm = fit(bits=None)
    assert hmm.privacy_.secure and described(hmm.privacy_)["private"] is True


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize(
    ("options", "sensitivity"),
    [({}, 4), ({"order": 3}, 3), ({"method": "every-iteration", "iterations": 1}, 10)],
)
def test_the_noise_is_that_of_the_table(neighbours, options, sensitivity):
    hmm = fit(neighbours=neighbours, max_sequences=3, owners=[0, 1, 2], epsilon="0.5", **options)
    (part,) = hmm.privacy_.parts
    assert part.sensitivity == sensitivity * 3 * (2 if neighbours == "replace" else 1)
    assert part.scale == 2 * part.sensitivity


def test_gaussian_noise_in_every_iteration():
    hmm = fit(method="every-iteration", noise="gaussian", delta="1e-6", iterations=3)
    event = hmm.privacy_
    assert [p.noise for p in event.parts] == ["gaussian"] * 3
    assert Fraction(99, 100) < event.epsilon <= 1 and event.delta == Fraction(1, 10**6)


def test_the_order_is_the_shortest_that_can_tell_the_parameters():
    names = [
        fit(CategoricalHMM(n, n_features=v, random_state=0), []).privacy_.parts[0].name
        for n, v in ((2, 6), (3, 6), (2, 2), (3, 3), (5, 2), (9, 2))
    ]
    assert names == ["2-grams", "2-grams", "3-grams", "3-grams", "4-grams", "4-grams"]
    short = fit(CategoricalHMM(9, n_features=2, random_state=0), [], max_length=3)
    assert short.privacy_.parts[0].name == "3-grams"


class TestNotPrivate:
    def test_it_warns_and_has_no_total(self):
        with pytest.warns(UserWarning, match="NOT PRIVATE"):
            hmm = fit(method=NOT_PRIVATE, iterations=5)
        assert isinstance(hmm.privacy_, NotPrivateEvent)
        assert not hasattr(hmm.privacy_, "epsilon")
        assert "NOT PRIVATE" in hmm.privacy_.reason
        assert described(hmm.privacy_)["private"] is False
        for add_up in (lambda: learned(hmm.privacy_), lambda: together(hmm.privacy_, Fraction(1))):
            with pytest.raises(InvalidInput, match="NotPrivateEvent"):
                add_up()

    def test_name_and_documentation_say_so(self):
        assert "not-private" in NOT_PRIVATE
        assert "NOT PRIVATE" in iterations.__doc__ and "NOT PRIVATE" in fit_private.__doc__
        assert "NOT PRIVATE" in iterations.paper_last_not_private.__doc__


class TestWhatComesOut:
    @pytest.mark.parametrize("method", PRIVATE)
    def test_no_data_at_all_is_data(self, method):
        for X, lengths in (([], None), (np.empty((0, 1), int), []), (np.empty(0, int), [])):
            assert isinstance(fit(X=X, lengths=lengths, method=method).privacy_, LearningEvent)

    def test_events_are_the_same_for_all_data(self):
        for method in PRIVATE:
            assert (
                fit(method=method).privacy_ == fit(X=[], method=method).privacy_ == fit(X=[[2]], method=method).privacy_
            )

    @pytest.mark.slow
    @pytest.mark.parametrize("method", PRIVATE)
    def test_nothing_on_the_model_has_numbers_of_the_data(self, method):
        hmm = fit(X=[[0, 1]] * 31415, method=method)
        told = repr(hmm) + repr(hmm.privacy_) + repr(described(hmm.privacy_)) + repr(sorted(vars(hmm)))
        assert "31415" not in told and "62830" not in told
        assert set(vars(hmm)) - set(vars(model())) <= {
            "startprob_", "transmat_", "emissionprob_", "privacy_", "monitor_", "_last_fit",
        }  # fmt: skip

    def test_a_monitor_is_of_the_noisy_histogram_or_is_not_there(self):
        hmm = model().fit(DATA)
        exact = list(hmm.monitor_.history)
        fit(hmm)
        assert hmm.monitor_.history and hmm.monitor_.history != exact
        hmm = fit(model().fit(DATA), method="every-iteration")
        assert not hasattr(hmm, "monitor_")

    def test_the_order_of_people_changes_nothing(self):
        for method in PRIVATE:
            np.testing.assert_array_equal(arrays(fit(method=method)), arrays(fit(X=DATA[::-1], method=method)))

    def test_impossible_sequences_are_no_error(self):
        hmm = CategoricalHMM(2, n_features=3, init_params="")
        hmm.startprob_, hmm.transmat_ = np.array([1.0, 0.0]), np.array([[0.0, 1.0], [1.0, 0.0]])
        hmm.emissionprob_ = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
        for method in ("ngrams", "every-iteration"):
            again = CategoricalHMM(2, n_features=3, init_params="")
            again.startprob_, again.transmat_, again.emissionprob_ = hmm.startprob_, hmm.transmat_, hmm.emissionprob_
            fit(again, X=[[1, 1, 1], [2, 0, 0]], method=method)
            np.testing.assert_array_equal(again.transmat_ > 0, hmm.transmat_ > 0)
            np.testing.assert_array_equal(again.emissionprob_ > 0, hmm.emissionprob_ > 0)


class TestStarts:
    def test_parameters_that_a_fit_learned_are_no_start(self):
        for learn in (lambda hmm: hmm.fit(DATA), fit):
            hmm = model()
            learn(hmm)
            hmm.init_params = ""
            with pytest.raises(InvalidInput, match="startprob_: got what a fit has learned"):
                fit(hmm)

    def test_given_ones_are(self):
        hmm = model(init_params="se")
        hmm.transmat_ = np.array([[0.9, 0.1], [0.2, 0.8]])
        fit(hmm, X=[], epsilon="0.001", n_iter=1)
        assert (np.abs(hmm.transmat_ - [[0.9, 0.1], [0.2, 0.8]]) < 0.5).all()

    def test_frozen_ones_stay(self):
        hmm = model(init_params="e", params="e")
        hmm.startprob_, hmm.transmat_ = np.array([0.25, 0.75]), np.array([[0.9, 0.1], [0.2, 0.8]])
        for method in ("ngrams", "every-iteration"):
            fit(hmm, method=method)
            np.testing.assert_array_equal(hmm.startprob_, [0.25, 0.75])
            np.testing.assert_array_equal(hmm.transmat_, [[0.9, 0.1], [0.2, 0.8]])
            hmm.startprob_, hmm.transmat_ = hmm.startprob_.copy(), hmm.transmat_.copy()
        assert fit(hmm, method="every-iteration", iterations=1).privacy_.parts[0].sensitivity == 5

    def test_a_sparse_matrix_stays_one(self):
        hmm = model(init_params="se")
        hmm.transmat_ = sparse.csr_array(np.array([[0.0, 1.0], [0.5, 0.5]]))
        fit(hmm)
        assert sparse.issparse(hmm.transmat_) and hmm.transmat_.nnz == 3

    def test_the_number_of_symbols_is_not_taken_from_the_data(self):
        with pytest.raises(InvalidInput, match="n_features: got None; expected the public number"):
            fit(CategoricalHMM(2))
        hmm = CategoricalHMM(2, init_params="st")
        hmm.emissionprob_ = np.full((2, 4), 0.25)
        assert fit(hmm).emissionprob_.shape == (2, 4)


class TestShapes:
    def test_rows_with_lengths_a_list_and_one_sequence_are_the_same_data(self):
        flat = np.concatenate(DATA)
        expected = arrays(fit())
        np.testing.assert_array_equal(arrays(fit(X=flat, lengths=[5, 3, 6])), expected)
        np.testing.assert_array_equal(arrays(fit(X=flat[:, None], lengths=[5, 3, 6])), expected)
        np.testing.assert_array_equal(arrays(fit(X=[np.array(s) for s in DATA])), expected)
        np.testing.assert_array_equal(arrays(fit(X=iter(DATA))), expected)
        one = arrays(fit(X=[DATA[0]]))
        np.testing.assert_array_equal(arrays(fit(X=np.array(DATA[0]))), one)
        np.testing.assert_array_equal(arrays(fit(X=DATA[0])), one)

    def test_a_list_of_lists_is_always_a_list_of_sequences(self):
        """Were it one column when all have length 1, removing one person could change what everybody's data mean."""
        short, long = fit(X=[[0], [1], [2]]), fit(X=[[0], [1], [2], [2, 2]])
        assert short.privacy_ == long.privacy_
        np.testing.assert_array_equal(arrays(short), arrays(fit(X=[])))

    @pytest.mark.parametrize(
        ("X", "lengths", "told"),
        [
            (np.zeros((3, 2), int), None, "X: got 2 dimensions"),
            (np.zeros(31415, int), [31414], "lengths: got a sum that is not"),
            (np.zeros(3, int), [3, 0], "lengths: got something else"),
            (np.zeros(3, int), [[3]], "lengths: got something else"),
            ([[0, 1], [1, 31415]], None, "X[1][1]: got a number above 2"),
            ([[0, 1], [1, -31415]], None, "X[1][1]: got a negative number"),
            ([[0, 1], []], None, "X[1]: got an empty sequence"),
            ([[0, 1], [0.5]], None, "X[1][0]"),
            ("012", None, "X: got str"),
        ],
    )
    def test_malformed_data_get_one_line_without_numbers_of_them(self, X, lengths, told):
        with pytest.raises(InvalidInput) as error:
            fit(X=X, lengths=lengths)
        assert told in str(error.value) and "\n" not in str(error.value)
        assert "3141" not in str(error.value)


class Unreadable:
    def __iter__(self):
        raise AssertionError("the data were read")

    __len__ = __getitem__ = __array__ = __iter__


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"epsilon": 0}, "epsilon: got 0"),
        ({"delta": -1}, "delta: got -1"),
        ({"delta": 1e-6}, "delta: got 1/1000000"),
        ({"max_length": 0}, "max_length: got 0"),
        ({"max_length": 1}, "max_length: got 1"),
        ({"max_length": None}, "max_length: got None"),
        ({"method": "magic"}, "method: got magic"),
        ({"neighbours": "x"}, "neighbours: got x"),
        ({"noise": "uniform"}, "noise: got uniform"),
        ({"noise": "gaussian"}, "noise: got gaussian"),
        ({"method": "every-iteration", "noise": "gaussian"}, "delta: got 0"),
        ({"method": "every-iteration", "noise": "gaussian", "delta": 1}, "delta: got 1"),
        ({"method": "every-iteration", "order": 2}, "order: got 2"),
        ({"method": "every-iteration", "iterations": 0}, "iterations: got 0"),
        ({"iterations": 3}, "iterations: got 3"),
        ({"budgets": [1, 2]}, "budgets: got shares"),
        ({"about": 0}, "about: got 0"),
        ({"method": "every-iteration", "about": 5}, "about: got 5"),
        ({"order": 0}, "order: got 0"),
        ({"order": 10, "max_length": 20, "hmm": CategoricalHMM(2, n_features=9)}, "order: got 10"),
        ({"n_starts": 0}, "n_starts: got 0"),
        ({"n_iter": 0}, "n_iter: got 0"),
        ({"tol": "x"}, "tol: got x"),
        ({"projection": "x"}, "projection: got x"),
        ({"bits": 3}, "bits: got int"),
        ({"hmm": CategoricalHMM(n_features=3)}, "n_states: got None"),
        ({"hmm": CategoricalHMM(2, n_features=3, params="")}, "params: got"),
        ({"hmm": CategoricalHMM(2, n_features=3, params="x")}, "params: got x"),
        ({"hmm": CategoricalHMM(2, n_features=3, random_state="x")}, "random_state: got str"),
        ({"hmm": CategoricalHMM(2, n_features=3, init_params="")}, "startprob_: got not set"),
        ({"method": PAPER, "max_length": 1}, "max_length: got 1"),
    ],
)  # fmt: skip
def test_bad_options_get_one_line_before_the_data_are_read(options, told):
    with pytest.raises(InvalidInput) as error:
        fit(X=Unreadable(), **options)
    assert told in str(error.value) and "\n" not in str(error.value)


def test_epsilon_and_max_length_must_be_given():
    with pytest.raises(TypeError, match="max_length"):
        model().fit_private(DATA, epsilon=1)
    with pytest.raises(TypeError, match="epsilon"):
        model().fit_private(DATA, max_length=5)


def test_with_a_large_epsilon_it_learns_what_the_data_show():
    """Held-out log-likelihood per symbol within 0.01 of an ordinary fit's, from the same data (fixed words)."""
    source = np.random.default_rng(0)
    truth = CategoricalHMM(2)
    truth.startprob_, truth.transmat_ = np.array([0.5, 0.5]), np.array([[0.95, 0.05], [0.1, 0.9]])
    truth.emissionprob_ = np.array([[1 / 6] * 6, [0.1] * 5 + [0.5]])
    data = [truth.sample(20, random_state=source)[0].ravel() for _ in range(600)]
    held_out = data[300:]
    plain = CategoricalHMM(2, n_features=6, n_iter=200, tol=1e-4, n_starts=5, random_state=1).fit(data[:300])
    for method in ("ngrams", "every-iteration"):
        hmm = CategoricalHMM(2, n_features=6, init_params="s", random_state=1)
        hmm.transmat_ = np.array([[0.8, 0.2], [0.2, 0.8]])
        hmm.emissionprob_ = np.array([[0.2, 0.2, 0.2, 0.2, 0.1, 0.1], [0.1, 0.1, 0.1, 0.1, 0.2, 0.4]])
        extra = {} if method == "ngrams" else {"iterations": 20}
        fit(hmm, data[:300], epsilon=1000, max_length=20, method=method, **extra)
        assert hmm.score(held_out) > plain.score(held_out) - 0.01 * 300 * 20


def test_the_public_names_are_there():
    assert dphmm.accounting.LearningEvent is LearningEvent
    assert dphmm.accounting.together is together
