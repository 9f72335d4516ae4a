"""Choices for single steps and beginnings of users: what is stated of them, and what an audit finds otherwise."""

from __future__ import annotations

import json
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import choosing
import dphmm
from dphmm.errors import InvalidInput
from dphmm.session.setting import Setting, Subjects
from dphmm.setup.publishing import PublicSide
from dphmm.statement.files import load_statement
from dphmm.statement.release import Varied
from dphmm.storage.release_folder import ReleaseFolder

pytestmark = pytest.mark.replayed_words

INITIALS = {"b": 4}


@pytest.fixture
def town(tmp_path):
    """A model of hourly steps, two policies and two people."""
    choosing.town(tmp_path, 6).to_csv(tmp_path / "walks.csv", index=False)
    dphmm.storage.save_policy(dphmm.policy.complete(9), tmp_path / "wide.json", choosing.public(tmp_path)[2])
    return tmp_path


def chosen(town, first="22:10", epsilon=2, last="2024-05-07T00:59Z"):
    wide = choosing.public(town, "wide.json")[1]
    times = {
        f"2024-05-06T{first}Z": {"epsilon": epsilon},
        "2024-05-06T23:00Z": {"epsilon": Fraction(1, 3), "policy": wide},
        last: {"policy": wide},
    }
    return choosing.steps_of(town, times)


def given(town, **changes):
    return {"step_choices": chosen(town), "initials": INITIALS} | changes


def statement_of(folder, out="out.csv"):
    return json.loads((folder / f"{out}.privacy.json").read_text())


def edit(folder, change, out="out.csv"):
    told = statement_of(folder, out)
    change(told)
    (folder / f"{out}.privacy.json").write_text(json.dumps(told))


def found(town, ledger="ledger.db", out="out.csv", **choices):
    return " ".join(choosing.audit(town, out, ledger=ledger, **choices).findings)


def test_choices_are_released_stated_audited_and_shown(town):
    released = choosing.release(town, "out.csv", **given(town))
    assert released.epsilon.tolist() == [1, 2, pytest.approx(1 / 3), 1, 1, 1] * 2
    statement, hour = statement_of(town), min(chosen(town))
    assert statement["varied"]["names"] == ["epsilon", "policy"]
    assert [(one["steps"], one["epsilon"]) for one in statement["varied"]["chosen"]] == [
        ([[hour, hour]], "2"),
        ([[hour + 1, hour + 1]], "1/3"),
        ([[hour + 2, hour + 2]], None),
    ]
    assert statement["beginnings"]["subjects"] == 1 and statement["totals"]["epsilon_sum"] == "19/3"
    for ledger in ("ledger.db", None):
        assert found(town, ledger, **given(town)) == ""
    model, policy, _ = choosing.public(town)
    report = dphmm.report.read_report(town / "out.csv", model, policy, progress=False, **given(town))
    page = dphmm.report.write_report(town / "report.html", report).read_text()
    assert "initials=INITIALS)" in page
    with pytest.raises(InvalidInput, match="step_choices"):
        dphmm.report.read_report(town / "out.csv", model, policy, progress=False, initials=INITIALS)
    with pytest.raises(InvalidInput, match="initials"):
        dphmm.report.read_report(town / "out.csv", model, policy, progress=False, step_choices=chosen(town))


@pytest.mark.parametrize("which", [{"step_choices"}, {"initials"}])
def test_commands_read_no_release_with_choices(town, which):
    """Only a program can make such a folder, of a table and a statement that it wrote itself."""
    from click.testing import CliRunner

    from dphmm.cli.app import app

    place = ReleaseFolder(town / "out")
    place.create()
    PublicSide(*choosing.public(town)).save(place)
    choosing.release(town, "out/released.csv", **{name: value for name, value in given(town).items() if name in which})
    place.keep(["released.csv", "released.csv.privacy.json"])
    for command in (
        ("report", town / "out", "--truth", town / "walks.csv"),
        ("read", town / "out", "--estimates", "-o", town / "s.csv"),
        ("read", town / "out", "--event", "4", "--from", "1", "--to", "1"),
        ("report", town / "out", "-o", town / "r.html"),
    ):
        refused = CliRunner().invoke(app, [str(word) for word in command])
        assert refused.exit_code == 2 and "functions of dphmm in Python take its step_choices" in refused.stderr
        assert f"whose statement has {'varied' if 'step_choices' in which else 'beginnings'}; " in refused.stderr
    assert not (town / "s.csv").exists() and not (town / "r.html").exists() and list(place.owner.iterdir()) == []


