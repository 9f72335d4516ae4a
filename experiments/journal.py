"""Journals of long runs: lines of a file, each on the disk before the next is begun.

What a crash leaves is whole lines and at most one torn one, which is cut off when the journal is opened again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dphmm.errors import InvalidInput


class Journal:
    """Lines of a file, read at once and appended one by one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.touch()
        self.lines = list(self._read())

    def append(self, line: dict[str, Any]) -> None:
        """Add a line; it survives whatever happens after this returns."""
        written = json.dumps(line, allow_nan=False) + "\n"
        with self.path.open("ab") as file:
            file.write(written.encode())
            file.flush()
            os.fsync(file.fileno())
        self.lines.append(json.loads(written))

    def _read(self) -> Iterator[dict[str, Any]]:
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(self.path, whole)
        for number, line in enumerate(content[:whole].splitlines(), 1):
            try:
                found = json.loads(line)
            except (ValueError, RecursionError):
                found = None
            if not isinstance(found, dict):
                raise InvalidInput(
                    str(self.path), f"line {number}, which is no JSON object", "a journal as it was written"
                )
            yield found
