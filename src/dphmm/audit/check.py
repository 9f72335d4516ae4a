"""`check_release`: compare a finished release with its statement, its ledger and public data.

Three parts look at it. Each distinct plan is made again from public data and verified (`dphmm.audit.replay`, which
shares nothing with the planner but its result). Rows, plans and what follows from model and policy are written in plain
form, and `verify_release.py` compares all of it in a process of its own, which has nothing of this package. It compares
the rows of the ledger, too. A part that nobody looked at is a line of its own, and never an acquittal.

Proof: docs/proofs/ledger.md, docs/proofs/promise.md.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from copy import copy
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Unpack

from msgspec import UNSET
from msgspec.structs import replace

from dphmm._notebook import html_lines
from dphmm.accounting.event import LearningEvent, learning_event
from dphmm.accounting.ledger import Ledger
from dphmm.accounting.person import UNICODE
from dphmm.accounting.records import in_short
from dphmm.audit import verify_release
from dphmm.audit.findings import Findings
from dphmm.audit.plain_plans import plain_plans
from dphmm.audit.released import ReleasedFile, read_text
from dphmm.audit.replay import OTHER_FILES, Answer, Replay, number_of
from dphmm.errors import DphmmError, InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.policy.graph import PolicyGraph, from_description
from dphmm.session.options import ReleaseChoices
from dphmm.session.rounds import schedule_of
from dphmm.session.setting import Setting, StepChoices, Subjects, checked_steps, names_chosen
from dphmm.statement.files import read_statement, statement_path
from dphmm.statement.learning import Learning
from dphmm.statement.origin import Whom
from dphmm.statement.parts import Part, document, member
from dphmm.statement.release import Beginnings, CoveredDistance, Model, Policy, ReleaseStatement, Space, Varied, couples
from dphmm.states.space import StateSpace
from dphmm.storage.inputs import checked_input, file_digest
from dphmm.storage.json_lines import is_json_lines
from dphmm.storage.models import save_model
from dphmm.storage.policies import save_policy
from dphmm.storage.released import as_released
from dphmm.storage.tables import open_parquet, read_table, read_whole, table_format, table_of, write_table

NANO = 10**9
#: Numbers of steps that a statement's choices may name, so that a program can make them again.
_MOST_CHOSEN = 10**6
OK, WRONG, LEFT = "ok", "wrong", "not looked at"


@dataclass(frozen=True, eq=False)
class CheckedRelease:
    """The result of checking a release. ``checks`` are (word, check, figure): ok, wrong, stated or not looked at.

    ``verdicts`` are the exact audits of the plans that were made again; of ``plans`` distinct ones there may be more.
    """

    rows: int
    users: int
    plans: int
    verdicts: tuple[Any, ...]
    checks: tuple[tuple[str, str, str], ...]
    plans_made: tuple[Any, ...] = field(default=(), repr=False)

    def plain_plans(self) -> dict[str, Any]:
        """The plans that were made again in plain form, for `verify_release.py`: public data, ready for JSON.

        Source: docs/files.md.
        """
        return plain_plans(self.plans_made)

    def beside(self, checks: Sequence[tuple[str, str, str]]) -> CheckedRelease:
        """The same with more that was looked at."""
        return dataclasses.replace(self, checks=(*self.checks, *checks))

    def _of(self, word: str) -> tuple[str, ...]:
        return tuple(f"{check}: {figure}" for outcome, check, figure in self.checks if outcome == word)

    @property
    def findings(self) -> tuple[str, ...]:
        """The faults that were found."""
        return self._of(WRONG)

    @property
    def notes(self) -> tuple[str, ...]:
        """The checks that could not be made."""
        return self._of(LEFT)

    @property
    def convicted(self) -> bool:
        """True if something is wrong with the file, or with a plan it was drawn under."""
        return bool(self.findings)

    @property
    def code(self) -> int:
        """The exit code of `dphmm check-release`: 0, 1 where something is wrong, 5 where not all was looked at."""
        if self.convicted:
            return verify_release.WRONG
        return verify_release.NOT_LOOKED_AT if self.notes else verify_release.OK

    @property
    def lines(self) -> list[str]:
        """The verdict in prose."""
        word = "CONVICTED" if self.convicted else "nothing is wrong"
        word += ", and not everything was looked at" if self.notes and not self.convicted else ""
        plans = "1 plan" if self.plans == 1 else f"{self.plans:,} plans"
        said = [f"released: {self.rows:,} rows of {self.users:,} users under {plans}: {word}"]
        said += [f"  wrong: {finding}" for finding in self.findings]
        said += [f"  not looked at: {note}" for note in self.notes]
        said += [f"  stated: {line}" for line in self._of("stated")]
        worst = max(self.verdicts, key=lambda verdict: verdict.loss, default=None)
        said.append(f"  {len(self.verdicts)} of {plans} made again and verified; {len(self._of(OK))} checks are ok")
        if worst is not None and worst.worst is not None:
            said.append(f"  over all of them the worst required pair loses {in_short(worst.loss)}")
        said += [line for verdict in self.verdicts if verdict.convicted for line in verdict.lines][:12]
        return [*said, f"  {verify_release.NOT_CHECKED}"]

    def _repr_html_(self) -> str:
        return html_lines(self.lines)

    def document(self) -> dict[str, Any]:
        """The verdict for machines."""
        return {
            "convicted": self.convicted,
            "code": self.code,
            "rows": self.rows,
            "users": self.users,
            "plans": self.plans,
            "plans_verified": len(self.verdicts),
            "plans_convicted": [verdict.document() for verdict in self.verdicts if verdict.convicted],
            "findings": list(self.findings),
            "notes": list(self.notes),
            "checks": [list(line) for line in self.checks],
        }


def check_release(
    released: Any,
    model: MarkovModel,
    policy: PolicyGraph | None = None,
    space: StateSpace | None = None,
    epsilon: Any = None,
    *,
    ledger: Ledger | None = None,
    statement: str | os.PathLike[str] | None = None,
    most_plans: int = 1000,
    initials: Mapping[str, Any] | None = None,
    step_choices: StepChoices | None = None,
    plain: str | os.PathLike[str] | None = None,
    ledger_file: Path | None = None,
    varies: Sequence[str] = (),
    **choices: Unpack[ReleaseChoices],
) -> CheckedRelease:
    """Check a finished release: its rows, its statement, its plans, and with a ledger the stored rows and losses.

    Parameters
    ----------
    released : a file, whose privacy statement is looked for beside it, or a table. A file may be the lines of a stream
        (.jsonl, .ndjson).
    model, policy, space : those of the release. The policy is the one that the statement describes, if none is
        given and it does; the space is the model's, with the states merged that the statement names.
    ledger : the ledger of its releases; without one nobody knows if rows were paid for.
    statement : the path of the privacy statement, if not beside the file. All choices of the release are in it.
    most_plans : verify so many of the distinct plans.
    initials, step_choices : those of the release; choices of steps are made from the statement, if none are given.
    epsilon, choices : of a table that has no statement; where there is one, it must say the same.
    plain : a folder for the plain form of everything that `verify_release.py` reads; by default one that goes again.
    ledger_file : the file of the ledger, which is then read as it is.

    Raises InvalidInput for a file that cannot be read at all.

    Source: docs/audit.md.
    """
    with ExitStack() as held:
        folder = Path(held.enter_context(TemporaryDirectory()) if plain is None else plain)
        folder.mkdir(exist_ok=True)
        made = _Release(released, model, ledger, folder, most_plans)
        made.read(statement, policy, space)
        varies = varies or names_chosen(checked_steps(step_choices or {}))
        made.choose(epsilon, initials, step_choices, varies, choices)
        made.make_plans_again()
        made.write(ledger_file)
        return made.verify()


class _Release:
    """One release on its way through the three parts."""

    def __init__(self, released: Any, model: MarkovModel, ledger: Ledger | None, folder: Path, most_plans: int) -> None:
        self.path = Path(released) if isinstance(released, (str, os.PathLike)) else None
        if self.path is not None and not is_json_lines(checked_input(self.path, "released")):
            table_format(self.path, "released")
        self.released = read_whole(released)
        self.model, self.ledger, self.folder, self.most = model, ledger, folder, most_plans
        self.checks: list[tuple[str, str, str]] = []
        self.findings = Findings()
        self.facts: dict[str, Any] = {}
        self.looked_at: dict[str, str] = {}
        self.arguments: list[str] = []
        self.statement: ReleaseStatement | None = None
        self.policy: PolicyGraph | None = None
        self.file: ReleasedFile | None = None
        self.subjects: Subjects | None = None
        self.replay: Replay | None = None
        #: Whether the number of each step in the table of choices is known.
        self.numbered = True

    def leave(self, check: str, why: str) -> None:
        """Add a line about a part that nobody looks at."""
        self.checks.append((LEFT, check, verify_release.printable(why)))

    def read(
        self, statement: str | os.PathLike[str] | None, policy: PolicyGraph | None, space: StateSpace | None
    ) -> None:
        """The statement, states and policy, and the rows as a table and in plain form."""
        beside = None if self.path is None else statement_path(self.path)
        where = checked_input(statement, "statement") if statement is not None else beside
        if where is not None and where.exists():
            self.arguments += ["--statement", str(where)]
            try:
                self.statement = read_statement(where)
            except InvalidInput as error:
                # What is wrong with it is for the checker to say.
                self.leave("plans", f"the statement cannot be read ({error})")
        unmerged = self.model.space if space is None else space
        if unmerged is None:
            raise InvalidInput("model", "one without states", "a model with its space, as load_model reads it")
        merged = None if self.statement is None else member(self.statement, "space.merged.pairs")
        try:
            self.space = unmerged if space is not None or not merged else unmerged.merged(merged)
        except InvalidInput:
            self.space = unmerged
        self.policy = policy if policy is not None or self.statement is None else self._described(self.statement.policy)
        self.rows, table = _plain_rows(self.released, self.folder)
        if self.path is None:
            self.facts["file"] = None
        elif table is not None:
            self.facts["file"] = {"name": self.path.name, "sha256": file_digest(self.path)}
            self._look_at_parquet(self.path, table)
        try:
            self.file = ReleasedFile.read(self.released, self.space)
        except DphmmError as error:
            self.leave("plans", f"rows of another form ({error})")

    def _described(self, told: Policy) -> PolicyGraph | None:
        """The policy that a statement describes, if it does and that has its hash."""
        if told.parameters is None:
            return None
        try:
            policy = from_description({**told.parameters, "kind": told.kind}, self.space, self.model)
        except (DphmmError, RecursionError):
            return None
        return policy if policy.digest == told.sha256 else None

    def _look_at_parquet(self, path: Path, table: Any) -> None:
        """Check the bytes of a Parquet file beside its rows, and that a release writes the same file of these rows."""
        self.checks += look_beside_columns(path)
        again = self.folder / "again.parquet"
        write_table(again, table)
        if again.read_bytes() == path.read_bytes():
            self.checks.append((OK, "bytes", "the Parquet file written again from its rows is the same"))
        else:
            why = "written again from its rows it is another Parquet file: what is between the values is not looked at"
            self.leave("bytes", why)
        again.unlink()

    def choose(
        self,
        epsilon: Any,
        initials: Mapping[str, Any] | None,
        step_choices: StepChoices | None,
        varies: Sequence[str],
        choices: ReleaseChoices,
    ) -> None:
        """Set up the setting of the release: from its statement, or, for a table without one, from these arguments."""
        statement, policy = self.statement, self.policy
        if policy is None:
            self.leave("plans", "the statement does not describe its policy: give the policy")
            return
        try:
            if statement is None:
                setting = Setting.of(self.model, policy, self.space, epsilon, varies=varies, **choices)
                self.subjects = Subjects(setting, initials, step_choices)
                self.facts["query"] = setting.query
                return
            asking, query = statement.asking, statement.query
            written = statement.choices | ({} if asking is None else {"schedule": asking.written()})
            varying = statement.varies or list(names_chosen(checked_steps(step_choices or {})))
            written |= {"varies": ",".join(varying)} if varying else {}
            made = step_choices if step_choices is not None or not statement.varies else self._made_choices(statement)
            policies = [choice["policy"] for choice in (made or {}).values() if choice.get("policy") is not None]
            setting = Setting.read(written, self.model, policy, self.space, query, policies)
            self.subjects = Subjects(setting, initials, made)
            if epsilon is not None or choices:
                known: ReleaseChoices = {**setting.options.choices, "schedule": asking, "query": query, **choices}
                exact = setting.options.epsilon if epsilon is None else epsilon
                other = Setting.of(self.model, policy, self.space, exact, varies=varies, **known)
                same = (other.options, other.schedule, other.query) == (setting.options, setting.schedule, query)
                self.findings.require(same, "the statement is of a release under other choices than were given")
        except (DphmmError, ValueError) as error:
            self.leave("plans", f"they cannot be made again ({error})")
        if statement is not None and statement.beginnings is not UNSET and initials is None:
            self.leave("plans", "people begin elsewhere than the model says: give the table of who begins where")
            self.subjects = None

    def _made_choices(self, told: ReleaseStatement) -> dict[int, dict[str, Any]]:
        """The choices of steps that a statement describes. Raises InvalidInput where it leaves some out."""
        assert told.varied is not UNSET
        chosen: dict[int, dict[str, Any]] = {}
        for entry in told.varied.chosen:
            policy = None if entry.policy is None else self._described(entry.policy)
            many = sum(last - first + 1 for first, last in entry.steps) + len(chosen) > _MOST_CHOSEN
            if many or (policy is None and entry.policy is not None) or entry.protection == "a function":
                raise InvalidInput("step_choices", "choices that are not all in the statement", "give step_choices")
            partners = None if entry.partners is None else dict(entry.partners)
            each = {"epsilon": entry.epsilon, "policy": policy, "protection": entry.protection, "partners": partners}
            choice: dict[str, Any] = {name: value for name, value in each.items() if value is not None}
            choice |= {} if entry.epsilon is None else {"epsilon": Fraction(entry.epsilon)}
            for first, last in entry.steps:
                chosen |= dict.fromkeys(range(first, last + 1), choice)
        return chosen

    def make_plans_again(self) -> None:
        """Make every plan of a row from public data, verify it, and look at its consequences."""
        file, subjects = self.file, self.subjects
        if file is None or subjects is None:
            return
        self.replay = replay = Replay(subjects, self.ledger, self.findings, self.most)
        beliefs = subjects.setting.needs_beliefs
        look = self._follow if beliefs else self._plan_each
        known: set[Any] = set()
        try:
            for user, rows in file.by_user().items():
                look(user, rows, known)
        except DphmmError as error:
            self.leave("plans", f"they cannot be made again ({error})")
            return
        for sentence in replay.untold.sentences:
            self.leave("plans", sentence)
        if len(replay.met) > len(replay.verdicts):
            left = len(replay.met) - len(replay.verdicts)
            self.leave("plans", f"{left} of them: only the first {self.most} were verified")
        for verdict in replay.verdicts.values():
            if verdict.convicted:
                self.findings.add(f"plan {verdict.plan[:12]}: {'; '.join(verdict.findings)[:200]}")
        if not self.findings.sentences and not replay.untold.sentences and len(replay.met) == len(replay.verdicts):
            made = f"{len(replay.met):,} plans were made again from model and policy, and verified by dphmm"
            keys = ["planned states", "possible states", "losses", "places"]
            keys += ["chosen steps"] * self.numbered + ["paced steps"] * beliefs
            self.looked_at |= dict.fromkeys(keys, made)

    def _origin(self, user: str, rows: list[int]) -> str:
        """The origin of a user's steps: from the ledger, else from the time of a row."""
        assert self.file is not None and self.subjects is not None
        header = None if self.ledger is None else self.ledger.header(user, self.subjects.setting.query)
        from_row = self.file.origin(rows[0], self.model.step)
        origin = from_row if header is None else header.options.get("origin", "")
        self.numbered &= number_of(origin, 1) is not None or not self.subjects.chosen
        return origin

    def _plan_each(self, user: str, rows: list[int], known: set[Any]) -> None:
        """The plans of a user's answers if none depends on an answer: each distinct one is made once."""
        file, replay, subjects = self.file, self.replay, self.subjects
        assert file is not None and replay is not None and subjects is not None
        chosen, setting = bool(subjects.chosen), subjects.of(user)
        origin = self._origin(user, rows) if chosen else ""
        for answer in file.answers(rows):
            key = setting, answer.t, answer.plan, (origin, answer.epsilon) if chosen else ""
            if answer.plan and key not in known:
                known.add(key)
                replay.plan_of(user, answer, origin)

    def _follow(self, user: str, rows: list[int], _: set[Any]) -> None:
        """The plans along a user's history; the steps that a paced schedule asks are looked at, too."""
        file, replay, subjects = self.file, self.replay, self.subjects
        assert file is not None and replay is not None and subjects is not None
        origin, history = self._origin(user, rows), file.answers(rows)
        if self.ledger is not None:
            entries = self.ledger.entries(user, subjects.setting.query)
            stored = [Answer.of(entry, self.space.dimension) for entry in entries if entry.kind == "release"]
            history = sorted([*stored, *(answer for answer in history if not answer.plan)], key=lambda one: one.t)
        replayed = replay.follow(user, history, origin)
        if replayed is not None and subjects.setting.paces:
            self._look_at_steps(user, origin, list(zip(history, replayed, strict=True)))

    def _look_at_steps(self, user: str, origin: str, replayed: list[Any]) -> None:
        """Check that a paced schedule asks exactly at the steps that were asked."""
        assert self.subjects is not None
        setting = self.subjects.setting
        others = [] if self.ledger is None else [q for _, q in self.ledger.sessions_of([user]) if q != setting.query]
        due = schedule_of(setting, origin, self.ledger, user)
        assert due is not None
        spent: list[tuple[int, Fraction]] = []
        if others:
            # Other queries of a person draw on the same account: then a step may be left out for them.
            self.leave("schedule", f"which steps were asked of {user[:60]!r}, who has other queries too")
            return
        for place, (answer, made) in enumerate(replayed):
            asked = made.plan is not None
            # The draws of other queries on the account are known to the ledger alone.
            room = due.promise.room(spent, answer.t)
            right = asked in due.may_choose(answer.t, made.spread, room, shared=self.ledger is None)
            if not right and self.ledger is None and place < answer.t - 1:
                self.leave("schedule", f"which steps were asked of {user[:60]!r}: {OTHER_FILES}")
                return
            wrong = "a step that is asked, or not asked, other than the schedule says"
            self.findings.require(right, wrong, f"user {user!r}, step {answer.t}")
            spent += [(answer.t, due.exact)] * asked

    def write(self, ledger_file: Path | None) -> None:
        """Everything else in plain form: model, policy, plans, facts, and the ledger's rows of these people."""
        # With the states that are answered: those of another query may have other answers, or be merged.
        model = copy(self.model)
        model.space = self.space
        save_model(model, self.folder / "model.npz")
        self.arguments += ["--model", str(self.folder / "model.npz")]
        if self.policy is not None:
            save_policy(self.policy, self.folder / "policy.json", self.space, self.model)
            self.arguments += ["--policy", str(self.folder / "policy.json")]
        if self.replay is not None:
            self._write("plans", plain_plans(self.replay.plans_made.values()))
        if self.statement is not None:
            self.facts |= facts_of(self.statement, self.model, self.space, self.policy, self.subjects)
        facts = {"format": 1, "kind": "facts of a dphmm release", "members": self.facts, "looked_at": self.looked_at}
        self._write("facts", facts)
        if ledger_file is not None and ledger_file.is_file():
            self.arguments += ["--ledger", str(ledger_file)]
        elif self.ledger is not None:
            users = [] if self.file is None else list(dict.fromkeys(self.file.users))
            self._write("ledger", ledger_rows(self.ledger, users))

    def _write(self, name: str, told: dict[str, Any]) -> None:
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(told, allow_nan=False) + "\n", encoding="utf-8")
        self.arguments += [f"--{name}", str(path)]

    def verify(self) -> CheckedRelease:
        """Run `verify_release.py` on all of it, in a process that has nothing of this package; the verdict."""
        program = [sys.executable, "-I", str(verify_release.__file__), str(self.rows), "--json", *self.arguments]
        done = subprocess.run(program, capture_output=True, text=True, check=False)
        if done.returncode == verify_release.UNREADABLE or not done.stdout:
            got, _, expected = done.stderr.strip().removeprefix("error: ").partition("; expected ")
            raise InvalidInput("released", got[-300:], expected or "a released file")
        self.checks += [(WRONG, "plans", verify_release.printable(sentence)) for sentence in self.findings.sentences]
        verdict = json.loads(done.stdout)
        # The facts are this program's own.
        words = {verify_release.BY_FACTS: OK}
        self.checks += [(words.get(word, word), check, figure) for word, check, figure in verdict["lines"]]
        return CheckedRelease(
            rows=verdict["rows"],
            users=verdict["users"],
            plans=verdict["plans"],
            verdicts=() if self.replay is None else tuple(self.replay.verdicts.values()),
            checks=tuple(self.checks),
            plans_made=() if self.replay is None else tuple(self.replay.plans_made.values()),
        )


