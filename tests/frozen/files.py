"""Files of every kind as a version wrote them, in one archive in the tree: every later version reads them alike.

`python -m frozen.files` writes the archive of this version, once, before its tag. A later version adds its own.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import json
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import dphmm
from commands import typed
from dphmm.choose.schedule_plan import read_plan
from dphmm.storage import load_hidden_model, load_model, load_policy, load_policy_space, load_table, save_model
from dphmm.storage.models import load_people
from dphmm.storage.release_table import ReleaseTable, write_rows
from dphmm.storage.tables import read_table

FOLDER = Path(__file__).parent / "files"
SAID = "said.json"
PEOPLE = ("ann", "bob", "eve")
_DAY = "2026-03-02T"
_ZONES = {
    "type": "FeatureCollection",
    "features": [
        {
            "type": "Feature",
            "properties": {"name": name},
            "geometry": {
                "type": "Polygon",
                "coordinates": [[[x, 52.0], [x + 0.02, 52.0], [x + 0.02, 52.02], [x, 52.02], [x, 52.0]]],
            },
        }
        for name, x in (("west", 13.0), ("middle", 13.02), ("east", 13.04))
    ],
}
_PLACES = [(52.482, 13.302), (52.489, 13.318), (52.497, 13.331), (52.512, 13.349)]
_PAGES = ["home", "search", "item", "cart"]
#: Commands by the files that they write, in the order in which they are run.
COMMANDS: dict[str, str] = {
    "grid.npz": "model grid --bbox 13.30,52.48,13.36,52.52 --cell 1km --step 1h --max-speed 20km/h",
    "still.npz": "model grid --bbox 13.30,52.48,13.36,52.52 --cell 1km --step 1h --max-speed 2km/h --jump 0",
    "zones.npz": "model zones zones.geojson --zone-id name --step 1h --max-speed 20km/h",
    "pages.npz": "model matrix pages.csv",
    "fitted.npz": "fit clicks.csv --state-column page --epsilon 1 --max-length 4 --states-file states.csv",
    "slots.npz": "fit places.csv --states-of grid.npz --step 1h --slots 1d/8h --epsilon 1 --max-length 24",
    "own.npz": "fit clicks.csv --state-column page",
    "hidden.npz": "fit clicks.csv --symbols page --symbols-file symbols.csv --states 2 --epsilon 1 --max-length 4",
    "radius.json": "policy radius grid.npz --covers 1km",
    "complete.json": "policy complete pages.npz",
    "knn.json": "policy knn grid.npz --k 2",
    "transition.json": "policy transition still.npz",
    "union.json": "policy union grid.npz radius.json knn.json",
    "merged.json": "policy edges zones.npz --graph pairs.csv --merge-lonely",
    "table.npz": "optimize pages.npz --policy complete.json --epsilon 1",
    "plan.json": "plan grid.npz --policy radius.json --path-epsilon 12 --per 1d --people 40",
    "places": "release places.csv --model grid.npz --policy radius.json --plan plan.json",
    "clicks": "release clicks.csv --model pages.npz --policy complete.json --epsilon 1/2 --path-epsilon 2 --steps 4 "
    "--state-column page --ledger clicks.db",
    "visits.parquet": f"query histogram clicks.csv --states states.csv --state-column page --times 4 --step 1min "
    f"--from {_DAY}10:00:00Z --epsilon 1 --ledger clicks.db --id visits",
}

#: The models that policies are of, by the name of the policy.
_POLICIES = {
    **{"radius": "grid", "knn": "grid", "union": "grid"},
    **{"complete": "pages", "transition": "still", "merged": "zones"},
}
_NO_MODELS = ("hidden", "table")
#: Made of public files by plain arithmetic: the same bytes whenever they are written.
PUBLIC = ("grid.npz", "still.npz", "zones.npz", "pages.npz", *(f"{name}.json" for name in _POLICIES))


def write_inputs(folder: Path) -> None:
    """Public files and the rows of three people."""
    (folder / "zones.geojson").write_text(json.dumps(_ZONES))
    for column, name in (("state", "states.csv"), ("symbol", "symbols.csv")):
        (folder / name).write_text("\n".join([column, *_PAGES]) + "\n")
    tables: dict[str, list[list[Any]]] = {
        "pairs.csv": [["a", "b"], ["west", "middle"]],
        "pages.csv": [_PAGES, [2, 5, 1, 0], [1, 3, 6, 0], [1, 3, 2, 4], [5, 1, 0, 2]],
        "places.csv": [["user", "t", "lat", "lon"]],
        "clicks.csv": [["user", "t", "page"]],
    }
    for person, user in enumerate(PEOPLE):
        for hour in range(24):
            lat, lon = _PLACES[(hour // 6 + person) % 4]
            tables["places.csv"].append([user, f"{_DAY}{hour:02d}:00:00Z", lat, lon])
        for minute in range(4):
            tables["clicks.csv"].append([user, f"{_DAY}10:0{minute}:00Z", _PAGES[(minute + person) % 4]])
    for name, rows in tables.items():
        with (folder / name).open("w", newline="") as file:
            csv.writer(file).writerows(rows)


def make(folder: Path, names: Iterable[str]) -> None:
    """Write the files of these names, by this version."""
    with contextlib.chdir(folder):
        for name in names:
            typed(*COMMANDS[name].split(), "-o", name)


def make_others(folder: Path) -> None:
    """Write the files that no command writes."""
    model, paths = load_model(folder / "pages.npz"), [[0, 1, 2, 3], [1, 2, 2]]
    save_model(dphmm.MarkovModel.second_order(model, paths, epsilon=1, max_length=4), folder / "second.npz")
    table = ReleaseTable.open(folder / "table")
    for z in ([1, 2], [3]):
        turn = table.begin({"epsilon": "1"}, holder="driver", seconds=60)
        turn.commit([write_rows(pa.table({"z": z}), turn.entry_path(0))], {"epsilon": "1"}, rows=len(z))


def write() -> Path:
    """Write the archive of this version."""
    path = FOLDER / f"{dphmm.__version__}.zip"
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name, zipfile.ZipFile(path, "x", zipfile.ZIP_DEFLATED) as archive:
        folder = Path(name)
        write_inputs(folder)
        make(folder, COMMANDS)
        make_others(folder)
        (folder / SAID).write_text(json.dumps(said(folder)))
        for file in sorted(folder.rglob("*")):
            if not file.name.endswith(".lock"):
                archive.write(file, file.relative_to(folder))
    return path


def said(folder: Path) -> dict[str, Any]:
    """What the files of a folder say, as this version reads them."""
    models = {path.stem: load_model(path) for path in sorted(folder.glob("*.npz")) if path.stem not in _NO_MODELS}
    policies, spaces = {}, {}
    for name, of in _POLICIES.items():
        path, model = folder / f"{name}.json", models[of]
        spaces[name] = load_policy_space(path, model.space)
        policies[name] = load_policy(path, space=spaces[name], model=model)
    plan = read_plan(folder / "plan.json", models["grid"], policies["radius"], spaces["radius"])
    hidden = load_hidden_model(folder / "hidden.npz")
    made, people = load_table(folder / "table.npz"), load_people(folder / "own.npz")
    assert people is not None
    found: dict[str, Any] = {
        "models": {name: [model.digest, model.space.digest, model.n_states] for name, model in models.items()},
        "hidden": _digest(hidden.startprob_, hidden.transmat_, hidden.emissionprob_),
        "policies": {name: [policy.digest, spaces[name].digest] for name, policy in policies.items()},
        "made": [made.digest, str(made.epsilon)],
        "people": [people.has_one_of([name]) for name in (*PEOPLE, "zoe")],
        "table": ReleaseTable.open(folder / "table").read(verify=True)["z"].to_pylist(),
        "visits": read_table(folder / "visits.parquet").to_pydict(),
        "of visits": json.loads((folder / "visits.parquet.privacy.json").read_text()),
        "plan": [plan.document()["schedule"], plan.expected_error, list(plan.times)],
    }
    for name, ledger_file in (("places", "ledger.db"), ("clicks", "clicks.db")):
        typed("check-release", folder / name)
        released = dphmm.open(folder / name)
        with dphmm.open_ledger(folder / ledger_file) as ledger:
            found[name] = {
                "rows": released.rows.astype(str).fillna("").to_numpy().tolist(),
                "choices": released.statement.choices,
                "spent": {person: str(ledger.spent(person).epsilon) for person in PEOPLE},
                "stored": [
                    [subject, query, entry.t, entry.z]
                    for subject, query in ledger.sessions()
                    for entry in ledger.entries(subject, query)
                ],
            }
    loaded: dict[str, Any] = json.loads(json.dumps(found, default=str))
    return loaded


def _digest(*arrays: Any) -> str:
    return hashlib.sha256(b"".join(np.asarray(array, dtype=np.float64).tobytes() for array in arrays)).hexdigest()


def archives() -> list[Path]:
    """The archives of the tree."""
    return sorted(FOLDER.glob("*.zip"))


if __name__ == "__main__":
    print(write())
