"""That compiled kernels cannot be kept is said once for a folder, in one line with the remedy."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from dphmm._kernels import announced

REFUSED = PermissionError(errno.EACCES, "Permission denied")


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch):
    monkeypatch.setattr(announced, "_refused", set())
    monkeypatch.setattr(announced, "warn", None)


def test_whoever_asked_is_told_once_for_each_folder(monkeypatch):
    told = []
    monkeypatch.setattr(announced, "warn", told.append)
    for folder in ("/there", "/there", "/elsewhere"):
        announced.unkept(Path(folder), REFUSED)
    assert [line.split(" (")[0] for line in told] == [
        "compiled kernels cannot be kept in /there",
        "compiled kernels cannot be kept in /elsewhere",
    ]
    assert "Permission denied" in told[0] and "dphmm warm --to DIR" in told[0] and "\n" not in told[0]


def test_where_nobody_asked_it_is_a_warning():
    with pytest.warns(RuntimeWarning, match="Permission denied"):
        announced.unkept(Path("/there"), REFUSED)


def test_an_error_without_words_is_named_by_its_kind():
    with pytest.warns(RuntimeWarning, match=r"\(OSError\)"):
        announced.unkept(Path("/there"), OSError())
