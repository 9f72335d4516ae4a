"""Batches killed anywhere and resumed: every row once, each as it escaped before, charged as in a run without crashes.

What fails if rows of a chunk were shown before its commit, if a resumed batch drew a stored row again, skipped one, or
charged one twice. The delta-set batch is compared with sessions that are never interrupted and draw the same answers.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from crashes import autopsy, world
from crashes.campaign import KINDS, campaign, die_once, learn, releases
from crashes.checker import judge_final
from crashes.death import Death
from crashes.syscalls import AVAILABLE
from crashes.trials import BATCHES

KILLS = 8


@pytest.mark.slow
@pytest.mark.parametrize("name", BATCHES)
def test_killed_at_random_and_resumed(arena, name):
    verdict = campaign(arena, BATCHES[name], KILLS, seed=21)
    assert not verdict.findings, verdict.findings
    assert verdict.kills >= KILLS
    assert verdict.escapes >= verdict.keys > 0
    assert set(verdict.by_kind) == set(KINDS)


def test_a_run_without_crashes_releases_every_row(arena):
    """What the others are compared with is itself right: the rows of the table, and skips between them."""
    _, reference = learn(arena, BATCHES["batch"])
    assert sorted(releases(reference)) == sorted(
        (user, t, "state") for user in world.USERS for t in world.observed(user)
    )


def test_killed_before_each_kind_of_statement(arena):
    trial = BATCHES["batch"]
    points, reference = learn(arena, trial)
    rng = random.Random(5)
    # Those of every transaction: what comes once, when a ledger is made or opened, a session comes to as well.
    for name, times in sorted(points.statements.items()):
        if times > len(world.USERS):
            die_once(arena, trial, Death("point", n=rng.randint(1, times), name=name), reference)


@pytest.mark.skipif(not AVAILABLE, reason="system calls are traced on Linux, x86-64 only")
@pytest.mark.parametrize("every", [19, pytest.param(1, marks=pytest.mark.long)])
def test_killed_at_the_system_calls_one_after_the_other(arena, every):
    trial = BATCHES["batch"]
    points, reference = learn(arena, trial)
    calls = tuple(sorted(points.calls))
    for n in range(1, points.calls.total() + 1, every):
        die_once(arena, trial, Death("syscall", n=n, calls=calls), reference)


def test_the_comparison_with_given_answers_can_fail(arena, folder):
    """Another answer in the record is another belief, so that later plans of a delta-set differ."""
    assert arena.run("batch", folder=folder, constraint="0.05").code == 0
    view = autopsy.ledger_view(folder)
    assert not judge_final(view, autopsy.given_answers(view, "0.05"), answers=True)
    first = ("ann", 1, "state")
    moved = replace(view.rows[first], z=(500, 500))
    other = autopsy.given_answers(replace(view, rows={**view.rows, first: moved}), "0.05")
    assert judge_final(view, other, answers=False).count("reference") > 0
