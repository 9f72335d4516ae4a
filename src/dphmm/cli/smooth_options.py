"""What a release was made with: its privacy statement, what the command line says otherwise, and the defaults."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphmm.errors import InvalidInput

if TYPE_CHECKING:
    from dphmm.cli.console import Console
    from dphmm.markov.model import MarkovModel
    from dphmm.policy.graph import PolicyGraph
    from dphmm.session.subjects import Subjects
    from dphmm.states.space import StateSpace
    from dphmm.storage.smoothed import ReleasedRows
    from dphmm.storage.statement_types import ReleaseStatement

Public = tuple["MarkovModel", "PolicyGraph", "StateSpace"]

_DEFAULTS = {
    "constraint": "support",
    "mechanism": "auto",
    "scope": "global",
    "flat": "thicken",
    "thickness": "null",
    "protection": "auto",
}
ASKED = ("constraint", "mechanism", "scope", "flat", "start", "protection")


def release_subjects(
    path: Path, sha256: str, rows: ReleasedRows, public: Public, given: Mapping[str, Any], console: Console
) -> tuple[Subjects, str]:
    """What the subjects of a released file with this SHA-256 were released under, and what it was read from."""
    from dphmm._checks import exact_epsilon, stated_epsilon
    from dphmm.cli.options import tables_given
    from dphmm.decoding import epsilon_of
    from dphmm.session.setting import Setting
    from dphmm.session.subjects import Subjects
    from dphmm.storage.statement import load_statement, statement_path
    from dphmm.storage.statement_types import member

    beside, statement = statement_path(path), None
    tables = tables_given(given, public[0], public[2])
    if beside.exists():
        statement = load_statement(path)
        stated, source = _stated(statement, beside.name, public), beside.name
        if member(statement, "file.sha256") != sha256:
            console.warn(f"{path.name} was changed since {beside.name} was written")
    else:
        stated, source = {}, "the command line and the file"
    written = {**_DEFAULTS, "start": public[0].start, **stated}
    written |= {name: given[name] for name in ASKED if given[name] is not None}
    if given["epsilon"] is not None:
        written["epsilon"] = str(exact_epsilon(stated_epsilon(given["epsilon"])))
    if "epsilon" not in written:
        written["epsilon"] = str(epsilon_of(rows))
    varies = {"varies": ",".join(tables["varies"])} if tables.get("varies") else {}
    setting = Setting.read(written | varies, *public)
    subjects = Subjects(setting, tables.get("initials"), tables.get("step_choices"))
    if statement is not None:
        _check_tables(statement, beside.name, subjects)
    return subjects, source


def _check_tables(statement: ReleaseStatement, name: str, subjects: Subjects) -> None:
    """The public tables must be those that the statement tells of."""
    from msgspec import UNSET

    from dphmm.storage.statement import check_subjects

    try:
        check_subjects(statement, subjects)
    except InvalidInput as error:
        option = {"step_choices": "--choices", "initials": "--initials"}[error.field]
        given = subjects.setting.varies if option == "--choices" else subjects.initials
        told = statement.varied if option == "--choices" else statement.beginnings
        came = f"another table than {name} tells of" if given else f"nothing, and {name} tells of a table"
        if told is UNSET:
            raise InvalidInput(option, f"a table, and {name} tells of none", "nothing") from None
        raise InvalidInput(option, came, "the public table that the release was made with") from None


def _stated(statement: ReleaseStatement, name: str, public: Public) -> dict[str, str]:
    """The options in a statement, which must be about this model, policy and space."""
    from dphmm.session.plan import ALGORITHM_VERSION
    from dphmm.storage.statement import stated_options

    model, policy, space = public
    made = statement.software
    if made.algorithm_version != ALGORITHM_VERSION:
        came = f"one of algorithm version {made.algorithm_version} ({made.version})"
        raise InvalidInput("statement", came, f"version {ALGORITHM_VERSION}: other versions make other plans")
    for part, due, own in (
        ("model", statement.model.sha256, model.digest),
        ("policy", statement.policy.sha256, policy.digest),
        ("space", statement.space.sha256, space.digest),
    ):
        if due != own:
            field = "--policy" if part == "policy" else "--model"
            raise InvalidInput(field, f"another {part} than {name} names", f"the {part} of the release")
    return stated_options(statement)
