"""dphmm tune looks at public inputs alone, and recommends what it tried: whoever reads files, opens them, so they are
counted; names that would hide a setting are refused; the command it prints has every choice that was tried.
"""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

QUICK = ("--runs", 2, "--steps", 2, "--epsilon", 1, "--radius", "1.5km")

_WATCHED = """
import os, sys
from dphmm.cli.app import app
folder, seen = sys.argv[1], set()
def watch(event, arguments):
    if event in ("open", "sqlite3.connect") and arguments and isinstance(arguments[0], (str, bytes, os.PathLike)):
        path = os.path.abspath(os.fsdecode(arguments[0]))
        if path.startswith(folder):
            seen.add(os.path.relpath(path, folder))
sys.addaudithook(watch)
try:
    app(sys.argv[2:])
finally:
    print(*sorted(seen), file=sys.stderr)
"""


@pytest.mark.slow
def test_no_ledger_release_or_trajectory_is_opened(town, tmp_path, run, release_of):
    """They lie beside the model; the audit hook of Python sees whatever is opened."""
    folder = tmp_path / "town"
    shutil.copytree(town, folder)
    run(*release_of(town, folder))
    words = ["tune", str(folder / "model.npz"), "--target-dop", "2", "--policy", str(folder / "radius.json")]
    call = [sys.executable, "-c", _WATCHED, str(folder), *words, *map(str, QUICK)]
    told = subprocess.run(call, capture_output=True, text=True, cwd=folder, check=False)
    assert told.returncode == 0, told.stderr
    assert told.stderr.splitlines()[-1].split() == ["model.npz", "radius.json"]
    bare = run("tune", town / "model.npz", "--target-dop", 2, "--policy", town / "radius.json", *QUICK)
    assert bare.stdout == told.stdout


def test_two_policies_of_one_name_are_both_tried_or_none(town, tmp_path, run):
    """The second took the first's place without a word."""
    (tmp_path / "other").mkdir()
    shutil.copy(town / "radius.json", tmp_path / "other" / "radius.json")
    policies = ("--policy", town / "radius.json", "--policy", tmp_path / "other" / "radius.json")
    result = run("tune", town / "model.npz", *policies, *QUICK, code=2)
    assert result.stderr.startswith("error: --policy: got another policy of the name 'radius.json'")
