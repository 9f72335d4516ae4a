"""Commands that are killed, and two at once, 128 and 129: what was released stays, once, and is paid for once.

Fails if a killed and resumed release differs in one byte from one that was never stopped (a row lost, doubled or drawn
again), if its ledger says less or more, or if two commands write one ledger.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dphmm.errors import LedgerBusy
from dphmm.storage.ledger import open_ledger
from faults import crash_driver
from faults.answers import Accepted, both_surfaces, refused
from faults.catalogue import command, fault, library
from faults.place import PAGES

SEED = 20_240_506


def driven(folder, *numbers):
    """What the driver said: one line per run."""
    done = subprocess.run(
        [sys.executable, crash_driver.__file__, str(folder), *map(str, numbers)],
        capture_output=True, text=True, check=True, timeout=600,
    )  # fmt: skip
    return [tuple(map(int, line.split())) for line in done.stdout.splitlines()]


def contents(path: Path):
    """Every stored step and account of a ledger."""
    with open_ledger(path) as ledger:
        ledger.check()
        steps = {key: ledger.entries(*key) for key in ledger.sessions()}
        return steps, {subject: ledger.spent(subject) for subject, _ in steps}


def killed_at_random(place, times):
    """The uninterrupted release, then as many killed and resumed ones; yields what each has published and stored."""
    whole = place / "whole"
    shutil.copytree(place.folder, whole, ignore=shutil.ignore_patterns("whole*"))
    (calls,), (_, status) = driven(whole, 0)
    assert status == 0 and calls > 1000
    points = sorted(random.Random(SEED).sample(range(1, calls), times))
    for point in points:
        shutil.copytree(whole, f"{whole}-{point}", ignore=shutil.ignore_patterns("out*", "l.db*"))
    statuses = dict(driven(whole, *points))
    assert statuses == dict.fromkeys(points, -9) | {-point: 0 for point in points}
    yield (whole / "out" / "released.csv").read_bytes(), contents(whole / "l.db")
    for point in points:
        folder = Path(f"{whole}-{point}")
        yield (folder / "out" / "released.csv").read_bytes(), contents(folder / "l.db")


def whole_after(times):
    def check(found):
        first, *others = found
        assert len(others) == times
        assert first[0].count(b"\n") == 11
        for published, stored in others:
            assert published == first[0]
            assert stored == first[1]

    return Accepted(check)


def held(place):
    """A command that waits for lines on standard input holds the ledger; another one comes."""
    arguments = PAGES.replace("visits.csv", "-").replace("-o out ", "").split()
    waiting = subprocess.Popen(
        [sys.executable, "-m", "dphmm", *arguments],
        cwd=place.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    place.waiting = waiting
    waiting.stdin.write('{"user": "first", "step": 1, "state": "alpha"}\n')
    waiting.stdin.flush()
    assert waiting.stdout.readline().startswith('{"user": "first"')
    return f"{PAGES} --quiet"


def only_the_first(result, place):
    place.waiting.communicate(timeout=60)
    assert place.waiting.returncode == 0
    lines = [line for line in result.stderr.splitlines() if not line.startswith(("warning: ", "note: "))]
    assert len(lines) == 1 and "another dphmm command is using it; wait for its end" in lines[0]
    assert result.stdout == "" and not (place / "out" / "released.csv").exists()
    with open_ledger(place / "l.db") as ledger:
        assert ledger.sessions() == [("first", "state")]


def held_by_a_program(place):
    with (
        open_ledger(place / "l.db") as one,
        one.lease("commands"),
        open_ledger(place / "l.db") as other,
        other.lease("commands"),
    ):
        return other


FAULTS = [
    fault(
        128, "kill -9 at random moments of a release, then the same command",
        "the file and the ledger of a release that was never stopped, byte for byte",
        library(lambda place: list(killed_at_random(place, 4)), whole_after(4)),
    ),
    fault(
        129, "two commands on one ledger", "the second one ends at once with exit 4; nothing of it is written",
        library(held_by_a_program, refused("ledger", "another dphmm command", error=LedgerBusy, in_ledger=True)),
        command(held, Accepted(only_the_first, exit_code=4)),
    ),
]  # fmt: skip


test_in_the_library, test_on_the_command_line = both_surfaces(FAULTS)


@pytest.mark.long
def test_killed_at_twenty_random_moments(place):
    whole_after(20).check(list(killed_at_random(place, 20)))


@pytest.mark.parametrize("found", [[(b"\n" * 11, 1), (b"x" + b"\n" * 11, 1)], [(b"\n" * 11, 1), (b"\n" * 11, 2)]])
def test_a_row_or_a_charge_that_differs_is_caught(found):
    with pytest.raises(AssertionError):
        whole_after(1).check(found)
