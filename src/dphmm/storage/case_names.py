"""Random names of cases, kept in a table of their owner: names and the order of cases tell when they began.

Names are drawn from the system's words and follow from no row. A case that the table knows keeps its name, so that a
ledger finds it again; whoever loses the table asks every case anew.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from dphmm.accounting.person import key_by
from dphmm.errors import InvalidInput
from dphmm.samplers.entropy import default_bits
from dphmm.storage.inputs import PathLike, checked_input, checked_output, replacing
from dphmm.storage.ledger.connection import held
from dphmm.types import Bits

_HEADER = ["case", "name"]
#: Of sixteen letters each is as likely: twelve of them are 48 of the 64 bits of a word. Capitals make no difference.
_LETTERS = "bcdfghjklmnpqrst"
_LENGTH = 12


def names_path(path: PathLike) -> Path:
    """The path of the names beside a file: ledger.names.csv beside ledger.db."""
    beside = Path(path)
    return beside.with_name(f"{beside.name.split('.')[0]}.names.csv")


def random_names(
    cases: Sequence[str], path: PathLike, *, spelling: str = "same", bits: Bits | None = None
) -> list[str]:
    """The random name of each case: that of the table at ``path``, which new ones are added to first.

    Parameters
    ----------
    cases : names of the source; those that ``spelling`` takes for one case have one name.
    path : the table, a CSV file of ``case`` and ``name`` that its owner alone may read. It is made where there is none.
    bits : a source of words that can be replayed, for tests.

    Raises
    ------
    InvalidInput : for a file that is no such table. LedgerBusy : while another command adds names to it.

    Examples
    --------
    >>> import tempfile, pathlib, dphmm
    >>> from dphmm.storage.case_names import random_names
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "names.csv")
    ...     first = random_names(["case-10011"], path, bits=dphmm.ReplayBits(1))
    ...     again = random_names(["case-10012", "Case-10011"], path, bits=dphmm.ReplayBits(2))
    >>> again[1] == first[0], len(set(again))
    (True, 2)
    """
    file, key, words = checked_output(path), key_by(spelling), default_bits(bits)
    with held(file, whose="names"):
        table = names_of_cases(file) if file.exists() else {}
        names = {key(case): name for case, name in table.items()}
        new = {key(case): case for case in reversed(cases) if key(case) not in names}
        taken = set(names.values())
        for case in reversed(new):
            name = _drawn(words)
            while name in taken:
                name = _drawn(words)
            taken.add(name)
            names[case] = table[new[case]] = name
        if new:
            # Before anything is asked under a name, it is kept.
            with (
                replacing(file, private=True) as temporary,
                temporary.open("w", encoding="utf-8", newline="") as opened,
            ):
                csv.writer(opened).writerows([_HEADER, *table.items()])
    return [names[key(case)] for case in cases]


def _drawn(words: Bits) -> str:
    word = int(words.uint64(1)[0])
    return "".join(_LETTERS[word >> 4 * place & 15] for place in range(_LENGTH))


def names_of_cases(file: Path) -> dict[str, str]:
    """The name of each case, as the table has them. Raises InvalidInput for a file that is no table of names."""
    with checked_input(file, "names_file").open(encoding="utf-8", errors="replace", newline="") as opened:
        rows = list(csv.reader(opened))
    names = [row[1] for row in rows[1:] if len(row) == 2]
    if not rows or rows[0] != _HEADER or not len(set(names)) == len(names) == len(rows) - 1:
        raise InvalidInput(
            "names_file", file.name, "the table of case and name that an import of events wrote, or none"
        )
    return {row[0]: row[1] for row in rows[1:]}
