"""dphmm query: the questions that dphmm.dependent has registered, their options, and the files of an answer.

The output and the exit code depend on the options and on the noisy answer, and on no row of DATA.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dphmm.cli.console import Console, Row, print_json
from dphmm.cli.help import CONTEXT, Command, Kinds
from dphmm.cli.options import FORCE, new_output, params_of
from dphmm.cli.publishing import (
    LedgerOptions,
    check_ledger,
    kept_document,
    kept_rows,
    opened_ledger,
    owner_rows,
    read_ledger,
    tell_forecast,
)
from dphmm.statement.parts import typed
from dphmm.statement.query import PROOF, QueryStatement
from dphmm.storage.inputs import checked_output
from dphmm.storage.private_tables import PrivateTable, rejected_path, write_list
from dphmm.storage.release_folder import INDEX, ReleaseFolder
from dphmm.storage.tables import table_format, write_table

if TYPE_CHECKING:
    from dphmm.dependent import QueryResult, Question
    from dphmm.dependent._inputs import Option, Rejected

#: Members of the statement that --json repeats.
_SHOWN = (
    "query", "private", "reasons", "record", "unit", "epsilon", "neighbours", "per_record", "mechanism", "dependence",
    "proved_by", "not_protected",
)  # fmt: skip
_LISTED = "{} lists the rows of DATA that do not count as they are written, if there are any, and why; not to be shared"


class _Questions(Kinds):
    """A command for each registered question, with its help and its options."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The questions that are registered."""
        from dphmm.dependent import REGISTERED

        return sorted(REGISTERED)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of one question."""
        from dphmm.dependent import REGISTERED

        kind = REGISTERED.get(cmd_name)
        return None if kind is None else _command(kind)


@click.group("query", cls=_Questions, context_settings=CONTEXT)
def query() -> None:
    """Answer a question about many records, with noise that hides each of them and what depends on it.

    Everything but the records is public, and must be said: states, boxes, people, classes, windows. The table has
    a statement beside it (OUT.privacy.json): epsilon, of what, where it is proved, what is not protected. Noise is
    always drawn from the system's secure randomness: the same question asked again gets another answer, and is paid
    for again. What is not proved is refused (exit 1). No row of DATA decides the exit code or what is printed: rows
    that do not count as they are written are listed in OUT.rejected.csv, for the data owner alone.

    With --ledger L --id NAME the answer is stored there before it is shown, and counted for every person of L; asked
    again under the same id it is answered from L, whatever DATA is then, and nothing is drawn or paid.

    A dry run tells how large the noise would be, of which no row of DATA is read, and what the account would be after.
    """


def _command(kind: type[Question]) -> click.Command:
    """The command of a question: the common options, and its own."""

    def asked(**given: Any) -> int:
        return _answer(kind, given)

    params = [
        click.Argument(["data"], metavar="DATA"),
        click.Option(["--epsilon"], required=True, metavar="E", help="The promise: 1, 0.5."),
        click.Option(["-o", "--output"], metavar="out.parquet", help="The file to write."),
        *params_of(LedgerOptions),
        click.Option(["--force"], is_flag=True, help=FORCE),
        click.Option(
            ["--dependence"],
            metavar="D",
            help=f"Which records depend on which: {kind.forms}  [default: independent, and a warning]",
        ),
        *map(_option, kind.options),
    ]
    return Command(kind.name, params=params, callback=asked, help=kind.help, context_settings=CONTEXT)


def _option(option: Option) -> click.Option:
    flags = option.flags or (option.flag,)
    more: dict[str, Any] = (
        {"is_flag": True} if option.kind is bool else {"type": option.kind, "metavar": option.metavar}
    )
    return click.Option(
        [*flags, option.name], help=option.help, default=option.default, show_default=option.shown, **more
    )


def _answer(kind: type[Question], given: Mapping[str, Any]) -> int:
    """Ask, and print what was promised; the files are written before anything is said of them."""
    console = Console(given["quiet"])
    flags = {option.name: option.flag for option in kind.options}
    options = {name: given[name] for name in flags}

    def called(name: str) -> str:
        return flags.get(name, "--" + name.replace("_", "-"))

    check_ledger(given)
    # A dry run asks a table of the same columns without a row.
    data = PrivateTable(given["data"]).blank().source if given["dry_run"] else given["data"]
    with _warned(console):
        question = kind(data, given["dependence"], given["epsilon"], options, called)
    if given["dry_run"]:
        with read_ledger(given) as ledger:
            return tell_forecast(question.forecast(given["about"], ledger, given["event_id"]), given, console)
    _check_output(given, question.inputs)
    again = Path(given["output"]).exists()
    with opened_ledger(given) as ledger:
        result = question.answer(None, ledger, given["event_id"], lambda rows: _list(rows, given["output"]))
    if again and (result.kept is None or result.kept.fresh):
        console.warn(
            "a new answer was drawn: whoever has seen the one that it replaces knows both, and both are paid for"
        )
    document = _write(result, given, question.inputs, console)
    if given["as_json"]:
        print_json(document)
    rejected = document["rejected"]
    listed = [] if rejected is None else [("for the owner", _LISTED.format(Path(rejected).name))]
    stored = [*kept_rows(result.kept, given["ledger"]), *owner_rows(result.kept, given["ledger"])]
    console.say([*_summary(document, result), *stored, *listed])
    for sentence in result.warnings:
        console.warn(sentence)
    return 0


def _write(result: QueryResult, given: Mapping[str, Any], inputs: list[str], console: Console) -> dict[str, Any]:
    """Write the table and its statement; return the document for --json."""
    import pyarrow as pa

    from dphmm.cli.guarantees import model_warning
    from dphmm.statement.files import statement_path, write_statement

    if result.model is not None and result.whom is not None:
        model_warning(result.model, result.whom, console)
    write_table(given["output"], pa.Table.from_pandas(result.table, preserve_index=False), inputs=inputs)
    write_statement(given["output"], typed(result.statement, QueryStatement))
    return {name: result.statement[name] for name in _SHOWN} | {
        "rows": len(result.table),
        **result.details,
        "output": given["output"],
        # An answer from the ledger reads no rows: their list lies beside the output of the run that did.
        "rejected": str(_rejected(given["output"])) if result.kept is None or result.kept.fresh else None,
        "statement": str(statement_path(given["output"])),
        **kept_document(result.kept),
    }


def _list(rows: Rejected, output: str) -> None:
    """Write the owner's list: before an answer is stored, so that it is there for every answer."""
    write_list(_rejected(output), rows.word, rows.sorted())


