"""Bad input: the exit code, exactly one line, and nothing written (RELIABILITY 5)."""

from __future__ import annotations

import json
import re
import shutil

import pytest

GRID = "--grid 1km --bbox 10.0,50.0,10.056,50.036"
RELEASE = "release walks.csv --model model.npz --policy radius.json --epsilon 1 -o out.csv --ledger l.db"

CASES = {
    # import
    "import missing.csv": ("import csv missing.csv -o t.parquet", 2, "exists"),
    "import a folder": ("import csv . -o t.parquet", 2, "not a folder"),
    "import a device": ("import csv /dev/null -o t.parquet", 2, "plain file"),
    "import to a folder that is not there": (
        "import csv walks.csv -o none/t.parquet",
        2,
        "folder that exists",
    ),
    "import to another format": ("import csv walks.csv -o t.xlsx", 2, ".parquet, .csv"),
    "import onto its source": ("import csv walks.csv -o walks.csv", 2, "another file than the input"),
    "import a table without users": ("import csv nouser.csv -o t.parquet", 2, "--user-column"),
    "import naive times": ("import csv naive.csv -o t.parquet", 2, "--assume-utc, or with --timezone Europe/"),
    "import an empty file": ("import csv empty.csv -o t.parquet", 2, "0 rows"),
    "import a header only": ("import csv header.csv -o t.parquet", 2, "0 rows"),
    "import ragged rows": ("import csv ragged.csv -o t.parquet", 2, "row 3"),
    "import twice the same column": ("import csv twice.csv -o t.parquet", 2, "two columns"),
    "import Latin-1": ("import csv latin.csv -o t.parquet", 2, "UTF-8"),
    "import a pickle": ("import csv rows.pkl -o t.parquet", 2, "pickle"),
    "import Geolife from a table": ("import geolife walks.csv -o t.parquet", 2, "folder, .tar"),
    "import sequences without columns": ("import sequences walks.csv -o t.parquet", 2, "--columns: got nothing"),
    "import an unknown format": ("import strava x -o t.parquet", 2, "strava"),
    "import onto a file that is there": ("import csv walks.csv -o model.csv", 2, "--force"),
    "import a list of rows that is there": ("import csv walks.csv -o other.csv", 2, "other.csv.rejected.csv, which"),
    "import times of nowhere": ("import csv naive.csv -o t.parquet --timezone Mars/Olympus", 2, "--timezone: got Mars"),
    "import times of two zones": ("import csv naive.csv -o t.csv --timezone Europe/Berlin --assume-utc", 2, "not both"),
    "import by a long delimiter": ("import csv walks.csv -o t.parquet --delimiter ;;", 2, "--delimiter: got ;;"),
    # fit
    "fit without states": ("fit people.csv -o m.npz", 2, "--grid"),
    "fit with two kinds of states": (f"fit people.csv -o m.npz {GRID} --h3 8", 2, "--grid and --h3"),
    "fit a grid without its box": ("fit people.csv -o m.npz --grid 1km", 2, "publish the data's extent"),
    "fit a box without a grid": ("fit people.csv -o m.npz --h3 8 --bbox 1,2,3,4", 2, "--grid with it"),
    "fit a box of three": ("fit people.csv -o m.npz --grid 1km --bbox 1,2,3", 2, "W,S,E,N"),
    "fit a box that is no number": ("fit people.csv -o m.npz --grid 1km --bbox a,2,3,4", 2, "--bbox W"),
    "fit a box upside down": ("fit people.csv -o m.npz --grid 1km --bbox 10,51,11,50", 2, "north more than south"),
    "fit lat and lon swapped": ("fit people.csv -o m.npz --grid 1km --bbox 39,116,40,117", 2, "swapped"),
    "fit cells of no length": ("fit people.csv -o m.npz --grid 0m --bbox 10,50,11,51", 2, "more than 0"),
    "fit cells in furlongs": ("fit people.csv -o m.npz --grid 1furlong --bbox 10,50,11,51", 2, "340m or 1km"),
    "fit a step of nothing": (f"fit people.csv -o m.npz {GRID} --step 0min", 2, "more than 0"),
    "fit a step in words": (f"fit people.csv -o m.npz {GRID} --step soon", 2, "--step"),
    "fit a speed in words": (f"fit people.csv -o m.npz {GRID} --max-speed fast", 2, "--max-speed"),
    "fit negative smoothing": (f"fit people.csv -o m.npz {GRID} --smoothing -1", 2, "smoothing"),
    "fit smoothing that is no number": (f"fit people.csv -o m.npz {GRID} --smoothing 1_0", 2, "--smoothing"),
    "fit a count of 0": (f"fit people.csv -o m.npz {GRID} --min-count 0", 2, "--min-count"),
    "fit a start there is not": (f"fit people.csv -o m.npz {GRID} --initial last", 2, "--initial"),
    "fit a column there is not": ("fit people.csv -o m.npz --state-column page", 2, "page"),
    "fit answers for places": (
        f"fit people.csv -o m.npz {GRID} --answers ordinal",
        2,
        "--state-column with it",
    ),
    "fit rows far from the box": (
        "fit people.csv -o m.npz --grid 1km --bbox 100,50,100.1,50.1",
        2,
        "none of the 288 rows",
    ),
    "fit steps of rows without times": (
        "fit pages.csv -o m.npz --state-column state --step 5min",
        2,
        "--step: got 5min, and columns user, state",
    ),
    "fit onto its input": (f"fit people.csv -o people.csv {GRID}", 2, "another file"),
    "fit privately": (f"fit people.csv -o m.npz {GRID} --epsilon 1", 2, "--epsilon"),
    "fit cells without a unit": ("fit people.csv -o m.npz --grid 340 --bbox 10,50,11,51", 2, "m or km: 340m"),
    "fit a step without a unit": (f"fit people.csv -o m.npz {GRID} --step 5", 2, "--step: got 5; expected a unit"),
    "fit a gap without a unit": (f"fit people.csv -o m.npz {GRID} --step 5min --gap 10", 2, "--gap: got 10"),
    "fit a speed without a unit": (f"fit people.csv -o m.npz {GRID} --max-speed 150", 2, "m/s or km/h"),
    "fit steps without times": (
        "fit places.csv -o m.npz --state-column state --step 5min",
        2,
        "--step: got 5min, and columns user, state",
    ),
    "fit steps of steps": ("fit steps.csv -o m.npz --state-column state --step 5min", 2, "--step: got 300 s for rows"),
    "fit a gap without times": ("fit places.csv -o m.npz --state-column state --gap 5min", 2, "--gap: got no times"),
    "fit a speed without times": (f"fit still.csv -o m.npz {GRID} --max-speed 9km/h", 2, "--max-speed: got no times"),
    "fit a box the long way round": ("fit people.csv -o m.npz --grid 1km --bbox 11,50,10,51", 2, "antimeridian"),
    "fit half the globe": ("fit people.csv -o m.npz --grid 99km --bbox -100,0,100,1", 2, "200 degrees wide"),
    "fit too many cells": ("fit people.csv -o m.npz --grid 1m --bbox 10,50,11,51", 2, "a larger --grid"),
    "fit onto a file that is there": (f"fit people.csv -o model.npz {GRID}", 2, "--force"),
    # policy
    "policy of a radius without a unit": ("policy radius model.npz -o p.json --radius 1", 2, "m or km: 340m or 1km"),
    "policy of a radius in metres of pages": ("policy radius pages.npz -o p.json --radius 1km", 2, "answer units"),
    "policy onto a file that is there": ("policy complete model.npz -o radius.json", 2, "--force"),
    "union of another model's policies": (
        "policy union model.npz pages.json radius.json -o p.json",
        2,
        "another model",
    ),
    "policy for no model": ("policy complete none.npz -o p.json", 2, "existing model"),
    "policy for a text": ("policy complete walks.csv -o p.json", 2, "walks.csv"),
    "policy for half a model": ("policy complete half.npz -o p.json", 2, "half.npz"),
    "policy of radius 0": ("policy radius model.npz -o p.json --radius 0m", 2, "more than 0"),
    "policy of negative radius": ("policy radius model.npz -o p.json --radius -1km", 2, "--radius"),
    "policy of a graph in another format": ("policy edges model.npz -o p.json --graph g.dot", 2, ".graphml"),
    "policy of an unknown state": ("policy edges model.npz -o p.json --graph edges.csv", 2, "row 2"),
    "policy without labels": ("policy categorical model.npz -o p.json", 2, "--labels"),
    "policy onto its model": ("policy complete model.npz -o model.npz", 2, "another file"),
    # inspect
    "inspect another model's policy": ("inspect pages.npz --policy radius.json", 2, "made for another model"),
    "inspect epsilon 0": ("inspect model.npz --policy radius.json --epsilon 0", 2, "greater than 0"),
    # release
    "release epsilon 0": (RELEASE.replace("epsilon 1", "epsilon 0"), 2, "greater than 0"),
    "release epsilon below 0": (RELEASE.replace("epsilon 1", "epsilon -1"), 2, "greater than 0"),
    "release epsilon nan": (RELEASE.replace("epsilon 1", "epsilon nan"), 2, "epsilon"),
    "release epsilon inf": (RELEASE.replace("epsilon 1", "epsilon inf"), 2, "epsilon"),
    "release epsilon tiny": (RELEASE.replace("epsilon 1", "epsilon 1e-300"), 2, "2**-20"),
    "release epsilon huge": (RELEASE.replace("epsilon 1", "epsilon 1e18"), 2, "2**10"),
    "release epsilon with underscores": (RELEASE.replace("epsilon 1", "epsilon 1_000"), 2, "epsilon"),
    "release epsilon in other digits": (RELEASE.replace("epsilon 1", "epsilon ١٢"), 2, "epsilon"),
    "release no epsilon": (RELEASE.replace("--epsilon 1 ", ""), 2, "--epsilon"),
    "release delta 1": (RELEASE + " --constraint delta=1", 2, "delta"),
    "release delta below 0": (RELEASE + " --constraint delta=-0.1", 2, "delta"),
    "release a constraint there is not": (RELEASE + " --constraint all", 2, "expected support or delta=0.01"),
    "release a mechanism there is not": (RELEASE + " --mechanism gauss", 2, "mechanism"),
    "release a continuous mechanism": (RELEASE + " --mechanism laplace", 2, "mechanism"),
    "release a scope there is not": (RELEASE + " --scope local", 2, "scope"),
    "release a start there is not": (RELEASE + " --start now", 2, "start"),
    "release a cap below 0": (RELEASE + " --cap-cost -1", 2, "--cap-cost"),
    "release over a cap": (RELEASE.replace("l.db", "old.db") + " --cap-epsilon 1", 1, "--cap-epsilon"),
    "release a seed": (RELEASE + " --seed 1", 2, "--seed"),
    "release without a ledger": (RELEASE.replace("--ledger l.db", ""), 2, "--ledger"),
    "release without an output": (RELEASE.replace("-o out.csv", ""), 2, "-o"),
    "release onto a file that is there": (RELEASE.replace("out.csv", "people.csv"), 2, "exists"),
    "release onto its input": (RELEASE.replace("out.csv", "walks.csv"), 2, "another file"),
    "release onto its ledger": (
        RELEASE.replace("out.csv", "old.csv").replace("l.db", "old.csv"),
        2,
        "another file",
    ),
    "release to a folder that is not there": (RELEASE.replace("out.csv", "none/out.csv"), 2, "folder"),
    "release to another format": (RELEASE.replace("out.csv", "out.json"), 2, ".parquet, .csv"),
    "release with a ledger in no folder": (RELEASE.replace("l.db", "none/l.db"), 2, "folder"),
    "release with a text as ledger": (RELEASE.replace("l.db", "people.csv"), 2, "ledger"),
    "release no file": (RELEASE.replace("walks.csv", "none.csv"), 2, "exists"),
    "release pages on a map": (RELEASE.replace("walks.csv", "pages.csv"), 2, "t: got"),
    "release places of pages": (
        "release walks.csv --model pages.npz --policy pages.json --epsilon 1 -o out.csv --ledger l.db",
        2,
        "state column",
    ),
    "release another model's policy": (RELEASE.replace("radius.json", "pages.json"), 2, "made for another model"),
    "release a policy with a key twice": (RELEASE.replace("radius.json", "twice.json"), 2, "twice"),
    "release a policy of the future": (RELEASE.replace("radius.json", "future.json"), 2, "upgrade"),
    "release a stream to a file": (RELEASE.replace("walks.csv", "-"), 2, "standard output"),
    # account
    "account of nothing": ("account none.db", 2, "existing ledger"),
    "account of a text": ("account walks.csv", 2, "ledger"),
    "account of an empty file": ("account empty.csv", 2, "which is empty"),
    "account of a folder": ("account .", 2, "existing ledger"),
}


