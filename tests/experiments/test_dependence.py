"""The experiment on dependent records: exact numbers where there are any, no guarantee made up, no data lost.

It could fail by printing the ε that was asked for as the true one, by calling a mechanism private that is not, by
counting what friends tell as told by the release (or the reverse), by an adversary that forgets part of what it knows,
by leaving out data without saying so, or by rows that depend on more than the cell and the seed. Laws of sums are held
against enumeration and against the package's own recursion; information against a sum written out by hand.
"""

from __future__ import annotations

import gzip
import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dphmm.dependent import AnyQuery, Coefficients, Friendship, calibrate, exact_loss
from experiments import __main__ as command
from experiments import dependence
from experiments.dependence import leakage, noise, real, tables
from experiments.dependence.leakage import FRIENDS_QUERY, KERNEL, NORTH, PRIOR, Friends, star_of
from experiments.dependence.mechanisms import (
    DPM,
    EVERYBODY,
    GROUP,
    KEPT,
    MARKOV,
    NONE,
    UNDER,
    People,
    affinity,
    forest_of,
    mistaken_rate,
)
from experiments.experiment import OwnGraph, Settings, seed_of
from experiments.running import run

#: What draws by default replays words here, each test its own.
pytestmark = pytest.mark.replayed_words


def _seed(cell=None, number: int = 1) -> np.random.SeedSequence:
    return seed_of(Settings(seed=number), "dependence", cell or {"part": "test"})


# Scales and true losses.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "mechanism", "scale", "true"),
    [
        ("symmetric chain .1/.1", "independent", 1, 4.50),
        ("symmetric chain .1/.1", "dpm", 8.994, 0.964),
        ("symmetric chain .1/.1", "markov", 8.640, 1.0),
        ("bursty chain .01/.1", "dpm", 17.33, 1.209),
        ("bursty chain .01/.1", "markov", 20.35, 1.0),
        ("bursty chain .01/.1", "dpm, rho x 0.8", 14.10, 1.55),
        ("bursty chain .01/.1", "dpm, rho x 0.9", 15.72, 1.36),
        ("bursty chain .01/.1", "dpm, rho x 1.1", 18.95, 1.09),
        ("exclusive or, 3 bits", "dpm", 1, 1 + math.log(math.cosh(1))),
        ("simplex code, 31 bits", "dpm", 1, math.log(2.0**-4 * math.exp(16) + 1 - 2.0**-4)),
    ],
)
def test_scales_stand_beside_true_losses(measured_scales, model, mechanism, scale, true):
    row = next(row for row in measured_scales[model] if row["mechanism"] == mechanism)
    assert row["scale"] == pytest.approx(scale, rel=1e-3)
    assert row["true_epsilon"] == pytest.approx(true, rel=4e-3)
    assert row["proved"] == (row["true_epsilon"] <= 1 + 1e-9)


@pytest.fixture(scope="module")
def measured_scales():
    models = ("symmetric chain .1/.1", "bursty chain .01/.1", "exclusive or, 3 bits", "simplex code, 31 bits")
    return {model: noise.measure_scales({"model": model, "epsilon": "1"}) for model in models}


def test_mistaken_coefficients_are_those_of_the_mechanism_where_they_are_not_mistaken():
    star = star_of(3)
    right = calibrate(star, FRIENDS_QUERY, 1, DPM, exact=False).rate
    assert float(mistaken_rate(star, FRIENDS_QUERY, Fraction(1), Fraction(1))) == pytest.approx(float(right), rel=1e-9)
    given = Coefficients(np.array([[1, 0.5], [0.5, 1]]))
    for factor in (Fraction(4, 5), Fraction(11, 10)):
        rate = mistaken_rate(given, AnyQuery(1), Fraction(1), factor)
        assert float(1 / rate) == pytest.approx(1 + 0.5 * float(factor), rel=1e-9)
    smaller = calibrate(given.scaled(0.8), AnyQuery(1), 1, DPM)
    assert float(smaller.scale) == pytest.approx(1.4, rel=1e-9)


# People of whom pairs are known.


def _people(edges, n=6) -> People:
    friends = leakage.friendship(np.array(edges), n)
    return People(friends, None, np.eye(n))


