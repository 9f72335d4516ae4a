"""CategoricalHMM is an estimator that scikit-learn can use, and says in one line what is wrong with what it is given.

Claims: clone, GridSearchCV and Pipeline work, scikit-learn is not needed; n_components is another name of n_states; fit
does not change its parameters; starts set by the user are used, and a warning says where they would not be; simulated
sequences have the model's law; every bad input is refused naming the field, and no message holds a symbol.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

from dphmm import ReplayBits
from dphmm.accounting.event import NotPrivateEvent
from dphmm.errors import InvalidInput
from dphmm.markov import CategoricalHMM

X = np.random.default_rng(0).integers(0, 4, 120)


def fitted(**options):
    return CategoricalHMM(2, random_state=0, n_iter=3, **options).fit(X)


def given_model(**attributes):
    model = CategoricalHMM(2, random_state=0)
    defaults = {"startprob_": [0.5, 0.5], "transmat_": np.eye(2), "emissionprob_": np.full((2, 4), 0.25)}
    for name, value in (defaults | attributes).items():
        setattr(model, name, value)
    return model


def test_scikit_learn_clones_it_unfitted():
    model = fitted(transmat_prior=np.ones((2, 2)) * 1.5)
    copy = clone(model)
    assert copy.get_params()["n_states"] == copy.get_params()["n_components"] == 2
    assert not hasattr(copy, "startprob_")
    assert repr(copy) == repr(model)
    check_is_fitted(model)
    assert not copy.__sklearn_is_fitted__()


def test_scikit_learn_searches_and_pipes_it():
    searched = GridSearchCV(CategoricalHMM(2, n_features=4, random_state=0), {"n_components": [1, 3]}, cv=3)
    assert searched.fit(X[:, None]).best_params_["n_components"] in (1, 3)
    assert searched.best_estimator_.startprob_.shape == (searched.best_params_["n_components"],)
    pipe = Pipeline([("shift", FunctionTransformer(lambda x: x + 1)), ("hmm", CategoricalHMM(2, random_state=0))])
    assert pipe.fit(X[:, None]).score(X[:, None]) < 0
    assert pipe.predict(X[:, None]).shape == (120,)


@pytest.mark.slow
def test_scikit_learn_is_not_needed():
    code = (
        "import sys, numpy as np, dphmm; m = dphmm.markov.CategoricalHMM(2, random_state=0).fit(np.arange(9) % 3);"
        "m.sample(3); assert not any(name.startswith('sklearn') or name == 'hmmlearn' for name in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_two_names_of_the_number_of_states():
    assert CategoricalHMM(n_components=3).n_states == 3
    assert CategoricalHMM(3, n_components=3).n_components == 3
    assert CategoricalHMM(3).set_params(n_components=5).n_states == 5
    with pytest.raises(InvalidInput, match=r"^n_components: "):
        CategoricalHMM(3, n_components=4)


def test_fit_does_not_change_parameters():
    model = CategoricalHMM(2, random_state=0, n_iter=3)
    before = model.get_params()
    assert model.fit(X).get_params() == before
    assert model.emissionprob_.shape == (2, 4)


def test_the_same_seed_gives_the_same_model():
    assert np.array_equal(fitted().transmat_, fitted().transmat_)
    again = fitted()
    again.fit(X)
    assert np.array_equal(again.transmat_, fitted().transmat_)


def test_a_start_that_would_be_overwritten_is_said():
    model = CategoricalHMM(2, random_state=0, n_iter=1)
    model.transmat_ = np.eye(2)
    with pytest.warns(UserWarning, match="transmat_ was set"):
        model.fit(X)
    model.fit(X)
    model.set_params(init_params="se")
    model.transmat_ = np.eye(2)
    assert np.array_equal(model.fit(X).transmat_, np.eye(2))


def test_progress_is_printed_if_asked(capsys):
    CategoricalHMM(2, random_state=0, n_iter=3, tol=-1.0, verbose=True).fit(X)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 3


def test_simulated_sequences_have_the_model_s_law():
    """Chi-squared at level 1e-4 over pairs of states and over emissions, 20,000 steps of a fixed seed; a transition off
    by 0.05 gives a non-centrality above 100."""
    transition = np.array([[0.6, 0.4, 0.0], [0.1, 0.2, 0.7], [0.3, 0.3, 0.4]])
    emission = np.array([[0.7, 0.3], [0.5, 0.5], [0.1, 0.9]])
    for matrix in (transition, sparse.csr_array(transition)):
        model = CategoricalHMM(3, random_state=5)
        model.startprob_, model.transmat_, model.emissionprob_ = np.array([0.0, 0.0, 1.0]), matrix, emission
        symbols, states = model.sample(20_000)
        assert symbols.shape == (20_000, 1)
        assert states[0] == 2
        assert model.sample(3, currstate=1)[1][0] == 1
        moves = np.bincount(states[:-1] * 3 + states[1:], minlength=9).reshape(3, 3)
        assert moves[0, 2] == 0
        for row, law in zip(moves, transition, strict=True):
            assert stats.chisquare(row[law > 0], law[law > 0] * row.sum()).pvalue > 1e-4
        for state in range(3):
            seen = np.bincount(symbols[states == state, 0], minlength=2)
            assert stats.chisquare(seen, emission[state] * seen.sum()).pvalue > 1e-4
    wrong = transition[0] + [0.05, -0.05, 0.0]
    assert stats.chisquare(moves[0][:2], wrong[:2] * moves[0].sum()).pvalue < 1e-4


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"n_states": None}, "n_states"),
        ({"n_states": 0}, "n_states"),
        ({"n_iter": 0}, "n_iter"),
        ({"n_starts": 0}, "n_starts"),
        ({"tol": "small"}, "tol"),
        ({"params": "stm"}, "params"),
        ({"init_params": 3}, "init_params"),
        ({"random_state": "seed"}, "random_state"),
        ({"random_state": -1}, "random_state"),
        ({"n_features": 0}, "n_features"),
        ({"n_features": 2}, "X, sequence 0, position 0 (from 0)"),
        ({"checkpoint": "always"}, "checkpoint"),
        ({"transmat_prior": np.ones(3)}, "transmat_prior"),
    ],
)
def test_wrong_options_are_refused(options, field):
    with pytest.raises(InvalidInput) as caught:
        CategoricalHMM(**({"n_states": 2, "random_state": 0} | options)).fit([[3, 1, 0], [1]])
    assert caught.value.field == field
    assert "\n" not in str(caught.value)


def beyond_the_last_column():
    """A matrix whose index array was changed after it was made."""
    matrix = sparse.csr_array(np.eye(2))
    matrix.indices[1] = 7
    return matrix


@pytest.mark.parametrize(
    ("attributes", "field"),
    [
        ({"startprob_": [0.5, 0.6]}, "startprob_"),
        ({"startprob_": [1.5, -0.5]}, "startprob_"),
        ({"startprob_": [np.nan, 1.0]}, "startprob_"),
        ({"startprob_": [1.0]}, "startprob_"),
        ({"startprob_": ["a", "b"]}, "startprob_"),
        ({"transmat_": [[1.0, 0.0], [0.5, 0.4]]}, "transmat_[1]"),
        ({"transmat_": [[1.0], [0.5, 0.5]]}, "transmat_"),
        ({"transmat_": sparse.csr_array([[1.0, 0.0], [0.0, 0.9]])}, "transmat_[1]"),
        ({"transmat_": sparse.csr_array(np.eye(3))}, "transmat_"),
        ({"transmat_": beyond_the_last_column()}, "transmat_"),
        ({"emissionprob_": [[1.0, 0.0]]}, "emissionprob_"),
        ({"emissionprob_": np.zeros((2, 0))}, "emissionprob_"),
    ],
)
def test_wrong_models_are_refused(attributes, field):
    with pytest.raises(InvalidInput) as caught:
        given_model(**attributes).score([0])
    assert caught.value.field == field


def test_other_wrong_arguments():
    model = given_model()
    for call, field in (
        (lambda: model.decode([0], algorithm="best"), "algorithm"),
        (lambda: model.sample(0), "n_samples"),
        (lambda: model.sample(1, currstate=2), "currstate"),
        (lambda: model.sample_posterior([0], n_paths=0), "n_paths"),
        (lambda: model.set_params(nothing=1), "set_params"),
        (lambda: model.score([4]), "X, sequence 0, position 0 (from 0)"),
        (lambda: CategoricalHMM(2).score([0]), "startprob_"),
    ):
        with pytest.raises(InvalidInput) as caught:
            call()
        assert caught.value.field == field


def test_a_fit_without_privacy_carries_no_privacy():
    model = CategoricalHMM(2, n_features=4, random_state=1)
    model.fit_private([[0, 1], [2, 3, 1]], epsilon=1, max_length=3, bits=ReplayBits(1))
    assert model.privacy_.epsilon == 1
    assert not hasattr(model.fit([[0, 1], [2, 3, 1]]), "privacy_")
    with pytest.raises(AttributeError):
        model.privacy_ = object()


@pytest.mark.parametrize("name", ["startprob_", "transmat_", "emissionprob_"])
def test_other_parameters_are_not_what_the_event_is_of(name):
    """A guarantee must not outlive the parameters it came with, whether they are set anew or in place."""
    for in_place in (False, True):
        model = CategoricalHMM(2, n_features=4, random_state=1)
        model.fit_private([[0, 1], [2, 3, 1]], epsilon=1, max_length=3, bits=ReplayBits(1))
        other = np.roll(getattr(model, name), 1, axis=-1)
        assert not np.array_equal(other, getattr(model, name))
        if in_place:
            getattr(model, name)[:] = other
        else:
            setattr(model, name, other)
        assert isinstance(model.privacy_, NotPrivateEvent)


def test_tables_that_no_memory_holds_are_refused():
    """A page number of a billion is a mistake: numbers are to be 0, 1, .. without gaps."""
    with pytest.raises(
        InvalidInput, match=r"^n_features: got more than that; expected at most 89478485 symbols"
    ) as caught:
        CategoricalHMM(3).fit([[0, 10**9]])
    assert "1000000000" not in str(caught.value)
    with pytest.raises(InvalidInput, match=r"^n_states: got 100000; expected at most 16384, or a sparse transmat_"):
        CategoricalHMM(100_000).fit([[0, 1]])
    with pytest.raises(InvalidInput, match=r"^n_features"):
        CategoricalHMM(3, n_features=2**62).fit([[0, 1]])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([[0, 1], [0, np.nan]], "X[1], position 1 (from 0): got NaN"),
        ([[0, 1], [0.5, 1]], "X[1], position 0 (from 0): got a number that is not whole"),
        ([[0.0, 1.0]], "these are whole numbers, .astype(int) makes them so"),
        ([["a", "b"]], "symbols_ of a loaded model"),
    ],
)
def test_what_is_no_integer_is_said_where(given, said):
    with pytest.raises(InvalidInput) as caught:
        CategoricalHMM(2).fit(given)
    assert said in str(caught.value)


@pytest.mark.slow
def test_the_page_s_example_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[3] / "docs" / "learning.md").read_text()
    section = page.split("## Hidden Markov models")[1].split("\n## ")[0]
    code = "".join(re.findall(r"```python\n(.*?)```", section, re.DOTALL))
    names: dict[str, object] = {}
    exec(compile(code, "learning.md", "exec"), names)
    assert names["posteriors"].shape == (3000, 2)
    assert names["draws"].shape == (3, 3000)
    assert len(names["path"]) == 3 and (tmp_path / "dice.npz").exists()
    assert len(capsys.readouterr().out.split()) == 3
