"""Files that differ in the lines of one person: what a query publishes, prints and returns of them.

Every file of a small family is asked, with answers in place of the noisy ones that do not depend on it (see
`noisy_numbers`). Claims: all files of a family have one exit code, one output on both streams, one table and one
statement, byte by byte; and the numbers that get noise are at most epsilon apart in scales of that noise, which is the
exact worst log-ratio. A family has every way in which one person's lines can be there: not at all, moved, changed, many
more of them than count, and with every kind of cell that cannot be used. Fails where a row decides between an answer
and an error, where it is counted or listed in public, where it changes what others contribute, where the noise is read
off the data, and where more of one person counts than is paid for.
"""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dphmm.statement.parts import typed
from dphmm.statement.query import QueryStatement
from noisy_numbers import loss, replaced

OUT = ("-o", "out.csv")
LONG = "x" * 140_000
#: Cells that no column can use.
ODD_CELLS = [
    "", " ", "nan", "NaN", "inf", "-inf", "1e999", "-1e400", "+5", "1_0", "0x1f", "no such thing", '"a, b"', '"a\nb"',
    "'=1+1", "\x00", "a\x07b", "\ufffd", "\u0663", "9" * 40, LONG, "2024-05-06T08:00:00",
]  # fmt: skip
#: Times that are not the plain one; some of them are times.
ODD_TIMES = [
    "2024-05-06T08:10:00", "2024-05-06 08:10:00", "2024-05-06T10:10:00+02:00", "2024-05-06T08:10:00.123456789Z",
    "2024-02-31T00:00:00Z", "2024-05-06T23:59:60Z", "1500-01-01T00:00:00Z", "9999-12-31T00:00:00Z", "yesterday",
    "1714982400",
]  # fmt: skip
#: Users who are nobody, where others would be somebody else.
NOBODY = ["", "\x00", "a\x07b", "a" * 3000]
#: Lines that are no rows.
ODD_LINES = ["ann", "ann,1", "ann,1,2,3,4,5,6", ",,,,,,,,", "x" * 200]

VISITS = "histogram data.csv --states home,work,other --times 4 --step 1h --from 2024-05-06T08:00:00Z --windows 2"
POINTS = "kmeans data.csv --columns x,y --box 0:10,0:10 --start 1,1;9,9 --iterations 2"
CLASSES = "svm data.csv --columns x,y --box 0:10,0:10 --label c --classes no,yes --regularisation 1"
NODES = "degree data.csv --people people.csv --level node --cap 2 --raw"
EDGES = "degree data.csv --people people.csv --level edge --cap 2"


@pytest.fixture
def ask(tmp_path, monkeypatch, run):
    """Ask about a text: ask(line, text) gives what everybody sees and what the noise is added to."""
    monkeypatch.chdir(tmp_path)
    numbers = replaced(monkeypatch)
    Path("people.csv").write_text("name\nann\nbob\ncid\ndan\n")
    Path("friends.csv").write_text("a,b\nann,bob\n")

    def asked(line, data, *more):
        words = line.split()
        write(Path(words[1]), data)
        for name in ("out.csv", "out.csv.privacy.json", "out.csv.rejected.csv"):
            Path(name).unlink(missing_ok=True)
        told = run("query", *words, "--epsilon", "1", *OUT, "--json", *more)
        seen = (told.stdout, told.stderr, Path("out.csv").read_bytes(), Path("out.csv.privacy.json").read_bytes())
        assert Path("out.csv.rejected.csv").stat().st_mode & 0o777 == 0o600
        return seen, numbers.taken()

    return asked


def write(path, data):
    if isinstance(data, pa.Table):
        pq.write_table(data, path)
    else:
        path.write_bytes(data if isinstance(data, bytes) else data.encode())


def worst(ask, line, files, *more):
    """The worst loss of any two files, which all must look the same."""
    answers = [ask(line, text, *more) for text in files]
    differing = [text[:300] for text, (seen, _) in zip(files, answers, strict=True) if seen != answers[0][0]]
    assert differing == []
    return max(loss(one, other) for (_, one), (_, other) in itertools.combinations(answers, 2))


def placed(header, others, own):
    """Files with one person's lines among those of others: all first, all last, in between."""
    between = [line for pair in itertools.zip_longest(others, own) for line in pair if line is not None]
    return ["\n".join([header, *lines]) + "\n" for lines in ([*own, *others], [*others, *own], between)]


