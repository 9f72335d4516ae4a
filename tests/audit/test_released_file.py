"""The lines of a stream are audited as they were printed: right ones are acquitted, each tampering is convicted.

Claims: interleaved subjects, steps asked for again and gaps are no fault; a changed answer, a line that the ledger does
not hold, a member too many, a time that is not the step's, and a statement of other lines are; other spaces and digits
are not looked at, and never acquitted; what is no answer, or is answered in two ways, is refused by its line, without a
word of it. It would fail for a reader that believes a line.
"""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest

import dphmm
from audit.small import MODEL, POLICY, SPACE
from crafted_bits import keyed_system_bits
from dphmm.audit import check_release
from dphmm.errors import InvalidInput
from dphmm.release.batch import Batch, ReleasedRow
from dphmm.release.stream import Stream, answered_line
from dphmm.statement.files import save_statement
from dphmm.storage.released import FileSums

GRID = dphmm.Grid(10.0, 50.0, 10.056, 50.036, 1000)
_N = GRID.n_states
TIMED = dphmm.MarkovModel(np.full(_N, 1 / _N), np.full((_N, _N), 1 / _N), step=300)
ORDER = ["a", "b", "a", "c", "b", "a", "a", "c"]


class Streamed:
    """Some lines as a stream prints them, their ledger and statement, and what they were made under."""

    def __init__(self, folder, *, timed=False, **options):
        space = GRID if timed else SPACE
        self.public = (TIMED if timed else MODEL, dphmm.policy.radius(GRID, 1500) if timed else POLICY, space, 1)
        self.options, self.path = options, folder / "answers.jsonl"
        self.ledger = dphmm.open_ledger(folder / "ledger.db")
        batch = Batch(*self.public, ledger=self.ledger, bits=keyed_system_bits(3), **options)
        stream, rng = Stream(batch, False), np.random.default_rng(2)
        self.lines, published = [], FileSums()
        sessions = {user: batch.session(user, origin="5716608" if timed else "0") for user in sorted(set(ORDER))}
        for number, user in enumerate(ORDER):
            if number == 5:
                sessions[user].skip(3)
            step = sessions[user].t
            told = ReleasedRow(
                user,
                (5716608 + step - 1) * 300 * 10**6 if timed else None,
                sessions[user].release(int(rng.integers(6))),
            )
            published.add([told])
            self.lines.append(answered_line(told, stream.batch.setting.space) + "\n")
        # The first step of b is asked for again.
        self.lines.append(self.lines[1])
        self.statement = batch.statement(published, "others")
        self.state()

    def state(self):
        """Writes the lines and their statement."""
        self.path.write_text("".join(self.lines))
        digest = hashlib.sha256(self.path.read_bytes()).hexdigest()
        save_statement(self.path.with_name("answers.jsonl.privacy.json"), self.statement, "-", digest)

    def check(self, ledger=True, **more):
        ledger = self.ledger if ledger else None
        return check_release(self.path, *self.public[:3], ledger=ledger, **more)

    def changed(self, number, **members):
        """The verdict after one line has other members; its statement says the new hash."""
        told = {**json.loads(self.lines[number]), **members}
        self.lines[number] = json.dumps({name: value for name, value in told.items() if value is not ...}) + "\n"
        self.state()
        return self.check()


@pytest.fixture
def streamed(tmp_path):
    return Streamed(tmp_path)


@pytest.fixture
def timed(tmp_path):
    return Streamed(tmp_path, timed=True)


@pytest.mark.parametrize("options", [{}, {"constraint": "delta=0.2"}, {"timed": True}], ids=str)
def test_right_lines_are_acquitted(tmp_path, options):
    one = Streamed(tmp_path, **options)
    verdict = one.check()
    assert verdict.findings == () and not verdict.convicted
    assert (verdict.rows, verdict.users) == (8, 3)
    assert verdict.notes == () and verdict.code == 0
    alone = one.check(ledger=False)
    assert alone.code == 5 and any(note.startswith("ledger: no ledger") for note in alone.notes)


def test_lines_have_the_form_of_the_first(tmp_path):
    """Two runs in one file, or members that were taken out of one line, are refused by the number of the line."""
    (tmp_path / "timed").mkdir()
    whole, timed = Streamed(tmp_path), Streamed(tmp_path / "timed", timed=True)
    for first, other in ((whole, timed), (timed, whole)):
        kept = first.lines[3]
        first.lines[3] = other.lines[3]
        first.state()
        with pytest.raises(InvalidInput, match="got other members in line 4 than in the first"):
            first.check()
        first.lines[3] = kept


@pytest.mark.parametrize(
    ("number", "members", "words"),
    [
        (2, {"z_0": 77.0}, "ledger: not those of"),
        (2, {"z_0": 1.5}, "answers: not on the lattice"),
        (2, {"plan": "0" * 64}, "ledger: not those of"),
        (7, {"step": 44}, "ledger: not those of"),
        (7, {"user": "zed"}, "ledger: not those of"),
        (2, {"cost": 0.0}, "losses: they are others"),
    ],
)
def test_a_changed_line_is_convicted(streamed, number, members, words):
    assert not streamed.check().convicted
    verdict = streamed.changed(number, **members)
    assert any(finding.startswith(words) for finding in verdict.findings), verdict.findings


def test_a_member_that_no_answer_has_is_convicted_in_all_lines_and_refused_in_one(streamed):
    streamed.lines = [json.dumps({**json.loads(line), "speed": 3}) + "\n" for line in streamed.lines]
    streamed.state()
    assert any("columns that no release has: speed" in finding for finding in streamed.check().findings)
    streamed.lines[0] = json.dumps({**json.loads(streamed.lines[0]), "mood": 3}) + "\n"
    streamed.state()
    with pytest.raises(InvalidInput, match="other members in line 2"):
        streamed.check()


