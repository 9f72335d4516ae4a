"""dphmm run and dphmm init: every command from a data file to a report, as one file says.

A pipeline is a TOML file with a table for each stage. The members of a table are options of its command, by name; what
one stage reads of another is filled in. A stage runs again when its options, its inputs or dphmm changed, and is passed
over otherwise. What was published stays published: a release that changed in anything but its rows is a new question
about the same people, and is asked with --spend-again only.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click

from dphmm.cli.console import Console, print_json
from dphmm.cli.options import CONTEXT, force, messages, new_output
from dphmm.cli.outcomes import REJECTED
from dphmm.errors import InvalidInput
from dphmm.storage.inputs import checked_input, file_digest, replacing
from dphmm.storage.owner_view import write_counts
from dphmm.storage.tables import column_names

#: What ran, with which options and inputs: for the owner alone, since it has hashes of private files.
RECORD = "run.json"
_FORMAT = 1
_LARGEST = 10**6

PEOPLE, MODEL_PEOPLE, RELEASED_PEOPLE = "people.parquet", "model-people.parquet", "released-people.parquet"
MODEL, POLICY, PLAN, LEDGER = "model.npz", "policy.json", "plan.json", "ledger.db"
RELEASED, SMOOTHED, REPORT = "released.parquet", "smoothed.parquet", "report.html"


@dataclass(frozen=True)
class Stage:
    """A table of a pipeline: the command that it runs, the files that it reads of earlier stages, and what it writes.

    ``words``: the command, in which {kind} is the member ``kind`` of the table. ``reads``: (option or "", file) of
    earlier stages, of those files that there are; an option "" is an argument. ``writes``: the files of -o. ``file``:
    whether the member ``file`` is its argument, in place of one that it reads.
    """

    words: tuple[str, ...]
    reads: tuple[tuple[str, str], ...]
    writes: tuple[str, ...]
    kind: str = ""
    file: bool = False


#: By name, in the order in which they run.
STAGES: Mapping[str, Stage] = {
    "data": Stage(("import", "{kind}"), (), (PEOPLE,), kind="csv", file=True),
    "split": Stage(("split",), (("", PEOPLE),), (MODEL_PEOPLE, RELEASED_PEOPLE)),
    "model": Stage(("model", "{kind}"), (), (MODEL,), kind="grid", file=True),
    "fit": Stage(("fit",), (("", MODEL_PEOPLE),), (MODEL,), file=True),
    "policy": Stage(("policy", "{kind}"), (("", MODEL),), (POLICY,), kind="radius"),
    "plan": Stage(("plan",), (("", MODEL), ("--policy", POLICY)), (PLAN,)),
    "release": Stage(
        ("release",), (("", RELEASED_PEOPLE), ("--model", MODEL), ("--policy", POLICY), ("--plan", PLAN)), (RELEASED,)
    ),
    "smooth": Stage(("smooth",), (("", RELEASED), ("--model", MODEL), ("--policy", POLICY)), (SMOOTHED,)),
    "report": Stage(
        ("report",), (("", RELEASED), ("--model", MODEL), ("--policy", POLICY), ("--ledger", LEDGER)), (REPORT,)
    ),
}
_NEEDED = ("data", "policy", "release")
#: Options that a pipeline fills in or decides.
_OWN = ("output", "ledger", "force", "resume", "json", "quiet", "dry-run", "out")


@click.command("run", context_settings=CONTEXT)
@click.argument("file", metavar="FILE")
@click.option(
    "--spend-again",
    is_flag=True,
    help="Release anew where model, policy, plan or options changed: what is published then is spent beside the first.",
)
@messages
def run(file: str, spend_again: bool, quiet: bool, as_json: bool) -> int:
    """Run a pipeline: from a data file to a report, as FILE (release.toml) says.

    A stage whose options and inputs are those of the last run is passed over. Interrupted, the same command goes on
    where it stopped; people who were released stay as they were. dphmm init writes a file to begin with.
    """
    console = Console(quiet or as_json)
    path = checked_input(file, "FILE")
    pipeline = Pipeline.read(path)
    pipeline.check()
    folder = pipeline.folder
    folder.mkdir(parents=True, exist_ok=True)
    record, found, code = _read_record(folder / RECORD), {}, 0
    for name, table in pipeline.stages.items():
        words, inputs = pipeline.command(name, table)
        key = _key(words, inputs)
        if _is_done(record.get(name), key, folder):
            found[name] = "as it was"
            continue
        if name == "split" and "release" in record:
            came = "rows or options that changed after a release"
            expected = "another folder: split anew, people who were released could be among those fitted on"
            raise InvalidInput("[split]", came, expected)
        if name == "release":
            _check_again(record.get(name), key, inputs, spend_again)
            words += ["--resume"] * (folder / LEDGER).exists()
        console.say([("", f"{name}: dphmm {words[0]}")])
        # A release keeps what is there by itself: it goes on, or refuses.
        words += ["--force"] * (name != "release") + ["--quiet"] * (quiet or as_json)
        ended = _dphmm(words)
        if ended not in (0, REJECTED):
            return ended
        code, found[name] = max(code, ended), "done"
        record[name] = {
            **key,
            "outputs": {one: file_digest(folder / one) for one in STAGES[name].writes if (folder / one).exists()},
        }
        write_counts(folder / RECORD, {"format": _FORMAT, "stages": record})
    if as_json:
        print_json({"stages": found, "folder": str(folder), "report": _report(folder)})
    else:
        console.say(found.items())
        if (report := _report(folder)) is not None:
            click.echo(report)
    return code


def _report(folder: Path) -> str | None:
    return str(folder / REPORT) if (folder / REPORT).exists() else None


@dataclass(frozen=True)
class Pipeline:
    """The stages of a file, in the order in which they run, and the folder that everything is written to."""

    source: str
    folder: Path
    beside: Path
    stages: Mapping[str, Mapping[str, Any]]

    @classmethod
    def read(cls, path: Path) -> Pipeline:
        """A pipeline of a TOML file; numbers stay as they are written.

        Raises InvalidInput for what is no TOML, for tables that there are not, and for tables that are missing.
        """
        if path.stat().st_size > _LARGEST:
            raise InvalidInput("FILE", f"{path.name}, of more than a megabyte", "a pipeline as dphmm init writes it")
        try:
            told = tomllib.loads(path.read_text(encoding="utf-8"), parse_float=str)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            came = f"{path.name}, which is no TOML: {error}"
            raise InvalidInput("FILE", came, "a pipeline as dphmm init writes it") from None
        folder = told.pop("folder", "out")
        if not isinstance(folder, str) or not folder:
            raise InvalidInput("folder", repr(folder), "the name of a folder")
        for name, table in told.items():
            if name not in STAGES or not isinstance(table, dict):
                raise InvalidInput(f"[{name}]", "a table that there is not", _near(name, list(STAGES)))
        for name in _NEEDED:
            if name not in told:
                raise InvalidInput("FILE", f"{path.name}, without a table [{name}]", f"[{name}] and its options")
        if ("model" in told) == ("fit" in told):
            came = "both [model] and [fit]" if "fit" in told else "neither [model] nor [fit]"
            raise InvalidInput(
                "FILE", f"{path.name}, with {came}", "one: a model made from a map, or one fitted to people"
            )
        if "fit" in told and "split" not in told and "file" not in told["fit"]:
            expected = "[split], which keeps people to fit on apart, or file, a table of other people"
            raise InvalidInput("[fit]", "no people", expected)
        return cls(str(path), path.parent / folder, path.parent, {name: told[name] for name in STAGES if name in told})

    def check(self) -> None:
        """Raise InvalidInput for a member of a table that is no option of its command, before anything runs."""
        for name, table in self.stages.items():
            known = _options(self._words(name, table))
            for member, value in table.items():
                if member in ("kind", "file"):
                    if not isinstance(value, str) or not getattr(STAGES[name], member):
                        raise InvalidInput(f"[{name}] {member}", repr(value), "a text, in a table that has it")
                    continue
                if member in _OWN or member not in known:
                    raise InvalidInput(f"[{name}] {member}", "no option of it", _near(member, known))
                _written(value, f"[{name}] {member}")

    def _words(self, name: str, table: Mapping[str, Any]) -> list[str]:
        return [word.format(kind=table.get("kind", STAGES[name].kind)) for word in STAGES[name].words]

    def command(self, name: str, table: Mapping[str, Any]) -> tuple[list[str], list[Path]]:
        """The words of a stage's command, and the files that it reads. Raises InvalidInput for one that is missing."""
        stage, words, inputs = STAGES[name], self._words(name, table), []
        if "file" in table:
            inputs.append(self._beside(table["file"], f"[{name}] file"))
            words.append(str(inputs[0]))
        for option, file in stage.reads:
            if (file == PLAN and "plan" not in self.stages) or ("file" in table and not option):
                continue
            path = self.folder / self._of(file)
            inputs.append(path)
            words += [option] * bool(option) + [str(path)]
        words += ["-o", *(str(self.folder / file) for file in stage.writes)]
        if name == "release":
            words += ["--ledger", str(self.folder / LEDGER)]
        for member, value in table.items():
            if member in ("kind", "file"):
                continue
            for text in _written(value, f"[{name}] {member}"):
                words += [f"--{member}", *([] if text is None else [text])]
                if text is not None and (named := self.beside / text).is_file():
                    words[-1] = str(named)
                    inputs.append(named)
        return words, inputs

    def _of(self, file: str) -> str:
        """Without a split everybody of the data is released."""
        return PEOPLE if file == RELEASED_PEOPLE and "split" not in self.stages else file

    def _beside(self, text: str, field: str) -> Path:
        path = self.beside / text
        if not path.exists():
            raise InvalidInput(field, text, f"a file that exists, beside {Path(self.source).name}")
        return path