class TestEveryWayOfOnePerson:
    """The files of one person's lines: any two of them are neighbours."""

    def files(self, header, others, families):
        """The first families in every place, the others in one place each."""
        every = [placed(header, others, own) for own in families]
        return [text for texts in every[:4] for text in texts] + [texts[n % 3] for n, texts in enumerate(every[4:])]

    def visits(self):
        others = [f"bob,2024-05-06T{8 + h:02d}:05:00Z,{'work' if h else 'home'}" for h in range(4)]
        hours = [[f"ann,2024-05-06T{8 + h:02d}:00:00Z,{state}" for h in range(4)] for state in ("home", "work", "gym")]
        families = [[], *hours, hours[0][:1], hours[1][2:], [*hours[0], *hours[1]], hours[0][::-1]]
        families += [[f"ann,{time},home", *hours[1]] for time in ODD_TIMES]
        families += [[f"ann,2024-05-06T08:00:00Z,{cell}", f"ann,{cell},home"] for cell in ODD_CELLS if cell != LONG]
        families += [[f"{user},2024-05-06T08:00:00Z,home"] for user in NOBODY]
        return self.files("user,t,state", others, [*families, ODD_LINES])

    @pytest.mark.slow
    @pytest.mark.parametrize("more", [(), ("--consistent",)])
    @pytest.mark.parametrize("how", ["group:2", "group --max-rows-per-user 2"])
    def test_histograms(self, ask, how, more):
        # Two rows of one person move from one state to another: all that is paid for.
        assert worst(ask, VISITS, self.visits(), "--dependence", *how.split(), *more) == 1

    @pytest.mark.slow
    @pytest.mark.parametrize("line", [
        "histogram data.csv --states home,work,other",
        "histogram data.csv --states home,work --times 3 --step 1h --windows 0:2,1:3",
        "histogram data.csv --states home,work --times 3 --windows 1",
    ])  # fmt: skip
    def test_histograms_of_other_steps(self, ask, line):
        assert Fraction(1, 2) <= worst(ask, line, self.visits(), "--dependence", "group:2") <= 1

    def test_histograms_of_numbered_steps(self, ask):
        others = [f"bob,{step},home" for step in (3, 4, 5)]
        steps = ["3", "4", "-4", "4", "", "5.5", "1e3", "+5", "9" * 17, "9" * 30, "x"]
        families = [[f"ann,{step},{state}" for step in chosen] for state in ("home", "work", "")
                    for chosen in ([], steps[:1], steps[:2], steps, steps[::-1])]  # fmt: skip
        files = self.files("user,step,state", others, families)
        assert worst(ask, "histogram data.csv --states home,work", files, "--dependence", "group:2") == 1
        line = "histogram data.csv --states home,work --times 5 --from 3"
        assert worst(ask, line, files, "--dependence", "group:2") == 1

    def test_friends_count_together(self, ask):
        """Both of a circle of two may change: four rows."""
        others = [f"cid,{step},home" for step in (3, 4, 5)]
        circle = itertools.product((["ann"], ["bob"], ["ann", "bob"]), (0, 1, 2, 5), ("home", "work"))
        own = [[f"{who},{step},{state}" for who in some for step in range(most)] for some, most, state in circle]
        files = self.files("user,step,state", others, own)
        more = ("--dependence", "friends:friends.csv", "--max-rows-per-user", "2")
        assert worst(ask, "histogram data.csv --states home,work", files, *more) == 1

    def points(self):
        others = ["bob,1,1,no", "bob,8,9,yes", "cid,3,4,no"]
        rows = ["ann,0,0,no", "ann,10,10,yes", "ann,10,0,no", "ann,0,10,yes"]
        families = [[], rows[:1] * 5, rows[1:2] * 5, rows[:2], rows[:1], rows, rows[::-1], rows[1:3]]
        families += [[f"ann,{cell},{cell},{cell}", f"ann,1,{cell},no"] for cell in ODD_CELLS if cell != LONG]
        families += [[f"{user},1,1,no"] * 3 for user in NOBODY]
        return "user,x,y,c", others, [*families, ODD_LINES]

    def test_centroids(self, ask):
        assert Fraction(1, 2) < worst(ask, POINTS, self.files(*self.points()), "--dependence", "group:2") <= 1

    def test_classifiers_of_one_number_of_rows(self, ask):
        """How many rows there are is public: here all files have as many."""
        header, others, families = self.points()
        own = [(family * 6)[:6] for family in families if family]
        assert 0 < worst(ask, CLASSES, self.files(header, others, own), "--dependence", "group:2") <= 1

    @pytest.mark.slow
    def test_degrees_of_people(self, ask):
        others = ["bob,cid", "cid,dan"]
        families = [[], ["ann,bob"], ["ann,bob", "cid,ann", "dan,ann"], ["ann,ann"], ["ann,zoe", "ann,"], ODD_LINES]
        families += [[f"ann,{cell}", f"{cell},ann"] for cell in ODD_CELLS if cell != LONG]
        files = self.files("a,b", others, families)
        assert 0 < worst(ask, NODES, files, "--dependence", "independent") <= 1
        lines = ["\n".join(text.splitlines()[1:]).replace(",", "\t") + "\n" for text in files]
        assert 0 < worst(ask, NODES.replace("data.csv", "data.txt"), lines, "--dependence", "independent") <= 1


