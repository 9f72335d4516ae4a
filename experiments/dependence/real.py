"""The real data sets: Gowalla check-ins in Los Angeles, Adult, and the Facebook graph.

Gowalla: who is where, who is friends with whom, and k-means and leakage on them. One record is a person's place, the
median of the person's check-ins. That people are there and who their friends are is taken as public, as in the paper;
friends' places depend on each other by the distance model and on nothing else.

A graph of one's own: its people depend on each other where a pair joins them, by a coefficient that is stated.

Adult and Facebook: classification and degrees, records depending where their profiles are alike. The affinity graph is
the paper's: two records are joined if the cosine of their profiles is above 0.8. Which law belongs to it the paper does
not say (its Eq. 26 is about distances on a map); here the coefficient of a pair is its cosine, and for "correlated" the
linear correlation of the two profiles. Profiles and the graph are taken as public.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from dphmm.dependent import classifier, degree_distribution, kmeans
from dphmm.errors import InvalidInput
from dphmm.evaluation import bootstrap_mean
from dphmm.storage import load_trajectories

# Files of pairs come in every format of tables of the package: its own door to them, which no package lists.
from dphmm.storage.tables import read_table
from dphmm.types import BoolArray, FloatArray, IntArray
from experiments.dependence import leakage
from experiments.dependence.mechanisms import People, affinity
from experiments.experiment import Cell, OwnGraph, Row, bits_of

if TYPE_CHECKING:
    import pandas as pd


CHECK_INS, EDGES = "gowalla_la.parquet", "gowalla_la_edges.parquet"
GOWALLA_FILES = (CHECK_INS, EDGES)
#: Santa Monica, Hollywood, Downtown, Long Beach, Pasadena: where k-means starts.
TOWNS = ((34.02, -118.49), (34.10, -118.33), (34.05, -118.25), (33.77, -118.19), (34.15, -118.14))
CLUSTERS, ITERATIONS = len(TOWNS), 3
#: People with more friends are not attacked: stars of theirs are the least like a star.
MOST_FRIENDS = 12
START, EXACT = "start, no data", "no noise, not private"


@dataclass(frozen=True, eq=False)
class City:
    """Where people are (n, 2) in metres, the cells they are in (n,), and friendships (m, 2)."""

    points: FloatArray
    cells: IntArray
    edges: IntArray
    people: People

    @property
    def degrees(self) -> IntArray:
        """Friends of each person."""
        found: IntArray = np.bincount(self.edges.ravel(), minlength=len(self.points))
        return found


@lru_cache(maxsize=2)
def city(folder: Path) -> City:
    """The people of the check-ins file."""
    import pyarrow.parquet as pq

    rows = load_trajectories(folder / CHECK_INS, user_column="user").trajectories
    assert rows.lat is not None and rows.lon is not None
    _, begins = np.unique(rows.user, return_index=True)
    lat, lon = (np.array([np.median(part) for part in np.split(axis, begins[1:])]) for axis in (rows.lat, rows.lon))
    number = {int(name): place for place, name in enumerate(rows.users)}
    pairs = np.stack([np.asarray(column) for column in pq.read_table(folder / EDGES).columns[:2]], axis=1)
    known = [(number[int(a)], number[int(b)]) for a, b in pairs if int(a) in number and int(b) in number]
    friends = leakage.friendship(np.array(known, dtype=np.int64).reshape(-1, 2), len(lat))
    theta = sparse.csr_array(friends.graph != 0, dtype=np.float64) * leakage.correlation()
    return City(_metres(lat, lon), leakage.cell_of(lat, lon), friends.edges, People(friends, None, theta))


def _metres(lat: FloatArray, lon: FloatArray) -> FloatArray:
    west, south, _, _ = leakage.BOX
    found: FloatArray = np.stack([(lon - west) * leakage.METRES[0], (lat - south) * leakage.METRES[1]], axis=1)
    return found


def box() -> tuple[tuple[float, float], tuple[float, float]]:
    """The public box, metres."""
    west, south, east, north = leakage.BOX
    return (0.0, 0.0), ((east - west) * leakage.METRES[0], (north - south) * leakage.METRES[1])


def public_start() -> FloatArray:
    """The towns (5, 2), metres."""
    lat, lon = np.array(TOWNS).T
    return _metres(lat, lon)


def clusters(folder: Path, cell: Cell, seed: np.random.SeedSequence, draws: int) -> Iterator[Row]:
    """k-means by noisy sums and counts, against the same without noise."""
    here, epsilon = city(folder), str(cell["epsilon"])
    truth = lloyd(here.points)
    wanted = nearest(here.points, truth)
    least = cost(here.points, truth)
    for name, centres in ((EXACT, truth), (START, public_start())):
        yield {"mechanism": name, "draw": 0, **_judged(here.points, centres, wanted, least)}
    for mechanism in here.people.mechanisms:
        spent = here.people.spending(mechanism, epsilon)
        for draw in range(draws):
            answer = kmeans(
                here.points,
                "independent",  # with what the mechanism lets one record lose
                spent.per_record,
                box=box(),
                start=public_start(),
                iterations=ITERATIONS,
                bits=bits_of(seed, "k-means", mechanism, draw),
            )
            centres = answer.table[["x0", "x1"]].to_numpy()
            yield {**spent.described(), "draw": draw, **_judged(here.points, centres, wanted, least)}


def _judged(points: FloatArray, centres: FloatArray, wanted: IntArray, least: float) -> Row:
    return {"accuracy": kept(nearest(points, centres), wanted), "cost": cost(points, centres) / least}


def lloyd(points: FloatArray) -> FloatArray:
    """The same iterations from the same start without noise."""
    centres = public_start()
    for _ in range(ITERATIONS):
        of = nearest(points, centres)
        centres = np.array([points[of == k].mean(axis=0) if (of == k).any() else centres[k] for k in range(CLUSTERS)])
    return centres


def nearest(points: FloatArray, centres: FloatArray) -> IntArray:
    """The cluster of each point."""
    found: IntArray = ((points[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    return found


def cost(points: FloatArray, centres: FloatArray) -> float:
    """The mean squared distance to the nearest centre."""
    return float(((points[:, None] - centres) ** 2).sum(axis=2).min(axis=1).mean())


def kept(found: IntArray, wanted: IntArray) -> float:
    """The share of people who stay together: clusters are matched so that it is greatest."""
    together = np.zeros((CLUSTERS, CLUSTERS), dtype=np.int64)
    np.add.at(together, (found, wanted), 1)
    rows, columns = linear_sum_assignment(-together)
    return float(together[rows, columns].sum() / len(wanted))


def leaks(folder: Path, cell: Cell) -> Iterator[Row]:
    """Bits about people with 1 to 12 friends from the sum of everybody's row, all others but friends being known."""
    here, epsilon = city(folder), str(cell["epsilon"])
    yield from _leaked_at(here, 0.0, {"mechanism": "nothing is released", "guarantee": "ε-DDP"})
    largest = leakage.Friends(int(here.degrees.max())).losses()
    for mechanism in here.people.mechanisms:
        spent = here.people.spending(mechanism, epsilon)
        rate = float(spent.per_record) / (leakage.DOWN - 1)
        described = {**spent.described(), "true_epsilon": largest.at(1 / rate)}
        yield from _leaked_at(here, rate, described)


