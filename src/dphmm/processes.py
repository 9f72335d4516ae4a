"""Release the users of a table in several processes of this machine, where plans follow from answers.

Python runs one thread at a time, so threads share the kernels of such a release and little else. Here each process has
users of its own: it plans their rows, draws, and moves their beliefs. The ledger stays with the caller. What a process
asks of it comes as a message and is answered in the order of arrival, so all is as in one process: a step is admitted
before a word is read for its answer, stored before anything follows from it, and committed before it is shown.

A ledger has one transaction at a time, so the processes share it. A commit that one of them asks for stores what all
have drawn so far; each shows what it drew after a commit that it asked for itself. Between what is admitted to one
process and what it stores for it nothing is admitted to another, and nothing is committed.

Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

import copyreg
import gc
import io
import os
import pickle
import signal
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from dphmm._progress import Progress
from dphmm.accounting.budget import Admitted, AdmittedMany
from dphmm.accounting.ledger import (
    Caps,
    Entry,
    Ledger,
    Request,
    Requests,
    SessionHeader,
    StoredMany,
    Transaction,
)
from dphmm.batch import Batch, BatchReport, Begun, Recipe, Released
from dphmm.errors import DphmmError, InvalidInput
from dphmm.session.releases import Earlier
from dphmm.states.visit_table import VisitTable
from dphmm.types import IntArray

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

#: What a transaction is asked that stores nothing.
_READS = frozenset({"look", "version", "headers", "entry", "spent", "room", "last_step", "plans_at"})
#: Of processes that share cores with the caller, whom all of them wait for.
_NICENESS = 5
_ENDED = (
    "release: one of its processes ended, killed or short of memory; what others drew is stored; --resume goes on, "
    "with OMP_NUM_THREADS=1 in one process"
)


def released_in_processes(
    recipe: Recipe,
    batch: Batch,
    visits: VisitTable,
    *,
    resume: bool = False,
    raised: bool = False,
    progress: Progress | None = None,
    processes: int = 1,
) -> Iterator[Sequence[Released]]:
    """As `Batch.run`, by so many ``processes``, as `Batch.processes` tells; 1 is `Batch.run`.

    ``recipe`` makes the same batch in each of them. A batch that does not stand alone (`Batch.stands_alone`) is run by
    this process.

    Raises
    ------
    DphmmError : as `Batch.run`, once all processes have done what they can; also where one of them ends before its
        rows do, and where another program stores rows of the users meanwhile.
    """
    if processes < 2 or not batch.stands_alone:
        yield from batch.run(visits, resume=resume, raised=raised, progress=progress)
        return
    begun = batch.begin(visits, resume=resume, raised=raised)
    users, done = list(batch.shares(visits, processes)), 0
    with _begun(recipe, min(processes, len(users))) as workers:
        shares = _sent(workers, begun, users[:processes])
        for coming in range(processes, len(users) + processes, processes):
            _Service(batch.ledger, shares).run()
            released = list(shares.values())
            # While the caller writes these, the next ones are read.
            shares = _sent(workers, begun, users[coming : coming + processes])
            for share in released:
                batch.count(share.report, share.earlier)
                for published in share.published:
                    done += len(published)
                    if progress is not None:
                        progress(done, visits.n_visits)
                    yield published
                if share.refused is not None:
                    raise share.refused


@dataclass
class _Share:
    """The rows that a process is given, and what it tells of them; ``refused`` is why it went no further."""

    users: Sequence[str]
    published: list[Sequence[Released]] = field(default_factory=list)
    report: BatchReport = field(default_factory=BatchReport)
    earlier: Earlier = field(default_factory=Earlier)
    refused: DphmmError | None = None


def _sent(workers: Sequence[Connection], begun: Begun, users: Sequence[tuple[int, int]]) -> dict[Connection, _Share]:
    """Give each process the rows of some users."""
    shares: dict[Connection, _Share] = {}
    for worker, (first, end) in zip(workers, users, strict=False):
        own = begun.of_users(first, end)
        _tell(worker, own)
        shares[worker] = _Share(own.visits.users)
    return shares


class _Service:
    """Answers what processes ask of the ledger while they release their shares.

    Admissions wait while another one is not stored yet. A commit is asked for by one process and stores what all have
    drawn so far; it waits for the answers to what is admitted.
    """

    def __init__(self, ledger: Ledger, shares: dict[Connection, _Share]) -> None:
        self._ledger, self._busy = ledger, dict(shares)
        self._users = [user for share in shares.values() for user in share.users]
        self._ready: deque[Any] = deque()
        #: The process whose admission is not stored yet, what was admitted, and who waits for that.
        self._holder: Connection | None = None
        self._admitted: Any = None
        self._waiting: deque[tuple[Connection, list[Any]]] = deque()
        self._to_commit: list[Connection] = []
        #: Versions of the accounts of users whose shares are not done, at the last commit, or when the first began.
        self._versions: dict[str, int] | None = None
        #: Whether the transaction holds nothing yet.
        self._empty = True
        #: Processes that have stored an answer since their last commit.
        self._drawing: set[Connection] = set()
        #: The process whose sessions, caps and skips are undone unless an answer follows them.
        self._opener: Connection | None = None
        #: Why it failed.
        self._failure: DphmmError | None = None

    def run(self) -> None:
        """Serve until each share is released or refused.

        What one process stored is not undone because another one fails: whether it was committed before then may follow
        from its answers. Raises InvalidInput where another program has stored something of these users between two
        commits, DphmmError where the ledger fails.
        """
        while self._busy:
            self._empty, self._opener, self._failure = True, None, None
            try:
                with self._ledger.transaction(self._users) as transaction:
                    self._require_unchanged(transaction)
                    self._until_commit(transaction)
                    self._versions = self._versions_in(transaction)
            except _NotOpened as refused:
                # Sessions, caps and skips of who is refused before a draw are undone; nothing else was stored.
                if refused.error is not None:
                    _tell(refused.worker, refused.error)
                continue
            except DphmmError as error:
                # A process was told why the ledger failed, all others that it had.
                raise self._failure or error from None
            for worker in self._to_commit:
                _tell(worker, None)
            self._to_commit.clear()

    def _versions_in(self, transaction: Transaction) -> dict[str, int]:
        return {user: transaction.version(user) for share in self._busy.values() for user in share.users}

    def _require_unchanged(self, transaction: Transaction) -> None:
        """What a process has looked up in one transaction must hold in the next."""
        # Accounts are read together, in few statements: all of them will be asked for.
        transaction.look([user for share in self._busy.values() for user in share.users], "")
        if self._versions is None:
            # The first transaction may be undone, and what was looked up in it must hold all the same.
            self._versions = self._versions_in(transaction)
        elif any(version != self._versions[user] for user, version in self._versions_in(transaction).items()):
            came = "something of these users that another program has stored meanwhile"
            raise InvalidInput("ledger", came, "one program at a time; --resume goes on")

    def _until_commit(self, transaction: Transaction) -> None:
        while self._busy and (self._holder is not None or self._opener is not None or not self._to_commit):
            asked = self._next_admission()
            if asked is None:
                self._take(transaction, *self._next())
                continue
            worker, given = asked
            if self._opener is None and self._may_be_undone(worker, given):
                if not self._empty:
                    # A commit comes first, so that sessions can be opened, and undone, in a transaction of their own.
                    return
                self._opener = worker
            self._waiting.remove(asked)
            self._admit(transaction, worker, given)

    def _next_admission(self) -> tuple[Connection, list[Any]] | None:
        """Whose admission may come next, and what it asks for."""
        if self._holder is not None:
            return None
        return next((asked for asked in self._waiting if self._opener in (None, asked[0])), None)

    def _may_be_undone(self, worker: Connection, given: list[Any]) -> bool:
        """Whether an admission opens sessions, or only skips steps, of who has not drawn an answer yet."""
        _, opened, asked, _ = given
        many = isinstance(asked, Requests)
        skips = len(asked) > 0 and not asked.releases.any() if many else asked.kind == "skip"
        return bool(opened) or (skips and worker not in self._drawing)

    def _next(self) -> tuple[Connection, Any]:
        """The next message, and whose it is; of a process that has ended, that it is done, and refused."""
        if not self._ready:
            self._ready.extend(wait(list(self._busy)))
        worker = self._ready.popleft()
        try:
            return worker, pickle.loads(worker.recv_bytes())
        except (EOFError, OSError):
            return worker, ("done", BatchReport(), Earlier(), DphmmError(_ENDED))

    def _take(self, transaction: Transaction, worker: Connection, message: tuple[Any, ...]) -> None:
        name, *given = message
        held = worker is self._holder
        if name in ("commit", "done"):
            self._drawing.discard(worker)
            if held:
                # An error came after its admission: there is no answer to store.
                self._holder = self._admitted = None
        if name == "begin":
            _tell(worker, None)
        elif name == "commit":
            self._to_commit.append(worker)
            if worker is self._opener:
                self._opener = None
        elif name == "published":
            self._busy[worker].published.append(given[0])
        elif name == "done":
            share = self._busy.pop(worker)
            self._waiting = deque(asked for asked in self._waiting if asked[0] is not worker)
            share.report, share.earlier, share.refused = given
            if worker is self._opener:
                raise _NotOpened(worker)
        elif name == "ledger":
            _answer(worker, lambda: getattr(self._ledger, given[0])(*given[1:]))
        elif given[0] in ("admit", "admit_many"):
            self._waiting.append((worker, given))
        elif given[0] in ("add", "add_many"):
            if given[0] == "add" or len(self._admitted.requests):
                self._empty = False
            self._failure = _answer(worker, lambda: getattr(transaction, given[0])(self._admitted, *given[1:]))
            if self._failure is None and given[1] is not None and len(given[1]):
                self._drawing.add(worker)
                if worker is self._opener:
                    self._opener = None
            self._holder = self._admitted = None
        else:
            self._empty = self._empty and given[0] in _READS
            _answer(worker, lambda: getattr(transaction, given[0])(*given[1:]))

    def _admit(self, transaction: Transaction, worker: Connection, given: list[Any]) -> None:
        name, opened, *arguments = given

        def admitted() -> Any:
            self._admitted = getattr(transaction, name)(*arguments)
            self._holder = worker
            # The process knows what it asked for.
            found, many = self._admitted, isinstance(self._admitted, AdmittedMany)
            return (found.fresh, found.wanted, found.stored) if many else found.stored

        if worker is not self._opener:
            _answer(worker, admitted)
            return
        self._empty = False
        try:
            for opening, *whose in opened:
                getattr(transaction, opening)(*whose)
            answer = admitted()
        except Exception as error:
            raise _NotOpened(worker, _in_words(error)) from None
        _tell(worker, (answer,))


class _NotOpened(Exception):
    """Why sessions of a process are undone before its first answer; ``error`` where the process waits for it."""

    def __init__(self, worker: Connection, error: DphmmError | None = None) -> None:
        super().__init__()
        self.worker, self.error = worker, error


def _answer(worker: Connection, asked: Callable[[], Any]) -> DphmmError | None:
    """Send what the ledger answers, or why it does not, which is returned."""
    try:
        answer = asked()
    except Exception as error:
        # Raised here, it would undo what others have drawn.
        refused = _in_words(error)
        _tell(worker, refused)
        return refused
    _tell(worker, (answer,))
    return None


def _tell(worker: Connection, message: Any) -> None:
    """Send to a process that may have ended: its next message says so."""
    with suppress(OSError):
        _send(worker, message)


@contextmanager
def _begun(recipe: Recipe, n: int) -> Iterator[list[Connection]]:
    """So many processes, each at the other end of a connection; they end with the block."""
    # Of a process without threads, locks or words of this one, which has read the package once for all.
    kind = "forkserver" if "forkserver" in get_all_start_methods() else "spawn"
    context: Any = get_context(kind)
    if kind == "forkserver":
        context.set_forkserver_preload([__name__, "dphmm._kernels.blocks"])
    gc.freeze()
    workers: list[Connection] = []
    running: list[BaseProcess] = []
    try:
        for _ in range(n):
            own, other = context.Pipe()
            workers.append(own)
            process = context.Process(target=work, args=(recipe, other), daemon=True)
            try:
                with _uninterrupted():
                    process.start()
            except (EOFError, OSError):
                # The process that starts them was killed.
                raise DphmmError(_ENDED) from None
            running.append(process)
            # Else nobody would see that the process has ended.
            other.close()
        yield workers
    finally:
        gc.unfreeze()
        for own in workers:
            own.close()
        for process in running:
            process.terminate()
            process.join()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Interrupts wait for the end of the block. What is started in it never sees one: the caller ends it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def work(recipe: Recipe, connection: Connection) -> None:
    """What a process does: release one share after another, until the connection ends."""
    # One thread each, after the caller in turn. An interrupt of the terminal is for the caller, who ends all of them.
    os.environ["OMP_NUM_THREADS"] = "1"
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    with suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    made = recipe.batch(cast(Ledger, _AskedLedger(connection)))
    # What is there now stays: the garbage collector need not walk through the whole package again and again.
    gc.freeze()
    with suppress(EOFError, OSError):
        while True:
            _release(made, pickle.loads(connection.recv_bytes()), connection)


def _release(batch: Batch, begun: Begun, connection: Connection) -> None:
    refused: DphmmError | None = None
    batch.report, batch.earlier = BatchReport(), Earlier()
    try:
        for published in batch.released(begun):
            _send(connection, ("published", published))
    except Exception as error:
        refused = _in_words(error)
    _send(connection, ("done", batch.report, batch.earlier, refused))


def _in_words(error: Exception) -> DphmmError:
    """An error for the caller: of a fault of the program, whose message may tell anything, its kind and its place."""
    if isinstance(error, DphmmError):
        return error
    last = traceback.extract_tb(error.__traceback__)[-1]
    return DphmmError(f"release: {type(error).__name__} in {Path(last.filename).name}, line {last.lineno}")


class _AskedLedger:
    """The caller's ledger, as a process asks for it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @contextmanager
    def transaction(self, subjects: Sequence[str] = ()) -> Iterator[_AskedTransaction]:
        """The transaction that processes share; left when it has been committed."""
        _asked(self._connection, "begin")
        transaction = _AskedTransaction(self._connection)
        yield transaction
        transaction.open_rest()
        _asked(self._connection, "commit")

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *given: _asked(self._connection, "ledger", name, *given)[0]