class TestSpellings:
    """A person is a key: files that differ in rows under several spellings of one name are neighbours.

    By the rule "exact" each spelling is a person with a cap of its own, and the same files lose more than epsilon.
    """

    NAMES = ("ann", "Ann", " ann ", "\uff41nn", "a\u200bnn", "ANN")

    def families(self, row, values):
        """Rows of nobody, of one name, and of as many names as there are, in two orders."""
        spelt = [row.format(user, *value) for user, value in zip(self.NAMES, values, strict=True)]
        plain = [row.format("ann", *value) for value in values]
        return [[], plain, spelt, spelt[::-1], spelt[3:], plain[:1], spelt[1:2]]

    def losses(self, ask, line, header, others, families, *more):
        """The worst losses by both rules."""
        files = [text for own in families for text in placed(header, others, own)]
        return [worst(ask, line, files, *more, "--spelling", rule) for rule in ("same", "exact")]

    @pytest.mark.parametrize("question", ["histogram", "flows"])
    def test_visits(self, ask, question):
        others = [f"bob,{step},home" for step in range(3)]
        families = self.families("{},{},{}", [(step, state) for step, state in enumerate(("home", "work") * 3)])
        line = f"{question} data.csv --states home,work --times 6 --from 0"
        same, exact = self.losses(ask, line, "user,step,state", others, families, "--dependence", "group:2")
        assert 0 < same <= 1
        # Alone none of the spellings makes a trip.
        assert exact > 1 or question == "flows"

    def test_points(self, ask):
        others = ["bob,1,1,no", "bob,8,9,yes", "cid,3,4,no"]
        families = self.families("{},{},{},no", [(0, 0), (10, 10), (0, 10), (10, 0), (0, 0), (10, 10)])
        same, exact = self.losses(ask, POINTS, "user,x,y,c", others, families, "--dependence", "group:2")
        assert 0 < same <= 1 and same < exact

    def test_classes_of_one_number_of_rows(self, ask):
        others = ["bob,1,1,no", "bob,8,9,yes", "cid,3,4,no"]
        families = self.families("{},{},{},{}", [(0, 0, "yes"), (10, 10, "no")] * 3)
        families = [(family * 6)[:6] for family in families if family]
        same, exact = self.losses(ask, CLASSES, "user,x,y,c", others, families, "--dependence", "group:2")
        assert 0 < same <= 1 and same < exact

    def test_edges(self, ask):
        """People are public: ends in any spelling are those of the list, and an edge in two spellings is one."""
        edges = [("bob",), ("cid",), ("dan",), ("bob",), ("CID ",), ("zoe",)]
        families = self.families("{},{}", edges)
        losses = self.losses(ask, NODES, "a,b", ["bob,cid", "cid,dan"], families, "--dependence", "independent")
        assert all(0 < loss <= 1 for loss in losses)
        twice, once = (ask(EDGES, f"a,b\n{rows}", "--dependence", "independent")
                       for rows in ("ann,bob\nBOB,Ann\n", "ann,bob\nx,x\n"))  # fmt: skip
        assert twice == once

    def test_a_name_without_a_key_is_nobody_s(self, ask):
        others = ["bob,0,home"]
        files = placed("user,step,state", others, ["a\u0378,0,home"] * 3) + placed("user,step,state", others, [])
        line = "histogram data.csv --states home,work --times 6 --from 0"
        assert worst(ask, line, files, "--dependence", "group:2") == 0


