"""Queries over records that depend on each other: their noise, and the proofs of it.

- models of the dependence: `Chain`, `Tree`, `Star`, `Friendship`, `JointTable`, `Coefficients`
- queries: `Sum`, `AnyQuery`
- the noise: `calibrate`, `compare`, `coefficient`, `coefficients`, `sensitivity`
- the noise for records of two values in clusters: `cluster_rate`, `cluster_loss`
- answers: `histogram`, `count`, `total`, `flows`, `mean`, `kmeans`, `degree_distribution`, `classifier`
- a scikit-learn estimator, each of whose fits is an answer: `PrivateClassifier`
- several answers: `together`; a question by its name: `query`
- questions about tables as they are, which `dphmm.query` and the command line ask: `Question`, `register`
- the forecast of an answer about such a table, before it is asked: `forecast`
"""

from typing import TYPE_CHECKING, Any

from dphmm.dependent._calibration import MECHANISMS, Calibration, Comparison, calibrate, compare
from dphmm.dependent._chain import Chain, stationary_law
from dphmm.dependent._classifier import Classifier, LinearClassifier, classifier
from dphmm.dependent._clusters import cluster_loss, cluster_rate
from dphmm.dependent._coefficients import AnyQuery, ExactLoss, Sum, coefficient, coefficients, exact_loss, sensitivity
from dphmm.dependent._counts import Histogram, count, histogram, mean, total
from dphmm.dependent._degrees import Degree, degree_distribution
from dphmm.dependent._dependence import Budget, together
from dphmm.dependent._flows import Flows, flows
from dphmm.dependent._kmeans import KMeans, kmeans
from dphmm.dependent._models import Coefficients, Friendship, JointTable, Star, Tree
from dphmm.dependent._question import REGISTERED, Answered, QueryResult, Question, forecast, register
from dphmm.dependent._question import query_arrays as query

if TYPE_CHECKING:
    from dphmm.dependent._linear import PrivateClassifier

register(Histogram, Flows, KMeans, Degree, LinearClassifier)
#: The names of `query`.
QUESTIONS = tuple(name for kind in REGISTERED.values() for name in kind.functions)

__all__ = [
    "MECHANISMS",
    "QUESTIONS",
    "REGISTERED",
    "Answered",
    "AnyQuery",
    "Budget",
    "Calibration",
    "Chain",
    "Classifier",
    "Coefficients",
    "Comparison",
    "ExactLoss",
    "Friendship",
    "JointTable",
    "PrivateClassifier",
    "QueryResult",
    "Question",
    "Star",
    "Sum",
    "Tree",
    "calibrate",
    "classifier",
    "cluster_loss",
    "cluster_rate",
    "coefficient",
    "coefficients",
    "compare",
    "count",
    "degree_distribution",
    "exact_loss",
    "flows",
    "forecast",
    "histogram",
    "kmeans",
    "mean",
    "query",
    "register",
    "sensitivity",
    "stationary_law",
    "together",
    "total",
]


def __getattr__(name: str) -> Any:
    # It needs scikit-learn, which nothing else here does before it is used.
    if name != "PrivateClassifier":
        raise AttributeError(f"module 'dphmm.dependent' has no attribute {name!r}")
    try:
        from dphmm.dependent._linear import PrivateClassifier
    except ImportError as error:
        raise ImportError("PrivateClassifier needs scikit-learn 1.6 or newer: pip install 'dphmm[learn]'") from error
    return PrivateClassifier
