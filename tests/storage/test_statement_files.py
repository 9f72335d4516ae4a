"""Privacy statements as files: every kind that is written, byte by byte, and those that earlier versions wrote.

Claims: a statement of each kind of release and of each kind of answer has exactly the bytes that it had before it was
written from types, but for the version; a statement of format 1, as older code wrote it, is read whole. It would fail
for another order of members, another form of a number or of a letter, a member left out or added, and for a reader
that asks an old file for a member that came later.
"""

from __future__ import annotations

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
from dphmm.states import Trajectories
from dphmm.storage.query_statement import query_statement
from dphmm.storage.statement import Published, privacy_statement, save_statement, write_statement

pytestmark = pytest.mark.replayed_words

FOLDER = Path(__file__).parent / "statements"
#: What stands for the version in a kept text.
VERSION = "THE VERSION"

SPACE = dphmm.StateSpace(np.array([[0, 0], [1, 0], [2, 0], [0, 9], [2, 9], [4, 9]]))
GRID = dphmm.Grid.from_bounds(10.0, 50.0, 10.042, 50.018, cell=1000)
LINES = dphmm.policy.categorical([0, 0, 0, 1, 1, 1])
HORIZON = {
    "total_epsilon": "2",
    "steps": 12,
    "epsilon_per_step": "0.0803",
    "policy_leakage": 1.9999999999999998,
    "meaning": "bounds something",
    "proved_in": "docs/proofs/budget-split.md",
}


def chain(n: int = 6, step: int | None = None, **provenance: Any) -> dphmm.MarkovModel:
    return dphmm.MarkovModel(np.full(n, 1 / n), np.full((n, n), 1 / n), step=step, provenance=provenance or None)


def learned(secure: bool = True, delta: Fraction = Fraction(0)) -> dphmm.MarkovModel:
    """A model with the record of a fit with noise."""
    noise = NoisyCounts("counts", "gaussian" if delta else "laplace", Fraction(9), Fraction(9))
    event = LearningEvent((noise,), "add-remove", 9, 2, secure, delta, unit="owner")
    return chain(method="counts with noise", private=secure, privacy=described(event))


def released(
    model: dphmm.MarkovModel,
    policy: dphmm.policy.PolicyGraph = LINES,
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


def answered(dependence: Any, given: dict[str, Any], secure: bool = True, **more: Any) -> Any:
    """The statement of a histogram."""
    bits = None if secure else dphmm.ReplayBits(3)
    answer = dphmm.dependent.query("histogram", np.array([0, 1, 1]), dependence, 1, n_states=2, bits=bits)
    return query_statement(answer.event, dependence=given, domain={"states": 2, "windows": [1, 3], "box": None}, **more)


OTHERS = {"model_people": "others"}
GIVEN = {"given": "independent", "meaning": "no record depends on another one, as the data owner says"}
CASES: dict[str, Callable[[], Any]] = {
    "plain": lambda: released(chain()),
    "owner-says-others": lambda: released(chain(), said=OTHERS),
    "same-people": lambda: released(
        chain(private=False, method="größte Häufigkeit"), said={"model_people": "same", "known_by": "names"}
    ),
    "unknown-people": lambda: released(chain(private=False, method="counts"), said={"query": "home"}),
    "nothing-released": lambda: released(chain(), steps=0, said=OTHERS),
    "replayable": lambda: released(chain(), bits=dphmm.ReplayBits(1)),
    "delta-set": lambda: released(chain(), constraint="delta=0.2", bits=dphmm.ReplayBits(1)),
    "component": lambda: released(chain(), scope="component", said=OTHERS),
    "flat-allowed": lambda: released(chain(), flat="allow", said=OTHERS),
    "thick": lambda: released(chain(), thickness="0.5", said=OTHERS),
    "at-start": lambda: released(chain(), start="at", protection="min-error", said=OTHERS),
    "merged": lambda: released(chain(), space=SPACE.merged({3: 4}), said=OTHERS),
    "small-pitch": lambda: released(
        chain(2), dphmm.policy.complete(2), dphmm.StateSpace([0.0, 2.0**-20], pitch=2.0**-40), said=OTHERS
    ),
    "map": lambda: released(
        chain(GRID.n_states, method="counts", private=False),
        dphmm.policy.radius(GRID, 1234.5),
        GRID,
        steps=1,
        said=OTHERS,
    ),
    "map-complete": lambda: released(
        chain(GRID.n_states), dphmm.policy.complete(GRID.n_states), GRID, steps=1, said=OTHERS
    ),
    "learned": lambda: released(learned()),
    "learned-delta": lambda: released(learned(delta=Fraction(1, 10**6)), scope="component"),
    "learned-of-others": lambda: released(learned(), said=OTHERS),
    "learned-replayable": lambda: released(learned(secure=False)),
    "horizon": lambda: released(chain(), said={**OTHERS, "horizon": HORIZON}),
    "long-policy": lambda: released(
        chain(900),
        dphmm.policy.from_edges([(a, a + 1) for a in range(899)], 900),
        dphmm.StateSpace(np.arange(900)),
        steps=1,
        said=OTHERS,
    ),
    "query-independent": lambda: answered("independent", GIVEN),
    "query-group": lambda: answered(("group", 2), {"given": "group", "meaning": "two"}, unit="rows", by_person=True),
    "query-replayable": lambda: answered("independent", {}, secure=False),
    "query-same-model": lambda: answered("independent", GIVEN, model_people="same", not_protected=["The box."]),
    "query-unknown-model": lambda: answered("independent", GIVEN, model_people="unknown"),
    "query-other-model": lambda: answered("independent", GIVEN, model_people="others"),
}


def written(name: str, folder: Path) -> str:
    """The text of a case's statement beside its file, its version left out."""
    release = folder / "released.csv"
    release.write_text("user\n")
    path = write_statement(release, CASES[name]())
    return path.read_text().replace(f'"version": "{version("dphmm")}"', f'"version": "{VERSION}"')


@pytest.mark.parametrize("name", CASES)
def test_the_bytes_of_a_statement_are_what_they_were(name: str, tmp_path: Path) -> None:
    assert written(name, tmp_path) == (FOLDER / f"{name}.json").read_text()


def test_a_stream_is_told_by_a_dash(tmp_path: Path) -> None:
    statement = CASES["plain"]()
    save_statement(tmp_path / "said.json", statement, "-", "ab" * 32)
    end = '  "file": {\n    "name": "-",\n    "sha256": "' + "ab" * 32 + '"\n  }\n}\n'
    assert (tmp_path / "said.json").read_text().endswith(end)
