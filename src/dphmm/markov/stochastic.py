"""Distributions and row-stochastic matrices: their checks and canonical form; parts of models.

Accepted: float64, float32 or integers; finite, nowhere negative, each row summing to 1. A value that is a
little negative, or a sum that is a little off, is a fault of whatever computed it: it is refused or corrected
here, once, and never clipped silently.

A jump is a rank-one term of a Markov chain, which leaves no move impossible.
With rate λ and a law u > 0 on every state the chain moves by M' = (1 - λ) M + λ 1 u': at every step a subject
jumps with probability λ to a place drawn from u, whatever the state, and otherwise moves by M. Only λ and u are kept,
never N² numbers: p M' = (1 - λ) p M + λ (Σ p) u.

Source: Brin and Page, "The anatomy of a large-scale hypertextual Web search engine", WWW 1998, where it is the damping.
Proof: docs/proofs/support.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dphmm._cached import cached_property
from dphmm._checks import finite_number, one_of
from dphmm.errors import InvalidInput
from dphmm.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from dphmm.markov.slots import Slots
    from dphmm.states.space import StateSpace

Array = TypeVar("Array", bound=NDArray[Any])

#: Longest time step, in seconds: times are counted in microseconds, in 64 bits.
LONGEST_STEP = 10**12
#: Above this many states a dense matrix (3.2 GB) is refused.
DENSE_STATES = 20_000
TOLERANCE = 1e-9
#: Rounding to single precision already moves a row's sum by about 1e-7.
TOLERANCE_SINGLE = 1e-6
# Dividing a row by its correctly rounded sum leaves it within 2**-52 of 1 (half an ulp for the sum, half for
# the entries). Rows this close are left alone, so that a stored model read back is the same, bit for bit.
_SETTLED = 2.0**-51


@dataclass(frozen=True, eq=False)
class Stochastic:
    """A canonical matrix, how many rows had to be rescaled, and the largest distance of a sum from 1."""

    matrix: Any
    n_rescaled: int
    worst: float


class ModelParts(NamedTuple):
    """The parts of a model that a fit learned: the arguments of `dphmm.MarkovModel` by name, not checked yet."""

    initial: FloatArray
    transition: Any
    space: StateSpace | None
    step: int | None
    provenance: dict[str, Any]
    jump: Jump | float | None = None
    start: str = "before"
    secrets: IntArray | None = None
    slots: Slots | None = None


#: What the initial distribution of a fit is of.
INITIALS = ("occupancy", "first", "uniform")


def beginning(initial: str | None, step: object) -> tuple[str, str]:
    """The meaning of a fit's initial distribution, and its ``start``: "before" or "at" the first step.

    Without a time step a release begins where a sequence does, and so does the model, unless ``initial`` is given.
    Raises InvalidInput for another ``initial``.
    """
    if initial is None:
        initial = "first" if step is None else "occupancy"
    one_of(initial, INITIALS, "initial")
    return initial, "at" if step is None and initial == "first" else "before"


def checked_step(step: object) -> int | None:
    """Seconds between two times. Raises InvalidInput for what is no whole number of them from 1 on."""
    if step is None:
        return None
    if isinstance(step, (bool, np.bool_)) or not isinstance(step, (int, np.integer)) or step < 1:
        raise InvalidInput("step", step, "a whole number of seconds, at least 1")
    if step > LONGEST_STEP:
        raise InvalidInput("step", step, f"at most {LONGEST_STEP} seconds")
    return int(step)


def check_space(space: StateSpace | None, n_states: int) -> None:
    """Raises InvalidInput for a space of another number of states."""
    if space is not None and space.n_states != n_states:
        raise InvalidInput("space", f"{space.n_states} states", f"the model's {n_states}")


def refuse_secrets(model: Any, door: str) -> None:
    """Raises InvalidInput for a model with secrets where ``door`` takes states for what is hidden."""
    if model.secrets is not None:
        fault = f"{model.n_states} latent states of {model.n_secrets} secrets"
        raise InvalidInput("model", fault, f"a model without secrets: {door} does not tell the two apart yet")


def refuse_slots(model: Any, door: str) -> None:
    """Raises InvalidInput for a model with slots where ``door`` takes every move to have one matrix."""
    if model.slots is not None:
        fault = f"{model.slots.n} matrices, one for each slot"
        raise InvalidInput("model", fault, f"a model of one matrix: {door} takes no slots yet")


def many(count: int, noun: str) -> str:
    """A number and its noun."""
    return f"{count} {noun}" + ("" if count == 1 else "s")


def percent(share: float) -> str:
    """A share in percent, with two digits and never as a power of ten.

    >>> percent(1.0), percent(0.314), percent(0.00314)
    ('100 %', '31 %', '0.31 %')
    """
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.2g} %"


def some(states: Sequence[int] | IntArray) -> str:
    """The first few state numbers."""
    return ", ".join(str(int(state)) for state in states[:5]) + (", ..." if len(states) > 5 else "")


def stochastic_matrix(given: Any) -> Stochastic:
    """The canonical csr_array (N, N) of a transition matrix, dense or scipy.sparse.

    Sorted, duplicates summed, zeros not stored; subnormal entries stay. Rows may sum to 1 within 1e-9 (1e-6
    where float32 was given) and are divided by their sum once. Raises InvalidInput naming row, column and
    value.
    """
    entries = _sparse_entries(given) if sparse.issparse(given) else _dense_entries(given)
    # Before duplicates are summed: 0.6 and -0.1 stored for one pair are not a 0.5.
    for wrong, expected in _improbable(entries.data):
        if wrong.any():
            k = int(np.argmax(wrong))
            where = f"transition[{entries.row[k]}, {entries.col[k]}]"
            raise InvalidInput(where, repr(entries.data[k].item()), expected)
    tolerance = _tolerance(entries.dtype)
    matrix = canonical(sparse.csr_array(entries.astype(np.float64)))
    sums = row_sums(matrix)
    off = np.abs(sums - 1.0)
    wrong = ~(off <= tolerance)
    if wrong.any():
        _refuse_row(int(np.argmax(wrong)), matrix, sums, tolerance)
    return Stochastic(divided(matrix, sums), int(np.count_nonzero(off > _SETTLED)), float(off.max()))


def distribution(given: Any, n: int, field: str = "initial") -> FloatArray:
    """A distribution over ``n`` states (n,), divided by its sum once; InvalidInput names a wrong entry."""
    values = _numbers(given, field)
    if values.shape != (n,):
        raise InvalidInput(field, f"shape {values.shape}", f"({n},): one probability per state")
    for wrong, expected in _improbable(values):
        if wrong.any():
            entry = int(np.argmax(wrong))
            raise InvalidInput(f"{field}[{entry}]", repr(values[entry].item()), expected)
    total = math.fsum(values.tolist())
    tolerance = _tolerance(values.dtype)
    if not abs(total - 1.0) <= tolerance:
        raise InvalidInput(field, f"sum {total!r}", f"a sum of 1 (within {tolerance:g})")
    # Adding zero turns -0.0 into 0.0: equal distributions have equal bytes.
    settled = values.astype(np.float64) + 0.0
    return settled if abs(total - 1.0) <= _SETTLED else settled / total


def row_sums(matrix: Any) -> FloatArray:
    """Correctly rounded sum of every row of a csr_array."""
    sums = np.zeros(matrix.shape[0])
    # Plain floats cost 32 bytes each: a few rows at a time keep them out of the way.
    for first in range(0, matrix.shape[0], 65_536):
        ends = matrix.indptr[first : first + 65_537].tolist()
        data = matrix.data[ends[0] : ends[-1]].tolist()
        for row in range(len(ends) - 1):
            sums[first + row] = math.fsum(data[ends[row] - ends[0] : ends[row + 1] - ends[0]])
    return sums


def divided(matrix: Any, sums: FloatArray) -> Any:
    """The matrix with each row divided by its sum; rows that sum to 1 already are not touched."""
    scale = np.where(np.abs(sums - 1.0) <= _SETTLED, 1.0, sums)
    return with_data(matrix, matrix.data / np.repeat(scale, np.diff(matrix.indptr)))


def with_data(matrix: Any, data: FloatArray) -> Any:
    """The same stored entries with other values."""
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def canonical(matrix: Any) -> Any:
    """Sorted, duplicates summed, zeros removed; 32-bit indices wherever they suffice."""
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    small = max(matrix.nnz, matrix.shape[0]) < 2**31
    index = np.int32 if small else np.int64
    matrix.indices = np.ascontiguousarray(matrix.indices, dtype=index)
    matrix.indptr = np.ascontiguousarray(matrix.indptr, dtype=index)
    return matrix


def _sparse_entries(given: Any) -> Any:
    _check_shape(given.shape)
    _check_dtype(given.dtype, "transition")
    try:
        if hasattr(given, "check_format"):
            check_ends(given.indptr)
            given.check_format(full_check=True)
        return sparse.coo_array(given)
    except ValueError as error:
        raise InvalidInput("transition", f"a broken sparse matrix: {error}", "indices inside it") from None


def check_ends(indptr: NDArray[Any]) -> None:
    """Raise ValueError unless the index pointers (n + 1,) of a sparse matrix never fall."""
    # scipy looks at the last of them first, and at no other where that is 0: it would then write out of bounds.
    if (indptr[1:] < indptr[:-1]).any():
        raise ValueError("indptr must be a non-decreasing sequence")


def _dense_entries(given: Any) -> Any:
    values = _numbers(given, "transition")
    _check_shape(values.shape)
    n = len(values)
    if n > DENSE_STATES:
        fault = f"a dense {n} × {n} array ({8e-9 * n * n:.1f} GB)"
        raise InvalidInput("transition", fault, f"a scipy.sparse matrix above {DENSE_STATES} states")
    return sparse.coo_array(values)


def _numbers(given: Any, field: str) -> NDArray[Any]:
    if isinstance(given, np.ma.MaskedArray):
        raise InvalidInput(field, "a masked array", "an array without gaps")
    try:
        values = np.asarray(given)
    except ValueError:
        raise InvalidInput(field, "rows of different lengths", "rows of one length") from None
    _check_dtype(values.dtype, field)
    return values


def _check_dtype(dtype: np.dtype[Any], field: str) -> None:
    if not (dtype.kind in "iu" or (dtype.kind == "f" and dtype.itemsize in (4, 8))):
        raise InvalidInput(field, f"dtype {dtype}", "float64, float32 or integers")


def _check_shape(shape: tuple[int, ...]) -> None:
    if shape in ((0,), (0, 0), (1, 0)):
        raise InvalidInput("transition", "0 states", "at least 2 states")
    if len(shape) != 2 or shape[0] != shape[1]:
        raise InvalidInput("transition", f"shape {shape}", "a square matrix, states × states")
    if shape[0] == 1:
        raise InvalidInput("transition", "1 state", "at least 2: there is no other state to hide among")
    if shape[0] >= 2**31:
        raise InvalidInput("transition", f"{shape[0]} states", "fewer than 2**31 states")


def _improbable(values: NDArray[Any]) -> tuple[tuple[BoolArray, str], ...]:
    return (
        (~np.isfinite(values), "a finite probability"),
        (values < 0, "a probability, 0 or more"),
        (values > 1 + TOLERANCE_SINGLE, "a probability, at most 1"),
    )


def _refuse_row(row: int, matrix: Any, sums: FloatArray, tolerance: float) -> None:
    if matrix.indptr[row] == matrix.indptr[row + 1]:
        expected = f"a sum of 1; an absorbing state has transition[{row}, {row}] = 1"
        raise InvalidInput(f"transition[{row}]", "a row of zeros", expected)
    fault = f"row sum {sums[row].item()!r}"
    raise InvalidInput(f"transition[{row}]", fault, f"a sum of 1 (within {tolerance:g})")


def _tolerance(dtype: np.dtype[Any]) -> float:
    return TOLERANCE_SINGLE if dtype == np.float32 else TOLERANCE


#: Least probability of a jump into one state: far above what floats drop (1e-290).
LEAST_SHARE = 1e-250


@dataclass(frozen=True, eq=False)
class Jump:
    """The rate of a chain's jumps, and the law of their targets.

    rate : λ, the probability of a jump at each step, more than 0 and less than 1.
    into : (N,) probabilities u of where a jump leads, every one more than 0.

    `Jump.of` checks both.
    """

    rate: float
    into: FloatArray

    @classmethod
    def of(cls, rate: Any, n_states: int, into: Any = None) -> Jump:
        """A jump among N states; into all of them alike, or with given probabilities (N,).

        Raises InvalidInput for a rate that is not between 0 and 1, and for a state that no jump would reach.

        >>> Jump.of(0.001, 4).share.tolist()
        [0.00025, 0.00025, 0.00025, 0.00025]
        """
        often = finite_number(rate, "jump")
        if not 0 < often < 1:
            raise InvalidInput("jump", rate, "a probability between 0 and 1, such as 0.001; none for no jump")
        law = np.full(n_states, 1.0 / n_states) if into is None else distribution(into, n_states, "into").copy()
        small = law * often < LEAST_SHARE
        if small.any():
            state = int(np.argmax(small))
            expected = "more than 0 on every state, so that a jump reaches each"
            raise InvalidInput(f"into[{state}]", repr(law[state].item()), expected)
        return cls(often, fixed(law))

    @cached_property
    def share(self) -> FloatArray:
        """λ u (N,): the probability of a jump into each state."""
        return fixed(self.rate * self.into)

    @property
    def stays(self) -> float:
        """1 - λ: the weight of the matrix M."""
        return 1.0 - self.rate


def fixed(array: Array) -> Array:
    """The array, from now on read-only: kernels are compiled for such, as the arrays of every model are."""
    array.setflags(write=False)
    return array


#: The share of a chain without a jump, in kernels.
NO_SHARE: FloatArray = fixed(np.zeros(0))
