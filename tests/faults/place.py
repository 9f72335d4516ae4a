"""A folder with good files to spoil, and the command line run inside it."""

from __future__ import annotations

import csv
import json
import os
import shlex
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

RELEASE = "release walks.csv --model model.npz --policy radius.json --epsilon 1 -o out --ledger l.db --yes"
PAGES = "release visits.csv --model pages.npz --policy pages.json --epsilon 1 -o out --ledger l.db --yes"
#: A private name, place and moment that occur in no good file: no message and no output may show them.
STATE = "CANARY_7f3a_hidden"
DIGITS = "50.01937465"
MOMENT = "2024-05-06T08:03:41.867531Z"
SECRETS = (STATE, DIGITS, "01937465", "867531")


@dataclass
class Place:
    """A folder of one case. ``secrets`` are texts that may stand nowhere but in the inputs."""

    folder: Path
    secrets: tuple[str, ...] = SECRETS
    #: Files that are inputs: they may hold secrets, all others may not.
    inputs: set[str] = field(default_factory=set)

    def __truediv__(self, name: str) -> Path:
        return self.folder / name

    def write(self, name: str, content: str | bytes) -> Path:
        """A file of these contents."""
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        self.inputs.add(name)
        return path

    def append(self, name: str, *lines: str) -> Path:
        """More lines at the end of a file."""
        path = self.folder / name
        return self.write(name, path.read_bytes() + "".join(line + "\n" for line in lines).encode())

    def run(self, command: str, input: str | None = None) -> Result:
        """A command run in the folder; whatever is not answered by an exit code is raised here."""
        from dphmm.cli.app import app

        before = Path.cwd()
        os.chdir(self.folder)
        try:
            result = CliRunner().invoke(app, shlex.split(command), input=input)
        finally:
            os.chdir(before)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    def done(self, command: str) -> Result:
        """A command that must go well, to prepare a case."""
        result = self.run(command)
        assert result.exit_code == 0, result.stderr
        return result

    def rows(self, name: str = "out/released.csv") -> list[dict[str, str]]:
        """The rows of a CSV file."""
        with (self.folder / name).open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def document(self, name: str) -> Any:
        """A JSON file."""
        return json.loads((self.folder / name).read_text())

    def contents(self) -> dict[str, bytes]:
        """Every file with its bytes; a ledger's log and lock are the database's own."""
        files = sorted(path for path in self.folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in files}

    @cached_property
    def model(self) -> Any:
        """The model of the town."""
        from dphmm.storage import load_model

        return load_model(self / "model.npz")

    @cached_property
    def pages(self) -> Any:
        """The model of the pages."""
        from dphmm.storage import load_model

        return load_model(self / "pages.npz")
