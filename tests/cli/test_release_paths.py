"""dphmm release --path-epsilon: what it keeps, what it says, and what it refuses in one line with nothing spent."""

from __future__ import annotations

import json
import shutil
from fractions import Fraction

import pandas as pd
import pytest

import choosing
import dphmm
from commands import edited
from dphmm import SequencePromise
from dphmm.statement.files import load_statement

pytestmark = pytest.mark.replayed_words


@pytest.fixture
def town(tmp_path):
    """A model of hourly steps and no origin that could be private, a policy, and two people over two days."""
    choosing.town(tmp_path, 9).to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path


def release(run, town, *options, code=0, out="out", rows="rows.csv", **given):
    files = ("--model", town / "model.npz", "--policy", town / "policy.json", "--ledger", town / "ledger.db")
    source = "-" if rows == "-" else town / rows
    return run("release", source, *files, "-o", town / out, *options, code=code, **given)


def test_it_is_kept_stated_and_audited(run, town):
    said = release(run, town, "--path-epsilon", "4", "--per", "1d", "--epsilon", "1", "--json")
    statement = json.loads((town / "out" / "released.csv.privacy.json").read_text())["sequence"]
    wanted = {"total": "4", "steps": None, "window": None, "per": "1d", "zone": "+00:00", "couples": "unknown"}
    assert json.loads(said.stdout)["sequence"] == statement == wanted
    sentence = (
        "Where they differ within one block of 1d alone, two neighbouring paths lose at most 4; over several blocks"
    )
    assert load_statement(town / "out" / "released.csv").promise.sentence().startswith(sentence)
    with dphmm.open_ledger(town / "ledger.db") as ledger:
        assert ledger.caps("a").promise == SequencePromise(4, per=24, passed=21) == ledger.caps("b").promise
        ledger.check()
    told = run("account", town / "ledger.db").stdout
    assert told.count("promised: Where they differ within one block of 24 steps alone") == 2
    kept = json.loads(run("account", town / "ledger.db", "--json").stdout)["subjects"][0]["promise"]
    assert (kept["total"], kept["per"], kept["passed"]) == ("4", 24, 21)
    checked = ("check-release", town / "out", "--ledger", town / "ledger.db")
    run(*checked)
    # The same file under another promise than its ledger keeps.
    path = town / "out" / "released.csv.privacy.json"
    whole = json.loads(path.read_text())
    whole["sequence"] |= {"total": "3", "couples": True}
    edited(town / "out", path.name, json.dumps(whole))
    convicted = run(*checked, code=1).stdout
    assert "wrong: couples: that the model couples is not known" in convicted
    assert "wrong: promise: the ledger keeps 'a' to passed 21, per 24, total 4" in convicted


@pytest.mark.parametrize(("promise", "broken"), [({"per": "1d"}, "2"), ({"window": 4}, "3"), ({"steps": 10}, "5")])
def test_an_audit_adds_up_what_the_rows_themselves_spent(run, town, promise, broken):
    """Three answers on each day, four in four hours, six in all: of epsilon 1 each, without a ledger at hand."""
    ((kind, length),) = promise.items()
    release(run, town, "--path-epsilon", "6", f"--{kind}", length, "--epsilon", "1", "-q")
    shutil.rmtree(town / "out.owner")
    path, whole = (
        town / "out" / "released.csv.privacy.json",
        json.loads((town / "out" / "released.csv.privacy.json").read_text()),
    )
    for total, code in ((str(int(broken) + 1), 0), (broken, 1)):
        whole["sequence"]["total"] = total
        edited(town / "out", path.name, json.dumps(whole))
        said = run("check-release", town / "out", code=code or 5).stdout
        assert (f"more than {total}" in said) == bool(code)


def test_without_an_epsilon_every_step_has_its_share(run, town):
    release(run, town, "--path-epsilon", "12", "--per", "1d", "-q")
    assert set(pd.read_csv(town / "out" / "released.csv").epsilon) == {0.5}


