"""Files of one query that follow each other: estimates of a later one tell of the answers of an earlier one, too.

Claims: the statement of such a file tells from how many answers of other files its estimates follow, and totals count
them: by exact enumeration no two paths are told apart by more than the total, and some by more than the file's own
answers spend. A file that shows all steps has no such member, also where a run was continued. Page, audit and the
program that shares no code hold estimates against the answers wherever these are there, and convict one that does not
follow; where they are in other files, nothing is told of what is found, and the ledger gives it back.
"""

from __future__ import annotations

import csv
import hashlib
import itertools
import json
import math
import shutil
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import dphmm
from commands import run, walk_rows, write_rows
from dphmm.accounting import MemoryLedger
from dphmm.batch import Batch
from dphmm.report.assembling import outcome_table
from dphmm.session.plan import LABEL, estimate
from dphmm.session.setting import Setting
from dphmm.statement.origin import Whom
from dphmm.states.trajectory import Trajectories
from dphmm.storage.released import Published
from dphmm.stream import Stream, StreamStatement, parse_line

PROGRAM = Path(__file__).resolve().parents[1] / "verify_release.py"
MEMBER = "earlier_answers"

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("few_invented_people"), pytest.mark.replayed_words]


def labels():
    """Three labels, a chain with a start of its own, and all of them joined."""
    space = dphmm.StateSpace.categories(["a", "b", "c"])
    transition = [[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]]
    return dphmm.MarkovModel([0.5, 0.3, 0.2], transition, space=space), dphmm.policy.complete(3), space


def made(ledger, **choices):
    model, policy, space = labels()
    return Batch(model, policy, space, 1, ledger=ledger, bits=dphmm.ReplayBits(4), **choices)


def rows(steps, *users):
    """Rows of users, of ann where none is named, at these steps."""
    users = users or ("ann",)
    names = [user for user in users for _ in steps]
    return Trajectories.from_labels(names, step=np.array(list(steps) * len(users)), state=["a"] * len(names))


def released_by(batch, frame, resume):
    published = Published()
    for chunk in batch.run(frame, resume=resume):
        published.add(chunk)
    return batch.statement(published)


def told(statement):
    return statement.published.earlier_answers or 0, Fraction(statement.totals.epsilon_sum)


@pytest.mark.parametrize(
    ("later", "earlier", "total"),
    [
        ([3, 4], 2, 4),
        ([1, 2, 3], 0, 3),
        ([1, 3], 1, 3),
        ([2], 1, 2),
        ([6], 2, 3),
    ],
    ids=["the next days", "all again, and one more", "one left out", "stored before", "after a gap"],
)
def test_a_statement_tells_of_the_answers_of_other_files(later, earlier, total):
    ledger = MemoryLedger()
    assert told(released_by(made(ledger), rows([1, 2]), False)) == (0, 2)
    assert told(released_by(made(ledger), rows(later), True)) == (earlier, total)
    assert told(released_by(made(ledger), rows([1], "bob", "cid"), True)) == (0, 1), "of nobody else"


def test_without_estimates_nothing_tells_of_other_files():
    ledger = MemoryLedger()
    released_by(made(ledger, estimates=False), rows([1, 2]), False)
    assert told(released_by(made(ledger, estimates=False), rows([3]), True)) == (0, 1)


def test_a_stream_that_goes_on_tells_of_the_answers_before(tmp_path):
    ledger, found = MemoryLedger(), []
    for resume in (False, True):
        batch = made(ledger)
        stream, statement = Stream(batch, resume), StreamStatement(batch)
        for line in (b'{"user": "ann", "state": "b"}', b'{"user": "ann", "state": "a"}'):
            for answer in stream.take(parse_line(line, False)):
                statement.add(answer, "{}")
        statement.save(tmp_path / "s.privacy.json", Whom.of("others", "owner"))
        found.append(json.loads((tmp_path / "s.privacy.json").read_text()))
    assert MEMBER not in found[0]["published"] and found[1]["published"][MEMBER] == 2
    assert [each["totals"]["epsilon_sum"] for each in found] == ["2", "4"]
    assert "of the earlier answers" in found[1]["totals"]["of"] and "of the earlier" not in found[0]["totals"]["of"]


def laws_of_the_second_file():
    """P(answer 2, confidence, likeliest label | path) of every path of two steps; the file has step 2 alone."""
    model, policy, space = labels()
    setting = Setting.of(model, policy, space, 1, query="state", answer="last")
    first = setting.first()
    plan = setting.plan(first)
    law = outcome_table(plan, space.dimension)
    found = {path: {} for path in itertools.product(range(3), repeat=2)}
    for one, two in itertools.product(range(3), repeat=2):
        second = first.predict(model, first.posterior(plan, np.array([one])))
        later = setting.plan(second)
        guess = estimate(second.posterior(later, np.array([two])), space.own_answers, LABEL)
        seen = two, round(float(guess.answer[0]), 12), guess.state
        for path, outcomes in found.items():
            chance = law[path[0], one] * outcome_table(later, space.dimension)[path[1], two]
            outcomes[seen] = outcomes.get(seen, 0.0) + chance
    return found


