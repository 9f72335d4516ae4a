"""What a release takes from trajectories: rows by time step, the times that are published, the true states."""

from __future__ import annotations

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.states.maps import MapSpace
from dphmm.states.space import StateSpace
from dphmm.states.trajectory import MICROSECONDS, Trajectories
from dphmm.types import IntArray


def in_steps(trajectories: Trajectories, step: int | None) -> tuple[Trajectories, int]:
    """The rows by time step of the model, the last of a step winning, and how many rows that left out."""
    if step is None or trajectories.step is not None:
        return trajectories, 0
    if trajectories.time is None:
        raise InvalidInput("t", "no time column", f"times, because the model has steps of {step} s; or a step column")
    stepped, counts = trajectories.resample(step)
    return stepped, sum(dict(counts).values())


def public_times(trajectories: Trajectories, step: int | None) -> IntArray | None:
    """When each row is published to have been: the start of its time step, or its own time where there are no steps."""
    if step is not None and trajectories.step is not None:
        return trajectories.step * step * MICROSECONDS
    return trajectories.time


def true_states(trajectories: Trajectories, space: StateSpace) -> tuple[list[int | str], int]:
    """The state of every row, and how many rows are in none.

    A state is its number, or the name itself where the space has no such state (drift). A place outside every state
    counts as the nearest one: a missing row would publish that its owner was elsewhere.
    """
    if trajectories.state is not None:
        numbers = {name: space.index_of(name) for name in set(trajectories.state.tolist())}
        named: list[int | str] = [numbers[name] if numbers[name] >= 0 else name for name in trajectories.state.tolist()]
        return named, sum(isinstance(state, str) for state in named)
    if trajectories.lat is None or trajectories.lon is None:
        raise InvalidInput("columns", ", ".join(trajectories.columns), "lat and lon, or state")
    if not isinstance(space, MapSpace):
        raise InvalidInput("lat, lon", "places", "a state column: the model's states are not places")
    states = np.asarray(space.locate(trajectories.lat, trajectories.lon))
    outside = states < 0
    states[outside] = space.nearest(trajectories.lat[outside], trajectories.lon[outside])
    found: list[int | str] = states.tolist()
    return found, int(outside.sum())
