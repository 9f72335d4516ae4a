"""Gowalla check-ins in Los Angeles: who is where, who is friends with whom, and k-means, accuracy and leakage on them.

One record is a person's place, the median of the person's check-ins. That people are there and who their friends are is
taken as public, as in the paper; friends' places depend on each other by the distance model and on nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from dphmm.dependent import kmeans
from dphmm.evaluation import dependence_places as map_of
from dphmm.evaluation.dependence_leak import UNAWARE, WITHOUT
from dphmm.evaluation.dependence_mechanisms import People, bits_of
from dphmm.evaluation.experiment import Cell, Row, spread
from dphmm.types import FloatArray, IntArray

CHECK_INS, EDGES = "gowalla_la.parquet", "gowalla_la_edges.parquet"
FILES = (CHECK_INS, EDGES)
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
    from dphmm.storage.importers.imported import import_csv
    from dphmm.storage.tables import read_table

    rows = import_csv(folder / CHECK_INS, user_column="user").trajectories
    assert rows.lat is not None and rows.lon is not None
    _, begins = np.unique(rows.user, return_index=True)
    lat, lon = (np.array([np.median(part) for part in np.split(axis, begins[1:])]) for axis in (rows.lat, rows.lon))
    number = {int(name): place for place, name in enumerate(rows.users)}
    pairs = np.stack([np.asarray(column) for column in read_table(folder / EDGES).columns[:2]], axis=1)
    known = [(number[int(a)], number[int(b)]) for a, b in pairs if int(a) in number and int(b) in number]
    friends = map_of.friendship(np.array(known, dtype=np.int64).reshape(-1, 2), len(lat))
    theta = sparse.csr_array(friends.graph != 0, dtype=np.float64) * map_of.correlation()
    return City(_metres(lat, lon), map_of.cell_of(lat, lon), friends.edges, People(friends, None, theta))


def _metres(lat: FloatArray, lon: FloatArray) -> FloatArray:
    west, south, _, _ = map_of.BOX
    found: FloatArray = np.stack([(lon - west) * map_of._METRES[0], (lat - south) * map_of._METRES[1]], axis=1)
    return found


def box() -> tuple[tuple[float, float], tuple[float, float]]:
    """The public box, metres."""
    west, south, east, north = map_of.BOX
    return (0.0, 0.0), ((east - west) * map_of._METRES[0], (north - south) * map_of._METRES[1])


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
    largest = map_of.Friends(int(here.degrees.max())).losses()
    for mechanism in here.people.mechanisms:
        spent = here.people.spending(mechanism, epsilon)
        rate = float(spent.per_record) / (map_of.DOWN - 1)
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
        mean, low, high = spread(by_friends + by_release)
        told: Row = {"adversary": adversary, "leaked": mean, "low": low, "high": high}
        told |= {"by_friends": float(by_friends.mean()), "by_release": float(by_release.mean())}
        yield {**described, **told, "people": len(right), "right": float(right.mean())}


def _of_people(here: City, people: IntArray, friends: int, rate: float) -> Iterator[tuple[str, FloatArray]]:
    """For each person: bits by friends, bits by the release, and bits about where the person truly is (3, n)."""
    star = map_of.Friends(friends)
    theirs = here.cells[_friends_of(here, people)]
    nobody = np.tile(map_of.PRIOR, (len(people), 1))
    rows = map_of.NORTH[here.cells[people]]
    everybody = rows + map_of.NORTH[theirs].sum(axis=1)
    known = map_of.beliefs(theirs)
    yield WITHOUT, _bits(star.given_person(), nobody, everybody, here.cells[people], rate)
    yield UNAWARE, _bits(star.taken_as_independent(), nobody, everybody, here.cells[people], rate)
    yield "with all friends' data", _bits(star.given_person(0), known, rows, here.cells[people], rate)


def _bits(laws: FloatArray, before: FloatArray, sums: IntArray, places: IntArray, rate: float) -> FloatArray:
    gained = map_of.entropy(map_of.PRIOR[None])[0] - map_of.entropy(before)
    true = before[np.arange(len(places)), places]
    right = np.log2(true / map_of.PRIOR[places])
    if rate == 0:
        return np.stack([gained, np.zeros(len(before)), right])
    answers = map_of.noisy(laws, rate)
    # On average over the noise in the answer that was truly made.
    surprise = np.log2(answers.T[None, :, :] @ before[:, :, None])[:, :, 0]
    seen = map_of.noise(laws.shape[1], rate)[sums]
    right = right + (seen * (np.log2(answers[places]) - surprise)).sum(axis=1)
    return np.stack([gained, map_of.told(answers, before), right])


def _friends_of(here: City, people: IntArray) -> IntArray:
    graph: Any = here.people.model
    return np.array([graph.graph.indices[graph.graph.indptr[i] : graph.graph.indptr[i + 1]] for i in people])
