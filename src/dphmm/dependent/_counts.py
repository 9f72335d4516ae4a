"""Histograms and counts over states and time windows, sums and means: integer noise, tables out.

A record is one person's state at one time (or one row's value). A cell that cannot be used counts as a public value,
so no row decides whether there is an answer; with ``max_rows_per_user`` only the first records of each person count.

Proof: docs/proofs/dependent-markov.md, docs/proofs/contributions.md.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dphmm._cached import cached_property
from dphmm._checks import exact_number, whole
from dphmm.dependent._dependence import OF_A_MODEL, Budget, about, add_integer_noise, model_with_states
from dphmm.dependent._inputs import (
    CONSISTENT,
    MAX_ROWS,
    RELATION,
    SPELLING,
    Option,
    Rejected,
    grouped,
    is_table,
    names,
    owned,
    plain_numbers,
    public_names,
)
from dphmm.dependent._question import Answered, AnsweredQuestion, CountedQuestion, ExactCounts, PerPerson, fields
from dphmm.dependent._records import (
    MOST_TIMES,
    Clock,
    Records,
    first_text,
    other_cell,
    records_of,
    windows,
    windows_of,
)
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.samplers.entropy import default_bits
from dphmm.statement.origin import MODEL_PEOPLE
from dphmm.states.space import StateSpace
from dphmm.storage.cells import Roles, column_roles
from dphmm.storage.layouts import Layout
from dphmm.types import Bits, Exact, FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

#: Steps that a bounded value is divided into, unless a pitch is given.
STEPS = 2**16
#: Numbers of a range, and their differences, are kept away from the ends of what floats can say.
_HUGE = Fraction(10) ** 250
_MOST_VALUE = 2**48
RECORD = "one person's state at one time"
#: The end of a help text.
LAST = "Rows that name no state count in a last cell, other, which is (other) where a state is called so."
_COLUMNS = ("user_column", "time_column", "state_column")


def histogram(
    table: Any,
    dependence: Any,
    epsilon: Exact,
    *,
    n_states: int,
    windows: Any = None,
    n_times: int | None = None,
    max_rows_per_user: int | None = None,
    neighbours: str = "replace",
    mechanism: str | None = None,
    consistent: bool = False,
    accept_unproved: bool = False,
    bits: Bits | None = None,
) -> Answered:
    """The noisy number of records in each state in each time window: columns first, end, state, count.

    ``table``: columns user, t, state; or an array of states (T,) or (U, T), −1 for none. ``dependence``: a Chain is
    each person's own, persons being independent of each other; "group": all records of one person. ``windows``: None, a
    length, or pairs (first, end); where they overlap the noise grows. ``n_times``: the public number of times; without
    it the windows end where the table does. ``max_rows_per_user``: a public number, the first so many records of each
    person in time count. ``neighbours``: ε is of a record (a group) that is replaced ("replace"), or there or
    not ("add-remove": half the noise, and n_times is needed). ``consistent``: no counts below 0, each window's noisy
    total kept (post-processing). Raises Refused for a mechanism that is not proved, unless ``accept_unproved``.
    """
    if neighbours == "add-remove" and n_times is None:
        raise InvalidInput("n_times", None, "the public number of times: else the last record that is there tells it")
    dependence = grouped(dependence, max_rows_per_user)
    records = Records.of(table, n_states, n_times, max_rows_per_user)
    records.check_against(dependence)
    spans = windows_of(windows, records.n_times)
    budget = Budget.of(dependence, epsilon, mechanism, accept_unproved, neighbours)
    return _with_noise(_counts_of(records, spans), spans, budget, consistent, bits)


def _counts_of(records: Records, spans: list[tuple[int, int]]) -> IntArray:
    """The number of records (W, N) in each window and state."""
    counts = np.zeros((len(spans), records.n_states), dtype=np.int64)
    for w, (first, end) in enumerate(spans):
        inside = (records.time >= first) & (records.time < end)
        counts[w] = np.bincount(records.state[inside], minlength=records.n_states)
    return counts


def _with_noise(
    counts: IntArray, spans: list[tuple[int, int]], budget: Budget, consistent: bool, bits: Bits | None
) -> Answered:
    """The published table of a histogram's counts (W, N)."""
    source = default_bits(bits)
    sensitivity = budget.change(2 * _overlap(spans))
    noisy, part = add_integer_noise(counts, sensitivity, budget.per_record, "histogram", source)
    if consistent:
        noisy = np.array([with_total(row, max(int(row.sum()), 0)) for row in noisy])
    event = budget.event("histogram", RECORD, (part,), source)
    return Answered(_table_of(spans, noisy), event)