@pytest.fixture(scope="module")
def folder(town, site, tmp_path_factory):
    """The town's files, some pages, and files with something wrong in them."""
    made = tmp_path_factory.mktemp("bad") / "files"
    shutil.copytree(town, made)
    shutil.copy(site / "visits.csv", made / "pages.csv")
    shutil.copy(site / "model.npz", made / "pages.npz")
    shutil.copy(site / "complete.json", made / "pages.json")
    (made / "half.npz").write_bytes((made / "model.npz").read_bytes()[:1000])
    policy = json.loads((made / "radius.json").read_text())
    (made / "twice.json").write_text('{"format": 1, "format": 1}')
    (made / "future.json").write_text(json.dumps({**policy, "format": 99}))
    texts = {
        "nouser.csv": "t,lat,lon\n2024-01-01T00:00:00Z,1,2\n",
        "naive.csv": "user,t,lat,lon\na,2024-01-01T00:00:00,1,2\n",
        "empty.csv": "",
        "header.csv": "user,t,lat,lon\n",
        "ragged.csv": "user,lat,lon\na,1,2\nb,1\n",
        "twice.csv": "user,user,lat,lon\na,b,1,2\n",
        "edges.csv": "x0y0,x1y1\nx0y0,nowhere\n",
        "old.csv": "user\n",
        "model.csv": "",
        "other.csv.rejected.csv": "",
        "places.csv": "user,state\na,x\na,y\n",
        "steps.csv": "user,step,state\na,1,x\na,2,y\n",
        "still.csv": "user,lat,lon\na,50.01,10.01\n",
        "g.dot": "graph {}",
    }
    for name, text in texts.items():
        (made / name).write_text(text)
    (made / "latin.csv").write_bytes("user,lat,lon\nJos\xe9,1,2\n".encode("latin-1"))
    (made / "rows.pkl").write_bytes(b"\x80\x04.")
    from dphmm.storage.ledger import open_ledger

    open_ledger(made / "old.db").close()
    return made


def contents(folder):
    return {p.name: p.read_bytes() for p in sorted(folder.iterdir()) if not p.name.startswith("old.db")}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_one_line_and_nothing_is_written(case, folder, run, monkeypatch):
    command, code, told = CASES[case]
    before = contents(folder)
    monkeypatch.chdir(folder)
    result = run(*command.split(), code=code, input="")
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1, result.stderr
    assert told in result.stderr
    assert not re.search(r"[a-z]_column|assume_utc|save_|DeltaSet|cap_|min_count|=True|Fraction", result.stderr)
    assert contents(folder) == before
