"""dphmm smooth: a finished release, seen from its end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dphmm._checks import exact_epsilon, stated_epsilon
from dphmm.cli.console import Console, Row, print_json
from dphmm.cli.options import (
    CONTEXT,
    force,
    loaded_model,
    loaded_policy,
    messages,
    new_output,
    of_folder,
    other_queries,
    output,
    refuse_choices,
    released_under,
)
from dphmm.errors import InvalidInput
from dphmm.storage.inputs import checked_input, steady
from dphmm.storage.tables import column_names, read_table, table_format, write_table

if TYPE_CHECKING:
    from dphmm.markov.model import MarkovModel
    from dphmm.policy.graph import PolicyGraph
    from dphmm.session.options import Options
    from dphmm.session.setting import Subjects
    from dphmm.session.smoothing import SmoothedSteps
    from dphmm.statement.release import ReleaseStatement
    from dphmm.states.space import StateSpace
    from dphmm.storage.released import ReleasedRows


MEANING = "computed from published data alone: nothing is spent, and anybody can do it"


@click.command("smooth", context_settings=CONTEXT)
@click.argument("released", metavar="RELEASED")
@click.option("--model", metavar="M", help="Of a bare file: the model that the release was made with.")
@click.option("--policy", metavar="P", help="Of a bare file: the policy that the release was made with.")
@output("smoothed.parquet")
@released_under
@other_queries
@click.option(
    "--own-places",
    is_flag=True,
    help="Learn, from each subject's answers alone, the places that it returns to, where answers left out gain by it.",
)
@click.option("--path", is_flag=True, help="Add the state of every row on the single likeliest path (Viterbi).")
@click.option("--marginals", is_flag=True, help="Add the probability of every state to every row (Parquet only).")
@force
@messages
def smooth(**given: Any) -> int:
    """Smooth a finished release: what all answers together say of each step.

    Computed from public data alone, the released file, the model and the policy: it is post-processing, so it
    spends nothing, and anybody can do it. Epsilon and options are those in the privacy statement beside RELEASED;
    without one they are named here (epsilon is also in the file). The plan of every row is made again: where it is
    not the one that the row was released under, nothing is written.
    """
    from dphmm.decoding import own_places_of, smooth_rows
    from dphmm.statement.files import statement_path
    from dphmm.storage.released import smoothed_table

    console = Console(given["quiet"])
    given = of_folder(given)
    path = checked_input(given["released"], "RELEASED")
    paths = [checked_input(other, "--with") for other in given["others"]]
    beside = [*paths, *map(statement_path, paths)]
    inputs = [path, statement_path(path), given["model"], given["policy"], *beside]
    _check_output(given)
    new_output(given["output"], inputs, given["force"])
    model, space = loaded_model(given["model"])
    policy, space = loaded_policy(given["policy"], model)
    with steady(path) as sha256:
        rows = read_rows(path, space)
    subjects, source = release_subjects(path, sha256, rows, (model, policy, space), given, console)
    others = [other_query(other, (model, policy, space), given, console) for other in paths]
    with console.progress("smooth") as progress:
        places = own_places_of(rows, subjects, others) if given["own_places"] else None
        choices = {"path": given["path"], "marginals": given["marginals"], "places": places}
        smoothed = smooth_rows(rows, subjects, beside=others, progress=progress, **choices)
    write_table(given["output"], smoothed_table(rows, smoothed, space), inputs=inputs)
    document = _document(rows, smoothed, subjects.setting.options, source)
    if given["own_places"]:
        document["own_places"] = None if places is None else {"rate": places.rate, "weight": places.weight}
    if paths:
        document["with"] = [other.name for other in paths]
    if given["as_json"]:
        print_json({**document, "output": given["output"]})
    console.say(_summary(document, given["output"]))
    return 0


def other_query(path: Any, public: Any, given: Mapping[str, Any], console: Console) -> Any:
    """The rows of another query, and what its statement says that they were released under."""
    with steady(path) as sha256:
        rows = read_rows(path, public[2])
    own = {**given, **dict.fromkeys((*ASKED, "epsilon"))}
    return rows, release_subjects(path, sha256, rows, public, own, console)[0]


def _check_output(given: Mapping[str, Any]) -> None:
    if given["marginals"] and table_format(given["output"], "-o") != ".parquet":
        raise InvalidInput("-o", given["output"], "a name ending in .parquet with --marginals: CSV has no lists")
    table_format(given["output"], "-o")


def read_rows(path: Any, space: Any) -> ReleasedRows:
    """The rows of a released file."""
    from dphmm.storage.released import check_columns, columns_needed, released_rows, text_columns

    names = column_names(path)
    check_columns(names, space)
    wanted = [*columns_needed(space), *(["t"] if "t" in names else [])]
    return released_rows(read_table(path, columns=wanted, text=text_columns(space)), space)


def _document(rows: ReleasedRows, smoothed: SmoothedSteps, options: Options, source: str) -> dict[str, Any]:
    document = {
        "rows": len(rows.users),
        "subjects": len(set(rows.users)),
        "plans": len(set(rows.plans) - {""}),
        "epsilon_per_release": str(options.epsilon),
        "options": options.written(),
        "options_from": source,
        "mean_probability": float(smoothed.probability.mean()),
        "meaning": MEANING,
    }
    if smoothed.path is not None:
        document["path_is_likeliest_state"] = float((smoothed.path == smoothed.state).mean())
    return document


def _summary(document: Mapping[str, Any], output: str) -> list[Row]:
    return [
        ("smoothed", f"{document['rows']} rows of {document['subjects']} subjects"),
        *([("with", f"the answers of {', '.join(document['with'])} too")] if "with" in document else []),
        ("plans", f"{document['plans']}, made again from {document['options_from']}, and those of the release"),
        *_places_row(document),
        ("likeliest state", f"has probability {document['mean_probability']:.3g} on average"),
        ("privacy", document["meaning"]),
        ("written", output),
    ]


def _places_row(document: Mapping[str, Any]) -> list[Row]:
    """What is said of own places where they were asked for."""
    if "own_places" not in document:
        return []
    found = document["own_places"]
    told = "none: answers left out are no likelier with them" if found is None else f"{found['rate']:.0%} of moves"
    return [("own places", told)]


Public = tuple["MarkovModel", "PolicyGraph", "StateSpace"]

_DEFAULTS = {
    "constraint": "support",
    "mechanism": "auto",
    "protection": "auto",
}
ASKED = ("constraint", "mechanism", "start", "protection")


def release_subjects(
    path: Path, sha256: str, rows: ReleasedRows, public: Public, given: Mapping[str, Any], console: Console
) -> tuple[Subjects, str]:
    """What the subjects of a released file with this SHA-256 were released under, and what it was read from."""
    from dphmm.decoding import epsilon_of
    from dphmm.session.setting import Setting, Subjects
    from dphmm.statement.files import changed_words, load_statement, statement_path

    beside = statement_path(path)
    if beside.exists():
        statement = load_statement(path)
        refuse_choices(statement, path, "RELEASED")
        stated, source = _stated(statement, beside.name, public), beside.name
        changed = changed_words(statement, beside, path, sha256)
        if changed is not None:
            console.warn(changed)
    else:
        stated, source = {}, "the command line and the file"
    written = {**_DEFAULTS, "start": public[0].start, **stated}
    written |= {name: given[name] for name in ASKED if given[name] is not None}
    if given["epsilon"] is not None:
        written["epsilon"] = str(exact_epsilon(stated_epsilon(given["epsilon"])))
    if "epsilon" not in written:
        written["epsilon"] = str(epsilon_of(rows))
    return Subjects(Setting.read(written, *public)), source


def _stated(statement: ReleaseStatement, name: str, public: Public) -> dict[str, str]:
    """The options in a statement, which must be about this model, policy and space."""
    from dphmm.session.plan import ALGORITHM_VERSION

    model, policy, space = public
    if statement.algorithm_version != ALGORITHM_VERSION:
        came = f"one of algorithm version {statement.algorithm_version} ({statement.software.version})"
        raise InvalidInput("statement", came, f"version {ALGORITHM_VERSION}: other versions make other plans")
    for part, due, own in (
        ("model", statement.model.sha256, model.digest),
        ("policy", statement.policy.sha256, policy.digest),
        ("space", statement.space.sha256, space.digest),
    ):
        if due != own:
            field = "--policy" if part == "policy" else "--model"
            raise InvalidInput(field, f"another {part} than {name} names", f"the {part} of the release")
    return statement.choices
