"""Degrees of a graph whose edges are taken one after the other, as long as both ends have room."""

from __future__ import annotations

from dphmm._kernels.compiled import kernel
from dphmm.types import IntArray


@kernel
def capped_degrees(first: IntArray, second: IntArray, order: IntArray, n: int, cap: int, degrees: IntArray) -> None:
    """Fill ``degrees`` (n,): edge by edge in ``order``, an edge counts if neither end has ``cap`` edges yet."""
    for i in range(n):
        degrees[i] = 0
    for at in order:
        a, b = first[at], second[at]
        if degrees[a] < cap and degrees[b] < cap:
            degrees[a] += 1
            degrees[b] += 1
