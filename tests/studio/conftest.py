"""Small settings and a session that computes little."""

from __future__ import annotations

import pytest

from commands import walk_rows, write_rows
from dphmm.studio import session
from dphmm.studio.draft import Area, Draft, ReleaseFile
from dphmm.studio.figures import Ground
from dphmm.studio.session import Studio

GRID = Draft(
    box=(10.0, 50.0, 10.056, 50.036), cell="1km", covers="1km", max_speed="20km/h", step="5min", budget="2",
    per="", steps="8", data={"file": "walks.csv"},
)  # fmt: skip
LABELS = Draft(kind="labels", labels=("home", "work", "away"), step="", budget="4", per="", steps="8")
AREA = Area("hospital", (10.001, 50.001, 10.045, 50.006))


@pytest.fixture
def studio(tmp_path, monkeypatch):
    """studio(draft): a session in a folder with walks.csv; of few invented people, and closed at the end."""
    monkeypatch.setattr(session, "PREVIEW", 2)
    monkeypatch.setattr(session, "FINAL", 4)
    monkeypatch.setattr("dphmm.choose.planning.STAYERS", 20)
    write_rows(tmp_path / "walks.csv", ["user", "t", "lat", "lon"], walk_rows())
    made = []

    def begun(draft=GRID, **choices):
        made.append(Studio(tmp_path, "release.toml", ReleaseFile(draft), Ground(), **choices))
        return made[-1]

    yield begun
    for one in made:
        one.close()
        if one._planning is not None:
            one._planning.join()


def settled(studio, *states):
    """Wait until a session is in one of some states; its planning thread ends by itself."""
    if studio._planning is not None:
        studio._planning.join()
    assert studio.progressed().state in states, studio.progressed()
    return studio.progressed()
