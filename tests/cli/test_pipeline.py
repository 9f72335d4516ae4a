"""dphmm run: a pipeline runs once, goes on where it stopped, and asks nobody anew by itself.

It would fail for a stage that runs again without a reason or not for a changed input, a release with new noise for
answered rows or for another policy, an option that is passed over in silence, and a hash of a private file that
others may read.
"""

from __future__ import annotations

import json
import shutil

import pytest

import dphmm
from commands import PIPELINE, typed, walk_rows, write_rows
from dphmm.cli.pipeline import RECORD, Pipeline
from dphmm.storage.inputs import file_digest
from dphmm.storage.ledger import open_ledger
from dphmm.storage.ledger.connection import held
from dphmm.storage.models import load_model
from dphmm.storage.tables import read_table

pytestmark = pytest.mark.replayed_words


@pytest.fixture
def folder(tmp_path):
    write_rows(tmp_path / "walks.csv", ["user", "t", "lat", "lon"], walk_rows())
    (tmp_path / "release.toml").write_text(PIPELINE)
    return tmp_path


def stages(result):
    return json.loads(result.stdout)["stages"]


def test_a_pipeline_runs_once_and_again_where_something_changed(run, folder):
    first = stages(run("run", folder / "release.toml", "--json"))
    assert first == dict.fromkeys(("data", "model", "policy", "release"), "done")
    released = (folder / "out" / "released.parquet").read_bytes()
    assert set(stages(run("run", folder / "release.toml", "--json")).values()) == {"as it was"}
    (folder / "out.owner" / "policy.json").unlink()
    again = stages(run("run", folder / "release.toml", "--json"))
    assert again == {"data": "as it was", "model": "as it was", "policy": "done", "release": "as it was"}
    assert (folder / "out" / "released.parquet").read_bytes() == released
    assert (folder / "out.owner" / RECORD).stat().st_mode & 0o077 == 0


def test_a_run_names_no_next_command_of_a_stage(run, folder):
    told = run("run", folder / "release.toml").stderr
    assert "may be published as it is" in told and "\nnext " not in told


def test_two_runs_at_once_are_refused_before_anything_is_made(run, folder):
    """The one that came first holds the folder: a second would split people and fit on them again."""
    owner = folder / "out.owner"
    owner.mkdir()
    with held(owner / RECORD):
        result = run("run", folder / "release.toml", code=4)
        assert [path.suffix for path in owner.iterdir()] == [".lock"] and not (folder / "out").exists()
    assert "pipeline run.json: another dphmm command is using it; wait for its end" in result.stderr
    run("run", folder / "release.toml", "-q")


def test_another_question_is_refused_before_its_plan_is_made(run, folder):
    """The first question spends half of the total of each person: only a plan of half is made.

    Rows after the end of the sequence are in no block of it.
    """
    write_rows(folder / "walks.csv", ["user", "t", "lat", "lon"], walk_rows(steps=14))
    plan = "[plan]\npath-epsilon = 4\nsteps = 12\nepsilon = 2\npeople = 6\nreserve = 0.5\n\n[release]\n"
    first = PIPELINE.replace("[release]\nepsilon = 0.5", plan)
    other = first.replace("epsilon = 2", "epsilon = 1")
    (folder / "release.toml").write_text(first)
    run("run", folder / "release.toml", "-q")
    (folder / "release.toml").write_text(other.replace("reserve = 0.5\n", ""))
    refused = run("run", folder / "release.toml", "--spend-again", "-q", code=2).stderr
    assert refused == (
        "error: [plan] path-epsilon: got 4 over 12 steps, of which 2 is left to whoever has least; expected [plan] "
        "reserve = 0.5, or rows of other days\n"
    )
    assert not (folder / "out-2" / "plan.json").exists()
    (folder / "release.toml").write_text(other)
    assert stages(run("run", folder / "release.toml", "--spend-again", "--json"))["release"] == "done"
    # Its own answers are no reason to refuse a plan that is lost.
    (folder / "out-2.owner" / "plan.json").unlink()
    assert stages(run("run", folder / "release.toml", "--json"))["plan"] == "done"
    (folder / "release.toml").write_text(first.replace("epsilon = 2", "epsilon = 0.5"))
    refused = run("run", folder / "release.toml", "--spend-again", "-q", code=2).stderr
    assert "of which 0 is left to whoever has least; expected rows of other days" in refused


def test_new_rows_are_released_beside_answers_that_stay(run, folder):
    run("run", folder / "release.toml", "-q")
    before = answers(folder)
    rows = walk_rows(users=("u1", "u2", "u3", "u4"))
    write_rows(folder / "walks.csv", ["user", "t", "lat", "lon"], rows)
    found = stages(run("run", folder / "release.toml", "--json"))
    assert found == {"data": "done", "model": "as it was", "policy": "as it was", "release": "done"}
    after = answers(folder)
    assert len(after) > len(before) and all(after[key] == row for key, row in before.items())


def answers(folder):

    table = read_table(folder / "out" / "released.parquet").to_pylist()
    return {(row.pop("user"), row.pop("step")): row for row in table}


def test_another_question_is_asked_with_consent_only(run, folder):
    run("run", folder / "release.toml", "-q")
    before = (folder / "out" / "released.parquet").read_bytes()
    (folder / "release.toml").write_text(PIPELINE.replace("epsilon = 0.5", "epsilon = 0.7"))
    refused = run("run", folder / "release.toml", "-q", code=2)
    assert "--spend-again" in refused.stderr and not (folder / "out-2").exists()
    assert stages(run("run", folder / "release.toml", "--spend-again", "--json"))["release"] == "done"
    assert (folder / "out" / "released.parquet").read_bytes() == before
    assert (folder / "out-2" / "released.parquet").read_bytes() != before


