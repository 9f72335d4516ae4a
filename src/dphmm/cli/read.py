"""dphmm read: a reader's conclusions from a release in its folder, from public data alone."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dphmm.accounting.budget import float_above
from dphmm.cli.console import Console, Row, aligned, fields_named, one_line, print_json
from dphmm.cli.options import FORCE, MessageOptions, argument, command, flag, loaded_model, new_output, opened, option
from dphmm.errors import InvalidInput
from dphmm.setup.released import Released, named_states
from dphmm.storage.inputs import checked_input
from dphmm.storage.public_tables import listed_columns
from dphmm.storage.release_folder import LEARNED, folder_of
from dphmm.storage.tables import table_format, write_table

if TYPE_CHECKING:
    import pyarrow as pa

    from dphmm.markov.model import MarkovModel
    from dphmm.reconstruction.aggregates import Population
    from dphmm.reconstruction.shares import Share
    from dphmm.session.odds import EventOdds

PUBLIC = "computed from published data alone: nothing is spent, and anybody can do it"
EVENT = (
    "odds of the event under the public model alone, and given all published answers of the person; loss: log of "
    "their ratio; bound: the sum of the costs of the answers (docs/proofs/composition.md). What a promise over paths "
    "bounds are two neighbouring paths, not an event: --paths A B"
)
PATHS = (
    "bound: the published answers are at most exp(bound) times as likely on one of the two paths as on the other "
    "(docs/proofs/paths.md)"
)
SHARES = (
    "linear: unbiased; low to high: its 90 % interval, for these people and for the population that they were drawn "
    "from; estimate: the likeliest density, which leans to where it started, and errs less where noise is large "
    "(docs/proofs/population-shares.md); who was in no state counts at the state that was answered in its place"
)
#: Losses below this are rounding.
_NO_LOSS = 1e-12
#: Regions that are printed.
_SHOWN = 20
#: --believe this: what all answers say of how people move, in place of a file. Alone it is learned.
_OF_ANSWERS = "learned"
#: What is read: the options that ask for it, by name; without any, what the file says of itself.
_ASKS = {
    "estimates": "--estimates",
    "by": "--by",
    "positions": "--positions",
    "event": "--event",
    "paths": "--paths",
    "sentences": "--statement",
}
#: Options that belong to one of these, or to any of several.
_BELONG = {
    "believe": ("--believe", "estimates by positions event"), "own_places": ("--own-places", "estimates"),
    "path": ("--path", "estimates"),
    "marginals": ("--marginals", "estimates"), "per": ("--per", "by"), "zone": ("--zone", "by"),
    "flows": ("--flows", "by"), "states": ("--states", "by"), "first": ("--from", "event"), "last": ("--to", "event"),
    "always": ("--always", "event"), "user": ("--user", "event paths"),
}  # fmt: skip
_OPTIONS = {
    "released": "OUT", "first": "--from", "last": "--to", "user": "--user", "regions": "--by", "per": "--per",
    "zone": "--zone", "flows": "--flows", "one": "--paths", "other": "--paths", "plans": "--plans",
    "steps": "--positions", "prior": "--prior", "coverage": "--coverage", "population": "--states",
    "believe": "--believe",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ReadOptions(MessageOptions):
    """The options of dphmm read."""

    released: str = argument("OUT")
    estimates: bool = flag("Write where people were, given all their answers.")
    own_places: bool = flag("Learn the places that each person returns to, where that helps.")
    believe: str | None = option(
        "A model to read the answers with  [default: the one learned from them]; learned, alone: learn it anew.", "FILE"
    )
    path: bool = flag("Add the state of every row on the single likeliest path (Viterbi).")
    marginals: bool = flag("Add the probability of every state to every row (Parquet only).")
    by: str | None = option("Shares of people: a table (state, region), polygons, or the word blocks.", "REGIONS")
    per: str | None = option("Shares of all, of rows alike, or per step, day or hour-of-day.", "WORD")
    zone: str | None = option("The clock of --per.", "+HH:MM")
    flows: str | None = option("Also write the shares of origins and destinations of two answers.", "FILE")
    states: str | None = option("Also write the likeliest density over the states.", "FILE")
    positions: int | None = option("Write the shares of states at positions 1 to N, by the model.", "N")
    event: str | None = option("The odds of an event: names with commas between, or a table.", "STATES")
    first: str | None = option("The first step of the event, or a time: 2024-05-06T09:00Z.", "T", "--from")
    last: str | None = option("The last step of the event, or the time at which it ends.", "T", "--to")
    always: bool = flag("In these states at every step of the window, not at some.")
    paths: tuple[str, str] | None = option("The evidence between two paths: state names from step 1, or tables.", "A B")
    user: str | None = option("One person only.", "NAME")
    others: tuple[str, ...] = option("Another release about them; may be repeated.", "OUT", "--with", default=())
    sentences: bool = flag("Every sentence of the privacy statement.", "--statement")
    prior: str | None = option("Your own prior: a table (state, probability).", "FILE")
    coverage: str = option("Of the region under --prior.", "P", default="0.9")
    plans: str | None = option("Plans in plain form: how likely each answer is from each state.", "FILE")
    output: str | None = option("The file to write  [default: in OUT]", "FILE", "-o", "--output")
    force: bool = flag(FORCE)


@command("read", ReadOptions)
def read(options: ReadOptions) -> int:
    """Estimate places, shares and the odds of an event from a release. OUT is its folder; nothing else is needed.

    Without an option: what may be concluded, and what not. With --estimates, --by, --event or --paths, what all its
    answers together say. All of it is computed from what was published: it spends nothing, and anybody can do it. The
    plan of every row is made again; where it is not the one that the row was released under, nothing is written.
    """
    console = Console(options.quiet)
    asked = _asked(options)
    with fields_named(_OPTIONS):
        if asked in (None, "sentences"):
            return _itself(options, console)
        released = opened(options.released)
        beside = [opened(other, "--with") for other in options.others]
        for release in (released, *beside):
            if release.changed is not None:
                console.warn(release.changed)
        answer = {
            "learn": _learned, "estimates": _estimates, "by": _shares, "positions": _positions, "event": _event,
            "paths": _paths,
        }[asked]  # fmt: skip
        document = answer(released, beside, options, console)
    if beside:
        document["with"] = [other.folder.path.name for other in beside]
    if options.as_json:
        print_json(document)
    return 0


def _asked(options: ReadOptions) -> str | None:
    """The name of the request; None for nothing in particular. Raises InvalidInput for two, and for a part alone."""
    # 0 positions are asked for, too: they are refused.
    asked = [name for name in _ASKS if (value := getattr(options, name)) is not None and value is not False]
    if not asked and options.believe == _OF_ANSWERS:
        return "learn"
    if len(asked) > 1:
        raise InvalidInput(_ASKS[asked[1]], f"it and {_ASKS[asked[0]]}", "one of them")
    for name, (typed, belongs) in _BELONG.items():
        if getattr(options, name) and not set(belongs.split()) & set(asked):
            with_it = " or ".join(_ASKS[each] for each in belongs.split())
            raise InvalidInput(typed, "it alone", f"{with_it} with it")
    if "event" in asked:
        for when, typed in ((options.first, "--from"), (options.last, "--to")):
            if when is None:
                raise InvalidInput(typed, "nothing", "the window of the event: --from T --to T")
    return asked[0] if asked else None


def _output(releases: Sequence[Released], options: ReadOptions, name: str) -> Path:
    """The file to write: as named, else in the folder of the first; checked before any work."""
    path = Path(options.output or releases[0].folder.path / name)
    table_format(str(path), "-o")
    new_output(path, [release.folder.table for release in releases], options.force or options.output is None)
    believe = _believed(options, releases[0])
    published = {release.model.digest for release in releases}
    owners = believe is not None and believe.provenance.get("private") is False and believe.digest not in published
    if owners and any(path.absolute().parent == release.folder.path for release in releases):
        got = f"{options.believe}, fitted on true rows without privacy"
        raise InvalidInput("--believe", got, "-o FILE outside the release: what it reads is its owner's alone")
    return path


def _believed(options: ReadOptions, released: Released) -> MarkovModel | None:
    """The model of --believe. Raises InvalidInput for a file that is none."""
    if options.believe is None:
        return None
    path: Path | str = options.believe
    if path == _OF_ANSWERS and not (path := released.folder.path / LEARNED).exists():
        first = f"dphmm read {options.released} --believe {_OF_ANSWERS}, which learns it; or a model"
        raise InvalidInput("--believe", f"{_OF_ANSWERS}, and no {LEARNED} in OUT", first)
    with fields_named({"model": "--believe"}):
        return loaded_model(str(path))[0]


def _written(released: Released, path: Path, table: Any) -> str:
    write_table(str(path), table)
    if path.absolute().parent == released.folder.path:
        released.folder.keep([path.name])
    return str(path)


# -- how people move -------------------------------------------------------------------------------------------------


def _learned(released: Released, beside: Sequence[Released], options: ReadOptions, console: Console) -> dict[str, Any]:
    from dphmm.storage.models import save_model

    path = Path(options.output or released.folder.path / LEARNED)
    if path.suffix != ".npz":
        raise InvalidInput("-o", str(path), "a name ending in .npz")
    new_output(path, [release.folder.table for release in (released, *beside)], options.force or options.output is None)
    with console.progress("learn") as progress:
        learned = released.learn(beside=beside, keep=options.output is None, progress=progress or False)
    written = None if learned.reason else str(path)
    if written is not None and options.output is not None:
        save_model(learned.model, path)
    console.say([("learned", learned.words), ("", PUBLIC), *([("written", written)] if written else [])])
    return {**learned.document(), "meaning": PUBLIC, "output": written}


# -- where people were ----------------------------------------------------------------------------------------------


def _estimates(
    released: Released, beside: Sequence[Released], options: ReadOptions, console: Console
) -> dict[str, Any]:
    from dphmm.storage.released import smoothed_table

    path = _output([released, *beside], options, "estimates.parquet" if options.marginals else "estimates.csv")
    if options.marginals and table_format(str(path), "-o") != ".parquet":
        raise InvalidInput("-o", str(path), "a name ending in .parquet with --marginals: CSV has no lists")
    with console.progress("read") as progress:
        believe = _believed(options, released)
        smoothed, places = released.smoothed(
            path=options.path,
            marginals=options.marginals,
            own_places=options.own_places,
            beside=beside,
            believe=believe,
            progress=progress,
        )
    written = _written(released, path, smoothed_table(released.answers, smoothed, released.space))
    rows = released.answers
    document: dict[str, Any] = {
        "rows": len(rows.users),
        "subjects": len(set(rows.users)),
        "plans": len(set(rows.plans) - {""}),
        "mean_probability": float(smoothed.probability.mean()),
        "meaning": PUBLIC,
        "output": written,
    }
    if smoothed.path is not None:
        document["path_is_likeliest_state"] = float((smoothed.path == smoothed.state).mean())
    readers: list[Row] = []
    if options.believe is not None:
        document["believe"] = options.believe
        readers.append(("read with", options.believe))
    elif not released.learned.reason:
        document["believe"] = str(released.folder.path / LEARNED)
        readers.append(("read with", f"a model learned {released.learned.words}"))
    if options.own_places:
        document["own_places"] = None if places is None else {"rate": places.rate, "weight": places.weight}
        none = "none: answers left out are no likelier with them"
        readers.append(("own places", none if places is None else f"{places.rate:.0%} of moves"))
    console.say(
        [
            ("estimates", f"{document['rows']} rows of {document['subjects']} people"),
            *readers,
            *([("with", f"the answers of {', '.join(other.folder.path.name for other in beside)} too")] * bool(beside)),
            ("likeliest state", f"has probability {document['mean_probability']:.3g} on average"),
            ("", PUBLIC),
            ("written", written),
        ]
    )
    return document


# -- shares of regions ----------------------------------------------------------------------------------------------


def _shares(released: Released, beside: Sequence[Released], options: ReadOptions, console: Console) -> dict[str, Any]:
    from dphmm.reconstruction.regions import read_regions

    if beside:
        raise InvalidInput("--with", options.others[0], "nothing: shares are of one release")
    path = _output([released], options, "population.csv")
    more = {typed: file for typed, file in (("--flows", options.flows), ("--states", options.states)) if file}
    for typed, file in more.items():
        table_format(file, typed)
        new_output(file, [released.folder.table], options.force)
    if len({str(path), *more.values()}) <= len(more):
        raise InvalidInput("--flows", "a file that is written already", "another file for each table")
    by = str(options.by)
    by_blocks = by == "blocks"
    if not (by_blocks or Path(by).exists()):
        raise InvalidInput("--by", f"{by}, which is no file", "a table (state, region), GeoJSON, or blocks")
    regions = None if by_blocks else read_regions(by, released.space, "--by")
    for note in [] if regions is None else regions.notes:
        console.warn(note)
    when: Any = {"per": options.per, "zone": options.zone}
    when = {name: text for name, text in when.items() if text is not None}
    believe = _believed(options, released)
    with console.progress("read") as progress:
        population = released.population(
            regions, flows=options.flows is not None, believe=believe, progress=progress or False, **when
        )
    files = [_written(released, path, _table_of(population.records()))]
    if options.flows is not None:
        if not (flows := population.records(flows=True)):
            raise InvalidInput("--flows", "nobody with two answers", "a release of several steps")
        files.append(_written(released, Path(options.flows), _table_of(flows)))
    if options.states is not None:
        files.append(_written(released, Path(options.states), population.density_table()))
    for note in population.notes:
        if regions is None or note not in regions.notes:
            console.note(note)
    if not (options.as_json or options.quiet) and len(population.densities) == 1:
        shares = population.densities[0].regions
        for line in aligned([(one_line(share.region), share_words(share)) for share in shares[:_SHOWN]]):
            click.echo(line)
        if (rest := len(shares) - _SHOWN) > 0:
            click.echo(f"and {rest} more regions, in the file")
    console.say([("people", f"{population.people:,}"), ("", PUBLIC), ("written", ", ".join(files)), ("", SHARES)])
    return _shares_document(population, files)


def _positions(
    released: Released, beside: Sequence[Released], options: ReadOptions, console: Console
) -> dict[str, Any]:
    if beside:
        raise InvalidInput("--with", options.others[0], "nothing: shares are of one release")
    path = _output([released], options, "positions.csv")
    table = released.by_position(int(options.positions or 0), believe=_believed(options, released))
    written = _written(released, path, table)
    console.say([("positions", f"1 to {options.positions}"), ("", PUBLIC), ("written", written)])
    return {"shares": table.to_pylist(), "meaning": PUBLIC, "output": written}


def _shares_document(found: Population, files: Sequence[str]) -> dict[str, Any]:
    return {
        "periods": len(found.densities),
        "people": found.people,
        "answers": sum(density.answers for density in found.densities),
        "regions": len(found.densities[0].regions),
        "iterations": [density.iterations for density in found.densities],
        "starts": [density.start for density in found.densities],
        "persons_count_alike": found.public,
        "refused": sorted({share.region for density in found.densities for share in density.regions if share.why}),
        "shares": found.records() if len(found.densities) == 1 else [],
        "notes": list(found.notes),
        "written": list(files),
        "privacy": PUBLIC,
        "meaning": SHARES,
    }


def _table_of(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    import pyarrow as pa

    return pa.table({column: [row[column] for row in rows] for column in rows[0]})


def share_words(one: Share) -> str:
    """A share in words: the likeliest, the unbiased one with its interval, or why it is not answerable."""
    likeliest = "" if one.estimate is None else f"{one.estimate:6.1%}  "
    if one.linear is None or one.low is None or one.high is None:
        return f"{likeliest}not answerable: {one_line(one.why)}"
    known = one.standard_error is not None and math.isfinite(one.standard_error)
    error = f"{one.standard_error:.2%}" if known else "unknown"
    cut = min(1.0, max(0.0, one.linear))
    beyond = "" if cut == one.linear else f" (cut from {one.linear:.0%})"
    return f"{likeliest}unbiased {cut:6.1%}{beyond}, {one.low:.1%} to {one.high:.1%}, standard error {error}"


# -- odds of an event, and of two paths -------------------------------------------------------------------------------


def _event(released: Released, beside: Sequence[Released], options: ReadOptions, console: Console) -> dict[str, Any]:
    names, users = _names(str(options.event), "--event"), None if options.user is None else [options.user]
    window = _step_or_time(str(options.first)), _step_or_time(str(options.last))
    with console.progress("read") as progress, fields_named({"states": "--event"}):
        subjects = released.odds(
            *(names, *window),
            always=options.always,
            beside=beside,
            users=users,
            believe=_believed(options, released),
            progress=progress,
        )
    rows = released.answers
    last = max(int(rows.step[numbers].max()) for user, numbers in rows.by_user() if users is None or user in users)
    if isinstance(window[0], int) and window[0] > last:
        console.warn("the event begins after the last published step: of it the answers tell through the model alone")
    left_out = (len(set(rows.users)) if users is None else 1) - len(subjects)
    if left_out:
        console.warn(f"{left_out} people are left out: their first step is after --from, and no model tells of before")
    document = {
        "event": {"states": len(names), "from": window[0], "to": window[1], "always": options.always},
        "subjects": [_odds_document(odds) for odds in subjects],
        "left_out": left_out,
        "meaning": EVENT,
    }
    _tell_subjects(document, options)
    return document


def _paths(released: Released, beside: Sequence[Released], options: ReadOptions, console: Console) -> dict[str, Any]:
    from dphmm.release.decoding import OtherRows, published_of, rows_of_users
    from dphmm.session.odds import path_loss
    from dphmm.session.smoothing import Smoothers

    users = None if options.user is None else [options.user]
    first, second = (named_states(released.space, _names(path, "--paths"), "--paths") for path in options.paths or ())
    smoothers, others = Smoothers(released.subjects), OtherRows([(each.answers, each.subjects) for each in beside])
    bounds = []
    for user, numbers in rows_of_users(released.answers, users):
        published = published_of(released.answers, user, numbers, released.subjects.setting.model)
        bound = path_loss(smoothers.of(user), published, first, second, others.of(user))
        bounds.append({"subject": user, "bound": _finite(bound)})
    document = {"subjects": bounds, "meaning": PATHS}
    _tell_subjects(document, options)
    return document


def _names(text: str, option: str) -> list[str]:
    """Names with commas between, or those in the column state of a table."""
    if Path(text).suffix in (".csv", ".parquet"):
        (names,) = listed_columns(text, option, ("state",))
        return list(names)
    return [name.strip() for name in text.split(",")]


def _step_or_time(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() else text


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _odds_document(odds: EventOdds) -> dict[str, Any]:
    """One person: numbers that are not finite are null, beside a word that says why."""
    verdict = "possible"
    if odds.prior.decided:
        verdict = "impossible under the model" if odds.prior.log_odds < 0 else "certain under the model"
    elif odds.posterior.decided:
        verdict = "excluded by the answers" if odds.posterior.log_odds < 0 else "made certain by the answers"
    return {
        "subject": odds.subject,
        "answers": odds.answers,
        "prior": odds.prior.probability,
        "posterior": odds.posterior.probability,
        "log_prior_odds": _finite(odds.prior.log_odds),
        "log_posterior_odds": _finite(odds.posterior.log_odds),
        # Last digits of sums of logs are no loss.
        "loss": 0.0 if odds.loss is not None and abs(odds.loss) < _NO_LOSS else _finite(odds.loss),
        "bound": _finite(float_above(odds.cost)),
        "verdict": verdict,
    }


def _tell_subjects(document: Mapping[str, Any], options: ReadOptions) -> None:
    if options.as_json:
        return
    rows: list[Row] = []
    for subject in document["subjects"]:
        bound = "none" if subject["bound"] is None else f"{subject['bound']:.6g}"
        words = f"bound {bound}"
        if "prior" in subject:
            words = f"probability {subject['prior']:.6g} before, {subject['posterior']:.6g} after "
            words += f"{subject['answers']} answers; {_loss_words(subject, bound)}"
        rows.append((one_line(subject["subject"]), words))
    for line in (*aligned(rows), document["meaning"]):
        click.echo(line)


def _loss_words(one: Mapping[str, Any], bound: str) -> str:
    if one["loss"] is None:
        return str(one["verdict"])
    factor = f"{math.exp(one['loss']):.4g}" if abs(one["loss"]) < 700 else f"exp({one['loss']:.6g})"
    return f"odds times {factor}, loss {one['loss']:.6g}, bound {bound}"


# -- what the file says of itself -----------------------------------------------------------------------------------


def _itself(options: ReadOptions, console: Console) -> int:
    """Print the conclusions that may be drawn; a table by itself, without its folder, is read as far as possible."""
    from dphmm.audit.reading import read as read_released
    from dphmm.storage.release_folder import MODEL

    path = Path(options.released)
    place = None if path.is_file() and folder_of(path) is None else opened(str(path)).folder
    table = path if place is None else place.table
    if options.output is not None:
        table_format(options.output, "-o")
        new_output(options.output, [table], options.force)
    checked_input(table, "released")
    states = None
    if options.plans is not None:
        if place is None:
            raise InvalidInput(
                "--plans", options.plans, "OUT a folder, whose model has the states; or dphmm.audit.read"
            )
        states = loaded_model(str(place.path / MODEL))[1]
    reading = read_released(table, states=states, plans=options.plans, prior=options.prior, coverage=options.coverage)
    output = None if options.output is None else reading.to_arrow()
    if output is not None and options.output is not None:
        write_table(options.output, output if str(options.output).endswith(".parquet") else _in_csv(output))
    if reading.changed is not None:
        console.warn(reading.changed)
    if options.as_json:
        print_json({**reading.document(), "output": options.output})
        return 0
    lines = reading.lines
    if options.sentences:
        if reading.statement is None:
            raise InvalidInput("--statement", "no privacy statement", "one beside the file")
        lines = [f"{name}: {sentence}" for name, sentence in reading.statement.rows()]
    elif place is not None:
        for label, line in Released(place).story.rows():
            click.echo(f"{label:<14} {line}".rstrip())
    for line in lines:
        click.echo(one_line(line))
    if output is not None:
        console.say([("", f"written to {options.output}")])
    return 0


def _in_csv(table: pa.Table) -> pa.Table:
    """The table with its regions as JSON lists: CSV has none, and names may have any separator in them."""
    if "region" not in table.column_names:
        return table
    regions = [json.dumps(region, ensure_ascii=False) for region in table.column("region").to_pylist()]
    return table.set_column(table.column_names.index("region"), "region", [regions])
