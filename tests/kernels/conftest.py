"""A way to run commands."""

from cli.conftest import run

__all__ = ["run"]
