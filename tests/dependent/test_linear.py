"""PrivateClassifier is an estimator to scikit-learn, and every fit of it is a private answer.

Claims: scikit-learn's own checks of estimators pass, but for those named here with a reason; clones, pipelines and
cross-validations refit with noise and keep nothing of the records but what was published; what decides the promise has
no default. Fails where a convention is broken, where a refit publishes weights without noise, or where an attribute
holds more than the answer.
"""

from __future__ import annotations

import pickle
import unittest
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import estimator_checks_generator

import dphmm
from dphmm import ReplayBits
from dphmm.dependent import PrivateClassifier, _linear, classifier
from dphmm.errors import InvalidInput

#: What draws by default replays words here, each test its own.
pytestmark = pytest.mark.replayed_words

#: Checks that scikit-learn leaves out, and why.
SKIPPED = {
    "check_pipeline_consistency": "two fits are two answers, with noise of their own",
    "check_array_api_input": "arrays of other libraries are tested only where SCIPY_ARRAY_API is set",
}
SAID = {"dependence": "independent", "classes": ("no", "yes")}


def data(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-0.5, 0.5, (n, 3))
    return rows, np.where(rows @ [1.0, -2.0, 0.5] > 0, "yes", "no")


def checked(kind):
    # Noise that is small beside the few rows of a check; what is checked are conventions.
    return PrivateClassifier(1000, dependence="independent", classes="observed", kind=kind)


@pytest.fixture
def one_noise(monkeypatch):
    """Every fit draws the same noise: without this, check_fit_idempotent fails, as it should for a private answer."""
    monkeypatch.setattr(_linear, "default_bits", lambda bits: ReplayBits(1))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["svm", "logistic"])
def test_scikit_learn_s_checks_of_estimators(one_noise, kind):
    done, skipped = 0, {}
    for estimator, check in estimator_checks_generator(checked(kind)):
        try:
            check(estimator)
            done += 1
        except unittest.SkipTest as reason:
            skipped[check.func.__name__] = str(reason)
    assert set(skipped) <= set(SKIPPED), skipped
    assert done >= 40


@pytest.mark.parametrize("kind", ["svm", "logistic"])
def test_a_fit_is_the_function_s_answer(kind):
    rows, labels = data()
    fitted = PrivateClassifier(1, **SAID, kind=kind, bits=ReplayBits(3)).fit(rows, labels)
    answer = classifier(rows, labels, "independent", 1, classes=("no", "yes"), kind=kind, bits=ReplayBits(3))
    assert [*fitted.coef_[0], *fitted.intercept_] == answer.table.weight.tolist()
    assert fitted.event_ == answer.event
    assert (fitted.predict(rows) == answer.estimator.predict(rows)).all()


def test_a_refit_of_an_answer_is_private_too():
    """It was scikit-learn's own estimator once, which learns without noise when it is fitted again."""
    rows, labels = data()
    answer = classifier(rows, labels, ("group", 2), "0.5", classes=("no", "yes"), regularization=0.1)
    again = [clone(answer.estimator).fit(rows, labels) for _ in range(3)]
    assert len({tuple(found.coef_[0]) for found in [answer.estimator, *again]}) == 4
    assert [found for found in again if found.event_ != answer.event] == []
    assert answer.event.per_record == Fraction(1, 4)


def test_nothing_but_the_answer_is_kept():
    rows, labels = data()
    fitted = PrivateClassifier(1, **SAID).fit(pd.DataFrame(rows, columns=["a", "b", "c"]), labels)
    learned = {name for name in vars(fitted) if name.endswith("_")}
    assert learned == {"classes_", "coef_", "intercept_", "n_features_in_", "feature_names_in_", "event_"}
    assert set(vars(fitted)) - learned == set(fitted.get_params())
    assert len(pickle.dumps(fitted)) < 20_000


def test_pipelines_grids_and_folds():
    rows, labels = data(5000)
    public = FunctionTransformer(lambda given: given * 2.0)
    made = make_pipeline(public, PrivateClassifier(50, **SAID, norm=2.0, regularization=0.001))
    # Noise of scale .02 in weights of length 12: a fold below .9 would need noise of 100 times its scale.
    assert cross_val_score(made, rows, labels, cv=5).min() > 0.9
    grid = GridSearchCV(PrivateClassifier(50, **SAID), {"regularization": [0.001, 1.0]}, cv=3).fit(rows, labels)
    assert grid.best_estimator_.event_.secure


def test_probabilities_are_those_of_a_logistic_regression_only():
    rows, labels = data()
    sure = PrivateClassifier(1, **SAID, kind="logistic").fit(rows, labels)
    found = sure.predict_proba(rows)
    assert np.allclose(found.sum(axis=1), 1.0)
    assert ((found[:, 1] > 0.5) == (sure.decision_function(rows) > 0)).all()
    assert not hasattr(PrivateClassifier(kind="svm"), "predict_proba")


@pytest.mark.parametrize("left_out", ["epsilon", "dependence", "classes"])
def test_what_decides_the_promise_has_no_default(left_out):
    said = {"epsilon": 1, **SAID}
    del said[left_out]
    with pytest.raises(InvalidInput, match=f"^{left_out}: got None; expected"):
        PrivateClassifier(**said).fit(*data())


def test_labels_of_one_class_are_learned_only_where_both_are_named():
    rows, _ = data(100)
    alone = np.full(100, "yes")
    assert PrivateClassifier(1, **SAID).fit(rows, alone).classes_.tolist() == ["no", "yes"]
    with pytest.raises(InvalidInput, match="one class"):
        PrivateClassifier(1, dependence="independent", classes="observed").fit(rows, alone)


def test_unfitted_it_says_so():
    with pytest.raises(NotFittedError):
        PrivateClassifier(1, **SAID).predict(data()[0])


def test_it_is_loaded_when_it_is_used():
    assert dphmm.dependent.PrivateClassifier is PrivateClassifier
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = dphmm.dependent.Nothing


def test_classes_that_were_looked_up_are_said_to_be():
    """Which labels occur is then told by the answer, so its event says so."""
    rows, labels = np.array([[0.1, 0.2], [0.3, -0.4], [0.2, 0.2], [0.0, 0.1]]), np.array([0, 1, 0, 1])
    named = PrivateClassifier(1, dependence="independent", classes=(0, 1)).fit(rows, labels)
    observed = PrivateClassifier(1, dependence="independent", classes="observed").fit(rows, labels)
    assert observed.event_.query == f"{named.event_.query}, classes as they occur in the records"
