"""A signal while LLVM waits for an answer is looked at again a moment later: raised there it would end in a crash."""

from __future__ import annotations

import signal
import time

import pytest

from dphmm.cli import termination


def compiling(number):
    """Ask to stop from a frame of the compiler's, and go on for a while after it."""
    names = {"signal": signal, "number": number, "done": []}
    exec(compile("signal.raise_signal(number); done.append(True)", "/x/llvmlite/binding/y.py", "exec"), names)
    time.sleep(5)
    return names["done"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_compiler_waits_for_its_end(number):
    began = time.monotonic()
    with termination.answered_like_an_interrupt(), pytest.raises(KeyboardInterrupt):
        signal.signal(number, termination._interrupt if number == signal.SIGINT else termination._stop)
        compiling(number)
    assert time.monotonic() - began < 4
    assert termination.asked_to_stop() is not None


def test_elsewhere_it_is_raised_at_once():
    with termination.answered_like_an_interrupt(), pytest.raises(KeyboardInterrupt):
        signal.signal(signal.SIGINT, termination._interrupt)
        signal.raise_signal(signal.SIGINT)
        pytest.fail("not raised at once")
