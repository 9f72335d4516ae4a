"""Policies as files: ``policy.json``, a format number, the kind, its parameters, and the hashes of what it is about.

Nothing that can be rebuilt is stored: a radius policy is made again from its space, a transition policy from its
model. A policy is for one state space; loading it for another is refused, naming both hashes. A policy whose space has
merged states lists them: `load_policy_space` merges them in the model's space. Other choices of a release's plans
may stand beside it (`load_setting`): they are no part of the policy, whose hash does not depend on them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphmm.errors import InvalidInput
from dphmm.policy._edges import read_json
from dphmm.policy.graph import PolicyGraph, from_description, needs
from dphmm.session.options import PLAN_CHOICES, Options
from dphmm.storage.inputs import replacing
from dphmm.storage.made_tables import load_table

if TYPE_CHECKING:
    from dphmm.markov.model import MarkovModel
    from dphmm.states.space import StateSpace

#: Raised whenever an older dphmm could misread a file: 2 is a policy of a space with merged states, all others are 1.
FORMAT = 2
_TABLE = ".npz"
_MEMBERS = {"format", "kind", "parameters", "space", "model"}


def save_policy(
    policy: PolicyGraph,
    path: str | os.PathLike[str],
    space: StateSpace | None = None,
    model: MarkovModel | None = None,
    setting: Mapping[str, str] | None = None,
) -> None:
    """Write the policy to ``path``, replacing what is there at once or not at all; equal policies give equal files.

    ``space`` defaults to the model's. ``setting`` : as `load_setting` returns it, a made table by its file. Raises
    InvalidInput where a radius policy comes without its space, a transition policy without its model, or either with
    one that would not give the same policy back; and for a setting that no release takes.
    """
    space = _space_of(space, model)
    described = policy.describe()
    # What could not be loaded must not be saved.
    from_description(described, space, model)
    _check_size("space", space, policy.n_states)
    merges = [] if space is None else space.merges.tolist()
    document = {
        "format": FORMAT if merges else 1,
        "kind": described.pop("kind"),
        "parameters": described,
        "space": None if space is None else space.digest,
        "model": model.digest if model is not None and needs(policy.describe(), "transition") else None,
    }
    if merges:
        document["merges"] = merges
    if setting:
        _checked_setting(setting, Path(), space is not None and space.has_labels)
        document["setting"] = dict(setting)
        if (table := setting.get("mechanism", "")).endswith(_TABLE):
            document["setting"]["mechanism"] = Path(os.path.relpath(table, Path(path).parent)).as_posix()
    text = json.dumps(document, sort_keys=True, allow_nan=False, ensure_ascii=True, indent=None) + "\n"
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="")


def load_policy(
    path: str | os.PathLike[str], space: StateSpace | None = None, model: MarkovModel | None = None
) -> PolicyGraph:
    """Read a policy written by :func:`save_policy`, for the space and model it will be used with.

    ``space`` defaults to the model's. Raises InvalidInput naming file, expected and found hash for another
    space or model; for a file that is no policy, repeats a key, or is of a newer format; where a space or model is
    needed; and where the file merges states that the space does not (`load_policy_space`).
    """
    space = _space_of(space, model)
    document = _document(path)
    if "merges" in document:
        _check_merged(str(path), document["merges"], space)
    if space is not None and document["space"] is not None:
        _check_hash("space", document["space"], space.digest)
    if model is not None and document["model"] is not None:
        _check_hash("model", document["model"], model.digest)
    policy = from_description({"kind": document["kind"], **document["parameters"]}, space, model)
    _check_size("space", space, policy.n_states)
    return policy


def load_policy_space(path: str | os.PathLike[str], space: StateSpace) -> StateSpace:
    """The space that the policy of a file is about: ``space``, with the states merged that the file lists.

    Releases, audits and smoothing take this space with the policy::

        space = dphmm.storage.load_policy_space("policy.json", model.space)
        policy = dphmm.storage.load_policy("policy.json", space, model)

    Raises InvalidInput for a file that is no policy, and for another space, naming both hashes.
    """
    document = _document(path)
    merged = space.merged(document.get("merges", ()))
    if document["space"] is not None:
        _check_hash("space", document["space"], merged.digest)
    return merged


def load_setting(path: str | os.PathLike[str], labels: bool = False) -> dict[str, str]:
    """The choices of plans in the file of a policy: constraint, mechanism, protection, start, each if it is there.

    A mechanism that is the file of a made table is read, and named by its reference. ``labels`` : True if answers are
    names. Raises InvalidInput for a file that is no policy, and for an invalid setting, naming its member::

        setting = dphmm.storage.load_setting("policy.json")
        dphmm.ReleaseSession(model, policy, space, 1, **setting)
    """
    return _checked_setting(_document(path).get("setting", {}), Path(path).parent, labels)


def _checked_setting(setting: Mapping[str, str], folder: Path, labels: bool) -> dict[str, str]:
    """A setting whose made table, named from ``folder``, is read. Raises InvalidInput for one that no release takes."""
    checked = dict(setting)
    if (table := checked.get("mechanism", "")).endswith(_TABLE):
        checked["mechanism"] = load_table(folder / table).reference
    Options.checked(1, labels=labels, **checked)
    return checked


def _check_merged(path: str, merges: Any, space: StateSpace | None) -> None:
    held = set() if space is None else set(map(tuple, space.merges.tolist()))
    missing = sum(tuple(pair) not in held for pair in merges)
    if missing:
        fault = f"a space without {missing} of the {len(merges)} merged states of {path}"
        raise InvalidInput("space", fault, "load_policy_space(path, space), which merges them")


def _space_of(space: StateSpace | None, model: MarkovModel | None) -> StateSpace | None:
    return model.space if space is None and model is not None else space


def _check_size(field: str, space: StateSpace | None, n: int) -> None:
    if space is not None and space.n_states != n:
        raise InvalidInput(field, f"{space.n_states} states", f"the policy's {n}")


def _check_hash(field: str, expected: str, found: str) -> None:
    if expected != found:
        raise InvalidInput(field, f"one with hash {found[:16]}", f"the policy's, with hash {expected[:16]}")


def _document(path: str | os.PathLike[str]) -> Any:
    document = read_json(path)
    _check_document(str(path), document)
    return document


def _check_document(path: str, document: Any) -> None:
    if not isinstance(document, dict) or not isinstance(document.get("format"), int):
        raise InvalidInput(path, "no format number", "a policy file written by save_policy")
    if document["format"] is True or document["format"] < 1:
        raise InvalidInput(path, f"format {document['format']}", "a policy file written by save_policy")
    if document["format"] > FORMAT:
        version = f"policy format {document['format']}"
        raise InvalidInput(path, version, f"at most {FORMAT}: upgrade dphmm to read it")
    members = _MEMBERS | {"merges"} if document["format"] > 1 else _MEMBERS
    if document.keys() - {"setting"} != members or not isinstance(document["parameters"], dict):
        raise InvalidInput(path, ", ".join(sorted(document)), ", ".join(sorted(members)))
    if "merges" in members and not _are_pairs(document["merges"]):
        raise InvalidInput(f"{path} merges", document["merges"], "pairs of a merged state and its partner")
    setting = document.get("setting", {})
    if not isinstance(setting, dict) or not all(
        name in PLAN_CHOICES and isinstance(value, str) for name, value in setting.items()
    ):
        raise InvalidInput(f"{path} setting", setting, f"a text for each of some of {', '.join(PLAN_CHOICES)}")
    if "kind" in document["parameters"]:
        raise InvalidInput(path, "a kind among the parameters", "a policy file written by save_policy")
    for field in ("space", "model"):
        if not isinstance(document[field], (str, type(None))):
            raise InvalidInput(f"{path} {field}", document[field], "a hash or null")


def _are_pairs(merges: Any) -> bool:
    if not isinstance(merges, list) or not merges:
        return False
    pairs = all(isinstance(pair, list) and len(pair) == 2 for pair in merges)
    return pairs and all(type(state) is int and 0 <= state < 2**31 for pair in merges for state in pair)