def test_the_total_bounds_what_a_later_file_tells_of_two_paths():
    """And the epsilon of its own answer does not, which the total was before earlier answers were counted."""
    found = laws_of_the_second_file()
    most = max(
        math.log(found[a][seen] / found[b][seen]) for a, b in itertools.permutations(found, 2) for seen in found[a]
    )
    ledger = MemoryLedger()
    released_by(made(ledger), rows([1]), False)
    statement = released_by(made(ledger), rows([2]), True)
    own, total = 1, float(statement.totals.epsilon_sum)
    assert own + 0.1 < most <= total + 1e-9
    assert total == 2


# -- page, audit and the program of its own -----------------------------------------------------------------------


def folder_of(tmp_path, **choices):
    """Two hours of walks released into two files, by one ledger."""
    write_rows(tmp_path / "people.csv", ["user", "t", "lat", "lon"], walk_rows([f"p{i}" for i in range(12)], 24, 3))
    header, every = ["user", "t", "lat", "lon"], walk_rows(["u1", "u2"], 8, 7)
    write_rows(tmp_path / "first.csv", header, [row for row in every if row[1] < "2024-05-06T08:20"])
    write_rows(tmp_path / "second.csv", header, [row for row in every if row[1] >= "2024-05-06T08:20"])
    write_rows(tmp_path / "both.csv", header, every)
    bbox = ("--bbox", "10.0,50.0,10.056,50.036")
    run("fit", tmp_path / "people.csv", "-o", tmp_path / "model.npz", "--grid", "1km", *bbox, "--step", "5min")
    run("policy", "radius", tmp_path / "model.npz", "-o", tmp_path / "policy.json", "--radius", "1.5km")
    for name, more in (("first", ()), ("second", ("--resume",)), ("both", ("--resume",))):
        release(tmp_path, name, *more, **choices)
    return tmp_path


def public(folder):
    return ("--model", folder / "model.npz", "--policy", folder / "policy.json")


def release(folder, name, *more, constraint="support"):
    given = ("-o", folder / f"{name}.out.csv", "--ledger", folder / "ledger.db", "--constraint", constraint)
    run("release", folder / f"{name}.csv", *public(folder), "--epsilon", 1, *given, *more)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, replayed_noise):
    return folder_of(tmp_path_factory.mktemp("two"))


@pytest.fixture(scope="module")
def replayed_noise():
    """The same noise every time."""
    from crafted_bits import keyed_system_bits

    with pytest.MonkeyPatch.context() as patch:
        bits = keyed_system_bits(5)
        patch.setattr("dphmm.samplers.entropy._process_bits", lambda: bits)
        yield


def statement_of(folder, name):
    return json.loads((folder / f"{name}.out.csv.privacy.json").read_text())


def doctored(folder, into, name, members=(), cells=None):
    """A copy of a file and its statement, with other members, and cells of a row changed by ``cells(rows)``."""
    shutil.copytree(folder, into, dirs_exist_ok=True)
    path, beside = into / f"{name}.out.csv", into / f"{name}.out.csv.privacy.json"
    told = json.loads(beside.read_text())
    for place, value in dict(members).items():
        part, last = place.split(".")
        if value is None:
            told[part].pop(last)
        else:
            told[part][last] = value
    if cells is not None:
        with path.open(newline="") as file:
            reader = csv.DictReader(file)
            found, names = list(reader), reader.fieldnames
        cells(found)
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, names, lineterminator="\n")
            writer.writeheader()
            writer.writerows(found)
        told["file"]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    beside.write_text(json.dumps(told))
    return into


def forged(rows_of):
    """The last estimate of the first user is the other one's."""
    one, other = ([row for row in rows_of if row["user"] == user][-1] for user in ("u1", "u2"))
    one.update({name: value for name, value in other.items() if name.startswith("estimate")})


def reported(folder, name, *more, code=0):
    return run("report", folder / f"{name}.out.csv", *public(folder), "-o", folder / "page.html", "--json", *more,
               "--force", code=code)  # fmt: skip


def audited(folder, name, *more, code=0):
    return run("check-release", folder / f"{name}.out.csv", *public(folder), *more, code=code)


def verified(program, capsys, folder, name, honest=None):
    """With the plans of the same file, or of an honest one: an audit of the other one convicts it."""
    honest = honest or folder
    shutil.rmtree(honest / "plain", ignore_errors=True)
    run("check-release", honest / f"{name}.out.csv", *public(honest), "--plain", honest / "plain", code=5)
    given = (folder / f"{name}.out.csv", *public(folder), "--plans", honest / "plain/plans.json")
    code = program.main([str(argument) for argument in given])
    return code, capsys.readouterr().out


