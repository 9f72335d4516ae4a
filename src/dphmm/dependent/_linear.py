"""Private linear classifiers by output perturbation (Chaudhuri, Monteleoni and Sarwate, JMLR 2011), noise on a lattice.

With rows of length at most 1, a loss that is convex and 1-Lipschitz in the margin, and J(w) = mean loss + Λ/2·‖w‖², the
minimiser moves by at most 2/(nΛ) when one record is replaced. The result is not the minimiser: its gradient is at most
Λτ, the gradient's own rounding included, so it is within τ of the minimiser, and 2τ is added. Rounded to a lattice, the
L1 distance of two neighbouring results is at most √d·(2/(nΛ) + 2τ)/pitch + d steps; discrete Laplace noise of that
sensitivity is added.

scikit-learn's estimators find the minimiser (gradient steps bring it to the accuracy that is certified) and predict.
A row that cannot be used, or that is beyond what one person may contribute, is a row of zeros: it has no gradient, and
n stays what it was.

`PrivateClassifier` is a scikit-learn classifier whose every fit is a private answer: for pipelines, cross-validation
and clones. It keeps nothing of the records but the published numbers. Each fit draws its own noise and spends its own
budget. Where the classes are named, a row that cannot be used has no weight; with "observed" scikit-learn refuses such
rows, and the labels are public.

This module imports scikit-learn; `_classifier` imports it where a classifier is asked for.

Proofs: docs/proofs/dependent-markov.md, docs/proofs/contributions.md.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from dphmm._checks import finite_number, one_of
from dphmm.accounting.event import DependentEvent
from dphmm.dependent._dependence import Budget, add_integer_noise
from dphmm.dependent._inputs import owned, plain_numbers
from dphmm.errors import InvalidInput
from dphmm.samplers.entropy import default_bits
from dphmm.types import Bits, Exact, FloatArray

#: Width of the rounded corner of the SVM's hinge (Chaudhuri et al. take 1/2).
CORNER = 0.5
#: τ as a share of 2/(nΛ).
_SHARE = 2.0**-16
#: Least Λ: the steps that reach τ from anywhere grow as 1/√Λ, and must be fewer than the most there are.
LEAST_STRENGTH = 1e-6
_MOST_STEPS = 200_000
_BETWEEN_LOOKS = 10
#: Rows that are summed up in one go where a gradient is certified, so that rounding does not grow with n.
_BLOCK = 1024
#: Public lengths whose squares floats can hold.
_LENGTHS = (1e-100, 1e100)
#: Numbers further from 0 count as this: their squares can be added up.
_HUGE = 1e150


class PublishedWeights(NamedTuple):
    """``weights`` (d,), the intercept last where there is one; the two ``classes``; and the loss of the fit."""

    weights: FloatArray
    classes: Any
    event: DependentEvent


def published_weights(
    X: Any,
    y: Any,
    *,
    dependence: Any,
    epsilon: Exact,
    classes: Any,
    kind: str,
    regularization: float,
    norm: float,
    intercept: bool,
    users: Any = None,
    max_rows_per_user: int | None = None,
    mechanism: str | None,
    accept_unproved: bool,
    bits: Bits | None,
) -> PublishedWeights:
    """Weights with noise for rows X (n, d) and labels y (n,), in the units of X. Options as of `classifier`."""
    one_of(kind, ("svm", "logistic"), "kind")
    strength = finite_number(regularization, "regularization")
    if not LEAST_STRENGTH <= strength <= 1.0:
        raise InvalidInput("regularization", regularization, f"a number from {LEAST_STRENGTH:g} to 1")
    rows, signs, labels = _checked(X, y, classes, finite_number(norm, "norm"), intercept)
    rows = rows * owned(users, len(rows), max_rows_per_user)[:, None]
    if not isinstance(dependence, (str, tuple)) and dependence.n_tuples != len(rows):
        raise InvalidInput("dependence", repr(dependence), f"one of the {len(rows)} records")
    budget = Budget.of(dependence, epsilon, mechanism, accept_unproved)
    source = default_bits(bits)
    weights, off = minimiser(rows, signs, kind, strength, _estimator(kind, len(rows), strength))
    pitch, steps = lattice_sensitivity(len(rows), rows.shape[1], strength, off)
    whole = np.rint(weights / pitch).astype(np.int64)
    noisy, part = add_integer_noise(whole, Fraction(steps), budget.per_record, f"{kind} weights", source)
    published = _in_the_units_of(noisy.astype(np.float64) * pitch, finite_number(norm, "norm"), intercept)
    return PublishedWeights(published, labels, budget.event(f"linear {kind}", "one row and its label", (part,), source))


def _in_the_units_of(weights: FloatArray, norm: float, intercept: bool) -> FloatArray:
    """Weights for rows as they were given, from those for rows of length at most 1 with a constant beside them."""
    if not intercept:
        return weights / norm
    return np.append(weights[:-1] / norm, weights[-1]) * math.sqrt(0.5)


def lattice_sensitivity(n: int, d: int, strength: float, off: float) -> tuple[float, int]:
    """The pitch, and the largest difference (L1, in steps) of two neighbours' rounded weights."""
    moved = 2.0 / (n * strength) + 2.0 * off
    pitch = 2.0 ** math.floor(math.log2(moved / (64.0 * math.sqrt(d))))
    return pitch, math.ceil(math.sqrt(d) * moved / pitch * (1 + 1e-12)) + d


