"""The distance that a policy covers, as a line of what a command says."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dphmm.cli.console import Row


def covered_rows(facts: Mapping[str, Any] | None, epsilon: Fraction | str | None = None) -> list[Row]:
    """The line of these facts, with an epsilon what one answer may tell; none where states are no cells of a map."""
    from dphmm.storage.covered import covered_words, places_words

    if facts is None:
        return []
    words = places_words(facts) if epsilon is None else covered_words(facts, Fraction(epsilon))
    return [("covered", words)]
