"""Ctrl-C and SIGTERM, answered alike: what is open is closed, what was committed stays."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from dphmm.cli.outcomes import Terminated


@contextmanager
def answered_like_an_interrupt() -> Iterator[None]:
    """Inside the block the first SIGTERM raises Terminated; later ones do not disturb the tidying up."""
    _asked.clear()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    # Only the main thread may set handlers, and what a parent chose to ignore stays ignored.
    if threading.current_thread() is not threading.main_thread() or before[signal.SIGTERM] is signal.SIG_IGN:
        yield
        return
    others = sys.unraisablehook
    sys.unraisablehook = lambda lost: _ask_for_the_lost(lost.exc_type) if _stops(lost.exc_type) else others(lost)
    signal.signal(signal.SIGTERM, _stop)
    if before[signal.SIGINT] is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        sys.unraisablehook = others
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def asked_to_stop() -> KeyboardInterrupt | None:
    """The interrupt that was asked for, even where a library made another error of it."""
    return _asked[0]() if _asked else None


#: The kind alone: an error that is kept keeps what every function on its way held, open files and ledgers too.
_asked: list[type[KeyboardInterrupt]] = []
_SWALLOWING = ("llvmlite", "importlib._bootstrap")
#: Seconds until a signal that came where it would be lost is looked at again.
_MOMENT = 0.02


def _interrupt(number: int, frame: FrameType | None) -> None:
    if _swallowed(frame):
        _ask_again(number)
        return
    _asked.append(KeyboardInterrupt)
    raise KeyboardInterrupt


def _stop(number: int, frame: FrameType | None) -> None:
    if _swallowed(frame):
        _ask_again(number)
        return
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _asked.append(Terminated)
    raise Terminated


def _stops(kind: type[BaseException]) -> bool:
    return issubclass(kind, KeyboardInterrupt)


def _ask_for_the_lost(kind: type[BaseException]) -> None:
    """Python forgets what is raised while it frees an object: an interrupt that came just then comes again."""
    if issubclass(kind, Terminated):
        signal.signal(signal.SIGTERM, _stop)
        _ask_again(signal.SIGTERM)
    else:
        _ask_again(signal.SIGINT)


def _swallowed(frame: FrameType | None) -> bool:
    """Whether an exception would be lost here.

    It is lost where LLVM waits for Python's answer (and would read nothing), and where a compiled module imports
    another.
    """
    while frame is not None:
        if any(place in frame.f_code.co_filename for place in _SWALLOWING):
            return True
        frame = frame.f_back
    return False


def _ask_again(number: int) -> None:
    """The same signal to the main thread, a moment later."""
    main = threading.main_thread().ident
    assert main is not None
    timer = threading.Timer(_MOMENT, signal.pthread_kill, (main, number))
    timer.daemon = True
    timer.start()
