"""The people that a model was fitted on, relative to those released, and the consequences for their privacy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dphmm._checks import one_of
from dphmm.errors import InvalidInput
from dphmm.markov.model import GEOMETRY
from dphmm.statement.parts import Holds
from dphmm.statement.sentences import rendered

#: Who the model was fitted on: "others" than the released people (or nobody), the "same", or "unknown".
MODEL_PEOPLE = ("unknown", "others", "same")
#: How that is known: the data owner says so, user names were compared, the two tables are one file, or the model's
#: file says that it was made from geometry alone.
KNOWN_BY = {"unknown": (None,), "others": ("owner", "names", "model"), "same": ("owner", "names", "file")}
_NAMES = {
    "others": "as far as user names tell: none released here is among those of the table it was fitted on (one person "
    "under two names would not be noticed)",
    "same": "as user names tell: at least one released here is among those of the table it was fitted on",
}
#: Why released people have no promise, or why it is not known whether they have one.
AGAINST = {
    "replayable bits": "replayable bits: whoever knows the seed can take the noise away",
    "fitted on released": "the model was fitted without privacy on people released here, {{ known }}",
}
DOUBTS = {
    "no epsilon of the fit": "the model says that it was fitted with differential privacy and not with which epsilon, "
    "and nobody said that this was without data of the people released",
    "made from released": "the model was made from data of people released here, {{ known }}, and nothing records that "
    "this was done with differential privacy",
    "fitted on unknown people": "the model was fitted without privacy, and nobody said whether on people released here",
    "unknown origin": "nothing says whose data the model was made from, and whether people released here are among "
    "them",
}
REASONS = AGAINST | DOUBTS


class Whom(NamedTuple):
    """The people that a model was fitted on, relative to those released, and the evidence (None: unknown)."""

    people: str
    known_by: str | None

    @classmethod
    def of(cls, people: str, known_by: str | None = None) -> Whom:
        """A checked pair; without ``known_by`` the data owner says so. Raises InvalidInput."""
        one_of(people, MODEL_PEOPLE, "model_people")
        if known_by is None and people != "unknown":
            known_by = "owner"
        if known_by not in KNOWN_BY[people]:
            named = ", ".join(map(str, KNOWN_BY[people]))
            raise InvalidInput("known_by", known_by, f"of model_people {people!r} one of {named}")
        return cls(people, known_by)

    @property
    def known(self) -> str:
        """The evidence, in words."""
        if self.known_by == "names":
            return _NAMES[self.people]
        evidence = {"file": "as the two tables are the same file", "model": "as its file says"}
        return evidence.get(str(self.known_by), "as the data owner says")

    def whys(self, found: Sequence[str]) -> list[str]:
        """Codes of `REASONS` in words."""
        return [sentence for code in found for sentence in rendered(REASONS[code], {"known": self.known})]


UNKNOWN = Whom("unknown", None)
#: Nobody's data is in the model, as its file says: all who are released are others.
NOBODY = Whom("others", "model")


def reasons(provenance: Mapping[str, Any], whom: Whom, replayable: int = 0) -> list[str]:
    """Codes of `REASONS`: against the promise to the released people, or else of doubt; none where it holds."""
    private = provenance.get("private")
    against = ["replayable bits"] * (replayable > 0)
    against += ["fitted on released"] * (whom.people == "same" and private is False)
    if against or whom.people == "others":
        return against
    if private is True:
        return [] if provenance.get("privacy") is not None else ["no epsilon of the fit"]
    if whom.people == "same":
        return ["made from released"]
    return ["fitted on unknown people" if private is False else "unknown origin"]


def verdict(found: list[str]) -> Holds:
    """The verdict on the promise to released people, from its reasons: True, False, or "unknown"."""
    return True if not found else "unknown" if found[0] in DOUBTS else False


def made_without_data(provenance: Mapping[str, Any]) -> bool:
    """True if a model's provenance names geometry as its only source, as with `dphmm.MarkovModel.from_geometry`."""
    return provenance.get("method") == GEOMETRY and provenance.get("private") is None and "jump_into" not in provenance


def whom_of(provenance: Mapping[str, Any], told: Whom) -> Whom:
    """The people that a model was fitted on, from the word of the owner (``told``) and from its file.

    Raises InvalidInput if they contradict each other.
    """
    if not made_without_data(provenance):
        if told == NOBODY:
            raise InvalidInput("known_by", "model", "a model made from geometry alone: this one was not")
        return told
    if told.people == "same":
        raise InvalidInput("model_people", "same", "nothing: the model was made from geometry alone, without data")
    return NOBODY


def whom(declared: str | None, among: bool | None, same_file: bool = False) -> Whom:
    """The people that a model was fitted on, from all evidence.

    ``declared``: the word of the data owner; None for no word, and "unknown" if names are not to be relied on.
    ``among``: True if the name of a released user is that of somebody the model was fitted on; None if names were not
    compared. ``same_file``: True if the model was fitted on the released table.

    Evidence that they are the same outweighs the declaration; the absence of common names does not. Raises InvalidInput
    for another word.
    """
    if declared is not None:
        one_of(declared, MODEL_PEOPLE, "model_people")
    if same_file:
        return Whom("same", "file")
    if among:
        return Whom("same", "names")
    if declared is not None:
        return Whom.of(declared)
    return UNKNOWN if among is None else Whom("others", "names")
