"""The members of a privacy statement, as the page of files has them: from the JSON schema of its types."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from dphmm.statement.parts import schema
from dphmm.statement.query import QueryStatement
from dphmm.statement.release import statement_schema
from dphmm.statement.synthetic import SyntheticStatement

#: The schema of each kind of statement.
STATEMENTS = {
    "release": statement_schema(),
    "query": schema(QueryStatement),
    "synthesis": schema(SyntheticStatement),
}
_FORMS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false",
          "object": "object", "null": "null"}  # fmt: skip


def members(found: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Each member of a schema by its path, what it looks like, and what it is."""
    yield from _members(found, found["$defs"], "")


def _members(part: dict[str, Any], parts: dict[str, Any], inside: str) -> Iterator[tuple[str, str, str]]:
    for name, found in part["properties"].items():
        kinds = [_resolved(kind, parts) for kind in found.get("anyOf", [found])]
        forms = [f"`{json.dumps(value)}`" for value in found.get("enum", ())] or [_form(kind, parts) for kind in kinds]
        form = " or ".join(forms)
        meaning = found.get("description") or next((kind["description"] for kind in kinds if "description" in kind), "")
        if name not in part["required"]:
            form += ", or absent"
        yield f"{inside}{name}", form, meaning
        for kind in kinds:
            if "properties" in kind:
                yield from _members(kind, parts, f"{inside}{name}.")


def _resolved(found: dict[str, Any], parts: dict[str, Any]) -> dict[str, Any]:
    return parts[found["$ref"].rpartition("/")[2]] if "$ref" in found else found


def _form(found: dict[str, Any], parts: dict[str, Any]) -> str:
    if "const" in found:
        return f"`{json.dumps(found['const'])}`"
    if "enum" in found:
        return ", ".join(f"`{json.dumps(value)}`" for value in found["enum"])
    if found.get("pattern", "").endswith("{64}$"):
        return "SHA-256 in hex"
    if found["type"] == "array":
        item = _resolved(found["items"], parts)
        within = f" with `{'`, `'.join(item['properties'])}`" if "properties" in item else ""
        return f"list of {_form(item, parts)}{within}"
    return _FORMS[found["type"]]
