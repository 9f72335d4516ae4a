"""XML of others, element by element as it is read: no document type, no entity, and bounds on depth and length.

A document that declares a type is refused before anything in it is read, so no text stands for another one, and nothing
outside the document is looked up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, NamedTuple
from xml.parsers import expat

from dphmm.errors import InvalidInput

#: Most elements inside each other, and most bytes of a tag, or characters of a text.
MOST_DEPTH = 100
MOST_LENGTH = 1 << 26
_BLOCK = 1 << 16


class Element(NamedTuple):
    """An element that has ended: the names from the root to it, its attributes, and the text after its last child."""

    path: tuple[str, ...]
    attributes: dict[str, str]
    text: str


def elements(name: str, stream: IO[bytes]) -> Iterator[Element]:
    """The elements of a document in the order in which they end; names are without prefixes.

    Raises InvalidInput, naming the document by ``name``, for one that is no XML, that declares a document type, and
    beyond the bounds.
    """
    open_: list[tuple[tuple[str, ...], dict[str, str]]] = [((), {})]
    ended, text, length = list[Element](), list[str](), 0
    parser = expat.ParserCreate()

    def refuse(*declared: object) -> None:
        raise InvalidInput("source", f"{name}, which declares a document type", "XML without <!DOCTYPE")

    def check(size: int, most: int, part: str) -> None:
        if size > most:
            raise InvalidInput("source", f"{name}, with {part} beyond {most:,}", "a document of rows")

    def start(tag: str, attributes: dict[str, str]) -> None:
        path = (*open_[-1][0], tag.rpartition(":")[2])
        check(len(path), MOST_DEPTH, "a depth")
        open_.append((path, attributes))
        text.clear()

    def end(tag: str) -> None:
        ended.append(Element(*open_.pop(), "".join(text)))
        text.clear()

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = text.append
    parser.buffer_text = True
    block, unfinished = b"x", 0
    while block:
        # A tag that goes on is read again from its beginning: in blocks as long as it is so far that is linear.
        block = stream.read(max(_BLOCK, unfinished))
        length += len(block)
        try:
            parser.Parse(block, not block)
        except InvalidInput:
            raise
        except (expat.ExpatError, ValueError, LookupError):
            # Errors of encodings are of several kinds, and quote what they have read.
            raise InvalidInput("source", f"{name}, which cannot be read", "a whole document of XML") from None
        unfinished = length - parser.CurrentByteIndex
        check(unfinished, MOST_LENGTH, "a tag")
        check(sum(map(len, text)), MOST_LENGTH, "a text")
        yield from ended
        ended.clear()
