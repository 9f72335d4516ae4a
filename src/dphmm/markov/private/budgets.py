"""Which noise each iteration gets: decided from public numbers before the data are looked at.

Proof: docs/proofs/learning.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from dphmm._checks import exact_number, whole
from dphmm.accounting.composition import check_delta, rho_for
from dphmm.accounting.event import NoisyCounts
from dphmm.errors import InvalidInput
from dphmm.markov.private.release import noise_for
from dphmm.markov.private.sensitivity import Caps, expected_counts, l1, l2_squared

#: Each iteration gets so many times the budget (rho; for Laplace its root, as an epsilon) of the one before: the last
#: iterations are what is kept of all.
GROWTH = 1.35
MOST_ITERATIONS = 1_000
ITERATIONS = {"laplace": 5, "gaussian": 10}


def planned_parts(
    caps: Caps,
    letters: str,
    noise: str,
    epsilon: Fraction,
    delta: Fraction,
    iterations: int | None,
    budgets: Iterable[Any] | None,
) -> tuple[NoisyCounts, ...]:
    """One part per iteration, which together lose ``epsilon`` (at ``delta``)."""
    shares = _shares(noise, iterations, budgets)
    blocks = expected_counts(caps, letters)
    if noise == "laplace":
        total, sensitivity = epsilon, l1(blocks, caps)
    else:
        total, sensitivity = rho_for(epsilon, check_delta(delta)), l2_squared(blocks, caps)
    return tuple(
        noise_for(f"expected counts, iteration {k + 1}", noise, sensitivity, total * share)
        for k, share in enumerate(shares)
    )


def _shares(noise: str, iterations: int | None, budgets: Iterable[Any] | None) -> list[Fraction]:
    """Shares of the total that sum to 1."""
    if budgets is None:
        n = ITERATIONS[noise] if iterations is None else whole(iterations, "iterations", 1, MOST_ITERATIONS)
        growth = GROWTH if noise == "gaussian" else GROWTH**0.5
        # Relative to the last, and never so small that an iteration would be nothing but noise of 2**50 counts.
        weights = [Fraction(max(1, round(1000 * growth ** (k + 1 - n)))) for k in range(n)]
    else:
        weights = [exact_number(given, f"budgets[{k}]") for k, given in enumerate(budgets)]
        for k, weight in enumerate(weights):
            if weight <= 0:
                raise InvalidInput(f"budgets[{k}]", weight, "a share greater than 0")
        if not weights or (iterations is not None and iterations != len(weights)):
            raise InvalidInput("budgets", f"{len(weights)} shares", "one share of the total for each iteration")
    return [weight / sum(weights) for weight in weights]
