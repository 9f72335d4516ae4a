"""Nothing that a command says, and nothing in a ledger, repeats a private value: canaries."""

from __future__ import annotations

import json
import shutil

import pytest

# Names and digits that occur nowhere else. No model knows the state, so not even an estimate may show it.
STATE = "CANARY_7f3a_hidden"
DIGITS = "50.01937465"
MOMENT = "2024-05-06T08:03:41.867531Z"


@pytest.fixture
def everything_said(tmp_path):
    """Collects what commands print, and reads it together with every file under a folder."""
    said = []

    def collect(*results):
        for result in results:
            said.extend((result.stdout, result.stderr))
        files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and "in" not in path.parts]
        return "\n".join(said).encode() + b"\n".join(files)

    return collect


def test_a_state_that_is_drift_is_shown_nowhere(site, tmp_path, run, release_of, everything_said):
    folder = tmp_path / "in"
    shutil.copytree(site, folder)
    with (folder / "visits.csv").open("a") as file:
        file.write(f"v0,{STATE}\nv0,alpha\nv1,{STATE}\n")
    released = run(*release_of(folder, tmp_path, "visits.csv", "complete.json"), "--json")
    again = run(*release_of(folder, tmp_path, "visits.csv", "complete.json"))
    refused = run(*release_of(folder, tmp_path, "visits.csv", "complete.json"), "--new", code=2)
    told = run("account", tmp_path / "ledger.db", "--json")
    assert STATE.encode() not in everything_said(released, again, refused, told)


def test_rows_that_cannot_be_read_are_repeated_nowhere(town, tmp_path, run, release_of, everything_said):
    folder = tmp_path / "in"
    shutil.copytree(town, folder)
    bad = [f"u1,{MOMENT},{DIGITS},{STATE}", f"u2,{STATE},{DIGITS},10.0", f"u3,{MOMENT},{DIGITS}9e9,10.0"]
    with (folder / "walks.csv").open("a") as file:
        file.write("\n".join(bad) + "\n")
    imported = run("import", "csv", folder / "walks.csv", "-o", tmp_path / "t.parquet", code=3)
    fit = ("--grid", "1km", "--bbox", "10.0,50.0,10.056,50.036", "--step", "5min")
    fitted = run("fit", folder / "walks.csv", "-o", tmp_path / "m.npz", *fit, "--json", code=3)
    released = run(*release_of(folder, tmp_path), code=3)
    seen = everything_said(imported, fitted, released)
    for canary in (STATE, DIGITS, "867531", "01937465"):
        assert canary.encode() not in seen


def test_true_places_and_moments_of_good_rows_are_not_in_what_is_released(
    town, tmp_path, run, release_of, everything_said
):
    folder = tmp_path / "in"
    shutil.copytree(town, folder)
    (folder / "walks.csv").write_text(f"user,t,lat,lon\nu1,{MOMENT},{DIGITS},10.01\n")
    released = run(*release_of(folder, tmp_path), "--json")
    dry = tmp_path / "dry"
    dry.mkdir()
    planned = run(*release_of(folder, dry), "--dry-run")
    seen = everything_said(released, planned)
    for canary in (DIGITS, "867531", "08:03:41"):
        assert canary.encode() not in seen


def test_a_stream_repeats_nothing_of_a_line(town, tmp_path, run, release_of, everything_said):
    arguments = release_of(town, tmp_path)
    arguments[1] = "-"
    at = arguments.index("-o")
    arguments = arguments[:at] + arguments[at + 2 :]
    good = {"user": "u", "t": MOMENT, "lat": float(DIGITS), "lon": 10.01}
    lines = [json.dumps(good), json.dumps({**good, "lat": STATE}), json.dumps({**good, "t": STATE}), STATE]
    result = run(*arguments, input="\n".join(lines) + "\n", code=3)
    seen = everything_said(result)
    for canary in (STATE, DIGITS, "867531", "08:03:41"):
        assert canary.encode() not in seen