#: A table for each question.
ROWS = {
    VISITS: ("user,t,state", ["ann,2024-05-06T08:00:00Z,home", "bob,2024-05-06T09:00:00Z,work",
                              "ann,2024-05-06T10:00:00Z,home"]),
    POINTS: ("user,x,y,c", ["ann,1,1,no", "bob,9,9,yes", "ann,5,5,no"]),
    CLASSES: ("user,x,y,c", ["ann,1,1,no", "bob,9,9,yes", "ann,5,5,no"]),
    EDGES: ("a,b", ["ann,bob", "bob,cid", "cid,dan"]),
}  # fmt: skip


class TestEveryCell:
    """One row, in which one cell is anything: the answer differs by one record, and nothing else does."""

    def files(self, header, rows, cells, columns, changing=None):
        """The table, and every one in which one cell of one row is another."""
        yield "\n".join([header, *rows]) + "\n"
        for number in range(len(rows)) if changing is None else [changing]:
            for cell, column in itertools.product(cells, columns):
                changed = rows[number].split(",")
                changed[column] = cell
                yield "\n".join([header, *rows[:number], ",".join(changed), *rows[number + 1 :]]) + "\n"

    @pytest.mark.slow
    @pytest.mark.parametrize("line", ROWS, ids=lambda line: line.split()[0])
    def test_of_a_record(self, ask, line):
        """Cells of the record itself. Who and when is public of single records; of edges, which there are is not."""
        header, rows = ROWS[line]
        columns = {VISITS: [2], EDGES: [0, 1]}.get(line, [1, 2] if line is POINTS else [1, 2, 3])
        answers = [ask(line, text, "--dependence", "independent")
                   for text in self.files(header, rows, ODD_CELLS, columns, 1)]  # fmt: skip
        assert len({seen for seen, _ in answers}) == 1
        losses = [loss(answers[0][1], numbers) for _, numbers in answers]
        assert 0 < max(losses) <= 1

    @pytest.mark.slow
    @pytest.mark.parametrize("line", ROWS, ids=lambda line: line.split()[0])
    def test_of_any_column_and_any_line(self, ask, line):
        header, rows = ROWS[line]
        texts = list(self.files(header, rows, [*ODD_CELLS, *ODD_TIMES], range(len(rows[0].split(","))), 1))
        texts += ["\n".join([header, *rows[:1], odd, *rows[2:]]) + "\n" for odd in ODD_LINES]
        raw = [b"ann,\xff\xfe,1,no", b"\xe9ric,1,1,no", b"ann,1\x00,1,no"]
        before, after = "\n".join([header, rows[0]]).encode(), rows[2].encode()
        texts += [b"\n".join([before, odd, after]) for odd in raw]
        seen = {ask(line, text, "--dependence", "independent")[0] for text in texts}
        assert len(seen) == 1

    @pytest.mark.slow
    def test_of_parquet(self, ask):
        """Cells that text does not have: missing ones, NaN and the infinities."""
        values = [0.5, None, float("nan"), float("inf"), float("-inf"), 1e300]
        for line in (POINTS, CLASSES):
            tables = [pa.table({"user": ["ann", None, "bob"], "x": [1.0, x, 3.0], "y": [1.0, 2.0, y],
                                "c": ["no", label, "yes"]})
                      for x, y, label in zip(values * 6, sorted(values * 6, key=str), ["no", None, "maybe"] * 12,
                                             strict=True)]  # fmt: skip
            for how in ("independent", "group:3"):
                answers = [ask(line.replace(".csv", ".parquet"), one, "--dependence", how) for one in tables]
                assert len({seen for seen, _ in answers}) == 1
        stamps = pa.array([0, None, 10**18], pa.timestamp("us", "UTC"))
        for state in (["home", None, "x"], [None, None, None], ["x", "x", "x"]):
            data = pa.table({"user": ["ann", None, "bob"], "t": stamps, "state": pa.array(state, pa.string())})
            seen, _ = ask(VISITS.replace(".csv", ".parquet"), data, "--dependence", "independent")
            assert seen == ask(VISITS.replace(".csv", ".parquet"), data.slice(0, 0), "--dependence", "independent")[0]

    @pytest.mark.slow
    def test_of_a_map(self, ask, town):
        header, *rows = (town / "walks.csv").read_text().splitlines()[:8]
        line = f"histogram data.csv --states {town / 'model.npz'} --times 12 --from 2024-05-06T08:00:00Z"
        cells = ["", "nan", "91", "-1e400", "x", "0", "50,0"]
        answers = [ask(line, text, "--dependence", "independent")
                   for text in self.files(header, rows, cells, [2, 3])]  # fmt: skip
        assert len({seen for seen, _ in answers}) == 1
        assert max(loss(answers[0][1], numbers) for _, numbers in answers) == 1

    def test_of_a_chain(self, ask, site):
        """Names that are not public count as one of the states, and the steps of a person's other rows stay."""
        header, *rows = (site / "visits.csv").read_text().splitlines()[:31]
        line = f"histogram data.csv --dependence markov:{site / 'model.npz'} --times 20 --windows 5"
        answers = [ask(line, text) for text in self.files(header, rows[:4] + rows[15:18], ODD_CELLS[:6], [1])]
        assert len({seen for seen, _ in answers}) == 1
        per_record = sum(part[2] for part in answers[0][1])
        assert max(loss(answers[0][1], numbers) for _, numbers in answers) == per_record

    @pytest.mark.parametrize("line", [VISITS, POINTS, EDGES], ids=lambda line: line.split()[0])
    def test_nobody_at_all(self, ask, line):
        """A table without a row is answered like any other: the last person may have left it."""
        header, rows = ROWS[line]
        texts = [f"{header}\n", header, "\n".join([header, *rows])]
        assert len({ask(line, text, "--dependence", "independent")[0] for text in texts}) == 1


