"""dphmm account: totals by subject and query, each with the statement that it makes."""

from __future__ import annotations

import pytest

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
    assert "not a bound over time" in text
    assert "Theorem 7.2" in text


def test_one_subject_for_machines(ledger, run, one_json):
    told = one_json(run("account", ledger, "--subject", "u2", "--json"))
    (subject,) = told["subjects"]
    assert subject["subject"] == "u2"
    assert subject["epsilon"]["exact"] == "12"
    assert subject["cost"]["citation"].startswith("DPHMM 2016, Theorem 7.2")
    assert subject["queries"][0]["releases"] == 12
    assert subject["insecure_releases"] == 0


def test_replayable_bits_and_unbounded_costs_are_flagged(town, tmp_path, run):
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
            scope="component",
        )
        session.release(0)
        session.skip()
    text = run("account", tmp_path / "l.db").stdout
    assert "1 releases, 1 skips, epsilon 0.1" in text
    assert "replayable bits" in text


def test_nothing_is_made_where_there_is_no_ledger(tmp_path, run):
    result = run("account", tmp_path / "none.db", code=2)
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_subject(ledger, run):
    run("account", ledger, "--subject", "nobody", code=2)
