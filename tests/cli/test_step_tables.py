"""--choices and --initials: public tables of single steps and of beginnings, from release to report."""

from __future__ import annotations

import io
import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dphmm
from dphmm.session.setting import Setting, Subjects
from dphmm.storage.statement import stated_varied

pytestmark = pytest.mark.replayed_words

POINTS = np.stack(np.divmod(np.arange(9), 3), axis=1)
NEAR = np.abs(POINTS[:, None] - POINTS).max(axis=2) <= 1
CHOICES = "t,epsilon,policy\n2024-05-06T22:10Z,2,\n2024-05-06T23:00Z,1/3,wide.json\n2024-05-07T00:59Z,,wide.json\n"
INITIALS = "user,state\nb,4\n"
TABLES = ("--choices", "choices.csv", "--initials", "initials.csv")


@pytest.fixture
def town(tmp_path):
    """A model of hourly steps, two policies, two people, and public tables of steps and beginnings."""
    space = dphmm.StateSpace(POINTS)
    moves = NEAR / NEAR.sum(axis=1, keepdims=True)
    dphmm.save_model(dphmm.MarkovModel(np.full(9, 1 / 9), moves, step=3600, space=space), tmp_path / "model.npz")
    dphmm.save_policy(dphmm.policy.radius(space, 1), tmp_path / "policy.json", space)
    dphmm.save_policy(dphmm.policy.complete(9), tmp_path / "wide.json", space)
    rows = [
        (user, pd.Timestamp("2024-05-06T21:30Z") + pd.Timedelta(hours=hour), str(state))
        for user in "ab"
        for hour, state in ((0, 4), (1, 3), (2, 0), (3, 1), (4, 1), (6, 7))
    ]
    pd.DataFrame(rows, columns=["user", "t", "state"]).to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "choices.csv").write_text(CHOICES)
    (tmp_path / "initials.csv").write_text(INITIALS)
    return tmp_path


def files(town, *tables):
    return tuple(town / name if name.endswith(".csv") else name for name in tables)


def release(run, town, *options, code=0, out="out.csv", tables=TABLES, source="rows.csv", **given):
    public = ("--model", town / "model.npz", "--policy", town / "policy.json", "--ledger", town / "ledger.db")
    epsilon = () if {"--epsilon", "--path-epsilon", "--plan"} & set(options) else ("--epsilon", "1")
    target = () if source == "-" else ("-o", town / out)
    rows = source if source == "-" else town / source
    return run("release", rows, *public, *target, *epsilon, *files(town, *tables), *options, code=code, **given)


def read(run, town, command, *options, code=0, tables=TABLES):
    public = ("--model", town / "model.npz", "--policy", town / "policy.json")
    source = ("--epsilon", "1", "--released", town / "out.csv") if command == "audit" else (town / "out.csv",)
    return run(command, *source, *public, *files(town, *tables), *options, code=code)


def choices_of(town):
    hour = int(pd.Timestamp("2024-05-06T22:00Z").timestamp()) // 3600
    wide = dphmm.load_policy(town / "wide.json", dphmm.load_model(town / "model.npz").space)
    return {hour: {"epsilon": 2}, hour + 1: {"epsilon": Fraction(1, 3), "policy": wide}, hour + 2: {"policy": wide}}


