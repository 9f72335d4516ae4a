"""Compiled loops over plain arrays. Nothing here knows a class of dphmm or checks an argument.

Every kernel is also plain Python: run with NUMBA_DISABLE_JIT=1 it is its own readable twin.

A file of kernels is imported when it is first asked for, as ``_kernels.filter``: numba takes a second to load, and
most commands need none of it. An import statement inside a function would take as long as a small kernel, every time.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dphmm._kernels import beliefs as beliefs
    from dphmm._kernels import filter as filter
    from dphmm._kernels import hmm as hmm
    from dphmm._kernels import lattice as lattice
    from dphmm._kernels import leakage as leakage
    from dphmm._kernels import points as points
    from dphmm._kernels import policy as policy
    from dphmm._kernels import policy_leakage as policy_leakage


def __getattr__(name: str) -> ModuleType:
    if name.startswith("__"):
        raise AttributeError(name)
    return import_module(f"{__name__}.{name}")
