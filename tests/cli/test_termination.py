"""SIGTERM is answered like Ctrl-C, with exit code 143, and handlers are put back."""

from __future__ import annotations

import os
import signal
import sys
import time

import click
import pytest
from click.testing import CliRunner

from dphmm.cli import outcomes
from dphmm.cli.app import app
from dphmm.cli.outcomes import Interrupted, Terminated, answered_like_an_interrupt


def test_a_command_that_is_terminated(monkeypatch):
    @click.command()
    def slow():
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(type(app), "get_command", lambda *_: slow)
    before = signal.getsignal(signal.SIGTERM)
    result = CliRunner().invoke(app, ["account"])
    assert result.exit_code == 143
    assert result.stderr == "interrupted: dphmm account writes no file, so there is nothing to tidy up\n"
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_second_signal_does_not_disturb_the_tidying_up():
    with answered_like_an_interrupt():
        with pytest.raises(Terminated):
            os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)


class Freed:
    """Something that is freed just when a signal comes."""

    def __init__(self, number):
        self.number = number

    def __del__(self):
        signal.raise_signal(self.number)


@pytest.mark.parametrize(("number", "stop"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)])
def test_a_signal_while_an_object_is_freed_is_not_lost(number, stop):
    with answered_like_an_interrupt(), pytest.raises(stop):
        signal.signal(signal.SIGINT, outcomes._interrupt)
        del (freed := [Freed(number)])[0]
        assert not freed
        time.sleep(5)


def test_other_errors_while_an_object_is_freed_are_told(monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    with answered_like_an_interrupt():
        del (freed := [Broken()])[0]
        assert not freed
    assert [lost.exc_type for lost in told] == [ZeroDivisionError]


class Broken:
    """Something that cannot be freed without an error."""

    def __del__(self):
        raise ZeroDivisionError


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


@pytest.mark.parametrize(("hidden", "code"), [(True, 130), (False, 2)])
def test_an_interrupt_of_which_a_library_made_a_wrong_input_stays_one(monkeypatch, run, tmp_path, hidden, code):
    """NumPy may turn an interrupt into a TypeError, and a reader of files that into a file that is none."""
    from dphmm.cli import leakage, outcomes
    from dphmm.errors import InvalidInput

    def broken(path):
        outcomes._asked.append(KeyboardInterrupt)
        if not hidden:
            raise InvalidInput("model", "a file that is none", "a model")
        try:
            raise TypeError
        except TypeError:
            raise InvalidInput("model", "a file that is none", "a model") from None

    monkeypatch.setattr(leakage, "loaded_model", broken)
    (tmp_path / "released.csv").write_text("user\n")
    public = ("--model", tmp_path / "m.npz", "--policy", tmp_path / "p.json")
    said = run("leakage", tmp_path / "released.csv", *public, "--event", "a", "--from", 1, "--to", 2, code=code)
    assert said.stderr.count("\n") == 1 and ("interrupted" in said.stderr) == hidden