def test_only_what_is_proved_has_a_guarantee():
    loop = _people([(0, 1), (1, 2), (0, 2), (3, 4)])
    spent = {name: loop.spending(name, "1") for name in loop.mechanisms}
    assert {name for name, found in spent.items() if found.guarantee == KEPT} == {GROUP, EVERYBODY}
    assert spent[MARKOV].guarantee.startswith("ε-DDP if")
    assert spent[GROUP].multiplier == 3 and spent[EVERYBODY].multiplier == 6
    factors = [spent[name].multiplier for name in (*UNDER, DPM)]
    assert 1 < factors[0] < factors[1] < factors[2] < 3
    assert {spent[name].guarantee for name in (*UNDER, DPM, "independent", "correlated")} == {NONE}


def test_even_two_friends_have_no_joint_law():
    """Only the law of each given the other is said: "dpm" with a claim of 5 can lose 5.44 (test_attacks.py)."""
    assert _people([(0, 1)], 2).spending(DPM, "1").guarantee == NONE


def test_the_forest_spans_what_is_connected():
    friends = Friendship(leakage.places(), [(0, 1), (1, 2), (0, 2), (2, 3), (4, 5)], 7)
    tree = forest_of(friends)
    parts = sorted(sorted(part) for part in tree.trees())
    assert parts == [[0, 1, 2, 3], [4, 5], [6]]
    assert tree.parents[2] == -1  # the person with most friends
    joined = {frozenset((child, parent)) for child, parent in enumerate(tree.parents) if parent >= 0}
    assert joined <= {frozenset(map(int, edge)) for edge in friends.edges}


def test_affinity_is_the_cosine_above_its_threshold():
    random = np.random.default_rng(1)
    profiles = random.integers(0, 2, size=(1500, 5)).astype(float)  # more than one block of rows
    cosines, correlations = affinity(profiles)
    lengths = np.linalg.norm(profiles, axis=1)
    for i, j in random.integers(0, 1500, size=(300, 2)):
        both = lengths[i] * lengths[j]
        cosine = profiles[i] @ profiles[j] / both if both else 0.0
        expected = cosine if cosine > 0.8 + 1e-6 and i != j else 0.0
        assert cosines[i, j] == pytest.approx(expected, abs=1e-6)
        if expected and profiles[i].std() and profiles[j].std():
            assert correlations[i, j] == pytest.approx(abs(np.corrcoef(profiles[i], profiles[j])[0, 1]), abs=1e-5)
    assert cosines.nnz > 1500


# Places, and what a sum tells.


def test_laws_of_the_star_are_those_of_the_recursion():
    star, found = star_of(4), Friends(4)
    laws = exact_loss(star, FRIENDS_QUERY)
    assert np.allclose(found.given_person(), laws.laws[0], atol=1e-14)
    assert np.allclose(found.given_friend(), laws.laws[2], atol=1e-14)
    for scale in (5.0, 31.0):
        assert found.losses().at(scale) == pytest.approx(laws.at(scale), rel=1e-12)


def test_noise_is_discrete_laplace_with_the_tails_at_the_ends():
    rate, size = 0.3, 8
    found = leakage.noise(size, rate)
    z = np.arange(-400, 401)
    chance = np.exp(-rate * np.abs(z))
    chance /= chance.sum()
    for s in range(size):
        clipped = np.bincount(np.clip(s + z, 0, size - 1), chance, minlength=size)
        assert np.allclose(found[s], clipped, atol=1e-14)


def test_ends_tell_as_much_as_what_is_beyond_them():
    """The information of the answer, with 400 integers beyond each end, is that of the clipped one."""
    laws, rate = Friends(2).given_person(), 0.4
    size = laws.shape[1]
    s = np.arange(-400, size + 400)
    wide = laws @ (np.exp(-rate * np.abs(np.arange(size)[:, None] - s)) * math.tanh(rate / 2))
    whole = leakage.told(wide, PRIOR[None])[0]
    assert leakage.told(leakage.noisy(laws, rate), PRIOR[None])[0] == pytest.approx(whole, rel=1e-9)


