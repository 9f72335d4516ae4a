"""A jump: a rank-one term of a Markov chain, which leaves no move impossible.

With rate λ and a law u > 0 on every state the chain moves by M' = (1 - λ) M + λ 1 u': at every step a subject
jumps with probability λ to a place drawn from u, whatever the state, and otherwise moves by M. Only λ and u are kept,
never N² numbers: p M' = (1 - λ) p M + λ (Σ p) u.

Source: Brin and Page, "The anatomy of a large-scale hypertextual Web search engine", WWW 1998, where it is the damping.
Proof: docs/proofs/support.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dphmm._cached import cached_property
from dphmm._checks import finite_number
from dphmm.errors import InvalidInput
from dphmm.markov.stochastic import distribution
from dphmm.types import FloatArray

#: Least probability of a jump into one state: far above what floats drop (1e-290).
LEAST_SHARE = 1e-250


@dataclass(frozen=True, eq=False)
class Jump:
    """How often a chain jumps, and where to.

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

    @property
    def is_uniform(self) -> bool:
        """Whether a jump leads to every state alike."""
        return bool((self.into == self.into[0]).all())


def fixed(array: FloatArray) -> FloatArray:
    """The array, from now on read-only: kernels are compiled for such, as the arrays of every model are."""
    array.setflags(write=False)
    return array


#: The share of a chain without a jump, in kernels.
NO_SHARE: FloatArray = fixed(np.zeros(0))
