"""Sessions killed anywhere: no second answer, none unspent, no charge without a row, the end of a run without crashes.

What fails if a release were shown before its commit, charged apart from its row, drawn again for a stored step, or if
`resume` rebuilt another belief than the one it left (the delta-set trial with keyed words compares every answer).
"""

from __future__ import annotations

import random
import signal
from dataclasses import replace

import pytest

from crashes import autopsy, world
from crashes.campaign import KINDS, Life, campaign, die_once, learn
from crashes.death import Death
from crashes.syscalls import AVAILABLE
from crashes.trials import LATE, SESSIONS

KILLS = 8
traced = pytest.mark.skipif(not AVAILABLE, reason="system calls are traced on Linux, x86-64 only")


@pytest.mark.slow
@pytest.mark.parametrize("name", SESSIONS)
def test_killed_at_random(arena, name):
    verdict = campaign(arena, SESSIONS[name], KILLS, seed=11)
    assert not verdict.findings, verdict.findings
    assert verdict.kills >= KILLS
    assert verdict.escapes > verdict.keys > 0
    assert set(verdict.by_kind) == set(KINDS)


@pytest.mark.parametrize(("trial", "guilty"), [(SESSIONS["session"], False), (LATE, True)], ids=["kept", "broken"])
def test_a_database_that_commits_after_it_says_so_is_found_out(arena, folder, trial, guilty):
    """The same session killed before the same commit: only where the database breaks its word has an answer escaped."""
    life = Life(arena, trial, folder, learn(arena, trial)[1])
    assert life.go_on([Death("point", n=6, name="COMMIT")]) == ["point"]
    assert life.findings.count("unspent") == (2 if guilty else 0), life.findings
    life.go_on([Death()])
    life.finish()
    assert life.findings.count("double") == guilty, life.findings
    assert bool(life.findings) == guilty


@pytest.mark.slow
def test_killed_before_each_kind_of_statement(arena):
    """Every statement that a session comes to, whatever they are: none is left out because nobody thought of it."""
    trial = SESSIONS["session, delta-set, keyed"]
    points, reference = learn(arena, trial)
    assert {"COMMIT", "BEGIN IMMEDIATE"} <= set(points.statements)
    rng = random.Random(3)
    for name, times in sorted(points.statements.items()):
        die_once(arena, trial, Death("point", n=rng.randint(1, times), name=name), reference)


@pytest.mark.slow
@traced
@pytest.mark.parametrize("every", [14, pytest.param(1, marks=pytest.mark.long)])
def test_killed_at_the_system_calls_one_after_the_other(arena, every):
    trial = SESSIONS["session, delta-set, keyed"]
    points, reference = learn(arena, trial)
    calls = tuple(sorted(points.calls))
    for n in range(1, points.calls.total() + 1, every):
        die_once(arena, trial, Death("syscall", n=n, calls=calls), reference)


@pytest.mark.slow
@traced
def test_interrupted_at_random(arena):
    """Ctrl-C raises inside whatever is running: the transaction is rolled back, the session can be resumed."""
    trial = SESSIONS["session, delta-set, keyed"]
    points, reference = learn(arena, trial)
    rng = random.Random(4)
    for _ in range(5):
        death = replace(points.draw("syscall", rng), signal=signal.SIGINT)
        die_once(arena, trial, death, reference, codes=(70,))


def test_an_answer_that_escaped_is_the_answer_forever(arena, folder):
    """Asked by five processes, each killed at its third line, with other true states each time."""
    first = arena.run("session", folder=folder, steps=6).lines
    for _ in range(5):
        death = Death("syscall", n=3, calls=("write",)) if AVAILABLE else Death()
        again = arena.run("session", death, folder=folder, steps=6, again=30).lines
        assert [told(line) for line in again] == [told(line) for line in first[: len(again)]]
        assert len(again) == (2 if AVAILABLE else 6)
    assert autopsy.ledger_view(folder).spent["ann"][0] == 6 * autopsy.escapes_of(first)[0].epsilon
    assert world.truth("ann", 3) != world.truth("another", 3)


def told(line):
    """A line without the process that wrote it."""
    (escape,) = autopsy.escapes_of([line])
    return escape
