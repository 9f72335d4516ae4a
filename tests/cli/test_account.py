"""dphmm account: totals by subject and query, each with the statement that it makes."""

from __future__ import annotations

import pandas
import pytest

import dphmm
from dphmm.samplers.entropy import ReplayBits
from dphmm.session.session import ReleaseSession
from dphmm.storage.ledger import open_ledger
from dphmm.storage.models import load_model
from dphmm.storage.policies import load_policy


@pytest.fixture
def ledger(town, tmp_path, run, release_of):
    run(*release_of(town, tmp_path))
    return tmp_path / "ledger.db"


def test_every_subject_with_its_totals_and_their_meaning(ledger, run):
    text = run("account", ledger).stdout
    assert "u1\n  state  12 releases, 0 skips, epsilon 12, cost 36" in text
    assert "not a bound for two states of one step" in text
    assert "Theorem 7.2" in text


def test_the_ledger_as_a_whole_and_where_each_figure_is_proved(ledger, run, one_json):
    *_, whole, epsilon, cost = run("account", ledger).stdout.splitlines()
    assert whole == "3 subjects, 36 releases, 0 skips; most of any one subject: epsilon 12, cost 36"
    assert epsilon.endswith("not a bound for two states of one step (docs/proofs/paths.md)")
    assert cost.endswith("(DPHMM 2016, Theorem 7.2; errata 19)")
    totals = one_json(run("account", ledger, "--json"))["totals"]
    assert (totals["subjects"], totals["releases"], totals["insecure"]) == (3, 36, 0)
    assert totals["largest_epsilon"]["exact"] == "12"
    assert totals["largest_cost"]["citation"].startswith("DPHMM 2016, Theorem 7.2")


def test_of_many_subjects_those_who_spent_most_are_listed(tmp_path, run, one_json):
    """164 people were 600 lines, and the totals stood far below."""
    model = dphmm.MarkovModel([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]])
    given = model, dphmm.policy.complete(2), dphmm.StateSpace.categories(["a", "b"]), 1
    rows = [(f"u{user:02}", t, "a") for user in range(23) for t in range(1, 2 + (user == 22))]
    table = pandas.DataFrame(rows, columns=["user", "step", "state"])
    with open_ledger(tmp_path / "l.db") as ledger:
        dphmm.release_many(table, *given, ledger=ledger, bits=dphmm.ReplayBits(1), progress=False)
    lines = run("account", tmp_path / "l.db").stdout.splitlines()
    assert [line for line in lines if line.startswith("u")] == ["u22", *(f"u{user:02}" for user in range(19))]
    assert "and 3 others, who spent no more: --subject NAME, or --json for all" in lines
    assert len(one_json(run("account", tmp_path / "l.db", "--json"))["subjects"]) == 23


def test_a_ledger_without_releases(tmp_path, run, one_json):
    open_ledger(tmp_path / "l.db").close()
    assert run("account", tmp_path / "l.db").stdout == "0 subjects, 0 releases, 0 skips\n"
    assert one_json(run("account", tmp_path / "l.db", "--json"))["totals"]["subjects"] == 0


def test_one_subject_for_machines(ledger, run, one_json):
    told = one_json(run("account", ledger, "--subject", "u2", "--json"))
    (subject,) = told["subjects"]
    assert subject["subject"] == "u2"
    assert subject["epsilon"]["exact"] == "12"
    assert subject["cost"]["citation"].startswith("DPHMM 2016, Theorem 7.2")
    assert subject["queries"][0]["releases"] == 12
    assert subject["insecure_releases"] == 0


def test_replayable_bits_are_flagged(town, tmp_path, run):
    model = load_model(town / "model.npz")
    policy = load_policy(town / "radius.json", model=model)
    with open_ledger(tmp_path / "l.db") as opened:
        session = ReleaseSession(
            model,
            policy,
            model.space,
            "0.1",
            subject="sim",
            ledger=opened,
            bits=ReplayBits(1),
        )
        session.release(0)
        session.skip()
    text = run("account", tmp_path / "l.db").stdout
    assert "1 releases, 1 skips, epsilon 0.1" in text
    assert "replayable bits" in text


def test_an_unknown_subject(ledger, run):
    run("account", ledger, "--subject", "nobody", code=2)
