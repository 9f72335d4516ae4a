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
    from dphmm.session.setting import Setting
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
    "protection": "nearest",
}
_ASKED = ("constraint", "mechanism", "scope", "flat", "start")


def release_setting(
    path: Path, sha256: str, rows: ReleasedRows, public: Public, given: Mapping[str, Any], console: Console
) -> tuple[Setting, str]:
    """The setting of a released file with this SHA-256, and what they were read from."""
    from dphmm._checks import exact_epsilon
    from dphmm.cli.options import stated_epsilon
    from dphmm.decoding import epsilon_of
    from dphmm.session.setting import Setting
    from dphmm.storage.statement import load_statement, statement_path
    from dphmm.storage.statement_types import member

    beside = statement_path(path)
    if beside.exists():
        statement = load_statement(path)
        stated, source = _stated(statement, beside.name, public), beside.name
        if member(statement, "file.sha256") != sha256:
            console.warn(f"{path.name} was changed since {beside.name} was written")
    else:
        stated, source = {}, "the command line and the file"
    written = {**_DEFAULTS, "start": public[0].start, **stated}
    written |= {name: given[name] for name in _ASKED if given[name] is not None}
    if given["epsilon"] is not None:
        written["epsilon"] = str(exact_epsilon(stated_epsilon(given["epsilon"])))
    if "epsilon" not in written:
        written["epsilon"] = str(epsilon_of(rows))
    return Setting.read(written, *public), source


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
