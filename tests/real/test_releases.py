"""Every real input through import, fit, policy, release, account and plan: what is published is what was promised.

People are split: a model is fitted on one half of them, and people of the other half are released.
"""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from commands import set_in
from dphmm.statement.files import statement_path
from dphmm.statement.release import statement_schema
from dphmm.storage.ledger import open_ledger
from dphmm.storage.models import load_model
from dphmm.storage.release_folder import COUNTS, MODEL, POLICY
from real.canaries import found_in, unmistakable

# Input, people released (None: as many as the benchmark), model, policy, constraint.
FEW = [
    ("geolife-plt", 2, "smoothed", "radius", "support"),
    ("geolife-plt", 2, "smoothed", "transition", "delta=0.01"),
    ("geolife-beijing", 2, "smoothed", "radius", "support"),
    ("geolife-beijing", 2, "smoothed", "radius", "delta=0.01"),
    ("geolife-beijing", 2, "smoothed", "transition", "support"),
    ("geolife-beijing", 2, "smoothed", "transition", "delta=0.01"),
    ("geolife-beijing", 2, "smoothed", "complete", "support"),
    ("geolife-beijing", 2, "smoothed", "complete", "delta=0.01"),
    ("gowalla-los-angeles", 8, "counts", "radius", "support"),
    ("gowalla-los-angeles", 8, "counts", "radius", "delta=0.01"),
    ("gowalla-austin", 3, "counts", "radius", "support"),
    ("msnbc-ordinal", 5, "counts", "transition", "delta=0.01"),
    ("msnbc-site-map", 5, "counts", "radius", "support"),
    ("mvad", 4, "counts", "categorical", "support"),
    ("mvad", 4, "counts", "transition", "delta=0.01"),
]
MANY = [
    (name, None, *rest)
    for name, models, policies in (
        ("geolife-plt", ("smoothed",), ("radius", "transition", "complete")),
        ("geolife-beijing", ("counts", "smoothed"), ("radius", "transition", "complete")),
        ("gowalla-los-angeles", ("counts",), ("radius", "transition")),
        ("gowalla-austin", ("counts", "smoothed"), ("radius", "complete")),
        ("msnbc-ordinal", ("counts",), ("radius", "transition", "complete")),
        ("msnbc-site-map", ("counts",), ("radius", "transition", "complete")),
        ("mvad", ("counts",), ("categorical", "transition", "complete")),
    )
    for rest in ((m, p, c) for m in models for p in policies for c in ("support", "delta=0.01"))
]


def _named(case):
    return "-".join(str(part) for part in case if part is not None)


@pytest.fixture(
    scope="module",
    params=[pytest.param(case, id=_named(case)) for case in FEW]
    + [pytest.param(case, id=_named(case), marks=pytest.mark.long) for case in MANY],
)
def done(request, released):
    return released(*request.param)


def test_the_matrix_of_the_benchmark_is_released_here(matrix):
    cells = [(c.name, c.model, c.policy, c.constraint) for name in matrix.INPUTS for c in matrix.cells(name)]
    assert sorted(cells) == sorted((name, *rest) for name, _, *rest in MANY)


def test_every_row_in_is_released_or_counted(done):
    document, truth = done.document, done.truth
    assert document["rows"] == len(truth)
    left_out = document["same_step"] + document["late"] + sum(document["rejected"].values())
    assert document["rows"] == document["released"] + left_out
    keys = [truth.user, truth.t.dt.floor(f"{done.step_seconds}s")] if done.step_seconds else [truth.user, truth.index]
    assert document["released"] == len(done.released) == truth.groupby(keys).ngroups
    assert document["subjects"] == truth.user.nunique()


def test_what_is_published_is_what_is_stored(done):
    published, space = done.released, load_model(done.folder / f"{done.cell.model}.npz").space
    axes = [f"z_{j}" for j in range(space.dimension)]
    with open_ledger(done.ledger) as ledger:
        stored = {s: {e.t: e for e in ledger.entries(s, q) if e.kind == "release"} for s, q in ledger.sessions()}
        skipped = sum(e.steps for s, q in ledger.sessions() for e in ledger.entries(s, q) if e.kind == "skip")
    assert sum(map(len, stored.values())) == len(published)
    assert skipped == done.document["skipped_steps"]
    entries = [stored[user][step] for user, step in zip(published.user, published.step, strict=True)]
    exactly = space.frame.to_answers(np.array([entry.z for entry in entries]))
    assert np.array_equal(exactly, published[axes].to_numpy())
    assert [entry.plan_hash for entry in entries] == published.plan.tolist()
    assert [float(entry.epsilon) for entry in entries] == published.epsilon.tolist()
    assert [float(entry.cost) for entry in entries] == pytest.approx(published.cost.tolist(), rel=1e-12)