def test_an_audit_with_other_choices_convicts(town):
    choosing.release(town, "out.csv", **given(town))
    for changed, finding in (
        ({"step_choices": chosen(town, epsilon=3)}, "varied is"),
        ({"step_choices": chosen(town, last="2024-05-07T01:59Z")}, "whose plan is not"),
        ({"initials": {"b": 5}}, "beginnings is"),
        ({"initials": {"a": 4}}, "beginnings is"),
    ):
        assert finding in found(town, **given(town, **changed))


def test_a_step_that_has_the_choice_of_another_is_convicted_by_ledger_and_by_times(town):
    choosing.release(town, "out.csv", **given(town))
    (town / "out.csv.privacy.json").unlink()
    for ledger in (None, "ledger.db"):
        moved = given(town, step_choices=chosen(town, first="21:10"))
        assert "an answer whose plan is not the one" in found(town, ledger, **moved)


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (lambda told: told["varied"]["chosen"][0].update(epsilon="1"), "varied is"),
        (lambda told: told.pop("varied"), "varied is"),
        (lambda told: told["beginnings"].update(subjects=2), "beginnings is"),
        (lambda told: told.pop("beginnings"), "beginnings is"),
    ],
)
def test_a_statement_that_tells_of_other_choices_is_convicted(town, change, finding):
    choosing.release(town, "out.csv", **given(town))
    edit(town, change)
    assert finding in found(town, **given(town))


def test_a_statement_tells_what_holds_at_every_step(run, tmp_path):
    """On a map: the shortest distance of all policies, the largest epsilon; coupling is not known of several."""
    box = ("--bbox", "0,0,0.02,0.015", "--cell", "340m", "--step", "1h", "--max-speed", "1km/h")
    run("model", "grid", *box, "-o", tmp_path / "model.npz", "-q")
    for name, covers in (("policy", "1100m"), ("wide", "680m")):
        run("policy", "radius", tmp_path / "model.npz", "-o", tmp_path / f"{name}.json", "--covers", covers, "-q")
    rows = [("a", f"2024-05-06T{hour}:00Z", "0.003", "0.004") for hour in (21, 22, 23)]
    pd.DataFrame(rows, columns=["user", "t", "lat", "lon"]).to_csv(tmp_path / "walks.csv", index=False)
    begins = {"a": int(choosing.public(tmp_path)[2].indices_of(["x1y1"])[0])}
    promise, told = dphmm.SequencePromise(6, steps=6), []
    for number, choices in enumerate(({}, {"step_choices": chosen(tmp_path)}, {"initials": begins})):
        names = {"out": f"{number}.csv", "ledger": f"{number}.db"}
        choosing.release(tmp_path, **names, promise=promise, **choices)
        told.append(statement_of(tmp_path, f"{number}.csv"))
        if choices:
            edit(tmp_path, lambda statement: statement["sequence"].update(couples=True), f"{number}.csv")
            assert "that the model couples is not known" in found(tmp_path, None, f"{number}.csv", **choices)
    covered = [one["covered_distance"]["metres"] for one in told]
    assert covered[0] == covered[2] >= 1100 > covered[1] >= 680
    assert [one["sequence"]["couples"] for one in told] == [True, "unknown", "unknown"]


def test_stored_steps_keep_what_was_chosen_for_them(town):
    choosing.release(town, "out.csv", **given(town))
    before = (town / "out.csv").read_text()
    choosing.release(town, "out.csv", resume=True, **given(town))
    assert (town / "out.csv").read_text() == before
    for changed, refusal in (
        ({"step_choices": chosen(town, epsilon=3)}, "step_choices: got another choice for step"),
        ({"step_choices": None}, "varies: got nothing; expected"),
        ({"initials": {"b": 5}}, "initial"),
    ):
        with pytest.raises(InvalidInput, match=refusal):
            choosing.release(town, "out.csv", resume=True, **given(town, **changed))
    with dphmm.open_ledger(town / "ledger.db") as ledger:
        assert len(ledger.entries("a", "state")) == 7
        ledger.check()


