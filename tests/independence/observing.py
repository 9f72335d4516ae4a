"""Run a session and write down all that anybody could see of it, field by field, so that two runs can be compared.

`observe` plays a history of truths. The first draws, as many as there are ``given`` answers, are made as always and
then replaced by those answers: two runs with different truths then have the same public past, and differ in nothing.
Draws beyond them are free: at the first of these the runs differ in the answer and in what is computed from it
(`COMPUTED`), and in nothing else.
"""

from __future__ import annotations

import contextlib
import io
import logging
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

# They hold what draws, for invented people: loaded before a test puts something in its place.
import dphmm.choose.planning
import dphmm.choose.simulated  # noqa: F401
from dphmm.accounting.ledger import Ledger
from dphmm.errors import DphmmError
from dphmm.samplers.entropy import ReplayBits
from dphmm.session import answer
from dphmm.session.block import Block
from dphmm.session.estimates import ESTIMATE_LOSSES
from dphmm.session.plan import StepPlan
from dphmm.session.releases import Release
from dphmm.session.session import ReleaseSession
from dphmm.session.setting import Setting
from dphmm.types import BoolArray, IntArray, WordArray
from independence.instances import MADE, TABLES, Instance

Observation = dict[str, Any]
Answer = tuple[int, ...]
#: The released answers and what is computed from them: all that may differ between two truths.
COMPUTED = ("answers", "estimates", "beliefs")
_SEEN = (*COMPUTED, "plans", "releases", "noise", "refusals", "totals", "shown")


class CountedBits:
    """Replayable words, and how many were asked for each time."""

    def __init__(self, seed: int) -> None:
        self._bits = ReplayBits(seed)
        self.asked: list[int] = []

    def uint64(self, n: int) -> WordArray:
        """The next words."""
        self.asked.append(n)
        return self._bits.uint64(n)


def observe(
    case: Instance,
    truths: Sequence[int | str],
    *,
    given: Sequence[Answer] = (),
    ledger: Ledger | None = None,
    setting: Setting | None = None,
) -> Observation:
    """Everything that a history of truths shows; every plan is made anew, or by a shared ``setting``."""
    bits = CountedBits(7)
    seen: Observation = {name: [] for name in _SEEN}
    with replaced_draws(given), overheard() as heard:
        session = case.session(bits, ledger, setting)
        for truth, steps in zip(truths, case.skipped, strict=False):
            try:
                _one_step(session, truth, steps, seen)
            except DphmmError as refusal:
                seen["refusals"].append(surface(refusal))
            seen["totals"].append(repr(session.spent))
            seen["shown"].append((repr(session), str(session), session.t, sorted(attributes_of(session))))
    seen["words"] = bits.asked
    return seen | heard


def _one_step(session: ReleaseSession, truth: int | str, steps: int, seen: Observation) -> None:
    if steps:
        session.skip(steps)
    plan = session.plan
    seen["plans"].append(described(plan))
    release = session.release(truth)
    seen["releases"].append(without_answer(release))
    seen["answers"].append(tuple(release.z_lattice.tolist()))
    for loss in ESTIMATE_LOSSES:
        guess = session.estimate(loss)
        seen["estimates"].append((guess.answer.tolist(), guess.state, guess.probability))
    answered_as = surrogate_of(plan, session, truth)
    # A table adds no noise: what it names is the answer itself. The words that it reads are compared all the same.
    noise = None if plan.mechanism_name in (*TABLES, MADE) else (release.z_lattice - plan.image[answered_as]).tolist()
    seen["noise"].append(noise)
    seen["beliefs"].append(session.prior.log_probability.tolist())


def surrogate_of(plan: StepPlan, session: ReleaseSession, truth: int | str) -> int:
    """The state that a truth is answered as: of drift that is no state, the lowest-numbered plan state."""
    number = session.setting.space.index_of(truth) if isinstance(truth, str) else truth
    return int(plan.constraint.surrogate[number]) if number >= 0 else int(np.flatnonzero(plan.constraint.plan)[0])


