"""How many threads loops use: what the machine has, or fewer where the environment says so."""

from __future__ import annotations

import os

import pytest

from dphmm._kernels.threads import cores


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
