"""XML is read element by element, or refused in one line; nothing in it stands for another text.

It would fail for a reader that expands an entity, looks up a document type, keeps what it should not, or is hurt by
depth, length, encodings or a cut: a small document is cut at every byte.
"""

from __future__ import annotations

import gzip
import io
import tracemalloc

import pytest

from dphmm.errors import InvalidInput
from dphmm.storage import xml_files
from dphmm.storage.importers import import_trajectories
from dphmm.storage.xml_files import elements


def read(data):
    return list(elements("x.xml", io.BytesIO(data)))


def test_elements_come_as_they_end_with_their_own_text():
    found = read(b"<a:log xmlns:a='u'><b k='1'>one &amp; <c>two</c> three</b><b/></a:log>")
    assert found == [
        (("log", "b", "c"), {}, "two"),
        (("log", "b"), {"k": "1"}, " three"),
        (("log", "b"), {}, ""),
        (("log",), {"xmlns:a": "u"}, ""),
    ]


LAUGHS = b'<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><x>&b;</x>'
REFUSED = {
    "entities in entities": (LAUGHS, "declares a document type"),
    "a file outside": (b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>', "declares a document type"),
    "a document type outside": (b'<!DOCTYPE x SYSTEM "http://localhost/x.dtd"><x/>', "declares a document type"),
    "a parameter entity": (b'<!DOCTYPE x [<!ENTITY % a SYSTEM "x"> %a;]><x/>', "declares a document type"),
    "defaults of attributes": (b'<!DOCTYPE x [<!ATTLIST x k CDATA "v">]><x/>', "declares a document type"),
    "an entity that nobody declared": (b"<x>&a;</x>", "cannot be read"),
    "deep": (b"<x>" * 101 + b"</x>" * 101, "a depth beyond 100"),
    "no XML": (b"user,t\n", "cannot be read"),
    "empty": (b"", "cannot be read"),
    "NUL": (b"<x>\0</x>", "cannot be read"),
    "a character that is none": (b"<x>&#0;</x>", "cannot be read"),
    "half a character": (b"<x>&#xD800;</x>", "cannot be read"),
    "bytes of another encoding": (b"<x>caf\xe9</x>", "cannot be read"),
    "an encoding that there is not": (b'<?xml version="1.0" encoding="nope"?><x/>', "cannot be read"),
    "an encoding of several bytes": (b'<?xml version="1.0" encoding="utf-7"?><x/>', "cannot be read"),
    "an encoding that is no text": (b'<?xml version="1.0" encoding="zip"?><x/>', "cannot be read"),
    "two roots": (b"<x/><x/>", "cannot be read"),
    "an attribute twice": (b"<x k='1' k='2'/>", "cannot be read"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_refused_in_one_line(name):
    data, told = REFUSED[name]
    with pytest.raises(InvalidInput, match=told) as refused:
        read(data)
    assert "\n" not in str(refused.value) and "passwd" not in str(refused.value)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1", "cp1252"])
def test_encodings_that_a_document_declares(encoding):
    declared = "" if encoding.startswith("utf") else f'<?xml version="1.0" encoding="{encoding}"?>'
    assert read(f"{declared}<x k='é'>ü</x>".encode(encoding)) == [(("x",), {"k": "é"}, "ü")]


def test_a_tag_and_a_text_have_a_most_length(monkeypatch):
    monkeypatch.setattr(xml_files, "MOST_LENGTH", 1000)
    monkeypatch.setattr(xml_files, "_BLOCK", 100)
    assert len(read(b"<x>" + b"<y>" * 50 + b"a" * 1000 + b"</y>" * 50 + b"</x>")) == 51
    with pytest.raises(InvalidInput, match="a text beyond 1,000"):
        read(b"<x>" + b"a" * 20_000 + b"</x>")
    with pytest.raises(InvalidInput, match="a tag beyond 1,000"):
        read(b"<x k='" + b"a" * 5000)


class Endless(io.RawIOBase):
    """A document that never ends: its beginning, then the same again and again; the bytes and the calls are counted."""

    def __init__(self, begin, again):
        self.begin, self.again, self.bytes, self.calls = begin, again, 0, 0

    def read(self, size):
        self.bytes, self.calls = self.bytes + size, self.calls + 1
        begin, self.begin = self.begin, b""
        return begin or self.again * (size // len(self.again))


EVENT = b"<log><trace><event>"
ENDLESS = {
    "entities": (b"<!DOCTYPE x [", b'<!ENTITY a "ha">', "declares a document type"),
    "an entity": (b'<!DOCTYPE x [<!ENTITY a "', b"a", "declares a document type"),
    "a document type": (b"<!DOCTYPE ", b"a", "a tag beyond"),
    "lists in lists": (EVENT, b'<list key="a">', "a depth beyond 100"),
    "an attribute": (EVENT + b'<string key="', b"a", "a tag beyond"),
    "attributes": (EVENT + b"<string ", b" ", "a tag beyond"),
    "a comment": (EVENT + b"<!--", b"a", "a tag beyond"),
    "a text": (EVENT, b"a", "a text beyond"),
    "a text in parts": (EVENT + b"<![CDATA[", b"a\n", "a text beyond"),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_an_endless_document_is_refused_in_one_line_after_little_of_it(name, monkeypatch):
    monkeypatch.setattr(xml_files, "MOST_LENGTH", 1 << 20)
    monkeypatch.setattr(xml_files, "_BLOCK", 1 << 10)
    begin, again, told = ENDLESS[name]
    stream = Endless(begin, again)
    with pytest.raises(InvalidInput, match=told) as refused:
        list(elements("x.xml", stream))
    assert "\n" not in str(refused.value) and stream.bytes <= 2 * xml_files.MOST_LENGTH + 4 * xml_files._BLOCK
    # Each call reads an open tag from its beginning: as many calls as doublings, where blocks of one size are 1,024.
    assert stream.calls < 20 or "text" in told


def test_a_packed_bomb_takes_little_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(xml_files, "MOST_LENGTH", 1 << 20)
    with gzip.open(tmp_path / "log.xes.gz", "wb", compresslevel=1) as packed:
        packed.write(EVENT + b'<string key="' + b"a" * (1 << 26))
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput, match="a tag beyond"):
            import_trajectories(tmp_path / "log.xes.gz", "events", case_names="kept")
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()


def test_a_document_in_blocks_of_any_size_is_the_whole(monkeypatch):
    data = "<log><b k='é'>one <c>twö</c> three</b><b/></log>".encode()
    whole = read(data)
    for size in range(1, len(data)):
        monkeypatch.setattr(xml_files, "_BLOCK", size)
        assert read(data) == whole
        if size < len(data) - 1:
            with pytest.raises(InvalidInput, match="cannot be read"):
                read(data[:size])
