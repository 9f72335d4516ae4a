"""A new ledger draws its id from the system, for no row: runs that are compared draw the same one."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dphmm.storage.ledger import schema


@pytest.fixture(autouse=True)
def one_id(monkeypatch):
    monkeypatch.setattr(schema, "secrets", SimpleNamespace(token_hex=lambda n: "0" * 2 * n))
