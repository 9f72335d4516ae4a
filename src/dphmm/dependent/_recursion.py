"""What a tuple of a chain or a tree loses at most through any mechanism that is private for single tuples.

If changing tuple j alone changes the probability of any output by at most e^{a_j}, then for tuple i
    loss(i) = a_i + Σ over neighbours j of L_ij(m_ji),   m_ji = a_j + Σ over other neighbours k of j of L_jk(m_kj),
L_ij from the kernel P(D_j | D_i). On a chain these are r_i = a_i + L_F(r_{i+1}) and l_i = a_i + L_B(l_{i−1}), together
r_i + l_i − a_i. Every number returned here is rounded so that it is not below the true one.

The recursion is that of Cao, Yoshikawa, Xiao and Xiong (ICDE 2017), used as an influence curve (the term of Bai, He,
Gu, Kifer and Maeng, arXiv 2602.02718; found independently, not compared with theirs).

Proof: docs/proofs/dependent-markov.md.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from dphmm.dependent._chain import Chain
from dphmm.dependent._increase import LeakageCurve
from dphmm.dependent._tree import Tree
from dphmm.types import FloatArray

Forest: TypeAlias = Chain | Tree
#: A rounding, outwards: as in the kernel of chains.
_OUTWARD = 1.0 + 2.0**-50


def tuple_losses(model: Forest, single: FloatArray) -> FloatArray:
    """The bound for every tuple (n,), from the losses ``single`` (n,) of changing one alone."""
    return _on_a_chain(model, single) if isinstance(model, Chain) else _on_a_tree(model, single)


def largest_loss(model: Forest, single: FloatArray) -> float:
    """The bound that holds for every tuple."""
    return float(tuple_losses(model, single).max())


def _on_a_chain(model: Chain, single: FloatArray) -> FloatArray:
    n = model.n
    later = _along(model, single, range(n - 1, -1, -1))
    reversals = model.reversals
    earlier = _along(model, single, range(n)) if reversals is None else reversals.carried(single)
    return single + (later + earlier) * _OUTWARD if n > 1 else single.copy()


def _along(model: Chain, single: FloatArray, order: range) -> FloatArray:
    """What each tuple loses through those before it in ``order``."""
    from dphmm._kernels.recursion import OUTWARD, carry

    carried = np.zeros(model.n)
    for kernel, first, last in model.stretches(order.step):
        curve = kernel.curve
        if isinstance(curve, LeakageCurve):
            d, more = curve.shares
            carry(d, more, curve.error, single, carried, first, last, order.step)
            continue
        for i in range(first, last + order.step, order.step):
            before = i - order.step
            message = float(single[before] + carried[before])
            carried[i] = curve.above(message * OUTWARD if carried[before] else message)
    return carried


def _on_a_tree(model: Tree, single: FloatArray) -> FloatArray:
    below = np.zeros(model.n)
    through = np.zeros(model.n)
    for j in reversed(model._order):
        parent = model.parents[j]
        if parent >= 0:
            through[j] = model.kernel(parent, j).curve.above(_sum(single[j], below[j]))
            below[parent] = _sum(below[parent], through[j])
    above = np.zeros(model.n)
    for parent in model._order:
        children = [j for j in model.neighbours(parent) if model.parents[j] == parent]
        after = np.r_[np.cumsum(through[children][::-1])[::-1], 0.0] * (1.0 + len(children) * 2.0**-52)
        earlier = 0.0
        for place, j in enumerate(children):
            message = _sum(_sum(single[parent], above[parent]), _sum(earlier, after[place + 1]))
            above[j] = model.kernel(j, parent).curve.above(message)
            earlier = _sum(earlier, through[j])
    return np.array([_sum(single[i], _sum(below[i], above[i])) for i in range(model.n)])


def _sum(a: float, b: float) -> float:
    """a + b, not rounded down."""
    return float(a + b) if a == 0.0 or b == 0.0 else float(a + b) * _OUTWARD
