"""dphmm query: an answer, the statement beside it, and one line for whatever cannot be asked.

Claims: with the noise taken away every command gives the true answer (so rows, states, windows, boxes and people are
read as documented); the epsilon per record that the noise is drawn with is the library's for the dependence that was
named; the statement is about the file, repeats no private value, and says what is not protected; nothing that is not
proved is answered (exit 1, no file); no two runs share their noise, and there is no seed to make them. Fails where an
option is not handed on, where a record is counted in another cell, where a message quotes a cell, or where a refusal
leaves a file.
"""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dphmm
from dphmm.dependent import _dependence
from dphmm.statement.parts import typed
from dphmm.statement.query import QueryStatement

CANARY = "CANARY_7f3a_hidden"
OUT = ("-o", "out.csv")

HISTOGRAM = "histogram visits.csv --epsilon 1 --states home,work,gym"
KMEANS = "kmeans points.csv --epsilon 1 --columns x,y --box 0:10,0:10 --start 1,1;9,9"
DEGREE = "degree edges.csv --epsilon 1 --people 5 --level edge --cap 3"
SVM = "svm points.csv --epsilon 1 --columns x,y --box 0:10,0:10 --label c --classes no,yes"
EVERY = {"histogram": HISTOGRAM, "kmeans": KMEANS, "degree": DEGREE, "svm": SVM}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with small tables, in which commands run."""
    monkeypatch.chdir(tmp_path)
    write = {
        "visits.csv": "user,step,state\nann,3,home\nann,4,work\nann,5,work\nbob,7,home\nbob,8,home\ncid,3,gym\n",
        "points.csv": "user,x,y,c\nann,1,1,no\nann,2,1,no\nbob,9,8,yes\ncid,8,99,yes\ncid,1,0,no\n",
        "edges.csv": "a,b\n0,1\n1,2\n2,1\n1,3\n",
        "named.csv": "a,b\nann,bob\nbob,cid\n",
        "people.csv": "name\nann\nbob\ncid\ndan\n",
        "edges.txt": "# from to\n# more\n0\t1\n1\t2\n1\t3\n",
        "friends.csv": "a,b\nann,bob\n",
    }
    for name, text in write.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def noiseless(monkeypatch):
    """Commands answer the truth; the budgets that the noise was asked for are collected."""
    budgets = []

    def truth(self, size, bits):
        budgets.append(self.scale)
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(_dependence.LaplaceSampler, "draw", truth)
    return budgets


@pytest.fixture
def ask(run, place):
    """Run a query in the folder: ask(HISTOGRAM, "--force"), with -o out.csv."""

    def asked(line, *more, code=0):
        return run("query", *line.split(), *OUT, *more, code=code)

    return asked


@pytest.fixture
def of_chain(site):
    """A question about visits whose records depend on each other as the model says."""
    return f"histogram {site / 'visits.csv'} --epsilon 1 --times 20 --dependence markov:{site / 'model.npz'}"


def table():
    return pd.read_csv("out.csv")


def listed(name="out.csv.rejected.csv"):
    """The owner's list of rows that do not count as they are written."""
    return list(pd.read_csv(name).itertuples(index=False, name=None))


def statement():
    return json.loads(Path("out.csv.privacy.json").read_text())


def test_a_histogram_counts_the_records_of_public_states(ask, noiseless):
    ask(HISTOGRAM, "--quiet")
    assert table()[["state", "count"]].values.tolist() == [["home", 3], ["work", 2], ["gym", 1], ["other", 0]]


@pytest.mark.parametrize("kind", ["histogram", "flows"])
def test_names_that_are_no_state_count_in_a_cell_of_their_own(ask, noiseless, kind):
    """They counted as the first state: 6,453 for 874. The cell is named by public options alone."""
    line, count = HISTOGRAM.replace("histogram", kind), "count" if kind == "histogram" else "trips"
    hidden = () if kind == "histogram" else ("--dependence", "group:2")
    for states, cell in (("hoem,work", "other"), ("hoem,other", "(other)"), ("(other),other", "((other))")):
        said = ask(line.replace("home,work,gym", states), "--force", *hidden).stderr
        assert f"other names, and places that cannot be read, are in {cell}" in said
        assert statement()["domain"]["in_no_state"] == cell
        found = table().set_index([name for name in table() if name in ("state", "origin", "destination")])["count"]
        of_work = 2 if "work" in states else 0
        expected = {"count": {cell: 6 - of_work}, "trips": {(cell, cell): 3 - of_work}}[count]
        assert {name: found[name] for name in expected} == expected and found.iloc[0] == 0