def look_beside_columns(path: Path) -> list[tuple[str, str, str]]:
    """Findings about the parts of a Parquet file beside its columns: notes, and bytes that no reader sees."""
    with open_parquet(path) as opened:
        schema, metadata = opened.schema_arrow, opened.metadata
        notes = {**(schema.metadata or {}), **(metadata.metadata or {})}.keys() - {b"ARROW:schema"}
        fields = [schema.field(name).metadata for name in schema.names]
        groups = [metadata.row_group(n) for n in range(metadata.num_row_groups)]
        parts = [group.column(n).total_compressed_size for group in groups for n in range(group.num_columns)]
    findings = []
    if notes or any(each and set(each) != {b"PARQUET:field_id"} for each in fields):
        named = ", ".join(sorted(key.decode("utf-8", "replace") for key in notes))
        findings.append((WRONG, "bytes", verify_release.printable(f"notes beside the columns: {named}")))
    # Magic, columns, the footer, its length, and magic again.
    data = path.read_bytes()
    gap = len(data) - 12 - sum(parts) - int.from_bytes(data[-8:-4], "little")
    if gap:
        findings.append((WRONG, "bytes", f"{gap:,} bytes of the Parquet file belong to no column"))
    return findings


def _plain_rows(released: Any, folder: Path) -> tuple[Path, Any]:
    """The file of text that has these rows, and of a frame or a Parquet file its table, too: then it is a new one."""
    if not isinstance(released, (str, os.PathLike)):
        table = table_of(released)
    elif is_json_lines(released) or table_format(released) != ".parquet":
        return Path(released), None
    else:
        table = read_table(released, text={"user", "z", "plan"})
    path = folder / "rows.csv"
    try:
        table = as_released(table)
        write_table(path, table)
    except (ValueError, NotImplementedError, TypeError):
        # What a library says of a cell may quote it.
        raise InvalidInput("released", "cells of another kind", "columns as dphmm released them") from None
    return path, table


