"""The privacy statement says what was promised, no more, and nothing that depends on the truth.

Claims about its files: a statement of each kind of release has exactly the bytes that are kept of it, but for the
version. It would fail for another order of members, another form of a number or of a letter, and a member left out or
added. What its sentences say is kept by `statement.test_lines`.
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
from dphmm.errors import InvalidInput
from dphmm.release.batch import Batch
from dphmm.statement.files import load_statement, save_statement, write_statement
from dphmm.statement.parts import document
from dphmm.states import Trajectories
from dphmm.storage.released import FileSums
from statement.told import statement_of

pytestmark = pytest.mark.replayed_words

#: Two lines of three places: neighbours along a line, two lines apart.
SPACE = dphmm.StateSpace(np.array([[0, 0], [1, 0], [2, 0], [0, 9], [2, 9], [4, 9]]))
POLICY = dphmm.policy.categorical([0, 0, 0, 1, 1, 1])


def test_totals_are_those_of_the_rows() -> None:
    statement = document(released(model_of(), steps=3))
    assert statement["published"] == {"rows": 6, "subjects": 2, "public_constants": 0}
    assert sum(statement["mechanism"]["chosen"].values()) == 6
    totals = statement["totals"]
    assert totals["epsilon_sum"] == "1"
    plan = Batch(model_of(), POLICY, SPACE, "1", protection="nearest", bits=dphmm.ReplayBits(0)).session("x", "0").plan
    assert float(totals["cost_sum"]) == pytest.approx(float(plan.cost))


def test_plans_are_named_by_hash() -> None:
    plans = document(released(model_of()))["plans"]
    assert plans["count"] == len(plans["hashes"]) >= 1
    assert plans["sha256"] == hashlib.sha256("\n".join(sorted(plans["hashes"])).encode()).hexdigest()


def test_whoever_the_model_is_of_must_be_one_of_three_words() -> None:
    with pytest.raises(InvalidInput, match="model_people"):
        released(model_of(), said={"model_people": "everybody"})


# A δ-set follows the answers, so only one step of it is the same for every truth.
@pytest.mark.parametrize(("steps", "choices"), [(3, {}), (1, {"constraint": "delta=0.2"})])
def test_nothing_depends_on_the_truth(steps: int, choices: dict[str, Any]) -> None:
    truths = (["0", "0", "0"], ["5", "3", "nowhere"])
    one, other = (document(released(model_of(), steps=steps, truth=truth, **choices)) for truth in truths)
    assert one == other


def test_the_written_statement_names_its_file(tmp_path: Path) -> None:
    (tmp_path / "released.csv").write_text("user\n")
    path = write_statement(tmp_path / "released.csv", released(model_of()))
    assert path.name == "released.csv.privacy.json"
    found = json.loads(path.read_text())
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


FOLDER = Path(__file__).parent / "kept"
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
    truth: list[str] | None = None,
    said: dict[str, Any] | None = None,
    **options: Any,
) -> Any:
    """The statement of a release of two people, one of whom is in no state at the end."""
    batch = Batch(model, policy, space, Fraction(1, 3), **{"protection": "nearest", **options})
    first = ([space.names[0], *["nowhere"] * (steps - 1)] if truth is None else truth)[:steps]
    rows = Trajectories.from_labels(
        [user for user in ("ann", "bob") for _ in range(steps)],
        step=np.tile(np.arange(steps), 2),
        state=np.array([*first, *first[::-1]], dtype=object),
    )
    published = FileSums(row for chunk in batch.run(rows) for row in chunk)
    public = {"model": model, "policy": policy, "space": space, "options": batch.setting.options}
    return statement_of(published, **public, **(said or {}))


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
