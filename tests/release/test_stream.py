"""One rule for several rows of a subject in one time bin, or one step: tables and streams answer the same row.

Claims, under "last" and "first": which row is answered is what an independent reduction of pandas says; tables and
streams give the same answers from the same words; who has an answer, and when, depends on users and times alone;
a bin closes with the first line of a later one, from anybody, or with the input; a line that comes later changes
nothing; a history is not continued under the other rule, and that of a session as "last". It would fail for a rule
that takes another row, a bin that closes early, a held line that is lost or somebody else's, or a place that decides
whether there is an answer.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import dphmm
from dphmm.accounting.ledger import MemoryLedger, SessionHeader
from dphmm.audit import attack, check_release
from dphmm.errors import InvalidInput
from dphmm.release.batch import Batch, release_many
from dphmm.release.stream import BadLine, Stream, parse_line
from dphmm.statement.files import load_statement, write_statement
from dphmm.storage.released import FileSums, released_table
from dphmm.storage.tables import write_table
from dphmm.storage.trajectories import load_trajectories
from statement.told import statement_of

RULES = ["last", "first"]
STEP = 300
PAGES = dphmm.StateSpace(np.arange(9)[:, None])
ALIKE = np.full((9, 9), 1 / 9)
MODEL = dphmm.MarkovModel(ALIKE[0], ALIKE, step=STEP)
POLICY = dphmm.policy.complete(9)
DAY = pd.Timestamp("2024-05-06T08:00:00Z")
#: Noise so small that every answer is the true one: it says which row was answered.
CLEAR = 200


def batch(epsilon=CLEAR, model=MODEL, **more):
    return Batch(model, POLICY, PAGES, epsilon, bits=dphmm.ReplayBits(5), **more)


def crowd(seed, rows=60):
    """Rows of some users, several in most bins, some at the same moment; in no order within a bin."""
    rng = np.random.default_rng(seed)
    found = pd.DataFrame(
        {
            "user": rng.choice(list("abcd"), rows),
            "t": DAY + pd.to_timedelta(rng.integers(0, 5, rows) * STEP + rng.integers(0, 6, rows) * 50, unit="s"),
            "state": rng.integers(0, 9, rows).astype(str),
        }
    )
    return found.sort_values("t", key=lambda times: times.dt.floor(f"{STEP}s"), kind="stable", ignore_index=True)


def reduced(rows, rule):
    """The rows that are answered, by an independent way: user, bin and state."""
    groups = rows.assign(bin=rows["t"].dt.floor(f"{STEP}s")).sort_values("t", kind="stable").groupby(["user", "bin"])
    return [(user, time, int(state)) for (user, time), state in getattr(groups["state"], rule)().items()]


def lines_of(rows):
    for user, t, state in zip(rows["user"], rows["t"], rows["state"], strict=True):
        yield parse_line(json.dumps({"user": user, "t": t.isoformat(), "state": state}).encode(), False)


def line(user, seconds, state="4"):
    (found,) = lines_of(pd.DataFrame({"user": [user], "t": [DAY + pd.Timedelta(seconds, "s")], "state": [state]}))
    return found


def streamed(rows, stream):
    told = [released for one in lines_of(rows) for released in stream.take(one)]
    return told + list(stream.end())


def plain(told):
    """User, bin and answer of each release."""
    return [(one.user, pd.Timestamp(one.time, unit="us", tz="UTC"), int(one.release.z[0])) for one in told]


def table(rows, rule, epsilon=CLEAR, **more):
    how = {"bits": dphmm.ReplayBits(5), "progress": False, **more}
    found = release_many(rows, MODEL, POLICY, PAGES, epsilon, answer=rule, **how)
    return [(user, t, int(z)) for user, t, z in zip(found["user"], found["t"], found["z_0"], strict=True)]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(5))
def test_a_table_answers_what_pandas_says(rule, seed):
    rows = crowd(seed).sample(frac=1, random_state=seed)
    assert sorted(table(rows, rule)) == reduced(rows, rule)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(5))
def test_so_does_a_table_with_a_column_of_steps(rule, seed):
    """In time where there are times, else as the rows stand; with a model without time steps too."""
    rows = crowd(seed).sample(frac=1, random_state=seed, ignore_index=True)
    rows["step"] = (rows["t"] - pd.Timestamp(0, tz="UTC")) // pd.Timedelta(STEP, "s")
    assert sorted(table(rows, rule)) == reduced(rows, rule)
    expected = getattr(rows.groupby(["user", "step"])["state"], rule)().astype(int).tolist()
    for model in (MODEL, dphmm.MarkovModel(ALIKE[0], ALIKE)):
        more = {"bits": dphmm.ReplayBits(5), "progress": False, "answer": rule}
        found = release_many(rows.drop(columns="t"), model, POLICY, PAGES, CLEAR, **more)
        assert found.sort_values(["user", "step"])["z_0"].astype(int).tolist() == expected


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(5))
def test_a_stream_answers_the_rows_of_the_table(rule, seed):
    """A stream's first line is the first to come, so its lines come in time under "first"."""
    rows = crowd(seed) if rule == "last" else crowd(seed).sort_values("t", kind="stable")
    told = plain(streamed(rows, Stream(batch(answer=rule), False)))
    assert sorted(set(told)) == sorted(table(rows, rule))
    # Under "first" every later line of a bin gets its answer again.
    assert len(told) == (len(set(told)) if rule == "last" else len(rows))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(3))
