"""Help in two lengths: -h has the purpose, examples to copy and at most ten options; --help-all has every option.

What every command takes stands once, in dphmm -h.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from dphmm.cli.meant import said

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
#: Options of every command that may take them, by name.
COMMON = {
    "as_json": "--json: one JSON object on standard output.",
    "quiet": "-q, --quiet: no progress and no summary; warnings stay.",
    "dry_run": "--dry-run: nothing is drawn, spent or written; what it would be is told.",
    "force": "--force: replace an output that exists.",
    "spelling": "--spelling: same or exact, spellings of a name are one person, or several.",
}
#: So many options are in a short help.
_SHORT = 10
#: Options of the short help, by name, of commands that have more.
FIRST: Mapping[str, Sequence[str]] = {
    "release": (
        "model", "policy", "plan", "output", "epsilon", "path_epsilon", "per", "cap_epsilon", "min_people", "new",
    ),
    "plan": (
        "policy", "path_epsilon", "per", "zone", "hours", "schedule", "epsilon", "reserve", "output",
    ),
    "read": ("estimates", "by", "per", "event", "first", "last", "others", "sentences", "believe", "output"),
    "fit": (
        "output", "grid", "h3", "bbox", "step", "epsilon", "max_length", "max_sequences", "ledger", "about",
    ),
    "verify": ("model", "policy", "epsilon", "steps", "draws", "samples"),
    "import csv": (
        "output", "user_column", "time_column", "state_column", "lat_column", "lon_column", "delimiter", "timezone",
        "time_format", "no_times",
    ),
}  # fmt: skip
#: Lines to copy, by command.
EXAMPLES: Mapping[str, Sequence[str]] = {
    "demo": ("dphmm demo",),
    "init": ("dphmm init people.csv", "dphmm init phones.zip -o phones.toml"),
    "check": ("dphmm check --setup release.toml", "dphmm check people.csv --model model.npz --plan plan.json"),
    "run": ("dphmm run release.toml", "dphmm run release.toml --spend-again"),
    "plan": (
        "dphmm plan model.npz --policy policy.json --path-epsilon 12 --per 1d -o plan.json",
        "dphmm plan model.npz --policy policy.json --path-epsilon 12 --per 1d --hours 7-21 --zone Europe/Berlin",
    ),
    "release": (
        "dphmm release people.csv --model model.npz --policy policy.json --plan plan.json -o out",
        "dphmm release people.csv --model model.npz --policy policy.json --plan plan.json --dry-run",
        "dphmm release - --model model.npz --policy policy.json --path-epsilon 12 --per 1d -o monday",
    ),
    "report": ("dphmm report out", "dphmm report out --truth people.csv", "dphmm report out --user ann --user bob"),
    "read": (
        "dphmm read out --estimates",
        "dphmm read out --by districts.csv --per hour-of-day",
        "dphmm read out --event hospital --from 2024-05-06T09:00Z --to 2024-05-06T12:00Z",
    ),
    "check-release": ("dphmm check-release out", "dphmm check-release out --plain plain"),
    "export": ("dphmm export out -o released.geojson", "dphmm export out -o released.parquet"),
    "split": ("dphmm split people.csv -o to-fit.parquet to-release.parquet",),
    "fit": (
        "dphmm fit people.csv -o model.npz --grid 1km --bbox 116.28,39.85,116.48,39.99 --step 5min --epsilon 1 "
        "--max-length 100",
        "dphmm fit visits.csv -o model.npz --state-column page",
    ),
    "model grid": (
        "dphmm model grid -o model.npz --bbox 13.30,52.48,13.40,52.54 --cell 340m --step 10min --max-speed 20km/h",
    ),
    "model h3": (
        "dphmm model h3 -o model.npz --bbox 13.30,52.48,13.40,52.54 --resolution 8 --step 10min --max-speed 20km/h",
    ),
    "model zones": ("dphmm model zones wards.geojson -o model.npz --step 10min --max-speed 20km/h",),
    "model matrix": ("dphmm model matrix weights.csv -o model.npz --step 1d",),
    "model edges": ("dphmm model edges moves.csv -o model.npz --stay 0.5",),
    "policy radius": ("dphmm policy radius model.npz -o policy.json --covers 1km",),
    "policy complete": ("dphmm policy complete model.npz -o policy.json",),
    "policy categorical": ("dphmm policy categorical model.npz -o policy.json --labels kinds.csv",),
    "policy edges": ("dphmm policy edges model.npz -o policy.json --graph pairs.csv",),
    "policy union": ("dphmm policy union model.npz near.json kinds.json -o policy.json",),
    "synthesize": ("dphmm synthesize model.npz -o invented.parquet --people 1000 --steps 144",),
    "optimize": ("dphmm optimize model.npz --policy policy.json --epsilon 1 -o table.npz",),
    "verify": (
        "dphmm verify --model model.npz --policy policy.json --epsilon 1 --steps 10",
        "dphmm verify --samples a.csv b.csv --epsilon 1",
    ),
    "account": ("dphmm account ledger.db", "dphmm account ledger.db --subject ann"),
    "studio": ("dphmm studio", "dphmm studio people.csv", "dphmm studio release.toml"),
    "warm": ("dphmm warm",),
    "import csv": ("dphmm import csv taxis.csv -o trajectories.parquet --user-column taxi --timezone Europe/Berlin",),
    "import geo": ("dphmm import geo phones -o trajectories.parquet --user-from file-name",),
    "import xes": ("dphmm import xes hospital.xes.gz -o trajectories.parquet",),
}


class Command(click.Command):
    """A command with a short help and a long one."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        if all(param.name != "help_all" for param in self.params):
            self.params.append(_help_all())

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The purpose, examples, and the options of most days; with --help-all all of them."""
        name = ctx.command_path.removeprefix("dphmm ")
        whole = bool(ctx.meta.get(_WHOLE))
        self.format_usage(ctx, formatter)
        text = (self.help or "").strip()
        with formatter.indentation():
            for paragraph in text.split("\n\n") if whole else text.split("\n\n")[:1]:
                formatter.write_paragraph()
                formatter.write_text(" ".join(paragraph.split()))
        if EXAMPLES.get(name):
            with formatter.section("Examples"):
                for line in EXAMPLES[name]:
                    formatter.write(f"{'':{formatter.current_indent}}{line}\n")
        records = list(own_options(self, ctx))
        first = [record for option in FIRST.get(name, ()) for shown, record in records if shown == option]
        shown = [record for _, record in records] if whole else (first or [record for _, record in records])[:_SHORT]
        if shown:
            with formatter.section("Options"):
                formatter.write_dl(shown)
        left = len(records) - len(shown)
        formatter.write_paragraph()
        common = [word.split(":")[0] for key, word in COMMON.items() if key in {param.name for param in self.params}]
        rest = f"{left} more options, and how it works" if left else "how it works"
        kinds = ctx.parent is not None and isinstance(ctx.parent.command, Kinds)
        page = name.split()[0] if kinds else name
        more = [f"dphmm {page} --help-all: {rest}."] * (left > 0 or "\n\n" in text)
        more += [f"As every command: {', '.join(common)} (dphmm -h)."] * bool(common)
        for line in [] if whole else more:
            formatter.write(f"{line}\n")


class Kinds(click.Group):
    """A command of several kinds, each with its short help; all have one page of options, which says who takes what."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.params.append(_help_all())

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the kind that is typed. Raises UsageError with the one that was meant, if that can be told."""
        kinds = self.list_commands(ctx)
        if not (args[0] in kinds or args[0].startswith("-") or ctx.resilient_parsing):
            ctx.fail(said("kind", args[0], kinds))
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The kinds; with --help-all the options of all of them, each once."""
        self.format_commands(ctx, formatter)
        name = ctx.command_path.removeprefix("dphmm ")
        if not ctx.meta.get(_WHOLE):
            formatter.write_paragraph()
            formatter.write(f"dphmm {name} KIND -h: one of them. dphmm {name} --help-all: every option.\n")
            return
        with formatter.section("Options"):
            formatter.write_dl(list(self.options(ctx).items()))

    def options(self, ctx: click.Context) -> dict[str, str]:
        """The help of each option by what it is called: each meaning, with the kinds that take it so."""
        kinds, takers = self.list_commands(ctx), dict[str, dict[str, list[str]]]()
        for kind in kinds:
            command = self.get_command(ctx, kind)
            assert command is not None
            for _, (called, meaning) in own_options(command, click.Context(command, info_name=kind, parent=ctx)):
                takers.setdefault(called, {}).setdefault(meaning, []).append(kind)

        def said(meaning: str, of: list[str]) -> str:
            return meaning if len(of) == len(kinds) else f"{meaning}  [{', '.join(of)}]"

        return {called: "  ".join(said(*pair) for pair in meanings.items()) for called, meanings in takers.items()}


def _help_all() -> click.Option:
    return click.Option(["--help-all"], is_flag=True, is_eager=True, expose_value=False, hidden=True, callback=_all)


def own_options(command: click.Command, ctx: click.Context) -> list[tuple[str, tuple[str, str]]]:
    """The options of a command beside those of every command: by name, what they are called and their help."""
    records = []
    for param in command.params:
        record = param.get_help_record(ctx)
        if record is not None and isinstance(param, click.Option) and param.name not in COMMON:
            records.append((str(param.name), record))
    return records


_WHOLE = "dphmm.help.whole"


def _all(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        # What a kind takes is on the page of all of them.
        page = ctx.parent if ctx.parent is not None and isinstance(ctx.parent.command, Kinds) else ctx
        page.meta[_WHOLE] = True
        click.echo(page.get_help(), color=ctx.color)
        ctx.exit()
