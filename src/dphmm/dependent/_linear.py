"""Linear classifiers by output perturbation (Chaudhuri, Monteleoni and Sarwate, JMLR 2011), noise on a lattice.

With rows of length at most 1, a loss that is convex and 1-Lipschitz in the margin, and J(w) = mean loss + Λ/2·‖w‖², the
minimiser moves by at most 2/(nΛ) when one record is replaced. What is computed is not the minimiser: the gradient at
what is returned is at most Λτ, its own rounding included, so it is within τ of it, and 2τ is added. Rounded to a
lattice, the L1 distance of two neighbouring results is at most √d·(2/(nΛ) + 2τ)/pitch + d steps; discrete Laplace noise
of that sensitivity is added.

scikit-learn's estimators find the minimiser (gradient steps bring it to the accuracy that is certified) and predict.

A row that cannot be used, or that is beyond what one person may contribute, is a row of zeros: it has no gradient, and
n stays what it was.

Proof: docs/proofs/dependent-markov.md, docs/proofs/contributions.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm._checks import finite_number, one_of
from dphmm.accounting.event import DependentEvent
from dphmm.dependent._budget import Budget, add_integer_noise
from dphmm.dependent._contributions import grouped, owned, plain_numbers
from dphmm.dependent._options import BOX, MAX_ROWS, Option, box, finite, names, needed
from dphmm.dependent._question import Found, PerPerson, Question, fields
from dphmm.dependent._tables import Rejected, data_labels, data_numbers, feature_columns
from dphmm.errors import InvalidInput
from dphmm.samplers.entropy import default_bits
from dphmm.types import Bits, Exact, FloatArray

if TYPE_CHECKING:
    import pandas as pd

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
_ROWS = (
    "How many rows DATA have: the noise is calculated from it, and it is told in this statement. Rows that cannot be "
    "used, and those beyond --max-rows-per-user, are counted in it and have no weight."
)


@dataclass(frozen=True, eq=False)
class Classifier:
    """A published classifier: ``estimator`` (a `PrivateClassifier`, ready to predict), its numbers, and what it cost.

    Fitted again, by a cross-validation for one, the estimator is as private as it was, and each fit is paid for.
    """

    estimator: Any
    table: pd.DataFrame
    event: DependentEvent


def classifier(
    X: Any,
    y: Any,
    dependence: Any,
    epsilon: Exact,
    *,
    classes: Any,
    kind: str = "svm",
    regularization: float = 1e-2,
    norm: float = 1.0,
    intercept: bool = True,
    users: Any = None,
    max_rows_per_user: int | None = None,
    mechanism: str | None = None,
    accept_unproved: bool = False,
    bits: Bits | None = None,
) -> Classifier:
    """A linear classifier of rows X (n, d) into two public ``classes``; kind "svm" or "logistic".

    ``norm``: public; longer rows are shortened to it. ``regularization``: Λ. n, how many rows there are, is public. A
    record is one row with its label. Without weight, but counted in n: a row with another label, one with a number
    missing, and all but the first ``max_rows_per_user`` of each of ``users`` (n,), where these are given. Needs
    scikit-learn.
    """
    import pandas as pd

    dependence = grouped(dependence, max_rows_per_user)

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
    estimator = _estimator(kind, len(rows), strength)
    weights, off = minimiser(rows, signs, kind, strength, estimator)
    pitch, steps = lattice_sensitivity(len(rows), rows.shape[1], strength, off)
    whole = np.rint(weights / pitch).astype(np.int64)
    noisy, part = add_integer_noise(whole, Fraction(steps), budget.per_record, f"{kind} weights", source)
    published = _in_the_units_of(noisy.astype(np.float64) * pitch, finite_number(norm, "norm"), intercept)
    options = {
        "dependence": dependence, "classes": classes, "kind": kind, "regularization": regularization, "norm": norm,
        "intercept": intercept, "mechanism": mechanism, "accept_unproved": accept_unproved,
    }  # fmt: skip
    fitted = _fitted(published, labels, intercept, epsilon, options)
    names = [f"x{axis}" for axis in range(rows.shape[1] - intercept)] + ["intercept"] * intercept
    frame = pd.DataFrame({"feature": names, "weight": published})
    return Classifier(fitted, frame, budget.event(f"linear {kind}", "one row and its label", (part,), source))


class LinearClassifier(Question):
    """`classifier` of rows of a table that are moved to a box, with weights in the units of the table."""

    name = "svm"
    help = "A linear classifier of two classes, as weights. A record is one row with its class. Needs scikit-learn."
    forms = "friends:EDGES, group, group:K or independent."
    options = (
        MAX_ROWS,
        Option("label", "The column of classes.", "COL"),
        Option("classes", "The two public classes.", "NO,YES"),
        Option("features", "The columns of numbers to tell them by.", "X,Y"),
        Option("box", "The public box, LOW:HIGH for each feature; values outside move to it.", "BOX"),
        Option(
            "regularization",
            "From 1e-6 to 1: the larger, the less noise and the less it learns.",
            "L",
            default="0.01",
            flags=("--regularisation", "--regularization"),
            shown=True,
        ),
        Option("kind", "svm or logistic.", "WORD", default="svm", shown=True),
        Option("user_column", "The column of users, where D needs it  [default: user]", "COL"),
    )

    def check(self, dependence: Any) -> None:
        """Features in a box, a column of classes, and how strongly weights are kept small."""
        self.dependence = self.depends(dependence, ("friends", "group", "independent"))
        self.dependence.refuse_data(self.data)
        called, given = self.called, self.given
        if given["kind"] not in ("svm", "logistic"):
            raise InvalidInput(called("kind"), given["kind"], "svm or logistic")
        self._columns = feature_columns(given["features"], called("features"))
        limits = box(needed(given["box"], called("box"), BOX), self._columns, called("box"))
        self._low, self._high = (np.array(side) for side in limits)
        self._label = needed(given["label"], called("label"), "the column of classes")
        classes = needed(given["classes"], called("classes"), "the two public classes: no,yes")
        self._classes = names(classes, called("classes"), "two classes: no,yes")
        if len(self._classes) != 2:
            raise InvalidInput(called("classes"), classes, "two classes: no,yes")
        if self._label in self._columns:
            expected = f"a column that is not among the {called('features')}"
            raise InvalidInput(called("label"), self._label, expected)
        self._strength = finite(given["regularization"], called("regularization"))

    def find(self, bits: Bits | None) -> Found:
        """Weights for the features as they are in the table."""
        called, d = self.called, len(self._columns)
        between = self.between()
        features = [(name, called("features")) for name in self._columns]
        rows = self.rows([(self._label, called("label")), *features])
        rejected = Rejected.of(rows)
        values, whose = data_numbers(rows, self._columns, rejected), self.owned(rows, rejected)
        truth = data_labels(rows, self._label)
        rejected.add(rows.places[~np.isin(truth, self._classes)], "unknown_class")
        # A row of another number of fields has no weight, and is counted: how many rows there are is public.
        odd = len(rows.odd)
        if odd and "users" in whose:
            whose["users"] = np.append(whose["users"], [None] * odd)
        with fields({"regularization": called("regularization"), "kind": called("kind"), "X": "DATA"}):
            answered = classifier(
                np.vstack([self._scaled(values), np.zeros((odd, d))]),
                np.append(truth, [None] * odd),
                between,
                self.epsilon,
                classes=np.array(self._classes, dtype=object),
                kind=self.given["kind"],
                regularization=self._strength,
                norm=float(np.sqrt(d)),
                bits=bits,
                **whose,
            )
        domain = {
            "features": self._columns,
            "box": {"low": self._low.tolist(), "high": self._high.tolist()},
            "classes": self._classes,
            "decision": f"{self._classes[1]} where the sum of weight x feature, plus the intercept, is greater than 0",
            "regularisation": self._strength,
            "records": rows.n_rows,
        }
        unit = self.dependence.unit(answered.event.record, rows_public=True)
        published = self._in_own_units(answered)
        return Found(published, rejected, domain, unit, self.dependence.by_person, (_ROWS,))

    def per_person(self) -> PerPerson:
        """How many rows there are is public: rows are replaced."""
        return PerPerson("replace", self.dependence.most)

    def _scaled(self, features: FloatArray) -> FloatArray:
        """Features moved to the box, from -1 to 1; what is no number is in the middle."""
        low, high = self._low, self._high
        middle = np.where(np.isnan(features), (low + high) / 2, features)
        scaled: FloatArray = 2 * (np.clip(middle, low, high) - low) / (high - low) - 1
        return scaled

    def _in_own_units(self, answered: Classifier) -> Classifier:
        """Weights for the features as they are in the table, from those for features between -1 and 1."""
        low, high = self._low, self._high
        weights = answered.table["weight"].to_numpy()
        slopes = weights[:-1] * 2 / (high - low)
        intercept = weights[-1] - float((weights[:-1] * (high + low) / (high - low)).sum())
        table = answered.table.assign(feature=[*self._columns, "intercept"], weight=[*slopes, intercept])
        return replace(answered, table=table)


def _in_the_units_of(weights: FloatArray, norm: float, intercept: bool) -> FloatArray:
    """Weights for rows as they were given, from those for rows of length at most 1 with a constant beside them."""
    if not intercept:
        return weights / norm
    return np.append(weights[:-1] / norm, weights[-1]) * math.sqrt(0.5)


def lattice_sensitivity(n: int, d: int, strength: float, off: float) -> tuple[float, int]:
    """The pitch, and by how many steps (L1) two neighbours' rounded weights differ at most."""
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
    """How far a certified gradient can be from the true one: sums of a block, margins and what slopes make of them."""
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
        found: FloatArray = mean + self._strength * w
        return found

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
    import warnings

    with warnings.catch_warnings():
        # It need not have converged: what is certified is checked afterwards.
        warnings.simplefilter("ignore")
        estimator.fit(rows, signs)
    found: FloatArray = np.asarray(estimator.coef_[0], dtype=np.float64)
    return found


