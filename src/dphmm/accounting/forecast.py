"""The error and the price of a fit or an answer, from public numbers: before anything is read, drawn or spent.

Proof: docs/proofs/account.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from dphmm.accounting.event import LearningEvent, NoisyCounts, NotPrivateEvent
from dphmm.accounting.ledger import Ledger, ledger_summary
from dphmm.accounting.publication import PersonTotals, Publication, of_fit
from dphmm.accounting.records import in_short
from dphmm.accounting.transaction import refuse_other_publication
from dphmm.errors import InvalidInput
from dphmm.types import Loss


class Coming(NamedTuple):
    """A ledger after a publication: the totals of the person who has spent most in its releases.

    ``stored``: it is there already, so nothing would be drawn or paid. ``refused``: a cap would be passed.
    """

    totals: PersonTotals
    stored: bool
    refused: bool

    @classmethod
    def of(cls, ledger: Ledger, asked: Publication, delta: Fraction | None = None) -> Coming:
        """Look into a ledger, which is only read. Raises InvalidInput where another publication has the id.

        ``delta``: where rho terms are converted, if this is the first publication with one.
        """
        stored = ledger.published(asked.name)
        now = ledger_summary(ledger, delta=ledger.facts().get("delta", delta))
        if stored is None:
            then = replace(now, publications=[*now.publications, asked])
        else:
            refuse_other_publication(asked, stored)
            then = now
        lost = then.totals_of(Fraction(0)).replaced.value
        capped: list[tuple[Loss, Fraction | None]] = [(Fraction(0), now.cap)]
        capped += [(subject.epsilon.value, subject.caps.epsilon) for subject in now.subjects]
        capped += [(subject.cost.value, subject.caps.cost) for subject in now.subjects]
        refused = stored is None and any(cap is not None and taken + lost > cap for taken, cap in capped)
        spent = max((subject.epsilon.value for subject in now.subjects), default=Fraction(0))
        return cls(then.totals_of(spent), stored is not None, refused)

    @property
    def sentence(self) -> str:
        """The account in words."""
        if self.stored:
            return "this id is stored: nothing would be drawn or paid"
        bounds = (self.totals.replaced, self.totals.present)
        lost, there = (f"at most {in_short(total.value)}" if total.bounded else "without bound" for total in bounds)
        but = f", but for a delta of {float(self.totals.replaced_delta):.3g}" if self.totals.replaced_delta else ""
        cap = "; it would be refused, as a cap would be passed" if self.refused else ""
        return f"a person would have lost {lost} there, replaced, and {there} of being in the data{but}{cap}"


class PartForecast(NamedTuple):
    """The noise in each number of one vector, and its expected error.

    ``share``: the error as a share of all people; None without their number, and for numbers that are steps of a public
    range and no counts.
    """

    part: NoisyCounts
    share: float | None
    steps: bool

    @property
    def sentence(self) -> str:
        """The noise of the part and its expected error, in one sentence."""
        part, share = self.part, self.share
        noise = f"Laplace, scale {float(part.scale):.6g}"
        if part.noise == "gaussian":
            noise = f"Gaussian, variance {float(part.scale):.6g}"
        people = "" if share is None else f", {100 * share:.2g} % of the people"
        if share is not None and share >= 1:
            people = f", {share:.2g} times as many as there are people"
        error = f"{part.expected_error:.4g}{' steps' if self.steps else ''}"
        return f"discrete {noise}, on the {part.name}: expected error {error} in each number{people}"


@dataclass(frozen=True)
class Forecast:
    """The forecast of a fit or an answer, from public numbers: nothing was read, drawn, stored or spent.

    ``parts``: the noisy numbers that it would publish, for ``neighbours``. ``about``: the number of people, on the
    owner's word. ``in_steps``: names of parts that are no counts of people, but steps of a public range. ``account``:
    that of a ledger after it, None where none was named.
    """

    parts: tuple[NoisyCounts, ...]
    neighbours: str
    about: int | None = None
    in_steps: Sequence[str] = ()
    account: Coming | None = None

    @property
    def noise(self) -> list[PartForecast]:
        """The noise of each part; of those with the same noise in one kind of numbers that of the first one."""
        first: dict[Any, PartForecast] = {}
        for part in self.parts:
            steps = part.name in self.in_steps
            share = None if self.about is None or steps else part.expected_error / self.about
            first.setdefault((part.name.partition(",")[0], part.noise, part.scale), PartForecast(part, share, steps))
        return list(first.values())

    def document(self) -> dict[str, Any]:
        """The forecast for JSON."""
        names = ("of", "noise", "scale", "expected_error", "share")
        rows = [(p.name, p.noise, str(p.scale), p.expected_error, share) for p, share, _ in self.noise]
        noise = [dict(zip(names, row, strict=True)) for row in rows]
        account: dict[str, Any] | None = None
        if self.account is not None:
            totals, stored, refused = self.account
            bounds = {"replaced": totals.replaced, "present": totals.present}
            lost = {name: str(total.value) if total.bounded else None for name, total in bounds.items()}
            account = {"stored": stored, "refused": refused, **lost}
        return {"neighbours": self.neighbours, "about": self.about, "noise": noise, "account": account}

    def lines(self) -> list[tuple[str, str]]:
        """The forecast for people."""
        account = [] if self.account is None else [("account", self.account.sentence)]
        return [*(("noise", part.sentence) for part in self.noise), *account]


Learned: TypeAlias = LearningEvent | NotPrivateEvent


class _Planned(Exception):
    """Ends a fit before it looks at its data."""


def event_before(learn: Callable[[Callable[[Learned], None]], object]) -> Learned:
    """The event that a fit passes to ``admit`` before it looks at the data or draws; the fit ends there."""
    events: list[Learned] = []

    def admit(event: Learned) -> None:
        events.append(event)
        raise _Planned

    with suppress(_Planned):
        learn(admit)
    return events[0]


def forecast_of_fit(
    event: Learned, about: int | None, ledger: Ledger | None, event_id: str | None, statement: Callable[[], str]
) -> Forecast:
    """The forecast of a fit from its event; ``statement``: its settings as its publication would state them.

    Raises InvalidInput for a fit without privacy, and where the id is that of another publication.
    """
    if not isinstance(event, LearningEvent):
        raise InvalidInput("method", f"one without privacy: {event.reason}", "a private fit: only its noise is known")
    account = None
    if ledger is not None:
        if not event_id:
            raise InvalidInput("event_id", "nothing", "the id of the model in the ledger")
        account = Coming.of(ledger, of_fit(event, event_id, statement()), event.delta or None)
    return Forecast(event.parts, event.neighbours, about, account=account)
