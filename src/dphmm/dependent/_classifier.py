"""Linear classifiers of two public classes: of rows and labels, and of columns of a table.

Proofs: docs/proofs/dependent-markov.md, docs/proofs/contributions.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dphmm.dependent._inputs import (
    BOX,
    MAX_ROWS,
    RELATION,
    SPELLING,
    Option,
    Rejected,
    box,
    data_labels,
    data_numbers,
    feature_columns,
    finite,
    grouped,
    names,
    needed,
)
from dphmm.dependent._question import Answered, AnsweredQuestion, PerPerson, Question, fields
from dphmm.errors import InvalidInput
from dphmm.types import Bits, Exact, FloatArray


@dataclass(frozen=True, eq=False)
class Classifier(Answered):
    """A published classifier: ``estimator`` (a `PrivateClassifier`, ready to predict), its numbers, and its loss.

    Fitted again, by a cross-validation for one, the estimator is as private as it was, and each fit is paid for.
    """

    estimator: Any


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

    ``norm``: public; longer rows are shortened to it. ``regularization``: Λ. n, the number of rows, is public. A
    record is one row with its label. Without weight, but counted in n: a row with another label, one with a number
    missing, and all but the first ``max_rows_per_user`` of each of ``users`` (n,), where these are given. Needs
    scikit-learn.
    """
    import pandas as pd

    linear = _linear(kind)
    options = {
        "dependence": grouped(dependence, max_rows_per_user), "classes": classes, "kind": kind,
        "regularization": regularization, "norm": norm, "intercept": intercept, "mechanism": mechanism,
        "accept_unproved": accept_unproved,
    }  # fmt: skip
    published = linear.published_weights(
        X, y, epsilon=epsilon, users=users, max_rows_per_user=max_rows_per_user, bits=bits, **options
    )
    names = [f"x{axis}" for axis in range(len(published.weights) - intercept)] + ["intercept"] * intercept
    frame = pd.DataFrame({"feature": names, "weight": published.weights})
    return Classifier(frame, published.event, linear.PrivateClassifier.of(published, epsilon, options))


def _linear(kind: str) -> Any:
    """The module that imports scikit-learn, which nothing else needs."""
    try:
        from dphmm.dependent import _linear as module
    except ImportError:
        expected = "scikit-learn 1.6 or newer to be installed: pip install 'dphmm[learn]'"
        raise InvalidInput("kind", kind, expected) from None
    return module


class LinearClassifier(Question):
    """`classifier` of rows of a table that are moved to a box, with weights in the units of the table."""

    name = "svm"
    help = "A linear classifier of two classes, as weights. A record is one row with its class. Needs scikit-learn."
    forms = "friends:EDGES, group, group:K or independent."
    functions: ClassVar = dict.fromkeys(("svm", "logistic"), classifier)
    by_rows = True
    in_steps = ("svm weights", "logistic weights")
    options = (
        MAX_ROWS,
        Option("label", "The column of classes.", "COL"),
        Option("classes", "The two public classes.", "NO,YES"),
        Option("columns", "The columns of numbers to tell them by.", "A,B"),
        Option("box", "The public box, LOW:HIGH for each column; values outside move to it.", "BOX"),
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
        SPELLING,
        RELATION,
    )

    @classmethod
    def arguments(
        cls, name: str, data: Any, dependence: Any, epsilon: Exact, options: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Rows and labels are two arguments; the name is the kind."""
        if not isinstance(data, (tuple, list)) or len(data) != 2:
            raise InvalidInput("data", type(data).__name__, "rows and their labels, (X, y)")
        return (*data, dependence, epsilon), {"kind": name, **options}

    def check(self, dependence: Any) -> None:
        """Features in a box, a column of classes, and how strongly weights are kept small."""
        self.dependence = self.depends(dependence, ("friends", "group", "independent"))
        self.check_neighbours("the number of rows of DATA is public, so none of them is there or not")
        self.dependence.refuse_data(self.data)
        called, options = self.called, self.given
        if options["kind"] not in ("svm", "logistic"):
            raise InvalidInput(called("kind"), options["kind"], "svm or logistic")
        self._columns = feature_columns(options["columns"], called("columns"))
        limits = box(needed(options["box"], called("box"), BOX), self._columns, called("box"))
        self._low, self._high = (np.array(side) for side in limits)
        self._label = needed(options["label"], called("label"), "the column of classes")
        classes = needed(options["classes"], called("classes"), "the two public classes: no,yes")
        self._classes = names(classes, called("classes"), "two classes: no,yes")
        if len(self._classes) != 2:
            raise InvalidInput(called("classes"), classes, "two classes: no,yes")
        if self._label in self._columns:
            expected = f"a column that is not among the {called('columns')}"
            raise InvalidInput(called("label"), self._label, expected)
        self._strength = finite(options["regularization"], called("regularization"))

    def find(self, bits: Bits | None) -> AnsweredQuestion:
        """Weights for the features as they are in the table."""
        called, d = self.called, len(self._columns)
        between = self.between()
        features = [(name, called("columns")) for name in self._columns]
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
        unit = self.dependence.unit(number_public=True)
        published = self._in_own_units(answered)
        return AnsweredQuestion(published, rejected, domain, unit, ("rows of DATA",))

    def per_person(self) -> PerPerson:
        """The bound for replaced rows of one person: the number of rows is public."""
        return PerPerson("replace", self.dependence.most)

    def _scaled(self, features: FloatArray) -> FloatArray:
        """Features moved to the box, from -1 to 1; NaN moves to the middle."""
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
