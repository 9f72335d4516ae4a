"""The answers of a release as sequences to learn from: no true state is among them.

Likelihoods are those of the plans, at every secret. A sequence ends with its last answer, since later steps tell
nothing. It is cut at long gaps and where it is very long; each part begins with the public belief of its first step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dphmm.markov.model import MarkovModel
from dphmm.markov.slots import Slots
from dphmm.release.decoding import OtherRows, published_of
from dphmm.session.plan import Position
from dphmm.session.setting import Subjects
from dphmm.session.smoothing import JointSteps, Smoothers, Steps
from dphmm.storage.released import ReleasedRows
from dphmm.types import FloatArray, IntArray

#: A sequence is cut after so many steps without an answer, and has at most so many numbers.
LONGEST_GAP, MOST_NUMBERS = 512, 2**24
#: It is cut sooner where answers are closer: after so many steps, and so many times the usual gap.
_SHORT_GAP, _OF_USUAL = 48, 4
_DAY = 86_400


@dataclass(frozen=True, eq=False)
class Stretch:
    """Steps of one person, from the moment ``phase`` on, in steps since 1970; 0 where no time is known.

    ``prior`` (N,): the public belief before the first; None where it is the model's own, of step 1. ``table`` (V, N):
    likelihoods of at most 1, ``which`` (T,): the row of each step, -1 where nobody was asked.
    """

    person: int
    prior: FloatArray | None
    table: FloatArray
    which: IntArray
    phase: int


def public_slots(stretches: Sequence[Stretch], step: int | None, most: int) -> Slots | None:
    """The public rule: one slot for each time of day that was asked, changing midway between two of them.

    Of more than ``most`` times there are so many slots of equal width, from midnight on; without times, or with one
    time of day, there is none.
    """
    if step is None or _DAY % step or not all(stretch.phase for stretch in stretches):
        return None
    steps = _DAY // step
    asked = np.unique(
        np.concatenate([np.flatnonzero(stretch.which >= 0) + stretch.phase for stretch in stretches]) % steps
    )
    if len(asked) < 2:
        return None
    middles = (asked + np.append(asked[1:], asked[0] + steps) + 1) // 2 % steps
    begins = np.sort(middles) if len(asked) <= most else steps * np.arange(most) // most
    return Slots(period="1d", begins=[f"{step * begin}s" if begin else 0 for begin in begins.tolist()])


def slots_of(slots: Slots | None, phase: int, moves: int, step: int | None) -> IntArray:
    """The slots (moves,) of the moves from the step ``phase`` on: a move has the slot of the step that it leaves."""
    return np.zeros(moves, dtype=np.int64) if slots is None else slots.of_steps(phase + np.arange(moves), step)


def longest_gap(gaps: IntArray) -> int:
    """The longest gap between answers over which a person's sequence goes on; ``gaps`` (n,): all of theirs, in steps.

    Over much longer gaps than the usual one answers tell next to nothing of single moves, and each step takes time.
    """
    return min(LONGEST_GAP, max(_SHORT_GAP, _OF_USUAL * int(np.median(gaps)))) if len(gaps) else LONGEST_GAP


def stretches_of(
    rows: ReleasedRows,
    subjects: Subjects,
    base: MarkovModel,
    beside: Sequence[tuple[ReleasedRows, Subjects]] = (),
    users: Collection[str] | None = None,
) -> tuple[list[str], list[Stretch]]:
    """The people with answers, by name, and their stretches, in this order; ``base``: the model to learn from.

    ``beside``: answers of other queries, which count too. ``users``: these people alone. Raises InvalidInput as
    `dphmm.reconstruction.smooth` does.
    """
    smoothers, others = Smoothers(subjects, base), OtherRows(beside)
    people, stretches, wanted = list[str](), list[Stretch](), None if users is None else set(users)
    later = list[tuple[int, int]]()
    for user, at in rows.by_user():
        if wanted is not None and user not in wanted:
            continue
        steps = smoothers.of(user).observed(published_of(rows, user, at, base), others.of(user))
        if steps.asked.any():
            begins, origin = subjects.of(user).began is None, rows.origin(at, base.step)
            for first, stretch in _cut(steps, len(people), begins, int(origin) - 1 if origin else 0, base.n_states):
                if first > steps.t[0]:
                    later.append((first, len(stretches)))
                stretches.append(stretch)
            people.append(user)
    # Gaps can be long: each step that nobody is asked at is taken once, for all people.
    position = Position.first(base, base.start)
    for first, number in sorted(later):
        position = position.skip(base, first - position.t) if first > position.t else position
        stretches[number] = replace(stretches[number], prior=position.prior.latent.probability)
    return people, stretches


def _cut(
    steps: Steps | JointSteps, person: int, begins: bool, offset: int, n_states: int
) -> Iterator[tuple[int, Stretch]]:
    """The stretches of one person with their first steps; ``begins``: step 1 is that of the model.

    The prior of a later one than the first is not known here.
    """
    rows = steps.rows(0, len(steps.t))
    asked, table = np.flatnonzero(steps.asked), rows.relative
    longest = max(1, MOST_NUMBERS // n_states)
    first, most = int(steps.t[0]), longest_gap(np.diff(steps.t[asked]))
    if steps.t[asked[0]] - first > LONGEST_GAP:
        first = int(steps.t[asked[0]])
    while len(asked):
        at = steps.t[asked]
        gaps = np.flatnonzero(np.diff(at) > most)
        end = min(int(gaps[0]) + 1 if len(gaps) else len(at), max(1, int(np.searchsorted(at, first + longest))))
        which = np.full(int(at[end - 1]) - first + 1, -1)
        which[at[:end] - first] = rows.which[asked[:end]]
        rows_used, which[which >= 0] = np.unique(which[which >= 0], return_inverse=True)
        has_own = first == int(steps.t[0]) and not (first == 1 and begins)
        prior = steps.prior.latent.probability if has_own else None
        yield first, Stretch(person, prior, table[rows_used], which, offset + first if offset else 0)
        asked = asked[end:]
        first = int(at[end]) if len(asked) else first