def test_information_is_that_of_enumeration():
    """Person and two friends on all 30³ places: what the answer tells somebody who knows one friend."""
    rate, known = 0.5, 7
    size = 2 * 5 + 1
    noisy = leakage.noise(size, rate)
    joint = np.zeros((len(PRIOR), size))
    for x, other in itertools.product(range(len(PRIOR)), repeat=2):
        joint[x] += PRIOR[x] * KERNEL[x, known] * KERNEL[x, other] * noisy[NORTH[x] + NORTH[other]]
    joint /= joint.sum()
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    expected = float((joint * np.log2(joint / apart)).sum())
    before = leakage.beliefs(np.array([[known]]))
    answers = leakage.noisy(Friends(2).given_person(1), rate)
    assert leakage.told(answers, before)[0] == pytest.approx(expected, rel=1e-9)
    assert before[0] == pytest.approx(joint.sum(axis=1), rel=1e-9)


def test_friends_are_drawn_as_the_model_says():
    """Chi-square of 20,000 places of a friend, 29 degrees: 66.2 at level 1e-4."""
    drawn = leakage.drawn(np.random.default_rng(2), 2, 20_000)
    expected = 20_000 * (PRIOR @ KERNEL)
    seen = np.bincount(drawn[:, 1], minlength=len(PRIOR))
    assert ((seen - expected) ** 2 / expected).sum() < 66.2
    together = 20_000 * (PRIOR[:, None] * KERNEL**2).sum()
    assert abs((drawn[:, 0] == drawn[:, 1]).sum() - (20_000 * (PRIOR @ KERNEL**2).sum())) < 4 * math.sqrt(together)


@pytest.fixture(scope="module")
def leaked():
    cell = {"part": "leak", "data": "distance model", "epsilon": "1"}
    return pd.DataFrame(leakage.measure(cell, _seed(cell), draws=200))


def _bits(table, adversary, mechanism, column="leaked"):
    row = table[(table["adversary"] == adversary) & (table["mechanism"] == mechanism)]
    assert len(row) == 1
    return float(row[column].iloc[0])


def test_the_drop_of_leakage_is_only_for_who_does_not_have_the_friends_data(leaked):
    """The claim of the paper's Figure 10, and where it is false."""
    alone, friends = leakage.WITHOUT, "with all friends' data"
    assert _bits(leaked, alone, "independent") > 10 * _bits(leaked, alone, DPM) > 0.3
    nothing = _bits(leaked, friends, "nothing is released")
    assert nothing > 4.5
    for mechanism in leaked["mechanism"].unique():
        assert _bits(leaked, friends, mechanism) == pytest.approx(nothing, abs=1e-3)
    assert _bits(leaked, alone, "nothing is released") == 0


def test_a_release_never_tells_more_bits_than_its_true_loss(leaked):
    """I <= ε·log2(e) for whoever holds no friend's data; and parts add up."""
    alone = leaked[leaked["adversary"] == leakage.WITHOUT]
    assert (alone["leaked"] <= alone["true_epsilon"] * math.log2(math.e) + 1e-12).all()
    assert np.allclose(leaked["leaked"], leaked["by_friends"] + leaked["by_release"])
    assert (leaked[leaked["mechanism"].isin(UNDER)]["true_epsilon"] > 1).all()
    assert set(leaked[leaked["mechanism"].isin(UNDER)]["guarantee"]) == {NONE}


# Gowalla, Adult and Facebook, small and made up.


@pytest.fixture(scope="module")
def small_data(tmp_path_factory):
    folder, random = tmp_path_factory.mktemp("data"), np.random.default_rng(4)
    user = np.repeat(np.arange(10, 50), 3)
    towns = np.array(real.TOWNS)[user % 5]
    lat, lon = (towns + random.normal(0, 0.01, towns.shape)).T
    t = pd.Timestamp("2010-01-01", tz="UTC") + pd.to_timedelta(np.arange(len(user)), unit="h")
    table = pd.DataFrame({"user": user, "t": t, "lat": lat, "lon": lon})
    table.to_parquet(folder / real.CHECK_INS)
    edges = [(10, 12), (12, 14), (10, 14), (11, 13), (10, 99)]
    pq.write_table(pa.table({"u": [u for u, _ in edges], "v": [v for _, v in edges]}), folder / real.EDGES)
    _write_adult(folder, random)
    pairs = np.array(list(itertools.combinations(range(12), 2)))[::3]
    pq.write_table(pa.table({"u": pairs[:, 0], "v": pairs[:, 1]}), folder / real.FACEBOOK)
    features = [[0, 1], [0, 1], [2], [], *[[k] for k in range(3, 10)]]
    pq.write_table(pa.table({"node": list(range(11)), "features": features}), folder / real.PROFILES)
    return folder