def count(
    table: Any,
    dependence: Any,
    epsilon: Exact,
    *,
    n_states: int,
    states: Any,
    windows: Any = None,
    n_times: int | None = None,
    max_rows_per_user: int | None = None,
    mechanism: str | None = None,
    accept_unproved: bool = False,
    bits: Bits | None = None,
) -> Answered:
    """The noisy number of records in some states, in each window: columns first, end, count. Options of `histogram`."""
    chosen = np.zeros(whole(n_states, "n_states", 1), dtype=np.int64)
    wanted = np.asarray(states)
    if not np.issubdtype(wanted.dtype, np.integer) or wanted.size == 0 or wanted.min() < 0 or wanted.max() >= n_states:
        raise InvalidInput("states", states, f"state numbers from 0 to {n_states - 1}")
    chosen[wanted] = 1
    answered = total(
        table,
        dependence,
        epsilon,
        values=chosen,
        windows=windows,
        n_times=n_times,
        max_rows_per_user=max_rows_per_user,
        mechanism=mechanism,
        accept_unproved=accept_unproved,
        bits=bits,
    )
    return Answered(answered.table.rename(columns={"sum": "count"}), replace(answered.event, query="count"))


def total(
    table: Any,
    dependence: Any,
    epsilon: Exact,
    *,
    values: Any,
    windows: Any = None,
    n_times: int | None = None,
    max_rows_per_user: int | None = None,
    mechanism: str | None = None,
    accept_unproved: bool = False,
    bits: Bits | None = None,
) -> Answered:
    """The sum of an integer value of each state over the records of each window: columns first, end, sum.

    Options as of `histogram`.
    """
    import pandas as pd

    f = _integers_of_states(values)
    dependence = grouped(dependence, max_rows_per_user)
    records = Records.of(table, len(f), n_times, max_rows_per_user)
    records.check_against(dependence)
    spans = windows_of(windows, records.n_times)
    budget = Budget.of(dependence, epsilon, mechanism, accept_unproved)
    source = default_bits(bits)
    inside = [(records.time >= first) & (records.time < end) for first, end in spans]
    sums = np.array([f[records.state[mask]].sum() for mask in inside], dtype=np.int64)
    sensitivity = Fraction(int(np.ptp(f)) * _overlap(spans))
    noisy, part = add_integer_noise(sums, sensitivity, budget.per_record, "sum", source)
    frame = pd.DataFrame(spans, columns=["first", "end"]).assign(sum=noisy)
    return Answered(frame, budget.event("sum", RECORD, (part,), source))


def mean(
    values: Any,
    dependence: Any,
    epsilon: Exact,
    *,
    bounds: tuple[Exact, Exact],
    pitch: Exact | None = None,
    users: Any = None,
    max_rows_per_user: int | None = None,
    mechanism: str | None = None,
    accept_unproved: bool = False,
    bits: Bits | None = None,
) -> Answered:
    """The mean of one number per record, clipped to public ``bounds``: columns mean, n.

    Values are rounded to steps of ``pitch`` (2**−16 of the bounds' width if not given), summed as integers, and noised;
    n, the number of values, is public. A value that is no number counts as the middle of the bounds; so do all but
    the first ``max_rows_per_user`` of each of ``users`` (n,), where these are given.
    """
    import pandas as pd

    dependence = grouped(dependence, max_rows_per_user)
    low, high, step = _box(bounds, pitch)
    clipped = bounded(values, low, high, "values")
    clipped[~owned(users, len(clipped), max_rows_per_user)] = float((low + high) / 2)
    if not isinstance(dependence, (str, tuple)) and dependence.n_tuples != len(clipped):
        raise InvalidInput("dependence", f"a {dependence!r}", f"one of the {len(clipped)} records")
    budget = Budget.of(dependence, epsilon, mechanism, accept_unproved)
    source = default_bits(bits)
    steps = in_steps(clipped, low, step, high)
    widest = Fraction(int((high - low) / step))
    noisy, part = add_integer_noise(steps.sum(keepdims=True), widest, budget.per_record, "sum", source)
    average = float(low + step * Fraction(int(noisy[0]), len(clipped)))
    frame = pd.DataFrame({"mean": [min(max(average, float(low)), float(high))], "n": [len(clipped)]})
    return Answered(frame, budget.event("mean", "one row", (part,), source))


