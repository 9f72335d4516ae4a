"""Files that fuzzing has found: each once made a reader crash, print a traceback or repeat somebody's row.

Fails if one of them does so again. Each must be refused by one of the library's own errors.
"""

from __future__ import annotations

import io
import json
import sqlite3
import zipfile

import numpy as np
import pyarrow as pa
import pytest

from dphmm.storage.inputs import members
from faults.forging import model_members, text_array, write_members
from faults.spoiled_files import PLT, parquet, zipped
from fuzz.registry import _GOWALLA, READERS
from fuzz.test_files import read_bytes

FAIR = np.full((2, 2), 0.5)


def model_with(**space):
    """A model file whose space is described wrongly."""

    def make(tmp_path):
        contents = model_members([0.5, 0.5], FAIR)
        meta = {"step": None, "start": "before", "provenance": {}}
        described = {"kind": "plain", "pitch": [1.0], "origin": [0.0], **space}
        contents["meta.npy"] = text_array(json.dumps({**meta, "space": described}))
        return write_members(tmp_path / "x.npz", contents).read_bytes()

    return make


def nameless(tmp_path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo(""), b"1,2,3\n")
    return buffer.getvalue()


def corrupt_lzma(tmp_path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr(PLT, b"1,2,3\n" * 50)
    data = bytearray(buffer.getvalue())
    start = data.index(PLT.encode()) + len(PLT) + 9
    data[start : start + 20] = b"\xff" * 20
    return bytes(data)


def directory_outside_the_file(tmp_path):
    data = bytearray(zipped({PLT: b"1,2,3\n"}))
    at = data.rindex(b"PK\x05\x06") + 16
    data[at : at + 4] = (int.from_bytes(data[at : at + 4], "little") + 5000).to_bytes(4, "little")
    return bytes(data)


def stamps(tmp_path):
    far = pa.array([2**62] * 2, pa.timestamp("us"))
    return parquet(pa.table({"state": ["alpha", "beta"], "x": far}))


def not_utf8(tmp_path):
    table = pa.table({"state": ["alpha", "QQQQ"], "x": [1.0, 2.0]})
    return parquet(table, plain=True).replace(b"QQQQ", b"\x80\x81QQ")


def name_not_utf8(tmp_path):
    table = pa.table({"user": ["a"], "QQQQ": ["b"]})
    return parquet(table, plain=True).replace(b"QQQQ", b"\x80\x81QQ")


def always(content):
    return lambda tmp_path: content


FOUND = {
    "names that are no list": ("model", model_with(names=True)),
    "a kind that is a list": ("model", model_with(kind=[])),
    "an origin that is text": ("model", model_with(origin="here")),
    "a member without a name": ("geolife zip", nameless),
    "a broken LZMA stream": ("geolife zip", corrupt_lzma),
    "a directory outside the file": ("geolife zip", directory_outside_the_file),
    "rows in a header, by an open quote": (
        "trajectories csv",
        always(b'user,"step,state\nv,1,CANARY_7f3a\nw,2,CANARY_7f3a\n'),
    ),
    "a header of places and more": ("trajectories csv", always(b'"1,"""2024""50.01937465",a\nb,c\n')),
    "one name twice, once escaped": ("released table", always(b"'=a,=a\n1,2\n")),
    "times in answers": ("answers parquet", stamps),
    "answers without a column": ("answers parquet", always(parquet(pa.table({})))),
    "text in Parquet that is not UTF-8": ("answers parquet", not_utf8),
    "a column of Parquet whose name is not UTF-8": ("trajectories parquet", name_not_utf8),
    "a number beyond all floats": ("answers", always(b"state,x\nalpha,1e999\n")),
    "a name of 5,000 characters": ("answers", always(b"state,x\n" + b"a" * 5000 + b",y\n")),
    "a ragged row of a trip that is not UTF-8": (
        "geolife zip",
        always(zipped({PLT: b"\n" * 6 + b"1,\xff\xfe\n1,2\n"})),
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_is_refused(name, tmp_path):
    reader, make = FOUND[name]
    assert read_bytes(READERS[reader], make(tmp_path)) is False


def test_a_row_that_is_not_text_spoils_no_other_row():
    assert read_bytes(READERS["gowalla"], _GOWALLA + b"1\t\xff\xfe\n") is True
    assert read_bytes(READERS["trajectories csv"], b"user,step,state\nv,+1,a\nw,2\n\xff,\xfe,b\n") is True


def test_columns_whose_names_look_like_formulas_are_found_by_their_names():
    assert read_bytes(READERS["answers"], b"state,'=x\nalpha,1\nbeta,2\n") is True
    assert read_bytes(READERS["trajectories csv"], b"user,lat,lon,'-1\na,1,2,3\n") is True


def test_half_floats_are_numbers_as_any_other():
    table = pa.table({"user": pa.array([np.float16(3), None]), "state": ["a", "b"]})
    assert read_bytes(READERS["trajectories parquet"], parquet(table)) is True


def test_a_disk_that_fails_is_not_a_damaged_archive(tmp_path, monkeypatch):
    (tmp_path / "x.zip").write_bytes(zipped({PLT: b"1,2,3\n"}))

    def failing(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(zipfile.ZipFile, "read", failing)
    import re

    with pytest.raises(OSError, match="Input/output"):
        list(members(tmp_path / "x.zip", re.compile("plt")))


def spoiled_ledger(tmp_path, statement):
    (data,) = READERS["ledger"].seeds()
    (tmp_path / "x.db").write_bytes(data)
    connection = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    for setting in ("ignore_check_constraints", "writable_schema"):
        connection.execute(f"PRAGMA {setting} = ON")
    connection.execute(statement)
    connection.close()
    return (tmp_path / "x.db").read_bytes()


DESCRIPTIONS = "WHERE id IN (SELECT description FROM plan)"
LEDGERS = {
    "a plan whose number of states is text": "UPDATE plan SET n_states = 'many'",
    "a plan without its description": f"UPDATE document SET text = '{{}}' {DESCRIPTIONS}",
    "a plan whose description is no JSON": f"UPDATE document SET text = 'x' {DESCRIPTIONS}",
    "steps that are bytes": "UPDATE release SET steps = CAST(steps AS BLOB)",
    "a version that is bytes": "UPDATE account SET version = CAST(version AS BLOB)",
    "a format of 5,000 digits": f"UPDATE meta SET value = '{'9' * 5000}' WHERE key = 'format'",
    "a schema that is not UTF-8": "UPDATE sqlite_master SET sql = sql || CAST(x'8081' AS TEXT) WHERE name = 'plan'",
}


@pytest.mark.parametrize("name", LEDGERS)
def test_what_was_found_in_ledgers_is_refused(name, tmp_path):
    assert read_bytes(READERS["ledger"], spoiled_ledger(tmp_path, LEDGERS[name])) is False
