"""One door to all questions, for callers that have the question's name: the command line, a service, a notebook.

Proof: docs/proofs/dependent-markov.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from dphmm._checks import one_of
from dphmm.dependent._counts import Answered, count, histogram, mean, total
from dphmm.dependent._degrees import degree_distribution
from dphmm.dependent._linear import Classifier, classifier
from dphmm.dependent._lloyd import kmeans
from dphmm.errors import InvalidInput
from dphmm.types import Exact

Answer: TypeAlias = Answered | Classifier
_ANSWERS: dict[str, Callable[..., Answered]] = {
    "histogram": histogram,
    "count": count,
    "total": total,
    "mean": mean,
    "kmeans": kmeans,
}
_KINDS = ("svm", "logistic")
QUESTIONS = (*_ANSWERS, "degree", *_KINDS)


def query(question: str, data: Any, dependence: Any, epsilon: Exact, **options: Any) -> Answer:
    """The answer to a question by its name, with the options of the question's own function.

    Names: "histogram", "count", "total", "mean", "kmeans", "degree", "svm", "logistic".

    ``data``: the table, values or points; for "degree" the edges, with ``n`` and ``level``; for the two classifiers
    rows and labels (X, y). Raises InvalidInput for an option that the question does not have.
    """
    name = one_of(question, QUESTIONS, "question")
    if name == "degree":
        return _asked(name, degree_distribution, (data, options.pop("n", None), dependence, epsilon), options)
    if name in _KINDS:
        if not isinstance(data, (tuple, list)) or len(data) != 2:
            raise InvalidInput("data", type(data).__name__, "rows and their labels, (X, y)")
        return _asked(name, classifier, (*data, dependence, epsilon), {"kind": name, **options})
    return _asked(name, _ANSWERS[name], (data, dependence, epsilon), options)


def _asked(name: str, ask: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> Answer:
    import inspect

    try:
        inspect.signature(ask).bind(*arguments, **options)
    except TypeError as error:
        raise InvalidInput("options", str(error), f'those of the question "{name}"') from None
    answer: Answer = ask(*arguments, **options)
    return answer