def _write_adult(folder, random):
    n = 120
    words = {name: random.choice(["a", "b", "c"], n) for name in real._CATEGORIES}
    numbers = {name: random.integers(1, 80, n) for name in ("age", "hours_per_week", "capital_gain", "capital_loss")}
    table = pd.DataFrame({**words, **numbers, "education_num": random.integers(1, 16, n)})
    table["income"] = np.where(table["age"] > 40, ">50K", "<=50K")
    table["split"] = np.where(np.arange(n) % 4, "train", "test")
    with gzip.open(folder / real.ADULT, "wt") as file:
        table.to_csv(file, index=False)


def test_a_city_is_of_medians_and_of_friends_who_are_there(small_data):
    here = real.city(small_data)
    assert here.points.shape == (40, 2) and here.people.n == 40
    assert sorted(map(tuple, here.edges.tolist())) == [(0, 2), (0, 4), (1, 3), (2, 4)]
    assert here.people.spending(GROUP, "1").multiplier == 3
    assert (here.points >= 0).all() and (here.points <= np.array(real.box()[1])).all()


def test_cells_and_metres_agree():
    """A public cell's middle is in the cell, by degrees as by metres."""
    west, south, east, north = leakage.BOX
    metres = leakage.places()
    width, height = real.box()[1]
    lon, lat = west + metres[:, 0] / width * (east - west), south + metres[:, 1] / height * (north - south)
    assert np.array_equal(leakage.cell_of(lat, lon), np.arange(30))
    assert np.allclose(real._metres(lat, lon), metres)


def test_clusters_without_noise_are_kept_and_renamed_ones_are_the_same():
    points = np.random.default_rng(5).uniform(0, 5e4, size=(300, 2))
    wanted = real.nearest(points, real.lloyd(points))
    assert real.kept((wanted + 2) % 5, wanted) == 1.0
    assert real.kept(np.zeros(300, dtype=int), wanted) == np.bincount(wanted).max() / 300


def test_kmeans_with_almost_no_noise_is_lloyd(small_data):
    rows = list(real.clusters(small_data, {"epsilon": "1000"}, _seed(), 1))
    found = {row["mechanism"]: row for row in rows}
    assert found[real.EXACT]["accuracy"] == 1 and found["independent"]["accuracy"] >= 0.95
    assert found["independent"]["cost"] == pytest.approx(1, abs=0.2)
    assert "guarantee" not in found[real.EXACT]


def test_an_adversary_of_gowalla_gets_what_bayes_gives(small_data):
    """Person 3, whose one friend is person 1: bits about the true place, by summing over answers by hand."""
    here, rate = real.city(small_data), 0.7
    person, friend = 3, 1
    found = dict(real._of_people(here, np.array([person]), 1, rate))
    place, theirs = here.cells[person], here.cells[friend]
    noise = leakage.noise(11, rate)
    chances = np.array([sum(KERNEL[x, y] * noise[NORTH[x] + NORTH[y]] for y in range(30)) for x in range(30)])
    after = PRIOR[:, None] * chances / (PRIOR @ chances)
    answer = noise[NORTH[place] + NORTH[theirs]]
    right = float(answer @ np.log2(after[place] / PRIOR[place]))
    assert found[leakage.WITHOUT][2, 0] == pytest.approx(right, rel=1e-9)
    known = found["with all friends' data"]
    before = PRIOR * KERNEL[:, theirs] / (PRIOR @ KERNEL[:, theirs])
    alone = leakage.noise(6, rate)
    after = before[:, None] * alone[NORTH] / (before @ alone[NORTH])
    assert known[2, 0] == pytest.approx(float(alone[NORTH[place]] @ np.log2(after[place] / PRIOR[place])), rel=1e-9)