def test_unknown_names_count_in_the_last_cell(ask):
    data = "user,step,state\nann,1,gym\nbob,1,\ncid,1,work\ndan,1,other\n"
    for states, counts in (("home,work,other", (0, 1, 1, 2)), ("work,home", (1, 0, 3)), ("other,work", (1, 1, 2))):
        (_, numbers) = ask(f"histogram data.csv --states {states}", data, "--dependence", "independent")
        assert numbers[0][3] == counts


def test_the_first_rows_of_each_person_count(ask):
    """In time in a histogram, in the order of the file for points; the rows beyond are listed for the owner."""
    data = "user,step,state\nann,3,work\nann,1,home\nann,2,home\nbob,1,work\n"
    _, numbers = ask("histogram data.csv --states home,work", data, "--dependence", "group:2")
    assert numbers[0][3] == (2, 1, 0)
    assert Path("out.csv.rejected.csv").read_text() == "line,reason\n2,beyond_max_rows\n"
    points = "user,x,y,c\nann,1,1,no\nbob,9,9,no\nann,2,2,no\nann,9,9,no\n,9,9,no\n"
    _, numbers = ask(POINTS, points, "--dependence", "group:2")
    assert numbers[0][3] == (2, 1)
    assert Path("out.csv.rejected.csv").read_text() == "line,reason\n5,beyond_max_rows\n6,missing_user\n"


def test_no_bound_is_read_off_the_data(ask):
    """Nobody has more than one row, or somebody has fifty: one K, one noise."""
    few, many = ("user,step,state\n" + "".join(f"ann,{k},home\n" for k in range(n)) for n in (1, 50))
    for line in ("histogram data.csv --states home,work", "histogram data.csv --states home,work --consistent"):
        assert ask(line, few, "--dependence", "group:3")[0] == ask(line, many, "--dependence", "group:3")[0]


