"""dphmm read --estimates: all that it needs from the folder, plans compared, one table out.

Claims: the command gives what `smooth` gives, with the options that the statement names; a statement about
another model or policy, other options, a changed answer and a bad table are refused in one line with nothing written.
Fails where an option is not handed on, where a plan is not compared, or where a refusal leaves a file.
"""

from __future__ import annotations

import re
import shutil

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import dphmm
from cli.conftest import CHOICES, altered
from commands import as_parquet, set_in
from dphmm.learning.learn import Learned
from dphmm.statement.files import copy_release


def estimates_of(folder, out, *more):
    return ["read", folder / "released", "--estimates", "-o", out, *more]


@pytest.mark.parametrize("name", CHOICES)
def test_equal_to_the_library(name, town, places, tmp_path, run, one_json):
    """Options come from the statement, model and policy from the folder: none is named on the command line."""
    out = tmp_path / "smoothed.parquet"
    result = run(*estimates_of(places[name], out, "--path", "--json"))
    got = pd.read_parquet(out)
    model = dphmm.storage.load_model(town / "model.npz")
    policy = dphmm.storage.load_policy(town / "radius.json", model=model)
    released = pd.read_csv(places[name] / "released" / "released.csv")
    choices = CHOICES[name]
    expected = dphmm.reconstruction.smooth(released, model, policy, model.space, 1, path=True, **choices)
    assert got.columns.tolist() == expected.columns.tolist()
    numbers = ["smoothed_0", "smoothed_1", "probability", "smoothed_lat", "smoothed_lon", "path_lat", "path_lon"]
    assert np.array_equal(got[numbers], expected[numbers])
    assert got[["user", "step", "smoothed", "path"]].equals(expected[["user", "step", "smoothed", "path"]])
    document = one_json(result)
    assert document["rows"] == len(released) == 36 and document["subjects"] == 3
    assert document["plans"] == released.plan.nunique()
    assert 0 < document["mean_probability"] <= 1
    assert {path.name for path in tmp_path.iterdir()} == {"smoothed.parquet"}


@pytest.mark.replayed_words
def test_the_answers_of_another_query_count_too(town, tmp_path, run, one_json):
    """--with reads the other file's own statement: another epsilon and mechanism."""
    public = ("--model", town / "model.npz", "--policy", town / "radius.json")
    other = set_in(public, mechanism="discrete-knorm")
    for query, more in (("first", (*public, "--epsilon", 1)), ("second", (*other, "--epsilon", 2))):
        out = ("-o", tmp_path / query, "--format", "parquet", "--ledger", tmp_path / "l.db", "--query", query)
        run("release", town / "walks.csv", *out, *more, "--quiet")
    first, second = tmp_path / "first", tmp_path / "second"
    run("read", first, "--estimates", "-o", tmp_path / "alone.parquet")
    told = one_json(run("read", first, "--estimates", "--with", second, "-o", tmp_path / "both.parquet", "--json"))
    assert told["with"] == ["second"]
    model = dphmm.storage.load_model(town / "model.npz")
    policy = dphmm.storage.load_policy(town / "radius.json", model=model)
    other = dphmm.reconstruction.OtherQuery(
        pd.read_parquet(second / "released.parquet"), options={"mechanism": "discrete-knorm"}
    )
    rows = pd.read_parquet(first / "released.parquet")
    own = dphmm.reconstruction.smooth(rows, model, policy, model.space, beside=[other], progress=False)
    alone, both = pd.read_parquet(tmp_path / "alone.parquet"), pd.read_parquet(tmp_path / "both.parquet")
    assert both.equals(own) and both.probability.mean() > alone.probability.mean()
    said = run("read", first, "--estimates", "--with", second, "-o", tmp_path / "again.parquet").stderr
    assert re.search("^with +the answers of second too$", said, re.MULTILINE)
    window = ("--event", model.space.names[3], "--from", "2", "--to", "4", "--json")
    odds = [one_json(run("read", first, *window, *more)) for more in ((), ("--with", second))]
    assert odds[1]["with"] == ["second"] and "with" not in odds[0]
    answers = [sum(one["answers"] for one in told["subjects"]) for told in odds]
    assert answers[1] == 2 * answers[0]
    refused = run("read", first, "--estimates", "--with", tmp_path / "x", "-o", tmp_path / "n.parquet", code=2).stderr
    assert refused.count("\n") == 1 and "--with" in refused
    table = second / "released.parquet"
    before = table.read_bytes()
    spoiled = run("read", first, "--estimates", "--with", second, "-o", table, "--force", code=2).stderr
    assert spoiled.count("\n") == 1 and table.read_bytes() == before