def test_another_promise_is_for_another_folder(run, folder):
    """A promise stays for all queries of a person."""
    first, second = (f"path-epsilon = {total}\nepsilon = 1\nper = '1d'" for total in (400, 300))
    (folder / "release.toml").write_text(PIPELINE.replace("epsilon = 0.5", first))
    run("run", folder / "release.toml", "-q")
    (folder / "release.toml").write_text(PIPELINE.replace("epsilon = 0.5", second))
    for again in ((), ("--spend-again",)):
        refused = run("run", folder / "release.toml", *again, "-q", code=2)
        given = "path-epsilon 300 and per 1d in place of path-epsilon 400 and per 1d"
        assert given in refused.stderr and "another folder and ledger" in refused.stderr
    assert not (folder / "out-2").exists()
    (folder / "release.toml").write_text(PIPELINE.replace("epsilon = 0.5", first))
    assert set(stages(run("run", folder / "release.toml", "--json")).values()) == {"as it was"}


def test_a_folder_of_other_files_is_refused_before_anything_is_made(run, folder):
    (folder / "out").mkdir()
    (folder / "out" / "mine.txt").write_text("mine")
    for command in (("run",), ("check", "--setup")):
        refused = run(*command, folder / "release.toml", "-q", code=2)
        assert refused.stderr.startswith("error: folder: got ") and "no release" in refused.stderr
    assert not (folder / "out.owner").exists()


def test_a_question_that_was_refused_is_not_asked_later(run, folder):
    """What was agreed to for one question is not agreed to for what comes after."""
    run("run", folder / "release.toml", "-q")
    (folder / "release.toml").write_text(PIPELINE.replace("epsilon = 0.5", "epsilon = 'much'"))
    assert "[release] epsilon" in run("run", folder / "release.toml", "--spend-again", "-q", code=2).stderr
    (folder / "release.toml").write_text(PIPELINE)
    assert set(stages(run("run", folder / "release.toml", "--json")).values()) == {"as it was"}


def test_options_in_a_sentence_are_members_of_the_file(folder):
    """Of the stage, else of the table that has it; neither what a pipeline fills in nor a part of a word."""
    called = Pipeline.read(folder / "release.toml").members("data")
    named = "dphmm import csv with --names, dphmm plan --hours, --spelling, --step or --epsilon"
    assert called("SRC") == "[data] file"
    assert called(named) == "[data] names, [plan] hours, [data] spelling, [model] step or [release] epsilon"
    for other in ("--ledger L --model", "dphmm check --setup a", "un--cell", "-o", "dphmm export --what"):
        assert called(other) == other


def test_a_lost_ledger_is_no_leave_to_publish_again(run, folder):
    run("run", folder / "release.toml", "-q")
    (folder / "ledger.db").unlink()
    (folder / "out" / "released.parquet").unlink()
    refused = run("run", folder / "release.toml", "--spend-again", "-q", code=2)
    assert "ledger.db" in refused.stderr and not (folder / "out" / "released.parquet").exists()


@pytest.mark.parametrize(("stage", "old", "new"), [("model", '"20km/h"', '"30km/h"'), ("policy", '"1.5km"', '"1.2km"')])
def test_another_model_or_policy_is_for_another_folder(run, folder, stage, old, new):
    """A person's answers of one ledger are answers under one model and one policy."""
    run("run", folder / "release.toml", "-q")
    (folder / "release.toml").write_text(PIPELINE.replace(old, new))
    model = (folder / "out.owner" / "model.npz").read_bytes()
    refused = run("run", folder / "release.toml", "--spend-again", "-q", code=2)
    assert f"[{stage}]" in refused.stderr and "another folder and ledger" in refused.stderr
    assert (folder / "out.owner" / "model.npz").read_bytes() == model
    (folder / "release.toml").write_text('folder = "other"\n' + PIPELINE.replace(old, new))
    assert "of the history" in run("run", folder / "release.toml", code=2).stderr
    (folder / "release.toml").write_text('folder = "more"\nledger = "more.db"\n' + PIPELINE.replace(old, new))
    assert stages(run("run", folder / "release.toml", "--json"))["release"] == "done"


@pytest.mark.parametrize(
    ("right", "wrong", "member"),
    [
        ('"1.5km"', '"wide"', "error: [policy] radius: got wide;"),
        ("epsilon = 0.5", "epsilon = 'much'", "error: [release] epsilon: got much;"),
        ("epsilon = 0.5", "", "; or [release] path-epsilon and [release] steps, [release] window or [release] per"),
    ],
)
def test_a_stage_that_fails_ends_the_run_what_came_before_stays_and_nobody_was_asked(run, folder, right, wrong, member):
    """Its error has members of the file in place of options."""
    (folder / "release.toml").write_text(PIPELINE.replace(right, wrong))
    failed = run("run", folder / "release.toml", code=2)
    assert member in failed.stderr and not (folder / "out" / "released.parquet").exists()
    assert member in run("check", "--setup", folder / "release.toml", code=2).stderr
    (folder / "release.toml").write_text(PIPELINE)
    found = stages(run("run", folder / "release.toml", "--json"))
    assert (found["model"], found["release"]) == ("as it was", "done")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[data", "which is no TOML"),
        ("[data]\nfile = 'walks.csv'\n", "without a table [policy]"),
        (
            PIPELINE.replace("[release]", "[relase]"),
            "[relase]: got an unknown table; expected release, the nearest name",
        ),
        (PIPELINE.replace("cell =", "cel ="), "[model] cel: got an unknown option; expected cell, the nearest name"),
        (PIPELINE + "ledger = 'x.db'\n", "[release] ledger: got an unknown option"),
        (PIPELINE + "output = 'x.csv'\n", "[release] output: got an unknown option"),
        (PIPELINE + "noun = 'Two'\n", "[release] noun: got 'Two'; expected one word"),
        (PIPELINE.replace("[model]", "[model]\nkind = 'sphere'"), "[model] kind: got 'sphere'"),
        (PIPELINE.replace("[data]", "[data]\nkind = 'porto'\nstep = 1"), "expected none, as it has no"),
        (PIPELINE.replace("walks.csv", "other.csv"), "[data] file: got other.csv"),
        (PIPELINE.replace("epsilon = 0.5", "epsilon = 2024-05-06"), "[release] epsilon: got datetime.date"),
        (PIPELINE + "[fit]\n", "both [model] and [fit]"),
        (PIPELINE.replace("[model]", "[fit]"), "[fit]: got no people"),
        ("folder = 3\n" + PIPELINE, "folder: got 3"),
    ],
)
def test_a_file_that_is_no_pipeline_is_one_line_and_nothing_runs(run, folder, text, told):
    (folder / "release.toml").write_text(text)
    result = run("run", folder / "release.toml", code=2)
    assert told in result.stderr and result.stderr.count("\n") == 1
    assert not (folder / "out.owner" / "model.npz").exists()


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"format": 1}', '{"format": 1, "stages": {"data": 3}}', '{"format": 9, "stages": {}}']
)
def test_a_record_that_is_none_is_refused(run, folder, text):
    (folder / "out.owner").mkdir()
    (folder / "out.owner" / RECORD).write_text(text)
    assert "no record of a run" in run("run", folder / "release.toml", code=2).stderr


