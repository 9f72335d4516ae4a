"""Bad input of each command: the exit code, exactly one line, and nothing written.

What the catalogue of faults has (docs/faults.md, tests/faults) is not repeated here.
"""

from __future__ import annotations

import json
import re
import shutil
import zipfile

import pytest

GRID = "--grid 1km --bbox 10.0,50.0,10.056,50.036"
COMPLETE = "policy complete model.npz -o p.json"
RELEASE = "release walks.csv --model model.npz --policy radius.json --epsilon 1 -o out"
STREAM = "release - --model model.npz --policy radius.json --epsilon 1"

CASES = {
    # import
    "import missing.csv": ("import csv missing.csv -o t.parquet", "exists"),
    "import an archive without users": ("import csv nousers.zip -o t.parquet", "--user-column"),
    "import to a folder that is not there": ("import csv walks.csv -o none/t.parquet", "folder that exists"),
    "import to another format": ("import csv walks.csv -o t.xlsx", ".parquet, .csv"),
    "import Geolife from a table": ("import geolife walks.csv -o t.parquet", "folder, .tar"),
    "import sequences without columns": ("import sequences walks.csv -o t.parquet", "--columns: got nothing"),
    "import an unknown format": ("import strava x -o t.parquet", "strava"),
    "import a list of rows that is there": ("import csv walks.csv -o other.csv", "other.csv.rejected.csv, which"),
    "import by a long delimiter": ("import csv walks.csv -o t.parquet --delimiter ;;", "--delimiter: got ;;"),
    "import text whose header is not UTF-8": ("import csv latin.csv -o t.parquet", "--encoding latin-1, cp1252"),
    "import a semicolon file by a wrong column": (
        "import csv semicolon.csv -o t.parquet --user-column who",
        "one column alone; expected cells that are separated by semicolon: --delimiter",
    ),
    # fit
    "fit without states": ("fit people.csv -o m.npz", "--grid"),
    "fit with two kinds of states": (f"fit people.csv -o m.npz {GRID} --h3 8", "--grid and --h3"),
    "fit a grid without its box": ("fit people.csv -o m.npz --grid 1km", "publish the data's extent"),
    "fit a box without a grid": ("fit people.csv -o m.npz --h3 8 --bbox 1,2,3,4", "--grid with it"),
    "fit a box that is no number": ("fit people.csv -o m.npz --grid 1km --bbox a,2,3,4", "--bbox W"),
    "fit cells in furlongs": ("fit people.csv -o m.npz --grid 1furlong --bbox 10,50,11,51", "340m or 1km"),
    "fit a step in words": (f"fit people.csv -o m.npz {GRID} --step soon", "--step"),
    "fit a speed in words": (f"fit people.csv -o m.npz {GRID} --max-speed fast", "--max-speed"),
    "fit negative smoothing": (f"fit people.csv -o m.npz {GRID} --smoothing -1", "smoothing"),
    "fit smoothing that is no number": (f"fit people.csv -o m.npz {GRID} --smoothing 1_0", "--smoothing"),
    "fit smoothing beyond all floats": (f"fit people.csv -o m.npz {GRID} --smoothing 1e999", "--smoothing: got 1e999"),
    "fit a box beyond all floats": ("fit people.csv -o m.npz --grid 1km --bbox 1e999,50,11,51", "--bbox W: got 1e999"),
    "fit a speed beyond all floats": (
        f"fit people.csv -o m.npz {GRID} --max-speed {'9' * 350}m/s",
        "--max-speed: got 9999",
    ),
    "fit cells of next to nothing": (f"fit people.csv -o m.npz --grid 0.{'0' * 350}1m --bbox 10,50,11,51", "--grid"),
    "fit cells of hardly more": (f"fit people.csv -o m.npz --grid 0.{'0' * 315}1m --bbox 10,50,11,51", "10**7 cells"),
    "fit a count of 0": (f"fit people.csv -o m.npz {GRID} --min-count 0", "--min-count"),
    "fit a start there is not": (f"fit people.csv -o m.npz {GRID} --initial last", "--initial"),
    "fit a column there is not": ("fit people.csv -o m.npz --state-column page", "page"),
    "fit answers for places": (f"fit people.csv -o m.npz {GRID} --answers ordinal", "--state-column with it"),
    "fit steps of rows without times": (
        "fit pages.csv -o m.npz --state-column state --step 5min",
        "--step: got 5min, and columns user, state",
    ),
    "fit privately": (f"fit people.csv -o m.npz {GRID} --epsilon 1", "--epsilon"),
    "fit cells without a unit": ("fit people.csv -o m.npz --grid 340 --bbox 10,50,11,51", "m or km: 340m"),
    "fit a step without a unit": (f"fit people.csv -o m.npz {GRID} --step 5", "--step: got 5; expected a unit"),
    "fit a gap without a unit": (f"fit people.csv -o m.npz {GRID} --step 5min --gap 10", "--gap: got 10"),
    "fit a speed without a unit": (f"fit people.csv -o m.npz {GRID} --max-speed 150", "m/s or km/h"),
    "fit steps of steps": ("fit steps.csv -o m.npz --state-column state --step 5min", "--step: got 300 s for rows"),
    "fit a gap without times": ("fit places.csv -o m.npz --state-column state --gap 5min", "--gap: got no times"),
    "fit a speed without times": (f"fit still.csv -o m.npz {GRID} --max-speed 9km/h", "--max-speed: got no times"),
    "fit too many cells": ("fit people.csv -o m.npz --grid 1m --bbox 10,50,11,51", "a larger --grid"),
    # policy
    "policy for no model": ("policy complete none.npz -o p.json", "existing model"),
    "policy for a text": ("policy complete walks.csv -o p.json", "walks.csv"),
    "policy of a radius of next to nothing": (
        f"policy radius model.npz -o p.json --radius 0.{'0' * 390}1m",
        "--radius: got 1/1000",
    ),
    "policy of a graph in another format": ("policy edges model.npz -o p.json --graph g.dot", ".graphml"),
    "a setting that there is not": (
        COMPLETE + " --setting delta 0.1",
        "--setting: got delta; expected one of constraint",
    ),
    "a setting twice": (COMPLETE + " --setting start at --setting start before", "expected each of them once"),
    "a mechanism there is not": (COMPLETE + " --setting mechanism gauss", "--setting mechanism: got gauss"),
    "a continuous mechanism": (COMPLETE + " --setting mechanism laplace", "--setting mechanism: got laplace"),
    "a table that is not there": (COMPLETE + " --setting mechanism no.npz", "no.npz; expected an existing table file"),
    "a start there is not": (COMPLETE + " --setting start now", "--setting start: got now"),
    "policy without labels": ("policy categorical model.npz -o p.json", "--labels"),
    # plan --details
    "details of epsilon 0": ("plan --details model.npz --policy radius.json --epsilon 0", "greater than 0"),
    # release
    "release without an output": (RELEASE.replace("-o out", ""), "-o"),
    "release to a file": (RELEASE.replace("-o out", "-o out.csv"), "-o: got out.csv"),
    "release to a folder of other files": (RELEASE.replace("-o out", "-o full"), "which has files and is no release"),
    "release to a folder in none": (RELEASE.replace("-o out", "-o none/out"), "a folder in one that exists"),
    "release a stream without a ledger and an output": (STREAM, "--ledger"),
    "release no file": (RELEASE.replace("walks.csv", "none.csv"), "exists"),
    "release pages on a map": (RELEASE.replace("walks.csv", "pages.csv"), "90 invalid_state"),
    "release places of pages": (
        "release walks.csv --model pages.npz --policy pages.json --epsilon 1 -o out",
        "state column",
    ),
    "release a policy of the future": (RELEASE.replace("radius.json", "future.json"), "upgrade"),
    "release a stream to a file": (f"{STREAM} -o out.jsonl", "-o: got out.jsonl"),
    # read
    "read nothing": ("read none", "which does not exist"),
    "read a folder of other files": ("read full --estimates", "which is no folder of a release"),
    "read another table": ("read walks.csv --by blocks", "which is no folder of a release"),
    "report of another folder": ("report full", "which is no folder of a release"),
    "export of another folder": ("export full -o points.geojson", "which is no folder of a release"),
    "check another folder": ("check-release full", "which is no folder of a release"),
    # account
    "account of a text": ("account walks.csv", "ledger"),
    "account of an empty file": ("account empty.csv", "which is empty"),
    "account of a folder": ("account .", "existing ledger"),
    "account of no ledger": ("account none.db", "existing ledger"),
}


