"""Counts that depend on where people are, in a file for the data owner alone; what is printed depends on none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dphmm.cli.console import Console
    from dphmm.cli.release_job import Job
    from dphmm.states.trajectory import Trajectories

_MEANING = "counts for the data owner alone: they depend on where people are, and are never to be published"


def owner_path(output: str) -> Path:
    """Where the counts of a release to ``output`` are; of a stream, which has none, they are beside its ledger."""
    return Path(f"{output}.owner.json")


def rows_to_answer(job: Job, rows: Trajectories) -> int:
    """How many rows are left when the last one of every time step counts."""
    from dphmm.states.observed import in_steps

    return len(in_steps(rows, job.model.step)[0])


def owner_counts(rows: int, outside: int, releases: int, drifted: int, set_aside: Mapping[str, int]) -> dict[str, Any]:
    """The document: of ``rows`` in no state of the model, of new ``releases`` drifted from their plan set."""
    return {
        "meaning": _MEANING,
        "rows": rows,
        "rows_in_no_state": outside,
        "share_in_no_state": outside / rows if rows else None,
        "new_releases": releases,
        "drifted": drifted,
        "share_drifted": drifted / releases if releases else None,
        "set_aside": dict(set_aside),
    }


def write_counts(path: Path, counts: Mapping[str, Any]) -> None:
    """Write the counts, at once or not at all, readable by their owner only."""
    from dphmm.storage.inputs import replacing

    with replacing(path, private=True) as temporary:
        temporary.write_text(json.dumps(counts, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def name_counts(path: Path, given: Mapping[str, Any], console: Console) -> None:
    """The same line whatever the counts are; with --owner-view also where --quiet silences the rest."""
    words = f"counts for you alone, never to be published: {path.name}"
    if given["owner_view"]:
        console.tell(words)
    else:
        console.say([("", words)])
