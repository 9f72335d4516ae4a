"""One self-contained HTML page: no scripts, no requests, readable on paper."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from pathlib import Path

from dphmm.report import sections
from dphmm.report.content import ReleaseReport
from dphmm.storage.inputs import PathLike, replacing

#: Nothing may be loaded from anywhere, whatever a name in the data says.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page(report: ReleaseReport) -> str:
    """The whole page."""
    style = files("dphmm.report").joinpath("page.css").read_text(encoding="utf-8")
    body = "".join(
        part(report)
        for part in (
            sections.head,
            sections.pictures,
            sections.costs,
            sections.limits,
            sections.parameters,
        )
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{escape(report.title)}</title><style>{style}</style></head>'
        f"<body><main>{body}</main></body></html>\n"
    )


def write_report(path: PathLike, report: ReleaseReport) -> Path:
    """Write the page, at once or not at all. Raises InvalidInput for a path that cannot be written."""
    text = page(report)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return Path(path)
