"""Many instances, in one process or several."""

from __future__ import annotations

import multiprocessing
import sys
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from exactness.findings import Findings
from exactness.instances import Instance
from exactness.judge import judge

_CHUNK = 25


def judged(seed: int, number: int) -> Findings:
    """The findings of one instance; a crash is one of them."""
    try:
        return judge(Instance.numbered(seed, number))
    except Exception:
        findings = Findings()
        last = traceback.format_exc().strip().replace("\n", "\n    ")
        findings.violations.append(f"instance {number}: crashed\n    {last}")
        return findings


def _chunk(task: tuple[int, range]) -> Findings:
    seed, numbers = task
    findings = Findings()
    for number in numbers:
        findings.add(judged(seed, number))
    return findings


def judge_all(seed: int, numbers: range, jobs: int) -> Findings:
    tasks = [(seed, numbers[i : i + _CHUNK]) for i in range(0, len(numbers), _CHUNK)]
    findings = Findings()
    for part in _run(tasks, jobs):
        findings.add(part)
        if sys.stderr.isatty():
            print(f"\r{findings.counts['instances']} of {len(numbers)}", end="", file=sys.stderr)
    return findings


def _run(tasks: list[tuple[int, range]], jobs: int) -> Iterator[Findings]:
    if jobs == 1:
        yield from map(_chunk, tasks)
        return
    # Spawned, not forked: a fork would inherit whatever threads the numerical libraries have started.
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(_chunk, tasks)