def test_both_give_the_same_answers_from_the_same_words(rule, seed):
    """The table comes bin by bin, its users in the order of their first line: words are read in the order of rows."""
    rows = crowd(seed).sort_values("t", kind="stable", ignore_index=True)
    bits, ledger, tables = dphmm.ReplayBits(seed), MemoryLedger(), []
    for _, part in rows.groupby(rows["t"].dt.floor(f"{STEP}s")):
        tables += table(part, rule, epsilon=1, bits=bits, ledger=ledger, resume=True)
    own = Batch(MODEL, POLICY, PAGES, 1, bits=dphmm.ReplayBits(seed), answer=rule)
    told = plain(streamed(rows, Stream(own, False)))
    assert list(dict.fromkeys(told)) == tables
    assert [z for *_, z in tables] != [state for *_, state in reduced(rows, rule)]


def test_the_last_in_time_is_held_whatever_comes_after_it():
    """Of the same time the one that came last; users keep the order of their first lines."""
    stream = Stream(batch(), False)
    come = [line("b", 20, "1"), line("a", 30, "2"), line("b", 50, "3"), line("b", 40, "4"), line("a", 30, "5")]
    assert [list(stream.take(one)) for one in come] == [[]] * 5
    assert (stream.held, stream.same_step) == (2, 3)
    assert [(user, z) for user, _, z in plain(stream.end())] == [("b", 3), ("a", 5)]
    assert stream.held == 0 and list(stream.end()) == []


def test_a_bin_closes_with_the_first_line_of_a_later_one():
    stream = Stream(batch(), False)
    assert list(stream.take(line("a", 0, "1"))) == list(stream.take(line("b", STEP - 1, "2"))) == []
    assert [(user, z) for user, _, z in plain(stream.take(line("c", STEP, "3")))] == [("a", 1), ("b", 2)]
    assert [user for user, *_ in plain(stream.end())] == ["c"]


def test_what_is_held_is_one_line_for_each_user():
    stream = Stream(batch(), False)
    for number in range(600):
        assert list(stream.take(line("ab"[number % 2], number / 2 % STEP))) == []
    assert stream.held == len(stream._held) == 2


def test_a_line_of_a_closed_bin_changes_nothing():
    stream = Stream(batch(), False)
    assert list(stream.take(line("a", 0, "1"))) == []
    (first,) = stream.take(line("b", STEP, "2"))
    # Stored: the same answer again.
    (again,) = stream.take(line("a", 200, "7"))
    assert (again.user, again.release) == ("a", first.release)
    for user, reason in (("b", "before_first_step"), ("c", "bin_has_closed")):
        with pytest.raises(BadLine, match=reason):
            list(stream.take(line(user, 200, "7")))
    assert [(user, z) for user, _, z in plain(stream.end())] == [("b", 2)]
    assert "c" not in stream.sessions
    list(stream.take(line("b", 4 * STEP)))
    with pytest.raises(BadLine, match="bin_has_closed"):
        list(stream.take(line("a", 3 * STEP)))
    assert [user for user, *_ in plain(stream.end())] == ["b"]
    with pytest.raises(BadLine, match="step_has_passed"):
        list(stream.take(line("b", 2 * STEP)))


@pytest.mark.parametrize("moment", ["t", "step"])
@pytest.mark.parametrize("rule", RULES)
def test_without_a_time_step_every_moment_is_answered_at_once_and_once(rule, moment):
    """Whatever state a line has that comes again; and one that comes late gets no answer."""

    def of(at, state):
        return line("a", at, state) if moment == "t" else replace(line("a", 0, state), time=None, step=at)

    stream = Stream(batch(model=dphmm.MarkovModel(ALIKE[0], ALIKE), answer=rule), False)
    lines = [of(10, "1"), of(10, "2"), of(30, "3"), of(10, "4")]
    told = [released for one in lines for released in stream.take(one)]
    apart = 2 if moment == "t" else 21
    assert [(one.release.t, int(one.release.z[0])) for one in told] == [(1, 1), (1, 1), (apart, 3), (1, 1)]
    with pytest.raises(BadLine, match="step_has_passed"):
        list(stream.take(of(20, "5")))


