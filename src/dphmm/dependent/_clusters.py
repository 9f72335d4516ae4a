"""The bound by a correlation in clusters whose members share one hidden number, for records of two values.

The members of a cluster (a ward, a class, a shift) are independent given one hidden number of it, each with the same
law, and the correlation of two members is at most ``icc``. Whatever the law of that number is, an answer that one
record of two values changes by at most e^a loses at most a + ln(1 - icc + icc e^((n-1) a)) of one record in a cluster
of at most n. Of three values or more no such bound holds: each may have that correlation, and all of the group be lost.

Proof: docs/proofs/clusters.md.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dphmm._checks import exact_epsilon, finite_number, whole
from dphmm.dependent._calibration import largest_rate
from dphmm.errors import InvalidInput
from dphmm.types import Exact

#: Losses are floats: so much of epsilon is left over.
_MARGIN = Fraction(1, 10**9)


def cluster_loss(rate: Exact, most: int, icc: float) -> float:
    """The loss about one record of two values in a cluster, by an answer that one record changes by at most e^rate.

    Parameters
    ----------
    rate : the loss of one record, if all others are known.
    most : the public cap on the members of a cluster.
    icc : the largest correlation of two members (intraclass correlation), from other people or the literature, rounded
        up: never estimated from the same data.

    Raises
    ------
    InvalidInput : naming the argument.

    Examples
    --------
    >>> import dphmm
    >>> round(dphmm.dependent.cluster_loss("0.1639", 20, 0.06), 3)
    0.993

    Source: docs/proofs/clusters.md.
    """
    return _loss(float(exact_epsilon(rate, "rate")), whole(most, "most", 1), _share(icc))


def cluster_rate(epsilon: Exact, most: int, icc: float) -> Fraction:
    """The largest rate at which a record of two values in a cluster loses at most epsilon, rounded down.

    Ask the question at this epsilon, as if records were independent. Parameters and errors as of `cluster_loss`.

    Examples
    --------
    >>> import dphmm
    >>> rate = dphmm.dependent.cluster_rate(1, 20, 0.06)
    >>> round(float(1 / rate), 1), dphmm.dependent.cluster_rate(1, 20, 1) <= dphmm.dependent.cluster_rate(1, 20, 0)
    (6.1, True)

    Source: docs/proofs/clusters.md.
    """
    exact, n, share = exact_epsilon(epsilon), whole(most, "most", 1), _share(icc)
    goal = exact * (1 - _MARGIN)
    return largest_rate(lambda rate: _loss(rate, n, share), goal, float(goal) / n * 0.999, float(exact))


def _loss(rate: float, most: int, icc: float) -> float:
    return rate + math.log1p(icc * math.expm1((most - 1) * rate))


def _share(icc: float) -> float:
    share = finite_number(icc, "icc")
    if not 0 <= share <= 1:
        raise InvalidInput("icc", icc, "a correlation from 0 to 1: members of a cluster agree by chance or more")
    return share
