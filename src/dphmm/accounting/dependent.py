"""What a query over dependent records cost: noise per record alone, and what is claimed of it under dependence.

Two statements are kept apart. *Per record*: replacing one record and leaving all others as they are changes the
probability of any output by at most e^ε₀; it holds whatever the dependence, and adds up over queries. *Dependent*: the
claim for a named model of dependence; it does not add up (two ε = 1 queries can lose more than 2), and it is only there
where it was proved.

Proof: docs/proofs/dependent-markov.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from dphmm.accounting.composition import Guarantee
from dphmm.accounting.event import NoisyCounts
from dphmm.accounting.records import check_exact, in_short
from dphmm.errors import InvalidInput, Refused


@dataclass(frozen=True)
class DependentEvent:
    """One query was answered.

    ``parts``: the noisy numbers it published, with sensitivities for replacing one record. ``claimed``: ε of dependent
    differential privacy under ``dependence`` (a model, in words), None where nothing is proved; ``why``: by what, or
    why not. ``record``: what a record is. ``secure``: False for noise of any other bits than the
    package's own system bits.
    """

    query: str
    record: str
    parts: tuple[NoisyCounts, ...]
    mechanism: str
    dependence: str
    claimed: Fraction | None
    why: str
    secure: bool

    def __post_init__(self) -> None:
        if not self.parts or not all(isinstance(part, NoisyCounts) for part in self.parts):
            raise InvalidInput("parts", type(self.parts).__name__, "at least one NoisyCounts")
        if self.claimed is not None:
            check_exact(self.claimed, "claimed")

    @property
    def per_record(self) -> Fraction:
        """ε₀ of replacing one record alone: the sum over parts."""
        return sum((part.epsilon for part in self.parts), Fraction(0))

    @property
    def epsilon(self) -> Fraction:
        """ε of dependent differential privacy; Refused where it is not proved."""
        if self.claimed is None:
            raise Refused(f'"{self.mechanism}" is not proved under dependence ({self.dependence}): {self.why}')
        return self.claimed

    @property
    def statement(self) -> str:
        """What may be said of this release, in one sentence."""
        alone = f"replacing one record ({self.record}) and no other loses at most {in_short(self.per_record)}"
        if not self.secure:
            return "nothing is promised: the noise can be replayed"
        if self.claimed is None:
            return f"{alone}; nothing is proved for dependent records: {self.why}"
        return f"{alone}; under {self.dependence} it loses at most {in_short(self.claimed)}: {self.why}"


def per_record_total(events: DependentEvent | Iterable[DependentEvent]) -> Guarantee:
    """What queries over the same records lose together when one record alone is replaced."""
    given = [events] if isinstance(events, DependentEvent) else list(events)
    if not all(isinstance(event, DependentEvent) for event in given):
        raise InvalidInput("events", [type(event).__name__ for event in given], "events of dependent queries")
    if not all(event.secure for event in given):
        raise Refused("nothing is promised of noise that can be replayed")
    return Guarantee(
        sum((event.per_record for event in given), Fraction(0)),
        "bounds the loss of replacing one record, all others as they are, over all queries",
        "docs/proofs/dependent-markov.md",
    )
