"""Release many subjects: a table of trajectories in, a table of releases out.

A subject is a user: everything one user does, over all trips, is one session, because an adversary does not forget
between trips. Many releases share a transaction, and nothing of it is shown before it has been committed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from dphmm.accounting.ledger import Ledger, MemoryLedger, Transaction
from dphmm.errors import BudgetExceeded, InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.policy.graph import PolicyGraph
from dphmm.samplers.entropy import default_bits
from dphmm.session.options import Options, checked_caps
from dphmm.session.planner import Planner, check_same_states
from dphmm.session.release import Release
from dphmm.session.session import ReleaseSession
from dphmm.states.observed import in_steps, public_times, true_states
from dphmm.states.sequences import Visit
from dphmm.states.space import StateSpace
from dphmm.states.trajectory import Trajectories
from dphmm.types import Bits, Exact, IntArray

#: Releases that share one transaction: enough to make its commit cheap, few enough to lose little when stopped.
CHUNK = 2000

Progress = Callable[[int, int], None]


class Released(NamedTuple):
    """One published row: whose, when (microseconds since 1970 UTC; None without times), and the release."""

    user: str
    time: int | None
    release: Release


#: One unit of work inside a transaction: what it publishes, or None for a skip.
Step = Callable[[Transaction], Released | None]


@dataclass(frozen=True, eq=False, repr=False)
class _Truth:
    """The private rows: step numbers, published times, true states (a number, or a name that no state has)."""

    steps: IntArray
    times: IntArray | None
    states: list[int | str]
    ranked: bool

    def begins(self, visit: Visit) -> str:
        """What step 1 of a user stands for: a step number, and its time where steps are but ranks of rows."""
        first = visit.rows[0]
        number = str(int(self.steps[first]))
        return f"{number}@{int(self.times[first])}" if self.ranked and self.times is not None else number


@dataclass
class BatchReport:
    """What happened to the rows. ``outside`` (rows whose place or name is in no state) and ``drifted`` are
    for the owner alone and never published.

    ``late`` rows are of steps that an earlier run skipped: nothing can be released for them any more.
    """

    rows: int = 0
    subjects: int = 0
    released: int = 0
    replayed: int = 0
    same_step: int = 0
    skipped_steps: int = 0
    late: int = 0
    outside: int = 0
    drifted: int = 0
    plans: set[str] = field(default_factory=set)


class Batch:
    """The releases of many subjects under the same public choices; see `release_many` for the parameters."""

    def __init__(
        self,
        model: MarkovModel,
        policy: PolicyGraph,
        space: StateSpace,
        epsilon: Exact,
        *,
        query: str = "state",
        ledger: Ledger | None = None,
        cap_epsilon: Exact | None = None,
        cap_cost: Exact | None = None,
        bits: Bits | None = None,
        estimate_loss: str = "squared",
        start: str | None = None,
        **choices: Any,
    ) -> None:
        check_same_states(model, policy, space)
        start = model.start if start is None else start
        self.options = Options.checked(epsilon, dimension=space.dimension, start=start, **choices)
        self.model, self.policy, self.space = model, policy, space
        self.planner = Planner(policy, space, self.options)
        self.ledger: Ledger = MemoryLedger() if ledger is None else ledger
        self.query = query
        self.caps = checked_caps(cap_epsilon, cap_cost)
        self._kept: dict[str, Any] = {
            "caps": self.caps,
            "bits": default_bits(bits),
            "estimate_loss": estimate_loss,
        }
        self.report = BatchReport()

    def session(self, subject: str, origin: str) -> ReleaseSession:
        """A subject's session from its first step."""
        return ReleaseSession.planned(
            self.model,
            self.planner,
            subject=subject,
            query=self.query,
            ledger=self.ledger,
            origin=origin,
            **self._kept,
        )

    def resumed(self, subject: str) -> ReleaseSession:
        """A subject's session from where its history in the ledger ends."""
        header = self.ledger.header(subject, self.query)
        assert header is not None
        return ReleaseSession.resumed(self.ledger, header, self.model, self.planner, **self._kept)

    def run(
        self, trajectories: Trajectories, *, resume: bool = False, progress: Progress | None = None
    ) -> Iterator[list[Released]]:
        """Release every step at which a user has a row; yields what each committed transaction published.

        Raises
        ------
        InvalidInput : without ``resume``, when the ledger already holds one of the users.
        BudgetExceeded : before anything is drawn where the promise of all rows together would pass a cap.
        """
        stepped, repeated = in_steps(trajectories, self.model.step)
        states, self.report.outside = true_states(stepped, self.space)
        visits, twice = stepped.visits()
        self.report.rows, self.report.subjects = len(trajectories), len(visits)
        self.report.same_step = repeated + sum(dict(twice).values())
        if not resume:
            self._refuse_known([visit.user for visit in visits])
        self._precheck(visits)
        total = sum(len(visit.rows) for visit in visits)
        done = 0
        work = self._work(
            visits, _Truth(stepped.steps(), public_times(stepped, self.model.step), states, stepped.step is None)
        )
        while True:
            with self.ledger.transaction() as transaction:
                chunk = [step(transaction) for step in islice(work, CHUNK)]
            if not chunk:
                return
            published = [released for released in chunk if released is not None]
            self.report.released += len(published)
            done += len(published)
            if progress is not None:
                progress(done, total)
            yield published

    def _refuse_known(self, users: list[str]) -> None:
        known = {subject for subject, query in self.ledger.sessions() if query == self.query}
        again = sorted(known.intersection(users))
        if again:
            came = f"releases of {len(again)} of these users already, {again[0]!r} among them"
            raise InvalidInput("ledger", came, "a new ledger, or resume to continue them")

    def _precheck(self, visits: list[Visit]) -> None:
        """Refuse the whole batch when its epsilons alone pass the cap; a cost may depend on what is released."""
        cap = self.caps.epsilon
        if cap is None:
            return
        for visit in visits:
            stored = {e.t for e in self.ledger.entries(visit.user, self.query) if e.kind == "release"}
            needs = self.options.epsilon * max(0, len(visit.rows) - len(stored))
            spent = self.ledger.spent(visit.user).epsilon
            if needs + spent > cap:
                raise BudgetExceeded(
                    f"cap_epsilon: user {visit.user!r} needs {float(needs):g} for {len(visit.rows)} rows; spent "
                    f"{float(spent):g} of {float(cap):g}, nothing was released; raise the cap or release fewer rows"
                )

    def _work(self, visits: list[Visit], truth: _Truth) -> Iterator[Step]:
        known = set(self.ledger.sessions())
        for visit in visits:
            numbers = truth.steps[visit.rows]
            begins = truth.begins(visit)
            if (visit.user, self.query) in known:
                session = self.resumed(visit.user)
                origin = _origin(session, begins, visit.user)
            else:
                origin = int(numbers[0])
                session = self.session(visit.user, origin=begins)
            yield from self._subject(session, visit, (numbers - origin + 1).tolist(), truth)
            self.report.drifted += session.owner_view()["drifted"]

    def _subject(self, session: ReleaseSession, visit: Visit, numbers: list[int], truth: _Truth) -> Iterator[Step]:
        for t, row in zip(numbers, visit.rows.tolist(), strict=True):
            time = None if truth.times is None else int(truth.times[row])
            if t < session.t:
                yield self._stored(session, visit.user, time, t)
                continue
            if t > session.t:
                self.report.skipped_steps += t - session.t
                yield _skip(session, t - session.t)
            yield self._fresh(session, visit.user, time, truth.states[row])

    def _stored(self, session: ReleaseSession, user: str, time: int | None, t: int) -> Step:
        def step(transaction: Transaction) -> Released | None:
            if not session.has_released(t):
                self.report.late += 1
                return None
            self.report.replayed += 1
            return Released(user, time, session.released(t))

        return step

    def _fresh(self, session: ReleaseSession, user: str, time: int | None, state: int | str) -> Step:
        def step(transaction: Transaction) -> Released:
            outcome = session.release_within(transaction, state)
            session.accept(outcome)
            release = session.released(session.t - 1)
            self.report.plans.add(release.plan_hash)
            return Released(user, time, release)

        return step


