"""Release many subjects: a table of trajectories in, a table of releases out.

A subject is a user: everything one user does, over all trips, is one session, because an adversary does not forget
between trips. Many releases share a transaction, and nothing of it is shown before it has been committed.

Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from dphmm._checks import one_of
from dphmm.accounting.ledger import Ledger
from dphmm.errors import BudgetExceeded, InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.policy.graph import PolicyGraph
from dphmm.samplers.entropy import default_bits
from dphmm.session.crowd import Crowd
from dphmm.session.options import checked_caps, checked_ledger
from dphmm.session.releases import Released, Releases
from dphmm.session.roster import Done, Roster, Truth, slices
from dphmm.session.session import ReleaseSession
from dphmm.session.setting import Setting
from dphmm.session.step import ESTIMATE_LOSSES
from dphmm.states.observed import in_steps, public_times, true_states
from dphmm.states.sequences import Visit
from dphmm.states.space import StateSpace
from dphmm.states.trajectory import Trajectories
from dphmm.types import Bits, Exact, IntArray

__all__ = ["Batch", "BatchReport", "Progress", "Released", "Releases", "release_many", "terminal_bar"]

#: Releases that share one transaction: enough to make its commit cheap, few enough to lose little when stopped.
CHUNK = 2**14
#: Of those made one by one, and of those on very many states, fewer take as long.
_CHUNK_ONE_BY_ONE = 2000
_CHUNK_STATES = 2**26
#: Beyond so many states a step takes longer than all that the crowd saves, and its shared arrays are large.
_MOST_CROWD_STATES = 2**17
_LARGEST_STEP = 2**53

Progress = Callable[[int, int], None]


@dataclass
class BatchReport:
    """What happened to the rows.

    ``outside`` (rows whose place or name is in no state) and ``drifted`` are for the owner alone and never published.

    ``late`` rows are of steps that an earlier run skipped: nothing can be released for them any more.
    """

    rows: int = 0
    subjects: int = 0
    released: int = 0
    replayed: int = 0
    same_step: int = 0
    skipped_steps: int = 0
    late: int = 0
    outside: int = field(default=0, repr=False)
    drifted: int = field(default=0, repr=False)
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
        self.setting = Setting.of(model, policy, space, epsilon, query=query, start=start, **choices)
        self.ledger = checked_ledger(ledger)
        self.caps = checked_caps(cap_epsilon, cap_cost)
        self._kept: dict[str, Any] = {
            "caps": self.caps,
            "bits": default_bits(bits),
            "estimate_loss": one_of(estimate_loss, ESTIMATE_LOSSES, "estimate_loss"),
        }
        self.report = BatchReport()

    def session(self, subject: str, origin: str) -> ReleaseSession:
        """A subject's session from its first step."""
        return ReleaseSession.of(self.setting, subject=subject, ledger=self.ledger, origin=origin, **self._kept)

    def resumed(self, subject: str) -> ReleaseSession:
        """A subject's session from where its history in the ledger ends."""
        header = self.ledger.header(subject, self.setting.query)
        assert header is not None
        return ReleaseSession.resumed(self.ledger, header, self.setting, **self._kept)

    def run(
        self, trajectories: Trajectories, *, resume: bool = False, progress: Progress | None = None
    ) -> Iterator[Sequence[Released]]:
        """Release every step at which a user has a row; yields what each committed transaction published.

        Raises
        ------
        InvalidInput : without ``resume``, when the ledger already holds one of the users.
        BudgetExceeded : before anything is drawn where the promise of all rows together would pass a cap.
        """
        stepped, repeated = in_steps(trajectories, self.setting.model.step)
        states, outside = true_states(stepped, self.setting.space)
        self.report.outside = int(outside.sum())
        visits, twice = stepped.visits()
        self.report.rows, self.report.subjects = len(trajectories), len(visits)
        self.report.same_step = repeated + sum(dict(twice).values())
        times = public_times(stepped, self.setting.model.step)
        _check_steps(stepped.steps())
        roster = self._roster(Truth(stepped.steps(), times, states, stepped.step is None))
        if not resume:
            self._refuse_known(roster, [visit.user for visit in visits])
        self._precheck(roster, visits)
        total = sum(len(visit.rows) for visit in visits)
        count = 0
        for taken in slices(visits, self._chunk):
            with self.ledger.transaction() as transaction:
                done = roster.release(transaction, taken)
            published = self._published(done)
            count += len(published)
            if progress is not None:
                progress(count, total)
            yield published

    @property
    def _chunk(self) -> int:
        fewer = max(1, _CHUNK_STATES // self.setting.model.n_states)
        return min(CHUNK, fewer, CHUNK if self._has_crowd else _CHUNK_ONE_BY_ONE)

    @property
    def _has_crowd(self) -> bool:
        return self.setting.has_public_plans and self.setting.model.n_states <= _MOST_CROWD_STATES

    def _roster(self, truth: Truth) -> Roster:
        caps, bits, loss = self._kept["caps"], self._kept["bits"], self._kept["estimate_loss"]
        crowd = Crowd(self.setting, caps, bits, loss) if self._has_crowd else None
        known = self.ledger.sessions()
        return Roster(self.ledger, self.setting.query, truth, crowd, self.session, self.resumed, known)

    def _published(self, done: Done) -> Sequence[Released]:
        report, together = self.report, Releases.joined(done.parts)
        published: Sequence[Released] = [] if together is None else together
        report.released += len(published)
        report.replayed += done.replayed
        report.late += done.late
        report.skipped_steps += done.skipped_steps
        report.drifted += done.drifted
        report.plans |= done.plans
        return published

    def _refuse_known(self, roster: Roster, users: list[str]) -> None:
        known = {subject for subject, query in roster.known if query == self.setting.query}
        again = sorted(known.intersection(users))
        if again:
            came = f"releases of {len(again)} of these users already, {again[0]!r} among them"
            raise InvalidInput("ledger", came, "a new ledger, or resume to continue them")

    def _precheck(self, roster: Roster, visits: list[Visit]) -> None:
        """Refuse the whole batch when its epsilons alone pass the cap; a cost may depend on what is released."""
        cap = self.caps.epsilon
        if cap is None:
            return
        for visit in visits:
            needs = self.setting.options.epsilon * max(0, len(visit.rows) - roster.releases_of(visit.user))
            spent = self.ledger.spent(visit.user).epsilon
            if needs + spent > cap:
                raise BudgetExceeded(
                    f"cap_epsilon: user {visit.user!r} needs {float(needs):g} for {len(visit.rows)} rows; spent "
                    f"{float(spent):g} of {float(cap):g}, nothing was released; raise the cap or release fewer rows"
                )


def _check_steps(steps: IntArray) -> None:
    # Differences of step numbers, and what is counted from 1, must stay far from the ends of 64 bits.
    if len(steps) and not -_LARGEST_STEP <= int(steps.min()) <= int(steps.max()) <= _LARGEST_STEP:
        raise InvalidInput("step", f"a number beyond {_LARGEST_STEP}", f"step numbers up to {_LARGEST_STEP}")


def _require_times(table: Any, model: MarkovModel) -> None:
    names = list(getattr(table, "column_names", None) or table.columns)
    if model.step is not None and not {"t", "step"} & set(names):
        expected = f"a column t of times, because the model has steps of {model.step} s; or a column step"
        raise InvalidInput("t", "no times", expected)


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

    loaded = trajectories_from_table(table, space=space)
    _require_times(table, model)
    if len(loaded.rejected):
        came = f"{len(loaded.rejected)} rows that cannot be read"
        raise InvalidInput("table", came, "a user, a time and a place or state in every row")
    batch = Batch(model, policy, space, epsilon, **choices)
    with shown(progress, "release") as report:
        chunks = batch.run(loaded.trajectories, resume=resume, progress=report)
        rows = Releases.joined(chunk for chunk in chunks if isinstance(chunk, Releases))
    released = to_kind(released_table([] if rows is None else rows, space), table)
    # Rows are in order of user and step, not of the input: its index would name other rows.
    return released.reset_index(drop=True) if hasattr(released, "reset_index") else released


@contextmanager
def shown(progress: bool | Progress, label: str) -> Iterator[Progress | None]:
    """A callback to report to: the caller's own, or a bar on a terminal."""
    if callable(progress):
        yield progress
    elif progress and sys.stderr.isatty():
        with terminal_bar(label) as report:
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
