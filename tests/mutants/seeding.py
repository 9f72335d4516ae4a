"""Plant seeded bugs and say which tests noticed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

from mutants.catalogue import DoesNotApply, Mutant
from mutants.workshop import Run, Workshop, workshops

#: Seconds that the killers of one bug may take; compiling a changed kernel is most of it.
LONGEST = 300.0
GOOD = ("killed", "absent")


@dataclass(frozen=True)
class Verdict:
    """What became of a bug, and how it was noticed or why it was not."""

    mutant: Mutant
    outcome: str
    told: str

    @property
    def good(self) -> bool:
        """Whether nothing is left to do."""
        return self.outcome in GOOD


def verdicts(mutants: Sequence[Mutant], root: Path, jobs: int, tell: Callable[[Verdict], object]) -> list[Verdict]:
    """Plant each bug in turn; ``tell`` is called with each verdict as it is reached."""
    with workshops(jobs, root) as shops:
        sound = _sound(shops[0], mutants)
        free: Queue[Workshop] = Queue()
        for shop in shops:
            free.put(shop)

        def judge(mutant: Mutant) -> Verdict:
            shop = free.get()
            try:
                verdict = _verdict(shop, mutant, sound)
            finally:
                free.put(shop)
            tell(verdict)
            return verdict

        with ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(judge, mutants))


def _sound(shop: Workshop, mutants: Sequence[Mutant]) -> dict[str, bool]:
    """Which killers pass where nothing was planted."""
    killers = sorted({killer for mutant in mutants for killer in mutant.killers})
    if not killers:
        return {}
    run = shop.run(killers, LONGEST * 4)
    if run.code is None or not run.outcomes:
        raise SystemExit(f"the killers do not run:\n{run.output}")
    return {killer: _outcomes(run, killer) == {"passed"} for killer in killers}


def _outcomes(run: Run, killer: str) -> set[str]:
    return {outcome for outcome, _ in run.of(killer)}


def _verdict(shop: Workshop, mutant: Mutant, sound: dict[str, bool]) -> Verdict:
    unsound = [killer for killer in mutant.killers if not sound[killer]]
    if unsound:
        return Verdict(mutant, "fails without it", ", ".join(unsound))
    if mutant.absent:
        return Verdict(mutant, "absent", mutant.absent)
    try:
        texts = mutant.changed(shop.copy)
    except DoesNotApply as error:
        return Verdict(mutant, "does not apply", str(error))
    with shop.changed(texts):
        return _judged(mutant, shop.run(mutant.killers, LONGEST))


def _judged(mutant: Mutant, run: Run) -> Verdict:
    if run.code is None:
        return Verdict(mutant, "took too long", "")
    if run.code != 1 or not run.outcomes:
        # A bug that keeps the tests from starting proves nothing about them.
        return Verdict(mutant, "broke the tests" if run.code else "survived", run.output[-500:] if run.code else "")
    idle = [killer for killer in mutant.killers if "failed" not in _outcomes(run, killer)]
    if idle:
        return Verdict(mutant, "survived", ", ".join(idle))
    return Verdict(mutant, "killed", run.outcomes[run.failures[0]][1])


def summary(found: Sequence[Verdict]) -> str:
    """One line: how many of the bugs that can be planted were killed, and what became of the others."""
    counts = Counter(verdict.outcome for verdict in found)
    planted = len(found) - counts["absent"]
    rest = ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items()) if outcome not in GOOD)
    return f"{counts['killed']} of {planted} killed, {counts['absent']} absent" + (f", {rest}" if rest else "")
