"""Judge a history: what escaped in each run, against what the ledger says at the end of it.

Nothing here trusts a total of the ledger: it is compared with sums made anew from the rows and from what escaped.
A finding is one (kind, key):

double      two different answers were seen, or are stored, for one (subject, t, query)
unstored    an answer escaped whose row was charged but cannot say what the answer was
unspent     an answer escaped that the ledger does not hold, or a subject spent less than what escaped of it
overcharged a subject spent more than its rows cost
cap         a subject spent more than its cap
order       steps of one run came out of order, or the ledger has a step without its predecessor
reference   the final rows are not those of a run without crashes
file        an output file that is not whole, or a privacy statement about another file
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

Key: TypeAlias = tuple[str, int, str]
KINDS = ("double", "unstored", "unspent", "overcharged", "cap", "order", "reference", "file")
NANO = 10**9


@dataclass(frozen=True)
class Escape:
    """An answer that came out of a pipe or can be read in a file, with the cost that it must have been charged."""

    key: Key
    z: tuple[int, ...]
    epsilon: Fraction
    cost: Fraction


@dataclass(frozen=True)
class Row:
    """A stored step; a skip has no z and passes over the steps ``t`` to ``through``."""

    z: tuple[int, ...] | None
    epsilon: Fraction
    cost: Fraction
    through: int
    plan: str | None = None


@dataclass(frozen=True)
class View:
    """What a ledger says: its rows, and what it says that each subject has spent (epsilon, cost)."""

    rows: Mapping[Key, Row]
    spent: Mapping[str, tuple[Fraction, Fraction]]


@dataclass(frozen=True)
class Run:
    """One process from its start to its end: what escaped of it, in order, and how it ended."""

    escapes: tuple[Escape, ...]
    end: str


@dataclass
class Findings:
    """Convictions by kind, each key once; empty means that all invariants held."""

    found: dict[tuple[str, object], str] = field(default_factory=dict)

    def add(self, kind: str, key: object, why: str) -> None:
        """Convict."""
        assert kind in KINDS
        self.found.setdefault((kind, key), why)

    def update(self, other: Findings) -> None:
        """Add the convictions of another judgement."""
        for (kind, key), why in other.found.items():
            self.add(kind, key, why)

    def count(self, kind: str) -> int:
        """How many convictions of a kind."""
        return sum(found == kind for found, _ in self.found)

    def __bool__(self) -> bool:
        return bool(self.found)

    def __str__(self) -> str:
        return "\n".join(f"{kind} {key}: {why}" for (kind, key), why in self.found.items()) or "nothing"


def judge(runs: Iterable[Run], view: View, caps: Mapping[str, Fraction] | None = None) -> Findings:
    """All that is wrong with a history and the ledger after it."""
    runs = list(runs)
    findings = Findings()
    escaped = [escape for run in runs for escape in run.escapes]
    _judge_answers(escaped, view, findings)
    _judge_money(escaped, view, caps or {}, findings)
    _judge_order(runs, view, findings)
    return findings


def judge_final(view: View, reference: Mapping[Key, Row], answers: bool) -> Findings:
    """Compare the rows with those of a run without crashes; their answers too where the words were keyed."""
    findings = Findings()
    for key in sorted({*view.rows, *reference}):
        row, expected = view.rows.get(key), reference.get(key)
        if row is None or expected is None:
            findings.add("reference", key, "missing" if row is None else "too many")
        elif _public(row, answers) != _public(expected, answers):
            findings.add("reference", key, "another plan, cost, kind or answer")
    return findings


def shown_once(last: Run, view: View) -> Findings:
    """The run that finished a whole table must show every stored release, each exactly once."""
    findings = Findings()
    shown = Counter(escape.key for escape in last.escapes)
    for key, row in view.rows.items():
        if row.z is not None and shown[key] != 1:
            findings.add("reference", key, f"shown {shown[key]} times by the run that finished")
    return findings


def _public(row: Row, answers: bool) -> tuple[object, ...]:
    told = row.z if answers else row.z is None
    return told, row.epsilon, row.cost, row.through, row.plan


def _judge_answers(escaped: list[Escape], view: View, findings: Findings) -> None:
    seen: dict[Key, set[tuple[int, ...]]] = defaultdict(set)
    for escape in escaped:
        seen[escape.key].add(escape.z)
    for key, answers in seen.items():
        row = view.rows.get(key)
        if row is None:
            findings.add("unspent", key, "it escaped and is not in the ledger")
        elif row.z is None:
            findings.add("unstored", key, "it escaped, and its row cannot say what it was")
        elif row.z not in answers:
            findings.add("double", key, "the ledger holds another answer than the one that escaped")
        if len(answers) > 1:
            findings.add("double", key, f"{len(answers)} different answers escaped")


def _judge_money(escaped: list[Escape], view: View, caps: Mapping[str, Fraction], findings: Findings) -> None:
    visible = {escape.key: (escape.epsilon, escape.cost) for escape in escaped}
    stored = {key: (row.epsilon, row.cost) for key, row in view.rows.items()}
    zero = (Fraction(0), Fraction(0))
    for subject in sorted({key[0] for key in [*visible, *stored]} | set(view.spent)):
        spent = view.spent.get(subject, zero)
        seen, rows = _total(visible, subject), _total(stored, subject)
        if spent[0] < seen[0] or spent[1] < seen[1]:
            findings.add("unspent", subject, "it spent less than what escaped costs")
        if spent[0] > rows[0] or spent[1] > rows[1]:
            findings.add("overcharged", subject, "it spent more than its rows cost")
        if spent[0] < rows[0] or spent[1] < rows[1]:
            findings.add("unspent", subject, "it spent less than its rows cost")
        if subject in caps and spent[0] > caps[subject]:
            findings.add("cap", subject, "it spent more than its cap")


def _total(charges: Mapping[Key, tuple[Fraction, Fraction]], subject: str) -> tuple[Fraction, Fraction]:
    """Sums of a subject: epsilon exact, each cost rounded up to 1e-9."""
    mine = [charge for key, charge in charges.items() if key[0] == subject]
    epsilon = sum((charge[0] for charge in mine), Fraction(0))
    return epsilon, sum((Fraction(math.ceil(charge[1] * NANO), NANO) for charge in mine), Fraction(0))


def _judge_order(runs: list[Run], view: View, findings: Findings) -> None:
    for run in runs:
        last: dict[tuple[str, str], int] = {}
        for subject, t, query in (escape.key for escape in run.escapes):
            if t <= last.get((subject, query), 0):
                findings.add("order", (subject, t, query), "it escaped after a later step of the same run")
            last[subject, query] = t
    following: dict[tuple[str, str], int] = {}
    for subject, t, query in sorted(view.rows):
        if t != following.get((subject, query), 1):
            findings.add("order", (subject, t, query), "it is stored without the step before it")
        following[subject, query] = view.rows[subject, t, query].through + 1