def minimiser(
    rows: FloatArray, signs: FloatArray, kind: str, strength: float, estimator: Any
) -> tuple[FloatArray, float]:
    """Weights within τ of the minimiser of J, and τ: scikit-learn's, brought to where a gradient certifies it."""
    problem = _Problem(rows * signs[:, None], kind, strength)
    n, d = rows.shape
    tau = accuracy(n, d, strength)
    goal = 0.5 * strength * tau
    w = _started(estimator, rows, signs)
    if problem.slant(w) > problem.slant(np.zeros_like(w)):
        w = np.zeros_like(w)
    return problem.stepwise(problem.newton(w, goal), goal), tau


def accuracy(n: int, d: int, strength: float) -> float:
    """τ: public, and wide enough for the rounding of a gradient (`_Problem.sure_slant`) to fit in a quarter of Λτ."""
    return max(_SHARE * 2.0 / (n * strength), 4.0 * _rounding(d, strength) / strength)


def _farthest(strength: float) -> float:
    """Twice as long as any minimiser: Λ/2·‖w‖² <= J(w) <= J(0) <= 1."""
    return 2.0 * math.sqrt(2.0 / strength)


def _rounding(d: int, strength: float) -> float:
    """The largest error of a certified gradient: sums of a block, margins, and slopes of both."""
    return (_BLOCK + 16 + (d + 8) * (2.0 + _farthest(strength))) * 2.0**-52


class _Problem:
    """J(w) = mean loss(signed rows·w) + Λ/2·‖w‖²."""

    def __init__(self, signed: FloatArray, kind: str, strength: float) -> None:
        self._signed, self._strength = signed, strength
        self._slope, self._bend = (
            (_logistic_slope, _logistic_bend) if kind == "logistic" else (_hinge_slope, _hinge_bend)
        )
        self._most_bend = 0.25 if kind == "logistic" else 1.0 / (2 * CORNER)

    def gradient(self, w: FloatArray) -> FloatArray:
        mean = self._signed.T @ self._slope(self._signed @ w) / len(self._signed)
        gradient: FloatArray = mean + self._strength * w
        return gradient

    def slant(self, w: FloatArray) -> float:
        """The length of the gradient."""
        return float(np.linalg.norm(self.gradient(w)))

    def sure_slant(self, w: FloatArray) -> float:
        """The length of the gradient, summed so that rounding is within `_rounding`; infinite too far out."""
        if not float(np.linalg.norm(w)) <= _farthest(self._strength):
            return math.inf
        slopes = self._slope(self._signed @ w)
        starts = range(0, len(slopes), _BLOCK)
        sums = [self._signed[at : at + _BLOCK].T @ slopes[at : at + _BLOCK] for at in starts]
        total = np.array([math.fsum(column) for column in np.array(sums).T])
        return float(np.linalg.norm(total / len(slopes) + self._strength * w))

    def newton(self, w: FloatArray, goal: float) -> FloatArray:
        """Newton's steps, as long as each makes the gradient shorter."""
        slant = self.slant(w)
        while slant > goal:
            bend = self._bend(self._signed @ w)
            hessian = (self._signed * bend[:, None]).T @ self._signed / len(self._signed)
            hessian += self._strength * np.eye(len(w))
            tried = w - np.linalg.solve(hessian, self.gradient(w))
            after = self.slant(tried)
            if not after < slant:
                break
            w, slant = tried, after
        return w

    def stepwise(self, w: FloatArray, goal: float) -> FloatArray:
        """Nesterov's steps, which arrive from anywhere within a number that the condition of J bounds."""
        smooth = self._most_bend + self._strength
        fast, slow = math.sqrt(smooth), math.sqrt(self._strength)
        ahead = w
        for step in range(_MOST_STEPS):
            if step % _BETWEEN_LOOKS == 0 and self.sure_slant(w) <= goal:
                return w
            after = ahead - self.gradient(ahead) / smooth
            ahead = after + (fast - slow) / (fast + slow) * (after - w)
            w = after
        raise ArithmeticError("the gradient did not become small enough: a larger regularization is needed")


