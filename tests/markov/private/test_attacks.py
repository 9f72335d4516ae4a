"""Attacks on private learning: ways by which a model could tell more of its data than its event says.

What could fail: a cap, a cell or a number of symbols that is taken from the data; parameters that were learned and are
taken for public, or for those that an event is of; a record of an earlier fit that stays on an object beside a later
one; an epsilon that is below that of the noise; an event that claims more than was bounded. Each test makes the attack.
"""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

import dphmm
from dphmm.accounting.event import LearningEvent, NotPrivateEvent, described, epsilon_of, event_from, learned
from dphmm.errors import InvalidInput
from dphmm.markov.private.chain import fit_chain
from dphmm.markov.private.release import grid_bits, noise_for, release
from dphmm.samplers.body import DiscreteGaussian, LaplaceSampler
from dphmm.samplers.entropy import ReplayBits

pytestmark = pytest.mark.replayed_words

DATA = [[0, 1, 2, 1, 0], [2, 2, 1], [0, 0, 1, 2, 2]] * 5
FLAT, LENGTHS = np.concatenate(DATA), [len(s) for s in DATA]
LAST = "paper-last-iteration-not-private"


def model(**options):
    return dphmm.markov.CategoricalHMM(2, **{"n_features": 3, "random_state": 1} | options)


def private(hmm=None, X=DATA, **options):
    return (hmm or model()).fit_private(X, **{"epsilon": 1, "max_length": 5, "n_iter": 5} | options)


def plain(hmm=None):
    return (hmm or model()).fit(FLAT, LENGTHS)


def not_private():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model().fit_private(DATA, epsilon=1, max_length=5, method=LAST, iterations=3)


def without_memo(hmm):
    """A copy as by pickles that write an array anew wherever it occurs, as joblib's do."""
    target = io.BytesIO()
    pickler = pickle.Pickler(target)
    pickler.fast = True
    pickler.dump(hmm)
    return pickle.loads(target.getvalue())


class TestTheVector:
    @pytest.mark.parametrize("data", [[], [[0, 1]], [[0, 1], [2, 2, 2]], DATA])
    def test_caps_are_not_taken_from_the_data(self, data):
        _, event = fit_chain(data, 3, 1, 9)
        assert event.max_length == 9 and event.parts[0].scale == 9

    @pytest.mark.parametrize("noise", ["laplace", "gaussian"])
    def test_cells_that_nobody_is_in_get_noise_like_all_others(self, noise):
        part = noise_for("counts", noise, Fraction(10), Fraction(1, 2))
        noised = release(np.zeros(500, np.int64), part, 0, ReplayBits(3))
        law = LaplaceSampler(part.scale) if noise == "laplace" else DiscreteGaussian(part.scale)
        np.testing.assert_array_equal(noised.values, law.draw(500, ReplayBits(3)))
        assert (noised.values != 0).mean() > 0.8

    @pytest.mark.parametrize("noise", ["laplace", "gaussian"])
    def test_what_is_published_is_a_whole_number_of_steps(self, noise):
        """Otherwise digits below a step would tell which count it was."""
        part = noise_for("counts", noise, Fraction(10), Fraction(1, 2))
        for grid in (0, 3, grid_bits(part)):
            values = release(np.arange(300), part, grid, ReplayBits(3)).values * 2.0**grid
            np.testing.assert_array_equal(values, np.round(values))


def test_epsilons_of_rho_are_the_formula():
    """Within 1e-4 of the least over 2,000 orders 1.4 % apart, each to 40 digits; twice the delta would be 1e-3 less."""
    for rho in (Fraction(1, 10**6), Fraction(1, 50), Fraction(1), Fraction(300)):
        for delta in (Fraction(1, 100), Fraction(1, 10**6), Fraction(1, 10**40)):
            stated = epsilon_of(rho, delta)
            with localcontext() as context:
                context.prec = 40
                log = Decimal(delta.denominator).ln()
                r = Decimal(rho.numerator) / rho.denominator
                orders = [1 + Decimal(2.0 ** (k / 50)) for k in range(-700, 1300)]
                least = max(0, min(a * r + (log + (a - 1) * (1 - 1 / a).ln() - a.ln()) / (a - 1) for a in orders))
                difference = Decimal(stated.numerator) / stated.denominator - least
                assert abs(difference) <= least * Decimal("1e-4") + Decimal("1e-11")


class TestNotPrivate:
    def test_no_file_says_that_it_is_private(self, tmp_path):
        """Neither a provenance that is given beside the model nor a second generation changes what it was."""
        hmm = not_private()
        claim = {"private": True, "privacy": described(private().privacy_)}
        for generation in range(2):
            path = tmp_path / f"{generation}.npz"
            dphmm.storage.save_hidden_model(hmm, path, provenance=claim)
            hmm = dphmm.storage.load_hidden_model(path)
            assert hmm.provenance_["private"] is False and isinstance(hmm.privacy_, NotPrivateEvent)

    def test_no_copy_says_so(self):
        for copied in (copy.copy, copy.deepcopy, lambda hmm: pickle.loads(pickle.dumps(hmm))):
            assert isinstance(copied(not_private()).privacy_, NotPrivateEvent)


