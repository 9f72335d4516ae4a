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
_NAMES = ("map", "spent", "error", "degree", "hull", "policy")


def check_figures(folder: str | None, names: Sequence[str] = _NAMES, *, replace: bool) -> None:
    """Refuse, before any work, a folder that cannot take the pictures.

    That is one that cannot be made, or has such pictures (unless ``replace``). Pictures without matplotlib are refused
    too.
    """
    from dphmm.report.figures import can_draw

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
    import numpy as np

    from dphmm import plot
    from dphmm.plot._bodies import degree_band

    user, space, smoothed = report.subject, report.space, report.smoothed
    # Somebody far from all states would stretch the map beyond recognition.
    truth = None if report.truth is None else np.where(report.inside[:, None], report.truth, np.nan)
    rows = report.rows
    few = report.released.take(rows)
    part: dict[str, Any] = {
        "user": user,
        "truth": None if truth is None else truth[rows],
        "smoothed": None if smoothed is None else smoothed[rows],
    }
    found: dict[str, Callable[[Any], Any]] = {
        "map": lambda ax: plot.release_map(few, space, ax=ax, **part),
        "spent": lambda ax: plot.spent(report.released, user=user, ax=ax),
    }
    if truth is not None and report.inside.any():
        found["error"] = lambda ax: plot.error_over_time(report.released, truth, space, smoothed=smoothed, ax=ax)
    if report.timeline is not None:
        bands = np.array(report.timeline.degree_rows(rows), dtype=np.float64)
        steps = few.column("step").to_numpy()
        found["degree"] = lambda ax: degree_band(bands, steps, ax)
    hull, policy = report.hull, report.policy
    if hull is not None and hull.hull_vertices is not None and hull.dimension <= 2:
        found["hull"] = lambda ax: plot.hull(hull, ax=ax)
    if policy is not None and space.n_states <= 2000 and len(policy.edges()) <= plot._bodies.MOST_EDGES:
        found["policy"] = lambda ax: plot.policy(policy, space, ax=ax)
    return found
