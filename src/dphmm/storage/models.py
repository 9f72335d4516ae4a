"""Markov models as files, whom a model was fitted on, and facts about a model for people and for JSON.

``model.npz`` is a file of arrays with one JSON text: ``meta`` (JSON: step, start,
provenance, the space's description), ``initial``, ``indptr``, ``indices``, ``data`` and the space's arrays under
``space/``. A model with a jump has its rate as ``jump`` in ``meta``, and an array ``jump``: where it leads. One with
slots has their rule as ``slots`` in ``meta``, an array ``changes`` of the clock's zone, and the rows of its K matrices
one after another: ``indptr`` (K N + 1,) is of all of them.

``model.npz.people``, a file of the owner's beside the model, says whom it was fitted on. A model that was fitted
without privacy promises nothing to the people it was fitted on, so a release has to know whether they are the people
released. The file holds a random key and the keyed digest of every user name of the table the model was fitted on.
Whoever can read it can try names, so only its owner can. It belongs to one model file, by its SHA-256. Nothing of it is
in the model. A model learned with differential privacy has none, because the file would tell without noise that one
person's name is in it.

A file of arrays is a ZIP of plain NumPy arrays with a hash over them, no pickles. Its members are ``sha256`` (of all
the others), ``format``, and arrays ``<name>.npy``, of which ``meta`` is a JSON text. They are stored, not compressed: a
file cannot unpack to more than its own size. The hash finds accidents, not forgery; a forged file still has to pass
the checks of the kind that it claims to be.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import secrets
import struct
import zipfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dphmm.accounting.person import person_key
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel, absorbing_secrets, closed_classes
from dphmm.markov.slots import Slots
from dphmm.markov.stochastic import Jump, check_ends
from dphmm.states.space import StateSpace
from dphmm.storage.inputs import PathLike, checked_input, file_digest, replacing

_MEMBERS = 64
_HASH = re.compile(rb"sha256:([0-9a-f]{64})")
# The header exactly as numpy writes it, for plain numbers and text: nothing is evaluated, objects cannot be
# named.
_HEADER = re.compile(
    rb"\{'descr': '([<>|][biufUS][0-9]{1,9})', 'fortran_order': (True|False), 'shape': \(([0-9, ]*)\), \} *\n"
)

Arrays = dict[str, NDArray[Any]]


def write_arrays(path: Path, meta: dict[str, Any], arrays: Arrays, format_number: int) -> None:
    """Write at once or not at all, byte for byte the same for equal arrays and descriptions."""
    if not path.parent.is_dir():
        raise InvalidInput("path", str(path), "a file in a folder that exists")
    text = json.dumps(meta, sort_keys=True, allow_nan=False)
    whole = {
        "format": np.array(format_number, dtype=np.int64),
        **arrays,
        "meta": np.frombuffer(text.encode(), dtype=np.uint8),
    }
    _replace(path, {f"{name}.npy": _encoded(array) for name, array in whole.items()})


def read_arrays(path: Path, latest_format: int, writer: str, what: str = "model") -> Arrays:
    """The arrays of a file that ``writer`` wrote; ``what`` it is called.

    Raises InvalidInput, in one line naming the file: not a file, none of this kind, cut short or changed (with the hash
    that was expected), or written in a newer format.
    """
    if not path.is_file():
        raise InvalidInput(what, str(path), f"an existing {what} file")
    with path.open("rb") as file:
        return _read(path, file, latest_format, writer, what)


def check_members(path: Path, arrays: Arrays, needed: Sequence[str], what: str = "model") -> None:
    """InvalidInput naming the first array that is not there."""
    missing = [name for name in needed if name not in arrays]
    if missing:
        raise InvalidInput(str(path), f"an archive without {missing[0]}", f"a {what} file")


def description(path: Path, arrays: Arrays, keys: Sequence[str], what: str = "model") -> list[Any]:
    """The values of the JSON text ``meta`` under these keys."""
    try:
        meta = json.loads(arrays["meta"].tobytes())
        return [meta[key] for key in keys]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InvalidInput(str(path), f"a description that is not JSON of a {what}", f"a {what} file") from None


def compressed_rows(path: Path, arrays: Arrays, several: int = 1) -> Any:
    """The csr_array of ``indptr``, ``indices`` and ``data``: square matrices, ``several`` below one another."""
    indptr, indices = arrays["indptr"], arrays["indices"]
    try:
        if indptr.dtype.kind == "i" and indices.dtype.kind == "i":
            n = len(indptr) - 1
            return sparse.csr_array((arrays["data"], indices, indptr), shape=(n, n // several), copy=True)
    except (ValueError, TypeError):
        pass
    raise InvalidInput(str(path), "rows that are no sparse matrix", "a model file")


def content_hash(contents: dict[str, bytes]) -> str:
    """Hex SHA-256 of all members, by name."""
    digest = hashlib.sha256()
    for name in sorted(contents):
        digest.update(f"{name} {len(contents[name])}\n".encode() + contents[name])
    return digest.hexdigest()


def _replace(path: Path, contents: dict[str, bytes]) -> None:
    # The hash comes first, so that even a file cut short can say which contents it should have had.
    members = {"sha256": f"sha256:{content_hash(contents)}\n".encode(), **contents}
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            # A ZipInfo of its own date (1980): equal models give equal files.
            archive.writestr(zipfile.ZipInfo(name), content)


def _read(path: Path, file: IO[bytes], latest_format: int, writer: str, what: str) -> Arrays:
    expected = _expected(file, writer, what)
    unreadable = InvalidInput(str(path), f"a file that cannot be read as a {what}", expected)
    try:
        with zipfile.ZipFile(file) as archive:
            contents = {name: archive.read(name) for name in _names(path, archive)}
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, struct.error):
        raise unreadable from None
    except (ValueError, OSError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise unreadable from None
    _check_format(path, contents, latest_format, what)
    written = contents.pop("sha256", b"")
    digest = content_hash(contents)
    if written != f"sha256:{digest}\n".encode():
        raise InvalidInput(str(path), f"contents with SHA-256 {digest[:16]}", expected)
    return {name.removesuffix(".npy"): _decoded(path, name, content) for name, content in contents.items()}


def _expected(file: IO[bytes], writer: str, what: str) -> str:
    match = _HASH.search(file.read(1024))
    file.seek(0)
    if match is None:
        return f"a {what} file written by {writer}"
    return f"contents with SHA-256 {match[1][:16].decode()}: it was cut short or changed"


def _names(path: Path, archive: zipfile.ZipFile) -> list[str]:
    members = archive.infolist()
    names = [member.filename for member in members]
    if len(members) > _MEMBERS or len(set(names)) < len(names):
        raise InvalidInput(str(path), f"{len(members)} members", f"at most {_MEMBERS}, each once")
    for member in members:
        if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
            raise InvalidInput(str(path), f"{member.filename!r} compressed", "members stored uncompressed")
    # Members that overlap would still make a small file long to read.
    total = sum(member.file_size for member in members)
    if total > path.stat().st_size:
        raise InvalidInput(str(path), f"{total} bytes in members", "at most the file's own size")
    return names


def _check_format(path: Path, contents: dict[str, bytes], latest: int, what: str) -> None:
    # Before the hash: a newer format may hash its members in another way.
    if "format.npy" not in contents:
        raise InvalidInput(str(path), "an archive without a format number", f"a {what} file")
    number = _decoded(path, "format.npy", contents["format.npy"])
    if number.shape != () or number.dtype.kind != "i" or number < 1:
        raise InvalidInput(str(path), "a format number that is none", f"a {what} file")
    if number > latest:
        raise InvalidInput(str(path), f"{what} format {int(number)}", f"at most {latest}: upgrade dphmm to read it")


def _encoded(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array, order="C"), version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def _decoded(path: Path, name: str, content: bytes) -> NDArray[Any]:
    start = 10 + int.from_bytes(content[8:10], "little")
    header = _HEADER.fullmatch(content[10:start])
    if content[:8] != b"\x93NUMPY\x01\x00" or header is None:
        raise InvalidInput(str(path), f"{name!r}, which is no plain array", "numbers and text only")
    try:
        dtype = np.dtype(header[1].decode())
    except TypeError:
        raise InvalidInput(str(path), f"{name!r} of an unknown type", "numbers and text only") from None
    shape = tuple(int(length) for length in header[3].split(b",") if length.strip())
    if math.prod(shape) * dtype.itemsize != len(content) - start:
        raise InvalidInput(str(path), f"{name!r} of another size than it says", "a file as dphmm wrote it")
    return np.ndarray(shape, dtype, content, start, order="F" if header[2] == b"True" else "C")


#: Raised whenever an older dphmm could misread a file: 2 is a model with merged states, 3 one with a jump, 4 one with
#: secrets, 5 one with slots, others 1.
FORMAT = 5
_MODEL = ("format", "meta", "initial", "indptr", "indices", "data")


def save_model(model: MarkovModel, path: str | os.PathLike[str]) -> None:
    """Write the model to ``path``: at once or not at all, byte for byte the same for equal models."""
    if not isinstance(model, MarkovModel):
        raise InvalidInput("model", type(model).__name__, "a MarkovModel; save_hidden_model writes hidden ones")
    meta: dict[str, Any] = {
        "step": model.step,
        "start": model.start,
        "provenance": model.provenance,
        "space": None,
    }
    transition = model.matrices[0] if model.slots is None else sparse.vstack(model.matrices, format="csr")
    arrays: Arrays = {
        "initial": model.initial,
        "indptr": transition.indptr,
        "indices": transition.indices,
        "data": transition.data,
    }
    if model.space is not None:
        meta["space"], space_arrays = model.space.describe()
        arrays |= {f"space/{name}": np.asarray(array) for name, array in space_arrays.items()}
    number = 2 if model.space is not None and len(model.space.merges) else 1
    if model.jump is not None:
        meta["jump"], arrays["jump"], number = model.jump.rate, model.jump.into, 3
    if model.secrets is not None:
        arrays["secrets"], number = model.secrets, 4
    if model.slots is not None:
        meta["slots"], arrays["changes"], number = model.slots.describe(), model.slots.changes, FORMAT
    write_arrays(Path(path), meta, arrays, number)


def load_model(path: str | os.PathLike[str]) -> MarkovModel:
    """Read a model written by :func:`save_model`.

    Raises InvalidInput, in one line naming the file: not a file, not a model, cut short or changed (with the
    hash that was expected), written in a newer format, or a hidden Markov model; and as MarkovModel does.
    """
    path = Path(path)
    arrays = read_arrays(path, FORMAT, "save_model")
    if "emissionprob" in arrays:
        expected = "a Markov model of observed states (load_hidden_model reads hidden ones)"
        raise InvalidInput(str(path), "a hidden Markov model", expected)
    check_members(path, arrays, _MODEL)
    step, start, provenance, described = description(path, arrays, ("step", "start", "provenance", "space"))
    slots = None
    if "changes" in arrays:
        (rule,) = description(path, arrays, ("slots",))
        slots = Slots.described(rule, arrays["changes"])
    return MarkovModel(
        arrays["initial"],
        compressed_rows(path, arrays) if slots is None else _matrices(path, arrays, slots.n),
        space=_space(described, arrays),
        step=step,
        start=start,
        provenance=provenance,
        jump=_jump(path, arrays),
        secrets=arrays.get("secrets"),
        slots=slots,
    )


def _matrices(path: Path, arrays: Arrays, several: int) -> list[Any]:
    """The matrices of the slots, whose rows are below one another."""
    rows = compressed_rows(path, arrays, several)
    n = rows.shape[1]
    try:
        check_ends(rows.indptr)
        rows.check_format(full_check=True)
    except ValueError:
        n = 0
    if rows.shape[0] != several * n:
        raise InvalidInput(str(path), f"rows that are no {several} matrices", "a model file") from None
    return [rows[slot * n : (slot + 1) * n] for slot in range(several)]


def _jump(path: Path, arrays: Arrays) -> Jump | None:
    if "jump" not in arrays:
        return None
    (rate,) = description(path, arrays, ("jump",))
    return Jump.of(rate, len(arrays["initial"]), arrays["jump"])


def _space(described: Any, arrays: Arrays) -> Any:
    if described is None:
        return None
    if not isinstance(described, dict):
        raise InvalidInput("space", type(described).__name__, "the description of a space")

    prefix = "space/"
    return StateSpace.from_description(
        described, {k.removeprefix(prefix): a for k, a in arrays.items() if k.startswith(prefix)}
    )


#: Of the file of whom a model was fitted on.
PEOPLE_FORMAT = 1
_PEOPLE = "the people a dphmm model was fitted on"
_PEOPLE_EXPECTED = "a file as dphmm fit writes it beside a model; remove it, or fit the model again"
_DIGEST_BYTES = 16
_KEY, _DIGEST = re.compile("[0-9a-f]{64}"), re.compile(f"[0-9a-f]{{{2 * _DIGEST_BYTES}}}")


class People:
    """The people a model was fitted on, as keyed digests of their user names."""

    def __init__(self, key: bytes, digests: Iterable[bytes]) -> None:
        self._key = key
        self._digests = frozenset(digests)

    def __repr__(self) -> str:
        return "People(...)"

    def has_one_of(self, users: Iterable[str]) -> bool | None:
        """True if one of these user names is among the people; None for no names at all.

        Names are compared as text, without regard to capitals, to spaces at the ends and to how Unicode writes a
        character. Two names of one person are two names.
        """
        names = list(users)
        return any(_digest(self._key, name) in self._digests for name in names) if names else None


def people_path(model: PathLike) -> Path:
    """The path of the people of a model file: model.npz.people."""
    file = Path(model)
    return file.with_name(f"{file.name}.people")


def save_people(model: PathLike, users: Iterable[str]) -> Path:
    """Write whom the model in a file was fitted on, for its owner alone, and return where.

    Call it after `save_model` or `save_hidden_model`; every call draws a new key. Raises InvalidInput for a file that
    is no model, and for a model learned with differential privacy.

    Examples
    --------
    >>> save_model(model, "model.npz")  # doctest: +SKIP
    >>> save_people("model.npz", trajectories.users)  # doctest: +SKIP
    """
    file = Path(model)
    if _provenance_of(file).get("private") is True:
        raise InvalidInput("model", f"{file}, learned with privacy", "a model fitted without: others have no such file")
    key = secrets.token_bytes(32)
    document = {
        "format": PEOPLE_FORMAT,
        "kind": _PEOPLE,
        "model_sha256": file_digest(file),
        "key": key.hex(),
        "digests": sorted({_digest(key, name).hex() for name in users}),
    }
    path = people_path(file)
    with replacing(path, private=True) as temporary:
        temporary.write_text(json.dumps(document) + "\n", encoding="utf-8")
    return path


def load_people(model: PathLike, ignored: Callable[[str], None] | None = None) -> People | None:
    """The people of a model file, as `save_people` wrote them; None where there are none of this very file.

    ``ignored`` gets a sentence where the file belongs to another model, or to this one before it was changed. Raises
    InvalidInput for a file that cannot be read.
    """
    path = people_path(model)
    if not path.exists():
        return None
    document = _read_people(path)
    if document["model_sha256"] != file_digest(model):
        if ignored is not None:
            ignored(
                f"{path.name} is of another model than {Path(model).name}, or of that one before it was changed: it is "
                "ignored, so it is not known by names whom the model was fitted on"
            )
        return None
    return People(bytes.fromhex(document["key"]), map(bytes.fromhex, document["digests"]))


def check_people(model: PathLike) -> None:
    """Raise InvalidInput where a fit would replace a file of another kind by the people of its model."""
    path = people_path(model)
    if path.exists():
        _read_people(path)


def remove_people(model: PathLike) -> None:
    """Remove the people of a model file that is about to be replaced."""
    people_path(model).unlink(missing_ok=True)


def _digest(key: bytes, name: str) -> bytes:
    # Somebody who is spelt otherwise in another file is found, whatever the rule of either is.
    text = person_key(name)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=key, digest_size=_DIGEST_BYTES).digest()


def _provenance_of(model: Path) -> dict[str, Any]:
    (provenance,) = description(model, read_arrays(model, FORMAT, "save_model"), ("provenance",))
    return provenance if isinstance(provenance, dict) else {}


def _read_people(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(checked_input(path, "people").read_text(encoding="utf-8"))
        known = document["format"] == PEOPLE_FORMAT and document["kind"] == _PEOPLE
        texts = [document["model_sha256"], document["key"], *document["digests"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput("people of the model", path.name, _PEOPLE_EXPECTED) from None
    forms = [_KEY, _KEY] + [_DIGEST] * (len(texts) - 2)
    if not known or not all(isinstance(t, str) and form.fullmatch(t) for t, form in zip(texts, forms, strict=True)):
        raise InvalidInput("people of the model", path.name, _PEOPLE_EXPECTED)
    people: dict[str, Any] = document
    return people


# As the remarks list states: (0, 4, 7) or (0, 1, 2, 3, 4, ...).
_NUMBERS = re.compile(r"\([0-9]+(, [0-9]+)*(, \.\.\.)?\)")
_NUMBER = re.compile("[0-9]+")


def space_facts(space: StateSpace) -> dict[str, Any]:
    """The facts about the states."""
    if space.has_labels:
        facts = {"kind": space.kind, "states": space.n_states, "answers": "the names themselves"}
        return {**facts, "answer_unit": space.unit, "sha256": space.digest}
    return {
        "kind": space.kind,
        "states": space.n_states,
        "dimension": space.dimension,
        "answer_unit": space.unit,
        "pitch": [float(pitch) for pitch in space.pitch],
        "snapping_error": [float(error) for error in space.snap_error],
        "sha256": space.digest,
    }


def model_facts(model: MarkovModel) -> dict[str, Any]:
    """The facts about possible moves, and about the origin of the model."""
    provenance = model.provenance
    return {
        "possible_moves": model.n_transitions,
        **({} if model.secrets is None else {"latent_states": model.n_states, "secrets": model.n_secrets}),
        "step_seconds": model.step,
        "start": model.start,
        "possible_at_start": int(model.secrets_among(model.support_at_start).sum()),
        "jump": None if model.jump is None else model.jump.rate,
        **({} if model.slots is None else {"slots": [model.slots.name(slot) for slot in range(model.slots.n)]}),
        "absorbing_states": 0 if model.jump is not None else len(absorbing_secrets(model)),
        "closed_classes": 1 if model.jump is not None else int(closed_classes(model.moves).max()) + 1,
        "method": str(provenance.get("method", "unknown")),
        "private": provenance.get("private"),
        "fitted_on_people": provenance.get("n_users"),
        "moves_impossible_for_others": provenance.get("moves_impossible_for_others") if model.jump is None else 0.0,
        "sha256": model.digest,
        "notes": [by_name(note, model.space) for note in model.notes],
    }


def state_list(model: MarkovModel, space: StateSpace) -> list[dict[str, Any]]:
    """Every state: number, name, answer, on a map latitude and longitude, and whether no move leaves it."""
    absorbing = set() if model.jump is not None else set(absorbing_secrets(model).tolist())
    states: list[dict[str, Any]] = [
        {"number": number, "name": name, "answer": answer, "absorbing": number in absorbing}
        for number, (name, answer) in enumerate(zip(space.names, space.own_answers.tolist(), strict=True))
    ]
    places = space.to_latlon(space.own_answers)
    if places is not None:
        for state, lat, lon in zip(states, *(degrees.tolist() for degrees in places), strict=True):
            state |= {"lat": round(lat, 7), "lon": round(lon, 7)}
    return states


def by_name(note: str, space: StateSpace | None) -> str:
    """A remark about states with their names where it has their numbers."""
    if space is None:
        return note
    names = space.names
    return _NUMBERS.sub(lambda found: _NUMBER.sub(lambda number: names[int(number[0])], found[0]), note)