class Histogram(CountedQuestion):
    """`histogram` of a table of trajectories as it is: names of states, or places; times, steps, or rows alone."""

    name = "histogram"
    help = f"How many records are in each state, in each window of time. A record is a person's state at a step. {LAST}"
    forms = "markov:MODEL, friends:EDGES, group, group:K or independent."
    functions: ClassVar = {"histogram": histogram, "count": count, "total": total, "mean": mean}
    options: ClassVar[tuple[Option, ...]] = (
        MAX_ROWS,
        RELATION,
        Option("model_people", "With markov: who MODEL was fitted on: others, same or unknown.", "WORD"),
        Option("states", "The public states: a,b,c, or a table of names, or a model (.npz).", "S"),
        Option("user_column", "The column of users  [default: user]", "COL"),
        SPELLING,
        Option("time_column", "The column of times  [default: t]", "COL"),
        Option("state_column", "The column of states  [default: state, or places on a map]", "COL"),
        Option("times", "The public number of steps, 0 to T-1; other rows are left out.", "T", int),
        Option("step", "With times: bins of 5min, the last row of each counts.", "TIME"),
        Option("first", "What step 0 is: a time or a number [default: each user's first]", "TIME", flags=("--from",)),
        Option(
            "timezone",
            "Times without a zone are its clock's: UTC, Europe/Berlin. Else such rows count nowhere.",
            "ZONE",
        ),
        Option("windows", "Count in windows: a number of steps, or 0:24,24:48.", "W"),
        CONSISTENT,
    )

    def check(self, dependence: Any) -> None:
        """Validate the dependence, and the options under it."""
        self.dependence = self.depends(dependence, ("markov", "friends", "group", "independent"))
        self._chained = self.dependence.kind == "markov"
        self.check_neighbours(OF_A_MODEL if self._chained else None)
        self.check_people()

    def check_people(self) -> None:
        """Validate ``model_people``, which needs a model, and refuse DATA as their own list of friendships."""
        people = self.given["model_people"]
        if people is not None:
            if not (self._chained or _is_model(self.given["states"])):
                chain, states = self.called("dependence"), self.called("states")
                raise InvalidInput(
                    self.called("model_people"), people, f"{chain} markov:MODEL or {states} MODEL with it"
                )
            if people not in MODEL_PEOPLE:
                raise InvalidInput(self.called("model_people"), people, "unknown, others or same")
        self.dependence.refuse_data(self.data)

    @property
    def model(self) -> MarkovModel | None:
        """The model of the dependence, or that of the states."""
        return self._public[0]

    def counted(self) -> ExactCounts:
        """Count the records of the public steps."""
        roles = self.roles()
        rows = self.data.read(roles.names)
        rejected = Rejected.of(rows)
        most, clock = self.dependence.most, self.clock
        frame = records_of(rows, roles, clock, self.space, most, rejected)
        records = Records.of(frame, len(self.cells), clock.times, most)
        return ExactCounts(_counts_of(records, self.spans), rejected)

    def drawn(self, counts: ExactCounts, bits: Bits | None) -> AnsweredQuestion:
        """The counts with noise."""
        import pandas as pd

        timed = self.given["times"] is not None
        answered = _with_noise(counts.values, self.spans, self.budget, self.given["consistent"], bits)
        answered.table["state"] = [self.cells[state] for state in answered.table["state"]]
        if not timed:
            # Where the number of steps is not public no step is the last one.
            answered.table["end"] = pd.array([None] * len(answered.table), dtype="Int64")
        domain = self.domain(windows=self.spans if timed else None)
        by_person = self.dependence.by_person
        unit = self.dependence.unit(there_or_not=self.there_or_not)
        return AnsweredQuestion(
            answered, counts.rejected, domain, unit, () if by_person else ("all records of a person",)
        )

    def domain(self, **own: Any) -> dict[str, Any]:
        """The public options, for the statement."""
        return {
            "states": self.space.n_states,
            "times": None if self.given["times"] is None else self.clock.times,
            "step_seconds": self.clock.seconds,
            "from": first_text(self.given["first"]),
            "timezone": self.given["timezone"],
            **own,
            "consistent": bool(self.given["consistent"]),
            "in_no_state": self.cells[-1],
        }

    @cached_property
    def budget(self) -> Budget:
        """The budget under the dependence. Raises Refused where no mechanism is proved under it."""
        with fields({"dependence": self.called("dependence")}):
            return Budget.of(self.between(), self.epsilon, None, False, self.given[RELATION.name])

    @cached_property
    def clock(self) -> Clock:
        """The numbering of the public steps."""
        model, _ = self._public
        needed = self._chained or self.given.get("windows") is not None
        return Clock.of(self.given, None if model is None else model.step, needed, self.called)

    @property
    def space(self) -> StateSpace:
        """The public states."""
        return self._public[1]

    @cached_property
    def cells(self) -> list[str]:
        """The cells that rows count in: the public states, and last the cell of rows that name none of them."""
        return [*self.space.names, other_cell(self.space.names)]

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        """The public windows [first, end); one of all steps where their number is not public."""
        if self.given["times"] is None:
            return [(0, MOST_TIMES)]
        return windows(self.given["windows"], self.clock.times, self.called("windows"))

    def roles(self) -> Roles:
        """The columns of DATA by role. Raises InvalidInput where they cannot say the public states and steps."""
        roles = self._roles(self.space)
        if self.given["step"] is not None and roles.step is not None:
            expected = f"no {self.called('step')}: DATA have a column step, which numbers the steps"
            raise InvalidInput(self.called("step"), self.given["step"], expected)
        self.clock.check(roles)
        return roles if self._orders(roles) else replace(roles, time=None)

    def _orders(self, roles: Roles) -> bool:
        """True if the order of a person's rows decides which of them count; otherwise no time is looked at."""
        limited = (self.clock.seconds, self.given["times"], self.dependence.most)
        return roles.step is not None or any(limit is not None for limit in limited)

    def between(self) -> Any:
        """The chain of each person over the public steps, if one is named; else the dependence for the library."""
        return self.dependence.chain(self.clock.times) if self._chained else self.dependence.between(self.data.spelling)

    def per_person(self) -> PerPerson:
        """A step has one record of a person."""
        times = None if self.given["times"] is None else self.clock.times
        limits = [limit for limit in (self.dependence.most, times) if limit is not None]
        return self.counted_per_person(min(limits, default=None))

    @cached_property
    def _public(self) -> tuple[MarkovModel | None, StateSpace]:
        """The model that is named, if any, and the states that are counted."""
        states, option = self.given["states"], self.called("states")
        if self._chained:
            public = self.dependence.model
            if states is not None:
                chain = self.called("dependence")
                raise InvalidInput(option, states, f"none: with {chain} markov:MODEL they are those of MODEL")
            return public
        if states is None:
            raise InvalidInput(option, "nothing", "the public states: a,b,c or a table of names, or a model (.npz)")
        if _is_model(states):
            return model_with_states(states, option)
        if isinstance(states, StateSpace):
            return None, states
        if is_table(states):
            shown = Path(states).name
            listed = public_names(
                states, self.data, option, column="state", shown=shown, expected="different names of states"
            )
            return None, StateSpace.categories(listed)
        if isinstance(states, str) and Path(states).exists():
            expected = "names a,b,c, a table of them (.parquet, .csv, .csv.gz) or a model (.npz)"
            raise InvalidInput(option, f"{states}, a file or a folder", expected)
        return None, StateSpace.categories(names(states, option, "different names of states: a,b,c"))

    def _roles(self, space: StateSpace) -> Roles:
        """The columns of DATA by role. Raises InvalidInput where they cannot say the public states."""
        unnamed = {"user": None, "time": None, "order": None, "trip": None, "state": None, "lat": None, "lon": None}
        named = {name.removesuffix("_column"): self.given[name] for name in _COLUMNS}
        try:
            roles = column_roles(self.data.columns(), Layout(columns={**unnamed, **named}))
        except InvalidInput as error:
            raise about(error, {name: self.called(name) for name in _COLUMNS}) from None
        if roles.state is None and not space.on_map:
            option = self.called("state_column")
            raise InvalidInput("DATA", "places", f"a column of states ({option}): the public states are not places")
        return roles