@pytest.mark.parametrize("rule", RULES)
def test_who_has_an_answer_and_when_depends_on_users_and_times_alone(rule):
    """Whatever the states are, known or not, each line makes the same answers due."""
    rows, seen = crowd(7, 25), set()
    for states in (
        ["0"] * 25,
        [str(number % 9) for number in range(25)],
        ["nowhere"] * 25,
        ["8", "nobody"] * 12 + ["0"],
    ):
        stream = Stream(batch(answer=rule), False)
        due = [[told[:2] for told in plain(stream.take(one))] for one in lines_of(rows.assign(state=states))]
        seen.add(str([*due, [told[:2] for told in plain(stream.end())]]))
    assert len(seen) == 1


@pytest.mark.parametrize("rule", RULES)
def test_a_name_that_no_state_has_is_a_row_like_any_other(rule):
    """Also as the last of its bin: the line before it is not answered instead, in a table or in a stream."""
    rows = pd.DataFrame({"user": ["a"] * 3, "t": DAY + pd.to_timedelta([10, 20, 30], unit="s")})
    for states in itertools.permutations(["6", "3", "nowhere"]):
        rows["state"] = states
        # An unknown name is answered as the state with the lowest number.
        answered = {"last": states[-1], "first": states[0]}[rule].replace("nowhere", "0")
        told = plain(streamed(rows, Stream(batch(answer=rule), False)))
        assert {z for *_, z in told} == {int(answered)} == {z for *_, z in table(rows, rule, check=False)}


@pytest.mark.parametrize("other", RULES)
@pytest.mark.parametrize("way", ["table", "stream", "session"])
def test_a_history_is_not_continued_under_the_other_rule(way, other):
    rule = RULES[1 - RULES.index(other)]
    ledger, rows = MemoryLedger(), crowd(3)
    table(rows[:30], rule, ledger=ledger)
    assert ledger.header("a", "state").options["answer"] == rule
    later = rows.assign(t=rows["t"] + pd.Timedelta("1h"))
    refused = pytest.raises(InvalidInput, match=rf"answer: got {other}; expected the answer of the history, {rule}$")
    if way == "table":
        with refused:
            table(later, other, ledger=ledger, resume=True)
        table(later, rule, ledger=ledger, resume=True)
    elif way == "stream":
        with refused:
            streamed(later, Stream(batch(ledger=ledger, answer=other), True))
        assert streamed(later, Stream(batch(ledger=ledger, answer=rule), True))
    else:
        # A session is given one state a step.
        session = dphmm.ReleaseSession.resume(ledger, "a", MODEL, POLICY, PAGES, bits=dphmm.ReplayBits(1))
        assert session.setting.answer == rule
        session.release(3)


def without_rule(ledger):
    """The same ledger without a rule, as sessions write it."""
    for key, header in ledger._headers.items():
        options = {name: value for name, value in header.options.items() if name != "answer"}
        ledger._headers[key] = SessionHeader(*key, options)


@pytest.mark.parametrize("go_on", ["table", "stream"])
def test_a_history_that_begins_at_no_number_is_refused(go_on):
    ledger = MemoryLedger()
    public = (MODEL, POLICY, PAGES, CLEAR)
    dphmm.ReleaseSession(*public, subject="a", ledger=ledger, origin="monday", bits=dphmm.ReplayBits(1)).release(3)
    with pytest.raises(InvalidInput, match="got a history whose step 1 is 'monday'"):
        {"table": table_on, "stream": stream_on}[go_on](crowd(3).query("user == 'a'"), "last", ledger, MODEL)


