"""Files of hidden Markov models: the same model back, the same bytes for equal ones, one clear line for anything else.

Could fail: a sparse matrix that comes back dense or with other zeros, an event that is lost or survives a refit, a file
of one kind that is read as the other, a pickle or a forged record that is believed.
"""

from __future__ import annotations

import zipfile

import numpy as np
import pytest
from scipy import sparse

import dphmm
from dphmm.accounting.event import LearningEvent, NotPrivateEvent
from dphmm.errors import InvalidInput
from storage.test_models import meta_with, npy, rewritten

SYMBOLS = ("red", "green", "élan")
SEQUENCES = [[0, 1, 2, 0, 1], [2, 2, 0, 1], [0, 0, 1, 2]]


def given(transmat=((0.5, 0.5), (0.25, 0.75))):
    hmm = dphmm.markov.CategoricalHMM(2)
    hmm.startprob_ = [1.0, 0.0]
    hmm.transmat_ = transmat
    hmm.emissionprob_ = [[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]]
    return hmm


def learned_privately(seed=4):
    hmm = dphmm.markov.CategoricalHMM(2, n_features=3, random_state=0)
    return hmm.fit_private(SEQUENCES, epsilon=1, max_length=5, order=2, bits=dphmm.ReplayBits(seed), n_iter=5)


@pytest.fixture
def path(tmp_path):
    dphmm.storage.save_hidden_model(given(), tmp_path / "hmm.npz", symbols=SYMBOLS, provenance={"method": "given"})
    return tmp_path / "hmm.npz"


def refusal(path, load=dphmm.storage.load_hidden_model):
    with pytest.raises(InvalidInput) as refused:
        load(path)
    message = str(refused.value)
    assert "\n" not in message
    return message


def test_round_trip(path):
    loaded = dphmm.storage.load_hidden_model(str(path))
    for name in ("startprob_", "transmat_", "emissionprob_"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(given(), name))
    assert loaded.symbols_ == SYMBOLS
    assert loaded.provenance_ == {"method": "given", "private": None, "privacy": None}
    assert not hasattr(loaded, "privacy_")
    X = np.concatenate(SEQUENCES)
    assert loaded.score(X) == given().score(X)
    assert loaded.n_states == 2 and loaded.n_features == 3


def test_equal_models_are_equal_bytes(path, tmp_path):
    loaded = dphmm.storage.load_hidden_model(path)
    dphmm.storage.save_hidden_model(loaded, tmp_path / "again.npz", provenance=loaded.provenance_)
    assert (tmp_path / "again.npz").read_bytes() == path.read_bytes()
    other = given()
    other.transmat_ = [[0.5, 0.5], [0.75, 0.25]]
    dphmm.storage.save_hidden_model(other, tmp_path / "other.npz", symbols=SYMBOLS, provenance={"method": "given"})
    assert (tmp_path / "other.npz").read_bytes() != path.read_bytes()


def test_sparse_moves_stay_sparse(tmp_path):
    moves = sparse.csr_array(np.array([[0.5, 0.5], [0.0, 1.0]]))
    dphmm.storage.save_hidden_model(given(moves), tmp_path / "s.npz")
    loaded = dphmm.storage.load_hidden_model(tmp_path / "s.npz").transmat_
    assert sparse.issparse(loaded) and loaded.nnz == 3
    np.testing.assert_array_equal(loaded.toarray(), moves.toarray())
    with zipfile.ZipFile(tmp_path / "s.npz") as archive:
        assert "transmat.npy" not in archive.namelist()


@pytest.mark.replayed_words
def test_a_private_fit_keeps_its_event_and_a_plain_one_says_that_it_has_none(tmp_path):
    hmm = learned_privately()
    dphmm.storage.save_hidden_model(hmm, tmp_path / "p.npz")
    loaded = dphmm.storage.load_hidden_model(tmp_path / "p.npz")
    assert isinstance(loaded.privacy_, LearningEvent)
    assert loaded.privacy_ == hmm.privacy_
    # Replayed bits: an event, and no privacy.
    assert loaded.provenance_["private"] is False
    loaded.fit(np.concatenate(SEQUENCES))
    dphmm.storage.save_hidden_model(loaded, tmp_path / "plain.npz")
    plain = dphmm.storage.load_hidden_model(tmp_path / "plain.npz")
    assert isinstance(plain.privacy_, NotPrivateEvent)
    # A second generation still says so.
    dphmm.storage.save_hidden_model(plain, tmp_path / "copy.npz")
    assert dphmm.storage.load_hidden_model(tmp_path / "copy.npz").provenance_["private"] is False


def test_parameters_changed_by_hand_lose_the_event(tmp_path):
    hmm = learned_privately()
    hmm.emissionprob_ = np.array([[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]])
    dphmm.storage.save_hidden_model(hmm, tmp_path / "c.npz")
    event = dphmm.storage.load_hidden_model(tmp_path / "c.npz").privacy_
    assert isinstance(event, NotPrivateEvent) and "by hand" in event.reason