def _written(value: Any, field: str) -> list[str | None]:
    """An option's values as words; None for a flag that is set."""
    if isinstance(value, bool):
        return [None] if value else []
    if isinstance(value, list):
        return [text for one in value for text in _written(one, field)]
    if isinstance(value, (str, int)):
        return [str(value)]
    raise InvalidInput(field, repr(value), "a text, a number, true or false, or a list of these")


def _options(words: Sequence[str]) -> list[str]:
    """The options of a command, without dashes."""
    from dphmm.cli.app import app

    context = click.Context(app)
    command: click.Command = app
    for word in words:
        assert isinstance(command, click.Group)
        found = command.get_command(context, word)
        if found is None:
            raise InvalidInput("kind", repr(word), _near(word, command.list_commands(context)))
        command = found
    return [name[2:] for one in command.params for name in one.opts if name.startswith("--")]


def _near(came: str, known: Sequence[str]) -> str:
    near = get_close_matches(came, known, 1)
    return f"{near[0]}?" if near else f"one of {', '.join(known)}"


def _dphmm(words: Sequence[str]) -> int:
    """Run a command; its standard output goes to standard error. Its exit code."""
    from dphmm.cli.app import app

    with redirect_stdout(sys.stderr):
        try:
            app.main(list(words))
        except SystemExit as end:
            return int(end.code or 0)


