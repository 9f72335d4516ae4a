"""One session of the studio: its states, and the commands that read people's rows in processes of their own.

A setting is looked at one at a time. States, and what leads from one to the next:

    open      a choice is missing or refused (``problem`` says which); a change leads on
    preview   figures of 10 invented people arrive, total by total; then of 100 (``final``); a change begins again
    planned   all figures are there; `check` looks at the table, `ask` says what a release spends
    running   ``dphmm run`` works on the saved file; changes are refused
    released  its report is there; a change leads on. ``failed``: the line that says why, and the same command goes on

Every change names the version that it was made of: one of an older page is stale. This process never opens the table.
``dphmm check`` and ``dphmm run`` do, and of what they print only stages, numbers and the path of the report are read.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from dphmm.choose.schedule_plan import SchedulePlan
from dphmm.errors import DphmmError, InvalidInput
from dphmm.evaluation.city import simulate_city
from dphmm.statement.sentences import noun_words
from dphmm.storage.inputs import replacing
from dphmm.storage.trajectories import save_trajectories
from dphmm.studio.draft import Draft, ReleaseFile, setup_of
from dphmm.studio.figures import FINAL, PREVIEW, BudgetView, Figures, Ground, Map, State, open_map, written

#: The demo: its folder, its table, and everything that is chosen in it.
DEMO, DEMO_TABLE, DEMO_PEOPLE, DEMO_DAYS = "studio-demo", "people.parquet", 30, 3
#: Epsilon of the answer that is shown before a plan is there.
_EPSILON = "1"
_STAGES = ("data", "split", "model", "policy", "plan", "release", "estimates", "population", "report")
_STAGE = re.compile(rf"({'|'.join(_STAGES)}): dphmm ")
#: Stages whose errors are about public files alone. Before the first of them, and before any stage, the rows are read.
_PUBLIC = ("policy", "plan")
#: Figures of a check that have no text of the table in them.
_COARSE = (
    "rows", "people", "most_rows", "same_moment", "without_place", "on_map", "in_states", "swapped", "kilometres_away",
    "steps", "steps_with_rows", "unanswered", "too_fast",
)  # fmt: skip
_OF_BUDGET = ("known", "adds", "left", "left_after", "of")
_CODES = {
    1: "refused by the promise",
    3: "done, but rows were set aside",
    4: "another dphmm command uses the ledger or the folder: wait for its end",
}


class Stale(Exception):
    """A request about a version that is no longer the last."""


class Checked(msgspec.Struct, frozen=True):
    """Coarse figures of the table for its owner, without a word of it. stops: the number of reasons to stop."""

    figures: Mapping[str, float | bool | None]
    budget: Mapping[str, str | int]
    rejected: int
    stops: int
    doubtful: bool


class Asked(msgspec.Struct, frozen=True):
    """The sentence on a release's spending, and the word that agrees to it once."""

    sentence: str
    word: str


class Run(msgspec.Struct, frozen=True):
    """The progress of ``dphmm run``: the stages that began, of all; its end, and the last line."""

    stages: list[str]
    all: list[str]
    ended: bool = False
    released: bool = False
    line: str = ""


class Progressed(msgspec.Struct, frozen=True):
    """The state of a session, and what it has computed so far."""

    version: int
    state: str
    done: int
    total: int
    budget: BudgetView | None
    problem: str
    run: Run | None


class PageState(msgspec.Struct, frozen=True):
    """Everything that a page shows of a setting. files: names of files that release.toml names."""

    version: int
    draft: Draft
    name: str
    text: str
    files: list[str]
    table: str
    has_table: bool
    problem: str
    missing: str
    lines: list[str]
    map: Map | None
    labels: list[str]