def test_windows_are_of_public_steps_from_a_public_start(ask, noiseless):
    said = ask(HISTOGRAM, "--times", "4", "--from", "3", "--windows", "2")
    assert table()["count"].tolist() == [1, 1, 1, 0, 0, 1, 0, 0]
    assert table()["first"].tolist() == [0, 0, 0, 0, 2, 2, 2, 2]
    assert "2 rows" not in said.stderr
    assert listed() == [(5, "outside_the_public_steps"), (6, "outside_the_public_steps")]


def test_without_a_start_steps_count_from_each_users_first_row(ask, noiseless):
    ask(HISTOGRAM, "--times", "4", "--windows", "0:1,1:4,0:4")
    assert table()["count"].tolist() == [2, 0, 1, 0, 1, 2, 0, 0, 3, 2, 1, 0]
    # A step is in two windows, and a record leaves one cell of each and enters another.
    assert noiseless == [Fraction(4)]


def test_places_count_in_the_cell_they_are_in_by_time_bins(town, tmp_path, run, noiseless):
    out = tmp_path / "h.parquet"
    run("query", "histogram", town / "walks.csv", "--epsilon", "1", "--states", town / "model.npz", "--times", "12",
        "--from", "2024-05-06T08:00:00Z", "--windows", "12", "-o", out, "--quiet")  # fmt: skip
    rows = pd.read_csv(town / "walks.csv")
    space = dphmm.storage.load_model(town / "model.npz").space
    states = space.locate(rows["lat"], rows["lon"])
    found = pd.read_parquet(out)
    assert found["count"].tolist() == np.bincount(states, minlength=space.n_states + 1).tolist()
    assert found["state"].tolist() == [*space.names, "other"]


@pytest.mark.parametrize(
    ("dependence", "per_record"),
    [
        ("independent", 1),
        ("group:4", Fraction(1, 4)),
        ("group --max-rows-per-user 3", Fraction(1, 3)),
        ("group --max-rows-per-user 7", Fraction(1, 7)),
        ("friends:friends.csv --max-rows-per-user 3", Fraction(1, 6)),
    ],
)
def test_each_dependence_leaves_a_record_its_share(ask, noiseless, dependence, per_record):
    """ann has 3 records, bob 2, cid 1; ann and bob are friends."""
    ask(HISTOGRAM, "--dependence", *dependence.split())
    assert noiseless == [Fraction(2) / per_record]
    assert Fraction(statement()["per_record"]) == per_record
    assert statement()["epsilon"] == "1"


def test_friends_however_spelt_are_in_one_circle(ask, place, noiseless):
    """Two spellings of bob would part the circle of four, and halve the noise."""
    (place / "friends.csv").write_text("a,b\nann, Bob\nBOB,cid\ncid,dan\u200b\n")
    for rule, largest in (("same", 4), ("exact", 3)):
        ask(HISTOGRAM, "--dependence", "friends:friends.csv", "--max-rows-per-user", "1", "--spelling", rule, "--force")
        assert statement()["dependence"]["most"] == largest
        assert statement()["subjects"] == {"spelling": rule, "noun": "person"}


def test_friends_of_friends_of_friends_share_a_budget(ask, place, noiseless):
    """Along ann - bob - cid - dan all four records may depend on each other; nobody has more than two friends. That
    cid is not in DATA changes nothing: the circle is that of the public friendships.
    """
    (place / "visits.csv").write_text("user,step,state\nann,3,home\nbob,3,home\ndan,4,work\n")
    (place / "friends.csv").write_text("a,b\nann,bob\nbob,cid\ncid,dan\n")
    ask(HISTOGRAM, "--dependence", "friends:friends.csv", "--max-rows-per-user", "1")
    assert noiseless == [Fraction(2) * 4]
    meaning = typed(statement(), QueryStatement).dependence.sentence()
    assert "the largest circle has 4 people" in meaning and "public, as the data owner says" in meaning