def _key(words: Sequence[str], inputs: Sequence[Path]) -> dict[str, Any]:
    """What a stage's outputs depend on."""
    return {"dphmm": version("dphmm"), "words": list(words), "inputs": {str(path): _digest(path) for path in inputs}}


def _digest(path: Path) -> str | None:
    """SHA-256 of a file; of a folder that of its names, sizes and times; None where there is none yet."""
    if path.is_dir():
        listed = sorted(
            (str(one.relative_to(path)), one.stat().st_size, one.stat().st_mtime_ns) for one in path.rglob("*")
        )
        return hashlib.sha256(json.dumps(listed).encode()).hexdigest()
    return file_digest(path) if path.is_file() else None


def _is_done(before: Mapping[str, Any] | None, key: Mapping[str, Any], folder: Path) -> bool:
    if before is None or any(before[name] != key[name] for name in key):
        return False
    return all(
        (folder / name).is_file() and file_digest(folder / name) == sha for name, sha in before["outputs"].items()
    )


def _check_again(before: Mapping[str, Any] | None, key: Mapping[str, Any], inputs: Sequence[Path], again: bool) -> None:
    """Refuse a release that asks the same people something else, unless that is wanted."""
    if before is None or again:
        return
    rows = str(inputs[0])
    asked = {path: sha for path, sha in key["inputs"].items() if path != rows}
    asked_before = {path: sha for path, sha in before["inputs"].items() if path != rows}
    if asked != asked_before or before["words"] != key["words"]:
        came = "another model, policy, plan or option than the last release had"
        expected = "the same, or --spend-again: what is published anew is spent beside what is published"
        raise InvalidInput("[release]", came, expected)


