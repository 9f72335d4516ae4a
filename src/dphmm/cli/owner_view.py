"""Counts of true states, for the data owner alone: does the model fit these rows?"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dphmm.cli.release_job import Job
    from dphmm.states.trajectory import Trajectories


def rows_to_answer(job: Job, rows: Trajectories) -> int:
    """How many rows are left when the last one of every time step counts."""
    from dphmm.states.observed import in_steps

    return len(in_steps(rows, job.model.step)[0])


def outside_words(outside: int, rows: int) -> str:
    """How many rows are in no state."""
    counted = f"{outside} of {rows} rows are in no state of the model"
    if not outside:
        return counted + ": nothing amiss"
    doubt = "; is it the model of these rows?" if 2 * outside > rows else ""
    return f"{counted} (a place outside every cell, an unknown name){doubt}"


def drift_words(drifted: int, releases: int) -> str:
    """How many new releases were of a true state that the plan did not have."""
    counted = f"{drifted} of {releases} new releases were of a state outside their plan set"
    return counted + (", answered as its surrogate" if drifted else ": nothing amiss")
