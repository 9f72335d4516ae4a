"""The release of a table into a folder: one way for ``dphmm release`` and for `Plan.release`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dphmm._progress import Progress
from dphmm.accounting.person import alike_words
from dphmm.accounting.promise import SequencePromise
from dphmm.errors import InvalidInput
from dphmm.release.batch import Batch, unanswered_words
from dphmm.session.releases import Releases
from dphmm.setup.publishing import PublicSide, keep_plans
from dphmm.setup.released import Released
from dphmm.statement.files import statement_path, write_statement
from dphmm.statement.sentences import noun_words
from dphmm.storage.inputs import PathLike
from dphmm.storage.ledger import COMMANDS, SqliteLedger, open_ledger, stored_spelling
from dphmm.storage.private_tables import write_rejected
from dphmm.storage.release_folder import COUNTS, REJECTED, ReleaseFolder
from dphmm.storage.released import FileSums
from dphmm.storage.trajectories import LoadedVisits, by_reason
from dphmm.types import Bits

if TYPE_CHECKING:
    from dphmm.accounting.ledger import Ledger
    from dphmm.choose.schedule_plan import SchedulePlan
    from dphmm.session.releases import ReleasedRow
    from dphmm.statement.origin import Whom
    from dphmm.statement.release import ReleaseStatement


@contextmanager
def kept_ledger(path: PathLike | None, spelling: str | None = None) -> Iterator[Ledger | None]:
    """A ledger to be read, as it is before a run; None without one that can be read, and that has this rule of names.

    A ledger whose making was interrupted is finished by the run, and another file is refused by it.
    """
    with ExitStack() as opened:
        ledger = None
        if path is not None and Path(path).is_file() and Path(path).stat().st_size:
            with suppress(InvalidInput):
                ledger = opened.enter_context(open_ledger(path, read_only=True, spelling=spelling))
        try:
            yield ledger
        finally:
            if ledger is not None:
                # Closed twice: an interrupt while it closes must leave no log beside the file.
                ledger.close()


def check_spelling(chosen: str | None, ledger: PathLike | None, users: Sequence[str], alike: Mapping[str, str]) -> None:
    """Ask once, before a ledger is made, how names are compared, where that is likely to matter.

    ``alike``: spellings that are taken for other ones, and these.

    Raises InvalidInput without a rule where more than one name in 1,000 is another spelling, or most look drawn.
    """
    if chosen is not None or ledger is None or stored_spelling(ledger) is not None:
        return
    words = alike_words(users, alike)
    if words is not None:
        expected = "same, where they are one person each, or exact, where they are several"
        raise InvalidInput("spelling", f"nothing, and {words}", expected)


def new_ledger_words(ledger: PathLike) -> str | None:
    """A warning if a ledger is new: an owner who continues means another, and this one would answer everybody again."""
    path = Path(ledger)
    return None if path.exists() else f"new ledger {path.name}: nobody in it has an account yet"


class FinishedRelease(NamedTuple):
    """The results of a table's release; ``after`` rows are beyond the sequence of the promise, without an answer.

    ``rejected``: rows that could not be read, by reason, for the owner alone.
    """

    released: Released
    batch: Batch
    published: FileSums
    statement: ReleaseStatement
    after: int
    rejected: Mapping[str, int]

    @property
    def unanswered(self) -> str | None:
        """The number of people that a schedule left without any answer, in words; None if all have one."""
        published = self.published
        if not published.not_asked or published.constants:
            return None
        return unanswered_words(published.subjects, published.unanswered, noun_words(self.batch.noun)["people"])


@dataclass(frozen=True)
class FolderRelease:
    """A release of a table into a folder.

    batch : that of the checked rows, over any ledger. planned : the plan that chose its schedule, if there is one.
    table : the file of rows in the folder ``place``. ledger : the file that counts what is spent. spelling : the rule
    of names of a new ledger. new : True to refuse people whom the ledger knows. bits : noise for tests.
    """

    batch: Batch
    planned: SchedulePlan | None
    place: ReleaseFolder
    table: Path
    ledger: Path
    spelling: str | None = None
    new: bool = False
    bits: Bits | None = None

    def write(
        self,
        loaded: LoadedVisits,
        people: Whom,
        source: str | None,
        during: Callable[[SqliteLedger], AbstractContextManager[Progress | None]],
    ) -> FinishedRelease:
        """Release the rows: each answer is stored in the ledger before anybody can see it.

        people : those the model was fitted on. source : the file of the rows, whose unreadable ones are listed for the
        owner. during : a context of the release, entered before the first answer, that gives its progress. Raises as
        `Plan.release`.
        """
        batch, place, published = self.batch, self.place, FileSums()
        setting = batch.setting
        public = PublicSide(setting.model, setting.policy, setting.space, self.planned, setting.options.mechanism)
        public.check_same(place)
        place.create()
        # Before anything is drawn: a full disk stops here, and not with answers that nobody can read again.
        public.save(place)
        with open_ledger(self.ledger, spelling=self.spelling) as ledger, ledger.lease(COMMANDS):
            batch = batch.over(ledger, self.bits)
            batch.check_rewritten(self.table)
            batch.check_choices(loaded.visits.users)
            place.keep_ledger(self.ledger)
            with during(ledger) as progress:
                chunks = batch.run(loaded.visits, resume=not self.new, progress=progress)
                written = batch.written(chunks, self.table, published)
                after = sum(_after(chunk, batch.caps.promise) for chunk in written)
                statement = batch.statement(published, people.people, known_by=people.known_by)
                write_statement(self.table, statement)
                place.keep([self.table.name, statement_path(self.table).name])
                keep_plans(place, setting, published.plans)
                rejected = by_reason(loaded.rejected)
                batch.write_owner_counts(place.owner / COUNTS, loaded.visits, published, rejected)
                if source is not None:
                    write_rejected(place.owner / REJECTED, loaded.rejected, source)
        return FinishedRelease(Released(place), batch, published, statement, after, rejected)


def _after(rows: Sequence[ReleasedRow], promise: SequencePromise | None) -> int:
    """The number of rows after the sequence of a promise, without an answer."""
    if promise is None or promise.steps is None or not isinstance(rows, Releases):
        return 0
    return int(np.count_nonzero((rows.t > promise.steps) & ~rows.asked))