@pytest.mark.parametrize("query", ["kmeans", "degree_distribution", "classifier"])
def test_every_answer_spends_what_its_mechanism_lets_one_record_lose(small_data, monkeypatch, query):
    """A query asked with the ε of the claim would look the same for every mechanism."""
    asked, answer = [], getattr(real, query)

    def noticed(*given, **options):
        place = next(k for k, value in enumerate(given) if isinstance(value, str) and value == "independent")
        asked.append(given[place + 1])
        return answer(*given, **options)

    monkeypatch.setattr(real, query, noticed)
    cell = {"epsilon": "3", "level": "edge", "records": 60}
    if query == "kmeans":
        rows = list(real.clusters(small_data, cell, _seed(), 1))
    elif query == "degree_distribution":
        rows = list(real.degrees(real.graph(small_data), cell, _seed(), 1))
    else:
        rows = list(real.classification(small_data, cell, ("3",), _seed(), 1))
        assert asked.pop(0) == 2**10
    factors = [row["noise"] for row in rows if "noise" in row]
    assert len(asked) == len(factors) and len(set(factors)) > 3
    assert [3 / float(spent) for spent in asked] == pytest.approx(factors, rel=1e-12)


def test_two_counts_change_with_one_person(small_data):
    cell = {"part": "accuracy", "model": noise.GOWALLA, "epsilon": "0.1"}
    rows = noise.measure_accuracy(small_data, cell, _seed(cell))
    needed = {row["mechanism"]: row["alpha"] for row in rows if row["kind"] == "alpha of beta" and row["beta"] == 0.5}
    median = 4.670909  # of the sum of five exponential numbers of mean 1
    assert needed["independent"] == pytest.approx(median * 2 / 0.1, rel=1e-6)
    assert needed[GROUP] == pytest.approx(median * 2 * 3 / 0.1, rel=1e-6)


def test_degrees_are_less_accurate_with_more_noise(small_data):
    cell = {"part": "degrees", "level": "edge", "epsilon": "1"}
    table = pd.DataFrame(real.degrees(real.graph(small_data), cell, _seed(cell), 10))
    accuracy = table.groupby("mechanism")["accuracy"].mean()
    assert accuracy["independent"] > accuracy[EVERYBODY]
    assert real.alike(np.array([3, 1]), np.array([3, 1])) == 1
    assert real.alike(np.array([2, 0]), np.array([0, 2])) == 0


def test_closed_and_drawn_accuracy_agree():
    """P(L1 error > α) by formula and by 4,000 draws of integer noise; scales are 17 and more, so half a step
    of the integers is at most 0.03; the binomial error at level 1e-4 is at most 0.031."""
    cell = {"part": "accuracy", "model": "bursty chain .01/.1", "epsilon": "1"}
    rows = [row for row in noise.measure_accuracy(None, cell, _seed(cell)) if row["kind"] == "beta of alpha"]
    wide = [row for row in rows if row["mechanism"] in (DPM, MARKOV, EVERYBODY)]
    assert len(wide) == 3 * len(noise.ALPHAS)
    assert all(abs(row["beta"] - row["drawn"]) < 0.031 + 0.03 for row in wide)
    assert {row["mechanism"]: row["guarantee"] for row in rows}[DPM] == NONE


# The whole.


def test_what_is_skipped_is_said(tmp_path, small_data):
    parts = [cell for cell in dependence.cells(Settings(quick=True)) if cell["part"] == "skipped"]
    assert [cell["data"] for cell in parts] == ["Gowalla", "Adult", "Facebook"] and "--data" in parts[0]["reason"]
    (tmp_path / real.ADULT).write_bytes((small_data / real.ADULT).read_bytes())
    some = [cell for cell in dependence.cells(Settings(quick=True, data=tmp_path)) if cell["part"] == "skipped"]
    assert [cell["data"] for cell in some] == ["Gowalla", "Facebook"] and some[0]["reason"].startswith("no gowalla")
    rows = [{**cell, **row} for cell in parts for row in dependence.measure(Settings(), cell, _seed(cell))]
    made = tables.tables(pd.DataFrame(rows))
    assert list(made["skipped"]["data"]) == ["Gowalla", "Adult", "Facebook"] and not len(made["kmeans"])


def _few(monkeypatch, parts):
    every = dependence.cells
    monkeypatch.setattr(leakage, "DRAWS", 50)
    return lambda settings: [cell for cell in every(settings) if cell["part"] in parts]


