"""What compiled loops share with the process.

That compiled kernels cannot be kept is said once for a folder, in one line with the remedy. Loops use as many threads
as the machine has, or fewer where the environment says so.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from dphmm._kernels import process
from dphmm._kernels.process import cores

REFUSED = PermissionError(errno.EACCES, "Permission denied")


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch):
    monkeypatch.setattr(process, "_refused", set())
    monkeypatch.setattr(process, "warn", None)


def test_whoever_asked_is_told_once_for_each_folder(monkeypatch):
    told = []
    monkeypatch.setattr(process, "warn", told.append)
    for folder in ("/there", "/there", "/elsewhere"):
        process.unkept(Path(folder), REFUSED)
    assert [line.split(" (")[0] for line in told] == [
        "compiled kernels cannot be kept in /there",
        "compiled kernels cannot be kept in /elsewhere",
    ]
    assert "Permission denied" in told[0] and "dphmm warm --to DIR" in told[0] and "\n" not in told[0]


def test_where_nobody_asked_it_is_a_warning():
    with pytest.warns(RuntimeWarning, match="Permission denied"):
        process.unkept(Path("/there"), REFUSED)


def test_an_error_without_words_is_named_by_its_kind():
    with pytest.warns(RuntimeWarning, match=r"\(OSError\)"):
        process.unkept(Path("/there"), OSError())


@pytest.fixture(autouse=True)
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that gives this process four cores."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 5}, raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


@pytest.mark.parametrize(
    "said, threads",
    [(None, 4), ("1", 1), ("3", 3), ("64", 4), ("2,1", 2), (" 2 ", 2), ("0", 4), ("", 4), ("many", 4), ("-1", 4)],
)
def test_a_number_of_threads_is_kept_to_and_anything_else_is_not(said, threads, monkeypatch):
    if said is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert cores() == threads
