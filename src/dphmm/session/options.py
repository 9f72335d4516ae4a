"""The public choices of a release, checked once and written the same way everywhere they are recorded."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dphmm._checks import exact_epsilon, exact_number, one_of, written_fraction
from dphmm.accounting.ledger import Caps, Ledger, MemoryLedger, SequencePromise
from dphmm.accounting.promise import Schedule
from dphmm.errors import InvalidInput
from dphmm.mechanisms import AUTO, MECHANISM_CHOICES, Hops, MadeTable, chosen_kind, make_known
from dphmm.mechanisms.answer_table import is_reference, known_table
from dphmm.policy.constraint import DeltaSet, Support, parse_constraint
from dphmm.sensitivity.protection import PROTECTIONS
from dphmm.types import Exact

SCOPES = ("global", "component")
FLAT = ("thicken", "allow", "refuse")
STARTS = ("before", "at")


@dataclass(frozen=True)
class Options:
    """What decides a plan besides model, policy and space.

    ``thickness`` is per axis in answer units, None for the default of `dphmm.sensitivity.thicken`.
    """

    epsilon: Fraction
    constraint: Support | DeltaSet
    mechanism: str = "auto"
    scope: str = "global"
    flat: str = "thicken"
    thickness: tuple[Fraction, ...] | None = None
    protection: str = "auto"
    start: str = "before"

    @classmethod
    def checked(
        cls,
        epsilon: Exact,
        *,
        dimension: int,
        constraint: str | DeltaSet | Support = "support",
        mechanism: str | MadeTable = "auto",
        scope: str = "global",
        flat: str = "thicken",
        thickness: Exact | Sequence[Exact] | None = None,
        protection: str = "auto",
        start: str = "before",
        labels: bool = False,
    ) -> Options:
        """Options from what a user passes; ``labels``: whether answers are names. Raises InvalidInput naming the field.

        Of names "auto" is the table by hops: there is no noise to add. ``mechanism`` may be a made table, or the
        reference of one that has been read.
        """
        chosen = _mechanism(mechanism)
        one_of(scope, SCOPES, "scope")
        if labels:
            chosen = _for_labels(chosen, scope, flat)
        if is_reference(chosen):
            _check_made(chosen, scope, parse_constraint(constraint))
        elif not labels and scope == "component" and chosen_kind(chosen).made_from == "answers":
            expected = f"global with mechanism {chosen}: one table keeps the edges of all components"
            raise InvalidInput("scope", scope, expected)
        return cls(
            epsilon=exact_epsilon(epsilon),
            constraint=parse_constraint(constraint),
            mechanism=chosen,
            scope=scope,
            flat=one_of(flat, FLAT, "flat"),
            thickness=_thickness(thickness, dimension),
            protection=one_of(protection, PROTECTIONS, "protection"),
            start=one_of(start, STARTS, "start"),
        )

    @property
    def made_from(self) -> str:
        """What the mechanism is made from: a "hull", or the plan's "answers" and the edges between them."""
        return chosen_kind(self.mechanism).made_from

    @property
    def tells_component(self) -> bool:
        """Whether every release names the component of the policy: a table for each of them."""
        return self.scope == "component" and self.made_from == "answers"

    def written(self) -> dict[str, str]:
        """The options as strings: what a ledger records and compares."""
        return {
            "epsilon": str(self.epsilon),
            "constraint": str(self.constraint),
            "mechanism": self.mechanism,
            "scope": self.scope,
            "flat": self.flat,
            "thickness": json.dumps(None if self.thickness is None else [str(t) for t in self.thickness]),
            "protection": self.protection,
            "start": self.start,
        }

    @classmethod
    def read(cls, written: Mapping[str, str], dimension: int, labels: bool = False) -> Options:
        """The options that a ledger recorded. Raises InvalidInput for others than `written` makes."""
        try:
            told = {name: written[name] for name in ("constraint", "mechanism", "scope", "flat", "protection", "start")}
            epsilon, thickness = written_fraction(written["epsilon"]), json.loads(written["thickness"])
            lengths = None if thickness is None else [written_fraction(t) for t in thickness]
        except (KeyError, TypeError, ValueError, ZeroDivisionError, RecursionError):
            expected = "those of a ledger or a statement as dphmm wrote it"
            raise InvalidInput("options", "some missing, or not as they are written", expected) from None
        return cls.checked(epsilon, dimension=dimension, thickness=lengths, labels=labels, **told)


