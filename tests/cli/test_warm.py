"""dphmm warm: after it, no command compiles anything, with the folder elsewhere and dphmm at another path.

Could fail: a command that calls a kernel with types that the small world does not have, a folder that serves only where
it was made, a folder that cannot be written and nobody is told.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import dphmm
from dphmm.cli import warm
from dphmm.cli.app import COMMANDS

compiling = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")

pytestmark = pytest.mark.replayed_words  # commands draw the system's
SOURCE = Path(dphmm.__file__).parents[1]
#: A command, and then what was compiled for it: kernels whose machine code was looked for in vain.
COUNTED = """
import atexit, json, sys

def told():
    from dphmm._kernels.compiled import KERNELS

    missed = [f"{one.py_func.__name__}{of}" for one in KERNELS for of in one.stats.cache_misses]
    print(json.dumps({"missed": missed, "found": sum(sum(one.stats.cache_hits.values()) for one in KERNELS)}))

atexit.register(told)
from dphmm.cli import main

main()
"""
#: The same where every world is planned as a large one is.
LARGE = """
from dphmm.choose import planning, simulated

planning._MOST_WORK, simulated._FILLED = 0, 9
"""
FEW = """
from dphmm.cli import main, warm

lines = [line for line in warm.commands() if line.startswith(("fit visits.csv -o line", "policy complete line"))]
warm.commands = lambda: lines
main()
"""


def python(script, *words, source=SOURCE, at=None, **environment):
    """A fresh process with dphmm of a folder."""
    path = os.pathsep.join(filter(None, [str(source), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, words)],
        cwd=at,
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=3000,
        check=False,
    )


@pytest.mark.slow
@compiling
def test_what_was_compiled_is_found_again(tmp_path):
    first, second = (python(FEW, "warm", "--to", tmp_path / "kept", "--json") for _ in range(2))
    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    one, two = json.loads(first.stdout), json.loads(second.stdout)
    assert one["folder"] == two["folder"] == str(tmp_path / "kept")
    assert one["compiled"] == len(list((tmp_path / "kept").rglob("*.nbc"))) > 0
    assert two["compiled"] == 0 < two["found"]


@compiling
def test_a_folder_that_cannot_be_written_is_refused(run, tmp_path):
    (tmp_path / "file").write_text("")
    said = run("warm", "--to", tmp_path / "file", code=2).stderr
    assert said == f"error: --to: got {tmp_path / 'file'}; expected a folder that can be written\n"


def test_nothing_to_compile_is_refused(run, monkeypatch):
    monkeypatch.setattr(numba.config, "DISABLE_JIT", True)
    assert "NUMBA_DISABLE_JIT" in run("warm", code=2).stderr


def test_the_small_world_runs_every_command_that_computes():
    names = {line.split()[0] for line in warm.commands()}
    # A pipeline runs the others; rows are read, split and written again without a kernel of their own.
    others = {"demo", "import", "warm", "run", "init", "split", "export", "check", "studio"}
    assert names == set(COMMANDS) - others


@pytest.mark.long
@compiling
def test_after_it_no_command_compiles_anything_also_at_another_path(tmp_path):
    kept, away = tmp_path / "kept", tmp_path / "away"
    warmed = python("from dphmm.cli import main; main()", "warm", "--to", kept, "--json")
    assert warmed.returncode == 0, warmed.stderr
    assert json.loads(warmed.stdout)["compiled"] > 100
    before = {path: path.stat().st_mtime_ns for path in kept.rglob("*")}
    shutil.copytree(SOURCE / "dphmm", away / "dphmm", ignore=shutil.ignore_patterns("__pycache__"))
    model, policy = "--model=demo-out/out/model.npz", "--policy=demo-out/out/policy.json"
    setting = (model, policy, "--epsilon", "1")
    plan = ("plan", "demo-out/out/model.npz", policy, "--path-epsilon", "4", "--per", "1d", "--people", "40")
    for words in (
        ("demo", "--people", "4", "--days", "1"),
        plan,
        ("release", "demo-out/people.parquet", *setting, "-o", "again", "--ledger", "again.db", "--yes"),
        ("policy", "radius", "demo-out/out/model.npz", "--covers", "680m", "--setting", "constraint", "delta=0.05",
         "-o", "sets.json"),
        ("release", "demo-out/people.parquet", model, "--policy=sets.json", "--epsilon", "1", "-o", "sets",
         "--ledger", "sets.db", "--yes"),
        ("read", "again", "--estimates", "-o", "smoothed.csv"),
        ("check-release", "again"),
        ("report", "again", "--truth", "demo-out/people.parquet"),
    ):  # fmt: skip
        done = python(
            LARGE + COUNTED if words == plan else COUNTED, *words, source=away, at=tmp_path, DPHMM_KERNELS=str(kept)
        )
        assert done.returncode == 0, (words, done.stderr)
        told = json.loads(done.stdout.splitlines()[-1])
        assert told["missed"] == [] and told["found"] > 0, (words, told)
    assert {path: path.stat().st_mtime_ns for path in kept.rglob("*")} == before