def facts_of(
    told: ReleaseStatement,
    model: MarkovModel,
    space: StateSpace,
    policy: PolicyGraph | None,
    subjects: Subjects | None = None,
) -> dict[str, Any]:
    """Members of a statement that follow from model, policy and choices, by their path, as JSON has them.

    What learning and releases cost together follows from the sum of costs, too: the checker compares it with the rows.
    """
    facts: dict[str, Any] = {f"space.{name}": value for name, value in document(Space.of(space)).items()}
    facts.setdefault("space.merged", None)
    whom = Whom(told.model.people, told.model.people_known_by)
    facts |= {"model.because": None} | {f"model.{key}": fact for key, fact in document(Model.of(model, whom)).items()}
    if policy is not None:
        facts |= {f"policy.{name}": value for name, value in document(Policy.of(policy)).items()}
        policies = [policy] if subjects is None else subjects.policies
        if subjects is not None or told.varied is UNSET:
            facts["covered_distance"] = _part(CoveredDistance.of(policies, space))
            facts["sequence.couples"] = couples(model, policy, subjects)
    if subjects is not None:
        facts |= {"varied": _part(Varied.of(subjects)), "beginnings": _part(Beginnings.of(subjects))}
    event = learning_event(model.provenance)
    if not isinstance(event, LearningEvent):
        facts["learning"] = None
    else:
        cost = None
        if whom.people != "others":
            with suppress(verify_release.Unknown, ValueError):
                cost = verify_release.total(told.totals.cost_sum)
        learning = document(Learning.of(event, cost))
        known = cost is not None or whom.people == "others"
        facts |= {f"learning.{name}": value for name, value in learning.items() if name != "together" or known}
    return facts


