"""What a page is made of, read from files; each that does not belong to the release is refused in one line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphmm.cli.options import loaded_model, loaded_policy, tables_given
from dphmm.cli.outcomes import named, one_line
from dphmm.errors import InvalidInput

if TYPE_CHECKING:
    from dphmm.accounting.ledger import Ledger
    from dphmm.audit.released_file import ReleasedFile
    from dphmm.cli.console import Console, Work
    from dphmm.markov.model import MarkovModel
    from dphmm.policy.graph import PolicyGraph
    from dphmm.report.assembling import TrueRows
    from dphmm.report.content import Made, ReleaseReport
    from dphmm.session.subjects import Subjects
    from dphmm.states.space import StateSpace
    from dphmm.storage.statement_types import ReleaseStatement

_NOTHING_ELSE = dict.fromkeys(("epsilon", "constraint", "mechanism", "scope", "flat", "start", "protection"))
_OPTIONS = {
    "user": "--user",
    "ledger": "--ledger",
    "backdrop": "--backdrop",
    "truth": "--truth",
    "released": "RELEASED",
}
_NO_POLICY = (
    "The policy was not given, and the privacy statement has only its hash: give --policy to see up to which distance "
    "places are covered, and what a reader believes."
)


def gathered(given: Mapping[str, Any], console: Console, progress: Work | None) -> ReleaseReport:
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
    progress: Work | None,
) -> ReleaseReport:
    from contextlib import ExitStack

    from dphmm.audit.attacks.truth import answer_of, begins_of
    from dphmm.audit.released import opened
    from dphmm.report.assembling import release_report
    from dphmm.report.backdrop import read_backdrop

    backdrop = None if given["backdrop"] is None else read_backdrop(given["backdrop"], public[1])
    with ExitStack() as held:
        ledger = None if given["ledger"] is None else held.enter_context(opened(given["ledger"]))
        made, notes = _made(given, path, sha256, file, public, console, ledger)
        query = made.statement.query
        known = (begins_of(ledger, query, file), answer_of(ledger, query, file, made.statement))
        return release_report(
            given["title"] or "What was released",
            # A file's name is somebody else's text, which may turn what stands around it about.
            one_line(path.name),
            file,
            made,
            users=given["users"],
            ledger=ledger,
            truth=None if given["truth"] is None else _truth(given["truth"], file, public, known),
            backdrop=backdrop,
            notes=notes,
            progress=progress,
            stage=None if progress is None else progress.stage,
        )


def _truth(
    path: str, file: ReleasedFile, public: tuple[MarkovModel, StateSpace], known: tuple[Mapping[str, str], str | None]
) -> TrueRows:
    """The truth of the file's rows; ``known``: what is known of which rows were released."""
    from dphmm.audit.attacks.truth import truth_of
    from dphmm.report.assembling import TrueRows

    true = truth_of(file, path, *public, *known)
    return TrueRows(true.answers, true.outside)


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
    ledger: Ledger | None,
) -> tuple[Made, list[str]]:
    """What the release was made with, as its statement says and the files confirm; and notes for the page."""
    from dphmm.audit.released_statement import confirmed
    from dphmm.audit.restated import restated
    from dphmm.report.content import Made
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
        console.warn(f"{name} has {said}: dphmm audit says which")
    if member(statement, "file.sha256") != sha256:
        notes.append(f"{one_line(path.name)} was changed since its privacy statement was written.")
        console.warn(f"{path.name} was changed since {name} was written")
    if policy is None:
        statement = confirmed(statement, name, file, model, None, ledger)
        return Made(model, space, statement), [*notes, _NO_POLICY]
    subjects = _subjects(given, path, sha256, file, (model, policy, space), console)
    statement = confirmed(statement, name, file, model, subjects.setting, ledger)
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
    from dphmm.policy.graph import from_description

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
