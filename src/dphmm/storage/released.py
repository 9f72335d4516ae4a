"""What is published: released rows as a table. Nothing in it depends on the truth but z and what z gives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dphmm.session.releases import Released, Releases
from dphmm.states.space import Labels, StateSpace
from dphmm.types import FloatArray, IntArray, Loss


def released_table(rows: Sequence[Released], space: StateSpace) -> Any:
    """An Arrow table of released rows; columns as in the contract of released.parquet.

    user, t (UTC; absent without times), step, z_0.. and estimate_0.. in answer units, estimate (state name), for maps
    z_lat, z_lon, estimate_lat, estimate_lon, then epsilon, cost (inf when unbounded) and plan. Of labels in place of
    numbers: z and estimate (names), and confidence (how likely the estimate is). Without estimates their columns are
    absent. A row that was not asked has null for z and plan, and 0 for epsilon and cost.
    """
    import pyarrow as pa

    releases = Releases.of(rows)
    columns: dict[str, Any] = {"user": pa.array(releases.users, pa.string())}
    if releases.times is not None:
        columns["t"] = pa.array(releases.times, pa.timestamp("us", tz="UTC"))
    columns["step"] = pa.array(releases.t, pa.int64())
    if isinstance(space, Labels):
        columns |= _labels(releases, space)
    else:
        columns |= _answers(releases, space)
    columns["epsilon"] = _each([float(term.epsilon) for term in releases.terms], float, releases.term)
    columns["cost"] = _each([_rounded_up(term.cost) for term in releases.terms], float, releases.term)
    hashes = [term.plan_hash or None for term in releases.terms]
    columns["plan"] = pa.array(_each(hashes, object, releases.term), pa.string())
    return pa.table(columns)


def _labels(releases: Releases, space: Labels) -> dict[str, Any]:
    """The columns of answers that are names."""
    import pyarrow as pa

    columns: dict[str, Any] = {"z": pa.array(space.labels_of(releases.z_lattice), pa.string(), mask=~releases.asked)}
    if releases.estimate_state is not None:
        columns["estimate"] = pa.array(_each(space.names, object, releases.estimate_state), pa.string())
        columns["confidence"] = pa.array(releases.confidence, pa.float64())
    return columns


def _answers(releases: Releases, space: StateSpace) -> dict[str, Any]:
    """The columns of answers that are numbers."""
    import pyarrow as pa

    # Rows none of which was asked do not tell of how many axes their answers would be.
    z = releases.z if releases.asked.any() else np.zeros((len(releases), space.dimension))
    points = {"z": z.reshape(-1, space.dimension)}
    if releases.estimate is not None:
        points["estimate"] = releases.estimate.reshape(-1, space.dimension)
    unasked = {"z": ~releases.asked}

    def column(name: str, values: FloatArray) -> Any:
        return pa.array(values, mask=unasked.get(name))

    columns = {f"{name}_{j}": column(name, own[:, j]) for name, own in points.items() for j in range(space.dimension)}
    if releases.estimate_state is not None:
        columns["estimate"] = pa.array(_each(space.names, object, releases.estimate_state), pa.string())
    for name, values in points.items():
        place = space.to_latlon(values)
        if place is not None:
            columns |= {f"{name}_{axis}": column(name, own) for axis, own in zip(("lat", "lon"), place, strict=True)}
    return columns


def _each(values: Sequence[Any], dtype: type, numbers: IntArray) -> Any:
    return np.array(values, dtype=dtype)[numbers]


def _rounded_up(cost: Loss) -> float:
    """A cost as a float that is not below it."""
    if isinstance(cost, float):
        return cost
    near = float(cost)
    return near if Fraction(near) >= cost else math.nextafter(near, math.inf)


def text_columns(space: StateSpace) -> list[str]:
    """The columns of a released CSV file that are text, whatever they look like: a label may be 01, or a date."""
    return ["user", "estimate", "plan", *(["z"] if space.has_labels else [])]
