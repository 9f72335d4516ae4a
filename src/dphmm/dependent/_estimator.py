"""A scikit-learn classifier whose every fit is a private answer: for pipelines, cross-validation and clones.

Nothing of the records is kept but what was published. Each fit draws its own noise and is paid for. Where the classes
are named, a row that cannot be used has no weight; with "observed" scikit-learn refuses such rows, and the labels are
public.

Proof: docs/proofs/dependent-markov.md, docs/proofs/contributions.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from dphmm.dependent._linear import classifier
from dphmm.errors import InvalidInput
from dphmm.types import FloatArray

#: For ``classes``: the labels that occur, which then are public like those that would have been named.
OBSERVED = "observed"


def _is_logistic(estimator: Any) -> bool:
    return bool(estimator.kind == "logistic")


class PrivateClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """`classifier` as a scikit-learn estimator: a linear SVM, or logistic regression, by output perturbation.

    Every ``fit`` is an answer of its own about its records, with noise of its own: five folds of a cross-validation are
    five, whose losses per record add up. Scores on held-out records are computed from these records without noise.

    Parameters
    ----------
    epsilon, dependence, classes : must be given: the promise; a model, "independent" (on your word) or ("group", k);
        the two public classes, or "observed" for those of y, if it is public that exactly these occur.
    kind, regularization, norm, intercept, mechanism, accept_unproved, bits : as of `classifier`.

    Attributes
    ----------
    classes_, coef_, intercept_, n_features_in_ (and feature_names_in_, for a table with names) : what was published.
    event_ : DependentEvent, what the fit cost.
    """

    def __init__(
        self,
        epsilon: Any = None,
        *,
        dependence: Any = None,
        classes: Any = None,
        kind: str = "svm",
        regularization: float = 1e-2,
        norm: float = 1.0,
        intercept: bool = True,
        mechanism: str | None = None,
        accept_unproved: bool = False,
        bits: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.dependence = dependence
        self.classes = classes
        self.kind = kind
        self.regularization = regularization
        self.norm = norm
        self.intercept = intercept
        self.mechanism = mechanism
        self.accept_unproved = accept_unproved
        self.bits = bits

    def fit(self, X: Any, y: Any) -> PrivateClassifier:
        """Publish weights for rows X (n, d) with labels y (n,)."""
        self._check_said()
        rows, labels = self._rows_and_labels(X, y)
        found = classifier(
            rows,
            labels,
            self.dependence,
            self.epsilon,
            classes=self._public_classes(labels),
            kind=self.kind,
            regularization=self.regularization,
            norm=self.norm,
            intercept=self.intercept,
            mechanism=self.mechanism,
            accept_unproved=self.accept_unproved,
            bits=self.bits,
        )
        published = found.estimator
        self.classes_, self.coef_, self.intercept_ = published.classes_, published.coef_, published.intercept_
        self.event_ = found.event
        if self._observed:
            self.event_ = replace(found.event, query=f"{found.event.query}, classes as they occur in the records")
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Above 0 for the second class."""
        check_is_fitted(self)
        rows = validate_data(self, X, reset=False, dtype=np.float64)
        scores: FloatArray = rows @ self.coef_[0] + self.intercept_[0]
        return scores

    def predict(self, X: Any) -> Any:
        """The class of each row."""
        above = self.decision_function(X) > 0
        return self.classes_[above.astype(np.intp)]

    @available_if(_is_logistic)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """What the published weights say of both classes; of kind "logistic" only."""
        from scipy.special import expit

        scores = self.decision_function(X)
        return np.stack([expit(-scores), expit(scores)], axis=1)

    def _rows_and_labels(self, X: Any, y: Any) -> tuple[FloatArray, Any]:
        if self._observed or y is None:
            rows, labels = validate_data(self, X, y, dtype=np.float64)
            check_classification_targets(labels)
            return rows, labels
        rows = validate_data(self, X, dtype=np.float64, ensure_all_finite=False)
        labels = column_or_1d(y, warn=True)
        check_consistent_length(rows, labels)
        return rows, labels

    def _check_said(self) -> None:
        """Nothing that decides what is promised is taken for granted."""
        wanted = {
            "epsilon": "the promise of a fit",
            "dependence": 'a model, "independent" or ("group", size)',
            "classes": 'the two public classes, or "observed" where it is public that those of y occur',
        }
        for name, expected in wanted.items():
            if getattr(self, name) is None:
                raise InvalidInput(name, None, expected)

    @property
    def _observed(self) -> bool:
        return isinstance(self.classes, str) and self.classes == OBSERVED

    def _public_classes(self, labels: Any) -> Any:
        if not self._observed:
            return self.classes
        kind, found = type_of_target(labels), np.unique(labels)
        if kind != "binary":
            raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
        if len(found) != 2:
            raise InvalidInput("y", "labels of one class", "two classes, or classes that are named")
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.non_deterministic = True
        tags.input_tags.allow_nan = not self._observed
        return tags
