"""The sentences that a page makes of a report, as its reader sees them."""

from __future__ import annotations

import re
from html import unescape

from dphmm.report import ReleaseReport
from dphmm.report.page import Content, templates


def spoken(report: ReleaseReport, macro: str, *given: object) -> list[str]:
    """The texts between the tags of a macro of words.html, in order: one for each sentence, cell or paragraph."""
    said = templates().get_template("words.html").make_module({"report": report, "c": Content(report)})
    text = re.sub("</?span[^>]*>", "", str(getattr(said, macro)(*given)))
    parts = (re.sub("[ \n]+", " ", unescape(part)).strip(" ") for part in re.split("<[^>]*>", text))
    return [part for part in parts if part]
