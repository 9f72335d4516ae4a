"""What the crashed processes do, through the public interface alone; every answer leaves by one write to the pipe.

Each work can be started again after any death: like a client that does not know what its predecessor got, it first asks
again for steps that may have been released, with other true states, and then goes on.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dphmm
from crashes import protocols, world

EPSILON = "0.1"
#: How many stored steps a session asks for again when it starts.
AGAIN = 3


class KeyedWords:
    """Words that depend on the step alone: an uninterrupted run then draws what a resumed one draws."""

    def __init__(self) -> None:
        self._bits: Any = None

    def at(self, subject: str, t: int) -> None:
        """The step whose words come next."""
        self._bits = dphmm.ReplayBits(f"{subject} {t}".encode())

    def uint64(self, n: int) -> Any:
        return self._bits.uint64(n)


def schedule_of(text: str | None) -> Any:
    """The schedule of a work; None where every step is asked."""
    return None if text is None else dphmm.accounting.Schedule.read(text)


def escape(subject: str, query: str, release: Any) -> None:
    """Show a release; of a step that was not asked there is nothing to show."""
    if not release.asked:
        return
    row = {
        "key": [subject, release.t, query],
        "z": [int(coordinate) for coordinate in release.z_lattice],
        "epsilon": str(release.epsilon),
        "cost": str(release.cost),
        "plan": release.plan_hash,
        "by": os.getpid(),
    }
    os.write(1, (json.dumps(row) + "\n").encode())


def constraint_of(name: str) -> Any:
    """The constraint of a work: "support", or a delta-set, whose plans depend on what was released."""
    return name if name == "support" else dphmm.policy.DeltaSet(name)


def session(
    folder: str,
    subject: str = "ann",
    query: str = "state",
    steps: int = 20,
    constraint: str = "support",
    keyed: bool = False,
    cap: str | None = None,
    again: int = AGAIN,
    timeout: float = 30.0,
    tries: int = 1,
    schedule: str | None = None,
) -> int:
    """Release steps one by one, with a skip now and then; a step that fails is tried again ``tries`` times.

    3 when a cap stopped it, the code of the error when another refusal did.
    """
    try:
        return _session(folder, subject, query, steps, constraint, keyed, cap, again, timeout, tries, schedule)
    except dphmm.errors.BudgetExceeded:
        return 3
    except dphmm.errors.DphmmError as error:
        print(error, file=sys.stderr, flush=True)
        return error.exit_code


def _session(
    folder: str,
    subject: str,
    query: str,
    steps: int,
    constraint: str,
    keyed: bool,
    cap: str | None,
    again: int,
    timeout: float,
    tries: int,
    schedule: str | None,
) -> int:
    model, policy, space = world.parts()
    bits = KeyedWords() if keyed else None
    with dphmm.open_ledger(Path(folder) / "ledger.db", timeout=timeout) as ledger:

        def opened() -> Any:
            if ledger.header(subject, query) is not None:
                return dphmm.ReleaseSession.resume(
                    ledger, subject, model, policy, space, query=query, bits=bits, cap_epsilon=cap
                )
            return dphmm.ReleaseSession(
                model, policy, space, EPSILON, constraint=constraint_of(constraint), subject=subject, query=query,
                ledger=ledger, bits=bits, cap_epsilon=cap, schedule=schedule_of(schedule),
            )  # fmt: skip

        open_session = opened()
        for t in range(max(1, open_session.t - again), open_session.t):
            if open_session.has_released(t):
                escape(subject, query, open_session.release(world.truth("another", t), t=t))
        while open_session.t <= steps:
            for left in reversed(range(tries)):
                try:
                    step(open_session, subject, query, bits)
                    break
                except dphmm.errors.DphmmError as error:
                    if "moved on" in str(error):
                        # Another session of the key has passed the step that was to be skipped.
                        open_session = opened()
                        break
                    if not left:
                        raise
    return 0


def step(open_session: Any, subject: str, query: str, bits: KeyedWords | None = None) -> None:
    """The coming step: a skip of two where t is a multiple of 7, else a release."""
    t = open_session.t
    if t % 7 == 0:
        open_session.skip(2)
        return
    if bits is not None:
        bits.at(subject, t)
    escape(subject, query, open_session.release(world.truth(subject, t), t=t))


def forked(folder: str, shared: bool = False) -> int:
    """Two sessions of two subjects in the same states, and one of a third subject, before and after a fork.

    The parent goes on with the first, the child with the second, both with the third; ``shared`` gives all of them
    words that do not notice a fork.
    """
    model, policy, space = world.parts()
    bits = dphmm.ReplayBits(1) if shared else None
    with dphmm.open_ledger(Path(folder) / "ledger.db") as ledger:
        ann, bob, cid = (
            dphmm.ReleaseSession(model, policy, space, EPSILON, subject=subject, ledger=ledger, bits=bits)
            for subject in ("ann", "bob", "cid")
        )
        for subject, open_session in (("ann", ann), ("bob", bob), ("cid", cid)):
            for _ in range(3):
                escape(subject, "state", open_session.release(5))
        pid = os.fork()
        mine = ("ann", ann) if pid else ("bob", bob)
        for subject, open_session in (mine, ("cid", cid)):
            for _ in range(10):
                escape(subject, "state", open_session.release(5, t=open_session.t))
        if pid == 0:
            os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def hold(folder: str) -> int:
    """Hold the ledger against other commands until the input ends."""
    with dphmm.open_ledger(Path(folder) / "ledger.db") as ledger, ledger.lease("commands"):
        os.write(1, b"held\n")
        os.read(0, 1)
    return 0


def batch(
    folder: str, constraint: str = "support", chunk: int = 5, cap: str | None = None, schedule: str | None = None
) -> int:
    """Release all rows of all users by a batch; of each chunk every row is shown as it comes."""
    import dphmm.release.batch as batches

    use_chunks_of(chunk)
    model, policy, space = world.parts()
    with dphmm.open_ledger(Path(folder) / "ledger.db") as ledger:
        work = batches.Batch(
            model, policy, space, EPSILON, ledger=ledger, constraint=constraint_of(constraint), cap_epsilon=cap,
            schedule=schedule_of(schedule),
        )  # fmt: skip
        for released in work.run(world.batch_rows(), resume=True):
            for row in released:
                escape(row.user, "state", row.release)
    return 0


def many(folder: str, chunk: int = 5) -> int:
    """Release all rows of all users by release_many: the table is shown when it is returned."""
    import pyarrow as pa

    use_chunks_of(chunk)
    model, policy, space = world.parts()
    rows = world.batch_rows()
    times = pa.array(rows.time.tolist(), pa.timestamp("us", tz="UTC"))
    table = pa.table({"user": [rows.users[u] for u in rows.user], "t": times, "state": rows.state.tolist()})
    with dphmm.open_ledger(Path(folder) / "ledger.db") as ledger:
        released = dphmm.release_many(table, model, policy, space, EPSILON, ledger=ledger, resume=True, progress=False)
    for row in released.to_pylist():
        os.write(1, (json.dumps(row, default=str) + "\n").encode())
    return 0


def command(arguments: list[str], chunk: int = 5, folder: str = "") -> int:
    """A dphmm command; {folder} in an argument is the folder."""
    from dphmm.cli import main

    use_chunks_of(chunk)
    sys.argv = ["dphmm", *(argument.replace("{folder}", folder) for argument in arguments)]
    main()
    return 0


def save(folder: str) -> int:
    """Write a model and a policy again, as commands write every file: at once or not at all."""
    model, policy, space = world.parts()
    dphmm.storage.save_model(model, Path(folder) / "model.npz")
    dphmm.storage.save_policy(policy, Path(folder) / "policy.json", space=space, model=model)
    return 0


def use_chunks_of(chunk: int) -> None:
    """Make transactions small, so that a small batch has several."""
    import dphmm.release.batch as batches

    assert isinstance(batches.CHUNK, int)
    batches.CHUNK = chunk


def protocol(folder: str, name: str, steps: int = 30, again: int = AGAIN) -> int:
    """The same client over a ledger of three statements (`protocols`), to see whether its faults are found."""
    ledger = protocols.PROTOCOLS[name](Path(folder) / "ledger.db")
    start = max(1, ledger.last_step() + 1 - again)
    for t in range(start, steps + 1):
        ledger.release(t, lambda row: os.write(1, (json.dumps(row) + "\n").encode()))
    return 0


WORK: dict[str, Callable[..., int]] = {
    "session": session,
    "forked": forked,
    "hold": hold,
    "save": save,
    "batch": batch,
    "many": many,
    "command": command,
    "protocol": protocol,
}


def release_arguments(source: str = "{folder}/walks.csv", output: str = "{folder}/out") -> list[str]:
    """The arguments of dphmm release in a folder of `world.write_files`; of a stream when the source is -."""
    arguments = ["release", source, "--model", "{folder}/model.npz", "--policy", "{folder}/policy.json"]
    arguments += ["--epsilon", EPSILON, "--ledger", "{folder}/ledger.db", "--quiet", "--yes"]
    arguments += ["--model-people", "others"]  # nothing is warned of: what the tests read is about the interruption
    return arguments if source == "-" else [*arguments, "-o", output]
