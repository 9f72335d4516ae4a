"""The pictures of a page as files: SVG and PNG, the same for the same release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphmm.errors import InvalidInput

if TYPE_CHECKING:
    from dphmm.report.content import ReleaseReport


_SUFFIXES = (".svg", ".png")
#: Every picture that a report may have.
_NAMES = ("map", "people", "error", "nights", "sureness", "budget", "set")


def check_figures(folder: str | None, names: Sequence[str] = _NAMES, *, replace: bool) -> None:
    """Refuse, before any work, a folder that cannot take the pictures.

    That is one that cannot be made, or has such pictures (unless ``replace``). Pictures without matplotlib are refused
    too.
    """
    from dphmm.plot.figures import can_draw

    if folder is None:
        return
    if not can_draw():
        raise InvalidInput("--figures", "a Python without matplotlib", "pip install 'dphmm[plot]'")
    if Path(folder).exists() and not Path(folder).is_dir():
        raise InvalidInput("--figures", folder, "a folder")
    if not Path(folder).absolute().parent.is_dir():
        raise InvalidInput("--figures", folder, "a folder that can be made")
    files = [Path(folder) / f"{name}{who}{suffix}" for name in names for who in ("", ".owner") for suffix in _SUFFIXES]
    there = [path for path in files if path.exists()]
    if there and not replace:
        raise InvalidInput("--figures", f"{there[0]}, which exists", "another folder, or --force to replace it")


def write_figures(folder: Path, report: ReleaseReport) -> list[Path]:
    """Draw and write every picture; those with the truth of real people are named so and readable by their owner."""
    import matplotlib
    from matplotlib.figure import Figure

    from dphmm.storage.inputs import replacing

    folder.mkdir(exist_ok=True)
    paths = []
    for name, paint in _pictures(report).items():
        private = report.owner_only and name in ("map", "error")
        with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
            canvas = Figure(figsize=(6.4, 5.2), layout="constrained")
            paint(canvas.add_subplot())
            for suffix, extra in ((".svg", {"Date": None}), (".png", {"Software": None})):
                path = folder / f"{name}{'.owner' if private else ''}{suffix}"
                with replacing(path, private=private) as temporary:
                    canvas.savefig(temporary, format=suffix[1:], dpi=150, metadata=extra)
                paths.append(path)
    return paths


def _pictures(report: ReleaseReport) -> dict[str, Callable[[Any], Any]]:
    """What can be drawn of this release, by name."""
    from dphmm import plot
    from dphmm.report.page import Content

    content, found = Content(report), dict[str, Callable[[Any], Any]]()
    if not content.answered:
        return found
    if content.map is not None:
        found["map"] = lambda ax: plot.belief(report, ax=ax)
    if content.strip_figure is not None:
        found["people"] = lambda ax: plot.strip(report, ax=ax)
    if content.error_figure is not None:
        found["error"] = lambda ax: plot.error(report, ax=ax)
    if content.nights_figure is not None:
        found["nights"] = lambda ax: plot.nights(report, ax=ax)
    found["sureness"] = lambda ax: plot.sureness(report, ax=ax)
    if content.budget_figure is not None:
        found["budget"] = lambda ax: plot.budget(report, ax=ax)
    if content.covered is not None and report.made.policy is not None:
        policy, place = report.made.policy, content.central
        found["set"] = lambda ax: plot.indistinguishable(policy, report.space, place, ax=ax)
    return found
