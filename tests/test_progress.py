"""How far a long piece of work is: the caller's function, a bar on a terminal, or nothing."""

from __future__ import annotations

import io
import sys

import pytest

import dphmm
from dphmm._progress import TerminalBar, shown


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _plan(**given):
    space = dphmm.StateSpace([0, 1])
    model = dphmm.MarkovModel([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]])
    return dphmm.choose.plan(model, dphmm.policy.complete(2), space, dphmm.SequencePromise(2, per=8), people=5, **given)


def test_a_function_is_called_with_what_is_done():
    seen = []
    _plan(progress=lambda done, total: seen.append((done, total)))
    counts = [done for done, _ in seen]
    assert counts == sorted(set(counts)) and {total for _, total in seen} == {counts[-1]}


@pytest.mark.parametrize(("stream", "wanted", "bar"), [(_Terminal, True, True), (_Terminal, False, False),
                                                       (io.StringIO, True, False)])  # fmt: skip
def test_a_bar_is_for_terminals_and_for_who_wants_one(stream, wanted, bar, monkeypatch):
    monkeypatch.setattr(sys, "stderr", stream())
    with shown(wanted, "plan") as report:
        assert isinstance(report, TerminalBar) if bar else report is None


def test_a_plan_shows_its_bar_on_a_terminal_and_leaves_nothing_elsewhere(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    _plan()
    assert sys.stderr.getvalue() == ""