def test_a_step_that_is_answered_twice_and_not_alike_is_refused(streamed):
    with pytest.raises(InvalidInput, match="another answer to a step"):
        streamed.changed(8, z_0=77.0)


def test_spaces_digits_and_orders_are_not_looked_at(streamed):
    """They can say something, and a file whose values are right is no proof that they do."""
    right = list(streamed.lines)
    for other in (
        right[2].replace(", ", ","),
        right[2].replace('"a"', '"\\u0061"'),
        right[2].replace("\n", "\r\n"),
        right[2].replace('"epsilon": 1.0', '"epsilon": 1'),
    ):
        streamed.lines = [*right[:2], other, *right[3:]]
        streamed.state()
        assert other != right[2]
        verdict = streamed.check()
        assert verdict.code == 5 and any(note.startswith("bytes: ") for note in verdict.notes), (other, verdict.lines)
    streamed.lines = [*right[:2], right[2].replace('"epsilon": 1.0', '"epsilon": 1.00'), *right[3:]]
    streamed.state()
    assert any("rows: in another spelling: epsilon" in finding for finding in streamed.check().findings)


def test_a_time_that_is_not_the_step_s_is_convicted(timed):
    verdict = timed.changed(2, t="2024-05-06T08:05:07Z")
    assert any(finding.startswith("times: other ones") for finding in verdict.findings)


def test_a_line_without_a_time_is_refused(timed):
    with pytest.raises(InvalidInput, match="other members in line 3"):
        timed.changed(2, t=...)


def test_a_statement_of_other_lines_is_convicted(streamed):
    streamed.path.write_text("".join(streamed.lines[:-1]))
    assert any("file.sha256" in finding for finding in streamed.check().findings)


def test_a_statement_that_lies_elsewhere(streamed, tmp_path):
    beside = streamed.path.with_name("answers.jsonl.privacy.json")
    elsewhere = beside.rename(tmp_path / "said.json")
    assert any("no privacy statement" in note for note in streamed.check().notes)
    assert streamed.check(statement=elsewhere).code == 0
    elsewhere.write_text(elsewhere.read_text().replace('"rows": 8', '"rows": 9'))
    assert any("published.rows" in finding for finding in streamed.check(statement=elsewhere).findings)


SECRET = "CANARY_7f3a"
NOT_ANSWERS = {
    "cut short": '{"user": "a", "st',
    "not an object": "[1, 2]",
    "empty": "",
    "a member twice": '{"user": "a", "user": "b"}',
    "NaN": '{"user": "a", "z_0": NaN}',
    "too deep": "[" * 50_000,
    "a number too long": '{"user": "a", "step": ' + "9" * 5000 + "}",
    "a member missing": json.dumps({"user": "a", "step": 1, "z_0": 1.0, SECRET: 1}),
}


@pytest.mark.parametrize("name", NOT_ANSWERS)
def test_what_is_no_answer_is_refused_by_its_line(streamed, name):
    streamed.path.write_text("".join(streamed.lines[:3]) + NOT_ANSWERS[name] + "\n")
    with pytest.raises(InvalidInput, match="line 4") as refused:
        streamed.check()
    assert "\n" not in str(refused.value) and SECRET not in str(refused.value) and len(str(refused.value)) < 300


@pytest.mark.parametrize(
    "members",
    [
        {"user": 3}, {"user": ""}, {"user": "\ud800"}, {"user": "a" * 70_000}, {"plan": 7}, {"z_0": ["x"]},
        {"step": 0}, {"step": 1.0}, {"step": True}, {"step": 2**63}, {"z_0": "1"}, {"z_0": None}, {"z_0": True},
        {"z_0": 10**400}, {"epsilon": {}}, {"cost": "inf"}, {"cost": None}, {"cost": 1e308},
    ],
    ids=lambda members: str(members)[:40],
)  # fmt: skip
def test_members_of_another_kind_are_refused_or_convicted(streamed, members):
    """Or at least not looked at; all of it in lines of a length that a terminal has."""
    try:
        verdict = streamed.changed(2, **members)
    except InvalidInput as refused:
        assert "\n" not in str(refused) and len(str(refused)) < 400
    else:
        assert verdict.code in (1, 5) and all(len(line) < 500 for line in verdict.lines)


@pytest.mark.parametrize("t", [7, "2024-05-06T08:00:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-23:00", None])
def test_times_of_another_kind_are_refused_or_convicted(timed, t):
    try:
        verdict = timed.changed(2, t=t)
    except InvalidInput as refused:
        assert "\n" not in str(refused) and len(str(refused)) < 400
    else:
        assert verdict.code in (1, 5)


def test_infinities_in_digits_are_refused(streamed):
    streamed.lines[2] = streamed.lines[2].replace('"z_0": ', '"z_0": 1e999, "x": ')
    streamed.state()
    with pytest.raises(InvalidInput, match="line 3"):
        streamed.check()


def test_another_name_says_which_names_there_are(streamed):
    other = streamed.path.rename(streamed.path.with_name("answers.txt"))
    with pytest.raises(InvalidInput, match=r"\.csv"):
        check_release(other, *streamed.public[:3])
    assert not check_release(other.rename(other.with_name("answers.ndjson")), *streamed.public[:3]).convicted


def test_no_lines_are_no_release(streamed):
    streamed.path.write_text("")
    with pytest.raises(InvalidInput, match="released"):
        streamed.check()