def test_decimals_reach_commands_as_they_are_written(run, folder):
    """A float of 0.1 is not a tenth: 0.1 has to arrive as text."""
    (folder / "release.toml").write_text(PIPELINE.replace("0.5", "0.1"))
    run("run", folder / "release.toml", "-q")
    statement = json.loads((folder / "out" / "released.parquet.privacy.json").read_text())
    assert statement["epsilon"] == "1/10"


SPLIT = PIPELINE.replace("[model]", '[split]\nshare = "0.5"\n\n[fit]\ngrid = "1km"').replace('cell = "1km"\n', "")
SPLIT = SPLIT.replace('max-speed = "20km/h"\n', "")


def test_people_are_split_once_for_a_folder(run, folder):
    """Split anew, somebody who was released could be fitted on without privacy."""
    names = tuple(f"u{number}" for number in range(8))
    write_rows(folder / "walks.csv", ["user", "t", "lat", "lon"], walk_rows(users=names))
    (folder / "release.toml").write_text(SPLIT)
    found = stages(run("run", folder / "release.toml", "--json"))
    assert list(found) == ["data", "split", "fit", "policy", "release"]
    fitted, released = people_of(folder, "model-people.parquet"), people_of(folder, "released-people.parquet")
    assert fitted and released and not fitted & released and fitted | released == set(names)
    assert set(stages(run("run", folder / "release.toml", "--json")).values()) == {"as it was"}
    before, model = answers(folder), (folder / "out.owner" / "model.npz").read_bytes()
    write_rows(folder / "walks.csv", ["user", "t", "lat", "lon"], walk_rows(users=(*names, "new", "newer")))
    found = stages(run("run", folder / "release.toml", "--json"))
    assert found == {"data": "done", "split": "done", "fit": "as it was", "policy": "as it was", "release": "done"}
    assert (
        people_of(folder, "model-people.parquet") == fitted
        and (folder / "out.owner" / "model.npz").read_bytes() == model
    )
    assert people_of(folder, "released-people.parquet") == released | {"new", "newer"}
    after = answers(folder)
    assert {key: after[key] for key in before} == before and len(after) > len(before)
    assert set(stages(run("run", folder / "release.toml", "--json")).values()) == {"as it was"}


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (
            lambda folder: (folder / "out.owner" / "model-people.parquet").unlink(),
            "model-people.parquet lost or changed",
        ),
        (lambda folder: rewrite(folder, 'share = "0.5"', 'share = "0.6"'), "other options"),
        (lambda folder: rewrite(folder, "[split]", '[split]\nuser-column = "t"'), "other options"),
        (lambda folder: rewrite(folder, "[data]", '[data]\nuser-column = "t"'), "whose a row is"),
    ],
)
@pytest.mark.parametrize("again", [(), ("--spend-again",)])
def test_what_would_split_people_anew_is_refused_by_its_cause(run, folder, change, cause, again):
    write_rows(folder / "walks.csv", ["user", "t", "lat", "lon"], walk_rows(users=[f"u{each}" for each in range(8)]))
    (folder / "release.toml").write_text(SPLIT)
    run("run", folder / "release.toml", "-q")
    model = (folder / "out.owner" / "model.npz").read_bytes()
    change(folder)
    refused = run("run", folder / "release.toml", *again, "-q", code=2).stderr
    assert "[split]" in refused and cause in refused and "another folder" in refused and refused.count("\n") == 1
    assert (folder / "out.owner" / "model.npz").read_bytes() == model


def rewrite(folder, old, new):
    text = (folder / "release.toml").read_text()
    assert old in text
    (folder / "release.toml").write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("told", "seen"),
    [('model-people = "unknown"', "unknown"), ('noun = "vessel"', None)],
)
def test_what_is_only_said_of_a_release_is_no_new_question(run, folder, told, seen):
    """The answers stay; file, statement and what is made of them are written anew, and a real change is still asked."""
    names = tuple(f"u{number}" for number in range(8))
    write_rows(folder / "walks.csv", ["user", "t", "lat", "lon"], walk_rows(users=names))
    (folder / "release.toml").write_text(SPLIT + "[estimates]\n")
    run("run", folder / "release.toml", "-q")
    before, statement = answers(folder), folder / "out" / "released.parquet.privacy.json"
    assert json.loads(statement.read_text())["model"]["people"] == "others"
    (folder / "release.toml").write_text(SPLIT + f"{told}\n[estimates]\n")
    found = stages(run("run", folder / "release.toml", "--json"))
    assert found["release"] == "done" and found["fit"] == "as it was" and not (folder / "out-2").exists()
    again = answers(folder)
    assert again == {key: {name: before[key][name] for name in row} for key, row in again.items()} and len(again) >= 12
    if seen is not None:
        assert json.loads(statement.read_text())["model"]["people"] == seen and found["estimates"] == "done"
    assert set(stages(run("run", folder / "release.toml", "--json")).values()) == {"as it was"}
    (folder / "release.toml").write_text(SPLIT.replace("epsilon = 0.5", "epsilon = 0.6") + f"{told}\n[estimates]\n")
    refused = run("run", folder / "release.toml", code=2)
    assert "a new question to people who were asked" in refused.stderr