@pytest.mark.parametrize("line", [VISITS, POINTS, CLASSES, NODES], ids=lambda line: line.split()[0])
def test_only_a_model_is_told_by_its_hash(ask, line, site):
    """A digest lets anybody try out what a small file may have said."""
    Path("states.csv").write_text("state\nhome\nwork\n")
    Path("start.csv").write_text("x,y\n1,1\n9,9\n")
    header, rows = ROWS.get(line, ("a,b", ["ann,cid"]))
    line = line.replace("home,work,other", "states.csv").replace("1,1;9,9", "start.csv")
    bounded = () if line == NODES else ("--max-rows-per-user", "2")
    ask(line, "\n".join([header, *rows]), "--dependence", "friends:friends.csv", *bounded)
    said = json.loads(Path("out.csv.privacy.json").read_text())
    assert [name for name in keys(said) if "sha256" in name] == ["sha256"] and "sha256" in said["file"]
    chain = f"histogram data.csv --dependence markov:{site / 'model.npz'} --times 20"
    ask(chain, (site / "visits.csv").read_text())
    said = json.loads(Path("out.csv.privacy.json").read_text())
    assert sorted(name for name in keys(said) if "sha256" in name) == ["model_sha256", "sha256"]


def keys(document):
    """All names of members, however deep."""
    if isinstance(document, dict):
        return [*document, *(name for value in document.values() for name in keys(value))]
    return [name for value in document for name in keys(value)] if isinstance(document, list) else []


def test_what_is_said_of_a_model_that_was_fitted_without_privacy(ask, site):
    """Three answers, by what the data owner says of whom it was fitted on; DATA here are other rows than those."""
    data = "\n".join((site / "visits.csv").read_text().splitlines()[:31]) + "\n"
    chain = f"histogram data.csv --dependence markov:{site / 'model.npz'} --times 20"
    expected = {"others": True, "same": False, "unknown": "unknown", None: "unknown"}
    for people, holds in expected.items():
        ask(chain, data, *(() if people is None else ("--model-people", people)))
        said = json.loads(Path("out.csv.privacy.json").read_text())
        # The noise here can be replayed by nobody, and is none.
        assert (said["format"], said["private"]) == (3, holds)
        due = {False: ["fitted on these records"], "unknown": ["fitted on unknown people"], True: []}
        assert said["reasons"] == due[holds]
        assert (said["epsilon"] is None) == (holds is False)
        meaning = typed(said, QueryStatement).sentence()
        assert ("as the data owner says" in meaning) == (people == "others")
        assert meaning.startswith("if the model") == (holds == "unknown")
        assert meaning.startswith("nothing is promised") == (holds is False)


def test_what_is_said_of_states_of_a_model_that_was_fitted_without_privacy(ask, run, site):
    """Which states a fitted model has can show what one person did, as its moves can."""
    whole = (site / "visits.csv").read_bytes()
    part = b"\n".join(whole.splitlines()[:31]) + b"\n"
    run("fit", site / "visits.csv", "-o", "own.npz", "--state-column", "state", "--quiet")
    line = "histogram data.csv --states own.npz --times 20 --dependence group:20"
    for data, people, holds in [
        (part, None, "unknown"),
        (part, "others", True),
        (whole, None, False),
        (whole, "others", False),
    ]:
        (_, told, _, _), _ = ask(line, data, *(() if people is None else ("--model-people", people)))
        said = json.loads(Path("out.csv.privacy.json").read_text())
        assert said["private"] == holds and "model" in told
        assert ("fitted on unknown people" in said["reasons"]) == (holds == "unknown")


def test_a_long_cell_is_its_own_row_s(ask):
    """A cell of more than 128 KiB, its quotes closed, takes no line of anybody else with it."""
    others = [f"u{user},{step},{'a' if user % 3 else 'b'},x" for user in range(20) for step in range(3)]
    line = "histogram data.csv --states a,b --times 3 --dependence group:3"
    long = f'zed,0,a,"{"x" * 140_000}\n"'
    header = "user,step,state,note"
    files = ["\n".join([header, *others]) + "\n", *placed(header, others, [long])]
    assert worst(ask, line, files) <= 1


def test_what_is_hidden_is_said_in_each_statement(ask):
    header, rows = ROWS[POINTS]
    for how, words in {
        "independent": "one record: one point; neighbouring data differ in it and nowhere else",
        "group:2": "all rows of one person (one point each), of which at most 2 count",
        "friends:friends.csv --max-rows-per-user 2": "all rows of all people of one circle of friends",
    }.items():
        ask(POINTS, "\n".join([header, *rows]), "--dependence", *how.split())
        said = typed(json.loads(Path("out.csv.privacy.json").read_text()), QueryStatement)
        assert said.unit.sentence(whole=said).startswith(words)
        assert ("presence" in said.not_protected) == (how == "independent")
    assert pd.read_csv("out.csv").shape == (2, 4)
