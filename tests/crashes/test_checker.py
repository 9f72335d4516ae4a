"""The checker and the harness can convict: hand-made bad histories, and ledgers that are wrong under the same deaths.

If these passed while the harness missed what happened between a death and the next start, A, B or C would be acquitted;
if it saw faults everywhere, so would E be convicted.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from crashes.autopsy import escapes_of
from crashes.campaign import campaign
from crashes.checker import KINDS, Escape, Row, Run, View, judge, judge_final, shown_once
from crashes.death import Death
from crashes.syscalls import AVAILABLE
from crashes.trials import SIMULATED

TENTH, COST = Fraction(1, 10), Fraction(1, 3)
ROUNDED = Fraction(333_333_334, 10**9)
KILLS = 8


def escape(t, z=7, subject="ann"):
    return Escape((subject, t, "state"), (z,), TENTH, COST)


def view(steps=2, spent=None, z=7):
    rows = {("ann", t, "state"): Row((z,), TENTH, COST, t) for t in range(1, steps + 1)}
    return View(rows, {"ann": spent or (steps * TENTH, steps * ROUNDED)})


def kinds(*escapes, seen=None, caps=None):
    return {kind for kind, _ in judge([Run(tuple(escapes), "-9")], seen or view(), caps).found}


def test_a_good_history_is_acquitted():
    assert kinds(escape(1), escape(2), caps={"ann": 2 * TENTH}) == set()
    assert not judge([Run((escape(1),), "-9"), Run((escape(1), escape(2)), "0")], view())


BAD = {
    "two answers": ([escape(1), escape(2)], view(z=8), {"double"}),
    "not stored": ([escape(3)], view(), {"unspent"}),
    "a row without its answer": (
        [escape(1)],
        View({("ann", 1, "state"): Row(None, TENTH, COST, 1)}, {"ann": (TENTH, ROUNDED)}),
        {"unstored"},
    ),
    "epsilon not spent": ([escape(1), escape(2)], view(spent=(TENTH, 2 * ROUNDED)), {"unspent"}),
    "cost not rounded up": ([escape(1), escape(2)], view(spent=(2 * TENTH, 2 * COST)), {"unspent"}),
    "a cost without a row": ([escape(1)], view(spent=(3 * TENTH, 3 * ROUNDED)), {"overcharged"}),
    "order": ([escape(2), escape(1)], view(), {"order"}),
    "a hole": ([], View({("ann", 2, "state"): Row((7,), TENTH, COST, 2)}, {"ann": (TENTH, ROUNDED)}), {"order"}),
    "another subject's row": ([escape(1, subject="bob")], view(), {"unspent"}),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_history_is_convicted(name):
    escapes, seen, expected = BAD[name]
    assert kinds(*escapes, seen=seen) == expected


def test_a_cap_that_was_passed_is_convicted():
    assert kinds(escape(1), escape(2), caps={"ann": TENTH}) == {"cap"}


def test_another_answer_in_another_run_is_convicted():
    found = judge([Run((escape(1),), "-9"), Run((escape(1, z=8),), "0")], view())
    assert {kind for kind, _ in found.found} == {"double"}
    assert "2 different answers" in str(found)


def test_a_history_that_ends_differently_is_convicted():
    rows = dict(view().rows)
    assert not judge_final(view(), rows, answers=True)
    key = ("ann", 2, "state")
    for other in (replace(rows[key], plan="other"), replace(rows[key], cost=TENTH), replace(rows[key], through=3)):
        assert judge_final(view(), {**rows, key: other}, answers=False).count("reference") == 1
    assert not judge_final(view(), {**rows, key: replace(rows[key], z=(8,))}, answers=False)
    assert judge_final(view(), {**rows, key: replace(rows[key], z=(8,))}, answers=True)
    assert judge_final(view(1), rows, answers=False).count("reference") == 1
    assert judge_final(view(3), rows, answers=False).count("reference") == 1


GUILTY = {"A": ("double", "unspent"), "B": ("double", "unstored"), "C": ("double", "unspent", "overcharged")}


@pytest.mark.parametrize("name", sorted(SIMULATED))
def test_the_harness_tells_wrong_ledgers_from_a_right_one(arena, name):
    """As many kills as the real ledger gets in its tests."""
    verdict = campaign(arena, SIMULATED[name], KILLS, seed=5)
    assert verdict.kills >= KILLS
    counts = {kind: verdict.findings.count(kind) for kind in KINDS}
    guilty = GUILTY.get(name, ())
    assert all(counts[kind] == 0 for kind in KINDS if kind not in guilty), verdict.findings
    assert sum(counts.values()) >= len(guilty), counts


@pytest.mark.parametrize("name", ["A", "E"])
def test_without_deaths_nobody_is_convicted(arena, tmp_path, name):
    """A is wrong only when it is killed: what convicts it above is the death, not the harness."""
    trial = SIMULATED[name]
    ended = trial.start(arena, tmp_path, Death()).finish()
    assert ended.code == 0, ended.errors
    found = judge([Run(escapes_of(ended.lines), "0")], trial.view(tmp_path))
    assert len(ended.lines) == 20
    assert not found, found


@pytest.mark.skipif(not AVAILABLE, reason="system calls are traced on Linux, x86-64 only")
def test_a_death_at_a_system_call_is_before_it(arena, tmp_path):
    """The n-th write of a work is its n-th line: killed there, n - 1 lines have escaped."""
    for n in (1, 2, 17):
        ended = arena.run("protocol", Death("syscall", n=n, calls=("write",)), folder=tmp_path, name="B", again=30)
        assert (ended.code, len(ended.lines)) == (-9, n - 1)


def test_a_table_that_shows_a_row_twice_or_never_is_convicted():
    assert not shown_once(Run((escape(1), escape(2)), "0"), view())
    assert shown_once(Run((escape(1),), "0"), view()).count("reference") == 1
    assert shown_once(Run((escape(1), escape(1), escape(2)), "0"), view()).count("reference") == 1
