"""The meaning of each colour, on light and on dark paper: one table for pages, notebook pictures and their styles."""

from __future__ import annotations

from typing import NamedTuple


class Colour(NamedTuple):
    """A colour on light and on dark paper, #rrggbb."""

    light: str
    dark: str


#: Colours by their role. Every role has a form of its own as well: a reader who sees no colours loses nothing.
ROLES = {
    "paper": Colour("#ffffff", "#10141a"),
    "panel": Colour("#f7f7f5", "#171c23"),
    "land": Colour("#f4f3ef", "#1a1f25"),
    "ink": Colour("#1c2430", "#e8ecf1"),
    "soft": Colour("#55606e", "#a4afbb"),
    "rule": Colour("#dfe1e0", "#2b333d"),
    "published": Colour("#c2410c", "#ff9a57"),
    "belief-95": Colour("#dfe3f7", "#232c55"),
    "belief-80": Colour("#a9b4e8", "#3f51a3"),
    "belief-50": Colour("#5566cb", "#7f94f5"),
    "belief-line": Colour("#3446b0", "#9db0ff"),
    # On dark paper the cells in which it lies are as bright as their outline.
    "guess": Colour("#3446b0", "#ffffff"),
    "reference": Colour("#87909b", "#828d9a"),
    "guarantee": Colour("#0b7a6c", "#4cc9b4"),
    "danger": Colour("#9f1d35", "#ff8fa0"),
    "water": Colour("#dbe6e8", "#17303a"),
    "road": Colour("#cfcbc1", "#38404a"),
}
#: Labels of states, in their order; of more labels than these the last is of several: "other".
LABELS = (
    Colour("#0f8b8d", "#45c4c2"),
    Colour("#3446b0", "#8fa4ff"),
    Colour("#7a3e9d", "#c79aec"),
    Colour("#b8860b", "#e3b341"),
    Colour("#6b7682", "#9aa5b1"),
    Colour("#b3261e", "#ff8a80"),
)


def css() -> str:
    """The colours as custom properties of a page: light, and dark where the reader prefers it, but never in print."""
    named = [*ROLES.items(), *((f"label-{number}", colour) for number, colour in enumerate(LABELS))]
    light = "".join(f"--{name}:{colour.light};" for name, colour in named)
    dark = "".join(f"--{name}:{colour.dark};" for name, colour in named)
    return f":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"
