"""What a person at a terminal sees, and what --quiet leaves of it."""

from __future__ import annotations

import io
import sys

import pytest

from dphmm.cli.console import Console, aligned


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def at_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard error as a terminal; called in the test itself, because pytest puts its own there before."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "200")
    return stream


def test_a_summary_and_a_bar_without_colours(monkeypatch):
    terminal = at_terminal(monkeypatch)
    console = Console()
    with console.progress("release") as report:
        report(1, 2)
    console.say([("rows", "3 of 4"), ("", "a sentence")])
    text = terminal.getvalue()
    assert "rows" in text
    assert "3 of 4" in text
    assert "a sentence" in text
    assert "\x1b[3" not in text
    assert "\x1b[9" not in text


def test_quiet_leaves_warnings(monkeypatch):
    terminal = at_terminal(monkeypatch)
    console = Console(quiet=True)
    console.say([("rows", "3")])
    with console.progress("release") as report:
        assert report is None
    assert terminal.getvalue() == ""
    console.warn("not\nprivate")
    assert terminal.getvalue() == "warning: not private\n"


def test_nobody_watches_a_pipe(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with Console().progress("release") as report:
        assert report is None


def test_labels_are_one_column():
    assert aligned([("a", "1"), ("long", "2"), ("", "all of it")]) == ["a     1", "long  2", "all of it"]
