"""dphmm studio: the file that it begins with, and where the page is; what is served is in tests/studio."""

from __future__ import annotations

import json

import pytest

from commands import run, walk_rows, write_rows

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from dphmm.studio.draft import ReleaseFile
from studio.conftest import GRID, LABELS


@pytest.fixture
def begun(tmp_path, monkeypatch):
    """begun("people.csv"): the session that the command serves."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dphmm.studio.session.Studio._plans", lambda *rest: None)
    served = []

    def serve(studio, port, opened):
        served.append((studio, port))
        opened("http://127.0.0.1:1/x/")

    monkeypatch.setattr("dphmm.studio.server.serve", serve)
    looked = []
    monkeypatch.setattr("webbrowser.open", looked.append)

    def called(*words):
        served.clear(), looked.clear()
        called.result = run("studio", *words)
        called.looked = list(looked)
        return served[0][0]

    return called


def test_a_table_begins_with_the_pipeline_of_init(begun, tmp_path):
    write_rows(tmp_path / "people.csv", ["who", "when", "lat", "lon"], walk_rows())
    one = begun("people.csv", "-o", "other.toml")
    assert (one.folder, one.name) == (tmp_path, "other.toml") and not (tmp_path / "other.toml").exists()
    assert one.file.draft.data["file"] == "people.csv" and one.shown().has_table and "a box" in one.shown().missing
    assert begun.result.stdout == "http://127.0.0.1:1/x/\n" and begun.looked == ["http://127.0.0.1:1/x/"]


@pytest.mark.parametrize("draft", [GRID, LABELS], ids=["map", "labels"])
def test_a_pipeline_file_is_gone_on_with(begun, tmp_path, draft):
    file = ReleaseFile(draft)
    for name, text in (file.others("mine.toml") | {"mine.toml": file.text("mine.toml")}).items():
        (tmp_path / name).write_text(text)
    one = begun("mine.toml", "--no-open", "--json")
    assert one.shown().text == file.text("mine.toml") and one.save(1)[-1] == "mine.toml"
    assert json.loads(begun.result.stdout) == {"address": "http://127.0.0.1:1/x/"} and begun.looked == []


def test_without_a_file_the_demo_is_offered(begun, tmp_path):
    assert not begun().shown().table and list(tmp_path.iterdir()) == []


def test_what_cannot_be_begun_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "release.toml").write_text("[query]\nepsilon = 1")
    assert "[query]" in run("studio", "release.toml", code=2).stderr
    assert "-o" in run("studio", "release.toml", "-o", "x.toml", code=2).stderr
    assert "FILE" in run("studio", "nothing.csv", code=2).stderr
    monkeypatch.setattr("dphmm.cli.studio.find_spec", lambda name: None)
    assert "pip install 'dphmm[studio]'" in run("studio", code=2).stderr
