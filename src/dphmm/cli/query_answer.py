"""From an answer to its files: the table, the statement beside it, the owner's list of rows, and what is printed.

What is printed, and the exit code, depend on the options and on the noisy answer, and on no row of DATA.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphmm.cli.console import Console, Row, print_json
from dphmm.cli.options import new_output
from dphmm.cli.query_records import states_of_a_model
from dphmm.errors import InvalidInput

if TYPE_CHECKING:
    from dphmm.cli.query_dependence import Dependence
    from dphmm.cli.query_tables import Aside
    from dphmm.markov.model import MarkovModel

#: Members of the statement that --json and the summary repeat.
_SHOWN = (
    "query", "private", "not_private_because", "unknown_because", "unit_of_privacy", "epsilon", "per_record", "promise",
    "proved", "not_protected",
)  # fmt: skip
_LISTED = "{} lists the rows of DATA that do not count as they are written, if there are any, and why; not to be shared"
_WITH_NOISE = (
    "What the model of dependence or of the states itself loses about the people it was learned from, with noise: it "
    "adds to what this answer loses about the same people."
)


def check_output(given: Mapping[str, Any], inputs: Sequence[str]) -> None:
    """Refuse an output that cannot be written before any data is read."""
    from dphmm.cli.set_aside import rejected_path
    from dphmm.storage.inputs import checked_output
    from dphmm.storage.statement import statement_path
    from dphmm.storage.tables import table_format

    output = given["output"]
    table_format(output, "-o")
    for path in (output, statement_path(output)):
        new_output(path, inputs, given["force"])
    checked_output(rejected_path(output), inputs, "-o")


def write_answer(
    answered: Any,
    given: Mapping[str, Any],
    inputs: Sequence[str],
    dependence: Dependence,
    domain: Mapping[str, Any],
    console: Console,
    aside: Aside,
    *,
    unit: str,
    by_person: bool,
    not_protected: Sequence[str] = (),
    extra: Mapping[str, Any] | None = None,
) -> None:
    """Write the table, its statement and the owner's list, and print what was promised."""
    import pyarrow as pa

    from dphmm.cli.set_aside import rejected_path, write_list
    from dphmm.storage import statement_types
    from dphmm.storage.query_statement import query_statement
    from dphmm.storage.statement import statement_path, write_statement
    from dphmm.storage.tables import write_table

    if Path(given["output"]).exists():
        console.warn(
            "a new answer was drawn: whoever has seen the one that it replaces knows both, and both are paid for"
        )
    model = _model_of(dependence, given)
    statement = query_statement(
        answered.event,
        dependence=dependence.statement(),
        domain=domain,
        unit=unit,
        by_person=by_person,
        not_protected=[*_learned(model), *not_protected],
        model_people=_model_people(model, given, console),
    )
    listed = rejected_path(given["output"])
    write_list(listed, aside.word, sorted(aside.reasons.items()))
    write_table(given["output"], pa.Table.from_pandas(answered.table, preserve_index=False), inputs=inputs)
    write_statement(given["output"], statement)
    told = statement_types.document(statement)
    document = {name: told[name] for name in _SHOWN} | {
        "mechanism": answered.event.mechanism,
        "dependence": told["dependence"],
        "rows": len(answered.table),
        **(extra or {}),
        "output": given["output"],
        "rejected": str(listed),
        "statement": str(statement_path(given["output"])),
    }
    if given["as_json"]:
        print_json(document)
    console.say([*_summary(document, answered.event), ("for the owner", _LISTED.format(listed.name))])


def _model_people(model: MarkovModel | None, given: Mapping[str, Any], console: Console) -> str | None:
    """On whom the model of the chain, or of the states, was fitted without privacy; says what it means.

    As the data owner says, or on this very file; None where no such model is named. Which states a model has can show
    what one person did, as its moves can.
    """
    from dphmm.cli.public_warnings import model_warning
    from dphmm.storage.inputs import file_digest

    if model is None:
        return None
    known = model.provenance.get("source_sha256")
    same = known is not None and known == file_digest(given["data"])
    people: str = "same" if same else given["model_people"] or "unknown"
    model_warning(model, people, console, "file" if same else None)
    return people if model.provenance.get("private") is False else None


def _model_of(dependence: Dependence, given: Mapping[str, Any]) -> MarkovModel | None:
    """The model that is named, if any: of dependence or of the states, never of both."""
    from dphmm.cli.options import loaded_model

    if dependence.kind == "markov":
        return dependence.model[0]
    states: str | None = given.get("states")
    return loaded_model(states)[0] if states is not None and states_of_a_model(states) else None


def _learned(model: MarkovModel | None) -> list[str]:
    return [] if model is None or model.provenance.get("private") is not True else [_WITH_NOISE]


def _summary(document: Mapping[str, Any], event: Any) -> list[Row]:
    scales = sorted({f"scale {float(part.scale):.6g} on the {part.name}" for part in event.parts})
    by, where = document["proved"]["by"], document["proved"]["where"]
    return [
        ("answered", f"{document['query']}, {document['rows']} rows"),
        ("promise", document["promise"]["meaning"]),
        ("what is hidden", document["unit_of_privacy"]),
        ("noise", f"discrete Laplace on whole numbers: {', '.join(scales)}"),
        ("depends", str(document["dependence"].get("meaning", event.dependence))),
        ("proved", by if where in by else f"{by} ({where})"),
        ("written", f"{document['output']}, and what is not protected in {Path(document['statement']).name}"),
    ]


def feature_columns(text: str | None, option: str) -> list[str]:
    """The columns that a question is about, which must be named."""
    from dphmm.cli.query_options import names

    if text is None:
        raise InvalidInput(option, "nothing", "the columns, different ones: x,y")
    return names(text, option, "different columns: x,y")
