"""Parts of a table to one Trajectories and the list of rows set aside."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dphmm.errors import InvalidInput
from dphmm.states.counts import Counts
from dphmm.states.ordering import ranks
from dphmm.states.trajectory import Trajectories
from dphmm.storage import columns
from dphmm.storage.columns import Numbering
from dphmm.storage.times import REASONS as TIME_REASONS
from dphmm.storage.times import Times
from dphmm.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import pyarrow as pa

#: Why a row is set aside, in the order in which a row is looked at.
REASONS = (
    "",
    "missing_user",
    *TIME_REASONS,
    "invalid_step",
    "invalid_order",
    "invalid_place",
    "missing_state",
    "invalid_state",
)

_NAMES = "; columns lat and lon, or names such as the model's cells have: dphmm inspect --states lists them"
_TRIP_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")


class Loaded(NamedTuple):
    """Trajectories in the order of the rows, and ``rejected`` (row, reason): row numbers from 1, no
    values.
    """

    trajectories: Trajectories
    rejected: pa.Table

    @property
    def dropped(self) -> Counts:
        """Rows set aside, by reason."""
        reasons = self.rejected.column("reason").to_pylist()
        return Counts({reason: reasons.count(reason) for reason in set(reasons)})


@dataclass(frozen=True)
class Roles:
    """Which column of the table is what; None where there is none."""

    user: str
    time: str | None = None
    step: str | None = None
    order: str | None = None
    lat: str | None = None
    lon: str | None = None
    state: str | None = None
    trip: str | None = None

    @property
    def names(self) -> list[str]:
        """The columns to read, each once."""
        given = (self.user, self.time, self.step, self.order, self.lat, self.lon, self.state, self.trip)
        return list(dict.fromkeys(name for name in given if name is not None))


class Assembler:
    """Takes parts of one table in turn; ``finish`` joins them."""

    def __init__(
        self,
        roles: Roles,
        assume_utc: bool = False,
        timezone: str | None = None,
        well_formed: Callable[[str], bool] | None = None,
    ) -> None:
        self._roles = roles
        self._well_formed = well_formed
        self._times = Times(roles.time or "t", assume_utc, timezone)
        self._users, self._states, self._trips = Numbering(), Numbering(), Numbering()
        self._parts: list[dict[str, NDArray[Any]]] = []
        self._why: list[NDArray[np.int8]] = []

    def add(self, table: pa.Table) -> None:
        """Read the next rows. Raises InvalidInput for a column of a wrong type or of timestamps without a zone."""
        part: dict[str, NDArray[Any]] = {}
        why = np.zeros(len(table), dtype=np.int8)

        def mark(bad: BoolArray, reason: str) -> None:
            why[bad & (why == 0)] = REASONS.index(reason)

        roles = self._roles
        part["user"], bad = self._users.add(table.column(roles.user), roles.user)
        mark(bad, "missing_user")
        if roles.time is not None:
            part["time"], marks = self._times.add(table.column(roles.time))
            for reason in TIME_REASONS:
                mark(marks.get(reason, why > 0), reason)
        for role, name in (("step", roles.step), ("order", roles.order)):
            if name is not None:
                part[role], bad = columns.integers(table.column(name), name)
                mark(bad, f"invalid_{role}")
        if roles.lat is not None and roles.lon is not None:
            part["lat"], part["lon"], bad = _places(table, roles.lat, roles.lon)
            mark(bad, "invalid_place")
        if roles.state is not None:
            part["state"], bad = self._states.add(table.column(roles.state), roles.state)
            mark(bad, "missing_state")
            mark(self._ill_formed(part["state"]), "invalid_state")
        if roles.trip is not None:
            part["trip"], _ = self._trips.add(table.column(roles.trip), roles.trip)
        self._why.append(why)
        self._parts.append({name: column[why == 0] for name, column in part.items()})

    def _ill_formed(self, states: IntArray) -> BoolArray:
        """Which names (n,), by number, have not the form that names must have; a missing one (-1) has none."""
        if self._well_formed is None:
            return np.zeros(len(states), dtype=np.bool_)
        ill = [not self._well_formed(label) for label in self._states.labels]
        return np.array([*ill, True], dtype=np.bool_)[states]

    def finish(self, source: str) -> Loaded:
        """All rows. Raises InvalidInput, naming ``source``, if there are none or all were set aside, and for times of
        which none has a zone.
        """
        import pyarrow as pa

        self._times.finish()
        why = np.concatenate([*self._why, np.empty(0, np.int8)])
        aside = np.flatnonzero(why)
        reasons = pa.array([REASONS[code] for code in why[aside].tolist()], pa.string())
        rejected = pa.table({"row": pa.array(aside + 1, pa.int64()), "reason": reasons})
        if len(aside) == len(why):
            counted = {reason: int((why == code).sum()) for code, reason in enumerate(REASONS) if code}
            by_reason = ", ".join(f"{rows} {reason}" for reason, rows in counted.items() if rows)
            expected = f"rows ({by_reason or 'none'}){_NAMES if counted['invalid_state'] else ''}"
            raise InvalidInput(source, f"0 rows that can be read of {len(why)}", expected)
        joined = {name: np.concatenate([p.pop(name) for p in self._parts]) for name in list(self._parts[0])}
        return Loaded(self._trajectories(joined), rejected)

    def _trajectories(self, joined: dict[str, NDArray[Any]]) -> Trajectories:
        # A label seen only in rows that were set aside is no user.
        seen, user = np.unique(joined["user"], return_inverse=True)
        users = tuple(np.array(self._users.labels, dtype=object)[seen])
        state = joined.get("state")
        labels = None if state is None else np.array(self._states.labels, dtype=object)[state]
        trip = joined.get("trip")
        trips = None if trip is None else _trip_numbers(trip, self._trips.labels)
        order = joined.get("order")
        found = Trajectories(
            users, user.astype(np.int32), joined.get("time"), joined.get("step"), joined.get("lat"),
            joined.get("lon"), labels, trips,
        )  # fmt: skip
        if order is not None:
            found = _in_order(found, order)
        elif found.time is None and found.step is None:
            found = _with_ranks(found)
        return found


def _places(table: pa.Table, lat: str, lon: str) -> tuple[FloatArray, FloatArray, BoolArray]:
    latitudes, bad = columns.decimals(table.column(lat), lat)
    longitudes, also_bad = columns.decimals(table.column(lon), lon)
    bad = bad | also_bad
    with np.errstate(invalid="ignore"):
        # Longitudes may be written from 0 to 360.
        bad |= ~(np.abs(latitudes) <= 90) | ~((longitudes >= -180) & (longitudes <= 360))
        longitudes = np.where(longitudes > 180, longitudes - 360, longitudes)
    return latitudes, longitudes, bad


def _trip_numbers(codes: IntArray, labels: tuple[str, ...]) -> NDArray[np.int32]:
    """Trips that are numbers keep them; others are numbered by first appearance. Rows without one share
    trip -1.
    """
    if all(_TRIP_NUMBER.fullmatch(label) for label in labels):
        numbers = np.array([*map(int, labels), -1], dtype=np.int32)
        return numbers[codes]
    return codes.astype(np.int32)


def _in_order(rows: Trajectories, order: IntArray) -> Trajectories:
    """Sorted by user, trip and order, stable; the rank becomes the step."""
    keys = (order, rows.user) if rows.trip is None else (order, rows.trip, rows.user)
    return _with_ranks(rows.take(np.lexsort(keys)))


def _with_ranks(rows: Trajectories) -> Trajectories:
    return replace(rows, step=ranks(rows.user))