def _is_model(states: Any) -> bool:
    """True if the states are those of a model."""
    return isinstance(states, MarkovModel) or (isinstance(states, str) and states.lower().endswith(".npz"))


def with_total(noisy: IntArray, whole_count: int) -> IntArray:
    """The counts nearest to noisy ones that are not negative and sum to ``whole_count`` (least squares, then whole)."""
    values = noisy.astype(np.float64)
    order = np.sort(values)[::-1]
    over = (np.cumsum(order) - whole_count) / np.arange(1, len(order) + 1)
    last = int(np.flatnonzero(order > over)[-1]) if (order > over).any() else 0
    fitted = np.maximum(values - over[last], 0.0)
    rounded: IntArray = np.floor(fitted).astype(np.int64)
    missing = whole_count - int(rounded.sum())
    if missing > 0:
        rounded[np.argsort(rounded - fitted, kind="stable")[:missing]] += 1
    return rounded


def bounded(values: Any, low: Fraction, high: Fraction, field: str) -> FloatArray:
    """Numbers, one per record, clipped to the box; NaN becomes its middle, and nothing tells where."""
    floats = plain_numbers(values, field)
    if floats.ndim != 1 or len(floats) == 0:
        raise InvalidInput(field, f"shape {floats.shape}", "one number per record")
    floats = np.where(np.isnan(floats), float((low + high) / 2), floats)
    clipped: FloatArray = np.clip(floats, float(low), float(high))
    return clipped


