"""dphmm studio: a page on this computer to choose a release by looking."""

from __future__ import annotations

import sys
import webbrowser
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from dphmm.cli.console import Console, print_json
from dphmm.cli.help import CONTEXT, Command
from dphmm.cli.options import messages
from dphmm.cli.pipeline import run_stage
from dphmm.errors import InvalidInput
from dphmm.storage.inputs import checked_input


@click.command("studio", cls=Command, context_settings=CONTEXT)
@click.argument("file", metavar="[FILE]", required=False)
@click.option("-o", "--output", metavar="FILE", help="The pipeline file to write  [default: release.toml]")
@click.option("--backdrop", metavar="G", help="A public map to draw on: GeoJSON of water, roads and names.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port on 127.0.0.1  [default: a free one]")
@click.option("--no-open", is_flag=True, help="Print the address, and open no browser.")
@messages
def studio(
    file: str | None, output: str | None, backdrop: str | None, port: int, no_open: bool, quiet: bool, as_json: bool
) -> int:
    """Choose a release on a page of this computer: map, policy, budget, check, release, report.

    FILE is a table of people (people.csv), or a pipeline file (release.toml) to go on with; without one the page begins
    empty, or with the demo's city. What is chosen is a pipeline file at every moment, and dphmm run does the same.

    The page is for this computer alone: it is served on 127.0.0.1 under an address with a random part, loads nothing
    from elsewhere, and gets no row of the table. Ctrl-C ends it. It needs pip install 'dphmm[studio]'.
    """
    missing = [name for name in ("starlette", "uvicorn", "shapely") if find_spec(name) is None]
    if missing:
        raise InvalidInput("studio", f"a Python without {' and '.join(missing)}", "pip install 'dphmm[studio]'")
    from dphmm.studio.draft import ReleaseFile
    from dphmm.studio.figures import Ground
    from dphmm.studio.server import serve
    from dphmm.studio.session import Studio

    source = None if file is None else checked_input(file, "FILE")
    is_pipeline = source is not None and source.suffix.lower() == ".toml"
    if is_pipeline and output is not None:
        raise InvalidInput("-o", output, "a table as FILE: a pipeline file is saved under its own name")
    folder = Path.cwd() if source is None else source.resolve().parent
    name = source.name if source is not None and is_pipeline else Path(output or "release.toml").name
    if source is None:
        begun = ReleaseFile.read("", name, folder)
    elif is_pipeline:
        begun = ReleaseFile.read(source.read_text(encoding="utf-8"), name, folder)
    else:
        with TemporaryDirectory() as scratch:
            draft = Path(scratch) / name
            ended = run_stage(["init", str(source.resolve()), "-o", str(draft), "--quiet"])
            if ended:
                return ended
            text = draft.read_text(encoding="utf-8").replace(str(source.resolve()), source.name)
        begun = ReleaseFile.read(text, name, folder)
    ground = Ground() if backdrop is None else Ground.read(checked_input(backdrop, "--backdrop"))

    def opened(address: str) -> None:
        if as_json:
            print_json({"address": address})
        else:
            click.echo(address)
        sys.stdout.flush()
        Console(quiet or as_json).say([("", "for this computer alone; Ctrl-C ends it")])
        if not no_open:
            webbrowser.open(address)

    serve(Studio(folder, name, begun, ground, owned=is_pipeline), port, opened)
    return 0
