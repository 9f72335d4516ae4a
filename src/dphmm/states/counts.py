"""How many rows something happened to, by reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


class Counts(Mapping[str, int]):
    """A frozen mapping reason -> number of rows; reasons with 0 rows are left out. They add up with ``+``."""

    __slots__ = ("_rows",)

    def __init__(self, rows: Mapping[str, int] | None = None) -> None:
        given = {} if rows is None else rows
        self._rows = {reason: int(given[reason]) for reason in sorted(given) if given[reason]}

    @property
    def total(self) -> int:
        """Rows over all reasons."""
        return sum(self._rows.values())

    def __getitem__(self, reason: str) -> int:
        return self._rows.get(reason, 0)

    def __contains__(self, reason: object) -> bool:
        return reason in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __add__(self, other: Mapping[str, int]) -> Counts:
        return Counts({reason: self[reason] + other.get(reason, 0) for reason in {*self, *other}})

    def __hash__(self) -> int:
        return hash(tuple(self._rows.items()))

    def __repr__(self) -> str:
        return f"Counts({self._rows})"
