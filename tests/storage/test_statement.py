"""The privacy statement says what was promised, no more, and nothing that depends on the truth."""

from __future__ import annotations

import copy
import hashlib
import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import dphmm
from dphmm.batch import Batch
from dphmm.errors import InvalidInput
from dphmm.states import Trajectories
from dphmm.storage.statement import (
    Published,
    load_statement,
    privacy_statement,
    statement_schema,
    write_statement,
)
from dphmm.storage.statement_types import ReleaseStatement, document

pytestmark = pytest.mark.replayed_words

STEPS = 3
#: Two lines of three places: neighbours along a line, two lines apart.
SPACE = dphmm.StateSpace(np.array([[0, 0], [1, 0], [2, 0], [0, 9], [2, 9], [4, 9]]))
POLICY = dphmm.policy.categorical([0, 0, 0, 1, 1, 1])
TRUTH = ("0", "1", "5")


def chain(**provenance: Any) -> dphmm.MarkovModel:
    origin = {"method": "given", **provenance} if provenance else None
    return dphmm.MarkovModel(np.full(6, 1 / 6), np.full((6, 6), 1 / 6), provenance=origin)


def made(
    model: dphmm.MarkovModel | None = None,
    policy: dphmm.policy.PolicyGraph = POLICY,
    *,
    truth: tuple[str, ...] = TRUTH,
    people: str = "unknown",
    epsilon: str = "1/3",
    **choices: Any,
) -> ReleaseStatement:
    """The statement of two subjects' releases."""
    from fractions import Fraction

    model = chain() if model is None else model
    batch = Batch(model, policy, SPACE, Fraction(epsilon), **choices)
    rows = Trajectories.from_labels(
        [user for user in ("ann", "bob") for _ in range(STEPS)],
        step=np.tile(np.arange(STEPS), 2),
        state=np.array([*truth, *truth[::-1]], dtype=object),
    )
    published = Published()
    for chunk in batch.run(rows):
        published.add(chunk)
    return privacy_statement(
        published, model=model, policy=policy, space=SPACE, options=batch.setting.options, model_people=people
    )


def stated(*args: Any, **choices: Any) -> dict[str, Any]:
    """The same for JSON."""
    return document(made(*args, **choices))


def written(statement: ReleaseStatement, folder: Path) -> dict[str, Any]:
    """The statement as it lies beside a file."""
    release = folder / "released.csv"
    release.write_text("user\n")
    path = write_statement(release, statement)
    assert path.name == "released.csv.privacy.json"
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def everything_said(statement: dict[str, Any]) -> str:
    return json.dumps(statement)


CASES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "component": {"scope": "component"},
    "delta": {"constraint": "delta=0.2"},
    "replayable": {"bits": dphmm.ReplayBits(1)},
    "allow": {"flat": "allow"},
    "thickness": {"thickness": "0.5"},
    "complete": {"policy": dphmm.policy.complete(6), "flat": "refuse"},
    "same people": {"model": chain(private=False), "people": "same"},
}


@pytest.mark.parametrize("choices", CASES.values(), ids=CASES)
def test_every_kind_of_release_has_a_statement_of_the_schema(choices: dict[str, Any], tmp_path: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(statement_schema())
    jsonschema.validate(written(made(**choices), tmp_path), statement_schema())


def test_the_schema_refuses_a_statement_that_is_short_or_says_more(tmp_path: Path) -> None:
    whole = written(made(), tmp_path)
    for member in whole:
        short = copy.deepcopy(whole)
        del short[member]
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(short, statement_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**whole, "drifted": 3}, statement_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**whole, "epsilon": 0.1}, statement_schema())


def test_totals_are_those_of_the_rows_and_say_what_they_mean() -> None:
    statement = stated()
    assert statement["epsilon"] == "1/3"
    assert statement["published"] == {"rows": 2 * STEPS, "subjects": 2, "public_constants": 0}
    assert sum(statement["mechanism"]["chosen"].values()) == 2 * STEPS
    totals = statement["totals"]
    assert totals["epsilon_sum"] == "1"
    assert "not a bound for two states of one step" in totals["epsilon_sum_meaning"]
    assert "Theorem 7.2" in totals["cost_sum_meaning"]
    assert totals["cost_unbounded_because"] is None
    batch = Batch(chain(), POLICY, SPACE, "1", bits=dphmm.ReplayBits(0))
    plan = batch.session("x", "0").plan
    assert float(totals["cost_sum"]) == pytest.approx(float(plan.cost) * STEPS / 3)


def test_plans_are_named_by_hash() -> None:
    plans = stated()["plans"]
    assert plans["count"] == len(plans["hashes"]) >= 1
    assert plans["sha256"] == hashlib.sha256("\n".join(sorted(plans["hashes"])).encode()).hexdigest()


