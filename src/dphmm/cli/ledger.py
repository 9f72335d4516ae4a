"""dphmm ledger: continue a ledger file of an older format."""

from __future__ import annotations

import click

from dphmm.cli.options import CONTEXT
from dphmm.storage.ledger.schema import migrate_ledger


@click.group("ledger", context_settings=CONTEXT)
def ledger() -> None:
    """Work on a ledger file itself. What it says has been spent is printed by dphmm account."""


@ledger.command("migrate", context_settings=CONTEXT)
@click.argument("path", metavar="LEDGER")
def migrate(path: str) -> None:
    """Turn a ledger file of an older format into one of today's, where it lies.

    All of its records are moved and compared, in one transaction. Whatever stops it leaves the file as it was: run it
    again. No copy is left, because a second ledger of the same people could give second answers.
    """

    changed = migrate_ledger(path)
    click.echo(f"{path}: continued in format 2" if changed else f"{path}: is of format 2 already; nothing was changed")
