"""Where no limit is set, dphmm release says what a reader finds and asks: nothing is begun without an agreement.

It would fail for a release, a stream or a pipeline that goes on by itself, for a limit of any kind that is asked about
all the same, for a figure that hangs on where people are, and for anything that is written before the owner agreed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import suppress

import pytest

from commands import PIPELINE, set_in, typed, walk_rows, write_rows
from dphmm.accounting.budget import UNLIMITED
from dphmm.cli.console import Console
from dphmm.cli.options import options_of
from dphmm.cli.release import release
from dphmm.cli.release_job import Job, ReleaseOptions, names_limit
from dphmm.storage.ledger import open_ledger

pytestmark = pytest.mark.replayed_words

#: What is told of the town: metres, and that its cells are found only by stronger answers.
FOUND = (
    r"No limit is set\. If every step has an answer and people move as the model says, a reader misses somebody's "
    r"place by [\d,]+ m on average \([\d,]+ m without the file\)"
)
BUDGET = r"--path-epsilon E --per 1d, or a plan \(dphmm plan\)"
REFUSED = rf"error: --epsilon: got no limit with it; expected {BUDGET}; or --yes, which goes on without a limit"
QUESTION = "go on without a limit? [y/N]: "
LIMITS = {
    "--cap-epsilon": ("--cap-epsilon", "50"),
    "--cap-cost": ("--cap-cost", "500"),
    "--path-epsilon": ("--path-epsilon", "50", "--steps", "12"),
}


@pytest.fixture
def terminal(monkeypatch):
    """Somebody sits at a terminal, and types what a command is given as input."""
    monkeypatch.setattr(Console, "can_ask", True)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_without_a_terminal_nothing_is_begun(town, tmp_path, release_of):
    refused = typed(*release_of(town, tmp_path), code=2)
    assert re.fullmatch(rf"{REFUSED}\. {FOUND}\n", refused.stderr)
    assert refused.stdout == "" and names(tmp_path) == []


def test_a_ledger_that_is_there_stays_as_it_is(town, tmp_path, release_of):
    others = write_rows(tmp_path / "others.csv", ["user", "t", "lat", "lon"], walk_rows(["other"]))
    arguments = release_of(town, tmp_path)
    typed(*release_of(town, tmp_path, rows=others), "--cap-epsilon", "50")
    (tmp_path / "released").rename(tmp_path / "earlier")
    (tmp_path / "released.owner").rename(tmp_path / "earlier.owner")
    before = {
        name: (tmp_path / name).read_bytes()
        for name in names(tmp_path)
        if name.startswith("ledger.db") and (tmp_path / name).is_file()
    }
    for more in ((), ("--new",), ("--query", "again")):
        typed(*arguments, *more, code=2)
        assert {name: (tmp_path / name).read_bytes() for name in before} == before
        assert not (tmp_path / "released").exists()


@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
@pytest.mark.parametrize("answer", ["y\n", "n\n", "\n"])
def test_on_a_terminal_the_owner_is_asked(town, tmp_path, release_of, terminal, answer, quiet):
    """No is what is answered by the return key; --quiet silences no question, nor what it is about."""
    agreed = answer == "y\n"
    told = typed(*release_of(town, tmp_path), *quiet, code=0 if agreed else 2, input=answer).stderr
    said, question = told.splitlines()[:2]
    assert re.fullmatch(rf"{FOUND}; {BUDGET} sets one", said) and question.startswith(QUESTION)
    assert (tmp_path / "released" / "released.csv").exists() == (tmp_path / "ledger.db").exists() == agreed
    if not agreed:
        assert re.fullmatch(REFUSED, told.splitlines()[-1]) and names(tmp_path) == []


def test_ctrl_d_is_no_agreement(town, tmp_path, release_of, terminal):
    assert typed(*release_of(town, tmp_path), code=130, input="").stderr.endswith("interrupted\n")
    assert names(tmp_path) == []


@pytest.mark.slow
def test_on_a_real_terminal_the_owner_is_asked(town, tmp_path, release_of):
    owner, terminal = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "dphmm", *release_of(town, tmp_path)], stdin=terminal, stderr=terminal, stdout=terminal
    )
    os.close(terminal)
    os.write(owner, b"n\n")
    said = b""
    with suppress(OSError):
        # The end of a terminal that nobody writes to any more is an error.
        while some := os.read(owner, 4096):
            said += some
    os.close(owner)
    assert process.wait() == 2 and QUESTION.encode() in said and names(tmp_path) == []


def test_yes_goes_on_and_it_is_said_all_the_same(town, tmp_path, release_of):
    told = typed(*release_of(town, tmp_path), "--yes").stderr
    assert re.fullmatch(FOUND, told.splitlines()[0]) and QUESTION not in told
    again = typed(*release_of(town, tmp_path), "--yes", "--quiet").stderr
    assert "No limit" not in again


@pytest.mark.parametrize("limit", LIMITS)
def test_with_a_limit_nothing_is_asked_or_said(town, tmp_path, release_of, terminal, limit):
    for more in (("--dry-run",), ()):
        told = typed(*release_of(town, tmp_path), *LIMITS[limit], *more).stderr
        assert "limit is set" not in told and QUESTION not in told


@pytest.mark.parametrize("words", [("--cap-epsilon", "1e5"), ("--path-epsilon", "1", "--window", "1")])
def test_what_limits_nothing_is_no_limit(town, tmp_path, release_of, words):
    """A total that no file reaches, and a promise of single steps."""
    refused = typed(*release_of(town, tmp_path), *words, code=2)
    assert re.fullmatch(rf"{REFUSED}\. {FOUND}\n", refused.stderr) and names(tmp_path) == []
    assert "verdict        No limit is set." in typed(*release_of(town, tmp_path), *words, "--yes").stderr


def test_every_cap_of_an_account_is_a_limit(town, tmp_path, release_of):
    """A cap that is added to an account is a kind of limit here, too."""
    for words in [(), *LIMITS.values()]:
        given = options_of(release, ReleaseOptions, [*release_of(town, tmp_path), *words])
        assert names_limit(given) == (Job.of(given).batch(None).caps != UNLIMITED) == bool(words)


def test_a_plan_is_a_limit(town, tmp_path, terminal):
    public = ("--model", town / "model.npz", "--policy", town / "radius.json")
    plan = ("--path-epsilon", 4, "--steps", 12, "--epsilon", 2, "--people", 6)
    typed("plan", town / "model.npz", "--policy", town / "radius.json", *plan, "-o", tmp_path / "plan.json")
    files = ("-o", tmp_path / "released")
    told = typed("release", town / "walks.csv", *public, "--plan", tmp_path / "plan.json", *files).stderr
    assert "limit is set" not in told


@pytest.mark.parametrize("limit", LIMITS)
def test_what_the_ledger_keeps_of_everybody_is_a_limit(town, tmp_path, release_of, limit):
    """Whoever has a cap or a promise keeps it for all queries; with one more person who has none it is asked."""
    arguments = release_of(town, tmp_path)
    typed(*arguments, *LIMITS[limit])
    assert "No limit" not in typed(*arguments).stderr
    more = write_rows(tmp_path / "more.csv", ["user", "t", "lat", "lon"], walk_rows(("u1", "u2", "u3", "u4")))
    arguments[1] = str(more)
    assert "No limit is set" in typed(*arguments, code=2).stderr
    with open_ledger(tmp_path / "ledger.db", read_only=True) as ledger:
        assert {subject for subject, _ in ledger.sessions()} == {"u1", "u2", "u3"}


def test_a_dry_run_says_it_and_asks_nothing(town, tmp_path, release_of, terminal):
    told = typed(*release_of(town, tmp_path), "--dry-run").stderr
    assert re.fullmatch(rf"{FOUND}; {BUDGET} sets one", told.splitlines()[0]) and QUESTION not in told
    assert names(tmp_path) == []


def test_a_stream_goes_on_with_a_limit_or_yes_alone(town, tmp_path, release_of, terminal):
    """Its standard input has lines, and no answers to a question."""
    arguments = release_of(town, tmp_path)
    arguments[1:2], output = ["-"], arguments.index("-o")
    del arguments[output : output + 2]
    line = json.dumps({"user": "u", "t": "2024-05-06T08:00:00Z", "lat": 50.01, "lon": 10.01}) + "\n"
    refused = typed(*arguments, code=2, input=f"y\n{line}")
    assert re.fullmatch(rf"{REFUSED}\. {FOUND}\n", refused.stderr)
    assert refused.stdout == "" and names(tmp_path) == []
    told = typed(*arguments, "--yes", input=line)
    assert re.fullmatch(FOUND, told.stderr.splitlines()[0]) and told.stdout.startswith('{"user": "u"')
    assert "No limit" not in typed(*arguments, "--cap-epsilon", "9", input=line).stderr


@pytest.mark.parametrize("more", [(), ("--yes",), ("--dry-run",)])
def test_it_is_the_same_wherever_people_are(town, tmp_path, release_of, more):
    """The same people at the same times: in the next cells, in one cell all the time, and beside the map."""
    said, rows = set(), walk_rows()
    places = {
        "there": lambda lat, lon: (lat, lon),
        "next": lambda lat, lon: (f"{50.036 - (float(lat) - 50):.6f}", lon),
        "still": lambda lat, lon: ("50.02", "10.02"),
        "often outside": lambda lat, lon: (lat, lon if float(lat) < 50.02 else "11.0"),
    }
    for name, moved in places.items():
        (tmp_path / name).mkdir()
        there = write_rows(
            tmp_path / f"{name}.csv", ["user", "t", "lat", "lon"], [[*row[:2], *moved(*row[2:])] for row in rows]
        )
        told = typed(*release_of(town, tmp_path / name, rows=there), *more, code=0 if more else 2).stderr
        said |= set(re.findall(FOUND, told))
    assert len(said) == 1


def test_of_labels_it_is_told_how_many_are_named(tmp_path):
    rows = [[f"v{user}", page] for user in range(8) for page in ("front", "news", "news", "mail") * 4]
    write_rows(tmp_path / "visits.csv", ["user", "state"], rows)
    typed("fit", tmp_path / "visits.csv", "-o", tmp_path / "m.npz", "--state-column", "state", "--smoothing", "1")
    typed("policy", "complete", tmp_path / "m.npz", "-o", tmp_path / "p.json")
    public = ("--model", tmp_path / "m.npz", "--policy", tmp_path / "p.json", "--state-column", "state")
    told = typed("release", tmp_path / "visits.csv", *public, "--epsilon", "1", "--dry-run").stderr
    named = r"a reader names the right label in (\d+) of 100 rows \((\d+) without the file\); "
    ((right, without),) = re.findall(named, told)
    assert 45 < int(without) < int(right) < 100


def test_what_takes_too_long_to_know_is_asked_about_all_the_same(town, tmp_path, release_of):
    refused = typed(*set_in(release_of(town, tmp_path), constraint="delta=0.01"), code=2).stderr
    told = "No limit is set. What a reader finds is not computed: every answer has a plan of its own\n"
    assert refused.endswith(told) and names(tmp_path) == []


class TestAPipeline:
    @pytest.fixture
    def file(self, tmp_path):
        write_rows(tmp_path / "walks.csv", ["user", "t", "lat", "lon"], walk_rows())
        (tmp_path / "release.toml").write_text(PIPELINE)
        return tmp_path / "release.toml"

    def test_without_a_terminal_it_stops_and_names_its_members(self, file):
        refused = typed("run", file, code=2).stderr.splitlines()[-1]
        assert refused.startswith("error: [release] epsilon: got no limit with it; expected [release] path-epsilon E ")
        assert "[release] yes, which goes on" in refused and re.search(FOUND, refused)
        out = file.parent / "out"
        assert not (file.parent / "ledger.db").exists() and not (out / "released.parquet").exists()
        file.write_text(PIPELINE + 'path-epsilon = 6\nper = "1d"\n')
        assert "limit is set" not in typed("run", file).stderr and (out / "released.parquet").exists()

    @pytest.mark.parametrize("way", ["in the file", "on the command line", "at a terminal"])
    def test_it_goes_on_where_the_owner_agrees_and_that_is_no_other_question(self, file, way, monkeypatch):
        if way == "at a terminal":
            monkeypatch.setattr(Console, "can_ask", True)
            assert QUESTION in typed("run", file, input="y\n").stderr
        elif way == "in the file":
            file.write_text(PIPELINE + "yes = true\n")
            typed("run", file)
        else:
            typed("run", file, "--yes")
        released = (file.parent / "out" / "released.parquet").read_bytes()
        # What is there stays, and needs no agreement.
        file.write_text(PIPELINE)
        again = typed("run", file, *["--yes"] * (way == "in the file"), "--json")
        assert json.loads(again.stdout)["stages"]["policy"] == "as it was" and not (file.parent / "out-2").exists()
        assert (file.parent / "out" / "released.parquet").read_bytes() == released

    def test_no_private_fit_is_spent_for_it(self, file):
        fitted = PIPELINE.replace("[model]", '[split]\n\n[fit]\nepsilon = 1\nmax-length = "5"').replace("cell", "grid")
        file.write_text(fitted)
        refused = typed("run", file, code=2).stderr.splitlines()[-1]
        assert refused.startswith("error: [release] epsilon: got no limit") and refused.endswith(". No limit is set")
        assert not (file.parent / "ledger.db").exists()