def _read_record(path: Path) -> dict[str, Any]:
    """What ran before. Raises InvalidInput for a file that is no record."""
    if not path.exists():
        return {}
    expected = "a record as dphmm run writes it; without it all stages run again"
    try:
        told = json.loads(checked_input(path, RECORD).read_text(encoding="utf-8"))
        stages = told["stages"]
        sound = told["format"] == _FORMAT and all(
            isinstance(one["words"], list) and isinstance(one["inputs"], dict) and isinstance(one["outputs"], dict)
            and "dphmm" in one and name in STAGES
            for name, one in stages.items()
        )  # fmt: skip
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        sound = False
    if not sound:
        raise InvalidInput(str(path), "no record of a run", expected)
    return dict(stages)


@click.command("init", context_settings=CONTEXT)
@click.argument("data", metavar="DATA")
@click.option("-o", "--output", default="release.toml", show_default=True, metavar="FILE", help="The file to write.")
@force
@messages
def init(data: str, output: str, force: bool, quiet: bool, as_json: bool) -> None:
    """Write a pipeline to begin with, commented, from the names of DATA's columns: no row is looked at.

    What has to be chosen, and may not be taken from the data, is left open: the box of the map, or the names of states.
    """
    source = checked_input(data, "DATA")
    new_output(output, [source], force)
    text = _begun(source, column_names(source), Path(output).parent)
    with replacing(output) as temporary:
        temporary.write_text(text, encoding="utf-8")
    if as_json:
        print_json({"output": output})
    Console(quiet or as_json).say([("written", f"{output}: choose what it leaves open, then dphmm run {output}")])


def _begun(data: Path, columns: Sequence[str], beside: Path) -> str:
    named = data.name if data.parent.resolve() == beside.resolve() else str(data.resolve())
    lower = {name.lower(): name for name in columns}

    def first(*names: str) -> str | None:
        return next((lower[name] for name in names if name in lower), None)

    lat, lon = first("lat", "latitude", "y"), first("lon", "lng", "long", "longitude", "x")
    lines = [
        "# A pipeline from a data file to a report: dphmm run reads it. Members of a table are options of its command",
        "# (dphmm import csv -h, dphmm model grid -h, ...), without their dashes.",
        'folder = "out"  # everything is written here',
        "",
        "[data]",
        f"file = {json.dumps(named)}",
        f"# its columns: {', '.join(columns)}",
        *_column("user-column", first("user", "user_id", "uid", "id", "subject", "person"), "user"),
        *_column("time-column", first("t", "time", "timestamp", "datetime", "t_local", "date"), "t"),
    ]
    if lat and lon:
        lines += [*_column("lat-column", lat, "lat"), *_column("lon-column", lon, "lon"), *_MAP]
    else:
        lines += [*_column("state-column", first("state", "page", "label", "activity", "place"), "state"), *_LABELS]
    return "\n".join([*lines, *_REST]) + "\n"


def _column(option: str, name: str | None, default: str) -> list[str]:
    if name == default:
        return []
    return [f'{option} = "COLUMN"  # which one?'] if name is None else [f"{option} = {json.dumps(name)}"]


_MAP = (
    "",
    "[model]  # made from the map alone: nobody's data is in it",
    'kind = "grid"',
    'bbox = "WEST,SOUTH,EAST,NORTH"  # in degrees; public: choose it, never take it from the data',
    'cell = "500m"',
    'step = "10min"',
    'max-speed = "60km/h"',
    "",
    "[policy]",
    'kind = "radius"',
    'covers = "1km"  # all places up to so far apart are hidden from each other',
)
_LABELS = (
    "",
    "[split]  # half of the people are fitted on, the others are released",
    "share = 0.5",
    "",
    "[fit]",
    'state-column = "state"',
    'states-file = "states.csv"  # public: a column state with the names there can be, whoever has them',
    "",
    "[policy]",
    'kind = "complete"  # all states are hidden from each other',
)
_REST = (
    "",
    "[plan]  # when to ask: a budget for a day becomes a schedule",
    "path-epsilon = 12",
    'per = "1d"',
    "",
    "[release]",
    "",
    "[report]",
)