def test_the_released_file_has_the_columns_of_the_contract_and_public_times(done):
    published = done.released
    d = sum(name.startswith("z_") and name[2:].isdigit() for name in published)
    times = ["t"] if "t" in done.truth else []
    places = ["z_lat", "z_lon"] if done.input.unit == "m" else []
    numbers = [f"z_{j}" for j in range(d)]
    assert list(published) == ["user", *times, "step", *numbers, *places, "epsilon", "cost", "plan"]
    if done.step_seconds:
        assert (published.t == published.t.dt.floor(f"{done.step_seconds}s")).all()
    assert set(published.epsilon) <= {1.0, 0.0}


def test_the_statement_follows_its_schema_and_is_about_this_file(done):
    statement = json.loads(statement_path(done.table).read_text())
    Draft202012Validator(statement_schema()).validate(statement)
    assert statement["file"]["sha256"] == hashlib.sha256(done.table.read_bytes()).hexdigest()
    assert statement["published"]["rows"] == len(done.released)
    assert statement["mechanism"]["chosen"] == done.document["mechanisms"]
    assert statement["epsilon"] == "1"
    assert statement["constraint"] == done.cell.constraint
    assert statement["model"]["people"] == "others" and statement["private"] is True


def test_no_true_place_or_name_is_in_anything_that_is_kept_or_said(done):
    if done.input.unit != "m":
        # Names are public; but neither the ledger nor the summary has reason to say them.
        for name in (name for name in done.truth.state.unique() if len(name) > 5):
            assert name.encode() not in done.ledger.read_bytes()
            assert name not in done.said.stdout + done.said.stderr
        return
    private = unmistakable(np.concatenate([done.truth.lat, done.truth.lon]))
    assert len(private) > 20
    files = [path for path in done.place.path.iterdir() if path.name not in (MODEL, POLICY)]
    assert len(files) >= 3
    kept = [path.read_bytes() for path in (done.ledger, *files)]
    numbers = done.released.select_dtypes("number").to_numpy(dtype=np.float64)
    for data in (*kept, numbers.tobytes(), done.said.stdout.encode(), done.said.stderr.encode()):
        assert found_in(data, private) == set()


def test_the_estimate_errs_less_than_the_release(done, matrix):
    released = matrix.estimated(done.cell, done.folder)
    both = matrix.joined(done.truth, released, done.step_seconds)
    raw, estimate = matrix.mean_errors(both, matrix.answers_of(done.input, done.folder))
    assert 0 < estimate < raw


def test_the_account_is_the_sum_of_the_file(done, run):
    account = json.loads(run("account", done.ledger, "--json").stdout)
    sums = done.released.groupby("user")[["epsilon", "cost"]].sum()
    assert {subject["subject"] for subject in account["subjects"]} == set(sums.index)
    for subject in account["subjects"]:
        assert subject["epsilon"]["value"] == sums.epsilon[subject["subject"]]
        assert subject["cost"]["value"] == pytest.approx(sums.cost[subject["subject"]], abs=1e-6)
        assert subject["insecure_releases"] == 0
    assert float(done.document["largest_epsilon_sum"]) == sums.epsilon.max()
    assert float(done.document["largest_cost_sum"]) == pytest.approx(sums.cost.max(), abs=1e-6)


def test_details_foretell_the_first_release(done, run):
    policy = done.folder / f"{done.cell.model}-{done.cell.policy}.json"
    model = done.folder / f"{done.cell.model}.npz"
    told = json.loads(
        run(*set_in(("plan", "--details", model, "--policy", policy, "--json"), constraint=done.cell.constraint)).stdout
    )
    first = done.released[done.released.step == 1]
    assert len(first) == done.truth.user.nunique()
    assert set(first.plan) == {told["release"]["plan"]}
    assert first.cost.tolist() == pytest.approx([told["release"]["cost"]] * len(first))


def test_drift_is_counted_for_the_owner_alone(done):
    assert 0 <= done.drifted <= len(done.released)
    assert "drift" not in done.said.stdout
    assert (done.place.owner / COUNTS).stat().st_mode & 0o077 == 0 and done.place.owner.stat().st_mode & 0o077 == 0
    assert "drift" not in statement_path(done.table).read_text().lower()


def test_resumed_it_is_the_same_file_and_spends_nothing(done, run, matrix):
    file, statement = done.table, statement_path(done.table)
    before = file.read_bytes(), statement.read_bytes()
    again = run(*matrix.release_arguments(done.cell, done.folder))
    document = json.loads(again.stdout)
    assert (file.read_bytes(), statement.read_bytes()) == before
    assert document["stored_before"] == document["released"] == done.document["released"]
    assert document["largest_epsilon_sum"] == done.document["largest_epsilon_sum"]


def test_a_model_without_smoothing_loses_people_from_its_delta_set(released):
    """Absorbing states swallow the belief while nobody is seen: true states are then drift, most of the time."""
    rates = {}
    for model in ("counts", "smoothed"):
        done = released("geolife-beijing", 2, model, "radius", "delta=0.01")
        rates[model] = done.drifted / len(done.released)
    assert rates["counts"] > 2 * rates["smoothed"]
