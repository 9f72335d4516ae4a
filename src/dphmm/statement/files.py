"""The file of a statement beside a publication: written, read and compared.

Source: docs/files.md; ``privacy-statement.schema.json`` of this package says the format for other programs.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from dphmm.errors import InvalidInput
from dphmm.statement.parts import StatedFile, document, typed
from dphmm.statement.release import FORMAT, LONGEST_VALUE, WRITTEN, ReleaseStatement
from dphmm.storage.inputs import PathLike, checked_input, checked_output, file_digest, replacing, steady
from dphmm.storage.released import as_released
from dphmm.storage.tables import read_table, write_table

if TYPE_CHECKING:
    from typing import TypeAlias

    from dphmm.statement.query import QueryStatement
    from dphmm.statement.synthetic import SyntheticStatement

    AnyStatement: TypeAlias = ReleaseStatement | QueryStatement | SyntheticStatement


def write_statement(release: PathLike, statement: AnyStatement) -> Path:
    """Write the statement of a released file beside it, as ``<name>.privacy.json``; returns that path.

    Adds the file's name and SHA-256, so that the statement says which file it is about.
    """
    file = Path(release)
    path = statement_path(file)
    save_statement(path, statement, file.name, file_digest(file))
    return path


def save_statement(path: PathLike, statement: AnyStatement, name: str, sha256: str) -> None:
    """Write a statement to ``path``: about what is called ``name`` ("-" for a stream) and has this SHA-256."""
    whole = msgspec.structs.replace(statement, file=StatedFile(name=name, sha256=sha256))
    text = json.dumps(document(whole), indent=2, ensure_ascii=True, allow_nan=False) + "\n"
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def copy_release(released: PathLike, output: PathLike) -> int:
    """The rows of a released file as a table of another format, its statement beside it; return the number of rows.

    The statement is the same but for its member ``file``, which names the new file. Without one none is written.

    Raises InvalidInput for a file that is no table, one that is not the file of its statement, and an output that is
    none.
    """
    file = checked_input(released, "released")
    with steady(file) as sha256:
        table = as_released(read_table(file, text={"user", "z", "plan"}))
    statement = load_statement(file) if statement_path(file).exists() else None
    if statement is not None:
        changed = changed_words(statement, statement_path(file), file, sha256)
        if changed is not None:
            # A statement of these rows would hide that nobody released them.
            raise InvalidInput("released", changed, "the released file: dphmm release writes the folder again")
        checked_output(statement_path(output), [released, statement_path(released)])
    write_table(output, table, inputs=[released])
    if statement is not None:
        write_statement(output, statement)
    return len(table)


def changed_words(statement: ReleaseStatement, path: PathLike, file: PathLike, sha256: str) -> str | None:
    """The sentence that a file was changed since its statement, at a path, was written; None if its SHA-256 fits."""
    if statement.file and statement.file.sha256 == sha256:
        return None
    return f"{Path(file).name} was changed since {Path(path).name} was written"


def load_statement(release: PathLike) -> ReleaseStatement:
    """The statement beside a released file. Raises InvalidInput where there is none that can be read."""
    path = statement_path(release)
    if not path.exists():
        got = f"{Path(release).name} without its privacy statement {path.name} beside it"
        expected = "both: put the statement back beside the file, or write the folder again with dphmm release"
        raise InvalidInput("released", got, expected)
    return read_statement(path)


def read_statement(file: PathLike) -> ReleaseStatement:
    """The privacy statement of a release.

    Raises InvalidInput for a file that is none, and for one with a member missing or of another type, which it names.
    Members that are not known are left out.
    """
    path = checked_input(file, "statement")
    try:
        parsed = json.loads(path.read_text(encoding="utf-8"))
        known = parsed["format"] == FORMAT and parsed["software"]["name"] == "dphmm"
    except (ValueError, KeyError, TypeError, RecursionError):
        known = False
    if not known:
        raise InvalidInput("statement", str(path), f"a privacy statement of format {FORMAT}")
    try:
        statement = typed(parsed, ReleaseStatement)
    except msgspec.ValidationError as error:
        raise InvalidInput("statement", f"{path.name} {_fault(parsed, str(error))}", WRITTEN) from None
    except UnicodeEncodeError:
        raise InvalidInput("statement", f"{path.name} with a name that is no text", WRITTEN) from None
    except RecursionError:
        raise InvalidInput("statement", f"{path.name} with members too deep in each other", WRITTEN) from None
    contradiction = statement.contradiction()
    if contradiction is not None:
        raise InvalidInput("statement", f"{path.name} with {contradiction}", WRITTEN)
    return statement


def statement_path(release: PathLike) -> Path:
    """The path of the statement of a released file: released.parquet.privacy.json."""
    file = Path(release)
    return file.with_name(f"{file.name}.privacy.json")


def _fault(found: Any, error: str) -> str:
    """The fault in the JSON of a statement, from the error of its types: a missing member, or a wrong value."""
    path = error.partition(" - at `$.")[2].rstrip("`")
    missing = re.match("Object missing required field `(.*?)`", error)
    if missing:
        return f"without {path}.{missing[1]}" if path else f"without {missing[1]}"
    name, listed, _ = path.partition("[")
    if name == "mechanism.chosen" and listed:
        return "with no counts of mechanisms"
    if listed and error.startswith("Expected `str`"):
        return f"with no text in {name}"
    value = found
    for part in name.split("."):
        value = value[part]
    shown = ascii(value)
    return f"with {name} {shown if len(shown) <= LONGEST_VALUE else shown[:LONGEST_VALUE] + '...'}"
