"""Lives of a work: started, killed, started again until it is done, judged after every death.

The ledger is read on a copy after each death, before the next process can mend or hide anything.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from crashes import autopsy, world
from crashes.arena import Arena
from crashes.checker import Findings, Row, Run, View, judge, judge_final, shown_once
from crashes.death import Death, Points
from crashes.syscalls import AVAILABLE

#: Kinds of death that this machine can give.
KINDS = ("delay", "statement", "point", *(("syscall",) if AVAILABLE else ()))
#: A life ends undisturbed after so many deaths.
MOST_DEATHS = 12


@dataclass(frozen=True)
class Trial:
    """A work, its arguments, how many of it run at once, and how its remains are read."""

    work: str
    args: Mapping[str, Any] = field(default_factory=dict)
    crowd: int = 1
    view: Callable[[Path], View] = autopsy.ledger_view
    files: bool = False
    prepare: Callable[[Path], None] = world.write_files
    stdin: str | None = None
    caps: Mapping[str, Fraction] | None = None
    #: Compare the end with a run without crashes: "" not at all; "public" all but answers; "all" with keyed words,
    #: answers too; "given" a run without crashes that is given the same answers.
    compare: str = "public"
    #: Whether the run that finishes shows every release, rather than only the later ones.
    whole: bool = True
    #: Exit codes of a run that was not killed.
    good: tuple[int, ...] = (0,)

    def start(self, arena: Arena, folder: Path, death: Death) -> Any:
        """One process of it."""
        source = None if self.stdin is None else folder / self.stdin
        return arena.start(self.work, death, stdin=source, folder=folder, **self.args)


@dataclass
class Verdict:
    """The sum of many lives."""

    kills: int = 0
    lives: int = 0
    escapes: int = 0
    keys: int = 0
    by_kind: Counter[str] = field(default_factory=Counter)
    findings: Findings = field(default_factory=Findings)

    def take(self, life: Life) -> None:
        """Add what came out of one life."""
        for (kind, key), why in life.findings.found.items():
            self.findings.add(kind, (self.lives, key), why)
        self.escapes += sum(len(run.escapes) for run in life.runs)
        self.keys += len({escape.key for run in life.runs for escape in run.escapes})


def learn(arena: Arena, trial: Trial) -> tuple[Points, Mapping[Any, Row]]:
    """The points of a trial, and the rows of a run without crashes; learnt once."""
    if id(trial) not in arena.learnt:
        # The trial is kept too, so that its id stays its own.
        arena.learnt[id(trial)] = (_learn(arena, trial), trial)
    known: tuple[Points, Mapping[Any, Row]] = arena.learnt[id(trial)][0]
    return known


def _learn(arena: Arena, trial: Trial) -> tuple[Points, Mapping[Any, Row]]:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        folder, again = Path(one), Path(two)
        trial.prepare(folder)
        trial.prepare(again)
        source = {} if trial.stdin is None else {"stdin": folder / trial.stdin}
        points = arena.learn(trial.work, folder, again, good=trial.good, **source, **trial.args)
        return points, trial.view(folder).rows


def campaign(arena: Arena, trial: Trial, kills: int, seed: int, kinds: tuple[str, ...] = KINDS) -> Verdict:
    """Live and die until ``kills`` deaths have happened."""
    rng = random.Random(seed)
    points, reference = learn(arena, trial)
    verdict = Verdict()
    while verdict.kills < kills:
        verdict.lives += 1
        with tempfile.TemporaryDirectory() as folder:
            life = Life(arena, trial, Path(folder), reference)
            while verdict.kills < kills and life.deaths < MOST_DEATHS and not life.done:
                fates = [points.draw(_next_kind(kinds, verdict, rng), rng, not life.deaths) for _ in range(trial.crowd)]
                died = life.go_on(fates)
                verdict.kills += len(died)
                verdict.by_kind.update(died)
            if not life.done:
                life.go_on([Death()] * trial.crowd)
            life.finish()
            verdict.take(life)
    return verdict


class Life:
    """One folder from its beginning to its end, whatever deaths lie between; judged after each of them."""

    def __init__(self, arena: Arena, trial: Trial, folder: Path, reference: Mapping[Any, Row]) -> None:
        trial.prepare(folder)
        self.arena, self.trial, self.folder, self.reference = arena, trial, folder, reference
        self.runs: list[Run] = []
        self.deaths = 0
        self.done = False
        self.findings = Findings()

    def go_on(self, fates: list[Death], stopped: tuple[int, ...] = (-9,)) -> list[str]:
        """Start the work with these deaths; the kinds of those that struck. ``stopped`` are the codes of a death."""
        children = [self.trial.start(self.arena, self.folder, fate) for fate in fates]
        ends = [child.finish() for child in children]
        self.runs += [Run(autopsy.escapes_of(end.lines), str(end.code)) for end in ends]
        if self.trial.files:
            self.runs += [Run(rows, "file") for rows in autopsy.escapes_in_files(self.folder).values()]
        died = [fate.kind for fate, end in zip(fates, ends, strict=True) if end.code in stopped]
        self.deaths += len(died)
        self.done = not died
        well = (*self.trial.good, *stopped)
        assert [end for end in ends if end.code not in well] == [], [(fates, end.code, end.errors) for end in ends]
        self._judge()
        return died

    def _judge(self) -> None:
        self.findings.update(judge(self.runs, self.trial.view(self.folder), self.trial.caps))
        if self.trial.files:
            self.findings.update(autopsy.judge_files(self.folder, len(releases(self.reference))))

    def finish(self) -> None:
        """Compare the end with a run without crashes."""
        assert self.done
        if not self.trial.compare:
            return
        view, expected = self.trial.view(self.folder), self.reference
        if self.trial.compare == "given":
            expected = autopsy.given_answers(view, self.trial.args["constraint"])
        self.findings.update(judge_final(view, expected, self.trial.compare != "public"))
        if self.trial.whole:
            self.findings.update(shown_once(self.runs[-1], view))


def die_once(
    arena: Arena, trial: Trial, death: Death, reference: Mapping[Any, Row], codes: tuple[int, ...] = (-9,)
) -> None:
    """One life with one death, which must strike, and an undisturbed run after it."""
    with tempfile.TemporaryDirectory() as folder:
        life = Life(arena, trial, Path(folder), reference)
        assert life.go_on([death], codes), f"{death} did not strike"
        life.go_on([Death()])
        life.finish()
        assert not life.findings, f"{death}: {life.findings}"


def releases(rows: Mapping[Any, Row]) -> list[Any]:
    """The keys of the steps that were released, not skipped."""
    return [key for key, row in rows.items() if row.z is not None]


def _next_kind(kinds: tuple[str, ...], verdict: Verdict, rng: random.Random) -> str:
    """The kind that has killed least so far, so that none is left out."""
    return min(kinds, key=lambda kind: (verdict.by_kind[kind], rng.random()))
