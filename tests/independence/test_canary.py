"""A true place, moment or name is repeated nowhere: not by a command, its logs, its failures, or what it leaves behind.

Claim: whatever happens to import, fit, release and account, run in a process of their own with logs at the lowest
level, no secret (`secrets.FORMS`: digits, clock times, names; also as bytes of floats and integers, and hashed)
occurs in standard output or error, in the ledger with its log and shared memory, in the released file and its
statement, in any other file of the working and temporary folders. Allowed are the input and what ``import`` makes of
it, the owner's own table. Ends tried: success, refusal, rows that cannot be read, an unexpected exception with
private rows in local variables, a logged one, a faulthandler dump, kill -9 at named points, a full disk, Ctrl-C,
SIGTERM and abort.

It would fail for a message that quotes a row, a traceback with local variables, a forgotten temporary file, a
fingerprint of a row. The scan finds leaks that are planted into the same runs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dphmm
from dphmm.storage.ledger import open_ledger
from independence.commands import release_arguments, write_public_files
from independence.secrets import FORMS, GARBAGE, MOMENTS, NAME, PLACES, secrets_below, secrets_in

pytestmark = pytest.mark.replayed_words

TESTS, SOURCE = Path(__file__).parents[1], Path(dphmm.__file__).parents[1]
BOX = "10.0,50.0,10.042,50.027"


class Scene:
    """A folder with secret rows in ``in``, public files in ``out``, where commands run, and a temporary folder."""

    def __init__(self, folder: Path) -> None:
        self.rows, self.out, self.temporary = (folder / name for name in ("in", "out", "tmp"))
        for made in (self.rows, self.out, self.temporary):
            made.mkdir()
        write_public_files(self.out)
        rows = [f"ann,{t},{lat},{lon}" for t, (lat, lon) in zip(MOMENTS, PLACES, strict=True)]
        self._write("town.csv", "user,t,lat,lon", rows)
        bad = [f"ann,{MOMENTS[0]},{GARBAGE},{PLACES[0][1]}", f"bob,{GARBAGE},{PLACES[1][0]},1", f"{NAME},x,{NAME},y"]
        self._write("bad.csv", "user,t,lat,lon", [*rows, *bad])
        self._write("hopeless.csv", "user,t,lat,lon", bad)
        self._write("ragged.csv", "user,t,lat,lon", [*rows, f"ann,{NAME},{GARBAGE}"])
        self._write("site.csv", "user,state", ["ann,home", f"ann,{NAME}", f"bob,{NAME}", "bob,news"])

    def _write(self, name: str, header: str, rows: list[str]) -> None:
        (self.rows / name).write_text("\n".join([header, *rows, ""]))

    def run(self, *commands: tuple[str, list[str]], code: int = 0) -> str:
        """Run commands with their faults in one process; what it printed."""
        todo = self.rows / "commands.json"
        todo.write_text(json.dumps(commands))
        cache = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")},
            "PYTHONPATH": f"{SOURCE}{os.pathsep}{TESTS}",
            "TMPDIR": str(self.temporary),
            "HOME": str(self.temporary),
            "XDG_CACHE_HOME": cache,
        }
        command = [sys.executable, "-X", "dev", "-m", "independence.driver", str(todo)]
        done = subprocess.run(command, capture_output=True, cwd=self.out, env=environment, check=False)
        told = (done.stdout + done.stderr).decode()
        assert done.returncode == code, told
        return told

    def leaks(self, told: str) -> dict[str, list[str]]:
        """Secrets in what was printed, and in every file but the owner's own."""
        found = secrets_below(self.out) | secrets_below(self.temporary)
        return found | ({"printed": secrets_in(told.encode())} if secrets_in(told.encode()) else {})


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def release(rows: str = "town", ledger: str = "ledger.db", output: str = "released.parquet", *more: str) -> list[str]:
    """The arguments of a release of a file of secrets."""
    kind = "site" if rows == "site" else "town"
    arguments = release_arguments(kind, output, *more)
    arguments[1] = f"../in/{rows}.csv"
    arguments[arguments.index("--ledger") + 1] = ledger
    return arguments


def ends(told: str) -> list[str]:
    """How each command ended."""
    return [line.rpartition(" ended with ")[2] for line in told.splitlines() if " ended with " in line]