def people_of(folder, name):

    return set(read_table(folder / "out.owner" / name).column("user").to_pylist())


@pytest.fixture
def split(run, folder):
    """A folder with a finished pipeline: a private fit on some people, a release of the others."""
    names = tuple(f"u{number}" for number in range(8))
    write_rows(folder / "walks.csv", ["user", "t", "lat", "lon"], walk_rows(users=names))
    (folder / "release.toml").write_text(PRIVATE)
    run("run", folder / "release.toml", "-q")
    return folder


PRIVATE = SPLIT.replace('grid = "1km"', 'grid = "1km"\nepsilon = 2\nmax-length = 10')


def lose(name):
    """What removes a file of the folder of a pipeline."""
    return lambda folder: (folder / name).unlink()


def lose_the_released_file(folder):
    """As a release that was killed leaves it: answers in the ledger, and nothing beside."""
    for name in ("released.parquet", "released.parquet.privacy.json"):
        (folder / "out" / name).unlink()
    record = json.loads((folder / "out.owner" / RECORD).read_text())
    record["questions"][-1]["release"]["outputs"] = {}
    (folder / "out.owner" / RECORD).write_text(json.dumps(record))


@pytest.fixture
def released(run, folder):
    """A folder of people, some fitted on without privacy and the others released."""
    write_rows(folder / "walks.csv", ["user", "t", "lat", "lon"], walk_rows(users=[f"u{each}" for each in range(8)]))
    (folder / "release.toml").write_text(SPLIT)
    run("run", folder / "release.toml", "-q")
    return folder


def test_another_ledger_than_the_folders_is_refused_before_people_are_split(run, released):
    with open_ledger(released / "other.db"):
        pass
    before = (released / "out.owner" / "model-people.parquet").read_bytes()
    (released / "release.toml").write_text('ledger = "other.db"\n' + SPLIT)
    write_rows(released / "walks.csv", ["user", "t", "lat", "lon"], walk_rows(users=[f"u{each}" for each in range(9)]))
    refused = run("run", released / "release.toml", "--spend-again", "-q", code=2).stderr
    assert "which is another ledger" in refused and refused.count("\n") == 1
    assert (released / "out.owner" / "model-people.parquet").read_bytes() == before


@pytest.mark.parametrize("kept", [True, False])
def test_nobody_with_answers_is_fitted_on_without_privacy(run, released, kept):
    """In another folder on the ledger, and in this one when all files but the ledger are lost."""
    text = 'folder = "again"\n' + SPLIT
    if not kept:
        shutil.rmtree(released / "out")
        shutil.rmtree(released / "out.owner")
        text = SPLIT
    (released / "release.toml").write_text(text)
    refused = run("run", released / "release.toml", "-q", code=2).stderr
    assert "[fit]" in refused and "people to fit on" in refused and "epsilon in [fit]" in refused
    assert not (released / ("again.owner" if kept else "out.owner") / "model.npz").exists()


def test_what_is_published_has_no_hash_of_the_rows_that_a_model_was_fitted_on(released):
    own, public = (load_model(released / name / "model.npz") for name in ("out.owner", "out"))
    digest = file_digest(released / "out.owner" / "model-people.parquet")
    assert own.provenance["source_sha256"] == digest and own.digest == public.digest
    assert public.provenance == {name: fact for name, fact in own.provenance.items() if name != "source_sha256"}
    assert not any(digest.encode() in path.read_bytes() for path in (released / "out").iterdir())


def test_a_query_in_the_states_of_people_fitted_on_says_that_it_is_not_private(run, folder):
    write_rows(folder / "walks.csv", ["user", "t", "lat", "lon"], walk_rows(users=[f"u{each}" for each in range(8)]))
    (folder / "release.toml").write_text(SPLIT + "[query]\nepsilon = 1\n")
    run("run", folder / "release.toml", "-q")
    assert json.loads((folder / "out" / "query.csv.privacy.json").read_text())["private"] is False


@pytest.mark.parametrize("reserve", ["abc", "1/0", "nan"])
def test_a_reserve_that_is_none_is_named(run, folder, reserve):
    plan = "[plan]\npath-epsilon = 4\nsteps = 12\nepsilon = 2\npeople = 6\n\n[release]\n"
    text = PIPELINE.replace("[release]\nepsilon = 0.5\n", plan)
    (folder / "release.toml").write_text(text)
    run("run", folder / "release.toml", "-q")
    (folder / "release.toml").write_text(text.replace("people = 6", f'people = 7\nreserve = "{reserve}"'))
    refused = run("run", folder / "release.toml", "--spend-again", "-q", code=2).stderr
    assert "[plan] reserve" in refused and refused.count("\n") == 1


def test_another_question_takes_no_folder_of_another_pipeline(run, folder):
    (folder / "other.toml").write_text('folder = "out-2"\nledger = "other.db"\n' + PIPELINE)
    run("run", folder / "other.toml", "-q")
    run("run", folder / "release.toml", "-q")
    before = {path: path.read_bytes() for path in (folder / "out-2.owner").iterdir() if path.is_file()}
    (folder / "release.toml").write_text(PIPELINE.replace("epsilon = 0.5", "epsilon = 0.7"))
    refused = run("run", folder / "release.toml", "--spend-again", "-q", code=2).stderr
    assert "out-2, the folder of another pipeline" in refused
    assert {path: path.read_bytes() for path in (folder / "out-2.owner").iterdir() if path.is_file()} == before


