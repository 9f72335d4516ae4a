"""SIGTERM, answered as Ctrl-C is: what is open is closed, what was committed stays."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from dphmm.cli.outcomes import Terminated


@contextmanager
def answered_like_an_interrupt() -> Iterator[None]:
    """Inside the block the first SIGTERM raises Terminated; later ones do not disturb the tidying up."""
    before = signal.getsignal(signal.SIGTERM)
    # Only the main thread may set handlers, and what a parent chose to ignore stays ignored.
    if threading.current_thread() is not threading.main_thread() or before is signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGTERM, _stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Terminated
