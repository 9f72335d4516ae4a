"""The folder of a release knows its own files, and which ledger counts it."""

from __future__ import annotations

import json
import os
import shutil

import pandas as pd
import pytest

import dphmm
from dphmm.errors import InvalidInput
from dphmm.storage.inputs import replacing
from dphmm.storage.release_folder import INDEX, ReleaseFolder

pytestmark = pytest.mark.replayed_words
SETUP = dphmm.Setup.labels(["a", "b", "c"], moves=[[8, 1, 1], [2, 7, 1], [4, 4, 2]])


@pytest.mark.parametrize("change", ["another file", "other bytes", "a file less"])
def test_what_does_not_belong_to_the_release_is_found(tmp_path, change):
    table = pd.DataFrame({"user": "u", "step": [1, 2, 3, 4], "state": "a"})
    plan = SETUP.plan(2, per=4, epsilon=2, people=20, progress=False)
    place = plan.release(table, tmp_path / "out", progress=False).folder
    assert place.others() == []
    if change == "another file":
        (place.path / "walks.csv").write_text("user,step,state\n")
        assert place.others() == ["walks.csv, which the index does not name"]
    elif change == "other bytes":
        place.table.write_text("user,step\n")
        assert place.others() == ["released.csv, which was changed since it was written"]
    else:
        (place.path / "plan.json").unlink()
        assert place.others() == ["plan.json, which is missing"]


def test_a_folder_whose_making_was_killed_is_made_again(tmp_path):
    place = ReleaseFolder.of(tmp_path / "out")
    place.path.mkdir()
    (place.path / ".index.json.0123456789abcdef.part").write_text("{")
    place.create()
    assert place.files() == {}
    (place.path / INDEX).unlink()
    (place.path / ".released.csv.0123456789abcdef.part").write_text("user")
    with pytest.raises(InvalidInput, match="has files and is no release"):
        place.create()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2, "files": {}}', '{"format": 1, "files": []}'])
def test_an_index_that_is_none_is_refused(tmp_path, text):
    (tmp_path / INDEX).write_text(text)
    with pytest.raises(InvalidInput, match="as dphmm wrote it"):
        ReleaseFolder.opened(tmp_path)


def test_an_owner_s_record_that_is_none_is_refused(tmp_path):
    place = ReleaseFolder.of(tmp_path / "out")
    place.create()
    (place.owner / "owner.json").write_text(json.dumps({"format": 1, "ledger": 3, "id": ""}))
    with pytest.raises(InvalidInput, match="as dphmm wrote it"):
        place.ledger()


def test_a_killed_run_leaves_nothing_among_what_is_published_and_the_next_tidies_up(tmp_path):
    """The process ends while rows are written: neither the index nor a checker has anything to say of it."""
    table = pd.DataFrame({"user": "u", "step": [1, 2, 3, 4], "state": "a"})
    plan = SETUP.plan(2, per=4, epsilon=2, people=20, progress=False)
    place = plan.release(table, tmp_path / "out", progress=False).folder
    (place.owner / ".people.parquet.0123456789abcdef.part").write_text("another command's")
    killed = os.fork()
    if not killed:
        with replacing(place.table) as temporary:
            temporary.write_text("user,step")
            os._exit(9)
    os.waitpid(killed, 0)
    assert len(list(place.owner.glob(".released.csv.*.part"))) == 1 and place.others() == []
    plan.release(table, tmp_path / "out", progress=False)
    assert [path.name[:8] for path in place.owner.glob(".*.part")] == [".people."]


def test_a_copy_of_a_ledger_without_its_owner_s_files_is_the_same_ledger(tmp_path):
    place = ReleaseFolder.of(tmp_path / "out")
    place.create()
    dphmm.open_ledger(tmp_path / "ledger.db").close()
    place.keep_ledger(tmp_path / "ledger.db")
    shutil.copy(tmp_path / "ledger.db", tmp_path / "copy.db")
    assert place.ledger(tmp_path / "copy.db") == tmp_path / "copy.db"
    # To look makes nothing: no key, and no folder for one.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.db", "ledger.db", "out", "out.owner"]
    dphmm.open_ledger(tmp_path / "other.db").close()
    with pytest.raises(InvalidInput, match="which is another ledger"):
        place.ledger(tmp_path / "other.db")


def test_released_rows_whose_ledger_and_record_are_lost_are_not_asked_again(tmp_path):
    table = pd.DataFrame({"user": "u", "step": [1, 2, 3, 4], "state": "a"})
    plan = SETUP.plan(2, per=4, epsilon=2, people=20, progress=False)
    plan.release(table, tmp_path / "out", progress=False)
    shutil.rmtree(tmp_path / "out.owner")
    (tmp_path / "ledger.db").unlink()
    with pytest.raises(InvalidInput, match=r"ledger: got .*which does not exist"):
        plan.release(table, tmp_path / "out", progress=False)
    assert not (tmp_path / "ledger.db").exists()


@pytest.mark.parametrize("name", ["out/walks.csv", "out/deep/walks.csv", "out.owner/rejected.csv"])
def test_rows_of_people_are_never_among_what_is_published(tmp_path, name):
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_text("user,step,state\nann,1,a\n")
    with pytest.raises(InvalidInput, match="folder: got "):
        SETUP.plan(epsilon=1).release(tmp_path / name, tmp_path / "out", progress=False)
    place = ReleaseFolder.of(tmp_path / "out")
    with pytest.raises(InvalidInput, match="another folder than that of the rows"):
        place.check_source(tmp_path / name)
    assert not (tmp_path / "ledger.db").exists()


def test_the_ledger_is_found_where_the_folders_were_moved_to_together(tmp_path):
    (tmp_path / "here").mkdir()
    place = ReleaseFolder.of(tmp_path / "here" / "out")
    place.create()
    dphmm.open_ledger(tmp_path / "here" / "ledger.db").close()
    place.keep_ledger(tmp_path / "here" / "ledger.db")
    (tmp_path / "here").rename(tmp_path / "there")
    assert ReleaseFolder.of(tmp_path / "there" / "out").ledger() == tmp_path / "there" / "ledger.db"