def _leaked_at(here: City, rate: float, described: dict[str, Any]) -> Iterator[Row]:
    found: dict[str, list[FloatArray]] = {}
    for friends in range(1, MOST_FRIENDS + 1):
        people = np.flatnonzero(here.degrees == friends)
        if len(people):
            for adversary, bits in _of_people(here, people, friends, rate):
                found.setdefault(adversary, []).append(bits)
    for adversary, parts in found.items():
        by_friends, by_release, right = np.concatenate(parts, axis=1)
        mean, low, high = bootstrap_mean(by_friends + by_release)
        told: Row = {"adversary": adversary, "leaked": mean, "low": low, "high": high}
        told |= {"by_friends": float(by_friends.mean()), "by_release": float(by_release.mean())}
        yield {**described, **told, "people": len(right), "right": float(right.mean())}


def _of_people(here: City, people: IntArray, friends: int, rate: float) -> Iterator[tuple[str, FloatArray]]:
    """For each person: bits by friends, bits by the release, and bits about where the person truly is (3, n)."""
    star = leakage.Friends(friends)
    theirs = here.cells[_friends_of(here, people)]
    nobody = np.tile(leakage.PRIOR, (len(people), 1))
    rows = leakage.NORTH[here.cells[people]]
    everybody = rows + leakage.NORTH[theirs].sum(axis=1)
    known = leakage.beliefs(theirs)
    yield leakage.WITHOUT, _bits(star.given_person(), nobody, everybody, here.cells[people], rate)
    yield leakage.UNAWARE, _bits(star.taken_as_independent(), nobody, everybody, here.cells[people], rate)
    yield "with all friends' data", _bits(star.given_person(0), known, rows, here.cells[people], rate)


