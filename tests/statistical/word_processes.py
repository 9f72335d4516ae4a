"""Processes that use random words in every way there is, and save all that they were served: run by test_words.py.

python -m statistical.word_processes WAY[+WAY..] FOLDER; a session keeps its ledger in the folder.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from pathlib import Path

import dphmm
from crashes import world
from dphmm.samplers import SystemBits, default_bits
from naive_mechanisms import shape
from statistical.word_log import WordLog, logged_words

STEPS = 4


def use(words: int = 50) -> None:
    """Words of the process's own bits, of new bits, and of a mechanism."""
    default_bits().uint64(words)
    SystemBits().uint64(words)
    dphmm.mechanisms.DiscreteKNorm(shape("disc"), 1).noise(words)


def child_of(log: WordLog, folder: Path, work: object = use) -> int:
    """A forked child that works, saves its words, and ends."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            log.forget_parent()
            work()  # type: ignore[operator]
            log.save(folder)
            code = 0
        finally:
            os._exit(code)
    return pid


def ended_well(*children: int) -> None:
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * len(children)


def forks(log: WordLog, folder: Path) -> None:
    """Children before and after the parent's first word, a grandchild, and children of threads."""
    first = child_of(log, folder)
    use()
    second = child_of(log, folder, lambda: (use(), ended_well(child_of(log, folder)), use()))
    started: list[int] = []
    thread = threading.Thread(target=lambda: (use(), started.append(child_of(log, folder)), use()))
    thread.start()
    thread.join()
    use()
    ended_well(first, second, *started)


def forks_while_others_draw(log: WordLog, folder: Path) -> None:
    """Children forked while threads are in the middle of their draws from the bits that all share."""
    bits = SystemBits()
    mechanism = dphmm.mechanisms.Staircase(shape("disc"), 1, "0.5")
    mechanism.noise(1, bits)

    def draw() -> None:
        for _ in range(400):
            mechanism.noise(3, bits)

    threads = [threading.Thread(target=draw) for _ in range(3)]
    for thread in threads:
        thread.start()
    children = [child_of(log, folder, lambda: mechanism.noise(200, bits)) for _ in range(8)]
    for thread in threads:
        thread.join()
    ended_well(*children)


class ForkingBits(SystemBits):
    """Bits that fork in the middle of a draw, just before they serve the n-th call; both sides go on."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.calls, self.at, self.pid = 0, at, -1

    def uint64(self, n: int):  # type: ignore[no-untyped-def]
        self.calls += 1
        if self.calls == self.at:
            self.pid = os.fork()
        return super().uint64(n)


def fork_in_a_draw(log: WordLog, folder: Path) -> None:
    """Both sides finish the draw, and draw on: what either is served after the fork is its own."""
    bits = ForkingBits(at=3)
    mechanism = dphmm.mechanisms.DiscreteKNorm(shape("octahedron"), 1)
    before = len(log.served)
    try:
        noise = mechanism.noise(60, bits)
        assert bits.calls > 3 and len(noise) == 60
        mechanism.noise(60, bits)
    finally:
        if bits.pid == 0:
            log.served = log.served[before + 2 :]  # without the two calls before the fork, which the parent saves
            log.save(folder)
            os._exit(0)
    ended_well(bits.pid)


def spawned(folder: str) -> None:
    with logged_words() as log:
        use()
        log.save(Path(folder))


def spawns(log: WordLog, folder: Path) -> None:
    """Fresh interpreters and forked workers of multiprocessing."""
    use()
    for method in ("spawn", "fork"):
        worker = multiprocessing.get_context(method).Process(target=spawned, args=(str(folder),))
        worker.start()
        worker.join()
        assert worker.exitcode == 0
    use()


def resumed(log: WordLog, folder: Path) -> None:
    """A session begun, or gone on with by every further process."""
    model, policy, space = world.parts()
    with dphmm.open_ledger(folder / "ledger.db") as ledger:
        if ledger.header("ann", "state") is None:
            session = dphmm.ReleaseSession(model, policy, space, 1, subject="ann", ledger=ledger)
        else:
            session = dphmm.ReleaseSession.resume(ledger, "ann", model, policy, space)
            before = len(log.served)
            again = [session.release(3, t=t).z_lattice for t in range(1, session.t)]
            assert len(again) == session.t - 1 and len(log.served) == before, "a stored answer takes no words"
        for _ in range(STEPS):
            session.release(5)


WAYS = {way.__name__: way for way in (forks, forks_while_others_draw, fork_in_a_draw, spawns, resumed)}

if __name__ == "__main__":
    place = Path(sys.argv[2])
    with logged_words() as everything:
        for name in sys.argv[1].split("+"):
            WAYS[name](everything, place)
        everything.save(place)
