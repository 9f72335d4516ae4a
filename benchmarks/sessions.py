"""What a step of a session of one subject takes beside another version of the package: a table.

    python benchmarks/sessions.py --against PATH_OF_OLD_SRC [--pairs 40] [--steps 100] [--sides 20,60]

Each version has a process of its own. In turn each releases the same walk by the same words: a new session with
its ledger in memory, radius policy over a grid, ε = 1, 50 steps that do not count and then ``--steps`` that do.
A pair is two turns, one after the other, so what slows the machine slows both. The ratio is the median over
pairs of this version's CPU time by the other's. Where the two release different answers the run ends. The
opcodes of a step count what Python does; they do not depend on the machine.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
CONSTRAINTS = {"public": "plans public", "delta": "δ-sets"}
#: Steps before those that count, pairs before those that count, and steps whose opcodes are counted.
WARM, WARM_PAIRS, COUNTED = 50, 2, 10


class Turn(NamedTuple):
    """One turn: seconds of CPU time a step, and the last answer."""

    seconds: float
    answer: str


class Version:
    """A process that releases with the package of a folder of sources."""

    def __init__(self, src: Path, side: int, constraint: str, steps: int) -> None:
        asked = [sys.executable, __file__, "--worker", constraint, "--sides", str(side), "--steps", str(steps)]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(src), str(ROOT)]), "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(asked, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
        imported = self._line()
        if not imported.startswith(str(src)):
            sys.exit(f"--against: {imported} was imported; expected the folder that has dphmm/, of another version")

    def turn(self, seed: int) -> Turn:
        """Release once, by the words of a seed."""
        seconds, answer = self._asked(str(seed)).split(" ", 1)
        return Turn(float(seconds), answer)

    def opcodes(self) -> float:
        """How many opcodes a step takes."""
        return float(self._asked("opcodes"))

    def end(self) -> None:
        """Let the process end."""
        self._process.communicate()

    def _asked(self, question: str) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(question + "\n")
        self._process.stdin.flush()
        return self._line()

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        return line or sys.exit("a version could not release; its message is above")


def work(side: int, constraint: str, steps: int) -> None:
    """Answer questions until the input ends: a seed, or "opcodes"."""
    import numpy as np

    import dphmm
    from benchmarks.speed.worlds import GridWorld, moves
    from dphmm.accounting.ledger import MemoryLedger

    print(dphmm.__file__, flush=True)
    world, rng, matrix = GridWorld(side), np.random.default_rng(1), moves(side).tocsr()
    model, space, policy = world.model, world.space, world.policy("radius")
    rule = "support" if constraint == "public" else dphmm.policy.DeltaSet("0.05")
    path = [side * side // 2]
    while len(path) < WARM + max(steps, COUNTED):
        row = slice(matrix.indptr[path[-1]], matrix.indptr[path[-1] + 1])
        path.append(int(rng.choice(matrix.indices[row], p=matrix.data[row] / matrix.data[row].sum())))

    def warm(seed: int) -> Any:
        bits, ledger = dphmm.ReplayBits(seed), MemoryLedger()
        session = dphmm.ReleaseSession(model, policy, space, 1, constraint=rule, ledger=ledger, bits=bits, subject="a")
        for state in path[:WARM]:
            session.release(state)
        return session

    for question in map(str.strip, sys.stdin):
        if question == "opcodes":
            print(_opcodes(warm(0), path[WARM : WARM + COUNTED]) / COUNTED, flush=True)
            continue
        session = warm(int(question))
        began = time.process_time()
        for state in path[WARM : WARM + steps]:
            session.release(state)
        print((time.process_time() - began) / steps, session.releases[-1].z.tolist(), flush=True)


def _opcodes(session: Any, states: list[int]) -> int:
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    sys.settrace(trace)
    for state in states:
        session.release(state)
    sys.settrace(None)
    return count


def measured(src: Path, side: int, constraint: str, pairs: int, steps: int) -> str:
    """One row of the table."""
    versions = [Version(where, side, constraint, steps) for where in (src, ROOT / "src")]
    taken: list[list[float]] = [[], []]
    for pair in range(pairs + WARM_PAIRS):
        turns = [version.turn(pair) for version in versions]
        if turns[0].answer != turns[1].answer:
            sys.exit(f"the two versions released other answers: {turns[0].answer} and {turns[1].answer}")
        if pair >= WARM_PAIRS:
            for own, turn in zip(taken, turns, strict=True):
                own.append(turn.seconds * 1e6)
    counts = [version.opcodes() for version in versions]
    for version in versions:
        version.end()
    ratios = [now / then for then, now in zip(*taken, strict=True)]
    low, _, high = statistics.quantiles(ratios, n=4)
    times = " | ".join(f"{statistics.median(own):.0f}" for own in taken)
    ratio = f"{statistics.median(ratios):.2f} ({low:.2f} .. {high:.2f})"
    return f"| {CONSTRAINTS[constraint]} | {side * side:,} | {times} | {ratio} | {counts[0]:,.0f} | {counts[1]:,.0f} |"


def rows(args: argparse.Namespace) -> Iterator[str]:
    """The table, line by line."""
    yield "| session | N | other, µs a step | this, µs a step | ratio (middle half) | other, opcodes | this, opcodes |"
    yield "|---|---|---|---|---|---|---|"
    for constraint in CONSTRAINTS:
        for side in map(int, args.sides.split(",")):
            yield measured(args.against.resolve(), side, constraint, args.pairs, args.steps)


def main() -> None:
    """Read the options and print the table."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", type=Path, help="the folder of another version's sources, which has dphmm/")
    parser.add_argument("--pairs", type=int, default=40, help="pairs of turns")
    parser.add_argument("--steps", type=int, default=100, help="steps of a turn")
    parser.add_argument("--sides", default="20,60", help="cells along a side of each grid")
    parser.add_argument("--worker", choices=CONSTRAINTS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker is not None:
        work(int(args.sides), args.worker, args.steps)
        return
    if args.against is None or not (args.against / "dphmm").is_dir():
        parser.error("--against: expected the folder of another version's sources, which has dphmm/")
    for line in rows(args):
        print(line, flush=True)


if __name__ == "__main__":
    main()