@pytest.mark.parametrize("model", [MODEL, dphmm.MarkovModel(ALIKE[0], ALIKE)], ids=["bins", "steps"])
def test_the_history_of_a_session_is_continued_as_last(model):
    """It is given one state a step, and has no rule; it is not continued under both."""
    later = crowd(3).query("user == 'a'").assign(t=lambda rows: rows["t"] + pd.Timedelta("1h"))
    for go_on, rule in itertools.product((table_on, stream_on), RULES):
        ledger = MemoryLedger()
        origin = str(int(DAY.timestamp()) // STEP) if model.step else "0"
        public = (model, POLICY, PAGES, CLEAR)
        dphmm.ReleaseSession(*public, subject="a", ledger=ledger, origin=origin, bits=dphmm.ReplayBits(1)).release(3)
        if rule == "last":
            assert len(go_on(later, rule, ledger, model)) > 0
            assert "answer" not in ledger.header("a", "state").options
        else:
            with pytest.raises(InvalidInput, match=r"answer: got first; expected the answer of the history, last$"):
                go_on(later, rule, ledger, model)


def table_on(rows, rule, ledger, model):
    rows = rows if model.step else rows.drop(columns="t").assign(step=np.arange(len(rows)) + 1)
    more = {"bits": dphmm.ReplayBits(5), "progress": False, "ledger": ledger, "resume": True, "answer": rule}
    return release_many(rows, model, POLICY, PAGES, CLEAR, **more)


def stream_on(rows, rule, ledger, model):
    stream = Stream(batch(model=model, ledger=ledger, answer=rule), True)
    if model.step:
        return streamed(rows, stream)
    counted = (replace(one, time=None, step=number + 1) for number, one in enumerate(lines_of(rows)))
    return [released for one in counted for released in stream.take(one)]


@pytest.mark.parametrize("rule", RULES)
def test_the_true_row_of_an_audit_is_that_of_the_release(rule, tmp_path):
    """By the ledger, or by the statement; of a file that says neither it is the last."""
    rows, ledger = crowd(3), MemoryLedger()
    owner = batch(ledger=ledger, answer=rule)
    releases = [told for chunk in owner.run(load_trajectories(rows, space=PAGES).trajectories) for told in chunk]
    path, public = tmp_path / "released.parquet", (MODEL, POLICY, PAGES, CLEAR)
    write_table(path, released_table(releases, PAGES))
    told = {"model": MODEL, "policy": POLICY, "space": PAGES, "options": owner.setting.options, "answer": owner.answer}
    write_statement(path, statement_of(FileSums(releases), **told, model_people="others"))
    assert load_statement(path).answer == rule

    def misses(**known):
        (guess,) = attack(path, rows, *public, adversaries=["memoryless"], **known).measured
        return guess.overall()["expected_error"] > 1e-6

    def found():
        return list(check_release(path, *public, ledger=ledger).findings)

    other = RULES[1 - RULES.index(rule)]
    assert not misses() and not misses(ledger=ledger) and not misses(answer=rule) and misses(answer=other)
    assert found() == []
    write_statement(path, statement_of(FileSums(releases), **{**told, "answer": other}, model_people="others"))
    (wrong,) = found()
    assert f"sessions have other choices than the stated: answer {rule}" in wrong
    assert misses() and not misses(ledger=ledger)
    without_rule(ledger)
    write_statement(path, statement_of(FileSums(releases), **{**told, "answer": None}, model_people="others"))
    assert misses(ledger=ledger) is (rule == "first")
    assert found() == []


def test_two_queries_about_a_step_answer_the_same_row():
    ledger, rows = MemoryLedger(), crowd(3)
    table(rows, "last", ledger=ledger)
    with pytest.raises(
        InvalidInput, match="answer: got first; expected last, because the subject has the query 'state'"
    ):
        table(rows, "first", ledger=ledger, query="other")
    assert table(rows, "last", ledger=ledger, query="other")


@pytest.mark.parametrize("rule", ["latest", "", None, 1])
def test_another_rule_is_refused(rule):
    with pytest.raises(InvalidInput, match=r"answer: got .*; expected one of last, first"):
        batch(answer=rule)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(3))
def test_spellings_of_a_name_are_one_user(rule, seed):
    """Lines under several spellings are answered as the same lines under the first one, in every bin."""
    rows = crowd(seed)
    spellings = [str, str.upper, " {}\u00a0".format, "\u200b{}".format]
    drawn = np.random.default_rng(seed).integers(len(spellings), size=len(rows))
    spelt = rows.assign(user=[spellings[k](user) for k, user in zip(drawn.tolist(), rows["user"], strict=True)])
    first = dict(zip(reversed(rows["user"].tolist()), reversed(spelt["user"].tolist()), strict=True))
    expected = plain(streamed(rows, Stream(batch(answer=rule), False)))
    found = plain(streamed(spelt, Stream(batch(answer=rule), False)))
    assert found == [(first[user], *answer) for user, *answer in expected]
    exact = Stream(batch(answer=rule, ledger=MemoryLedger("exact")), False)
    assert {user for user, _, _ in plain(streamed(spelt, exact))} == set(spelt["user"])


def test_a_line_of_a_name_without_a_key_has_no_answer():
    stream = Stream(batch(), False)
    with pytest.raises(BadLine, match="invalid_user"):
        list(stream.take(line("a\u0378", 0)))
    assert plain(streamed(crowd(1).head(1), stream))
