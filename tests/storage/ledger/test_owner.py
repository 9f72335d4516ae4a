"""The owner's folder beside a ledger.

It could fail where a key can be read by others, where a second one replaces it, or where one is made by looking.
"""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from dphmm.errors import InvalidInput
from dphmm.storage.ledger.owner import owner_folder, owner_key

pytestmark = pytest.mark.replayed_words


def test_a_key_is_made_once_and_is_for_its_owner_alone(tmp_path):
    ledger = tmp_path / "ledger.db"
    assert owner_key(ledger, create=False) is None and list(tmp_path.iterdir()) == []
    key = owner_key(ledger, create=True)
    assert len(key) == 32 and owner_key(ledger, create=True) == key == owner_key(ledger, create=False)
    assert owner_folder(ledger) == tmp_path / "ledger.db.owner"
    assert [path.name for path in owner_folder(ledger).iterdir()] == ["key"]
    assert stat.S_IMODE(owner_folder(ledger).stat().st_mode) == 0o700
    assert stat.S_IMODE((owner_folder(ledger) / "key").stat().st_mode) == 0o600
    assert owner_key(tmp_path / "other.db", create=True) != key


def test_all_who_make_one_at_once_have_the_same(tmp_path):
    with ThreadPoolExecutor(16) as threads:
        keys = list(threads.map(lambda _: owner_key(tmp_path / "ledger.db", create=True), range(64)))
    assert len(set(keys)) == 1 and keys[0] is not None


def test_what_is_no_key_is_refused(tmp_path):
    owner_key(tmp_path / "ledger.db", create=True)
    (tmp_path / "ledger.db.owner/key").write_bytes(b"short")
    with pytest.raises(InvalidInput, match="key: got 5 bytes"):
        owner_key(tmp_path / "ledger.db", create=True)
