"""Rows brought together by owner, in the memory that they are in."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from dphmm._kernels.compiled import kernel
from dphmm.types import IntArray


@kernel
def places_of_rows(owner: NDArray[Any], following: IntArray) -> None:
    """Write over the owner of each row (n,) the place that the row has when rows are by owner, and else as they stand.

    ``following`` (owners,) is where the rows of each owner begin; it ends where they end.
    """
    for row in range(len(owner)):
        mine = owner[row]
        owner[row] = following[mine]
        following[mine] += 1


@kernel
def move(places: NDArray[Any], column: NDArray[Any]) -> None:
    """Move the value of each row (n,) to the row's place. Places are a permutation, all as they are or all as ~place.

    Each is turned into the other while its value is moved: which one a place is says whether its row was moved.
    """
    if len(places) == 0:
        return
    plain = places[0] >= 0
    for row in range(len(places)):
        if (places[row] >= 0) != plain:
            continue
        value, at = column[row], row
        while True:
            to = places[at] if plain else ~places[at]
            places[at] = ~places[at]
            if to == row:
                column[row] = value
                break
            column[to], value = value, column[to]
            at = to
