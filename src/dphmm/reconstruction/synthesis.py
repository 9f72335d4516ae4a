"""Invented people who move as a model says: rows to share in place of real ones, at no cost beyond the model's own.

A model that was learned with privacy, or made from geometry alone, is public; rows drawn from it are post-processing
and tell nothing more about anybody. A model that was counted without privacy may show single moves of the people whom
it was counted on, and so may rows that are drawn from it. The statement of the rows says which of these it is.

Public totals (how many people are where at some steps) are kept by weighting the model's paths: among all laws of paths
with these totals, the one that is nearest to the model's in relative entropy is drawn from.

Source: Deming and Stephan, "On a least squares adjustment of a sampled frequency table" (1940), iterated proportional
fitting; Csiszár, "I-divergence geometry of probability distributions" (1975), for what it converges to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dphmm._checks import whole
from dphmm.choose.simulated import Moves, places, walks
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.states.maps import MapSpace
from dphmm.states.trajectory import MICROSECONDS, Trajectories
from dphmm.storage.columns import zoned_times
from dphmm.storage.geo_files import to_geopandas
from dphmm.storage.public_tables import totals_of
from dphmm.storage.tables import to_kind
from dphmm.types import FloatArray

#: Rows of all people together.
MOST_ROWS = 5 * 10**7
#: How near to the totals the shares of people are, and in how many rounds at most.
_NEAR, _ROUNDS = 1e-9, 2000


def synthesize(
    model: MarkovModel,
    people: int,
    steps: int,
    *,
    begin: int | str | None = None,
    seed: int | None = None,
    like: Any = None,
) -> Any:
    """People who move as a model says: rows of user, time or step, place and state, in this order of people and steps.

    Parameters
    ----------
    people, steps : the number of people, and of rows of each.
    begin : the time of step 1, of a model with a step: microseconds since 1970 UTC, or a text with a zone such as
        2024-05-06T00:00Z. Without it rows have numbers of steps from 1.
    seed : the seed of the draws; new ones each time without it. It protects nobody, and nobody needs it to: the rows
        depend on the model alone.
    like : public totals of the people at each state, of some steps: shares of them are kept at these steps. A pandas,
        polars or Arrow table or a GeoDataFrame with columns state, people and, if not all are of step 1, step; or
        {step: totals (N,)}.

    Returns
    -------
    `Trajectories`. With totals in a table, a table of its kind; for a GeoDataFrame points, if the states are a map.

    On a map each person is somewhere in the cell, at one place until the next move.

    Raises InvalidInput naming the argument.

    Examples
    --------
    >>> import dphmm
    >>> model = dphmm.MarkovModel([1, 0], [[0.5, 0.5], [0, 1]], space=dphmm.StateSpace.labels(["home", "away"]))
    >>> found = dphmm.evaluation.synthesize(model, people=2, steps=3, seed=1)
    >>> len(found), found.n_users
    (6, 2)
    >>> import pandas
    >>> totals = pandas.DataFrame({"state": ["home", "away"], "people": [1, 3], "step": 2})
    >>> rows = dphmm.evaluation.synthesize(model, people=400, steps=2, seed=1, like=totals)
    >>> list(rows.columns), int((rows.state[rows.step == 2] == "away").mean() * 10)
    (['user', 'step', 'state'], 7)

    Source: docs/synthesis.md.
    """
    n, length = whole(people, "people", 1), whole(steps, "steps", 1)
    if n * length > MOST_ROWS:
        raise InvalidInput("steps", f"{n * length:,} rows of all people", f"at most {MOST_ROWS:,}: several files")
    if begin is not None and model.step is None:
        raise InvalidInput("begin", begin, "none: the model's steps are numbers, not times")
    first = _moment(begin) if isinstance(begin, str) else begin
    if first is not None and model.step is not None and model.example_origin:
        model = model.counted_from(str(first // (model.step * MICROSECONDS)))
    generator = np.random.default_rng(None if seed is None else whole(seed, "seed", 0))
    ahead = None if like is None else weighted(model, _totals(like, model), length)
    paths = walks(model, n, length, generator, ahead=ahead)
    columns = _where(model, paths, generator)
    moments = np.tile(np.arange(length, dtype=np.int64), n)
    if first is None:
        columns["step"] = moments + 1
    else:
        assert model.step is not None
        columns["time"] = first + moments * model.step * MICROSECONDS
    digits = len(str(n))
    users = tuple(f"synthetic-{number:0{digits}d}" for number in range(1, n + 1))
    made = Trajectories(users, np.repeat(np.arange(n, dtype=np.int32), length), **columns)
    if like is None or isinstance(like, Mapping):
        return made
    if hasattr(like, "geometry") and made.lat is not None:
        return to_geopandas(made)
    table = to_kind(made.to_arrow(), like)
    # Rows are invented: the index of the totals would name other rows.
    return table.reset_index(drop=True) if hasattr(table, "reset_index") else table


def _moment(text: str) -> int:
    """Microseconds since 1970 UTC. Raises InvalidInput for what is no time with a zone."""
    micros, none = zoned_times([text], "begin")
    if none.any():
        raise InvalidInput("begin", text, "a time with a zone, such as 2024-05-06T00:00Z")
    return int(micros[0])


def _totals(like: Any, model: MarkovModel) -> Mapping[int, FloatArray]:
    """Totals by step, of a table or as they were given."""
    if isinstance(like, Mapping):
        return like
    names = [str(state) for state in range(model.n_secrets)] if model.space is None else model.space.names
    return totals_of(like, tuple(names), "like")


def _where(model: MarkovModel, paths: Any, generator: np.random.Generator) -> dict[str, Any]:
    """The columns that say where people are."""
    space = model.space
    if space is None:
        return {"state": paths.ravel().astype(str).astype(object)}
    columns: dict[str, Any] = {"state": np.array(space.names, dtype=object)[paths.ravel()]}
    if isinstance(space, MapSpace):
        arrived = np.ones(paths.shape, dtype=np.bool_)
        arrived[:, 1:] = paths[:, 1:] != paths[:, :-1]
        drawn = places(space, paths[arrived], generator)
        columns["lat"], columns["lon"] = space.to_latlon(drawn[np.cumsum(arrived.ravel()) - 1])
    return columns


def weighted(model: MarkovModel, like: Mapping[int, FloatArray], steps: int) -> dict[int, FloatArray]:
    """The likelihood, given each state (N,) of a step, of the totals from that step on, for `simulated.walks`.

    If the model has secrets, totals are over its secrets.

    Raises InvalidInput for invalid totals, for steps out of range, and for totals that no path of the model can keep.
    """
    shares = {step: _share(totals, step, model.n_secrets, steps) for step, totals in like.items()}
    if not shares:
        raise InvalidInput("like", "no totals", "totals of at least one step")
    moves, last = Moves(model), max(shares)
    weights = {step: (share > 0).astype(np.float64) for step, share in shares.items()}
    for _ in range(_ROUNDS):
        ahead = _ahead(model, moves, weights, last)
        row, worst = model.initial[:, None].copy(), 0.0
        for t in range(1, last + 1):
            row = moves.ahead(row, t) if t > 1 or model.start == "before" else row
            if t in shares:
                # What comes after t is in ``ahead``, with the weights of t that it was made with.
                after = moves.back(ahead[t + 1][:, None], t + 1)[:, 0] if t < last else np.ones(model.n_states)
                now = model.summed(row[:, 0] * model.lifted(weights[t]) * after)
                if (now[shares[t] > 0] <= 0).any() or not now.sum() > 0:
                    state = int(np.argmax((shares[t] > 0) & (now <= 0)))
                    expected = "totals of states that the model allows then, after and before those of other steps"
                    raise InvalidInput("like", f"people at state {_name(model, state)} at step {t}", expected)
                now /= now.sum()
                worst = max(worst, float(np.abs(now - shares[t]).max()))
                weights[t] *= np.divide(shares[t], now, out=np.zeros_like(now), where=now > 0)
                weights[t] /= weights[t].max()
                row[:, 0] *= model.lifted(weights[t])
            row /= row.sum() or 1.0
        if worst <= _NEAR:
            return _ahead(model, moves, weights, last)
    raise InvalidInput("like", f"totals that are still {worst:.2g} off after {_ROUNDS} rounds", "totals that agree")


def _ahead(model: MarkovModel, moves: Moves, weights: Mapping[int, FloatArray], last: int) -> dict[int, FloatArray]:
    """The likelihood, given each state (N,) of a step, of the known weights from it on; 0 is the step before 1."""
    likelihoods, known = {}, np.ones(model.n_states)
    for t in range(last, 0, -1):
        known = known * model.lifted(weights[t]) if t in weights else known
        likelihoods[t] = known / (known.max() or 1.0)
        known = moves.back(likelihoods[t][:, None], t)[:, 0]
    if model.start == "before":
        likelihoods[0] = known / (known.max() or 1.0)
    return likelihoods


def _share(totals: Any, step: int, n: int, steps: int) -> FloatArray:
    if isinstance(step, bool) or not isinstance(step, (int, np.integer)) or not 1 <= step <= steps:
        raise InvalidInput("like", f"totals of step {step}", f"steps from 1 to {steps}")
    shares = np.asarray(totals, dtype=np.float64)
    if shares.shape != (n,) or not np.isfinite(shares).all() or (shares < 0).any() or not shares.sum() > 0:
        raise InvalidInput("like", f"totals of step {step}", f"{n} numbers, none below 0, and one above")
    return np.asarray(shares / shares.sum())


def _name(model: MarkovModel, state: int) -> str:
    return repr(str(state) if model.space is None else model.space.names[state])
