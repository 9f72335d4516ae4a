"""The answers of a released table with the laws that they were drawn under: what every estimate of a population reads.

Plans are made again from public data and compared with the published hashes, as for smoothing. Plans under which every
state has the same law are one law here, whatever else tells them apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dphmm.batch import Progress
from dphmm.decoding import published_of
from dphmm.errors import InvalidInput
from dphmm.reconstruction.outcomes import law_key
from dphmm.session.plan import Plan
from dphmm.session.setting import Subjects
from dphmm.session.smoothing import Smoothers
from dphmm.storage.released import ReleasedRows
from dphmm.types import BoolArray, FloatArray, IntArray

#: Different laws of one release: those of delta-sets are nearly as many as answers.
MOST_LAWS = 256
#: Numbers of the laws that are kept.
_MOST_NUMBERS = 2**26


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers (n,) that were asked, person after person and step after step.

    ``plans`` has a plan of each law, and ``law`` (n,) says under which an answer was drawn. ``z`` (n, d) are lattice
    answers, ``row`` (n,) the rows of the table, ``person`` (n,) numbers into ``people``. ``public``: whether which rows
    were asked hangs on no answer, so that every person may count alike.
    """

    plans: list[Plan]
    law: IntArray
    z: IntArray
    row: IntArray
    step: IntArray
    person: IntArray
    people: list[str]
    public: bool

    def __len__(self) -> int:
        return len(self.law)

    def take(self, which: BoolArray | IntArray) -> Answers:
        """Some of the answers."""
        own = (self.law[which], self.z[which], self.row[which], self.step[which], self.person[which])
        return Answers(self.plans, *own, self.people, self.public)

    def weights(self) -> FloatArray:
        """What each answer counts (n,): persons alike where who is asked is public, else answers alike."""
        if not self.public:
            return np.full(len(self), 1.0 / max(1, len(self)))
        _, number, counts = np.unique(self.person, return_inverse=True, return_counts=True)
        return np.asarray(1.0 / (counts[number] * len(counts)))

    def pairs(self, among: IntArray | None = None) -> tuple[Answers, Answers]:
        """Every two answers of one person that follow each other: the first of each (m,), and the second.

        ``among`` : of which answers the first one is; the second may be any.
        """
        first = np.flatnonzero(self.person[1:] == self.person[:-1])
        if among is not None:
            first = first[np.isin(first, among)]
        return self.take(first), self.take(first + 1)


def answers_of(
    rows: ReleasedRows, subjects: Subjects, schedule: str | None = None, progress: Progress | None = None
) -> Answers:
    """The answers of released rows.

    schedule : "planned" where the steps that were asked are public, "paced" where earlier answers chose them. Without
        it rows without an answer are taken to be those of a paced schedule.

    Raises InvalidInput as `dphmm.decode` does, for a table without any answer, and for more than 256 different laws.
    """
    smoothers, numbers, by_hash = Smoothers(subjects), dict[str, int](), dict[str, int]()
    plans: list[Plan] = []
    most = max(1, min(MOST_LAWS, _MOST_NUMBERS // subjects.setting.space.n_states))
    laws, persons = list[int](), list[int]()
    found, people = list[IntArray](), list[str]()
    done = 0
    for user, own in rows.by_user():
        published = published_of(rows, user, own)
        made = smoothers.of(user).made_again(published)
        asked = [n for n, plan in enumerate(published.plans) if plan]
        for n in asked:
            hash_ = published.plans[n]
            if hash_ not in by_hash:
                plan = made.at(n)
                number = by_hash[hash_] = numbers.setdefault(law_key(plan), len(plans))
                if number == len(plans):
                    plans.append(plan)
                if len(plans) > most:
                    came = f"answers of more than {most} different laws"
                    expected = "a release on the support (--constraint support): each answer of a delta-set has its own"
                    raise InvalidInput("released", came, expected)
            laws.append(by_hash[hash_])
        if asked:
            found.append(own[asked])
            persons += [len(people)] * len(asked)
            people.append(user)
        done += len(own)
        if progress is not None:
            progress(done, len(rows.users))
    if not found:
        raise InvalidInput("released", "no row with an answer", "at least one answer")
    row = np.concatenate(found)
    public = schedule == "planned" or (schedule is None and len(row) == len(rows.users))
    law, person = np.array(laws, dtype=np.int64), np.array(persons, dtype=np.int64)
    return Answers(plans, law, rows.z[row], row, rows.step[row], person, people, public)