def _mechanism(given: str | MadeTable) -> str:
    """The name of a mechanism; of a made table its reference, which says what is in it. Raises InvalidInput."""
    if isinstance(given, MadeTable):
        return make_known(given)
    if isinstance(given, str) and is_reference(given):
        return known_table(given).reference
    return one_of(given, MECHANISM_CHOICES, "mechanism")


def _check_made(mechanism: str, scope: str, constraint: Support | DeltaSet) -> None:
    """Raises InvalidInput where a made table cannot serve: it has a row for every state, and one for all components."""
    table = mechanism[: len(MadeTable.name) + 13]
    if scope == "component":
        raise InvalidInput("scope", scope, f"global with {table}: one table keeps the edges of all components")
    if isinstance(constraint, DeltaSet):
        raise InvalidInput("constraint", str(constraint), f"support with {table}: it was made for all states")


def _for_labels(mechanism: str, scope: str, flat: str) -> str:
    """The mechanism of labels. Raises InvalidInput for one that adds noise, and for components that would be told."""
    chosen = Hops.name if mechanism == AUTO else mechanism
    if chosen_kind(chosen).made_from != "answers" or not chosen_kind(chosen).for_labels:
        expected = f"auto or {Hops.name}: the answers are names, to which no noise can be added"
        raise InvalidInput("mechanism", mechanism, expected)
    if scope == "component" and flat != "allow":
        expected = 'global; or flat="allow" beside it, because every release then publishes the category of the label'
        raise InvalidInput("scope", scope, expected)
    return chosen


def _thickness(thickness: Exact | Sequence[Exact] | None, dimension: int) -> tuple[Fraction, ...] | None:
    if thickness is None:
        return None
    given = list(thickness) if isinstance(thickness, (list, tuple)) else [thickness] * dimension
    exact = tuple(exact_number(t, "thickness") for t in given)
    if len(exact) != dimension:
        raise InvalidInput("thickness", f"{len(exact)} numbers", f"one, or {dimension}")
    if any(t <= 0 for t in exact):
        raise InvalidInput("thickness", str(thickness), "lengths greater than 0, in answer units")
    return exact


def checked_ledger(ledger: Ledger | None) -> Ledger:
    """The ledger that was given, or one in memory. Raises InvalidInput for a path."""
    if ledger is None:
        return MemoryLedger()
    if not hasattr(ledger, "transaction"):
        raise InvalidInput("ledger", type(ledger).__name__, "a ledger: dphmm.open_ledger(path)")
    return ledger


def promise_beside(promise: SequencePromise | None, schedule: Schedule | None) -> SequencePromise | None:
    """The promise of a subject's account: a schedule has its own. Raises InvalidInput for two that differ."""
    if schedule is None:
        return promise
    if promise is not None and promise != schedule.promise:
        raise InvalidInput("promise", str(promise), f"nothing beside the schedule, or its own {schedule.promise}")
    return schedule.promise


def checked_caps(epsilon: Exact | None, cost: Exact | None, promise: SequencePromise | None = None) -> Caps:
    """Caps from what a user passes. Raises InvalidInput naming the cap."""
    if promise is not None and not isinstance(promise, SequencePromise):
        raise InvalidInput("promise", type(promise).__name__, "a dphmm.SequencePromise")
    return Caps(_cap(epsilon, "cap_epsilon"), _cap(cost, "cap_cost"), promise)


def epsilon_of_step(
    epsilon: Exact | None, promise: SequencePromise | None, step: float | None, schedule: Schedule | None = None
) -> Exact | None:
    """The epsilon of a release: what a user passes, else what a promise leaves to each step where all are asked.

    With a schedule it is left to that where a user passes none.
    """
    if epsilon is not None or schedule is not None:
        return epsilon
    if not isinstance(promise, SequencePromise):
        raise InvalidInput("epsilon", None, "a number, the promise of each release; or a promise over the sequence")
    return promise.each(step)


def _cap(value: Exact | None, field: str) -> Fraction | None:
    if value is None:
        return None
    cap = exact_number(value, field)
    if cap < 0:
        raise InvalidInput(field, str(value), "0 or more")
    return cap
