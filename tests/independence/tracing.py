"""Which lines of the package run, in their order; and which instructions, where asked for.

Compiled kernels are out of a trace's sight, so this module is also a program, to be run with NUMBA_DISABLE_JIT=1:
``python -m independence.tracing SEED ...`` compares the traces of all truths on the instances of these seeds, with and
without a planted branch, and those of batches, and prints one JSON object.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import dphmm
from dphmm.policy.graph import PolicyGraph
from dphmm.release.batch import Batch
from dphmm.release.stream import Stream, parse_line
from dphmm.samplers.entropy import ReplayBits
from dphmm.states.trajectory import Trajectories
from independence.commands import GRID, NAMES, PAGES, narrow, places
from independence.instances import STEPS, Instance, instance, truths_at
from independence.observing import observe, replaced_draws
from independence.planted import BRANCH_LEAK, planted

_PACKAGE = str(Path(dphmm.__file__).parent)
#: (file, line, instruction)
Place = tuple[str, int, int]
Trace = list[Place]


def traced(work: Callable[[], Any], instructions: bool = False) -> tuple[Trace, Any]:
    """Everything in the package that runs during some work, in order; and the result of the work."""
    seen: Trace = []
    event_wanted = "opcode" if instructions else "line"

    def inside(frame: FrameType, event: str, argument: Any) -> Any:
        if event == event_wanted:
            at = frame.f_lasti if instructions else 0
            seen.append((frame.f_code.co_filename[len(_PACKAGE) + 1 :], frame.f_lineno, at))
        return inside

    def entering(frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            return None
        frame.f_trace_opcodes = instructions
        return inside

    before = sys.gettrace()
    sys.settrace(entering)
    try:
        result = work()
    finally:
        sys.settrace(before)
    return seen, result


def first_difference(one: Trace, other: Trace) -> str | None:
    """Where two traces part, as file:line; None if nowhere."""
    for a, b in zip(one, other, strict=False):
        if a != b:
            return f"{a[0]}:{a[1]} or {b[0]}:{b[1]}"
    return None if len(one) == len(other) else f"after {one[: len(other)][-1:]}"


def compared(case: Instance, steps: Sequence[int]) -> dict[str, Any]:
    """Where the truth changes the trace of some steps: the first difference, or None, by kind of comparison.

    ``lines``: numbers of states among themselves, -1 among them; names among themselves, an unknown one among them.
    Plans are made anew for each. ``instructions``: numbers of states alone, plans are shared, so that what is traced
    is the release itself.
    """
    past = observe(case, next(truths_at(case, 0)))["answers"]
    found: dict[str, Any] = {"lines": None, "instructions": None, "events": 0}
    for step in steps:
        for mode in ("lines", "instructions"):
            runs = _traces(case, step, past, mode == "instructions")
            found["events"] += sum(len(trace) for _, trace in runs)
            for kind, trace in runs:
                first = next(run for run in runs if run[0] == kind)[1]
                found[mode] = found[mode] or first_difference(first, trace)
    return found


def _traces(case: Instance, step: int, past: Any, instructions: bool) -> list[tuple[str, Trace]]:
    setting = case.setting() if instructions else None
    runs: list[tuple[str, Trace]] = []
    # What the space remembers of itself is made before, whoever would come first.
    case.space.index_of("")
    for truths in truths_at(case, step):
        truth = truths[step]
        if instructions and (isinstance(truth, str) or truth < 0):
            continue
        play = partial(observe, case, truths, given=past, setting=setting)
        if instructions:
            play()
        trace, _ = traced(play, instructions)
        runs.append((type(truth).__name__, trace))
    return runs


def batch_of(space: dphmm.StateSpace, policy: PolicyGraph, truth: Any) -> Trace:
    """The trace of a batch of one user who is at one page, or one place, for three steps."""
    where = {"state": truth} if isinstance(truth, str) else dict(zip(("lat", "lon"), truth, strict=True))
    columns = {name: np.array([value] * 3, dtype=object if name == "state" else None) for name, value in where.items()}
    rows = Trajectories.from_labels(["ann"] * 3, **columns)

    def play() -> None:
        with replaced_draws([(7 - 3 * k,) * space.dimension for k in range(3)]):
            list(Batch(narrow(space.n_states), policy, space, 1, bits=ReplayBits(3)).run(rows))

    play()
    return traced(play)[0]


def stream_of(name: str) -> Trace:
    """The trace of a stream that answers a page."""

    def play() -> None:
        with replaced_draws([(1,)]):
            batch = Batch(narrow(4), dphmm.policy.from_edges([(0, 1), (2, 3)], 4), PAGES, 1, bits=ReplayBits(3))
            line = parse_line(json.dumps({"user": "ann", "step": 1, "state": name}).encode(), False)
            list(Stream(batch, resume=False).take(line))

    play()
    return traced(play)[0]


def together() -> dict[str, list[str]]:
    """Files in which the trace of a batch or a stream depends on the truth: a name, known or not, or a place."""
    pages = [batch_of(PAGES, dphmm.policy.from_edges([(0, 1), (2, 3)], 4), name) for name in NAMES[::3]]
    town = [batch_of(GRID, dphmm.policy.radius(GRID, 1500), place) for place in places()[::2]]
    stream = [stream_of(name) for name in NAMES[::3]]
    found = {"names": pages, "places": town, "names of a stream": stream}
    return {kind: _files_that_differ(traces) for kind, traces in found.items()}


def _files_that_differ(traces: list[Trace]) -> list[str]:
    files = {place[0] for trace in traces for place in trace}
    of_file = {file: [[place for place in trace if place[0] == file] for trace in traces] for file in files}
    return sorted(file for file, parts in of_file.items() if any(part != parts[0] for part in parts))


def main(*seeds: str) -> None:
    """Print what the instances of some seeds and the batches show."""
    cases = [instance(int(seed)) for seed in seeds]
    found = {case.seed: compared(case, (0, STEPS - 1)) for case in cases}
    with planted(BRANCH_LEAK):
        leak = compared(instance(6), (0,))
    print(json.dumps({"cases": found, "leak": leak, "together": together()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
