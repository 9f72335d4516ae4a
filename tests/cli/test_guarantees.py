"""What commands say of a release before anything is drawn: whom the model was fitted on, and traps of its plans."""

from __future__ import annotations

import pytest

from commands import set_in
from dphmm.release.batch import Batch


@pytest.fixture
def ending(tmp_path, run):
    """A folder with rows, a model of an absorbing state that was fitted on them, and a policy."""
    (tmp_path / "rows.csv").write_text("user,state\na,work\na,home\na,work\na,end\nb,home\nb,work\n")
    run("fit", tmp_path / "rows.csv", "-o", tmp_path / "model.npz", "--state-column", "state")
    run("policy", "complete", tmp_path / "model.npz", "-o", tmp_path / "policy.json")
    return tmp_path


TRAPPED = "the belief can lock onto it"
SAME = "on the very people released here"


def test_details_and_a_dry_run_warn_of_a_trap(ending, run, one_json, release_of):
    shown = ("plan", "--details", ending / "model.npz", "--policy", ending / "policy.json", "--json")
    assert any(TRAPPED in warning for warning in one_json(run(*set_in(shown, constraint="delta=0.01")))["warnings"])
    assert one_json(run(*shown))["warnings"] == []
    arguments = release_of(ending, ending, "rows.csv", "policy.json")
    told = run(*set_in(arguments, constraint="delta=0.01"), "--dry-run").stderr
    assert TRAPPED in told
    assert SAME in told


def test_what_is_public_is_said_before_anything_is_drawn(ending, run, release_of, monkeypatch):
    def interrupted(*_args, **_kept):
        raise KeyboardInterrupt

    monkeypatch.setattr(Batch, "run", interrupted)
    arguments = release_of(ending, ending, "rows.csv", "policy.json")
    told = run(*set_in(arguments, constraint="delta=0.01"), "--quiet", code=130).stderr.splitlines()
    assert len(told) == 3
    assert SAME in told[0]
    assert TRAPPED in told[1]
    assert told[2].startswith("interrupted: 0 releases of this run are stored")
