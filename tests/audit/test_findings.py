"""Findings are counted kind by kind, and each says where it was first.

It would fail for a list that repeats a kind, or names the last place.
"""

from __future__ import annotations

from dphmm.audit.findings import Findings


def test_a_kind_is_one_sentence_with_its_first_place_and_how_often():
    findings = Findings()
    for where in ("step 3", "step 9"):
        findings.add("a row too many", where)
    findings.add("no statement")
    findings.add("another plan", "step 1")
    assert findings.sentences == (
        "a row too many (2 times): first at step 3",
        "no statement",
        "another plan: step 1",
    )


def test_what_holds_is_no_finding():
    findings = Findings()
    assert findings.require(True, "wrong") and findings.sentences == ()
    assert not findings.require(False, "wrong", "here") and findings.sentences == ("wrong: here",)
