"""Counting and private learning on Apache Spark: executors count exactly, the driver draws the noise once.

count_transitions   exact, private counts of a frame's transitions
fit_private         a Markov chain from a frame, stored in a ledger before it is returned
histogram           how many records are in each state, stored in a ledger before it is returned
degrees             how many people have 0, 1, 2, ... edges, stored in a ledger before it is returned

It needs pyspark 4.1 or newer (``pip install 'dphmm[spark]'``), which is loaded where one of these is called.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dphmm.spark.counting import count_transitions as count_transitions
    from dphmm.spark.learning import fit_private as fit_private
    from dphmm.spark.queries import degrees as degrees
    from dphmm.spark.queries import histogram as histogram

_HOMES = {
    "count_transitions": "dphmm.spark.counting",
    "degrees": "dphmm.spark.queries",
    "fit_private": "dphmm.spark.learning",
    "histogram": "dphmm.spark.queries",
}

__all__ = ["count_transitions", "degrees", "fit_private", "histogram"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dphmm.spark' has no attribute {name!r}")
    return globals().setdefault(name, getattr(import_module(_HOMES[name]), name))


def __dir__() -> list[str]:
    return __all__
