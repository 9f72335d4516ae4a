"""A signal while LLVM waits for an answer, or a module is imported, is looked at again a moment later: there it would
end in a crash, or be lost.
"""

from __future__ import annotations

import signal
import time

import pytest

from dphmm.cli import console


def busy(number, place):
    """Ask to stop from a frame of the compiler's or the importer's, and go on for a while after it."""
    names = {"signal": signal, "number": number, "done": []}
    exec(compile("signal.raise_signal(number); done.append(True)", place, "exec"), names)
    time.sleep(5)
    return names["done"]


@pytest.mark.parametrize("place", ["/x/llvmlite/binding/y.py", "<frozen importlib._bootstrap>"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_where_it_would_be_lost_waits_for_its_end(number, place):
    began = time.monotonic()
    with console.answered_like_an_interrupt(), pytest.raises(KeyboardInterrupt):
        signal.signal(number, console._stop)
        busy(number, place)
    assert time.monotonic() - began < 4
    assert console.asked_to_stop() is not None


def test_elsewhere_it_is_raised_at_once():
    with console.answered_like_an_interrupt(), pytest.raises(KeyboardInterrupt):
        signal.signal(signal.SIGINT, console._stop)
        signal.raise_signal(signal.SIGINT)
        pytest.fail("not raised at once")
