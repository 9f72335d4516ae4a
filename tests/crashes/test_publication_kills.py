"""A fit and a query with --ledger, killed at every statement and around the appearance of their files.

What fails if a result could be shown that is not stored, if a killed command could be paid twice, or if the same
command could not give what was stored when it died.
"""

from __future__ import annotations

import sys
from itertools import count

import pytest

import dphmm
from crashes import world
from crashes.campaign import Trial
from crashes.death import Death
from crashes.syscalls import AVAILABLE

pytestmark = pytest.mark.slow

BBOX = "10,50,10.1,50.1"
LEDGER = ["--ledger", "{folder}/ledger.db", "--id", "one", "--quiet", "--force", "--epsilon", "1"]
PUBLICATIONS = {
    "made.npz": Trial(
        "command",
        {"arguments": ["fit", "{folder}/walks.csv", "-o", "{folder}/made.npz", "--grid", "5km", "--bbox", BBOX,
                       "--step", "5min", "--max-length", "10", *LEDGER]},
    ),
    "counts.csv": Trial(
        "command",
        {"arguments": ["query", "histogram", "{folder}/walks.csv", "-o", "{folder}/counts.csv", "--states",
                       "{folder}/model.npz", "--model-people", "others", "--times", "3", "--dependence",
                       "group:3", *LEDGER]},
    ),
}  # fmt: skip
traced = pytest.mark.skipif(not AVAILABLE, reason="system calls are traced on Linux, x86-64 only")
linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are killed as on Linux")


def stored(folder):
    """The results that the ledger has, which its own check must pass."""
    if not (folder / "ledger.db").exists():
        return []
    with dphmm.open_ledger(folder / "ledger.db") as ledger:
        ledger.check()
        return [ledger.published(each.name) for each in ledger.publications()]


def finish(arena, folder, name):
    """Run it to its end twice: what was stored is what is shown, once, and the same both times."""
    before = stored(folder)
    ended = PUBLICATIONS[name].start(arena, folder, Death()).finish()
    assert ended.code == 0, ended.errors
    after, shown = stored(folder), (folder / name).read_bytes()
    assert len(after) == 1 and before in ([], after)
    assert name != "made.npz" or shown == after[0].result
    assert PUBLICATIONS[name].start(arena, folder, Death()).finish().code == 0
    assert stored(folder) == after and (folder / name).read_bytes() == shown
    return shown


def kill(arena, folder, name, death):
    """Whether it died there; nothing is shown then that is not stored."""
    world.write_files(folder)
    ended = PUBLICATIONS[name].start(arena, folder, death).finish()
    assert ended.code in (0, -9), ended.errors
    assert len(stored(folder)) <= 1
    if (folder / name).exists():
        (one,) = stored(folder)
        shown = (folder / name).read_bytes()
        assert name != "made.npz" or shown == one.result
        assert finish(arena, folder, name) == shown
    return ended.code == -9


@linux
@pytest.mark.parametrize("name", PUBLICATIONS)
def test_killed_at_every_statement_one_result_is_paid_once(arena, tmp_path, name):
    """The commit is the last statement: what died before it has stored nothing and shown nothing."""
    for n in count(1):
        folder = tmp_path / str(n)
        folder.mkdir()
        if not kill(arena, folder, name, Death("statement", n=n)):
            break
        assert stored(folder) == [] and not (folder / name).exists()
        if n % 5 == 0:
            finish(arena, folder, name)
    assert n > 20


@traced
@pytest.mark.parametrize("name", PUBLICATIONS)
def test_killed_between_stored_and_shown_the_same_result_comes(arena, tmp_path, name):
    """At every renaming of a file: the table, its statement and the model appear after the commit."""
    paid = 0
    for n in count(1):
        folder = tmp_path / str(n)
        folder.mkdir()
        if not kill(arena, folder, name, Death("syscall", n=n, calls=("rename",))):
            break
        paid += len(stored(folder))
        finish(arena, folder, name)
    assert paid >= 1
