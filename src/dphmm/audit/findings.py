"""Words for the findings of an audit: the number of each kind, and the first."""

from __future__ import annotations


class Findings:
    """The findings that convict, kind by kind, in the order in which kinds were first met."""

    def __init__(self) -> None:
        self._kinds: dict[str, tuple[int, str]] = {}

    def add(self, kind: str, where: str = "") -> None:
        """Add one more finding of a kind, and its place."""
        count, first = self._kinds.get(kind, (0, where))
        self._kinds[kind] = (count + 1, first)

    def require(self, holds: bool, kind: str, where: str = "") -> bool:
        """Add a finding unless it holds; returns ``holds``."""
        if not holds:
            self.add(kind, where)
        return holds

    @property
    def sentences(self) -> tuple[str, ...]:
        """One sentence for each kind."""
        return tuple(_sentence(kind, count, first) for kind, (count, first) in self._kinds.items())


def _sentence(kind: str, count: int, first: str) -> str:
    times = f" ({count} times)" if count > 1 else ""
    return f"{kind}{times}: first at {first}" if first and count > 1 else f"{kind}{times}{': ' if first else ''}{first}"
