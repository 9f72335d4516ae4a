"""Names as labels through every command: fit, policy, release, check-release, read, report, plan."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

from commands import write_rows
from dphmm.storage.models import load_model
from dphmm.storage.released import released_table, text_columns
from dphmm.storage.tables import read_table

PAGES = ("front", "news", "tech", "local", "opinion", "weather", "sport", "mail", "travel")
pytestmark = pytest.mark.replayed_words


def visits(users, seed):
    generator = np.random.default_rng(seed)
    rows = []
    for user in users:
        page = int(generator.integers(9))
        for step in range(12):
            rows.append([user, f"2024-05-06T{8 + step // 6:02d}:{10 * (step % 6):02d}:00Z", PAGES[page]])
            page = int(generator.integers(9)) if generator.random() < 0.4 else page
    return rows


@pytest.fixture(scope="module")
def portal(tmp_path_factory, run):
    folder = tmp_path_factory.mktemp("portal")
    write_rows(folder / "others.csv", ["user", "t", "page"], visits([f"o{n}" for n in range(40)], 1))
    write_rows(folder / "visits.csv", ["user", "t", "page"], visits([f"v{n}" for n in range(8)], 2))
    run("fit", folder / "others.csv", "-o", folder / "m.npz", "--state-column", "page", "--step", "10min")
    run("policy", "complete", folder / "m.npz", "-o", folder / "p.json")
    return folder


def arguments(folder, *more):
    return ("--model", folder / "m.npz", "--policy", folder / "p.json", *more)


@pytest.fixture(scope="module")
def published(portal, run):
    asked = ("release", portal / "visits.csv", "--state-column", "page", *arguments(portal, "--epsilon", "1"))
    run(*asked, "-o", portal / "out", "--format", "parquet")
    return portal / "out"


def test_text_names_are_labels_and_numbers_are_numbers(portal, tmp_path, run):
    assert load_model(portal / "m.npz").space.kind == "labels"
    for number, (names, options, kind) in enumerate(
        [
            (("a", "b"), (), "labels"),
            (("1", "2.5"), (), "plain"),
            (("1", "b"), (), "labels"),
            (("1", "2"), ("--answers", "labels"), "labels"),
            (("a", "b"), ("--answers", "ordinal"), "plain"),
        ]
    ):
        rows = [["u", name] for name in names * 3]
        write_rows(tmp_path / f"{number}.csv", ["user", "state"], rows)
        model = tmp_path / f"{number}.npz"
        told = run("fit", tmp_path / f"{number}.csv", "-o", model, "--state-column", "state", *options).stderr
        assert load_model(model).space.kind == kind
        assert ("answers are the names themselves" in told) == (kind == "labels")


def test_a_release_names_labels(published):
    table = pd.read_parquet(published / "released.parquet")
    assert list(table.columns) == ["user", "t", "step", "z", "epsilon", "cost", "plan"]
    assert table.z.isin(PAGES).all()


@pytest.mark.slow
def test_every_command_reads_it(portal, published, tmp_path, run):
    told = run("check-release", published).stdout
    assert "released: 96 rows of 8 users under 1 plan: nothing is wrong" in told
    run("read", published, "--estimates", "-o", tmp_path / "s.parquet")
    smoothed = pd.read_parquet(tmp_path / "s.parquet")
    assert list(smoothed.columns) == ["user", "t", "step", "smoothed", "probability"]
    event = ("--event", "mail", "--from", "2", "--to", "4", "--json")
    odds = json.loads(run("read", published, *event).stdout)
    assert len(odds["subjects"]) == 8
    pd.read_csv(portal / "visits.csv").rename(columns={"page": "state"}).to_csv(tmp_path / "truth.csv", index=False)
    truth = ("--truth", tmp_path / "truth.csv")
    run("report", published, *truth, "-o", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "guessed wrong" in page and "share with each label" in page


def test_a_stream_answers_with_labels_too(portal, tmp_path, run):
    lines = "".join(json.dumps({"user": "s", "t": t, "state": page}) + "\n" for _, t, page in visits(["s"], 3))
    stream = ("release", "-", *arguments(portal, "--epsilon", "1"), "-o", tmp_path / "out", "--quiet")
    out = run(*stream, input=lines).stdout
    rows = [json.loads(line) for line in out.splitlines()]
    assert len(rows) == 12 and all(row["z"] in PAGES for row in rows)
    assert list(rows[0]) == ["user", "t", "step", "z", "epsilon", "cost", "plan"]
    told = run("check-release", tmp_path / "out").stdout
    assert "released: 12 rows of 1 users under 1 plan: nothing is wrong" in told


@pytest.mark.slow
def test_a_budget_is_planned_in_shares_of_labels(portal, tmp_path, run):
    plan = ("plan", portal / "m.npz", "--policy", portal / "p.json", "--path-epsilon", "12", "--steps", "12")
    told = run(*plan, "--people", "40").stdout
    assert "% wrong" in told and " m " not in told
    found = json.loads(run(*plan, "--people", "40", "--json").stdout)
    assert 0 < found["expected_error"] < found["plan"]["without"] < 1
    paced = run(*plan, "--people", "40", "--schedule", "paced").stdout
    assert "answers where the belief is wide enough" in paced


def test_a_planned_release_of_labels_is_told_in_labels_and_shown_beside_the_truth(portal, tmp_path, run):
    """Steps that were not asked have a row and no label; the owner's page knows which rows were released."""
    own = pd.read_csv(portal / "visits.csv").drop(columns="t").rename(columns={"page": "state"})
    own.to_csv(tmp_path / "v.csv", index=False)
    others = pd.read_csv(portal / "others.csv").drop(columns="t").rename(columns={"page": "state"})
    others.to_csv(tmp_path / "o.csv", index=False)
    public = ("--model", tmp_path / "n.npz", "--policy", tmp_path / "p.json")
    run("fit", tmp_path / "o.csv", "-o", tmp_path / "n.npz", "--state-column", "state")
    run("policy", "complete", tmp_path / "n.npz", "-o", tmp_path / "p.json")
    budget = ("--path-epsilon", "12", "--steps", "12", "--people", "40")
    run("plan", tmp_path / "n.npz", "--policy", tmp_path / "p.json", *budget, "-o", tmp_path / "plan.json")
    asked = ("release", tmp_path / "v.csv", *public, "--plan", tmp_path / "plan.json")
    told = run(*asked, "-o", tmp_path / "out").stderr
    said = " ".join(told.split())
    assert re.search(r"verdict A reader names the right label in \d+ of 100 rows; without the file in \d+\.", said)
    assert "that of somebody who keeps one label for the whole sequence in" in said and "somebody's place" not in said
    run("report", tmp_path / "out", "--truth", tmp_path / "v.csv", "-o", tmp_path / "r.html")
    assert "guessed wrong" in (tmp_path / "r.html").read_text()


