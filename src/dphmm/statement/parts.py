"""Parts of statements: facts of checked types, their JSON, its schema, and the sentences beside them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Self, TypeVar, get_args

import msgspec
from msgspec import UNSET, Meta, Struct

from dphmm.accounting.person import NOUN, SPELLINGS
from dphmm.statement.sentences import noun_words, rendered


def rule(**keywords: Any) -> Meta:
    """A rule of the JSON schema beside the type of a member."""
    return Meta(extra_json_schema=keywords)


#: A text that is not empty.
Text = Annotated[str, rule(minLength=1)]
Texts = list[Text]
#: True, False or "unknown"; compare with ``is True``, for "unknown" is no empty text.
Holds = bool | str
StatedVerdict = Annotated[Holds, rule(enum=[True, False, "unknown"])]
Sha256 = Annotated[str, rule(pattern="^[0-9a-f]{64}$")]
#: A number exactly, as a fraction: 1 or 1/3.
Exact = Annotated[str, rule(pattern="^[0-9]+(/[0-9]+)?$")]
Count = Annotated[int, rule(minimum=0)]
Positive = Annotated[int, rule(minimum=1)]
#: Metres, or "any": every two cells are joined.
Metres = Annotated[float | str, rule(oneOf=[{"const": "any"}, {"type": "number", "minimum": 0}])]
Pair = Annotated[list[Count], rule(minItems=2, maxItems=2)]


class Part(Struct, frozen=True):
    """A part of a statement. ``says``: Jinja templates by name, a sentence a line, in the names of its members.

    A template knows the members of its part, the ``part``, and as ``whole`` the statement that the part is in.
    """

    says: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def from_attributes(cls, source: Any, **more: Any) -> Self:
        """A part whose members are given, or else the attributes of the source that are called as they are."""
        taken = {name: getattr(source, name) for name in cls.__struct_fields__ if name not in more}
        return cls(**taken, **more)

    def said(self, name: str = "meaning", whole: Part | None = None, **known: Any) -> list[str]:
        """The sentences of one of its templates."""
        members = {member: _known(getattr(self, member)) for member in self.__struct_fields__}
        facts = {**members, "part": self, "whole": self if whole is None else whole, **known}
        return rendered(self.says[name], facts)

    def sentence(self, name: str = "meaning", whole: Part | None = None, **known: Any) -> str:
        """The one sentence of a template."""
        (only,) = self.said(name, whole, **known)
        return only


def _known(value: Any) -> Any:
    return None if value is UNSET else value


class Software(Part, frozen=True, kw_only=True):
    """The software that wrote the statement.

    name : Of the package.
    version : Of the package, when it wrote the statement.
    """

    name: Annotated[str, rule(const="dphmm")]
    version: Text


class StatedFile(Part, frozen=True, kw_only=True):
    """The file that the statement is about.

    name : Its name; a stream has none, and is called -.
    sha256 : Of the file's bytes; of a stream that of the lines that this run printed.
    """

    name: Text
    sha256: Sha256


class SubjectNames(Part, frozen=True, kw_only=True):
    """The rule that tells people apart by their names.

    spelling : same: names that differ in capitals, blanks or forms of Unicode alone are of one person; exact: every
        spelling is a person.
    noun : What one of them is called: person, vessel, case.
    """

    spelling: Annotated[str, rule(enum=list(SPELLINGS))]
    noun: Annotated[str, rule(pattern=f"^{NOUN}$")]

    says: ClassVar[Mapping[str, str]] = {
        "meaning": """
{% if spelling == "same" %}Names that differ in capitals, blanks or forms of Unicode alone are of one person. Two \
people with such names count as one, and share one promise.\
{% else %}Names are compared exactly: somebody who is spelt in several ways counts as several people, with one promise \
each.{% endif +%}
""",
    }

    @property
    def words(self) -> dict[str, str]:
        """The noun as a sentence needs it (`noun_words`)."""
        return noun_words(self.noun)


AnyPart = TypeVar("AnyPart", bound=Part)


def document(part: Part) -> dict[str, Any]:
    """A statement, or a part of one, as JSON has it; members that it does not have are left out."""
    members: dict[str, Any] = msgspec.to_builtins(part, enc_hook=_plain)
    return members


def typed(found: Any, kind: type[AnyPart]) -> AnyPart:
    """A statement, or a part of one, from its JSON; members that are not known are left out.

    Raises msgspec.ValidationError, which names the first member that is missing or of another type.
    """
    return msgspec.convert(found, kind)


def member(part: Part, path: str) -> Any:
    """A member of a statement by its path, such as totals.cost_sum; None for one that the statement does not have."""
    value: Any = part
    for name in path.split("."):
        value = _known(getattr(value, name))
        if value is None:
            return None
    return value


def schema(kind: type[Part], rules: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of what is written: every member, no other one, and these rules."""
    (_,), parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    kinds = {known.__name__: known for known in _parts_of(kind)}
    for name, part in parts.items():
        part["description"], descriptions = described(kinds[name])
        part["additionalProperties"] = False
        # A member with another default than none at all is always written.
        part["required"] = [known.name for known in msgspec.structs.fields(kinds[name]) if known.default is not UNSET]
        for member, form in part["properties"].items():
            form.pop("default", None)
            form |= {"description": descriptions[member]} if member in descriptions else {}
    whole = parts.pop(kind.__name__)
    # Only a statement that is not written yet is about no file.
    whole["required"] += ["file"] * ("file" in whole["properties"])
    return {**whole, **({"allOf": list(rules)} if rules else {}), "$defs": parts}


def described(part: type[Part]) -> tuple[str, dict[str, str]]:
    """The description of a part, and of each of its members, from its docstring.

    >>> described(StatedFile)[1]["name"]
    'Its name; a stream has none, and is called -.'
    """
    first, _, members = (inspect.getdoc(part) or "").partition("\n\n")
    entries = re.findall(r"^(\w+) : (.*(?:\n    .*)*)", members, re.MULTILINE)
    return first, {name: " ".join(text.split()) for name, text in entries}


def _parts_of(kind: type[Part]) -> set[type[Part]]:
    """A part, and every part in it."""
    inner = {part for member in msgspec.structs.fields(kind) for part in _named(member.type)}
    return {kind}.union(*(_parts_of(part) for part in inner))


def _named(annotation: Any) -> Iterator[type[Part]]:
    if isinstance(annotation, type) and issubclass(annotation, Part):
        yield annotation
    for argument in get_args(annotation):
        yield from _named(argument)


def _plain(value: object) -> object:
    """NumPy's floats are floats of Python's."""
    if isinstance(value, float):
        return float(value)
    raise NotImplementedError(type(value).__name__)