def _part(part: Any) -> Any:
    """A part of a statement as JSON has it; None where there is none."""
    return json.loads(json.dumps(document(part))) if isinstance(part, Part) else None


def ledger_rows(ledger: Ledger, users: list[str]) -> dict[str, Any]:
    """The rows of people in a ledger, as `verify_release.py` reads them from a ledger's file."""
    sessions, releases, accounts = [], [], []
    for header in ledger.headers_of(users):
        promise = ledger.caps(header.subject).promise
        written = None if promise is None else promise.written()
        sessions.append([header.subject, header.query, written, header.options_text])
        for entry in ledger.entries(header.subject, header.query):
            z = None if entry.z is None else ",".join(map(str, entry.z))
            steps, paid = entry.through - entry.t + 1, [str(entry.epsilon or 0), str(entry.cost or 0), entry.secure]
            releases.append([header.subject, header.query, entry.t, steps, z, entry.plan_hash, *paid])
    for user, spent in zip(users, ledger.spent_of(users), strict=True):
        caps = ledger.caps(user)
        limits = [None if cap is None else str(cap) for cap in (caps.epsilon, caps.cost)]
        accounts.append([user, str(spent.epsilon), ceil(Fraction(spent.cost) * NANO), *limits])
    moments = {user: times.tolist() for user, times in zip(users, ledger.moments_of(users), strict=True) if len(times)}
    named = {"kind": "rows of a dphmm ledger", "spelling": ledger.spelling, "unicode": UNICODE}
    blocks = [[user, *bounds] for user in users for bounds in ledger.blocks(user)]
    rows = {"sessions": sessions, "releases": releases, "accounts": accounts, "blocks": blocks, "moments": moments}
    return {**named, **rows}


