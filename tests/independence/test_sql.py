"""The ledger file does not depend on the truth: the statements run on it, their number, its rows, its bytes.

Claim: with the same answers, the statements (every value written out), their order, the rows and every byte of the
file are the same for every truth, and so is the length of the write-ahead log; with fresh answers they are the same
but for z. It would fail for a column, a row, a look-up or a retry that only some truths need.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import dphmm
from dphmm.errors import DphmmError
from dphmm.release.batch import Batch
from dphmm.session import answer
from dphmm.states.trajectory import Trajectories
from dphmm.storage.ledger import open_ledger
from independence.instances import MADE, TABLES, Instance, instance, truths_at
from independence.ledger_files import rows_of, traced, without_answers
from independence.observing import (
    COMPUTED,
    CountedBits,
    Observation,
    around_draws,
    differing,
    observe,
    overheard,
    replaced_draws,
)
from independence.planted import LEDGER_LEAKS, planted

SEEDS = (0, 2, 4, 8, 11)
ALL = [*SEEDS, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(20, 80))]


@pytest.fixture
def file_of(tmp_path: Path):
    """What a history of truths leaves in a new ledger file, and what it shows besides."""
    count, empty = iter(range(10**6)), tmp_path / "empty.db"
    open_ledger(empty).close()

    def run(case: Instance, truths, given=(), setting=None) -> Observation:
        path = shutil.copy(empty, tmp_path / f"{next(count)}.db")
        with traced(path) as (ledger, statements):
            seen = observe(case, truths, given=given, ledger=ledger, setting=setting)
            seen["log"] = path.with_name(path.name + "-wal").stat().st_size
        return seen | {"statements": statements, "rows": rows_of(path), "bytes": path.read_bytes()}

    return run


def found_in_files(file_of, case: Instance) -> set[str]:
    """Fields that depend on the truth at the first or the second step where the answers do not."""
    found: set[str] = set()
    for step in (0, 1):
        past = observe(case, next(truths_at(case, step)))["answers"]
        setting = case.setting()
        runs = [file_of(case, truths, past, setting) for truths in truths_at(case, step)]
        found |= {name for run in runs for name in differing(runs[0], run, but=("noise",))}
    return found


@pytest.mark.parametrize("seed", ALL)
def test_with_the_same_answers_the_file_is_the_same_byte_by_byte(file_of, seed):
    assert found_in_files(file_of, instance(seed)) == set()


@pytest.mark.parametrize("seed", ALL)
def test_with_fresh_answers_it_is_the_same_but_for_them(file_of, seed):
    case, setting = instance(seed), instance(seed).setting()
    runs = [file_of(case, truths[:1], (), setting) for truths in truths_at(case, 0)]
    for run in runs:
        for name in ("statements", "rows"):
            run[name] = without_answers(run[name])
    computed = (*COMPUTED, "bytes", "log")
    assert [differing(runs[0], run, but=computed) for run in runs] == [[]] * len(runs)


@pytest.fixture
def batch_of(tmp_path: Path):
    """What a batch of three users leaves in a new file when one of them is at some truth all the time."""
    count, empty = iter(range(10**6)), tmp_path / "empty.db"
    open_ledger(empty).close()

    def run(case: Instance, truth: str, given=()):
        path, drawn = shutil.copy(empty, tmp_path / f"{next(count)}.db"), []
        names = np.array([*[truth] * 3, *case.space.names[:3]], dtype=object)
        rows = Trajectories.from_labels(["ann", "ann", "ann", "bob", "bob", "eve"], state=names)
        told = ""
        with traced(path) as (ledger, statements), noted(drawn), replaced_draws(given), overheard() as heard:
            choices = case.choices
            batch = Batch(case.model, case.policy, case.space, ledger=ledger, bits=CountedBits(5), **choices)
            try:
                list(batch.run(rows))
            except DphmmError as refusal:
                told = str(refusal)
        kept = {"statements": statements, "rows": rows_of(path), "bytes": path.read_bytes()}
        return kept | heard | {"refusal": told, "drawn": drawn}

    return run


def noted(drawn: list):
    """Note the noise of every answer before anything is put in its place, and the answer itself."""

    def note(plan, states, answers):
        first = int(plan.constraint.plan.argmax())
        images = plan.image[[state if state >= 0 else first for state in states]]
        # A table adds no noise.
        table = plan.mechanism_name in (*TABLES, MADE)
        noise = len(answers) if table else (np.array(answers) - images).tolist()
        drawn.append((plan.hash, noise, answers))
        return answers

    return around_draws(note)


@pytest.mark.parametrize("seed", ALL)
def test_a_batch_leaves_the_same_file_and_the_same_noise(batch_of, seed):
    """Many at a time, where plans are public in advance, or one by one: one user's truth changes nothing of anyone."""
    case = instance(seed)
    past = [answer for _, _, answers in batch_of(case, case.space.names[0])["drawn"] for answer in answers]
    runs = [batch_of(case, truth, past) for truth in (*case.space.names, "no such place")]
    for run in runs:
        run["drawn"] = [(plan, noise) for plan, noise, _ in run["drawn"]]
    assert all(run == runs[0] for run in runs)
    assert runs[0]["drawn"] or runs[0]["refusal"]


