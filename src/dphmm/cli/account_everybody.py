"""dphmm account: what a person loses in publications and releases together, and the groups of a ledger."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dphmm.cli.console import aligned
from dphmm.cli.outcomes import one_line

if TYPE_CHECKING:
    from dphmm.accounting.budget import Group
    from dphmm.accounting.composition import Guarantee
    from dphmm.accounting.publication import PersonTotals, Publication
    from dphmm.types import Loss


@dataclass(frozen=True)
class Everybody:
    """The publications and the groups of a ledger, the cap of the publications, and where rho terms are converted."""

    publications: Sequence[Publication]
    groups: Sequence[Group]
    cap: Fraction | None
    delta: Fraction

    def lines(self, spent: Sequence[tuple[str, Loss]]) -> list[str]:
        """For people: every publication, and the totals of each of these (subject, sum of epsilons)."""
        from dphmm.accounting.records import in_short

        lines = []
        if self.publications:
            rows = [(f"  {one_line(each.name)}", _words(each)) for each in self.publications]
            lines += [f"{len(rows)} publications about all persons:", *aligned(rows)]
            people = [(f"  {one_line(name)}", self._totals(epsilon)) for name, epsilon in spent]
            people.append(("  anybody else", self._totals(Fraction(0))))
            lines += ["with them, of one person who is replaced, and of whether the person is there:"]
            lines += aligned([(name, f"{_lost(of.replaced, of.replaced_delta)}; {_there(of)}") for name, of in people])
            last = people[0][1] if spent else people[-1][1]
            lines += [f"replaced: {last.replaced.statement} ({last.replaced.citation})"]
            lines += [f"there: {last.present.statement} ({last.present.citation})"]
        if self.cap is not None:
            lines.append(f"capped: no publication takes what all of them lose of one person above {in_short(self.cap)}")
        for group in self.groups:
            total = f"of {len(group.members)} members together, of all queries, at most {in_short(group.cap)}"
            lines.append(f"group {one_line(group.name)}: epsilons {total}: {GROUP_STATEMENT}")
        return lines

    def document(self) -> dict[str, Any]:
        """The same for machines."""
        return {
            "publications": [_document(each) for each in self.publications],
            "cap_publications": None if self.cap is None else str(self.cap),
            "delta": str(self.delta),
            "anybody": self.of_person(Fraction(0)),
            "groups": [
                {
                    "name": group.name,
                    "cap_epsilon": str(group.cap),
                    "members": list(group.members),
                    "statement": GROUP_STATEMENT,
                }
                for group in self.groups
            ],
        }

    def of_person(self, spent: Loss) -> dict[str, Any]:
        """The totals of a person whose releases have epsilons of this sum."""
        found = self._totals(spent)
        return {
            "replaced": {**guarantee_document(found.replaced), "delta": str(found.replaced_delta)},
            "present": {**guarantee_document(found.present), "delta": str(found.present_delta)},
        }

    def _totals(self, spent: Loss) -> PersonTotals:
        from dphmm.accounting.publication import totals

        assert isinstance(spent, Fraction)
        return totals(spent, self.publications, self.delta)


NOBODY = Everybody((), (), None, Fraction(1, 10**6))
GROUP_STATEMENT = (
    "bounds the loss of any neighbouring paths of all members at once, in their releases (docs/proofs/paths.md); "
    "publications are not in it"
)


def guarantee_document(guarantee: Guarantee) -> dict[str, Any]:
    """A total for machines: the value (null when unbounded), the same exactly, and what it is."""
    bounded = guarantee.value != math.inf
    return {
        "value": float(guarantee.value) if bounded else None,
        "exact": str(guarantee.value) if bounded else None,
        "statement": guarantee.statement,
        "citation": guarantee.citation,
    }


def _lost(guarantee: Guarantee, delta: Fraction) -> str:
    from dphmm.accounting.records import in_short

    return in_short(guarantee.value) + (f", delta {float(delta):.3g}" if delta else "")


def _there(found: PersonTotals) -> str:
    return _lost(found.present, found.present_delta)


def _words(one: Publication) -> str:
    from dphmm.accounting.records import in_short

    if one.relation is None:
        return f"{one.kind}: promises nothing"
    numbers = (("epsilon", one.epsilon), ("rho", one.rho), ("delta", one.delta))
    lost = ", ".join(f"{name} {in_short(value)}" for name, value in numbers if value is not None)
    units = "nobody has said how many of a person" if one.units is None else f"at most {one.units} of a person"
    return f"{one.kind}: {lost} to {one.relation} {one_line(one.unit)}, {units}"


def _document(one: Publication) -> dict[str, Any]:
    numbers = {"epsilon": one.epsilon, "rho": one.rho, "delta": one.delta}
    return {
        "name": one.name,
        "kind": one.kind,
        "unit": one.unit,
        "units_per_person": one.units,
        "relation": one.relation,
        "loss": one.loss,
        **{name: None if value is None else str(value) for name, value in numbers.items()},
        "statement": one.statement,
    }
