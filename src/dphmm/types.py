"""Names shared by every layer: array aliases and the small protocols that let low layers take high things."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]
WordArray: TypeAlias = NDArray[np.uint64]

#: A number given for an exact quantity: a float means the decimal it prints as.
Exact: TypeAlias = int | float | str | Fraction
#: A loss that may be unbounded: a Fraction, or ``math.inf``.
Loss: TypeAlias = Fraction | float

#: Which states: a boolean mask (N,), state numbers, or None for all of them.
States: TypeAlias = NDArray[Any] | Sequence[int] | None


class Predecessors(NamedTuple):
    """Compressed columns: column j has rows ``indices[indptr[j]:indptr[j + 1]]``, with ``data`` = M[i, j].

    Index arrays are unsigned: compiled loops then need no test for negative wrap-around. ``share`` (N,): the part
    that a jump adds to every entry of column j, stored or not; ``data`` has the weight 1 - λ then. (0,) where none is.
    """

    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: FloatArray
    share: FloatArray


class FloatLaw(NamedTuple):
    """The likelihood of one noise as the compiled filter reads it: facets |normals·v| <= offsets, and how it falls.

    ``allowances`` (m,) say how far beyond each facet the first step reaches. ``kind`` is one of `_kernels.filter`,
    ``rate`` is ε, ``table`` is what a kind with a table reads.
    """

    normals: IntArray
    offsets: IntArray
    allowances: IntArray
    kind: int
    rate: float
    table: FloatArray


@runtime_checkable
class Bits(Protocol):
    """A source of random words. System bits release; whatever is drawn from any other source is marked."""

    def uint64(self, n: int) -> WordArray:
        """The next ``n`` uniform 64-bit words."""
        ...


class MarkovChain(Protocol):
    """A Markov chain as accounting sees it: its start, and the matrix of every move."""

    initial: FloatArray
    #: "before": ``initial`` is of t = 0; "at": of t = 1.
    start: str

    @property
    def time_homogeneous(self) -> bool:
        """True if every move has the same matrix."""
        ...

    def transition_at(self, t: int) -> Any:
        """The csr matrix (N, N) of the move from t - 1 to t, no zeros stored."""
        ...


class PairLosses(Protocol):
    """The losses of one release between pairs of states."""

    def loss_between(self, i: IntArray, j: IntArray) -> FloatArray:
        """The largest loss of each pair (i[k], j[k]), rounded up; ``math.inf`` where it is unbounded."""
        ...


class LosesByDifference(Protocol):
    """A mechanism whose loss depends on the difference of two lattice answers alone."""

    def loss_lattice(self, v: Any) -> Loss:
        """The largest loss of two answers that differ by v (d,), exactly."""
        ...

    def describe(self) -> dict[str, str]:
        """The parameters that tell this mechanism from another on the same hull."""
        ...


@runtime_checkable
class LosesByAnswers(Protocol):
    """A mechanism whose loss depends on the two answers, not on their difference alone."""

    def losses_between(self, first: IntArray, second: IntArray) -> FloatArray:
        """The losses (m,) of pairs of lattice answers (m, d), rounded up."""
        ...


class ReleasePlan(Protocol):
    """One release as accounting sees it: the lattice answer (N, d) of every state, and the mechanism."""

    @property
    def image(self) -> IntArray: ...

    @property
    def mechanism(self) -> LosesByDifference: ...