def test_a_secure_release_promises_each_release_given_the_past() -> None:
    statement = stated(people="others")
    assert statement["private"] is statement["promise"]["holds"] is statement["randomness"]["secure"] is True
    assert statement["not_private_because"] == statement["unknown_because"] == []
    assert "given everything released" in statement["unit_of_privacy"]
    assert "exp(1/3)" in statement["promise"]["meaning"][0]
    said = everything_said(statement)
    for never in ("Who is in the data", "how often", "outside the support", "knows more than the model"):
        assert never in said


def test_replayable_bits_are_not_private() -> None:
    statement = stated(bits=dphmm.ReplayBits(1))
    assert statement["private"] is statement["promise"]["holds"] is False
    assert statement["unknown_because"] == []
    assert "replayable" in statement["not_private_because"][0]
    assert statement["randomness"]["meaning"].startswith("NOT PRIVATE")
    assert statement["randomness"]["replayable_rows"] == 2 * STEPS


def test_component_scope_says_that_components_are_disclosed() -> None:
    statement = stated(scope="component")
    assert "disclose" in statement["scope"]["meaning"]
    assert statement["totals"]["cost_sum"] == "unbounded"
    assert "component" in statement["totals"]["cost_unbounded_because"]
    assert any("component of the policy" in sentence for sentence in statement["not_protected"])
    assert not any("component of the policy" in sentence for sentence in stated()["not_protected"])


def test_a_flat_body_that_was_allowed_says_what_it_discloses() -> None:
    statement = stated(flat="allow")
    assert statement["totals"]["cost_sum"] == "unbounded"
    assert "flat body" in statement["totals"]["cost_unbounded_because"]
    assert "for certain" in statement["flat"]["meaning"]
    assert any("line or plane" in sentence for sentence in statement["not_protected"])
    assert not any("line or plane" in sentence for sentence in stated()["not_protected"])


def test_a_delta_set_says_what_happens_outside_it() -> None:
    meaning = stated(constraint="delta=0.2")["constraint"]["meaning"]
    assert "surrogate" in meaning and "contracted" in meaning
    assert "surrogate" not in stated()["constraint"]["meaning"]


@pytest.mark.parametrize(
    ("people", "private", "words"),
    [
        ("same", False, "no bound holds"),
        ("unknown", "unknown", "among those it was fitted on"),
        ("others", True, "other people"),
    ],
)
def test_whom_an_unprivate_model_was_fitted_on_is_told(people: str, private: bool | str, words: str) -> None:
    statement = stated(chain(private=False, method="maximum likelihood"), people=people)
    assert statement["private"] == statement["promise"]["holds"] == private
    assert words in statement["model"]["meaning"]
    assert any("fitted on" in sentence for sentence in statement["not_protected"])


def test_a_given_model_is_not_called_fitted() -> None:
    statement = stated()
    assert statement["model"]["private"] is None
    assert statement["model"]["meaning"].startswith("Given")


def test_whoever_the_model_is_of_must_be_one_of_three_words() -> None:
    with pytest.raises(InvalidInput, match="model_people"):
        stated(people="everybody")


@pytest.mark.parametrize("choices", [{}, {"constraint": "delta=0.2"}, {"scope": "component"}])
def test_nothing_depends_on_the_truth(choices: dict[str, Any]) -> None:
    def of(truth: tuple[str, ...]) -> dict[str, Any]:
        # A δ-set follows the answers, so only one step of it is the same for every truth.
        return stated(truth=truth, **choices) if "constraint" not in choices else _first_step(truth)

    assert of(("0", "0", "0")) == of(("5", "3", "nowhere"))


def _first_step(truth: tuple[str, ...]) -> dict[str, Any]:
    model = chain()
    batch = Batch(model, POLICY, SPACE, 1, constraint="delta=0.2")
    rows = Trajectories.from_labels(["ann"], step=np.array([0]), state=np.array(truth[:1], dtype=object))
    published = Published(row for chunk in batch.run(rows) for row in chunk)
    return document(
        privacy_statement(published, model=model, policy=POLICY, space=SPACE, options=batch.setting.options)
    )


def test_parameters_of_a_policy_are_given_unless_they_are_long() -> None:
    edges = dphmm.policy.from_edges([(0, 1), (3, 4)], 6)
    assert stated(policy=edges)["policy"]["parameters"] is not None
    statement = stated()
    assert statement["policy"]["kind"] == POLICY.kind
    assert statement["policy"]["sha256"] == POLICY.digest


def test_the_written_statement_names_its_file(tmp_path: Path) -> None:
    found = written(made(), tmp_path)
    assert found["file"] == {"name": "released.csv", "sha256": hashlib.sha256(b"user\n").hexdigest()}
    assert document(load_statement(tmp_path / "released.csv")) == found


@pytest.mark.parametrize("text", ["", "[]", '{"format": 3, "software": {"name": "dphmm"}}', "{" * 100_000])
def test_what_is_not_a_statement_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "released.csv.privacy.json").write_text(text)
    with pytest.raises(InvalidInput, match="statement"):
        load_statement(tmp_path / "released.csv")


def test_a_missing_statement_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="statement"):
        load_statement(tmp_path / "released.csv")