def test_the_tables_are_released_stated_audited_smoothed_and_shown(run, town):
    told = json.loads(release(run, town, "--json").stdout)
    released = pd.read_csv(town / "out.csv")
    assert released.epsilon.tolist() == [1, 2, pytest.approx(1 / 3), 1, 1, 1] * 2
    statement = json.loads((town / "out.csv.privacy.json").read_text())
    assert told["varied"] == statement["varied"] and told["beginnings"] == statement["beginnings"]
    varied, hour = statement["varied"], min(choices_of(town))
    assert varied["names"] == ["epsilon", "policy"]
    assert [(one["steps"], one["epsilon"]) for one in varied["chosen"]] == [
        ([[hour, hour]], "2"),
        ([[hour + 1, hour + 1]], "1/3"),
        ([[hour + 2, hour + 2]], None),
    ]
    assert [one["policy"] and one["policy"]["kind"] for one in varied["chosen"]] == [None, "complete", "complete"]
    assert statement["beginnings"]["subjects"] == 1
    assert statement["totals"]["epsilon_sum"] == "19/3"
    meaning = " ".join(statement["promise"]["meaning"])
    assert "share an edge of the step's policy" in meaning and "at most a factor exp(E)" in meaning
    audited = read(run, town, "audit", "--ledger", town / "ledger.db", "--truth", town / "rows.csv").stdout
    assert "under 4 plans: nothing is wrong" in audited and "the worst required pair loses 2" in audited
    assert "nothing is wrong" in read(run, town, "audit").stdout
    read(run, town, "smooth", "-o", town / "smoothed.csv", "-q")
    model = dphmm.load_model(town / "model.npz")
    policy = dphmm.load_policy(town / "policy.json", model.space)
    given = {"step_choices": choices_of(town), "initials": {"b": 4}}
    smoothed = dphmm.smooth(released, model, policy, model.space, 1, **given)
    found = pd.read_csv(town / "smoothed.csv")
    assert (
        np.abs(found.smoothed_0 - smoothed.smoothed_0).max() < 1e-12
        and found.smoothed.astype(str).tolist() == smoothed.smoothed.tolist()
    )
    odds = json.loads(read(run, town, "leakage", "--event", "4", "--from", "1", "--to", "1", "--json").stdout)
    prior = {one["subject"]: one["prior"] for one in odds["subjects"]}
    # b is known to be in state 4 before its first step, from which nine states are as likely.
    assert prior["a"] == pytest.approx(NEAR[:, 4] @ (1 / 9 / NEAR.sum(axis=1))) and prior["b"] == pytest.approx(1 / 9)
    page = town / "report.html"
    read(run, town, "report", "--ledger", town / "ledger.db", "-o", page, "-q")
    assert "at most epsilon\N{NO-BREAK SPACE}2" in page.read_text()
    accounted = run("account", town / "ledger.db").stdout
    assert "the edges of a step are those of its own policy" in accounted


def test_nothing_is_read_without_the_tables_that_a_statement_tells_of(run, town):
    release(run, town, "-q")
    for tables, option in ((TABLES[2:], "--choices"), (TABLES[:2], "--initials")):
        error = f"error: {option}: got nothing, and out.csv.privacy.json tells of a table; expected the public table"
        for command, more in (
            ("audit", ()),
            ("smooth", ("-o", town / "s.csv")),
            ("leakage", ("--event", "4", "--from", "1", "--to", "1")),
            ("report", ("-o", town / "r.html")),
        ):
            assert error in read(run, town, command, *more, code=2, tables=tables).stderr
    assert not (town / "s.csv").exists() and not (town / "r.html").exists()


@pytest.mark.parametrize(
    ("name", "text", "findings"),
    [
        ("choices.csv", CHOICES.replace("22:10Z,2", "22:10Z,3"), "of what was chosen for steps otherwise"),
        ("choices.csv", CHOICES.replace("05-07T00:59Z,,wide.json", "05-07T01:59Z,,wide.json"), "whose plan is not"),
        ("initials.csv", "user,state\nb,5\n", "of who begins where otherwise"),
        ("initials.csv", "user,state\na,4\n", "the initial of the ledger is"),
    ],
)
def test_an_audit_with_other_tables_convicts(run, town, name, text, findings):
    release(run, town, "-q")
    (town / name).write_text(text)
    assert findings in read(run, town, "audit", "--ledger", town / "ledger.db", code=1).stdout
    option = "--choices" if name == "choices.csv" else "--initials"
    error = read(run, town, "smooth", "-o", town / "s.csv", code=2).stderr
    assert f"error: {option}: got another table than out.csv.privacy.json tells of" in error