@pytest.mark.replayed_words
def test_what_was_learned_is_no_public_start_after_loading(tmp_path):
    dphmm.storage.save_hidden_model(learned_privately(), tmp_path / "p.npz")
    loaded = dphmm.storage.load_hidden_model(tmp_path / "p.npz").set_params(init_params="")
    with pytest.raises(InvalidInput, match="what a fit has learned"):
        loaded.fit_private(SEQUENCES, epsilon=1, max_length=5)


def test_the_other_kind_of_model_is_one_line(path, tmp_path):
    assert "got a hidden Markov model; expected a Markov model" in refusal(path, dphmm.storage.load_model)
    dphmm.storage.save_model(dphmm.MarkovModel([0.5, 0.5], np.eye(2)), tmp_path / "m.npz")
    assert "got a Markov model of observed states; expected a hidden" in refusal(tmp_path / "m.npz")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c.update({"startprob.npy": npy([0.5, 0.6])}), "startprob_"),
        (lambda c: c.update({"startprob.npy": npy(0.5)}), "startprob of shape"),
        (lambda c: c.update({"startprob.npy": npy(["a", "b"])}), "startprob_"),
        (lambda c: c.update({"emissionprob.npy": npy(np.zeros((0, 3)))}), "emissionprob of shape"),
        (lambda c: c.update({"emissionprob.npy": npy(np.full((2, 3), np.nan))}), "emissionprob_"),
        (lambda c: c.update({"transmat.npy": npy(np.eye(3))}), "transmat_"),
        (lambda c: c.pop("transmat.npy"), "without indptr"),
        (lambda c: c.pop("startprob.npy"), "without startprob"),
        (lambda c: c.update({"format.npy": npy(2)}), "model format 2; expected at most 1"),
        (lambda c: c.update({"startprob.npy": npy(np.array([{}], dtype=object), allow_pickle=True)}), "no plain array"),
        (meta_with(symbols="abc"), "symbols that are no names"),
        (meta_with(symbols=["a", "a", "b"]), "names"),
        (meta_with(provenance=[]), "provenance"),
        (meta_with(provenance={"private": True, "privacy": {"private": False, "reason": "x"}}), "private: got True"),
        (meta_with(provenance={"private": True, "privacy": {}}), "privacy"),
    ],
)
def test_forged_files_are_one_line(path, change, said):
    assert said in refusal(rewritten(path, change))


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("indptr", np.array([0, 3, 2])),
        ("indptr", np.array([1, 1, 2])),
        ("indptr", np.array([0, 1])),
        ("indptr", np.array([0, 0, 1])),
        ("indptr", np.array([[0, 1, 2]])),
        ("indptr", np.zeros(0, dtype=np.int64)),
        ("indices", np.array([0, 1, 1])),
        ("indices", np.array([0, 2])),
        ("indices", np.array([0, -1])),
        ("indices", np.array([0.0, 1.0])),
        ("data", np.array([1.0])),
        ("data", np.array(["a", "b"])),
        ("data", np.eye(2)),
    ],
)
def test_forged_sparse_moves_are_refused_before_they_are_followed(tmp_path, name, array):
    dphmm.storage.save_hidden_model(given(sparse.csr_array(np.eye(2))), tmp_path / "s.npz")
    message = refusal(rewritten(tmp_path / "s.npz", lambda c: c.update({f"{name}.npy": npy(array)})))
    assert "no sparse matrix" in message or "transmat_" in message


def test_a_forged_smaller_epsilon_is_refused(tmp_path):
    dphmm.storage.save_hidden_model(learned_privately(), tmp_path / "p.npz")
    provenance = dphmm.storage.load_hidden_model(tmp_path / "p.npz").provenance_
    provenance["privacy"]["epsilon"] = "0.1"
    assert "what its parts give" in refusal(rewritten(tmp_path / "p.npz", meta_with(provenance=provenance)))


def test_what_is_no_model_is_not_written_or_read(tmp_path):
    with pytest.raises(InvalidInput, match="not set"):
        dphmm.storage.save_hidden_model(dphmm.markov.CategoricalHMM(2), tmp_path / "x.npz")
    with pytest.raises(InvalidInput, match="JSON"):
        dphmm.storage.save_hidden_model(given(), tmp_path / "x.npz", provenance={"a": {1, 2}})
    with pytest.raises(InvalidInput, match="names"):
        dphmm.storage.save_hidden_model(given(), tmp_path / "x.npz", symbols=["one"])
    assert list(tmp_path.iterdir()) == []
    assert "an existing model file" in refusal(tmp_path / "x.npz")
    (tmp_path / "t.npz").write_bytes(b"text")
    assert "written by save_hidden_model" in refusal(tmp_path / "t.npz")


def test_each_kind_of_model_is_sent_to_its_own_function(tmp_path):
    chain = dphmm.MarkovModel([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(InvalidInput, match=r"^hmm: got MarkovModel; .*save_model writes"):
        dphmm.storage.save_hidden_model(chain, tmp_path / "x.npz")
    with pytest.raises(InvalidInput, match=r"^model: got CategoricalHMM; .*save_hidden_model writes"):
        dphmm.storage.save_model(dphmm.markov.CategoricalHMM(2), tmp_path / "x.npz")
