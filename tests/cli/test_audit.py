"""`dphmm audit`: exit 0 for what keeps its promise, 1 for what does not, 2 with one line for what cannot be judged.

Fails where a right release is convicted, a tampered one is not, the truth shows in anything but the owner's lines, or
an option is taken without what it needs.
"""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(scope="module")
def released(town, tmp_path_factory, run, release_of):
    """A released town: released.csv, its statement and ledger.db."""
    out = tmp_path_factory.mktemp("audited")
    run(*release_of(town, out))
    return out


@pytest.fixture
def public(town):
    return ("audit", "--model", town / "model.npz", "--policy", town / "radius.json", "--epsilon", "1")


def test_the_plans_of_the_first_steps(run, public):
    result = run(*public, "--steps", 20)
    assert "keeps its promise" in result.stdout and "required pairs" in result.stdout
    assert result.stdout.startswith("step 1:\nplan ")


def test_a_finished_release(run, public, released, one_json):
    arguments = (*public, "--released", released / "released.csv", "--ledger", released / "ledger.db")
    assert "nothing is wrong" in run(*arguments).stdout
    document = one_json(run(*arguments, "--json"))
    assert document["convicted"] is False and document["released"]["rows"] == 36
    assert document["released"]["findings"] == [] and document["released"]["notes"] == []
    without = one_json(run(*public, "--released", released / "released.csv", "--json"))
    assert any("ledger" in note for note in without["released"]["notes"])


def test_a_tampered_release_is_exit_1(run, public, released, tmp_path):
    text = (released / "released.csv").read_text().splitlines()
    cells = text[4].split(",")
    cells[3] = str(float(cells[3]) + 1000)
    bad = tmp_path / "released.csv"
    bad.write_text("\n".join([*text[:4], ",".join(cells), *text[5:]]) + "\n")
    result = run(*public, "--released", bad, "--ledger", released / "ledger.db", code=1)
    assert "CONVICTED" in result.stdout and "is not the one in the ledger" in result.stdout


def test_another_option_is_exit_1(run, public, released):
    arguments = (*public, "--released", released / "released.csv", "--ledger", released / "ledger.db")
    assert "the constraint of the ledger" in run(*arguments, "--constraint", "delta=0.05", code=1).stdout


def test_attacks_need_the_truth(run, public, released, town, one_json):
    arguments = (*public, "--released", released / "released.csv")
    assert "owner alone" not in run(*arguments).stdout
    shown = run(*arguments, "--truth", town / "walks.csv").stdout
    assert "owner alone" in shown and "smoother" in shown
    document = one_json(run(*arguments, "--truth", town / "walks.csv", "--json"))
    assert 0 < document["attacks"]["tracker"]["overall"]["probability"] < 1


def test_the_sampler(run, public, one_json):
    document = one_json(run(*public, "--draws", 20_000, "--json"))
    assert document["sampler"]["decided"] and not document["sampler"]["convicted"]
    assert "undecided, needs n =" in run(*public, "--draws", 100).stdout


def test_files_of_samples(run, tmp_path):
    rng = np.random.default_rng(1)
    for name, centre in (("a", 0), ("b", 4)):
        np.save(tmp_path / f"{name}.npy", np.rint(centre + rng.laplace(0, 2, 30_000)))
    samples = ("audit", "--samples", tmp_path / "a.npy", tmp_path / "b.npy", "--epsilon")
    assert "CONVICTED" in run(*samples, "1", code=1).stdout
    assert "no loss above epsilon 2 was found" in run(*samples, "2").stdout


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ((), "--model, --policy"),
        (("--released", "r.csv"), "--released"),
        (("--truth", "t.csv"), "--truth"),
        (("--draws", "5"), "--draws"),
        (("--model", "nothing.npz"), "--policy"),
        (("--samples", "a.npy", "b.npy"), "a.npy"),
    ],
)
def test_what_goes_together(run, more, words):
    result = run("audit", "--epsilon", "1", *more, code=2)
    assert words in result.stderr and result.stderr.count("\n") == 1


def test_bad_input_is_one_line(run, public, released, town, tmp_path):
    cases = [
        (("--ledger", "l.db"), "--released"),
        (("--released", town / "walks.csv"), "released"),
        (("--released", released / "released.csv", "--ledger", "missing.db"), "existing ledger"),
        (("--released", released / "released.csv", "--truth", town / "people.csv"), "truth"),
        (("--steps", "0"), "steps"),
        (("--draws", "-3"), "--draws: got -3; expected a number of draws, 1 or more"),
        (("--alpha", "5"), "--alpha: got 5.0; expected a probability above 0 and below 1"),
    ]
    for more, words in cases:
        result = run(*public, *more, code=2)
        assert words in result.stderr and result.stderr.count("\n") == 1
    assert not (tmp_path / "missing.db").exists()


def test_a_bug_in_the_planner_is_exit_1(run, public, monkeypatch):
    from dphmm.mechanisms import DiscreteKNorm
    from dphmm.session import planner

    monkeypatch.setattr(planner, "mechanism_for", lambda hull, epsilon, chosen: DiscreteKNorm(hull, 2 * epsilon))
    assert "CONVICTED" in run(*public, code=1).stdout