def described(plan: StepPlan) -> dict[str, Any]:
    """Everything about a plan, as plain values."""
    return {
        "hash": plan.hash,
        "record": (plan.record.hash, plan.record.plan_states.hex(), plan.record.description),
        "cost": str(plan.cost),
        "promised": str(plan.promised),
        "image": plan.image.tolist(),
        "hull": plan.hull.digest,
        "mechanism": plan.mechanism.describe(),
        "partners": plan.partners.tolist(),
        "expected_error": plan.expected_error,
        "constant": plan.constant,
        "sets": (plan.constraint.support.tolist(), plan.constraint.plan.tolist(), plan.constraint.surrogate.tolist()),
        "repr": repr(plan),
    }


def without_answer(release: Release) -> dict[str, str]:
    """A release but for its answer and what is computed from it."""
    computed = {"z", "z_lattice"}
    return {name: repr(value) for name, value in attributes_of(release).items() if name not in computed}


def attributes_of(item: object) -> dict[str, Any]:
    """All attributes that an object has been given, kept in a dictionary or in slots."""
    slots = [name for kind in type(item).__mro__ for name in getattr(kind, "__slots__", ())]
    return getattr(item, "__dict__", {}) | {name: getattr(item, name) for name in slots if hasattr(item, name)}


def surface(error: BaseException) -> list[Any]:
    """All of an error that can be printed: text, arguments, attributes, notes, causes, and the traceback."""
    chain: list[BaseException | None] = [error, error.__cause__, error.__context__]
    told = [
        (type(e).__name__, str(e), repr(e), repr(e.args), repr(attributes_of(e)), getattr(e, "__notes__", []))
        for e in chain
        if e is not None
    ]
    return [*told, "".join(traceback.format_exception(error))]


@contextlib.contextmanager
def around_draws(after: Callable[[StepPlan, list[int], list[Answer]], list[Answer]]) -> Iterator[None]:
    """Let ``after`` see (plan, true states, answers) of every draw, of one or of many, and say what is drawn.

    There is one module where true states are used: it answers under one plan, or under those of a block.
    """
    truly, together = answer.answer_under, answer.answer_in_block

    def answer_under(plan: StepPlan, states: IntArray, bits: Any) -> tuple[IntArray, BoolArray]:
        z, drifted = truly(plan, states, bits)
        answers = after(plan, states.tolist(), [tuple(one) for one in z.tolist()])
        return np.array(answers, dtype=np.int64).reshape(len(states), -1), drifted

    def answer_in_block(block: Block, rows: IntArray, states: IntArray, bits: Any) -> tuple[IntArray, BoolArray]:
        z, drifted = together(block, rows, states, bits)
        for at, (row, state) in enumerate(zip(rows.tolist(), states.tolist(), strict=True)):
            plan = block.plans[row]
            assert plan is not None
            z[at] = after(plan, [state], [tuple(z[at].tolist())])[0]
        return z, drifted

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answer, "answer_under", answer_under)
        patch.setattr(answer, "answer_in_block", answer_in_block)
        yield


def replaced_draws(given: Sequence[Answer]) -> contextlib.AbstractContextManager[None]:
    """Draw as always, then take the given answers in turn instead, as long as there are any."""
    answers = iter(given)
    return around_draws(lambda plan, states, drawn: [next(answers, z) for z in drawn])


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(level=1)
        self.lines: list[tuple[Any, ...]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append((record.name, record.levelno, record.lineno, record.getMessage()))


@contextlib.contextmanager
def overheard() -> Iterator[Observation]:
    """What is printed, logged at any level, and warned of."""
    heard: Observation = {}
    root, handler = logging.getLogger(), _Lines()
    level = root.level
    # The compiler tells of its work once per process, whoever comes first.
    logging.getLogger("numba").setLevel(logging.WARNING)
    root.addHandler(handler)
    root.setLevel(1)
    printed = io.StringIO()
    try:
        with (
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
            warnings.catch_warnings(record=True) as warned,
        ):
            warnings.simplefilter("always")
            yield heard
    finally:
        root.setLevel(level)
        root.removeHandler(handler)
    heard["printed"] = printed.getvalue()
    heard["logged"] = handler.lines
    heard["warnings"] = [(str(w.message), w.category.__name__, w.lineno) for w in warned]


def differing(first: Observation, other: Observation, but: Sequence[str] = ()) -> list[str]:
    """Names of the fields in which two observations differ."""
    return sorted(name for name in first.keys() - set(but) if first[name] != other[name])