def _skip(session: ReleaseSession, steps: int) -> Step:
    def step(transaction: Transaction) -> None:
        session.accept(session.skip_within(transaction, steps))

    return step


def _origin(session: ReleaseSession, begins: str, user: str) -> int:
    number, separator, _ = session.origin.partition("@")
    if separator and session.origin != begins:
        came = f"rows of user {user!r} that begin at another time than the history in the ledger"
        raise InvalidInput("t", came, "all rows from the first one on: without a time step they are counted from it")
    if not number.lstrip("-").isdecimal():
        raise InvalidInput("ledger", f"a history whose step 1 is {session.origin!r}", "one that a batch has written")
    return int(number)


def release_many(
    table: Any,
    model: MarkovModel,
    policy: PolicyGraph,
    space: StateSpace,
    epsilon: Exact,
    *,
    resume: bool = False,
    progress: bool | Progress = True,
    **choices: Any,
) -> Any:
    """Release a table of trajectories: one subject per user.

    Parameters
    ----------
    table : pandas, polars or Arrow table with ``user`` and ``lat``, ``lon`` or ``state``; ``t`` (timestamps with a
        time zone) where the model has a time step; optional ``step``. Never changed. Frames of
        scikit-mobility, trackintel and movingpandas go through `dphmm.convert_frame` first.
    model, policy, space, epsilon and the other choices : as `ReleaseSession`.
    resume : continue users that the ledger already holds; their stored answers come back unchanged.
    progress : show a bar on a terminal, or call (done, total).

    Returns
    -------
    A table of the same kind: user, t, step, z_0.., estimate_0.., estimate, and for maps z_lat, z_lon, estimate_lat,
    estimate_lon, then epsilon, cost, plan. Rows by user and step; one row per user and step.

    Raises
    ------
    InvalidInput : rows that cannot be read (nothing is released), or a ledger that holds these users without resume.
    BudgetExceeded, DegenerateHull, Unprotectable : as `ReleaseSession`; what was committed before stays stored.
    """
    from dphmm.storage.frames import to_kind
    from dphmm.storage.released import released_table
    from dphmm.storage.trajectories import trajectories_from_table

    loaded = trajectories_from_table(table)
    if len(loaded.rejected):
        came = f"{len(loaded.rejected)} rows that cannot be read"
        raise InvalidInput("table", came, "a user, a time and a place or state in every row")
    batch = Batch(model, policy, space, epsilon, **choices)
    with _shown(progress) as report:
        chunks = batch.run(loaded.trajectories, resume=resume, progress=report)
        rows = [row for chunk in chunks for row in chunk]
    released = to_kind(released_table(rows, space), table)
    # Rows are in order of user and step, not of the input: its index would name other rows.
    return released.reset_index(drop=True) if hasattr(released, "reset_index") else released


@contextmanager
def _shown(progress: bool | Progress) -> Iterator[Progress | None]:
    """A callback to report to: the caller's own, or a bar on a terminal."""
    if callable(progress):
        yield progress
    elif progress and sys.stderr.isatty():
        with terminal_bar("release") as report:
            yield report
    else:
        yield None


@contextmanager
def terminal_bar(label: str) -> Iterator[Progress]:
    """A progress bar on standard error; call it with (done, total)."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(label, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)