def _bits(laws: FloatArray, before: FloatArray, sums: IntArray, places: IntArray, rate: float) -> FloatArray:
    gained = leakage.entropy(leakage.PRIOR[None])[0] - leakage.entropy(before)
    true = before[np.arange(len(places)), places]
    right = np.log2(true / leakage.PRIOR[places])
    if rate == 0:
        return np.stack([gained, np.zeros(len(before)), right])
    answers = leakage.noisy(laws, rate)
    # On average over the noise in the answer that was truly made.
    surprise = np.log2(answers.T[None, :, :] @ before[:, :, None])[:, :, 0]
    seen = leakage.noise(laws.shape[1], rate)[sums]
    right = right + (seen * (np.log2(answers[places]) - surprise)).sum(axis=1)
    return np.stack([gained, leakage.told(answers, before), right])


def _friends_of(here: City, people: IntArray) -> IntArray:
    graph: Any = here.people.model
    return np.array([graph.graph.indices[graph.graph.indptr[i] : graph.graph.indptr[i + 1]] for i in people])


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

    table = pd.read_csv(folder / ADULT, keep_default_na=False)
    rows = _attributes(table)
    rich = np.asarray(table["income"] == RICH, dtype=np.int64)
    train: BoolArray = (table["split"] == "train").to_numpy(dtype=np.bool_)
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
    import pyarrow.parquet as pq

    columns = pq.read_table(folder / FACEBOOK).columns
    edges = np.stack([np.asarray(column, dtype=np.int64) for column in columns[:2]], axis=1)
    table = pq.read_table(folder / PROFILES)
    nodes, features = table.column("node").to_pylist(), table.column("features").to_pylist()
    size = 1 + max((max(found) for found in features if found), default=0)
    profiles = np.zeros((int(edges.max()) + 1, size))
    for node, found in zip(nodes, features, strict=True):
        profiles[node, list(found)] = 1.0
    return Graph(edges, People(None, *affinity(profiles)))


@lru_cache(maxsize=2)
def own_graph(own: OwnGraph) -> Graph:
    """The first two columns of a file of pairs, each once: of people in the order of their names."""
    columns = [column.to_pylist() for column in read_table(own.file, text=None).columns[:2]]
    if len(columns) < 2:
        raise InvalidInput("--graph", f"{own.file.name}, with {len(columns)} column", "two columns, of people")
    names, numbers = np.unique(np.array(columns, dtype=np.str_), return_inverse=True)
    pairs = np.sort(numbers.reshape(2, -1), axis=0)
    edges = np.unique(pairs[:, pairs[0] != pairs[1]], axis=1)
    if edges.shape[1] == 0:
        raise InvalidInput("--graph", f"{own.file.name}, with no pair", "pairs of two different people")
    weight = np.full(edges.shape[1], own.coefficient)
    joined = sparse.csr_array((weight, (edges[0], edges[1])), shape=(len(names), len(names)))
    joined = sparse.csr_array(joined + joined.T)
    return Graph(edges.T.astype(np.int64), People(None, joined, joined))


def degrees(here: Graph, cell: Cell, seed: np.random.SeedSequence, draws: int) -> Iterator[Row]:
    """The paper's accuracy of the degree distribution."""
    epsilon, level = str(cell["epsilon"]), str(cell["level"])
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