def require_right(
    statement: ReleaseStatement,
    name: str,
    released: Any,
    facts: Mapping[str, Any] | None = None,
    ledger: dict[str, Any] | None = None,
    model: MarkovModel | None = None,
    *,
    whole: bool = True,
) -> list[str]:
    """Compare rows with their statement by `verify_release`, in this process; returns the parts it could not look at.

    ``facts`` as `facts_of`; ``ledger`` as `ledger_rows`, with the ``model`` whose answers it holds. ``whole``: the rows
    are all of the statement's.

    Raises InvalidInput for the first thing that is wrong.
    """
    # That other files have answers, too, and which file this is, is compared by check_release.
    looked_at = dict.fromkeys(("file", "totals"), "not compared here")
    known = {"members": {"file": None, **(facts or {})}, "looked_at": looked_at}
    checks, public = _OF_WHOLE if whole else _OF_A_PART, None
    with TemporaryDirectory() as folder:
        rows = read_text(_plain_rows(released, Path(folder))[0])
        if ledger is not None and model is not None:
            save_model(model, Path(folder) / "model.npz")
            checks, public = (*checks, "ledger"), verify_release.ModelFile(Path(folder) / "model.npz")
    checker = verify_release.Checker(rows, document(statement), public, ledger=ledger, facts=known)
    checker.partial = not whole
    lines = checker.run(*checks).lines
    wrong = next((f"{check}: {figure}" for word, check, figure in lines if word == WRONG), None)
    if wrong is not None:
        raise InvalidInput("statement", f"{name}, and {wrong}", "a released file and its statement as dphmm wrote them")
    # Replayable noise is said by the statement.
    unsaid = ("members", "ledger")
    return [f"{check}: {figure}" for word, check, figure in lines if word == LEFT and check not in unsaid]


