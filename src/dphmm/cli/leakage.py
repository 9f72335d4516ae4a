"""dphmm leakage: what the published answers of a finished release told of an event, or of two paths."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dphmm.accounting.budget import float_above
from dphmm.cli.console import Console, Row, aligned, named, one_line, print_json
from dphmm.cli.options import CONTEXT, loaded_model, loaded_policy, messages, of_folder, other_queries, released_under
from dphmm.cli.smooth import other_query, read_rows, release_subjects
from dphmm.errors import InvalidInput
from dphmm.storage.inputs import checked_input, steady
from dphmm.storage.public_tables import listed_columns

if TYPE_CHECKING:
    from dphmm.session.odds import EventOdds
    from dphmm.session.setting import Subjects
    from dphmm.states.space import StateSpace
    from dphmm.storage.released import ReleasedRows
    from dphmm.types import IntArray

    Beside = Sequence[tuple[ReleasedRows, Subjects]]

EVENT = (
    "odds of the event under the public model alone, and given all published answers of the subject; loss: log of "
    "their ratio; bound: the sum of the costs of the answers (docs/proofs/composition.md). What a promise over paths "
    "bounds are two neighbouring paths, not an event: --paths A B"
)
PATHS = (
    "bound: the published answers are at most exp(bound) times as likely on one of the two paths as on the other "
    "(docs/proofs/paths.md)"
)


#: Losses below this are rounding.
_NO_LOSS = 1e-12


@click.command("leakage", context_settings=CONTEXT)
@click.argument("released", metavar="RELEASED")
@click.option("--model", metavar="M", help="Of a bare file: the model that the release was made with.")
@click.option("--policy", metavar="P", help="Of a bare file: the policy that the release was made with.")
@click.option("--event", metavar="STATES", help="The states of the event: names with commas between, or a table.")
@click.option("--from", "first", metavar="T", help="The first step of the event, or a time: 2024-05-06T09:00Z.")
@click.option("--to", "last", metavar="T", help="The last step of the event, or the time at which it ends.")
@click.option("--always", is_flag=True, help="In these states at every step of the window, not at some.")
@click.option("--paths", nargs=2, metavar="A B", help="Instead: two paths, state names from step 1 on, or tables.")
@click.option("--user", metavar="NAME", help="One subject only.")
@released_under
@other_queries
@messages
def leakage(**given: Any) -> int:
    """How published answers changed the odds of an event, such as "in cell x3y4 between 9 and 10".

    Computed exactly from public data alone, the released file, the model and the policy: it spends nothing, and
    anybody can do it. The odds before are those of the model; the odds after use all answers of the subject. With
    --paths, how much the answers can tell two given paths apart, at most. Epsilon and options are read as dphmm smooth
    reads them.
    """
    console = Console(given["quiet"])
    given = of_folder(given)
    _check(given)
    path = checked_input(given["released"], "RELEASED")
    model, space = loaded_model(given["model"])
    policy, space = loaded_policy(given["policy"], model)
    with steady(path) as sha256:
        rows = read_rows(path, space)
    subjects, source = release_subjects(path, sha256, rows, (model, policy, space), given, console)
    paths = [checked_input(other, "--with") for other in given["others"]]
    beside = [other_query(other, (model, policy, space), given, console) for other in paths]
    told = _of_event if given["paths"] is None else _of_paths
    document = {**told(rows, subjects, beside, given, console), "options_from": source}
    if paths:
        document["with"] = [other.name for other in paths]
    if given["as_json"]:
        print_json(document)
        return 0
    for line in _lines(document):
        click.echo(line)
    return 0


def _check(given: Mapping[str, Any]) -> None:
    if (given["event"] is None) == (given["paths"] is None):
        came = "neither it nor --paths" if given["event"] is None else "it and --paths"
        raise InvalidInput("--event", came, "one of them")
    for name, option in (("first", "--from"), ("last", "--to")):
        if given["event"] is not None and given[name] is None:
            raise InvalidInput(option, "nothing", "the window of the event: --from T --to T")
        if given["event"] is None and given[name] is not None:
            raise InvalidInput(option, given[name], "--event with it")
    if given["always"] and given["event"] is None:
        raise InvalidInput("--always", "given", "--event with it")


def _of_event(
    rows: ReleasedRows, subjects: Subjects, beside: Beside, given: Mapping[str, Any], console: Console
) -> dict[str, Any]:
    from dphmm.decoding import odds_of_rows

    states, users = _states(given["event"], "--event", subjects.setting.space), _users(given)
    window = _step_or_time(given["first"]), _step_or_time(given["last"])
    try:
        with console.progress("leakage") as progress:
            found = odds_of_rows(
                rows, subjects, states, *window, always=given["always"], beside=beside, users=users, progress=progress
            )
    except InvalidInput as error:
        raise named(error, {"first": "--from", "last": "--to", "user": "--user"}) from None
    last_steps = [int(rows.step[own].max()) for user, own in rows.by_user() if users is None or user in users]
    if isinstance(window[0], int) and window[0] > max(last_steps):
        console.warn("the event begins after the last published step: of it the answers tell through the model alone")
    left_out = (len(set(rows.users)) if users is None else 1) - len(found)
    if left_out:
        console.warn(
            f"{left_out} subjects are left out: their first step is after --from, and no model tells of before"
        )
    return {
        "event": {"states": len(states), "from": window[0], "to": window[1], "always": given["always"]},
        "subjects": [_document(odds) for odds in found],
        "left_out": left_out,
        "meaning": EVENT,
    }


def _document(odds: EventOdds) -> dict[str, Any]:
    """One subject: numbers that are not finite are null, beside a word that says why."""
    cost = float_above(odds.cost)
    return {
        "subject": odds.subject,
        "answers": odds.answers,
        "prior": odds.prior.probability,
        "posterior": odds.posterior.probability,
        "log_prior_odds": _finite(odds.prior.log_odds),
        "log_posterior_odds": _finite(odds.posterior.log_odds),
        # Last digits of sums of logs are no loss.
        "loss": 0.0 if odds.loss is not None and abs(odds.loss) < _NO_LOSS else _finite(odds.loss),
        "bound": _finite(cost),
        "verdict": _verdict(odds),
    }


def _verdict(odds: EventOdds) -> str:
    if odds.prior.decided:
        return "impossible under the model" if odds.prior.log_odds < 0 else "certain under the model"
    if odds.posterior.decided:
        return "excluded by the answers" if odds.posterior.log_odds < 0 else "made certain by the answers"
    return "possible"


def _of_paths(
    rows: ReleasedRows, subjects: Subjects, beside: Beside, given: Mapping[str, Any], console: Console
) -> dict[str, Any]:
    from dphmm.decoding import OtherRows, published_of, rows_of_users
    from dphmm.session.odds import path_loss
    from dphmm.session.smoothing import Smoothers

    one, other = (_states(path, "--paths", subjects.setting.space) for path in given["paths"])
    smoothers, found, others = Smoothers(subjects), [], OtherRows(beside)
    try:
        for user, own in rows_of_users(rows, _users(given)):
            bound = path_loss(smoothers.of(user), published_of(rows, user, own), one, other, others.of(user))
            found.append({"subject": user, "bound": _finite(bound)})
    except InvalidInput as error:
        raise named(error, {"one": "--paths", "other": "--paths", "user": "--user"}) from None
    return {"subjects": found, "meaning": PATHS}


def _users(given: Mapping[str, Any]) -> list[str] | None:
    return None if given["user"] is None else [given["user"]]


def _states(text: str, option: str, space: StateSpace) -> IntArray:
    """State numbers from names with commas between, or from the column state of a table."""

    if Path(text).suffix in (".csv", ".parquet"):
        (names,) = listed_columns(text, option, ("state",))
    else:
        names = [name.strip() for name in text.split(",")]
    states = space.indices_of(names)
    if not len(states) or (states < 0).any():
        unknown = repr(str(names[int((states < 0).argmax())])) if len(states) else "no state"
        raise InvalidInput(option, unknown, f"states of the model, such as {space.names[0]}")
    return states


def _step_or_time(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() else text


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _lines(document: Mapping[str, Any]) -> Sequence[str]:
    rows: list[Row] = []
    for found in document["subjects"]:
        bound = "none" if found["bound"] is None else f"{found['bound']:.6g}"
        words = f"bound {bound}"
        if "prior" in found:
            words = (
                f"probability {found['prior']:.6g} before, {found['posterior']:.6g} after {found['answers']} answers; "
            )
            words += _loss_words(found, bound)
        rows.append((one_line(found["subject"]), words))
    return [*aligned(rows), document["meaning"]]


def _loss_words(found: Mapping[str, Any], bound: str) -> str:
    if found["loss"] is None:
        return str(found["verdict"])
    factor = f"{math.exp(found['loss']):.4g}" if abs(found["loss"]) < 700 else f"exp({found['loss']:.6g})"
    return f"odds times {factor}, loss {found['loss']:.6g}, bound {bound}"