@pytest.mark.parametrize("again", [(), ("--spend-again",)])
def test_rows_that_follow_a_killed_release_fit_on_nobody_who_was_released(run, split, again):
    """Answers in the ledger, and no file beside: people stay where they were."""
    fitted, released = people_of(split, "model-people.parquet"), people_of(split, "released-people.parquet")
    lose_the_released_file(split)
    write_rows(split / "walks.csv", ["user", "t", "lat", "lon"], walk_rows(users=[f"u{each}" for each in range(9)]))
    found = stages(run("run", split / "release.toml", *again, "--json"))
    assert found["fit"] == "as it was" and people_of(split, "model-people.parquet") == fitted
    assert people_of(split, "released-people.parquet") == released | {"u8"}


@pytest.mark.parametrize("change", [lose(f"out.owner/{RECORD}"), lose("out.owner/model-people.parquet")])
@pytest.mark.parametrize("again", [(), ("--spend-again",)])
def test_who_was_released_is_never_fitted_on(run, split, change, again):
    """Whatever got lost: new rows would split people anew."""
    model = (split / "out.owner" / "model.npz").read_bytes()
    change(split)
    write_rows(split / "walks.csv", ["user", "t", "lat", "lon"], walk_rows(users=[f"u{each}" for each in range(9)]))
    refused = run("run", split / "release.toml", *again, "-q", code=2)
    assert "another folder" in refused.stderr and refused.stderr.count("\n") == 1
    assert (split / "out.owner" / "model.npz").read_bytes() == model


def test_no_fit_is_drawn_for_people_who_were_asked_under_another_model(run, split):
    """Another folder beside the same ledger: its release would be refused after the fit was spent."""
    before = published(split)
    (split / "again.toml").write_text('folder = "again"\n' + PRIVATE)
    refused = run("run", split / "again.toml", "-q", code=2).stderr
    assert "[fit]" in refused and "who have answers under another model" in refused and refused.count("\n") == 1
    assert published(split) == before
    (split / "again.toml").write_text('folder = "again"\nledger = "other.db"\n' + PRIVATE)
    run("run", split / "again.toml", "-q")


def test_a_release_that_was_killed_goes_on_with_the_same_people(run, split):
    before = answers(split)
    lose_the_released_file(split)
    assert stages(run("run", split / "release.toml", "--json"))["release"] == "done"
    assert answers(split) == before


def change_the_fit(folder):
    (folder / "release.toml").write_text(PRIVATE.replace("max-length = 10", "max-length = 9"))


def test_a_private_fit_is_drawn_again_with_consent_only_and_counted(run, split, fitted_alone):
    """Before anybody is released; afterwards the model stays."""
    change_the_fit(split)
    refused = run("run", split / "release.toml", "--spend-again", "-q", code=2)
    assert "[fit]" in refused.stderr and "another folder and ledger" in refused.stderr
    change_the_fit(fitted_alone)
    refused = run("run", fitted_alone / "release.toml", "-q", code=2)
    assert "[fit]: got a new question" in refused.stderr and not (fitted_alone / "out-2").exists()
    anew = run("run", fitted_alone / "release.toml", "--spend-again")
    assert "epsilon 4 in all, by 2 private fits" in anew.stderr + anew.stdout
    second_model = fitted_alone / "out-2.owner" / "model.npz"
    assert second_model.exists() and (fitted_alone / "out-2" / "released.parquet").exists()
    assert set(stages(run("run", fitted_alone / "release.toml", "--json")).values()) == {"as it was"}
    assert published(fitted_alone) == {"fit of out": 2, "fit of out-2": 2}
    # What the second question took from the ledger is its own fit, and not the first one's.
    second, first = second_model.read_bytes(), (fitted_alone / "out.owner" / "model.npz").read_bytes()
    second_model.unlink()
    run("run", fitted_alone / "release.toml", "-q")
    assert second_model.read_bytes() == second != first


def test_other_rows_after_a_fit_go_on_in_the_same_ledger_with_consent(run, fitted_alone, one_json):
    """The first fit's epsilon stays in the account."""
    folder, out = fitted_alone, fitted_alone / "out.owner"
    first = (out / "model.npz").read_bytes()
    names = tuple(f"u{number}" for number in range(9))
    write_rows(folder / "walks.csv", ["user", "t", "lat", "lon"], walk_rows(users=names, seed=8))
    refused = run("run", folder / "release.toml", "-q", code=2).stderr
    assert "private fit of epsilon 2" in refused and "--spend-again" in refused and refused.count("\n") == 1
    assert "a second fit adds" in refused and published(folder) == {"fit of out": 2}
    anew = run("run", folder / "release.toml", "--spend-again")
    assert "epsilon 4 in all, by 2 private fits" in anew.stderr + anew.stdout
    assert published(folder) == {"fit of out": 2, "fit of out-2": 2} and (out / "model.npz").read_bytes() == first
    assert people_of(folder, "model-people.parquet") | people_of(folder, "released-people.parquet") == set(names)
    told = one_json(run("account", folder / "ledger.db", "--json"))
    assert told["anybody"]["present"]["exact"] == "4"
    assert set(stages(run("run", folder / "release.toml", "--json")).values()) == {"as it was"}
    # Now somebody was released: of other rows who was fitted on stays, and nothing is fitted anew.
    fitted = people_of(folder, "model-people.parquet")
    write_rows(folder / "walks.csv", ["user", "t", "lat", "lon"], walk_rows(users=(*names, "new")))
    found = stages(run("run", folder / "release.toml", "--spend-again", "--json"))
    assert found["fit"] == "as it was" and people_of(folder, "model-people.parquet") == fitted
    assert "new" in people_of(folder, "released-people.parquet")
    assert published(folder) == {"fit of out": 2, "fit of out-2": 2}