def in_steps(values: FloatArray, low: Fraction, step: Fraction, high: Fraction) -> IntArray:
    """Values as whole steps from ``low``, 0 to (high − low)/step."""
    most = int((high - low) / step)
    steps = np.rint((values - float(low)) / float(step))
    clipped: IntArray = np.clip(steps, 0, most).astype(np.int64)
    return clipped


def resolved(low: Fraction, high: Fraction, field: str) -> None:
    """InvalidInput for a range whose steps floats cannot tell apart: a rounded number need not be in the range."""
    if max(abs(low), abs(high)) > _HUGE or high - low < 1 / _HUGE:
        raise InvalidInput(field, "a range that floats cannot divide", "bounds within 1e250 of 0, 1e-250 apart")


def _integers_of_states(values: Any) -> IntArray:
    f = np.asarray(values)
    if f.ndim != 1 or not np.issubdtype(f.dtype, np.integer) or len(f) == 0:
        raise InvalidInput("values", f"shape {f.shape}, {f.dtype}", "integers (k,), one for each state, not all equal")
    if f.min() == f.max() or max(abs(int(f.min())), abs(int(f.max()))) > _MOST_VALUE:
        got = f"from {int(f.min())} to {int(f.max())}"
        raise InvalidInput("values", got, "integers within 2**48 of 0, not all equal")
    return f.astype(np.int64)


def _box(bounds: Any, pitch: Exact | None) -> tuple[Fraction, Fraction, Fraction]:
    if bounds is None or not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise InvalidInput("bounds", bounds, "public bounds (low, high): unbounded values cannot be protected")
    low, high = exact_number(bounds[0], "bounds"), exact_number(bounds[1], "bounds")
    if not low < high:
        raise InvalidInput("bounds", (bounds[0], bounds[1]), "low < high")
    resolved(low, high, "bounds")
    step = (high - low) / STEPS if pitch is None else exact_number(pitch, "pitch")
    if not 0 < step <= high - low or (high - low) / step > 2**40:
        raise InvalidInput("pitch", pitch, "a step that divides the bounds into 1 to 2**40 parts")
    return low, low + step * int((high - low) / step), step


def _overlap(spans: list[tuple[int, int]]) -> int:
    """The largest number of windows that one time is in."""
    # An end comes before a beginning at the same time: windows do not hold their ends.
    edges = sorted([(first, 1) for first, _ in spans] + [(end, -1) for _, end in spans])
    return int(np.cumsum([change for _, change in edges]).max())


def _table_of(spans: list[tuple[int, int]], counts: IntArray) -> pd.DataFrame:
    import pandas as pd

    k = counts.shape[1]
    rows = np.repeat(np.array(spans), k, axis=0)
    return pd.DataFrame(
        {
            "first": rows[:, 0],
            "end": rows[:, 1],
            "state": np.tile(np.arange(k), len(spans)),
            "count": counts.ravel(),
        }
    )