def test_parquet_and_csv_are_the_same(places, tmp_path, run):
    as_parquet(places["plain"] / "released", tmp_path / "released")
    run(*estimates_of(places["plain"], tmp_path / "a.csv", "-q"))
    # The statement names the CSV file's hash: that this is another file is worth a line.
    result = run(*estimates_of(tmp_path, tmp_path / "b.csv", "-q"))
    assert result.stderr == "warning: released.parquet was changed since released.parquet.privacy.json was written\n"
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_times_are_texts_of_one_form_in_all_files_of_a_release(suffix, places, tmp_path, run):
    """So that a join of the texts finds the rows: a CSV file that was read had times in nanoseconds."""
    first, folder, plain = places["plain"] / "released", tmp_path / "released", tmp_path / "plain"
    times = [line.split(",")[1] for line in (first / "released.csv").read_text().splitlines()]
    assert times[:2] == ['"t"', "2024-05-06 08:00:00.000000Z"]
    copied = tmp_path / f"copied{suffix}"
    run("export", first, "-o", copied, "-q")
    copy_release(copied, tmp_path / "again.csv")
    if suffix == ".parquet":
        as_parquet(first, folder)
    else:
        shutil.copytree(first, folder)
    run("check-release", first, "--plain", plain)
    run(*estimates_of(tmp_path, tmp_path / "smoothed.csv", "-q"))
    run("read", folder, "--plans", plain / "plans.json", "-o", tmp_path / "read.csv")
    for name in ("smoothed.csv", "read.csv", "again.csv"):
        assert [line.split(",")[1] for line in (tmp_path / name).read_text().splitlines()] == times, name
    run(*estimates_of(tmp_path, tmp_path / "smoothed.parquet", "-q"))
    assert str(pq.read_schema(tmp_path / "smoothed.parquet").field("t").type) == "timestamp[us, tz=UTC]"


def test_the_summary_says_that_nothing_is_spent(places, tmp_path, run):
    result = run(*estimates_of(places["plain"], tmp_path / "a.parquet"))
    assert result.stdout == ""
    assert "36 rows of 3 people" in result.stderr and "nothing is spent" in result.stderr


def test_marginals(town, places, tmp_path, run):
    run(*estimates_of(places["plain"], tmp_path / "a.parquet", "--marginals"))
    table = pd.read_parquet(tmp_path / "a.parquet")
    model = dphmm.storage.load_model(town / "model.npz")
    weights = np.stack(table.marginals)
    assert weights.shape == (36, model.n_states)
    assert np.allclose(weights.sum(axis=1), 1)
    assert np.allclose(weights @ model.space.answers, table[["smoothed_0", "smoothed_1"]])
    result = run(*estimates_of(places["plain"], tmp_path / "a.csv", "--marginals"), code=2)
    assert ".parquet with --marginals" in result.stderr and not (tmp_path / "a.csv").exists()


def test_without_a_statement(places, tmp_path, run):
    """Nothing says under which choices the rows were drawn: none are guessed."""
    shutil.copytree(places["plain"] / "released", tmp_path / "released")
    (tmp_path / "released" / "released.csv.privacy.json").unlink()
    refused = run(*estimates_of(tmp_path, tmp_path / "out.csv"), code=2)
    assert refused.stderr.count("\n") == 1 and "without its privacy statement" in refused.stderr
    assert not (tmp_path / "out.csv").exists()