def test_a_lost_model_is_given_again_by_the_ledger(run, split):
    model = split / "out.owner" / "model.npz"
    before, released = model.read_bytes(), answers(split)
    for change in (lambda: model.unlink(), lambda: model.write_bytes(b"no model")):
        change()
        assert stages(run("run", split / "release.toml", "--json"))["fit"] == "done"
        assert model.read_bytes() == before and answers(split) == released
    assert published(split) == {"fit of out": 2}


SAME = SPLIT.replace('[split]\nshare = "0.5"\n', "").replace('grid = "1km"', 'file = "walks.csv"\ngrid = "1km"')
SAME = SAME.replace('grid = "1km"', 'grid = "1km"\nepsilon = 2\nmax-length = 10')


def test_a_fit_of_the_same_people_is_in_the_account_of_their_release(run, folder, one_json):
    (folder / "release.toml").write_text(SAME)
    run("run", folder / "release.toml", "-q")
    told = one_json(run("account", folder / "ledger.db", "--json"))
    (subject, *_) = told["subjects"]
    spent = float(subject["epsilon"]["value"])
    assert subject["with_publications"]["replaced"]["value"] == spent + 4 and spent > 0
    assert told["anybody"]["present"]["exact"] == "2"
    # Rows that come later are released under the model that is there.
    model = (folder / "out.owner" / "model.npz").read_bytes()
    write_rows(folder / "walks.csv", ["user", "t", "lat", "lon"], walk_rows(users=("u1", "u2", "u3", "u4")))
    assert stages(run("run", folder / "release.toml", "--json"))["release"] == "done"
    assert (folder / "out.owner" / "model.npz").read_bytes() == model and published(folder) == {"fit of out": 2}


def test_a_cap_of_people_sees_the_fit(run, folder):
    (folder / "release.toml").write_text(SAME + "cap-epsilon = 8\n")
    refused = run("run", folder / "release.toml", "-q", code=1).stderr
    assert "remaining 0" in refused, refused
    assert published(folder) == {"fit of out": 2}


def test_a_lost_ledger_is_no_leave_to_fit_again(run, fitted_alone):
    lose("ledger.db")(fitted_alone)
    refused = run("run", fitted_alone / "release.toml", "--spend-again", "-q", code=2)
    assert "knows of a release or a private fit" in refused.stderr


def published(folder):
    with open_ledger(folder / "ledger.db", read_only=True) as ledger:
        return {one.name: one.epsilon * one.units for one in ledger.publications()}


@pytest.fixture
def fitted_alone(run, tmp_path):
    """A folder in which a private fit was drawn, and nobody was released: the release was refused."""
    folder = tmp_path / "fitted"
    folder.mkdir()
    names = tuple(f"u{number}" for number in range(8))
    write_rows(folder / "walks.csv", ["user", "t", "lat", "lon"], walk_rows(users=names))
    (folder / "release.toml").write_text(PRIVATE.replace("epsilon = 0.5", "epsilon = 'much'"))
    run("run", folder / "release.toml", "-q", code=2)
    (folder / "release.toml").write_text(PRIVATE)
    return folder


def test_a_private_fit_is_known_after_a_plain_one(run, fitted_alone):
    """Whoever was fitted on is not released by another split, and all that was spent is told."""
    folder = fitted_alone
    refused = PRIVATE.replace("epsilon = 0.5", "epsilon = 'much'")
    (folder / "release.toml").write_text(refused.replace("epsilon = 2\nmax-length = 10", ""))
    run("run", folder / "release.toml", "-q", code=2)
    names = (*(f"u{number}" for number in range(8)), "new")
    rows = (folder / "walks.csv").read_bytes()
    write_rows(folder / "walks.csv", ["user", "t", "lat", "lon"], walk_rows(users=names))
    again = run("run", folder / "release.toml", "-q", code=2)
    assert "[split]" in again.stderr and "a second fit adds" in again.stderr
    (folder / "walks.csv").write_bytes(rows)
    (folder / "release.toml").write_text(PRIVATE)
    anew = run("run", folder / "release.toml", "--spend-again")
    assert "epsilon 4 in all, by 2 private fits" in anew.stderr + anew.stdout


def test_what_was_published_can_be_read_after_another_question(run, split):
    """Nothing of the first question is replaced; what did not change is taken over, and everything is in one ledger."""
    first = {path: path.read_bytes() for path in split.glob("out*/*") if path.name not in (RECORD, "people.parquet")}
    (split / "release.toml").write_text(PRIVATE.replace("epsilon = 0.5", "epsilon = 0.7"))
    run("run", split / "release.toml", "-q", code=2)
    found = stages(run("run", split / "release.toml", "--spend-again", "--json"))
    assert found == dict.fromkeys(("data", "split", "fit", "policy"), "as it was") | {"release": "done"}
    assert len(first) > 8 and all(path.read_bytes() == content for path, content in first.items())
    assert (split / "out-2" / "model.npz").read_bytes() == first[split / "out" / "model.npz"]
    run("read", split / "out", "--estimates", "-q", "-o", split / "one.parquet")
    run("read", split / "out-2", "--estimates", "-q", "-o", split / "two.parquet")
    with open_ledger(split / "ledger.db", read_only=True) as ledger:
        assert {query for _, query in ledger.sessions()} == {"state", "state-2"}


def test_the_folder_that_it_is_called_from_changes_nothing(run, folder, monkeypatch):
    run("run", folder / "release.toml", "-q")
    monkeypatch.chdir(folder)
    assert set(stages(run("run", "release.toml", "--json")).values()) == {"as it was"}
    monkeypatch.chdir(folder.parent)
    assert set(stages(run("run", f"{folder.name}/release.toml", "--json")).values()) == {"as it was"}


