"""What a page is made of, read from files; each that does not belong to the release is refused in one line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphmm.cli.options import loaded_model, loaded_policy, tables_given
from dphmm.cli.outcomes import named, one_line
from dphmm.errors import InvalidInput

if TYPE_CHECKING:
    from dphmm.audit.released_file import ReleasedFile
    from dphmm.batch import Progress
    from dphmm.cli.console import Console
    from dphmm.markov.model import MarkovModel
    from dphmm.policy.graph import PolicyGraph
    from dphmm.report.assembling import Made
    from dphmm.report.content import ReleaseReport
    from dphmm.session.subjects import Subjects
    from dphmm.states.space import StateSpace
    from dphmm.storage.statement_types import ReleaseStatement
    from dphmm.types import IntArray

_NOTHING_ELSE = dict.fromkeys(("epsilon", "constraint", "mechanism", "scope", "flat", "start", "protection"))
_OPTIONS = {
    "user": "--user",
    "ledger": "--ledger",
    "smoothed": "--smoothed",
    "truth": "--truth",
    "released": "RELEASED",
}
_NO_POLICY = (
    "The policy was not given, and the privacy statement has only its hash: what hides a state at each step is not "
    "shown."
)


def gathered(given: Mapping[str, Any], console: Console, progress: Progress | None) -> ReleaseReport:
    """The report that the command line asks for. Raises InvalidInput."""
    from dphmm.storage.inputs import checked_input, steady

    path = checked_input(given["released"], "RELEASED")
    model, space = loaded_model(given["model"])
    try:
        with steady(path) as sha256:
            _check_model(path, given["model"], model)
            file = _released(path, space)
        return _report(given, path, sha256, file, (model, space), console, progress)
    except InvalidInput as error:
        raise named(error, _OPTIONS) from None


def _report(
    given: Mapping[str, Any],
    path: Path,
    sha256: str,
    file: ReleasedFile,
    public: tuple[MarkovModel, StateSpace],
    console: Console,
    progress: Progress | None,
) -> ReleaseReport:
    from contextlib import ExitStack
    from dataclasses import replace

    from dphmm.audit.attacks.truth import answer_of, begins_of
    from dphmm.audit.released import opened
    from dphmm.cli.report_totals import totals
    from dphmm.report.assembling import release_report

    made, notes = _made(given, path, sha256, file, public, console)
    file = file.answered()
    if given["truth"] is not None:
        notes.append("This page was made with the true trajectories; leave out --truth for one that can be published.")
    # A file's name is somebody else's text, which may turn what stands around it about.
    title = given["title"] or f"What was released: {one_line(path.name)}"
    with ExitStack() as held:
        ledger = None if given["ledger"] is None else held.enter_context(opened(given["ledger"]))
        query = made.statement.query
        rows = (begins_of(ledger, query, file), answer_of(ledger, query, file, made.statement))
        parts = _beside(given, file, public, rows)
        report, plans = release_report(
            title, file, made, users=given["users"], ledger=ledger, progress=progress, notes=notes, **parts
        )
        spent = totals(report, ledger, made, plans)
    return replace(report, totals=spent, pictured=_pictured(report))


def _pictured(report: ReleaseReport) -> IntArray:
    """The first day of the first explored subject; where there are no times, some steps."""
    rows = report.explored[0][:_PICTURED]
    if report.time is None:
        return rows
    days = report.time[rows] // 86_400
    first: IntArray = rows[days == days[0]]
    return first


#: Steps of a picture at most: those of a day, one a minute.
_PICTURED = 1440


def _check_model(path: Path, given: str, model: MarkovModel) -> None:
    """Refuse another model than the statement names, before the rows are read as answers of its states.

    Where there is no statement, the rows say more of what the file is.
    """
    from dphmm.storage.statement import load_statement, statement_path

    beside = statement_path(path)
    if not beside.exists():
        return
    named_there = load_statement(path).model.sha256
    if named_there != model.digest:
        came = f"{one_line(Path(given).name)} (sha256 {model.digest[:12]})"
        made_with = f"sha256 {one_line(named_there[:12])} in {one_line(beside.name)}"
        raise InvalidInput("--model", came, f"the model that {one_line(path.name)} was made with ({made_with})")


def _released(path: Path, space: StateSpace) -> ReleasedFile:
    """The released file; what an audit would convict it for is refused here."""
    from dphmm.audit.findings import Findings
    from dphmm.audit.released_file import ReleasedFile

    findings = Findings()
    file = ReleasedFile.read(path, space, findings)
    if findings.sentences:
        raise InvalidInput("RELEASED", findings.sentences[0], "a file as dphmm release wrote it; dphmm audit says more")
    return file


def _made(
    given: Mapping[str, Any],
    path: Path,
    sha256: str,
    file: ReleasedFile,
    public: tuple[MarkovModel, StateSpace],
    console: Console,
) -> tuple[Made, list[str]]:
    """What the release was made with, as its statement says and the files confirm; and notes for the page."""
    from dphmm.audit.restated import restated
    from dphmm.report.assembling import Made
    from dphmm.storage.statement import load_statement, statement_path
    from dphmm.storage.statement_types import member

    model, space = public
    name = one_line(statement_path(path).name)
    statement = load_statement(path)
    space = _as_merged(given, statement, model, space)
    if statement.space.sha256 != space.digest:
        raise InvalidInput("--model", f"another space than {name} names", "the model of the release")
    policy = _policy(given, statement, model, space)
    if policy is not None and policy.digest != statement.policy.sha256:
        raise InvalidInput("--policy", f"another policy than {name} names", "the policy of the release")
    tables = tables_given(given, model, space)
    policies = [] if policy is None else [policy, *_other_policies(tables, policy)]
    statement, other = restated(statement, name, file, model, space, policies)
    notes = []
    if other:
        said = "sentences that are not those of its choices" if len(other) > 1 else f"other words for {other[0]}"
        notes.append(f"{name} has {said}: this page says what the choices promise, in the words of this dphmm.")
    if member(statement, "file.sha256") != sha256:
        notes.append(f"{one_line(path.name)} was changed since its privacy statement was written.")
        console.warn(f"{path.name} was changed since {name} was written")
    if policy is None:
        return Made(model, space, statement), [*notes, _NO_POLICY]
    subjects = _subjects(given, path, sha256, file, (model, policy, space), console)
    return Made(model, space, statement, subjects), notes


def _other_policies(tables: Mapping[str, Any], policy: PolicyGraph) -> list[PolicyGraph]:
    """The policies of single steps."""
    chosen = (one.get("policy") for one in tables.get("step_choices", {}).values())
    return list({one.digest: one for one in chosen if one is not None and one.digest != policy.digest}.values())


def _as_merged(
    given: Mapping[str, Any], statement: ReleaseStatement, model: MarkovModel, space: StateSpace
) -> StateSpace:
    """The space of the model with the states merged that the policy lists, or the statement without a policy."""
    from dphmm.storage.statement_types import member

    if given["policy"] is not None:
        return loaded_policy(given["policy"], model)[1]
    pairs = member(statement, "space.merged.pairs")
    return space if pairs is None else space.merged(pairs)


def _policy(
    given: Mapping[str, Any], statement: ReleaseStatement, model: MarkovModel, space: StateSpace
) -> PolicyGraph | None:
    """The policy that was given, or the one that the statement describes, where it does."""
    from dphmm.policy._kinds import from_description

    if given["policy"] is not None:
        return loaded_policy(given["policy"], model)[0]
    described = statement.policy
    if described.parameters is None:
        return None
    try:
        policy = from_description({**described.parameters, "kind": described.kind}, space, model)
    except InvalidInput:
        policy = None
    return policy if policy is not None and policy.digest == described.sha256 else None


def _subjects(
    given: Mapping[str, Any], path: Path, sha256: str, file: ReleasedFile, public: Any, console: Console
) -> Subjects:
    from dphmm.cli.smooth_options import release_subjects
    from dphmm.storage.smoothed import ReleasedRows

    rows = ReleasedRows(file.users, None, file.step, file.lattice, file.epsilon, file.plans)
    tables = {name: given[name] for name in ("choices", "initials")}
    return release_subjects(path, sha256, rows, public, _NOTHING_ELSE | tables, console)[0]


def _beside(
    given: Mapping[str, Any],
    file: ReleasedFile,
    public: tuple[MarkovModel, StateSpace],
    rows: tuple[Mapping[str, str], str | None],
) -> dict[str, Any]:
    """The smoothed rows and the truth, where they were given; ``rows``: what is known of which rows were released."""
    from dphmm.audit.attacks.truth import truth_of
    from dphmm.report.companions import smoothed_answers

    model, space = public
    parts: dict[str, Any] = {}
    if given["smoothed"] is not None:
        parts["smoothed"] = smoothed_answers(given["smoothed"], file, space)
    if given["truth"] is not None:
        true = truth_of(file, given["truth"], model, space, *rows)
        parts |= {"truth": true.answers, "true_states": true.states, "outside": true.outside}
    return parts