def _rejected(output: str) -> Path:
    """The path of the owner's list: beside the output, or of one in a release's folder in that of its owner."""
    path = rejected_path(output)
    place = ReleaseFolder(path.absolute().parent)
    return place.owner / path.name if (place.path / INDEX).is_file() and place.owner.is_dir() else path


@contextmanager
def _warned(console: Console) -> Iterator[None]:
    """Warnings of the library to its user as lines; others stay as they are."""
    others = warnings.showwarning

    def tell(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if category is UserWarning:
            console.warn(str(message))
        else:
            others(message, category, *where, **more)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = tell
        yield


def _check_output(given: Mapping[str, Any], inputs: list[str]) -> None:
    """Refuse an output that cannot be written before any data is read."""
    from dphmm.statement.files import statement_path

    table_format(given["output"], "-o")
    for path in (given["output"], statement_path(given["output"])):
        new_output(path, inputs, given["force"])
    checked_output(_rejected(given["output"]), inputs, "-o")


def _summary(document: Mapping[str, Any], result: QueryResult) -> list[Row]:
    scales = sorted(
        {
            f"scale {float(part.scale):.6g} on the {part.name} (at most {part.mostly:,} in 9 of 10)"
            for part in result.event.parts
        }
    )
    statement = typed(result.statement, QueryStatement)
    by, other = statement.proved_by, statement.domain.get("in_no_state")
    others = [] if other is None else [("in no state", f"other names, and places that cannot be read, are in {other}")]
    return [
        ("answered", f"{document['query']}, {document['rows']} rows"),
        ("promise", statement.sentence()),
        ("what is hidden", statement.unit.sentence(whole=statement)),
        *others,
        ("noise", f"discrete Laplace on whole numbers: {', '.join(scales)}"),
        ("depends", statement.dependence.sentence()),
        ("proved", by if PROOF in by else f"{by} ({PROOF})"),
        ("written", f"{document['output']}, and what is not protected in {Path(document['statement']).name}"),
    ]
