"""Every word that the bits of a process serve, kept: words are the fingerprints of randomness that was used."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from dphmm.samplers import entropy

#: So many words are distinct but with probability n²/2**65 < 10⁻⁹ (birthday bound); every test here collects fewer.
MOST_WORDS = 190_000


class WordLog:
    """What `_StreamBits` served in this process since the log began: all bits, wherever they were made."""

    def __init__(self) -> None:
        self._own = os.getpid()
        self.served: list[np.ndarray] = []

    @property
    def words(self) -> np.ndarray:
        return np.concatenate([np.empty(0, np.uint64), *self.served])

    def forget_parent(self) -> None:
        """In a forked child: what the parent was served before is in the parent's log."""
        self._own, self.served = os.getpid(), []

    def save(self, folder: Path) -> None:
        np.save(folder / f"{os.getpid()}-{len(list(folder.iterdir()))}.npy", self.words)


@contextmanager
def logged_words() -> Iterator[WordLog]:
    """Log while the block runs."""
    log, serve = WordLog(), entropy._Words._served

    def logging(self: entropy._Words, n: int) -> np.ndarray:
        words = serve(self, n)
        log.served.append(words.copy())
        return words

    entropy._Words._served = logging  # type: ignore[method-assign]
    try:
        yield log
    finally:
        entropy._Words._served = serve  # type: ignore[method-assign]


def repeats(words: np.ndarray) -> int:
    """How many words were served before."""
    assert len(words) <= MOST_WORDS, "more words than the birthday bound allows for"
    return len(words) - len(np.unique(words))