class _AskedTransaction:
    """The caller's transaction, as a process asks for it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        #: Sessions and caps go with the first admission: of who is refused before it nothing is stored.
        self._opened: list[tuple[Any, ...]] = []
        #: An admission of no rows, and its caps.
        self._nothing: tuple[Requests, Caps] | None = None

    def open_rest(self) -> None:
        """Keep caps of users all of whose rows were stored before, as one process does."""
        if self._opened and self._nothing is not None:
            self._ask("admit_many", self._opened, *self._nothing)

    def open_session(self, header: SessionHeader) -> None:
        """As `Transaction.open_session`, with the next admission."""
        self._opened.append(("open_session", header))

    def bind(self, subject: str, caps: Caps, raised: bool = False) -> Caps:
        """As `Transaction.bind`, with the next admission."""
        self._opened.append(("bind", subject, caps, raised))
        return caps

    def admit(self, request: Request, caps: Caps) -> Admitted:
        """As `Transaction.admit`; the account stays with the caller."""
        return Admitted(request, self._admit("admit", request, caps), None)

    def add(self, admitted: Admitted, z: tuple[int, ...] | None) -> Entry:
        """As `Transaction.add`."""
        entry: Entry = self._ask("add", z)
        return entry

    def admit_many(self, requests: Requests, caps: Caps) -> AdmittedMany:
        """As `Transaction.admit_many`; the accounts stay with the caller."""
        fresh, wanted, stored = self._admit("admit_many", requests, caps)
        return AdmittedMany(requests, fresh, wanted, stored, {})

    def add_many(self, admitted: AdmittedMany, z: IntArray | None) -> StoredMany:
        """As `Transaction.add_many`."""
        stored: StoredMany = self._ask("add_many", z)
        return stored

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *given: self._ask(name, *given)

    def _admit(self, name: str, asked: Request | Requests, caps: Caps) -> Any:
        if isinstance(asked, Requests) and not len(asked):
            # All rows are stored already: others need not wait for this process's first answer.
            self._nothing = asked, caps
            return self._ask(name, [], asked, caps)
        opened, self._opened = self._opened, []
        return self._ask(name, opened, asked, caps)

    def _ask(self, *given: Any) -> Any:
        return _asked(self._connection, "transaction", *given)[0]


def _asked(connection: Connection, *message: Any) -> Any:
    """What the caller answers. Raises what it raised."""
    _send(connection, message)
    answer = pickle.loads(connection.recv_bytes())
    if isinstance(answer, DphmmError):
        raise answer
    return answer


def _send(connection: Connection, message: Any) -> None:
    packed = io.BytesIO()
    _Pickler(packed, pickle.HIGHEST_PROTOCOL).dump(message)
    connection.send_bytes(packed.getbuffer())


class _Pickler(pickle.Pickler):
    """Fractions go as two numbers, not as text that is read again."""

    dispatch_table = copyreg.dispatch_table | {Fraction: lambda number: (Fraction, number.as_integer_ratio())}
