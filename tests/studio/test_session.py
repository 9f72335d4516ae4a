"""The states of a session, and that nothing of a row leaves the commands that read rows.

Claims: a stale version changes and tells nothing; a change gives up the plans of the last setting, whose figures never
appear afterwards; nothing is released before final figures, a check and an agreement that counts once; the release is
that of `dphmm run` (the second command finds every stage as it was), whose model, policy and plan are those of the
page; one that was killed goes on; a canary in every text of a table, and in a row that cannot be read, is in no answer
and on no stream; a ledger in use, and files that were there before, are refused.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
import time
from dataclasses import replace

import msgspec
import pytest

import dphmm
from commands import walk_rows, write_rows
from dphmm.errors import InvalidInput
from dphmm.storage.models import load_model
from dphmm.studio.draft import ReleaseFile
from dphmm.studio.session import _COARSE, Checked, Run, Stale
from studio.conftest import AREA, GRID, settled

replaced = msgspec.structs.replace


def test_a_change_leads_from_an_open_setting_to_final_figures(studio):
    one = studio(replaced(GRID, box=None))
    assert one.progressed().state == "open" and "a box" in one.shown().missing and one.shown().map.columns == 0
    shown = one.change(1, GRID)
    assert (shown.version, shown.missing, shown.problem) == (2, "", "") and shown.map.columns == 5
    told = settled(one, "planned")
    assert len(told.budget.worth.rows) == told.budget.total and told.budget.people == 4
    assert one.look(2, 3, 0).number == 3 and all(svg.startswith("<svg") for svg in told.budget.pictures.values())
    refused = one.change(2, replaced(GRID, covers="a mile"))
    assert "covers" in refused.problem and one.progressed().state == "open" and one.progressed().budget is None
    with pytest.raises(InvalidInput):
        one.look(3, 0, 0)


def test_a_stale_version_changes_nothing(studio):
    one = studio()
    one.change(1, replaced(GRID, covers="2km"))
    for request in (
        lambda: one.change(1, GRID), lambda: one.look(1, 0, 0), lambda: one.save(1),
        lambda: one.check(1), lambda: one.ask(1), lambda: one.release(1, "x"), lambda: one.read(1, one.shown().text),
        lambda: one.demo(1), lambda: one.companion(1, "release.toml"),
    ):  # fmt: skip
        with pytest.raises(Stale):
            request()
    assert one.shown().version == 2 and one.shown().draft.covers == "2km"


def test_a_change_gives_up_the_plans_of_the_last_setting(studio, monkeypatch):
    """The first plan waits in its first step until the setting has changed."""
    reached, free, before = threading.Event(), threading.Event(), []
    budgets = dphmm.studio.session.Figures.budgets

    def waits(seen, people, progress):
        def told(done, total):
            if seen.draft.budget == "2":
                reached.set()
                free.wait(300)
            progress(done, total)

        if seen.draft.budget == "4":
            before.append(one.progressed().budget)
        yield from budgets(seen, people, told)

    monkeypatch.setattr("dphmm.studio.session.Figures.budgets", waits)
    one = studio()
    assert reached.wait(300)
    one.change(1, replaced(GRID, budget="4"))
    free.set()
    told = settled(one, "planned")
    assert [row.total for row in told.budget.worth.rows if row.own] == ["4"] and told.version == 2
    assert before[0] is None


def test_which_table_is_read_stays(studio):
    one = studio()
    shown = one.change(1, replaced(GRID, data={"file": "/etc/passwd", "user-column": "who"}))
    assert shown.draft.data == {"file": "walks.csv", "user-column": "who"}


def test_files_are_saved_and_read_back(studio, tmp_path):
    one = studio(replaced(GRID, areas=(AREA,)))
    assert one.save(1) == ["release-areas.geojson", "release.toml"]
    for name in one.save(1):
        assert (tmp_path / name).read_text() == one.companion(1, name)
    text = (tmp_path / "release.toml").read_text()
    assert one.read(1, text).draft == one.file.draft and one.shown().version == 2
    with pytest.raises(InvalidInput, match=r"release\.toml"):
        one.companion(2, "walks.csv")


def test_a_file_that_was_there_before_is_kept(studio, tmp_path):
    (tmp_path / "release.toml").write_text("mine")
    one = studio()
    with pytest.raises(InvalidInput, match="there before"):
        one.save(1)
    assert (tmp_path / "release.toml").read_text() == "mine"
    assert studio(owned=True).save(1) == ["release.toml"]


def test_nothing_is_released_before_figures_a_check_and_an_agreement(studio, monkeypatch):
    one = studio()
    begun = []
    monkeypatch.setattr("dphmm.studio.session.subprocess.Popen", lambda *words, **rest: begun.append(words))
    settled(one, "planned")
    with pytest.raises(InvalidInput, match="owner's check"):
        one.ask(1)
    with pytest.raises(InvalidInput, match="agrees"):
        one.release(1, "")
    figures = dict.fromkeys(_COARSE, None) | {"people": 3}
    one._checked = Checked(figures, {}, 0, 1, False)
    with pytest.raises(InvalidInput, match="stops"):
        one.ask(1)
    one._checked = Checked(figures, {}, 0, 0, False)
    with pytest.raises(InvalidInput, match="agrees"):
        one.release(1, one.ask(1).word + "x")
    assert not begun and "up to 2 in 8 steps of each of 3 people" in one.ask(1).sentence


def test_what_is_not_advised_is_released_only_with_an_epsilon(studio):
    one = studio()
    told = settled(one, "planned").budget
    against = [replace(row, against=["it tells where somebody is"]) for row in told.worth.rows]
    one._budget = replaced(told, worth=replace(told.worth, rows=against))
    one._checked = Checked(dict.fromkeys(_COARSE, None) | {"people": 3}, {}, 0, 0, False)
    with pytest.raises(InvalidInput, match="not advised: it tells where somebody is"):
        one.ask(1)
    one.file = ReleaseFile(replaced(GRID, epsilon="1"))
    assert one.ask(1).word


def test_the_demo_has_a_table_of_its_own(studio, tmp_path, monkeypatch):
    monkeypatch.setattr("dphmm.studio.session.DEMO_PEOPLE", 2)
    monkeypatch.setattr("dphmm.studio.session.DEMO_DAYS", 1)
    monkeypatch.setattr("dphmm.studio.session.Studio._plans", lambda *rest: None)
    one = studio(replaced(GRID, box=None, data={}))
    assert not one.shown().table
    shown = one.demo(1)
    assert shown.has_table and shown.table and shown.map.columns == 20 and not shown.problem
    assert (tmp_path / "studio-demo" / "people.parquet").exists() and one.save(2)


CANARY = "kanarienvogel"


class Child:
    """A process that has ended."""

    def __init__(self, said, code, printed=""):
        self.stderr, self.stdout, self.returncode = iter(said), io.StringIO(printed), code

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


@pytest.mark.parametrize(
    "stages", [["data"], ["model"], ["release"], ["report"], []], ids=lambda named: "".join(named) or "none"
)
def test_the_error_of_a_stage_that_reads_rows_is_not_told(studio, stages):
    """Also before any: where data and model are as they were, the rows are looked at first."""
    one = studio()
    one._run = Run([], [])
    said = [f"{stage}: dphmm {stage}\n" for stage in stages]
    one._follow(Child([*said, f"{CANARY} did not stop\n", f"error: {CANARY}: no time\n"], 2))
    told = one.progressed()
    assert CANARY not in str(told) and "dphmm run release.toml" in told.run.line and told.run.stages == stages


@pytest.mark.parametrize("said", [["data: dphmm import\n", "policy: dphmm policy\n"], ["plan: dphmm plan\n"]])
def test_the_error_of_public_files_is_told(studio, said):
    one = studio()
    one._run = Run([], [])
    one._follow(Child([*said, "error: [policy] covers: got a mile\n"], 2))
    assert one.progressed().run.line == "error: [policy] covers: got a mile" and one.progressed().state == "failed"


@pytest.mark.parametrize(("code", "line"), [(1, "refused"), (4, "another dphmm command"), (137, "stopped")])
def test_an_exit_code_is_told_in_words(studio, code, line):
    one = studio()
    one._run = Run([], [])
    one._follow(Child(["release: dphmm release\n", *["error: x\n"] * (code < 100)], code))
    assert one.progressed().run.line.startswith(line)


def finished(one, seconds=420):
    last = time.monotonic() + seconds
    while one.progressed().state == "running":
        assert time.monotonic() < last, "the release takes too long"
        time.sleep(0.1)
    return one.progressed()


@pytest.mark.slow
@pytest.mark.replayed_words
class TestReleases:
    """Commands in processes of their own."""

    def test_a_release_is_that_of_dphmm_run_and_nothing_of_a_row_is_told(self, studio, tmp_path, capfd):
        """People, an unused column, a place off the map and a row that cannot be read all have the canary."""
        rows = [[*row, f"{CANARY}-note"] for row in walk_rows((f"{CANARY}-1", f"{CANARY}-2", f"{CANARY}-3"))]
        rows.append([f"{CANARY}-1", f"{CANARY} o'clock", "50.01", "10.01", ""])
        rows.append([f"{CANARY.upper()}-1", "2024-05-06T11:00:00Z", "50.01", "10.01", ""])
        write_rows(tmp_path / "walks.csv", ["user", "t", "lat", "lon", "note"], rows)
        one = studio(replaced(GRID, areas=(AREA,), data={"file": "walks.csv", "spelling": "exact"}))
        settled(one, "planned")
        plan, setup = one._plan, one._seen.setup
        checked = one.check(1)
        assert (checked.figures["people"], checked.rejected, checked.stops) == (4, 1, 0)
        asked = one.ask(1)
        told = [one.shown(), checked, asked, one.release(1, asked.word)]
        with pytest.raises(InvalidInput, match="while people are released"):
            one.change(1, GRID)
        told.append(finished(one))
        assert (told[-1].state, told[-1].run.line) == ("released", "done, but rows were set aside")
        assert told[-1].run.stages == ["data", "model", "policy", "plan", "release", "report"] == told[-1].run.all
        assert "</html>" in one.report and f"{CANARY}-note" not in one.report
        streams = capfd.readouterr()
        for text in (*map(str, map(msgspec.json.encode, told)), streams.out, streams.err, one.shown().text):
            assert CANARY not in text.lower()
        out = dphmm.open(tmp_path / "out")
        assert load_model(tmp_path / "out" / "model.npz").digest == setup.model.digest
        assert out.policy.digest == setup.policy.digest
        # The same schedule: errors of 4 invented people and of 100 differ.
        assert out.plan.schedule.promise == plan.schedule.promise
        ended = subprocess.run(
            [sys.executable, "-m", "dphmm", "run", "release.toml", "--json"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert set(json.loads(ended.stdout)["stages"].values()) == {"as it was"}

    def test_final_figures_are_the_plan_that_is_released(self, studio, tmp_path, monkeypatch):
        monkeypatch.setattr("dphmm.studio.session.FINAL", 100)
        monkeypatch.setattr("dphmm.choose.planning.STAYERS", 300)
        one = studio()
        settled(one, "planned")
        one.check(1)
        one.release(1, one.ask(1).word)
        assert finished(one).state == "released"
        released = dphmm.open(tmp_path / "out").plan
        assert released.schedule == one._plan.schedule
        assert released.expected_error == pytest.approx(one._plan.expected_error, rel=1e-9)

    def test_one_that_was_killed_goes_on(self, studio, tmp_path):
        one = studio()
        settled(one, "planned")
        one.check(1)
        one.release(1, one.ask(1).word)
        while "plan" not in one.progressed().run.stages:
            assert one.progressed().state == "running"
            time.sleep(0.02)
        one._child.kill()
        told = finished(one)
        assert told.state == "failed" and "goes on where this stopped" in told.run.line
        one.release(1, one.ask(1).word)
        assert finished(one).state == "released"
        assert dphmm.open(tmp_path / "out").statement.published.subjects == 3

    def test_a_ledger_in_use_is_refused_and_nothing_is_spent(self, studio, tmp_path):
        from dphmm.storage.ledger import open_ledger

        one = studio()
        settled(one, "planned")
        one.check(1)
        with open_ledger(tmp_path / "ledger.db") as ledger, ledger.lease("commands"):
            one.release(1, one.ask(1).word)
            told = finished(one)
        assert (told.state, told.run.line) == (
            "failed",
            "another dphmm command uses the ledger or the folder: wait for its end",
        )

    def test_a_table_that_cannot_be_checked_is_refused_without_a_word_of_it(self, studio, tmp_path):
        write_rows(tmp_path / "walks.csv", [CANARY, "t", "lat", "lon"], walk_rows())
        one = studio()
        with pytest.raises(InvalidInput) as refused:
            one.check(1)
        assert CANARY not in str(refused.value) and "dphmm check" in str(refused.value)


def test_a_file_without_a_table_is_not_checked(studio):
    one = studio(replaced(GRID, data={}))
    with pytest.raises(InvalidInput, match="dphmm studio people"):
        one.check(1)
    assert ReleaseFile(GRID).folder == "out"