@pytest.mark.slow
def test_tables_have_what_figures_draw_and_two_runs_agree(tmp_path, small_data, monkeypatch):
    from dataclasses import replace

    parts = {"kmeans", "classifier", "degrees", "accuracy", "leak", "skipped"}
    small = replace(dependence.EXPERIMENT, cells=_few(monkeypatch, parts))
    settings = Settings(quick=True, data=small_data)
    one = run(small, settings, tmp_path)
    for cell in small.cells(settings):
        if cell["part"] in ("kmeans", "degrees", "leak"):
            again = dependence.measure(settings, cell, _seed(cell))
            kept = one.rows[(one.rows[list(cell)] == pd.Series(cell)).all(axis=1)]
            column = "accuracy" if "accuracy" in again[0] else "leaked"
            assert [row[column] for row in again] == kept[column].tolist(), cell
            if cell["part"] == "kmeans":
                assert [row[column] for row in dependence.measure(settings, cell, _seed(cell, 2))] != kept[
                    column
                ].tolist()
    for figure in dependence.EXPERIMENT.figures:
        wanted = {figure.x, figure.y, figure.by, figure.panels, figure.low, figure.high} - {None}
        assert wanted <= set(one.tables[figure.table].columns), figure.name
    for name in ("accuracy", "kmeans", "classifier", "degrees", "leak", "leak-gowalla"):
        assert len(one.tables[name]), name
    kmeans = one.tables["kmeans"]
    assert set(kmeans[kmeans["mechanism"] == DPM]["guarantee"]) == {NONE}
    assert "Gowalla" not in set(one.tables["leak"]["data"]) and not len(one.tables["skipped"])


def test_intervals_are_over_samples_not_over_draws():
    rows = [
        {"part": "classifier", "epsilon": "1", "mechanism": DPM, "guarantee": NONE, "noise": 2.0, "split": k,
         "accuracy": k / 4}
        for k in range(4) for _ in range(10)
    ]  # fmt: skip
    line = tables.tables(pd.DataFrame(rows))["classifier"].iloc[0]
    assert line["draws"] == 40 and line["high"] - line["low"] > 0.4


@pytest.mark.slow
def test_the_real_files_are_read_whole(data_folder):
    settings = Settings(data=data_folder)
    for name, files in (
        ("Gowalla", real.GOWALLA_FILES),
        ("Facebook", real.GRAPH_FILES),
        ("Adult", (real.ADULT,)),
    ):
        if settings.missing(*files) is not None:
            pytest.skip(f"this real data is not here: {name}")
    here = real.city(data_folder)
    assert (len(here.points), len(here.edges), here.degrees.max()) == (1354, 1689, 133)
    assert len(real.adult(data_folder).rows) == 32_561
    assert len(real.graph(data_folder).edges) == 88_234


@pytest.mark.replayed_words
def test_degrees_of_a_graph_of_ones_own(tmp_path, capsys):
    """Pairs count once, whichever way they stand; whoever depends on more people gets more noise."""
    path, words = tmp_path / "friends.csv", ["dependence", "--quick", "-o", str(tmp_path / "out")]
    path.write_text("a,b\nann,bob\nbob,ann\nann,cy\nann,ann\ndee,ann\n")
    graph = real.own_graph(OwnGraph(path, 0.5))
    assert graph.edges.tolist() == [[0, 1], [0, 2], [0, 3]] and graph.people.n == 4
    spent = {name: graph.people.spending(name, "1").multiplier for name in graph.people.mechanisms}
    assert spent["independent"] == 1 < spent["dpm"] < spent["group of all"] == 4
    assert command.main([*words, "--graph", str(path), "--coefficient", "0.5"]) == 0
    table = pd.read_csv(tmp_path / "out" / "degrees.csv")
    assert set(table["level"]) == {"edge", "node"} and table["accuracy"].between(0, 1).all()
    capsys.readouterr()
    (tmp_path / "alone.csv").write_text("a,b\nann,ann\n")
    for change, said in (
        (["--graph", str(path)], "--coefficient: got nothing"),
        (["--graph", str(path), "--coefficient", "2"], "--coefficient: got 2.0"),
        (["--trajectories", str(path)], "--trajectories: got"),
        (["--graph", str(tmp_path / "alone.csv"), "--coefficient", "1"], "with no pair"),
    ):
        assert command.main([*words[:2], "-o", str(tmp_path / "other"), *change]) == 2
        told = capsys.readouterr().err
        assert said in told and told.count("\n") == 1 and not (tmp_path / "other").exists()
