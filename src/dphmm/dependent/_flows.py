"""Flows: the noisy number of trips from each public state to each other one, at most K trips of a person.

A trip is two records of one person that follow each other in time; with ``moves`` only those between different states.
With ``ends`` the beginning of a person's rows and their end are two moves more: n rows have n + 1.
Of each person the first K of these in time count. All rows of a person are hidden, however many there are: K trips that
leave and K that enter change the counts by 2K in L1. Nothing else is proved of flows: one row is in two trips, so a
promise about one record, or about the records of a chain, would say less than its words.

Proof: docs/proofs/contributions.md.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

import numpy as np

from dphmm._checks import whole
from dphmm.dependent._counts import LAST, Histogram, with_total
from dphmm.dependent._dependence import Budget, add_integer_noise
from dphmm.dependent._inputs import CONSISTENT, Option, Rejected, first_of_each
from dphmm.dependent._question import Answered, AnsweredQuestion, ExactCounts, PerPerson
from dphmm.dependent._records import MOST_TIMES, Records, new_name, records_of
from dphmm.errors import InvalidInput
from dphmm.samplers.entropy import default_bits
from dphmm.statement.query import Unit
from dphmm.storage.cells import Roles
from dphmm.types import Bits, Exact, IntArray

#: Pairs of states that are counted at most.
MOST_PAIRS = 1_000_000
#: The origin of a person's first row, and the destination of the last one.
START, FINISH = "(start)", "(end)"
_TRIP = "one trip of a person, from one state to the next"
_PROMISED = (
    "group:K (or, in Python, (\"group\", K)): the first K trips of each person count, and all rows of a person are "
    "hidden; nothing else is proved for flows"
)  # fmt: skip


def flows(
    table: Any,
    dependence: Any,
    epsilon: Exact,
    *,
    n_states: int,
    n_times: int | None = None,
    moves: bool = False,
    ends: bool = False,
    neighbours: str = "replace",
    consistent: bool = False,
    bits: Bits | None = None,
) -> Answered:
    """The noisy number of trips from each state to each: columns origin, destination, count, for every two states.

    ``table``: columns user, t, state; or an array of states (T,) or (U, T), −1 for none. ``dependence``: ("group", K),
    K a public number: the first K trips of each person count, and all rows of one person, there or not, are hidden.
    ``n_times``: the public number of times, records at others are left out. ``moves``: two records in one state are no
    trip. ``ends``: the first row of a person is a move from n_states, the last one a move to it, and both count among
    the first K. ``neighbours``: ε is of a person whose rows are replaced ("replace"), or all there or not
    ("add-remove": half the noise). ``consistent``: no counts below 0, the noisy total kept (post-processing).

    Raises InvalidInput for another dependence, of which nothing is proved.

    Examples
    --------
    >>> import dphmm, numpy
    >>> states = numpy.array([[0, 1, 0, 1], [1, 1, 0, -1]])
    >>> found = dphmm.dependent.flows(states, ("group", 2), 1, n_states=2, bits=dphmm.ReplayBits(1))
    >>> len(found.table), [str(part.sensitivity / part.scale) for part in found.event.parts]
    (4, ['1/2'])

    Source: docs/proofs/contributions.md.
    """
    most = _most(dependence, "dependence")
    records = Records.of(table, _checked(n_states, "n_states", ends), n_times)
    budget = Budget.of(("group", most), epsilon, None, False, neighbours)
    return _with_noise(_counts(records, most, moves, ends), records.n_states + ends, budget, consistent, bits)


def _most(dependence: Any, option: str) -> int:
    """K of ("group", K) or group:K. Raises InvalidInput for all that is not proved."""
    if isinstance(dependence, tuple) and len(dependence) == 2 and dependence[0] == "group":
        return whole(dependence[1], option, 1)
    if isinstance(dependence, str) and re.fullmatch("group:[1-9][0-9]{0,8}", dependence):
        return int(dependence.removeprefix("group:"))
    raise InvalidInput(option, "nothing" if dependence is None else str(dependence), _PROMISED)


def _checked(n_states: int, option: str, ends: bool) -> int:
    n = whole(n_states, option, 1)
    if (n + ends) ** 2 > MOST_PAIRS:
        expected = f"at most {int(MOST_PAIRS**0.5):,}, with the cell of other names: a number for every two of them"
        raise InvalidInput(option, f"{n:,} states", expected)
    return n


def _counts(records: Records, most: int, moves: bool, ends: bool) -> IntArray:
    """The number of trips (N * N,) from each state to each: of each person's the first ``most`` in time.

    With ``ends`` a state more is where each person comes from and goes to. Nobody goes from it to itself, so that last
    number is left out.
    """
    order = np.lexsort((records.time, records.user))
    user, state, n = records.user[order], records.state[order], records.n_states
    if ends:
        # A row of the state more stands before the rows of each person, and another one after them.
        here, n = np.unique(user), n + 1
        user, state = np.concatenate([here, user, here]), np.concatenate([0 * here + n - 1, state, 0 * here + n - 1])
        place = np.repeat([0, 1, 2], [len(here), len(order), len(here)])
        order = np.lexsort((np.arange(len(user)), place, user))
        user, state = user[order], state[order]
    trips = user[1:] == user[:-1]
    if moves:
        trips &= state[1:] != state[:-1]
    at = np.flatnonzero(trips)
    at = at[first_of_each(user[at], most)]
    counts = np.bincount(state[at] * n + state[at + 1], minlength=n * n)
    return counts[: n * n - ends]


def _with_noise(counts: IntArray, n: int, budget: Budget, consistent: bool, bits: Bits | None) -> Answered:
    """The published table of the numbers of trips among N states, row by row."""
    import pandas as pd

    source = default_bits(bits)
    noisy, part = add_integer_noise(counts, budget.change(2), budget.per_record, "flows", source)
    if consistent:
        noisy = with_total(noisy, max(int(noisy.sum()), 0))
    origin, destination = np.divmod(np.arange(len(counts)), n)
    table = pd.DataFrame({"origin": origin, "destination": destination, "count": noisy})
    return Answered(table, budget.event("flows", _TRIP, (part,), source))


_OPTIONS = {option.name: option for option in Histogram.options}


class Flows(Histogram):
    """`flows` of a table of trajectories as it is: names of states, or places; times, steps, or rows alone."""

    name = "flows"
    help = f"How many trips go from each state to each. A trip is two rows of a person that follow each other. {LAST}"
    forms = "group:K: the first K trips of each person count, and all rows of a person are hidden."
    functions: ClassVar = {"flows": flows}
    options: ClassVar[tuple[Option, ...]] = (
        *(_OPTIONS[name] for name in ("neighbours", "model_people", "states", "user_column", "spelling")),
        *(_OPTIONS[name] for name in ("time_column", "state_column", "times", "step", "first", "timezone")),
        Option("moves", "Two rows in one state are no trip.", kind=bool, default=False),
        Option("ends", "A person's first and last row are a move from (start) and to (end).", kind=bool, default=False),
        CONSISTENT,
    )
    _chained = False

    def check(self, dependence: Any) -> None:
        """Validate the number of trips that count for a person: no other dependence is proved."""
        self.most = _most(dependence, self.called("dependence"))
        self.dependence = self.depends(f"group:{self.most}", ("group",))
        self.check_neighbours()
        self.check_people()

    def counted(self) -> ExactCounts:
        """Count the trips of the public steps."""
        n = _checked(len(self.cells), self.called("states"), self.given["ends"])
        roles = self.roles()
        rows = self.data.read(roles.names)
        rejected = Rejected.of(rows)
        frame = records_of(rows, roles, self.clock, self.space, None, rejected)
        records = Records.of(frame, n, self.clock.times)
        return ExactCounts(_counts(records, self.most, self.given["moves"], self.given["ends"]), rejected)

    def _orders(self, roles: Roles) -> bool:
        """A trip goes from one row to the next."""
        return True

    def drawn(self, counts: ExactCounts, bits: Bits | None) -> AnsweredQuestion:
        """The counts with noise."""
        ends = bool(self.given["ends"])
        answered = _with_noise(counts.values, len(self.cells) + ends, self.budget, self.given["consistent"], bits)
        for column, beyond in (("origin", START), ("destination", FINISH)):
            names = [*self.cells, new_name(self.cells, beyond)]
            answered.table[column] = [names[state] for state in answered.table[column]]
        counted = "moves" if ends else "trips"
        unit = Unit(of="person", most=self.most, counts=counted, there_or_not=self.there_or_not)
        domain = self.domain(moves=bool(self.given["moves"]), **({"ends": True} if ends else {}))
        return AnsweredQuestion(answered, counts.rejected, domain, unit)

    def unit(self) -> str:
        """A trip that counts: a person has at most K."""
        return "one trip that counts, there or not; neighbouring data differ in it and nowhere else"

    def per_person(self) -> PerPerson:
        """The bound for one person: at most K trips."""
        return self.counted_per_person(self.most)

    @property
    def spans(self) -> list[tuple[int, int]]:
        """One window of all steps."""
        return [(0, MOST_TIMES)]