def test_a_step_that_has_the_choice_of_another_is_convicted_by_ledger_and_by_times(run, town):
    release(run, town, "-q")
    (town / "out.csv.privacy.json").unlink()
    (town / "choices.csv").write_text(CHOICES.replace("05-06T22:10Z", "05-06T21:10Z"))
    for ledger in ((), ("--ledger", town / "ledger.db")):
        assert "an answer whose plan is not the one" in read(run, town, "audit", *ledger, code=1).stdout


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (lambda told: told["varied"]["chosen"][0].update(epsilon="1"), "of what was chosen for steps otherwise"),
        (lambda told: told.pop("varied"), "of what was chosen for steps otherwise"),
        (lambda told: told["beginnings"].update(subjects=2), "of who begins where otherwise"),
        (lambda told: told.pop("beginnings"), "of who begins where otherwise"),
    ],
)
def test_a_statement_that_tells_of_other_choices_is_convicted(run, town, change, finding):
    release(run, town, "-q")
    path = town / "out.csv.privacy.json"
    told = json.loads(path.read_text())
    change(told)
    path.write_text(json.dumps(told))
    assert finding in read(run, town, "audit", "--ledger", town / "ledger.db", code=1).stdout


def test_a_statement_tells_what_holds_at_every_step(run, tmp_path):
    """On a map: the shortest distance of all policies, the largest epsilon; coupling is not known of several."""
    box = ("--bbox", "0,0,0.02,0.015", "--cell", "340m", "--step", "1h", "--max-speed", "1km/h")
    run("model", "grid", *box, "-o", tmp_path / "model.npz", "-q")
    for name, covers in (("policy", "1100m"), ("wide", "680m")):
        public = (tmp_path / "model.npz", "-o", tmp_path / f"{name}.json", "--covers", covers, "-q")
        run("policy", "radius", *public)
    rows = [("a", f"2024-05-06T{hour}:00Z", "0.003", "0.004") for hour in (21, 22, 23)]
    pd.DataFrame(rows, columns=["user", "t", "lat", "lon"]).to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "choices.csv").write_text(CHOICES)
    (tmp_path / "initials.csv").write_text("user,state\na,x1y1\n")
    promise = ("--path-epsilon", "6", "--steps", "6")
    told = {}
    for number, tables in enumerate(((), ("--choices", "choices.csv"), ("--initials", "initials.csv"))):
        fresh = ("--ledger", tmp_path / f"{number}.db", "--epsilon", "1")
        said = release(run, tmp_path, *promise, *fresh, "--json", out=f"{number}.csv", tables=tables)
        told[number] = json.loads(said.stdout)
        if tables:
            path = tmp_path / f"{number}.csv.privacy.json"
            statement = json.loads(path.read_text())
            statement["sequence"]["couples"] = True
            path.write_text(json.dumps(statement))
            public = ("--model", tmp_path / "model.npz", "--policy", tmp_path / "policy.json", "--epsilon", "1")
            released = ("--released", tmp_path / f"{number}.csv")
            convicted = run("audit", *public, *released, *files(tmp_path, *tables), code=1).stdout
            assert "says sequence.couples True, and it is not known" in convicted
    covered = [one["covered_distance"]["metres"] for one in told.values()]
    assert covered[0] == covered[2] >= 1100 > covered[1] >= 680
    assert "exp(2)" in told[1]["covered_distance"]["meaning"] and "exp(1)" in told[0]["covered_distance"]["meaning"]
    assert [one["sequence"]["couples"] for one in told.values()] == [True, "unknown", "unknown"]
    assert told[1]["guaranteed"]["one_answer"]["epsilon"] == "2"
    # Answers of 1/3 each: six of them are all steps.
    assert (told[1]["published"]["most_answers"], told[1]["spent"]["most"]) == (6, "6")


def test_stored_steps_keep_what_was_chosen_for_them(run, town):
    release(run, town, "-q")
    before = (town / "out.csv").read_text()
    release(run, town, "--resume", "-q")
    assert (town / "out.csv").read_text() == before
    for text in (CHOICES.replace(",2,", ",3,"), CHOICES.replace("wide.json", "policy.json")):
        (town / "choices.csv").write_text(text)
        error = release(run, town, "--resume", code=2).stderr
        assert "error: --choices: got another choice for step" in error
    error = release(run, town, "--resume", code=2, tables=TABLES[2:]).stderr
    assert "--choices: got nothing; expected the varies of the history, epsilon,policy" in error
    (town / "choices.csv").write_text(CHOICES)
    (town / "initials.csv").write_text("user,state\nb,5\n")
    assert "--initials: got" in release(run, town, "--resume", code=2).stderr
    with dphmm.open_ledger(town / "ledger.db") as ledger:
        assert len(ledger.entries("a", "state")) == 7
        ledger.check()