def test_a_leak_planted_into_a_batch_is_found(batch_of, monkeypatch):
    """The check can fail: a place nowhere draws once more, so that whoever comes after gets other noise."""
    case = instance(6, constraint="support", cap_epsilon=None, cap_cost=None)
    truly = answer.answer_under

    def answer_under(plan, states, bits):
        if (states < 0).any():
            plan.mechanism.noise(1, bits)
        return truly(plan, states, bits)

    monkeypatch.setattr(answer, "answer_under", answer_under)
    runs = [batch_of(case, name)["drawn"] for name in ("place 0", "no such place")]
    assert any([noise for _, noise, _ in run] != [noise for _, noise, _ in runs[0]] for run in runs)


def test_answers_and_nothing_else_are_left_out_of_a_statement(file_of):
    case = instance(4, mechanism="discrete-knorm", cap_epsilon=None, cap_cost=None)
    run = file_of(case, next(truths_at(case, 0)))
    written = [s for s in run["statements"] if s.startswith("INSERT INTO release")]
    answers = [",".join(map(str, z)) for z in run["answers"]]
    assert len(answers) == 3
    for statement, z in zip([s for s in written if "NULL" not in s], answers, strict=True):
        (masked,) = without_answers([statement])
        assert f"'{z}'" in statement
        assert masked == statement.replace(f"'{z}'", "z", 1)


def test_a_stored_step_runs_no_statement_for_any_truth(tmp_path):
    """Asking again reads nothing and compares nothing: an answer for s5 would tell whether it was s5."""
    case = instance(4)
    with traced(tmp_path / "ledger.db") as (ledger, statements):
        session = case.session(CountedBits(1), ledger)
        first = session.release(0)
        before = len(statements)
        assert all(session.release(truth, t=1) is first for truth in case.truths)
        assert len(statements) == before


def test_a_resumed_session_runs_the_same_statements_for_every_truth(tmp_path):
    """Two steps, another process, one more step: the history says nothing about what was true in it."""
    case = instance(13, cap_epsilon=None, cap_cost=None)
    past = [(1,), (-2,), (4,)]
    runs = []
    for number, truth in enumerate(case.truths):
        path = tmp_path / f"{number}.db"
        with replaced_draws(past), traced(path) as (ledger, statements):
            session = case.session(CountedBits(1), ledger)
            for state in (truth, 0):
                session.release(state)
            parts = (case.model, case.policy, case.space)
            again = dphmm.ReleaseSession.resume(ledger, "ann", *parts, bits=CountedBits(2))
            again.release(truth)
            assert again.t == 4
        runs.append((statements, rows_of(path), path.read_bytes()))
    assert all(run == runs[0] for run in runs)


@pytest.mark.parametrize("name", LEDGER_LEAKS)
def test_a_planted_leak_is_found(file_of, name):
    """The check can fail: a query more, a row more, another cost, for some truths only."""
    plant, field = LEDGER_LEAKS[name]
    case = instance(6, constraint="delta=0.1", cap_epsilon=None, cap_cost=None)
    with planted(plant):
        assert field in found_in_files(file_of, case)


class TestSeveralQueries:
    """A second query of the same subject: partners come from the first one's plan, not from the truth."""

    def test_both_files_and_both_plans_are_the_same(self, tmp_path):
        n, edges = 5, [(1, 4), (2, 3)]
        model = dphmm.MarkovModel([1 / n] * n, [[1 / n] * n] * n)
        policy = dphmm.policy.from_edges(edges, n)
        runs = []
        for number, truths in enumerate((s, t) for s in (*range(n), -1) for t in (0, 3, "nowhere")):
            path = tmp_path / f"{number}.db"
            with replaced_draws([(1,), (2,), (3,), (4,)]), traced(path) as (ledger, statements):
                queries = [
                    dphmm.ReleaseSession(
                        model, policy, dphmm.StateSpace([[a] for a in answers]), 1,
                        subject="ann", query=f"f{k}", ledger=ledger, bits=CountedBits(3),
                    )
                    for k, answers in enumerate(((0, 1, 10, 11, 2), (0, 10, 1, 2, 11)))
                ]  # fmt: skip
                plans = []
                for truth in truths:
                    for query in queries:
                        plans.append((query.plan.hash, query.plan.joint_edges.tolist()))
                        query.release(truth)
            runs.append((plans, statements, path.read_bytes()))
        assert plans[1][1], "the second query was given partners, or this tests nothing"
        assert all(run == runs[0] for run in runs)