class TestStarts:
    """Parameters learned from the data are no public start, by whichever way they come back."""

    @pytest.mark.parametrize(
        "copied", [copy.copy, copy.deepcopy, lambda hmm: pickle.loads(pickle.dumps(hmm)), without_memo]
    )
    @pytest.mark.parametrize("learn", [plain, private, not_private])
    def test_a_copy_of_a_fitted_model_is_none(self, learn, copied):
        hmm = copied(learn()).set_params(init_params="")
        with pytest.raises(InvalidInput, match="what a fit has learned"):
            private(hmm)

    def test_the_number_of_symbols_of_a_plain_fit_is_none_after_loading(self, tmp_path):
        dphmm.storage.save_hidden_model(plain(model(n_features=None)), tmp_path / "plain.npz")
        loaded = dphmm.storage.load_hidden_model(tmp_path / "plain.npz")
        with pytest.raises(InvalidInput, match="n_features"):
            private(loaded)


class TestLeftovers:
    """Of two fits of one object, the later one alone is told of."""

    @pytest.fixture
    def loaded_plain(self, tmp_path):
        origin = {"source_sha256": "31415", "rows": 31415}
        dphmm.storage.save_hidden_model(plain(), tmp_path / "p.npz", symbols=["x", "y", "z31415"], provenance=origin)
        loaded = dphmm.storage.load_hidden_model(tmp_path / "p.npz")
        # The number of symbols is public here: the user says so.
        loaded.n_features = 3
        return private(loaded)

    def test_a_private_fit_leaves_no_provenance_of_a_plain_one(self, loaded_plain):
        assert "31415" not in repr(vars(loaded_plain).get("provenance_"))

    def test_a_private_fit_leaves_no_names_of_symbols_that_a_plain_one_saw(self, loaded_plain, tmp_path):
        dphmm.storage.save_hidden_model(loaded_plain, tmp_path / "q.npz")
        assert "31415" not in repr(dphmm.storage.load_hidden_model(tmp_path / "q.npz").symbols_)

    def test_a_plain_fit_leaves_no_provenance_of_a_private_one(self, tmp_path):
        dphmm.storage.save_hidden_model(private(), tmp_path / "p.npz")
        loaded = plain(dphmm.storage.load_hidden_model(tmp_path / "p.npz"))
        assert vars(loaded).get("provenance_", {}).get("private") is not True

    @pytest.mark.parametrize("name", ["startprob_", "transmat_", "emissionprob_"])
    def test_parameters_changed_in_place_lose_the_event(self, name, tmp_path):
        """Or what a plain fit learned could be written over what a private one did, and be saved as private."""
        hmm, other = private(), plain()
        try:
            getattr(hmm, name)[:] = getattr(other, name)
        except ValueError:
            return  # Read-only is as good.
        dphmm.storage.save_hidden_model(hmm, tmp_path / "c.npz")
        assert isinstance(dphmm.storage.load_hidden_model(tmp_path / "c.npz").privacy_, NotPrivateEvent)


class TestEvents:
    def test_without_owners_none_claims_to_bound_all_sequences_of_a_person(self):
        """One person's 15 sequences are then 15 records: together they lose up to 15 times what the event says."""
        alone = learned(private().privacy_).statement
        owned = learned(private(owners=range(len(DATA))).privacy_).statement
        assert "all sequences of one person" in owned
        assert "all sequences of one person" not in alone

    @pytest.mark.parametrize("sensitivity", ["1" + "0" * 80, "1" + "0" * 390])
    def test_a_forged_one_is_refused_in_one_line_however_large(self, sensitivity):
        event = private(method="every-iteration", noise="gaussian", delta="1e-6", iterations=1).privacy_
        description = described(event)
        description["parts"][0]["sensitivity"] = sensitivity
        with pytest.raises(InvalidInput):
            event_from(description)

    def test_fits_that_are_equal_are_not_counted_once(self):
        """Two fits with the same options have equal events, which a set would hold once."""
        one, two = private().privacy_, private().privacy_
        assert learned([one, two]).value == 2
        for given in ({one, two}, frozenset([one, two]), {one: "a", two: "b"}):
            with pytest.raises(InvalidInput, match="events"):
                learned(given)

    def test_an_event_is_of_the_options_and_not_of_the_data(self):
        events = [private(X=X).privacy_ for X in ([], [[0]], DATA)]
        assert events[0] == events[1] == events[2] and isinstance(events[0], LearningEvent)


class TestMessages:
    @pytest.mark.parametrize("shape", [(31415, 2), (1, 31415), (2, 2, 31415)])
    def test_the_shape_of_a_sequence_is_a_number_of_it(self, shape):
        with pytest.raises(InvalidInput) as error:
            private(X=[[0, 1], np.zeros(shape, dtype=int)])
        assert "X[1]" in str(error.value) and "31415" not in str(error.value)


def test_a_budget_is_not_spent_on_a_model_of_no_numbers():
    """Where a start makes a word nearly impossible, its count divided by its chance is beyond floats."""
    hmm = model(n_features=2, init_params="")
    hmm.startprob_, hmm.transmat_ = np.array([0.5, 0.5]), np.full((2, 2), 0.5)
    hmm.emissionprob_ = np.array([[1 - 1e-310, 1e-310], [1 - 5e-324, 5e-324]])
    private(hmm, [[0, 1, 0]] * 100, bits=ReplayBits(1), max_length=3, order=2)
    for rows in (hmm.startprob_[None], hmm.transmat_, hmm.emissionprob_):
        np.testing.assert_allclose(rows.sum(axis=1), 1.0)