def test_a_share_that_is_no_decimal_can_be_audited(run, town):
    release(run, town, "--path-epsilon", "1", "--window", "3", "-q")
    public = ("--model", town / "model.npz", "--policy", town / "policy.json")
    run("check-release", town / "out")
    for bad in ("1/0", "1/-3", "1/" + "3" * 500):
        assert "--epsilon" in run("verify", *public, "--epsilon", bad, code=2).stderr
    run("read", town / "out", "--estimates", "-q")


def test_other_clocks(run, town):
    release(run, town, "--path-epsilon", "6", "--per", "1d", "--zone", "+03:00", "--epsilon", "1", "-q")
    with dphmm.open_ledger(town / "ledger.db") as ledger:
        assert ledger.caps("a").promise == SequencePromise(6, per=24)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--path-epsilon", "2", "--per", "1d", "--epsilon", "1"),
         'promise: step 3 of query "state" for subject "a" requested 1'),
        (("--path-epsilon", "2", "--window", "3", "--epsilon", "1"), "0 is left there of 2 in any 3 steps"),
        (("--path-epsilon", "9", "--steps", "8", "--epsilon", "1"), "promise: step 10 of query"),
    ],
)  # fmt: skip
def test_rows_that_would_break_it_are_refused_with_nothing_spent(run, town, options, said):
    refused = release(run, town, *options, "--model-people", "others", "-q", code=1)
    assert said in refused.stderr and refused.stderr.count("\n") == 1
    assert not (town / "out" / "released.csv").exists()
    with dphmm.open_ledger(town / "ledger.db") as ledger:
        assert ledger.sessions() == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--path-epsilon", "2"), "--path-epsilon: got nothing with it; expected exactly one of --steps T"),
        (("--path-epsilon", "2", "--steps", "3", "--per", "1d"), "--path-epsilon: got --steps and --per with it"),
        (("--epsilon", "1", "--per", "1d"), "--per: got 1d; expected --path-epsilon with it"),
        (("--epsilon", "1", "--window", "3"), "--window: got 3; expected --path-epsilon with it"),
        (("--path-epsilon", "2", "--per", "a day"), "--per: got a day; expected a number of steps, or a time"),
        (("--path-epsilon", "2", "--per", "90min"), "--per: got 90min; expected a whole number of the model's steps"),
        (("--path-epsilon", "2", "--window", "0"), "--window: got 0"),
        (("--path-epsilon", "-1", "--per", "1d"), "--path-epsilon: got -1"),
        (("--path-epsilon", "2", "--per", "1d", "--zone", "CET"), "--zone: got CET; expected an offset from UTC"),
        (("--path-epsilon", "2", "--steps", "9", "--zone", "+01:00"), "--zone: got +01:00; expected --per with it"),
        ((), "--epsilon: got nothing; expected the promise of each release; or --path-epsilon"),
    ],
)
def test_options_that_cannot_be_are_refused_in_one_line(run, town, options, said):
    refused = release(run, town, *options, code=2)
    assert said in refused.stderr and refused.stderr.count("\n") == 1
    assert not (town / "ledger.db").exists()


def test_who_resumes_is_held_to_it(run, town):
    few = pd.read_csv(town / "rows.csv").groupby("user").head(4)
    few.to_csv(town / "few.csv", index=False)
    promise = ("--path-epsilon", "4", "--window", "9")
    release(run, town, *promise, "--epsilon", "1", "-q", rows="few.csv")
    refused = release(run, town, "--epsilon", "1", code=1)
    assert "0 is left there of 4 in any 9 steps" in refused.stderr
    other = release(run, town, "--path-epsilon", "5", "--window", "9", "--epsilon", "1", code=2)
    assert "--path-epsilon: got 5 in any 9 steps; expected 4 in any 9 steps, which was promised to" in other.stderr
    second = release(run, town, "--epsilon", "1", "--query", "again", code=1, out="second")
    assert 'step 1 of query "again" for subject "a" requested 1; 0 is left' in second.stderr
    with dphmm.open_ledger(town / "ledger.db") as ledger:
        assert ledger.spent("a").epsilon == 4
        ledger.check()