def test_a_stream_has_the_tables_too(run, town):
    lines = "".join(
        json.dumps({"user": user, "t": f"2024-05-06T{hour}:10:00Z", "state": "3"}) + "\n"
        for hour in (21, 22, 23)
        for user in "ab"
    )
    said = release(run, town, "--statement", town / "told.json", source="-", input=lines).stdout
    rows = pd.read_json(io.StringIO(said), lines=True)
    assert rows.sort_values(["user", "step"]).epsilon.tolist() == [1, 2, pytest.approx(1 / 3)] * 2
    statement = json.loads((town / "told.json").read_text())
    assert statement["varied"]["names"] == ["epsilon", "policy"] and statement["beginnings"]["subjects"] == 1
    (town / "choices.csv").write_text(CHOICES.replace(",2,", ",3,"))
    late = '{"user": "a", "t": "2024-05-07T01:10:00Z", "state": "3"}\n'
    assert "--choices: got another choice" in release(run, town, "--resume", source="-", input=late, code=2).stderr


def test_a_dry_run_counts_with_the_largest_epsilon(run, town):
    said = release(run, town, "--dry-run").stdout
    assert "choices" in said and "3 steps have their own" in said
    assert "at most 12 for the subject with most rows" in " ".join(said.split())


BAD = {
    "nothing": ("choices.csv", "t\n2024-05-06T22:10Z\n", "choices.csv with the column t alone"),
    "no step": ("choices.csv", "epsilon\n2\n", "choices.csv with columns epsilon; expected step or t"),
    "both": ("choices.csv", "t,step,epsilon\n2024-05-06T22:10Z,1,2\n", "expected step or t, one of the two"),
    "private": ("choices.csv", "user,t,epsilon\na,2024-05-06T22:10Z,2\n", "choices.csv with a column 'user'"),
    "no rows": ("choices.csv", "t,epsilon\n", "choices.csv, with no rows"),
    "no time": ("choices.csv", "t,epsilon\nyesterday,2\n", "a t that is no time with a zone"),
    "no zone": ("choices.csv", "t,epsilon\n2024-05-06T22:10,2\n", "a t that is no time with a zone"),
    "no number": ("choices.csv", "step,epsilon\n1.5,2\n", "a step that is no whole number"),
    "no epsilon": ("choices.csv", "step,epsilon\n1,much\n", "epsilon of step 1: got much"),
    "negative": ("choices.csv", "step,epsilon\n1,-1\n", "epsilon of step 1: got -1"),
    "twice": ("choices.csv", "step,epsilon\n1,1\n1,2\n", "step 1 with more than one epsilon"),
    "no policy": ("choices.csv", "step,policy\n1,none.json\n", "--choices, policy of step 1: got "),
    "half a pair": ("choices.csv", "step,state\n1,4\n", "choices.csv with one of state and partner"),
    "no pair": ("choices.csv", "step,state,partner\n1,4,home\n", "step 1 with a pair that is none"),
    "two partners": ("choices.csv", "step,state,partner\n1,4,5\n1,4,3\n", "more than one partner for a state"),
    "no method": ("choices.csv", "t,protection\n2024-05-06T22:10Z,luck\n", "protection: got luck"),
    "no user": ("initials.csv", "state\n4\n", "expected a column user"),
    "other": ("initials.csv", "user,state,lat\na,4,1\n", "initials.csv with a column 'lat'"),
    "nowhere": (
        "initials.csv",
        "user,state\na,4\nb,home\n",
        "initials.csv, row 2, without a user and a state of the model",
    ),
    "two rows": ("initials.csv", "user,state\na,4\na,5\n", "with a user in two rows"),
    "too little": (
        "initials.csv",
        "user,state,probability\na,4,0.5\n",
        "probabilities of 'a' that sum to 0.5; expected a sum of 1",
    ),
    "no share": ("initials.csv", "user,state,probability\na,4,half\n", "row 1, with a probability that is none"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_table_that_is_none_is_refused_in_one_line_and_nothing_is_spent(run, town, case):
    name, text, error = BAD[case]
    (town / name).write_text(text)
    said = release(run, town, code=2, tables=TABLES[:2] if name == "choices.csv" else TABLES[2:]).stderr
    assert error in said and said.count("\n") == 1
    assert not (town / "out.csv").exists() and not (town / "ledger.db").exists()


def test_a_state_of_a_table_is_never_in_an_error(run, town):
    """Somebody may give a private table by mistake."""
    (town / "initials.csv").write_text("user,state\na,secret\n")
    said = release(run, town, code=2, tables=TABLES[2:]).stderr
    assert "row 1" in said and "secret" not in said


def test_the_private_table_is_no_public_one(run, town):
    rows = pd.read_csv(town / "rows.csv")
    rows[["user", "state"]].to_csv(town / "initials.csv", index=False)
    assert "with the rows of TRAJ" in release(run, town, code=2).stderr
    said = release(run, town, code=2, tables=("--initials", "rows.csv")).stderr
    assert "--initials: got rows.csv, which is TRAJ" in said


def test_numbers_and_times_of_parquet_are_read_as_they_stand(run, town):
    """A number that was not whole was read as an empty cell: the step then had the release's own epsilon."""
    times = pd.to_datetime(["2024-05-06T22:10Z", "2024-05-06T23:00Z", "2024-05-07T00:59Z"])
    for number, epsilon in enumerate(([0.25, 0.5, None], np.array([0.25, 0.5, np.nan], dtype=np.float32))):
        table = pd.DataFrame({"t": times, "epsilon": epsilon})
        table.to_parquet(town / "choices.parquet")
        out = f"{number}.csv"
        fresh = ("--ledger", town / f"{number}.db", "--epsilon", "1", "-q")
        release(run, town, *fresh, out=out, tables=("--choices", str(town / "choices.parquet")))
        assert pd.read_csv(town / out)["epsilon"].tolist() == [1, 0.25, 0.5, 1, 1, 1] * 2
    shares = pd.DataFrame({"user": "a", "state": [4, 5], "probability": [0.25, 0.75]})
    shares.to_parquet(town / "initials.parquet")
    fresh = ("--ledger", town / "shares.db", "--epsilon", "1", "-q")
    release(run, town, *fresh, out="shares.csv", tables=("--initials", str(town / "initials.parquet")))
    half = pd.DataFrame({"t": times, "state": [4.5, 1, 1], "partner": [4.5, 2, 2]})
    half.to_parquet(town / "choices.parquet")
    tables = ("--choices", str(town / "choices.parquet"))
    assert "--choices, state: got a number that is not whole" in release(run, town, tables=tables, code=2).stderr


def test_steps_that_count_from_1_choose_for_nobody_and_are_refused(run, town):
    """Of a model with a time step: the statement said that steps 1 and 2 had their own epsilon, and none had."""
    (town / "choices.csv").write_text("step,epsilon\n1,1/10\n2,1/10\n")
    said = release(run, town, code=2, tables=TABLES[:2]).stderr
    assert "--choices: got step 1, of a model with steps of 3600 s" in said and "since 1970" in said
    assert not (town / "ledger.db").exists()


def test_words_speak_of_the_policy_of_the_step_where_steps_have_their_own(run, town):
    """A step whose policy joins fewer states hides fewer: sentences about `policy` alone promised too much."""
    (town / "choices.csv").write_text("t,policy\n2024-05-06T22:10Z,wide.json\n")
    told = {}
    for tables in ((), TABLES[:2]):
        fresh = ("--ledger", town / f"{len(tables)}.db", "--epsilon", "1", "-q")
        release(run, town, *fresh, out=f"{len(tables)}.csv", tables=tables)
        told[bool(tables)] = json.loads((town / f"{len(tables)}.csv.privacy.json").read_text())
    for own, statement in told.items():
        policy = "the step's own policy" if own else "the policy"
        words = " ".join(statement["not_protected"])
        for due in (f"no edge of {policy} joins", f"joined by {policy} at every step"):
            assert due in words
        assert ("its own policy" in statement["totals"]["epsilon_sum_meaning"]) == own
    path = town / "2.csv.privacy.json"
    told[True]["totals"]["epsilon_sum_meaning"] = told[False]["totals"]["epsilon_sum_meaning"]
    path.write_text(json.dumps(told[True]))
    public = ("--model", town / "model.npz", "--policy", town / "policy.json", "--epsilon", "1")
    said = run("audit", *public, "--released", town / "2.csv", *files(town, *TABLES[:2]), code=1).stdout
    assert "other words than its choices promise for totals.epsilon_sum_meaning" in said


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
            position.prior.support, position.plan_set(setting.options.constraint), none, choice
        )
        logs = np.array([plan.log_likelihood(np.array([z])) for z in range(-20, 20)])
        losses[constraint] = np.abs(logs[:, 4] - logs[:, 0]).max()
        words[constraint] = stated_varied(subjects).meaning[-1]
    assert losses["support"] <= 1 + 1e-9 and words["support"].endswith("that was named for it.")
    assert losses["delta=0.2"] > 2 and "where the step plans on that state" in words["delta=0.2"]


def test_an_audit_says_where_nothing_tells_which_step_a_row_is_of(run, tmp_path):
    """Without times and ledger the choice of one step was taken for another step's, and the audit did not say so."""
    space = dphmm.StateSpace(POINTS)
    moves = NEAR / NEAR.sum(axis=1, keepdims=True)
    dphmm.save_model(dphmm.MarkovModel(np.full(9, 1 / 9), moves, space=space), tmp_path / "model.npz")
    dphmm.save_policy(dphmm.policy.radius(space, 1), tmp_path / "policy.json", space)
    (tmp_path / "rows.csv").write_text("user,step,state\na,5,1\na,6,2\na,7,5\n")
    (tmp_path / "choices.csv").write_text("step,epsilon\n6,1/3\n")
    release(run, tmp_path, "-q", tables=TABLES[:2])
    said = read(run, tmp_path, "audit", tables=TABLES[:2]).stdout
    assert "not looked at: which steps have choices of their own, of 1 users" in said
    ledger = ("--ledger", tmp_path / "ledger.db")
    assert "which steps have choices" not in read(run, tmp_path, "audit", *ledger, tables=TABLES[:2]).stdout


def test_a_schedule_has_one_epsilon(run, town):
    promise = ("--path-epsilon", "12", "--per", "1d", "--schedule", "planned")
    assert "epsilon: got 2; expected nothing beside the schedule" in release(run, town, *promise, code=2).stderr


def test_choices_count_against_a_promise_before_anything_is_drawn(run, town):
    promise = ("--path-epsilon", "6", "--steps", "9", "--epsilon", "1")
    assert "2/3 is left there of 6 over 9 steps; nothing was drawn" in release(run, town, *promise, code=1).stderr
    with dphmm.open_ledger(town / "ledger.db") as ledger:
        assert not ledger.sessions()
    release(run, town, "--path-epsilon", "19", "--steps", "9", "--epsilon", "1", "-q")


def test_shares_of_several_states_and_pairs_of_one_step(run, town):
    (town / "initials.csv").write_text("user,state,probability\nb,4,0.25\nb,5,0.75\n")
    (town / "choices.csv").write_text("t,state,partner\n2024-05-06T22:10Z,0,8\n2024-05-06T22:20Z,1,8\n")
    dphmm.save_policy(dphmm.policy.from_edges([(2, 3)], 9), town / "policy.json", dphmm.StateSpace(POINTS))
    release(run, town, "-q")
    varied = json.loads((town / "out.csv.privacy.json").read_text())["varied"]
    assert varied["names"] == ["partners"] and varied["chosen"][0]["partners"] == [["0", "8"], ["1", "8"]]
    assert "nothing is wrong" in read(run, town, "audit", "--ledger", town / "ledger.db").stdout
    assert "nothing is wrong" in read(run, town, "audit").stdout
    read(run, town, "smooth", "-o", town / "s.csv", "-q")


def test_steps_and_users_that_no_row_has_are_told_of(run, town):
    """A wrong year, and a name that is spelled in another way, would choose for nobody."""
    (town / "choices.csv").write_text(CHOICES + "2023-05-06T22:10Z,2,\n")
    (town / "initials.csv").write_text("user,state\nb,4\nB,4\n")
    said = " ".join(release(run, town).stderr.split())
    assert "--choices: 1 of its 4 steps have no row" in said and "--initials: 1 of its 2 users have no row, 'B'" in said
