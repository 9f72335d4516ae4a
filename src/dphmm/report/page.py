"""One self-contained HTML page: nothing is loaded, no script but the page's own may run, readable on paper."""

from __future__ import annotations

import base64
import hashlib
from html import escape
from importlib.resources import files
from pathlib import Path

from dphmm.report import sections
from dphmm.report.content import ReleaseReport
from dphmm.report.explorer import data_block, explorer, script
from dphmm.storage.inputs import PathLike, replacing


def page(report: ReleaseReport) -> str:
    """The whole page; the same report gives the same text."""
    style = files("dphmm.report").joinpath("page.css").read_text(encoding="utf-8")
    body = "".join(
        part(report)
        for part in (
            sections.head,
            explorer,
            sections.pictures,
            sections.costs,
            sections.limits,
            sections.parameters,
        )
    )
    code = script() if len(report.explored) else ""
    run = f"{data_block(report)}<script>{code}</script>" if code else ""
    title = f"OWNER ONLY: {report.title}" if report.owner_only else report.title
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(style, code)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        f'<link rel="icon" href="data:,"><title>{escape(title)}</title><style>{style}</style></head>'
        f"<body><main>{body}</main>{run}</body></html>\n"
    )


def write_report(path: PathLike, report: ReleaseReport) -> Path:
    """Write the page, at once or not at all; one for the data owner alone can be read by nobody else.

    Raises InvalidInput for a path that cannot be written.
    """
    text = page(report)
    with replacing(path, private=report.owner_only) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return Path(path)


def _policy(style: str, code: str) -> str:
    """The page's content security policy.

    Nothing may be loaded from anywhere, and nothing may run but what is hashed here, whatever a name says; not even
    these scripts may make markup of a text.
    """
    scripts = f"script-src {_hash(code)}; " if code else ""
    markup = "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    return f"default-src 'none'; {scripts}style-src {_hash(style)}; img-src data:; {markup}"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