def test_a_stream_says_it_and_keeps_it(run, town):
    lines = [json.dumps({"user": "a", "t": f"2024-05-06T{hour:02d}:30:00Z", "state": "4"}) for hour in range(1, 5)]
    options = ("--path-epsilon", "2", "--window", "3", "--epsilon", "1")
    stopped = release(run, town, *options, code=1, rows="-", out="stream", input="\n".join(lines) + "\n")
    assert len(stopped.stdout.splitlines()) == 2
    assert "over paths" in stopped.stderr and "0 is left there of 2 in any 3 steps" in stopped.stderr
    assert json.loads((town / "stream" / "released.jsonl.privacy.json").read_text())["sequence"]["window"] == 3
    with dphmm.open_ledger(town / "ledger.db") as ledger:
        assert ledger.spent("a").epsilon == Fraction(2)


def test_a_dry_run_says_it(run, town):
    said = release(run, town, "--path-epsilon", "12", "--per", "1d", "--dry-run")
    assert "over paths" in said.stdout and "within one block of 1d alone" in said.stdout


def test_a_cap_stays(run, town):
    few = pd.read_csv(town / "rows.csv").groupby("user").head(4)
    few.to_csv(town / "few.csv", index=False)
    release(run, town, "--epsilon", "1", "-q", rows="few.csv")
    # A run that is refused, here for another epsilon than the history's, gives nobody a cap.
    release(run, town, "--epsilon", "0.5", "--cap-epsilon", "9", code=2)
    assert "capped" not in run("account", town / "ledger.db").stdout
    release(run, town, "--epsilon", "1", "--cap-epsilon", "4", "-q", rows="few.csv")
    refused = release(run, town, "--epsilon", "1", code=1)
    assert "needs 2 for 6 rows; spent 4 of 4, nothing was released; release fewer rows" in refused.stderr
    other = release(run, town, "--epsilon", "1", "--cap-epsilon", "6", code=2)
    assert '--cap-epsilon: got 6; expected 4, the cap of "a", which stays for all of its queries\n' in other.stderr
    told = run("account", town / "ledger.db").stdout
    assert told.count("capped: no release takes the sum of epsilons of all queries above 4") == 2


def test_who_names_a_ledger_that_is_not_there_is_told(run, town):
    """A mistyped name would answer everybody once more; the first run of a job may well name a new one."""
    said = release(run, town, "--epsilon", "1")
    assert "note: new ledger ledger.db: nobody in it has an account yet" in said.stderr
    said = release(run, town, "--epsilon", "1")
    assert "new ledger" not in said.stderr


def test_a_check_reads_all_choices_from_the_statement(run, town):
    release(run, town, "--epsilon", "1/3", "-q")
    assert "nothing is wrong" in run("check-release", town / "out").stdout
    shutil.rmtree(town / "out.owner")
    assert "nothing is wrong" in run("check-release", town / "out", code=5).stdout
    (town / "out" / "released.csv.privacy.json").unlink()
    convicted = run("check-release", town / "out", code=1).stdout
    assert "no privacy statement" in convicted
    assert "wrong: folder: released.csv.privacy.json, which is missing" in convicted


def test_what_was_spent_is_never_more_than_what_there_is(run, town):
    """A promise that is never used up: three answers of 1 on each of two days, of 100 a day."""
    promise = ("--path-epsilon", "100", "--per", "1d", "--epsilon", "1")
    told = " ".join(release(run, town, *promise).stderr.split())
    assert "spent at most 6 of 100 a day for each person, by this file" in told


def test_an_event_after_the_last_answer_is_said_to_be(run, town):
    release(run, town, "--epsilon", "1", "-q")
    told = run("read", town / "out", "--event", "4", "--from", 60, "--to", 61)
    assert "the event begins after the last published step" in told.stderr
    near = run("read", town / "out" / "released.csv", "--event", "4", "--from", 2, "--to", 3)
    assert "after the last published step" not in near.stderr
