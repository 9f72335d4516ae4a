"""The schema file of a privacy statement, from its types: ``PYTHONPATH=tests python -m statement.pages`` writes it."""

from __future__ import annotations

import json
from pathlib import Path

from dphmm.statement.release import statement_schema

SCHEMA = Path(__file__).parents[2] / "src" / "dphmm" / "statement" / "privacy-statement.schema.json"


def schema_text() -> str:
    """The schema file."""
    return json.dumps(statement_schema(), indent=2) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(schema_text())
