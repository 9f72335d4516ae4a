"""SIGTERM is answered like Ctrl-C, with exit code 143, and handlers are put back."""

from __future__ import annotations

import os
import signal

import click
import pytest
from click.testing import CliRunner

from dphmm.cli.app import app
from dphmm.cli.outcomes import Interrupted, Terminated
from dphmm.cli.termination import answered_like_an_interrupt


def test_a_command_that_is_terminated(monkeypatch):
    @click.command()
    def slow():
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(type(app), "get_command", lambda *_: slow)
    before = signal.getsignal(signal.SIGTERM)
    result = CliRunner().invoke(app, ["account"])
    assert result.exit_code == 143
    assert result.stderr == "interrupted: a file is written whole or not at all; what a ledger holds stays\n"
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_second_signal_does_not_disturb_the_tidying_up():
    with answered_like_an_interrupt():
        with pytest.raises(Terminated):
            os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)


def test_what_is_ignored_stays_ignored(monkeypatch):
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with answered_like_an_interrupt():
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_codes():
    assert Interrupted("x", Terminated()).exit_code == 143
    assert Interrupted("x", KeyboardInterrupt()).exit_code == Interrupted("x").exit_code == 130
