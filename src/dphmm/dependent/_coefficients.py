"""The dependence coefficient ρ_ij(σ) and the dependent sensitivity, as the paper has them, for looking at.

Proof: docs/proofs/dependent-dpm.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from dphmm._checks import finite_number
from dphmm.dependent._chain import Chain
from dphmm.dependent._friendship import Friendship
from dphmm.dependent._increase import LeakageCurve
from dphmm.dependent._joint import Coefficients
from dphmm.dependent._pairs import MOST_PAIRS, Model, _seen_from, laplace_kernel, loss_of_values, size_of
from dphmm.dependent._queries import AnyQuery, Query, Sum, checked_sensitivities
from dphmm.errors import InvalidInput
from dphmm.types import FloatArray


def coefficient(model: Any, lag: int, sigma: float, *, values: Any = None, at: int | None = None) -> float:
    """ρ of two states of a Markov chain, ``lag`` steps apart (negative: of an earlier state), in noise of scale sigma.

    ``model``: a MarkovModel or a matrix (taken as stationary), or a Chain, looked at from tuple ``at`` (the first, or
    the last for negative lags, if not given). ``values`` (k,): what the query counts for each state, with the largest
    difference as Δ; without them, ρ of the worst query that a state changes by at most Δ = 1.
    """
    steps = _lag(lag)
    chain = model if isinstance(model, Chain) else Chain(model, abs(steps) + 1, start="stationary")
    here = (0 if steps >= 0 else chain.n - 1) if at is None else at
    if not (0 <= here < chain.n and 0 <= here + steps < chain.n):
        raise InvalidInput("at, lag", (here, steps), f"two tuples of {chain.n}")
    rows = np.eye(chain.n_values)
    direction = 1 if steps > 0 else -1
    for i in range(here, here + steps, direction):
        rows = rows @ chain.kernel(i, i + direction).matrix
    return _rho(rows[chain.possible(here)], _scale(sigma), values) if steps else 1.0


def coefficients(model: Model, query: Query, sigma: float) -> Any:
    """All ρ_ij(σ) of a model and a query: an array (n, n); sparse for friendships and for given coefficients."""
    scale = _scale(sigma)
    if isinstance(model, Coefficients):
        return model.matrix
    n = model.n_tuples
    checked_sensitivities(query, n)
    if isinstance(model, Friendship):
        return _between_friends(model, query, scale)
    if n * n > MOST_PAIRS:
        raise InvalidInput("model", f"{n} tuples", "at most 1,000: all pairs are looked at")
    found = np.eye(n)
    for j in range(n):
        for i, rows in _seen_from(model, j, np.eye(size_of(model, j))):
            found[i, j] = _of_query(rows, query, j, n, scale)
    return found


def sensitivity(rho: Any, delta: Any = 1.0) -> float:
    """The dependent sensitivity max_i Σ_j ρ_ij Δ_j of coefficients (n, n), dense or sparse, and Δ (one, or (n,))."""
    given = Coefficients(rho)
    single = np.broadcast_to(np.asarray(delta, dtype=np.float64), (given.n,))
    if not (np.isfinite(single).all() and (single >= 0).all()):
        raise InvalidInput("delta", delta, "finite numbers, 0 or more")
    return float((given.matrix @ single).max())


def _between_friends(model: Friendship, query: Query, scale: float) -> Any:
    found = sparse.lil_array((model.n, model.n))
    found.setdiag(1.0)
    for i, j in model.edges.tolist():
        found[i, j] = _of_query(model.kernel_between_friends, query, j, model.n, scale)
        found[j, i] = _of_query(model.kernel_between_friends, query, i, model.n, scale)
    return found.tocsr()


def _of_query(rows: FloatArray, query: Query, j: int, n: int, scale: float) -> float:
    if isinstance(query, Sum):
        return _rho(rows, scale, query.of(j)[: rows.shape[1]])
    assert isinstance(query, AnyQuery)
    delta = float(query.sensitivities(n)[j])
    return _rho(rows, scale / delta, None) if delta else 0.0


def _rho(rows: FloatArray, scale: float, values: Any) -> float:
    if values is None:
        return LeakageCurve.of(rows)(1.0 / scale) * scale
    delta = float(np.ptp(values))
    if delta == 0:
        return 0.0
    return loss_of_values(rows @ laplace_kernel(values, 1.0 / scale), delta / scale) * scale / delta


def _scale(sigma: object) -> float:
    scale = finite_number(sigma, "sigma")
    if scale <= 0:
        raise InvalidInput("sigma", sigma, "a scale greater than 0")
    return scale


def _lag(lag: int) -> int:
    if isinstance(lag, bool) or not isinstance(lag, (int, np.integer)):
        raise InvalidInput("lag", lag, "a whole number of steps")
    return int(lag)
