"""Every kind of state space, registered in one place: how a saved one is restored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from dphmm.errors import InvalidInput
from dphmm.states.grid import Grid
from dphmm.states.hexes import H3
from dphmm.states.space import StateSpace

SPACES: dict[str, type[StateSpace]] = {space.kind: space for space in (StateSpace, Grid, H3)}


def from_description(meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> StateSpace:
    """The space that ``describe`` described. Raises InvalidInput for an unknown kind, a missing or a wrong part."""
    kind = meta.get("kind")
    if not isinstance(kind, str) or kind not in SPACES:
        raise InvalidInput("kind", kind, "one of " + ", ".join(SPACES))
    try:
        own = {name: array for name, array in arrays.items() if name != "merges"}
        return SPACES[kind]._restore(meta, own).merged(arrays.get("merges", ()))
    except KeyError as missing:
        raise InvalidInput("space", "a description without " + str(missing.args[0]), "a complete one") from None
    except InvalidInput:
        raise
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput("space", "parts of another type", f"the description of a {kind} space") from None