def test_the_second_file_says_so_and_a_file_of_both_does_not(folder):
    second, both = statement_of(folder, "second"), statement_of(folder, "both")
    assert second["published"][MEMBER] == 8 and second["totals"]["epsilon_sum"] == "8"
    assert MEMBER not in both["published"] and both["totals"]["epsilon_sum"] == "8"


def test_the_page_tells_nothing_of_what_is_found_until_the_ledger_is_there(folder):
    alone = json.loads(reported(folder, "second").stdout)
    said = (folder / "page.html").read_text()
    assert alone["still_found"] is None and alone["spent"]["epsilon_sum"] == "8"
    assert "follow from these answers and from 8 earlier answers of other files" in said
    assert 'Give <span class="option">--ledger</span>' in said
    with_it = json.loads(reported(folder, "second", "--ledger", folder / "ledger.db").stdout)
    of_both = json.loads(reported(folder, "both").stdout)
    assert with_it["still_found"]["error"] > 0 and of_both["still_found"]["error"] > 0


def test_audits_do_not_convict_the_second_file(folder, program, capsys):
    alone = audited(folder, "second", code=5).stdout
    assert "nothing is wrong" in alone and "the estimates of 2 people follow from answers of other files" in alone
    assert "not looked at: sum of costs: stated" in alone
    with_it = audited(folder, "second", "--ledger", folder / "ledger.db").stdout
    assert "nothing is wrong" in with_it and "other files, too" not in with_it
    code, said = verified(program, capsys, folder, "second")
    assert code == 5 and "those of 2 people follow from answers of other files" in said
    assert "estimates: they follow from the answers" not in said, "nobody's were looked at"


@pytest.mark.parametrize("name", ["first", "both"])
def test_an_estimate_that_does_not_follow_is_refused(name, folder, tmp_path, program, capsys):
    """Numbers beside the answers could be of the truth; a claim of other files does not excuse them."""
    into = doctored(folder, tmp_path, name, cells=forged)
    assert "an estimate that does not follow from the answers, of" in reported(into, name, code=2).stderr
    assert "an estimate that does not follow from the answers" in audited(into, name, code=1).stdout
    code, said = verified(program, capsys, into, name, folder)
    assert code == 1 and "they do not follow" in said
    # No step is left out, so no other file can have answers between.
    excused = doctored(folder, tmp_path / "excused", name, {f"published.{MEMBER}": 3}, forged)
    assert f"published.{MEMBER}" in reported(excused, name, code=2).stderr
    assert "room for 0 between the rows" in audited(excused, name, code=1).stdout
    code, said = verified(program, capsys, excused, name, folder)
    assert code == 1 and "room for 0 between the rows" in said


def test_with_the_ledger_a_forged_estimate_of_a_second_file_is_convicted(folder, tmp_path):
    into = doctored(folder, tmp_path, "second", cells=forged)
    ledger = ("--ledger", into / "ledger.db")
    assert "an estimate that does not follow from the answers, of" in reported(into, "second", *ledger, code=2).stderr
    assert "an estimate that does not follow from the answers" in audited(into, "second", *ledger, code=1).stdout


@pytest.mark.parametrize(
    ("members", "wrong"),
    [
        ({f"published.{MEMBER}": None}, "does not follow from the answers"),
        ({f"published.{MEMBER}": None, "totals.epsilon_sum": "4"}, "does not follow from the answers"),
        ({"totals.epsilon_sum": "3"}, "totals.epsilon_sum"),
        ({f"published.{MEMBER}": 9}, f"published.{MEMBER}"),
    ],
    ids=["not told", "not told, and a total without", "a total below the file's own", "more than are left out"],
)
def test_a_statement_that_hides_other_files_is_refused(members, wrong, folder, tmp_path):
    into = doctored(folder, tmp_path, "second", members)
    told = reported(into, "second", code=2).stderr
    assert wrong in told or "totals.epsilon_sum" in told
    audited(into, "second", code=1)
    audited(into, "second", "--ledger", into / "ledger.db", code=1)


def test_on_delta_sets_the_plans_need_the_ledger(tmp_path, replayed_noise):
    folder = folder_of(tmp_path, constraint="delta=0.2")
    assert statement_of(folder, "second")["published"][MEMBER] == 8
    assert "plans that follow from 8 answers of other files" in reported(folder, "second", code=2).stderr
    reported(folder, "second", "--ledger", folder / "ledger.db")
    said = audited(folder, "second", code=5).stdout
    assert "nothing is wrong" in said and "the plans and estimates of 2 people" in said
    assert "nothing is wrong" in audited(folder, "second", "--ledger", folder / "ledger.db").stdout
