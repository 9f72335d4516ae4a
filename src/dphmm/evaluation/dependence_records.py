"""Classification of Adult and the degrees of the Facebook graph, records depending where their profiles are alike.

The affinity graph is the paper's: two records are joined if the cosine of their profiles is above 0.8. Which law
belongs to it the paper does not say (its Eq. 26 is about distances on a map); here the coefficient of a pair is its
cosine, and for "correlated" the linear correlation of the two profiles. Profiles and the graph are taken as public.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.dependent import classifier, degree_distribution
from dphmm.evaluation.dependence_mechanisms import People, affinity, bits_of
from dphmm.evaluation.experiment import Cell, Row
from dphmm.types import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

ADULT, FACEBOOK, PROFILES = "adult.csv.gz", "facebook_edges.parquet", "facebook_profiles.parquet"
GRAPH_FILES = (FACEBOOK, PROFILES)
RICH = ">50K"
STRENGTH, NORM = 1e-3, 2.0
CAP = {"edge": 300, "node": 50}
_CATEGORIES = (
    *("workclass", "education", "marital_status", "occupation"),
    *("relationship", "race", "sex", "native_country"),
)
_SKILLED = ("Exec-managerial", "Prof-specialty")
_OFFICE = ("Tech-support", "Sales", "Protective-serv", "Adm-clerical")
EVEN, CONSTANT, LARGE = "even counts, no data", "always the same answer, no data", "independent, ε = 1024"


@dataclass(frozen=True, eq=False)
class Adult:
    """Rows to learn from and to judge by, with whether they are rich; profiles of the former."""

    rows: FloatArray
    rich: IntArray
    profiles: FloatArray
    test: FloatArray
    test_rich: IntArray


@lru_cache(maxsize=2)
def adult(folder: Path) -> Adult:
    """The census file; attributes have public bounds."""
    import pandas as pd

    from dphmm.storage.tables import read_table

    table = read_table(folder / ADULT).to_pandas()
    rows, rich = _attributes(table), (table["income"] == RICH).to_numpy(dtype=np.int64)
    train = (table["split"] == "train").to_numpy()
    profiles = pd.get_dummies(table.loc[train, list(_CATEGORIES)]).to_numpy(dtype=np.float64)
    return Adult(rows[train], rich[train], profiles, rows[~train], rich[~train])


def _attributes(table: pd.DataFrame) -> FloatArray:
    """Numbers between 0 and 1, by public bounds."""

    def is_one(column: str, *values: str) -> Any:
        return table[column].isin(values)

    age = np.clip(table["age"] / 90, 0, 1)
    columns = [
        age,
        age**2,
        np.clip(table["education_num"] / 16, 0, 1),
        np.clip(table["hours_per_week"] / 99, 0, 1),
        np.clip(np.log1p(table["capital_gain"]) / np.log1p(99_999), 0, 1),
        np.clip(table["capital_loss"] / 4356, 0, 1),
        is_one("marital_status", "Married-civ-spouse"),
        is_one("sex", "Male"),
        is_one("occupation", *_SKILLED),
        is_one("occupation", *_OFFICE),
        is_one("workclass", "Self-emp-inc", "Federal-gov"),
        is_one("relationship", "Own-child"),
    ]
    return np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=1)


def classification(
    folder: Path, cell: Cell, epsilons: tuple[str, ...], seed: np.random.SeedSequence, draws: int
) -> Iterator[Row]:
    """How many test records are classified rightly, for one sample of records to learn from."""
    here = adult(folder)
    chosen = np.random.default_rng(seed).permutation(len(here.rows))[: int(str(cell["records"]))]
    rows, rich = here.rows[chosen], here.rich[chosen]
    people = People(None, *affinity(here.profiles[chosen]))
    for epsilon in epsilons:
        place: Row = {"epsilon": epsilon}
        yield {**place, "mechanism": LARGE, "accuracy": _right(here, rows, rich, 2**10, seed, LARGE)}
        constant = max(float(here.test_rich.mean()), 1 - float(here.test_rich.mean()))
        yield {**place, "mechanism": CONSTANT, "accuracy": constant}
        for mechanism in people.mechanisms:
            spent = people.spending(mechanism, epsilon)
            for draw in range(draws):
                right = _right(here, rows, rich, spent.per_record, seed, mechanism, epsilon, draw)
                yield {**place, **spent.described(), "draw": draw, "accuracy": right}


def _right(
    here: Adult, rows: FloatArray, rich: IntArray, per_record: Any, seed: np.random.SeedSequence, *label: object
) -> float:
    options: dict[str, Any] = {"classes": [0, 1], "regularization": STRENGTH, "norm": NORM}
    found = classifier(rows, rich, "independent", per_record, bits=bits_of(seed, *label), **options)
    return float((found.estimator.predict(here.test) == here.test_rich).mean())


@dataclass(frozen=True, eq=False)
class Graph:
    """A social graph (m, 2) of people, and how alike they are."""

    edges: IntArray
    people: People


@lru_cache(maxsize=2)
def graph(folder: Path) -> Graph:
    """The ego networks, with an affinity graph of the profiles."""
    from dphmm.storage.tables import read_table

    columns = read_table(folder / FACEBOOK).columns
    edges = np.stack([np.asarray(column, dtype=np.int64) for column in columns[:2]], axis=1)
    table = read_table(folder / PROFILES)
    nodes, features = table.column("node").to_pylist(), table.column("features").to_pylist()
    size = 1 + max((max(found) for found in features if found), default=0)
    profiles = np.zeros((int(edges.max()) + 1, size))
    for node, found in zip(nodes, features, strict=True):
        profiles[node, list(found)] = 1.0
    return Graph(edges, People(None, *affinity(profiles)))


def degrees(folder: Path, cell: Cell, seed: np.random.SeedSequence, draws: int) -> Iterator[Row]:
    """The paper's accuracy of the degree distribution."""
    here, epsilon, level = graph(folder), str(cell["epsilon"]), str(cell["level"])
    n, cap = here.people.n, CAP[level]
    truth = np.bincount(np.minimum(np.bincount(here.edges.ravel(), minlength=n), cap), minlength=cap + 1)
    even = np.full(cap + 1, n / (cap + 1))
    yield {"mechanism": EVEN, "draw": 0, "accuracy": alike(truth, even)}
    for mechanism in here.people.mechanisms:
        spent = here.people.spending(mechanism, epsilon)
        for draw in range(draws):
            bits = bits_of(seed, level, mechanism, draw)
            answer = degree_distribution(
                here.edges, n, "independent", spent.per_record, level=level, cap=cap, bits=bits
            )
            found = alike(truth, answer.table["count"].to_numpy())
            yield {**spent.described(), "draw": draw, "accuracy": found}


def alike(truth: Any, answer: Any) -> float:
    """1 − ‖C − C′‖₁ / ‖C + C′‖₁."""
    return 1.0 - float(np.abs(truth - answer).sum() / np.abs(truth + answer).sum())