def test_details_and_a_search_count_wrong_labels(portal, run):
    told = run("plan", "--details", portal / "m.npz", "--policy", portal / "p.json", "--epsilon", "1").stdout
    assert "labels wrong as released  74.6%" in told and "hull" not in told and "pitch" not in told
    searched = ("--path-epsilon", "2", "--steps", "4", "--target-error", "0.9", "--people", "4")
    table = run("plan", portal / "m.npz", *searched).stdout
    assert "complete" in table and "radius" not in table and " % wrong" in table
    dry = (
        "release",
        portal / "visits.csv",
        "--state-column",
        "page",
        *arguments(portal, "--epsilon", "1"),
        "--dry-run",
    )
    assert "hops, 74.6% of labels wrong" in run(*dry).stdout


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("policy", "radius", "M", "-o", "OUT", "--radius", "1"), "labels, which have no distances"),
        (("policy", "complete", "M", "-o", "OUT", "--merge-lonely"), ""),
        (("fit", "ROWS", "-o", "OUT", "--state-column", "page", "--merge-rare", "2"), "none of which is nearer"),
        (
            ("fit", "ROWS", "-o", "OUT", "--state-column", "page", "--answers", "LABELS"),
            "--answers: got x.csv; expected a file that exists",
        ),
    ],
)
def test_what_needs_distances_is_refused_in_one_line(portal, tmp_path, run, command, said):
    words = {"M": portal / "m.npz", "OUT": tmp_path / "out.npz", "ROWS": portal / "others.csv", "LABELS": "x.csv"}
    result = run(*(words.get(word, word) for word in command), code=2 if said else 0)
    assert said in result.stderr and (not said or result.stderr.count("\n") == 1)


def test_rows_put_together_are_the_table_that_they_came_from(portal):
    """A batch gives columns, a stream rows of releases: both make the same table."""
    import dphmm
    from dphmm.release.batch import Batch
    from dphmm.samplers.entropy import ReplayBits

    model, policy = load_model(portal / "m.npz"), dphmm.storage.load_policy(portal / "p.json")
    batch = Batch(model, policy, model.space, "1", bits=ReplayBits(b"rows"))
    rows = dphmm.storage.load_trajectories(portal / "visits.csv", state_column="page").trajectories
    (chunk,) = batch.run(rows)
    assert released_table(list(chunk), model.space).equals(released_table(chunk, model.space))
    assert {release.z for _, _, release in chunk} <= set(PAGES)


@pytest.mark.parametrize(
    "names", [("01", "1", "2e3"), ("2024-05-06", "2024-05-07"), ("=1+1", "-y", "'@z", "a")], ids=str
)
def test_names_that_look_like_formulas_numbers_or_dates_come_back_from_csv(tmp_path, run, names):
    """Users and labels of a released CSV file, in every command that reads one."""
    users, n = ("=a", "'=a", "-5", "+b", "@c", "007"), len(names)
    generator = np.random.default_rng(5)
    rows = [(user, names[at]) for user in users for at in (*range(n), *generator.integers(0, n, 18 - n))]
    pd.DataFrame(rows, columns=["user", "page"]).to_parquet(tmp_path / "visits.parquet")
    asked = (tmp_path / "visits.parquet", "--state-column", "page")
    run("fit", *asked, "-o", tmp_path / "m.npz", "--answers", "labels", "--smoothing", "1")
    run("policy", "complete", tmp_path / "m.npz", "-o", tmp_path / "p.json")
    public, outputs = arguments(tmp_path), ("-o", tmp_path / "out")
    promised = ("--path-epsilon", "6", "--steps", "18", "--schedule", "planned")
    run("release", *asked, *public, *promised, *outputs)
    released = read_table(tmp_path / "out" / "released.csv", text=text_columns(load_model(tmp_path / "m.npz").space))
    assert set(released.column("user").to_pylist()) == set(users)
    # Steps that were not asked have no answer.
    assert set(released.column("z").to_pylist()) == {*names, ""}
    run("release", *asked, *public, *promised, *outputs)
    run("read", tmp_path / "out", "--estimates", "-o", tmp_path / "s.csv")
    run("check-release", tmp_path / "out")
    frame = pd.read_parquet(tmp_path / "visits.parquet")
    assert set(read_table(tmp_path / "s.csv", text=("user",)).column("user").to_pylist()) == set(frame["user"])
