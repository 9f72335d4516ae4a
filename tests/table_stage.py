"""Drivers of a release table on one stage: every step of its store is a point at which another driver may go on.

Only one driver runs at a time, until its next step, so that a list of choices is a schedule and the same list is the
same run. Reading the log counts as one step: entries never change, so what is read is the log as it was at the read
that found no more. Leases are no step: what they say is a matter of clocks, which are wrong here anyway.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dphmm.errors import LedgerBusy
from dphmm.storage.commit_log import PosixStore
from dphmm.storage.release_table import ReleaseTable, TableFile, Turn, table_file

Program = Sequence[str]


class Died(BaseException):
    """The process was killed: no handler of the code under test answers it."""


class Stage:
    """Threads that take turns. ``choose`` is given the drivers that can go on; -k-1 in place of k kills driver k."""

    def __init__(self, choose: Callable[[list[int]], int], watch: Callable[[], None]) -> None:
        self._choose, self._watch = choose, watch
        self._wake: list[threading.Semaphore] = []
        self._back = threading.Semaphore(0)
        self._alive: set[int] = set()
        self._killed: set[int] = set()
        self._own = threading.local()
        self.errors: list[BaseException] = []

    def step(self) -> None:
        """A driver is about to do something that others can see."""
        number = getattr(self._own, "number", None)
        if number is None:
            return  # the test itself looks
        self._back.release()
        self._wake[number].acquire()
        if number in self._killed:
            raise Died

    def play(self, drivers: Sequence[Callable[[], None]]) -> None:
        """Run drivers to their ends."""
        self._wake = [threading.Semaphore(0) for _ in drivers]
        threads = []
        for number, driver in enumerate(drivers):
            self._alive.add(number)
            threads.append(threading.Thread(target=self._run, args=(number, driver), daemon=True))
            threads[-1].start()
            self._back.acquire()
        while self._alive:
            number = self._choose(sorted(self._alive))
            if number < 0:
                number = -number - 1
                self._killed.add(number)
            self._wake[number].release()
            self._back.acquire()
            self._watch()
        for thread in threads:
            thread.join()

    def _run(self, number: int, driver: Callable[[], None]) -> None:
        self._own.number = number
        try:
            driver()
        except Died:
            pass
        except BaseException as error:
            self.errors.append(error)
        finally:
            self._alive.discard(number)
            self._back.release()


class SteppedStore(PosixStore):
    """A folder whose calls wait for their turn; the log and leases are in memory, files of rows on the disk."""

    def __init__(self, folder: Path, stage: Stage, documents: dict[str, bytes]) -> None:
        super().__init__(folder)
        self._stage, self._documents = stage, documents

    def put_if_absent(self, name: str, content: bytes) -> bool:
        if not name.startswith("."):
            self._stage.step()
        return self._documents.setdefault(name, content) == content

    def put(self, name: str, content: bytes) -> None:
        self._documents[name] = content

    def read(self, name: str) -> bytes | None:
        return self._documents.get(name)

    def list(self) -> list[str]:
        if self.folder.name not in ("leases", "attempts"):
            self._stage.step()
        return sorted(self._documents) if self.folder.name != "data" else [p.name for p in self.folder.iterdir()]

    def delete(self, name: str) -> None:
        if self.folder.name == "data":
            self._stage.step()
            (self.folder / name).unlink(missing_ok=True)
        self._documents.pop(name, None)


def _parquet(value: int) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"z": [value]}), sink)
    return sink.getvalue().to_pybytes()


ROWS = [_parquet(value) for value in range(4)]


class World:
    """One table, its drivers' programs, and what must hold after each step, told in plain Python."""

    def __init__(
        self,
        folder: Path,
        programs: Sequence[Program],
        choose: Callable[[list[int]], int],
        clock: Callable[[int], float] = lambda driver: 0.0,
    ) -> None:
        self.stage = Stage(choose, self.check)
        self.log: dict[str, bytes] = {}
        self.folder, self.programs, self._clock = folder, programs, clock
        self._stores = {"log": self.log, "data": {}, "leases": {}, "attempts": {}}
        #: What drivers wrote: {job: {file name: bytes}}; whether they think they committed: {job: bool}.
        self.written: dict[str, dict[str, bytes]] = {}
        self.told: dict[str, bool] = {}
        self._before: list[str] = []

    def table(self, driver: int) -> ReleaseTable:
        return ReleaseTable.open(
            self.folder,
            store=lambda path: SteppedStore(path, self.stage, self._stores[path.name]),
            clock=lambda: self._clock(driver),
        )

    def play(self) -> None:
        tables = [self.table(number) for number in range(len(self.programs))]
        self.stage.play(
            [lambda n=n, t=t: self._drive(t, self.programs[n]) for n, t in enumerate(tables)]  # type: ignore[misc]
        )
        if self.stage.errors:
            raise self.stage.errors[0]
        self.check()

    def _drive(self, table: ReleaseTable, program: Program) -> None:
        turn: Turn | None = None
        files: list[TableFile] = []
        for word in program:
            try:
                if word == "begin":
                    turn, files = table.begin({}, holder="driver", seconds=1), []
                    self.written[turn.job] = {}
                elif word == "take":
                    table.abandon_open(force=True)
                elif word == "take stale":
                    table.abandon_open()
                elif word == "clean":
                    table.clean()
                elif turn is None:
                    return  # another job has its turn: this one stops before it draws
                elif word.startswith("write"):
                    self.stage.step()
                    files.append(self._write(turn, int(word.split()[1])))
                elif word == "renew":
                    turn.renew()
                elif word == "commit":
                    chosen = {file.partition: file for file in files}  # one successful attempt for each partition
                    turn.commit(chosen.values(), {}, rows=len(chosen))
                    self.told[turn.job] = True
                elif word == "abandon":
                    turn.abandon()
                    self.told[turn.job] = False
            except LedgerBusy:
                if word == "commit" and turn is not None:
                    # Another list of files after the first was committed is refused, too.
                    self.told.setdefault(turn.job, False)
                if word in ("begin", "commit", "abandon", "renew"):
                    turn = None

    def _write(self, turn: Turn, partition: int) -> TableFile:
        path = turn.entry_path(partition)
        content = ROWS[partition]
        path.write_bytes(content)
        self.written[turn.job][path.name] = content
        return table_file(path)

    def documents(self) -> list[dict[str, object]]:
        """The log by its names alone."""
        return [json.loads(self.log[name]) for name in sorted(self.log) if not name.startswith(".")]

    def check(self) -> None:
        """What must hold at every moment."""
        names = [name for name in sorted(self.log) if not name.startswith(".")]
        assert names == [f"{number:08d}.json" for number in range(1, len(names) + 1)]
        found = self.documents()
        assert [entry["kind"] == "begun" for entry in found] == [at % 2 == 0 for at in range(len(found))]
        ends = {}
        for begun, end in zip(found[::2], found[1::2], strict=False):
            assert end["job"] == begun["job"] and end["job"] not in ends
            ends[end["job"]] = end
        committed: list[str] = []
        for job, end in ends.items():
            files = end.get("files", [])
            names = [file["name"] for file in files]
            assert end["kind"] == "committed" or not files
            assert len({name.split("-")[1] for name in names}) == len(names)
            for name in names:
                assert (self.folder / "data" / name).read_bytes() == self.written[job][name]
            committed += names
        assert committed[: len(self._before)] == self._before, "what was committed stays"
        self._before = committed
        for begun in found[len(ends) * 2 :]:
            for name, content in self.written.get(begun["job"], {}).items():
                assert (self.folder / "data" / name).read_bytes() == content, "a running turn keeps its files"
        for job, did in self.told.items():
            assert (ends[job]["kind"] == "committed") == did, "what a driver was told is so"


def schedules(run: Callable[[Callable[[list[int]], int]], None]) -> Iterator[list[int]]:
    """Call ``run`` with every schedule in turn; each as the drivers that were chosen."""
    prefix: list[int] = []
    while True:
        taken: list[tuple[int, list[int]]] = []

        def choose(alive: list[int], taken: list[tuple[int, list[int]]] = taken, prefix: list[int] = prefix) -> int:
            at = prefix[len(taken)] if len(taken) < len(prefix) else 0
            taken.append((at, alive))
            return alive[at]

        run(choose)
        yield [alive[at] for at, alive in taken]
        while taken and taken[-1][0] == len(taken[-1][1]) - 1:
            taken.pop()
        if not taken:
            return
        prefix = [at for at, _ in taken[:-1]] + [taken[-1][0] + 1]