def _logistic_slope(margins: FloatArray) -> FloatArray:
    from scipy.special import expit

    found: FloatArray = -expit(-margins)
    return found


def _logistic_bend(margins: FloatArray) -> FloatArray:
    slope = _logistic_slope(margins)
    return -slope * (1.0 + slope)


def _hinge_bend(margins: FloatArray) -> FloatArray:
    return (np.abs(1.0 - margins) <= CORNER) / (2 * CORNER)


def _hinge_slope(margins: FloatArray) -> FloatArray:
    """Of the hinge with a quadratic corner from 1 − CORNER to 1 + CORNER."""
    found: FloatArray = -np.clip((1.0 + CORNER - margins) / (2 * CORNER), 0.0, 1.0)
    return found


def _estimator(kind: str, n: int, strength: float) -> Any:
    try:
        from sklearn.linear_model import LogisticRegression
        from sklearn.svm import LinearSVC
    except ImportError:
        raise InvalidInput("kind", kind, "scikit-learn to be installed: pip install 'dphmm[learn]'") from None
    made = LogisticRegression if kind == "logistic" else LinearSVC
    return made(C=1.0 / (n * strength), fit_intercept=False, tol=1e-6, max_iter=1000, random_state=0)


def _fitted(weights: FloatArray, labels: Any, intercept: bool, epsilon: Exact, options: dict[str, Any]) -> Any:
    """An estimator that knows the published numbers, and nothing else of what was fitted."""
    from dphmm.dependent._estimator import PrivateClassifier

    made = PrivateClassifier(epsilon, **options)
    made.classes_ = labels
    made.coef_ = weights[None, : len(weights) - intercept]
    made.intercept_ = np.array([weights[-1] if intercept else 0.0])
    made.n_features_in_ = len(weights) - intercept
    return made


