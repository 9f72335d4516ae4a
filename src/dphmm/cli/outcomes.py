"""Exit codes, and messages of one line."""

from __future__ import annotations

FAILED = 1
BAD_INPUT = 2
SET_ASIDE = 3
INTERRUPTED = 130


class Interrupted(Exception):
    """Ctrl-C, with what was kept and how to go on."""

    exit_code = INTERRUPTED


def one_line(text: str) -> str:
    """A message on one line, with nothing in it that a terminal would obey."""
    joined = " ".join(text.split())
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in joined)