@pytest.mark.slow
def test_a_chain_leaves_a_record_what_the_library_says(site, ask, of_chain, noiseless):
    chain = dphmm.dependent.Chain(dphmm.storage.load_model(site / "model.npz"), 20)
    wanted = dphmm.dependent.calibrate(chain, dphmm.dependent.AnyQuery(1), 1, exact=False)
    told = ask(of_chain)
    assert noiseless == [2 / wanted.per_record]
    assert wanted.per_record < 1
    said = statement()
    assert said["mechanism"] == "markov"
    assert "recursion" in said["proved_by"]
    # The model was fitted to these very visits, without privacy: its noise scale is made of them.
    assert said["private"] is False and said["epsilon"] is None
    assert typed(said, QueryStatement).sentence().startswith("nothing is promised: the model")
    assert "warning: the model" in told.stderr


def test_centroids_of_clipped_points(ask, noiseless):
    # A large epsilon: centroids are rounded to a tenth of the noise that was asked for.
    ask(KMEANS.replace("--epsilon 1 ", "--epsilon 1000 "), "--iterations", "3")
    found = table()
    assert found["count"].tolist() == [3, 2]
    assert np.allclose(found[["x", "y"]], [[4 / 3, 2 / 3], [8.5, 9]], atol=1e-3)
    # Three rounds; of each a third goes to counts (sensitivity 2) and two to sums.
    assert noiseless[0::2] == [Fraction(2) * 9 / 1000] * 3


@pytest.mark.parametrize(("epsilon", "unit"), [("1", 1), ("20", 0.1), ("1000", 0.001)])
def test_a_centroid_has_no_digits_below_its_noise(ask, noiseless, epsilon, unit):
    """Over 3 rounds the scale of a sum is 90 over epsilon, and of a centroid a third or half of that, or the box."""
    ask(KMEANS.replace("--epsilon 1 ", f"--epsilon {epsilon} "), "--iterations", "3")
    places = table()[["x", "y"]].to_numpy()
    assert unit <= min(90 / float(epsilon) / 3, 10) / 10 < 10 * unit
    assert np.array_equal(places, np.round(places, int(-np.log10(unit))))
    assert abs(places - [[4 / 3, 2 / 3], [8.5, 9]]).max() <= unit / 2 + 1e-3


def test_a_count_below_its_noise_is_warned_of_in_one_line(ask, noiseless):
    """Scale 18 over 3 rounds at epsilon 1, 0.018 at 1000; from what is published: a count of 3 or of 2."""
    told = ask(KMEANS, "--iterations", "3", "--dependence", "independent", "--json")
    (warning,) = (line for line in told.stderr.splitlines() if line.startswith("warning:"))
    assert "2 of 2 clusters (0, 1): scale 18" in warning
    assert json.loads(told.stdout)["clusters_below_noise"] == [0, 1]
    fine = ask(KMEANS.replace("--epsilon 1 ", "--epsilon 7.2 "), "--iterations", "3", "--force", "--json")
    assert json.loads(fine.stdout)["clusters_below_noise"] == [1]
    assert "1 of 2 clusters (1): scale 2.5" in fine.stderr


def test_the_warning_is_of_the_noisy_counts(ask, monkeypatch):
    """Noise that takes every count below its scale, or far above it: the true counts are the same."""
    for noise, below in ((-9, [0, 1]), (90, [])):
        monkeypatch.setattr(
            _dependence.LaplaceSampler, "draw", lambda self, size, bits, z=noise: np.full(size, z, dtype=np.int64)
        )
        told = ask(KMEANS, "--iterations", "3", "--force", "--json")
        assert json.loads(told.stdout)["clusters_below_noise"] == below
        assert ("the noise is larger" in told.stderr) == bool(below)


@pytest.mark.parametrize(
    ("dependence", "size"),
    [("group --max-rows-per-user 2", 2), ("friends:friends.csv --max-rows-per-user 2", 4), ("group:5", 5)],
)
@pytest.mark.parametrize("question", ["kmeans", "svm"])
def test_points_of_one_person_or_of_friends_share_a_budget(ask, noiseless, question, dependence, size):
    """ann has 2 rows, bob 1, cid 2; ann and bob are friends."""
    ask(EVERY[question], "--dependence", *dependence.split())
    assert Fraction(statement()["per_record"]) == Fraction(1, size)