def require_confirmed(
    statement: ReleaseStatement,
    path: Path,
    file: ReleasedFile,
    model: MarkovModel,
    space: StateSpace,
    policy: PolicyGraph | None,
    subjects: Subjects | None,
    ledger: Ledger | None = None,
) -> tuple[ReleaseStatement, list[str]]:
    """The statement of the ``file`` at a path without its unconfirmed parts, and the parts that could not be compared.

    Without a policy these are a covered distance and the description of the policy. Raises InvalidInput as
    `require_right`.
    """
    facts = facts_of(statement, model, space, policy, subjects)
    rows = None if ledger is None else ledger_rows(ledger, list(dict.fromkeys(file.users)))
    name = statement_path(path).name
    placed = copy(model)
    placed.space = space
    left = require_right(statement, name, path, facts, rows, placed)
    known = statement
    if known.sequence is not UNSET:
        known = replace(known, sequence=replace(known.sequence, couples=facts.get("sequence.couples", "unknown")))
    if policy is None:
        unconfirmed = replace(known.policy, kind=f"{known.policy.kind}, as {name} says", parameters=None)
        known = replace(known, covered_distance=None, policy=unconfirmed)
    return known, left


_OF_A_PART = (
    "rows",
    "people",
    "columns",
    "statement",
    "private",
    "epsilon",
    "chosen steps",
    "sums",
    "days",
    "promise",
    "schedule",
    "times",
    "members",
)
_OF_WHOLE = (*_OF_A_PART, "counts", "couples", "promise of the ledger", "schedule of the ledger")
