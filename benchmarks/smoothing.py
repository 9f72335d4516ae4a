"""How much smoothing a finished release lowers its error on real people's data: a Markdown table.

    python benchmarks/smoothing.py --data FOLDER --out DIR [--inputs geolife-beijing,mvad] [--epsilons 0.5,1,2]

Every second person is fitted on, others are released, as in `benchmarks/real_data.py`; release and smoothing are the
commands. The owner then joins the truth to the smoothed file. A release that is there already is not made again.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

# Run as a script, the folder of this file is on the path, not the one above it.
sys.path.append(str(Path(__file__).resolve().parents[1]))

from benchmarks.real.errors import EARTH_METRES, answers_of, joined, with_estimates
from benchmarks.real.inputs import INPUTS, Input
from benchmarks.real.preparing import prepare
from benchmarks.real.running import command

#: Of each input the policies that are released.
POLICIES = {"geolife-beijing": ("radius", "complete"), "mvad": ("categorical", "complete")}
#: What is measured: the answer, the estimate made at the time, what smoothing makes of it.
PLACES = ("z", "estimate", "smoothed", "path")
_STEP_SECONDS = 300


def main() -> None:
    """Release, smooth and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of real data")
    parser.add_argument("--out", type=Path, required=True, help="where files go")
    parser.add_argument("--inputs", default="geolife-beijing,mvad", help="names of inputs, by commas")
    parser.add_argument("--epsilons", default="0.5,1,2")
    given = parser.parse_args()
    shown = [f"{kind} {place}" for kind in ("RMS", "median") for place in PLACES]
    shown += [f"named {place}" for place in PLACES[1:]]
    print("| " + " | ".join(["input", "policy", "ε", "rows", *shown, "seconds"]) + " |")
    print("|---" * (len(shown) + 5) + "|")
    for name in given.inputs.split(","):
        users = INPUTS[name].users
        folder = given.out / f"{name}-{users}"
        if not (folder / "prepared").exists():
            prepare(INPUTS[name], given.data, folder, users, command)
            (folder / "prepared").touch()
        for policy in POLICIES[name]:
            for epsilon in given.epsilons.split(","):
                print(line(name, folder, policy, epsilon), flush=True)


def line(name: str, folder: Path, policy: str, epsilon: str) -> str:
    """One row of the table."""
    given = INPUTS[name]
    both, seconds = measured(given, folder, policy, epsilon)
    answers = answers_of(given, folder)
    distances = [kilometres(both, place) if answers is None else units(both, place, answers) for place in PLACES]
    rms = [f"{np.sqrt((distance**2).mean()):.2f}" for distance in distances]
    median = [f"{np.median(distance):.2f}" for distance in distances]
    true = both.state if answers is not None else true_cells(given, folder, both)
    named = [f"{np.mean(both[column].to_numpy() == true):.1%}" for column in ("estimate", "smoothed", "path")]
    return "| " + " | ".join([name, policy, epsilon, f"{len(both):,}", *rms, *median, *named, f"{seconds:.0f}"]) + " |"


def measured(given: Input, folder: Path, policy: str, epsilon: str) -> tuple[pd.DataFrame, float]:
    """The rows released and smoothed with the truth beside them, and the seconds that smoothing took."""
    model = given.models[-1]
    name = folder / f"smoothing-{policy}-{epsilon}"
    place, smoothed, ledger = (Path(f"{name}.{end}") for end in ("out", "smoothed.parquet", "db"))
    released = place / "released.parquet"
    public = ["--model", folder / f"{model}.npz", "--policy", folder / f"{model}-{policy}.json"]
    if not released.exists():
        for left in folder.glob(f"{ledger.name}*"):
            left.unlink()
        owner = ["--epsilon", epsilon, "--ledger", ledger, "--model-people", "others", "-q", "--yes"]
        command("release", folder / "release.parquet", *public, "-o", place, "--format", "parquet", *owner)
    began = time.perf_counter()
    command("read", place, "--estimates", "-o", smoothed, "--path", "--force", "-q")
    seconds = time.perf_counter() - began
    after = pd.read_parquet(smoothed)
    before = with_estimates(pd.read_parquet(released), *public[1::2], ledger)
    rows = before.merge(after.drop(columns="t", errors="ignore"), on=["user", "step"])
    steps = _STEP_SECONDS if "--step" in given.fitting else None
    return joined(pd.read_parquet(folder / "release.parquet"), rows, steps), seconds


def kilometres(both: pd.DataFrame, name: str) -> np.ndarray:
    """Great-circle distances from the true places."""
    truth = np.radians(both[["lat", "lon"]].to_numpy())
    found = np.radians(both[[f"{name}_lat", f"{name}_lon"]].to_numpy())
    half = np.sin((found - truth) / 2) ** 2
    inner = half[:, 0] + np.cos(truth[:, 0]) * np.cos(found[:, 0]) * half[:, 1]
    return np.asarray(2 * EARTH_METRES / 1000 * np.arcsin(np.sqrt(inner)))


def units(both: pd.DataFrame, name: str, answers: pd.DataFrame) -> np.ndarray:
    """Distances from the true answers."""
    axes = [column for column in answers if column != "state"]
    numbers = answers.set_index("state")[axes]
    columns = [f"{name}_{j}" for j in range(len(axes))]
    found = numbers.loc[both[name]] if name == "path" else both[columns]
    return np.asarray(np.linalg.norm(found.to_numpy() - numbers.loc[both.state].to_numpy(), axis=1))


def true_cells(given: Input, folder: Path, both: pd.DataFrame) -> np.ndarray:
    """The names of the cells that the true places are in."""
    from dphmm.storage import load_model

    space = load_model(folder / f"{given.models[-1]}.npz").space
    assert space is not None
    states = space.locate(both.lat.to_numpy(), both.lon.to_numpy())
    return np.where(states >= 0, np.array(space.names, dtype=object)[states], "")


if __name__ == "__main__":
    main()
