"""The privacy statement says what was promised, no more, and nothing that depends on the truth.

Claims about its files: a statement of each kind of release has exactly the bytes that it had before it was written from
types, but for the version. It would fail for another order of members, another form of a number or of a letter, a
member left out or added, and for a sentence where it is not true.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dphmm
from dphmm.accounting.event import LearningEvent, NoisyCounts, described
from dphmm.batch import Batch
from dphmm.errors import InvalidInput
from dphmm.states import Trajectories
from dphmm.storage.released import Published
from dphmm.storage.statement import load_statement, privacy_statement, save_statement, write_statement
from dphmm.storage.statement_types import ReleaseStatement, document

pytestmark = pytest.mark.replayed_words

STEPS = 3
#: Two lines of three places: neighbours along a line, two lines apart.
SPACE = dphmm.StateSpace(np.array([[0, 0], [1, 0], [2, 0], [0, 9], [2, 9], [4, 9]]))
POLICY = dphmm.policy.categorical([0, 0, 0, 1, 1, 1])
TRUTH = ("0", "1", "5")


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
    model = model_of() if model is None else model
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


def test_totals_are_those_of_the_rows_and_say_what_they_mean() -> None:
    statement = stated()
    assert statement["epsilon"] == "1/3"
    assert statement["published"] == {"rows": 2 * STEPS, "subjects": 2, "public_constants": 0}
    assert sum(statement["mechanism"]["chosen"].values()) == 2 * STEPS
    totals = statement["totals"]
    assert totals["epsilon_sum"] == "1"
    assert "not a bound for two states of one step" in totals["epsilon_sum_meaning"]
    assert "Theorem 7.2" in totals["cost_sum_meaning"]
    batch = Batch(model_of(), POLICY, SPACE, "1", bits=dphmm.ReplayBits(0))
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
    statement = stated(model_of(private=False, method="maximum likelihood"), people=people)
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


@pytest.mark.parametrize("choices", [{}, {"constraint": "delta=0.2"}])
def test_nothing_depends_on_the_truth(choices: dict[str, Any]) -> None:
    def of(truth: tuple[str, ...]) -> dict[str, Any]:
        # A δ-set follows the answers, so only one step of it is the same for every truth.
        return stated(truth=truth, **choices) if "constraint" not in choices else _first_step(truth)

    assert of(("0", "0", "0")) == of(("5", "3", "nowhere"))


def _first_step(truth: tuple[str, ...]) -> dict[str, Any]:
    model = model_of()
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


FOLDER = Path(__file__).parent / "statements"
#: What stands for the version in a kept text.
VERSION = "THE VERSION"

GRID = dphmm.Grid.from_bounds(10.0, 50.0, 10.042, 50.018, cell=1000)


def model_of(n: int = 6, step: int | None = None, **provenance: Any) -> dphmm.MarkovModel:
    return dphmm.MarkovModel(np.full(n, 1 / n), np.full((n, n), 1 / n), step=step, provenance=provenance or None)


def learned(secure: bool = True, delta: Fraction = Fraction(0)) -> dphmm.MarkovModel:
    """A model with the record of a fit with noise."""
    noise = NoisyCounts("counts", "gaussian" if delta else "laplace", Fraction(9), Fraction(9))
    event = LearningEvent((noise,), "add-remove", 9, 2, secure, delta, unit="owner")
    return model_of(method="counts with noise", private=secure, privacy=described(event))


def released(
    model: dphmm.MarkovModel,
    policy: dphmm.policy.PolicyGraph = POLICY,
    space: dphmm.StateSpace = SPACE,
    *,
    steps: int = 2,
    said: dict[str, Any] | None = None,
    **options: Any,
) -> Any:
    """The statement of a release of two people, one of whom is in no state at the end."""
    batch = Batch(model, policy, space, Fraction(1, 3), **{"protection": "nearest", **options})
    first = [space.names[0], *["nowhere"] * (steps - 1)] if steps else []
    rows = Trajectories.from_labels(
        [user for user in ("ann", "bob") for _ in range(steps)],
        step=np.tile(np.arange(steps), 2),
        state=np.array([*first, *first[::-1]], dtype=object),
    )
    published = Published(row for chunk in batch.run(rows) for row in chunk)
    public = {"model": model, "policy": policy, "space": space, "options": batch.setting.options}
    return privacy_statement(published, **public, **(said or {}))


OTHERS = {"model_people": "others"}
WRITTEN: dict[str, Callable[[], Any]] = {
    "plain": lambda: released(model_of()),
    "owner-says-others": lambda: released(model_of(), said=OTHERS),
    "same-people": lambda: released(
        model_of(private=False, method="größte Häufigkeit"), said={"model_people": "same", "known_by": "names"}
    ),
    "unknown-people": lambda: released(model_of(private=False, method="counts"), said={"query": "home"}),
    "nothing-released": lambda: released(model_of(), steps=0, said=OTHERS),
    "replayable": lambda: released(model_of(), bits=dphmm.ReplayBits(1)),
    "delta-set": lambda: released(model_of(), constraint="delta=0.2", bits=dphmm.ReplayBits(1)),
    "at-start": lambda: released(model_of(), start="at", protection="min-error", said=OTHERS),
    "merged": lambda: released(model_of(), space=SPACE.merged({3: 4}), said=OTHERS),
    "small-pitch": lambda: released(
        model_of(2), dphmm.policy.complete(2), dphmm.StateSpace([0.0, 2.0**-20], pitch=2.0**-40), said=OTHERS
    ),
    "map": lambda: released(
        model_of(GRID.n_states, method="counts", private=False),
        dphmm.policy.radius(GRID, 1234.5),
        GRID,
        steps=1,
        said=OTHERS,
    ),
    "map-complete": lambda: released(
        model_of(GRID.n_states), dphmm.policy.complete(GRID.n_states), GRID, steps=1, said=OTHERS
    ),
    "learned": lambda: released(learned()),
    "learned-delta": lambda: released(learned(delta=Fraction(1, 10**6))),
    "learned-of-others": lambda: released(learned(), said=OTHERS),
    "learned-replayable": lambda: released(learned(secure=False)),
    "long-policy": lambda: released(
        model_of(900),
        dphmm.policy.from_edges([(a, a + 1) for a in range(899)], 900),
        dphmm.StateSpace(np.arange(900)),
        steps=1,
        said=OTHERS,
    ),
}


def text_of(statement: Any, folder: Path) -> str:
    """The text of a statement beside its file, its version left out."""
    release = folder / "released.csv"
    release.write_text("user\n")
    path = write_statement(release, statement)
    return path.read_text().replace(f'"version": "{version("dphmm")}"', f'"version": "{VERSION}"')


def test_the_bytes_of_a_statement_are_what_they_were(tmp_path: Path) -> None:
    changed = [
        name for name, kind in WRITTEN.items() if text_of(kind(), tmp_path) != (FOLDER / f"{name}.json").read_text()
    ]
    assert changed == []


def test_a_stream_is_told_by_a_dash(tmp_path: Path) -> None:
    statement = WRITTEN["plain"]()
    save_statement(tmp_path / "said.json", statement, "-", "ab" * 32)
    end = '  "file": {\n    "name": "-",\n    "sha256": "' + "ab" * 32 + '"\n  }\n}\n'
    assert (tmp_path / "said.json").read_text().endswith(end)