@pytest.mark.slow
def test_a_days_work_repeats_no_secret(scene):
    """Import, fit, policy, plan, release, resume, a second query, accounts; drift, bad rows and refusals among them."""
    fit = [
        "fit",
        "../in/bad.csv",
        "-o",
        "own.npz",
        "--grid",
        "1km",
        "--bbox",
        BOX,
        "--step",
        "5min",
        "--smoothing",
        "1",
    ]
    work = {
        "import": (["import", "csv", "../in/bad.csv", "-o", "../in/imported.parquet"], 3),
        "fit": (fit, 3),
        "policy": (["policy", "radius", "own.npz", "-o", "own.json", "--radius", "1500m"], 0),
        "inspect": (["plan", "--details", "own.npz", "--policy", "own.json", "--json"], 0),
        "dry run": (release("town", "ledger.db", "dry.csv", "--dry-run"), 0),
        "release": (release("town", "ledger.db", "released.parquet"), 0),
        "resume": (release("town", "ledger.db", "released.parquet", "--json"), 0),
        "second query": (release("town", "ledger.db", "second.csv", "--query", "again"), 0),
        "bad rows": (release("bad", "bad.db", "bad.csv"), 3),
        "unknown names": (release("site", "site.db", "site.csv"), 0),
        "account": (["account", "ledger.db", "--json"], 0),
        "released before": (release("town", "ledger.db", "before.csv", "--new"), 2),
        "cap": (release("town", "capped.db", "capped.csv", "--cap-epsilon", "2"), 1),
        "bad cap": (release("town", "cost.db", "cost.csv", "--cap-cost", "1/3"), 2),
        "only bad rows": (release("hopeless", "no.db", "hopeless.csv"), 2),
        "ragged rows": (release("ragged", "ragged.db", "ragged.csv"), 3),
        "no such column": (release("town", "no.db", "column.csv", "--state-column", NAME[:6]), 2),
    }
    told = scene.run(*((name, arguments) for name, (arguments, _) in work.items()))
    assert ends(told) == [str(code) for _, code in work.values()]
    assert scene.leaks(told) == {}
    assert secrets_below(scene.rows), "the scan sees the input"


@pytest.mark.slow
def test_releases_that_fail_or_are_stopped_repeat_no_secret(scene):
    """A traceback as Python prints it, an error that is logged and printed by rich, a dump, Ctrl-C, SIGTERM."""
    faults = {
        "exception": ("an exception", "RuntimeError: an error that nobody expected"),
        "database": ("an exception", "DatabaseError: a database that failed"),
        "logged": ("0", "an error that somebody logs"),
        "dump": ("0", "(most recent call first)"),
        "SIGINT": ("130", "interrupted: 0 releases of this run are stored"),
        "SIGTERM": ("143", "interrupted: 0 releases of this run are stored"),
        "full:20000": ("1", "error: "),
    }
    told = scene.run(*((fault, release("town", f"{fault[:8]}.db", f"{fault[:4]}.csv")) for fault in faults))
    assert ends(told) == [end for end, _ in faults.values()]
    assert [said for _, said in faults.values() if said not in told] == []
    assert scene.leaks(told) == {}


KILLS = [
    "statement 2:INSERT INTO release",
    "statement 1:UPDATE account",
    "statement 1:COMMIT",
    "SIGKILL",
    "SIGABRT",
]


@pytest.mark.slow
@pytest.mark.parametrize("fault", [KILLS[0], *(pytest.param(fault, marks=pytest.mark.long) for fault in KILLS[1:])])
def test_a_killed_release_leaves_no_secret(scene, fault):
    """Killed with the ledger open and rows in it; the log, the shared memory and half-written files are scanned."""
    told = scene.run((fault, release()), code=-6 if fault == "SIGABRT" else -9)
    assert (scene.out / "ledger.db-wal").exists()
    assert scene.leaks(told) == {}
    with open_ledger(scene.out / "ledger.db") as ledger:
        ledger.check()
    assert scene.leaks(told) == {}


@pytest.mark.slow
def test_planted_leaks_are_found(scene):
    """The check can fail: the same run with one line of debugging, one forgotten file, or locals in tracebacks."""
    leaks = ("debug line", "a file left behind", "locals")
    told = scene.run(*((leak, release("town", f"{leak}.db", f"{leak}.csv")) for leak in leaks))
    line, file, local = (secrets_in(part.encode()) for part in told.split(" ended with ")[:3])
    assert line
    assert not file
    assert local
    assert secrets_below(scene.temporary)
    assert not secrets_below(scene.out)


def test_every_form_of_a_secret_is_seen(tmp_path):
    """The check can fail: each form is found in a file, in another case too where it is text."""
    for form, data in FORMS.items():
        (tmp_path / "file.bin").write_bytes(b"before" + (data.upper() if data.isascii() else data) + b"after")
        assert form in secrets_below(tmp_path)["file.bin"]


def test_the_public_files_have_no_secrets(tmp_path):
    """None of the forms is so short that it occurs by chance."""
    write_public_files(tmp_path)
    for path in SOURCE.rglob("*.py"):
        shutil.copy(path, tmp_path)
    assert secrets_below(tmp_path) == {}