def test_words_speak_of_the_policy_of_the_step_where_steps_have_their_own(town):
    """A step whose policy joins fewer states hides fewer: sentences about `policy` alone promised too much."""
    wide = choosing.public(town, "wide.json")[1]
    choices = {"step_choices": choosing.steps_of(town, {"2024-05-06T22:10Z": {"policy": wide}})}
    choosing.release(town, "plain.csv", ledger="plain.db")
    choosing.release(town, "own.csv", ledger="own.db", **choices)
    told = {own: load_statement(town / f"{name}.csv") for own, name in ((False, "plain"), (True, "own"))}
    for own, statement in told.items():
        words = " ".join(statement.hides_not)
        policy = "the step's own policy" if own else "the policy"
        assert f"no edge of {policy} joins" in words
        assert ("its own policy" in statement.totals.sentence("epsilon_sum", statement)) == own


def test_on_a_delta_set_a_named_partner_is_not_promised_where_the_step_does_not_plan_on_the_state():
    """A state outside the set is answered as its surrogate: it can be told from the partner that was named for it."""
    space = dphmm.StateSpace(np.arange(5)[:, None])
    model = dphmm.MarkovModel([0.225, 0.225, 0.225, 0.225, 0.1], np.eye(5), start="at")
    policy = dphmm.policy.from_edges([(0, 1), (1, 2), (2, 3)], 5)
    words, losses = {}, {}
    for constraint in ("support", "delta=0.2"):
        setting = Setting.of(model, policy, space, 1, constraint=constraint, varies=("partners",))
        subjects = Subjects(setting, step_choices={1: {"partners": {4: 0}}})
        choice, position = subjects.chosen[1], setting.first()
        none = np.zeros((0, 2), dtype=np.int64)
        plan = setting.under(choice).planner.plan(
            position.prior.support, position.constrain(setting.options.constraint), none, choice
        )
        logs = np.array([plan.log_likelihood(np.array([z])) for z in range(-20, 20)])
        losses[constraint] = np.abs(logs[:, 4] - logs[:, 0]).max()
        words[constraint] = Varied.of(subjects).said(whole=SimpleNamespace(constraint=constraint))[-1]
    assert losses["support"] <= 1 + 1e-9 and words["support"].endswith("that was named for it.")
    assert losses["delta=0.2"] > 2 and "where the step plans on that state" in words["delta=0.2"]


def test_an_audit_says_where_nothing_tells_which_step_a_row_is_of(tmp_path):
    """Without times and ledger the choice of one step was taken for another step's, and the audit did not say so."""
    choosing.town(tmp_path, 6, step=None)
    (tmp_path / "walks.csv").write_text("user,step,state\na,5,1\na,6,2\na,7,5\n")
    choices = {"step_choices": {6: {"epsilon": Fraction(1, 3)}}}
    choosing.release(tmp_path, "out.csv", **choices)
    said = "which rows are of the chosen steps"
    assert said in " ".join(choosing.audit(tmp_path, "out.csv", ledger=None, **choices).lines)
    assert said not in " ".join(choosing.audit(tmp_path, "out.csv", **choices).lines)


def test_shares_of_several_states_and_pairs_of_one_step(town):
    space = dphmm.StateSpace(choosing.POINTS)
    dphmm.storage.save_policy(dphmm.policy.from_edges([(2, 3)], 9), town / "policy.json", space)
    shares = np.zeros(9)
    shares[[4, 5]] = 0.25, 0.75
    pairs = choosing.steps_of(town, {"2024-05-06T22:10Z": {"partners": {"0": "8", "1": "8"}}})
    choices = {"step_choices": pairs, "initials": {"b": shares}}
    choosing.release(town, "out.csv", **choices)
    varied = statement_of(town)["varied"]
    assert varied["names"] == ["partners"] and varied["chosen"][0]["partners"] == [["0", "8"], ["1", "8"]]
    for ledger in ("ledger.db", None):
        assert found(town, ledger, **choices) == ""