def test_a_start_from_a_table(ask, noiseless, place):
    (place / "start.csv").write_text("x,y\n1,1\n9,9\n")
    ask(KMEANS.replace("1,1;9,9", "start.csv"))
    assert table()["count"].tolist() == [3, 2]


@pytest.mark.parametrize(
    ("data", "people", "degrees"),
    [("edges.csv", "5", [1, 3, 0, 1]), ("edges.txt", "5", [1, 3, 0, 1]), ("named.csv", "people.csv", [1, 2, 1, 0])],
)
@pytest.mark.parametrize("level", ["edge", "node"])
def test_degrees_of_tables_and_texts(ask, noiseless, data, people, degrees, level):
    line = (
        DEGREE.replace("edges.csv", data)
        .replace("--people 5", f"--people {people}")
        .replace("edge --cap", f"{level} --cap")
    )
    ask(line, "--raw")
    assert table()["count"].tolist() == degrees
    assert noiseless == [Fraction(4 if level == "edge" else 14)]


def test_friends_share_a_budget_at_node_level(ask, noiseless):
    line = DEGREE.replace("edges.csv", "named.csv").replace("5 --level edge", "people.csv --level node")
    ask(line, "--dependence", "friends:friends.csv")
    assert noiseless == [Fraction(28)]


@pytest.mark.parametrize("kind", ["svm", "logistic"])
def test_a_classifier_in_the_units_of_its_table(ask, noiseless, kind):
    ask(SVM, "--kind", kind, "--regularisation", "0.001")
    found = dict(zip(table()["feature"], table()["weight"], strict=True))
    points = pd.read_csv("points.csv")
    score = found["intercept"] + points["x"].clip(0, 10) * found["x"] + points["y"].clip(0, 10) * found["y"]
    assert ((score > 0) == (points["c"] == "yes")).all()
    assert statement()["domain"]["decision"].startswith("yes where")


@pytest.mark.parametrize("name", EVERY)
def test_the_statement_is_about_the_file_and_says_what_is_promised(ask, name):
    printed = ask(EVERY[name], "--json", "--dependence", "group:2")
    said = statement()
    shown = json.loads(printed.stdout)
    assert [shown[name] for name in ("unit", "dependence", "proved_by")] == [
        said[name] for name in ("unit", "dependence", "proved_by")
    ]
    assert said["private"] is True and said["replayable"] is False
    assert (said["epsilon"], said["per_record"]) == ("1", "0.5")
    assert len(said["not_protected"]) >= 4

    assert said["file"] == {"name": "out.csv", "sha256": hashlib.sha256(Path("out.csv").read_bytes()).hexdigest()}


@pytest.mark.parametrize("name", EVERY)
def test_independence_that_nobody_claimed_is_warned_of(ask, name):
    assert "--dependence was not given, so records are taken as independent" in ask(EVERY[name], "--quiet").stderr
    assert statement()["dependence"]["given"] == "nothing; independent by default"
    said = ask(EVERY[name], "--quiet", "--dependence", "independent", "--force").stderr.splitlines()
    assert len([line for line in said if "warning" in line and "the noise is larger" not in line]) == 1
    assert statement()["dependence"]["given"] == "independent"


@pytest.mark.parametrize("name", EVERY)
def test_no_seed_is_offered_and_no_two_answers_are_alike(ask, name):
    """Ten answers of 3 numbers with noise of scale 2 or more: all alike with probability below 1e-9."""
    assert "--seed" in ask(EVERY[name], "--seed", "1", code=2).stderr
    quiet = ("--epsilon", "0.01", "--quiet", "--force", *(["--raw"] if name == "degree" else []))
    answers = set()
    for _ in range(10):
        ask(EVERY[name], *quiet)
        answers.add(Path("out.csv").read_text())
    assert len(answers) > 1