def test_without_a_name_it_lies_in_the_folder_and_belongs_to_it(places, tmp_path, run, one_json):
    folder = tmp_path / "released"
    shutil.copytree(places["plain"] / "released", folder)
    for name, more in (("estimates.csv", ()), ("estimates.parquet", ("--marginals",))):
        for _ in range(2):
            told = one_json(run("read", folder / "released.csv", "--estimates", "--json", *more))
            assert told["output"] == str(folder / name) and (folder / name).exists()
    run("check-release", folder, code=5)
    run(*estimates_of(places["plain"], tmp_path / "same.csv"))
    assert (folder / "estimates.csv").read_bytes() == (tmp_path / "same.csv").read_bytes()


REFUSED = {
    "another model": (
        lambda t, s: s["model"].update(sha256="0" * 64) or t,
        "OUT: got released, which has another model",
    ),
    "another policy": (
        lambda t, s: s["policy"].update(sha256="0" * 64) or t,
        "OUT: got released, which has another policy",
    ),
    "another space": (
        lambda t, s: s["space"].update(sha256="0" * 64) or t,
        "OUT: got released, which has another space",
    ),
    "another version": (
        lambda t, s: s.update(algorithm_version=99) or t,
        "statement: got one of algorithm version 99",
    ),
    "an incomplete statement": (
        lambda t, s: s["mechanism"].pop("asked") and t,
        "statement: got released.csv.privacy.json",
    ),
    "another epsilon": (lambda t, s: s.update(epsilon="2") or t, "an answer drawn under plan"),
    "an answer off the lattice": (lambda t, _: t.assign(z_0="0.123"), "z_0: got an answer off the lattice"),
    "no column": (lambda t, _: t.drop(columns="z_1"), "z_1: got columns"),
    "no number": (lambda t, _: t.assign(z_1="north"), "z_1: got a cell that is no number"),
    "rows twice": (lambda t, _: pd.concat([t, t]), "step 1 of 'u1': got two rows"),
    "no row": (lambda t, _: t.iloc[:0], "0 rows"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_one_line(name, places, tmp_path, run):
    change, message = REFUSED[name]
    folder = altered(places["plain"], tmp_path, change)
    result = run(*estimates_of(folder, tmp_path / "out.csv"), code=2)
    errors = [line for line in result.stderr.splitlines() if not line.startswith("warning: ")]
    assert len(errors) == 1 and message in errors[0]
    assert result.stdout == "" and not (tmp_path / "out.csv").exists()


def test_outputs_are_not_replaced_unasked(places, tmp_path, run):
    out = tmp_path / "out.csv"
    run(*estimates_of(places["plain"], out))
    assert "--force" in run(*estimates_of(places["plain"], out), code=2).stderr
    run(*estimates_of(places["plain"], out, "--force"))
    folder = places["plain"]
    place = folder / "released"
    for path in (place / "released.csv", place / "released.csv.privacy.json", place / "model.npz"):
        before = path.read_bytes()
        assert run(*estimates_of(folder, path, "--force"), code=2).stderr.count("\n") == 1
        assert path.read_bytes() == before
    assert run(*estimates_of(folder, tmp_path / "out.txt"), code=2).stderr.startswith("error: -o")


def test_own_places_are_chosen_by_answers_left_out(town, places, tmp_path, run, one_json):
    """Three people of 12 answers each: without a gain nothing changes, and the option says so either way."""
    files = [tmp_path / "plain.csv", tmp_path / "own.csv"]
    run(*estimates_of(places["plain"], files[0]))
    document = one_json(run(*estimates_of(places["plain"], files[1], "--own-places", "--json")))
    model = dphmm.storage.load_model(town / "model.npz")
    policy = dphmm.storage.load_policy(town / "radius.json", model=model)
    released = pd.read_csv(places["plain"] / "released" / "released.csv")
    expected = dphmm.reconstruction.smooth(released, model, policy, model.space, 1, own_places=True)
    assert np.allclose(pd.read_csv(files[1]).smoothed_0, expected.smoothed_0)
    chosen = document["own_places"]
    assert (files[0].read_bytes() == files[1].read_bytes()) == (chosen is None)
    assert "own_places" not in one_json(run(*estimates_of(places["plain"], tmp_path / "again.csv", "--json")))


def test_another_model_reads_and_a_private_one_writes_nothing_into_the_release(town, places, tmp_path, run, one_json):
    """What a model that was fitted without privacy reads is its owner's: -o outside the folder, or one line."""
    model = dphmm.storage.load_model(town / "model.npz")
    moved = 0.9 * np.eye(model.n_states) + 0.1 / model.n_states
    files = {}
    for name, private in (("public", {"method": "given"}), ("private", {"method": "counted", "private": False})):
        files[name] = tmp_path / f"{name}.npz"
        belief = dphmm.MarkovModel(
            model.initial, moved, space=model.space, step=model.step, start=model.start, provenance=private
        )
        dphmm.storage.save_model(belief, files[name])
    document = one_json(
        run(*estimates_of(places["plain"], tmp_path / "out.csv", "--believe", files["public"], "--json"))
    )
    assert document["believe"] == str(files["public"])
    policy = dphmm.storage.load_policy(town / "radius.json", model=model)
    released = pd.read_csv(places["plain"] / "released" / "released.csv")
    expected = dphmm.reconstruction.smooth(released, model, policy, model.space, 1, believe=belief)
    assert np.allclose(pd.read_csv(tmp_path / "out.csv").smoothed_0, expected.smoothed_0)
    folder = places["plain"] / "released"
    said = run("read", folder, "--estimates", "--believe", files["private"], code=2).stderr
    assert said.startswith("error: --believe: ") and said.count("\n") == 1
    run(*estimates_of(places["plain"], tmp_path / "own.csv", "--believe", files["private"]))


def test_what_is_learned_lies_in_the_release_and_reads_it(places, tmp_path, run, one_json, monkeypatch):
    """Three people teach nothing, and nothing is written; a model that was learned is a file of the release."""
    folder = tmp_path / "released"
    shutil.copytree(places["plain"] / "released", folder)
    told = one_json(run("read", folder, "--believe", "learned", "--json"))
    assert told["output"] is None and told["people"] == 3 and "at least 10" in told["reason"]
    learn = ("read", folder, "--believe", "learned")
    assert "learned" in run(*learn).stderr and not (folder / "learned.npz").exists()
    assert run(*learn, "-o", tmp_path / "model.csv", code=2).stderr.startswith("error: -o")
    asked = run(*learn, "--estimates", code=2).stderr
    assert asked.startswith("error: --believe: got learned, and no learned.npz in OUT; expected dphmm read")
    released = dphmm.open(folder)
    sticky = 0.9 * np.eye(released.model.n_states) + 0.1 / released.model.n_states
    public = {"space": released.model.space, "step": released.model.step}
    found = {"family": "mix", "iterations": 13, "gain": 2.0, "error": 0.5, "people": 12, "reason": ""}
    origin = {"method": "released answers", **found, "plan_model": released.model.digest}
    origin["released"] = [released.folder.files()[released.folder.table.name]]
    model = dphmm.MarkovModel(released.model.initial, sticky, **public, start="at", provenance=origin)
    monkeypatch.setattr("dphmm.learning.learn.learn_rows", lambda *args, **given: Learned(model, **found))
    told = one_json(run("read", folder, "--believe", "learned", "--json"))
    assert told["output"] == str(folder / "learned.npz") and told["family"] == "mix" and told["reason"] is None
    assert released.folder.others() == [] and dphmm.storage.load_model(folder / "learned.npz").digest == model.digest
    assert "a model learned from the answers of 12 people" in run("read", folder, "--estimates").stderr
    default = (folder / "estimates.csv").read_bytes()
    run("read", folder, "--estimates", "--believe", "learned")
    assert (folder / "estimates.csv").read_bytes() == default
    got = pd.read_csv(folder / "estimates.csv").probability
    assert np.allclose(got, released.estimates(believe=model, progress=False).probability)
    run("read", folder, "--estimates", "--believe", folder / "model.npz")
    assert (folder / "estimates.csv").read_bytes() != default