def _started(estimator: Any, rows: FloatArray, signs: FloatArray) -> FloatArray:
    if len(np.unique(signs)) < 2:
        return np.zeros(rows.shape[1])
    with warnings.catch_warnings():
        # It need not have converged: what is certified is checked afterwards.
        warnings.simplefilter("ignore")
        estimator.fit(rows, signs)
    weights: FloatArray = np.asarray(estimator.coef_[0], dtype=np.float64)
    return weights


def _logistic_slope(margins: FloatArray) -> FloatArray:
    slope: FloatArray = -expit(-margins)
    return slope


def _logistic_bend(margins: FloatArray) -> FloatArray:
    slope = _logistic_slope(margins)
    return -slope * (1.0 + slope)


def _hinge_bend(margins: FloatArray) -> FloatArray:
    return (np.abs(1.0 - margins) <= CORNER) / (2 * CORNER)


def _hinge_slope(margins: FloatArray) -> FloatArray:
    """The slope of the hinge with a quadratic corner from 1 − CORNER to 1 + CORNER."""
    slope: FloatArray = -np.clip((1.0 + CORNER - margins) / (2 * CORNER), 0.0, 1.0)
    return slope


def _estimator(kind: str, n: int, strength: float) -> Any:
    made = LogisticRegression if kind == "logistic" else LinearSVC
    return made(C=1.0 / (n * strength), fit_intercept=False, tol=1e-6, max_iter=1000, random_state=0)


def _checked(X: Any, y: Any, classes: Any, norm: float, intercept: bool) -> tuple[FloatArray, FloatArray, Any]:
    rows = plain_numbers(X, "X")
    if rows.ndim != 2 or 0 in rows.shape:
        raise InvalidInput("X", f"shape {rows.shape}", "numbers (n, d), one row per record")
    labels = np.asarray(classes)
    if labels.shape != (2,) or labels[0] == labels[1]:
        raise InvalidInput("classes", classes, "the two public classes")
    targets = np.asarray(y)
    if targets.shape != (len(rows),):
        raise InvalidInput("y", f"shape {targets.shape}", f"({len(rows)},): one label per row")
    weighs = np.isin(targets, labels) & ~np.isnan(rows).any(axis=1)
    if not _LENGTHS[0] <= norm <= _LENGTHS[1]:
        raise InvalidInput("norm", norm, "a length from 1e-100 to 1e100")
    rows = np.clip(np.where(weighs[:, None], rows, 0.0), -_HUGE, _HUGE)
    # A little shorter than 1, so that rounding makes no row longer.
    lengths = np.maximum(np.linalg.norm(rows, axis=1), norm) * (1 + 1e-12)
    rows = rows / lengths[:, None]
    if intercept:
        rows = np.hstack([rows, np.full((len(rows), 1), 1 - 1e-12)]) * math.sqrt(0.5)
    return rows * weighs[:, None], np.where(targets == labels[1], 1.0, -1.0), labels


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
    classes_, coef_, intercept_, n_features_in_ (and feature_names_in_, for a table with names) : published.
    event_ : DependentEvent, the loss of the fit.
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
        weights = published_weights(
            rows,
            labels,
            dependence=self.dependence,
            epsilon=self.epsilon,
            classes=self._public_classes(labels),
            kind=self.kind,
            regularization=self.regularization,
            norm=self.norm,
            intercept=self.intercept,
            mechanism=self.mechanism,
            accept_unproved=self.accept_unproved,
            bits=self.bits,
        )
        self._take(weights)
        self.event_ = weights.event
        if self._observed:
            self.event_ = replace(weights.event, query=f"{weights.event.query}, classes as they occur in the records")
        return self

    @classmethod
    def of(cls, found: PublishedWeights, epsilon: Exact, options: dict[str, Any]) -> PrivateClassifier:
        """An estimator that knows the published numbers, and nothing else of the records."""
        made = cls(epsilon, **options)
        made._take(found)
        made.n_features_in_ = made.coef_.shape[1]
        return made

    def _take(self, found: PublishedWeights) -> None:
        d = len(found.weights) - self.intercept
        self.classes_, self.coef_ = found.classes, found.weights[None, :d]
        self.intercept_ = np.array([found.weights[d] if self.intercept else 0.0])

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
        """The probabilities (n, 2) of both classes by the published weights; of kind "logistic" only."""
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
        """Check that every option that decides the promise was given."""
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
        kind, observed = type_of_target(labels), np.unique(labels)
        if kind != "binary":
            raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
        if len(observed) != 2:
            raise InvalidInput("y", "labels of one class", "two classes, or classes that are named")
        return observed

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.non_deterministic = True
        tags.input_tags.allow_nan = not self._observed
        return tags