def _checked(X: Any, y: Any, classes: Any, norm: float, intercept: bool) -> tuple[FloatArray, FloatArray, Any]:
    rows = plain_numbers(X, "X")
    if rows.ndim != 2 or 0 in rows.shape:
        raise InvalidInput("X", f"shape {rows.shape}", "numbers (n, d), one row per record")
    labels = np.asarray(classes)
    if labels.shape != (2,) or labels[0] == labels[1]:
        raise InvalidInput("classes", classes, "the two public classes")
    given = np.asarray(y)
    if given.shape != (len(rows),):
        raise InvalidInput("y", f"shape {given.shape}", f"({len(rows)},): one label per row")
    weighs = np.isin(given, labels) & ~np.isnan(rows).any(axis=1)
    if not _LENGTHS[0] <= norm <= _LENGTHS[1]:
        raise InvalidInput("norm", norm, "a length from 1e-100 to 1e100")
    rows = np.clip(np.where(weighs[:, None], rows, 0.0), -_HUGE, _HUGE)
    # A little shorter than 1, so that rounding makes no row longer.
    lengths = np.maximum(np.linalg.norm(rows, axis=1), norm) * (1 + 1e-12)
    rows = rows / lengths[:, None]
    if intercept:
        rows = np.hstack([rows, np.full((len(rows), 1), 1 - 1e-12)]) * math.sqrt(0.5)
    return rows * weighs[:, None], np.where(given == labels[1], 1.0, -1.0), labels