class Studio:
    """A session: a folder, the pipeline file in it, and the results of its draft.

    ``owned``: True if the file of this name may be replaced: it was opened, or written here. The methods raise Stale
    for another version than the last, and InvalidInput naming the choice.
    """

    def __init__(self, folder: Path, name: str, file: ReleaseFile, ground: Ground, *, owned: bool = False) -> None:
        self.folder, self.name, self.file, self.ground, self._owned = folder, name, file, ground, owned
        self.version, self.state, self.problem = 1, "open", ""
        self._turn = threading.RLock()
        self._seen: Figures | None = None
        self._plan: SchedulePlan | None = None
        self._budget: BudgetView | None = None
        self._done = self._total = self._asked = 0
        self._planning: threading.Thread | None = None
        self._checked: Checked | None = None
        self._word, self._run, self._report = "", None, None  # type: tuple[str, Run | None, Path | None]
        self._child: subprocess.Popen[str] | None = None
        self._begin()

    # -- the setting --------------------------------------------------------------------------------------------------

    def shown(self) -> PageState:
        """Everything that a page shows of the setting."""
        with self._turn:
            draft, seen, table = self.file.draft, self._seen, str(self.file.draft.data.get("file", ""))
            others = [] if self.problem else list(self.file.others(self.name))
            on_map = draft.kind == "grid"
            return PageState(
                version=self.version,
                draft=draft,
                name=self.name,
                text=self.file.text(self.name),
                files=others,
                table=Path(table).name,
                has_table=self._has_table,
                problem=self.problem,
                missing=draft.missing,
                lines=[] if seen is None else seen.lines(),
                map=(open_map(self.ground) if seen is None else seen.map()) if on_map else None,
                labels=[] if on_map or seen is None else list(seen.setup.space.names),
            )

    def change(self, version: int, draft: Draft) -> PageState:
        """Take a draft in place of the last. The choice of the table stays."""
        with self._turn:
            fixed = {key: self.file.draft.data[key] for key in ("file", "kind") if key in self.file.draft.data}
            draft = msgspec.structs.replace(draft, data={**draft.data, **fixed})
            return self._taken(version, replace(self.file, draft=draft))

    def read(self, version: int, text: str) -> PageState:
        """Take the text of a pipeline file; files that it names lie in the folder."""
        return self._taken(version, ReleaseFile.read(text, self.name, self.folder))

    def demo(self, version: int) -> PageState:
        """Begin with the demo: a simulated city, whose people are nobody, in a folder of its own."""
        city = simulate_city(people=2 * DEMO_PEOPLE, days=DEMO_DAYS)
        with self._turn:
            folder, grid = self.folder / DEMO, city.grid
            folder.mkdir(exist_ok=True)
            if not (folder / DEMO_TABLE).exists():
                save_trajectories(folder / DEMO_TABLE, city.released_people)
            box = (grid.west, grid.south, grid.east, grid.north)
            draft = Draft(box=box, cell="340m", covers="680m", max_speed="20km/h", data={"file": DEMO_TABLE})
            shown = self._taken(version, ReleaseFile(draft), Ground.of_city(city), folder)
            self._owned = True
            return shown

    def _taken(
        self, version: int, file: ReleaseFile, ground: Ground | None = None, folder: Path | None = None
    ) -> PageState:
        with self._current(version):
            if self.state == "running":
                raise InvalidInput("setting", "a change while people are released", "wait until the release has ended")
            self.file, self.ground, self.folder = file, ground or self.ground, folder or self.folder
            self.version += 1
            self._begin()
            return self.shown()

    @contextmanager
    def _current(self, version: int) -> Iterator[None]:
        """The turn of a request about the last version. Raises Stale for another."""
        with self._turn:
            if version != self.version:
                raise Stale
            yield

    def _begin(self) -> None:
        """Look at the setting: the last one's plans are given up, and those of this one begin."""
        last, self._seen = self._seen, None
        self._plan = self._budget = self._checked = None
        self._word, self._done, self._total, self.problem, self.state = "", 0, 0, "", "open"
        try:
            if self.file.draft.missing:
                return
            draft, setup = self.file.draft, setup_of(self.file.draft, self.file.members)
            seen = Figures(setup, draft, self.ground)
            draft.promise.in_steps(setup.model.step, 0)
        except DphmmError as error:
            self.problem = str(error)
            return
        if last is not None and last.plans_alike(seen):
            seen = replace(seen, made=last.made)
        self._seen, self.state = seen, "preview"
        before, version = self._planning, self.version
        self._planning = threading.Thread(target=self._plans, args=(version, seen, before), daemon=True)
        self._planning.start()

    # -- what budgets buy ---------------------------------------------------------------------------------------------

    def _plans(self, version: int, seen: Figures, before: threading.Thread | None) -> None:
        """Compute what budgets buy, until another version comes."""
        if before is not None:
            before.join()

        def progress(done: int, total: int) -> None:
            with self._current(version):
                self._done, self._total = done, total

        try:
            for people in (PREVIEW, FINAL):
                for budget, plan in seen.budgets(people, progress):
                    with self._current(version):
                        # A preview stays until there is as much of the final figures.
                        if self._budget is None or people == PREVIEW or len(budget.worth.rows) == budget.total:
                            self._budget, self._plan = budget, plan
                with self._current(version):
                    self.state = "final" if people == PREVIEW else "planned"
        except Stale:
            return
        except DphmmError as error:
            with self._turn:
                if version == self.version:
                    self.problem, self.state = str(error), "open"

    def progressed(self) -> Progressed:
        """The state, and what has been computed so far."""
        with self._turn:
            return Progressed(self.version, self.state, self._done, self._total, self._budget, self.problem, self._run)

    def look(self, version: int, number: int, draw: int) -> State:
        """The facts of one state, and a reader's findings from one answer about a simulated person in it."""
        with self._current(version):
            seen, plan = self._seen, self._plan
        if seen is None:
            raise InvalidInput("setting", "not finished", self.problem or self.file.draft.missing)
        epsilon: Any = seen.draft.epsilon or (_EPSILON if plan is None else plan.schedule.exact)
        return seen.state(number, epsilon, draw)

    # -- files --------------------------------------------------------------------------------------------------------

    @property
    def _has_table(self) -> bool:
        table = self.file.draft.data.get("file")
        return isinstance(table, str) and (self.folder / table).exists()

    def save(self, version: int) -> list[str]:
        """Write the pipeline file, and those that it names; returns their names."""
        with self._current(version):
            if not self._owned and (self.folder / self.name).exists():
                expected = f"dphmm studio {self.name}, which opens it; or another name: -o"
                raise InvalidInput(self.name, "a file that was there before", expected)
            files = self.file.files(self.name)
            for name, text in files.items():
                with replacing(self.folder / name) as temporary:
                    temporary.write_text(text, encoding="utf-8")
            self._owned = True
            return list(files)

    def companion(self, version: int, name: str) -> str:
        """The text of a file that the pipeline file names, or of itself."""
        with self._current(version):
            files = self.file.files(self.name)
        if name not in files:
            raise InvalidInput("file", repr(name), f"one of {', '.join(files)}")
        return files[name]

    # -- the owner's check, and the release ---------------------------------------------------------------------------

    def check(self, version: int) -> Checked:
        """Look at the table by ``dphmm check`` with the saved file: coarse figures, for its owner alone."""
        self._check_table(version)
        self.save(version)
        ended = subprocess.run(
            [sys.executable, "-m", "dphmm", "check", "--setup", self.name, "--json"],
            cwd=self.folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        try:
            facts = json.loads(ended.stdout)
        except ValueError:
            why = (
                f"type dphmm check --setup {self.name} in a terminal: its line may name rows, which stay off this page"
            )
            raise InvalidInput(str(self.file.draft.data["file"]), "a table that cannot be checked", why) from None
        budget = facts["budget"] or {}
        checked = Checked(
            figures={name: facts[name] for name in _COARSE},
            budget={name: budget[name] for name in _OF_BUDGET if budget.get(name) is not None},
            rejected=sum(facts["rejected"].values()),
            stops=len(facts["stops"]),
            doubtful=bool(facts["other_people"]) or facts["most_rows"] == 1 < facts["people"],
        )
        with self._current(version):
            self._checked = checked
        return checked

    def _check_table(self, version: int) -> None:
        with self._current(version):
            if self._seen is None:
                raise InvalidInput("setting", "not finished", self.problem or self.file.draft.missing)
            if not self._has_table:
                raise InvalidInput("table", "none here", "dphmm studio people.csv, or the demo")

    def ask(self, version: int) -> Asked:
        """The spending of a release and its number of people, with the word that agrees to it, once."""
        with self._turn:
            self._check_table(version)
            if self.state not in ("planned", "released", "failed") or self._checked is None or self._budget is None:
                raise InvalidInput(
                    "release", "before the figures are there", "the final figures, and the owner's check"
                )
            if self._checked.stops:
                raise InvalidInput("release", "a table that the check stops", "a table that can be meant")
            against = next((row.against for row in self._budget.worth.rows if row.own), [])
            if against and not self.file.draft.epsilon:
                expected = "a smaller budget, larger cells, or an epsilon that you name"
                raise InvalidInput("budget", f"a plan that is not advised: {'; '.join(against)}", expected)
            self._asked += 1
            self._word = f"{version}.{self._asked}"
            assert self._seen is not None
            people, noun = int(self._checked.figures["people"] or 0), self._seen.setup.noun
            spends = written(self.file.draft.promise, noun, people, noun_words(noun)["people"])
            known = int(self._checked.budget.get("known", 0))
            again = f" The ledger knows {known} of them: answers that it has are given again, and spend nothing."
            return Asked(spends + again * bool(known), self._word)

    def release(self, version: int, word: str) -> Progressed:
        """Begin ``dphmm run`` with the saved file; one that was interrupted goes on."""
        with self._current(version):
            if not self._word or word != self._word:
                raise InvalidInput("release", "without the word that agrees to it", "the question first")
            self._word = ""
            self.save(version)
            text = self.file.text(self.name)
            stages = [stage for stage in _STAGES if f"\n[{stage}]\n" in text]
            self.state, self._run = "running", Run([], stages)
            self._child = subprocess.Popen(
                [sys.executable, "-m", "dphmm", "run", self.name],
                cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
        threading.Thread(target=self._follow, args=(self._child,), daemon=True).start()
        return self.progressed()

    def _follow(self, child: subprocess.Popen[str]) -> None:
        """Read how far the release is, until it ends: names of stages, and no other word of a stage that reads rows."""
        assert child.stderr is not None and child.stdout is not None and self._run is not None
        error = ""
        for line in child.stderr:
            stage = _STAGE.match(line)
            with self._turn:
                if stage is not None:
                    self._run = msgspec.structs.replace(self._run, stages=[*self._run.stages, stage[1]])
                elif line.startswith("error: "):
                    error = line.strip()
        with child:
            printed = child.stdout.read().splitlines()
        code = child.returncode
        last = self._run.stages[-1] if self._run.stages else ""
        page = Path(printed[-1]) if printed else Path()
        page = page if page.is_absolute() else self.folder / page
        with self._turn:
            done = code in (0, 3)
            self._report = page if done and page.name == "report.html" and page.is_file() else None
            hidden = f"type dphmm run {self.name} in a terminal: it says why, and goes on where this stopped"
            ends = {0: "", **_CODES} if error or done else {}
            line = error if not done and last in _PUBLIC and error else ends.get(code, f"stopped; {hidden}")
            self._run = msgspec.structs.replace(self._run, ended=True, released=done, line=line)
            self.state, self._child = "released" if done else "failed", None
            # The ledger knows these people now.
            self._checked = None if done else self._checked

    @property
    def report(self) -> str | None:
        """The page of the last release."""
        return None if self._report is None else self._report.read_text(encoding="utf-8")

    def close(self) -> None:
        """Give up computations, and end a release as Ctrl-C would: stored answers stay, and it can be resumed."""
        with self._turn:
            self.version += 1
            child = self._child
        if child is not None:
            child.terminate()
            child.wait()
