"""Files that differ by the lines of one person, who may write anything anywhere in the file."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

Lines = tuple[bytes, ...]


def placed(others: Sequence[bytes], added: Sequence[bytes]) -> Iterator[Lines]:
    """The lines of both, each in their order: every way to lay the added ones between the others."""
    total = len(others) + len(added)
    for places in itertools.combinations(range(total), len(added)):
        rest, new = iter(others), iter(added)
        yield tuple(next(new) if at in places else next(rest) for at in range(total))


def neighbours(others: Sequence[bytes], lines: Sequence[bytes], pairs: int = 6) -> Iterator[Lines]:
    """Every one of the lines at every place, and every two of the first ``pairs`` of them at every two places."""
    for line in lines:
        yield from placed(others, (line,))
    for two in itertools.product(lines[:pairs], repeat=2):
        yield from placed(others, two)


def first_neighbours(others: Sequence[bytes], lines: Sequence[bytes], pairs: int = 6) -> Iterator[Lines]:
    """Of `neighbours` fewer: each line before all others, and at one more place that moves on from line to line."""
    for number, line in enumerate(lines):
        every = list(placed(others, (line,)))
        yield from (every[0], every[1 + number % (len(every) - 1)])
    for two in itertools.product(lines[:pairs], repeat=2):
        yield from placed(others, two)


def text(header: bytes, lines: Sequence[bytes], end: bytes = b"\n") -> bytes:
    """A file of these lines, after the header if there is one."""
    return b"".join(line + end for line in ((header, *lines) if header else lines))