@pytest.fixture(scope="module")
def folder(town, site, tmp_path_factory):
    """The town's files, some pages, and files with something wrong in them."""
    made = tmp_path_factory.mktemp("bad") / "files"
    shutil.copytree(town, made)
    shutil.copy(site / "visits.csv", made / "pages.csv")
    shutil.copy(site / "model.npz", made / "pages.npz")
    shutil.copy(site / "complete.json", made / "pages.json")
    (made / "latin.csv").write_bytes("user,größe,t,lat,lon\n".encode("latin-1"))
    policy = json.loads((made / "radius.json").read_text())
    (made / "future.json").write_text(json.dumps({**policy, "format": 99}))
    texts = {
        "semicolon.csv": "Name;Zeit;lat;lon\na;2024-01-01T00:00:00Z;1;2\n",
        "nouser.csv": "t,lat,lon\n2024-01-01T00:00:00Z,1,2\n",
        "empty.csv": "",
        "model.csv": "",
        "other.csv.rejected.csv": "",
        "places.csv": "user,state\na,x\na,y\n",
        "steps.csv": "user,step,state\na,1,x\na,2,y\n",
        "still.csv": "user,lat,lon\na,50.01,10.01\n",
        "g.dot": "graph {}",
    }
    for name, text in texts.items():
        (made / name).write_text(text)
    (made / "full").mkdir()
    (made / "full" / "mine.txt").write_text("kept")
    with zipfile.ZipFile(made / "nousers.zip", "w") as archive:
        archive.write(made / "nouser.csv", "a.csv")
    return made


def contents(folder):
    return {p: p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_one_line_and_nothing_is_written(case, folder, run, monkeypatch):
    command, told = CASES[case]
    before = contents(folder)
    monkeypatch.chdir(folder)
    result = run(*command.split(), code=2, input="")
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1, result.stderr
    assert told in result.stderr
    assert not re.search(r"[a-z]_column|save_|DeltaSet|cap_|min_count|=True|Fraction", result.stderr)
    assert contents(folder) == before
