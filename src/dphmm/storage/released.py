"""What is published: released rows as a table. Nothing in it depends on the truth but z and what z gives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from dphmm.session.release import Release
from dphmm.states.space import StateSpace
from dphmm.types import Loss


class ReleasedRow(Protocol):
    """A user's published step."""

    @property
    def user(self) -> str: ...
    @property
    def time(self) -> int | None: ...
    @property
    def release(self) -> Release: ...


def released_table(rows: Sequence[ReleasedRow], space: StateSpace) -> Any:
    """An Arrow table of released rows; columns as in the contract of released.parquet.

    user, t (UTC; absent without times), step, z_0.. and estimate_0.. in answer units, estimate (state name), for maps
    z_lat, z_lon, estimate_lat, estimate_lon, then epsilon, cost (inf when unbounded) and plan.
    """
    import pyarrow as pa

    releases = [row.release for row in rows]
    columns: dict[str, Any] = {"user": pa.array([row.user for row in rows], pa.string())}
    if rows and rows[0].time is not None:
        columns["t"] = pa.array([row.time for row in rows], pa.timestamp("us", tz="UTC"))
    columns["step"] = pa.array([release.t for release in releases], pa.int64())
    z = _matrix([release.z for release in releases], space.dimension)
    estimates = _matrix([release.estimate for release in releases], space.dimension)
    columns |= {f"z_{j}": z[:, j] for j in range(space.dimension)}
    columns |= {f"estimate_{j}": estimates[:, j] for j in range(space.dimension)}
    columns["estimate"] = pa.array([space.names[release.estimate_state] for release in releases], pa.string())
    for name, points in (("z", z), ("estimate", estimates)):
        place = space.to_latlon(points)
        if place is not None:
            columns[f"{name}_lat"], columns[f"{name}_lon"] = place
    columns["epsilon"] = np.array([float(release.epsilon) for release in releases])
    columns["cost"] = np.array([_rounded_up(release.cost) for release in releases])
    columns["plan"] = pa.array([release.plan_hash for release in releases], pa.string())
    return pa.table(columns)


def _matrix(vectors: list[Any], dimension: int) -> Any:
    return np.array(vectors, dtype=np.float64).reshape(-1, dimension)


def _rounded_up(cost: Loss) -> float:
    """A cost as a float that is not below it."""
    if isinstance(cost, float):
        return cost
    near = float(cost)
    return near if Fraction(near) >= cost else math.nextafter(near, math.inf)