CASES = {
    "a negative epsilon": (HISTOGRAM.replace("--epsilon 1", "--epsilon=-1"), "--epsilon: got -1"),
    "states that nobody named": (HISTOGRAM.partition(" --states")[0], "--states: got nothing"),
    "a state twice": (HISTOGRAM.replace("gym", "home"), "--states"),
    "windows without times": (HISTOGRAM + " --windows 2", "--times: got nothing"),
    "windows past the end": (HISTOGRAM + " --times 3 --windows 0:4", "--windows: got 0:4"),
    "a start in words": (HISTOGRAM + " --from soon", "--from: got soon"),
    "no such dependence": (HISTOGRAM + " --dependence cousins", "--dependence: got cousins"),
    "a chain without a model": (HISTOGRAM + " --dependence markov", "markov:MODEL"),
    "a chain of a missing model": (HISTOGRAM + " --dependence markov:none.npz", "--dependence: got none.npz; expected"),
    "a group of none": (HISTOGRAM + " --dependence group:0", "group:3"),
    "a group of any size": (HISTOGRAM + " --dependence group", "--max-rows-per-user: got nothing; expected a public"),
    "friends with any rows": (KMEANS + " --dependence friends:friends.csv", "--max-rows-per-user: got nothing"),
    "a group of two sizes": (
        HISTOGRAM + " --dependence group:3 --max-rows-per-user 4",
        "--max-rows-per-user: got 4; expected none with group:3, which says 3",
    ),
    "a group of no rows": (HISTOGRAM + " --dependence group --max-rows-per-user 0", "--max-rows-per-user: got 0"),
    "a group of edges": (DEGREE + " --dependence group", "--dependence: got group; expected group:K"),
    "a friend who is nobody": (
        HISTOGRAM + " --max-rows-per-user 3 --dependence friends:nobody.csv",
        "--dependence friends:nobody.csv, line 2: got nobody",
    ),
    "no friends": (
        HISTOGRAM + " --max-rows-per-user 3 --dependence friends:none.txt",
        "--dependence friends:none.txt: got none.txt, without a friendship",
    ),
    "a friend of oneself": (
        HISTOGRAM + " --max-rows-per-user 3 --dependence friends:self.csv",
        "--dependence friends:self.csv, line 3: got a loop; expected pairs of different people",
    ),
    "a friend of oneself in a text": (
        KMEANS + " --max-rows-per-user 3 --dependence friends:self.txt",
        "self.txt, row 2: got a loop",
    ),
    "friends in a text of anything": (
        KMEANS + " --max-rows-per-user 3 --dependence friends:bad.txt",
        "bad.txt, with a line that is not two names",
    ),
    "a model of nobody in particular": (HISTOGRAM + " --model-people others", "--model-people: got others; expected"),
    "a chain for points": (KMEANS + " --dependence markov:m.npz", "says nothing of these records"),
    "an unbounded attribute": (KMEANS.replace(" --box 0:10,0:10", ""), "unbounded numbers cannot be protected"),
    "a box upside down": (KMEANS.replace("0:10,0:10", "0:10,10:0"), "LOW < HIGH"),
    "a box for one of two columns": (KMEANS.replace("0:10,0:10", "0:10"), "each of 2 columns"),
    "a box beyond all floats": (KMEANS.replace("0:10,0:10", "0:10,0:1e400"), "--box: got 1e400"),
    "no start": (KMEANS.partition(" --start")[0], "--start: got nothing"),
    "a start of another dimension": (KMEANS.replace("1,1;9,9", "1;9"), "--start: got 1;9"),
    "no rounds": (KMEANS + " --iterations 0", "--iterations: got 0"),
    "a column that is not there": (KMEANS.replace("--columns x,y", "--columns x,z"), "--columns: got z"),
    "people that nobody counted": (DEGREE.replace(" --people 5", ""), "--people: got nothing"),
    "no level": (DEGREE.replace(" --level edge", ""), "--level: got nothing"),
    "no cap": (DEGREE.replace(" --cap 3", ""), "--cap: got nothing"),
    "friends of edges": (DEGREE + " --dependence friends:friends.csv", "not in a list of friends"),
    "edges in two of three columns": (
        DEGREE.replace("edges", "three"),
        "three.csv: id, a, b; expected two",
    ),
    "friends in two of three columns": (
        HISTOGRAM + " --max-rows-per-user 3 --dependence friends:three.csv",
        "three.csv: id, a, b; expected two",
    ),
    "an end in no column": (DEGREE + " --columns a,z", "--columns: got z; expected a column of edges.csv: a, b"),
    "an end alone": (DEGREE + " --columns a", "--columns: got a; expected two columns"),
    "people who are no number": (DEGREE.replace("--people 5", "--people 1e3"), "--people: got 1e3; expected a number"),
    "a missing table of people": (DEGREE.replace("--people 5", "--people none.csv"), "--people: got none.csv"),
    "classes that nobody named": (SVM.replace(" --classes no,yes", ""), "--classes: got nothing"),
    "no regularisation": (SVM + " --regularisation 0", "--regularisation: got 0"),
    "a label among the features": (SVM.replace("--label c", "--label x"), "--label: got x; expected a column that"),
    "three classes": (SVM.replace("no,yes", "no,yes,maybe"), "--classes: got no,yes,maybe; expected two"),
    "data of another suffix": (KMEANS.replace("points.csv", "edges.txt"), "DATA: got edges.txt"),
    "a missing start": (KMEANS.replace("1,1;9,9", "none.csv"), "--start: got none.csv"),
    "a start that is the data": (KMEANS.replace("1,1;9,9", "points.csv"), "--start: got points.csv"),
    "a start outside the box": (KMEANS.replace("9,9", "9,11"), "--start: got 1,1;9,11; expected centroids within"),
    "a missing table of states": (HISTOGRAM.replace("home,work,gym", "none.csv"), "--states: got none.csv"),
    "a folder of states": (HISTOGRAM.replace("home,work,gym", "."), "--states: got ., a file or a folder"),
    "bins for rows that are numbered": (HISTOGRAM + " --step 5min", "--step: got 5min; expected no --step"),
    "another format": (HISTOGRAM + " -o out.xlsx", "-o: got out.xlsx"),
    "onto its own data": (HISTOGRAM + " -o visits.csv --force", "another file than the input"),
    "a missing table": (HISTOGRAM.replace("visits", "none"), "DATA: got none.csv"),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_one_line_and_no_file(place, run, name):
    line, expected = CASES[name]
    (place / "nobody.csv").write_text("a,b\nann,\n")
    (place / "none.txt").write_text("# nobody knows anybody\n")
    (place / "bad.txt").write_text(f"1 2\n{CANARY} 3 4\n")
    (place / "self.csv").write_text("a,b\nann,bob\ncid,cid\n")
    (place / "self.txt").write_text("# who whom\nann bob\ncid cid\n")
    (place / "three.csv").write_text("id,a,b\n0,1,2\n1,3,4\n")
    before = {path: path.read_bytes() for path in place.iterdir()}
    more = () if "--dependence" in line else ("--dependence", "independent")
    told = run("query", *line.split(), *(() if " -o " in line else OUT), *more, code=2)
    assert told.stderr.count("\n") == 1, told.stderr
    assert expected in told.stderr
    assert "zoe" not in told.stderr and CANARY not in told.stderr
    assert {path: path.read_bytes() for path in place.iterdir()} == before


@pytest.mark.parametrize("first", ["bob,cid", " bob , cid", "bob,zoe"])
def test_a_first_edge_is_not_taken_for_a_header(place, ask, first):
    """It would be lost without a word, and with it a friend of somebody's: the noise would be too small."""
    (place / "bare.csv").write_text(f"{first}\nann,bob\n")
    expected = "line 1: got people; expected a header that names nobody"
    told = ask(HISTOGRAM, "--dependence", "friends:bare.csv", "--max-rows-per-user", "3", code=2).stderr
    assert f"--dependence friends:bare.csv, {expected}" in told and "bob" not in told
    line = DEGREE.replace("edges", "bare").replace("--people 5", "--people people.csv")
    assert f"DATA, {expected}" in ask(line, "--dependence", "independent", code=2).stderr
    (place / "bare.csv").write_text("0,3\n1,2\n")
    assert "DATA, line 1" in ask(DEGREE.replace("edges", "bare"), "--dependence", "independent", code=2).stderr


def test_named_columns_are_a_header_whatever_they_are_called(place, ask, noiseless):
    (place / "bare.csv").write_text("1,0,2\n3,4,1\n")
    ask(DEGREE.replace("edges", "bare"), "--columns", "2,0", "--raw", "--dependence", "independent")
    assert table()["count"].tolist() == [3, 2, 0, 0]


def test_lines_of_edges_are_those_of_an_editor(place, ask, noiseless):
    (place / "edges.csv").write_text('a,b\n\n0,1\n\n1,9\n"0\n",3\n3,3\n2\n4,1\n')
    ask(DEGREE, "--dependence", "independent", "--raw")
    assert table()["count"].tolist() == [2, 2, 1, 0]
    assert listed() == [(5, "unknown_person"), (6, "unknown_person"), (8, "loop"), (9, "ragged_row")]
    (place / "edges.txt").write_text("# a b\n0 1\n1\t4\n1 2 3\n\n# c\n1,9\n2,2\nno\n")
    ask(DEGREE.replace("edges.csv", "edges.txt"), "--dependence", "independent", "--raw", "--force")
    assert table()["count"].tolist() == [2, 2, 1, 0]
    assert listed() == [(4, "ragged_row"), (7, "unknown_person"), (8, "loop"), (9, "ragged_row")]


@pytest.mark.parametrize(
    ("name", "bad", "reason"),
    [
        ("histogram", f"dan,1,{CANARY}\n", "unknown_state"),
        ("histogram", f",1,{CANARY}\n", "missing_user"),
        ("kmeans", f"dan,{CANARY},1,no\n", "invalid_number"),
        ("svm", f"dan,1,1,{CANARY}\n", "unknown_class"),
        ("degree", f"{CANARY},1\n", "unknown_person"),
    ],
)
def test_a_value_that_is_not_public_is_listed_by_its_place_for_the_owner_alone(place, ask, name, bad, reason):
    data = place / EVERY[name].split()[1]
    data.write_text(data.read_text() + bad)
    told = ask(EVERY[name], "--dependence", "independent", "--json")
    assert CANARY not in told.stderr + told.stdout
    assert not any(CANARY in path.read_text() for path in place.iterdir() if path != data)
    assert listed() == [(len(data.read_text().splitlines()), reason)]
    assert (place / "out.csv.rejected.csv").stat().st_mode & 0o777 == 0o600
    assert "out.csv.rejected.csv lists the rows of DATA that do not count as they are written" in told.stderr


@pytest.mark.parametrize("name", EVERY)
def test_no_private_digits_beside_an_answer(place, ask, name):
    """Users, cells and names of the input are in no file that is written and in nothing that is said."""
    private = {
        "histogram": "user,step,state\nCANARY1,3,home\nCANARY2,4,gym\n",
        "kmeans": "user,x,y,c\nCANARY1,1.50193,1,no\nCANARY2,2,7.50193,no\n",
        "svm": "user,x,y,c\nCANARY1,1.50193,1,no\nCANARY2,2,7.50193,yes\n",
        "degree": "a,b\n3,4\n",
    }
    (place / EVERY[name].split()[1]).write_text(private[name])
    told = ask(EVERY[name], "--json", "--dependence", "group:3")
    seen = told.stdout + told.stderr + Path("out.csv").read_text() + Path("out.csv.privacy.json").read_text()
    assert "CANARY" not in seen and "50193" not in seen


def test_an_output_is_replaced_only_by_force_which_says_what_it_costs(ask):
    ask(HISTOGRAM)
    assert "--force" in ask(HISTOGRAM, "--dependence", "independent", code=2).stderr
    assert "both are paid for" in ask(HISTOGRAM, "--force").stderr
    # Nothing was drawn where nothing was answered, and a first answer replaces none.
    bad = ask(HISTOGRAM.replace("work,", "home,"), "--force", "--dependence", "independent", code=2).stderr
    assert bad.count("\n") == 1
    Path("out.csv").unlink()
    assert "paid for" not in ask(HISTOGRAM, "--force").stderr


def test_where_it_is_proved_is_said_once(ask, of_chain):
    told = ask(of_chain)
    proved = next(line for line in told.stderr.splitlines() if line.startswith("proved"))
    assert proved.count("docs/proofs/") == 1
    assert "docs/proofs/" in ask(HISTOGRAM, "--force").stderr


def test_noise_is_told_part_by_part(ask):
    assert "scale 42 on the counts (at most 97 in 9 of 10)" in ask(KMEANS).stderr


@pytest.mark.parametrize(
    ("question", "options", "expected"),
    [
        ("median", {}, "question"),
        ("histogram", {}, "n_states"),
        ("histogram", {"n_states": 2, "colour": 1}, "colour"),
        ("svm", {"classes": ("a", "b")}, "(X, y)"),
        ("degree", {"n": 3, "cap": 1}, "level"),
    ],
)
def test_a_question_by_name_takes_its_own_options_only(question, options, expected):
    with pytest.raises(dphmm.errors.InvalidInput, match=None) as refused:
        dphmm.dependent.query(question, np.array([0, 1]), "independent", 1, **options)
    assert expected in str(refused.value)


class TestDryRun:
    """Of DATA it sees a header and types: rows that no run could read change nothing, and nothing is left behind."""

    @pytest.fixture
    def tables(self, place):
        """Tables of the same columns: as they are, without rows, and with bytes that are no rows."""
        for name in ("visits.csv", "points.csv", "edges.csv"):
            header = (place / name).read_text().split("\n")[0]
            (place / f"empty-{name}").write_text(f"{header}\n")
            (place / f"broken-{name}").write_text(f'{header}\nann,"1,2\n\x00,')
        return place

    @pytest.mark.parametrize("name", EVERY)
    def test_no_row_of_the_data_is_read(self, run, tables, name):
        if name == "svm":
            pytest.importorskip("sklearn")
        line = [*EVERY[name].split(), "--dependence", "group:2", "--dry-run", "--about", "200"]
        before = {path.name: path.read_bytes() for path in tables.iterdir()}
        told = [run("query", line[0], f"{kind}{line[1]}", *line[2:]) for kind in ("", "empty-", "broken-")]
        assert len({(one.stdout, one.stderr) for one in told}) == 1
        assert "of the people" in told[0].stderr or name == "svm"
        assert "dry run: no row was read; nothing was drawn, spent, stored or written" in told[0].stderr
        assert {path.name: path.read_bytes() for path in tables.iterdir()} == before

    @pytest.mark.parametrize("name", EVERY)
    def test_it_tells_the_noise_of_the_run(self, run, ask, one_json, name):
        if name == "svm":
            pytest.importorskip("sklearn")
        ask(EVERY[name], "--dependence", "group:2")
        line = [*EVERY[name].split(), "--dependence", "group:2", "--dry-run", "--about", "5", "--json"]
        document = one_json(run("query", *line))
        drawn = {(part["of"], part["scale"]) for part in statement()["noise"]}
        told = {(part["of"], part["scale"]) for part in document["noise"]}
        assert {(of, float(Fraction(scale))) for of, scale in told} == {(of, float(scale)) for of, scale in drawn}
        assert document["dry_run"] is True and document["neighbours"] == statement()["neighbours"]

    def test_a_type_is_refused_as_in_the_run(self, run, place):
        pd.DataFrame({"user": ["a"], "state": ["home"], "t": [True]}).to_parquet(place / "v.parquet")
        line = ["query", "flows", "v.parquet", "--states", "home", "--epsilon", "1", "--dependence", "group:1"]
        dry, real = run(*line, "--dry-run", code=2), run(*line, *OUT, code=2)
        assert dry.stderr == real.stderr and "a column of type bool" in dry.stderr

    def test_the_account_is_told_and_stays_as_it_is(self, run, ask, place):
        line = [*HISTOGRAM.split(), "--dependence", "group:2", "--ledger", "l.db", "--id", "one"]
        told = run("query", *line, "--dry-run").stderr
        assert "a person would have lost at most 1 there, replaced, and at most 0.5 of being in the data" in told
        assert not (place / "l.db").exists()
        run("query", *line, *OUT)
        before = {path.name: path.read_bytes() for path in place.iterdir() if path.is_file()}
        assert "this id is stored: nothing would be drawn or paid" in run("query", *line, "--dry-run").stderr
        line[-1] = "two"
        assert "at most 2 there, replaced, and at most 1 of being" in run("query", *line, "--dry-run").stderr
        line[line.index("home,work,gym")] = "home,work"
        line[-1] = "one"
        assert "another id for another publication" in run("query", *line, "--dry-run", code=2).stderr
        assert {path.name: path.read_bytes() for path in place.iterdir() if path.is_file()} == before

    def test_what_belongs_to_it_or_to_a_run(self, run, place):
        assert (
            "--about: got 5; expected --dry-run with it"
            in run("query", *HISTOGRAM.split(), *OUT, "--about", "5", code=2).stderr
        )
        assert "--about: got 0" in run("query", *HISTOGRAM.split(), "--dry-run", "--about", "0", code=2).stderr
        assert "-o: got nothing; expected the file to write" in run("query", *HISTOGRAM.split(), code=2).stderr
        assert "about how many rows" in run("query", *SVM.split(), "--dry-run", code=2).stderr
