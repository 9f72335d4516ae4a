"""The folder of a release knows its own files, and which ledger counts it."""

from __future__ import annotations

import json

import pandas as pd
import pytest

import dphmm
from dphmm.errors import InvalidInput
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


def test_the_ledger_is_found_where_the_folders_were_moved_to_together(tmp_path):
    (tmp_path / "here").mkdir()
    place = ReleaseFolder.of(tmp_path / "here" / "out")
    place.create()
    dphmm.open_ledger(tmp_path / "here" / "ledger.db").close()
    place.keep_ledger(tmp_path / "here" / "ledger.db")
    (tmp_path / "here").rename(tmp_path / "there")
    assert ReleaseFolder.of(tmp_path / "there" / "out").ledger() == tmp_path / "there" / "ledger.db"
