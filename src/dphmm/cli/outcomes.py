"""Exit codes, and messages of one line."""

from __future__ import annotations

FAILED = 1
BAD_INPUT = 2
SET_ASIDE = 3
INTERRUPTED = 130
CLOSED = 141
TERMINATED = 143


class Terminated(KeyboardInterrupt):
    """SIGTERM: answered like Ctrl-C, with an exit code of its own."""


class OutputClosed(Exception):
    """Whoever read the output has gone away, as head does: no error, and nothing more to say."""


class Interrupted(Exception):
    """Ctrl-C or SIGTERM (``stop``), with what was kept and how to go on."""

    def __init__(self, message: str, stop: BaseException | None = None) -> None:
        super().__init__(message)
        self.exit_code = stopped_code(stop)


def stopped_code(stop: BaseException | None) -> int:
    """The exit code of Ctrl-C or of SIGTERM."""
    return TERMINATED if isinstance(stop, Terminated) else INTERRUPTED


def one_line(text: str) -> str:
    """A message on one line, with nothing in it that a terminal would obey."""
    joined = " ".join(text.split())
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in joined)
