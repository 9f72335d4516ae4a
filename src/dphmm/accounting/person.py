"""A person is a key: the common form of all spellings of one name, wherever people are told apart or counted.

Names of a ledger are compared by one of two rules, which is set once: "same" takes different spellings of a name for
one person, "exact" takes them for several, for ids in which spelling is identity.

Proof: docs/proofs/records.md.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial

from dphmm.accounting.budget import quoted
from dphmm.errors import InvalidInput

#: The rules by which names are compared.
SPELLINGS = ("same", "exact")
#: The form of a noun for a person or thing that rows are about: "person", "vessel".
NOUN = "[a-z]{2,20}"
#: The version of Unicode that names are read by. Keys of the characters of one version are the same in all later ones.
UNICODE = unicodedata.unidata_version
#: A whole number that a table had as a float.
_FLOAT = re.compile(r"([+-]?[0-9]+)\.0+")
#: Characters that Unicode lets every program leave out (Default_Ignorable_Code_Point).
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


@lru_cache(maxsize=2**16)
def person_key(name: str, spelling: str = "same") -> str:
    """The key of the person that a name is of, by a rule of `SPELLINGS`.

    By "same" capitals, the forms that Unicode has for one text (NFKC_Casefold: composed or not, full width), blanks at
    the ends and how many stand between words make no difference, and 7.0 is 7. Ann Smith and A. Smith stay two. By
    "exact" the key is the name.

    Raises InvalidInput for a name with a character that this version of Unicode does not have: a later one may fold it.

    >>> person_key(" JOSE\u0301  Ruiz") == person_key("jos\u00e9 ruiz")
    True
    >>> person_key("Ann", "exact") == person_key("ann", "exact")
    False

    Source: Unicode Standard Annex 31, toNFKC_Casefold; docs/proofs/records.md.
    """
    if not name.isascii() and any(unicodedata.category(character) == "Cn" for character in name):
        raise InvalidInput("user", ascii(name)[:40], f"characters of Unicode {UNICODE}: others could spell a name anew")
    key, before = name, None
    while key != before:
        before = key
        key = " ".join(unicodedata.normalize("NFKC", _IGNORABLE.sub("", key)).casefold().split())
    whole = _FLOAT.fullmatch(key)
    key = key if whole is None else whole[1]
    return name if spelling == "exact" else key


#: Of so many names one may be another spelling before anybody is asked which of them are one person.
_ALIKE = 1000
#: A name in which capitals, small letters and digits are mixed, as in ids that are drawn.
_DRAWN = re.compile("(?=.*[a-z])(?=.*[A-Z])(?=.*[0-9])")


def alike_words(users: Sequence[str], alike: Mapping[str, str]) -> str | None:
    """The reason why the rule for comparing names is likely to matter; None without one.

    ``alike``: spellings that are taken for other ones, and these. It matters where more than one name in 1,000 is
    another spelling, or most look drawn.
    """
    if len(alike) * _ALIKE > len(users):
        other, name = next(iter(alike.items()))
        words = f"{len(alike):,} of {len(users) + len(alike):,} names are spellings of others"
        return f"{words}: {quoted(other)} and {quoted(name)}"
    if 2 * sum(_DRAWN.match(user) is not None for user in users) > len(users):
        return f"most names look drawn, as {quoted(users[0])}"
    return None


def version_of(unicode: str) -> tuple[int, ...]:
    """A version of Unicode, to compare with others: that of "14.0.0" is (14, 0, 0)."""
    return tuple(map(int, unicode.split(".")))


def checked_noun(noun: str, field: str = "noun") -> str:
    """A noun of the form of `NOUN`. Raises InvalidInput for any other text.

    >>> checked_noun("vessel")
    'vessel'
    """
    if not isinstance(noun, str) or re.fullmatch(NOUN, noun) is None:
        raise InvalidInput(field, ascii(noun)[:40], "one word of 2 to 20 small letters a to z: vessel, case, device")
    return noun


def key_by(spelling: str) -> Callable[[str], str]:
    """`person_key` by a rule of `SPELLINGS`. Raises InvalidInput for another text."""
    if spelling not in SPELLINGS:
        raise InvalidInput("spelling", spelling, "same or exact")
    return partial(person_key, spelling=spelling)