def test_a_file_of_the_name_of_a_column_is_no_option(run, folder):
    (folder / "user").write_text("no table")
    (folder / "release.toml").write_text(PIPELINE.replace("[model]", "user-column = 'user'\n\n[model]"))
    assert stages(run("run", folder / "release.toml", "--json"))["data"] == "done"


def test_rows_of_people_are_for_their_owner(run, split):
    for name in ("people.parquet", "model-people.parquet", "released-people.parquet", RECORD):
        assert (split / "out.owner" / name).stat().st_mode & 0o077 == 0, name


EVENTS = """
[data]
file = "log.csv"
kind = "events"
length = 3

[split]
share = 0.5

[fit]
state-column = "state"
epsilon = 1
max-length = 3
states-file = "states.csv"

[policy]
kind = "complete"

[release]
path-epsilon = 3
steps = 3
noun = "case"
"""


def test_cases_are_released_under_the_names_of_the_ledger(run, tmp_path):
    """From the file to the report; a case that grew has the rows that it had, and one account in all folders."""
    rows = [
        [f"case-{n}", "ab"[n % 2], f"2024-01-0{n % 9 + 1}T0{k}:00:00Z"] for n in range(24) for k in range(n % 4 + 1)
    ]
    header = ["case:concept:name", "concept:name", "time:timestamp"]
    write_rows(tmp_path / "log.csv", header, rows)
    (tmp_path / "release.toml").write_text(EVENTS)
    (tmp_path / "states.csv").write_text("state\na\nb\n")
    refused = run("run", tmp_path / "release.toml", "-q", code=2).stderr
    assert "length: got 3; expected a state called END" in refused and not (tmp_path / "ledger.db").exists()
    (tmp_path / "states.csv").write_text("state\na\nb\nEND\n")
    run("run", tmp_path / "release.toml", "-q")
    before = (tmp_path / "out" / "released.parquet").read_bytes()
    released = read_table(tmp_path / "out" / "released.parquet")
    assert "t" not in released.column_names
    named = dict(line.split(",") for line in (tmp_path / "ledger.names.csv").read_text().splitlines()[1:])
    assert set(released.column("user").to_pylist()) <= set(named.values()) and len(named) == 24
    run("report", tmp_path / "out", "-o", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Shares are among the cases that have not ended; that of END is among all." in page
    told = json.loads((tmp_path / "out" / "released.parquet.privacy.json").read_text())["events"]
    assert told == {"case_names": "random", "times": "none", "length": 3, "length_hidden": True}
    write_rows(tmp_path / "log.csv", header, [*rows, ["case-0", "b", "2024-02-01T00:00:00Z"]])
    run(
        "import",
        "events",
        tmp_path / "log.csv",
        "--names-file",
        tmp_path / "ledger.names.csv",
        "-o",
        tmp_path / "p.csv",
    )
    assert dict(line.split(",") for line in (tmp_path / "ledger.names.csv").read_text().splitlines()[1:]) == named
    (tmp_path / "log.csv").unlink()
    write_rows(tmp_path / "log.csv", header, rows)
    assert set(stages(run("run", tmp_path / "release.toml", "--json")).values()) <= {"as it was", "done"}
    assert (tmp_path / "out" / "released.parquet").read_bytes() == before
    (tmp_path / "release.toml").write_text(EVENTS.replace('"events"', '"events"\ncase-names = "kept"'))
    assert "after people were asked" in run("run", tmp_path / "release.toml", "-q", code=2).stderr


@pytest.mark.parametrize("change", ["lost", "swapped", "emptied"])
@pytest.mark.parametrize("split", [False, True])
def test_cases_keep_their_names_or_nobody_is_asked(run, tmp_path, split, change):
    """Under new names cases that were fitted on would be released, and released ones asked again."""
    rows = [[f"case-{n}", "ab"[(n + k) % 2], f"2024-01-0{n % 9 + 1}T0{k}:00:00Z"] for n in range(12) for k in range(4)]
    header = ["case:concept:name", "concept:name", "time:timestamp"]
    write_rows(tmp_path / "log.csv", header, rows)
    names = tmp_path / "n1.csv"
    for path in (names, tmp_path / "n2.csv"):
        path.write_text("case,name\n")
    text = '[data]\nfile = "log.csv"\nkind = "events"\nnames-file = "n1.csv"\n'
    text += "[split]\n[fit]\n" if split else '[fit]\nfile = "others.csv"\n'
    text += 'state-column = "state"\n[policy]\nkind = "complete"\n[release]\nepsilon = 1\nnoun = "case"\n'
    write_rows(tmp_path / "others.csv", ["user", "step", "state"], [["x", n, "ab"[n % 2]] for n in range(1, 9)])
    (tmp_path / "release.toml").write_text(text)
    run("run", tmp_path / "release.toml", "-q")
    before = answers(tmp_path)
    write_rows(tmp_path / "log.csv", header, [*rows, ["case-99", "a", "2024-02-01T00:00:00Z"]])
    if change == "swapped":
        (tmp_path / "release.toml").write_text(text.replace("n1.csv", "n2.csv"))
    else:
        kept = names.read_text()
        names.write_text("case,name\n") if change == "emptied" else names.unlink()
        if not split:
            (tmp_path / "out.owner" / "people.parquet").unlink()
    for again in ((), ("--spend-again",)):
        refused = run("run", tmp_path / "release.toml", "-q", *again, code=2).stderr
        assert "names-file" in refused and "another folder and ledger" in refused and refused.count("\n") == 1
    assert answers(tmp_path) == before
    if change == "swapped":
        (tmp_path / "release.toml").write_text(text)
    else:
        names.write_text(kept)
    run("run", tmp_path / "release.toml", "-q")
    after = answers(tmp_path)
    assert {key: after[key] for key in before} == before and len(after) == len(before) + 1


def test_one_setting_is_that_of_the_plan_and_of_the_release(run, folder):
    """As is a stage for invented people, who lie in the folder with their statement."""
    planned = PIPELINE.replace(
        "[release]\nepsilon = 0.5", "[plan]\npath-epsilon = 4\nsteps = 12\nepsilon = 2\npeople = 6\n"
    )
    text = f'[setting]\nconstraint = "delta=0.02"\n{planned}\n[release]\n\n[synthesize]\npeople = 3\nsteps = 4\n'
    (folder / "release.toml").write_text(text)
    assert stages(run("run", folder / "release.toml", "--json"))["synthesize"] == "done"
    out = dphmm.open(folder / "out")
    assert out.statement.choices["constraint"] == "delta=0.02" and out.folder.others() == []
    assert {"synthetic.parquet", "synthetic.parquet.privacy.json"} <= set(out.folder.files())
    for wrong, told in (
        (text.replace("0.02", "0.03"), "error: [setting]: got a new question to people who were asked"),
        (
            text.replace("constraint", "constrain"),
            "error: [setting] constrain: got an unknown option; expected constraint, the nearest name",
        ),
        (text.replace("[plan]", "[plan]\nstart = 'at'"), "error: [plan] start: got an option of [setting]"),
    ):
        (folder / "release.toml").write_text(wrong)
        assert run("run", folder / "release.toml", code=2).stderr.startswith(told)


LIMITED = PIPELINE.replace("epsilon = 0.5", 'epsilon = 0.5\npath-epsilon = 400\nper = "1d"')
ASKED = LIMITED + '[query]\nepsilon = 1\ndependence = "group:8"\nneighbours = "add-remove"\n'


def test_a_query_is_answered_once_whatever_the_rows_are_and_before_anybody_is_released(run, folder):
    """A second answer to the same question would be paid for again; one to another question is, with consent."""
    (folder / "release.toml").write_text(ASKED)
    assert list(stages(run("run", folder / "release.toml", "--json"))) == [
        "data",
        "model",
        "query",
        "policy",
        "release",
    ]
    out = folder / "out"
    names, first = sorted(path.name for path in out.iterdir()), (out / "query.csv").read_bytes()
    assert {"query.csv", "query.csv.privacy.json"} < set(names) and not [n for n in names if "rejected" in n]
    assert (folder / "out.owner" / "query.csv.rejected.csv").stat().st_mode & 0o077 == 0
    assert published(folder) == {"query of out": 1} and not dphmm.open(out).folder.others()
    assert set(stages(run("run", folder / "release.toml", "--json")).values()) == {"as it was"}
    (out / "query.csv").unlink()
    write_rows(folder / "walks.csv", ["user", "t", "lat", "lon"], walk_rows(users=("u1", "u2", "u3", "u4")))
    assert stages(run("run", folder / "release.toml", "--json"))["query"] == "done"
    assert (out / "query.csv").read_bytes() == first and published(folder) == {"query of out": 1}
    # Another release of the same people is no other query.
    (folder / "release.toml").write_text(ASKED.replace("epsilon = 0.5", "epsilon = 0.6"))
    again = stages(run("run", folder / "release.toml", "--spend-again", "--json"))
    assert (again["query"], again["release"]) == ("as it was", "done")
    (folder / "release.toml").write_text(ASKED.replace("epsilon = 0.5", "epsilon = 0.6").replace("group:8", "group:9"))
    refused = run("run", folder / "release.toml", code=2).stderr
    assert "[query]: got a new question" in refused and published(folder) == {"query of out": 1}
    anew = run("run", folder / "release.toml", "--spend-again")
    assert "epsilon 2 in all, by 2 queries" in anew.stderr and (out / "query.csv").read_bytes() == first
    assert published(folder) == {"query of out": 1, "query of out-2": 1} and (folder / "out-2" / "query.csv").exists()
    assert set(stages(run("run", folder / "release.toml", "--json")).values()) == {"as it was"}


def test_a_check_that_stops_the_release_stops_no_query(run, folder):
    """That there is an answer says nothing of the rows: it is there also where the release stops for them."""
    (folder / "release.toml").write_text(ASKED)
    away = [(user, t, 10.0, lon) for user, t, _, lon in walk_rows()]
    write_rows(folder / "walks.csv", ["user", "t", "lat", "lon"], away)
    told = run("run", folder / "release.toml", code=2).stderr
    assert "the query is done, and its epsilon 1 is spent: nobody was released" in told
    assert (folder / "out" / "query.csv").exists() and published(folder) == {"query of out": 1}
    write_rows(folder / "walks.csv", ["user", "t", "lat", "lon"], walk_rows())
    run("run", folder / "release.toml", "-q")
    assert published(folder) == {"query of out": 1} and answers(folder)


def test_what_a_query_or_the_release_refuses_is_refused_before_a_query_is_drawn(run, folder):
    for old, new, field in (
        ("epsilon = 1\n", "", "[query] epsilon"),
        ("group:8", "groups:8", "[query] dependence"),
        ("epsilon = 0.5", 'epsilon = 0.5\nzone = "Mars/Base"', "[release] zone"),
    ):
        (folder / "release.toml").write_text(ASKED.replace(old, new))
        assert f"error: {field}" in run("run", folder / "release.toml", code=2).stderr
    (folder / "release.toml").write_text(ASKED)
    told = run("check", "--setup", folder / "release.toml", "--about", 9).stdout
    assert "\nnoise            query: discrete Laplace" in told
    (folder / "release.toml").write_text(ASKED.replace(LIMITED, PIPELINE))
    assert "no limit" in typed("run", folder / "release.toml", code=2).stderr
    assert not (folder / "ledger.db").exists() or not published(folder)
